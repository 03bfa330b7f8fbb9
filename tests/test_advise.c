/*
 * Advice against published studies: which recompute (NVIDIA-NeMo/Megatron-Bridge, skills/nemo-mbridge-perf-activation-recompute,
 * Moonlight on 8 H100) and whether to overlap (skills/nemo-mbridge-perf-expert-parallel-overlap, Qwen3-30B-A3B on 16 H100).
 */
#include "advise/advice.h"
#include "advise_fixture.h"
#include "expect.h"
#include "report/advise.h"

static struct mb_arena arena;
static struct mb_evaluation *e;
static struct mb_query *q;
static struct mb_advice *a;

static void begin(void)
{
	e = mb_evaluation_new();
	q = mb_arena_alloc(&arena, sizeof *q);
	a = mb_arena_alloc(&arena, sizeof *a);
}

static void done(void)
{
	mb_evaluation_free(e);
	mb_arena_free(&arena);
}

TestSuite(advise, .init = begin, .fini = done);

static const struct mb_option *option(const char *name)
{
	for (int i = 0; i < a->count; i++) {
		if (strcmp(a->options[i].name, name) == 0)
			return &a->options[i];
	}
	cr_assert_fail("no option '%s'", name);
	return NULL;
}

static bool has_reason(const char *words)
{
	for (int i = 0; i < a->reason_count; i++) {
		if (strstr(a->reasons[i], words))
			return true;
	}
	return false;
}

static bool has_note(const struct mb_option *o, const char *words)
{
	for (int i = 0; i < o->note_count; i++) {
		if (strstr(o->notes[i], words))
			return true;
	}
	return false;
}

/* Bridge's recipe; the study's own settings. */
#define MOONLIGHT \
	"model: moonlight-16b-a3b\nhardware: dgx-h100\ngpus: 8\nprecision: bf16\nseq_length: 4096\nglobal_batch_size: 4\n" \
	"micro_batch_size: 1\ntensor_model_parallel_size: 2\nsequence_parallel: true\nexpert_model_parallel_size: 8\n" \
	"use_precision_aware_optimizer: true\nexp_avg_dtype: bf16\nexp_avg_sq_dtype: bf16\ngrad_reduce_in_fp32: false\n" \
	"cross_entropy_fusion_impl: te\nmoe_shared_expert_overlap: true\nrecompute_granularity: selective\nrecompute_modules: []\n"

static const struct { const char *name; double peak_gb, step_ms; } study[] = {
	{ "none", 36.618, 457.18 }, { "core_attn", 36.614, 474.80 }, { "mla_up_proj", 35.902, 480.89 }, { "mla_up_proj,mlp", 35.917, 496.73 },
	{ "moe_act", 35.941, 466.26 }, { "layernorm,moe_act", 35.949, 506.53 },
};

Test(advise, moonlight_recompute_finds_what_the_study_found)
{
	load_query(MOONLIGHT, &arena, q);
	mb_advise_recompute(q, 0, e, &arena, a);
	for (size_t i = 0; i < sizeof study / sizeof study[0]; i++) {
		const struct mb_option *o = option(study[i].name);
		double added = study[i].step_ms / study[0].step_ms - 1;

		expect_rel(o->t.peak_bytes / 1e9, study[i].peak_gb, 0.015, study[i].name);
		cr_expect(fabs(o->step_frac - added) < 0.05, "%s: added %.3f of the step, study %.3f", study[i].name, o->step_frac, added);
	}
	cr_expect(option("core_attn")->lowers_bytes < 1e7 && has_note(option("core_attn"), "attention is fused"));
	cr_expect(option("mla_up_proj,mlp")->lowers_bytes < 1.01 * option("mla_up_proj")->lowers_bytes, "combinations add up");
	cr_expect(option("mla_up_proj,mlp")->saved_bytes > 1.1 * option("mla_up_proj")->saved_bytes);
	cr_expect(has_reason("the optimizer step needs"), "why they do not add up");
	cr_expect(a->host_bound, "eager with one micro-batch is host-bound");
	cr_expect(!a->needed && a->recommended == a->reference, "nothing is needed");
	cr_expect_str_eq(a->options[a->shrink].name, "moe_act");
	cr_expect_eq(option("full, every layer")->t.phase, MB_PHASE_OPTIMIZER);
	cr_expect_eq(option("shared_experts")->t.verdict, MB_ILLEGAL, "its overlap runs them elsewhere");
}

Test(advise, recompute_reaches_a_target)
{
	load_query("model: llama3-70b\nhardware: dgx-h100\ngpus: 64\ntp: 4\npp: 4\nvp: 5\nseq: 8192\ngbs: 256\nsequence_parallel: true\n", &arena, q);
	mb_advise_recompute(q, 60 * 1073741824.0, e, &arena, a);
	cr_assert(a->recommended >= 0);
	cr_expect(a->options[a->recommended].t.peak_bytes <= 60 * 1073741824.0);
	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];

		if (o->kind != MB_OPTION_OFFLOAD && o->t.verdict == MB_FITS && o->t.peak_bytes <= 60 * 1073741824.0)
			cr_expect(o->t.step_s >= 0.999 * a->options[a->recommended].t.step_s, "%s is faster", o->name);
	}
	mb_advise_recompute(q, 1073741824.0, e, &arena, a);
	cr_expect_eq(a->recommended, -1, "nothing reaches 1 GiB");
}

Test(advise, modules_that_do_nothing_say_why)
{
	load_query("model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: 16\nep: 16\nseq: 4096\ngbs: 1024\n", &arena, q);
	mb_advise_recompute(q, 0, e, &arena, a);
	cr_expect(has_reason("mlp"), "no dense layer");
	cr_expect(option("moe")->replayed_bytes[2] > 0, "dispatch and combine run again");
	cr_expect_float_eq(option("moe_act")->replayed_bytes[2], 0, 1);
	load_query("model: llama3-8b\nhardware: dgx-h100\ngpus: 8\nseq: 8192\ngbs: 64\n", &arena, q);
	mb_advise_recompute(q, 0, e, &arena, a);
	cr_expect(has_reason("layernorm"), "norms are fused into the linear");
}

#define QWEN \
	"model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: 16\nprecision: bf16\nseq_length: 4096\nglobal_batch_size: 1024\nmicro_batch_size: 1\n" \
	"expert_model_parallel_size: 16\n"
#define HYBRIDEP \
	"moe_token_dispatcher_type: flex\nmoe_flex_dispatcher_backend: hybridep\ncuda_graph_impl: transformer_engine\n" \
	"cuda_graph_scope: [moe_router, moe_preprocess]\n"

static void expect_overlap(const char *run, const char *off, const char *on, const char *delay, double ratio)
{
	double got;

	load_query(run, &arena, q);
	mb_advise_overlap(q, e, &arena, a);
	got = option(on)->t.step_s / option(off)->t.step_s;
	cr_expect(got < 1, "%s: wrong direction, %.3f", on, got);
	cr_expect(fabs(got - ratio) < 0.08, "%s: %.3f of the step, study %.3f", on, got, ratio);
	cr_expect(option(on)->x.gain_low_frac <= option(on)->x.gain_frac && option(on)->x.gain_frac <= option(on)->x.gain_high_frac);
	cr_expect(option(delay)->tie && fabs(option(delay)->t.step_s / option(on)->t.step_s - 1) < 0.01, "delayed weight gradients are no clear win");
	cr_expect(!a->options[a->recommended].t.run.plan.delay_wgrad_compute);
	cr_expect(a->options[a->recommended].t.run.plan.overlap_moe_expert_parallel_comm);
}

Test(advise, overlap_gains_what_the_studies_measured)
{
	expect_overlap(QWEN "moe_permute_fusion: false\n", "alltoall, overlap off", "alltoall, overlap on", "alltoall, overlap on, delay", 31310 / 41250.0);
	expect_overlap(QWEN HYBRIDEP, "hybridep, overlap off", "hybridep, overlap on", "hybridep, overlap on, delay", 21072.5 / 24713.8);
}

Test(advise, overlap_meets_its_requirements_or_says_which_it_cannot)
{
	load_query("model: deepseek-v3\nhardware: gb200-nvl72\ngpus: 256\nprecision: fp8_mx\npp: 4\nep: 64\nseq: 4096\ngbs: 4096\n"
	           "pipeline_model_parallel_layout: 'Et*15|(t*16|)*2t*14mL'\nrecompute_granularity: selective\nrecompute_modules: [mla_up_proj, moe]\n"
	           "CUDA_DEVICE_MAX_CONNECTIONS: 1\n", &arena, q);
	mb_advise_overlap(q, e, &arena, a);
	const struct mb_option *o = option("hybridep, overlap on");

	cr_expect(mb_changes_has(&o->t.changes, MB_K_modules), "'moe' cannot stay");
	cr_expect_eq(o->t.changes.max_connections, 32);
	cr_expect_eq(option("deepep, overlap on")->t.verdict, MB_ILLEGAL);
	cr_expect(has_note(option("deepep, overlap on"), "M4"), "no kernels for NVL72");
}

Test(advise, dense_models_have_nothing_to_overlap_or_dispatch)
{
	load_query("model: llama3-8b\nhardware: dgx-h100\ngpus: 8\nseq: 8192\ngbs: 64\n", &arena, q);
	mb_advise_overlap(q, e, &arena, a);
	cr_expect_eq(a->count, 1);
	cr_expect(has_reason("no experts"));
	mb_advise_dispatcher(q, e, &arena, a);
	cr_expect_eq(a->count, 1);
	cr_expect(has_reason("no experts"));
}

/* Spec of distinct destinations: 128 experts, top 8, 16 ranks on 2 nodes. */
Test(advise, dispatcher_counts_destinations)
{
	load_query(QWEN, &arena, q);
	mb_advise_dispatcher(q, e, &arena, a);
	expect_rel(option("hybridep")->x.ranks, 6.597, 1e-3, "ranks");
	expect_rel(option("hybridep")->x.domains, 1.9938, 1e-4, "domains");
	cr_expect(option("hybridep")->x.across_bytes < 0.3 * option("alltoall")->x.across_bytes);
	cr_expect(has_note(option("allgather"), "every rank gets every token"));
	cr_expect(a->recommended >= 0 && a->options[a->recommended].t.run.plan.dispatcher == MB_DISPATCH_FLEX);
}

Test(advise, text_keeps_to_the_canvas)
{
	const struct mb_style style = { .width = 100 };
	struct mb_advise_report x = { a, "run.yaml" };
	struct mb_text text = { 0 };

	load_query(MOONLIGHT, &arena, q);
	mb_advise_recompute(q, 0, e, &arena, a);
	mb_advise_text(&x, &style, &text);
	for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"))
		cr_expect(mb_text_width(line) <= 100, "%s", line);
	mb_text_free(&text);
}
