/* Which recompute choices are worth a look, before groups and features are chosen: time and memory together. */
#include "search/visit.h"

#include <math.h>
#include <string.h>

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
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, v->walk->legality.rep_of[choice]);

	if (p->recompute == MB_RECOMPUTE_FULL)
		fill_least_full(v, p, least);
	else
		mb_visit_rows(v, least, &v->costs);
}

/* The same times, with everything offloaded that can be. */
static void bare_least(struct mb_visit *v, int choice)
{
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, v->walk->legality.rep_of[choice]);
	double kept[MB_KIND_COUNT];

	for (int i = 0; i < v->w->cache.slots.count; i++)
		kept[i] = least[i].offloaded_bytes;
	mb_visit_saved(v, kept, &v->costs);
}

/* Least step when what is too much on a rank is moved to the host. */
static double moving_bound(const struct mb_visit *v, double step_s, const struct mb_live *live, int optimizer)
{
	double m = (double)v->w->micro_batches;

	for (int i = 0; i < v->tight_count; i++) {
		double excess = v->hold[v->tight[i].run]->running[optimizer] + v->flight_bytes[i] - v->w->limit_bytes;
		double times = fmin(m, live->most[v->tight[i].rank] + 1);       /* one more under EP overlap */

		step_s = fmax(step_s, m * excess / times * mb_node_copy_s(v->w));
	}
	return step_s;
}

/* Time and memory together: an optimizer choice must satisfy both. After mb_visit_flight. */
static enum mb_bound judge_jointly(struct mb_visit *v, bool moving)
{
	const struct mb_live *live = moving ? mb_live_of(v->w, v->table, false) : NULL;
	enum mb_bound bound = MB_BY_MEMORY;
	double limit = v->w->goal.aim == MB_AIM_CLOSEST ? INFINITY : v->w->limit_bytes * (1 + 1e-9);

	if (!moving && mb_visit_peak(v, -1) > limit)
		return bound;
	for (uint32_t left = v->closely ? v->w->optimizers : v->w->distinct; left; left &= left - 1) {
		int o = __builtin_ctz(left);
		double peak = moving ? 0 : mb_visit_peak(v, o), step_s;

		if (peak > limit)
			continue;
		step_s = mb_visit_step(v, &v->costs, 0, 0, o);
		if (moving)
			step_s = moving_bound(v, step_s, live, o);
		bound = mb_best_bound(&v->w->goal, step_s, peak);
		if (bound == MB_WORTH)
			return bound;
	}
	return bound;
}

/* Whole layers may be offloaded: a rank may keep nothing. */
static bool may_keep_nothing(const struct mb_visit *v, int choice)
{
	const struct mb_choices *a = &v->walk->s->axis[MB_P_OFFLOAD];

	return v->table->pp == 1 && mb_visit_recompute(v, choice)->recompute == MB_RECOMPUTE_NONE && a->of[a->count - 1].plan.cpu_offloading;
}

/* Which offloading choices leave little enough and copy fast enough, whatever the group and features. */
static bool judge_offloading(struct mb_visit *v, int choice)
{
	const struct mb_slots *slots = &v->w->cache.slots;
	bool any = false;
	int rep = v->walk->legality.rep_of[choice];
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, rep);
	const struct mb_moved *moved = mb_rows_least_moved(&v->w->cache, v->w->rows, rep);
	double copy_s = mb_node_copy_s(v->w);

	for (int i = 0; i < v->walk->s->axis[MB_P_OFFLOAD].count; i++, moved += slots->count) {
		for (int j = 0; j < v->row->piece_count; j++) {
			const double *layers = mb_piece_layers(v->w->splits, v->row->pieces[j]);
			double saved = 0, step_s = 0;

			for (int k = 0; k < slots->count; k++) {
				double busy_s = moved[k].moved * copy_s;

				saved += layers[k] * moved[k].kept;
				step_s += layers[k] * (busy_s > least[k].gpu_s ? busy_s : least[k].gpu_s);
			}
			v->costs.saved_bytes[j] = saved;
			v->costs.step_s[j] = step_s;
		}
		mb_visit_flight(v, &v->costs, v->least_flights);
		if (judge_jointly(v, false) == MB_WORTH) {
			v->may_fit[choice][i / 64] |= UINT64_C(1) << (i % 64);
			any |= mb_visit_offloads(&v->walk->s->axis[MB_P_OFFLOAD].of[i].plan);
		}
	}
	return any;
}

/* Rows of a recompute choice that no plan of the node goes below; saved: what a layer keeps at least. */
void mb_visit_least_rows(struct mb_visit *v, int choice, struct mb_kind_row *ret)
{
	const struct mb_plan *p = mb_visit_recompute(v, choice);
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, v->walk->legality.rep_of[choice]), *full = NULL;
	bool uniform = p->recompute_method != MB_METHOD_BLOCK;

	if (p->recompute == MB_RECOMPUTE_FULL)
		full = mb_rows_least_full(&v->w->cache, v->w->rows);
	for (int i = 0; i < v->w->cache.slots.count; i++) {
		ret[i] = least[i];
		if (!full || v->w->cache.slots.kind[i] >= MB_MAX_LAYER_KINDS)
			continue;
		if (uniform)
			ret[i] = full[i];
		ret[i].saved_bytes = uniform ? full[i].saved_bytes / p->recompute_num_layers : fmin(least[i].saved_bytes, full[i].saved_bytes);
	}
}

/* A recompute choice against time and memory of the node as a whole. */
static void judge_under_node(struct mb_visit *v, const struct mb_sizes *n, int choice)
{
	const struct mb_slots *slots = &v->w->cache.slots;
	struct mb_kind_row rows[MB_KIND_COUNT];
	double layer_s[MB_KIND_COUNT], kept[MB_KIND_COUNT], shortest = INFINITY, step_s, flight;
	const struct mb_goal *best = &v->w->goal;
	bool offloading = v->walk->s->axis[MB_P_OFFLOAD].count > 1 && mb_visit_recompute(v, choice)->recompute != MB_RECOMPUTE_FULL;

	mb_visit_least_rows(v, choice, rows);
	for (int i = 0; i < slots->count; i++) {
		layer_s[i] = rows[i].gpu_s;
		kept[i] = rows[i].saved_bytes;
		if (slots->kind[i] < MB_MAX_LAYER_KINDS)
			shortest = fmin(shortest, rows[i].gpu_s);
	}
	step_s = mb_node_step_floor(v->w, n, layer_s);
	v->alive[choice] = v->alive_offloaded[choice] = (uint8_t)mb_best_bound(best, step_s, 0);
	v->too_slow[choice] = v->alive[choice] == MB_BY_TIME;
	if (v->alive[choice] != MB_WORTH)
		return;
	flight = mb_node_flight_floor(v->w, kept, shortest);
	v->alive[choice] = v->alive_offloaded[choice] = MB_BY_MEMORY;
	for (uint32_t left = v->w->distinct; left && v->alive[choice] != MB_WORTH; left &= left - 1) {
		int o = __builtin_ctz(left);
		double bytes = v->w->mean_bytes[o] + flight, fsdp_s = (double)v->w->micro_batches * v->w->mean_fsdp_s[o], excess;

		v->alive[choice] = (uint8_t)mb_visit_bound(v, step_s + fsdp_s, bytes, v->w->limit_bytes);
		if (v->alive[choice] == MB_WORTH)
			v->alive_offloaded[choice] = MB_WORTH;
		if (v->alive_offloaded[choice] == MB_WORTH || !offloading || isinf(bytes))
			continue;
		/* What does not fit is moved: as many bytes over the host link as are too many, over the micro-batches in flight. */
		excess = fmax(bytes - v->w->limit_bytes, 0)
		         / fmin((double)v->w->micro_batches, n->pp + 1 + fmax(n->pp, v->w->p.microbatch_group_size));
		v->alive_offloaded[choice] = (uint8_t)mb_visit_bound(v, fmax(step_s + fsdp_s, (double)v->w->micro_batches * excess * mb_node_copy_s(v->w)),
		                                                     v->w->mean_bytes[o], v->w->limit_bytes);
	}
}

/* Whether a choice found too slow recomputes a part of what this one does: then this one is too slow as well. */
static bool more_than_too_slow(const struct mb_visit *v, int choice)
{
	const struct mb_plan *p = mb_visit_recompute(v, choice);

	for (int i = 0; i < choice; i++) {
		const struct mb_plan *o = mb_visit_recompute(v, i);
		bool part = o->recompute == MB_RECOMPUTE_NONE
		            || (o->recompute == MB_RECOMPUTE_SELECTIVE && p->recompute == MB_RECOMPUTE_SELECTIVE
		                && (o->recompute_modules & ~p->recompute_modules) == 0);

		if (part && v->too_slow[i])
			return true;
	}
	return false;
}

bool mb_visit_judge_node(struct mb_visit *v, const struct mb_sizes *n)
{
	const struct mb_choices *a = &v->walk->s->axis[MB_P_RECOMPUTE];
	int most = mb_space_recompute_layers(v->walk->s, n->pp, 1);
	bool any = false;

	for (int i = 0; i < a->count; i++) {
		v->alive[i] = v->alive_offloaded[i] = MB_BY_TIME;
		v->too_slow[i] = false;
		if ((a->of[i].growth != MB_GROWS_NOT && a->of[i].layers > most) || more_than_too_slow(v, i))
			continue;
		judge_under_node(v, n, i);
		any |= v->alive[i] == MB_WORTH || v->alive_offloaded[i] == MB_WORTH;
	}
	return any;
}

static void judge_choice(struct mb_visit *v, int i)
{
	bool offloading = v->walk->s->axis[MB_P_OFFLOAD].count > 1 && mb_visit_recompute(v, i)->recompute != MB_RECOMPUTE_FULL;

	if (!v->closely) {
		v->worth[i] = v->alive[i];
		v->worth_offloaded[i] = v->alive_offloaded[i];
	}
	if (v->worth[i] != MB_WORTH && v->worth_offloaded[i] != MB_WORTH)
		return;
	fill_least(v, i);
	v->worth[i] = v->worth_offloaded[i] = (uint8_t)mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, 0, 0, -1), 0);
	if (v->worth[i] != MB_WORTH)
		return;
	mb_visit_flight(v, &v->costs, v->least_flights);
	v->worth[i] = v->worth_offloaded[i] = (uint8_t)judge_jointly(v, false);
	memset(v->may_fit[i], v->worth[i] == MB_WORTH ? 0xff : 0, sizeof v->may_fit[i]);
	if (v->worth[i] == MB_WORTH || !offloading || v->alive_offloaded[i] != MB_WORTH)
		return;
	v->worth_offloaded[i] = (uint8_t)judge_jointly(v, true);
	if (v->worth_offloaded[i] != MB_WORTH)
		return;
	bare_least(v, i);
	for (int k = 0; k < v->row->piece_count && may_keep_nothing(v, i); k++)
		v->costs.saved_bytes[k] = 0;
	mb_visit_flight(v, &v->costs, v->least_flights);
	v->worth_offloaded[i] = (uint8_t)judge_jointly(v, false);
	if (v->closely && v->worth_offloaded[i] == MB_WORTH && !judge_offloading(v, i))
		v->worth_offloaded[i] = MB_BY_MEMORY;
}

/* Choices that are not worth a look are only counted, feature by feature. */
static void bury(struct mb_visit *v, int choice)
{
	const struct mb_choice *r = &v->walk->s->axis[MB_P_RECOMPUTE].of[choice];
	int why = v->worth[choice] == MB_BY_TIME ? 0 : 1, rep = v->walk->legality.rep_of[choice];

	if (r->growth == MB_GROWS_NOT)
		v->dead[why][rep / 64] |= UINT64_C(1) << (rep % 64);
	else
		v->dead_grown[why][r->growth]++;
}

bool mb_visit_judge(struct mb_visit *v)
{
	v->open_count = 0;
	memset(v->dead, 0, sizeof v->dead);
	memset(v->dead_grown, 0, sizeof v->dead_grown);
	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++) {
		if (!mb_visit_is_tried(v, i))
			continue;
		judge_choice(v, i);
		if (v->worth[i] == MB_WORTH || v->worth_offloaded[i] == MB_WORTH)
			v->open[v->open_count++] = (uint16_t)i;
		else
			bury(v, i);
	}
	return v->open_count > 0;
}
