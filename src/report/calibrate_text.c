#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/calibrate.h"
#include "report/number.h"
#include "report/table.h"

static const char *const architectures[] = {
	[MB_AMPERE] = "Ampere", [MB_HOPPER] = "Hopper", [MB_BLACKWELL] = "Blackwell", [MB_RUBIN] = "Rubin",
};

static const char *value_text(struct mb_arena *arena, const struct mb_free *f, double value)
{
	if (mb_param_rows[f->id].dimension == MB_SECONDS)
		return mb_arena_strdup(arena, mb_number_duration(value).s);
	return mb_arena_strdup(arena, mb_number_3(value).s);
}

/* The parameter that its estimate leans on most; NULL when none does by more than 0.7. */
static const struct mb_free *partner(const struct mb_fit *fit, int j, double *ret_correlation)
{
	int p = fit->free_count, best = -1;

	for (int k = 0; k < p; k++) {
		double r = fit->covariance[j * p + k] / (fit->free[j].spread * fit->free[k].spread);

		if (k != j && fabs(r) > 0.7 && (best < 0 || fabs(r) > fabs(*ret_correlation))) {
			best = k;
			*ret_correlation = r;
		}
	}
	return best < 0 ? NULL : &fit->free[best];
}

static const char *remark(struct mb_arena *arena, const struct mb_fit *fit, int j)
{
	double correlation = 0;
	const struct mb_free *other = partner(fit, j, &correlation);

	if (fit->free[j].kept)
		return "prior kept";
	if (!other)
		return "";
	return mb_arena_printf(arena, "%s %s", correlation > 0 ? "rises with" : "falls with", mb_param_rows[other->id].name);
}

static void add_parameter(struct mb_table *t, const struct mb_fit *fit, int j)
{
	const struct mb_free *f = &fit->free[j];
	struct mb_arena *a = t->arena;

	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell(t, mb_param_rows[f->id].name);
	mb_table_cell(t, f->architecture < 0 ? "stack" : architectures[f->architecture]);
	mb_table_cell(t, value_text(a, f, mb_fit_value(f, f->center)));
	mb_table_cell(t, f->kept ? "-" : value_text(a, f, mb_fit_value(f, f->x)));
	mb_table_cell(t, f->kept ? "-" : mb_arena_printf(a, "%s to %s", value_text(a, f, mb_fit_value(f, f->x - MB_BAND_80 * f->spread)),
	                                                 value_text(a, f, mb_fit_value(f, f->x + MB_BAND_80 * f->spread))));
	mb_table_cell(t, mb_arena_printf(a, "%.0f", 100 * f->information));
	mb_table_cell(t, remark(a, fit, j));
}

static void print_parameters(const struct mb_fit *fit, struct mb_arena *arena, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_table *t = mb_arena_alloc(arena, sizeof *t);

	t->arena = arena;
	mb_table_column(t, "calibrate", "", MB_LEFT, 0);
	mb_table_column(t, "of", "", MB_LEFT, 0);
	mb_table_column(t, "prior", "", MB_RIGHT, 0);
	mb_table_column(t, "fitted", "", MB_RIGHT, 0);
	mb_table_column(t, "80 % interval", "", MB_RIGHT, 0);
	mb_table_column(t, "data", "%", MB_RIGHT, 0);
	mb_table_column(t, "", "", MB_LEFT, 1);
	for (int j = 0; j < fit->free_count; j++)
		add_parameter(t, fit, j);
	mb_table_print(t, s, ret);
}

static void print_errors(const struct mb_accuracy *a, struct mb_arena *arena, const struct mb_style *s, struct mb_text *ret)
{
	static const char *const heads[] = { "n", "median", "mean", "p90", "max", "bias" };
	struct mb_table *t = mb_arena_alloc(arena, sizeof *t);

	t->arena = arena;
	mb_table_column(t, "error in %", "", MB_LEFT, 0);
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
		mb_table_column(t, heads[i], "", MB_DECIMAL, 0);
	for (int i = 0; i < a->summary_count; i++) {
		const struct mb_summary *sum = &a->summaries[i];
		const double values[] = { sum->median, sum->mean, sum->p90, sum->max, sum->bias };

		mb_table_row(t, MB_INK_PLAIN);
		mb_table_cell(t, sum->group);
		mb_table_cell(t, mb_arena_printf(arena, "%d", sum->n));
		for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
			mb_table_cell(t, mb_arena_strdup(arena, mb_number_fixed(100 * values[v], 1).s));
	}
	mb_table_print(t, s, ret);
}

static void print_link(const struct mb_link_fit *l, struct mb_text *ret)
{
	mb_text_printf(ret, "%s: %d ranks%s, %d sizes: %s GB/s", l->file, l->ranks, l->across ? " across domains" : " in one domain", l->points,
	               mb_number_gb_per_s(l->bytes_per_s).s);
	mb_text_printf(ret, ", %s %s, collective_latency_s %s (points within %s %%)\n",
	               l->across ? "scale_out_collective_frac" : "nvlink_collective_frac", mb_number_3(l->frac).s,
	               mb_number_duration(l->latency_s).s, mb_number_percent(l->error_frac).s);
}

void mb_calibration_text(const struct mb_calibration *x, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };

	for (int i = 0; i < x->link_count; i++)
		print_link(&x->links[i], ret);
	if (x->fit) {
		print_parameters(x->fit, &arena, s, ret);
		mb_text_add(ret, "\n");
		print_errors(x->accuracy, &arena, s, ret);
		if (!s->quiet)
			mb_text_printf(ret, "%d runs, scatter %s %%. \"data\": share of what is known that these runs give; the rest is the prior.\n",
			               x->fit->count, mb_number_percent(x->fit->noise).s);
	}
	if (x->trials->skipped_count)
		mb_text_printf(ret, "skipped %d rows: mbsim validate %s says why\n", x->trials->skipped_count, x->args);
	for (int i = 0; x->written && x->written[i]; i++)
		mb_text_printf(ret, "%s %s", i ? "," : "Wrote", x->written[i]);
	if (x->written && x->written[0])
		mb_text_printf(ret, ": %d values.\n", x->changed);
	else if (!s->quiet)
		mb_text_printf(ret, "next  mbsim calibrate %s --output mine.yaml     then: hardware=mine.yaml stack=mine-stack.yaml\n", x->args);
	mb_arena_free(&arena);
}
