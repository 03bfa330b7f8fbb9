/* Errors of predictions over measured runs: by row, by group, and beside what simpler predictors do. */
#ifndef MBSIM_CALIB_ACCURACY_H
#define MBSIM_CALIB_ACCURACY_H

#include "calib/predict.h"

/* One comparison. error_frac: predicted over measured, less 1. */
struct mb_outcome {
	const struct mb_trial *trial;
	const char *quantity;           /* "step_s", ..., "step_ratio" within a study */
	const char *kind;               /* "time" or "memory" */
	double measured, predicted, error_frac;
	double low, high;               /* the band of the prediction; 0: it has none */
};

/* Errors of a group: shares, not percent. in_band: NAN when nothing has a band. */
struct mb_summary {
	const char *by;                 /* "family", "model", "gpu", "precision", "stack", "source", "all", "baseline", "left out" */
	const char *group, *quantity, *kind;
	int n;
	double median, mean, p90, max, bias, in_band;
};

/* Two step times that belong together; ratios are second over first. */
struct mb_pair {
	const struct mb_outcome *first, *second;
	double measured, predicted;
	bool right;
};

struct mb_accuracy {
	struct mb_arena *arena;
	struct mb_outcome *scores;
	int score_count;
	struct mb_summary *summaries;
	int summary_count, summary_room;
	struct mb_pair *pairs;          /* two layouts of a workload, measured more than 5 % apart; right: in this order */
	int pair_count, pair_room, pairs_right;
	struct mb_pair *studies;        /* two variants; right: gaps above 2 % have their sign, others are predicted below 3 % */
	int study_count, studies_right, studies_close;         /* close: the ratio is within 10 % */
};

/* Evaluates every trial, in their order. */
void mb_accuracy_score(const struct mb_trials *trials, struct mb_evaluation *e, struct mb_accuracy *ret);

/* Adds the groups: everything, then by family, model, GPU, precision, stack and source. */
void mb_accuracy_group(struct mb_accuracy *a);

/* Finds the pairs of layouts, and of variants, among the scores. */
void mb_accuracy_order(struct mb_accuracy *a);
void mb_accuracy_studies(struct mb_accuracy *a);

/* Adds the predictors that a person would use without a model; each predicts from the other groups' measured runs. */
void mb_accuracy_baselines(const struct mb_trials *trials, struct mb_accuracy *a);

/* One summary of n errors (shares); `inside`: how many lie in their band, negative: no band. Sorts `errors` by size. */
struct mb_summary mb_summarise(double *errors, int n, int inside);
void mb_accuracy_add(struct mb_accuracy *a, struct mb_summary s);

/* Scores by size of error, worst first; the caller's array of pointers. */
void mb_accuracy_worst(const struct mb_accuracy *a, const struct mb_outcome **ret);

/* Summary of a group; NULL when there is none. */
const struct mb_summary *mb_accuracy_find(const struct mb_accuracy *a, const char *by, const char *group, const char *quantity);

#endif
