/* What rules.def is written in: sizes derived from a case and a plan, and the short words of its columns. */
#ifndef MBSIM_PLAN_RULES_PRIVATE_H
#define MBSIM_PLAN_RULES_PRIVATE_H

#include "plan/rules.h"

enum mb_rule_index {
#define RULE(name, ...) MB_RULE_##name,
#define TELL(...)
#include "plan/rules.def"
#undef RULE
#undef TELL
	MB_RULE_COUNT
};

/* The compiler may call it once where a rule names it several times. */
#define MB_PURE __attribute__((pure))

/* Total for any plan: 0 where a size is not positive or does not divide, so that only its own rule complains. */
MB_PURE bool mb_divides(int64_t part, int64_t whole);
MB_PURE int64_t mb_dense_group(const struct mb_plan *p);        /* tp cp pp: ranks of one replica */
MB_PURE int64_t mb_expert_group(const struct mb_plan *p);       /* etp ep pp */
MB_PURE int64_t mb_replicas(const struct mb_case *c, const struct mb_plan *p);
MB_PURE int64_t mb_expert_replicas(const struct mb_case *c, const struct mb_plan *p);
MB_PURE int64_t mb_micro_batch_count(const struct mb_case *c, const struct mb_plan *p);
MB_PURE int64_t mb_vp_group(const struct mb_plan *p);           /* micro-batches a virtual stage runs in a row */

bool mb_has_mixer(const struct mb_model *m, enum mb_mixer mixer);
bool mb_has_ffn(const struct mb_model *m, enum mb_ffn ffn);
bool mb_has_moe(const struct mb_model *m);
bool mb_has_dense(const struct mb_model *m);
bool mb_has_shared(const struct mb_model *m);
bool mb_has_window(const struct mb_model *m);
bool mb_is_hybrid(const struct mb_model *m);
bool mb_mtp_is_moe(const struct mb_model *m);

bool mb_heads_split(const struct mb_model *m, int64_t ranks);
bool mb_groups_split(const struct mb_model *m, int64_t ranks);
bool mb_matrices_split(const struct mb_model *m, const struct mb_plan *p);
bool mb_mamba_splits(const struct mb_model *m, const struct mb_plan *p);
bool mb_gdn_splits(const struct mb_model *m, const struct mb_plan *p);
bool mb_quantised_inputs_align(const struct mb_case *c, const struct mb_plan *p);
bool mb_a2a_splits(const struct mb_model *m, const struct mb_plan *p);

/* Stage split. */
bool mb_uneven(const struct mb_plan *p);                /* first or last stage has its own count */
int mb_split_units(const struct mb_case *c, const struct mb_plan *p);  /* layers, with embedding and loss where they count */
bool mb_middle_divides(const struct mb_case *c, const struct mb_plan *p);
bool mb_virtual_divides(const struct mb_case *c, const struct mb_plan *p);

enum mb_layout_fault {
	MB_LAYOUT_FITS, MB_LAYOUT_STAGES, MB_LAYOUT_ENDS, MB_LAYOUT_LAYERS, MB_LAYOUT_MTP, MB_LAYOUT_MTP_SPREAD, MB_LAYOUT_MTP_PLACE
};
enum mb_layout_fault mb_layout_fault(const struct mb_case *c, const struct mb_plan *p);
const struct mb_layout *mb_plan_layout(const struct mb_case *c, const struct mb_plan *p);      /* NULL: none */
int mb_layout_layers(const struct mb_layout *l);
int mb_layout_mtp(const struct mb_layout *l);

/* Recompute, graphs, precision. */
bool mb_recomputes(const struct mb_plan *p, unsigned modules);         /* selectively, any of them */
unsigned mb_modules_without_effect(const struct mb_case *c, const struct mb_plan *p);
bool mb_whole_iteration(const struct mb_plan *p);
bool mb_captures(const struct mb_plan *p, unsigned scope);             /* per-module graphs, any of them */
bool mb_dropout_captured(const struct mb_case *c, const struct mb_plan *p);
bool mb_offload_captured(const struct mb_case *c, const struct mb_plan *p);
bool mb_is_fp8(const struct mb_run *r);
bool mb_attention_is_fused(const struct mb_run *r);
bool mb_format_supported(const struct mb_case *c);
bool mb_at_least(int version, int needed);              /* an unknown version is new enough */
bool mb_deepep_runs(const struct mb_hardware *hw);
bool mb_optimizer_dtypes_legal(const struct mb_run *r);
bool mb_uses(const struct mb_plan *p, enum mb_backend backend);        /* through the flex dispatcher */

/* How one violation of a rule is told: a text with {placeholders}, and the keys to blame, first the one to point at. */
struct mb_telling {
	enum mb_rule_index rule;
	bool (*when)(const struct mb_case *c, const struct mb_plan *p);
	const char *text, *about;
};
const struct mb_telling *mb_rule_telling(const struct mb_rule *rule, const struct mb_case *c, const struct mb_plan *p);

/* Whether the stack's framework and month have the rule. */
bool mb_rule_applies(const struct mb_rule *rule, const struct mb_stack *s);

/* Key by its word in rules.def ("tp"), -1 if there is none. */
int mb_rule_key(const char *word, size_t length);

/* The rule's keys in order; returns how many. */
int mb_rule_keys(const char *words, enum mb_key_id *ret, int max);

/* Appends `text` to `ret` with this run's values in the place of {names}. */
void mb_rule_render(const struct mb_case *c, const struct mb_plan *p, const char *text, char *ret, size_t size);

/* Broken rules as bits. */
struct mb_broken {
	uint64_t bits[4];
};
void mb_find_broken(const struct mb_case *c, const struct mb_plan *p, struct mb_broken *ret);
bool mb_is_broken(const struct mb_broken *b, int rule);

/*
 * A value to try. The cost is small for a near value, large for one that changes what is bought or learnt. mb_change_values
 * adds `cost` to each and returns how many of MB_MAX_VALUES there are; sizes come coarse, for use in pairs.
 */
enum { MB_MAX_VALUES = 128 };
struct mb_change {
	enum mb_key_id key;
	union mb_value value;
	double cost;
};
double mb_change_cost(enum mb_key_id key);
double mb_change_distance(long long from, long long to);
int mb_change_values(const struct mb_run *run, enum mb_key_id key, double cost, struct mb_change *list);

/* Smallest change of the rule's keys after which it holds and no new error appears. */
void mb_find_fix(const struct mb_query *q, const struct mb_plan *p, const struct mb_rule *rule, struct mb_fix *fix,
                 struct mb_fix *alternative);

/* The plan and run after a change, with what is derived from them. */
void mb_apply_change(struct mb_case *c, const struct mb_query *q, enum mb_key_id key, union mb_value value);

#endif
