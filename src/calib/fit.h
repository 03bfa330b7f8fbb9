/*
 * Fits the parameters of the time model to measured steps: robust nonlinear least squares in logarithms,
 *
 *     sum_i w_i (log predicted_i - log measured_i)^2 / noise^2  +  sum_j x_j^2 / sigma_j^2
 *
 * x_j: logarithm of a free parameter over its value in the descriptor; sigma_j: the descriptor's. w_i: Huber's weight.
 * From the priors of before the shipped fit, x_j - center_j takes the place of x_j in the second sum.
 */
#ifndef MBSIM_CALIB_FIT_H
#define MBSIM_CALIB_FIT_H

#include "base/text.h"
#include "calib/predict.h"

/*
 * One free parameter. The same row of params.def is one parameter for all machines of an architecture, and one for all
 * stacks; files that override it keep their ratio to it.
 */
struct mb_free {
	enum mb_param_id id;
	int architecture;               /* enum mb_arch; -1: the stack's */
	double value, sigma;            /* prior: of the base file */
	struct mb_pos pos;              /* where the prior stands */
	double center;                  /* logarithm of the prior over the value; 0 unless the fit is from_priors */
	double x;                       /* fitted logarithm of the factor */
	double spread;                  /* standard deviation of x */
	double information;             /* share that the data give, 0..1 */
	bool kept;                      /* the data cannot determine it: x is the prior's */
};

struct mb_fit_options {
	double loosen;                  /* factor on sigma of values that were themselves fitted; 1: take them at their word */
	bool from_priors;               /* where a value was fitted: what was expected before, in place of it */
	bool whole_runs;                /* only rows that gave a whole run */
	const char *also;               /* names, separated by commas, that are free too; NULL: none */
};

struct mb_fit {
	struct mb_arena *arena;
	struct mb_free *free;
	int free_count;
	struct mb_trial **trials;       /* those with a time */
	int count;
	struct mb_evaluation *e;
	double noise;                   /* robust spread of log errors */

	/* At the solution. */
	double *residual, *weight;      /* [count] */
	double *jacobian;               /* [count][free_count] */
	double *covariance;             /* [free_count][free_count] */
	bool *idle;                     /* [count][free_count]: without influence where the fit began */
};

enum mb_leave { MB_LEAVE_GROUP, MB_LEAVE_MODEL, MB_LEAVE_HARDWARE, MB_LEAVE_STACK };

/* Collects trials with times and the parameters that are free. False when there is nothing to fit. */
bool mb_fit_prepare(struct mb_fit *fit, const struct mb_trials *trials, const struct mb_fit_options *options, struct mb_diags *diags);

/* Finds the minimum, its covariance, and what the data determine. */
bool mb_fit_solve(struct mb_fit *fit, struct mb_diags *diags);

/*
 * Errors of every trial when its group is left out, in the order of fit->trials: the whole fit again, weights and noise
 * included, from the solution. Returns the number of groups.
 */
int mb_fit_leave_out(struct mb_fit *fit, enum mb_leave leave, double *ret_errors);

/* Errors with the fitted values, or with the descriptor's when x is NULL; leaves the trials with those values. */
void mb_fit_errors(struct mb_fit *fit, const double *x, double *ret_errors);

/* The fitted x of all parameters, in their order. */
void mb_fit_values(const struct mb_fit *fit, double *ret);

/* Puts values into the trials' cases; x NULL: the descriptors'. */
void mb_fit_apply(struct mb_fit *fit, const double *x);

double mb_fit_value(const struct mb_free *f, double x);         /* within the limits of params.def */

/*
 * YAML that extends the machine (hardware) or the stack of a trial by the values that the fit changed. Returns how many.
 */
int mb_fit_write(const struct mb_fit *fit, const struct mb_trial *like, bool hardware, const char *measured, struct mb_text *ret);

#endif
