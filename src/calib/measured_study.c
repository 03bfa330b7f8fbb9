/*
 * A/B studies: what a study held fixed and what a variant changed. Both are merged into a run; what neither says is
 * Megatron Bridge's default. Levels are only as good as what was written down, ratios within a study are the point.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "calib/measured.h"
#include "calib/published_model.h"

static const struct mb_node *field(const struct mb_node *row, const char *key)
{
	const struct mb_node *n = mb_node_get(mb_node_get(row, "varied"), key);

	if (!n)
		n = mb_node_get(mb_node_get(row, "fixed"), key);
	return n && !mb_node_is_null(n) ? n : NULL;
}

static const char *text_of(const struct mb_node *row, const char *key)
{
	const struct mb_node *n = field(row, key);

	return n && n->type == MB_NODE_SCALAR ? n->text : NULL;
}

static const struct {
	const char *field, *key;
	bool required;
} fields[] = {
	{ "num_gpus", "gpus", true },
	{ "seq", "seq_length", true },
	{ "gbs", "global_batch_size", true },
	{ "mbs", "micro_batch_size", false },
	{ "tp", "tensor_model_parallel_size", false },
	{ "pp", "pipeline_model_parallel_size", false },
	{ "vp", "virtual_pipeline_model_parallel_size", false },
	{ "cp", "context_parallel_size", false },
	{ "ep", "expert_model_parallel_size", false },
	{ "recompute_modules", "recompute_modules", false },
	{ "pipeline_layout", "pipeline_model_parallel_layout", false },
	{ "ep_overlap", "overlap_moe_expert_parallel_comm", false },
	{ "delay_wgrad", "delay_wgrad_compute", false },
	{ "cuda_graph_impl", "cuda_graph_impl", false },
	{ "cuda_graph_scope", "cuda_graph_scope", false },
	{ "dispatcher", "moe_token_dispatcher_type", false },
	{ "flex_backend", "moe_flex_dispatcher_backend", false },
	{ "moe_permute_fusion", "moe_permute_fusion", false },
	{ "cpu_offloading_num_layers", "cpu_offloading_num_layers", false },
};

static void add_node(struct mb_text *run, const struct mb_node *n)
{
	if (n->type == MB_NODE_SCALAR) {
		mb_text_printf(run, n->quoted ? "'%s'" : "%s", n->text);
		return;
	}
	mb_text_add(run, "[");
	for (const struct mb_node *c = n->child; c; c = c->next) {
		add_node(run, c);
		mb_text_add(run, c->next ? ", " : "");
	}
	mb_text_add(run, "]");
}

static const char *add_fields(const struct mb_node *row, struct mb_text *run)
{
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		const struct mb_node *n = field(row, fields[i].field);

		if (n && n->type != MB_NODE_MAP) {
			mb_text_printf(run, ", %s: ", fields[i].key);
			add_node(run, n);
		} else if (fields[i].required) {
			return "its batch or its GPUs are not stated";
		}
	}
	return NULL;
}

static void add_model(const char *name, struct mb_text *run)
{
	mb_text_add(run, "model: ");
	for (const char *c = name; *c; c++)
		mb_text_add(run, *c == '_' ? "-" : (char[]){ *c, '\0' });
}

static bool add_precision(const struct mb_node *row, struct mb_text *run)
{
	static const char *const known[] = { "bf16", "fp8_cs", "fp8_mx", "fp8_sc", "nvfp4" };
	const char *text = text_of(row, "precision");

	/* Bridge's performance recipes of these skills run in bf16 unless they say otherwise. */
	if (!text)
		text = "bf16";
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strcmp(text, known[i]) == 0) {
			mb_text_printf(run, ", precision: %s", text);
			return true;
		}
	}
	return false;
}

/* What the recipe of a model sets and a study does not repeat [Megatron Bridge, recipes/moonlight/moonlight_16b.py]. */
static const struct {
	const char *model, *sets;
} recipes[] = {
	{ "moonlight_16b_a3b", ", use_precision_aware_optimizer: true, main_grads_dtype: bf16, exp_avg_dtype: bf16, "
	                       "exp_avg_sq_dtype: bf16, grad_reduce_in_fp32: false, moe_token_dispatcher_type: alltoall, "
	                       "moe_shared_expert_overlap: true, apply_rope_fusion: false" },
};

static void add_recipe(const char *model, struct mb_text *run)
{
	for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
		if (strcmp(model, recipes[i].model) == 0)
			mb_text_add(run, recipes[i].sets);
	}
}

static void add_rest(const struct mb_node *row, struct mb_text *run)
{
	const char *tp = text_of(row, "tp"), *task = text_of(row, "task"), *segments = text_of(row, "expandable_segments");
	const char *routing = text_of(row, "routing");

	if (tp && strcmp(tp, "1") != 0)
		mb_text_add(run, ", sequence_parallel: true");
	if (task && strncmp(task, "sft", 3) == 0)
		mb_text_add(run, ", task: sft");
	if (field(row, "recompute_modules"))
		mb_text_add(run, ", recompute_granularity: selective");
	if (field(row, "cpu_offloading_num_layers"))
		mb_text_add(run, ", cpu_offloading: true");
	if (segments && strcmp(segments, "true") == 0)
		mb_text_add(run, ", environment: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}");
	if (routing && strstr(routing, "force"))
		mb_text_add(run, ", moe_router_force_load_balancing: true");
	if (!field(row, "dispatcher") && field(row, "flex_backend"))
		mb_text_add(run, ", moe_token_dispatcher_type: flex");
	mb_text_add(run, ", cross_entropy_fusion_impl: te, hardware: ");
	mb_text_printf(run, "%s, stack: nemo-26.04}", mb_published_hardware(text_of(row, "gpu")));
}

static const char *refusal(const struct mb_node *row)
{
	const char *model = text_of(row, "model"), *task = text_of(row, "task");

	if (mb_row_text(row, "kind"))
		return "not a measured run";
	if (!model || !mb_published_hardware(text_of(row, "gpu")))
		return "its model or its GPU is not stated";
	if (strstr(model, "vl"))
		return "vision models are not modelled";
	if (task && strncmp(task, "lora", 4) == 0)
		return "the adapters' targets are not stated";
	return NULL;
}

static void take_results(const struct mb_node *row, struct mb_measured *ret)
{
	const char *unit = mb_row_text(row, "mem_unit"), *pp = text_of(row, "pp");
	double value;

	if (mb_row_number(row, "step_time_ms", &value) && value > 0)
		ret->value[MB_M_STEP] = value / 1000;
	else if (mb_row_number(row, "tflops_per_gpu", &value) && value > 0)
		ret->flop_per_s = value * 1e12;
	/* Whose peak it is, is not said: with one stage there is no question. */
	if (mb_row_number(row, "peak_alloc_gb", &value) && value > 0 && unit && pp && strcmp(pp, "1") == 0)
		ret->value[MB_M_PEAK] = value * (strncmp(unit, "GiB", 3) == 0 ? 1073741824.0 : 1e9);
}

void mb_measured_study(const struct mb_node *row, struct mb_arena *arena, struct mb_measured *ret)
{
	struct mb_text run = { 0 };

	ret->source = "A/B studies";
	ret->study = mb_row_text(row, "study");
	ret->varied = mb_node_get(row, "varied");
	ret->flops = MB_FLOPS_BRIDGE;
	take_results(row, ret);
	ret->skip = refusal(row);
	if (!ret->skip) {
		mb_text_add(&run, "{");
		add_model(text_of(row, "model"), &run);
		ret->skip = add_fields(row, &run);
		if (!ret->skip && !add_precision(row, &run))
			ret->skip = "its precision is not stated in a known form";
	}
	if (!ret->skip) {
		add_recipe(text_of(row, "model"), &run);
		add_rest(row, &run);
		mb_measured_run(ret, arena, run.data);
	}
	if (!ret->skip && !(ret->value[MB_M_STEP] > 0) && !(ret->value[MB_M_PEAK] > 0) && ret->flop_per_s <= 0)
		ret->skip = "it states neither a time nor a peak";
	mb_text_free(&run);
}
