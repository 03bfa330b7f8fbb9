#include "calib/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>

#include "calib/fit_private.h"

/*
 * Huber's constant: 95 % as efficient as least squares on normal errors [Huber 1964, Annals of Mathematical Statistics
 * 35, section 5]. The noise floor keeps a perfect fit from giving the data infinite weight; published step times have
 * three digits.
 */
static const double huber = 1.345, noise_floor = 0.005, noise_start = 0.05;
static const double difference = 2e-3;          /* of a logarithm, for the Jacobian */
static const double least_information = 0.05;
static const int rounds = 3, iterations = 6;

void mb_fit_residuals(struct mb_fit *fit, const double *x, double *ret)
{
	mb_fit_apply(fit, x);
	for (int i = 0; i < fit->count; i++)
		ret[i] = mb_fit_residual(fit, i);
}

double mb_fit_residual(struct mb_fit *fit, int trial)
{
	const struct mb_trial *t = fit->trials[trial];

	mb_evaluate(&t->q->c, &t->q->c.run.plan, fit->e);
	return isfinite(fit->e->step_s) && fit->e->step_s > 0 ? log(fit->e->step_s / t->measured_s) : 10;
}

void mb_fit_jacobian(struct mb_fit *fit, const double *x, bool everything, double *ret)
{
	double *base = malloc((size_t)fit->count * sizeof *base), *moved = malloc((size_t)fit->free_count * sizeof *moved);

	if (base && moved) {
		mb_fit_residuals(fit, x, base);
		for (int j = 0; j < fit->free_count; j++) {
			memcpy(moved, x, (size_t)fit->free_count * sizeof *moved);
			/* Away from a limit of the parameter. */
			moved[j] += mb_fit_value(&fit->free[j], x[j] + difference) > mb_fit_value(&fit->free[j], x[j]) ? difference : -difference;
			mb_fit_apply(fit, moved);
			for (int i = 0; i < fit->count; i++) {
				int at = i * fit->free_count + j;
				bool asked = mb_fit_touches(&fit->free[j], fit->trials[i]) && (everything || !fit->idle[at]);

				ret[at] = asked ? (mb_fit_residual(fit, i) - base[i]) / (moved[j] - x[j]) : 0;
			}
		}
		mb_fit_apply(fit, x);
	}
	free(base);
	free(moved);
}

static int residuals_gsl(const gsl_vector *x, void *context, gsl_vector *f)
{
	struct mb_fit *fit = context;

	mb_fit_residuals(fit, x->data, f->data);
	for (int j = 0; j < fit->free_count; j++)
		gsl_vector_set(f, (size_t)(fit->count + j), gsl_vector_get(x, (size_t)j) - fit->free[j].center);
	return GSL_SUCCESS;
}

static int jacobian_gsl(const gsl_vector *x, void *context, gsl_matrix *j)
{
	struct mb_fit *fit = context;

	gsl_matrix_set_zero(j);
	mb_fit_jacobian(fit, x->data, false, j->data);
	for (int k = 0; k < fit->free_count; k++)
		gsl_matrix_set(j, (size_t)(fit->count + k), (size_t)k, 1);
	return GSL_SUCCESS;
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 1.4826 times the median of absolute residuals estimates the standard deviation of a normal. */
double mb_fit_noise(const struct mb_fit *fit, double *room)
{
	for (int i = 0; i < fit->count; i++)
		room[i] = fabs(fit->residual[i]);
	qsort(room, (size_t)fit->count, sizeof *room, by_number);
	return fmax(1.4826 * (room[(fit->count - 1) / 2] + room[fit->count / 2]) / 2, noise_floor);
}

void mb_fit_weigh(struct mb_fit *fit)
{
	for (int i = 0; i < fit->count; i++) {
		double size = fabs(fit->residual[i]) / fit->noise;

		fit->weight[i] = (size > huber ? huber / size : 1) / (fit->noise * fit->noise);
	}
}

static void weigh(struct mb_fit *fit, gsl_vector *w)
{
	mb_fit_weigh(fit);
	for (int i = 0; i < fit->count; i++)
		gsl_vector_set(w, (size_t)i, fit->weight[i]);
	for (int j = 0; j < fit->free_count; j++)
		gsl_vector_set(w, (size_t)(fit->count + j), 1 / (fit->free[j].sigma * fit->free[j].sigma));
}

/* One fit with fixed weights from x; the solution goes back into x. */
static bool minimise(struct mb_fit *fit, gsl_vector *x, const gsl_vector *w)
{
	size_t n = (size_t)(fit->count + fit->free_count), p = (size_t)fit->free_count;
	gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
	gsl_multifit_nlinear_fdf fdf = { .f = residuals_gsl, .df = jacobian_gsl, .n = n, .p = p, .params = fit };
	gsl_multifit_nlinear_workspace *work = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, p);
	int info, status = GSL_ENOMEM;

	if (work) {
		status = gsl_multifit_nlinear_winit(x, w, &fdf, work);
		if (status == GSL_SUCCESS)
			status = gsl_multifit_nlinear_driver((size_t)iterations, 1e-3, 1e-6, 1e-6, NULL, NULL, &info, work);
		/* Out of iterations or of progress is as good as it gets: the point found is still the best seen. */
		if (status == GSL_SUCCESS || status == GSL_EMAXITER || status == GSL_ENOPROG) {
			gsl_vector_memcpy(x, gsl_multifit_nlinear_position(work));
			status = GSL_SUCCESS;
		}
		gsl_multifit_nlinear_free(work);
	}
	return status == GSL_SUCCESS;
}

bool mb_fit_invert(const struct mb_fit *fit, double *ret_inverse)
{
	size_t p = (size_t)fit->free_count;
	gsl_matrix_view a = gsl_matrix_view_array(ret_inverse, p, p);

	memset(ret_inverse, 0, p * p * sizeof *ret_inverse);
	for (int i = 0; i < fit->count; i++) {
		const double *row = &fit->jacobian[(size_t)i * p];

		for (size_t j = 0; j < p; j++)
			for (size_t k = 0; k < p; k++)
				ret_inverse[j * p + k] += fit->weight[i] * row[j] * row[k];
	}
	for (size_t j = 0; j < p; j++)
		ret_inverse[j * p + j] += 1 / (fit->free[j].sigma * fit->free[j].sigma);
	return gsl_linalg_cholesky_decomp1(&a.matrix) == 0 && gsl_linalg_cholesky_invert(&a.matrix) == 0;
}

static bool spread(struct mb_fit *fit, struct mb_diags *diags)
{
	int p = fit->free_count;

	if (!mb_fit_invert(fit, fit->covariance))
		return mb_fail(diags, (struct mb_pos){ 0 }, "the fit has no covariance: too little information");
	for (int j = 0; j < p; j++) {
		struct mb_free *f = &fit->free[j];
		double variance = fit->covariance[j * p + j];

		f->spread = sqrt(variance);
		f->information = fmax(0, 1 - variance / (f->sigma * f->sigma));
		f->kept = f->information < least_information;
		if (f->kept)
			f->x = f->center;
	}
	return true;
}

/* From ret: weights and noise of where it stands, and the minimum under them, in turns. */
static bool descend(struct mb_fit *fit, double *ret)
{
	size_t n = (size_t)(fit->count + fit->free_count), p = (size_t)fit->free_count;
	gsl_vector *w = gsl_vector_alloc(n);
	gsl_vector_view x = gsl_vector_view_array(ret, p);
	double *room = malloc((size_t)fit->count * sizeof *room);
	bool ok = w && room;

	for (int r = 0; ok && r < rounds; r++) {
		weigh(fit, w);
		ok = minimise(fit, &x.vector, w);
		mb_fit_residuals(fit, ret, fit->residual);
		fit->noise = mb_fit_noise(fit, room);
	}
	if (ok)
		weigh(fit, w);
	free(room);
	gsl_vector_free(w);
	return ok;
}

/* The idle ones are those without influence here. */
static void begin(struct mb_fit *fit, const double *x)
{
	fit->noise = noise_start;
	mb_fit_residuals(fit, x, fit->residual);
	mb_fit_jacobian(fit, x, true, fit->jacobian);
	for (int i = 0; i < fit->count * fit->free_count; i++)
		fit->idle[i] = fabs(fit->jacobian[i]) < 1e-9;
}

bool mb_fit_solve(struct mb_fit *fit, struct mb_diags *diags)
{
	gsl_error_handler_t *before = gsl_set_error_handler_off();
	double *x = mb_arena_alloc(fit->arena, (size_t)fit->free_count * sizeof *x);
	bool ok;

	for (int j = 0; j < fit->free_count; j++)
		x[j] = fit->free[j].center;
	begin(fit, x);
	ok = descend(fit, x);
	if (ok) {
		for (int j = 0; j < fit->free_count; j++)
			fit->free[j].x = x[j];
		mb_fit_jacobian(fit, x, true, fit->jacobian);
		ok = spread(fit, diags);
	} else {
		mb_fail(diags, (struct mb_pos){ 0 }, "the fit did not converge");
	}
	gsl_set_error_handler(before);
	return ok;
}
