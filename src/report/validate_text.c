#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/number.h"
#include "report/table.h"
#include "report/validate.h"
#include "report/validate_pairs.h"

/* ---- why rows were left out ---- */

static int by_count(const void *a, const void *b)
{
	const struct mb_skip_reason *x = a, *y = b;

	return x->count != y->count ? y->count - x->count : strcmp(x->reason, y->reason);
}

int mb_skip_reasons(const struct mb_trials *trials, struct mb_skip_reason *ret)
{
	int n = 0;

	for (int i = 0; i < trials->skipped_count; i++) {
		const struct mb_measured *row = &trials->skipped[i];
		int r = 0;

		while (r < n && strcmp(ret[r].reason, row->skip) != 0)
			r++;
		if (r == n)
			ret[n++] = (struct mb_skip_reason){ row->skip, row->id, row->pos, 0 };
		ret[r].count++;
	}
	qsort(ret, (size_t)n, sizeof *ret, by_count);
	return n;
}

/* ---- the table ---- */

static const char *percent(struct mb_arena *arena, double share, int decimals)
{
	return isfinite(share) ? mb_arena_strdup(arena, mb_number_fixed(100 * share, decimals).s) : "-";
}

/* Time is not known better than a tenth of a percent, memory is compared to hundredths. */
static void add_row(struct mb_table *t, const struct mb_summary *s, const char *what)
{
	int decimals = s->kind[0] == 'm' ? 2 : 1;
	char n[16];

	snprintf(n, sizeof n, "%d", s->n);
	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell(t, s->kind);
	mb_table_cell(t, what);
	mb_table_cell(t, mb_arena_strdup(t->arena, n));
	mb_table_cell(t, percent(t->arena, s->median, decimals));
	mb_table_cell(t, percent(t->arena, s->mean, decimals));
	mb_table_cell(t, percent(t->arena, s->p90, decimals));
	mb_table_cell(t, percent(t->arena, s->max, decimals));
	mb_table_cell(t, strcmp(s->by, "baseline") == 0 ? "-" : percent(t->arena, s->bias, decimals));
	mb_table_cell(t, percent(t->arena, s->in_band, 0));
}

static const char *label(const char *quantity)
{
	for (int i = 0; i < MB_M_COUNT; i++) {
		if (strcmp(quantity, mb_measure_rows[i].json) == 0)
			return mb_measure_rows[i].label;
	}
	return strcmp(quantity, "step_ratio") == 0 ? "ratio within a study" : quantity;
}

static bool shown(const struct mb_validation *x, const struct mb_summary *s)
{
	if (strcmp(s->by, "left out") == 0 || strcmp(s->by, "baseline") == 0)
		return true;
	if (x->by)
		return strcmp(s->by, x->by) == 0 || strcmp(s->by, "all") == 0;
	/* Memory by family, time by source: what each varies most with. */
	if (strcmp(s->by, "all") == 0)
		return s->kind[0] == 't';
	return strcmp(s->by, s->kind[0] == 'm' ? "family" : "source") == 0;
}

static void fill(const struct mb_validation *x, struct mb_table *t)
{
	static const char *const heads[] = { "n", "median", "mean", "p90", "max", "bias", "in band" };
	const struct mb_accuracy *a = x->accuracy;

	mb_table_column(t, "error in %", "", MB_LEFT, 0);
	mb_table_column(t, "", "", MB_LEFT, 0);
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
		mb_table_column(t, heads[i], "", MB_DECIMAL, 0);
	for (int kind = 0; kind < 2; kind++) {
		for (int i = 0; i < a->summary_count; i++) {
			const struct mb_summary *s = &a->summaries[i];

			if (s->kind[0] != (kind ? 't' : 'm') || !shown(x, s))
				continue;
			add_row(t, s, s->kind[0] == 'm' || strcmp(s->quantity, "step_ratio") == 0
			        ? mb_arena_printf(t->arena, "%s, %s", s->group, label(s->quantity)) : s->group);
		}
	}
}

/* ---- under the table ---- */

static const char *amount(struct mb_arena *arena, const struct mb_outcome *s, double value)
{
	if (s->kind[0] == 'm')
		return mb_arena_printf(arena, "%s GiB", mb_number_gib(value).s);
	return strcmp(s->quantity, "step_ratio") == 0 ? mb_arena_strdup(arena, mb_number_3(value).s)
	                                              : mb_arena_strdup(arena, mb_number_duration(value).s);
}

static void list_worst(const struct mb_validation *x, const char *kind, struct mb_arena *arena, struct mb_text *ret)
{
	const struct mb_accuracy *a = x->accuracy;
	const struct mb_outcome **order = mb_arena_alloc(arena, (size_t)(a->score_count + 1) * sizeof *order);
	int left = x->worst;

	mb_accuracy_worst(a, order);
	for (int i = 0; i < a->score_count && left > 0; i++) {
		const struct mb_outcome *s = order[i];

		if (strcmp(s->kind, kind) != 0)
			continue;
		mb_text_printf(ret, "%s %s: %s measured %s, predicted %s (%+.*f %%)\n", left == x->worst ? "worst  " : "       ",
		               s->trial->row->id, label(s->quantity), amount(arena, s, s->measured), amount(arena, s, s->predicted),
		               kind[0] == 'm' ? 1 : 0, 100 * s->error_frac);
		left--;
	}
}

static void list_skipped(const struct mb_validation *x, const struct mb_style *s, struct mb_arena *arena, struct mb_text *ret)
{
	struct mb_skip_reason *reasons = mb_arena_alloc(arena, (size_t)(x->trials->skipped_count + 1) * sizeof *reasons);
	int n = mb_skip_reasons(x->trials, reasons);

	if (n == 0)
		return;
	mb_text_printf(ret, "skipped %s of %s rows:\n", mb_number_count(x->trials->skipped_count).s,
	               mb_number_count(x->trials->skipped_count + x->trials->count).s);
	for (int i = 0; i < n; i++) {
		char *line = mb_arena_printf(arena, "%4d  %s (%s%s:%d)", reasons[i].count, reasons[i].reason, reasons[i].count > 1 ? "first " : "",
			reasons[i].pos.file, reasons[i].pos.line);

		mb_text_add(ret, "  ");
		mb_wrap(ret, s, 2, 8, line);
	}
}

void mb_validation_text(const struct mb_validation *x, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table *t = mb_arena_alloc(&arena, sizeof *t);

	t->arena = &arena;
	fill(x, t);
	mb_table_print(t, s, ret);
	mb_pairs_text(x->accuracy, ret);
	if (!s->quiet) {
		list_worst(x, "time", &arena, ret);
		list_worst(x, "memory", &arena, ret);
		list_skipped(x, s, &arena, ret);
		mb_text_printf(ret, "next  mbsim validate %s --by model    mbsim calibrate %s\n", x->args, x->args);
	}
	mb_arena_free(&arena);
}

void mb_validation_markdown(const struct mb_validation *x, struct mb_arena *arena, struct mb_text *ret)
{
	struct mb_table *t = mb_arena_alloc(arena, sizeof *t);
	struct mb_skip_reason *reasons = mb_arena_alloc(arena, (size_t)(x->trials->skipped_count + 1) * sizeof *reasons);
	int n = mb_skip_reasons(x->trials, reasons);

	t->arena = arena;
	fill(x, t);
	mb_table_markdown(t, ret);
	mb_pairs_markdown(x->accuracy, ret);
	if (n)
		mb_text_add(ret, "\n| skipped | reason | such as |\n| ---: | --- | --- |\n");
	for (int i = 0; i < n; i++)
		mb_text_printf(ret, "| %d | %s | %s |\n", reasons[i].count, reasons[i].reason, reasons[i].example);
}
