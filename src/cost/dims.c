/* Sizes that a plan implies for every layer. */
#include <math.h>

#include "cost/formats.h"
#include "cost/op.h"

enum { EVERY_SCOPE = MB_SCOPE_ATTN | MB_SCOPE_MLP | MB_SCOPE_MOE | MB_SCOPE_MOE_ROUTER | MB_SCOPE_MOE_PREPROCESS | MB_SCOPE_MAMBA };

static void fill_parallel(const struct mb_case *c, const struct mb_plan *p, struct mb_dims *d)
{
	int gpus = c->run.gpus;
	int replicas = gpus / (p->tp * p->cp * p->pp);

	d->tp = p->tp;
	d->cp = p->cp;
	d->pp = p->pp;
	d->vp = p->vp;
	d->ep = p->ep;
	d->etp = p->etp;
	d->mbs = p->micro_batch_size;
	d->dp = replicas > 0 ? replicas : 1;
	d->dense_shard = d->dp * p->cp;
	d->expert_dp = gpus / (p->etp * p->ep * p->pp);
	if (d->expert_dp < 1)
		d->expert_dp = 1;
	d->micro_batches = c->run.global_batch_size / ((int64_t)p->micro_batch_size * d->dp);
	if (d->micro_batches < 1)
		d->micro_batches = 1;
	d->sp = p->sequence_parallel && p->tp > 1;
	d->tokens = (double)c->run.seq_length * p->micro_batch_size / p->cp;
	d->local_tokens = d->sp ? d->tokens / p->tp : d->tokens;
}

/* Rows of each expert are padded for quantised products, and always to 256 as a grouped tensor [moe_utils.py]. */
static double padded_rows(const struct mb_run *r, const struct mb_format_row *f)
{
	int multiple = f->row_multiple;

	if (r->use_transformer_engine_op_fuser || r->moe_use_grouped_tensor)
		multiple = 256;
	return (multiple - 1) / 2.0;
}

static void fill_experts(const struct mb_case *c, const struct mb_format_row *f, struct mb_dims *d)
{
	const struct mb_model *m = &c->model;
	const struct mb_run *r = &c->run;
	double factor = r->moe_expert_capacity_factor;

	d->imbalance = 1;
	if (!m->num_moe_experts)
		return;
	d->experts_local = (double)m->num_moe_experts / d->ep;
	d->rows_balanced = d->local_tokens * m->moe_router_topk * d->etp;
	d->imbalance = r->moe_router_force_load_balancing ? 1 : r->moe_load_imbalance;
	if (factor > 0 && r->moe_pad_expert_input_to_capacity) {
		double capacity = ceil(d->local_tokens * m->moe_router_topk / m->num_moe_experts * factor);

		d->rows_balanced = capacity * d->experts_local * d->ep * d->etp;
		d->imbalance = 1;
		d->rows = d->rows_balanced;
		return;
	}
	if (factor > 0 && d->imbalance > factor)
		d->imbalance = factor;
	d->rows = d->rows_balanced * d->imbalance + d->experts_local * padded_rows(r, f);
}

static unsigned captured(const struct mb_plan *p)
{
	if (p->cuda_graph_impl == MB_GRAPH_NONE)
		return 0;
	if (p->cuda_graph_impl == MB_GRAPH_FULL || p->cuda_graph_scope == 0)
		return EVERY_SCOPE;
	return p->cuda_graph_scope;
}

static unsigned recomputed(const struct mb_plan *p)
{
	switch (p->recompute) {
	case MB_RECOMPUTE_NONE:
		return 0;
	case MB_RECOMPUTE_FULL:
		return MB_FULL;
	case MB_RECOMPUTE_SELECTIVE:
		break;
	}
	return p->recompute_modules;
}

/* Length of the sequences that attention sees: fine-tuning samples hold several short ones. */
static double core_sequence(const struct mb_case *c)
{
	double seq = c->run.seq_length;
	double mean = c->run.mean_sequence_length;

	if (mean <= 0 && (c->run.task != MB_PRETRAIN || c->run.packed_sequence))
		mean = c->params.finetune_mean_tokens;
	return mean > 0 && mean < seq ? mean : seq;
}

void mb_dims_fill(const struct mb_case *c, const struct mb_plan *p, struct mb_dims *ret)
{
	const struct mb_format_row *f = mb_format_of(c->run.precision);
	int divisor = c->model.make_vocab_size_divisible_by * p->tp;

	*ret = (struct mb_dims){ 0 };
	fill_parallel(c, p, ret);
	ret->act_bytes = c->run.precision == MB_FP32 || c->run.fp32_compute ? 4 : 2;
	ret->format = f->format;
	ret->quantised = f->quantise_bytes[1] > 0;
	ret->saved_bytes = f->saved_bytes;
	ret->padded_vocab = (c->model.vocab_size + divisor - 1) / divisor * divisor;
	ret->full_graph = p->cuda_graph_impl == MB_GRAPH_FULL;
	ret->scope = captured(p);
	ret->modules = recomputed(p);
	ret->frozen = c->run.task == MB_LORA;
	ret->core_seq = core_sequence(c);
	fill_experts(c, f, ret);
}
