/*
 * Advice never recommends what `check` rejects or what does not fit: 10,000 random runs, seeded. Each recommendation is
 * checked and evaluated; of the fifth of the runs that come from a text it is printed first, and read again on top of it
 * as a user would.
 */
#include "advise/advice.h"
#include "advise/explain.h"
#include "advise_fixture.h"

static uint64_t state = 0x9e3779b97f4a7c15u;

/* xorshift64*: Vigna 2016. */
static unsigned draw(unsigned n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)((state * 0x2545f4914f6cdd1du) >> 33) % n;
}

static const char *one_of(const char *const *words, size_t count)
{
	return words[draw((unsigned)count)];
}

#define ONE_OF(...) one_of((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void add_layout(struct mb_text *t)
{
	mb_text_printf(t, "pp: %s\n", ONE_OF("1", "1", "2", "4", "8"));
	if (draw(3) == 0)
		mb_text_printf(t, "vp: %s\n", ONE_OF("2", "3", "4", "5"));
	if (draw(2)) {
		mb_text_printf(t, "tp: %s\n", ONE_OF("1", "2", "4", "8"));
		mb_text_add(t, draw(4) ? "sequence_parallel: true\n" : "");
	}
	if (draw(5) == 0)
		mb_text_add(t, "cp: 2\n");
	mb_text_printf(t, "mbs: %s\n", ONE_OF("1", "1", "1", "2", "4"));
}

static void add_features(struct mb_text *t)
{
	if (draw(2))
		mb_text_printf(t, "%s", ONE_OF("recompute_granularity: full\nrecompute_method: uniform\nrecompute_num_layers: 1\n",
		               "recompute_granularity: full\nrecompute_method: block\nrecompute_num_layers: 2\n",
		               "recompute_granularity: selective\nrecompute_modules: [core_attn]\n", "recompute_granularity: selective\nrecompute_modules: [moe]\n",
		               "recompute_modules: [mlp, layernorm]\n", "recompute_granularity: selective\nrecompute_modules: []\n"));
	if (draw(3) == 0)
		mb_text_add(t, "overlap_moe_expert_parallel_comm: true\n");
	if (draw(4) == 0)
		mb_text_add(t, "moe_shared_expert_overlap: true\n");
	if (draw(3) == 0)
		mb_text_printf(t, "moe_token_dispatcher_type: flex\nmoe_flex_dispatcher_backend: %s\n", ONE_OF("deepep", "hybridep"));
	if (draw(4) == 0)
		mb_text_printf(t, "cuda_graph_impl: transformer_engine\ncuda_graph_scope: [%s]\n", ONE_OF("attn", "moe_router, moe_preprocess", "mlp", "attn, moe_router"));
	if (draw(6) == 0)
		mb_text_printf(t, "precision: %s\n", ONE_OF("fp8_cs", "fp8_mx", "fp16"));
	if (draw(6) == 0)
		mb_text_printf(t, "CUDA_DEVICE_MAX_CONNECTIONS: %s\n", ONE_OF("1", "8"));
	if (draw(6) == 0)
		mb_text_add(t, "PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True\n");
	if (draw(8) == 0)
		mb_text_add(t, "use_megatron_fsdp: true\ndata_parallel_sharding_strategy: optim_grads_params\n");
	if (draw(4) == 0)
		mb_text_add(t, "cross_entropy_fusion_impl: te\n");
}

static void random_run(struct mb_text *t)
{
	const char *model = ONE_OF("llama3-8b", "llama3-70b", "qwen3-30b-a3b", "qwen3-30b-a3b", "moonlight-16b-a3b", "deepseek-v3", "nemotron-3-nano",
	                           "mixtral-8x7b", "qwen3-next-80b-a3b");
	bool dense = strncmp(model, "llama", 5) == 0;

	mb_text_printf(t, "model: %s\nhardware: %s\ngpus: %s\nseq: %s\ngbs: %s\n", model, ONE_OF("dgx-h100", "dgx-h100", "gb200-nvl72", "dgx-a100", "dgx-b200"),
	               ONE_OF("8", "16", "32", "64", "256"), ONE_OF("4096", "4096", "8192", "32768"), ONE_OF("64", "256", "1024"));
	add_layout(t);
	if (!dense)
		mb_text_printf(t, "ep: %s\n", ONE_OF("1", "4", "8", "16", "64"));
	add_features(t);
}

struct tally { int runs, recommended; };

/* Whether the recommendation holds when it is read again. */
static void expect_holds(const char *run, const struct mb_query *q, const struct mb_trial *t, const char *what, struct mb_evaluation *e,
                         struct mb_arena *arena)
{
	struct mb_query *after = mb_arena_alloc(arena, sizeof *after);
	struct mb_diags diags = { 0 };
	const char *error;

	cr_assert(reload(run, q, &t->changes, arena, after, &diags), "%s: %s\n%s", what, diags.item[0].text, run);
	error = first_error(after);
	cr_expect(!error, "%s breaks %s:\n%s", what, error ? error : "", run);
	if (!mb_evaluable(&after->c, &after->c.run.plan)) {
		cr_expect_fail("%s has no sizes:\n%s", what, run);
		return;
	}
	mb_evaluate(&after->c, &after->c.run.plan, e);
	cr_expect(e->verdict == MB_FITS || e->verdict == MB_AT_RISK, "%s: %s:\n%s", what, mb_verdict_names[e->verdict], run);
	cr_expect_float_eq(e->step_s, t->step_s, 1e-9 * e->step_s, "%s: %g s, said %g:\n%s", what, e->step_s, t->step_s, run);
}

/* The same without the way through text. */
static void expect_holds_directly(const struct mb_query *q, const struct mb_trial *t, const char *what, struct mb_evaluation *e, struct mb_arena *arena)
{
	struct mb_query *after = mb_arena_alloc(arena, sizeof *after);
	const char *error;

	*after = *q;
	after->c.run = t->run;
	mb_case_compile(&after->c);
	error = first_error(after);
	cr_expect(!error, "%s breaks %s", what, error ? error : "");
	if (!mb_evaluable(&after->c, &after->c.run.plan)) {
		cr_expect_fail("%s has no sizes", what);
		return;
	}
	mb_evaluate(&after->c, &after->c.run.plan, e);
	cr_expect(e->verdict == MB_FITS || e->verdict == MB_AT_RISK, "%s: %s", what, mb_verdict_names[e->verdict]);
	cr_expect_float_eq(e->step_s, t->step_s, 1e-9 * e->step_s, "%s: %g s, said %g", what, e->step_s, t->step_s);
}

/* Another run with the same model and machine. */
static void vary(struct mb_query *q)
{
	static const struct { enum mb_key_id key; unsigned count; long long values[6]; } moves[] = {
		{ MB_K_mbs, 3, { 1, 2, 4 } }, { MB_K_tp, 4, { 1, 2, 4, 8 } }, { MB_K_sp, 2, { 0, 1 } }, { MB_K_pp, 4, { 1, 2, 4, 8 } },
		{ MB_K_vp, 4, { 1, 1, 2, 5 } }, { MB_K_ep, 5, { 1, 4, 8, 16, 64 } }, { MB_K_cp, 3, { 1, 1, 2 } },
		{ MB_K_recompute, 3, { MB_RECOMPUTE_NONE, MB_RECOMPUTE_SELECTIVE, MB_RECOMPUTE_SELECTIVE } },
		{ MB_K_modules, 6, { 0, MB_MOE_ACT, MB_MLP, MB_MOE | MB_LAYERNORM_MODULE, MB_CORE_ATTN, MB_MLA_UP_PROJ | MB_MOE_ACT } },
		{ MB_K_ep_overlap, 2, { 0, 1 } }, { MB_K_delay_wgrad, 4, { 0, 0, 0, 1 } }, { MB_K_shared_overlap, 2, { 0, 1 } },
		{ MB_K_dispatcher, 4, { MB_DISPATCH_ALLTOALL, MB_DISPATCH_ALLTOALL, MB_DISPATCH_FLEX, MB_DISPATCH_ALLGATHER } },
		{ MB_K_backend, 3, { MB_BACKEND_NONE, MB_BACKEND_DEEPEP, MB_BACKEND_HYBRIDEP } }, { MB_K_opt_offload, 5, { 0, 0, 0, 0, 1 } },
		{ MB_K_gpus, 5, { 8, 16, 32, 64, 256 } }, { MB_K_gbs, 3, { 64, 256, 1024 } },
	};

	for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
		union mb_value v = { .i = moves[i].values[draw(moves[i].count)] };

		if (draw(2))
			continue;
		mb_key_put(&q->c.run, &mb_keys[moves[i].key], v);
		q->set[moves[i].key] = true;
	}
	mb_case_compile(&q->c);
}

static void advise(const char *run, const struct mb_query *q, enum mb_topic topic, struct mb_evaluation *e, struct mb_arena *arena, struct tally *tally)
{
	struct mb_advice *a = mb_arena_alloc(arena, sizeof *a);

	switch (topic) {
	case MB_TOPIC_RECOMPUTE:
		mb_advise_recompute(q, 0, e, arena, a);
		break;
	case MB_TOPIC_OVERLAP:
		mb_advise_overlap(q, e, arena, a);
		break;
	case MB_TOPIC_DISPATCHER:
		mb_advise_dispatcher(q, e, arena, a);
		break;
	default:
		mb_advise_oom(q, NULL, e, arena, a);
		break;
	}
	if (a->recommended < 0)
		return;
	cr_assert(a->recommended < a->count);
	tally->recommended++;
	if (run)
		expect_holds(run, q, &a->options[a->recommended].t, mb_topic_names[topic], e, arena);
	else
		expect_holds_directly(q, &a->options[a->recommended].t, mb_topic_names[topic], e, arena);
}

static void explain(const char *run, const struct mb_query *q, struct mb_evaluation *e, struct mb_arena *arena)
{
	struct mb_explanation *x = mb_arena_alloc(arena, sizeof *x);

	mb_explain(q, NULL, e, arena, x);
	for (int i = 0; i < x->fix_count && x->fix_fits; i++)
		expect_holds(run, x->q, &x->fixes[i], "explain", e, arena);
}

/* A sanitizer makes each run some ten times dearer. */
#ifdef __SANITIZE_ADDRESS__
enum { RUNS = 1500, ENOUGH = 150 };
#else
enum { RUNS = 10000, ENOUGH = 1000 };
#endif

Test(advise_property, random_runs, .timeout = 600)
{
	struct mb_evaluation *e = mb_evaluation_new();
	struct mb_library library;
	struct mb_diags diags = { 0 };
	struct tally tally = { 0 };

	cr_assert(mb_library_open(&library, &diags));
	while (tally.runs < RUNS) {
		struct mb_arena arena = { 0 };
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
		struct mb_text text = { 0 };
		const struct mb_node *node;

		random_run(&text);
		memset(&diags, 0, sizeof diags);
		node = mb_node_read_text(text.data, text.length, "run", &arena, &diags);
		cr_assert(node && mb_query_from_node(node, &library, &arena, q, &diags), "%s\n%s", diags.item[0].text, text.data);
		advise(text.data, q, (enum mb_topic)(tally.runs++ % MB_TOPIC_COUNT), e, &arena, &tally);
		if (tally.runs % 500 == 1)
			explain(text.data, q, e, &arena);
		for (int i = 0; i < 4; i++) {
			vary(q);
			advise(NULL, q, (enum mb_topic)(tally.runs++ % MB_TOPIC_COUNT), e, &arena, &tally);
		}
		mb_text_free(&text);
		mb_arena_free(&arena);
	}
	cr_expect(tally.recommended > ENOUGH, "only %d recommendations", tally.recommended);
	mb_evaluation_free(e);
}
