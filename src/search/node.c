#include "search/node.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/larger.h"
#include "cost/finish.h"
#include "cost/memory.h"
#include "cost/split.h"

/* States do not know whether their collectives overlap. */
static bool same_states(const struct mb_plan *a, const struct mb_plan *b)
{
	bool fraction = a->optimizer_offload_fraction < b->optimizer_offload_fraction || a->optimizer_offload_fraction > b->optimizer_offload_fraction;

	return a->use_distributed_optimizer == b->use_distributed_optimizer && a->use_megatron_fsdp == b->use_megatron_fsdp
	       && a->sharding == b->sharding && a->optimizer_cpu_offload == b->optimizer_cpu_offload && !fraction;
}

static void fill_alike(struct mb_worker *w)
{
	const struct mb_choices *a = &w->l->s->axis[MB_P_OPTIMIZER];

	for (int i = 0; i < a->count && i < MB_MAX_OPTIMIZERS; i++) {
		w->alike[i] = 0;
		while (!same_states(&a->of[w->alike[i]].plan, &a->of[i].plan))
			w->alike[i]++;
	}
}

bool mb_worker_init(struct mb_worker *w, struct mb_legality *l, const struct mb_splits *splits)
{
	memset(w, 0, sizeof *w);
	w->l = l;
	w->splits = splits;
	mb_rows_cache_init(&w->cache, l);
	w->cache.scratch = mb_arena_alloc(&w->arena, sizeof *w->cache.scratch);
	w->holds = mb_arena_alloc(&w->arena, (size_t)(splits->holding_count + 1) * sizeof *w->holds);
	w->live = mb_arena_alloc(&w->arena, MB_MAX_LIVE * sizeof *w->live);
	fill_alike(w);
	w->lightest = l->s->q->c.run.plan;
	for (int axis = MB_P_SP; axis < MB_P_COUNT; axis++)
		mb_axis_copy((enum mb_plan_key)axis, &l->s->axis[axis].of[0].plan, &w->lightest);
	for (int i = 0; i < l->s->c.model.num_layers; i++)
		for (int k = 0; k < w->cache.slots.count; k++)
			w->decoder_layers[k] += w->cache.slots.kind[k] == l->s->c.model.layers[i];
	mb_floors_init(&w->floors, &w->cache);
	w->e = mb_evaluation_new();
	w->states = mb_evaluation_new();
	return w->e && w->states;
}

void mb_worker_free(struct mb_worker *w)
{
	mb_rows_free(&w->cache);
	mb_floors_free(&w->floors);
	mb_evaluation_free(w->e);
	mb_evaluation_free(w->states);
	mb_arena_free(&w->arena);
}

void mb_node_plan(const struct mb_worker *w, const struct mb_sizes *n, struct mb_plan *ret)
{
	*ret = w->lightest;
	ret->tp = n->tp;
	ret->cp = n->cp;
	ret->pp = n->pp;
	ret->ep = n->ep;
	ret->etp = n->etp;
	ret->micro_batch_size = n->mbs;
	ret->vp = 1;
}

/* Outside the allocator a plan with more features only has more; the dispatcher's buffers know sequence parallelism. */
static void fill_outside_of(struct mb_worker *w, int sp, int dispatcher)
{
	const struct mb_space *s = w->l->s;
	struct mb_stage_memory empty, some;
	struct mb_plan p = w->p;
	struct mb_dims d;

	memset(&empty, 0, sizeof empty);
	memset(&some, 0, sizeof some);
	some.peak_bytes = 1e9;
	mb_axis_copy(MB_P_SP, &s->axis[MB_P_SP].of[sp].plan, &p);
	mb_axis_copy(MB_P_DISPATCHER, &s->axis[MB_P_DISPATCHER].of[dispatcher].plan, &p);
	mb_dims_fill(&s->c, &p, &d);
	mb_device_memory_fill(&s->c, &p, &d, &empty);
	mb_device_memory_fill(&s->c, &p, &d, &some);
	w->outside_bytes[sp][dispatcher] = empty.device_used_bytes;
	w->reserved_factor = some.reserved_bytes / 1e9;
}

double mb_node_peak_limit(const struct mb_worker *w, int sp, int dispatcher)
{
	double usable = (double)w->l->s->c.hardware.usable_bytes, outside = w->outside_bytes[sp][dispatcher];
	/* A plan that only expandable segments would save is not offered. */
	return (usable - outside) / w->reserved_factor;
}

static void fill_outside(struct mb_worker *w)
{
	const struct mb_space *s = w->l->s;

	w->limit_bytes = 0;
	for (int sp = 0; sp < s->axis[MB_P_SP].count && sp < MB_MAX_SP; sp++)
		for (int i = 0; i < s->axis[MB_P_DISPATCHER].count && i < MB_MAX_DISPATCHERS; i++) {
			fill_outside_of(w, sp, i);
			w->limit_bytes = mb_larger(w->limit_bytes, mb_node_peak_limit(w, sp, i));
		}
}

static void fill_slots(struct mb_worker *w);
static void fill_distinct(struct mb_worker *w);

void mb_node_enter(struct mb_worker *w, const struct mb_sizes *n, double step_s)
{
	const struct mb_case *c = &w->l->s->c;
	struct mb_plan sizes;

	mb_node_plan(w, n, &w->p);
	mb_dims_fill(c, &w->p, &w->d);
	sizes = w->p;
	sizes.pp = n->pp;
	w->rows = mb_rows_of(&w->cache, &sizes);
	w->micro_batches = w->d.micro_batches;
	w->window_s = step_s / (double)w->micro_batches;
	w->limit_s = step_s;
	w->stamp++;
}

void mb_node_weigh(struct mb_worker *w)
{
	const struct mb_case *c = &w->l->s->c;
	const struct mb_choices *a = &w->l->s->axis[MB_P_OPTIMIZER];
	unsigned facts = mb_space_facts(w->l->s, &w->p);

	w->optimizers = 0;
	for (int i = 0; i < a->count && i < MB_MAX_OPTIMIZERS; i++)
		if (mb_choice_is_candidate(&a->of[i], facts))
			w->optimizers |= 1u << i;
	if (w->optimizers == 0)
		w->optimizers = 1;
	fill_distinct(w);
	fill_outside(w);
	for (int i = 0; i < w->cache.slots.count; i++)
		mb_kind_cost_fill(c, &w->p, &w->d, w->cache.slots.kind[i], (struct mb_treatment){ 0, 0, false },
		                  &w->states->kinds[w->cache.slots.kind[i]]);
	fill_slots(w);
}

/* ---- states ---- */

static const enum mb_memory_term linear[] = { MB_MEM_weights, MB_MEM_weight_cache, MB_MEM_gradients, MB_MEM_master, MB_MEM_moments,
	MB_MEM_unsharded };

static double linear_bytes(const double terms[MB_MEM_COUNT])
{
	double sum = 0;

	for (size_t k = 0; k < sizeof linear / sizeof linear[0]; k++)
		sum += terms[linear[k]];
	return sum;
}

static void fill_distinct(struct mb_worker *w)
{
	uint32_t seen = 0;

	w->distinct = 0;
	for (int i = 0; i < MB_MAX_OPTIMIZERS; i++) {
		if (!(w->optimizers >> i & 1) || (seen >> w->alike[i] & 1))
			continue;
		seen |= 1u << w->alike[i];
		w->distinct |= 1u << i;
	}
}

static bool is_first_alike(const struct mb_worker *w, int optimizer)
{
	return (w->distinct >> optimizer & 1) != 0;
}

/* Distinct choice with the states of this one. */
static int distinct_of(const struct mb_worker *w, int optimizer)
{
	int i = w->alike[optimizer];

	while (!is_first_alike(w, i) || w->alike[i] != w->alike[optimizer])
		i++;
	return i;
}

/* What one layer of a kind adds to states and times of a rank: all of it is in proportion to parameters. */
static void fill_slot(struct mb_worker *w, const struct mb_plan *p, int optimizer, int slot)
{
	const struct mb_case *c = &w->l->s->c;
	const struct mb_kind_cost *k = &w->states->kinds[w->cache.slots.kind[slot]];
	struct mb_rank_params one = { .dense = (double)k->dense_params, .expert = (double)k->expert_params,
		.dense_linear = (double)k->dense_linear_params, .expert_linear = (double)k->expert_linear_params,
		.dense_trained = (double)k->dense_trained_params, .expert_trained = (double)k->expert_trained_params };
	struct mb_state_waste none = { 0, 0, 0 };
	double *finish_s = &w->slot_finish_s[distinct_of(w, optimizer)][slot], terms[MB_MEM_COUNT], host;
	struct mb_finish f;

	mb_finish_fill(c, p, &w->d, &one, 1e18, &f);
	*finish_s = mb_smaller(*finish_s, f.reduce_exposed_s + f.gather_exposed_s + f.optimizer_s);
	if (!is_first_alike(w, optimizer))
		return;
	mb_states_fill_with(c, p, w->states, 0, &one, &none, terms, &host);
	w->slot_bytes[optimizer][slot] = linear_bytes(terms);
	w->slot_fsdp_s[optimizer][slot] = mb_fsdp_exposed(c, p, &w->d, &one, 1e18);
}

static void fill_slots(struct mb_worker *w)
{
	const struct mb_choices *a = &w->l->s->axis[MB_P_OPTIMIZER];
	struct mb_plan p = w->p;

	p.overlap_moe_expert_parallel_comm = false;
	w->states->dims = w->d;
	memset(&w->states->split, 0, offsetof(struct mb_split, chunks) + sizeof w->states->split.chunks[0]);
	for (int i = 0; i < MB_MAX_OPTIMIZERS; i++)
		for (int s = 0; s < w->cache.slots.count; s++)
			w->slot_finish_s[i][s] = INFINITY;
	for (uint32_t left = w->optimizers; left; left &= left - 1) {
		int i = __builtin_ctz(left);

		mb_axis_copy(MB_P_OPTIMIZER, &a->of[i].plan, &p);
		for (int s = 0; s < w->cache.slots.count; s++)
			fill_slot(w, &p, i, s);
	}
}

/* Of a rank by the kind of optimizer, worked out when asked for. */
struct wastes {
	bool known[2][2];               /* [use_distributed_optimizer][use_megatron_fsdp] */
	struct mb_state_waste of[2][2];
};

static const struct mb_state_waste *waste_of(const struct mb_worker *w, const struct mb_plan *p, int rank, const struct mb_rank_params *params,
                                             struct wastes *known)
{
	struct mb_state_waste *waste = &known->of[p->use_distributed_optimizer][p->use_megatron_fsdp];
	bool *is_known = &known->known[p->use_distributed_optimizer][p->use_megatron_fsdp];

	if (!*is_known)
		mb_state_waste_fill(&w->l->s->c, p, w->states, rank, params, waste);
	*is_known = true;
	return waste;
}

static void lower_states(struct mb_worker *w, struct mb_plan p, int rank, struct wastes *wastes, bool first, struct mb_hold *h)
{
	const struct mb_case *c = &w->l->s->c;
	const struct mb_choices *a = &w->l->s->axis[MB_P_OPTIMIZER];
	struct mb_rank_params params;

	mb_dims_fill(c, &p, &w->states->dims);
	mb_rank_params_fill(c, &p, w->states, rank, &params);
	for (int i = 0; i < a->count && i < MB_MAX_OPTIMIZERS; i++) {
		double terms[MB_MEM_COUNT], host, between = 0;
		struct mb_finish f;

		if (!(w->optimizers >> i & 1))
			continue;
		mb_axis_copy(MB_P_OPTIMIZER, &a->of[i].plan, &p);
		if (is_first_alike(w, i)) {
			mb_states_fill_with(c, &p, w->states, rank, &params, waste_of(w, &p, rank, &params, wastes), terms, &host);
			for (int t = 0; t < MB_MEM_COUNT; t++)
				between += terms[t];
			h->between[i] = mb_smaller(h->between[i], between);
			h->running[i] = mb_smaller(h->running[i], between - terms[MB_MEM_gradient_copy] - terms[MB_MEM_stage_input]);
		} else {
			h->between[i] = h->between[distinct_of(w, i)];
			h->running[i] = h->running[distinct_of(w, i)];
		}
		if (!first)             /* what follows does not know groups and dispatchers */
			continue;
		mb_finish_fill(c, &p, &w->states->dims, &params, w->window_s, &f);
		h->finish_s[i] = f.reduce_exposed_s + f.gather_exposed_s + f.optimizer_s + f.fixed_s;
		h->pass_s[i] = mb_fsdp_exposed(c, &p, &w->states->dims, &params, w->window_s);
	}
}

/* Sequence parallelism and the allgather dispatcher change workspaces; the least of all counts. */
static void fill_hold(struct mb_worker *w, int rank, struct mb_hold *h)
{
	const struct mb_space *s = w->l->s;
	const struct mb_choices *sp = &s->axis[MB_P_SP], *disp = &s->axis[MB_P_DISPATCHER];
	struct wastes wastes = { .known = { { false } } };
	struct mb_plan p = w->p;

	for (int i = 0; i < MB_MAX_OPTIMIZERS; i++)
		h->between[i] = h->running[i] = h->finish_s[i] = h->pass_s[i] = INFINITY;
	p.vp = w->states->split.chunk_count / p.pp;
	p.overlap_moe_expert_parallel_comm = p.fine_grained_activation_offloading = p.cpu_offloading = false;
	for (int i = 0; i < sp->count * disp->count; i++) {
		int a = i % sp->count, b = i / sp->count;
		bool alike = b > 0 && disp->of[b].plan.dispatcher != MB_DISPATCH_ALLGATHER;

		if (alike || (a > 0 && p.tp == 1))
			continue;
		mb_axis_copy(MB_P_SP, &sp->of[a].plan, &p);
		mb_axis_copy(MB_P_DISPATCHER, &disp->of[b].plan, &p);
		lower_states(w, p, rank, &wastes, i == 0, h);
	}
	h->least_between = h->least_running = h->least_finish_s = h->least_pass_s = INFINITY;
	for (int i = 0; i < MB_MAX_OPTIMIZERS; i++) {
		h->least_between = mb_smaller(h->least_between, h->between[i]);
		h->least_running = mb_smaller(h->least_running, h->running[i]);
		h->least_finish_s = mb_smaller(h->least_finish_s, h->finish_s[i]);
		h->least_pass_s = mb_smaller(h->least_pass_s, h->pass_s[i]);
	}
}

const struct mb_hold *mb_node_hold(struct mb_worker *w, const struct mb_split_table *t, const struct mb_split_row *row, int rank)
{
	struct mb_hold *h = &w->holds[row->holding[rank]];
	struct mb_plan p;

	if (h->stamp == w->stamp)
		return h;
	p = w->p;
	p.vp = t->vp;
	mb_axis_copy(MB_P_SPLIT, &row->plan, &p);
	mb_split_fill(&w->l->s->c, &p, &w->states->split);
	fill_hold(w, rank, h);
	h->stamp = w->stamp;
	return h;
}

/* ---- chunks in flight ---- */

/* Beyond four groups of micro-batches the sets in flight repeat. */
static long long enough_micro_batches(long long m, long long group)
{
	return m <= 4 * group ? m : 4 * group + m % group;
}

/* The first forwards of the schedule's table: groups of micro-batches pass one chunk after the other. */
static void fill_warm(struct mb_pipeline order, int rank, int32_t *ret)
{
	int64_t group = order.vp == 1 ? order.micro_batches : order.group > 0 ? order.group : order.pp, left, done = 0;

	order.ep_overlap = true;
	left = mb_pipeline_warmup(&order, rank);
	while (left > 0) {
		int64_t size = order.micro_batches - done < group ? order.micro_batches - done : group;

		for (int chunk = 0; chunk < order.vp && left > 0; chunk++) {
			int64_t pass = left < size ? left : size;

			ret[chunk] += (int32_t)pass;
			left -= pass;
		}
		done += size;
	}
}

const struct mb_live *mb_live_of(struct mb_worker *w, const struct mb_split_table *t, bool overlap)
{
	long long group = w->p.microbatch_group_size > t->pp ? w->p.microbatch_group_size : t->pp;
	long long m = enough_micro_batches(w->micro_batches, group);
	struct mb_pipeline order = { .pp = t->pp, .vp = t->vp, .micro_batches = m, .group = w->p.microbatch_group_size, .ep_overlap = overlap };
	struct mb_live *live;

	size_t at = ((size_t)(t - w->splits->table) * 2 + overlap + (size_t)m * 40503) % MB_MAX_LIVE;

	for (; w->live[at].table; at = (at + 1) % MB_MAX_LIVE)
		if (w->live[at].table == t && w->live[at].micro_batches == m && w->live[at].overlap == overlap)
			return &w->live[at];
	if (4 * ++w->live_count > 3 * MB_MAX_LIVE) {
		memset(w->live, 0, MB_MAX_LIVE * sizeof *w->live);
		w->live_count = 1;
	}
	live = &w->live[at];
	*live = (struct mb_live){ .table = t, .micro_batches = m, .overlap = overlap };
	live->set_count = mb_arena_alloc(&w->arena, (size_t)t->pp * sizeof(int));
	live->warm = mb_arena_alloc(&w->arena, (size_t)(t->pp * t->vp) * sizeof(int32_t));
	live->sets = mb_arena_alloc(&w->arena, (size_t)t->pp * (MB_LIVE_SETS + 1) * (size_t)t->vp * sizeof(int32_t));
	for (int r = 0; r < t->pp; r++) {
		int n = mb_live_vectors(&order, r, MB_LIVE_SETS, live->sets + (size_t)r * (MB_LIVE_SETS + 1) * (size_t)t->vp);

		fill_warm(order, r, live->warm + (size_t)(r * t->vp));
		live->set_count[r] = n < MB_LIVE_SETS ? n : MB_LIVE_SETS;
	}
	return live;
}
