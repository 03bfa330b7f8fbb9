/* Pieces that every operation table is made of. */
#include "cost/build.h"

#include <assert.h>
#include <math.h>

struct mb_op *mb_build_op(struct mb_build *b, const char *name, enum mb_class class, unsigned replayed_by)
{
	struct mb_op *op = &b->ops[b->count++];

	assert(b->count <= MB_MAX_OPS);
	*op = (struct mb_op){ .name = name, .class = class, .replayed_by = replayed_by | MB_FULL, .groups = 1,
	                       .scope = b->scope, .trained = !b->d->frozen };
	return op;
}

/* Offloading leaves tensors below 1 Mi elements [fine_grained_activation_offload.py, min_offloaded_tensor_size]. */
void mb_build_keep(struct mb_op *op, double bytes, unsigned removed_by, unsigned offload)
{
	const double least_offloaded_bytes = 2 * 1048576;

	if (bytes <= 0)
		return;
	assert(op->saved_count < MB_OP_SAVED);
	op->saved[op->saved_count++] = (struct mb_saved){ ceil(bytes / 512) * 512, removed_by,
		bytes < least_offloaded_bytes ? 0 : offload };
}

void mb_build_weight(struct mb_op *op, double rows, double cols, double count, struct mb_weight flags)
{
	if (count <= 0 || rows <= 0)
		return;
	assert(op->weight_count < MB_OP_WEIGHTS);
	flags.rows = (int64_t)rows;
	flags.cols = (int64_t)cols;
	flags.count = (int)count;
	op->weights[op->weight_count++] = flags;
}

void mb_build_traffic(struct mb_op *op, double forward_bytes, double backward_bytes)
{
	op->forward_bytes += forward_bytes;
	op->backward_bytes += backward_bytes;
}

void mb_build_kernels(struct mb_op *op, double forward, double backward)
{
	op->forward_kernels += forward;
	op->backward_kernels += backward;
}

void mb_build_launches(struct mb_build *b, struct mb_op *op, double forward, double backward, unsigned scope)
{
	double launch_s = b->c->params.host_expert_kernel_s;

	mb_build_kernels(op, forward, backward);
	if (b->d->full_graph || mb_build_captured(b, scope))
		return;
	op->host_s += (forward + backward) * launch_s;
	op->replay_host_s += forward * launch_s;
}

bool mb_build_captured(const struct mb_build *b, unsigned scope)
{
	return (b->d->scope & scope) != 0;
}

void mb_build_host(struct mb_build *b, struct mb_op *op, double ops, double replay_ops, unsigned scope)
{
	bool captured = mb_build_captured(b, scope);

	op->host_ops += captured ? b->c->params.host_graph_ops : ops;
	op->replay_host_ops += captured ? 0 : replay_ops;
}

double mb_build_gate(const struct mb_model *m)
{
	return m->gated_linear_unit ? 2 : 1;
}

double mb_build_norm_vectors(const struct mb_model *m)
{
	return m->normalization == MB_LAYERNORM && m->layernorm_bias ? 2 : 1;
}

/* RMSNorm keeps one fp32 statistic a token, LayerNorm two; each in blocks of 512 bytes. */
double mb_build_stats(const struct mb_build *b)
{
	return ceil(4 * b->d->local_tokens / 512) * 512 * (b->c->model.normalization == MB_RMSNORM ? 1 : 2);
}

/*
 * With sequence parallelism a column-parallel linear gathers its input, gathers it once more beside the dgrad product
 * and reduce-scatters the gradient beside the wgrad product; a row-parallel one reduce-scatters its output and gathers
 * the output gradient. Without it both all-reduce. Quantised inputs travel quantised, reductions in bf16.
 * [Transformer Engine pytorch/module/layernorm_linear.py, linear.py, distributed.py]
 */
void mb_build_tp(struct mb_build *b, struct mb_op *op, bool column, double width)
{
	const struct mb_dims *d = b->d;
	double ring = (d->tp - 1.0) / d->tp * d->tokens * width * 2;
	struct mb_send *s = &op->send;

	if (d->tp == 1)
		return;
	s->axis = MB_AXIS_TP;
	if (!d->sp) {
		s->forward_bytes += column ? 0 : 2 * ring;
		s->forward_calls += column ? 0 : 1;
		s->backward_bytes += column ? 2 * ring : 0;
		s->backward_hidden_bytes += column ? 2 * ring : 0;
		s->backward_calls += column ? 1 : 0;
		return;
	}
	s->forward_bytes += column ? ring * b->format->gather_frac : ring;
	s->forward_calls += 1;
	s->backward_bytes += column ? ring * (b->format->gather_frac + 1) : ring * b->format->gather_gradient_frac;
	s->backward_hidden_bytes += column ? ring * (b->format->gather_frac + 1) : 0;
	s->backward_calls += column ? 2 : 1;
}

/* Bytes read and written when a weight gradient is added to the main gradient: fp32 or bf16 [main_grads_dtype]. */
static double accumulate_bytes(const struct mb_run *r)
{
	bool wide = r->main_grads_dtype == MB_DT_FP32 && r->grad_reduce_in_fp32 != 0;

	return wide ? 8 : 4;
}

struct mb_op *mb_build_linear(struct mb_build *b, struct mb_linear l)
{
	struct mb_op *op = mb_build_op(b, l.name, MB_CLASS_GEMM, l.replayed_by);
	bool quantised = b->d->quantised && !l.plain;

	op->m = l.rows;
	op->n = l.out;
	op->k = l.in;
	op->format = l.plain && b->d->quantised ? MB_FMT_BF16 : b->d->format;
	op->frozen = b->d->frozen;
	op->forward_flops = 2 * l.rows * l.out * l.in;
	op->backward_flops = op->forward_flops * (op->frozen ? 1 : 2);
	op->accumulate_bytes = op->frozen ? 0 : l.out * l.in * accumulate_bytes(&b->c->run);
	mb_build_kernels(op, quantised ? b->format->forward_kernels : 1, quantised ? b->format->backward_kernels : 2);
	if (quantised) {
		op->quantise_forward_bytes = l.rows * l.in * b->quantise_bytes;
		op->quantise_replay_bytes = op->quantise_forward_bytes / 2;     /* only the row-wise copy is made again */
		op->quantise_backward_bytes = l.rows * l.out * b->quantise_bytes;
	}
	mb_build_weight(op, l.out, l.in, 1, (struct mb_weight){ .linear = !l.plain, .dummy = !l.plain });
	if (l.parallel != MB_WHOLE)
		mb_build_tp(b, op, l.parallel == MB_COLUMN, l.send_width);
	return op;
}

/*
 * A norm: reads and writes once forward; backward reads gradient and input, writes one, and adds the residual gradient.
 * reader_bytes: what the linears behind it keep of its output.
 */
struct mb_op *mb_build_norm(struct mb_build *b, const char *name, unsigned replayed_by, double reader_bytes, unsigned removed_by,
                            unsigned offload)
{
	const struct mb_model *m = &b->c->model;
	struct mb_op *op = mb_build_op(b, name, MB_CLASS_ELEMENTWISE, replayed_by);
	double element = b->d->local_tokens * m->hidden_size;
	double residual = b->c->run.fp32_residual_connection ? 4 : b->d->act_bytes;

	mb_build_traffic(op, 2 * 2 * element, 4 * 2 * element);
	mb_build_kernels(op, 1, 3);
	mb_build_keep(op, residual * element, b->count > 1 ? MB_FULL : 0, offload);     /* the layer's input always stays */
	mb_build_keep(op, reader_bytes, removed_by, offload == MB_OFF_ATTN_NORM ? MB_OFF_QKV_LINEAR : 0);
	mb_build_keep(op, mb_build_stats(b), MB_FULL, 0);
	mb_build_weight(op, m->hidden_size, 1, mb_build_norm_vectors(m), (struct mb_weight){ 0 });
	if (m->post_norms)
		mb_build_weight(op, m->hidden_size, 1, mb_build_norm_vectors(m), (struct mb_weight){ 0 });
	return op;
}

/* Bias, dropout and residual add: reads two, writes one; the mask of a dropout is one byte an element. */
struct mb_op *mb_build_residual(struct mb_build *b, const char *name)
{
	struct mb_op *op = mb_build_op(b, name, MB_CLASS_ELEMENTWISE, 0);
	double element = b->d->local_tokens * b->c->model.hidden_size;

	mb_build_traffic(op, 3 * 2 * element, 2 * 2 * element);
	mb_build_kernels(op, 1, 1);
	if (b->c->run.hidden_dropout > 0)
		mb_build_keep(op, element, MB_FULL, 0);
	if (b->c->model.post_norms) {   /* a norm before the sum keeps its input; the sum keeps nothing */
		mb_build_keep(op, b->d->act_bytes * element, MB_FULL, 0);
		mb_build_keep(op, mb_build_stats(b), MB_FULL, 0);
	}
	return op;
}

int mb_ops_build(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind, struct mb_op *ops)
{
	const struct mb_format_row *format = mb_format_of(c->run.precision);
	struct mb_build b = { .c = c, .p = p, .d = d, .format = format, .ops = ops };
	const struct mb_layer_kind *k = &c->model.kinds[kind < MB_MAX_LAYER_KINDS ? kind : 0];

	b.quantise_bytes = format->quantise_bytes[c->hardware.architecture >= MB_BLACKWELL];
	switch (kind) {
	case MB_KIND_EMBEDDING:
		mb_build_embedding(&b);
		return b.count;
	case MB_KIND_MTP:
		mb_build_mtp(&b);
		return b.count;
	case MB_KIND_HEAD:
		mb_build_head(&b);
		return b.count;
	}
	switch (k->mixer) {
	case MB_MIXER_ATTENTION:
		b.scope = MB_SCOPE_ATTN;
		mb_build_attention(&b, *k);
		break;
	case MB_MIXER_MLA:
		b.scope = MB_SCOPE_ATTN;
		mb_build_mla(&b);
		break;
	case MB_MIXER_MAMBA:
		b.scope = MB_SCOPE_MAMBA;
		mb_build_mamba(&b);
		break;
	case MB_MIXER_GDN:
		b.scope = MB_SCOPE_ATTN;
		mb_build_gdn(&b);
		break;
	case MB_MIXER_NONE:
		break;
	}
	b.scope = k->ffn == MB_FFN_DENSE ? MB_SCOPE_MLP : MB_SCOPE_MOE_ROUTER;
	if (k->ffn == MB_FFN_DENSE)
		mb_build_mlp(&b);
	else if (k->ffn == MB_FFN_MOE)
		mb_build_moe(&b);
	return b.count;
}
