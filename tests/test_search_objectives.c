/*
 * Objectives over several numbers of GPUs against brute force; what opening and narrowing keys does to the best; and what is
 * closest when nothing fits. tests/test_search.c has single spaces in full.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "load.h"
#include "search/best.h"

enum { MAX_POINTS = 20000, LISTED = 1000, FEW = 5 };

static struct mb_arena arena;
static struct mb_evaluation *e;
static struct mb_query *q;
static struct mb_ranked points[MAX_POINTS];
static int count;

static void begin(void)
{
	e = mb_evaluation_new();
	q = calloc(1, sizeof *q);
	cr_assert(e != NULL && q != NULL);
}

static void done(void)
{
	mb_arena_free(&arena);
	mb_evaluation_free(e);
	free(q);
}

TestSuite(search_objectives, .init = begin, .fini = done, .timeout = 300);

/* ---- spaces of which every key has one value or a few ---- */

static const char *const runs[] = {
	"model: llama3-8b\nhardware: dgx-h100\ngpus: [16, 8]\nseq: 4096\ngbs: 64\ntp: [1, 2, 4]\npp: [1, 2, 4]\nvp: [1, 2]\nmbs: [1, 2]\n"
	"recompute_granularity: selective\nrecompute_modules: [[], [layernorm], [mlp, layernorm]]\n",
	"model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: [8, 16]\nseq: 4096\ngbs: 64\ntp: [1, 2]\npp: [1, 2, 3]\nep: [1, 4, 8, 16]\nmbs: [1, 2]\n"
	"recompute_granularity: selective\nrecompute_modules: [[], [moe_act], [moe_act, layernorm]]\n",
	"model: nemotron-3-nano\nhardware: dgx-h100\ngpus: [8, 16]\nseq: 8192\ngbs: 64\ntp: [1, 2]\npp: [1, 2]\nep: [4, 8, 16]\nmbs: [1, 2, 4]\n"
	"recompute_granularity: selective\nrecompute_modules: [[], [moe_act], [layernorm, moe_act]]\n",
};
enum { RUNS = sizeof runs / sizeof runs[0] };

static const enum mb_key_id axes[] = { MB_K_tp, MB_K_pp, MB_K_vp, MB_K_ep, MB_K_mbs, MB_K_modules };
enum { AXES = sizeof axes / sizeof axes[0] };

/* Everything fixed that has no alternatives, but for sequence parallelism. */
static void load_narrow(const char *run, double usable_bytes)
{
	load_query(run, &arena, q);
	for (int i = 0; i < MB_KEY_COUNT; i++)
		q->set[i] = q->alternatives[i].count == 0 && i != MB_K_sp;
	q->c.hardware.usable_bytes = (int64_t)usable_bytes;
	mb_case_compile(&q->c);
}

static void try_point(const struct mb_case *c)
{
	const struct mb_plan *p = &c->run.plan;
	struct mb_ranked *r = &points[count];

	if (mb_first_broken(c, p, MB_ALL_KEYS))
		return;
	mb_evaluate(c, p, e);
	*r = (struct mb_ranked){ .plan = *p, .gpus = c->run.gpus, .verdict = e->verdict, .step_s = e->step_s, .peak_bytes = e->peak_bytes,
		.device_used_bytes = e->device_used_bytes, .margin_bytes = e->margin_bytes };
	cr_assert_lt(++count, MAX_POINTS);
}

static void enumerate(struct mb_case *c, int level)
{
	if (level == AXES) {
		for (int sp = 0; sp <= (c->run.plan.tp > 1); sp++) {
			c->run.plan.sequence_parallel = sp > 0;
			try_point(c);
		}
		return;
	}
	const struct mb_alternatives *a = &q->alternatives[axes[level]];

	for (int i = 0; i < a->count; i++) {
		mb_key_put(&c->run, &mb_keys[axes[level]], a->values[i]);
		enumerate(c, level + 1);
	}
	if (a->count == 0)
		enumerate(c, level + 1);
}

static bool is_listable(const struct mb_ranked *r)
{
	return (r->verdict == MB_FITS || r->verdict == MB_AT_RISK) && r->margin_bytes >= 0;
}

/* All legal points of all numbers of GPUs. */
static void enumerate_all(void)
{
	static struct mb_case c;

	count = 0;
	for (int i = 0; q->gpu_choices[i] > 0; i++) {
		c = q->c;
		c.run.gpus = q->gpu_choices[i];
		mb_case_compile(&c);
		enumerate(&c, 0);
	}
}

/* ---- brute force of an objective ---- */

static const struct mb_search_options *asked;

static int order(double a, double b)
{
	return (a > b) - (a < b);
}

/* The objective, fewer GPUs, then the order of one search. */
static int compare(const void *x, const void *y)
{
	const struct mb_ranked *a = x, *b = y;
	const struct mb_best by = { .aim = asked->objective == MB_OBJECTIVE_MEMORY ? MB_AIM_PEAK : MB_AIM_STEP };
	int first = 0;

	if (asked->objective == MB_OBJECTIVE_COST)
		first = order(a->step_s * a->gpus, b->step_s * b->gpus);
	else if (asked->objective == MB_OBJECTIVE_MEMORY)
		first = order(a->peak_bytes, b->peak_bytes);
	else if (asked->objective == MB_OBJECTIVE_STEP)
		first = order(a->step_s, b->step_s);
	first = first ? first : order(a->gpus, b->gpus);
	return first ? first : mb_ranked_compare(&by, a, b);
}

/* What may be listed, in order, in front of `points`. Returns how many. */
static int rank_points(void)
{
	double limit_s = asked->max_step_s > 0 ? asked->max_step_s : INFINITY, fastest_s = INFINITY;
	int fewest = INT32_MAX, n = 0;

	for (int i = 0; i < count; i++)
		if (points[i].verdict == MB_FITS && points[i].margin_bytes >= 0 && points[i].step_s <= limit_s) {
			fastest_s = fmin(fastest_s, points[i].step_s);
			fewest = points[i].gpus < fewest ? points[i].gpus : fewest;
		}
	if (asked->objective == MB_OBJECTIVE_MEMORY && isfinite(fastest_s))
		limit_s = fmin(limit_s, fastest_s * (1 + asked->memory_slack_frac));
	for (int i = 0; i < count; i++)
		if (is_listable(&points[i]) && points[i].step_s <= limit_s && (asked->objective != MB_OBJECTIVE_GPUS || points[i].gpus <= fewest))
			points[n++] = points[i];
	qsort(points, (size_t)n, sizeof points[0], compare);
	return n;
}

static bool same_row(const struct mb_ranked *a, const struct mb_ranked *b)
{
	return a->gpus == b->gpus && mb_plan_compare(&a->plan, &b->plan) == 0 && order(a->step_s, b->step_s) == 0
	       && order(a->peak_bytes, b->peak_bytes) == 0;
}

static void expect_rows(const char *what, const struct mb_search_result *r, int wanted, int listable)
{
	int n = listable < wanted ? listable : wanted, fit = 0;

	while (fit < listable && points[fit].verdict != MB_FITS)
		fit++;
	if (fit < listable && fit >= n)         /* stands in for the last */
		points[n - 1] = points[fit];
	cr_expect_eq(r->top_count, n, "%s: %d plans, brute force %d", what, r->top_count, n);
	for (int i = 0; i < n && i < r->top_count; i++)
		cr_expect(same_row(&r->top[i], &points[i]), "%s, rank %d: %d GPUs, %.9g s, %.0f B; brute force %d, %.9g s, %.0f B", what, i + 1,
		          r->top[i].gpus, r->top[i].step_s, r->top[i].peak_bytes, points[i].gpus, points[i].step_s, points[i].peak_bytes);
	cr_expect_eq(r->recommended, fit == listable ? -1 : fit < n ? fit : n - 1, "%s: recommended %d", what, r->recommended);
	cr_expect(r->top_count == 0 || !r->has_closest, "%s: closest beside plans that fit", what);
}

static void check_objective(const char *run, double usable_bytes, const struct mb_search_options *options)
{
	struct mb_search_result r;
	struct mb_diags diags = { 0 };
	char what[160];

	load_narrow(run, usable_bytes);
	enumerate_all();
	asked = options;
	snprintf(what, sizeof what, "%.20s, %.0f GB, objective %d, limit %.3g s, top %d", run, usable_bytes * 1e-9, (int)options->objective,
	         options->max_step_s, options->top);
	cr_assert(mb_search(q, options, &arena, &r, &diags));
	expect_rows(what, &r, options->top, rank_points());
}

Test(search_objectives, over_several_numbers_of_gpus_equal_brute_force)
{
	static const double usable_gb[] = { 20, 28, 36, 45, 60, 80 }, limits_s[] = { 0, 3, 6 };
	static const enum mb_objective objectives[] = { MB_OBJECTIVE_STEP, MB_OBJECTIVE_MEMORY, MB_OBJECTIVE_COST, MB_OBJECTIVE_GPUS };

	for (int run = 0; run < RUNS; run++)
		for (int room = 0; room < 6; room++)
			for (int limit = 0; limit < 3; limit++)
				for (int o = 0; o < 4; o++) {
					struct mb_search_options options = { .top = (room + limit) % 2 ? FEW : LISTED, .objective = objectives[o],
						.memory_slack_frac = 0.05, .max_step_s = limits_s[limit], .threads = 1 };

					check_objective(runs[run], usable_gb[room] * 1e9, &options);
				}
}

/* docs/search.md: no plan needs 3 % less. */
Test(search_objectives, closest_when_nothing_fits_is_that_of_brute_force)
{
	struct mb_search_options options = { .top = FEW, .threads = 1 };
	struct mb_search_result r;
	struct mb_diags diags = { 0 };

	for (int run = 0; run < RUNS; run++) {
		double least = INFINITY;

		load_narrow(runs[run], 5e9);
		enumerate_all();
		for (int i = 0; i < count; i++)
			least = fmin(least, points[i].device_used_bytes);
		cr_assert(mb_search(q, &options, &arena, &r, &diags));
		cr_expect_eq(r.top_count, 0);
		cr_expect_eq(r.recommended, -1);
		cr_assert(r.has_closest, "%.20s", runs[run]);
		cr_expect(r.closest.device_used_bytes >= least && r.closest.device_used_bytes * 0.97 <= least, "%.20s: %.0f B, brute force %.0f", runs[run],
		          r.closest.device_used_bytes, least);
		cr_expect_eq(r.closest.gpus, 16, "more GPUs, smaller states");
	}
}

/* What misses a limit of the step may well fit: least memory says nothing of it. */
Test(search_objectives, nothing_is_closest_to_a_missed_limit)
{
	struct mb_search_options options = { .top = FEW, .threads = 1, .max_step_s = 1e-6 };
	struct mb_search_result r;
	struct mb_diags diags = { 0 };

	load_narrow(runs[0], 80e9);
	cr_assert(mb_search(q, &options, &arena, &r, &diags));
	cr_expect_eq(r.top_count, 0);
	cr_expect(!r.has_closest);
}

/* ---- open keys ---- */

static const char *const open_runs[] = {
	"model: llama3-8b\nhardware: dgx-h100\ngpus: 8\nseq: 4096\ngbs: 64\n",
	"model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: 16\nseq: 4096\ngbs: 256\n",
	"model: nemotron-3-nano\nhardware: gb300-nvl72\ngpus: 8\nseq: 8192\ngbs: 64\nprecision: fp8_mx\n",
};
enum { OPEN_RUNS = sizeof open_runs / sizeof open_runs[0] };

/* Keys that are opened together, what a search has to look at longest last. */
static const int opened[][8] = {
	{ MB_K_mbs, -1 }, { MB_K_graph_impl, MB_K_graph_scope, -1 }, { MB_K_ep, MB_K_etp, -1 }, { MB_K_dispatcher, MB_K_backend, -1 },
	{ MB_K_ep_overlap, MB_K_delay_wgrad, MB_K_shared_overlap, -1 }, { MB_K_tp, MB_K_sp, MB_K_tp_overlap, -1 },
	{ MB_K_recompute, MB_K_method, MB_K_recompute_layers, MB_K_modules, -1 },
	{ MB_K_cpu_offloading, MB_K_cpu_offloading_layers, MB_K_fine_offload, MB_K_offload_modules, -1 },
	{ MB_K_opt_offload, MB_K_opt_offload_fraction, MB_K_dist_opt, MB_K_fsdp, MB_K_sharding, MB_K_grad_overlap, MB_K_param_overlap, -1 },
	{ MB_K_pp, MB_K_vp, -1 }, { MB_K_first_layers, MB_K_last_layers, MB_K_acc_embed, MB_K_acc_loss, MB_K_layout, -1 }, { MB_K_cp, -1 },
};
enum { OPENED = sizeof opened / sizeof opened[0] };

static void search_best(struct mb_search_result *ret, int top)
{
	struct mb_search_options options = { .top = top, .threads = 1 };
	struct mb_diags diags = { 0 };

	cr_assert(mb_search(q, &options, &arena, ret, &diags));
}

Test(search_objectives, opening_a_key_never_makes_the_best_worse)
{
	for (int run = 0; run < OPEN_RUNS; run++) {
		double before_s = INFINITY;

		load_query(open_runs[run], &arena, q);
		for (int i = 0; i < MB_KEY_COUNT; i++)
			q->set[i] = true;
		for (int k = -1; k < OPENED; k++) {
			struct mb_search_result r;

			for (const int *key = k < 0 ? (const int[]){ -1 } : opened[k]; *key >= 0; key++)
				q->set[*key] = false;
			search_best(&r, 1);
			cr_expect(r.top_count > 0 || !isfinite(before_s), "%.20s: nothing fits with more keys open", open_runs[run]);
			if (r.top_count == 0)
				continue;
			cr_expect_leq(r.top[0].step_s, before_s, "%.20s: %.9g s with %s open, %.9g s before", open_runs[run], r.top[0].step_s,
			              k < 0 ? "nothing" : mb_keys[opened[k][0]].name, before_s);
			before_s = r.top[0].step_s;
		}
		cr_expect(isfinite(before_s), "%.20s", open_runs[run]);
	}
}

Test(search_objectives, narrowing_to_the_best_returns_it)
{
	for (int run = 0; run < OPEN_RUNS; run++) {
		struct mb_search_result wide, narrow;

		load_query(open_runs[run], &arena, q);
		search_best(&wide, FEW);
		cr_assert(wide.recommended >= 0, "%.20s", open_runs[run]);
		q->c.layouts = wide.layouts;
		q->c.layout_count = wide.layout_count;
		q->c.run.plan = wide.top[wide.recommended].plan;
		for (int i = 0; i < MB_KEY_COUNT; i++)
			q->set[i] = true;
		search_best(&narrow, FEW);
		cr_expect(narrow.plans_considered <= 1 && narrow.plans_considered >= 1, "%.20s: %.0f plans", open_runs[run], narrow.plans_considered);
		cr_assert_eq(narrow.top_count, 1);
		cr_expect(same_row(&narrow.top[0], &wide.top[wide.recommended]), "%.20s: %.9g s, in the wide space %.9g", open_runs[run],
		          narrow.top[0].step_s, wide.top[wide.recommended].step_s);
	}
}

/* Every row says what `estimate` says, with the layouts of the result: pp 3 only divides one of the numbers of GPUs. */
Test(search_objectives, plans_of_several_numbers_of_gpus_name_their_layouts)
{
	static struct mb_case c;
	struct mb_search_options options = { .top = LISTED, .objective = MB_OBJECTIVE_COST, .threads = 1 };
	struct mb_search_result r;
	struct mb_diags diags = { 0 };
	int with_layout[2] = { 0, 0 };

	load_query("model: llama3-8b\nhardware: dgx-h100\ngpus: [8, 24]\nseq: 4096\ngbs: 96\ntp: 2\ncp: 1\nvp: 3\n", &arena, q);
	cr_assert(mb_search(q, &options, &arena, &r, &diags));
	for (int i = 0; i < r.top_count + r.front_count; i++) {
		const struct mb_ranked *row = i < r.top_count ? &r.top[i] : &r.front[i - r.top_count];

		c = q->c;
		c.run.gpus = row->gpus;
		c.layouts = r.layouts;
		c.layout_count = r.layout_count;
		mb_case_compile(&c);
		with_layout[row->gpus > 8] += row->plan.layout >= 0;
		cr_assert_lt(row->plan.layout, r.layout_count);
		cr_assert_null(mb_first_broken(&c, &row->plan, MB_ALL_KEYS));
		mb_evaluate(&c, &row->plan, e);
		cr_expect(order(e->step_s, row->step_s) == 0 && order(e->peak_bytes, row->peak_bytes) == 0, "row %d: %.9g s, listed with %.9g", i,
		          e->step_s, row->step_s);
	}
	cr_expect(with_layout[0] > 0 && with_layout[1] > 0, "%d and %d plans with layouts", with_layout[0], with_layout[1]);
}
