/* Under one node: splits by their bounds, then groups and features. */
#include "search/visit.h"

#include <math.h>
#include <stdlib.h>

/* A split of the node's layers, waiting for its turn. */
struct waiting {
	double step_s;
	const struct mb_split_table *table;
	int row;
};

static double growing_points(const struct mb_visit *v, const double points[MB_GROWTHS])
{
	double sum = 0;

	for (int g = 0; g < MB_GROWTHS; g++)
		if (points[g] > 0)
			sum += points[g] * mb_legality_choices(&v->walk->legality, g, v->layers);
	return sum;
}

static bool overlaps_experts(const struct mb_visit *v, const struct mb_feature *f)
{
	return v->walk->s->axis[MB_P_EP_OVERLAP].of[f->overlap].plan.overlap_moe_expert_parallel_comm;
}

static void try_features(struct mb_visit *v, const struct mb_legal *y, struct mb_visit_choice *c)
{
	const struct mb_legality *l = &v->walk->legality;
	const struct mb_kind_row *plain;
	struct mb_treated none = { MB_TREAT_NONE, 0, NULL, NULL };
	enum mb_bound bound = MB_WORTH;

	c->legal = y;
	c->limit = mb_node_peak_limit(v->w, y->f.dispatcher);
	c->live = v->live[overlaps_experts(v, &y->f)];
	if (mb_visit_recompute(v, l->rep[0])->recompute == MB_RECOMPUTE_NONE) {     /* whatever is recomputed takes longer */
		plain = mb_rows_plain(&v->w->cache, v->w->rows, c->group, y->f, 0);
		mb_visit_costs(v, plain, &none, &v->costs);
		bound = mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, c->transfer_s, c->hop_s, -1), 0);
	}
	if (bound != MB_WORTH) {
		mb_visit_count(v, bound, growing_points(v, y->points));
		return;
	}
	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++)
		if (mb_visit_is_tried(v, i) && (y->recompute[l->rep_of[i] / 64] >> (l->rep_of[i] % 64) & 1))
			mb_visit_try(v, c, i);
}

/* Transfers know sequence parallelism and whether they are overlapped, no features. */
static void start_group(const struct mb_visit *v, int group, struct mb_visit_choice *c)
{
	const struct mb_space *s = v->walk->s;
	struct mb_plan p = v->w->p;
	struct mb_dims d;

	mb_space_set_vp(s, v->table->vp, &p);
	mb_set_group(s, &v->w->rows->groups->of[group], &p);
	mb_dims_fill(&s->c, &p, &d);
	c->group = group;
	c->transfer_s = mb_transfer_seconds(&s->c, &p, &d, &c->hop_s);
}

static void visit_split(struct mb_visit *v)
{
	const struct mb_groups *groups = v->w->rows->groups;

	mb_visit_pieces(v);
	mb_visit_ranks(v);
	mb_visit_floors(v);
	v->live[1] = mb_live_of(v->w, v->table, true);
	v->live[0] = mb_live_of(v->w, v->table, false);
	v->least_live = *v->live[0];
	for (int i = 0; i < v->class->count; i++)
		v->least_live.overlap |= overlaps_experts(v, &v->class->of[i].f);
	v->closely = false;
	if (mb_visit_judge(v)) {
		mb_visit_holds(v);
		v->closely = true;
	}
	if (!v->closely || !mb_visit_judge(v)) {
		mb_visit_count(v, v->worth[0], mb_class_points(&v->walk->legality, v->class, groups, v->layers));
		return;
	}
	for (int g = 0; g < groups->count; g++) {
		struct mb_visit_choice c;

		start_group(v, g, &c);
		for (int i = 0; i < v->class->count; i++)
			try_features(v, &v->class->of[i], &c);
	}
}

/* ---- a node ---- */

static int by_bound(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->step_s < y->step_s || x->step_s > y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->row - y->row;
}

static void visit_waiting(struct mb_visit *v, const struct waiting *waiting, int n)
{
	for (int i = 0; i < n; i++) {
		struct mb_plan p = v->w->p;
		enum mb_bound bound = mb_best_bound(&v->w->goal, waiting[i].step_s, 0);

		v->table = waiting[i].table;
		v->row = &v->table->rows[waiting[i].row];
		v->layers = mb_space_recompute_layers(v->walk->s, v->table->pp, v->table->vp);
		p.vp = v->table->vp;
		v->class = mb_legality_class(&v->walk->legality, &p);
		if (bound != MB_WORTH)
			mb_visit_count(v, bound, mb_class_points(&v->walk->legality, v->class, v->w->rows->groups, v->layers));
		else
			visit_split(v);
	}
}

/* Device time of a layer that no choice worth a look under the node goes below. */
static void fill_least_alive(struct mb_visit *v, struct mb_kind_row *ret)
{
	const struct mb_slots *slots = &v->w->cache.slots;

	for (int k = 0; k < slots->count; k++)
		ret[k] = (struct mb_kind_row){ .gpu_s = INFINITY, .forward_s = INFINITY };
	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++) {
		struct mb_kind_row rows[MB_KIND_COUNT];

		if (v->alive[i] != MB_WORTH && v->alive_offloaded[i] != MB_WORTH)
			continue;
		mb_visit_least_rows(v, i, rows);
		for (int k = 0; k < slots->count; k++) {
			ret[k].gpu_s = fmin(ret[k].gpu_s, rows[k].gpu_s);
			ret[k].forward_s = fmin(ret[k].forward_s, rows[k].forward_s);
		}
	}
}

/* A worker's, made once. */
static struct mb_visit *visit_of(struct mb_walk *w, struct mb_worker *k)
{
	size_t choices = (size_t)w->s->axis[MB_P_RECOMPUTE].count;
	struct mb_visit *v = k->visit;

	if (v)
		return v;
	v = k->visit = mb_arena_alloc(&k->arena, sizeof *v);
	v->walk = w;
	v->w = k;
	v->floors = mb_arena_alloc(&k->arena, MB_MAX_STAGES * sizeof *v->floors);
	v->alive = mb_arena_alloc(&k->arena, 4 * choices);
	v->alive_offloaded = v->alive + choices;
	v->worth = v->alive + 2 * choices;
	v->worth_offloaded = v->alive + 3 * choices;
	v->may_fit = mb_arena_alloc(&k->arena, choices * sizeof *v->may_fit);
	return v;
}

/* Splits under the node with the bounds of their steps. */
static struct waiting *collect(struct mb_visit *v, const struct mb_sizes *n, int *ret_count)
{
	static const struct mb_hold nothing = { .least_finish_s = 0 };
	struct mb_walk *w = v->walk;
	int vps[MB_MAX_SIZES], vp_count = mb_space_sizes(w->s, MB_P_VP, &v->w->p, vps), room = 0;
	struct mb_treated none = { MB_TREAT_NONE, 0, NULL, NULL };
	struct mb_kind_row least[MB_KIND_COUNT];
	struct waiting *waiting;

	*ret_count = 0;
	fill_least_alive(v, least);
	for (int r = 0; r < v->w->p.pp; r++)
		v->hold[r] = &nothing;
	for (int i = 0; i < vp_count; i++) {
		const struct mb_split_table *t = mb_splits_of(&w->splits, v->w->p.pp, vps[i]);

		room += t ? t->count : 0;
	}
	waiting = malloc((size_t)(room + 1) * sizeof *waiting);
	for (int i = 0; i < vp_count && waiting; i++) {
		const struct mb_split_table *t = mb_splits_of(&w->splits, v->w->p.pp, vps[i]);
		struct mb_plan p = v->w->p;

		mb_space_set_vp(w->s, vps[i], &p);
		if (!t || !t->legal || mb_legality_broken(&w->legality, &p, MB_P_VP) >= 0)
			continue;
		for (int row = 0; row < t->count && (row < 2 || !w->dive); row++) {
			if (!mb_walk_is_near(w, n, vps[i], &t->rows[row].plan))
				continue;
			v->table = t;
			v->row = &t->rows[row];
			mb_visit_pieces(v);
			mb_visit_costs(v, least, &none, &v->costs);
			waiting[(*ret_count)++] = (struct waiting){ mb_visit_step(v, &v->costs, 0, 0, -1), t, row };
		}
	}
	if (waiting)
		qsort(waiting, (size_t)*ret_count, sizeof *waiting, by_bound);
	return waiting;
}

bool mb_visit_node(struct mb_walk *w, struct mb_worker *k, const struct mb_sizes *n)
{
	struct mb_visit *v = visit_of(w, k);
	struct waiting *waiting;
	int count_waiting;

	if (!mb_visit_judge_node(v, n))
		return false;
	waiting = collect(v, n, &count_waiting);
	visit_waiting(v, waiting, count_waiting);
	free(waiting);
	return true;
}
