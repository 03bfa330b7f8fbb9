/* State-space and linear-attention mixers: Mamba-2 and gated delta net. */
#include "cost/build.h"

/*
 * Head-parallel exchange of context parallelism: the projection's outputs go from sequence to head shards, the result
 * comes back. [megatron/core/ssm/mamba_context_parallel.py]
 */
static void head_exchange(const struct mb_build *b, struct mb_op *op, double features)
{
	double moved = (b->d->cp - 1.0) / b->d->cp * b->d->tokens * features * 2;

	if (b->d->cp > 1)
		op->send = (struct mb_send){ MB_AXIS_CP, moved, moved, 0, 0, 0, 2, 2 };
}

/*
 * Mamba-2 with the memory-efficient kernel: kept are the projection, the kernel's output, the gated norm's input and
 * output. The scan recomputes its states in the backward. Scan time follows bytes: chunk states are written and read
 * once per chunk of 128 tokens. [megatron/core/ssm/mamba_mixer.py]
 */
void mb_build_mamba(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	double h = m->hidden_size, t = d->tokens, heads = (double)m->mamba_num_heads / d->tp;
	double inner = heads * m->mamba_head_dim, state = (double)m->mamba_num_groups / d->tp * m->mamba_state_dim;
	double out = 2 * inner + 2 * state + heads, conv = inner + 2 * state;
	double q8 = mb_build_input_bytes(b, MB_TARGET_QKV);
	double states = heads * m->mamba_head_dim * m->mamba_state_dim * 4 / 128;
	struct mb_op *op;

	op = mb_build_norm(b, "input_norm", 0, q8 * d->local_tokens * h, MB_FULL, 0);
	mb_build_host(b, op, 60, 0, MB_SCOPE_MAMBA);
	op = mb_build_linear(b, (struct mb_linear){ "in_proj", t, out, h, 0, MB_COLUMN, h, false });
	mb_build_keep(op, d->act_bytes * t * out, MB_FULL, 0);
	mb_build_adapter(b, "lora_qkv", MB_TARGET_QKV, (struct mb_adapter){ t, out, h, true, false, 0 });
	op = mb_build_op(b, "conv1d", MB_CLASS_ELEMENTWISE, 0);
	mb_build_traffic(op, 2 * 2 * t * conv, 4 * 2 * t * conv);
	mb_build_kernels(op, 2, 5);
	mb_build_weight(op, conv, 4, 1, (struct mb_weight){ 0 });
	mb_build_weight(op, conv, 1, 1, (struct mb_weight){ 0 });
	mb_build_weight(op, heads, 1, 3, (struct mb_weight){ 0 });      /* dt bias, A, D */
	op = mb_build_op(b, "ssm_scan", MB_CLASS_SSM, 0);
	mb_build_traffic(op, t * (2 * states + 4 * 2 * inner), t * (4 * states + 12 * 2 * inner));
	mb_build_kernels(op, 5, 10);
	op->forward_flops = t * (2 * 128 * state + 2 * 128 * inner + 4 * m->mamba_state_dim * inner);
	op->backward_flops = 2.5 * op->forward_flops;
	mb_build_keep(op, d->act_bytes * t * inner, MB_FULL, 0);
	head_exchange(b, op, out + inner);
	op = mb_build_op(b, "scan_io", MB_CLASS_ELEMENTWISE, 0);
	mb_build_traffic(op, t * (3 * inner + 4 * state) * 2 * 2, t * (3 * inner + 4 * state) * 2 * 4);
	op = mb_build_op(b, "gated_norm", MB_CLASS_ELEMENTWISE, 0);
	mb_build_traffic(op, 4 * 2 * t * inner, 8 * 2 * t * inner);
	mb_build_kernels(op, 1, 3);
	mb_build_keep(op, 2 * d->act_bytes * t * inner, MB_FULL, 0);
	mb_build_weight(op, inner, 1, 1, (struct mb_weight){ 0 });
	mb_build_linear(b, (struct mb_linear){ "out_proj", t, h, inner, 0, MB_ROW, h, false });
	mb_build_adapter(b, "lora_proj", MB_TARGET_PROJ, (struct mb_adapter){ t, h, inner, false, false, 0 });
	mb_build_residual(b, "mamba_residual");
}

/*
 * Gated delta net: projection of q, k, v and gates, short convolution, chunked delta rule, gated norm, output.
 * [megatron/core/ssm/gated_delta_net; kept tensors of the chunk kernel: q, k, v, g, beta and its triangular factors]
 */
void mb_build_gdn(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	double h = m->hidden_size, t = d->tokens;
	double kh = (double)m->linear_num_key_heads / d->tp, vh = (double)m->linear_num_value_heads / d->tp;
	double qk = kh * m->linear_key_head_dim, v = vh * m->linear_value_head_dim;
	double out = 2 * qk + 2 * v + 2 * vh, conv = 2 * qk + v;
	double q8 = mb_build_input_bytes(b, MB_TARGET_QKV);
	double wide = 2 * vh * m->linear_key_head_dim + v;      /* q and k repeated to the value heads */
	double states = vh * m->linear_key_head_dim * m->linear_value_head_dim * 4 / 64;
	struct mb_op *op;

	op = mb_build_norm(b, "input_norm", 0, q8 * d->local_tokens * h, MB_FULL, MB_OFF_ATTN_NORM);
	mb_build_host(b, op, 70, 0, MB_SCOPE_ATTN);
	op = mb_build_linear(b, (struct mb_linear){ "in_proj", t, out, h, 0, MB_COLUMN, h, false });
	mb_build_keep(op, d->act_bytes * t * out, MB_FULL, 0);
	mb_build_adapter(b, "lora_qkv", MB_TARGET_QKV, (struct mb_adapter){ t, out, h, true, false, 0 });
	op = mb_build_op(b, "conv1d", MB_CLASS_ELEMENTWISE, 0);
	mb_build_traffic(op, 2 * 2 * t * conv, 4 * 2 * t * conv);
	mb_build_kernels(op, 3, 6);
	mb_build_keep(op, 2 * d->act_bytes * t * conv, MB_FULL, 0);
	mb_build_weight(op, conv, m->linear_conv_kernel_dim, 1, (struct mb_weight){ 0 });
	mb_build_weight(op, vh, 1, 2, (struct mb_weight){ 0 });         /* dt bias, A */
	op = mb_build_op(b, "delta_rule", MB_CLASS_SSM, 0);
	mb_build_traffic(op, t * (2 * states + 3 * 2 * wide), t * (4 * states + 8 * 2 * wide));
	mb_build_kernels(op, 8, 16);
	op->forward_flops = t * vh * (2 * 64 * (3 * m->linear_key_head_dim + 2 * m->linear_value_head_dim)
	                              + 6.0 * m->linear_key_head_dim * m->linear_value_head_dim + 64 * 64);
	op->backward_flops = 2.5 * op->forward_flops;
	mb_build_keep(op, d->act_bytes * t * wide + t * vh * (4 + 2 + 64 * d->act_bytes), MB_FULL, 0);
	head_exchange(b, op, out + v);
	op = mb_build_op(b, "gated_norm", MB_CLASS_ELEMENTWISE, MB_GDN_NORM_OUT);
	mb_build_traffic(op, 4 * 2 * t * v, 8 * 2 * t * v);
	mb_build_kernels(op, 2, 4);
	mb_build_keep(op, d->act_bytes * t * v, MB_FULL, 0);
	mb_build_keep(op, d->act_bytes * t * v, MB_GDN_NORM_OUT | MB_FULL, 0);
	mb_build_weight(op, m->linear_value_head_dim, 1, 1, (struct mb_weight){ 0 });
	mb_build_linear(b, (struct mb_linear){ "out_proj", t, h, v, 0, MB_ROW, h, false });
	mb_build_adapter(b, "lora_proj", MB_TARGET_PROJ, (struct mb_adapter){ t, h, v, false, false, 0 });
	mb_build_residual(b, "gdn_residual");
}
