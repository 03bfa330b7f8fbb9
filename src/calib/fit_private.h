/* Shared by the files of the fit. */
#ifndef MBSIM_CALIB_FIT_PRIVATE_H
#define MBSIM_CALIB_FIT_PRIVATE_H

#include "calib/fit.h"

/* log predicted - log measured, with the values that the cases hold, and of all trials at x. */
double mb_fit_residual(struct mb_fit *fit, int trial);
void mb_fit_residuals(struct mb_fit *fit, const double *x, double *ret);

/*
 * Forward differences of the residuals, [count][free_count]. Three parameters in four have no say in a run (fp4 in a
 * bf16 run, experts in a dense one): without `everything`, those found idle where the fit began are not asked again.
 */
void mb_fit_jacobian(struct mb_fit *fit, const double *x, bool everything, double *ret);

/* Whether a parameter has a say in a trial. */
bool mb_fit_touches(const struct mb_free *f, const struct mb_trial *t);

/* Spread of the residuals, as far as outliers do not decide it; room [count]. */
double mb_fit_noise(const struct mb_fit *fit, double *room);

/* Weights of the trials, from residuals and noise. */
void mb_fit_weigh(struct mb_fit *fit);

/* Inverse of J' W J + diag(1 / sigma^2); false when it is singular. */
bool mb_fit_invert(const struct mb_fit *fit, double *ret_inverse);

#endif
