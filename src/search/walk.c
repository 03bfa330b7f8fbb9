#include "search/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/floors.h"

/* ---- enumeration ---- */

static const enum mb_plan_key size_axes[] = { MB_P_TP, MB_P_CP, MB_P_PP, MB_P_EP, MB_P_ETP, MB_P_MBS };
enum { SIZE_AXES = sizeof size_axes / sizeof size_axes[0] };

static void set_size(struct mb_plan *p, enum mb_plan_key axis, int value)
{
	int *at[] = { [MB_P_TP] = &p->tp, [MB_P_CP] = &p->cp, [MB_P_PP] = &p->pp, [MB_P_EP] = &p->ep, [MB_P_ETP] = &p->etp,
		[MB_P_MBS] = &p->micro_batch_size, [MB_P_VP] = &p->vp };

	*at[axis] = value;
}

static bool add_node(struct mb_walk *w, const struct mb_plan *p)
{
	if (w->node_count == w->node_capacity) {
		int capacity = w->node_capacity ? 2 * w->node_capacity : 4096;
		struct mb_sizes *nodes = realloc(w->nodes, (size_t)capacity * sizeof *nodes);

		if (!nodes)
			return false;
		w->nodes = nodes;
		w->node_capacity = capacity;
	}
	w->nodes[w->node_count++] = (struct mb_sizes){ p->tp, p->cp, p->pp, p->ep, p->etp, p->micro_batch_size, false, 0 };
	return true;
}

/* Points that rules about the inner axes exclude, under so many splits. */
static void tally_class(struct mb_walk *w, const struct mb_legal_class *c, const struct mb_groups *g, int layers, double splits)
{
	double times[MB_GROWTHS], tail = 0, *rules = w->rules.rules;

	for (int k = 0; k < MB_GROWTHS; k++) {
		times[k] = mb_legality_choices(&w->legality, k, layers);
		tail += c->tail[k] * times[k];
	}
	for (int r = 0; r < mb_rule_count; r++) {
		double beside = 0;

		for (int k = 0; k < MB_GROWTHS; k++)
			beside += c->broken[k][r] * times[k];
		rules[r] += splits * (g->broken[r] * c->features * tail + g->count * (c->broken_features[r] * tail + beside));
	}
}

/* All virtual stages and splits under sizes; broken: the rule that the sizes break already, or -1. */
static bool tally_splits(struct mb_walk *w, struct mb_plan *p, int broken)
{
	int vps[MB_MAX_SIZES], n = mb_space_sizes(w->s, MB_P_VP, p, vps);
	bool legal = false;

	for (int i = 0; i < n; i++) {
		const struct mb_split_table *t = mb_splits_of(&w->splits, p->pp, vps[i]);
		const struct mb_legal_class *c;
		const struct mb_groups *g;
		int layers, rule = broken;
		double points;

		if (!t)
			continue;
		p->vp = vps[i];
		if (w->s->derive_p2p)
			p->overlap_p2p_comm = p->vp > 1;
		c = mb_legality_class(&w->legality, p);
		g = mb_legality_groups(&w->legality, p);
		layers = mb_space_recompute_layers(w->s, p->pp, p->vp);
		points = t->count * mb_class_candidates(&w->legality, c, g, layers);
		w->rules.considered += points;
		if (rule < 0)
			rule = mb_legality_broken(&w->legality, p, MB_P_VP);
		if (rule < 0 && !t->legal) {
			mb_axis_copy(MB_P_SPLIT, &t->rows[0].plan, p);
			rule = mb_legality_broken(&w->legality, p, MB_P_SPLIT);
		}
		if (rule >= 0) {
			w->rules.rules[rule] += points;
		} else {
			tally_class(w, c, g, layers, t->count);
			legal |= t->legal;
		}
	}
	p->vp = 1;
	return legal;
}

static bool enumerate(struct mb_walk *w, struct mb_plan *p, int level, int broken)
{
	int sizes[MB_MAX_SIZES], n;

	if (level == SIZE_AXES)
		return !tally_splits(w, p, broken) || add_node(w, p);
	n = mb_space_sizes(w->s, size_axes[level], p, sizes);
	for (int i = 0; i < n; i++) {
		set_size(p, size_axes[level], sizes[i]);
		if (!enumerate(w, p, level + 1, broken >= 0 ? broken : mb_legality_broken(&w->legality, p, size_axes[level])))
			return false;
	}
	return true;
}

bool mb_walk_init(struct mb_walk *w, struct mb_space *s)
{
	struct mb_plan p = s->q->c.run.plan;

	memset(w, 0, sizeof *w);
	w->s = s;
	mb_splits_fill(s, &w->splits);
	mb_legality_fill(s, &w->legality);
	p.vp = 1;
	return enumerate(w, &p, 0, -1);
}

void mb_walk_free(struct mb_walk *w)
{
	free(w->nodes);
}

/* ---- a pass ---- */

static int by_floor(const void *a, const void *b)
{
	const struct mb_sizes *x = a, *y = b;
	const int orders[] = { x->tp - y->tp, x->cp - y->cp, x->pp - y->pp, x->ep - y->ep, x->etp - y->etp, x->mbs - y->mbs };

	if (x->step_s < y->step_s || x->step_s > y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (orders[i])
			return orders[i];
	return 0;
}

static int by_rows(const void *a, const void *b)
{
	const struct mb_sizes *x = a, *y = b;
	const int orders[] = { x->tp - y->tp, x->cp - y->cp, x->mbs - y->mbs, x->ep - y->ep, x->etp - y->etp, x->pp - y->pp };

	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (orders[i])
			return orders[i];
	return 0;
}

/* Neighbours in this order share the floor of their layers. */
static void fill_floors(struct mb_walk *w, struct mb_worker *k)
{
	double layer_s[MB_KIND_COUNT];
	struct mb_sizes last = { 0 };
	struct mb_floors floors;

	mb_floors_init(&floors, &w->legality, &k->cache.slots);
	qsort(w->nodes, (size_t)w->node_count, sizeof *w->nodes, by_rows);
	for (int i = 0; i < w->node_count; i++) {
		struct mb_sizes *n = &w->nodes[i];

		if (n->tp != last.tp || n->cp != last.cp || n->mbs != last.mbs || n->ep != last.ep || n->etp != last.etp) {
			struct mb_plan p;

			mb_node_plan(k, n, &p);
			mb_floors_of(&floors, &p, mb_legality_groups(&w->legality, &p), layer_s);
			last = *n;
		}
		n->step_s = mb_node_step_floor(k, n, layer_s);
	}
	mb_floors_free(&floors);
	qsort(w->nodes, (size_t)w->node_count, sizeof *w->nodes, by_floor);
	w->floored = true;
}

static double points_under(struct mb_walk *w, const struct mb_worker *k, const struct mb_sizes *n)
{
	int vps[MB_MAX_SIZES], count;
	double points = 0;
	struct mb_plan p;

	mb_node_plan(k, n, &p);
	count = mb_space_sizes(w->s, MB_P_VP, &p, vps);
	for (int i = 0; i < count; i++) {
		const struct mb_split_table *t = mb_splits_of(&w->splits, n->pp, vps[i]);

		p.vp = vps[i];
		if (w->s->derive_p2p)
			p.overlap_p2p_comm = p.vp > 1;
		if (t && t->legal && mb_legality_broken(&w->legality, &p, MB_P_VP) < 0)
			points += t->count * mb_class_points(&w->legality, mb_legality_class(&w->legality, &p), mb_legality_groups(&w->legality, &p),
			                                     mb_space_recompute_layers(w->s, p.pp, p.vp));
	}
	return points;
}

static double limit_of(const struct mb_best *b)
{
	double limit = b->max_step_s;

	if (b->aim == MB_AIM_STEP && b->count == b->wanted && b->has_fit)
		limit = fmin(limit, fmax(b->of[b->count - 1].step_s, b->fit.step_s));
	return limit;
}

/* Groups and features too slow without any recompute need no look with it. */
static void narrow(const struct mb_walk *w, struct mb_worker *k, const struct mb_sizes *n)
{
	const struct mb_legality *l = &w->legality;
	double layer_s[MB_KIND_COUNT], *step_s;

	if (l->s->axis[MB_P_RECOMPUTE].of[l->rep[0]].plan.recompute != MB_RECOMPUTE_NONE || k->rows->extreme_count == 0
	    || (k->rows->narrowed_s > 0 && k->limit_s <= k->rows->narrowed_s) || w->best->aim == MB_AIM_CLOSEST)
		return;
	step_s = mb_arena_alloc(&k->rows->arena, (size_t)k->rows->extreme_count * sizeof *step_s);
	for (int e = 0; e < k->rows->extreme_count; e++) {
		const struct mb_kind_row *plain = mb_rows_plain(&k->cache, k->rows, k->rows->extremes[e].group, k->rows->extremes[e].f, 0);

		for (int i = 0; i < k->cache.slots.count; i++)
			layer_s[i] = plain[i].gpu_s;
		step_s[e] = mb_node_step_floor(k, n, layer_s);
	}
	mb_rows_narrow(k->rows, k->limit_s, step_s);
}

static enum mb_bound enter(struct mb_walk *w, struct mb_worker *k, struct mb_sizes *n)
{
	enum mb_bound bound = mb_best_bound(w->best, n->step_s, 0);
	const struct mb_kind_row *least;
	double layer_s[MB_KIND_COUNT];

	if (bound != MB_WORTH)
		return bound;
	mb_node_enter(k, n, limit_of(w->best));
	least = mb_rows_least_any(&k->cache, k->rows);
	for (int i = 0; i < k->cache.slots.count; i++)
		layer_s[i] = least[i].gpu_s;
	k->states_bytes = mb_node_states_floor(k);
	if (w->best->aim != MB_AIM_CLOSEST && k->states_bytes * (1 - 1e-9) > k->limit_bytes)
		return MB_BY_MEMORY;
	n->step_s = fmax(n->step_s, mb_node_step_floor(k, n, layer_s));
	narrow(w, k, n);
	return mb_best_bound(w->best, n->step_s, k->states_bytes);
}

/* Every node in the order of its floor. */
static void run_pass(struct mb_walk *w, struct mb_worker *k)
{
	w->tally = w->rules;
	for (int i = 0; i < w->node_count; i++) {
		enum mb_bound bound = enter(w, k, &w->nodes[i]);

		if (bound == MB_WORTH && !mb_visit_node(w, k, &w->nodes[i]))
			bound = MB_BY_MEMORY;
		if (bound != MB_WORTH)
			w->tally.bounds[bound == MB_BY_TIME ? MB_COUNT_TIME : MB_COUNT_MEMORY] += points_under(w, k, &w->nodes[i]);
		if (w->options->progress && i % 64 == 0)
			w->options->progress(w->options->context, (double)i / w->node_count);
	}
}

/*
 * A first look at a likely part of the space (no offloading, two splits each) for the limit of the pass over all of
 * it: with a good limit from the start little else is looked at. The look itself widens its limit until it holds as many
 * plans as are wanted.
 */
static double dive(struct mb_walk *w, struct mb_worker *k)
{
	struct mb_best *best = w->best, empty = *best;
	double least = w->node_count > 0 ? w->nodes[0].step_s : 0, factor = 1, limit = empty.max_step_s;

	w->dive = true;
	while (factor < 2.5) {
		factor *= 1.08;
		*best = empty;
		best->max_step_s = fmin(least * factor, empty.max_step_s);
		run_pass(w, k);
		qsort(w->nodes, (size_t)w->node_count, sizeof *w->nodes, by_floor);
		if (best->count == best->wanted && best->has_fit) {
			limit = fmin(limit, fmax(best->of[best->count - 1].step_s, best->fit.step_s));
			break;
		}
	}
	w->dive = false;
	*best = empty;
	return limit;
}

static void run_limited(struct mb_walk *w, struct mb_worker *k)
{
	double limit = w->best->max_step_s;

	w->best->max_step_s = dive(w, k) * (1 + 1e-9);
	run_pass(w, k);
	w->best->max_step_s = limit;
}

bool mb_walk_run(struct mb_walk *w, struct mb_best *best, const struct mb_search_options *options)
{
	struct mb_worker k;

	w->best = best;
	w->options = options;
	if (!mb_worker_init(&k, &w->legality, &w->splits)) {
		mb_worker_free(&k);
		return false;
	}
	best->fit_peak_bytes = 0.97 * (double)w->s->c.hardware.usable_bytes;
	if (!w->floored)
		fill_floors(w, &k);
	for (int i = 0; i < w->node_count && !k.rows; i++) {
		mb_node_enter(&k, &w->nodes[i], INFINITY);
		k.cache.graphs_help = k.rows->groups->count > 0 && mb_rows_graphs_help(&k.cache, k.rows);
	}
	mb_rows_free(&k.cache);
	if (best->aim == MB_AIM_STEP)
		run_limited(w, &k);
	else
		run_pass(w, &k);
	mb_worker_free(&k);
	return true;
}
