/* What the model says about measured runs. */
#ifndef MBSIM_CALIB_PREDICT_H
#define MBSIM_CALIB_PREDICT_H

#include "calib/measured.h"
#include "cost/cost.h"
#include "plan/case.h"

/* A measured run that the model can evaluate. */
struct mb_trial {
	const struct mb_measured *row;
	struct mb_query *q;
	double measured_s;              /* 0: no time was measured */
	double tokens_per_s, model_flops;       /* of one GPU at the measured time; a token's, Bridge's count */
};

struct mb_trials {
	struct mb_trial *trials;
	int count;
	struct mb_measured *skipped;    /* rows with `skip` set, those that no run can express first */
	int skipped_count;
};

/* Turns rows into trials, in their order; the rest is skipped with a reason. */
void mb_trials_fill(const struct mb_measured_set *set, struct mb_library *library, struct mb_evaluation *e, struct mb_trials *ret);

/* The prediction of one measure; NAN when the run has none. `e` holds the evaluation of the trial. */
double mb_trial_predicted(const struct mb_trial *t, const struct mb_evaluation *e, enum mb_measure measure);

/* Why a run of a golden test is outside of what the model describes; NULL: it is inside. */
const char *mb_trial_gap(const struct mb_trial *t);

const char *mb_trial_family(const struct mb_trial *t);
const char *mb_trial_precision(const struct mb_trial *t);

/* FLOP/s that MFU divides by. */
double mb_trial_peak(const struct mb_trial *t);

#endif
