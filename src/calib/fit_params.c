/* The free parameters: which they are, and how they get into the cases. */
#include <math.h>
#include <string.h>

#include "calib/fit_private.h"

static const struct mb_provenance *provenance_of(const struct mb_trial *t, int id)
{
	return mb_param_rows[id].hardware ? &t->q->c.hardware.provenance[id] : &t->q->c.stack.provenance[id];
}

static double given(const struct mb_trial *t, int id)
{
	const struct mb_params *params = mb_param_rows[id].hardware ? &t->q->c.hardware.params : &t->q->c.stack.params;

	return *(const double *)((const char *)params + mb_param_rows[id].offset);
}

bool mb_fit_touches(const struct mb_free *f, const struct mb_trial *t)
{
	return f->architecture < 0 || (int)t->q->c.hardware.architecture == f->architecture;
}

double mb_fit_value(const struct mb_free *f, double x)
{
	const struct mb_param_row *row = &mb_param_rows[f->id];

	return fmin(fmax(f->value * exp(x), row->min), row->max);
}

static void apply_one(struct mb_trial *t, const struct mb_free *f, double x)
{
	const struct mb_param_row *row = &mb_param_rows[f->id];
	double value = fmin(fmax(given(t, f->id) * exp(x), row->min), row->max);

	*(double *)((char *)&t->q->c.params + row->offset) = value;
	mb_case_derive(&t->q->c);
}

void mb_fit_apply(struct mb_fit *fit, const double *x)
{
	for (int i = 0; i < fit->count; i++) {
		for (int j = 0; j < fit->free_count; j++) {
			if (mb_fit_touches(&fit->free[j], fit->trials[i]))
				apply_one(fit->trials[i], &fit->free[j], x ? x[j] : 0);
		}
	}
}

void mb_fit_values(const struct mb_fit *fit, double *ret)
{
	for (int j = 0; j < fit->free_count; j++)
		ret[j] = fit->free[j].x;
}

void mb_fit_errors(struct mb_fit *fit, const double *x, double *ret_errors)
{
	mb_fit_residuals(fit, x, ret_errors);
	for (int i = 0; i < fit->count; i++)
		ret_errors[i] = expm1(ret_errors[i]);
}

/* ---- which are free ---- */

static bool in_list(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
		if (strncmp(p, name, length) == 0 && (p[length] == ',' || p[length] == '\0'))
			return true;
	}
	return false;
}

/* Files in hardware/ override what hardware/architectures/ says: the prior is the architecture's where there is one. */
static bool is_base(const struct mb_provenance *p)
{
	return p->pos.file && strstr(p->pos.file, "architectures/");
}

static void take(struct mb_free *f, const struct mb_trial *t, const struct mb_provenance *p, const struct mb_fit_options *options)
{
	double sigma = p->sigma > 0 ? p->sigma : 0.1;

	f->value = given(t, f->id);
	f->sigma = p->origin == MB_FITTED ? sigma * options->loosen : sigma;
	f->center = 0;
	f->pos = p->pos;
	if (options->from_priors && p->prior > 0) {
		f->center = log(p->prior / f->value);
		f->sigma = p->prior_sigma;
	}
}

/*
 * A parameter that some run's descriptor calls fitted is free for all runs that share it; zero has no logarithm. Limits
 * that no row can pass (an exponent of 0) drop out the same way.
 */
static void consider(struct mb_fit *fit, int id, int architecture, const struct mb_fit_options *options)
{
	struct mb_free *f = &fit->free[fit->free_count];
	bool wanted = in_list(options->also, mb_param_rows[id].name), seen = false, based = false;

	*f = (struct mb_free){ .id = (enum mb_param_id)id, .architecture = architecture };
	for (int i = 0; i < fit->count; i++) {
		const struct mb_trial *t = fit->trials[i];
		const struct mb_provenance *p = provenance_of(t, id);

		if (!mb_fit_touches(f, t) || !(given(t, id) > 0))
			continue;
		wanted = wanted || p->origin == MB_FITTED;
		if (!seen || (is_base(p) && !based))
			take(f, t, p, options);
		seen = true;
		based = based || is_base(p);
	}
	fit->free_count += wanted && seen;
}

static bool known(const char *list, struct mb_diags *diags)
{
	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
		size_t length = strcspn(p, ",");
		int i = 0;

		while (i < MB_PARAM_COUNT && (strlen(mb_param_rows[i].name) != length || strncmp(mb_param_rows[i].name, p, length) != 0))
			i++;
		if (i == MB_PARAM_COUNT)
			return mb_fail(diags, (struct mb_pos){ 0 }, "--free: unknown parameter '%.*s'", (int)length, p);
	}
	return true;
}

bool mb_fit_prepare(struct mb_fit *fit, const struct mb_trials *trials, const struct mb_fit_options *options, struct mb_diags *diags)
{
	static const enum mb_param_id memory[] = { MB_PARAM_allocator_state_frac, MB_PARAM_allocator_activation_frac };

	if (!known(options->also, diags))
		return false;
	fit->trials = mb_arena_alloc(fit->arena, (size_t)(trials->count + 1) * sizeof *fit->trials);
	for (int i = 0; i < trials->count; i++) {
		if (trials->trials[i].measured_s > 0 && (trials->trials[i].row->configured || !options->whole_runs))
			fit->trials[fit->count++] = &trials->trials[i];
	}
	if (fit->count == 0 && trials->skipped_count > 0)
		return mb_fail(diags, trials->skipped[0].pos, "no run is left to fit: %s", trials->skipped[0].skip);
	if (fit->count == 0)
		return mb_fail(diags, (struct mb_pos){ 0 }, "no measured run has a step time");
	fit->free = mb_arena_alloc(fit->arena, (size_t)MB_PARAM_COUNT * (MB_RUBIN + 2) * sizeof *fit->free);
	for (int id = 0; id < MB_PARAM_COUNT; id++) {
		if (id == (int)memory[0] || id == (int)memory[1])
			continue;
		for (int a = mb_param_rows[id].hardware ? 0 : -1; a <= (mb_param_rows[id].hardware ? (int)MB_RUBIN : -1); a++)
			consider(fit, id, a, options);
	}
	if (fit->free_count == 0)
		return mb_fail(diags, (struct mb_pos){ 0 }, "no parameter of these runs is marked fitted: name some with --free");

	size_t n = (size_t)fit->count, p = (size_t)fit->free_count;

	fit->residual = mb_arena_alloc(fit->arena, n * sizeof(double));
	fit->weight = mb_arena_alloc(fit->arena, n * sizeof(double));
	fit->jacobian = mb_arena_alloc(fit->arena, n * p * sizeof(double));
	fit->idle = mb_arena_alloc(fit->arena, n * p * sizeof(bool));
	fit->covariance = mb_arena_alloc(fit->arena, p * p * sizeof(double));
	return true;
}
