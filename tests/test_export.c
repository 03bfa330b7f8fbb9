/* A run in other tools' words reads back as the same run: over every run of the tests, through every format. */
#include "import_fixture.h"

#include <stdio.h>

#include "exchange/export.h"
#include "sweep/cell.h"

TestSuite(export, .init = begin, .fini = done);

static const struct { enum mb_export_format format; const char *name; } formats[] = {
	{ MB_EXPORT_BRIDGE, "bridge.txt" }, { MB_EXPORT_MEGATRON, "megatron.txt" }, { MB_EXPORT_YAML, "run.yaml" },
	{ MB_EXPORT_SBATCH, "run.sbatch" },
};

static bool load(const char *text, struct mb_query *q)
{
	memset(&diags, 0, sizeof diags);
	const struct mb_node *node = mb_node_read_text(text, strlen(text), "run.yaml", &arena, &diags);
	return node != NULL && mb_query_from_node(node, &library, &arena, q, &diags);
}

static const char *export(const struct mb_query *q, enum mb_export_format format)
{
	struct mb_text t = { 0 };

	memset(&diags, 0, sizeof diags);
	cr_assert(mb_export(q, format, &library, &arena, &t, &diags), "%s", diags.item[0].text);

	const char *copy = mb_arena_strdup(&arena, t.data);

	mb_text_free(&t);
	return copy;
}

/* `settings`: what the format cannot say and the user must. */
static void expect_same(const struct mb_query *q, const char *where, const char *settings)
{
	for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
		const char *text = export(q, formats[k].format), *difference = "";

		if (!import_text(text, formats[k].name, formats[k].format == MB_EXPORT_YAML ? "" : settings) || got.query == NULL)
			cr_expect_fail("%s, %s: line %d: %s", where, formats[k].name, diags.item[0].pos.line, diags.item[0].text);
		else
			cr_expect(mb_export_same(q, got.query, &difference), "%s, %s: %s differs in\n%s", where, formats[k].name, difference, text);
	}
}

/* Every `stride`-th line, so that the sanitized tests stay short; the strides have no factor in common with the groups. */
static int over_lines(const char *file, int stride)
{
	FILE *f = fopen(mb_arena_printf(&arena, "%s/tests/published/%s", library.root, file), "r");
	char *line = NULL;
	size_t capacity = 0;
	int read = 0;

	if (f == NULL)
		return -1;
	for (int n = 1; getline(&line, &capacity, f) > 0; n++) {
		struct mb_query *q = calloc(1, sizeof *q);

		if (n % stride == 0 && load(line, q)) {
			expect_same(q, mb_arena_printf(&arena, "%s:%d", file, n), "");
			read++;
		}
		free(q);
		if (n % 16 == 0)
			mb_arena_free(&arena);
	}
	free(line);
	fclose(f);
	return read;
}

/* All but two rows, of DeepSeek-V4 Flash, whose residual streams are not modelled. */
Test(export, published_throughput_runs_come_back)
{
	cr_expect_eq(over_lines("throughput.jsonl", 1), 228);
}

Test(export, published_memory_runs_come_back)
{
	int read = over_lines("golden.jsonl", 3);

	cr_expect_eq(read, 124, "%d", read);
}

Test(export, shipped_runs_come_back)
{
	const char *const *names;
	int count = mb_library_list(&library, "configs/runs", &arena, &names);

	for (int i = 0; i < count; i++) {
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);

		memset(&diags, 0, sizeof diags);
		const struct mb_node *n = mb_node_read_file(mb_arena_printf(&arena, "%s/configs/runs/%s.yaml", library.root, names[i]), &arena, &diags);
		cr_assert(n != NULL && mb_query_from_node(n, &library, &arena, q, &diags), "%s: %s", names[i], diags.item[0].text);
		expect_same(q, names[i], "");
	}
}

#define BASE "hardware: gb200-nvl72\ngpus: 64\nseq_length: 4096\nglobal_batch_size: 256\n"

/* What files and published rows do not hold. */
static const struct { const char *text, *settings; } odd[] = {
	{ "model: llama3-8b\n" BASE "hardware.hbm: 288 GB\nhardware.oversubscription: 2\n", "" },
	{ "model: llama3-8b\n" BASE "hardware.hbm: 1.5x\nhardware.nvlink_domain: 36\n", "" },
	{ "model: llama3-8b\n" BASE "task: lora\npeft: {dim: 16, target_modules: [linear_qkv, linear_fc2]}\n", "" },
	{ "model: llama3-8b\n" BASE "torch: 2.9.0\ntransformer_engine: 2.10\n", "" },
	{ "model: llama3-8b\n" BASE "precision: fp32\nmoe_load_imbalance: 1.5\npacked_sequence: true\nmean_sequence_length: 512\n", "" },
	{ "model: llama3-8b\n" BASE "environment: {CUDA_DEVICE_MAX_CONNECTIONS: 1, PYTORCH_CUDA_ALLOC_CONF: \"expandable_segments:True\", "
	  "NCCL_NVLS_ENABLE: 0, CUBLAS_WORKSPACE_CONFIG: \":4096:8\", NCCL_GRAPH_REGISTER: 0}\n", "" },
	{ "model: llama3-8b\nhardware: {extends: dgx-h100, nvlink: 300 GB/s}\ngpus: 8\nseq_length: 4096\nglobal_batch_size: 8\n", NULL },
	{ "model: {num_layers: 8, hidden_size: 512, num_attention_heads: 8, vocab_size: 1000, position_embedding_type: rope, "
	  "normalization: RMSNorm, activation: silu, gated_linear_unit: true, window_size: 128, window_attn_skip_freq: 2}\n" BASE, "" },
	{ "model: {hybrid_layer_pattern: \"M-M*ME/*E/*E\", hidden_size: 512, num_attention_heads: 8, vocab_size: 1000, num_moe_experts: 8, "
	  "position_embedding_type: none, normalization: RMSNorm, activation: squared_relu, add_bias_linear: false}\n" BASE, "" },
	{ "model: deepseek-v3\n" BASE "gpus: 64\npp: 2\nep: 32\npipeline_model_parallel_layout: \"Et*30|t*31mL\"\n", NULL },
	{ "model: llama3-8b\n" BASE "recompute_granularity: selective\nrecompute_modules: []\ncp: 4\ncp_comm_type: a2a+p2p\n"
	  "hierarchical_context_parallel_sizes: [2, 2]\n", "" },
};

Test(export, odd_runs_come_back)
{
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
		const char *difference = "";

		if (!load(odd[i].text, q)) {
			if (odd[i].settings != NULL)
				cr_expect_fail("%s: %s", odd[i].text, diags.item[0].text);
			continue;
		}
		if (odd[i].settings != NULL) {
			expect_same(q, odd[i].text, odd[i].settings);
			continue;
		}
		const char *text = export(q, MB_EXPORT_YAML);
		cr_expect(import_text(text, "run.yaml", "") && got.query != NULL && mb_export_same(q, got.query, &difference), "%s: %s %s", text,
		          difference, diags.item[0].text);
	}
}

static bool line(const char *text, const char *wanted)
{
	size_t n = strlen(wanted);

	for (const char *at = strstr(text, wanted); at != NULL; at = strstr(at + 1, wanted)) {
		if ((at == text || at[-1] == '\n' || at[-1] == '\t') && at[n] == '\n')
			return true;
	}
	return false;
}

/* [the table of knobs of Megatron Bridge and Megatron-LM: names that differ from ours] */
static const struct { const char *yaml; enum mb_export_format format; const char *line; } spellings[] = {
	{ "precision: fp8_mx\n", MB_EXPORT_BRIDGE, "mixed_precision=bf16_with_mxfp8_mixed   # changes what is learnt" },
	{ "precision: fp8_sc\n", MB_EXPORT_MEGATRON, "--fp8-recipe blockwise   # changes what is learnt" },
	{ "tp: 2\ntp_comm_overlap: true\n", MB_EXPORT_BRIDGE, "comm_overlap.tp_comm_overlap=true" },
	{ "tp: 2\n", MB_EXPORT_BRIDGE, "model.tensor_model_parallel_size=2" },
	{ "mbs: 2\n", MB_EXPORT_BRIDGE, "train.micro_batch_size=2" },
	{ "pp: 2\nvp: 2\n", MB_EXPORT_MEGATRON, "--num-virtual-stages-per-pipeline-rank 2" },
	{ "pp: 2\nnum_layers_in_first_pipeline_stage: 15\n", MB_EXPORT_MEGATRON, "--decoder-first-pipeline-num-layers 15" },
	{ "grad_reduce_in_fp32: false\n", MB_EXPORT_MEGATRON, "--grad-reduce-in-bf16   # changes what is learnt" },
	{ "grad_reduce_in_fp32: false\n", MB_EXPORT_BRIDGE, "mixed_precision.grad_reduce_in_fp32=false   # changes what is learnt" },
	{ "use_distributed_optimizer: false\n", MB_EXPORT_BRIDGE, "optimizer.use_distributed_optimizer=false" },
	{ "bucket_size: 1000\n", MB_EXPORT_MEGATRON, "--ddp-bucket-size 1000" },
	{ "recompute_granularity: selective\nrecompute_modules: [core_attn, mlp]\n", MB_EXPORT_MEGATRON, "--recompute-modules core_attn mlp" },
	{ "recompute_granularity: selective\nrecompute_modules: [mlp]\n", MB_EXPORT_BRIDGE, "'model.recompute_modules=[mlp]'" },
	{ "tp: 2\n", MB_EXPORT_SBATCH, "#SBATCH --nodes=16" },
	{ "cp: 2\n", MB_EXPORT_SBATCH, "export CUDA_DEVICE_MAX_CONNECTIONS=32" },
	{ "pp: 8\n", MB_EXPORT_SBATCH, "export NCCL_P2P_NET_CHUNKSIZE=2097152" },
};

Test(export, keys_are_spelt_as_their_framework_spells_them)
{
	for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);

		cr_assert(load(mb_arena_printf(&arena, "model: llama3-8b\n" BASE "%s", spellings[i].yaml), q), "%s", diags.item[0].text);
		const char *text = export(q, spellings[i].format);
		cr_expect(line(text, spellings[i].line), "%s: no '%s' in\n%s", spellings[i].yaml, spellings[i].line, text);
	}
}

Test(export, no_path_of_this_machine_is_written)
{
	struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);

	cr_assert(load(mb_arena_printf(&arena, "model: %s/tests/import/folder\n" BASE, library.root), q), "%s", diags.item[0].text);
	for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++)
		cr_expect(strstr(export(q, formats[k].format), library.root) == NULL, "%s", formats[k].name);
	expect_same(q, "a model by path", "");
}

#ifdef __SANITIZE_ADDRESS__
enum { NARROW = true };
#else
enum { NARROW = false };
#endif

/* The searches of README.md; under a sanitizer, which makes them some ten times dearer, with more keys fixed. */
static const struct { const char *text, *narrow; } searches[] = {
	{ "model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: 16\nglobal_batch_size: 1024\nseq_length: 4096\n", "tp: 2\nep: 8\nmbs: 4\n" },
	{ "model: deepseek-v3\nhardware: gb200-nvl72\ngpus: 256\nglobal_batch_size: 4096\nseq_length: 4096\nprecision: fp8_mx\n",
	  "tp: 1\npp: 2\nep: 64\nmbs: 4\n" },
	{ "model: llama3-70b\nhardware: dgx-h100\ngpus: 64\nglobal_batch_size: 256\nseq_length: 8192\nprecision: fp8_cs\n", "tp: 4\npp: 2\nmbs: 1\n" },
	{ "model: nemotron-3-nano\nhardware: gb300-nvl72\ngpus: 8\nglobal_batch_size: 512\nseq_length: 8192\nprecision: fp8_mx\n",
	  "tp: 1\nep: 8\nmbs: 2\n" },
};

static void expect_plan_comes_back(const struct mb_query *search, const struct mb_search_result *r, const struct mb_ranked *p, const char *where)
{
	struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);

	*q = *search;
	mb_cell_settle(q, r, p);
	expect_same(q, where, "");
}

Test(export, plans_of_the_published_searches_come_back, .timeout = 300)
{
	int plans = 0;

	for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++) {
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
		struct mb_search_result *r = mb_arena_alloc(&arena, sizeof *r);
		const struct mb_search_options options = { .top = 20, .threads = 1 };

		cr_assert(load(mb_arena_printf(&arena, "%s%s", searches[i].text, NARROW ? searches[i].narrow : ""), q), "%s", diags.item[0].text);
		cr_assert(mb_search(q, &options, &arena, r, &diags) && r->top_count > 0, "%s", searches[i].text);
		for (int k = 0; k < r->top_count; k++)
			expect_plan_comes_back(q, r, &r->top[k], mb_arena_printf(&arena, "search %zu, rank %d", i, k + 1));
		for (int k = 0; k < r->front_count; k++)
			expect_plan_comes_back(q, r, &r->front[k], mb_arena_printf(&arena, "search %zu, front %d", i, k + 1));
		plans += r->top_count + r->front_count;
	}
	cr_expect_geq(plans, 80);
}
