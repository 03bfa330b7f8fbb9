#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/facet.h"
#include "report/number.h"
#include "report/search_report.h"

/* Plans of one layout whose step and peak print almost alike: closer than the model can tell. */
static bool is_near_copy(const struct mb_ranked *a, const struct mb_ranked *b)
{
	const struct mb_plan *p = &a->plan, *o = &b->plan;

	return a->gpus == b->gpus && p->tp == o->tp && p->pp == o->pp && p->cp == o->cp && p->vp == o->vp &&
	       p->ep == o->ep && p->micro_batch_size == o->micro_batch_size &&
	       fabs(a->step_s - b->step_s) <= 0.01 * b->step_s &&
	       fabs(a->peak_bytes - b->peak_bytes) <= 0.02 * b->peak_bytes;
}

int mb_search_shown(const struct mb_search_report *x, int shown[MB_MAX_SHOWN])
{
	int count = 0, best = x->r->recommended;

	for (int i = 0; i < x->r->top_count && count < x->top && count < MB_MAX_SHOWN; i++) {
		bool copy = false;

		for (int j = 0; j < count && !x->flat && i != best; j++)
			copy = copy || is_near_copy(&x->r->top[i], &x->r->top[shown[j]]);
		if (!copy)
			shown[count++] = i;
	}
	/* The plan of the answer is in the table, however many faster ones are at risk. */
	if (count && best > shown[count - 1])
		shown[count - 1] = best;
	return count;
}

static bool facet_open(const struct mb_search_report *x, const struct mb_facet *facet)
{
	for (int i = 0; i < MB_FACET_KEYS && facet->keys[i] >= 0; i++) {
		if (x->open[facet->keys[i]])
			return true;
	}
	return false;
}

static bool facet_differs(const struct mb_search_report *x, const struct mb_facet *facet, const int *shown, int count)
{
	struct mb_text first = { 0 }, other = { 0 };
	bool differs = false;

	mb_text_add(&first, "");
	facet->words(&x->q->c, &x->r->top[shown[0]].plan, &first);
	for (int i = 1; i < count && !differs; i++) {
		mb_text_add(&other, "");
		facet->words(&x->q->c, &x->r->top[shown[i]].plan, &other);
		differs = strcmp(first.data ? first.data : "", other.data ? other.data : "") != 0;
		mb_text_free(&other);
		other = (struct mb_text){ 0 };
	}
	mb_text_free(&first);
	return differs;
}

static bool several_gpu_counts(const struct mb_query *q)
{
	return q->gpu_choices[0] && q->gpu_choices[1];
}

static void add_columns(const struct mb_search_report *x, const bool *differs, struct mb_table *t)
{
	static const char *const sizes[] = { "TP", "PP", "CP", "VP", "EP", "MBS" };

	mb_table_column(t, "rank", "", MB_RIGHT, 0);
	if (several_gpu_counts(x->q))
		mb_table_column(t, "GPUs", "", MB_RIGHT, 0);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		mb_table_column(t, sizes[i], "", MB_RIGHT, 0);
	for (int i = 0; i < MB_FACET_COUNT; i++) {
		if (!differs[i])
			continue;
		mb_table_column(t, mb_facets[i].head, "", MB_LEFT, 0);
		t->columns[t->column_count - 1].clip = true;
	}
	mb_table_column(t, "step", "s", MB_DECIMAL, 0);
	mb_table_column(t, "TFLOP/s", "/GPU", MB_DECIMAL, 2);
	if (x->objective == MB_OBJECTIVE_COST) {
		mb_table_column(t, "cost", "$/step", MB_DECIMAL, 0);
		mb_table_column(t, "cost", "$/Mtoken", MB_DECIMAL, 0);
	} else {
		mb_table_column(t, "MFU", "%", MB_DECIMAL, 1);
	}
	mb_table_column(t, "peak", "GiB", MB_DECIMAL, 0);
	mb_table_column(t, "free", "GiB", MB_DECIMAL, 3);
}

static void add_cost(const struct mb_search_report *x, const struct mb_ranked *p, struct mb_table *t)
{
	double usd_per_gpu_s = x->q->c.hardware.price_usd_per_gpu_h / 3600;

	if (usd_per_gpu_s <= 0 || p->tokens_per_s_per_gpu <= 0) {
		mb_table_cell(t, "unknown");
		mb_table_cell(t, "unknown");
		return;
	}
	mb_table_cell(t, mb_number_3(usd_per_gpu_s * p->gpus * p->step_s).s);
	mb_table_cell(t, mb_number_3(usd_per_gpu_s / p->tokens_per_s_per_gpu * 1e6).s);
}

static void add_free(const struct mb_ranked *p, struct mb_table *t)
{
	char text[48];

	if (p->verdict == MB_FITS) {
		mb_table_cell_ink(t, MB_INK_GREEN, mb_number_gib(p->margin_bytes).s);
		return;
	}
	snprintf(text, sizeof text, "%s!", mb_number_gib(p->margin_bytes).s);
	mb_table_cell_ink(t, MB_INK_YELLOW, text);
}

static void add_row(const struct mb_search_report *x, const bool *differs, int index, struct mb_table *t)
{
	const struct mb_ranked *p = &x->r->top[index];
	const int sizes[] = { p->plan.tp, p->plan.pp, p->plan.cp, p->plan.vp, p->plan.ep, p->plan.micro_batch_size };

	mb_table_row(t, index == x->r->recommended ? MB_INK_BOLD : MB_INK_PLAIN);
	mb_table_cell(t, mb_arena_printf(t->arena, "%d%s", index + 1, p->tie && index > 0 ? "=" : " "));
	if (several_gpu_counts(x->q))
		mb_table_cell(t, mb_number_count(p->gpus).s);
	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
		mb_table_cell(t, mb_arena_printf(t->arena, "%d", sizes[k]));
	for (int k = 0; k < MB_FACET_COUNT; k++) {
		struct mb_text words = { 0 };

		if (!differs[k])
			continue;
		mb_facets[k].words(&x->q->c, &p->plan, &words);
		mb_table_cell(t, words.length ? words.data : "-");
		mb_text_free(&words);
	}
	mb_table_cell(t, mb_number_3(p->step_s).s);
	mb_table_cell(t, mb_number_tflops(p->model_flop_per_s_per_gpu).s);
	if (x->objective == MB_OBJECTIVE_COST)
		add_cost(x, p, t);
	else
		mb_table_cell(t, mb_number_mfu(p->mfu).s);
	mb_table_cell(t, mb_number_fixed(p->peak_bytes / MB_GIB, 1).s);
	add_free(p, t);
}

void mb_search_table(const struct mb_search_report *x, const int *shown, int count, struct mb_table *ret)
{
	bool differs[MB_FACET_COUNT];

	for (int i = 0; i < MB_FACET_COUNT; i++)
		differs[i] = count > 0 && facet_differs(x, &mb_facets[i], shown, count);
	add_columns(x, differs, ret);
	for (int i = 0; i < count; i++)
		add_row(x, differs, shown[i], ret);
}

void mb_search_common(const struct mb_search_report *x, const int *shown, int count, struct mb_text *ret)
{
	bool inside = x->q->c.model.num_moe_experts > 0;

	for (int i = 0; i < count; i++) {
		const struct mb_plan *p = &x->r->top[shown[i]].plan;

		inside = inside && p->ep > 1 && p->ep * p->etp <= x->q->c.domain;
	}
	for (int i = 0; i < MB_FACET_COUNT; i++) {
		struct mb_text words = { 0 };

		if (!facet_open(x, &mb_facets[i]) || facet_differs(x, &mb_facets[i], shown, count))
			continue;
		mb_facets[i].words(&x->q->c, &x->r->top[shown[0]].plan, &words);
		if (words.length)
			mb_text_printf(ret, "%s%s %s", ret->length ? ", " : "In every row: ", mb_facets[i].label,
			               words.data);
		mb_text_free(&words);
	}
	if (inside)
		mb_text_printf(ret, "%sdispatch and combine inside one NVLink domain of %d",
		               ret->length ? "; " : "In every row: ", x->q->c.domain);
	if (ret->length)
		mb_text_add(ret, ".");
}
