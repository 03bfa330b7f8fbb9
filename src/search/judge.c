/* Which recompute choices are worth a look, before groups and features are chosen: time and memory together. */
#include "search/visit.h"

#include <math.h>
#include <string.h>

#include "base/larger.h"

/*
 * Least rows without offloading, or under full recompute of the layers that it leaves: only offloading that the query
 * names goes with it.
 */
static const struct mb_kind_row *least_of(struct mb_visit *v, int choice)
{
	int rep = v->walk->legality.rep_of[choice];
	bool named = mb_visit_offload(v, 0)->fine_grained_activation_offloading;

	if (mb_visit_recompute(v, choice)->recompute == MB_RECOMPUTE_FULL && named)
		return mb_rows_least_offloaded(&v->w->cache, v->w->rows, rep, 0);
	return mb_rows_least(&v->w->cache, v->w->rows, rep);
}

/* Costs with least rows, of a choice that recomputes whole layers. */
static void fill_least_full(struct mb_visit *v, const struct mb_plan *p, const struct mb_kind_row *least)
{
	const struct mb_kind_row *full = mb_rows_least_full(&v->w->cache, v->w->rows);
	double input[MB_KIND_COUNT];
	struct mb_treated t = { p->recompute_method != MB_METHOD_BLOCK ? MB_TREAT_ALL : MB_TREAT_FIRST, p->recompute_num_layers, full, input };

	for (int i = 0; i < v->w->cache.slots.count; i++)
		input[i] = full[i].saved_bytes;
	mb_visit_costs(v, least, &t, &v->costs);
}

static void fill_least(struct mb_visit *v, int choice)
{
	const struct mb_plan *p = mb_visit_recompute(v, choice);
	const struct mb_kind_row *least = least_of(v, choice);

	if (p->recompute == MB_RECOMPUTE_FULL)
		fill_least_full(v, p, least);
	else
		mb_visit_costs(v, least, NULL, &v->costs);
}

/* Time and memory together: an optimizer choice must satisfy both. After mb_visit_flight. */
static enum mb_bound judge_jointly(struct mb_visit *v, uint32_t optimizers)
{
	double limit = v->w->goal.aim == MB_AIM_CLOSEST ? INFINITY : v->w->limit_bytes * (1 + 1e-9);
	enum mb_bound bound = MB_BY_MEMORY;

	if (mb_visit_peak(v, -1) > limit)
		return bound;
	for (uint32_t left = optimizers; left; left &= left - 1) {
		int o = __builtin_ctz(left);
		double peak = mb_visit_peak(v, o);

		if (peak > limit)
			continue;
		bound = mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, 0, 0, o), peak);
		if (bound == MB_WORTH)
			return bound;
	}
	return bound;
}

static bool has_bit(const uint64_t *bits, int i)
{
	return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static void set_bit(uint64_t *bits, int i, bool on)
{
	bits[i / 64] = on ? bits[i / 64] | UINT64_C(1) << (i % 64) : bits[i / 64] & ~(UINT64_C(1) << (i % 64));
}

/* Whole layers that go to the host may leave nothing, and take no less time than those that stay. */
static void fill_least_offloaded(struct mb_visit *v, int choice, int offload)
{
	int rep = v->walk->legality.rep_of[choice];

	if (!mb_visit_offload(v, offload)->cpu_offloading) {
		mb_visit_costs(v, mb_rows_least_offloaded(&v->w->cache, v->w->rows, rep, offload), NULL, &v->costs);
		return;
	}
	mb_visit_costs(v, mb_rows_least(&v->w->cache, v->w->rows, rep), NULL, &v->costs);
	for (int i = 0; i < v->row->piece_count; i++)
		v->costs.saved_bytes[i] = 0;
}

/* Which offloading choices leave little enough and copy fast enough, whatever the group and features. */
static enum mb_bound judge_offloading(struct mb_visit *v, int choice, uint32_t optimizers, uint64_t *may_fit)
{
	enum mb_bound bound = MB_BY_MEMORY;

	for (int i = 0; i < v->walk->s->axis[MB_P_OFFLOAD].count; i++) {
		bool worth;

		if (!has_bit(may_fit, i) || !mb_visit_offloads(mb_visit_offload(v, i)))
			continue;
		fill_least_offloaded(v, choice, i);
		worth = mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, 0, 0, -1), 0) == MB_WORTH;
		if (worth) {
			mb_visit_flight(v, &v->costs, v->flown);
			worth = judge_jointly(v, optimizers) == MB_WORTH;
		}
		set_bit(may_fit, i, worth);
		bound = worth ? MB_WORTH : bound;
	}
	return bound;
}

/* Rows of a recompute choice that no plan of the node goes below; saved: what a layer keeps at least. */
void mb_visit_least_rows(struct mb_visit *v, int choice, struct mb_kind_row *ret)
{
	const struct mb_plan *p = mb_visit_recompute(v, choice);
	const struct mb_kind_row *least = least_of(v, choice), *full = NULL;
	bool uniform = p->recompute_method != MB_METHOD_BLOCK;

	if (p->recompute == MB_RECOMPUTE_FULL)
		full = mb_rows_least_full(&v->w->cache, v->w->rows);
	for (int i = 0; i < v->w->cache.slots.count; i++) {
		ret[i] = least[i];
		if (!full || v->w->cache.slots.kind[i] >= MB_MAX_LAYER_KINDS)
			continue;
		if (uniform)
			ret[i] = full[i];
		ret[i].saved_bytes = uniform ? full[i].saved_bytes / p->recompute_num_layers : mb_smaller(least[i].saved_bytes, full[i].saved_bytes);
	}
}

/* Rows against time and memory of the node as a whole, beside any optimizer choice. spared: bytes over all ranks. */
static enum mb_bound judge_rows_under_node(struct mb_visit *v, const struct mb_sizes *n, const struct mb_kind_row *rows, bool keeps, double spared)
{
	const struct mb_slots *slots = &v->w->cache.slots;
	double layer_s[MB_KIND_COUNT], kept[MB_KIND_COUNT], event[MB_KIND_COUNT], shortest = INFINITY, step_s, mean_s, flight;
	bool captured_first = v->walk->s->c.run.cuda_graph_warmup_steps == 0;   /* the step itself may hold less */
	enum mb_bound bound;

	for (int i = 0; i < slots->count; i++) {
		layer_s[i] = rows[i].gpu_s;
		kept[i] = keeps && !captured_first ? rows[i].saved_bytes : 0;
		event[i] = captured_first ? 0 : rows[i].event_bytes;
		if (slots->kind[i] < MB_MAX_LAYER_KINDS && rows[i].gpu_s < shortest)
			shortest = rows[i].gpu_s;
	}
	step_s = mb_node_step_floor(v->w, n, layer_s);
	bound = mb_best_bound(&v->w->goal, step_s, 0);
	if (bound != MB_WORTH)
		return bound;
	flight = mb_node_flight_floor(v->w, kept, shortest) - spared / n->pp;
	mean_s = step_s / mb_node_passes(v->w, n) * (double)v->w->micro_batches / n->pp;
	bound = MB_BY_MEMORY;
	for (uint32_t left = v->w->distinct; left && bound != MB_WORTH; left &= left - 1) {
		int o = __builtin_ctz(left);

		double peak = v->w->mean_bytes[o] + flight;
		double rank_s = mean_s + (double)v->w->micro_batches * v->w->mean_fsdp_s[o] + v->w->mean_finish_s[o];

		if (n->pp > 1 && peak <= v->w->limit_bytes)
			peak = mb_larger(peak, mb_node_first_rank_floor(v->w, kept, event, layer_s, o) - spared);
		bound = mb_visit_bound(v, mb_larger(step_s, rank_s), peak, v->w->limit_bytes);
	}
	return bound;
}

static bool is_block(const struct mb_plan *p)
{
	return p->recompute == MB_RECOMPUTE_FULL && p->recompute_method == MB_METHOD_BLOCK;
}

/* Time leaves only so many layers that may be recomputed whole: the others keep what they keep. */
static enum mb_bound judge_block_under_node(struct mb_visit *v, const struct mb_sizes *n, int choice)
{
	const struct mb_kind_row *plain = least_of(v, choice), *full = mb_rows_least_full(&v->w->cache, v->w->rows);

	return judge_rows_under_node(v, n, plain, true, mb_node_spared(v->w, plain, full));
}

/* Whole layers are offloaded beside nothing else and without a pipeline (rules O1 to O3). */
static bool may_offload_layers(const struct mb_visit *v, const struct mb_sizes *n, int choice)
{
	return n->pp == 1 && mb_visit_recompute(v, choice)->recompute == MB_RECOMPUTE_NONE;
}

/* The choice that moves all that any choice of groups of tensors moves; -1: there is none. */
static int widest_offloading(const struct mb_visit *v)
{
	const struct mb_choices *a = &v->walk->s->axis[MB_P_OFFLOAD];
	unsigned all = 0;

	for (int i = 0; i < a->count; i++)
		all |= a->of[i].plan.fine_grained_activation_offloading ? a->of[i].plan.offload_modules : 0;
	for (int i = 0; i < a->count; i++)
		if (a->of[i].plan.fine_grained_activation_offloading && a->of[i].plan.offload_modules == all)
			return i;
	return -1;
}

/* Groups of tensors: whether moving those of a choice would do, if it took no time. */
static bool may_offload_groups(struct mb_visit *v, const struct mb_sizes *n, int choice, int offload, const struct mb_kind_row *plain)
{
	double saved[MB_KIND_COUNT], event[MB_KIND_COUNT];
	struct mb_kind_row rows[MB_KIND_COUNT];

	mb_rows_least_bytes(&v->w->cache, v->w->rows, v->walk->legality.rep_of[choice], offload, saved, event);
	for (int i = 0; i < v->w->cache.slots.count; i++) {
		rows[i] = plain[i];
		rows[i].saved_bytes = saved[i];
		rows[i].event_bytes = mb_smaller(plain[i].event_bytes, event[i]);
	}
	return judge_rows_under_node(v, n, rows, true, 0) == MB_WORTH;
}

/* Offloading choices that are worth a look anywhere under the node. */
static enum mb_bound judge_offloading_under_node(struct mb_visit *v, const struct mb_sizes *n, int choice, const struct mb_kind_row *plain)
{
	int rep = v->walk->legality.rep_of[choice];
	enum mb_bound bound = MB_BY_MEMORY;
	bool groups = v->widest < 0 || may_offload_groups(v, n, choice, v->widest, plain);

	for (int i = 0; i < v->walk->s->axis[MB_P_OFFLOAD].count; i++) {
		const struct mb_plan *o = mb_visit_offload(v, i);
		bool worth;

		if (o->cpu_offloading)
			worth = may_offload_layers(v, n, choice) && judge_rows_under_node(v, n, plain, false, 0) == MB_WORTH;
		else if (o->fine_grained_activation_offloading)
			worth = groups && (i == v->widest || may_offload_groups(v, n, choice, i, plain))
			        && judge_rows_under_node(v, n, mb_rows_least_offloaded(&v->w->cache, v->w->rows, rep, i), true, 0) == MB_WORTH;
		else
			worth = v->under_node.worth[choice] == MB_WORTH;
		set_bit(v->under_node.may_fit[choice], i, worth);
		if (worth && mb_visit_offloads(o))
			bound = MB_WORTH;
	}
	return bound;
}

/*
 * Whether a choice that is too slow recomputes a part of what this one does: then this one is too slow as well. Choices
 * that grow come in the order of their layers.
 */
static bool more_than_too_slow(const struct mb_visit *v, int choice)
{
	const uint64_t *parts = v->walk->legality.parts[v->walk->legality.rep_of[choice]];

	if (v->growth_too_slow[v->walk->s->axis[MB_P_RECOMPUTE].of[choice].growth])
		return true;
	for (int i = 0; i < MB_MAX_REPS / 64; i++)
		if (parts[i] & v->too_slow[i])
			return true;
	return false;
}

static void note_too_slow(struct mb_visit *v, int choice)
{
	enum mb_growth growth = v->walk->s->axis[MB_P_RECOMPUTE].of[choice].growth;

	if (growth == MB_GROWS_NOT)
		set_bit(v->too_slow, v->walk->legality.rep_of[choice], true);
	else
		v->growth_too_slow[growth] = true;
}

static void forget_too_slow(struct mb_visit *v)
{
	memset(v->too_slow, 0, sizeof v->too_slow);
	memset(v->growth_too_slow, 0, sizeof v->growth_too_slow);
}

/* A recompute choice under any split of the node. */
static void judge_under_node(struct mb_visit *v, const struct mb_sizes *n, int choice)
{
	bool offloading = v->walk->s->axis[MB_P_OFFLOAD].count > 1 || mb_visit_offloads(mb_visit_offload(v, 0));
	struct mb_kind_row rows[MB_KIND_COUNT];
	double layer_s[MB_KIND_COUNT];
	uint8_t *worth = &v->under_node.worth[choice], *worth_offloaded = &v->under_node.worth_offloaded[choice];
	bool too_slow;

	mb_visit_least_rows(v, choice, rows);
	for (int i = 0; i < v->w->cache.slots.count; i++)
		layer_s[i] = rows[i].gpu_s;
	too_slow = mb_best_bound(&v->w->goal, mb_node_step_floor(v->w, n, layer_s), 0) == MB_BY_TIME;
	if (too_slow)
		note_too_slow(v, choice);
	*worth = (uint8_t)judge_rows_under_node(v, n, rows, true, 0);
	if (*worth == MB_WORTH && is_block(mb_visit_recompute(v, choice)))
		*worth = (uint8_t)judge_block_under_node(v, n, choice);
	*worth_offloaded = *worth;
	if (too_slow || mb_visit_recompute(v, choice)->recompute == MB_RECOMPUTE_FULL)
		return;
	if (offloading)
		*worth_offloaded = (uint8_t)judge_offloading_under_node(v, n, choice, rows);
}

static bool is_open(const struct mb_judged *j, int choice)
{
	return j->worth[choice] == MB_WORTH || j->worth_offloaded[choice] == MB_WORTH;
}

bool mb_visit_judge_node(struct mb_visit *v, const struct mb_sizes *n)
{
	const struct mb_choices *a = &v->walk->s->axis[MB_P_RECOMPUTE];
	int most = mb_space_recompute_layers(v->walk->s, n->pp, 1);
	struct mb_judged *j = &v->under_node;

	j->open_count = 0;
	v->dead_layers = -1;
	v->widest = widest_offloading(v);
	forget_too_slow(v);
	for (int i = 0; i < a->count; i++) {
		j->worth[i] = j->worth_offloaded[i] = MB_BY_TIME;
		if ((a->of[i].growth != MB_GROWS_NOT && a->of[i].layers > most) || more_than_too_slow(v, i))
			continue;
		judge_under_node(v, n, i);
		if (is_open(j, i))
			j->open[j->open_count++] = (uint16_t)i;
	}
	return j->open_count > 0;
}

/* Choices that are not worth a look are only counted, feature by feature. */
static void bury(const struct mb_visit *v, int choice, enum mb_bound why, struct mb_dead *ret)
{
	const struct mb_choice *r = &v->walk->s->axis[MB_P_RECOMPUTE].of[choice];
	int by = why == MB_BY_TIME ? 0 : 1, rep = v->walk->legality.rep_of[choice];

	if (r->growth == MB_GROWS_NOT)
		ret->of[by][rep / 64] |= UINT64_C(1) << (rep % 64);
	else
		ret->grown[by][r->growth]++;
}

/* Those that are candidates under the split and not worth a look under the node. */
static void bury_under_node(struct mb_visit *v)
{
	struct mb_judged *j = &v->under_node;

	if (v->dead_layers == v->layers)
		return;
	v->dead_layers = v->layers;
	memset(&j->dead, 0, sizeof j->dead);
	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++)
		if (mb_visit_is_tried(v, i) && !is_open(j, i))
			bury(v, i, j->worth[i], &j->dead);
}

/* A choice under the split, after what was found before. */
static void judge_choice(struct mb_visit *v, int i, uint32_t optimizers, struct mb_judged *ret)
{
	bool full = mb_visit_recompute(v, i)->recompute == MB_RECOMPUTE_FULL;

	if (more_than_too_slow(v, i)) {
		ret->worth[i] = ret->worth_offloaded[i] = MB_BY_TIME;
		return;
	}
	fill_least(v, i);
	if (mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, 0, 0, -1), 0) == MB_BY_TIME) {
		ret->worth[i] = ret->worth_offloaded[i] = MB_BY_TIME;
		note_too_slow(v, i);
		return;
	}
	if (ret->worth[i] == MB_WORTH) {
		mb_visit_flight(v, &v->costs, v->flown);
		ret->worth[i] = (uint8_t)judge_jointly(v, optimizers);
	}
	if (full) {
		ret->worth_offloaded[i] = ret->worth[i];
		return;
	}
	if (!mb_visit_offloads(mb_visit_offload(v, 0)))
		set_bit(ret->may_fit[i], 0, ret->worth[i] == MB_WORTH);
	if (ret->worth_offloaded[i] == MB_WORTH)
		ret->worth_offloaded[i] = (uint8_t)judge_offloading(v, i, optimizers, ret->may_fit[i]);
}

static bool judge(struct mb_visit *v, const struct mb_judged *from, uint32_t optimizers, struct mb_judged *ret)
{
	ret->dead = from->dead;
	ret->open_count = 0;
	ret->shut_by = MB_WORTH;
	forget_too_slow(v);
	for (int i = 0; i < from->open_count; i++) {
		int choice = from->open[i];

		if (!mb_visit_is_tried(v, choice))
			continue;
		ret->worth[choice] = from->worth[choice];
		ret->worth_offloaded[choice] = from->worth_offloaded[choice];
		memcpy(ret->may_fit[choice], from->may_fit[choice], sizeof ret->may_fit[choice]);
		judge_choice(v, choice, optimizers, ret);
		if (is_open(ret, choice))
			ret->open[ret->open_count++] = (uint16_t)choice;
		else
			bury(v, choice, ret->worth[choice], &ret->dead);
		if (ret->shut_by == MB_WORTH)
			ret->shut_by = (enum mb_bound)ret->worth[choice];
	}
	return ret->open_count > 0;
}

bool mb_visit_judge_split(struct mb_visit *v)
{
	bury_under_node(v);
	return judge(v, &v->under_node, v->w->distinct, &v->under_split);
}

bool mb_visit_judge_closely(struct mb_visit *v)
{
	return judge(v, &v->under_split, v->w->optimizers, &v->at_hand);
}
