#include "search/best.h"

#include <math.h>
#include <string.h>

#include "base/larger.h"

void mb_best_init(struct mb_best *b, enum mb_aim aim, int wanted, struct mb_arena *arena)
{
	*b = (struct mb_best){ .aim = aim, .wanted = wanted, .max_step_s = INFINITY, .max_peak_bytes = INFINITY,
		.fit_peak_bytes = INFINITY };
	b->of = mb_arena_alloc(arena, (size_t)(wanted + 1) * sizeof *b->of);
}

/* ---- order ---- */

static int order_int(long long a, long long b)
{
	return (a > b) - (a < b);
}

static int order_set(unsigned a, unsigned b)
{
	int size = order_int(__builtin_popcount(a), __builtin_popcount(b));

	return size ? size : order_int(a, b);
}

static int order_number(double a, double b)
{
	return (a > b) - (a < b);
}

static int order_split(const struct mb_plan *a, const struct mb_plan *b)
{
	const int orders[] = { order_int(a->layout, b->layout), order_int(a->first_stage_layers, b->first_stage_layers),
		order_int(a->last_stage_layers, b->last_stage_layers), order_int(a->account_for_loss, b->account_for_loss),
		order_int(a->account_for_embedding, b->account_for_embedding) };

	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (orders[i])
			return orders[i];
	return 0;
}

static int order_features(const struct mb_plan *a, const struct mb_plan *b)
{
	const int orders[] = {
		order_int(a->dispatcher, b->dispatcher), order_int(a->backend, b->backend),
		order_int(a->overlap_moe_expert_parallel_comm, b->overlap_moe_expert_parallel_comm),
		order_int(a->delay_wgrad_compute, b->delay_wgrad_compute),
		order_int(a->moe_shared_expert_overlap, b->moe_shared_expert_overlap), order_int(a->tp_comm_overlap, b->tp_comm_overlap),
		order_int(a->cuda_graph_impl, b->cuda_graph_impl), order_set(a->cuda_graph_scope, b->cuda_graph_scope),
		order_int(a->cpu_offloading, b->cpu_offloading), order_int(a->cpu_offloading_num_layers, b->cpu_offloading_num_layers),
		order_int(a->fine_grained_activation_offloading, b->fine_grained_activation_offloading),
		order_set(a->offload_modules, b->offload_modules) };

	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (orders[i])
			return orders[i];
	return 0;
}

/* What Bridge does by default comes first: the distributed optimizer on the GPU, both overlaps. */
static int order_optimizer(const struct mb_plan *a, const struct mb_plan *b)
{
	const int orders[] = {
		order_int(a->use_megatron_fsdp, b->use_megatron_fsdp), order_int(b->use_distributed_optimizer, a->use_distributed_optimizer),
		order_int(a->sharding, b->sharding), order_int(a->optimizer_cpu_offload, b->optimizer_cpu_offload),
		order_number(a->optimizer_offload_fraction, b->optimizer_offload_fraction),
		order_int(b->overlap_grad_reduce, a->overlap_grad_reduce), order_int(b->overlap_param_gather, a->overlap_param_gather) };

	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (orders[i])
			return orders[i];
	return 0;
}

int mb_plan_compare(const struct mb_plan *a, const struct mb_plan *b)
{
	const int sizes[] = { order_int(a->tp, b->tp), order_int(a->cp, b->cp), order_int(a->pp, b->pp), order_int(a->vp, b->vp),
		order_int(a->ep, b->ep), order_int(a->etp, b->etp), order_int(a->micro_batch_size, b->micro_batch_size), order_split(a, b),
		order_int(a->sequence_parallel, b->sequence_parallel), order_int(a->cp_comm_type, b->cp_comm_type),
		order_int(a->cp_a2a_size, b->cp_a2a_size), order_int(a->recompute, b->recompute),
		order_int(a->recompute_method, b->recompute_method), order_int(a->recompute_num_layers, b->recompute_num_layers),
		order_set(a->recompute_modules, b->recompute_modules) };
	int order;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		if (sizes[i])
			return sizes[i];
	order = order_features(a, b);
	return order ? order : order_optimizer(a, b);
}

int mb_ranked_compare(const struct mb_best *b, const struct mb_ranked *x, const struct mb_ranked *y)
{
	int order = 0;

	if (b->aim == MB_AIM_PEAK)
		order = order_number(x->peak_bytes, y->peak_bytes);
	else if (b->aim == MB_AIM_CLOSEST)
		order = order_number(x->device_used_bytes, y->device_used_bytes);
	if (!order)
		order = order_number(x->step_s, y->step_s);
	if (!order && b->aim == MB_AIM_FRONT)
		order = order_number(x->peak_bytes, y->peak_bytes);
	return order ? order : mb_plan_compare(&x->plan, &y->plan);
}

/* ---- bounds ---- */

/* Bounds are sums in another order than the evaluation's, whose durations are whole picoseconds. */
static const double SLACK = 1e-9;

static double value_of(enum mb_aim aim, const struct mb_ranked *r)
{
	if (aim == MB_AIM_CLOSEST)
		return r->device_used_bytes;
	return aim == MB_AIM_PEAK ? r->peak_bytes : r->step_s;
}

/* Bits of a peak's mantissa that tell slots apart: those of one slot differ by less than 1.6 %. */
enum { FRONT_BITS = 6 };

/* Grows with the peak. */
static int64_t slot_of(double peak_bytes)
{
	int64_t bits;

	memcpy(&bits, &peak_bytes, sizeof bits);
	return peak_bytes > 0 ? bits >> (52 - FRONT_BITS) : 0;
}

void mb_best_goal(const struct mb_best *b, struct mb_goal *ret)
{
	ret->aim = b->aim;
	ret->max_step_s = b->max_step_s;
	ret->max_peak_bytes = b->max_peak_bytes;
	ret->fit_peak_bytes = b->fit_peak_bytes;
	ret->device_factor = b->device_factor;
	ret->last = b->count == b->wanted ? value_of(b->aim, &b->of[b->count - 1]) : INFINITY;
	ret->fit = b->has_fit ? value_of(b->aim, &b->fit) : INFINITY;
	ret->front_count = 0;
	for (int i = 0; b->aim == MB_AIM_FRONT && i < b->count; i++) {
		ret->front_s[i] = b->of[i].step_s;
		ret->front_slot[i] = slot_of(b->of[i].peak_bytes);
		ret->front_count++;
	}
}

double mb_goal_limit_s(const struct mb_goal *g)
{
	return g->aim == MB_AIM_STEP ? mb_smaller(g->max_step_s, mb_larger(g->last, g->fit)) : g->max_step_s;
}

/* Whether everything that costs at least so much is beaten. */
static bool front_excludes(const struct mb_goal *g, double step_s, double peak_bytes)
{
	int64_t slot = slot_of(peak_bytes);

	for (int i = 0; i < g->front_count && g->front_s[i] <= step_s; i++)
		if (g->front_slot[i] < slot || (g->front_slot[i] == slot && g->front_s[i] < step_s))
			return true;
	return false;
}

/* A plan may be wanted for its place in the list, or because none that fits is known to be better. */
static enum mb_bound by_objective(const struct mb_goal *g, double step_s, double peak_bytes)
{
	double value = g->aim == MB_AIM_PEAK ? peak_bytes : step_s;

	if (value <= g->last || (value <= g->fit && peak_bytes <= g->fit_peak_bytes))
		return MB_WORTH;
	return g->aim == MB_AIM_PEAK || value <= g->fit ? MB_BY_MEMORY : MB_BY_TIME;
}

enum mb_bound mb_best_bound(const struct mb_goal *g, double step_s, double peak_bytes)
{
	step_s -= step_s * SLACK + 1e-7;
	peak_bytes -= peak_bytes * SLACK;
	if (g->aim == MB_AIM_CLOSEST)
		return peak_bytes * g->device_factor > g->last * (1 - MB_CLOSEST_RESOLUTION) ? MB_BY_MEMORY : MB_WORTH;
	if (peak_bytes > g->max_peak_bytes)
		return MB_BY_MEMORY;
	if (step_s > g->max_step_s)
		return MB_BY_TIME;
	if (g->aim == MB_AIM_FRONT)
		return front_excludes(g, step_s, peak_bytes) ? MB_BY_TIME : MB_WORTH;
	return by_objective(g, step_s, peak_bytes);
}

static void insert(struct mb_best *b, const struct mb_ranked *r)
{
	int at = b->count;

	while (at > 0 && mb_ranked_compare(b, r, &b->of[at - 1]) < 0)
		at--;
	if (at >= b->wanted)
		return;
	memmove(&b->of[at + 1], &b->of[at], (size_t)(b->count - at) * sizeof b->of[0]);
	b->of[at] = *r;
	if (b->count < b->wanted)
		b->count++;
}

/*
 * A partial order: what nothing beats is the same in whatever order plans are found. Of one slot the fastest stays, of
 * equal ones the smallest, of equal ones the first in the order of plans.
 */
static bool beats(const struct mb_best *b, const struct mb_ranked *x, const struct mb_ranked *y)
{
	int64_t slot = slot_of(x->peak_bytes), other = slot_of(y->peak_bytes);

	if (x->step_s > y->step_s || slot > other)
		return false;
	return slot < other || mb_ranked_compare(b, x, y) <= 0;
}

static void offer_front(struct mb_best *b, const struct mb_ranked *r)
{
	int kept = 0;

	for (int i = 0; i < b->count; i++)
		if (beats(b, &b->of[i], r))
			return;
	for (int i = 0; i < b->count; i++)
		if (!beats(b, r, &b->of[i]))
			b->of[kept++] = b->of[i];
	b->count = kept;
	insert(b, r);
}

void mb_best_offer(struct mb_best *b, const struct mb_ranked *r)
{
	if (b->aim == MB_AIM_CLOSEST) {
		insert(b, r);
		return;
	}
	if ((r->verdict != MB_FITS && r->verdict != MB_AT_RISK) || r->margin_bytes < 0)
		return;
	if (r->step_s > b->max_step_s || r->peak_bytes > b->max_peak_bytes)
		return;
	b->fits++;
	if (b->aim == MB_AIM_FRONT) {
		offer_front(b, r);
		return;
	}
	insert(b, r);
	if (r->verdict == MB_FITS && (!b->has_fit || mb_ranked_compare(b, r, &b->fit) < 0)) {
		b->fit = *r;
		b->has_fit = true;
	}
}

void mb_best_join(struct mb_best *b, const struct mb_best *front)
{
	for (int i = 0; i < front->count; i++)
		offer_front(b, &front->of[i]);
}

/* ---- near-copies ---- */

/* Rank 1 is tied with what the model cannot tell from it; variants differ by less than a fifth of a percent. */
static const double TIE = 0.01, VARIANT = 0.002;

static bool same_sizes(const struct mb_plan *a, const struct mb_plan *b)
{
	return a->tp == b->tp && a->cp == b->cp && a->pp == b->pp && a->vp == b->vp && a->ep == b->ep && a->etp == b->etp
	       && a->micro_batch_size == b->micro_batch_size;
}

void mb_best_compare_rows(struct mb_ranked *rows, int count)
{
	for (int i = 0; i < count; i++) {
		rows[i].tie = i > 0 && fabs(rows[i].step_s - rows[0].step_s) <= TIE * rows[0].step_s;
		rows[i].variants = 0;
		for (int j = 0; j < count; j++)
			if (j != i && rows[i].gpus == rows[j].gpus && same_sizes(&rows[i].plan, &rows[j].plan)
			    && fabs(rows[i].step_s - rows[j].step_s) <= VARIANT * rows[i].step_s)
				rows[i].variants++;
	}
}
