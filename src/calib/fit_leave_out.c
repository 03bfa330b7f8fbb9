/* Cross-validation: what the fit says about runs that it has not seen. */
#include <math.h>
#include <string.h>

#include <gsl/gsl_linalg.h>

#include "calib/fit_private.h"

bool mb_fit_normal(struct mb_fit *fit, const bool *left_out, double *right, double *ret_inverse)
{
	size_t p = (size_t)fit->free_count;
	gsl_matrix_view a = gsl_matrix_view_array(ret_inverse, p, p);

	memset(ret_inverse, 0, p * p * sizeof *ret_inverse);
	memset(right, 0, p * sizeof *right);
	for (int i = 0; i < fit->count; i++) {
		const double *row = &fit->jacobian[(size_t)i * p];

		if (left_out && left_out[i])
			continue;
		for (size_t j = 0; j < p; j++) {
			right[j] += fit->weight[i] * row[j] * fit->residual[i];
			for (size_t k = 0; k < p; k++)
				ret_inverse[j * p + k] += fit->weight[i] * row[j] * row[k];
		}
	}
	for (size_t j = 0; j < p; j++)
		ret_inverse[j * p + j] += 1 / (fit->free[j].sigma * fit->free[j].sigma);
	return gsl_linalg_cholesky_decomp1(&a.matrix) == 0 && gsl_linalg_cholesky_invert(&a.matrix) == 0;
}

static bool same_group(const struct mb_trial *a, const struct mb_trial *b, enum mb_leave leave)
{
	const struct mb_case *x = &a->q->c, *y = &b->q->c;
	bool model = strcmp(x->model.name, y->model.name) == 0, hardware = strcmp(x->hardware.name, y->hardware.name) == 0;

	switch (leave) {
	case MB_LEAVE_GROUP:
		return model && hardware && x->run.precision == y->run.precision;
	case MB_LEAVE_MODEL:
		return model;
	case MB_LEAVE_HARDWARE:
		return hardware;
	case MB_LEAVE_STACK:
		return strcmp(x->stack.name, y->stack.name) == 0;
	}
	return false;
}

/* One Gauss-Newton step without the marked trials; what only they determined must not run away. */
static bool step_without(struct mb_fit *fit, const bool *left_out, double *x, double *right, double *inverse)
{
	int p = fit->free_count;

	if (!mb_fit_normal(fit, left_out, right, inverse))
		return false;
	for (int j = 0; j < p; j++)
		right[j] += x[j] / (fit->free[j].sigma * fit->free[j].sigma);
	for (int j = 0; j < p; j++) {
		double move = 0;

		for (int k = 0; k < p; k++)
			move -= inverse[j * p + k] * right[k];
		x[j] += fmin(fmax(move, -2 * fit->free[j].sigma), 2 * fit->free[j].sigma);
	}
	return true;
}

/*
 * From the full solution x to the one without the marked trials: with the Jacobian of the full solution where few trials
 * go, with one of its own at each step where many do.
 */
static void solve_without(struct mb_fit *fit, const bool *left_out, double *x, double *right, double *inverse)
{
	int marked = 0;

	for (int i = 0; i < fit->count; i++)
		marked += left_out[i];
	int steps = 20 * marked > fit->count ? 4 : 2;

	for (int step = 0; step < steps; step++) {
		/* The first step starts where everything is known. */
		if (step > 0)
			mb_fit_residuals(fit, x, fit->residual);
		if (step > 0 && steps > 2)
			mb_fit_jacobian(fit, x, false, fit->jacobian);
		if (!step_without(fit, left_out, x, right, inverse))
			return;
	}
}

int mb_fit_leave_out(struct mb_fit *fit, enum mb_leave leave, double *ret_errors)
{
	size_t n = (size_t)fit->count, p = (size_t)fit->free_count;
	bool *left_out = mb_arena_alloc(fit->arena, n * sizeof *left_out), *done = mb_arena_alloc(fit->arena, n * sizeof *done);
	double *x = mb_arena_alloc(fit->arena, p * sizeof *x), *right = mb_arena_alloc(fit->arena, p * sizeof *right);
	double *inverse = mb_arena_alloc(fit->arena, p * p * sizeof *inverse);
	double *residual = mb_arena_alloc(fit->arena, n * sizeof *residual);
	double *jacobian = mb_arena_alloc(fit->arena, n * p * sizeof *jacobian);
	int groups = 0;

	memcpy(residual, fit->residual, n * sizeof *residual);
	memcpy(jacobian, fit->jacobian, n * p * sizeof *jacobian);
	for (int g = 0; g < fit->count; g++) {
		if (done[g])
			continue;
		groups++;
		for (int i = 0; i < fit->count; i++)
			left_out[i] = same_group(fit->trials[g], fit->trials[i], leave);
		mb_fit_values(fit, x);
		memcpy(fit->residual, residual, n * sizeof *residual);
		memcpy(fit->jacobian, jacobian, n * p * sizeof *jacobian);
		solve_without(fit, left_out, x, right, inverse);
		mb_fit_apply(fit, x);
		for (int i = 0; i < fit->count; i++) {
			if (left_out[i]) {
				ret_errors[i] = expm1(mb_fit_residual(fit, i));
				done[i] = true;
			}
		}
	}
	memcpy(fit->residual, residual, n * sizeof *residual);
	memcpy(fit->jacobian, jacobian, n * p * sizeof *jacobian);
	mb_fit_apply(fit, NULL);
	return groups;
}
