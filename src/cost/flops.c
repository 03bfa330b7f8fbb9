/*
 * Bridge's model FLOPs: what "TFLOP/s/GPU" and MFU of the tables are computed from. Not the FLOPs that run: padded
 * vocabulary, causal halves by convention, Mamba with an inner width of twice the hidden size.
 * [Megatron Bridge training/utils/flop_utils.py]
 */
#include "cost/cost.h"

/* Multiply-adds per token of one layer's attention; a factor 6 makes forward and backward FLOPs of it. */
static double attention_macs(const struct mb_case *c, const struct mb_layer_kind *kind)
{
	const struct mb_model *m = &c->model;
	double h = m->hidden_size, s = c->run.seq_length, n = m->num_attention_heads, w = m->window_size;

	if (kind->mixer == MB_MIXER_MLA) {
		double dq = m->qk_head_dim + m->qk_pos_emb_head_dim, qr = m->q_lora_rank, kr = m->kv_lora_rank;
		double q = qr > 0 ? qr * (h + n * dq + 1) : h * n * dq;
		double kv = kr * (h + n * (m->qk_head_dim + m->v_head_dim) + 1) + h * m->qk_pos_emb_head_dim;

		return q + kv + n * m->v_head_dim * h + s * n * dq / 2 + s * n * m->v_head_dim / 2;
	}
	bool sliding = kind->windowed && m->sliding_attention_heads > 0;
	double groups = sliding ? m->sliding_query_groups : m->num_query_groups, d = sliding ? m->sliding_kv_channels : m->kv_channels;
	double context = s / 2;

	n = sliding ? m->sliding_attention_heads : n;
	if (kind->windowed && w > 0 && w < s && !c->stack.flops_gpt_oss_dense)
		context = w - w * (w - 1) / (2 * s);
	return h * d * (n * (m->attention_output_gate ? 2 : 1) + 2 * groups) + n * d * h + 2 * n * d * context;
}

static double delta_net_macs(const struct mb_model *m)
{
	double h = m->hidden_size, qk = (double)m->linear_num_key_heads * m->linear_key_head_dim;
	double v = (double)m->linear_num_value_heads * m->linear_value_head_dim, d = m->linear_value_head_dim;

	return h * (2 * qk + 2 * v + 2 * m->linear_num_value_heads) + h * v + m->linear_conv_kernel_dim * (2 * qk + v)
	       + 4 * m->linear_num_value_heads * d * d;
}

static double mamba_macs(const struct mb_model *m)
{
	double h = m->hidden_size, inner = 2 * h, gn = (double)m->mamba_num_groups * m->mamba_state_dim;

	return h * (2 * inner + 2 * gn + m->mamba_num_heads) + inner * h + 7 * inner * m->mamba_state_dim / 2;
}

static double moe_macs(const struct mb_case *c)
{
	const struct mb_model *m = &c->model;
	double g = m->gated_linear_unit && !(c->stack.flops_gpt_oss_dense && m->softmax_type != MB_SOFTMAX_VANILLA) ? 3 : 2;
	double h = m->hidden_size, latent = m->moe_latent_size;
	double routed = (double)m->moe_ffn_hidden_size * m->moe_router_topk * g;

	if (latent > 0)
		routed = routed * latent / h + 2 * latent;
	return h * (routed + (double)m->moe_shared_expert_intermediate_size * g);
}

static double layer_macs(const struct mb_case *c, const struct mb_layer_kind *kind)
{
	const struct mb_model *m = &c->model;
	double macs = 0;

	switch (kind->mixer) {
	case MB_MIXER_ATTENTION:
	case MB_MIXER_MLA:
		macs = attention_macs(c, kind);
		break;
	case MB_MIXER_MAMBA:
		macs = mamba_macs(m);
		break;
	case MB_MIXER_GDN:
		macs = delta_net_macs(m);
		break;
	case MB_MIXER_NONE:
		break;
	}
	if (kind->ffn == MB_FFN_DENSE)
		macs += (double)m->hidden_size * m->ffn_hidden_size * (m->gated_linear_unit ? 3 : 2);
	else if (kind->ffn == MB_FFN_MOE)
		macs += moe_macs(c);
	return macs;
}

double mb_model_flops_per_token(const struct mb_case *c, const struct mb_plan *p)
{
	const struct mb_model *m = &c->model;
	double h = m->hidden_size, depth = c->mtp_depth, macs = 0;
	int divisor = m->make_vocab_size_divisible_by * p->tp;
	double vocabulary = (m->vocab_size + divisor - 1) / divisor * divisor;
	bool hybrid = m->family && m->family[0] == 'h';

	for (int i = 0; i < m->num_layers; i++)
		macs += layer_macs(c, &m->kinds[m->layers[i]]);
	for (int i = 0; i < m->mtp_layer_count; i++)
		macs += depth * layer_macs(c, &m->kinds[m->mtp_layers[i]]);
	if (!hybrid)
		macs += depth * (3 * h + 2 * h * h);
	macs += h * vocabulary * (1 + depth);
	return 6 * macs;
}
