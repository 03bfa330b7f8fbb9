/* Errors of runs whose group the fit has not seen, as rows of an accuracy table. */
#ifndef MBSIM_CALIB_HELD_OUT_H
#define MBSIM_CALIB_HELD_OUT_H

#include "calib/accuracy.h"
#include "calib/fit.h"

/* Fewer runs or groups say nothing; with more runs the refits would take minutes. */
enum { MB_HELD_OUT_RUNS = 30, MB_HELD_OUT_MOST = 2000, MB_HELD_OUT_GROUPS = 5 };

/*
 * Adds a summary for each way of leaving out, if enough runs (and not too many) gave their configuration whole. Fits
 * start from the priors of before the shipped fit, since the shipped values may have seen these very runs.
 */
void mb_accuracy_held_out(const struct mb_trials *trials, struct mb_evaluation *e, struct mb_accuracy *a);

/* One way, for a fit that is solved. Returns the number of groups. */
int mb_accuracy_leave(struct mb_fit *fit, enum mb_leave leave, struct mb_accuracy *a);

extern const char *const mb_leave_names[];      /* "each model, GPU and precision left out", by enum mb_leave */

#endif
