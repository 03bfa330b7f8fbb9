#include "sweep/cell.h"

#include <stdio.h>
#include <string.h>

enum { TOP = 64 };      /* plans at risk may stand before the first that fits */

bool mb_cell_query(const struct mb_sweep *s, int cell, struct mb_library *library, struct mb_arena *arena, struct mb_query *ret,
                   struct mb_diags *diags)
{
	const struct mb_node *runs[2] = { s->base, mb_sweep_settings(s, cell, arena) };
	int skip = s->base ? 0 : 1;

	return mb_query_from_nodes(runs + skip, 2 - skip, library, arena, ret, diags);
}

/* ---- searching and judging ---- */

static bool search(const struct mb_sweep *s, const struct mb_query *q, int threads, struct mb_arena *arena, struct mb_search_result *ret,
                   struct mb_diags *diags)
{
	struct mb_search_options options = { .top = TOP, .objective = s->objective, .threads = threads, .memory_slack_frac = 0.05 };

	return mb_search(q, &options, arena, ret, diags);
}

static const struct mb_ranked *best_of(const struct mb_search_result *r)
{
	if (r->top_count == 0)
		return NULL;
	return &r->top[r->recommended >= 0 ? r->recommended : 0];
}

void mb_cell_settle(struct mb_query *q, const struct mb_search_result *r, const struct mb_ranked *p)
{
	if (r->layouts) {
		q->c.layouts = r->layouts;
		q->c.layout_count = r->layout_count;
	}
	q->c.run.plan = p->plan;
	q->c.run.gpus = p->gpus;
	q->gpu_choices[0] = 0;
	memset(q->open, 0, sizeof q->open);
	memset(q->alternatives, 0, sizeof q->alternatives);
	mb_case_compile(&q->c);
}

static const char *first_error(const struct mb_query *q, struct mb_arena *arena)
{
	struct mb_violation *v = mb_arena_alloc(arena, MB_MAX_VIOLATIONS * sizeof *v);
	int count = mb_check(q, &q->c.run.plan, v);

	for (int i = 0; i < count; i++) {
		if (v[i].rule->severity == MB_RULE_ERROR)
			return mb_arena_printf(arena, "%s: %s", v[i].rule->id, v[i].message);
	}
	return NULL;
}

static void judge(struct mb_outcome *x, struct mb_arena *arena, struct mb_evaluation *e)
{
	const struct mb_case *c = &x->q->c;

	x->reason = first_error(x->q, arena);
	if (mb_evaluable(c, &c->run.plan)) {
		x->verdict = mb_evaluate(c, &c->run.plan, e);
		x->e = x->verdict == MB_ILLEGAL ? NULL : e;
	}
	if (x->reason || !x->e)
		x->verdict = MB_ILLEGAL;
}

/* The rule that excluded most, when no plan is legal. */
static const char *commonest_rule(const struct mb_search_result *r, struct mb_arena *arena)
{
	const struct mb_prune_row *most = NULL;

	for (int i = 0; i < r->pruned_count; i++) {
		if (!most || r->pruned[i].count > most->count)
			most = &r->pruned[i];
	}
	return most ? mb_arena_printf(arena, "%s excludes most of the plans", most->id) : "no plan";
}

static bool run_search(const struct mb_sweep *s, int threads, struct mb_arena *arena, struct mb_evaluation *e, struct mb_outcome *x,
                       struct mb_diags *diags)
{
	const struct mb_ranked *best;

	mb_search_open_keys(x->q, x->open);
	if (!search(s, x->q, threads, arena, &x->search, diags))
		return false;
	best = best_of(&x->search);
	if (!best && x->search.has_closest)
		best = &x->search.closest;
	if (!best) {
		x->verdict = MB_ILLEGAL;
		x->reason = commonest_rule(&x->search, arena);
		return true;
	}
	mb_cell_settle(x->q, &x->search, best);
	judge(x, arena, e);
	return true;
}

/* ---- what if ---- */

static const struct { const char *name, *changes[2]; } questions[] = {
	{ "hbm", { "0.75x", "1.5x" } },
	{ "hbm_bandwidth", { "0.75x", "1.5x" } },
	{ "nvlink", { "0.5x", "2x" } },
	{ "scale_out", { "0.5x", "2x" } },
	{ "moe_load_imbalance", { "1", "1.25" } },
};

/* False: the question makes no sense for this run. */
static bool change(struct mb_query *q, const char *name, const char *value, struct mb_arena *arena)
{
	struct mb_diags *unheard = mb_arena_alloc(arena, sizeof *unheard);
	const struct mb_node *node = mb_node_scalar(arena, (struct mb_pos){ 0 }, value);
	double imbalance;

	if (strcmp(name, "moe_load_imbalance") != 0) {
		if (!mb_hardware_change(&q->c.hardware, name, node, unheard))
			return false;
	} else {
		if (q->c.model.num_moe_experts == 0 || !mb_node_double(node, &imbalance))
			return false;
		q->c.run.moe_load_imbalance = imbalance;
	}
	mb_case_compile(&q->c);
	return true;
}

static double step_of(const struct mb_sweep *s, const struct mb_query *q, int threads, struct mb_arena *arena)
{
	struct mb_search_result *r = mb_arena_alloc(arena, sizeof *r);
	struct mb_diags *unheard = mb_arena_alloc(arena, sizeof *unheard);
	struct mb_evaluation *e;
	double step = 0;

	if (!s->estimate) {
		const struct mb_ranked *best = search(s, q, threads, arena, r, unheard) ? best_of(r) : NULL;

		return best ? best->step_s : 0;
	}
	e = mb_evaluation_new();
	if (e && mb_evaluable(&q->c, &q->c.run.plan) && mb_evaluate(&q->c, &q->c.run.plan, e) <= MB_AT_RISK)
		step = e->step_s;
	mb_evaluation_free(e);
	return step;
}

/* Each question is put to the open run: with other hardware, another plan may be best. */
static void ask(const struct mb_sweep *s, const struct mb_query *open, int threads, struct mb_arena *arena, struct mb_outcome *x)
{
	for (size_t i = 0; i < 2 * sizeof questions / sizeof questions[0]; i++) {
		const char *name = questions[i / 2].name, *value = questions[i / 2].changes[i % 2];
		struct mb_query *q = mb_arena_alloc(arena, sizeof *q);

		*q = *open;
		if (!change(q, name, value, arena))
			continue;
		x->what_if[x->what_if_count++] = (struct mb_what_if){ name, value, step_of(s, q, threads, arena) };
	}
}

bool mb_cell_run(const struct mb_sweep *s, struct mb_query *q, int threads, struct mb_arena *arena, struct mb_evaluation *e,
                 struct mb_outcome *ret, struct mb_diags *diags)
{
	struct mb_query *open = mb_arena_alloc(arena, sizeof *open);

	*ret = (struct mb_outcome){ .q = q, .verdict = MB_ILLEGAL, .search.knee = -1 };
	*open = *q;
	if (s->estimate)
		judge(ret, arena, e);
	else if (!run_search(s, threads, arena, e, ret, diags))
		return false;
	if (s->what_if && ret->verdict <= MB_AT_RISK)
		ask(s, open, threads, arena, ret);
	return true;
}
