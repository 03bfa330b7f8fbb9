/* Bridge's model FLOPs per token, against what its performance tables publish. */
#include "expect.h"
#include "load.h"

#include <stdio.h>

static struct mb_arena arena;

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(flops, .fini = done);

/* FLOPs per token, forward and backward; the ones marked with a table follow from its TFLOP/s over tokens/s. */
static const struct { const char *what, *run; double flops; } published[] = {
	{ "llama3-8b", "model: llama3-8b, seq_length: 8192", 51.4704e9 },
	{ "llama3-70b", "model: llama3-70b, seq_length: 8192", 449.222541312e9 },
	{ "llama3.1-405b", "model: llama3.1-405b, seq_length: 8192", 2523.956e9 },
	{ "qwen3-30b-a3b", "model: qwen3-30b-a3b, seq_length: 4096", 23.006281728e9 },
	{ "qwen3-235b-a22b", "model: qwen3-235b-a22b, seq_length: 4096", 148.034813952e9 },
	{ "deepseek-v3 with MTP", "model: deepseek-v3, seq_length: 4096", 259.992950784e9 },
	{ "deepseek-v3 without", "model: deepseek-v3, seq_length: 4096, mtp_num_layers: 0", 249.812e9 },
	{ "gpt-oss-120b", "model: gpt-oss-120b, seq_length: 4096, stack: nemo-26.08", 32.6304e9 },
	{ "nemotron-3-nano", "model: nemotron-3-nano, seq_length: 8192", 22.278094848e9 },
};

Test(flops, per_token)
{
	static struct mb_query q;
	char yaml[256];

	for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
		snprintf(yaml, sizeof yaml, "{%s, hardware: dgx-h100, gpus: 8, global_batch_size: 8}", published[i].run);
		load_query(yaml, &arena, &q);
		expect_rel(mb_model_flops_per_token(&q.c, &q.c.run.plan), published[i].flops, 1e-3, published[i].what);
	}
}

/* 64 samples a GPU of 4096 tokens: 6030.96 TFLOP; published pairs of step time and TFLOP/s. */
Test(flops, rate_follows_from_the_step)
{
	double per_gpu = 23.006281728e9 * 64 * 4096;

	expect_rel(per_gpu, 6030.96e12, 1e-4, "FLOPs of a step");
	expect_rel(per_gpu / 24.7138, 244.03e12, 1e-4, "without overlap");
	expect_rel(per_gpu / 21.0725, 286.20e12, 1e-4, "with overlap");
}
