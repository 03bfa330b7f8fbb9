/* The forms of rows, the reasons for leaving one out, and the arithmetic of summaries. */
#include "expect.h"
#include "measured_fixture.h"

TestSuite(validate_rows, .init = begin, .fini = done);

#define TINY "model: {name: tiny, num_layers: 2, hidden_size: 512, num_attention_heads: 8, vocab_size: 1000, " \
	"position_embedding_type: rope}, hardware: dgx-h100, gpus: 8, seq: 4096, gbs: 8"

Test(validate_rows, a_run_with_what_was_measured)
{
	read_row("{id: x, source: lab, run: {" TINY "}, measured: {step_s: 1.5, peak_allocated_bytes: 2e9}}");
	cr_assert_eq(trials.count, 1);
	cr_expect_str_eq(trials.trials[0].row->id, "x");
	expect_rel(trials.trials[0].measured_s, 1.5, 1e-12, "step");
	expect_rel(trials.trials[0].row->value[MB_M_PEAK], 2e9, 1e-12, "peak");
	cr_expect(isnan(trials.trials[0].row->value[MB_M_BETWEEN]));
	cr_expect(trials.trials[0].row->configured);
	expect_rel(trials.trials[0].tokens_per_s, 8 * 4096 / 8 / 1.5, 1e-12, "rate");
}

static const struct { const char *name, *row, *reason; } refusals[] = {
	{ "a number",        "{id: a}", "it has no 'measured'" },
	{ "unknown model",   "{id: a, run: {model: no-such, hardware: dgx-h100, gpus: 8, seq: 1, gbs: 8}, measured: {step_s: 1}}", "unknown model" },
	{ "unknown key",     "{id: a, run: {" TINY ", tpp: 2}, measured: {step_s: 1}}", "unknown key 'tpp', did you mean '" },
	{ "does not divide", "{id: a, run: {" TINY ", tp: 3}, measured: {step_s: 1}}", "sizes do not fit" },
	{ "another family",  "{id: a, family: t5, hardware: dgx-h100, gpus: 8, stack: mlm-dev-2026-05, megatron_args: {--num-layers: 2}, "
	                     "measured: {peak_allocated_bytes: 1e9}}", "t5" },
	{ "other framework", "{id: torchtitan/1, kind: end_to_end, num_gpus: 8}", "another framework" },
	{ "one layer",       "{id: mlm-moe-perf/1, kind: layer, num_gpus: 1}", "one layer" },
	{ "no batch",        "{id: other/1, kind: end_to_end, num_gpus: 8, gpu: H100, precision: bf16, model: m, "
	                     "arch: {family: llama3, layers: 2, hidden: 512, heads: 8, vocab: 1000}}", "parallel sizes or batch" },
	{ "no such GPU",     "{id: other/1, kind: end_to_end, num_gpus: 8, gpu: TPU}", "GPU is not described" },
	{ "a rule of thumb", "{id: s/1, study: s, kind: rule of thumb, fixed: {}, varied: {}}", "not a measured run" },
};

Test(validate_rows, refused_with_a_reason)
{
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		set.count = 0;
		read_row(refusals[i].row);
		cr_assert_eq(trials.skipped_count, 1, "%s is not refused", refusals[i].name);
		cr_expect(strstr(trials.skipped[0].skip, refusals[i].reason), "%s: '%s'", refusals[i].name, trials.skipped[0].skip);
	}
}

#define COLUMNS "{id: other/1, kind: end_to_end, model: m, arch: {family: llama3, layers: 4, hidden: 1024, heads: 8, kv_heads: 2, " \
	"ffn: 4096, vocab: 32000}, gpu: H100, num_gpus: 16, precision: bf16, gbs: 32, mbs: 1, seq: 2048, tp: 2, pp: 2, vp: 2, cp: 1"

Test(validate_rows, columns_become_a_run)
{
	read_row(COLUMNS ", recompute: {granularity: selective, modules: mlp layernorm}, step_time_s: 0.5}");
	cr_assert_eq(trials.count, 1, "%s", trials.skipped[0].skip);
	const struct mb_case *c = &trials.trials[0].q->c;

	cr_expect_eq(c->run.gpus, 16);
	cr_expect_eq(c->run.plan.tp, 2);
	cr_expect_eq(c->run.plan.vp, 2);
	cr_expect(c->run.plan.sequence_parallel);
	cr_expect_eq(c->run.plan.recompute_modules, (unsigned)(MB_MLP | MB_LAYERNORM_MODULE));
	cr_expect_eq(c->model.num_query_groups, 2);
	cr_expect(c->model.gated_linear_unit);
	cr_expect_not(trials.trials[0].row->configured);
}

Test(validate_rows, rates_become_seconds)
{
	read_row(COLUMNS ", tokens_per_s_per_gpu: 8192}");
	expect_rel(trials.trials[0].measured_s, 32.0 * 2048 / 16 / 8192, 1e-12, "tokens");
	set.count = 0;
	read_row(COLUMNS ", tflops_per_gpu: 400}");
	expect_rel(trials.trials[0].measured_s, trials.trials[0].model_flops * 32 * 2048 / 16 / 400e12, 1e-12, "TFLOP/s");
}

#define SIMUMAX "{id: simumax-b200/a_mbc8, kind: end_to_end, model: m, arch: {family: llama3, layers: 4, hidden: 1024, heads: 8, " \
	"kv_heads: 8, ffn: 4096, vocab: 32000}, gpu: B200-SXM, num_gpus: 8, precision: bf16, gbs: 32, mbs: 1, seq: 2048, tp: 2, pp: 1, " \
	"cp: 4, step_time_s: 0.5, peak_mem: 2.44, peak_mem_unit: GiB, peak_mem_definition: 'torch max_allocated, max over ranks', other_settings: "

Test(validate_rows, ranks_and_context_parallelism_of_simumax)
{
	read_row(SIMUMAX "{cp_comm: a2a, memory_source_case: a_mbc8, allocated_mb_by_rank: {'0': 2500.5, '1': 2501.25}}}");
	cr_assert_eq(trials.count, 1, "%s", trials.skipped[0].skip);
	cr_expect_eq(trials.trials[0].q->c.run.plan.cp_comm_type, MB_CP_A2A);
	cr_expect_eq(trials.trials[0].q->c.model.vocab_size, 32001);
	expect_rel(trials.trials[0].row->value[MB_M_PEAK], 2501.25 * 1048576, 1e-12, "the fullest rank");
	set.count = 0;
	read_row(SIMUMAX "{cp_comm: null}}");
	expect_rel(trials.trials[0].row->value[MB_M_PEAK], 2.44 * 1073741824, 1e-12, "as published");
	cr_expect_eq(trials.trials[0].q->c.run.plan.cp_comm_type, MB_CP_P2P);
}

/* Memory of a run with more micro-batches was copied from the run with four. */
Test(validate_rows, copied_figures_count_once)
{
	read_row(SIMUMAX "{memory_source_case: a_mbc4, allocated_mb_by_rank: {'0': 2500.5}}}");
	cr_assert_eq(trials.count, 1, "%s", trials.skipped[0].skip);
	cr_expect(isnan(trials.trials[0].row->value[MB_M_PEAK]));
	expect_rel(trials.trials[0].measured_s, 0.5, 1e-12, "the time is its own");
}

/*
 * F = 96 B s l h^2 (1 + s/(6h) + V/(16 l h)) of the papers of 2021 [Narayanan et al. 2021, equation 3], for GPT-3 175B.
 */
Test(validate_rows, papers_count_recompute)
{
	read_row("{id: narayanan-t1/x, kind: end_to_end, model: GPT, arch: {family: gpt, layers: 96, hidden: 12288, heads: 96, ffn: 49152, vocab: 51200}, "
	         "gpu: A100-80GB, num_gpus: 1024, precision: fp16, gbs: 1536, mbs: 1, seq: 2048, tp: 8, sp: false, pp: 16, cp: 1, "
	         "recompute: {granularity: full}, tflops_per_gpu: 140}");
	cr_assert_eq(trials.count, 1, "%s", trials.skipped[0].skip);
	double s = 2048, l = 96, h = 12288, v = 51200, f = 96 * 1536 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));

	expect_rel(trials.trials[0].measured_s, f / 1024 / 140e12, 2e-3, "seconds by equation 3");
}

Test(validate_rows, comma_separated)
{
	static const char text[] = "id,model,hardware,gpus,seq,gbs,tp,recompute_modules,recompute_granularity,step_s\r\n"
		"\"a, b\",llama3-8b,dgx-h100,8,8192,128,2,\"[mlp, layernorm]\",selective,9.5\n\n"
		"c,llama3-8b,dgx-h100,8,8192,128,1,,,10\n";

	cr_assert(mb_measured_csv(text, "t.csv", &set, &diags), "%s", diags.item[0].text);
	mb_trials_fill(&set, &library, e, &trials);
	cr_assert_eq(trials.count, 2, "%s", trials.skipped[0].skip);
	cr_expect_str_eq(trials.trials[0].row->id, "a, b");
	cr_expect_eq(trials.trials[0].q->c.run.plan.recompute_modules, (unsigned)(MB_MLP | MB_LAYERNORM_MODULE));
	expect_rel(trials.trials[1].measured_s, 10, 1e-12, "step");
}

static const struct { const char *text, *says; } broken[] = {
	{ "id,step_s\na,-1\n", "positive" },
	{ "id,step_s\na,1,2\n", "3 fields under a heading of 2" },
	{ "id,step_s\na,fast\n", "positive" },
	{ "id,step_s\na,\"1\n", "positive" },
};

Test(validate_rows, broken_tables)
{
	for (size_t i = 0; i < 3; i++) {
		memset(&diags, 0, sizeof diags);
		cr_expect_not(mb_measured_csv(broken[i].text, "t.csv", &set, &diags), "%s", broken[i].text);
		cr_expect(strstr(diags.item[0].text, broken[i].says), "%s", diags.item[0].text);
		cr_expect_eq(diags.item[0].pos.line, 2);
	}
	mb_measured_csv(broken[3].text, "t.csv", &set, &diags);
}

Test(validate_rows, summaries)
{
	double errors[] = { -0.1, 0.02, 0.03, -0.04, 0.5, 0.0, 0.01, 0.06, 0.07, 0.08 };
	struct mb_summary s = mb_summarise(errors, 10, 7);

	expect_rel(s.median, 0.05, 1e-12, "median of the sizes");
	expect_rel(s.mean, 0.091, 1e-12, "mean of the sizes");
	expect_rel(s.p90, 0.1, 1e-12, "p90");
	expect_rel(s.max, 0.5, 1e-12, "max");
	expect_rel(s.bias, 0.063, 1e-12, "bias keeps the sign");
	expect_rel(s.in_band, 0.7, 1e-12, "band");
	cr_expect_eq(mb_summarise(errors, 0, -1).n, 0);
}

#define LAYOUT(id, layout, seconds) "{id: " id ", source: lab, run: {" TINY ", " layout "}, measured: {step_s: " seconds "}}"

/* Same workload and source, another layout, more than 5 % apart: two pairs of the four rows. */
Test(validate_rows, pairs_of_layouts)
{
	read_row(LAYOUT("a", "tp: 1", "1.0"));
	read_row(LAYOUT("b", "tp: 2, sequence_parallel: true", "1.04"));
	read_row(LAYOUT("c", "tp: 4, sequence_parallel: true", "0.5"));
	read_row("{id: d, source: elsewhere, run: {" TINY ", tp: 8, sequence_parallel: true}, measured: {step_s: 3}}");
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_order(&accuracy);
	cr_assert_eq(accuracy.pair_count, 2, "%d pairs", accuracy.pair_count);
	cr_expect_str_eq(accuracy.pairs[0].first->trial->row->id, "a");
	cr_expect_str_eq(accuracy.pairs[0].second->trial->row->id, "c");
	cr_expect_str_eq(accuracy.pairs[1].first->trial->row->id, "b");
	expect_rel(accuracy.pairs[0].measured, 0.5, 1e-12, "ratio");
	cr_expect_eq(accuracy.pairs[0].right, accuracy.pairs[0].predicted < 1);
	cr_expect_eq(accuracy.pairs_right, accuracy.pairs[0].right + accuracy.pairs[1].right);
}

#define VARIANT(id, varied, ms) "{id: s/" id ", study: s, fixed: {model: qwen3_30b_a3b, gpu: h100, num_gpus: 16, seq: 4096, gbs: 64, mbs: 1, " \
	"tp: 1, pp: 1, ep: 8, recompute_granularity: selective}, varied: {" varied "}, step_time_ms: " ms "}"

/* Against the first variant always, against each other where one entry differs. */
Test(validate_rows, pairs_of_variants)
{
	read_row(VARIANT("none", "recompute_modules: []", "1000"));
	read_row(VARIANT("act", "recompute_modules: [moe_act]", "1030"));
	read_row(VARIANT("both", "recompute_modules: [moe_act, layernorm]", "900"));
	read_row(VARIANT("core", "recompute_modules: [core_attn]", "1010"));
	cr_assert_eq(trials.count, 4, "%s", trials.skipped[0].skip);
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_studies(&accuracy);
	cr_assert_eq(accuracy.study_count, 4, "%d pairs", accuracy.study_count);
	cr_expect_str_eq(accuracy.studies[3].first->trial->row->id, "s/act");
	cr_expect_str_eq(accuracy.studies[3].second->trial->row->id, "s/both");
	cr_expect(accuracy.studies[0].right, "recompute costs time");
	cr_expect_not(accuracy.studies[1].right, "a step that got faster by recompute is not predicted");
}
