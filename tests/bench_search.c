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

enum { MOST_ROUNDS = 15 };

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Machines pause: short searches run until they took two seconds, and the least and the middle of the times are told. */
static void bench(const char *name, const struct mb_query *q)
{
	struct mb_search_options options = { .top = 10, .threads = getenv("MBSIM_THREADS") ? atoi(getenv("MBSIM_THREADS")) : 1 };
	double times[MOST_ROUNDS], sum = 0, each_ns = 0;
	struct mb_search_result r;
	struct rusage usage;
	int rounds = 0;

	while (rounds < MOST_ROUNDS && (rounds == 0 || sum < 2)) {
		struct mb_diags diags = { 0 };
		struct mb_arena arena = { 0 };

		if (!mb_search(q, &options, &arena, &r, &diags)) {
			printf("%s: %s\n", name, diags.count > 0 ? diags.item[0].text : "no memory");
			mb_arena_free(&arena);
			return;
		}
		sum += times[rounds++] = r.elapsed_s;
		if (each_ns <= 0 && r.top_count > 0)
			each_ns = evaluation_ns(q, &r);
		mb_arena_free(&arena);
	}
	qsort(times, (size_t)rounds, sizeof times[0], by_time);
	getrusage(RUSAGE_SELF, &usage);
	printf("%-26s %5.3f s on %d, middle of %2d %5.3f, %.3g plans, %.3g costed (%.0f ns each, all told), %.0f evaluated; %.0f ns an evaluation; "
	       "%ld MiB\n", name, times[0], r.threads, rounds, times[rounds / 2], r.plans_considered, r.plans_costed,
	       times[0] / r.plans_costed * 1e9, r.plans_evaluated, each_ns, usage.ru_maxrss / 1024);
}

static void load_and_bench(const char *name, int count, char **words)
{
	struct mb_query *q = calloc(1, sizeof *q);
	struct mb_diags diags = { 0 };
	struct mb_arena arena = { 0 };
	struct mb_library library;

	if (q && mb_library_open(&library, &diags) && mb_query_load(count, words, false, &library, &arena, q, &diags))
		bench(name, q);
	else
		printf("%s: %s\n", name, diags.count > 0 ? diags.item[0].text : "no memory");
	mb_arena_free(&arena);
	free(q);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		load_and_bench("", argc - 1, argv + 1);
		return 0;
	}
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		char words[MAX_WORDS][64], *list[MAX_WORDS];
		int count = 0;

		for (; count < MAX_WORDS && runs[i].words[count]; count++) {
			snprintf(words[count], sizeof words[count], "%s", runs[i].words[count]);
			list[count] = words[count];
		}
		load_and_bench(runs[i].name, count, list);
	}
	return 0;
}
