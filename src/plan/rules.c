#include "plan/rules_private.h"

/* The short words of rules.def. */
enum {
	TP = 1 << MB_P_TP, CP = 1 << MB_P_CP, PP = 1 << MB_P_PP, EP = 1 << MB_P_EP, ETP = 1 << MB_P_ETP, MBS = 1 << MB_P_MBS,
	VP = 1 << MB_P_VP, SPLIT = 1 << MB_P_SPLIT, SP = 1 << MB_P_SP, CPC = 1 << MB_P_CP_COMM, REC = 1 << MB_P_RECOMPUTE,
	DISP = 1 << MB_P_DISPATCHER, EPO = 1 << MB_P_EP_OVERLAP, SHO = 1 << MB_P_SHARED_OVERLAP, TPO = 1 << MB_P_TP_OVERLAP,
	GRAPH = 1 << MB_P_GRAPH, OFF = 1 << MB_P_OFFLOAD, OPT = 1 << MB_P_OPTIMIZER
};
#define BRIDGE MB_FW_BRIDGE
#define MEGATRON MB_FW_MEGATRON
#define CORE (MB_FW_BRIDGE | MB_FW_MEGATRON)
#define ANY (MB_FW_BRIDGE | MB_FW_MEGATRON | MB_FW_TE)

const char *const mb_rule_severity_names[] = { "error", "changed", "ignored", "warning", "pointless" };

#define RULE(name, id, severity, framework, reads, since, until, condition, ...) \
	static bool holds_##name(const struct mb_case *c, const struct mb_plan *p) \
	{ \
		const struct mb_model *m = &c->model; \
		const struct mb_hardware *hw = &c->hardware; \
		const struct mb_run *r = &c->run; \
		const struct mb_stack *s = &c->stack; \
		(void)m, (void)hw, (void)r, (void)s, (void)p; \
		return (condition); \
	}
#define TELL(...)
#include "plan/rules.def"
#undef RULE

const struct mb_rule mb_rules[] = {
#define RULE(name, id, severity, framework, reads, since, until, condition, says, source, keys) \
	{ id, MB_RULE_##severity, framework, reads, since, until, holds_##name, says, source, keys },
#include "plan/rules.def"
#undef RULE
};

const int mb_rule_count = MB_RULE_COUNT;
_Static_assert(MB_RULE_COUNT <= 64 * sizeof(struct mb_broken) / 8, "struct mb_broken has a bit for each rule");

/* The error rules, which alone make a plan illegal, in order; apart from the wide rows, since a search asks often. */
#define LISTED_ERROR(name, reads) { reads, MB_RULE_##name },
#define LISTED_CHANGED(name, reads)
#define LISTED_IGNORED(name, reads)
#define LISTED_WARNING(name, reads)
#define LISTED_POINTLESS(name, reads)
static const struct {
	unsigned reads;
	enum mb_rule_index rule;
} errors[] = {
#define RULE(name, id, severity, framework, reads, ...) LISTED_##severity(name, reads)
#include "plan/rules.def"
#undef RULE
};
#undef TELL

bool mb_rule_applies(const struct mb_rule *rule, const struct mb_stack *s)
{
	unsigned framework = s->framework == MB_MEGATRON_LM ? MB_FW_MEGATRON : MB_FW_BRIDGE;

	if ((rule->framework & framework) == 0)
		return false;
	if (s->month == 0)
		return true;
	return (rule->since == 0 || s->month >= rule->since) && (rule->until == 0 || s->month <= rule->until);
}

static bool broken(const struct mb_rule *rule, const struct mb_case *c, const struct mb_plan *p)
{
	return mb_rule_applies(rule, &c->stack) && !rule->holds(c, p);
}

const struct mb_rule *mb_first_broken_since(const struct mb_case *c, const struct mb_plan *p, unsigned fixed, unsigned fresh)
{
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		bool due = (errors[i].reads & fresh) != 0 && (errors[i].reads & ~fixed) == 0;

		if (due && broken(&mb_rules[errors[i].rule], c, p))
			return &mb_rules[errors[i].rule];
	}
	return NULL;
}

const struct mb_rule *mb_first_broken(const struct mb_case *c, const struct mb_plan *p, unsigned fixed)
{
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		if ((errors[i].reads & ~fixed) == 0 && broken(&mb_rules[errors[i].rule], c, p))
			return &mb_rules[errors[i].rule];
	}
	return NULL;
}

void mb_find_broken(const struct mb_case *c, const struct mb_plan *p, struct mb_broken *ret)
{
	*ret = (struct mb_broken){ { 0 } };
	for (int i = 0; i < mb_rule_count; i++) {
		if (mb_rule_applies(&mb_rules[i], &c->stack) && !mb_rules[i].holds(c, p))
			ret->bits[i / 64] |= UINT64_C(1) << (i % 64);
	}
}

bool mb_is_broken(const struct mb_broken *b, int rule)
{
	return (b->bits[rule / 64] >> (rule % 64)) & 1;
}
