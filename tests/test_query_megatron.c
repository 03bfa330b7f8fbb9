#include "query_fixture.h"

TestSuite(query_megatron, .init = begin, .fini = done);

/* A test of Megatron-LM's own functional suite, shortened; `flags` continues the mapping. */
static bool load_flags(const char *flags)
{
	return load_text(mb_arena_printf(&arena, "hardware: dgx-h100\ngpus: 8\nstack: mlm-dev-2026-05\nmegatron_args: {"
		"--num-layers: 12, --hidden-size: 512, --num-attention-heads: 8, --seq-length: 1024, "
		"--max-position-embeddings: 1024, --micro-batch-size: 4, --global-batch-size: 32, "
		"--train-iters: 50, --lr: 0.00015, --use-mcore-models: true%s}\n", flags));
}

static const struct { const char *flags; enum mb_key_id key; const char *value; } keys[] = {
	{ "", MB_K_precision, "fp32" },
	{ ", --bf16: true", MB_K_precision, "bf16" },
	{ ", --bf16: true", MB_K_dispatcher, "allgather" },
	{ ", --bf16: true", MB_K_hidden_dropout, "0.1" },
	{ ", --bf16: true", MB_K_dist_opt, "false" },
	{ ", --bf16: true", MB_K_grad_fp32, "true" },
	{ ", --bf16: true, --grad-reduce-in-bf16: true", MB_K_grad_fp32, "false" },
	{ ", --fp16: true", MB_K_precision, "fp16" },
	{ ", --fp16: true", MB_K_grad_fp32, "false" },
	{ ", --bf16: true, --fp8-format: hybrid", MB_K_precision, "fp8_ds" },
	{ ", --bf16: true, --fp8-format: e4m3, --fp8-recipe: mxfp8", MB_K_precision, "fp8_mx" },
	{ ", --bf16: true, --fp8-format: hybrid, --fp8-recipe: tensorwise", MB_K_fp8_gather, "false" },
	{ ", --tensor-model-parallel-size: 4", MB_K_etp, "4" },
	{ ", --tensor-model-parallel-size: 4, --expert-tensor-parallel-size: 1", MB_K_etp, "1" },
	{ ", --pipeline-model-parallel-size: 2, --num-layers-per-virtual-pipeline-stage: 2", MB_K_vp, "3" },
	{ ", --pipeline-model-parallel-size: 2, --num-virtual-stages-per-pipeline-rank: 2", MB_K_vp, "2" },
	{ ", --pipeline-model-parallel-size: 2, --num-virtual-stages-per-pipeline-rank: 2", MB_K_p2p_overlap, "true" },
	{ ", --pipeline-model-parallel-layout: \"Et*3|(t*3|)*2t*3L\", --pipeline-model-parallel-size: 2", MB_K_vp, "2" },
	{ ", --no-gradient-accumulation-fusion: true", MB_K_gaf, "false" },
	{ ", --no-create-attention-mask-in-dataloader: true", MB_K_attn_mask, "false" },
	{ ", --no-bias-gelu-fusion: true", MB_K_act_fusion, "false" },
	{ ", --no-bias-gelu-fusion: true, --swiglu: true", MB_K_act_fusion, "true" },
	{ ", --recompute-granularity: selective, --recompute-modules: \"[layernorm moe_act]\"", MB_K_modules, "[layernorm, moe_act]" },
	{ ", --cuda-graph-impl: transformer_engine, --cuda-graph-modules: \"[attn mlp]\"", MB_K_graph_scope, "[attn, mlp]" },
	{ ", --offload-modules: \"[expert_fc1 moe_act]\"", MB_K_offload_modules, "[expert_fc1, moe_act]" },
};

Test(query_megatron, flags_are_keys_with_their_own_defaults)
{
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (!load_flags(keys[i].flags))
			cr_expect_fail("%s: %s", keys[i].flags, diags.item[0].text);
		else
			cr_expect_str_eq(value(keys[i].key), keys[i].value, "%s: %s", keys[i].flags, value(keys[i].key));
	}
}

static int moe_layers(const struct mb_model *m)
{
	int n = 0;

	for (int i = 0; i < m->num_layers; i++)
		n += m->kinds[m->layers[i]].ffn == MB_FFN_MOE;
	return n;
}

static const struct { const char *flags; int ffn, groups, vocab, moe, biases, tied; } models[] = {
	{ "",                                                                2048, 8, 50257,  0, 1, 1 },
	{ ", --swiglu: true, --disable-bias-linear: true",                   1344, 8, 50257,  0, 0, 1 },
	{ ", --swiglu: true, --ffn-hidden-size: 1000",                       1000, 8, 50257,  0, 1, 1 },
	{ ", --group-query-attention: true, --num-query-groups: 2",          2048, 2, 50257,  0, 1, 1 },
	{ ", --group-query-attention: true",                                 2048, 1, 50257,  0, 1, 1 },
	{ ", --num-query-groups: 2",                                         2048, 8, 50257,  0, 1, 1 },
	{ ", --untie-embeddings-and-output-weights: true",                   2048, 8, 50257,  0, 1, 0 },
	{ ", --tokenizer-type: NullTokenizer, --vocab-size: 131072",         2048, 8, 131073, 0, 1, 1 },
	{ ", --vocab-size: 1000",                                            2048, 8, 1000,   0, 1, 1 },
	{ ", --num-experts: 8",                                              2048, 8, 50257, 12, 1, 1 },
	{ ", --num-experts: 8, --moe-layer-freq: 2",                         2048, 8, 50257,  6, 1, 1 },
	{ ", --num-experts: 8, --moe-layer-freq: \"([0]*3+[1]*9)\"",         2048, 8, 50257,  9, 1, 1 },
};

Test(query_megatron, flags_make_the_model)
{
	for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
		const struct mb_model *m = &q->c.model;

		if (!load_flags(models[i].flags)) {
			cr_expect_fail("%s: %s", models[i].flags, diags.item[0].text);
			continue;
		}
		cr_expect_eq(m->num_layers, 12, "%s", models[i].flags);
		cr_expect_eq(m->ffn_hidden_size, models[i].ffn, "%s: %d", models[i].flags, m->ffn_hidden_size);
		cr_expect_eq(m->num_query_groups, models[i].groups, "%s: %d", models[i].flags, m->num_query_groups);
		cr_expect_eq(m->vocab_size, models[i].vocab, "%s: %d", models[i].flags, m->vocab_size);
		cr_expect_eq(moe_layers(m), models[i].moe, "%s: %d", models[i].flags, moe_layers(m));
		cr_expect_eq(m->add_bias_linear, models[i].biases, "%s", models[i].flags);
		cr_expect_eq(m->share_embeddings_and_output_weights, models[i].tied, "%s", models[i].flags);
	}
}

Test(query_megatron, latent_attention_has_defaults)
{
	cr_assert(load_flags(", --multi-latent-attention: true, --q-lora-rank: 192, --position-embedding-type: rope"), "%s",
	          diags.item[0].text);
	cr_expect_eq(q->c.model.q_lora_rank, 192);
	cr_expect_eq(q->c.model.kv_lora_rank, 32);
	cr_expect_eq(q->c.model.qk_head_dim, 128);
	cr_expect_eq(q->c.model.qk_pos_emb_head_dim, 64);
	cr_expect_eq(q->c.model.v_head_dim, 128);
}

Test(query_megatron, bars_of_a_hybrid_pattern_are_stages)
{
	cr_assert(load_text("hardware: dgx-h100\ngpus: 8\nmegatron_args: {--hidden-size: 512, --num-attention-heads: 8, --seq-length: 1024,"
	                    " --global-batch-size: 32, --bf16: true, --position-embedding-type: none, --mamba-num-heads: 16,"
	                    " --pipeline-model-parallel-size: 2, --hybrid-layer-pattern: \"M-M*|M-M-|M-|M*-\"}"), "%s",
	          diags.item[0].text);
	cr_expect_eq(q->c.model.num_layers, 13);
	cr_expect_eq(q->c.run.plan.vp, 2);
	cr_assert_eq(q->c.run.plan.layout, 0);
	cr_expect_eq(q->c.layouts[0].chunk_count, 4);
	cr_expect_eq(q->c.layouts[0].chunks[2].layers, 2);
	cr_expect_eq(q->c.layouts[0].chunks[3].first_layer, 10);
	cr_expect(strncmp(q->c.stack.name, "mlm-dev-", 8) == 0, "%s", q->c.stack.name);
}

Test(query_megatron, a_command_line_of_flags_is_a_run)
{
	cr_assert(load_words("--num-layers 12 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
	                     "--micro-batch-size 4 --global-batch-size 32 --swiglu --bf16 --tensor-model-parallel-size 2 "
	                     "--sequence-parallel --no-load-optim --save-interval 100 hardware=dgx-h100 gpus=8", true), "%s",
	          diags.item[0].text);
	cr_expect(q->c.run.megatron_args);
	cr_expect_eq(q->c.model.num_layers, 12);
	cr_expect_eq(q->c.run.plan.tp, 2);
	cr_expect(q->c.run.plan.sequence_parallel);
}

static const struct { const char *flags; const char *says; } refused[] = {
	{ ", --encoder-num-layers: 12, --decoder-seq-length: 128", "encoder-num-layers: an encoder-decoder model (T5) is not modelled" },
	{ ", --img-h: 336, --img-w: 336", "img-h: a vision model is not modelled" },
	{ ", --perform-rl-step: true", "perform-rl-step: reinforcement learning (--perform-rl-step) is not modelled" },
	{ ", --hiden-size: 12", "unknown key '--hiden-size'" },
	{ ", --fp8-format: hybrid, --fp8-recipe: tensorwize", "fp8-recipe: unknown recipe 'tensorwize'" },
	{ ", --pipeline-model-parallel-size: 2, --num-layers-per-virtual-pipeline-stage: 5",
		"num-layers-per-virtual-pipeline-stage: 12 layers on 2 stages cannot be cut into parts of '5'" },
	{ ", --swiglu: maybe", "swiglu: 'maybe' is neither true nor false" },
};

Test(query_megatron, other_kinds_are_refused_by_name)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		cr_expect_not(load_flags(refused[i].flags), "%s", refused[i].flags);
		cr_expect_eq(diags.errors, 1, "%s: %d errors", refused[i].flags, diags.errors);
		cr_expect_str_eq(diags.item[0].text, refused[i].says, "%s", diags.item[0].text);
		cr_expect_eq(diags.item[0].pos.line, 4);
	}
}

Test(query_megatron, unknown_vocabularies_are_assumed_aloud)
{
	cr_assert(load_flags(", --tokenizer-type: HuggingFaceTokenizer"));
	cr_assert_eq(diags.warnings, 1);
	cr_expect_str_eq(diags.item[0].key, "tokenizer_type");
	cr_expect_eq(q->c.model.vocab_size, 50257);
}
