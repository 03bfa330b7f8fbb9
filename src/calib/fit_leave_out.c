/* Cross-validation: what the fit says about runs that it has not seen. */
#include <math.h>
#include <string.h>

#include "calib/fit_private.h"

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

/* Room for fits to a part of the trials. */
struct part {
	struct mb_fit fit;
	double *inverse, *move, *tried, *noise_room;
};

static void part_init(const struct mb_fit *fit, struct part *ret)
{
	struct mb_arena *a = fit->arena;
	size_t n = (size_t)fit->count, p = (size_t)fit->free_count;

	ret->fit = *fit;
	ret->fit.trials = mb_arena_alloc(a, n * sizeof *ret->fit.trials);
	ret->fit.residual = mb_arena_alloc(a, n * sizeof(double));
	ret->fit.weight = mb_arena_alloc(a, n * sizeof(double));
	ret->fit.jacobian = mb_arena_alloc(a, n * p * sizeof(double));
	ret->fit.idle = mb_arena_alloc(a, n * p * sizeof(bool));
	ret->inverse = mb_arena_alloc(a, p * p * sizeof(double));
	ret->move = mb_arena_alloc(a, p * sizeof(double));
	ret->tried = mb_arena_alloc(a, p * sizeof(double));
	ret->noise_room = mb_arena_alloc(a, n * sizeof(double));
}

/* The trials that are not left out, and what the whole fit knows of them where it ended. */
static void part_take(const struct mb_fit *fit, const bool *left_out, struct part *ret)
{
	int p = fit->free_count, kept = 0;

	for (int i = 0; i < fit->count; i++) {
		if (left_out[i])
			continue;
		ret->fit.trials[kept] = fit->trials[i];
		ret->fit.residual[kept] = fit->residual[i];
		memcpy(&ret->fit.jacobian[kept * p], &fit->jacobian[i * p], (size_t)p * sizeof *fit->jacobian);
		memcpy(&ret->fit.idle[kept * p], &fit->idle[i * p], (size_t)p * sizeof *fit->idle);
		kept++;
	}
	ret->fit.count = kept;
}

/* The sum that the fit makes least, under the weights of the moment. */
static double objective(const struct mb_fit *fit, const double *x)
{
	double sum = 0;

	for (int i = 0; i < fit->count; i++)
		sum += fit->weight[i] * fit->residual[i] * fit->residual[i];
	for (int j = 0; j < fit->free_count; j++) {
		double off = (x[j] - fit->free[j].center) / fit->free[j].sigma;

		sum += off * off;
	}
	return sum;
}

/* The Gauss-Newton step from x; returns its largest share of a standard deviation, negative without a step. */
static double find_move(struct part *part, const double *x)
{
	const struct mb_fit *fit = &part->fit;
	int p = fit->free_count;
	double largest = 0;

	if (!mb_fit_invert(fit, part->inverse))
		return -1;
	for (int j = 0; j < p; j++) {
		part->tried[j] = (x[j] - fit->free[j].center) / (fit->free[j].sigma * fit->free[j].sigma);
		for (int i = 0; i < fit->count; i++)
			part->tried[j] += fit->weight[i] * fit->jacobian[i * p + j] * fit->residual[i];
	}
	for (int j = 0; j < p; j++) {
		part->move[j] = 0;
		for (int k = 0; k < p; k++)
			part->move[j] -= part->inverse[j * p + k] * part->tried[k];
		largest = fmax(largest, fabs(part->move[j]) / sqrt(part->inverse[j * p + j]));
	}
	return largest;
}

/* Goes the move, or the half or quarter of it that improves; false when none does. */
static bool go(struct part *part, double *x)
{
	struct mb_fit *fit = &part->fit;
	double before = objective(fit, x), share = 1;

	for (int halved = 0; halved < 4; halved++, share /= 2) {
		for (int j = 0; j < fit->free_count; j++)
			part->tried[j] = x[j] + share * part->move[j];
		mb_fit_residuals(fit, part->tried, fit->residual);
		if (objective(fit, part->tried) <= before) {
			memcpy(x, part->tried, (size_t)fit->free_count * sizeof *x);
			return true;
		}
	}
	mb_fit_residuals(fit, x, fit->residual);
	return false;
}

/* The minimum for the part's trials, from the whole fit's x into x: weights, noise and derivatives are all its own. */
static void part_solve(struct part *part, double *x)
{
	const double negligible = 0.05;         /* standard deviations */
	const int most = 10;

	for (int step = 0; step < most; step++) {
		double largest;

		part->fit.noise = mb_fit_noise(&part->fit, part->noise_room);
		mb_fit_weigh(&part->fit);
		if (step > 0)
			mb_fit_jacobian(&part->fit, x, false, part->fit.jacobian);
		largest = find_move(part, x);
		if (largest < 0 || !go(part, x) || largest < negligible)
			return;
	}
}

int mb_fit_leave_out(struct mb_fit *fit, enum mb_leave leave, double *ret_errors)
{
	size_t n = (size_t)fit->count, p = (size_t)fit->free_count;
	bool *left_out = mb_arena_alloc(fit->arena, n * sizeof *left_out), *done = mb_arena_alloc(fit->arena, n * sizeof *done);
	double *x = mb_arena_alloc(fit->arena, p * sizeof *x);
	struct part part;
	int groups = 0;

	part_init(fit, &part);
	for (int g = 0; g < fit->count; g++) {
		if (done[g])
			continue;
		groups++;
		for (int i = 0; i < fit->count; i++)
			left_out[i] = same_group(fit->trials[g], fit->trials[i], leave);
		mb_fit_values(fit, x);
		part_take(fit, left_out, &part);
		if (part.fit.count > 0)
			part_solve(&part, x);
		mb_fit_apply(fit, x);
		for (int i = 0; i < fit->count; i++) {
			if (left_out[i]) {
				ret_errors[i] = expm1(mb_fit_residual(fit, i));
				done[i] = true;
			}
		}
	}
	mb_fit_apply(fit, NULL);
	return groups;
}
