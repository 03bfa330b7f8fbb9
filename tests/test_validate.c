/* Accuracy on every published run: nothing is dropped without a reason, every answer is whole, and the bars hold. */
#include "measured_fixture.h"

TestSuite(validate, .init = begin, .fini = done);

static void expect_whole(const struct mb_trial *t)
{
	const struct mb_run *run = &t->q->c.run;
	double terms = 0;

	mb_evaluate(&t->q->c, &run->plan, e);
	cr_expect(isfinite(e->step_s) && e->step_s > 0, "%s: step %g", t->row->id, e->step_s);
	cr_expect(e->low_s > 0 && e->low_s <= e->step_s && e->step_s <= e->high_s && isfinite(e->high_s), "%s: band", t->row->id);
	cr_expect(isfinite(e->peak_bytes) && e->peak_bytes > 0, "%s: peak %g", t->row->id, e->peak_bytes);
	for (int i = 0; i < MB_TIME_COUNT; i++)
		terms += e->time_terms[i];
	cr_expect(fabs(terms / e->step_s - 1) < 1e-6, "%s: terms add up to %g of %g", t->row->id, terms, e->step_s);
	for (int stage = 0; stage < run->plan.pp; stage++) {
		const struct mb_stage_memory *m = &e->stage_memory[stage];

		cr_expect(isfinite(m->peak_bytes) && m->between_bytes > 0 && m->peak_bytes >= m->between_bytes * 0.5, "%s: stage %d", t->row->id, stage);
	}
}

static bool one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words != NULL;
}

static void expect_bar(const char *by, const char *group, const char *quantity, int n, double median, double mean, double p90)
{
	const struct mb_summary *s = mb_accuracy_find(&accuracy, by, group, quantity);

	cr_assert(s != NULL, "nothing of %s %s", group, quantity);
	cr_expect_geq(s->n, n, "%s %s: only %d rows", group, quantity, s->n);
	cr_expect(s->median <= median, "%s %s: median %.3f %%, bar %.3f %%", group, quantity, 100 * s->median, 100 * median);
	cr_expect(s->mean <= mean, "%s %s: mean %.3f %%, bar %.3f %%", group, quantity, 100 * s->mean, 100 * mean);
	cr_expect(s->p90 <= p90, "%s %s: p90 %.3f %%, bar %.3f %%", group, quantity, 100 * s->p90, 100 * p90);
}

Test(validate, throughput_runs_are_accepted_and_whole, .timeout = 60)
{
	read_published("throughput.jsonl");
	cr_expect_eq(set.count, 230);
	cr_expect_eq(trials.count + trials.skipped_count, set.count);
	for (int i = 0; i < trials.skipped_count; i++)
		cr_expect(strstr(trials.skipped[i].skip, "deepseek-v4-flash") != NULL, "%s: %s", trials.skipped[i].id, trials.skipped[i].skip);
	cr_expect_eq(trials.skipped_count, 2);
	for (int i = 0; i < trials.count; i++)
		expect_whole(&trials.trials[i]);
}

/* The bars are those of the prototype that the equations come from, with 0.8 points of slack. */
Test(validate, throughput_bars, .timeout = 60)
{
	read_published("throughput.jsonl");
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_group(&accuracy);
	expect_bar("all", "all", "step_s", 228, 0.045, 0.058, 0.125);

	const struct mb_summary *s = mb_accuracy_find(&accuracy, "all", "all", "step_s");

	cr_expect(s->in_band >= 0.75 && s->in_band <= 0.885, "%.0f %% in the band", 100 * s->in_band);
	cr_expect(fabs(s->bias) <= 0.02, "bias %.1f %%", 100 * s->bias);
}

Test(validate, golden_runs_are_accepted_and_whole, .timeout = 60)
{
	static const char *const modelled[] = { "gpt", "moe", "hybrid", "nemotron", NULL };
	int refused = 0;

	read_published("golden.jsonl");
	cr_expect_eq(set.count, 430);
	cr_expect_eq(trials.count + trials.skipped_count, set.count);
	for (int i = 0; i < trials.skipped_count; i++) {
		const struct mb_measured *row = &trials.skipped[i];
		bool known = strstr(row->skip, "suspect record") || strstr(row->skip, "not modelled") || strstr(row->skip, "not known");

		cr_expect(known, "%s: %s", row->id, row->skip);
		if (!one_of(row->family, modelled)) {
			refused++;
			cr_expect(strstr(row->skip, row->family) || strstr(row->skip, "reinforcement"), "%s is not refused by its name: %s", row->id, row->skip);
		}
	}
	cr_expect_eq(refused, 50, "%d rows of other families", refused);
	for (int i = 0; i < trials.count; i++)
		expect_whole(&trials.trials[i]);
}

/*
 * Rows with a known gap are skipped by mb_trial_gap; what is left of gpt and moe has to be this close. No bar for the
 * first step's peak: compilation and autotuning spikes are in it.
 */
Test(validate, golden_bars, .timeout = 60)
{
	read_published("golden.jsonl");
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_group(&accuracy);
	expect_bar("family", "gpt", "between_steps_bytes", 260, 0.004, 0.004, 0.012);
	expect_bar("family", "moe", "between_steps_bytes", 80, 0.004, 0.004, 0.012);
	expect_bar("family", "gpt", "peak_allocated_bytes", 260, 0.004, 0.005, 0.015);
	expect_bar("family", "moe", "peak_allocated_bytes", 80, 0.004, 0.006, 0.015);
	expect_bar("family", "hybrid", "peak_allocated_bytes", 4, 0.006, 0.006, 0.01);
}

/* Graphs, FSDP and offloading: the least that each row has to reach, in percent. [the prototype's errors, rounded up] */
static const struct { const char *test; double between, first, peak; } special[] = {
	{ "resume_torch_dist_attn_cudagraph/golden_values_dev_dgx_h100", 0.5, 0.2, 0.2 },
	{ "scoped_cudagraph/golden_values_dev_dgx_h100", 1.0, 2.2, 2.0 },
	{ "scoped_cudagraph/golden_values_dev_dgx_gb200", 0.7, 1.9, 1.1 },
	{ "deepseek_proxy_fsdp_ep2_fsdp2_ep_overlap/golden_values_dev_dgx_h100", 0.1, 1.7, 0.5 },
	{ "deepseek_proxy_fsdp_ep2_fsdp2/golden_values_dev_dgx_gb200", 2.9, 1.7, 2.5 },
	{ "no_mtp_no_a2a_ovlp_fine_grained_offloading/golden_values_dev_dgx_h100", 0.1, 0.8, 2.6 },
	{ "etp1_fine_grained_offloading/golden_values_dev_dgx_h100", 0.8, 1.3, 3.7 },
	{ "etp1_fine_grained_offloading/golden_values_dev_dgx_gb200", 0.8, 1.3, 3.2 },
};

static void expect_within(const struct mb_trial *t, enum mb_measure m, double percent)
{
	double error = 100 * (mb_trial_predicted(t, e, m) / t->row->value[m] - 1);

	cr_expect(fabs(error) <= percent, "%s %s: %.2f %%, at most %.2f %%", t->row->id, mb_measure_rows[m].label, error, percent);
}

Test(validate, graph_fsdp_and_offload_rows, .timeout = 60)
{
	size_t found = 0;

	read_published("golden.jsonl");
	for (int i = 0; i < trials.count; i++) {
		for (size_t k = 0; k < sizeof special / sizeof special[0]; k++) {
			const struct mb_trial *t = &trials.trials[i];

			if (!strstr(t->row->id, special[k].test))
				continue;
			mb_evaluate(&t->q->c, &t->q->c.run.plan, e);
			expect_within(t, MB_M_BETWEEN, special[k].between);
			expect_within(t, MB_M_FIRST_PEAK, special[k].first);
			expect_within(t, MB_M_PEAK, special[k].peak);
			found++;
		}
	}
	cr_expect_eq(found, sizeof special / sizeof special[0]);
}

/* Rows outside of a gap must not hide behind it: few are excluded. */
Test(validate, few_golden_rows_are_gaps, .timeout = 60)
{
	int gaps = 0;

	read_published("golden.jsonl");
	for (int i = 0; i < trials.skipped_count; i++)
		gaps += strstr(trials.skipped[i].skip, "family") == NULL;
	cr_expect_leq(gaps, 18, "%d rows of modelled families are left out", gaps);
}

Test(validate, a_run_predicts_better_than_its_share_of_peak, .timeout = 60)
{
	static const char *const baselines[] = { "constant MFU per model", "constant MFU per GPU and precision", "same model on another GPU, by peak" };

	read_published("throughput.jsonl");
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_group(&accuracy);
	mb_accuracy_baselines(&trials, &accuracy);
	const struct mb_summary *own = mb_accuracy_find(&accuracy, "all", "all", "step_s");

	for (size_t i = 0; i < sizeof baselines / sizeof baselines[0]; i++) {
		const struct mb_summary *s = mb_accuracy_find(&accuracy, "baseline", baselines[i], "step_s");

		cr_assert(s != NULL, "%s", baselines[i]);
		cr_expect_gt(s->n, 200, "%s", baselines[i]);
		cr_expect(s->mean > 2 * own->mean, "%s: %.1f %% against %.1f %%", baselines[i], 100 * s->mean, 100 * own->mean);
	}
}

/* What varies within a study is predicted better than the levels, whose settings are half unknown. */
Test(validate, studies, .timeout = 60)
{
	read_published("ab.jsonl");
	cr_expect_eq(set.count, 91);
	cr_expect_eq(trials.count + trials.skipped_count, set.count);
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_group(&accuracy);
	expect_bar("all", "all", "step_ratio", 14, 0.03, 0.04, 0.1);
	expect_bar("all", "all", "peak_allocated_bytes", 8, 0.02, 0.02, 0.03);
}

/* The control and core_attn peak in the loss, above four others that the optimizer step holds at one level. */
Test(validate, moonlight_peaks, .timeout = 60)
{
	int n = 0;

	read_published("ab.jsonl");
	for (int i = 0; i < trials.count; i++) {
		const struct mb_trial *t = &trials.trials[i];
		const char *variant = strchr(t->row->id, '/');
		bool control;

		if (strncmp(t->row->id, "moonlight-recompute-h100/", 25) != 0)
			continue;
		control = strcmp(variant, "/none") == 0 || strcmp(variant, "/core_attn") == 0;
		mb_evaluate(&t->q->c, &t->q->c.run.plan, e);
		cr_expect(fabs(e->peak_bytes / t->row->value[MB_M_PEAK] - 1) <= 0.015, "%s: %.4g", t->row->id, e->peak_bytes);
		cr_expect_eq(e->stage_memory[0].phase, control ? MB_PHASE_LOSS : MB_PHASE_OPTIMIZER, "%s", t->row->id);
		n++;
	}
	cr_expect_eq(n, 6);
}

/* Every run whose memory SimuMax measured on B200, row by row: none is left out. */
Test(validate, simumax_b200_peaks, .timeout = 60)
{
	int n = 0;

	read_published("other.jsonl");
	mb_accuracy_score(&trials, e, &accuracy);
	for (int i = 0; i < accuracy.score_count; i++) {
		const struct mb_outcome *s = &accuracy.scores[i];

		if (strcmp(s->trial->row->source, "SimuMax B200") != 0 || strcmp(s->quantity, "peak_allocated_bytes") != 0)
			continue;
		cr_expect(fabs(s->error_frac) <= 0.003, "%s: %.2f %%", s->trial->row->id, 100 * s->error_frac);
		n++;
	}
	cr_expect_eq(n, 19, "%d rows have a peak of their own", n);
}

Test(validate, other_sources, .timeout = 60)
{
	read_published("other.jsonl");
	cr_expect_eq(trials.count + trials.skipped_count, set.count);
	cr_expect_gt(trials.count, 400);
	for (int i = 0; i < trials.skipped_count; i++)
		cr_expect(strstr(trials.skipped[i].skip, "cannot be read") == NULL && strstr(trials.skipped[i].skip, "unknown") == NULL,
		          "%s: %s", trials.skipped[i].id, trials.skipped[i].skip);
	for (int i = 0; i < trials.count; i++)
		expect_whole(&trials.trials[i]);
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_group(&accuracy);
	expect_bar("source", "SimuMax B200", "peak_allocated_bytes", 19, 0.0005, 0.0005, 0.001);
	expect_bar("source", "Korthikanti 2022", "step_s", 10, 0.06, 0.07, 0.13);
	expect_bar("source", "MLPerf Training", "step_s", 90, 0.07, 0.09, 0.2);
	expect_bar("all", "all", "step_s", 400, 0.08, 0.12, 0.25);
}

/* Layouts of one workload, in all files together: at least nine pairs in ten in the measured order. */
Test(validate, layouts_in_order, .timeout = 60)
{
	read_published("throughput.jsonl");
	read_published("other.jsonl");
	read_published("ab.jsonl");
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_order(&accuracy);
	cr_expect_geq(accuracy.pair_count, 50);
	cr_expect(accuracy.pairs_right >= 0.9 * accuracy.pair_count, "%d of %d", accuracy.pairs_right, accuracy.pair_count);
	for (int i = 0; i < accuracy.pair_count; i++)
		cr_expect(fabs(log(accuracy.pairs[i].measured)) > log(1.05), "%s", accuracy.pairs[i].first->trial->row->id);
}

/* Every pair that varies one setting: its direction where it was measured, no effect where none was. */
Test(validate, variants_go_the_right_way, .timeout = 60)
{
	read_published("ab.jsonl");
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_studies(&accuracy);
	cr_expect_geq(accuracy.study_count, 20);
	for (int i = 0; i < accuracy.study_count; i++) {
		const struct mb_pair *p = &accuracy.studies[i];

		cr_expect(p->right, "%s against %s: measured %.3f, predicted %.3f", p->first->trial->row->id, p->second->trial->row->id, p->measured,
		          p->predicted);
	}
	cr_expect(accuracy.studies_close >= 0.8 * accuracy.study_count, "%d of %d within 10 %%", accuracy.studies_close, accuracy.study_count);
}
