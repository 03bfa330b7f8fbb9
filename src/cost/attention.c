/* Attention: grouped-query and multi-latent. */
#include "cost/build.h"

#include <math.h>

/* Bytes that the linears behind a norm keep of its output: one quantised or plain copy each reader that needs its own. */
static double norm_output_bytes(const struct mb_build *b, double readers)
{
	double element = b->d->local_tokens * b->c->model.hidden_size;

	return element * mb_build_input_bytes(b, MB_TARGET_QKV) * (b->d->quantised && !b->d->frozen ? readers : 1);
}

/*
 * Kernel by machine and release; all choices read off measured peaks (a wrong one misses by tens of MiB to GiB):
 * deterministic Blackwell falls back to FlashAttention 2, the long-term-support image of 2025-10 to the unfused path.
 */
enum mb_attention_backend mb_attention_kernel(const struct mb_case *c)
{
	const struct mb_run *r = &c->run;
	bool deterministic = r->nvte_allow_nondeterministic_algo == 0;

	if (r->transformer_impl == MB_IMPL_LOCAL)
		return MB_ATTN_LOCAL;
	if (r->attention_backend != MB_ATTN_AUTO)
		return r->attention_backend;
	if (c->stack.lts && c->stack.month <= MB_MONTH_2025_10 && deterministic)
		return MB_ATTN_UNFUSED;
	if (c->hardware.architecture == MB_AMPERE)
		return MB_ATTN_FLASH;
	if (c->hardware.architecture >= MB_BLACKWELL && deterministic)
		return MB_ATTN_FLASH;
	return MB_ATTN_FUSED;
}

/*
 * Per attention layer, micro-batch and rank [Transformer Engine context_parallel.py]: the ring passes keys and values
 * c-1 times forward and twice that backward; all-gather moves the same, exposed; all-to-all sends (c-1)/c of q, k, v
 * and the output, and back.
 */
static void context_exchange(const struct mb_build *b, struct mb_op *op, const struct mb_core *core)
{
	const struct mb_plan *p = b->p;
	double width = b->d->act_bytes * b->d->tokens;
	double kv = width * core->kv_heads * (core->qk_dim + core->v_dim);
	double qo = width * core->heads * (core->qk_dim + core->v_dim);
	double c = p->cp, a = p->cp_a2a_size > 0 ? p->cp_a2a_size : 1;
	struct mb_send *s = &op->send;

	if (p->cp == 1)
		return;
	s->axis = MB_AXIS_CP;
	switch (p->cp_comm_type) {
	case MB_CP_P2P:
	case MB_CP_ALL_GATHER:
		s->forward_bytes = (c - 1) * kv;
		s->backward_bytes = 2 * (c - 1) * kv;
		s->forward_calls = c - 1;
		s->backward_calls = 2 * (c - 1);
		break;
	case MB_CP_A2A:
		s->forward_bytes = s->backward_bytes = (c - 1) / c * (qo + kv);
		s->forward_calls = s->backward_calls = 2;
		break;
	case MB_CP_A2A_P2P:
		s->forward_bytes = (a - 1) / a * (qo + kv) + (c / a - 1) * kv;
		s->backward_bytes = (a - 1) / a * (qo + kv) + 2 * (c / a - 1) * kv;
		s->forward_calls = c / a + 1;
		s->backward_calls = 2 * (c / a - 1) + 2;
		break;
	}
}

/* Scores kept when attention is not fused: softmax, and with dropout its mask and output. */
static void keep_scores(const struct mb_build *b, struct mb_op *op, enum mb_attention_backend kernel, double heads)
{
	const struct mb_run *r = &b->c->run;
	double s = r->seq_length;
	double scores = b->p->micro_batch_size * heads * (s / b->p->cp) * s;
	unsigned gone = MB_CORE_ATTN | MB_FULL;
	bool wide = kernel == MB_ATTN_LOCAL && !r->masked_softmax_fusion;

	mb_build_keep(op, (b->d->act_bytes + (wide ? 2 : 0)) * scores, gone, MB_OFF_CORE_ATTN);
	if (r->attention_dropout > 0)
		mb_build_keep(op, (1 + b->d->act_bytes) * scores, gone, 0);
	op->forward_transient_bytes = b->d->act_bytes * scores;
	op->replay_transient_bytes = op->forward_transient_bytes;
}

void mb_build_core_attention(struct mb_build *b, struct mb_core core)
{
	const struct mb_dims *d = b->d;
	struct mb_op *op = mb_build_op(b, "core_attention", MB_CLASS_ATTENTION, MB_CORE_ATTN);
	enum mb_attention_backend kernel = mb_attention_kernel(b->c);
	double out = d->act_bytes * d->tokens * core.heads * core.v_dim;
	bool padded = b->c->run.packed_sequence && core.v_dim < core.qk_dim;   /* packed kernels take one head size */
	double kept_v = padded ? core.qk_dim : core.v_dim, qkv = d->quantised && b->c->run.fp8_dot_product_attention ? 1 : d->act_bytes;

	op->time_factor = core.dim_factor;
	op->forward_flops = 2 * core.heads * core.context * d->tokens * (core.qk_dim + core.v_dim);
	op->backward_flops = op->forward_flops * core.backward_ratio;
	mb_build_kernels(op, 1, 3);
	mb_build_keep(op, qkv * d->tokens * (core.heads * core.qk_dim + core.kv_heads * (core.qk_dim + kept_v)),
	              core.qkv_removed_by | MB_FULL, MB_OFF_CORE_ATTN);
	mb_build_keep(op, out, MB_FULL, MB_OFF_ATTN_PROJ);
	if (padded)
		mb_build_keep(op, d->act_bytes * d->tokens * core.heads * core.qk_dim, MB_FULL, 0);
	if (kernel == MB_ATTN_UNFUSED || kernel == MB_ATTN_LOCAL) {
		keep_scores(b, op, kernel, core.heads);
	} else {
		mb_build_keep(op, 4 * d->tokens * core.heads, MB_CORE_ATTN | MB_FULL, 0);
		if (kernel == MB_ATTN_FLASH && b->p->micro_batch_size > 1)      /* a contiguous copy of the output */
			mb_build_keep(op, out, MB_FULL, 0);
	}
	if (b->p->cp > 1 && (b->p->cp_comm_type == MB_CP_A2A || b->p->cp_comm_type == MB_CP_A2A_P2P))
		mb_build_keep(op, out, MB_FULL, 0);     /* the output before the exchange */
	context_exchange(b, op, &core);
	op->replay_host_ops = mb_build_captured(b, MB_SCOPE_ATTN) ? 0 : 10;
}

/* Keys a causal query sees on average; a window skips whole tiles, so one tile of 128 more is computed. */
static double context_length(const struct mb_build *b, bool windowed)
{
	double s = b->d->core_seq, w = b->c->model.window_size;

	if (!windowed || w <= 0 || w >= s)
		return s / 2;
	return fmin(w - w * (w - 1) / (2 * s) + 128, s / 2);
}

/* Slices, products, sums and concatenations of queries and keys. [megatron/core/models/common/embeddings/rope_utils.py] */
static void unfused_rotary(struct mb_build *b, struct mb_op *op)
{
	mb_build_launches(b, op, 12, 16, MB_SCOPE_ATTN);
}

static void rotary(struct mb_build *b, double heads, double kv_heads, double dim)
{
	const struct mb_model *m = &b->c->model;
	double row = b->d->tokens * (heads + kv_heads) * dim * 2;
	bool unfused = m->position_embedding_type == MB_POS_YARN || !b->c->run.apply_rope_fusion;
	struct mb_op *op;

	if (m->position_embedding_type == MB_POS_NONE || m->position_embedding_type == MB_POS_LEARNED)
		return;
	op = mb_build_op(b, "rotary", MB_CLASS_ELEMENTWISE, 0);
	mb_build_traffic(op, 2 * row, 2 * row);
	mb_build_kernels(op, 2, 2);
	if (unfused) {
		/* 26 passes over q and k instead of 4. */
		double extra = 11 * row * b->c->params.unfused_rope_factor;

		mb_build_traffic(op, extra, extra);
		unfused_rotary(b, op);
	}
}

static void qk_norm(struct mb_build *b, double heads, double kv_heads, double dim)
{
	const struct mb_model *m = &b->c->model;
	double row = b->d->tokens * (heads + kv_heads) * dim;
	double width = m->qk_layernorm_full_dim ? heads * dim : dim;
	double kv_width = m->qk_layernorm_full_dim ? kv_heads * dim : dim;
	double groups = m->qk_layernorm_full_dim ? 2 : heads + kv_heads, statistics = m->normalization == MB_RMSNORM ? 1 : 2;
	struct mb_op *op;

	if (!m->qk_layernorm)
		return;
	op = mb_build_op(b, "qk_norm", MB_CLASS_ELEMENTWISE, 0);
	mb_build_traffic(op, 2 * 2 * row, 3 * 2 * row);
	mb_build_kernels(op, 2, 4);
	mb_build_keep(op, b->d->act_bytes * row + statistics * 4 * b->d->tokens * groups, MB_FULL, 0);
	mb_build_weight(op, width, 1, mb_build_norm_vectors(m), (struct mb_weight){ 0 });
	mb_build_weight(op, kv_width, 1, mb_build_norm_vectors(m), (struct mb_weight){ 0 });
}

static double host_attention(const struct mb_build *b, double base)
{
	return base + (b->d->tp > 1 ? 8 : 0) + (b->d->quantised ? 6 : 0);
}

void mb_build_attention(struct mb_build *b, struct mb_layer_kind kind)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	bool sliding = kind.windowed && m->sliding_attention_heads > 0;
	double heads = (double)(sliding ? m->sliding_attention_heads : m->num_attention_heads) / d->tp;
	double groups = fmax((double)(sliding ? m->sliding_query_groups : m->num_query_groups) / d->tp, 1);
	double dim = sliding ? m->sliding_kv_channels : m->kv_channels;
	double out = (heads * (m->attention_output_gate ? 2 : 1) + 2 * groups) * dim;
	unsigned norm_module = b->c->run.transformer_impl == MB_IMPL_LOCAL ? MB_LAYERNORM_MODULE : 0;
	struct mb_op *op;

	op = mb_build_norm(b, "input_norm", norm_module, norm_output_bytes(b, 1), norm_module | MB_FULL, MB_OFF_ATTN_NORM);
	mb_build_host(b, op, host_attention(b, 38), 0, MB_SCOPE_ATTN);
	op = mb_build_linear(b, (struct mb_linear){ "linear_qkv", d->tokens, out, m->hidden_size, 0, MB_COLUMN, m->hidden_size, false });
	if (m->add_bias_linear || m->add_qkv_bias)
		mb_build_weight(op, out, 1, 1, (struct mb_weight){ 0 });
	mb_build_adapter(b, "lora_qkv", MB_TARGET_QKV, (struct mb_adapter){ d->tokens, out, m->hidden_size, true, false, 0 });
	qk_norm(b, heads, groups, dim);
	if (!kind.no_rope)
		rotary(b, heads, groups, dim);
	mb_build_core_attention(b, (struct mb_core){ heads, groups, dim, dim, context_length(b, kind.windowed), 0, 2.5,
	                        dim < 128 ? pow(128 / dim, b->c->params.attention_head_exponent) : 1 });
	if (m->softmax_type == MB_SOFTMAX_LEARNABLE)
		mb_build_weight(&b->ops[b->count - 1], heads, 1, 1, (struct mb_weight){ 0 });
	if (m->attention_output_gate) {
		op = mb_build_op(b, "output_gate", MB_CLASS_ELEMENTWISE, 0);
		mb_build_traffic(op, 3 * 2 * d->tokens * heads * dim, 5 * 2 * d->tokens * heads * dim);
		mb_build_kernels(op, 2, 3);
		mb_build_keep(op, 2 * d->act_bytes * d->tokens * heads * dim, MB_FULL, 0);      /* gate and gated output */
	}
	op = mb_build_linear(b, (struct mb_linear){ "linear_proj", d->tokens, m->hidden_size, heads * dim, 0, MB_ROW, m->hidden_size, false });
	mb_build_adapter(b, "lora_proj", MB_TARGET_PROJ, (struct mb_adapter){ d->tokens, m->hidden_size, heads * dim, false, false, 0 });
	if (m->add_bias_linear)
		mb_build_weight(op, m->hidden_size, 1, 1, (struct mb_weight){ 0 });
	mb_build_residual(b, "attention_residual");
	mb_build_kernels(&b->ops[b->count - 1], 1, 1);  /* layout changes around the core */
}

/*
 * MLA with down projections duplicated over tensor parallelism on their share of tokens, up projections column-parallel.
 * mla_up_proj replays the up projections, rotary and concatenation; the latents stay.
 * [megatron/core/transformer/multi_latent_attention.py]
 */
static void mla_projections(struct mb_build *b, double heads)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	double h = m->hidden_size, qr = m->q_lora_rank, kr = m->kv_lora_rank, dr = m->qk_pos_emb_head_dim;
	double dq = m->qk_head_dim + dr, nt = d->local_tokens;
	double q8 = mb_build_input_bytes(b, MB_TARGET_QKV);
	struct mb_op *op;

	if (qr > 0) {
		op = mb_build_linear(b, (struct mb_linear){ "linear_q_down", nt, qr, h, 0, MB_WHOLE, 0, false });
		mb_build_keep(op, d->act_bytes * nt * qr, MB_FULL, 0);
		op = mb_build_linear(b, (struct mb_linear){ "linear_q_up", d->tokens, heads * dq, qr, MB_MLA_UP_PROJ, MB_COLUMN, qr, false });
		mb_build_keep(op, q8 * nt * qr, MB_MLA_UP_PROJ | MB_FULL, 0);
		if (m->qk_layernorm)
			mb_build_weight(op, qr, 1, 1, (struct mb_weight){ 0 });
	} else {
		mb_build_linear(b, (struct mb_linear){ "linear_q", d->tokens, heads * dq, h, 0, MB_COLUMN, h, false });
	}
	op = mb_build_linear(b, (struct mb_linear){ "linear_kv_down", nt, kr + dr, h, 0, MB_WHOLE, 0, false });
	mb_build_keep(op, d->act_bytes * nt * (kr + dr), MB_FULL, 0);
	op = mb_build_linear(b, (struct mb_linear){ "linear_kv_up", d->tokens, heads * (m->qk_head_dim + m->v_head_dim), kr,
	                     MB_MLA_UP_PROJ, MB_COLUMN, kr + dr, false });
	mb_build_keep(op, q8 * nt * kr, MB_MLA_UP_PROJ | MB_FULL, 0);
	if (m->qk_layernorm)
		mb_build_weight(op, kr, 1, 1, (struct mb_weight){ 0 });
	op->replay_host_ops = mb_build_captured(b, MB_SCOPE_ATTN) ? 0 : 14;

	op = mb_build_op(b, "rotary", MB_CLASS_ELEMENTWISE, MB_MLA_UP_PROJ);
	bool fused = b->c->run.apply_rope_fusion;
	double row = d->tokens * heads * (2 * dq + m->v_head_dim) * 2 * (fused ? b->c->params.mla_rope_frac : 1);
	mb_build_traffic(op, 2 * 0.7 * row, 2 * 1.3 * row);
	mb_build_kernels(op, 6, 10);
	if (!fused) {
		unfused_rotary(b, op);
		/* Cosine and sine of each position, for queries and for keys. */
		mb_build_keep(op, 4 * d->act_bytes * d->tokens / d->mbs * dr, MB_MLA_UP_PROJ | MB_FULL, 0);
	}
}

void mb_build_mla(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_dims *d = b->d;
	double heads = (double)m->num_attention_heads / d->tp;
	double dq = m->qk_head_dim + m->qk_pos_emb_head_dim, dv = m->v_head_dim;
	bool fused_norm = b->c->run.mla_down_proj_fusion;
	unsigned norm_module = fused_norm ? 0 : MB_LAYERNORM_MODULE;
	struct mb_op *op;

	op = mb_build_norm(b, "input_norm", norm_module, norm_output_bytes(b, fused_norm ? 1 : 2), norm_module | MB_FULL, MB_OFF_ATTN_NORM);
	mb_build_host(b, op, host_attention(b, 62), norm_module ? 10 : 0, MB_SCOPE_ATTN);
	mla_projections(b, heads);
	mb_build_core_attention(b, (struct mb_core){ heads, heads, dq, dv, context_length(b, false), MB_MLA_UP_PROJ,
	                        (3 * dq + 2 * dv) / (dq + dv), 1 });
	op = mb_build_linear(b, (struct mb_linear){ "linear_proj", d->tokens, m->hidden_size, heads * dv, 0, MB_ROW, m->hidden_size, false });
	mb_build_adapter(b, "lora_proj", MB_TARGET_PROJ, (struct mb_adapter){ d->tokens, m->hidden_size, heads * dv, false, false, 0 });
	if (m->add_bias_linear)
		mb_build_weight(op, m->hidden_size, 1, 1, (struct mb_weight){ 0 });
	mb_build_residual(b, "attention_residual");
	mb_build_kernels(&b->ops[b->count - 1], 1, 1);
}
