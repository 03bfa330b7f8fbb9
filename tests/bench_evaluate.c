/* Full evaluations per second, from a plan to memory and step time, schedule included, nothing reused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cost/cost.h"
#include "desc/node.h"

static const struct { const char *name, *run; } runs[] = {
	{ "dense   llama3-70b, 64 GPUs, TP 4 PP 8 VP 5", "{model: llama3-70b, hardware: dgx-h100, gpus: 64, seq: 8192, gbs: 256,"
	  " precision: fp8_cs, tp: 4, pp: 8, vp: 5, sp: true}" },
	{ "MoE     deepseek-v3, 256 GPUs, PP 4 VP 4 EP 64", "{model: deepseek-v3, hardware: gb200-nvl72, gpus: 256, seq: 4096, gbs: 4096,"
	  " precision: fp8_mx, pp: 4, vp: 4, ep: 64, recompute_modules: [mla_up_proj], moe_token_dispatcher_type: flex,"
	  " moe_flex_dispatcher_backend: hybridep, pipeline_model_parallel_layout: 'Et*4|(t*4|)*14tmL'}" },
	{ "hybrid  nemotron-3-nano, 8 GPUs, EP 8", "{model: nemotron-3-nano, hardware: gb300-nvl72, gpus: 8, seq: 8192, gbs: 512,"
	  " precision: fp8_mx, ep: 8}" },
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
	struct mb_evaluation *e = mb_evaluation_new();
	struct mb_query *q = calloc(1, sizeof *q);
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };
	struct mb_library library;

	if (!e || !q || !mb_library_open(&library, &diags))
		return 1;
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		const struct mb_node *run = mb_node_read_text(runs[i].run, strlen(runs[i].run), "run", &arena, &diags);
		double begin, spent;
		long n = 0;

		memset(q, 0, sizeof *q);
		if (!run || !mb_query_from_node(run, &library, &arena, q, &diags))
			return 1;
		begin = now_s();
		do {
			for (int k = 0; k < 100; k++, n++)
				mb_evaluate(&q->c, &q->c.run.plan, e);
			spent = now_s() - begin;
		} while (spent < 0.5);
		printf("%-48s %8.0f a second  %6.1f us each  step %.3f s\n", runs[i].name, (double)n / spent, 1e6 * spent / (double)n, e->step_s);
	}
	mb_arena_free(&arena);
	free(q);
	mb_evaluation_free(e);
	return 0;
}
