/*
 * What a setting is worth: variants of a study against its first one, and against each other where they differ in one
 * setting or in one entry of a list. Times are per token, since a variant may change the batch.
 */
#include <math.h>
#include <string.h>

#include "calib/accuracy.h"

/* A gap that a study measured at all, and how close the prediction of a smaller one must be to none. */
static const double gap = 0.02, none = 0.03;

static bool same_node(const struct mb_node *a, const struct mb_node *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == MB_NODE_SCALAR)
		return strcmp(a->text, b->text) == 0;
	const struct mb_node *x = a->child, *y = b->child;

	while (x && y && same_node(x, y)) {
		x = x->next;
		y = y->next;
	}
	return !x && !y;
}

static int missing(const struct mb_node *from, const struct mb_node *in)
{
	int n = 0;

	for (const struct mb_node *c = from->child; c; c = c->next) {
		const struct mb_node *d = in->child;

		while (d && !same_node(c, d))
			d = d->next;
		n += d == NULL;
	}
	return n;
}

/* Settings in which the variants differ; entries, where both give a list. */
static int differences(const struct mb_node *a, const struct mb_node *b)
{
	int n = 0;

	for (const struct mb_node *c = a->child; c; c = c->next) {
		const struct mb_node *d = mb_node_get(b, c->key->text);

		if (d && c->type == MB_NODE_LIST && d->type == MB_NODE_LIST)
			n += missing(c, d) + missing(d, c);
		else
			n += !d || !same_node(c, d);
	}
	for (const struct mb_node *d = b->child; d; d = d->next)
		n += mb_node_get(a, d->key->text) == NULL;
	return n;
}

static double token_s(const struct mb_outcome *s, double step_s)
{
	return step_s / (s->trial->measured_s * s->trial->tokens_per_s);
}

static void add(struct mb_accuracy *a, const struct mb_outcome *first, const struct mb_outcome *second)
{
	struct mb_pair *p = &a->studies[a->study_count++];

	*p = (struct mb_pair){ first, second, token_s(second, second->measured) / token_s(first, first->measured),
		token_s(second, second->predicted) / token_s(first, first->predicted), false };
	p->right = fabs(p->measured - 1) > gap ? (p->measured > 1) == (p->predicted > 1) && fabs(p->predicted - 1) > 1e-9
	                                       : fabs(p->predicted - 1) <= none;
	a->studies_right += p->right;
	a->studies_close += fabs(p->predicted / p->measured - 1) <= 0.1;
}

static bool in_study(const struct mb_outcome *s, const char *study)
{
	const struct mb_measured *row = s->trial->row;

	return row->study && row->varied && strcmp(s->quantity, "step_s") == 0 && (!study || strcmp(row->study, study) == 0);
}

static bool is_first(const struct mb_accuracy *a, int i)
{
	for (int j = 0; j < i; j++) {
		if (in_study(&a->scores[j], a->scores[i].trial->row->study))
			return false;
	}
	return true;
}

void mb_accuracy_studies(struct mb_accuracy *a)
{
	int variants = 0;

	for (int i = 0; i < a->score_count; i++)
		variants += in_study(&a->scores[i], NULL);
	a->studies = mb_arena_alloc(a->arena, (size_t)(variants * variants / 2 + 1) * sizeof *a->studies);
	for (int i = 0; i < a->score_count; i++) {
		if (!in_study(&a->scores[i], NULL))
			continue;
		bool first = is_first(a, i);

		for (int j = i + 1; j < a->score_count; j++) {
			if (in_study(&a->scores[j], a->scores[i].trial->row->study) &&
			    (first || differences(a->scores[i].trial->row->varied, a->scores[j].trial->row->varied) == 1))
				add(a, &a->scores[i], &a->scores[j]);
		}
	}
}
