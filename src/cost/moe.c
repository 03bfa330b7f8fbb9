/* Mixture-of-experts layers: router, dispatch, experts, combine, shared expert. */
#include "cost/build.h"

#include <math.h>

/* C(without, k) / C(pool, k): the chance that none of k draws falls into the rest of the pool. */
static double choose_ratio(double pool, double without, double k)
{
	double ratio = 1;

	if (without < k)
		return 0;
	for (double i = 0; i < k; i++)
		ratio *= (without - i) / (pool - i);
	return ratio;
}

/* Groups at least as fine as the routing groups: all of a token's experts lie in group_topk routing groups. */
static double distinct_fine(double e, double k, double groups, double routing_groups, double kept)
{
	double inside = groups / routing_groups, pool = kept * e / routing_groups;

	return kept * inside * (1 - choose_ratio(pool, pool - e / groups, k));
}

/* Hypergeometric: j of `kept` draws fall into `held` of `all`, in any order. */
static double chance_of(double j, double kept, double held, double all)
{
	double chance = 1;

	for (double i = 0; i < j; i++)
		chance *= (held - i) / (all - i) * (kept - i) / (i + 1);
	for (double i = 0; i < kept - j; i++)
		chance *= (all - held - i) / (all - j - i);
	return chance;
}

/* Groups that hold several routing groups: over how many of the kept ones fall into a group. */
static double distinct_coarse(double e, double k, double groups, double routing_groups, double kept)
{
	double held = routing_groups / groups, pool = kept * e / routing_groups, missed = 0;

	for (double j = 0; j <= held && j <= kept; j++)
		if (kept - j <= routing_groups - held)
			missed += chance_of(j, kept, held, routing_groups) * choose_ratio(pool, pool - j * e / routing_groups, k);
	return groups * (1 - missed);
}

/*
 * Uniform routing without replacement: D(G) = G (1 - C(E - E/G, k) / C(E, k)). With group-limited routing the choice is
 * first of group_topk routing groups, then of experts inside them. [DeepEP's own estimate; spec vectors V3]
 */
double mb_distinct_groups(const struct mb_model *m, double groups)
{
	double e = m->num_moe_experts, k = m->moe_router_topk;
	double routing = m->moe_router_num_groups, kept = m->moe_router_group_topk;

	if (groups <= 1)
		return 1;
	if (routing > 1 && kept > 0 && kept < routing)
		return groups >= routing ? distinct_fine(e, k, groups, routing, kept) : distinct_coarse(e, k, groups, routing, kept);
	return groups * (1 - choose_ratio(e, e - e / groups, k));
}

/* Copies of a token that leave the GPU in one dispatch: inside the NVLink domain and across domains. */
static void copies_sent(const struct mb_build *b, double *ret_inside, double *ret_across)
{
	const struct mb_model *m = &b->c->model;
	double e = b->d->ep, k = m->moe_router_topk, et = b->d->etp;
	double members = fmin(fmax(floor(b->c->domain / et), 1), e);    /* expert-parallel ranks of a domain */
	double domains = ceil(e / members);

	*ret_inside = *ret_across = 0;
	if (e * et <= 1)
		return;
	switch (b->p->dispatcher) {
	case MB_DISPATCH_ALLGATHER:
		*ret_inside = members * et - 1;
		*ret_across = (e - members) * et;
		return;
	case MB_DISPATCH_ALLTOALL:
		*ret_inside = k * (members - 1) / e;
		*ret_across = k * (e - members) / e;
		return;
	case MB_DISPATCH_FLEX:
		*ret_inside = domains > 1 ? mb_distinct_groups(m, e) * (1 - 1 / members) : mb_distinct_groups(m, e) * (e - 1) / e;
		*ret_across = domains > 1 ? mb_distinct_groups(m, domains) * (1 - 1 / domains) : 0;
		return;
	}
}

static double model_width(const struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;

	return m->moe_latent_size > 0 ? m->moe_latent_size : m->hidden_size;
}

/* Passes over the token rows that permutation takes on one side, in units of the rank's tokens. */
static double permute_passes(const struct mb_build *b)
{
	double k = b->c->model.moe_router_topk;

	if (b->p->dispatcher == MB_DISPATCH_FLEX)
		return mb_distinct_groups(&b->c->model, b->d->ep) + k;
	return 1 + k + (b->d->experts_local > 1 ? 2 * k : 0);
}

/* Dispatch or combine: the exchange and the permutation on this side of it. The backward of one is the other. */
static struct mb_op *exchange(struct mb_build *b, const char *name, enum mb_axis axis)
{
	const struct mb_dims *d = b->d;
	struct mb_op *op = mb_build_op(b, name, MB_CLASS_PERMUTE, MB_MOE);
	double row = d->local_tokens * model_width(b) * 2, inside, across;

	copies_sent(b, &inside, &across);
	mb_build_traffic(op, row * permute_passes(b), row * permute_passes(b));
	mb_build_kernels(op, 4, 4);
	if (d->ep * d->etp > 1) {
		op->send.axis = axis;
		op->send.forward_remote_bytes = op->send.backward_remote_bytes = across * row * d->imbalance;
		op->send.forward_bytes = op->send.backward_bytes = (inside + across) * row * d->imbalance;
		op->send.forward_calls = op->send.backward_calls = 1;
	}
	return op;
}

/* ETP gathers the rows of its group before the experts and reduce-scatters behind them (alltoall; flex folds it in). */
static void expert_tensor_exchange(struct mb_build *b)
{
	const struct mb_dims *d = b->d;
	double moved = (d->etp - 1.0) / d->etp * d->rows_balanced * d->imbalance * model_width(b) * 2;
	struct mb_op *op;

	if (d->etp == 1 || b->p->dispatcher != MB_DISPATCH_ALLTOALL)
		return;
	op = mb_build_op(b, "expert_tensor_exchange", MB_CLASS_ELEMENTWISE, MB_MOE);
	op->send = (struct mb_send){ MB_AXIS_ETP, 2 * moved, 2 * moved, 0, 0, 0, 2, 2 };
}

static void router(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_run *r = &b->c->run;
	const struct mb_dims *d = b->d;
	double nt = d->local_tokens, e = m->num_moe_experts, h = m->hidden_size;
	double passes = r->moe_router_fusion ? 6 : 14;
	double extra_host = m->moe_shared_expert_intermediate_size && !mb_build_captured(b, MB_SCOPE_MOE_ROUTER) ? 15 : 0;
	struct mb_op *op = mb_build_linear(b, (struct mb_linear){ "router", nt, e, h, MB_MOE, MB_WHOLE, 0, true });

	op->accumulate_bytes = 0;
	op->class = MB_CLASS_GEMM;
	mb_build_kernels(op, 11, 14);
	if (!r->moe_router_fusion)
		mb_build_launches(b, op, 12, 0, MB_SCOPE_MOE_ROUTER);
	mb_build_traffic(op, nt * e * 4 * passes / 2, nt * e * 4 * passes / 2);
	if (r->moe_router_dtype == MB_DT_FP32) {        /* backward casts input, gradient and output [moe/router.py] */
		mb_build_traffic(op, 0, 10 * 2 * nt * h);
		mb_build_kernels(op, 0, 4);
	}
	mb_build_keep(op, 20 * nt * e, MB_MOE | MB_FULL, 0);
	if (m->moe_router_bias_linear)
		mb_build_weight(op, e, 1, 1, (struct mb_weight){ 0 });
	op->host_ops += (mb_build_captured(b, MB_SCOPE_MOE_ROUTER) ? 20 : 45) + extra_host + (m->moe_latent_size ? 12 : 0);
	if (d->full_graph)
		op->host_ops = 0;
}

static void shared_expert(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	double g = mb_build_gate(m), h = m->hidden_size, f = (double)m->moe_shared_expert_intermediate_size / d->tp;
	unsigned modules = MB_SHARED_EXPERTS | MB_MOE, gone = modules | MB_FULL;
	struct mb_op *op;

	if (f <= 0)
		return;
	op = mb_build_linear(b, (struct mb_linear){ "shared_fc1", d->tokens, g * f, h, modules, MB_COLUMN, h, false });
	mb_build_keep(op, d->act_bytes * d->tokens * g * f, gone, 0);
	if (b->p->moe_shared_expert_overlap && d->sp)
		mb_build_keep(op, d->act_bytes * d->tokens * h, MB_MOE | MB_FULL, 0);   /* the gathered input */
	if (m->moe_shared_expert_gate)
		mb_build_weight(op, h, 1, 1, (struct mb_weight){ 0 });
	mb_build_host(b, op, 22 + (d->quantised ? 6 : 0) + (d->tp > 1 ? 8 : 0), 12, MB_SCOPE_MLP);
	mb_build_adapter(b, "lora_shared_fc1", MB_TARGET_FC1, (struct mb_adapter){ d->tokens, g * f, h, true, false, modules });
	op = mb_build_op(b, "shared_activation", MB_CLASS_ELEMENTWISE, modules);
	mb_build_traffic(op, (g + 1) * 2 * d->tokens * f, (2 * g + 1) * 2 * d->tokens * f);
	mb_build_kernels(op, 2, 4);
	op = mb_build_linear(b, (struct mb_linear){ "shared_fc2", d->tokens, h, f, modules, MB_ROW, h, false });
	mb_build_keep(op, mb_build_input_bytes(b, MB_TARGET_FC2) * d->tokens * f, gone, 0);
	mb_build_adapter(b, "lora_shared_fc2", MB_TARGET_FC2, (struct mb_adapter){ d->tokens, h, f, false, false, modules });
}

/* Grouped product over the local experts: `rows` in all, split evenly. */
static struct mb_op *expert_linear(struct mb_build *b, const char *name, double rows, double out, double in, double quantise_in,
                                   double quantise_out)
{
	const struct mb_dims *d = b->d;
	struct mb_op *op = mb_build_linear(b, (struct mb_linear){ name, rows / d->experts_local, out, in, MB_MOE, MB_WHOLE, 0, false });
	double groups = d->experts_local;

	op->class = MB_CLASS_EXPERT_GEMM;
	op->groups = groups;
	op->forward_flops *= groups;
	op->backward_flops *= groups;
	op->accumulate_bytes *= groups;
	op->quantise_forward_bytes *= groups * quantise_in;
	op->quantise_replay_bytes *= groups * quantise_in;
	op->quantise_backward_bytes *= groups * quantise_out;
	op->forward_kernels = op->backward_kernels = 0;
	op->weights[0] = (struct mb_weight){ (int64_t)out, (int64_t)in, (int)groups, true, true, true };
	return op;
}

/*
 * GPT-OSS: the clamp runs before the fused kernel (two clamps, a concatenation, their backwards) and the second bias is
 * added expert by expert outside the product, in fp32 where the dispatcher hands over fp32 probabilities. The op fuser
 * moves all of it into the products but one reduction pass. Units: one bf16 [rows, width] tensor read or written.
 * [megatron/core/fusions/fused_bias_geglu.py, transformer/moe/experts.py]
 */
static void expert_bias(struct mb_build *b, double rows, double f, double width, bool fuser)
{
	const struct mb_dims *d = b->d;
	double factor = b->c->params.expert_bias_factor;
	double uf = rows * f * 2 * factor, uh = rows * width * 2 * factor;
	double passes = b->p->dispatcher == MB_DISPATCH_FLEX ? 34 : 14;
	struct mb_op *op = mb_build_op(b, "expert_bias", MB_CLASS_ELEMENTWISE, MB_MOE);

	if (fuser) {
		mb_build_traffic(op, 0, 2 * uh);
		return;
	}
	mb_build_traffic(op, 8 * uf + passes * uh / 2, 18 * uf + passes * uh / 2);
	op->expert_kernels = 9 * d->experts_local;
	op->host_s = d->full_graph ? 0 : 12 * d->experts_local * b->c->params.host_expert_kernel_s;
}

static void expert_kernels(struct mb_build *b, struct mb_op *op, bool fuser)
{
	const struct mb_params *k = &b->c->params;
	double kernels = b->format->expert_kernels * b->d->experts_local;

	if (fuser)
		mb_build_kernels(op, 8, 10);
	else
		op->expert_kernels = kernels;
	if (b->d->full_graph)
		return;
	op->host_s = kernels * k->host_expert_kernel_s;
	op->replay_host_s = op->host_s / 3;
}

/* The token dispatcher's own host work, and the wait for token counts before buffers can be sized. */
static void dispatcher_host(struct mb_build *b, struct mb_op *op)
{
	const struct mb_params *k = &b->c->params;
	bool captured = mb_build_captured(b, MB_SCOPE_MOE_PREPROCESS);
	bool flex = b->p->dispatcher == MB_DISPATCH_FLEX;

	if (b->d->full_graph)
		return;
	op->host_s = k->host_dispatcher_s * (captured ? k->host_dispatcher_graph_factor : 1)
	             * (flex ? 1 : k->host_dispatcher_alltoall_factor);
	op->replay_host_s = op->host_s / 2;
	op->sync_s = k->routing_sync_s * (captured ? k->routing_sync_graph_factor : 1) * (flex ? 1 : k->routing_sync_alltoall_factor);
}

static void experts(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_run *r = &b->c->run;
	const struct mb_dims *d = b->d;
	bool fuser = r->use_transformer_engine_op_fuser;
	double g = mb_build_gate(m), f = (double)m->moe_ffn_hidden_size / d->etp, width = model_width(b);
	double rows = d->rows_balanced * d->imbalance;
	double edge = fuser ? 0 : 1, pass = fuser ? 0.6 : 1;
	bool unfused_product = !m->gated_linear_unit && !(m->activation == MB_ACT_SQUARED_RELU && r->fused_weighted_squared_relu)
	                       && !(b->c->stack.lts && b->c->stack.month <= MB_MONTH_2025_10 && r->moe_grouped_gemm);
	struct mb_op *op;

	op = expert_linear(b, "expert_fc1", rows, g * f, width, 1, edge);
	mb_build_keep(op, mb_build_input_bytes(b, MB_TARGET_FC1) * d->rows * width, MB_MOE | MB_FULL, MB_OFF_EXPERT_FC1);
	mb_build_keep(op, (r->activation_func_fp8_input_store ? 1 : d->act_bytes) * d->rows * g * f, MB_MOE | MB_FULL, MB_OFF_MOE_ACT);
	expert_kernels(b, op, fuser);
	if (m->add_bias_linear)
		mb_build_weight(op, g * f, 1, d->experts_local, (struct mb_weight){ .expert = true });
	mb_build_adapter(b, "lora_expert_fc1", MB_TARGET_FC1, (struct mb_adapter){ rows, g * f, width, false, true, MB_MOE });
	op = mb_build_op(b, "expert_activation", MB_CLASS_ELEMENTWISE, MB_MOE_ACT | MB_MOE);
	mb_build_traffic(op, (g + 1) * 2 * rows * f * pass, (2 * g + 1) * 2 * rows * f * pass);
	op->replay_host_ops = d->full_graph ? 0 : 6;
	if (unfused_product)    /* activation and its product with the routing weight are both kept */
		mb_build_keep(op, d->act_bytes * d->rows * f, MB_MOE_ACT | MB_MOE | MB_FULL, 0);
	if (r->moe_paged_stash && d->full_graph && fuser)
		mb_build_traffic(op, 2 * rows * (width * 1.03 + g * f * 2 + f * 1.03) * b->c->params.paged_stash_factor,
		                 2 * rows * (width * 1.03 + g * f * 2 + f * 1.03) * b->c->params.paged_stash_factor);
	op = expert_linear(b, "expert_fc2", rows, width, f, edge, 1);
	mb_build_keep(op, mb_build_input_bytes(b, MB_TARGET_FC2) * d->rows * f, MB_MOE_ACT | MB_MOE | MB_FULL, 0);
	if (m->add_bias_linear) {
		mb_build_weight(op, m->hidden_size, 1, d->experts_local, (struct mb_weight){ .expert = true });
		expert_bias(b, rows, f, width, fuser);
	}
	mb_build_adapter(b, "lora_expert_fc2", MB_TARGET_FC2, (struct mb_adapter){ rows, width, f, false, true, MB_MOE });
}

/* Sources of index_add_ are kept in deterministic mode; scatter_add_ keeps nothing. Goldens of 2025-11 on. */
static double kept_unpermute_source(const struct mb_build *b)
{
	const struct mb_run *r = &b->c->run;

	if (!r->deterministic_mode || r->moe_permute_fusion || b->c->stack.month <= MB_MONTH_2025_10)
		return 0;
	if (b->p->dispatcher == MB_DISPATCH_ALLGATHER)
		return b->d->act_bytes * b->d->rows * model_width(b);
	return b->d->act_bytes * b->d->local_tokens * b->c->model.moe_router_topk * model_width(b);
}

/* The projection down reads the norm's output, which the router keeps in bf16. */
static void latent(struct mb_build *b, const char *name, double out, double in)
{
	bool shared = in > out && !b->d->quantised;
	struct mb_op *op;

	if (b->c->model.moe_latent_size <= 0)
		return;
	op = mb_build_linear(b, (struct mb_linear){ name, b->d->local_tokens, out, in, MB_MOE, MB_WHOLE, 0, false });
	mb_build_keep(op, shared ? 0 : (b->d->quantised ? b->d->saved_bytes : b->d->act_bytes) * b->d->local_tokens * in, MB_MOE | MB_FULL, 0);
}

void mb_build_moe(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	double element = d->local_tokens * m->hidden_size;
	double kept = !d->frozen || (m->moe_shared_expert_intermediate_size > 0 && mb_build_adapted(b, MB_TARGET_FC1)) ? d->act_bytes : 0;
	struct mb_op *op;

	op = mb_build_norm(b, "pre_mlp_norm", MB_LAYERNORM_MODULE, kept * element, MB_LAYERNORM_MODULE | MB_FULL, MB_OFF_MLP_NORM);
	mb_build_traffic(op, 0, 2 * 2 * element);       /* the router's and the experts' gradients meet */
	op->replay_host_ops = mb_build_captured(b, MB_SCOPE_MOE_ROUTER) ? 0 : 10;
	router(b);
	shared_expert(b);
	latent(b, "latent_down", m->moe_latent_size, m->hidden_size);
	b->scope = MB_SCOPE_MOE;
	op = exchange(b, "dispatch", MB_AXIS_EP_DISPATCH);
	mb_build_keep(op, 12 * d->rows, MB_MOE | MB_FULL, 0);   /* row maps and permuted probabilities */
	dispatcher_host(b, op);
	expert_tensor_exchange(b);
	experts(b);
	op = exchange(b, "combine", MB_AXIS_EP_COMBINE);
	mb_build_keep(op, kept_unpermute_source(b), MB_MOE | MB_FULL, 0);
	latent(b, "latent_up", m->hidden_size, m->moe_latent_size);
	mb_build_residual(b, "moe_residual");
}
