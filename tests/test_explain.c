/* Runs that break a rule, and runs that miss memory: the cause is named, and a fix passes check and estimate. */
#include "advise/explain.h"
#include "advise_fixture.h"
#include "report/explain.h"

static struct mb_arena arena;
static struct mb_evaluation *e;
static struct mb_query *q, *after;
static struct mb_explanation *x;

static void begin(void)
{
	e = mb_evaluation_new();
	q = mb_arena_alloc(&arena, sizeof *q);
	after = mb_arena_alloc(&arena, sizeof *after);
	x = mb_arena_alloc(&arena, sizeof *x);
}

static void done(void)
{
	mb_evaluation_free(e);
	mb_arena_free(&arena);
}

TestSuite(explain, .init = begin, .fini = done);

#define QWEN "model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: 16\nglobal_batch_size: 1024\nseq_length: 4096\ncross_entropy_fusion_impl: te\n"
#define LLAMA "model: llama3-8b\nhardware: dgx-h100\ngpus: 16\nglobal_batch_size: 128\nseq_length: 4096\n"
#define DSV3 "model: deepseek-v3\nhardware: gb200-nvl72\ngpus: 256\nglobal_batch_size: 4096\nseq_length: 4096\nprecision: fp8_mx\n"

static const struct { const char *rule, *run; } broken[] = {
	{ "W5", LLAMA "tp: 3\n" },
	{ "W1", LLAMA "pp: 32\n" },
	{ "W4", LLAMA "mbs: 3\n" },
	{ "W10", DSV3 "pp: 8\nvp: 2\nep: 32\n" },
	{ "W7", "model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: 24\nglobal_batch_size: 1008\nseq_length: 4096\nep: 24\n" },
	{ "P1", LLAMA "vp: 2\n" },
	{ "T2", QWEN "tp: 2\nep: 8\n" },
	{ "M4", DSV3 "pp: 4\nep: 64\npipeline_model_parallel_layout: 'Et*15|(t*16|)*2t*14mL'\nmoe_token_dispatcher_type: flex\n"
	  "moe_flex_dispatcher_backend: deepep\nrecompute_granularity: selective\nrecompute_modules: [mla_up_proj, moe_act]\n" },
	{ "EP6", QWEN "ep: 16\noverlap_moe_expert_parallel_comm: true\nrecompute_granularity: selective\nrecompute_modules: [moe]\n" },
	{ "EP12", QWEN "ep: 16\ndelay_wgrad_compute: true\n" },
	{ "F2", LLAMA "precision: fp8_mx\n" },
};

static const struct { const char *name, *run, *words; } large[] = {
	{ "activations of a dense model", LLAMA "mbs: 4\ncross_entropy_fusion_impl: te\n", "activations" },
	{ "states of a dense model", "model: llama3-70b\nhardware: dgx-h100\ngpus: 64\nglobal_batch_size: 256\nseq_length: 4096\ntp: 4\nsequence_parallel: true\n", "weights" },
	{ "a long sequence", "model: llama3-8b\nhardware: dgx-h100\ngpus: 64\nglobal_batch_size: 128\nseq_length: 65536\ncross_entropy_fusion_impl: te\n", "activations" },
	{ "logits of a small model", "model: qwen3-0.6b\nhardware: dgx-h100\ngpus: 8\nglobal_batch_size: 192\nseq_length: 4096\nmbs: 24\ncross_entropy_loss_fusion: false\n"
	  "recompute_granularity: full\nrecompute_method: uniform\nrecompute_num_layers: 1\n", "logits" },
	{ "experts on too few ranks", QWEN "ep: 4\n", "weights" },
	{ "micro-batch of an MoE model", QWEN "ep: 16\nmbs: 4\n", "activations" },
	{ "a deep pipeline's first stage", "model: llama3-70b\nhardware: dgx-h100\ngpus: 64\nglobal_batch_size: 256\nseq_length: 8192\ntp: 2\npp: 8\nvp: 5\n"
	  "sequence_parallel: true\n", "activations" },
	{ "a layout of DeepSeek-V3", DSV3 "pp: 8\nvp: 2\nep: 32\npipeline_model_parallel_layout: 'Et*4|(tttt|)*14tmL'\n", "activations" },
	{ "unfused attention", "model: llama3-8b\nhardware: dgx-h100\ngpus: 16\nglobal_batch_size: 128\nseq_length: 8192\nattention_backend: unfused\ncross_entropy_fusion_impl: te\n", "activations" },
	{ "no distributed optimizer", "model: qwen2.5-7b\nhardware: dgx-h100\ngpus: 8\nglobal_batch_size: 64\nseq_length: 4096\n"
	  "use_distributed_optimizer: false\noverlap_param_gather: false\n", "weights" },
	{ "eager on a hybrid", "model: nemotron-3-nano\nhardware: dgx-h100\ngpus: 8\nglobal_batch_size: 64\nseq_length: 8192\nep: 8\nmbs: 2\n", "weights" },
};

/* The first fix that fits, taken as printed. */
static void expect_fix(const char *name, const char *run)
{
	struct mb_diags diags = { 0 };
	const char *error;

	cr_assert(x->fix_count > 0, "%s: no fix", name);
	for (int i = 0; i < x->fix_count; i++) {
		cr_assert(reload(run, x->q, &x->fixes[i].changes, &arena, after, &diags), "%s: fix %d: %s", name, i, diags.item[0].text);
		error = first_error(after);
		cr_expect(!error, "%s: fix %d breaks %s", name, i, error ? error : "");
		cr_assert(mb_evaluable(&after->c, &after->c.run.plan), "%s", name);
		mb_evaluate(&after->c, &after->c.run.plan, e);
		cr_expect(e->verdict == MB_FITS || e->verdict == MB_AT_RISK, "%s: fix %d is %s", name, i, mb_verdict_names[e->verdict]);
		cr_expect_float_eq(e->step_s, x->fixes[i].step_s, 1e-9 * e->step_s, "%s: fix %d: %g s, said %g", name, i, e->step_s, x->fixes[i].step_s);
		cr_expect_float_eq(e->peak_bytes, x->fixes[i].peak_bytes, 1, "%s: fix %d: peak", name, i);
	}
}

Test(explain, rules, .timeout = 120)
{
	for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
		struct mb_text text = { 0 };

		load_query(broken[i].run, &arena, q);
		mb_explain(q, NULL, e, &arena, x);
		cr_expect_eq(x->kind, MB_BINDS_RULE, "%s", broken[i].rule);
		cr_assert(x->violation_count > 0, "%s", broken[i].rule);
		cr_expect_str_eq(x->violations[0].rule->id, broken[i].rule);
		expect_fix(broken[i].rule, broken[i].run);
		mb_explain_answer(x, &text);
		cr_expect(strstr(text.data, broken[i].rule), "%s is not named: %s", broken[i].rule, text.data);
		mb_text_free(&text);
	}
}

Test(explain, memory, .timeout = 120)
{
	for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
		load_query(large[i].run, &arena, q);
		mb_explain(q, NULL, e, &arena, x);
		cr_expect_eq(x->kind, MB_BINDS_MEMORY, "%s: %s, %.1f GiB", large[i].name, mb_binding_names[x->kind], x->run.peak_bytes / 1073741824.0);
		cr_expect(strstr(x->cause_words, large[i].words), "%s: %s", large[i].name, x->cause_words);
		expect_fix(large[i].name, large[i].run);
	}
}

Test(explain, a_slow_run_names_the_term)
{
	static struct mb_search_result found;
	static struct mb_ranked best;

	load_query(QWEN "ep: 16\n", &arena, q);
	best = (struct mb_ranked){ .plan = q->c.run.plan, .gpus = 16, .verdict = MB_FITS };
	best.plan.dispatcher = MB_DISPATCH_FLEX;
	best.plan.backend = MB_BACKEND_HYBRIDEP;
	q->c.run.plan = best.plan;
	mb_evaluate(&q->c, &best.plan, e);
	best.step_s = e->step_s;
	found = (struct mb_search_result){ .top = &best, .top_count = 1 };
	load_query(QWEN "ep: 16\n", &arena, q);
	mb_explain(q, &found, e, &arena, x);
	cr_expect_eq(x->kind, MB_BINDS_TIME);
	cr_expect(x->has_best);
	cr_expect_eq(x->time_term, MB_TIME_ep, "%s", mb_time_terms[x->time_term].label);
	cr_expect(mb_changes_has(&x->best.changes, MB_K_backend));
	double sum = 0;

	for (int i = 0; i < MB_TIME_COUNT; i++)
		sum += x->run.terms[i] - x->best.terms[i];
	cr_expect_float_eq(sum, x->run.step_s - x->best.step_s, 1e-6);
	expect_fix("slow", QWEN "ep: 16\n");
}
