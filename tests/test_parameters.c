/* Parameter counts read off the operation tables, against published architectures. */
#include "load.h"

#include <stdio.h>

static struct mb_arena arena;

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(parameters, .fini = done);

static void count(const char *model, int64_t *total, int64_t *mtp, int64_t *active, int64_t *stated)
{
	static struct mb_query q;
	char yaml[256];

	snprintf(yaml, sizeof yaml, "{model: %s, hardware: dgx-h100, gpus: 8, seq_length: 4096, global_batch_size: 8}", model);
	load_query(yaml, &arena, &q);
	mb_count_parameters(&q.c, total, mtp, active);
	*stated = q.c.model.parameters;
}

/* Hand-worked: layer = 8192 (64+16) 128 + 8192 8192 + 3 8192 28672 + 2 8192 = 855,654,400; 80 of them, two tables, a norm. */
Test(parameters, models_of_the_specification)
{
	static const struct { const char *model; int64_t total, mtp, active; } cases[] = {
		{ "gpt3-175b", 174615846912, 0, 174615846912 },
		{ "llama3-8b", 8030261248, 0, 8030261248 },
		{ "llama3-70b", 80 * INT64_C(855654400) + 2 * INT64_C(128256) * 8192 + 8192, 0, 70553706496 },
		{ "deepseek-v3", 671026404352, 11610067968, 37552282624 },
		{ "llama3.1-405b", 405853388800, 0, 405853388800 },
		{ "mixtral-8x7b", 46702792704, 0, 12879925248 },
		{ "qwen3-30b-a3b", 30532122624, 0, 3353032704 },
		{ "qwen3-235b-a22b", 235093634560, 0, 22190763520 },
		{ "moonlight-16b-a3b", 15960108544, 0, 2914774528 },
		{ "nemotron-3-nano", 31577937344, 0, 3580073408 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t total, mtp, active, stated;

		count(cases[i].model, &total, &mtp, &active, &stated);
		cr_expect_eq(total, cases[i].total, "%s total %lld", cases[i].model, (long long)total);
		cr_expect_eq(mtp, cases[i].mtp, "%s mtp %lld", cases[i].model, (long long)mtp);
		cr_expect_eq(active, cases[i].active, "%s active %lld", cases[i].model, (long long)active);
	}
}

Test(parameters, every_shipped_model_counts_to_what_its_file_states)
{
	const char *const *names;
	struct mb_diags diags = { 0 };
	struct mb_library library;
	int n;

	cr_assert(mb_library_open(&library, &diags));
	n = mb_library_list(&library, "models", &arena, &names);
	cr_assert_gt(n, 0);
	for (int i = 0; i < n; i++) {
		int64_t total, mtp, active, stated;

		count(names[i], &total, &mtp, &active, &stated);
		cr_expect_eq(total + mtp, stated, "%s: %lld + %lld counted, %lld stated, off by %lld", names[i], (long long)total,
		             (long long)mtp, (long long)stated, (long long)(total + mtp - stated));
		cr_expect_leq(active, total, "%s", names[i]);
	}
}
