/*
 * Trying changes to a run: the run after them, whether it is legal, and what it costs. All advice is made of trials, so
 * that what is recommended has passed the rules and the estimate that a user would run.
 */
#ifndef MBSIM_ADVISE_TRIAL_H
#define MBSIM_ADVISE_TRIAL_H

#include "cost/cost.h"
#include "plan/rules.h"

enum { MB_MAX_CHANGES = 24 };

/* Changes to a run, in the order they are made. */
struct mb_changes {
	int count;
	enum mb_key_id key[MB_MAX_CHANGES];
	union mb_value value[MB_MAX_CHANGES];
	int max_connections;            /* CUDA_DEVICE_MAX_CONNECTIONS; 0: as it is */
	bool expandable;                /* PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True */
};

/* The run after changes. */
struct mb_trial {
	struct mb_changes changes;
	struct mb_run run;
	enum mb_verdict verdict;        /* MB_ILLEGAL: `broken`, or sizes that make no sense */
	const struct mb_rule *broken;
	bool sized;                     /* the numbers below mean something */
	double step_s, low_s, high_s, host_s, ep_s;
	double peak_bytes, reserved_bytes, used_bytes, margin_bytes, first_peak_bytes, host_bytes, between_bytes;
	double first_used_bytes;        /* device use of the first step, on the stage where that is largest */
	int stage, in_flight_chunks;
	double in_flight_bytes;
	enum mb_phase phase;
	double terms[MB_TIME_COUNT], memory[MB_MEM_COUNT];
	struct mb_traffic_cost traffic[MB_TRAFFIC_COUNT];
	double recompute_s, recompute_flops;
	int64_t micro_batches;
};

struct mb_bench {
	const struct mb_query *q;       /* the run as it was given */
	struct mb_query now;            /* after the last trial */
	struct mb_evaluation *e;        /* of the last trial; the caller's */
	bool legal_only;                /* leaves illegal runs without numbers */
};

void mb_bench_init(struct mb_bench *b, const struct mb_query *q, struct mb_evaluation *e);

/* Sets a key, or takes its change back when that is what the run says already. False when there is no room. */
bool mb_changes_set(struct mb_changes *c, const struct mb_query *q, enum mb_key_id key, long long value);

/* Sets whatever the second changes. */
bool mb_changes_merge(struct mb_changes *c, const struct mb_query *q, const struct mb_changes *more);
bool mb_changes_fix(struct mb_changes *c, const struct mb_query *q, const struct mb_fix *fix);

/* Keys and variables that change. */
int mb_changes_count(const struct mb_changes *c);
bool mb_changes_has(const struct mb_changes *c, enum mb_key_id key);

/* Whether any of them changes what is learnt. */
bool mb_changes_learning(const struct mb_changes *c);

/* Makes the changes in b->now, and evaluates what comes out. */
void mb_bench_try(struct mb_bench *b, const struct mb_changes *c, struct mb_trial *ret);

/* Changes of recompute, complete: granularity, method, layers, modules. modules: enum mb_module bits. */
void mb_changes_recompute(struct mb_changes *c, const struct mb_query *q, enum mb_granularity granularity, unsigned modules,
                          enum mb_method method, int layers);

/*
 * Adds what else the run needs so that no error rule is broken, leaving the keys of `pinned` (and of the changes so far)
 * alone. False, with the rule that stands in the way, when nothing known mends it.
 */
bool mb_bench_mend(struct mb_bench *b, struct mb_changes *c, const enum mb_key_id *pinned, int pinned_count,
                   const struct mb_rule **ret_broken);

#endif
