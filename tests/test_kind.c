/* Laws of one layer's cost: what couples its parts must keep bounds of the search valid. */
#include "cost/kind.h"
#include "cost/roofline.h"
#include "expect.h"
#include "load.h"

#include <stdio.h>

static struct mb_arena arena;

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(kind, .fini = done);

/* The recursion of paired layers, contention-free: 4.557 ms of compute, a third of it forward, four transfers of x ms. */
Test(kind, overlap_follows_the_recursion)
{
	static const struct { double x, ms; bool delayed; } cases[] = {
		{ 0.2, 4.557, false }, { 0.672, 4.557, false }, { 1.0, 5.038, false }, { 1.0, 4.798, true }, { 1.5, 6.038, false },
		{ 2.0, 8.0, false }, { 3.0, 12.0, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		expect_rel(mb_overlapped_seconds(4.557 / 3, 4.557 * 2 / 3, 4 * cases[i].x, cases[i].delayed), cases[i].ms, 2e-4, "pair of layers");
}

/* More of anything never ends sooner, and nothing ends before its longest part or after the sum of all. */
Test(kind, overlap_is_monotone)
{
	for (double f = 0; f < 4; f += 0.25) {
		for (double b = 0; b < 8; b += 0.25) {
			for (double x = 0; x < 16; x += 0.25) {
				for (int delayed = 0; delayed < 2; delayed++) {
					double t = mb_overlapped_seconds(f, b, x, delayed);

					cr_expect(t >= fmax(f + b, x) && t <= f + b + x);
					cr_expect(mb_overlapped_seconds(f + 0.01, b, x, delayed) >= t);
					cr_expect(mb_overlapped_seconds(f, b + 0.01, x, delayed) >= t);
					cr_expect(mb_overlapped_seconds(f, b, x + 0.01, delayed) >= t);
				}
				cr_expect(mb_overlapped_seconds(f, b, x, true) <= mb_overlapped_seconds(f, b, x, false));
			}
		}
	}
}

Test(kind, meeting_is_a_norm)
{
	const struct mb_params k = { .host_norm_power = 8 };
	const double pairs[][2] = { { 1, 1 }, { 3, 0.5 }, { 0.1, 2 }, { 0, 1 }, { 1, 0 }, { 7, 6.5 } };

	expect_rel(mb_meet(&k, 1, 1, 0), pow(2, 1.0 / 8), 1e-14, "equal sides");
	expect_rel(mb_meet(&k, 5, 0, 2), 7, 1e-15, "no host");
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 6; j++) {
			double a = mb_meet(&k, pairs[i][0], pairs[i][1], 0), b = mb_meet(&k, pairs[j][0], pairs[j][1], 0);
			double both = mb_meet(&k, pairs[i][0] + pairs[j][0], pairs[i][1] + pairs[j][1], 0);

			cr_expect(both <= (a + b) * (1 + 1e-14), "sub-additive");
			cr_expect(both >= fmax(a, b) * (1 - 1e-14), "monotone");
		}
		expect_rel(mb_meet(&k, 3 * pairs[i][0], 3 * pairs[i][1], 0), 3 * mb_meet(&k, pairs[i][0], pairs[i][1], 0), 1e-14, "homogeneous");
	}
}

static const char *const runs[] = {
	"model: deepseek-v3, hardware: gb200-nvl72, gpus: 256, seq: 4096, gbs: 4096, precision: fp8_mx, ep: 64, pp: 4",
	"model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 1024, precision: bf16, ep: 16",
	"model: llama3-70b, hardware: dgx-h100, gpus: 64, seq: 8192, gbs: 256, precision: fp8_cs, tp: 4, sp: true, pp: 8",
	"model: nemotron-3-nano, hardware: gb300-nvl72, gpus: 8, seq: 8192, gbs: 512, precision: fp8_mx, ep: 8",
	"model: gpt-oss-120b, hardware: dgx-b200, gpus: 64, seq: 4096, gbs: 1280, precision: bf16, ep: 8",
	"model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 32, precision: bf16, ep: 16, overlap_moe_expert_parallel_comm: true",
	"model: moonlight-16b-a3b, hardware: dgx-h100, gpus: 8, seq: 4096, gbs: 8, precision: bf16, ep: 8, moe_token_dispatcher_type: alltoall, "
	"moe_shared_expert_overlap: true, apply_rope_fusion: false",
};

#define OVERLAPPED "model: qwen3-30b-a3b, seq: 4096, precision: bf16, overlap_moe_expert_parallel_comm: true, " \
	"moe_token_dispatcher_type: alltoall, cuda_graph_impl: none"

static double layer_seconds(const char *yaml, double gap_s, double *ret_gaps_s)
{
	static struct mb_query q;
	static struct mb_kind_cost cost;
	struct mb_dims d;

	load_query(yaml, &arena, &q);
	q.c.params.kernel_gap_s = gap_s;
	mb_dims_fill(&q.c, &q.c.run.plan, &d);
	mb_kind_cost_fill(&q.c, &q.c.run.plan, &d, 0, (struct mb_treatment){ 0, 0, false }, &cost);
	*ret_gaps_s = cost.gpu_s[MB_TIME_gaps];
	return cost.forward_gpu_s + cost.backward_gpu_s;
}

/* Transfers go on while no kernel runs: where they are the longer part, gaps beside them cost less than they last. */
Test(kind, gaps_run_beside_communication)
{
	static const struct { const char *yaml; bool bound_by_transfers; } cases[] = {
		{ "{" OVERLAPPED ", hardware: dgx-h100, gpus: 64, gbs: 1024, ep: 64}", true },
		{ "{" OVERLAPPED ", hardware: dgx-h100, gpus: 8, gbs: 1024, ep: 8}", false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		double few_s, many_s, few = layer_seconds(cases[i].yaml, 4e-6, &few_s), many = layer_seconds(cases[i].yaml, 5e-6, &many_s);
		double share = (many - few) / (many_s - few_s);

		cr_expect(share > 0 && share < 1.0001, "%s: %g", cases[i].yaml, share);
		cr_expect((share < 0.6) == cases[i].bound_by_transfers, "%s: %g", cases[i].yaml, share);
	}
}

/* The first forward and the last backward have no partner: of one micro-batch nothing is hidden, of many all but one's. */
Test(kind, one_micro_batch_of_a_step_is_not_overlapped)
{
	struct mb_evaluation *e = mb_evaluation_new();
	static struct mb_query q;
	double exposed_s[3], busy_s[3];

	for (int i = 0; i < 3; i++) {
		const struct mb_traffic_cost *out = &e->traffic[MB_TRAFFIC_EP_DISPATCH], *back = &e->traffic[MB_TRAFFIC_EP_COMBINE];
		char yaml[512];

		snprintf(yaml, sizeof yaml, "{" OVERLAPPED ", hardware: dgx-h100, gpus: 16, ep: 16, gbs: %d}", 16 * (i + 1));
		load_query(yaml, &arena, &q);
		load_evaluate(&q, e);
		exposed_s[i] = e->time_terms[MB_TIME_ep];
		busy_s[i] = out->seconds + back->seconds;
		expect_rel(out->exposed_seconds + back->exposed_seconds, exposed_s[i], 1e-9, "the exchanges' share of the step");
	}
	expect_rel(exposed_s[0], busy_s[0], 1e-9, "one micro-batch");
	cr_expect_lt(exposed_s[1] - exposed_s[0], busy_s[0], "the second one's transfers hide");
	expect_rel(exposed_s[2] - exposed_s[1], exposed_s[1] - exposed_s[0], 1e-9, "and so do the third one's");
	mb_evaluation_free(e);
}

static const struct mb_kind_cost *routed_layer(const char *keys)
{
	static struct mb_query q;
	static struct mb_kind_cost cost;
	struct mb_dims d;
	char yaml[512];

	snprintf(yaml, sizeof yaml, "{model: moonlight-16b-a3b, hardware: dgx-h100, gpus: 8, seq: 4096, gbs: 64, precision: bf16, ep: 8, "
	         "moe_token_dispatcher_type: alltoall%s}", keys);
	load_query(yaml, &arena, &q);
	mb_dims_fill(&q.c, &q.c.run.plan, &d);
	for (int k = 0; k < q.c.model.kind_count; k++)
		if (q.c.model.kinds[k].ffn == MB_FFN_MOE)
			mb_kind_cost_fill(&q.c, &q.c.run.plan, &d, k, (struct mb_treatment){ 0, 0, false }, &cost);
	return &cost;
}

/* The shared expert starts behind the dispatch, which waits for token counts; another micro-batch runs through the wait. */
Test(kind, only_another_micro_batch_hides_the_wait)
{
	double plain_s = routed_layer("")->sync_s, transfers_s = routed_layer("")->gpu_s[MB_TIME_ep];

	cr_expect_gt(plain_s, 0);
	expect_rel(routed_layer(", moe_shared_expert_overlap: true")->sync_s, plain_s, 1e-12, "beside the shared expert");
	cr_expect_lt(routed_layer(", moe_shared_expert_overlap: true")->gpu_s[MB_TIME_ep], 0.9 * transfers_s, "which hides transfers");
	cr_expect_lt(routed_layer(", overlap_moe_expert_parallel_comm: true, cuda_graph_impl: none")->sync_s, 0.9 * plain_s);
}

/* 12 launches more for the router and 28 for rotary embedding, at the time of a per-expert kernel; graphs replay them. */
Test(kind, unfused_kernels_are_launched_one_by_one)
{
	static const struct { const char *fusion, *scope; double launches; } cases[] = {
		{ ", moe_router_fusion: false", "moe_router", 12 },
		{ ", moe_router_fusion: true, apply_rope_fusion: false", "attn", 28 },
	};
	const char *eager = ", moe_router_fusion: true, cuda_graph_impl: none";
	double launch_s = 0, gap_s = 0, host_s = routed_layer(eager)->host_s, gaps_s = routed_layer(eager)->gpu_s[MB_TIME_gaps];

	for (int i = 0; i < 2; i++) {
		const struct mb_kind_cost *more = routed_layer(mb_arena_printf(&arena, "%s, cuda_graph_impl: none", cases[i].fusion));
		double once_s = (more->host_s - host_s) / cases[i].launches, once_gap_s = (more->gpu_s[MB_TIME_gaps] - gaps_s) / cases[i].launches;

		cr_expect_gt(once_s, 0, "%s", cases[i].fusion);
		expect_rel(launch_s > 0 ? launch_s : once_s, once_s, 1e-9, "a launch");
		expect_rel(gap_s > 0 ? gap_s : once_gap_s, once_gap_s, 1e-9, "a gap");
		launch_s = once_s;
		gap_s = once_gap_s;

		const char *graphs = mb_arena_printf(&arena, ", cuda_graph_impl: transformer_engine, cuda_graph_scope: [%s]", cases[i].scope);
		double replayed_s = routed_layer(mb_arena_printf(&arena, "%s%s", cases[i].fusion, graphs))->host_s;

		expect_rel(routed_layer(mb_arena_printf(&arena, ", moe_router_fusion: true%s", graphs))->host_s, replayed_s, 1e-12, cases[i].scope);
	}
}

/* Every module set against every larger one: recompute only adds time and only removes saved bytes. */
Test(kind, recompute_trades_time_for_memory)
{
	static struct mb_query q;
	static struct mb_kind_cost small, large;
	struct mb_dims d;
	char yaml[512];

	for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
		snprintf(yaml, sizeof yaml, "{%s}", runs[r]);
		load_query(yaml, &arena, &q);
		mb_dims_fill(&q.c, &q.c.run.plan, &d);
		for (int k = 0; k < q.c.model.kind_count; k++) {
			for (unsigned set = 0; set < 128; set++) {
				mb_kind_cost_fill(&q.c, &q.c.run.plan, &d, k, (struct mb_treatment){ set, 0, false }, &small);
				for (unsigned add = 1; add < 128; add <<= 1) {
					if (set & add)
						continue;
					mb_kind_cost_fill(&q.c, &q.c.run.plan, &d, k, (struct mb_treatment){ set | add, 0, false }, &large);
					cr_expect(large.saved_bytes <= small.saved_bytes, "%s kind %d set %x add %x", runs[r], k, set, add);
					cr_expect(large.forward_gpu_s + large.backward_gpu_s >= (small.forward_gpu_s + small.backward_gpu_s) * (1 - 1e-12),
					          "%s kind %d set %x add %x", runs[r], k, set, add);
					cr_expect(large.host_s >= small.host_s * (1 - 1e-12));
				}
			}
		}
	}
}

/* The time terms add up to the step, the memory terms to the peak, on every stage. */
Test(kind, parts_add_up)
{
	struct mb_evaluation *e = mb_evaluation_new();
	static struct mb_query q;
	char yaml[512];

	for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
		double sum = 0;

		snprintf(yaml, sizeof yaml, "{%s}", runs[r]);
		load_query(yaml, &arena, &q);
		load_evaluate(&q, e);
		for (int i = 0; i < MB_TIME_COUNT; i++) {
			cr_expect_geq(e->time_terms[i], 0, "%s: %s", runs[r], mb_time_terms[i].json);
			sum += e->time_terms[i];
		}
		expect_rel(sum, e->step_s, 1e-9, runs[r]);
		for (int s = 0; s < q.c.run.plan.pp; s++) {
			sum = 0;
			for (int i = 0; i < MB_MEM_COUNT; i++) {
				cr_expect_geq(e->stage_memory[s].terms[i], 0, "%s: %s", runs[r], mb_memory_terms[i].json);
				sum += e->stage_memory[s].terms[i];
			}
			expect_rel(sum, e->stage_memory[s].peak_bytes, 1e-12, runs[r]);
		}
	}
	mb_evaluation_free(e);
}

/* 132 multiprocessors, tiles of 128 x 256: m 4096 n 5120 makes 640 tiles, n 1536 192, n 2048 256. */
Test(kind, wave_quantisation)
{
	const struct mb_hardware h100 = { .architecture = MB_HOPPER, .sm_count = 132 };

	expect_rel(mb_wave_efficiency(&h100, 4096, 5120, 1), 640.0 / 132 / (640.0 / 132), 1e-12, "five waves, the last nearly full");
	expect_rel(mb_wave_efficiency(&h100, 4096, 2048, 1), 256 / 132.0 / (256 / 132.0), 1e-12, "two waves");
	cr_expect_leq(mb_wave_efficiency(&h100, 64, 64, 1), 1.0 / 32);
	for (double n = 64; n < 20000; n += 64) {
		double w = mb_wave_efficiency(&h100, 4096, n, 1);

		cr_expect(w > 0 && w <= 1 + 1e-12, "n %g: %g", n, w);
	}
}
