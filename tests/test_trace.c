/* The timeline of a step: its spans add up to the estimate, its counter peaks where the estimate does. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "load.h"
#include "report/trace.h"

enum { MAX_RANKS = 16, MAX_TRACKS = 16 };

static const char *const runs[] = {
	"{model: llama3-8b, hardware: dgx-h100, gpus: 8, gbs: 32, seq: 8192, tp: 4, recompute_granularity: full, "
	"recompute_method: block, recompute_num_layers: 4}",
	"{model: llama3-70b, hardware: dgx-h100, gpus: 64, gbs: 32, seq: 4096, tp: 8, pp: 4}",
	"{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, gbs: 64, seq: 4096, ep: 4, pp: 4, vp: 2}",
	"{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, gbs: 64, seq: 4096, ep: 4, pp: 4, vp: 2, "
	"overlap_moe_expert_parallel_comm: true}",
	"{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, gbs: 64, seq: 4096, ep: 8, overlap_moe_expert_parallel_comm: true}",
	"{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, gbs: 16, seq: 4096, ep: 8, pp: 2, use_megatron_fsdp: false, "
	"use_distributed_optimizer: true}",
};

enum { RUNS = sizeof runs / sizeof runs[0] };

struct traced {
	struct mb_arena arena;
	struct mb_query q;
	struct mb_evaluation *e;
	cJSON *document;
};

static struct traced *trace(const char *run)
{
	struct traced *t = calloc(1, sizeof *t);
	struct mb_text text = { 0 };
	struct mb_timeline line;

	load_query(run, &t->arena, &t->q);
	t->e = mb_evaluation_new();
	load_evaluate(&t->q, t->e);
	cr_assert(mb_timeline_fill(&t->q.c.run.plan, t->e, &t->arena, &line));
	mb_trace_begin(&line, &t->q, &text);
	for (int r = 0; r < line.pipeline.pp; r++)
		mb_trace_rank(&line, r, &text);
	mb_trace_end(&text);
	t->document = cJSON_Parse(text.data);
	cr_assert(t->document, "not JSON");
	mb_text_free(&text);
	return t;
}

static void drop(struct traced *t)
{
	cJSON_Delete(t->document);
	mb_evaluation_free(t->e);
	mb_arena_free(&t->arena);
	free(t);
}

static double number(const cJSON *event, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItem(event, key));
}

static const char *word(const cJSON *event, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(event, key));

	return text ? text : "";
}

static bool is_span(const cJSON *event, bool operation)
{
	return strcmp(word(event, "ph"), "X") == 0 && (strcmp(word(event, "cat"), "operation") == 0) == operation;
}

static double sum_of(const struct traced *t, int rank, const char *category)
{
	const cJSON *event;
	double sum = 0;

	cJSON_ArrayForEach(event, cJSON_GetObjectItem(t->document, "traceEvents")) {
		if (is_span(event, false) && number(event, "pid") == rank && (!category || strcmp(word(event, "cat"), category) == 0))
			sum += number(event, "dur");
	}
	return sum / 1e6;
}

Test(trace, spans_of_the_slowest_rank_are_the_terms_of_the_estimate)
{
	for (int i = 0; i < RUNS; i++) {
		struct traced *t = trace(runs[i]);

		for (int term = 0; term < MB_TIME_COUNT; term++) {
			double got = sum_of(t, t->e->slowest_stage, mb_time_terms[term].json), want = t->e->time_terms[term];

			cr_expect(fabs(got - want) < 1e-8, "run %d: %s is %.12g, the estimate says %.12g", i, mb_time_terms[term].json, got, want);
		}
		drop(t);
	}
}

Test(trace, spans_of_every_rank_add_up_to_the_step)
{
	for (int i = 0; i < RUNS; i++) {
		struct traced *t = trace(runs[i]);

		for (int r = 0; r < t->e->dims.pp; r++)
			expect_rel(sum_of(t, r, NULL), t->e->step_s, 1e-9, runs[i]);
		drop(t);
	}
}

Test(trace, the_memory_counter_peaks_where_the_estimate_does)
{
	for (int i = 0; i < RUNS; i++) {
		struct traced *t = trace(runs[i]);

		for (int r = 0; r < t->e->dims.pp; r++) {
			const cJSON *event;
			double most = 0;

			cJSON_ArrayForEach(event, cJSON_GetObjectItem(t->document, "traceEvents")) {
				if (strcmp(word(event, "ph"), "C") == 0 && number(event, "pid") == r)
					most = fmax(most, number(cJSON_GetObjectItem(event, "args"), "bytes"));
			}
			expect_rel(most, t->e->stage_memory[r].peak_bytes, 1e-9, runs[i]);
		}
		drop(t);
	}
}

/* Spans of one track follow each other, parts lie inside their operation, counters go forward: what viewers need. */
Test(trace, tracks_are_monotone_and_nested)
{
	for (int i = 0; i < RUNS; i++) {
		struct traced *t = trace(runs[i]);
		double end[MAX_RANKS][MAX_TRACKS] = { { 0 } }, counter[MAX_RANKS] = { 0 };
		const cJSON *event;

		cJSON_ArrayForEach(event, cJSON_GetObjectItem(t->document, "traceEvents")) {
			int rank = (int)number(event, "pid"), track = (int)number(event, "tid");
			double start = number(event, "ts"), length = number(event, "dur");

			cr_assert(rank >= 0 && rank < MAX_RANKS);
			if (strcmp(word(event, "ph"), "C") == 0) {
				cr_expect(start >= counter[rank], "run %d: the counter of rank %d goes back", i, rank);
				counter[rank] = start;
			} else if (strcmp(word(event, "ph"), "X") == 0) {
				cr_expect(start >= end[rank][track] - 1e-4, "run %d: rank %d track %d overlaps at %g", i, rank, track, start);
				cr_expect(length > 0);
				end[rank][track] = start + length;
				if (!is_span(event, true) && strcmp(word(event, "cat"), "bubble") != 0)
					cr_expect(start + length <= end[rank][0] + 1e-4, "run %d: a part outside its operation", i);
			} else {
				cr_expect_str_eq(word(event, "ph"), "M");
			}
		}
		drop(t);
	}
}

Test(trace, every_micro_batch_passes_every_chunk_both_ways)
{
	struct traced *t = trace(runs[2]);
	int forwards = 0, backwards = 0;
	const cJSON *event;

	cJSON_ArrayForEach(event, cJSON_GetObjectItem(t->document, "traceEvents")) {
		forwards += is_span(event, true) && strncmp(word(event, "name"), "forward micro-batch ", 20) == 0;
		backwards += is_span(event, true) && strncmp(word(event, "name"), "backward micro-batch ", 21) == 0;
	}
	cr_expect_eq(forwards, (int)t->e->dims.micro_batches * t->e->split.chunk_count);
	cr_expect_eq(backwards, forwards);
	drop(t);
}
