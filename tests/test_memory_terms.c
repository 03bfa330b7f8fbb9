/*
 * Terms of memory against sizes worked out by hand: layers of the literature, buffers, states, and differences that
 * real runs reported. The arithmetic stands beside each number.
 */
#include "expect.h"
#include "load.h"

#include <stdio.h>

static struct mb_arena arena;
static struct mb_evaluation *e;
static struct mb_query q;

static void begin(void)
{
	e = mb_evaluation_new();
}

static void done(void)
{
	mb_evaluation_free(e);
	mb_arena_free(&arena);
}

TestSuite(memory_terms, .init = begin, .fini = done);

/* `rest` begins with a comma, or is empty. */
static void evaluate(const char *run, const char *rest)
{
	char yaml[2048];

	snprintf(yaml, sizeof yaml, "{%s%s}", run, rest);
	load_query(yaml, &arena, &q);
	load_evaluate(&q, e);
}

/*
 * A layer of GPT-3, s 2048, b 1, t 8, sequence parallel, h 12288, n 96 [Korthikanti et al. 2022, arXiv:2205.05198,
 * section 4]: sbh/t = 2048 * 12288 / 8 = 3,145,728. Beside their sum stand two LayerNorms' statistics,
 * 2 * 8 B * 2048 / 8 = 4,096, and flash attention's log-sum-exp, 4 * 2048 * 96 / 8 = 98,304.
 */
#define GPT3 "model: gpt3-175b, hardware: dgx-h100, gpus: 8, seq: 2048, mbs: 1, gbs: 1, tp: 8, sp: true, stack: nemo-26.08"

static const struct { const char *what, *run; double bytes; } korthikanti[] = {
	{ "no dropout: 32 sbh/t", ", attention_backend: flash", 32 * 3145728.0 + 98304 + 4096 },
	{ "dropout masks: 34 sbh/t", ", attention_backend: flash, hidden_dropout: 0.1", 34 * 3145728.0 + 98304 + 4096 },
	/* 5 a s^2 b / t = 5 * 96 * 2048^2 / 8 = 251,658,240: softmax 2, mask 1, dropped-out softmax 2. */
	{ "scores kept: 34 + 5 a s / h", ", attention_backend: unfused, hidden_dropout: 0.1, attention_dropout: 0.1",
	  34 * 3145728.0 + 251658240 + 4096 },
	{ "their selective recompute: 34 sbh/t", ", attention_backend: unfused, hidden_dropout: 0.1, attention_dropout: 0.1,"
	  " recompute_granularity: selective, recompute_modules: [core_attn]", 34 * 3145728.0 + 4096 },
};

Test(memory_terms, korthikanti_layer)
{
	cr_assert_eq(34 * 3145728, 106954752);
	cr_assert_eq(34 * 3145728 + 251658240, 358612992);
	for (size_t i = 0; i < sizeof korthikanti / sizeof korthikanti[0]; i++) {
		evaluate(GPT3, korthikanti[i].run);
		expect_rel(e->kinds[0].saved_bytes, korthikanti[i].bytes, 1e-12, korthikanti[i].what);
	}
}

/*
 * Llama-3 70B, N 4096, t 2, Nt 2048, h 8192, 64 + 2 * 8 heads of 128, f 28672.
 * Norms: in and out of both, 4 * 2 * 2048 * 8192, statistics 2 * 4 * 2048; q, k, v and out 2 * 4096 * (64 + 16 + 64) * 128 / 2;
 * log-sum-exp 4 * 4096 * 64 / 2; gate, up and product 2 * 4096 * 3 * 28672 / 2.
 */
Test(memory_terms, llama_70b_layer)
{
	double want = 134217728 + 16384 + 75497472 + 524288 + 352321536;

	evaluate("model: llama3-70b, hardware: dgx-b200, gpus: 8, seq: 4096, mbs: 1, gbs: 8, tp: 2, sp: true, stack: nemo-26.08", "");
	cr_assert_eq((int64_t)want, 562577408);
	expect_rel(e->kinds[0].saved_bytes, want, 1e-12, "saved");
}

/* One buffer for each shape of a fused weight gradient: qkv, o, fc1, fc2, output layer [vocabulary padded to 128 * 2]. */
Test(memory_terms, dummy_weight_gradients_of_llama_70b)
{
	double want = 2.0 * (8192.0 * 5120 + 8192.0 * 4096 + 8192.0 * 28672 + 8192.0 * 14336 + 64256.0 * 8192);

	evaluate("model: {num_layers: 12, hidden_size: 8192, ffn_hidden_size: 28672, num_attention_heads: 64, num_query_groups: 8,"
	         " kv_channels: 128, vocab_size: 128257, normalization: RMSNorm, activation: silu, gated_linear_unit: true,"
	         " add_bias_linear: false, position_embedding_type: rope, share_embeddings_and_output_weights: false},"
	         " hardware: dgx-b200, gpus: 8, seq: 4096, mbs: 1, gbs: 8, tp: 2, sp: true, stack: nemo-26.08", "");
	cr_assert_eq((int64_t)want, 1908408320);
	expect_rel(e->stage_memory[0].terms[MB_MEM_dummy_wgrad], want, 1e-12, "dummies");
}

#define MOONLIGHT "model: moonlight-16b-a3b, hardware: dgx-h100, gpus: 8, seq: 4096, gbs: 4, mbs: 1, tp: 2, ep: 8, sp: true," \
	" stack: nemo-26.08, moe_token_dispatcher_type: alltoall, moe_shared_expert_overlap: true, cross_entropy_fusion_impl: te," \
	" grad_reduce_in_fp32: false, use_precision_aware_optimizer: true, exp_avg_dtype: bf16, exp_avg_sq_dtype: bf16," \
	" apply_rope_fusion: false, environment: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}"

/*
 * Moonlight, t 2, e 8, 8 GPUs: dense states over 4 ranks, experts over 1. bf16 weights and gradients on the rank, fp32
 * master and two bf16 moments on the shard, an fp32 copy of the gradient shard at the step.
 */
Test(memory_terms, moonlight_states)
{
	double dense = 800321024, experts = 1799356416, shard = dense / 4 + experts;
	const double *t;

	evaluate(MOONLIGHT, "");
	t = e->stage_memory[0].between_terms;
	cr_expect_eq(e->stage_memory[0].dense_params, 800321024);
	cr_expect_eq(e->stage_memory[0].expert_params, 1799356416);
	expect_rel(t[MB_MEM_weights] + t[MB_MEM_gradients], 4 * (dense + experts), 1e-12, "weights and gradients");
	expect_rel(t[MB_MEM_master] + t[MB_MEM_moments], 8 * shard, 1e-12, "master and moments");
	expect_rel(t[MB_MEM_weights] + t[MB_MEM_gradients] + t[MB_MEM_master] + t[MB_MEM_moments], 26394203136.0, 1e-12, "states");
	expect_rel(t[MB_MEM_gradient_copy], 7997746688.0, 1e-12, "copy");
}

/* What recompute of a module takes away, per layer: [megatron/core/tensor_parallel/random.py, CheckpointWithoutOutput] */
static double removed(const char *run, int kind, const char *modules)
{
	double all;
	char rest[256];

	evaluate(run, "");
	all = e->kinds[kind].saved_bytes;
	snprintf(rest, sizeof rest, ", recompute_granularity: selective, recompute_modules: [%s]", modules);
	evaluate(run, rest);
	return all - e->kinds[kind].saved_bytes;
}

/*
 * N 4096, Nt 2048, n / t 8, dn 128, dr 64, dv 128, kr 512, R = 2048 * 6 = 12288, fe 1408, f 11264, fs 2816, E 64. Kinds of
 * Moonlight: 0 dense, 1 MoE.
 */
static const struct { const char *modules; int kind; double bytes; } moonlight[] = {
	{ "core_attn", 1, 4 * 4096 * 8 },                                               /* log-sum-exp */
	/* q, k, v, the latent behind its norm, and the sines and cosines of unfused rotary embedding */
	{ "mla_up_proj", 1, 2 * 4096 * 8 * (2 * 192 + 128) + 2 * 2048 * 512 + 4 * 2 * 4096 * 64 },
	{ "moe_act", 1, 2 * 12288 * 1408 },
	{ "layernorm", 1, 2 * 2 * 2048 * 2048 },                                        /* outputs of both norms */
	{ "mlp", 0, 2 * 2048 * 2048 + 2 * 4096 * 3 * 11264 / 2 },                       /* norm output; gate, up, product */
	{ "mlp", 1, 0 },
	{ "moe_act", 0, 0 },
	/* fc1 input, output, product; shared experts with the gathered input; router scores; row maps and probabilities. */
	{ "moe", 1, 2 * 12288 * (2048 + 3 * 1408) + 2 * 4096 * 3 * 2816 / 2 + 2 * 4096 * 2048 + 20 * 2048 * 64 + 12 * 12288 },
};

Test(memory_terms, what_each_module_removes)
{
	for (size_t i = 0; i < sizeof moonlight / sizeof moonlight[0]; i++)
		expect_rel(removed(MOONLIGHT, moonlight[i].kind, moonlight[i].modules), moonlight[i].bytes, 1e-12, moonlight[i].modules);
}

/* Names of the two MoE kinds of a model: the first whose layers have experts. */
static int moe_kind(void)
{
	int k = 0;

	while (q.c.model.kinds[k].ffn != MB_FFN_MOE)
		k++;
	return k;
}

/*
 * Nemotron-3-Nano, 23 MoE layers, s 8192, TP 1, EP 8, top-6, fe 1856, h 2688, squared ReLU. Reported: 66.297 GB, with moe_act
 * 62.103; with moe, and with moe and layernorm 1.014 GB less. [NVIDIA-NeMo/Megatron-Bridge, recompute study]
 */
Test(memory_terms, nemotron_3_nano_differences)
{
	const char *run = "model: nemotron-3-nano, hardware: dgx-h100, gpus: 8, seq: 8192, gbs: 8, mbs: 1, ep: 8, stack: nemo-26.08";
	double act, moe, both, peaks[4];
	int k;
	static const char *const lists[] = { "[]", "[moe_act]", "[moe]", "[moe, layernorm]" };

	for (size_t i = 0; i < 4; i++) {
		char rest[128];

		snprintf(rest, sizeof rest, ", recompute_granularity: selective, recompute_modules: %s", lists[i]);
		evaluate(run, rest);
		peaks[i] = e->peak_bytes;
	}
	expect_rel(peaks[0] - peaks[1], (66.297 - 62.103) * 1e9, 0.01, "moe_act, peaks");
	expect_rel(peaks[2] - peaks[3], 1.014e9, 0.01, "layernorm on top of moe, peaks");
	evaluate(run, "");
	k = moe_kind();
	act = 23 * removed(run, k, "moe_act");
	moe = 23 * removed(run, k, "moe");
	both = 23 * removed(run, k, "moe, layernorm");
	expect_rel(act, 23.0 * 2 * 49152 * 1856, 1e-12, "moe_act by hand");
	expect_rel(act, (66.297 - 62.103) * 1e9, 0.01, "moe_act measured");
	expect_rel(both - moe, 23.0 * 2 * 8192 * 2688, 1e-12, "layernorm on top of moe by hand");
	expect_rel(both - moe, 1.014e9, 0.01, "layernorm on top of moe measured");
}

/*
 * LoRA with sequence parallelism: each adapter of a column-parallel linear keeps its gathered input, 2 N h bytes, unless
 * it gathers again in the backward, where one and a half such buffers live. Reported on H100 [NVIDIA-NeMo/Megatron-Bridge
 * #4581]: 47.545 - 42.814, 29.890 - 28.321, 52.185 - 51.371 GB.
 */
static const struct { const char *run; int layers; double inputs, reported; } regather[] = {
	{ "model: qwen3-8b, hardware: dgx-h100, gpus: 8, seq: 8192, gbs: 8, mbs: 1, tp: 2, sp: true", 36, 72, 4.731e9 },        /* qkv and fc1 */
	{ "model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 8, seq: 8192, gbs: 8, mbs: 1, tp: 4, ep: 4, sp: true", 48, 48, 1.569e9 },
	{ "model: gpt-oss-120b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 16, mbs: 1, tp: 2, ep: 8, sp: true", 36, 36, 0.814e9 },
};

static double saved_in_layers(double *ret_transient)
{
	double saved = 0;

	*ret_transient = 0;
	for (int i = 0; i < q.c.model.num_layers; i++) {
		const struct mb_kind_cost *k = &e->kinds[q.c.model.layers[i]];

		saved += k->saved_bytes;
		*ret_transient = fmax(*ret_transient, k->backward_transient_bytes);
	}
	return saved;
}

Test(memory_terms, lora_gathers_again)
{
	for (size_t i = 0; i < sizeof regather / sizeof regather[0]; i++) {
		double keeping, gathering, none, some, hidden;

		evaluate(regather[i].run, ", task: lora, stack: nemo-26.08");
		keeping = saved_in_layers(&none);
		hidden = 2.0 * q.c.run.seq_length * q.c.model.hidden_size;
		cr_expect_eq(q.c.model.num_layers, regather[i].layers);
		evaluate(regather[i].run, ", task: lora, stack: nemo-26.08, sequence_parallel_input_regather: true");
		gathering = saved_in_layers(&some);
		expect_rel(keeping - gathering, regather[i].inputs * hidden, 1e-12, "by hand");
		expect_rel(keeping - gathering - (some - none), regather[i].reported, 0.01, regather[i].run);
	}
}
