/*
 * Transformer Engine's graphs of modules. Static buffers stay; saved tensors of captured parts count while they are
 * captured, and belong to the graphs' pool ever after. [megatron/core/transformer/cuda_graphs.py,
 * transformer_engine/pytorch/graph.py; docs/model.md sections 2 and 3]
 */
#include <math.h>
#include <string.h>

#include "cost/build.h"
#include "cost/memory.h"

/* What chunks hold at the schedule's fullest moment. */
static double most_in_flight(const struct mb_pipeline *order, int rank, const double each_chunk[MB_MAX_CHUNKS])
{
	struct mb_live_event event;

	mb_live_peak(order, rank, each_chunk, NULL, NULL, &event);
	return event.bytes;
}

/*
 * Inputs: a hidden state, and with attention a boolean mask, for each pair of layer and micro-batch whose backward is
 * still to come. Gradients: one of an output of each kind, a hidden state or permuted rows with their probabilities, and
 * one of an input.
 */
double mb_graph_static_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank)
{
	const struct mb_dims *d = &e->dims;
	struct mb_pipeline order = mb_memory_pipeline(c, p, d);
	double layers[MB_MAX_CHUNKS], x = 2 * d->local_tokens * c->model.hidden_size, mask = 0, workspaces = 0, permuted = 0;
	enum mb_attention_backend kernel = mb_attention_kernel(c);

	if (p->cuda_graph_impl != MB_GRAPH_TE)
		return 0;
	if (p->pp == 1 && !p->overlap_moe_expert_parallel_comm)
		order.micro_batches = 1;
	for (int v = 0; v < p->vp; v++)
		layers[v] = e->split.chunks[v * p->pp + rank].layers + e->split.chunks[v * p->pp + rank].mtp;
	if (d->scope & MB_SCOPE_ATTN)
		mask = d->mbs * (c->run.seq_length / (double)p->cp) * c->run.seq_length;
	/* Products of PyTorch run on two more streams, warm-up and capture, from two threads each. */
	if ((d->scope & MB_SCOPE_ATTN) && (kernel == MB_ATTN_UNFUSED || kernel == MB_ATTN_LOCAL))
		workspaces = 4 * mb_torch_workspace(c, false);
	if (d->scope & MB_SCOPE_MOE_PREPROCESS && c->model.num_moe_experts > 0)
		permuted = d->local_tokens * c->model.moe_router_topk * (2 * c->model.hidden_size + 4);
	return most_in_flight(&order, rank, layers) * (x + mask) + 2 * x + permuted + workspaces;
}

/* Of the quantised weights on a rank, those of captured linears. */
static double captured_weight_frac(const struct mb_evaluation *e, int rank)
{
	double captured = 0, all = 0;

	for (int j = rank; j < e->split.chunk_count; j += e->dims.pp)
		for (int k = 0; k < MB_KIND_COUNT; k++) {
			const struct mb_kind_cost *kind = &e->kinds[k];

			for (int i = 0; e->split.kinds[j][k] && i < kind->op_count; i++)
				for (int w = 0; w < kind->ops[i].weight_count; w++) {
					const struct mb_weight *weight = &kind->ops[i].weights[w];
					double n = weight->linear ? (double)e->split.kinds[j][k] * (double)(weight->rows * weight->cols * weight->count) : 0;

					all += n;
					captured += kind->ops[i].scope & e->dims.scope ? n : 0;
				}
		}
	return all > 0 ? captured / all : 0;
}

/*
 * What the first eager step would have made is not there yet: moments, quantised weights, gradients' dummies and
 * workspaces of what is not captured, the dispatcher's state.
 */
static void before_any_step(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                            double terms[MB_MEM_COUNT])
{
	struct mb_rank_params captured;

	mb_rank_params_fill(c, p, e, rank, &captured);
	captured.has_loss = captured.has_embedding = false;
	if (!(e->dims.scope & MB_SCOPE_MOE))
		captured.moe_layers = 0;
	terms[MB_MEM_moments] = terms[MB_MEM_dispatch] = 0;
	terms[MB_MEM_weight_cache] *= captured_weight_frac(e, rank);
	terms[MB_MEM_dummy_wgrad] = mb_dummy_bytes(c, p, e, rank, e->dims.scope);
	terms[MB_MEM_workspace] = mb_workspace_bytes(c, p, &e->dims, &captured);
}

/* Every micro-batch in flight is captured, with its outputs, which its backward starts from, and the scores of one layer. */
double mb_capture_terms(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                        const double between[MB_MEM_COUNT], double ret[MB_MEM_COUNT])
{
	struct mb_pipeline order = mb_memory_pipeline(c, p, &e->dims);
	double held[MB_MAX_CHUNKS], x = 2 * e->dims.local_tokens * c->model.hidden_size, scores = 0, sum = 0;

	if (p->pp == 1)
		order.micro_batches = 1;
	for (int v = 0; v < p->vp; v++) {
		const struct mb_chunk *chunk = &e->split.chunks[v * p->pp + rank];

		held[v] = (chunk->layers + chunk->mtp) * x;
		for (int k = 0; k < MB_KIND_COUNT; k++)
			if (e->split.kinds[v * p->pp + rank][k])
				held[v] += e->split.kinds[v * p->pp + rank][k] * e->kinds[k].captured_bytes;
	}
	for (int k = 0; k < MB_KIND_COUNT; k++)
		if (e->kinds[k].present)
			scores = fmax(scores, e->kinds[k].forward_transient_bytes);
	memcpy(ret, between, MB_MEM_COUNT * sizeof ret[0]);
	ret[MB_MEM_gradient_copy] = ret[MB_MEM_stage_input] = 0;
	if (c->run.cuda_graph_warmup_steps == 0)
		before_any_step(c, p, e, rank, ret);
	ret[MB_MEM_activations] = most_in_flight(&order, rank, held);
	ret[MB_MEM_transient] = scores;
	for (int i = 0; i < MB_MEM_COUNT; i++)
		sum += ret[i];
	return sum;
}
