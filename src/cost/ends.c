/* The blocks at the ends of the pipeline: embedding, MTP projection, head and loss. */
#include "cost/build.h"

void mb_build_embedding(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	struct mb_op *op = mb_build_op(b, "embedding", MB_CLASS_ELEMENTWISE, 0);
	double element = d->local_tokens * m->hidden_size;

	op->replayed_by = 0;
	mb_build_traffic(op, 2 * 2 * element, d->frozen ? 0 : 8 * element);
	mb_build_kernels(op, 3, 4);
	op->host_ops = d->full_graph ? 0 : 20;
	mb_build_keep(op, 8 * d->tokens, 0, 0);
	if (b->c->run.hidden_dropout > 0)
		mb_build_keep(op, element, 0, 0);
	mb_build_weight(op, (double)d->padded_vocab / d->tp, m->hidden_size, 1, (struct mb_weight){ 0 });
	if (m->position_embedding_type == MB_POS_LEARNED)
		mb_build_weight(op, m->max_position_embeddings, m->hidden_size, 1, (struct mb_weight){ 0 });
}

/* One MTP depth: norms of hidden state and embedding, their concatenation projected back, a final norm. */
void mb_build_mtp(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	double h = m->hidden_size, nt = d->local_tokens;
	struct mb_op *op = mb_build_op(b, "mtp_norms", MB_CLASS_ELEMENTWISE, 0);

	mb_build_kernels(op, 3, 6);
	mb_build_keep(op, 4 * d->act_bytes * nt * h, MB_FULL, 0);
	mb_build_weight(op, h, 1, 3 * mb_build_norm_vectors(m), (struct mb_weight){ 0 });
	op = mb_build_linear(b, (struct mb_linear){ "mtp_projection", nt, h, 2 * h, 0, MB_WHOLE, 0, m->family && m->family[0] == 'h' });
	mb_build_keep(op, d->act_bytes * d->tokens * 2 * h, MB_FULL, 0);        /* the concatenation, gathered */
	op->weights[0] = (struct mb_weight){ (int64_t)(h / d->tp), (int64_t)(2 * h), 1, false, true, true };
}

/*
 * Final norm, output layer and loss, once for the main head and once for each MTP depth. The loss reads and writes the
 * logits about 4 times with Transformer Engine's fused kernel, 9 times otherwise.
 */
void mb_build_head(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_run *r = &b->c->run;
	const struct mb_dims *d = b->d;
	double h = m->hidden_size, v = (double)d->padded_vocab / d->tp, t = d->tokens, heads = 1 + b->c->mtp_depth;
	bool quantised = r->fp8_output_proj && d->quantised;
	double passes = r->cross_entropy_loss_fusion && r->cross_entropy_fusion_impl == MB_CE_TE ? 4 : 9;
	struct mb_op *op;

	op = mb_build_norm(b, "final_norm", 0, d->frozen ? 0 : d->act_bytes * d->local_tokens * h, 0, 0);
	op->replayed_by = 0;
	op->forward_bytes = op->backward_bytes = 0;     /* counted with the last layer's */
	op->weight_count = 1;   /* no norm behind it */
	op = mb_build_linear(b, (struct mb_linear){ "output_layer", t, v, h, 0, MB_WHOLE, 0, !quantised });
	op->replayed_by = 0;
	op->groups = 1;
	op->m = t * heads;      /* the heads share the weight: one after the other, same rate */
	op->forward_flops *= heads;
	op->backward_flops *= heads;
	op->accumulate_bytes *= heads;
	op->quantise_forward_bytes *= heads;
	op->quantise_backward_bytes *= heads;
	op->weights[0].dummy = true;
	op->weights[0].linear = false;
	if (d->tp > 1) {
		double ring = (d->tp - 1.0) / d->tp * t * h * 2 * heads;

		op->send = (struct mb_send){ MB_AXIS_TP, ring, ring, 0, 0, 0, 2, 2 };
	}
	op = mb_build_op(b, "cross_entropy", MB_CLASS_CROSS_ENTROPY, 0);
	op->replayed_by = 0;
	mb_build_traffic(op, passes / 2 * 2 * t * v * heads, passes / 2 * 2 * t * v * heads);
	mb_build_kernels(op, 6 * heads, 6 * heads);
	op->host_ops = d->full_graph ? 0 : 30 * heads;
}
