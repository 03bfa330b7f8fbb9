/*
 * Published results whose configuration stands in columns of its own (tp, pp, gbs, ...). What a column leaves open is
 * assumed by source, in one table; what cannot be expressed as a run says why.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calib/measured.h"
#include "calib/published_model.h"

/* Settings of NeMo's own recipes that its tables leave out: the communication overlaps and the distributed optimizer. */
#define NEMO "use_distributed_optimizer: true, overlap_grad_reduce: true, overlap_param_gather: true, " \
	"cross_entropy_fusion_impl: te, cuda_graph_impl: none"

/* Megatron-LM of 2021 and 2022: no distributed optimizer, no flash attention, dropout on, nothing overlapped. */
#define PAPERS "use_distributed_optimizer: false, overlap_grad_reduce: false, overlap_param_gather: false, " \
	"attention_backend: unfused, hidden_dropout: 0.1, attention_dropout: 0.1, cuda_graph_impl: none"

/* SimuMax measures without any overlap, by contract; its expert rows drop and pad. */
#define SIMUMAX "use_distributed_optimizer: true, overlap_grad_reduce: false, overlap_param_gather: false, " \
	"overlap_p2p_comm: false, cross_entropy_fusion_impl: te, cuda_graph_impl: none, grad_reduce_in_fp32: true"

/* Its B200 rows name their software, whose defaults its launcher overrides; Megatron-LM's NullTokenizer adds a token. */
#define SIMUMAX_B200 "stack: mlm-dev-2026-01, transformer_engine: 2.11.0, create_attention_mask_in_dataloader: false, " \
	"cross_entropy_loss_fusion: true, hidden_dropout: 0, attention_dropout: 0, moe_grouped_gemm: true, moe_permute_fusion: true"

/* The settings of MLPerf's own launch scripts that are not in their configuration files. */
#define MLPERF "use_distributed_optimizer: true, cross_entropy_fusion_impl: te"

#define MODELZOO "use_distributed_optimizer: true, cross_entropy_fusion_impl: te, moe_permute_fusion: true, moe_router_fusion: true"

/*
 * By the first part of the id. `assumed`: keys that the source does not state. `micro_batch`: assumed size where the
 * source has none; 0: such a row is skipped. `added_tokens`: what the tokenizer adds to the vocabulary of the row.
 */
static const struct source {
	const char *prefix, *label, *refused, *assumed;
	int micro_batch;
	enum mb_flop_count flops;
	int added_tokens;
} sources[] = {
	{ "mlm-readme-weak",  "Megatron-LM README",  NULL, "precision: bf16, " NEMO, 1, MB_FLOPS_FULL_SCORES, 0 },
	{ "mlm-examples-llama", "Megatron-LM Llama examples", NULL, NEMO ", tp_comm_overlap: true", 0, MB_FLOPS_FULL_SCORES, 0 },
	{ "mlm-dsv3-gb200-guide", "Megatron-LM DeepSeek-V3 guide", NULL, MODELZOO, 0, MB_FLOPS_BRIDGE, 0 },
	{ "modelzoo-",        "Megatron MoE model zoo", NULL, MODELZOO, 0, MB_FLOPS_BRIDGE, 0 },
	{ "simumax-b200",     "SimuMax B200",        NULL, SIMUMAX ", " SIMUMAX_B200, 0, MB_FLOPS_FULL_SCORES, 1 },
	{ "simumax-a100pcie", "SimuMax A100 PCIe",   NULL, SIMUMAX, 0, MB_FLOPS_FULL_SCORES, 0 },
	{ "korthikanti-t4",   NULL, "times of one layer, not of a step", NULL, 0, MB_FLOPS_FULL_SCORES, 0 },
	{ "korthikanti-fig1", NULL, "values of a formula, not measurements", NULL, 0, MB_FLOPS_FULL_SCORES, 0 },
	{ "korthikanti",      "Korthikanti 2022",    NULL, PAPERS, 0, MB_FLOPS_FULL_SCORES, 0 },
	{ "narayanan-",       "Narayanan 2021",      NULL, PAPERS, 1, MB_FLOPS_EXECUTED, 0 },
	{ "mtnlg-",           "MT-NLG 530B",         NULL, PAPERS, 1, MB_FLOPS_FULL_SCORES, 0 },
	{ "dgxc/",            "NVIDIA DGXC benchmarks", NULL, NEMO ", tp_comm_overlap: true", 0, MB_FLOPS_BRIDGE, 0 },
	{ "nemo-launcher-a100", "NeMo launcher",     NULL, NEMO, 0, MB_FLOPS_FULL_SCORES, 0 },
	{ "nemo-",            "NeMo documentation",  NULL, NEMO ", tp_comm_overlap: true", 1, MB_FLOPS_FULL_SCORES, 0 },
	{ "mlperf/",          "MLPerf Training",     NULL, MLPERF, 0, MB_FLOPS_BRIDGE, 0 },
	{ "mcore-moe-report-mem", NULL, "a breakdown by the paper's accounting, not a measurement", NULL, 0, MB_FLOPS_BRIDGE, 0 },
	{ "mlm-moe-perf",     NULL, "times of one layer, not of a step", NULL, 0, MB_FLOPS_BRIDGE, 0 },
	{ "torchtitan",       NULL, "another framework: torchtitan", NULL, 0, MB_FLOPS_BRIDGE, 0 },
	{ "llm-foundry",      NULL, "another framework: llm-foundry with FSDP", NULL, 0, MB_FLOPS_BRIDGE, 0 },
	{ "automodel",        NULL, "another framework: NeMo AutoModel with FSDP2", NULL, 0, MB_FLOPS_BRIDGE, 0 },
	{ "nanotron",         NULL, "another framework: nanotron", NULL, 0, MB_FLOPS_BRIDGE, 0 },
	{ "",                 "other",               NULL, NEMO, 0, MB_FLOPS_BRIDGE, 0 },
};

static const struct source *find_source(const char *id)
{
	const struct source *s = sources;

	while (strncmp(id, s->prefix, strlen(s->prefix)) != 0)
		s++;
	return s;
}

static bool has(const struct mb_node *row, const char *column, const char *word)
{
	const char *text = mb_row_text(row, column);

	return text && strstr(text, word);
}

static bool add_columns(const struct mb_node *row, struct mb_text *run)
{
	static const struct { const char *column, *key; bool required; } columns[] = {
		{ "num_gpus", "gpus", true },
		{ "seq", "seq_length", true },
		{ "gbs", "global_batch_size", true },
		{ "tp", "tensor_model_parallel_size", true },
		{ "pp", "pipeline_model_parallel_size", true },
		{ "cp", "context_parallel_size", false },
		{ "ep", "expert_model_parallel_size", false },
		{ "etp", "expert_tensor_parallel_size", false },
	};
	double value, pp = 1;

	for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
		if (mb_row_number(row, columns[i].column, &value))
			mb_text_printf(run, ", %s: %.0f", columns[i].key, value);
		else if (columns[i].required)
			return false;
	}
	mb_row_number(row, "pp", &pp);
	if (mb_row_number(row, "vp", &value) && value > 1 && pp > 1 && !mb_node_get(mb_node_get(row, "other_settings"), "pp_layout"))
		mb_text_printf(run, ", virtual_pipeline_model_parallel_size: %.0f", value);
	return true;
}

/* "fp8" of these sources is Transformer Engine's delayed scaling: they are older than the other recipes. */
static bool add_precision(const struct mb_node *row, const char *assumed, struct mb_text *run)
{
	static const struct { const char *published, *precision; } precisions[] = {
		{ "mxfp8", "fp8_mx" }, { "fp8 blockwise", "fp8_sc" }, { "fp8", "fp8_ds" }, { "bf16", "bf16" }, { "fp16", "fp16" },
		{ "nvfp4", "nvfp4" },
	};
	const char *text = mb_row_text(row, "precision");

	if (!text)
		return strstr(assumed, "precision: ");
	for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
		if (strcmp(text, precisions[i].published) == 0) {
			mb_text_printf(run, ", precision: %s", precisions[i].precision);
			return true;
		}
	}
	return false;
}

static void add_list(struct mb_text *run, const char *key, const char *words)
{
	mb_text_printf(run, ", %s: [", key);
	for (const char *w = words; *w; w++)
		mb_text_add(run, *w == ' ' ? ", " : (char[]){ *w, '\0' });
	mb_text_add(run, "]");
}

static void add_recompute(const struct mb_node *row, struct mb_text *run)
{
	const struct mb_node *recompute = mb_node_get(row, "recompute");
	const char *granularity = mb_row_text(recompute, "granularity"), *modules = mb_row_text(recompute, "modules");
	const char *method = mb_row_text(recompute, "method");
	double layers = 1;

	if (granularity && strcmp(granularity, "full") == 0) {
		mb_row_number(recompute, "num_layers", &layers);
		mb_text_printf(run, ", recompute_granularity: full, recompute_method: %s, recompute_num_layers: %.0f",
		               method ? method : "uniform", layers);
	} else if (granularity && strcmp(granularity, "selective") == 0 && modules) {
		mb_text_add(run, ", recompute_granularity: selective");
		add_list(run, "recompute_modules", modules);
	}
}

static void add_dispatcher(const struct mb_node *row, struct mb_text *run)
{
	const char *text = mb_row_text(row, "dispatcher");

	if (!text)
		return;
	if (strcmp(text, "DeepEP") == 0)
		mb_text_add(run, ", moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: deepep");
	else if (strcmp(text, "HybridEP") == 0)
		mb_text_add(run, ", moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: hybridep");
	else
		mb_text_add(run, ", moe_token_dispatcher_type: alltoall");
}

static void add_overlaps(const struct mb_node *row, const char *assumed, struct mb_text *run)
{
	double tp = 1, vp = 1;

	mb_row_number(row, "tp", &tp);
	mb_row_number(row, "vp", &vp);
	if (tp > 1) {
		const char *sp = mb_row_text(row, "sp");

		/* Every recipe of these sources since 2022 that splits matrices splits norms too. */
		mb_text_printf(run, ", sequence_parallel: %s", sp && strcmp(sp, "false") == 0 ? "false" : "true");
		if (!strstr(assumed, "tp_comm_overlap") && (has(row, "overlap", "--tp-comm-overlap") || has(row, "overlap", "TP_COMM_OVERLAP=True")))
			mb_text_add(run, ", tp_comm_overlap: true");
	}
	if (!strstr(assumed, "overlap_grad_reduce")) {
		if (has(row, "overlap", "OVERLAP_GRAD_REDUCE=False"))
			mb_text_add(run, ", overlap_grad_reduce: false, overlap_param_gather: false");
		else
			mb_text_add(run, ", overlap_grad_reduce: true, overlap_param_gather: true");
	}
	if (has(row, "overlap", "A2A_OVERLAP=1"))
		mb_text_printf(run, ", overlap_moe_expert_parallel_comm: true, delay_wgrad_compute: %s",
		               has(row, "overlap", "delay-wgrad") ? "true" : "false");
	else if (has(row, "overlap", "EP A2A overlap") && !has(row, "overlap", "no EP A2A overlap"))
		mb_text_add(run, ", overlap_moe_expert_parallel_comm: true");
	if (has(row, "zero", "FSDP"))
		mb_text_add(run, ", use_megatron_fsdp: true, data_parallel_sharding_strategy: optim_grads_params");
}

/* Settings that a source wrote down beside its columns. */
static void add_others(const struct mb_node *row, struct mb_text *run)
{
	const struct mb_node *o = mb_node_get(row, "other_settings"), *env = mb_node_get(o, "env");
	const char *text;
	double value;

	if ((text = mb_row_text(o, "pp_layout")))
		mb_text_printf(run, ", pipeline_model_parallel_layout: '%s'", text);
	if (mb_row_number(o, "mtp", &value))
		mb_text_printf(run, ", mtp_num_layers: %.0f", value);
	if ((text = mb_row_text(o, "cp_comm")))
		mb_text_printf(run, ", cp_comm_type: %s", text);
	if ((text = mb_row_text(o, "cuda_graph")) && strncmp(text, "TE: ", 4) == 0) {
		mb_text_add(run, ", cuda_graph_impl: transformer_engine");
		add_list(run, "cuda_graph_scope", text + 4);
	}
	if (mb_row_text(o, "force_load_balancing") || has(o, "load_balance", "forced"))
		mb_text_add(run, ", moe_router_force_load_balancing: true");
	if (has(o, "bf16_adam_moments", "true"))
		mb_text_add(run, ", use_precision_aware_optimizer: true, exp_avg_dtype: bf16, exp_avg_sq_dtype: bf16");
	if (has(o, "fp8_param_gather", "true"))
		mb_text_add(run, ", fp8_param_gather: true");
	if (mb_row_number(o, "optimizer_offload", &value) && value > 0)
		mb_text_printf(run, ", optimizer_cpu_offload: true, optimizer_offload_fraction: %g", value);
	if (has(o, "moe", "drop-and-pad"))
		mb_text_add(run, ", moe_expert_capacity_factor: 1, moe_pad_expert_input_to_capacity: true");
	if (has(env, "ASYM_PP_EMBED", "True"))
		mb_text_add(run, ", account_for_embedding_in_pipeline_split: true");
	if (has(env, "ASYM_PP_LOSS", "True"))
		mb_text_add(run, ", account_for_loss_in_pipeline_split: true");
	if (has(env, "FP8_DPA", "1"))
		mb_text_add(run, ", fp8_dot_product_attention: true");
	if (has(env, "MCORE_CUDA_GRAPH", "1"))
		mb_text_add(run, ", cuda_graph_impl: full_iteration");
	else if (has(env, "LAYER_CUDA_GRAPH", "1"))
		mb_text_add(run, ", cuda_graph_impl: transformer_engine, cuda_graph_scope: [attn, mlp]");
}

/* MLPerf's adapters sit on both attention projections, rank 16 [MLCommons reference, llama2_70b_lora]; samples are full. */
static void add_task(const struct mb_node *row, struct mb_text *run)
{
	double seq = 0;

	mb_row_number(row, "seq", &seq);
	if (has(row, "kind", "LoRA") || has(row, "model", "LoRA") || has(row, "id", "/lora"))
		mb_text_printf(run, ", task: lora, peft: {dim: 16, target_modules: [linear_qkv, linear_proj]}, mean_sequence_length: %.0f",
		               seq);
	else if (has(row, "kind", "fine-tuning"))
		mb_text_printf(run, ", task: sft, mean_sequence_length: %.0f", seq);
}

/* The fullest rank's, exact where each rank is listed. Figures repeated from another row are not measured twice. */
static void take_peak(const struct mb_node *row, struct mb_measured *ret)
{
	const struct mb_node *o = mb_node_get(row, "other_settings"), *ranks = mb_node_get(o, "allocated_mb_by_rank");
	const char *measured_in = mb_row_text(o, "memory_source_case"), *own = strchr(ret->id, '/');
	double value, fullest = 0;

	if (measured_in && own && strcmp(measured_in, own + 1) != 0)
		return;
	for (const struct mb_node *rank = ranks ? ranks->child : NULL; rank; rank = rank->next)
		if (mb_row_number(ranks, rank->key->text, &value))
			fullest = fmax(fullest, value);
	if (fullest > 0)
		ret->value[MB_M_PEAK] = fullest * 1048576;
	else if (mb_row_number(row, "peak_mem", &value) && value > 0 && has(row, "peak_mem_unit", "GiB") &&
	         has(row, "peak_mem_definition", "max over ranks"))
		ret->value[MB_M_PEAK] = value * 1073741824.0;
}

/* Seconds, tokens or TFLOP/s, whichever the source gives first hand; bytes where it says whose peak they are. */
static void take_results(const struct mb_node *row, struct mb_measured *ret)
{
	double value, gbs = 0, seq = 0, gpus = 0;

	mb_row_number(row, "gbs", &gbs);
	mb_row_number(row, "seq", &seq);
	mb_row_number(row, "num_gpus", &gpus);
	if (mb_row_number(row, "step_time_s", &value) && value > 0)
		ret->value[MB_M_STEP] = value;
	else if (mb_row_number(row, "tokens_per_s_per_gpu", &value) && value > 0)
		ret->value[MB_M_STEP] = gbs * seq / gpus / value;
	else if (mb_row_number(row, "tflops_per_gpu", &value) && value > 0)
		ret->flop_per_s = value * 1e12;
	else if (mb_row_number(row, "mfu", &value) && value > 0 && has(row, "gpu", "A100"))
		ret->flop_per_s = value * 312e12;
	take_peak(row, ret);
}

static const char *refusal(const struct mb_node *row, const struct source *source)
{
	if (source->refused)
		return source->refused;
	if (has(row, "software", "MaxText"))
		return "another framework: MaxText";
	if (has(row, "zero", "ZeRO-3"))
		return "another framework: DeepSpeed";
	if (has(row, "id", "H200-NVL"))
		return "its machine is not described in hardware/: PCIe boards of H200";
	if (!mb_published_hardware(mb_row_text(row, "gpu")))
		return "its GPU is not described in hardware/";
	return NULL;
}

/* The configuration as a mapping; NULL, or what keeps it from being one. */
static const char *write_run(const struct mb_node *row, const struct source *source, struct mb_text *run)
{
	double value;
	const char *why;

	mb_text_add(run, "{");
	if ((why = mb_published_model(row, source->added_tokens, run)))
		return why;
	mb_text_printf(run, ", hardware: %s, %s%s", mb_published_hardware(mb_row_text(row, "gpu")),
	               strstr(source->assumed, "stack: ") ? "" : "stack: nemo-25.09, ", source->assumed);
	if (!add_columns(row, run))
		return "its parallel sizes or batch are not stated";
	if (mb_row_number(row, "mbs", &value))
		mb_text_printf(run, ", micro_batch_size: %.0f", value);
	else if (source->micro_batch)
		mb_text_printf(run, ", micro_batch_size: %d", source->micro_batch);
	else
		return "its micro-batch size is not stated";
	if (!add_precision(row, source->assumed, run))
		return "its precision is not stated";
	add_recompute(row, run);
	add_dispatcher(row, run);
	add_overlaps(row, source->assumed, run);
	add_task(row, run);
	add_others(row, run);
	mb_text_add(run, "}");
	return NULL;
}

void mb_measured_published(const struct mb_node *row, struct mb_arena *arena, struct mb_measured *ret)
{
	const struct source *source = find_source(ret->id);
	struct mb_text run = { 0 };

	if (source->label)
		ret->source = source->label;
	ret->flops = source->flops;
	ret->software = mb_row_text(row, "software");
	take_results(row, ret);
	ret->skip = refusal(row, source);
	if (!ret->skip)
		ret->skip = write_run(row, source, &run);
	if (!ret->skip)
		mb_measured_run(ret, arena, run.data);
	if (!ret->skip && isnan(ret->value[MB_M_STEP]) && isnan(ret->value[MB_M_PEAK]) && ret->flop_per_s <= 0)
		ret->skip = "it states neither a time nor a peak";
	mb_text_free(&run);
}
