/*
 * Memory between steps: model states by precision, optimizer and sharding, and the buffers that stay.
 * [megatron/core/distributed, optimizer/distrib_optimizer.py, optimizer_config.py; docs/model.md section 2]
 */
#include "cost/states.h"

#include <math.h>
#include <string.h>

#include "cost/build.h"
#include "cost/rounding.h"

static const double MIB = 1048576;

static void add_kind(const struct mb_kind_cost *k, double layers, struct mb_rank_params *r)
{
	r->dense += layers * (double)k->dense_params;
	r->expert += layers * (double)k->expert_params;
	r->dense_linear += layers * (double)k->dense_linear_params;
	r->expert_linear += layers * (double)k->expert_linear_params;
	r->dense_trained += layers * (double)k->dense_trained_params;
	r->expert_trained += layers * (double)k->expert_trained_params;
	r->tensors += layers * k->tensors;
}

void mb_rank_params_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         struct mb_rank_params *ret)
{
	const struct mb_model *m = &c->model;
	double vocabulary = (double)e->dims.padded_vocab / e->dims.tp * m->hidden_size;
	double trained = e->dims.frozen ? 0 : 1;
	int mtp = 0;

	*ret = (struct mb_rank_params){ 0 };
	for (int j = rank; j < e->split.chunk_count; j += p->pp) {
		const struct mb_chunk *chunk = &e->split.chunks[j];

		for (int k = 0; k < MB_KIND_COUNT; k++)
			if (e->split.kinds[j][k])
				add_kind(&e->kinds[k], e->split.kinds[j][k], ret);
		for (int k = 0; k < m->kind_count; k++)
			if (m->kinds[k].ffn == MB_FFN_MOE)
				ret->moe_layers += e->split.kinds[j][k];
		mtp += chunk->mtp;
		ret->has_embedding |= chunk->embedding;
		ret->has_loss |= chunk->loss;
	}
	if (mtp > 1 && m->mtp_use_repeated_layer) {     /* all depths run one set of weights */
		for (int i = 0; i < m->mtp_layer_count; i++)
			add_kind(&e->kinds[m->mtp_layers[i]], 1 - mtp, ret);
		add_kind(&e->kinds[MB_KIND_MTP], 1 - mtp, ret);
	}
	if (m->share_embeddings_and_output_weights && ret->has_loss && ret->has_embedding) {
		ret->dense -= vocabulary;
		ret->dense_trained -= trained * vocabulary;
		ret->tensors--;
	}
	if (mtp > 0 && !ret->has_embedding) {   /* an MTP block embeds the shifted tokens itself */
		ret->dense += vocabulary;
		ret->dense_trained += trained * vocabulary;
		ret->tensors++;
	}
	ret->unit_free = (ret->has_embedding + (ret->has_loss && !(m->share_embeddings_and_output_weights && ret->has_embedding))) * vocabulary
	                 + (ret->has_loss ? m->hidden_size : 0);
}

double mb_gradient_bytes(const struct mb_case *c, const struct mb_plan *p)
{
	const struct mb_run *r = &c->run;

	(void)p;
	if (r->precision == MB_FP32)
		return 4;
	if (r->precision == MB_FP16)
		return 2;
	if (r->use_precision_aware_optimizer && r->main_grads_dtype == MB_DT_BF16)
		return 2;
	return r->grad_reduce_in_fp32 != 0 ? 4 : 2;
}

bool mb_fp8_params(const struct mb_case *c)
{
	return c->run.fp8_param_gather == 1 && mb_format_of(c->run.precision)->quantise_bytes[1] > 0;
}

static double dtype_bytes(enum mb_dtype t)
{
	static const double bytes[] = { [MB_DT_FP32] = 4, [MB_DT_BF16] = 2, [MB_DT_FP16] = 2, [MB_DT_FP8] = 1 };

	return bytes[t];
}

/*
 * Whether a precision-aware optimizer keeps master weights inside Transformer Engine's fused Adam, reading gradients in
 * place. Bridge copies its default recipe "tensorwise" onto the optimizer, so its bf16 runs take the other path.
 */
static bool master_in_fused_adam(const struct mb_case *c, const struct mb_plan *p)
{
	const struct mb_run *r = &c->run;
	bool delayed = r->precision == MB_FP8_DS || (c->stack.framework == MB_MEGATRON_LM && !mb_format_of(r->precision)->quantise_bytes[1]);

	return r->use_precision_aware_optimizer && (r->main_params_dtype != MB_DT_FP32 || delayed || p->optimizer_cpu_offload);
}

/* Per parameter of the shard: master weight, both moments, and the fp32 copy of narrower gradients that the step makes. */
static void optimizer_bytes(const struct mb_case *c, const struct mb_plan *p, double *ret_master, double *ret_moments, double *ret_copy)
{
	const struct mb_run *r = &c->run;
	bool fused = master_in_fused_adam(c, p);

	*ret_master = fused ? 2 : 4;            /* fp32 master as the 16 bits that bf16 weights lack */
	*ret_moments = r->use_precision_aware_optimizer ? dtype_bytes(r->exp_avg_dtype) + dtype_bytes(r->exp_avg_sq_dtype) : 8;
	*ret_copy = !fused && mb_gradient_bytes(c, p) < 4 ? 4 : 0;
	if (r->precision == MB_FP32)
		*ret_master = 0;
	if (r->optimizer == MB_SGD)
		*ret_moments = 4;
}

static void weight_terms(const struct mb_case *c, const struct mb_dims *d, const struct mb_rank_params *r, double share_dense,
                         double share_expert, double terms[MB_MEM_COUNT])
{
	const struct mb_format_row *f = mb_format_of(c->run.precision);
	double quantised = f->weight_bytes[c->hardware.architecture >= MB_BLACKWELL], plain = d->act_bytes;
	double dense = r->dense / share_dense, expert = r->expert / share_expert;
	double dense_linear = r->dense_linear / share_dense, expert_linear = r->expert_linear / share_expert;

	if (mb_fp8_params(c)) {
		terms[MB_MEM_weights] = plain * (dense - dense_linear + expert - expert_linear) + quantised * (dense_linear + expert_linear);
		return;
	}
	terms[MB_MEM_weights] = plain * (dense + expert);
	if (d->quantised)       /* copies made at the first micro-batch stay [transformer_engine/pytorch/module/base.py] */
		terms[MB_MEM_weight_cache] = quantised * (r->dense_linear + r->expert_linear);
}

/* Shards of an optimizer state: data parallelism over the number of optimizer instances. */
static void shards(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, double *ret_dense, double *ret_expert)
{
	double instances = c->run.num_distributed_optimizer_instances > 0 ? c->run.num_distributed_optimizer_instances : 1;
	bool sharded = p->use_distributed_optimizer || p->use_megatron_fsdp;

	*ret_dense = sharded ? fmax(d->dense_shard / instances, 1) : 1;
	*ret_expert = sharded ? fmax(d->expert_dp / instances, 1) : 1;
}

static void optimizer_terms(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                            const struct mb_rank_params *r, double terms[MB_MEM_COUNT], double *ret_host_bytes)
{
	double master, moments, copy, sd, sx, owned, stay = 1;

	optimizer_bytes(c, p, &master, &moments, &copy);
	shards(c, p, &e->dims, &sd, &sx);
	owned = r->dense_trained / sd + r->expert_trained / sx;
	if (p->optimizer_cpu_offload)
		stay = 1 - p->optimizer_offload_fraction;
	terms[MB_MEM_master] = stay * master * owned;
	terms[MB_MEM_moments] = stay * moments * owned;
	if (c->run.optimizer == MB_MUON)
		mb_muon_terms(c, p, e, rank, r, &terms[MB_MEM_master], &terms[MB_MEM_moments]);
	terms[MB_MEM_gradient_copy] = copy * owned;
	*ret_host_bytes = (1 - stay) * (master + moments) * owned + (1 - stay) * 4 * owned;
}

/*
 * Megatron-FSDP. Buckets outside transformer units stay gathered; fp8 weights have bf16 gradients and an fp32 copy of
 * them until zero_grad. [megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py]
 */
static void fsdp_terms(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r,
                       double terms[MB_MEM_COUNT])
{
	bool weights = p->sharding == MB_SHARD_FULL, gradients = p->sharding >= MB_SHARD_OPTIM_GRADS, states = p->sharding >= MB_SHARD_OPTIM;
	double sd, sx, gd, gx, linear, owned;

	shards(c, p, d, &sd, &sx);
	gd = gradients ? sd : 1;
	gx = gradients ? sx : 1;
	weight_terms(c, d, r, weights ? sd : 1, weights ? sx : 1, terms);
	linear = mb_fp8_params(c) ? r->dense_linear / gd + r->expert_linear / gx : 0;
	terms[MB_MEM_gradients] = dtype_bytes(c->run.fsdp_main_grads_dtype) * (r->dense_trained / gd + r->expert_trained / gx - linear) + 2 * linear;
	owned = states ? r->dense_trained / sd + r->expert_trained / sx : r->dense_trained + r->expert_trained;
	if (states && c->run.outer_dp_sharding_strategy >= MB_SHARD_OPTIM)      /* hybrid: states over the replicas as well */
		owned /= fmax(c->run.num_distributed_optimizer_instances, 1);
	terms[MB_MEM_master] = 4 * owned;
	terms[MB_MEM_moments] = 8 * owned;
	terms[MB_MEM_gradient_copy] = mb_fp8_params(c) ? 4 * (r->dense_linear / sd + r->expert_linear / sx) : 0;
	if (weights)
		terms[MB_MEM_unsharded] = d->act_bytes * r->unit_free;
}

double mb_dummy_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank, unsigned scope)
{
	struct { int64_t rows, cols; } seen[64];
	int count = 0;
	double bytes = 0;

	if (!c->run.gradient_accumulation_fusion || e->dims.frozen || p->use_megatron_fsdp)
		return 0;
	for (int k = 0; k < MB_KIND_COUNT; k++) {
		bool here = false;

		if (k == MB_KIND_HEAD && c->stack.month <= MB_MONTH_2025_10 && (c->stack.lts || c->run.defer_embedding_wgrad_compute))
			continue;       /* images of 2025-10 made none for the output layer */
		for (int j = rank; j < e->split.chunk_count; j += p->pp)
			here |= e->split.kinds[j][k] > 0;
		for (int i = 0; here && i < e->kinds[k].op_count; i++) {
			if (scope && !(e->kinds[k].ops[i].scope & scope))
				continue;
			for (int w = 0; w < e->kinds[k].ops[i].weight_count; w++) {
				const struct mb_weight *weight = &e->kinds[k].ops[i].weights[w];
				int s = 0;

				while (s < count && (seen[s].rows != weight->rows || seen[s].cols != weight->cols))
					s++;
				if (!weight->dummy || s < count || count == 64)
					continue;
				seen[count].rows = weight->rows;
				seen[count++].cols = weight->cols;
				bytes += 2 * (double)weight->rows * (double)weight->cols;
			}
		}
	}
	return bytes;
}

/* Batch tensors on the device: labels and loss mask; tokens and positions where one stage has both ends; the mask. */
double mb_batch_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d)
{
	double bytes = 12 * d->tokens + (p->pp == 1 ? 16 * d->tokens : 0);

	if (c->run.create_attention_mask_in_dataloader)
		bytes += d->tokens * c->run.seq_length;
	return bytes;
}

/*
 * Only products of PyTorch need one: the output layer, attention without a fused kernel, adapters (assumed). Linears and
 * the router go through Transformer Engine.
 */
double mb_torch_workspace(const struct mb_case *c, bool has_loss)
{
	enum mb_attention_backend kernel = mb_attention_kernel(c);
	int cc = c->hardware.compute_capability;

	if (!has_loss && kernel != MB_ATTN_LOCAL && kernel != MB_ATTN_UNFUSED && c->run.task != MB_LORA)
		return 0;
	if (c->run.cublas_workspace_4096_8 || cc == 90 || (cc >= 100 && c->stack.month >= 12 * 2026 + 4))
		return 32 * MIB;
	return 8.125 * MIB;
}

static bool old_lts(const struct mb_case *c)
{
	return c->stack.lts && c->stack.month <= MB_MONTH_2025_10;
}

double mb_workspace_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r)
{
	bool moe = r->moe_layers > 0;
	double one = c->hardware.compute_capability >= 90 ? 32 * MIB + 1024 : 4 * MIB, bytes = 2 * mb_torch_workspace(c, r->has_loss), shared = 0;
	double heads = (double)c->model.num_attention_heads / d->tp, s = c->run.seq_length;
	bool local = c->run.transformer_impl == MB_IMPL_LOCAL;

	if (!local || (moe && !old_lts(c)))
		bytes += one * (1 + (moe && c->run.moe_grouped_gemm && !old_lts(c) ? 4 : 0));
	if (d->sp && (r->has_loss || local))
		shared = 2 * d->tokens * c->model.hidden_size;
	if (local)
		shared = fmax(shared, 2 * d->mbs * heads * (s / d->cp) * s);
	if (r->moe_layers > 0 && p->dispatcher == MB_DISPATCH_ALLGATHER && d->ep * d->etp > 1)
		shared = fmax(shared, 2 * d->local_tokens * d->ep * d->etp * c->model.hidden_size);
	if (p->tp_comm_overlap)
		bytes += 3 * 32 * MIB;
	return bytes + shared + 3584 + (c->run.precision == MB_FP16 ? 2048 : 0);
}

/* Routing maps and probabilities that the dispatcher's attributes keep, and two hidden states per layer with EP overlap. */
static double dispatch_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r)
{
	double nt = d->local_tokens, rows = nt * c->model.moe_router_topk * d->etp, each;

	if (r->moe_layers == 0)
		return 0;
	if (p->dispatcher == MB_DISPATCH_ALLGATHER && d->ep * d->etp > 1)
		each = nt * d->ep * d->etp * d->experts_local + 12 * rows;
	else
		each = nt * c->model.num_moe_experts * 5 + 8 * nt * c->model.moe_router_topk + 4 * rows;
	if (p->overlap_moe_expert_parallel_comm && !p->fine_grained_activation_offloading)
		each += 2 * 2 * nt * c->model.hidden_size;
	return r->moe_layers * each;
}

/*
 * Micro-batches that the rerun state machine kept on the device between 2026-05-21 (5e4fc931ba) and the mend of 2026-07-06
 * (bf32f4415e; last seen 2026-07-08), on the first tensor-parallel rank. [core/rerun_state_machine.py]
 */
static double retained_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r)
{
	bool window = mb_stack_since(&c->stack, 2026, 5, 21) && !mb_stack_since(&c->stack, 2026, 7, 10);

	if (c->stack.framework != MB_MEGATRON_LM || !window || p->tp > 1 || !(r->has_embedding || r->has_loss))
		return 0;
	if (c->model.family && c->model.family[0] == 'h')
		return 0;
	return (double)d->micro_batches * mb_batch_bytes(c, p, d);
}

void mb_state_waste_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         const struct mb_rank_params *params, struct mb_state_waste *ret)
{
	ret->rounding = mb_state_rounding(c, p, e, rank, params, &ret->copy_rounding);
	ret->dummy = mb_dummy_bytes(c, p, e, rank, 0);
}

void mb_states_fill_with(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         const struct mb_rank_params *params, const struct mb_state_waste *waste, double terms[MB_MEM_COUNT],
                         double *ret_host_bytes)
{
	const struct mb_dims *d = &e->dims;
	int received = p->vp - (rank == 0);     /* chunks whose input comes from another stage */

	memset(terms, 0, MB_MEM_COUNT * sizeof terms[0]);
	*ret_host_bytes = 0;
	if (p->use_megatron_fsdp) {
		fsdp_terms(c, p, d, params, terms);
	} else {
		weight_terms(c, d, params, 1, 1, terms);
		terms[MB_MEM_gradients] = mb_gradient_bytes(c, p) * (params->dense_trained + params->expert_trained);
		optimizer_terms(c, p, e, rank, params, terms, ret_host_bytes);
	}
	terms[MB_MEM_rounding] = waste->rounding;
	terms[MB_MEM_gradient_copy] += waste->copy_rounding;
	terms[MB_MEM_dummy_wgrad] = waste->dummy;
	terms[MB_MEM_workspace] = mb_workspace_bytes(c, p, d, params);
	terms[MB_MEM_dispatch] = dispatch_bytes(c, p, d, params);
	terms[MB_MEM_batch] = retained_bytes(c, p, d, params);
	if (p->pp > 1)
		terms[MB_MEM_stage_input] = received * 2 * 2 * d->local_tokens * c->model.hidden_size;
}

void mb_states_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                    const struct mb_rank_params *params, double terms[MB_MEM_COUNT], double *ret_host_bytes)
{
	struct mb_state_waste waste;

	mb_state_waste_fill(c, p, e, rank, params, &waste);
	mb_states_fill_with(c, p, e, rank, params, &waste, terms, ret_host_bytes);
}
