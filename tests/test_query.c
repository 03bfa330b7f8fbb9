#include "query_fixture.h"

TestSuite(query, .init = begin, .fini = done);

static const struct { const char *text; enum mb_key_id key; const char *value; } said[] = {
	{ "tp: 4", MB_K_tp, "4" },
	{ "tensor_model_parallel_size: 4.0", MB_K_tp, "4" },
	{ "bucket_size: 1e5", MB_K_bucket, "100000" },
	{ "bucket_size: null", MB_K_bucket, "null" },
	{ "\"tp\": \"4\"", MB_K_tp, "4" },
	{ "model.tensor_model_parallel_size: 4", MB_K_tp, "4" },
	{ "comm_overlap: {tp_comm_overlap: true}", MB_K_tp_overlap, "true" },
	{ "ddp: {use_distributed_optimizer: false}\noptimizer: {use_distributed_optimizer: false}", MB_K_dist_opt, "false" },
	{ "optimizer: {optimizer: muon, lr: 1e-4}", MB_K_optimizer, "muon" },
	{ "optimizer: sgd", MB_K_optimizer, "sgd" },
	{ "mixed_precision: bf16_with_mxfp8_mixed", MB_K_precision, "fp8_mx" },
	{ "mixed_precision: {bf16: true, fp8: hybrid, fp8_recipe: blockwise}", MB_K_precision, "fp8_sc" },
	{ "mixed_precision: {bf16: true, fp8: null, fp8_recipe: tensorwise}", MB_K_precision, "bf16" },
	{ "recompute_modules: [moe_act, layernorm]", MB_K_modules, "[layernorm, moe_act]" },
	{ "recompute_modules: moe_act+layernorm", MB_K_modules, "[layernorm, moe_act]" },
	{ "recompute_modules: \"[moe_act layernorm]\"", MB_K_modules, "[layernorm, moe_act]" },
	{ "recompute_modules: none", MB_K_modules, "[]" },
	{ "recompute_modules: []", MB_K_modules, "[]" },
	{ "recompute_granularity: selective", MB_K_modules, "[core_attn]" },
	{ "recompute_granularity: selective\nrecompute_modules: []", MB_K_modules, "[]" },
	{ "recompute_modules: [mlp]", MB_K_recompute, "selective" },
	{ "recompute_granularity: null\nrecompute_modules: [mlp]", MB_K_recompute, "null" },
	{ "cp: 8\nhierarchical_context_parallel_sizes: [2, 4]", MB_K_cp_sizes, "[2, 4]" },
	{ "cp_comm_type: a2a+p2p", MB_K_cp_comm_type, "a2a+p2p" },
	{ "cp_comm_type: allgather", MB_K_cp_comm_type, "all_gather" },
	{ "cuda_graph_modules: [attn, mlp]\ncuda_graph_impl: transformer_engine", MB_K_graph_scope, "[attn, mlp]" },
	{ "cuda_graph_scope: full_iteration", MB_K_graph_impl, "full_iteration" },
	{ "cuda_graph_scope: [full_iteration]\ncuda_graph_impl: local", MB_K_graph_scope, "[]" },
	{ "cuda_graph_impl: local", MB_K_graph_impl, "full_iteration" },
	{ "cuda_graph_impl: local\ncuda_graph_scope: [attn]", MB_K_graph_impl, "local" },
	{ "hybridep_num_sms: 32", MB_K_num_sms, "32" },
	{ "etp: null\ntp: 4", MB_K_etp, "1" },
	{ "vp: null", MB_K_vp, "1" },
	{ "pp: 4\nvp: 2", MB_K_p2p_overlap, "true" },
	{ "pp: 4", MB_K_p2p_overlap, "false" },
	{ "pp: 4\nvp: 2\noverlap_p2p_comm: false", MB_K_p2p_overlap, "false" },
	{ "pp: 4\npipeline_model_parallel_layout: Et*4|(t*4|)*6t*4L", MB_K_vp, "2" },
	{ "pipeline_model_parallel_layout: [[embedding, decoder], [decoder, decoder, loss]]\npp: 2", MB_K_layout, "Et|ttL" },
	{ "precision: fp8_cs", MB_K_fp8_gather, "true" },
	{ "precision: fp8_mx", MB_K_reuse_grad_buf, "true" },
	{ "precision: fp8_ds", MB_K_fp8_gather, "false" },
	{ "precision: fp8_cs\nfp8_param_gather: false", MB_K_fp8_gather, "false" },
	{ "precision: fp16", MB_K_grad_fp32, "false" },
	{ "precision: bf16", MB_K_grad_fp32, "true" },
	{ "exp_avg_dtype: torch.bfloat16", MB_K_exp_avg, "bf16" },
	{ "tp_comm_overlap_cfg: userbuffers.yaml", MB_K_tp_overlap_cfg, "true" },
	{ "tp_comm_overlap_cfg: {qkv_fprop: {method: ring}}", MB_K_tp_overlap_cfg, "true" },
	{ "tp_comm_overlap_cfg: null", MB_K_tp_overlap_cfg, "false" },
	{ "peft: {dim: 16, alpha: 32, target_modules: [linear_qkv], _class: LoRA}", MB_K_task, "lora" },
	{ "peft: null", MB_K_task, "pretrain" },
	{ "environment: {NVTE_FUSED_ATTN: 0}", MB_K_attn_backend, "flash" },
	{ "attention_backend: auto", MB_K_attn_backend, "auto" },
	{ "checkpoint: {save: /a, load: null}\nlogger: {log_interval: 1}\ntrain_iters: 10\nlr: 1e-4", MB_K_tp, "1" },
};

Test(query, one_run_says)
{
	for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
		char text[1024];

		snprintf(text, sizeof text, "%s%s\n", RUN, said[i].text);
		if (!load_text(text))
			cr_expect_fail("%s: %s", said[i].text, diags.item[0].text);
		else
			cr_expect_str_eq(value(said[i].key), said[i].value, "%s: %s", said[i].text, value(said[i].key));
		cr_expect_eq(diags.warnings, 0, "%s: %s", said[i].text, diags.item[0].text);
	}
}

static const struct { const char *words; enum mb_key_id key; const char *value; } typed[] = {
	{ "tp=4", MB_K_tp, "4" },
	{ "--tp 4", MB_K_tp, "4" },
	{ "--tensor-model-parallel-size=4", MB_K_tp, "4" },
	{ "model.tensor_model_parallel_size=4", MB_K_tp, "4" },
	{ "--sequence-parallel tp=2", MB_K_sp, "true" },
	{ "--sequence-parallel false", MB_K_sp, "false" },
	{ "sequence_parallel=true --no-sequence-parallel", MB_K_sp, "false" },
	{ "--no-rope-fusion tp=2", MB_K_rope_fusion, "false" },
	{ "--recompute-modules moe_act layernorm tp=2", MB_K_modules, "[layernorm, moe_act]" },
	{ "cp=8 --hierarchical-context-parallel-sizes 2 4 tp=2", MB_K_cp_sizes, "[2, 4]" },
	{ "recompute_modules=[moe_act,layernorm]", MB_K_modules, "[layernorm, moe_act]" },
	{ "--log-interval 100 --lr 1e-4 --finetune tp=2", MB_K_tp, "2" },
	{ "--bf16 --fp8-format hybrid --fp8-recipe tensorwise", MB_K_precision, "fp8_cs" },
	{ "--recompute-activations", MB_K_recompute, "selective" },
	{ "tp=2 tp=4", MB_K_tp, "4" },
	{ "CUDA_DEVICE_MAX_CONNECTIONS=1 environment.NCCL_ALGO=Ring tp=2", MB_K_tp, "2" },
	{ "pp=2 pipeline_model_parallel_layout=Et*16|(t)*16,L", MB_K_layout, "Et*16|(t)*16,L" },
};

Test(query, one_command_line_says)
{
	char path[] = "/tmp/mbsim-test-XXXXXX";
	int fd = mkstemp(path);

	cr_assert(fd >= 0 && close(fd) == 0);
	write_file(path, RUN);
	for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
		if (!load_words(mb_arena_printf(&arena, "%s %s", path, typed[i].words), true))
			cr_expect_fail("%s: %s", typed[i].words, diags.item[0].text);
		else
			cr_expect_str_eq(value(typed[i].key), typed[i].value, "%s: %s", typed[i].words, value(typed[i].key));
	}
	unlink(path);
}

Test(query, arguments_win_then_later_files)
{
	char first[] = "/tmp/mbsim-test-XXXXXX", second[] = "/tmp/mbsim-test-XXXXXX";

	cr_assert(close(mkstemp(first)) == 0 && close(mkstemp(second)) == 0);
	write_file(first, RUN "tp: 2\npp: 2\ncp: 2\n");
	write_file(second, "pp: 4\ncp: 4\n");
	cr_expect(load_words(mb_arena_printf(&arena, "cp=8 %s %s", first, second), true), "%s", diags.item[0].text);
	cr_expect_eq(q->c.run.plan.tp, 2);
	cr_expect_eq(q->c.run.plan.pp, 4);
	cr_expect_eq(q->c.run.plan.cp, 8);
	cr_expect_str_eq(q->pos[MB_K_tp].file, first);
	cr_expect_str_eq(q->pos[MB_K_pp].file, second);
	cr_expect_str_eq(q->pos[MB_K_cp].file, "argument 1");
	cr_expect_eq(q->pos[MB_K_tp].line, 6);
	cr_expect(load_words(mb_arena_printf(&arena, "%s %s", second, first), true));
	cr_expect_eq(q->c.run.plan.pp, 2);
	unlink(first);
	unlink(second);
}

Test(query, alternatives_and_open_keys)
{
	char path[] = "/tmp/mbsim-test-XXXXXX";

	cr_assert(close(mkstemp(path)) == 0);
	write_file(path, RUN "micro_batch_size: [1, 2]\n");
	const char *words = mb_arena_printf(&arena, "%s tp=1,2,4,2 recompute_modules=[],[moe_act],[moe_act,layernorm] vp=auto gpus=64,128 "
	                                    "pipeline_model_parallel_layout=EttL,Et|(t|)*2,L", path);
	cr_assert(load_words(words, false), "%s", diags.item[0].text);
	cr_expect_eq(q->alternatives[MB_K_tp].count, 3, "the second 2 says nothing new");
	cr_expect_eq(q->alternatives[MB_K_tp].values[2].i, 4);
	cr_expect_eq(q->alternatives[MB_K_modules].count, 3);
	cr_expect_eq(q->alternatives[MB_K_modules].values[0].i, 0);
	cr_expect_eq(q->alternatives[MB_K_modules].values[2].i, MB_MOE_ACT | MB_LAYERNORM_MODULE);
	cr_expect_eq(q->alternatives[MB_K_mbs].count, 2);
	cr_expect_eq(q->alternatives[MB_K_layout].count, 2);
	cr_expect_eq(q->c.layout_count, 2);
	cr_expect(q->open[MB_K_vp]);
	cr_expect_not(q->set[MB_K_tp]);
	cr_expect_eq(q->gpu_choices[1], 128);
	cr_expect_eq(q->gpu_choices[2], 0);
	cr_expect_eq(q->c.run.gpus, 64);
	cr_expect_not(load_words(words, true), "estimate takes one value of each");
	cr_expect_eq(diags.errors, 6);
	cr_expect_str_eq(diags.item[0].text, "micro_batch_size: 2 alternatives, one value is expected here");
	unlink(path);
}

Test(query, machine_and_versions_are_changed_in_place)
{
	cr_assert(load_text(RUN "torch: 2.10\ntransformer_engine: 2.11.0a0+abc\n"), "%s", diags.item[0].text);
	int64_t before = q->c.hardware.hbm_bytes;

	cr_expect_eq(q->c.stack.torch, MB_VERSION(2, 10, 0));
	cr_expect_eq(q->c.stack.transformer_engine, MB_VERSION(2, 11, 0));
	cr_expect(strncmp(q->c.stack.name, "nemo-", 5) == 0, "%s", q->c.stack.name);
	cr_assert(load_text(RUN "hardware.hbm: 1.5x\n"), "%s", diags.item[0].text);
	cr_expect_eq(q->c.hardware.hbm_bytes, before * 3 / 2);
	cr_assert(load_text(RUN "peft: {dim: 8, target_modules: [linear_proj, linear_fc2]}\nenvironment: {CUDA_DEVICE_MAX_CONNECTIONS: 1, "
	                        "PYTORCH_CUDA_ALLOC_CONF: \"expandable_segments:True\"}\n"));
	cr_expect_eq(q->c.run.lora_dim, 8);
	cr_expect_eq(q->c.run.lora_targets, 1u << 1 | 1u << 3);
	cr_expect_eq(q->c.run.cuda_device_max_connections, 1);
	cr_expect(q->c.run.expandable_segments);
}

static const struct { int gpus, domain; const char *hardware; } domains[] = {
	{ 256, 64, "gb200-nvl72" }, { 72, 72, "gb200-nvl72" }, { 8, 8, "gb200-nvl72" }, { 144, 72, "gb200-nvl72" },
	{ 16, 8, "dgx-h100" }, { 4, 4, "dgx-h100" }, { 12, 6, "dgx-h100" }, { 1, 1, "dgx-h100" }, { 7, 7, "dgx-h100" },
};

Test(query, domain_is_what_the_job_fills)
{
	for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++) {
		cr_assert(load_text(mb_arena_printf(&arena, MODEL "hardware: %s\ngpus: %d\nseq: 4096\ngbs: 256\n", domains[i].hardware,
		                                    domains[i].gpus)), "%s", diags.item[0].text);
		cr_expect_eq(q->c.domain, domains[i].domain, "%d on %s: %d", domains[i].gpus, domains[i].hardware, q->c.domain);
	}
}

/* Bridge keeps run and model in one group. */
Test(query, bridge_groups)
{
	cr_assert(load_text("model: {_target_: x, name: tiny, num_layers: 4, hidden_size: 512, num_attention_heads: 8, vocab_size: 1000,"
	                    " position_embedding_type: rope, tensor_model_parallel_size: 2, seq_length: 4096, mtp_num_layers: 1}\n"
	                    "train: {global_batch_size: 64, micro_batch_size: 2, train_iters: 5}\ndataset: {seq_length: 4096}\n"
	                    "rng: {te_rng_tracker: true, seed: 1}\nhardware: dgx-h100\ngpus: 8\n"), "%s", diags.item[0].text);
	cr_expect_eq(q->c.model.num_layers, 4);
	cr_expect_eq(q->c.run.plan.tp, 2);
	cr_expect_eq(q->c.run.plan.micro_batch_size, 2);
	cr_expect_eq(q->c.mtp_depth, 1);
}
