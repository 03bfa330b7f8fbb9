/* Search: every open key filled, the best plans that fit, nothing skipped without a reason. */
#ifndef MBSIM_SEARCH_SEARCH_H
#define MBSIM_SEARCH_SEARCH_H

#include "cost/cost.h"
#include "plan/rules.h"

enum mb_objective { MB_OBJECTIVE_STEP, MB_OBJECTIVE_MEMORY, MB_OBJECTIVE_COST, MB_OBJECTIVE_GPUS };

/* A plan with what was computed for it. */
struct mb_ranked {
	struct mb_plan plan;
	int gpus;
	enum mb_verdict verdict;
	double step_s, low_s, high_s, tokens_per_s_per_gpu, model_flop_per_s_per_gpu, mfu;
	double peak_bytes, device_used_bytes, margin_bytes;
	int variants;                   /* near-copies: plans with the same costs within the model's resolution */
	bool tie;                       /* with rank 1 */
};

enum { MB_MAX_TOP = 1000, MB_MAX_FRONT = 256, MB_MAX_PRUNE_ROWS = 160 };

struct mb_prune_row {
	const char *id;                 /* rule id, or a bound: "memory_bound", "time_bound", "memory" */
	double count;                   /* points; exact below 2^53 */
};

struct mb_search_options {
	int top;                        /* plans wanted */
	enum mb_objective objective;
	double memory_slack_frac;       /* objective memory: step may be this much over the fastest */
	double max_step_s, max_peak_bytes;      /* 0: no limit (--require) */
	int threads;
	void (*progress)(void *context, double done_frac);      /* NULL: silent */
	void *context;
};

struct mb_search_result {
	struct mb_ranked *top;          /* sorted: objective, then documented plan order */
	int top_count;
	struct mb_ranked *front;        /* non-dominated in (step_s, peak_bytes), by step */
	int front_count, knee;          /* knee: index into front; -1 without */
	int recommended;                /* index into top of the first plan that fits; -1: none */
	struct mb_ranked closest;       /* when nothing fits and no limit was given: least device use */
	bool has_closest;
	double plans_considered, plans_costed, plans_evaluated, plans_fit;
	struct mb_prune_row pruned[MB_MAX_PRUNE_ROWS];
	int pruned_count;
	double elapsed_s;
	int threads;
	struct mb_layout *layouts;      /* what the plans' layout indices mean: the query's, then those of the search */
	int layout_count;
};

/* Memory of the result is the arena's. False only when the query itself cannot be searched (reported). */
bool mb_search(const struct mb_query *q, const struct mb_search_options *options, struct mb_arena *arena,
               struct mb_search_result *ret, struct mb_diags *diags);

/* Which keys this search opens for the query: those the contract opens and the user did not set, and `auto`. */
void mb_search_open_keys(const struct mb_query *q, bool open[MB_KEY_COUNT]);

/* The documented total order of plans with equal cost. */
int mb_plan_compare(const struct mb_plan *a, const struct mb_plan *b);

#endif
