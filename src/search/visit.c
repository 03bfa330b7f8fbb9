/* Under one node: splits by their bounds, then groups and features. */
#include "search/visit.h"

#include <math.h>
#include <stdlib.h>

#include "base/larger.h"

/* What splits with so many virtual stages have in common. */
struct stages {
	const struct mb_split_table *table;
	const struct mb_legal_class *class;
	int layers;
	double points;                  /* legal, under one split */
};

/* A split of the node's layers, waiting for its turn. */
struct waiting {
	double step_s;
	const struct stages *stages;
	int row;
};

static bool overlaps_experts(const struct mb_visit *v, const struct mb_feature *f)
{
	return v->walk->s->axis[MB_P_EP_OVERLAP].of[f->overlap].plan.overlap_moe_expert_parallel_comm;
}

static bool has_features(const struct mb_visit *v, bool overlap)
{
	for (int i = 0; i < v->class->count; i++)
		if (overlaps_experts(v, &v->class->of[i].f) == overlap)
			return true;
	return false;
}

/* The bound that knows idle time is dear: under a node where it excludes little, plans do without until they are evaluated. */
static bool idle_pays(const struct mb_visit *v)
{
	return v->idle_tried < 64 || 3 * v->idle_cut > v->idle_tried;
}

/* Graphs and overlaps only add memory: who looks for the least does without them where the query lets him. */
static bool only_adds_memory(const struct mb_visit *v, const struct mb_feature *f, int group)
{
	const struct mb_space *s = v->walk->s;
	const struct mb_group *g = &v->w->rows->groups->of[group];

	return v->w->goal.aim == MB_AIM_CLOSEST && (f->graph > 0 || f->overlap > 0 || f->shared > 0 || g->tp_overlap > 0)
	       && s->axis[MB_P_GRAPH].of[0].plan.cuda_graph_impl == MB_GRAPH_NONE
	       && !s->axis[MB_P_EP_OVERLAP].of[0].plan.overlap_moe_expert_parallel_comm;
}

static void try_features(struct mb_visit *v, const struct mb_legal *y, struct mb_visit_choice *c)
{
	enum mb_bound bound = MB_WORTH;

	c->legal = y;
	c->limit = mb_node_peak_limit(v->w, v->w->rows->groups->of[c->group].sp, y->f.dispatcher);
	if (only_adds_memory(v, &y->f, c->group)) {
		mb_visit_count(v, MB_BY_MEMORY, mb_legality_grown(&v->walk->legality, y->points, v->layers));
		return;
	}
	if (mb_visit_recompute(v, v->walk->legality.rep[0])->recompute == MB_RECOMPUTE_NONE) {     /* whatever is recomputed takes longer */
		bound = mb_visit_model_bound(v, mb_rows_model_s(&v->w->cache, v->w->rows, c->group, y->f, 0));
		if (bound == MB_WORTH) {
			mb_visit_costs(v, mb_rows_plain(&v->w->cache, v->w->rows, c->group, y->f, 0), NULL, &v->costs);
			bound = mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, c->transfer_s, c->hop_s, -1), 0);
		}
		if (bound == MB_WORTH && mb_visit_may_idle(v) && idle_pays(v)) {
			bound = mb_best_bound(&v->w->goal, mb_visit_tight_step(v, &v->costs, c->transfer_s, c->hop_s, v->flown == MB_FLIGHTS_OVERLAP, -1), 0);
			v->idle_tried++;
			v->idle_cut += bound != MB_WORTH;
		}
	}
	if (bound != MB_WORTH)
		mb_visit_count(v, bound, mb_legality_grown(&v->walk->legality, y->points, v->layers));
	else
		mb_visit_try(v, c);
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

/* Groups and features with EP overlap, or those without: they differ in what is in flight. */
static void visit_features(struct mb_visit *v, bool overlap)
{
	const struct mb_groups *groups = v->w->rows->groups;
	bool open;

	if (!has_features(v, overlap))
		return;
	v->flown = overlap ? MB_FLIGHTS_OVERLAP : MB_FLIGHTS_PLAIN;
	open = mb_visit_judge_closely(v);
	for (int g = 0; g < groups->count; g++) {
		struct mb_visit_choice c;

		if (open)
			start_group(v, g, &c);
		for (int i = 0; i < v->class->count; i++) {
			const struct mb_legal *y = &v->class->of[i];

			if (overlaps_experts(v, &y->f) != overlap)
				continue;
			if (open)
				try_features(v, y, &c);
			else
				mb_visit_count(v, v->at_hand.shut_by, mb_legality_grown(&v->walk->legality, y->points, v->layers));
		}
	}
}

static void visit_split(struct mb_visit *v, const struct stages *stages)
{
	mb_visit_ranks(v);
	mb_visit_floors(v);
	v->flown = has_features(v, true) ? MB_FLIGHTS_EITHER : MB_FLIGHTS_PLAIN;
	if (!mb_visit_judge_split(v)) {
		mb_visit_count(v, v->under_split.shut_by, stages->points);
		return;
	}
	mb_visit_holds(v);
	visit_features(v, false);
	visit_features(v, true);
}

/* ---- a node ---- */

static int by_bound(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->step_s < y->step_s || x->step_s > y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	if (x->stages != y->stages)
		return x->stages < y->stages ? -1 : 1;
	return x->row - y->row;
}

static void visit_waiting(struct mb_visit *v, const struct waiting *waiting, int n)
{
	for (int i = 0; i < n; i++) {
		const struct stages *stages = waiting[i].stages;
		enum mb_bound bound = mb_best_bound(&v->w->goal, waiting[i].step_s, 0);

		v->table = stages->table;
		v->row = &v->table->rows[waiting[i].row];
		v->layers = stages->layers;
		v->class = stages->class;
		if (bound != MB_WORTH)
			mb_visit_count(v, bound, stages->points);
		else
			visit_split(v, stages);
	}
}

/* Device time of a layer that no choice worth a look under the node goes below. */
static void fill_least_alive(struct mb_visit *v, struct mb_kind_row *ret)
{
	const struct mb_slots *slots = &v->w->cache.slots;

	for (int k = 0; k < slots->count; k++)
		ret[k] = (struct mb_kind_row){ .gpu_s = INFINITY, .forward_s = INFINITY };
	for (int i = 0; i < v->under_node.open_count; i++) {
		struct mb_kind_row rows[MB_KIND_COUNT];

		mb_visit_least_rows(v, v->under_node.open[i], rows);
		for (int k = 0; k < slots->count; k++) {
			ret[k].gpu_s = mb_smaller(ret[k].gpu_s, rows[k].gpu_s);
			ret[k].forward_s = mb_smaller(ret[k].forward_s, rows[k].forward_s);
		}
	}
}

static void start_judged(struct mb_arena *arena, size_t choices, struct mb_judged *ret)
{
	ret->open = mb_arena_alloc(arena, choices * sizeof *ret->open);
	ret->worth = mb_arena_alloc(arena, choices * sizeof *ret->worth);
	ret->worth_offloaded = mb_arena_alloc(arena, choices * sizeof *ret->worth_offloaded);
	ret->may_fit = mb_arena_alloc(arena, choices * sizeof *ret->may_fit);
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
	v->flights = mb_arena_alloc(&k->arena, MB_FLIGHT_KINDS * sizeof *v->flights);
	start_judged(&k->arena, choices, &v->under_node);
	start_judged(&k->arena, choices, &v->under_split);
	start_judged(&k->arena, choices, &v->at_hand);
	v->forward_ps = mb_arena_alloc(&k->arena, MB_MAX_CHUNKS * sizeof *v->forward_ps);
	v->backward_ps = mb_arena_alloc(&k->arena, MB_MAX_CHUNKS * sizeof *v->backward_ps);
	v->finish_ps = mb_arena_alloc(&k->arena, MB_MAX_STAGES * sizeof *v->finish_ps);
	v->known = mb_arena_alloc(&k->arena, MB_KNOWN_PIECES * sizeof *v->known);
	v->least = mb_arena_alloc(&k->arena, (size_t)(w->splits.piece_count + 1) * sizeof *v->least);
	v->least_hold_s = mb_arena_alloc(&k->arena, (size_t)(w->splits.holding_count + 1) * sizeof *v->least_hold_s);
	return v;
}

/* Tables under the node that no rule about virtual stages and splits excludes. */
static int legal_stages(struct mb_visit *v, struct stages ret[MB_MAX_SIZES], int *ret_splits)
{
	struct mb_walk *w = v->walk;
	const struct mb_split_table *tables = NULL;
	int n = mb_splits_tables(&w->splits, v->w->p.pp, &tables), count = 0;

	*ret_splits = 0;
	for (int i = 0; i < n; i++) {
		struct stages s = { .table = &tables[i] };
		struct mb_plan p = v->w->p;

		mb_space_set_vp(w->s, s.table->vp, &p);
		if (!s.table->legal || mb_legality_broken(&w->legality, &p, MB_P_VP) >= 0)
			continue;
		s.class = mb_legality_class(&w->legality, &p);
		s.layers = mb_space_recompute_layers(w->s, p.pp, p.vp);
		s.points = mb_class_points(&w->legality, s.class, v->w->rows->groups, s.layers);
		*ret_splits += s.table->count;
		ret[count++] = s;
	}
	return count;
}

/* The same by the work of each rank alone, which many splits share. */
static double least_work(struct mb_visit *v, const struct mb_kind_row *least)
{
	const struct mb_slots *slots = &v->w->cache.slots;
	double most = 0;

	for (int i = 0; i < v->row->run_count; i++) {
		int holding = v->row->holding[v->row->runs[i].first];
		double *s = &v->least_hold_s[holding];

		if (*s < 0) {
			const uint16_t *layers = v->walk->splits.holdings[holding].kinds;

			*s = 0;
			for (int k = 0; k < slots->count; k++)
				*s += layers[slots->kind[k]] > 0 ? layers[slots->kind[k]] * least[k].gpu_s : 0;
		}
		most = mb_larger(most, *s);
	}
	return (double)v->w->micro_batches * most;
}

/* Bound of the step under the split by the least times of its pieces, each worked out once for all splits. */
static double least_step(struct mb_visit *v, const struct mb_kind_row *least)
{
	const struct mb_splits *s = v->w->splits;
	double work_s = least_work(v, least);

	if (mb_best_bound(&v->w->goal, work_s, 0) != MB_WORTH)
		return work_s;
	for (int i = 0; i < v->row->piece_count; i++) {
		struct mb_piece_time *t = &v->least[v->row->pieces[i]];

		if (t->step_s < 0) {
			const double *layers = mb_piece_layers(s, v->row->pieces[i]);

			*t = (struct mb_piece_time){ 0, 0 };
			for (int k = 0; k < s->slots.count; k++) {
				t->step_s += layers[k] > 0 ? layers[k] * least[k].gpu_s : 0;
				t->forward_s += layers[k] > 0 ? layers[k] * least[k].forward_s : 0;
			}
		}
		v->costs.step_s[i] = t->step_s;
		v->costs.forward_s[i] = t->forward_s;
	}
	return mb_visit_step(v, &v->costs, 0, 0, -1);
}

/*
 * Splits with fewest layers on a rank come first: how many of the table are not too slow for that alone. ret_slow_s: no
 * step of the others is shorter.
 */
static int fast_rows(const struct mb_visit *v, const struct mb_split_table *t, const struct mb_kind_row *least, double *ret_slow_s)
{
	double shortest = INFINITY, pass_s;

	for (int k = 0; k < v->w->cache.slots.count; k++)
		if (v->w->cache.slots.kind[k] < MB_MAX_LAYER_KINDS)
			shortest = mb_smaller(shortest, least[k].gpu_s);
	pass_s = (double)v->w->micro_batches * shortest;
	*ret_slow_s = INFINITY;
	for (int row = 0; row < t->count; row++) {
		*ret_slow_s = pass_s * t->rows[row].max_layers;
		if (mb_best_bound(&v->w->goal, *ret_slow_s, 0) != MB_WORTH)
			return row;
	}
	*ret_slow_s = INFINITY;
	return t->count;
}

/* Before least_step: forgets the pieces' times, and leaves the ranks no states. */
static void start_splits(struct mb_visit *v)
{
	static const struct mb_hold nothing = { .least_finish_s = 0 };

	for (int r = 0; r < v->w->p.pp; r++)
		v->hold[r] = &nothing;
	for (int i = 0; i < v->walk->splits.piece_count; i++)
		v->least[i].step_s = -1;
	for (int i = 0; i < v->walk->splits.holding_count; i++)
		v->least_hold_s[i] = -1;
}

double mb_visit_least_step(struct mb_walk *w, struct mb_worker *k)
{
	struct mb_visit *v = visit_of(w, k);
	struct stages stages[MB_MAX_SIZES];
	double least = INFINITY;
	int splits, count;

	if (!k->rows->floors || w->near)
		return 0;
	count = legal_stages(v, stages, &splits);
	start_splits(v);
	for (int i = 0; i < count; i++) {
		double slow_s, step_s;
		int rows = fast_rows(v, stages[i].table, k->rows->floors, &slow_s);

		least = mb_smaller(least, slow_s);
		v->table = stages[i].table;
		for (int row = 0; row < rows; row++) {
			v->row = &v->table->rows[row];
			step_s = least_step(v, k->rows->floors);
			if (mb_best_bound(&k->goal, step_s, 0) == MB_WORTH)
				return 0;
			least = mb_smaller(least, step_s);
		}
	}
	return least;
}

/* Splits under the node with the bounds of their steps; those too slow are counted at once. */
static int collect(struct mb_visit *v, const struct mb_sizes *n, const struct stages *stages, int count, struct waiting *ret)
{
	struct mb_kind_row least[MB_KIND_COUNT];
	int waiting = 0;

	fill_least_alive(v, least);
	start_splits(v);
	for (int i = 0; i < count; i++) {
		double slow_s;
		int rows = fast_rows(v, stages[i].table, least, &slow_s);

		v->table = stages[i].table;
		if (rows < v->table->count)
			mb_visit_count(v, MB_BY_TIME, (v->table->count - rows) * stages[i].points);
		for (int row = 0; row < rows; row++) {
			enum mb_bound bound;

			if (!mb_walk_is_near(v->walk, n, v->table->vp, &v->table->rows[row].plan))
				continue;
			v->row = &v->table->rows[row];
			ret[waiting] = (struct waiting){ least_step(v, least), &stages[i], row };
			bound = mb_best_bound(&v->w->goal, ret[waiting].step_s, 0);
			if (bound == MB_WORTH)
				waiting++;
			else
				mb_visit_count(v, bound, stages[i].points);
		}
	}
	qsort(ret, (size_t)waiting, sizeof *ret, by_bound);
	return waiting;
}

bool mb_visit_node(struct mb_walk *w, struct mb_worker *k, const struct mb_sizes *n)
{
	struct mb_visit *v = visit_of(w, k);
	struct stages stages[MB_MAX_SIZES];
	struct waiting *waiting;
	int splits, count;

	if (!mb_visit_judge_node(v, n))
		return false;
	count = legal_stages(v, stages, &splits);
	v->passes = mb_node_passes(k, n);
	v->idle_tried = v->idle_cut = 0;
	waiting = malloc((size_t)(splits + 1) * sizeof *waiting);
	if (waiting)
		visit_waiting(v, waiting, collect(v, n, stages, count, waiting));
	free(waiting);
	return true;
}
