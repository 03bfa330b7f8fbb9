#include "search/space.h"

#include <stddef.h>
#include <string.h>

#include "cost/build.h"
#include "plan/rules_private.h"

static const int8_t axis_keys[MB_P_COUNT][9] = {
	[MB_P_TP] = { MB_K_tp, -1 }, [MB_P_CP] = { MB_K_cp, -1 }, [MB_P_PP] = { MB_K_pp, -1 }, [MB_P_EP] = { MB_K_ep, -1 },
	[MB_P_ETP] = { MB_K_etp, -1 }, [MB_P_MBS] = { MB_K_mbs, -1 }, [MB_P_VP] = { MB_K_vp, -1 },
	[MB_P_SPLIT] = { MB_K_first_layers, MB_K_last_layers, MB_K_acc_embed, MB_K_acc_loss, MB_K_layout, -1 },
	[MB_P_SP] = { MB_K_sp, -1 }, [MB_P_CP_COMM] = { MB_K_cp_comm_type, MB_K_cp_sizes, -1 },
	[MB_P_RECOMPUTE] = { MB_K_recompute, MB_K_method, MB_K_recompute_layers, MB_K_modules, -1 },
	[MB_P_DISPATCHER] = { MB_K_dispatcher, MB_K_backend, -1 }, [MB_P_EP_OVERLAP] = { MB_K_ep_overlap, MB_K_delay_wgrad, -1 },
	[MB_P_SHARED_OVERLAP] = { MB_K_shared_overlap, -1 }, [MB_P_TP_OVERLAP] = { MB_K_tp_overlap, -1 },
	[MB_P_GRAPH] = { MB_K_graph_impl, MB_K_graph_scope, -1 },
	[MB_P_OFFLOAD] = { MB_K_cpu_offloading, MB_K_cpu_offloading_layers, MB_K_fine_offload, MB_K_offload_modules, -1 },
	[MB_P_OPTIMIZER] = { MB_K_opt_offload, MB_K_opt_offload_fraction, MB_K_dist_opt, MB_K_fsdp, MB_K_sharding, MB_K_grad_overlap,
		MB_K_param_overlap, -1 },
};

void mb_axis_copy(enum mb_plan_key axis, const struct mb_plan *from, struct mb_plan *to)
{
	for (const int8_t *k = axis_keys[axis]; *k >= 0; k++) {
		size_t at = mb_keys[*k].offset - offsetof(struct mb_run, plan);
		const char *source = (const char *)from + at;
		char *target = (char *)to + at;

		switch (mb_keys[*k].type) {     /* of constant sizes: a copy is one move */
		case MB_KEY_BOOL:
			memcpy(target, source, sizeof(bool));
			break;
		case MB_KEY_NUMBER:
			memcpy(target, source, sizeof(double));
			break;
		default:
			memcpy(target, source, sizeof(int));
		}
	}
}

static bool same_value(const struct mb_key *key, union mb_value a, union mb_value b)
{
	return key->type == MB_KEY_NUMBER ? !(a.d < b.d || a.d > b.d) : a.i == b.i;
}

bool mb_axis_equal(enum mb_plan_key axis, const struct mb_plan *a, const struct mb_plan *b)
{
	struct mb_run x, y;

	x.plan = *a;
	y.plan = *b;
	for (const int8_t *k = axis_keys[axis]; *k >= 0; k++)
		if (!same_value(&mb_keys[*k], mb_key_get(&x, &mb_keys[*k]), mb_key_get(&y, &mb_keys[*k])))
			return false;
	return true;
}

static bool key_allows(const struct mb_space *s, int id, union mb_value v)
{
	const struct mb_alternatives *a = &s->q->alternatives[id];

	for (int i = 0; i < a->count; i++)
		if (same_value(&mb_keys[id], a->values[i], v))
			return true;
	if (a->count > 0)
		return false;
	return s->open[id] || same_value(&mb_keys[id], mb_key_get(&s->q->c.run, &mb_keys[id]), v);
}

bool mb_space_allows(const struct mb_space *s, enum mb_plan_key axis, const struct mb_plan *p)
{
	struct mb_run run;

	run.plan = *p;
	for (const int8_t *k = axis_keys[axis]; *k >= 0; k++)
		if (!key_allows(s, *k, mb_key_get(&run, &mb_keys[*k])))
			return false;
	return true;
}

void mb_search_open_keys(const struct mb_query *q, bool open[MB_KEY_COUNT])
{
	for (int i = 0; i < MB_KEY_COUNT; i++)
		open[i] = q->open[i] || (mb_keys[i].open && !q->set[i]);
}

/* ---- inner axes ---- */

enum { MAX_CHOICES = 4096 };

struct builder {
	struct mb_space *s;
	enum mb_plan_key axis;
	struct mb_choice *of;
	int count;
};

static struct mb_choice *offer(struct builder *b, const struct mb_plan *p, unsigned need)
{
	if (b->count == MAX_CHOICES || !mb_space_allows(b->s, b->axis, p))
		return NULL;
	for (int i = 0; i < b->count; i++)
		if (mb_axis_equal(b->axis, &b->of[i].plan, p))
			return NULL;
	b->of[b->count] = (struct mb_choice){ .plan = *p, .need = need };
	return &b->of[b->count++];
}

static void offer_sequence_parallel(struct builder *b, struct mb_plan p)
{
	p.sequence_parallel = false;
	offer(b, &p, 0);
	p.sequence_parallel = true;
	offer(b, &p, MB_FACT_TP);
}

/* Sizes of a2a+p2p are candidates only where they divide CP: mb_choice_divides. */
static void offer_context(struct builder *b, struct mb_plan p)
{
	int gpus = b->s->c.run.gpus;

	p.cp_a2a_size = 0;
	p.cp_comm_type = MB_CP_P2P;
	offer(b, &p, 0);
	p.cp_comm_type = MB_CP_ALL_GATHER;
	offer(b, &p, MB_FACT_CP);
	p.cp_comm_type = MB_CP_A2A;
	offer(b, &p, MB_FACT_CP);
	p.cp_comm_type = MB_CP_A2A_P2P;
	for (int a = 2; a < gpus && a <= 64; a++) {
		p.cp_a2a_size = a;
		if (gpus % a == 0)
			offer(b, &p, MB_FACT_CP);
	}
}

/*
 * Recomputing core_attn gives scores and probabilities back. A fused or flash kernel keeps none, so that there the module
 * is a candidate only if the query names it.
 */
static bool keeps_scores(const struct mb_space *s)
{
	enum mb_attention_backend kernel = mb_attention_kernel(&s->c);
	bool named = !s->open[MB_K_modules] || s->q->alternatives[MB_K_modules].count > 0;

	return named || kernel == MB_ATTN_UNFUSED || kernel == MB_ATTN_LOCAL;
}

static void offer_modules(struct builder *b, struct mb_plan p)
{
	const struct mb_model *m = &b->s->c.model;
	unsigned usable = 0;

	p.recompute = MB_RECOMPUTE_SELECTIVE;
	for (unsigned bit = 1; bit < MB_MHC; bit <<= 1) {
		p.recompute_modules = bit;
		if (bit == MB_CORE_ATTN && !keeps_scores(b->s))
			continue;
		if (mb_modules_without_effect(&b->s->c, &p) == 0 && (bit != MB_GDN_NORM_OUT || mb_has_mixer(m, MB_MIXER_GDN))
		    && (bit != MB_MLA_UP_PROJ || m->multi_latent_attention))
			usable |= bit;
	}
	for (unsigned set = 1; set <= usable; set++) {
		p.recompute_modules = set;
		if ((set & ~usable) == 0 && mb_modules_without_effect(&b->s->c, &p) == 0)
			offer(b, &p, 0);
	}
}

static void offer_recompute(struct builder *b, struct mb_plan p)
{
	static const enum mb_growth grows[] = { [MB_METHOD_UNIFORM] = MB_GROWS_UNIFORM, [MB_METHOD_BLOCK] = MB_GROWS_BLOCK };
	int most = mb_space_recompute_layers(b->s, 1, 1);

	p.recompute = MB_RECOMPUTE_NONE;
	p.recompute_method = MB_METHOD_NONE;
	p.recompute_num_layers = 0;
	p.recompute_modules = 0;
	offer(b, &p, 0);
	offer_modules(b, p);
	p.recompute = MB_RECOMPUTE_FULL;
	for (p.recompute_method = MB_METHOD_UNIFORM; p.recompute_method <= MB_METHOD_BLOCK; p.recompute_method++) {
		for (int n = 1; n <= most; n++) {
			struct mb_choice *v;

			p.recompute_num_layers = n;
			v = offer(b, &p, 0);
			if (v) {
				v->growth = n == 1 && p.recompute_method == MB_METHOD_UNIFORM ? MB_GROWS_NOT : grows[p.recompute_method];
				v->layers = n;
			}
		}
	}
}

static void offer_dispatcher(struct builder *b, struct mb_plan p)
{
	bool moe = mb_has_moe(&b->s->c.model);

	p.dispatcher = MB_DISPATCH_ALLTOALL;
	p.backend = MB_BACKEND_NONE;
	offer(b, &p, 0);
	if (!moe)
		return;
	p.dispatcher = MB_DISPATCH_FLEX;
	p.backend = MB_BACKEND_HYBRIDEP;
	offer(b, &p, MB_FACT_GROUP);
	p.backend = MB_BACKEND_DEEPEP;
	offer(b, &p, MB_FACT_GROUP);
	p.dispatcher = MB_DISPATCH_ALLGATHER;
	p.backend = MB_BACKEND_NONE;
	offer(b, &p, MB_FACT_GROUP);
}

static void offer_overlap(struct builder *b, struct mb_plan p)
{
	p.overlap_moe_expert_parallel_comm = p.delay_wgrad_compute = false;
	offer(b, &p, 0);
	if (!mb_has_moe(&b->s->c.model))
		return;
	p.overlap_moe_expert_parallel_comm = true;
	offer(b, &p, MB_FACT_EP);
	p.delay_wgrad_compute = true;
	offer(b, &p, MB_FACT_EP);
}

static void offer_shared_overlap(struct builder *b, struct mb_plan p)
{
	p.moe_shared_expert_overlap = false;
	offer(b, &p, 0);
	p.moe_shared_expert_overlap = true;
	if (mb_has_shared(&b->s->c.model))
		offer(b, &p, 0);
}

static void offer_tp_overlap(struct builder *b, struct mb_plan p)
{
	p.tp_comm_overlap = false;
	offer(b, &p, 0);
	p.tp_comm_overlap = true;
	offer(b, &p, MB_FACT_TP);
}

/* Scopes worth capturing together: attention, then with it what launches most, then all that a model has. Others by name. */
static const unsigned graph_scopes[] = {
	MB_SCOPE_ATTN,
	MB_SCOPE_ATTN | MB_SCOPE_MOE_ROUTER | MB_SCOPE_MOE_PREPROCESS,
	MB_SCOPE_MAMBA,
	MB_SCOPE_ATTN | MB_SCOPE_MLP | MB_SCOPE_MOE_ROUTER | MB_SCOPE_MOE_PREPROCESS | MB_SCOPE_MAMBA,
};
enum { GRAPH_SCOPES = sizeof graph_scopes / sizeof graph_scopes[0] };

static void offer_graphs(struct builder *b, struct mb_plan p)
{
	const struct mb_model *m = &b->s->c.model;
	unsigned scopes = 0;

	p.cuda_graph_impl = MB_GRAPH_NONE;
	p.cuda_graph_scope = 0;
	offer(b, &p, 0);
	scopes |= mb_has_mixer(m, MB_MIXER_ATTENTION) || mb_has_mixer(m, MB_MIXER_MLA) || mb_has_mixer(m, MB_MIXER_GDN) ? MB_SCOPE_ATTN : 0;
	scopes |= mb_has_dense(m) ? MB_SCOPE_MLP : 0;
	scopes |= mb_has_moe(m) ? MB_SCOPE_MOE_ROUTER | MB_SCOPE_MOE_PREPROCESS : 0;
	scopes |= mb_has_mixer(m, MB_MIXER_MAMBA) ? MB_SCOPE_MAMBA : 0;
	p.cuda_graph_impl = MB_GRAPH_TE;
	for (size_t i = 0; i < GRAPH_SCOPES; i++) {
		p.cuda_graph_scope = graph_scopes[i] & scopes;
		if (p.cuda_graph_scope == graph_scopes[i] || (i + 1 == GRAPH_SCOPES && p.cuda_graph_scope))
			offer(b, &p, 0);
	}
	p.cuda_graph_impl = MB_GRAPH_FULL;
	p.cuda_graph_scope = 0;
	offer(b, &p, 0);
}

/* Groups of tensors that layers of this model keep. */
static unsigned offload_groups(const struct mb_model *m)
{
	unsigned groups = 0;

	if (mb_has_mixer(m, MB_MIXER_ATTENTION) || mb_has_mixer(m, MB_MIXER_MLA))
		groups |= MB_OFF_ATTN_NORM | MB_OFF_QKV_LINEAR | MB_OFF_CORE_ATTN | MB_OFF_ATTN_PROJ;
	if (mb_has_dense(m) || mb_has_moe(m))
		groups |= MB_OFF_MLP_NORM;
	if (mb_has_moe(m))
		groups |= MB_OFF_EXPERT_FC1 | MB_OFF_MOE_ACT;
	return groups;
}

/*
 * Sets of tensors worth moving together, what moves less first: the experts', the attention's, then
 * everything. Other sets are for those who name them. attn_proj needs core_attn (a rule).
 */
static const unsigned offload_sets[] = {
	MB_OFF_MOE_ACT,
	MB_OFF_EXPERT_FC1 | MB_OFF_MOE_ACT,
	MB_OFF_CORE_ATTN | MB_OFF_ATTN_PROJ,
	MB_OFF_ATTN_NORM | MB_OFF_QKV_LINEAR | MB_OFF_CORE_ATTN | MB_OFF_ATTN_PROJ | MB_OFF_MLP_NORM,
	MB_OFF_ATTN_NORM | MB_OFF_QKV_LINEAR | MB_OFF_CORE_ATTN | MB_OFF_ATTN_PROJ | MB_OFF_MLP_NORM | MB_OFF_EXPERT_FC1 | MB_OFF_MOE_ACT,
};

static void offer_offload(struct builder *b, struct mb_plan p)
{
	const struct mb_model *m = &b->s->c.model;
	unsigned groups = offload_groups(m);

	p.cpu_offloading = p.fine_grained_activation_offloading = false;
	p.cpu_offloading_num_layers = 0;
	p.offload_modules = 0;
	offer(b, &p, 0);
	p.fine_grained_activation_offloading = true;
	for (size_t i = 0; i < sizeof offload_sets / sizeof offload_sets[0]; i++) {
		p.offload_modules = offload_sets[i];
		if ((p.offload_modules & ~groups) == 0)
			offer(b, &p, MB_FACT_NOT_FULL);
	}
	p.fine_grained_activation_offloading = false;
	p.offload_modules = 0;
	p.cpu_offloading = true;
	for (int eighth = 1, before = 0; eighth < 8; eighth++) {        /* whole layers, by eighths of the model */
		p.cpu_offloading_num_layers = (m->num_layers * eighth + 7) / 8;
		if (p.cpu_offloading_num_layers > before && p.cpu_offloading_num_layers < m->num_layers)
			offer(b, &p, MB_FACT_FLAT | MB_FACT_NO_RECOMPUTE);
		before = p.cpu_offloading_num_layers;
	}
}

static void offer_sharded(struct builder *b, struct mb_plan p)
{
	static const struct { bool reduce, gather; } overlaps[] = { { true, true }, { true, false }, { false, false } };
	static const double fractions[] = { 0, 0.5, 1 };

	for (size_t f = 0; f < sizeof fractions / sizeof fractions[0]; f++) {
		p.optimizer_cpu_offload = f > 0;
		if (f > 0)
			p.optimizer_offload_fraction = fractions[f];
		for (size_t i = 0; i < sizeof overlaps / sizeof overlaps[0]; i++) {
			p.overlap_grad_reduce = overlaps[i].reduce;
			p.overlap_param_gather = overlaps[i].gather;
			offer(b, &p, i > 0 ? MB_FACT_DP : 0);
		}
	}
}

/* The distributed optimizer first: it is what Bridge runs by default and never larger. */
static void offer_optimizer(struct builder *b, struct mb_plan p)
{
	p.use_megatron_fsdp = p.optimizer_cpu_offload = false;
	p.sharding = MB_SHARD_NONE;
	p.use_distributed_optimizer = true;
	offer_sharded(b, p);
	p.use_distributed_optimizer = p.overlap_param_gather = false;
	for (int reduce = 1; reduce >= 0; reduce--) {
		p.overlap_grad_reduce = reduce > 0;
		offer(b, &p, MB_FACT_DP);
	}
	p.use_distributed_optimizer = p.use_megatron_fsdp = p.overlap_grad_reduce = p.overlap_param_gather = true;
	for (p.sharding = MB_SHARD_OPTIM; p.sharding <= MB_SHARD_FULL; p.sharding++)
		offer(b, &p, MB_FACT_DP);
}

static void (*const offers[MB_P_COUNT])(struct builder *b, struct mb_plan p) = {
	[MB_P_SP] = offer_sequence_parallel, [MB_P_CP_COMM] = offer_context, [MB_P_RECOMPUTE] = offer_recompute,
	[MB_P_DISPATCHER] = offer_dispatcher, [MB_P_EP_OVERLAP] = offer_overlap, [MB_P_SHARED_OVERLAP] = offer_shared_overlap,
	[MB_P_TP_OVERLAP] = offer_tp_overlap, [MB_P_GRAPH] = offer_graphs, [MB_P_OFFLOAD] = offer_offload,
	[MB_P_OPTIMIZER] = offer_optimizer,
};

/* Some values of the user only mean something with a switch that is left open. */
static void switch_on(const struct mb_space *s, struct mb_plan *p)
{
	if (s->open[MB_K_recompute] && p->recompute_modules != 0)
		p->recompute = MB_RECOMPUTE_SELECTIVE;
	if (s->open[MB_K_dispatcher] && p->backend != MB_BACKEND_NONE)
		p->dispatcher = MB_DISPATCH_FLEX;
	if (s->open[MB_K_graph_impl] && p->cuda_graph_scope != 0 && p->cuda_graph_impl == MB_GRAPH_NONE)
		p->cuda_graph_impl = MB_GRAPH_TE;
	if (s->open[MB_K_fine_offload] && p->offload_modules != 0)
		p->fine_grained_activation_offloading = true;
	if (s->open[MB_K_cpu_offloading] && p->cpu_offloading_num_layers > 0)
		p->cpu_offloading = true;
	if (s->open[MB_K_fsdp] && p->sharding != MB_SHARD_NONE)
		p->use_megatron_fsdp = true;
}

/* Every combination of the user's values of an axis's keys from `k` on. */
static void offer_said(struct builder *b, struct mb_run *run, const int8_t *k)
{
	const struct mb_alternatives *a;

	if (*k < 0) {
		struct mb_plan p = run->plan;

		switch_on(b->s, &p);
		offer(b, &p, 0);
		return;
	}
	a = &b->s->q->alternatives[*k];
	if (a->count == 0) {
		offer_said(b, run, k + 1);
		return;
	}
	for (int i = 0; i < a->count; i++) {
		mb_key_put(run, &mb_keys[*k], a->values[i]);
		offer_said(b, run, k + 1);
	}
}

static void fill_axis(struct mb_space *s, enum mb_plan_key axis)
{
	struct builder b = { s, axis, mb_arena_alloc(s->arena, MAX_CHOICES * sizeof *b.of), 0 };
	bool alternatives = false;

	offers[axis](&b, s->q->c.run.plan);
	for (const int8_t *k = axis_keys[axis]; *k >= 0; k++)
		alternatives |= s->q->alternatives[*k].count > 0;
	if (b.count == 0 || alternatives) {
		struct mb_run run = s->q->c.run;

		offer_said(&b, &run, axis_keys[axis]);
	}
	if (b.count == 0)
		b.of[b.count++] = (struct mb_choice){ .plan = s->q->c.run.plan };
	/* With values that the user fixed, what is usually only a candidate under some facts is the only one. */
	for (int i = 0; i < b.count; i++) {
		if (b.count == 1)
			b.of[i].need = 0;
		if (axis == MB_P_RECOMPUTE && (!s->open[MB_K_recompute_layers] || alternatives))
			b.of[i].growth = MB_GROWS_NOT;
	}
	s->axis[axis] = (struct mb_choices){ b.count, mb_arena_alloc(s->arena, (size_t)b.count * sizeof *b.of) };
	memcpy(s->axis[axis].of, b.of, (size_t)b.count * sizeof *b.of);
}

void mb_space_fill(const struct mb_query *q, int gpus, struct mb_arena *arena, struct mb_space *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->q = q;
	ret->c = q->c;
	ret->c.run.gpus = gpus;
	mb_case_compile(&ret->c);
	ret->arena = arena;
	ret->derive_p2p = !q->set[MB_K_p2p_overlap] && !q->c.run.megatron_args;
	mb_search_open_keys(q, ret->open);
	for (int axis = MB_P_SP; axis < MB_P_COUNT; axis++)
		fill_axis(ret, (enum mb_plan_key)axis);
}
