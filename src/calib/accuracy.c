#include "calib/accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
	double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

	return (x > y) - (x < y);
}

struct mb_summary mb_summarise(double *errors, int n, int inside)
{
	struct mb_summary s = { .n = n, .in_band = inside < 0 ? NAN : (double)inside / n };

	if (n == 0)
		return s;
	qsort(errors, (size_t)n, sizeof *errors, by_size);
	for (int i = 0; i < n; i++) {
		s.mean += fabs(errors[i]) / n;
		s.bias += errors[i] / n;
	}
	s.median = (fabs(errors[(n - 1) / 2]) + fabs(errors[n / 2])) / 2;
	s.p90 = fabs(errors[(int)ceil(0.9 * n) - 1]);
	s.max = fabs(errors[n - 1]);
	return s;
}

void mb_accuracy_add(struct mb_accuracy *a, struct mb_summary s)
{
	if (s.n == 0)
		return;
	if (a->summary_count == a->summary_room) {
		int room = a->summary_room ? 2 * a->summary_room : 64;
		struct mb_summary *more = mb_arena_alloc(a->arena, (size_t)room * sizeof *more);

		if (a->summary_count)
			memcpy(more, a->summaries, (size_t)a->summary_count * sizeof *more);
		a->summaries = more;
		a->summary_room = room;
	}
	a->summaries[a->summary_count++] = s;
}

const struct mb_summary *mb_accuracy_find(const struct mb_accuracy *a, const char *by, const char *group, const char *quantity)
{
	for (int i = 0; i < a->summary_count; i++) {
		const struct mb_summary *s = &a->summaries[i];

		if (strcmp(s->by, by) == 0 && strcmp(s->group, group) == 0 && strcmp(s->quantity, quantity) == 0)
			return s;
	}
	return NULL;
}

/* ---- scores ---- */

static void add_score(struct mb_accuracy *a, const struct mb_trial *t, const char *quantity, const char *kind, double measured,
                      double predicted)
{
	if (!(measured > 0) || !isfinite(predicted))
		return;
	a->scores[a->score_count++] = (struct mb_outcome){ t, quantity, kind, measured, predicted, predicted / measured - 1, 0, 0 };
}

/*
 * The first variant of a study with a time is what the others are compared with; the ratio is of times per token, since
 * a variant may change the batch.
 */
static void add_ratio(struct mb_accuracy *a, const struct mb_trial *t, const struct mb_outcome *step)
{
	for (const struct mb_outcome *s = a->scores; s < step; s++) {
		if (!s->trial->row->study || strcmp(s->trial->row->study, t->row->study) != 0 || strcmp(s->quantity, "step_s") != 0)
			continue;
		double measured = s->trial->tokens_per_s / t->tokens_per_s;

		add_score(a, t, "step_ratio", "time", measured,
		          measured * (step->predicted / step->measured) / (s->predicted / s->measured));
		return;
	}
}

void mb_accuracy_score(const struct mb_trials *trials, struct mb_evaluation *e, struct mb_accuracy *ret)
{
	ret->scores = mb_arena_alloc(ret->arena, (size_t)(trials->count + 1) * (MB_M_COUNT + 1) * sizeof *ret->scores);
	for (int i = 0; i < trials->count; i++) {
		const struct mb_trial *t = &trials->trials[i];

		mb_evaluate(&t->q->c, &t->q->c.run.plan, e);
		for (int m = 0; m < MB_M_COUNT; m++) {
			double measured = m == MB_M_STEP ? t->measured_s : t->row->value[m];
			int before = ret->score_count;

			add_score(ret, t, mb_measure_rows[m].json, mb_measure_rows[m].kind, measured,
			          mb_trial_predicted(t, e, (enum mb_measure)m));
			if (m != MB_M_STEP || ret->score_count == before)
				continue;
			ret->scores[before].low = e->low_s;
			ret->scores[before].high = e->high_s;
			if (t->row->study)
				add_ratio(ret, t, &ret->scores[before]);
		}
	}
}

static int by_error(const void *a, const void *b)
{
	const struct mb_outcome *x = *(const struct mb_outcome *const *)a, *y = *(const struct mb_outcome *const *)b;
	double dx = fabs(x->error_frac), dy = fabs(y->error_frac);

	return dx > dy ? -1 : dx < dy ? 1 : (x > y) - (x < y);
}

void mb_accuracy_worst(const struct mb_accuracy *a, const struct mb_outcome **ret)
{
	for (int i = 0; i < a->score_count; i++)
		ret[i] = &a->scores[i];
	qsort(ret, (size_t)a->score_count, sizeof *ret, by_error);
}

/* ---- groups ---- */

static const char *all(const struct mb_outcome *s) { (void)s; return "all"; }
static const char *family(const struct mb_outcome *s) { return mb_trial_family(s->trial); }
static const char *model(const struct mb_outcome *s) { return s->trial->q->c.model.name; }
static const char *gpu(const struct mb_outcome *s) { return s->trial->q->c.hardware.name; }
static const char *precision(const struct mb_outcome *s) { return mb_trial_precision(s->trial); }
static const char *stack(const struct mb_outcome *s) { return s->trial->q->c.stack.name; }
static const char *source(const struct mb_outcome *s) { return s->trial->row->source; }

/* "Megatron Bridge performance summary, container 26.04" is one source for all containers: stacks are a grouping of their own. */
static const char *short_source(struct mb_accuracy *a, const char *text)
{
	const char *comma = strstr(text, ", container");

	return comma ? mb_arena_strndup(a->arena, text, (size_t)(comma - text)) : text;
}

static void summarise_group(struct mb_accuracy *a, const char *by, const char *(*of)(const struct mb_outcome *), const char *name,
                            const struct mb_outcome *like)
{
	double *errors = mb_arena_alloc(a->arena, (size_t)a->score_count * sizeof *errors);
	int n = 0, inside = 0;
	bool banded = false;

	for (int i = 0; i < a->score_count; i++) {
		const struct mb_outcome *s = &a->scores[i];

		if (strcmp(s->quantity, like->quantity) != 0 || strcmp(short_source(a, of(s)), name) != 0)
			continue;
		errors[n++] = s->error_frac;
		banded = banded || s->high > 0;
		inside += s->high > 0 && s->measured >= s->low && s->measured <= s->high;
	}
	struct mb_summary sum = mb_summarise(errors, n, banded ? inside : -1);

	sum.by = by;
	sum.group = name;
	sum.quantity = like->quantity;
	sum.kind = like->kind;
	mb_accuracy_add(a, sum);
}

void mb_accuracy_group(struct mb_accuracy *a)
{
	static const struct { const char *by; const char *(*of)(const struct mb_outcome *); } groupings[] = {
		{ "all", all }, { "family", family }, { "model", model }, { "gpu", gpu }, { "precision", precision },
		{ "stack", stack }, { "source", source },
	};

	for (size_t g = 0; g < sizeof groupings / sizeof groupings[0]; g++) {
		for (int i = 0; i < a->score_count; i++) {
			const char *name = short_source(a, groupings[g].of(&a->scores[i]));

			if (!mb_accuracy_find(a, groupings[g].by, name, a->scores[i].quantity))
				summarise_group(a, groupings[g].by, groupings[g].of, name, &a->scores[i]);
		}
	}
}
