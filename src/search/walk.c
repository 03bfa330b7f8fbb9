#include "search/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/larger.h"

void mb_tally_add(struct mb_tally *to, const struct mb_tally *from)
{
	to->considered += from->considered;
	to->costed += from->costed;
	to->evaluated += from->evaluated;
	to->unsound += from->unsound;
	for (int i = 0; i < MB_MAX_RULES; i++)
		to->rules[i] += from->rules[i];
	for (int i = 0; i < MB_COUNTS; i++)
		to->bounds[i] += from->bounds[i];
}

/* ---- a pass ---- */

static int by_floor(const void *a, const void *b)
{
	const struct mb_sizes *x = *(struct mb_sizes *const *)a, *y = *(struct mb_sizes *const *)b;
	const int orders[] = { x->tp - y->tp, x->cp - y->cp, x->pp - y->pp, x->ep - y->ep, x->etp - y->etp, x->mbs - y->mbs };

	if (x->step_s < y->step_s || x->step_s > y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (orders[i])
			return orders[i];
	return 0;
}

/* Sizes with the best plans so far first, then those that may have them, so that what is worth a look is soon known. */
static int by_promise(const void *a, const void *b)
{
	const struct mb_sizes *x = *(struct mb_sizes *const *)a, *y = *(struct mb_sizes *const *)b;

	if (x->found_s < y->found_s || x->found_s > y->found_s)
		return x->found_s < y->found_s ? -1 : 1;
	if (x->guess_s < y->guess_s || x->guess_s > y->guess_s)
		return x->guess_s < y->guess_s ? -1 : 1;
	return by_floor(a, b);
}

static int by_rows(const void *a, const void *b)
{
	const struct mb_sizes *x = a, *y = b;
	const int orders[] = { x->tp - y->tp, x->cp - y->cp, x->mbs - y->mbs, x->ep - y->ep, x->etp - y->etp, (int)x->facts - (int)y->facts,
		x->pp - y->pp };

	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (orders[i])
			return orders[i];
	return 0;
}

/* Small micro-batches on many ranks first: what is likely to need the least memory. */
static int by_memory(const void *a, const void *b)
{
	const struct mb_sizes *x = *(struct mb_sizes *const *)a, *y = *(struct mb_sizes *const *)b;
	long long ranks_x = (long long)x->tp * x->cp * x->pp * x->ep, ranks_y = (long long)y->tp * y->cp * y->pp * y->ep;

	if (x->mbs != y->mbs)
		return x->mbs - y->mbs;
	return ranks_x != ranks_y ? ranks_x > ranks_y ? -1 : 1 : by_floor(a, b);
}

static void sort(struct mb_walk *w, int count, int (*order)(const void *a, const void *b))
{
	if (count > 0)
		qsort(w->order, (size_t)count, sizeof(struct mb_sizes *), order);
}

/* Nodes that a pass entered to the front, in the order of what they promise; the others stay as they are. */
static void promote(struct mb_walk *w)
{
	struct mb_sizes **entered = w->order + w->node_count;
	int count = 0, to = w->node_count;

	for (int i = w->node_count - 1; i >= 0; i--) {
		if (w->order[i]->guess_s < INFINITY)
			entered[count++] = w->order[i];
		else
			w->order[--to] = w->order[i];
	}
	if (count > 0)
		memcpy(w->order, entered, (size_t)count * sizeof *entered);
	sort(w, count, by_promise);
}

static bool same_layers(const struct mb_sizes *a, const struct mb_sizes *b)
{
	return a->tp == b->tp && a->cp == b->cp && a->mbs == b->mbs && a->ep == b->ep && a->etp == b->etp && a->facts == b->facts;
}

/* Nodes [from, to) of those in order of their rows: neighbours share their layers. */
static void fill_block(struct mb_walk *w, struct mb_worker *k, int from, int to)
{
	double model_s[MB_FACTS];       /* of these tp, cp and mbs; 0: not known yet */

	for (int i = from; i < to; i++) {
		struct mb_sizes *n = &w->nodes[i], *last = i > from ? n - 1 : NULL;
		struct mb_plan p;

		mb_node_plan(k, n, &p);
		if (!last || n->tp != last->tp || n->cp != last->cp || n->mbs != last->mbs)
			memset(model_s, 0, sizeof model_s);
		if (!(model_s[n->facts] > 0))
			model_s[n->facts] = mb_floors_crude(&k->floors, &p, mb_legality_groups(&w->legality, &p), false);
		n->step_s = mb_node_passes(k, n) * model_s[n->facts];
		n->guess_s = n->found_s = INFINITY;
	}
}

static void fill_blocks(void *context, int thread)
{
	enum { BLOCK = 1024 };
	struct mb_walk *w = context;

	for (int from = BLOCK * mb_pool_next(&w->next); from < w->node_count; from = BLOCK * mb_pool_next(&w->next))
		fill_block(w, &w->workers[thread], from, from + BLOCK < w->node_count ? from + BLOCK : w->node_count);
}

static bool fill_floors(struct mb_walk *w)
{
	size_t count = (size_t)w->node_count;

	if (count > 0)
		qsort(w->nodes, count, sizeof *w->nodes, by_rows);
	for (int i = 1; i < w->node_count; i++)
		w->nodes[i].family = w->nodes[i - 1].family + !same_layers(&w->nodes[i], &w->nodes[i - 1]);
	w->families = calloc(count > 0 ? (size_t)w->nodes[count - 1].family + 1 : 1, sizeof *w->families);
	w->order = malloc((2 * count + 1) * sizeof(struct mb_sizes *));
	if (!w->families || !w->order)
		return false;
	w->next = 0;
	mb_pool_start(w->threads, fill_blocks, w);
	for (size_t i = 0; i < count; i++)
		w->order[i] = &w->nodes[i];
	sort(w, w->node_count, by_floor);
	return w->floored = true;
}

/* Makes the bound of a node that is reached at all the next larger one. */
static void refine(struct mb_walk *w, struct mb_worker *k, struct mb_sizes *n)
{
	double *known = &w->families[n->family].model_s[++n->bound], model_s;

	__atomic_load(known, &model_s, __ATOMIC_RELAXED);
	if (!(model_s > 0)) {
		const struct mb_groups *groups;
		struct mb_plan p;

		mb_node_plan(k, n, &p);
		groups = mb_legality_groups(&w->legality, &p);
		model_s = n->bound == MB_BOUND_PARTS ? mb_floors_crude(&k->floors, &p, groups, true) : mb_floors_model(&k->floors, &p, groups, NULL, NULL);
		__atomic_store(known, &model_s, __ATOMIC_RELAXED);
	}
	n->step_s = mb_larger(n->step_s, mb_node_passes(k, n) * model_s);
}

/* No step is shorter: where the passes over the nodes begin. */
static double least_step_s(struct mb_walk *w)
{
	double least = INFINITY;

	for (int i = 0; i < w->node_count && w->order[i]->step_s < least; i++) {
		if (w->order[i]->bound == MB_BOUND_UNROUTED)
			refine(w, &w->workers[0], w->order[i]);
		least = mb_smaller(least, w->order[i]->step_s);
	}
	return w->node_count > 0 ? least : 0;
}

/* Groups and features too slow without any recompute need no look with it. */
static void narrow(struct mb_worker *k, const struct mb_sizes *n)
{
	double *step_s;

	if ((k->rows->narrowed_s > 0 && k->limit_s <= k->rows->narrowed_s) || k->goal.aim == MB_AIM_CLOSEST)
		return;
	step_s = mb_arena_alloc(&k->rows->arena, (size_t)(k->rows->extreme_count + 1) * sizeof *step_s);
	k->rows->floors = mb_arena_alloc(&k->rows->arena, (size_t)k->cache.slots.count * sizeof *k->rows->floors);
	mb_floors_model(&k->floors, &k->rows->p, k->rows->groups, step_s, k->rows->floors);
	for (int e = 0; e < k->rows->extreme_count; e++)        /* what holds for other pipelines of these sizes as well */
		step_s[e] *= mb_node_micro_batches(k, n) / n->pp;
	mb_rows_narrow(&k->cache, k->rows, k->limit_s, step_s);
}

/* By what is known of the node already. */
static enum mb_bound known_bound(const struct mb_worker *k, const struct mb_sizes *n)
{
	if (n->too_large && k->goal.aim != MB_AIM_CLOSEST)
		return MB_BY_MEMORY;
	return mb_best_bound(&k->goal, n->step_s, 0);
}

static enum mb_bound enter(struct mb_walk *w, struct mb_worker *k, struct mb_sizes *n)
{
	enum mb_bound bound = known_bound(k, n);

	while (bound == MB_WORTH && n->bound < MB_BOUND_LAYERS) {
		refine(w, k, n);
		bound = mb_best_bound(&k->goal, n->step_s, 0);
	}
	if (bound != MB_WORTH)
		return bound;
	mb_node_enter(k, n, mb_goal_limit_s(&k->goal));
	narrow(k, n);
	n->step_s = mb_larger(n->step_s, mb_visit_least_step(w, k));
	bound = mb_best_bound(&k->goal, n->step_s, 0);
	if (bound != MB_WORTH)
		return bound;
	mb_node_weigh(k);
	k->states_bytes = mb_node_states_floor(k);
	n->guess_s = mb_node_guess(k, n->step_s);
	n->too_large = k->states_bytes * (1 - 1e-9) > k->limit_bytes;
	if (n->too_large && k->goal.aim != MB_AIM_CLOSEST)
		return MB_BY_MEMORY;
	return mb_best_bound(&k->goal, n->step_s, k->states_bytes);
}

static void refresh(struct mb_walk *w, struct mb_worker *k)
{
	mb_lock_take(w->lock);
	mb_best_goal(w->best, &k->goal);
	mb_lock_leave(w->lock);
}

void mb_walk_offer(struct mb_walk *w, struct mb_worker *k, const struct mb_ranked *r)
{
	if ((r->verdict == MB_FITS || r->verdict == MB_AT_RISK) && r->step_s < k->node->found_s)
		k->node->found_s = r->step_s;
	mb_lock_take(w->lock);
	mb_best_offer(w->best, r);
	mb_best_goal(w->best, &k->goal);
	mb_lock_leave(w->lock);
}

bool mb_walk_is_near(const struct mb_walk *w, const struct mb_sizes *n, int vp, const struct mb_plan *split)
{
	for (int i = 0; i < w->near_count; i++) {
		const struct mb_plan *p = &w->near[i].plan;

		if (n->tp == p->tp && n->cp == p->cp && n->pp == p->pp && n->ep == p->ep && n->etp == p->etp && n->mbs == p->micro_batch_size
		    && (!split || (vp == p->vp && mb_axis_equal(MB_P_SPLIT, split, p))))
			return true;
	}
	return w->near == NULL;
}

/* Nodes in the order of their floors, shared among threads. */
static void work(void *context, int thread)
{
	struct mb_walk *w = context;
	struct mb_worker *k = &w->workers[thread];

	refresh(w, k);  /* and before each node that it does not exclude: goals only grow harder */
	for (int i = mb_pool_next(&w->next); i < w->node_count; i = mb_pool_next(&w->next)) {
		enum mb_bound bound;

		k->node = w->order[i];
		if (!mb_walk_is_near(w, k->node, 0, NULL))
			continue;
		bound = known_bound(k, k->node);
		if (bound == MB_WORTH) {
			refresh(w, k);
			bound = enter(w, k, k->node);
		}
		if (bound == MB_WORTH && !mb_visit_node(w, k, k->node))
			bound = MB_BY_MEMORY;
		if (bound != MB_WORTH)
			k->tally.bounds[bound == MB_BY_TIME ? MB_COUNT_TIME : MB_COUNT_MEMORY] += k->node->points;
		if (thread == 0 && w->options->progress && i % 64 == 0)
			w->options->progress(w->options->context, (double)i / w->node_count);
	}
}

static void run_pass(struct mb_walk *w)
{
	w->next = 0;
	for (int i = 0; i < w->threads; i++)
		memset(&w->workers[i].tally, 0, sizeof w->workers[i].tally);
	mb_pool_start(w->threads, work, w);
	w->tally = w->rules;
	for (int i = 0; i < w->threads; i++)
		mb_tally_add(&w->tally, &w->workers[i].tally);
}

/*
 * Passes with a limit of the step that widens until as many plans as are wanted lie within it: a pass costs little while
 * its limit is below what fits, and each finds the sizes that the next one takes up first. Once plans were costed, a
 * limit that is too wide is soon narrowed by those found.
 */
static void run_limited(struct mb_walk *w)
{
	const double most = 4, step = 1.05, wide_step = 1.08, small_step = 1.02;
	struct mb_best *best = w->best, empty = *best;
	double least = least_step_s(w), factor = step;

	for (;;) {
		*best = empty;
		best->max_step_s = factor > most ? empty.max_step_s : mb_smaller(least * factor, empty.max_step_s);
		run_pass(w);
		if (w->tally.costed > 0)
			promote(w);
		if ((best->count == best->wanted && best->has_fit) || !(best->max_step_s < empty.max_step_s))
			break;
		factor *= factor > 2 ? 2 : best->count > 0 ? small_step : w->tally.costed > 0 ? wide_step : step;
	}
	best->max_step_s = empty.max_step_s;
}

static void run_once(struct mb_walk *w)
{
	if (w->best->aim == MB_AIM_CLOSEST)
		sort(w, w->node_count, by_memory);
	run_pass(w);
}

static bool start_workers(struct mb_walk *w)
{
	bool ok;

	w->threads = mb_pool_threads(w->options->threads);
	w->lock = mb_lock_new();
	w->workers = calloc((size_t)w->threads, sizeof *w->workers);
	ok = w->lock && w->workers;
	for (int i = 0; i < w->threads && w->workers; i++)
		ok &= mb_worker_init(&w->workers[i], &w->legality, &w->splits);
	return ok;
}

static void stop_workers(struct mb_walk *w)
{
	for (int i = 0; i < w->threads && w->workers; i++)
		mb_worker_free(&w->workers[i]);
	free(w->workers);
	w->workers = NULL;
	mb_lock_free(w->lock);
	w->lock = NULL;
}

/* What holds for all nodes, found out with the first. */
static void probe(struct mb_walk *w)
{
	struct mb_worker *k = &w->workers[0];
	bool help;

	if (w->node_count == 0)
		return;
	mb_node_enter(k, &w->nodes[0], INFINITY);
	mb_node_weigh(k);
	help = k->rows->groups->count > 0 && mb_rows_graphs_help(&k->cache, k->rows);
	w->best->device_factor = k->reserved_factor;
	mb_rows_free(&k->cache);
	for (int i = 0; i < w->threads; i++)
		w->workers[i].cache.graphs_help = help;
}

bool mb_walk_run(struct mb_walk *w, struct mb_best *best, const struct mb_search_options *options)
{
	bool ok;

	w->best = best;
	w->options = options;
	ok = start_workers(w);
	if (ok) {
		best->fit_peak_bytes = 0.97 * (double)w->s->c.hardware.usable_bytes;
		probe(w);
		ok = w->floored || fill_floors(w);
	}
	if (ok) {
		if (best->aim == MB_AIM_STEP)
			run_limited(w);
		else
			run_once(w);
	}
	stop_workers(w);
	return ok;
}
