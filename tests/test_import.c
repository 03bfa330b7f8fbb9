/* Scripts, argument logs and configurations of other tools become runs; what they leave open is said. */
#include "import_fixture.h"

#include <dirent.h>

#include "plan/rules.h"

TestSuite(import, .init = begin, .fini = done);

/* ---- files of users ---- */

/* Lines that the printed run must have. */
static const struct { const char *file, *settings, *lines[14]; } read[] = {
	{ "cases/swift_glm45_air_pp4.sh", "", { "model: glm-4.5-air", "tensor_model_parallel_size: 8", "pipeline_model_parallel_size: 4",
	  "expert_model_parallel_size: 16", "recompute_granularity: full", "seq_length: 4096", "micro_batch_size: 2",
	  "packed_sequence: true", "moe_shared_expert_overlap: true" } },
	{ "cases/swift_qwen3_235b_lora_npu.sh", "model=qwen3-235b-a22b", { "model: qwen3-235b-a22b", "task: lora",
	  "tensor_model_parallel_size: 4", "pipeline_model_parallel_size: 2", "expert_model_parallel_size: 8",
	  "optimizer_offload_fraction: 1", "optimizer_cpu_offload: true", "seq_length: 1024" } },
	{ "cases/verl_megatron_hydra_overrides.sh", "model=qwen3-235b-a22b seq=8192 gbs=64", { "pipeline_model_parallel_size: 8",
	  "tensor_model_parallel_size: 4", "context_parallel_size: 4", "expert_model_parallel_size: 8", "expert_tensor_parallel_size: 2",
	  "virtual_pipeline_model_parallel_size: 1", "recompute_granularity: full", "moe_token_dispatcher_type: flex",
	  "account_for_embedding_in_pipeline_split: true", "micro_batch_size: 1", "seq_length: 8192", "gpus: 128" } },
	{ "cases/zoo_dsv3_env_keys.yaml", "TP=1 PP=8 EP=32 CP=1 MBS=1 GBS=2048 SEQ_LEN=4096 gpus=256", { "gpus: 256",
	  "  --num-layers: 61", "  --moe-layer-freq: \"([0]*3+[1]*58)\"", "  --make-vocab-size-divisible-by: 3232",
	  "  --pipeline-model-parallel-size: 8", "  --expert-model-parallel-size: 32",
	  "  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True" } },
	{ "cases/verl_ppo_megatron_trainer.yaml", "model=llama2-7b seq=2048", { "tensor_model_parallel_size: 1", "sequence_parallel: true",
	  "recompute_modules: [core_attn]", "global_batch_size: 256" } },
	{ "cases/nemo1_gpt_config_resolvers.yaml", "vocab_size=32000", { "gpus: 16", "precision: bf16", "  ffn_hidden_size: 16384",
	  "  num_attention_heads: 32", "seq_length: 4096", "recompute_granularity: selective", "sequence_parallel: true",
	  "tensor_model_parallel_size: 4" } },
	{ "cases/args_namespace_dump.txt", "", { "gpus: 16", "  --tensor-model-parallel-size: 4", "  --pipeline-model-parallel-size: 1",
	  "  --expert-model-parallel-size: 8", "  --global-batch-size: 128", "  --num-layers: 32", "  --num-experts: 8" } },
};

static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = strstr(text, line); at != NULL; at = strstr(at + 1, line)) {
		if ((at == text || at[-1] == '\n') && at[n] == '\n')
			return true;
	}
	return false;
}

Test(import, files_of_users_are_read)
{
	for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
		if (!import_file(read[i].file, read[i].settings)) {
			cr_expect_fail("%s:%d: %s", read[i].file, diags.item[0].pos.line, diags.item[0].text);
			continue;
		}
		cr_expect(got.query != NULL, "%s: not complete: %s", read[i].file, diags.item[diags.count - 1].text);
		const char *text = printed();
		for (int k = 0; k < 14 && read[i].lines[k] != NULL; k++)
			cr_expect(has_line(text, read[i].lines[k]), "%s: no '%s' in\n%s", read[i].file, read[i].lines[k], text);
	}
}

static const struct { const char *file; int line; const char *words; } refused[] = {
	{ "cases/broken_json_duplicate_keys.json", 9, "duplicate key 'num_hidden_layers'" },
	{ "cases/broken_truncated.json", 17, "string never ends, the file stops at byte 400" },
	{ "cases/broken_yaml_multi_doc.yaml", 2, "a second document" },
	{ "cases/broken_yaml_tabs.yaml", 2, "tab used for indentation" },
	{ "cases/broken_yaml_zoo.yaml", 16, "duplicate key 'tensor_model_parallel_size'" },
	{ "cases/torchtitan_dsv3_16b.toml", 1, "TOML is not read" },
	{ "cases/zoo_dsv3_env_keys.yaml", 6, "TP, PP, EP, CP, MBS, GBS, SEQ_LEN" },
	{ "cases/hf_glm5_dsa_layer_types.json", 11, "index_topk" },
	{ "cases/hf_llama4_scout_nested.json", 7, "attention_chunk_size" },
	{ "cases/no-such-file", 0, "cannot be opened" },
};

Test(import, broken_files_are_refused_where_they_break)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		cr_expect(!import_file(refused[i].file, ""), "%s", refused[i].file);
		cr_expect(told(MB_ERROR, refused[i].line, refused[i].words), "%s: %d: %s", refused[i].file, diags.item[0].pos.line, diags.item[0].text);
	}
}

/* Every file that people gave: read in whole, or refused by the table above; none is left to chance. */
Test(import, each_file_of_users_is_read_or_refused)
{
	int count[2] = { 0 };
	struct dirent *entry;
	DIR *dir = opendir(path("cases"));

	cr_assert(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		const char *name = mb_arena_printf(&arena, "cases/%s", entry->d_name);
		bool must_fail = false;

		if (entry->d_name[0] == '.')
			continue;
		for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
			must_fail = must_fail || strcmp(refused[i].file, name) == 0;
		cr_expect(import_file(name, "") == !must_fail, "%s: %s", name, diags.item[0].text);
		cr_expect(must_fail == (diags.errors > 0), "%s: %d errors", name, diags.errors);
		cr_expect(must_fail || got.map != NULL, "%s: nothing to print", name);
		count[must_fail]++;
	}
	closedir(dir);
	cr_expect(count[0] == 21 && count[1] == 9, "%d read, %d refused", count[0], count[1]);
}

static int experts_layers(const struct mb_model *m)
{
	int n = 0;

	for (int i = 0; i < m->num_layers; i++)
		n += m->kinds[m->layers[i]].ffn == MB_FFN_MOE;
	return n;
}

Test(import, files_of_users_mean_what_their_owners_found)
{
	static struct mb_violation list[MB_MAX_VIOLATIONS];
	const struct mb_model *m;
	bool found = false;

	cr_assert(import_file(read[0].file, read[0].settings) && got.query != NULL);
	for (int i = mb_check(got.query, &got.query->c.run.plan, list) - 1; i >= 0; i--)
		found = found || strstr(list[i].message, "PP 4 does not divide 46 layers") != NULL;
	cr_expect(found, "the layout of GLM-4.5-Air");

	cr_assert(import_file(read[3].file, read[3].settings) && got.query != NULL);
	m = &got.query->c.model;
	cr_expect(m->num_layers == 61 && experts_layers(m) == 58 && m->make_vocab_size_divisible_by == 3232);

	cr_assert(import_file(read[5].file, read[5].settings) && got.query != NULL);
	m = &got.query->c.model;
	cr_expect(m->ffn_hidden_size == 16384 && m->kv_channels == 128 && m->num_query_groups == 32);
}

Test(import, what_is_assumed_is_said)
{
	cr_assert(import_file("cases/swift_qwen3_235b_lora_npu.sh", ""));
	cr_expect(got.query == NULL);
	cr_expect(told(MB_WARNING, 0, "not in the file: model"));
	cr_expect(told(MB_WARNING, 2, "--model_type"));
	cr_expect(told(MB_NOTE, 0, "assumed: hardware dgx-h100"));
	cr_expect(told(MB_NOTE, 0, "assumed: gpus 16"));
	cr_assert(import_file("cases/verl_ppo_megatron_trainer.yaml", ""));
	cr_expect(told(MB_NOTE, 0, "rollout, reference and reward are not modelled"));
	cr_expect(told(MB_WARNING, 7, "is no shipped model"));
}

/* What is printed reads as the same run. */
Test(import, printed_runs_are_runs)
{
	for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
		char a[256], b[256];

		cr_assert(import_file(read[i].file, read[i].settings) && got.query != NULL);
		const char *text = printed();
		const struct mb_node *map = mb_node_read_text(text, strlen(text), "run.yaml", &arena, &diags);
		cr_assert(map != NULL && mb_query_from_node(map, &library, &arena, q, &diags), "%s: %s", read[i].file, diags.item[0].text);
		for (int id = 0; id < MB_KEY_COUNT; id++) {
			mb_key_format(&q->c, &q->c.run, &mb_keys[id], a, sizeof a);
			mb_key_format(&got.query->c, &got.query->c.run, &mb_keys[id], b, sizeof b);
			cr_expect_str_eq(a, b, "%s: %s is %s, was %s", read[i].file, mb_keys[id].name, a, b);
		}
	}
}

/* ---- scripts ---- */

#define SIZES "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 " \
	"--micro-batch-size 1 --global-batch-size 16 --vocab-size 1000 "

static const struct { const char *what, *text; enum mb_key_id key; const char *value; } scripts[] = {
	{ "a command", "python pretrain_gpt.py " SIZES "--tensor-model-parallel-size 2\n", MB_K_tp, "2" },
	{ "equals signs", "python pretrain_gpt.py " SIZES "--tensor-model-parallel-size=2\n", MB_K_tp, "2" },
	{ "continued lines", "python pretrain_gpt.py \\\n " SIZES "\\\n --tensor-model-parallel-size \\\n 2\n", MB_K_tp, "2" },
	{ "carriage returns", "TP=2\r\npython pretrain_gpt.py " SIZES "\\\r\n --tensor-model-parallel-size $TP\r\n", MB_K_tp, "2" },
	{ "a byte order mark", "\xef\xbb\xbfpython pretrain_gpt.py " SIZES "--tensor-model-parallel-size 2\n", MB_K_tp, "2" },
	{ "variables", "TP=2\nP=$TP\npython pretrain_gpt.py " SIZES "--tensor-model-parallel-size ${P}\n", MB_K_tp, "2" },
	{ "a variable of flags", "O=\"" SIZES "--tensor-model-parallel-size 2\"\npython pretrain_gpt.py $O\n", MB_K_tp, "2" },
	{ "arrays", "A=(" SIZES ")\nB=(\n --tensor-model-parallel-size 2 # two\n)\npython pretrain_gpt.py ${A[@]} \"${B[@]}\"\n", MB_K_tp, "2" },
	{ "growing arrays", "A=(" SIZES ")\nA+=(--tensor-model-parallel-size 2)\npython pretrain_gpt.py \"${A[@]}\"\n", MB_K_tp, "2" },
	{ "arrays without a command", "A=(" SIZES "--tensor-model-parallel-size 2)\n", MB_K_tp, "2" },
	{ "defaults", "python pretrain_gpt.py " SIZES "--tensor-model-parallel-size ${TP:-2}\n", MB_K_tp, "2" },
	{ "sums", "A=4\nB=$((A / 2))\npython pretrain_gpt.py " SIZES "--tensor-model-parallel-size $B\n", MB_K_tp, "2" },
	{ "quotes", "python 'pretrain_gpt.py' " SIZES "\"--tensor-model-parallel-size\" '2'\n", MB_K_tp, "2" },
	{ "comments", "# --tensor-model-parallel-size 4\npython pretrain_gpt.py " SIZES " --tensor-model-parallel-size 2 # 8\n", MB_K_tp, "2" },
	{ "no backslashes", "python pretrain_gpt.py\n" SIZES "\n--tensor-model-parallel-size 2\n", MB_K_tp, "2" },
	{ "only flags", SIZES "\n--tensor-model-parallel-size 2\n", MB_K_tp, "2" },
	{ "torchrun", "torchrun --nproc_per_node 8 --nnodes=4 pretrain_gpt.py " SIZES "\n", MB_K_gpus, "32" },
	{ "an old switch", "torchrun pretrain_gpt.py " SIZES " --recompute-activations --bf16\n", MB_K_recompute, "selective" },
	{ "another", "torchrun pretrain_gpt.py " SIZES " --use-flash-attn\n", MB_K_attn_backend, "flash" },
	{ "slurm", "#SBATCH --nodes=4\n#SBATCH --gpus-per-node 4\nsrun python pretrain_gpt.py " SIZES "\n", MB_K_gpus, "16" },
	{ "gres", "#SBATCH -N 2\n#SBATCH --gres=gpu:h100:8\nsrun python pretrain_gpt.py " SIZES "\n", MB_K_gpus, "16" },
	{ "counted nodes", "NNODES=2\nGPUS_PER_NODE=8\npython pretrain_gpt.py " SIZES "\n", MB_K_gpus, "16" },
	{ "other commands", "mkdir -p x --tensor-model-parallel-size 4\npython pretrain_gpt.py " SIZES "--tensor-model-parallel-size 2\n", MB_K_tp, "2" },
	{ "lists", "python pretrain_gpt.py " SIZES "--recompute-granularity selective --recompute-modules core_attn mlp\n", MB_K_modules, "[core_attn, mlp]" },
	{ "flags without a value", "python pretrain_gpt.py " SIZES "--bf16 --sequence-parallel --tensor-model-parallel-size 2\n", MB_K_sp, "true" },
	{ "switched off", "python pretrain_gpt.py " SIZES "--no-gradient-accumulation-fusion\n", MB_K_gaf, "false" },
	{ "the last one counts", "python pretrain_gpt.py " SIZES "--tensor-model-parallel-size 4 --tensor-model-parallel-size 2\n", MB_K_tp, "2" },
	{ "redirection", "python pretrain_gpt.py " SIZES "--tensor-model-parallel-size 2 2>&1 | tee log\n", MB_K_tp, "2" },
	{ "a batch of replicas", "python pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
	  "--max-position-embeddings 128 --vocab-size 1000 --micro-batch-size 2\n", MB_K_gbs, "32" },
};

Test(import, scripts_are_read_as_a_shell_would)
{
	char text[256];

	for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
		bool ok = import_text(scripts[i].text, "run.sh", scripts[i].key == MB_K_gpus ? "" : "gpus=16");

		if (!ok || got.query == NULL) {
			cr_expect_fail("%s: %d:%d: %s", scripts[i].what, diags.item[0].pos.line, diags.item[0].pos.column, diags.item[0].text);
			continue;
		}
		mb_key_format(&got.query->c, &got.query->c.run, &mb_keys[scripts[i].key], text, sizeof text);
		cr_expect_str_eq(text, scripts[i].value, "%s: %s", scripts[i].what, text);
		cr_expect(got.query->c.model.num_layers == 4, "%s", scripts[i].what);
	}
}

static const struct { const char *text; int line, column; const char *words; } bad_scripts[] = {
	{ "python x.py " SIZES "\\\n --tensor-model-parallel-size $TP\n", 2, 4, "the file does not say what TP is" },
	{ "python x.py " SIZES "\\\n --tensor-model-parallel-size $(nproc)\n", 2, 4, "the file does not say what nproc is" },
	{ "python x.py " SIZES "\\\n --tensor-model-parallel-size two\n", 2, 31, "not a whole number" },
	{ "python x.py " SIZES "\\\n --img-h 224\n", 2, 4, "a vision model" },
	{ "A=(--num-layers 4\n", 1, 3, "'(' is never closed" },
	{ "A=\"--num-layers 4\n", 1, 3, "quote never ends" },
	{ "A=${B\n", 1, 3, "is never closed" },
	{ "echo hello\n", 0, 0, "no flags and no overrides" },
	{ "", 0, 0, "no flags and no overrides" },
};

Test(import, bad_scripts_are_refused_where_they_are_bad)
{
	for (size_t i = 0; i < sizeof bad_scripts / sizeof bad_scripts[0]; i++) {
		cr_expect(!import_text(bad_scripts[i].text, "run.sh", ""), "%s", bad_scripts[i].text);
		cr_expect(told(MB_ERROR, bad_scripts[i].line, bad_scripts[i].words), "%s: %d:%d %s", bad_scripts[i].text, diags.item[0].pos.line,
		          diags.item[0].pos.column, diags.item[0].text);
		for (int k = 0; k < diags.count; k++) {
			if (diags.item[k].severity == MB_ERROR)
				cr_expect_eq(diags.item[k].pos.column, bad_scripts[i].column, "%s: column %d", bad_scripts[i].text, diags.item[k].pos.column);
		}
	}
}

Test(import, variables_that_double_end_soon)
{
	struct mb_text t = { 0 };

	mb_text_add(&t, "A=--x\n");
	for (int i = 0; i < 64; i++)
		mb_text_add(&t, "A=\"$A $A\"\n");
	cr_expect(!import_text(t.data, "run.sh", ""));
	cr_expect(told(MB_ERROR, 0, "expand to more than"), "%s", diags.item[0].text);
	mb_text_free(&t);
}

Test(import, conditions_and_unknown_flags_are_named)
{
	cr_assert(import_text("if [ $X -gt 1 ]; then\nTP=2\nfi\npython p.py " SIZES "--tensor-model-parallel-size $TP --made-up-flag 3\n", "run.sh",
	                      "gpus=8"), "%s", diags.item[0].text);
	cr_expect(told(MB_WARNING, 1, "conditions"));
	cr_expect(told(MB_WARNING, 4, "1 not understood and left out: --made-up-flag"));
}

/* ---- overrides, saved configurations, logs ---- */

static const struct { const char *name, *text; enum mb_key_id key; const char *value; } others[] = {
	{ "o.txt", "model.tensor_model_parallel_size=2\n+model.sequence_parallel=true\ntrain.global_batch_size=64\nmodel.seq_length=4096\n", MB_K_tp, "2" },
	{ "o.txt", "mixed_precision=bf16_with_mxfp8_mixed\ntrain.global_batch_size=64\nmodel.seq_length=4096\n", MB_K_precision, "fp8_mx" },
	{ "o.txt", "# c\ncomm_overlap.tp_comm_overlap=true # x\ntrain.global_batch_size=64\ndataset.seq_length=4096\n", MB_K_tp_overlap, "true" },
	{ "c.yaml", "model:\n  _target_: a.b\n  tensor_model_parallel_size: 2\n  seq_length: 4096\ntrain:\n  global_batch_size: 64\n"
	  "checkpoint:\n  save: /x\nddp:\n  overlap_grad_reduce: false\n", MB_K_grad_overlap, "false" },
	{ "c.yaml", "model: {seq_length: 4096}\ntrain: {global_batch_size: 64}\noptimizer: {optimizer: adam, lr: 1e-5, exp_avg_dtype: bf16}\n", MB_K_exp_avg, "bf16" },
	{ "c.json", "{\"model\": {\"seq_length\": 4096,}, // c\n \"train\": {\"global_batch_size\": \"64\"}}", MB_K_gbs, "64" },
};

Test(import, overrides_and_saved_configurations_are_read)
{
	char text[256];

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		bool ok = import_text(others[i].text, others[i].name, "model=llama3-8b gpus=8 hardware=dgx-h100");

		if (!ok || got.query == NULL) {
			cr_expect_fail("%s: %s", others[i].text, diags.item[0].text);
			continue;
		}
		mb_key_format(&got.query->c, &got.query->c.run, &mb_keys[others[i].key], text, sizeof text);
		cr_expect_str_eq(text, others[i].value, "%s: %s", others[i].text, text);
	}
}

Test(import, fields_of_a_model_go_over_the_named_one)
{
	cr_assert(import_text("model.num_layers=16\nmodel.seq_length=4096\ntrain.global_batch_size=64\n", "o.txt",
	                      "model=llama3-8b gpus=8 hardware=dgx-h100"), "%s", diags.item[0].text);
	cr_assert(got.query != NULL);
	cr_expect(got.query->c.model.num_layers == 16 && got.query->c.model.hidden_size == 4096);
}

static const char log_text[] =
	"[rank0]: ------------------------ arguments ------------------------\n"
	"  add_bias_linear ................................. False\n"
	"  attention_backend ............................... AttnBackend.flash\n"
	"  bf16 ............................................ True\n"
	"  cp_comm_type .................................... ['p2p']\n"
	"  encoder_num_layers .............................. 4\n"
	"  fp8 ............................................. None\n"
	"  global_batch_size ............................... 16\n"
	"  hidden_size ..................................... 64\n"
	"  hybrid_attention_ratio .......................... 0.0\n"
	"  img_h ........................................... 224\n"
	"  max_position_embeddings ......................... 128\n"
	"  num_attention_heads ............................. 4\n"
	"  num_experts ..................................... None\n"
	"  num_layers ...................................... 4\n"
	"  recompute_modules ............................... ['core_attn', 'mlp']\n"
	"  seq_length ...................................... 128\n"
	"  swiglu .......................................... True\n"
	"  world_size ...................................... 8\n"
	"-------------------- end of arguments ---------------------\n";

Test(import, a_log_prints_the_defaults_of_everything)
{
	cr_assert(import_text(log_text, "log.txt", ""), "%s", diags.item[0].text);
	cr_assert(got.query != NULL);
	cr_expect_eq(got.query->c.run.gpus, 8);
	cr_expect_eq(got.query->c.run.precision, MB_BF16);
	cr_expect_eq(got.query->c.run.attention_backend, MB_ATTN_FLASH);
	cr_expect(!got.query->c.model.add_bias_linear && got.query->c.model.gated_linear_unit);
	cr_expect_eq(got.query->c.run.plan.recompute_modules, (unsigned)(MB_CORE_ATTN | MB_MLP));

	cr_assert(import_text("x Namespace(num_layers=4, hidden_size=64, num_attention_heads=4, seq_length=128, global_batch_size=8, "
	                      "cp_comm_type=['p2p'], position_embedding_type='rope', world_size=2)", "log.txt", ""), "%s", diags.item[0].text);
	cr_expect(got.query != NULL && got.query->c.run.gpus == 2 && got.query->c.model.position_embedding_type == MB_POS_ROPE);
}

/* A file of one long line, of nothing but brackets, of zeros: an answer, soon. */
Test(import, absurd_files_are_refused)
{
	enum { SIZE = 500000 };
	char *text = calloc(SIZE + 1, 1);
	static const char fills[] = "A$[{=\\\"#-(`";

	for (const char *f = fills; *f != '\0'; f++) {
		memset(text, *f, SIZE);
		import_text(text, "run.sh", "");
		import_text(text, "run.txt", "");
		import_text(text, "run.yaml", "");
	}
	memset(text, 0, SIZE);
	memset(&diags, 0, sizeof diags);
	cr_expect(!mb_import_text(text, SIZE, "run.sh", NULL, &library, &arena, &got, &diags));
	cr_expect(told(MB_ERROR, 0, "is binary"));
	free(text);
}
