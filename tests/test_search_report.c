/* What a search report lists, folds and recommends; the plans are made up, so that no cost model is needed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "report/search_report.h"

enum { PLANS = 6 };

static struct mb_query query;
static struct mb_ranked plans[PLANS], front[3];
static struct mb_search_result result;
static struct mb_search_report report;

static struct mb_ranked plan(int tp, double step_s, double peak_gib, enum mb_verdict verdict)
{
	struct mb_ranked p = {
		.gpus = 16, .verdict = verdict, .step_s = step_s, .low_s = step_s * 0.9, .high_s = step_s * 1.1
	};

	p.plan = (struct mb_plan){
		.tp = tp, .pp = 1, .cp = 1, .vp = 1, .ep = 1, .etp = 1, .micro_batch_size = 1, .layout = -1
	};
	p.tokens_per_s_per_gpu = 1000;
	p.peak_bytes = peak_gib * 1073741824.0;
	p.device_used_bytes = p.peak_bytes;
	p.margin_bytes = 80 * 1073741824.0 - p.peak_bytes;
	return p;
}

static void setup(void)
{
	memset(&query, 0, sizeof query);
	strcpy(query.c.model.name, "toy");
	strcpy(query.c.hardware.name, "box");
	strcpy(query.c.stack.name, "nemo-26.08");
	query.c.run.gpus = 16;
	query.c.domain = 8;
	query.c.hardware.usable_bytes = 80LL << 30;
	plans[0] = plan(1, 10.0, 79, MB_AT_RISK);
	plans[1] = plan(1, 10.05, 78.9, MB_AT_RISK);
	plans[2] = plan(2, 11.0, 70, MB_FITS);
	plans[3] = plan(2, 11.01, 70.2, MB_FITS);
	plans[4] = plan(4, 12.0, 60, MB_FITS);
	plans[5] = plan(8, 13.0, 50, MB_FITS);
	front[0] = plans[0];
	front[1] = plans[2];
	front[2] = plans[4];
	result = (struct mb_search_result){ .top = plans,
		                            .top_count = PLANS,
		                            .front = front,
		                            .front_count = 3,
		                            .knee = 1,
		                            .recommended = 2,
		                            .plans_considered = 100,
		                            .plans_evaluated = 10,
		                            .threads = 1 };
	result.pruned[0] = (struct mb_prune_row){ "W1", 60 };
	result.pruned[1] = (struct mb_prune_row){ "memory_bound", 20 };
	result.pruned[2] = (struct mb_prune_row){ "time_bound", 10 };
	result.pruned_count = 3;
	report = (struct mb_search_report){ .q = &query, .r = &result, .args = "run.yaml", .top = 10 };
}

TestSuite(search_report, .init = setup);

Test(search_report, near_copies_are_folded_and_keep_true_ranks)
{
	static const int want[] = { 0, 2, 4, 5 };
	int shown[MB_MAX_SHOWN], count = mb_search_shown(&report, shown);

	cr_assert_eq(count, 4);
	for (int i = 0; i < count; i++)
		cr_expect_eq(shown[i], want[i]);
	report.flat = true;
	cr_expect_eq(mb_search_shown(&report, shown), PLANS);
}

Test(search_report, the_recommended_plan_is_always_listed)
{
	int shown[MB_MAX_SHOWN];

	report.top = 1;
	cr_assert_eq(mb_search_shown(&report, shown), 1);
	cr_expect_eq(shown[0], 2);
}

static char *text_of(void (*write)(struct mb_text *))
{
	static char kept[1 << 14];
	struct mb_text t = { 0 };

	write(&t);
	snprintf(kept, sizeof kept, "%s", t.data ? t.data : "");
	mb_text_free(&t);
	return kept;
}

static void as_text(struct mb_text *t)
{
	struct mb_style plain = { .width = 100 };

	mb_search_text(&report, &plain, t);
}

static void as_json(struct mb_text *t)
{
	mb_search_json(&report, t);
}

Test(search_report, text_answers_in_the_second_line)
{
	static const char answer[] = "Best: 11.0 s/step (9.90 to 12.1), 1,000 tokens/s/GPU, 10.0 GiB free of 80.0.\n";
	char *text = text_of(as_text), *second = strchr(text, '\n') + 1;

	cr_expect_eq(strncmp(second, answer, strlen(answer)), 0, "%s", text);
	cr_expect_not_null(strstr(text, "1! is 1.00 s faster but 1.2 % from full"), "%s", text);
	cr_expect_not_null(strstr(text, "100 plans: 60 illegal, 20 too large, 10 slower by bound, 10 evaluated."), "%s",
	                   text);
	cr_expect_not_null(strstr(text, "Every plan is accounted for"));
	cr_expect_not_null(strstr(text, "mbsim estimate run.yaml --rank 3\n"));
	for (const char *c = text; *c; c++)
		cr_assert((unsigned char)*c < 0x80, "a pipe gets ASCII");
}

Test(search_report, no_claim_of_proof_when_plans_are_missing)
{
	result.pruned[0].count = 59;
	cr_expect_null(strstr(text_of(as_text), "accounted for"));
}

Test(search_report, json_lists_the_recommended_plan_past_the_top)
{
	report.top = 1;
	char *text = text_of(as_json);

	cr_expect_not_null(strstr(text, "\"recommended\":\t3"));
	cr_expect_not_null(strstr(text, "\"rank\":\t1,"));
	cr_expect_not_null(strstr(text, "\"rank\":\t3,"));
	cr_expect_null(strstr(text, "\"rank\":\t2,"));
}

Test(search_report, nothing_fits_gives_no_table)
{
	result.top_count = result.front_count = 0;
	result.recommended = -1;
	result.closest = plan(8, 20, 96, MB_OUT_OF_MEMORY);
	result.has_closest = true;
	char *text = text_of(as_text);

	cr_expect_not_null(strstr(text, "Nothing fits: the closest of 100 plans is too large by 16.0 GiB."), "%s",
	                   text);
	cr_expect_not_null(strstr(text, "1.20 times the usable 80.0"));
	cr_expect_null(strstr(text, "rank"));
}
