/* Time of whole searches, of a costed plan inside one, and of a plan evaluated from scratch. Arguments: as mbsim search. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "desc/library.h"
#include "search/search.h"

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { MAX_WORDS = 8 };

static const struct { const char *name; const char *words[MAX_WORDS]; } runs[] = {
	{ "llama3-70b, 64 H100", { "model=llama3-70b", "hardware=dgx-h100", "gpus=64", "gbs=256", "seq=8192", "precision=fp8_cs" } },
	{ "nemotron-3-nano, 8 GB300", { "model=nemotron-3-nano", "hardware=gb300-nvl72", "gpus=8", "gbs=512", "seq=8192", "precision=fp8_mx" } },
	{ "qwen3-30b-a3b, 16 H100", { "model=qwen3-30b-a3b", "hardware=dgx-h100", "gpus=16", "gbs=1024", "seq=4096", "precision=bf16" } },
	{ "deepseek-v3, 256 GB200", { "model=deepseek-v3", "hardware=gb200-nvl72", "gpus=256", "gbs=4096", "seq=4096", "precision=fp8_mx" } },
	{ "deepseek-v3, 2048 GB200", { "model=deepseek-v3", "hardware=gb200-nvl72", "gpus=2048", "gbs=16384", "seq=4096", "precision=fp8_mx" } },
	{ "the same, gbs 4096", { "model=deepseek-v3", "hardware=gb200-nvl72", "gpus=2048", "gbs=4096", "seq=4096", "precision=fp8_mx" } },
	{ "deepseek-v3, 16384 GB200", { "model=deepseek-v3", "hardware=gb200-nvl72", "gpus=16384", "gbs=16384", "seq=4096", "precision=fp8_mx" } },
};

/* Nanoseconds of mb_evaluate for one plan. */
static double evaluation_ns(const struct mb_query *q, const struct mb_search_result *r)
{
	struct mb_evaluation *e = mb_evaluation_new();
	struct mb_case c = q->c;
	int rounds = 200;
	double start;

	c.layouts = r->layouts;
	c.layout_count = r->layout_count;
	start = now_s();
	for (int i = 0; i < rounds && e; i++)
		mb_evaluate(&c, &r->top[i % r->top_count].plan, e);
	mb_evaluation_free(e);
	return (now_s() - start) / rounds * 1e9;
}

static void bench(const char *name, int count, char **words)
{
	struct mb_search_options options = { .top = 10, .threads = getenv("MBSIM_THREADS") ? atoi(getenv("MBSIM_THREADS")) : 1 };
	struct mb_library library;
	struct mb_search_result r;
	struct mb_diags diags = { 0 };
	struct mb_arena arena = { 0 };
	struct mb_query *q = calloc(1, sizeof *q);
	struct rusage usage;

	if (!q || !mb_library_open(&library, &diags) || !mb_query_load(count, words, false, &library, &arena, q, &diags)
	    || !mb_search(q, &options, &arena, &r, &diags)) {
		printf("%s: %s\n", name, diags.count > 0 ? diags.item[0].text : "no memory");
	} else {
		getrusage(RUSAGE_SELF, &usage);
		printf("%-26s %6.2f s on %d, %.3g plans, %.3g costed (%.0f ns each, all told), %.0f evaluated; best %.4g s; %.0f ns an evaluation; %ld MiB\n", name, r.elapsed_s,
		       r.threads, r.plans_considered, r.plans_costed, r.elapsed_s / r.plans_costed * 1e9, r.plans_evaluated, r.top_count > 0 ? r.top[0].step_s : 0,
		       r.top_count > 0 ? evaluation_ns(q, &r) : 0, usage.ru_maxrss / 1024);
	}
	mb_arena_free(&arena);
	free(q);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		bench("", argc - 1, argv + 1);
		return 0;
	}
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		char words[MAX_WORDS][64], *list[MAX_WORDS];
		int count = 0;

		for (; count < MAX_WORDS && runs[i].words[count]; count++) {
			snprintf(words[count], sizeof words[count], "%s", runs[i].words[count]);
			list[count] = words[count];
		}
		bench(runs[i].name, count, list);
	}
	return 0;
}
