#include "plan/query.h"

#include <stdio.h>
#include <string.h>

/* Defaults of the framework, then the values that follow from others when nobody said them. */

static bool megatron(const struct mb_reader *r)
{
	return r->megatron || r->q->c.stack.framework == MB_MEGATRON_LM;
}

void mb_query_defaults(struct mb_reader *r)
{
	struct mb_run *run = &r->q->c.run;

	run->megatron_args = megatron(r);
	if (run->lora_dim == 0)
		run->lora_dim = 32;             /* Bridge's LoRA class: 32, on all linears */
	if (run->lora_targets == 0)
		run->lora_targets = 0xf;
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		const struct mb_key *key = &mb_keys[i];
		const char *text = run->megatron_args ? key->megatron_default : key->bridge_default;
		union mb_value v = { .i = 0 };

		if (text[0] == '\0')
			continue;               /* the user must say it */
		if (mb_query_value(r, (enum mb_key_id)i, mb_node_scalar(r->arena, (struct mb_pos){ NULL, 0, 0 }, text), &v, &r->null[i]))
			mb_key_put(run, key, v);
	}
}

/* Nobody gave a value: null, said or by default, and not left to the search. */
static bool undecided(const struct mb_reader *r, enum mb_key_id id)
{
	return r->null[id] && r->q->alternatives[id].count == 0;
}

/* [Megatron-LM arguments.py: --fp8-format, --fp8-recipe default delayed; Bridge mixed_precision.py: tensorwise] */
static void derive_precision(struct mb_reader *r)
{
	static const struct mb_name recipes[] = {
		{ "delayed", MB_FP8_DS }, { "tensorwise", MB_FP8_CS }, { "blockwise", MB_FP8_SC }, { "mxfp8", MB_FP8_MX }, { NULL, 0 }
	};
	const struct mb_precision_parts *p = &r->precision;
	struct mb_run *run = &r->q->c.run;
	int value = megatron(r) ? MB_FP8_DS : MB_FP8_CS;

	if (r->said[MB_K_precision] > 0)
		return;
	if (p->fp8_recipe != NULL)
		mb_name_value(recipes, p->fp8_recipe, &value);
	if (p->fp4 != NULL)
		run->precision = MB_NVFP4;
	else if (p->fp8 != NULL)
		run->precision = (enum mb_precision)value;
	else if (p->fp16)
		run->precision = MB_FP16;
	else if (p->bf16)
		run->precision = MB_BF16;
	run->fp32_compute = megatron(r) && (p->fp8 != NULL || p->fp4 != NULL) && !p->bf16 && !p->fp16;
}

static void derive_dtypes(struct mb_reader *r)
{
	struct mb_run *run = &r->q->c.run;
	bool bridge = !megatron(r);
	bool quantised_gather = run->precision == MB_FP8_CS || run->precision == MB_FP8_MX;

	/* Gradients of fp16 runs are fp16 in both frameworks [arguments.py; mixed_precision.py, fp16_mixed]. */
	if (run->grad_reduce_in_fp32 == MB_AUTO || r->said[MB_K_grad_fp32] == 0)
		run->grad_reduce_in_fp32 = run->precision != MB_FP16;
	if (run->fp8_param_gather == MB_AUTO)
		run->fp8_param_gather = bridge && quantised_gather;
	if (run->reuse_grad_buf_for_mxfp8_param_ag == MB_AUTO)
		run->reuse_grad_buf_for_mxfp8_param_ag = bridge && run->precision == MB_FP8_MX && run->fp8_param_gather == 1 &&
		                                         !run->plan.use_megatron_fsdp;
}

/* Attention kernels that the environment forbids leave the others. */
static void derive_attention(struct mb_reader *r)
{
	struct mb_run *run = &r->q->c.run;

	if (run->attention_backend != MB_ATTN_AUTO)
		return;
	if (r->no_fused_attention && r->no_flash_attention)
		run->attention_backend = MB_ATTN_UNFUSED;
	else if (r->no_fused_attention)
		run->attention_backend = MB_ATTN_FLASH;
	else if (r->no_flash_attention)
		run->attention_backend = MB_ATTN_FUSED;
}

/*
 * Spellings from before full_iteration was an implementation of its own: the scope inside the list, and "local" without
 * any scope, which captured everything.
 */
static void derive_graphs(struct mb_reader *r)
{
	struct mb_plan *plan = &r->q->c.run.plan;
	bool eager_or_local = plan->cuda_graph_impl == MB_GRAPH_NONE || plan->cuda_graph_impl == MB_GRAPH_LOCAL;
	bool in_scope = (plan->cuda_graph_scope & MB_SCOPE_FULL_ITERATION) != 0;

	if (r->q->alternatives[MB_K_graph_impl].count > 0 || r->q->alternatives[MB_K_graph_scope].count > 0)
		return;
	if (r->q->open[MB_K_graph_impl] || r->q->open[MB_K_graph_scope])
		return;
	if ((eager_or_local && in_scope) || (plan->cuda_graph_impl == MB_GRAPH_LOCAL && plan->cuda_graph_scope == 0)) {
		plan->cuda_graph_impl = MB_GRAPH_FULL;
		plan->cuda_graph_scope = 0;
	}
}

/* Selective recompute without a list replays core attention [transformer_config.py, __post_init__]. */
static void derive_recompute(struct mb_reader *r)
{
	struct mb_plan *plan = &r->q->c.run.plan;
	const struct mb_query *q = r->q;
	bool fixed = q->set[MB_K_recompute] && !q->open[MB_K_modules] && q->alternatives[MB_K_modules].count == 0;

	if (fixed && plan->recompute == MB_RECOMPUTE_SELECTIVE && undecided(r, MB_K_modules))
		plan->recompute_modules = MB_CORE_ATTN;
	/* Modules alone say what is meant. */
	if (r->said[MB_K_recompute] == 0 && q->set[MB_K_modules] && plan->recompute_modules != 0)
		plan->recompute = MB_RECOMPUTE_SELECTIVE;
}

/* A layout has all virtual stages in it [transformer_config.py: virtual_pipeline_model_parallel_size from the layout]. */
static void derive_virtual_stages(struct mb_reader *r)
{
	struct mb_plan *plan = &r->q->c.run.plan;
	bool open = r->q->open[MB_K_vp] || r->q->open[MB_K_pp] || r->q->alternatives[MB_K_pp].count > 0 ||
	            r->q->alternatives[MB_K_layout].count > 0;

	if (open || plan->layout < 0 || !undecided(r, MB_K_vp))
		return;
	int stages = r->q->c.layouts[plan->layout].chunk_count;
	if (stages % plan->pp == 0 && stages / plan->pp <= mb_keys[MB_K_vp].max)
		plan->vp = stages / plan->pp;
}

static void check_sizes(struct mb_reader *r)
{
	const struct mb_plan *plan = &r->q->c.run.plan;
	struct mb_pos pos = r->q->pos[MB_K_cp_sizes];
	bool decided = r->q->set[MB_K_cp_sizes] && !r->q->open[MB_K_cp] && r->q->alternatives[MB_K_cp].count == 0;

	bool one = r->q->alternatives[MB_K_cp_sizes].count == 0;

	if (!decided || plan->cp_a2a_size == 0)
		return;
	if (plan->cp % plan->cp_a2a_size != 0)
		mb_report(r->diags, MB_ERROR, pos, mb_keys[MB_K_cp_sizes].name,
		          "hierarchical_context_parallel_sizes: %d does not divide context_parallel_size %d", plan->cp_a2a_size, plan->cp);
	else if (one && (int64_t)plan->cp_a2a_size * r->cp_ring != plan->cp)
		mb_report(r->diags, MB_ERROR, pos, mb_keys[MB_K_cp_sizes].name,
		          "hierarchical_context_parallel_sizes: %d x %d is not context_parallel_size %d", plan->cp_a2a_size, r->cp_ring,
		          plan->cp);
}

void mb_query_derive(struct mb_reader *r)
{
	struct mb_run *run = &r->q->c.run;
	struct mb_plan *plan = &run->plan;

	derive_precision(r);
	derive_dtypes(r);
	derive_attention(r);
	derive_graphs(r);
	derive_recompute(r);
	derive_virtual_stages(r);
	if (undecided(r, MB_K_etp))
		plan->etp = megatron(r) ? plan->tp : 1;
	if (undecided(r, MB_K_p2p_overlap))
		plan->overlap_p2p_comm = plan->vp > 1;
	if (r->lora && r->said[MB_K_task] == 0)
		run->task = MB_LORA;
	check_sizes(r);
}
