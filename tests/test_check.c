#include <stdio.h>

#include "rule_rows.h"

/* "key=value key=value" in the short words of keys.def's names. */
static const char *fix_text(const struct mb_query *q, const struct mb_fix *fix)
{
	static char text[512];
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < fix->count; i++) {
		struct mb_run run = q->c.run;
		const struct mb_key *key = &mb_keys[fix->key[i]];
		char value[128];

		mb_key_put(&run, key, fix->value[i]);
		mb_key_format(&q->c, &run, key, value, sizeof value);
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", i == 0 ? "" : " ", key->name, value);
	}
	return text;
}

static void apply(struct mb_query *q, const struct mb_fix *fix)
{
	for (int i = 0; i < fix->count; i++)
		mb_apply_change(&q->c, q, fix->key[i], fix->value[i]);
}

static const struct mb_violation *find(const struct mb_violation *list, int count, const char *id)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(list[i].rule->id, id) == 0)
			return &list[i];
	}
	return NULL;
}

#define FULL_1 "recompute=full method=uniform recompute_layers=1"

/* What people ask: the rule, where it points, words that must be there, the fix and the other choice. */
static const struct question {
	const char *name;
	void (*fixture)(struct mb_case *);
	void (*tweak)(struct mb_case *);
	const char *settings, *rule;
	enum mb_key_id at;
	const char *words, *fix, *alternative;
} questions[] = {
	{ "moe recompute with EP overlap", fixture_mla, NULL, "ep_overlap=true recompute=selective modules=mla_up_proj+moe", "EP6", MB_K_modules,
	  "recomputing 'moe' replays dispatch and combine", "recompute_modules=[mla_up_proj]", "overlap_moe_expert_parallel_comm=false" },
	{ "full recompute with EP overlap", fixture_moe, NULL, "ep_overlap=true " FULL_1, "EP6", MB_K_recompute,
	  "full recompute replays dispatch", "overlap_moe_expert_parallel_comm=false", "recompute_granularity=null recompute_method=null recompute_num_layers=null" },
	{ "full recompute, overlap and delay", fixture_moe, NULL, "ep_overlap=true delay_wgrad=true " FULL_1, "EP6", MB_K_recompute,
	  "full recompute", "overlap_moe_expert_parallel_comm=false delay_wgrad_compute=false", "recompute_granularity=null recompute_method=null recompute_num_layers=null" },
	{ "full recompute with scoped graphs", fixture_dense, NULL, "graph_impl=transformer_engine graph_scope=attn " FULL_1, "R16", MB_K_recompute,
	  "graphs of single modules", "cuda_graph_impl=none cuda_graph_scope=[]", "recompute_granularity=null recompute_method=null recompute_num_layers=null" },
	{ "shared experts recomputed and overlapped", fixture_mla, NULL, "shared_overlap=true recompute=selective modules=shared_experts+mlp", "R13", MB_K_modules,
	  "moe_shared_expert_overlap runs them", "recompute_modules=[mlp]", "moe_shared_expert_overlap=false" },
	{ "cpu_offloading with recompute", fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=10 recompute=selective modules=mlp", "R23", MB_K_cpu_offloading,
	  "Megatron takes one of the two", "recompute_granularity=null recompute_modules=[]", "cpu_offloading=false cpu_offloading_num_layers=0" },
	{ "cpu_offloading with a pipeline", fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=10 pp=4", "O1", MB_K_cpu_offloading,
	  "needs PP 1, not 4", "cpu_offloading=false cpu_offloading_num_layers=0", "" },
	{ "two MTP layers with overlap", fixture_mla, NULL, "ep_overlap=true mtp=2", "EP8", MB_K_mtp,
	  "mtp_num_layers is 2", "overlap_moe_expert_parallel_comm=false", "" },
	{ "delay_wgrad without overlap", fixture_moe, NULL, "delay_wgrad=true", "EP12", MB_K_delay_wgrad,
	  "without overlap_moe_expert_parallel_comm", "delay_wgrad_compute=false", "overlap_moe_expert_parallel_comm=true" },
	{ "overlap with a pipeline, no virtual stages", fixture_moe, NULL, "ep_overlap=true pp=4", "EP5", MB_K_ep_overlap,
	  "with pipeline 4", "virtual_pipeline_model_parallel_size=2", "" },
	{ "backend set, dispatcher alltoall", fixture_moe, NULL, "dispatcher=alltoall backend=hybridep", "M3", MB_K_backend,
	  "has no effect while moe_token_dispatcher_type is alltoall", "moe_token_dispatcher_type=flex", "" },
	{ "DeepEP set by alltoall on GB200", fixture_moe, gb200, "dispatcher=alltoall backend=deepep", "M3", MB_K_backend,
	  "has no effect", "moe_flex_dispatcher_backend=null", "" },
	{ "DeepEP on GB200", fixture_moe, gb200, "dispatcher=flex backend=deepep", "M4", MB_K_backend,
	  "no kernels for NVIDIA GB200", "moe_flex_dispatcher_backend=hybridep", "moe_token_dispatcher_type=alltoall moe_flex_dispatcher_backend=null" },
	{ "delayed scaling with moe_act", fixture_moe, NULL, "precision=fp8_ds recompute=selective modules=moe_act+moe", "R14", MB_K_modules,
	  "delayed scaling cannot recompute 'moe_act'", "recompute_modules=[moe]", "" },
	{ "both overlaps", fixture_mla, NULL, "ep_overlap=true shared_overlap=true", "EP7", MB_K_shared_overlap,
	  "both hide dispatch and combine", "moe_shared_expert_overlap=false", "overlap_moe_expert_parallel_comm=false" },
	{ "MoE with TP, no SP", fixture_moe, NULL, "tp=2", "T2", MB_K_tp, "without sequence parallelism", "sequence_parallel=true", "" },
	{ "61 layers on 4 stages", fixture_mla, NULL, "pp=4", "W10", MB_K_pp, "PP 4 does not divide 61 layers", "num_layers_in_last_pipeline_stage=13", "" },
	{ "EP 12 of 128 experts", fixture_moe, NULL, "ep=12 gpus=96 gbs=96", "W7", MB_K_ep, "EP 12 does not divide 128", "expert_model_parallel_size=16", "" },
	{ "more ranks than GPUs", fixture_moe, NULL, "ep=64 pp=2", "W2", MB_K_ep, "ETP 1 x EP 64 x PP 2 = 128", "expert_model_parallel_size=32", "" },
	{ "batch that does not divide", fixture_dense, NULL, "gbs=100 tp=8", "W4", MB_K_gbs, "not a multiple of MBS 1 x DP 8", "pipeline_model_parallel_size=2", "" },
	{ "hybrid with virtual stages", fixture_hybrid, NULL, "pp=2 vp=2", "P10", MB_K_vp, "hybrid", "virtual_pipeline_model_parallel_size=1", "" },
	{ "full recompute, nothing else said", fixture_dense, NULL, "recompute=full", "R2", MB_K_recompute, "say uniform", "recompute_method=uniform recompute_num_layers=1", "" },
	{ "core_attn of fused attention", fixture_dense, NULL, "recompute=selective modules=core_attn+mlp", "R12", MB_K_modules, "pointless", "recompute_modules=[mlp]", "" },
	{ "modules without granularity", fixture_moe, NULL, "modules=moe_act", "R5", MB_K_modules, "no effect", "recompute_granularity=selective", "" },
	{ "TP overlap without SP", fixture_dense, NULL, "tp=2 tp_overlap=true", "T3", MB_K_tp_overlap, "switched off", "sequence_parallel=true", "" },
	{ "dropless MoE in a graph", fixture_moe, NULL, "graph_impl=transformer_engine graph_scope=moe", "G5", MB_K_graph_scope, "dropless", "cuda_graph_scope=[moe_router]", "" },
};

Test(check, answers_what_people_ask)
{
	static struct mb_query q;
	static struct mb_violation list[MB_MAX_VIOLATIONS];

	for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
		const struct question *ask = &questions[i];
		const struct mb_violation *v;

		memset(&q, 0, sizeof q);
		build(&q.c, ask->fixture, ask->tweak, "");
		cr_assert(fixture_settings(&q.c, &q, ask->settings));
		v = find(list, mb_check(&q, &q.c.run.plan, list), ask->rule);
		cr_expect(v != NULL, "%s: %s is not reported", ask->name, ask->rule);
		if (v == NULL)
			continue;
		cr_expect(v->key_count > 0 && v->keys[0] == ask->at && v->pos.line == (int)ask->at + 1, "%s: points at %s, line %d", ask->name,
		          mb_keys[v->keys[0]].name, v->pos.line);
		cr_expect(strstr(v->message, ask->words) != NULL, "%s: '%s'", ask->name, v->message);
		cr_expect_str_eq(fix_text(&q, &v->fix), ask->fix, "%s: fix '%s'", ask->name, fix_text(&q, &v->fix));
		cr_expect_str_eq(fix_text(&q, &v->alternative), ask->alternative, "%s: or '%s'", ask->name, fix_text(&q, &v->alternative));
	}
}

/* Every fix mends its rule and brings no new error; nearly every rule that plan keys can mend has one. */
Test(check, fixes_mend)
{
	static struct mb_query q, after;
	static struct mb_violation list[MB_MAX_VIOLATIONS];
	int without = 0;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct mb_broken before, now;
		int count;

		memset(&q, 0, sizeof q);
		build(&q.c, rows[i].fixture, rows[i].tweak, "");
		cr_assert(fixture_settings(&q.c, &q, rows[i].broken));
		mb_find_broken(&q.c, &q.c.run.plan, &before);
		count = mb_check(&q, &q.c.run.plan, list);
		for (int j = 0; j < count; j++) {
			const struct mb_fix *fixes[] = { &list[j].fix, &list[j].alternative };

			if (list[j].rule == &mb_rules[rows[i].rule] && list[j].fix.count == 0 && list[j].rule->keys[0] != '\0') {
				without++;
				cr_log_info("%s: no fix", rows[i].name);
			}
			for (int k = 0; k < 2; k++) {
				if (fixes[k]->count == 0)
					continue;
				after = q;
				apply(&after, fixes[k]);
				cr_expect(list[j].rule->holds(&after.c, &after.c.run.plan), "%s: '%s' does not mend %s", rows[i].name,
				          fix_text(&q, fixes[k]), list[j].rule->id);
				mb_find_broken(&after.c, &after.c.run.plan, &now);
				for (int r = 0; r < mb_rule_count; r++)
					cr_expect(mb_rules[r].severity != MB_RULE_ERROR || mb_is_broken(&before, r) || !mb_is_broken(&now, r),
					          "%s: '%s' breaks %s", rows[i].name, fix_text(&q, fixes[k]), mb_rules[r].id);
			}
		}
	}
	cr_expect(without <= 4, "%d runs have no fix", without);
}

Test(check, messages_fit_and_are_filled)
{
	static struct mb_query q;
	static struct mb_violation list[MB_MAX_VIOLATIONS];

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int count;

		memset(&q, 0, sizeof q);
		build(&q.c, rows[i].fixture, rows[i].tweak, "");
		cr_assert(fixture_settings(&q.c, &q, rows[i].broken));
		count = mb_check(&q, &q.c.run.plan, list);
		cr_expect(count > 0);
		for (int j = 0; j < count; j++) {
			size_t length = strlen(list[j].message);

			cr_expect(length > 10 && length < sizeof list[j].message - 1, "%s: %zu characters", list[j].rule->id, length);
			cr_expect(strpbrk(list[j].message, "{}") == NULL, "%s: '%s'", list[j].rule->id, list[j].message);
			cr_expect(list[j].message[length - 1] != '.');
			cr_expect(j == 0 || list[j - 1].rule->severity <= list[j].rule->severity, "%s: not worst first", rows[i].name);
		}
	}
}

/* Defaults that do nothing are nobody's mistake. */
Test(check, silent_about_what_was_not_said)
{
	static struct mb_query q;
	static struct mb_violation list[MB_MAX_VIOLATIONS];

	memset(&q, 0, sizeof q);
	build(&q.c, fixture_moe, NULL, "backend=hybridep router_dtype=bf16");
	cr_expect(mb_check(&q, &q.c.run.plan, list) == 0);
	cr_assert(fixture_settings(&q.c, &q, "backend=hybridep"));
	cr_expect(mb_check(&q, &q.c.run.plan, list) == 1);
}

Test(check, combined_fix)
{
	static const struct {
		void (*fixture)(struct mb_case *);
		const char *settings, *fix;
		bool legal;
	} cases[] = {
		{ fixture_moe, "ep_overlap=true pp=4 recompute=selective modules=moe_act+moe backend=hybridep",
		  "virtual_pipeline_model_parallel_size=2 recompute_modules=[moe_act] moe_token_dispatcher_type=flex", true },
		{ fixture_dense, "tp=8 sp=true", "", true },
		{ fixture_moe, "dispatcher=alltoall backend=hybridep", "moe_token_dispatcher_type=flex", true },
		{ fixture_dense, "precision=fp8_mx", "precision=fp8_sc", true },
	};
	static struct mb_query q;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct mb_fix fix;

		memset(&q, 0, sizeof q);
		build(&q.c, cases[i].fixture, NULL, "");
		cr_assert(fixture_settings(&q.c, &q, cases[i].settings));
		cr_expect(mb_combined_fix(&q, &q.c.run.plan, &fix, 4) == cases[i].legal, "%s", cases[i].settings);
		cr_expect_str_eq(fix_text(&q, &fix), cases[i].fix, "%s: '%s'", cases[i].settings, fix_text(&q, &fix));
	}
}

/* No fix: say so, do not invent one. */
Test(check, no_fix_where_there_is_none)
{
	static struct mb_query q;
	static struct mb_violation list[MB_MAX_VIOLATIONS];
	struct mb_fix fix;

	memset(&q, 0, sizeof q);
	build(&q.c, fixture_mla, bad_groups, "");
	cr_assert(mb_check(&q, &q.c.run.plan, list) == 1);
	cr_expect_str_eq(list[0].rule->id, "M15");
	cr_expect(list[0].fix.count == 0);
	cr_expect(!mb_combined_fix(&q, &q.c.run.plan, &fix, 4));
}
