/* Which recompute choices are worth a look, before groups and features are chosen: time and memory together. */
#include "search/visit.h"

#include <math.h>
#include <string.h>

/* Costs with least rows: chunks of the choice; bare: with everything offloaded that can be. */
static void fill_least(struct mb_visit *v, int choice, bool bare)
{
	const struct mb_plan *p = mb_visit_recompute(v, choice);
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, v->walk->legality.rep_of[choice]);
	bool full = p->recompute == MB_RECOMPUTE_FULL, uniform = full && p->recompute_method != MB_METHOD_BLOCK;
	struct mb_treated t = { full ? uniform ? MB_TREAT_ALL : MB_TREAT_FIRST : MB_TREAT_NONE, p->recompute_num_layers, NULL, NULL };
	struct mb_kind_row rows[MB_KIND_COUNT];
	double input[MB_KIND_COUNT];

	for (int i = 0; i < v->w->cache.slots.count; i++) {
		rows[i] = least[i];
		if (bare)
			rows[i].saved_bytes = least[i].offloaded_bytes;
		if (full) {
			t.rows = mb_rows_least_full(&v->w->cache, v->w->rows);
			input[i] = t.rows[i].saved_bytes;
			t.input_bytes = input;
		}
	}
	mb_visit_costs(v, rows, &t, &v->costs);
}

/* Least step when what is too much on a rank is moved to the host. */
static double moving_bound(const struct mb_visit *v, double step_s, const struct mb_live *live, int optimizer)
{
	double m = (double)v->w->micro_batches;

	for (int i = 0; i < v->tight_count; i++) {
		double excess = v->hold[v->tight[i]]->running[optimizer] + v->flight_bytes[i] - v->w->limit_bytes;
		double times = fmin(m, live->most[v->tight[i]] + 1);    /* one more under EP overlap */

		step_s = fmax(step_s, m * excess / times * mb_node_copy_s(v->w));
	}
	return step_s;
}

/* Time and memory together: an optimizer choice must satisfy both. After fill_flight. */
static enum mb_bound judge_jointly(struct mb_visit *v, const struct mb_live *live, bool moving)
{
	enum mb_bound bound = MB_BY_MEMORY;
	double limit = v->w->goal.aim == MB_AIM_CLOSEST ? INFINITY : v->w->limit_bytes * (1 + 1e-9);

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
static bool judge_offloading(struct mb_visit *v, int choice, const struct mb_live *live)
{
	bool any = false;
	const struct mb_slots *slots = &v->w->cache.slots;
	int rep = v->walk->legality.rep_of[choice];
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, rep);
	const struct mb_moved *moved = mb_rows_least_moved(&v->w->cache, v->w->rows, rep);
	double copy_s = mb_node_copy_s(v->w);

	for (int i = 0; i < v->walk->s->axis[MB_P_OFFLOAD].count; i++, moved += slots->count) {
		for (int j = 0; j < v->piece_count; j++) {
			const struct mb_piece *p = &v->w->splits->pieces[v->pieces[j]];
			double saved = 0, step_s = 0;

			for (int k = 0; k < slots->count; k++) {
				double busy_s = moved[k].moved * copy_s, layers = p->kinds[slots->kind[k]];

				saved += layers * moved[k].kept;
				step_s += layers * (busy_s > least[k].gpu_s ? busy_s : least[k].gpu_s);
			}
			v->costs.saved_bytes[j] = saved;
			v->costs.step_s[j] = step_s;
		}
		mb_visit_flight(v, &v->costs, live);
		if (judge_jointly(v, live, false) == MB_WORTH) {
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

bool mb_visit_judge_node(struct mb_visit *v, const struct mb_sizes *n)
{
	const struct mb_choices *a = &v->walk->s->axis[MB_P_RECOMPUTE];
	int most = mb_space_recompute_layers(v->walk->s, n->pp, 1);
	bool any = false;

	for (int i = 0; i < a->count; i++) {
		v->alive[i] = v->alive_offloaded[i] = MB_BY_TIME;
		if (a->of[i].growth != MB_GROWS_NOT && a->of[i].layers > most)
			continue;
		judge_under_node(v, n, i);
		any |= v->alive[i] == MB_WORTH || v->alive_offloaded[i] == MB_WORTH;
	}
	return any;
}

static void judge_choice(struct mb_visit *v, int i, const struct mb_live *live)
{
	bool offloading = v->walk->s->axis[MB_P_OFFLOAD].count > 1 && mb_visit_recompute(v, i)->recompute != MB_RECOMPUTE_FULL;

	if (!v->closely) {
		v->worth[i] = v->alive[i];
		v->worth_offloaded[i] = v->alive_offloaded[i];
	}
	if (v->worth[i] != MB_WORTH && v->worth_offloaded[i] != MB_WORTH)
		return;
	fill_least(v, i, false);
	v->worth[i] = v->worth_offloaded[i] = (uint8_t)mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, 0, 0, -1), 0);
	if (v->worth[i] != MB_WORTH)
		return;
	mb_visit_flight(v, &v->costs, live);
	v->worth[i] = v->worth_offloaded[i] = (uint8_t)judge_jointly(v, live, false);
	memset(v->may_fit[i], v->worth[i] == MB_WORTH ? 0xff : 0, sizeof v->may_fit[i]);
	if (v->worth[i] == MB_WORTH || !offloading || v->alive_offloaded[i] != MB_WORTH)
		return;
	v->worth_offloaded[i] = (uint8_t)judge_jointly(v, live, true);
	if (v->worth_offloaded[i] != MB_WORTH)
		return;
	fill_least(v, i, true);
	for (int k = 0; k < v->piece_count && may_keep_nothing(v, i); k++)
		v->costs.saved_bytes[k] = 0;
	mb_visit_flight(v, &v->costs, live);
	v->worth_offloaded[i] = (uint8_t)judge_jointly(v, live, false);
	if (v->closely && v->worth_offloaded[i] == MB_WORTH && !judge_offloading(v, i, live))
		v->worth_offloaded[i] = MB_BY_MEMORY;
}

bool mb_visit_judge(struct mb_visit *v)
{
	const struct mb_live *live = &v->least_live;
	bool any = false;

	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++) {
		if (!mb_visit_is_tried(v, i))
			continue;
		judge_choice(v, i, live);
		any |= v->worth[i] == MB_WORTH || v->worth_offloaded[i] == MB_WORTH;
	}
	return any;
}
