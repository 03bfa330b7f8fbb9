/* Volumes and FLOPs worked out by hand for published models: what each exchange sends, what each layer computes. */
#include "expect.h"
#include "load.h"

#include <stdio.h>

#include "cost/collective.h"
#include "cost/roofline.h"
#include "fixture.h"

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

TestSuite(time_vectors, .init = begin, .fini = done);

static void evaluate(const char *run)
{
	load_query(run, &arena, &q);
	load_evaluate(&q, e);
}

static const struct mb_op *find(const struct mb_kind_cost *k, const char *name)
{
	for (int i = 0; i < k->op_count; i++)
		if (strcmp(k->ops[i].name, name) == 0)
			return &k->ops[i];
	cr_assert_fail("no operation %s", name);
	return NULL;
}

/*
 * DeepSeek-V3, T 4096, h 7168, EP 64, top-8 of 256. In one domain of 72: 7.6758 distinct ranks, 63/64 of them others:
 * 4096 * 7.6758 * 63/64 * 14336 B. On 8 nodes of 8: 5.2947 distinct nodes, 7/8 others; with 4 of 8 routing groups 3.6290.
 */
Test(time_vectors, expert_dispatch_of_deepseek_v3)
{
	struct mb_case c;
	struct mb_dims d;
	struct mb_op ops[MB_MAX_OPS];

	static const struct { const char *what; void (*machine)(struct mb_hardware *hw); int groups; double sent, remote; } rows[] = {
		{ "one domain", fixture_gb200, 0, 443.7e6, 0 },
		{ "8 nodes", fixture_h100, 0, 0, 272.0e6 },
		{ "8 nodes, routing in 4 of 8 groups", fixture_h100, 8, 0, 186.5e6 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct mb_op *op = NULL;
		int n;

		fixture_mla(&c);
		rows[i].machine(&c.hardware);
		c.run.gpus = 256;
		c.run.global_batch_size = 256;
		c.run.plan.ep = 64;
		c.run.plan.dispatcher = MB_DISPATCH_FLEX;
		c.model.moe_router_num_groups = rows[i].groups;
		mb_case_compile(&c);
		mb_dims_fill(&c, &c.run.plan, &d);
		n = mb_ops_build(&c, &c.run.plan, &d, 1, ops);
		for (int k = 0; k < n; k++)
			if (ops[k].send.axis == MB_AXIS_EP_DISPATCH)
				op = &ops[k];
		cr_assert(op != NULL);
		expect_rel(op->send.forward_remote_bytes, rows[i].remote, 1e-3, rows[i].what);
		if (rows[i].sent > 0)
			expect_rel(op->send.forward_bytes, rows[i].sent, 1e-3, rows[i].what);
	}
}

/*
 * Qwen3-30B-A3B on 2 nodes of 8, 64 micro-batches of 4096, 48 layers: 4 transfers a layer and micro-batch, 12,288 in all, of
 * 16.73 MB across nodes each; 1.9938 of 2 nodes hold one of a token's experts.
 */
Test(time_vectors, expert_traffic_of_a_step)
{
	double remote;

	evaluate("{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 1024, mbs: 1, ep: 16, moe_token_dispatcher_type: flex,"
	         " moe_flex_dispatcher_backend: deepep, stack: nemo-26.08}");
	remote = e->traffic[MB_TRAFFIC_EP_DISPATCH].remote_bytes + e->traffic[MB_TRAFFIC_EP_COMBINE].remote_bytes;
	expect_rel(remote, 205.5e9, 1e-3, "one copy a node");
	expect_rel(remote, 12288 * 4096 * 1.9938 / 2 * 4096, 1e-4, "by hand");
	evaluate("{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 1024, mbs: 1, ep: 16,"
	         " moe_token_dispatcher_type: alltoall, stack: nemo-26.08}");
	remote = e->traffic[MB_TRAFFIC_EP_DISPATCH].remote_bytes + e->traffic[MB_TRAFFIC_EP_COMBINE].remote_bytes;
	expect_rel(remote, 824.6e9, 1e-3, "one copy an expert: k / 2");
}

/*
 * Llama-3 70B, TP 8, 8192 tokens: A = 8192 * 8192 * 2 B. With sequence parallelism a layer moves 10 A * 7/8: two column
 * linears of three each (gather; gather again and reduce-scatter beside the backward), two row linears of two. Without it,
 * four all-reduces of 2 A * 7/8.
 */
Test(time_vectors, tensor_parallel_layer)
{
	double a = 8192.0 * 8192 * 2;

	expect_rel(a, 134.218e6, 1e-5, "A");
	evaluate("{model: llama3-70b, hardware: dgx-h100, gpus: 8, seq: 8192, gbs: 1, mbs: 1, tp: 8, sp: true, stack: nemo-26.08}");
	expect_rel(e->kinds[0].traffic[MB_TRAFFIC_TP].bytes, 10 * a * 7 / 8, 1e-12, "sequence parallel");
	expect_rel(e->kinds[0].traffic[MB_TRAFFIC_TP].bytes, 1174.4e6, 1e-4, "MB a layer");
	expect_rel(80 * e->kinds[0].traffic[MB_TRAFFIC_TP].bytes, 93.95e9, 1e-4, "GB of all layers");
	evaluate("{model: llama3-70b, hardware: dgx-h100, gpus: 8, seq: 8192, gbs: 1, mbs: 1, tp: 8, sp: false, stack: nemo-26.08}");
	expect_rel(e->kinds[0].traffic[MB_TRAFFIC_TP].bytes, 4 * 2 * a * 7 / 8, 1e-12, "all-reduces");
	expect_rel(e->kinds[0].traffic[MB_TRAFFIC_TP].bytes, 939.5e6, 1e-4, "MB a layer");
}

/* 4096 * 7168 * 2 B a message and direction; twice with an fp32 residual; an eighth on ranks of TP 8 with sequence parallelism. */
Test(time_vectors, pipeline_message)
{
	static const struct { const char *run; double bytes; } rows[] = {
		{ "gpus: 16, pp: 2, ep: 8", 58.72e6 },
		{ "gpus: 16, pp: 2, ep: 8, fp32_residual_connection: true", 117.4e6 },
		{ "gpus: 16, pp: 2, ep: 8, tp: 8, sp: true", 7.34e6 },
	};
	char yaml[512];

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		snprintf(yaml, sizeof yaml, "{model: deepseek-v3, hardware: dgx-h100, seq: 4096, gbs: 8, mbs: 1, stack: nemo-26.08,"
		         " pipeline_model_parallel_layout: 'Et*30|t*31mL', %s}", rows[i].run);
		evaluate(yaml);
		/* A rank sends each micro-batch once forward and its gradient once back. */
		expect_rel(e->traffic[MB_TRAFFIC_PP].bytes / (2 * (double)e->dims.micro_batches), rows[i].bytes, 1e-3, rows[i].run);
	}
}

/*
 * Llama-3 8B, c 8, s 32768: 4096 tokens a rank, keys and values 4096 * 8 * 256 * 2 B = 16.78 MB; the ring passes them 7
 * times. All-to-all: 7/8 of Q 33.55, O 33.55 and K, V 16.78 MB. DeepSeek-V3's keys and values are 20 times as large:
 * 4096 * 128 * (192 + 128) * 2 B.
 */
Test(time_vectors, context_parallel_exchange)
{
	evaluate("{model: llama3-8b, hardware: dgx-h100, gpus: 8, seq: 32768, gbs: 1, mbs: 1, cp: 8, stack: nemo-26.08}");
	expect_rel(find(&e->kinds[0], "core_attention")->send.forward_bytes, 7 * 16777216.0, 1e-12, "ring");
	expect_rel(find(&e->kinds[0], "core_attention")->send.forward_bytes, 117.44e6, 1e-4, "ring, MB");
	evaluate("{model: llama3-8b, hardware: dgx-h100, gpus: 8, seq: 32768, gbs: 1, mbs: 1, cp: 8, cp_comm_type: a2a,"
	         " stack: nemo-26.08}");
	expect_rel(find(&e->kinds[0], "core_attention")->send.forward_bytes, 73.40e6, 1e-4, "all-to-all, MB");
	evaluate("{model: deepseek-v3, hardware: gb200-nvl72, gpus: 64, seq: 32768, gbs: 8, mbs: 1, cp: 8, ep: 64, stack: nemo-26.08}");
	expect_rel(find(&e->kinds[1], "core_attention")->send.forward_bytes, 7 * 335.54e6, 1e-4, "latent attention");
}

/*
 * Qwen3-30B-A3B, EP 16 on 16 GPUs: 1,541,093,376 dense parameters replicated 16 times, 1,811,939,328 expert parameters on
 * one rank each, whose gradients nobody else has. Reduce-scatter in fp32, all-gather in bf16, 15/16 of each.
 */
Test(time_vectors, data_parallel_volumes)
{
	evaluate("{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 1024, mbs: 1, ep: 16, stack: nemo-26.08}");
	cr_expect_eq(e->stage_memory[0].dense_params, 1541093376);
	cr_expect_eq(e->stage_memory[0].expert_params, 1811939328);
	expect_rel(e->traffic[MB_TRAFFIC_DP_REDUCE_SCATTER].bytes, 1541093376.0 * 4 * 15 / 16, 1e-12, "reduce-scatter");
	expect_rel(e->traffic[MB_TRAFFIC_DP_REDUCE_SCATTER].bytes, 5.78e9, 1e-3, "GB");
	expect_rel(e->traffic[MB_TRAFFIC_DP_ALL_GATHER].bytes, 2.89e9, 1e-3, "all-gather, GB");
}

/* Rings: n - 1 of n parts are sent; over d domains of m members, each member sends its share of what crosses. */
Test(time_vectors, ring_shares)
{
	struct mb_place place = { 16, 8, 2 };

	expect_rel(mb_ring_sent(place, 16e9), 15e9, 1e-12, "sent");
	expect_rel(mb_ring_remote(place, 16e9), 16e9 / 2 / 8, 1e-12, "across two domains of eight");
	expect_rel(mb_ring_remote((struct mb_place){ 8, 8, 1 }, 16e9), 0, 0, "inside one");
	expect_rel(mb_ring_sent((struct mb_place){ 1, 1, 1 }, 16e9), 0, 0, "alone");
}

/*
 * Qwen3-30B-A3B, 4096 tokens, per layer: linears of attention 2 * 4096 * 2048 * (5120 + 4096), experts 2 * 4096 * 8 * 3 *
 * 2048 * 768, causal attention 2 * 32 * 256 * 2048 * 4096.
 */
Test(time_vectors, layer_flops)
{
	const struct mb_kind_cost *k = &e->kinds[0];

	evaluate("{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 1024, mbs: 1, ep: 16, stack: nemo-26.08}");
	expect_rel(find(k, "linear_qkv")->forward_flops + find(k, "linear_proj")->forward_flops, 154.62e9, 1e-4, "attention linears");
	expect_rel(find(k, "expert_fc1")->forward_flops + find(k, "expert_fc2")->forward_flops, 309.24e9, 1e-4, "experts");
	expect_rel(find(k, "core_attention")->forward_flops, 137.44e9, 1e-4, "causal attention");
	expect_rel(find(k, "core_attention")->backward_flops, 2.5 * 137.44e9, 1e-4, "and its backward");
}

/*
 * 132 SMs, tiles of 128 x 256, m 4096: whole waves would leave 0.970 of 640 tiles in 5 waves, 0.727 of 192 in 2. Persistent
 * kernels of several tile shapes do better, never by more than what is left.
 */
Test(time_vectors, wave_quantisation)
{
	static const struct { double n, whole; } rows[] = { { 5120, 0.970 }, { 1536, 0.727 }, { 2048, 0.970 } };
	struct mb_hardware hw;

	fixture_h100(&hw);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		double tiles = 32 * rows[i].n / 256, waves = ceil(tiles / 132), useful = mb_wave_efficiency(&hw, 4096, rows[i].n, 1);

		expect_rel(tiles / (132 * waves), rows[i].whole, 1e-3, "whole waves");
		cr_expect(useful >= rows[i].whole * 0.999 && useful <= 1, "n %g: %g", rows[i].n, useful);
	}
}
