/* Recompute, graphs, offloading and formats as rules see them. */
#include "plan/rules_private.h"

bool mb_at_least(int version, int needed)
{
	return version == 0 || version >= needed;
}

bool mb_uses(const struct mb_plan *p, enum mb_backend backend)
{
	return p->dispatcher == MB_DISPATCH_FLEX && p->backend == backend;
}

bool mb_recomputes(const struct mb_plan *p, unsigned modules)
{
	return p->recompute == MB_RECOMPUTE_SELECTIVE && (p->recompute_modules & modules) != 0;
}

/*
 * Modules that no layer of the model has, or that another listed module replays anyway. Norms fused into the next
 * linear cannot be recomputed apart: only those before MoE layers and around latent attention stand alone.
 * [Megatron-LM megatron/core/transformer/transformer_layer.py:474-540]
 */
unsigned mb_modules_without_effect(const struct mb_case *c, const struct mb_plan *p)
{
	const struct mb_model *m = &c->model;
	bool moe = mb_has_moe(m), mla = mb_has_mixer(m, MB_MIXER_MLA);
	unsigned found = MB_GDP_IN_PROJ | MB_GDP_QKV;

	if (!mla && !mb_has_mixer(m, MB_MIXER_ATTENTION))
		found |= MB_CORE_ATTN;
	if (!moe && !mla && c->run.transformer_impl == MB_IMPL_TE)
		found |= MB_LAYERNORM_MODULE;
	if (!moe)
		found |= MB_MOE | MB_MOE_ACT;
	if (!mb_has_dense(m))
		found |= MB_MLP;
	if (!mb_has_shared(m) || mb_recomputes(p, MB_MOE))
		found |= MB_SHARED_EXPERTS;
	if (mb_recomputes(p, MB_MOE))
		found |= MB_MOE_ACT;
	return p->recompute == MB_RECOMPUTE_SELECTIVE ? p->recompute_modules & found : 0;
}

/* Stacks before 2026 said impl local with the scope full_iteration. */
bool mb_whole_iteration(const struct mb_plan *p)
{
	return p->cuda_graph_impl == MB_GRAPH_FULL ||
	       (p->cuda_graph_impl == MB_GRAPH_LOCAL && (p->cuda_graph_scope & MB_SCOPE_FULL_ITERATION) != 0);
}

bool mb_captures(const struct mb_plan *p, unsigned scope)
{
	if (p->cuda_graph_impl == MB_GRAPH_NONE || mb_whole_iteration(p))
		return false;
	if (p->cuda_graph_impl == MB_GRAPH_TE && p->cuda_graph_scope == 0)
		return true;
	return (p->cuda_graph_scope & scope) != 0;
}

/* Random masks would differ between a captured forward and its replay. */
bool mb_dropout_captured(const struct mb_case *c, const struct mb_plan *p)
{
	if (c->run.attention_dropout > 0 && mb_captures(p, MB_SCOPE_ATTN) && mb_recomputes(p, MB_CORE_ATTN))
		return true;
	return c->run.hidden_dropout > 0 && ((mb_captures(p, MB_SCOPE_MLP) && mb_recomputes(p, MB_MLP)) ||
	                                     (mb_captures(p, MB_SCOPE_MOE) && mb_recomputes(p, MB_MOE)));
}

bool mb_offload_captured(const struct mb_case *c, const struct mb_plan *p)
{
	enum { IN_ATTENTION = MB_OFF_ATTN_NORM | MB_OFF_QKV_LINEAR | MB_OFF_CORE_ATTN | MB_OFF_ATTN_PROJ };
	bool attention = (p->offload_modules & IN_ATTENTION) != 0 && mb_captures(p, MB_SCOPE_ATTN);
	bool mlp = (p->offload_modules & MB_OFF_MLP_NORM) != 0 && mb_captures(p, MB_SCOPE_MLP | MB_SCOPE_MOE_ROUTER);

	(void)c;
	return attention || mlp || mb_whole_iteration(p);
}

bool mb_is_fp8(const struct mb_run *r)
{
	return r->precision == MB_FP8_CS || r->precision == MB_FP8_DS || r->precision == MB_FP8_SC || r->precision == MB_FP8_MX;
}

bool mb_attention_is_fused(const struct mb_run *r)
{
	return r->transformer_impl == MB_IMPL_TE && r->attention_backend != MB_ATTN_UNFUSED &&
	       r->attention_backend != MB_ATTN_LOCAL;
}

bool mb_format_supported(const struct mb_case *c)
{
	enum mb_arch arch = c->hardware.architecture;

	switch (c->run.precision) {
	case MB_FP8_CS:
	case MB_FP8_DS:
		return arch >= MB_HOPPER;
	case MB_FP8_SC: /* a functional test of Megatron-LM runs it on GB200, where mxfp8 stands in */
		return arch == MB_HOPPER || (arch > MB_HOPPER && c->stack.framework == MB_MEGATRON_LM);
	case MB_FP8_MX:
	case MB_NVFP4:
		return arch >= MB_BLACKWELL;
	case MB_BF16:
	case MB_FP16:
	case MB_FP32:
		break;
	}
	return true;
}

/* Bridge lists Ampere, Hopper, B200 and B300 by name: the superchips on NVL72 are left out. */
bool mb_deepep_runs(const struct mb_hardware *hw)
{
	int major = hw->compute_capability / 10;

	return major == 8 || major == 9 || (hw->architecture == MB_BLACKWELL && !hw->superchip);
}

bool mb_optimizer_dtypes_legal(const struct mb_run *r)
{
	if (!r->use_precision_aware_optimizer)
		return r->main_params_dtype == MB_DT_FP32 && r->main_grads_dtype == MB_DT_FP32 &&
		       r->exp_avg_dtype == MB_DT_FP32 && r->exp_avg_sq_dtype == MB_DT_FP32;
	return r->optimizer == MB_ADAM && (r->main_params_dtype == MB_DT_FP32 || r->main_params_dtype == MB_DT_FP16) &&
	       (r->main_grads_dtype == MB_DT_FP32 || r->main_grads_dtype == MB_DT_BF16);
}
