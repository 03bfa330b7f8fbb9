/*
 * What one would predict without a model: the share of peak that other runs reached. A run never predicts its own group
 * of model, GPU and precision, so these numbers compare with errors of groups left out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/accuracy.h"

static bool same_model(const struct mb_trial *a, const struct mb_trial *b)
{
	return strcmp(a->q->c.model.name, b->q->c.model.name) == 0;
}

static bool same_gpu(const struct mb_trial *a, const struct mb_trial *b)
{
	return strcmp(a->q->c.hardware.name, b->q->c.hardware.name) == 0;
}

static bool same_precision(const struct mb_trial *a, const struct mb_trial *b)
{
	return a->q->c.run.precision == b->q->c.run.precision;
}

static bool by_model(const struct mb_trial *a, const struct mb_trial *b)
{
	return same_model(a, b);
}

static bool by_gpu_and_precision(const struct mb_trial *a, const struct mb_trial *b)
{
	return same_gpu(a, b) && same_precision(a, b);
}

static bool by_other_gpu(const struct mb_trial *a, const struct mb_trial *b)
{
	return same_model(a, b) && same_precision(a, b) && !same_gpu(a, b);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double share_of_peak(const struct mb_trial *t)
{
	return t->model_flops * t->tokens_per_s / mb_trial_peak(t);
}

/* Median share of peak of the trials that may speak for t; 0 when none may. */
static double others(const struct mb_trials *trials, const struct mb_trial *t,
                     bool (*like)(const struct mb_trial *, const struct mb_trial *), double *room)
{
	int n = 0;

	for (int i = 0; i < trials->count; i++) {
		const struct mb_trial *o = &trials->trials[i];
		bool own = same_model(o, t) && same_gpu(o, t) && same_precision(o, t);

		if (o->measured_s > 0 && o->row->configured && !own && like(o, t))
			room[n++] = share_of_peak(o);
	}
	if (n == 0)
		return 0;
	qsort(room, (size_t)n, sizeof *room, ascending);
	return (room[(n - 1) / 2] + room[n / 2]) / 2;
}

void mb_accuracy_baselines(const struct mb_trials *trials, struct mb_accuracy *a)
{
	static const struct { const char *name; bool (*like)(const struct mb_trial *, const struct mb_trial *); } predictors[] = {
		{ "constant MFU per model", by_model },
		{ "constant MFU per GPU and precision", by_gpu_and_precision },
		{ "same model on another GPU, by peak", by_other_gpu },
	};
	double *room = mb_arena_alloc(a->arena, (size_t)(trials->count + 1) * sizeof *room);
	double *errors = mb_arena_alloc(a->arena, (size_t)(trials->count + 1) * sizeof *errors);

	for (size_t p = 0; p < sizeof predictors / sizeof predictors[0]; p++) {
		int n = 0;

		for (int i = 0; i < trials->count; i++) {
			const struct mb_trial *t = &trials->trials[i];
			double share = t->measured_s > 0 && t->row->configured ? others(trials, t, predictors[p].like, room) : 0;

			if (share > 0)
				errors[n++] = share_of_peak(t) / share - 1;
		}
		struct mb_summary s = mb_summarise(errors, n, -1);

		s.by = "baseline";
		s.group = predictors[p].name;
		s.quantity = "step_s";
		s.kind = "time";
		mb_accuracy_add(a, s);
	}
}
