/* Legality: every rule of the framework as one line of rules.def. */
#ifndef MBSIM_PLAN_RULES_H
#define MBSIM_PLAN_RULES_H

#include "plan/case.h"

enum mb_rule_severity { MB_RULE_ERROR, MB_RULE_CHANGED, MB_RULE_IGNORED, MB_RULE_WARNING, MB_RULE_POINTLESS };
extern const char *const mb_rule_severity_names[];


/* The plan keys in search order; a rule names those that it reads. */
enum mb_plan_key {
	MB_P_TP, MB_P_CP, MB_P_PP, MB_P_EP, MB_P_ETP, MB_P_MBS, MB_P_VP, MB_P_SPLIT, MB_P_SP, MB_P_CP_COMM, MB_P_RECOMPUTE,
	MB_P_DISPATCHER, MB_P_EP_OVERLAP, MB_P_SHARED_OVERLAP, MB_P_TP_OVERLAP, MB_P_GRAPH, MB_P_OFFLOAD, MB_P_OPTIMIZER,
	MB_P_COUNT
};

struct mb_rule {
	const char *id;                 /* stable; variants by framework or by part share one, so count by row, not by id */
	enum mb_rule_severity severity;
	enum mb_framework_mask { MB_FW_BRIDGE = 1, MB_FW_MEGATRON = 2, MB_FW_TE = 4 } framework;
	unsigned reads;                 /* bits of enum mb_plan_key */
	int since, until;               /* months of the stack; 0: always */
	bool (*holds)(const struct mb_case *c, const struct mb_plan *p);
	const char *says;               /* in plain words */
	const char *source;             /* file of the framework that enforces it; "" none: a limit of the machine or of mbsim */
	const char *keys;               /* words of keys.def whose change may mend it, preferred first; "" none */
};

extern const struct mb_rule mb_rules[];
extern const int mb_rule_count;

/* First error rule that reads only the keys in `fixed` and does not hold; NULL when the plan may go on. */
const struct mb_rule *mb_first_broken(const struct mb_case *c, const struct mb_plan *p, unsigned fixed);

/* The same, leaving out rules that read none of the `fresh` keys: for walks that checked them when fewer keys were fixed. */
const struct mb_rule *mb_first_broken_since(const struct mb_case *c, const struct mb_plan *p, unsigned fixed, unsigned fresh);

enum { MB_ALL_KEYS = (1u << MB_P_COUNT) - 1, MB_MAX_VIOLATIONS = 64, MB_MAX_FIX_KEYS = 4 };

struct mb_fix {
	int count;                      /* keys to change; 0: no fix with few keys is known */
	enum mb_key_id key[MB_MAX_FIX_KEYS];
	union mb_value value[MB_MAX_FIX_KEYS];
};

struct mb_violation {
	const struct mb_rule *rule;
	enum mb_key_id keys[4];         /* that the rule reads and the user set; first: the one to point at */
	int key_count;
	struct mb_pos pos;
	char message[256];              /* `says` with this run's values */
	struct mb_fix fix, alternative; /* the smallest change; a real other choice */
};

/* Every broken rule, worst first. Returns how many of `ret` are filled. */
int mb_check(const struct mb_query *q, const struct mb_plan *p, struct mb_violation ret[MB_MAX_VIOLATIONS]);

/* All fixes together when the result is legal: true. */
bool mb_combined_fix(const struct mb_query *q, const struct mb_plan *p, struct mb_fix *ret, int max_keys);

#endif
