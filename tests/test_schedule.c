/* Schedules: a naive solver of the dependency graph, hand-worked vectors, bounds below the truth, exact jumps. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schedule_naive.h"

static uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
	return low + (int64_t)(random_bits(state) % (uint64_t)(high - low + 1));
}

static void fill_durations(struct example *e, uint64_t *state)
{
	int n = e->p.pp * e->p.vp;
	int64_t spread = between(state, 0, 3), base = between(state, 1, 40);
	int64_t width = spread == 0 ? 0 : spread == 1 ? base / 5 : spread == 2 ? 2 : base * 8;

	for (int j = 0; j < n; j++) {
		e->forward[j] = base + between(state, 0, width);
		e->backward[j] = 2 * base + between(state, 0, 2 * width);
		if (between(state, 0, 40) == 0)
			e->forward[j] = e->backward[j] = 0;
	}
	if (between(state, 0, 2) == 0)
		e->forward[n - 1] += base;
	for (int r = 0; r < e->p.pp; r++)
		e->finish[r] = between(state, 0, 1) ? between(state, 0, 30 * base) : 0;
	e->p.hop_ps = between(state, 0, 2) ? 0 : between(state, 1, base);
}

/* Any pipeline that is in order, of up to max_groups groups. */
static void fill_example(struct example *e, uint64_t *state, int max_pp, int max_vp, int max_groups)
{
	struct mb_pipeline *p = &e->p;

	memset(e, 0, sizeof *e);
	p->forward_ps = e->forward;
	p->backward_ps = e->backward;
	p->pp = (int)between(state, 1, max_pp);
	p->vp = p->pp == 1 ? 1 : (int)between(state, 1, max_vp);
	p->ep_overlap = between(state, 0, 3) == 0;
	p->group = between(state, 0, 1) ? 0 : p->pp + between(state, 0, 4);
	p->micro_batches = (p->group ? p->group : p->pp) * between(state, 1, max_groups);
	if (between(state, 0, 1))
		p->micro_batches += p->vp == 1 ? between(state, 0, 3) : p->pp + between(state, 0, 3);
	fill_durations(e, state);
	if (!mb_pipeline_ordered(p))
		p->micro_batches = p->group ? p->group : p->pp;
}

static void fill_uniform(struct example *e, int pp, int vp, int64_t micro_batches, int64_t f, int64_t b)
{
	memset(e, 0, sizeof *e);
	e->p = (struct mb_pipeline){ .pp = pp, .vp = vp, .micro_batches = micro_batches, .forward_ps = e->forward,
	                             .backward_ps = e->backward };
	for (int j = 0; j < pp * vp; j++) {
		e->forward[j] = f / vp;
		e->backward[j] = b / vp;
	}
}

static int64_t makespan(struct mb_schedule *s, const struct example *e, int64_t *ends)
{
	if (!mb_schedule_run(s, &e->p, ends, NULL))
		return -1;
	return mb_schedule_step(&e->p, ends, NULL);
}

Test(schedule, equals_a_naive_solver_operation_by_operation)
{
	struct mb_schedule *s = mb_schedule_new(64);
	struct naive_op *ops = malloc(8192 * sizeof *ops);
	struct mb_schedule_op *trace = malloc(8192 * sizeof *trace);
	uint64_t state = 1;

	cr_assert(s && ops && trace);
	for (int round = 0; round < 3000; round++) {
		struct example e;
		int64_t ends[MAX_PP];
		int n, wrong = 0;

		fill_example(&e, &state, 5, 4, 2);
		n = naive_lists(&e, ops);
		naive_inputs(&e.p, ops, n);
		naive_relax(&e.p, ops, n);
		cr_assert(mb_schedule_run(s, &e.p, ends, trace));
		for (int i = 0; i < n; i++)
			wrong += ops[i].rank != trace[i].rank || ops[i].chunk != trace[i].chunk ||
			         ops[i].micro_batch != trace[i].micro_batch || ops[i].backward != trace[i].backward ||
			         ops[i].end != trace[i].end_ps || ops[i].end - ops[i].duration != trace[i].start_ps;
		cr_assert_eq(wrong, 0, "round %d: pp %d vp %d M %" PRId64 " group %" PRId64 ": %d of %d operations differ", round,
		             e.p.pp, e.p.vp, e.p.micro_batches, e.p.group, wrong, n);
		for (int r = 0; r < e.p.pp; r++)
			cr_assert_eq(ends[r], ops[(r + 1) * (n / e.p.pp) - 1].end);
	}
	free(trace);
	free(ops);
	mb_schedule_free(s);
}

static void fill_from_bits(struct example *e, unsigned bits)
{
	for (int j = 0; j < e->p.pp * e->p.vp; j++) {
		e->forward[j] = bits >> 2 * j & 1 ? 5 : 2;
		e->backward[j] = bits >> (2 * j + 1) & 1 ? 7 : 3;
	}
}

/* Every pipeline of up to four chunks and six micro-batches, with each chunk fast or slow in each direction. */
Test(schedule, small_pipelines_are_enumerated)
{
	static const struct { int pp, vp; } shapes[] = { { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 1 }, { 2, 2 } };
	struct mb_schedule *s = mb_schedule_new(16);
	struct naive_op ops[256];
	int all = 0, wrong = 0, above = 0;

	for (int i = 0; i < 5 * 6 * 2 * 2; i++) {
		struct example e = { .p = { .pp = shapes[i % 5].pp, .vp = shapes[i % 5].vp, .micro_batches = 1 + i / 5 % 6, .hop_ps = i / 30 % 2,
		                            .ep_overlap = i / 60, .forward_ps = e.forward, .backward_ps = e.backward } };

		if (!mb_pipeline_ordered(&e.p))
			continue;
		for (unsigned bits = 0; bits < 1u << 2 * e.p.pp * e.p.vp; bits++, all++) {
			int64_t ends[MAX_PP], step;
			int n;

			fill_from_bits(&e, bits);
			n = naive_lists(&e, ops);
			naive_inputs(&e.p, ops, n);
			naive_relax(&e.p, ops, n);
			cr_assert(mb_schedule_run(s, &e.p, ends, NULL));
			for (int r = 0; r < e.p.pp; r++)
				wrong += ends[r] != ops[(r + 1) * (n / e.p.pp) - 1].end;
			step = mb_schedule_step(&e.p, ends, NULL);
			above += mb_schedule_fast_bound(&e.p, NULL) > step || mb_schedule_tight_bound(&e.p, NULL, INT64_MAX) > step;
		}
	}
	cr_expect_eq(wrong, 0, "%d of %d pipelines end elsewhere", wrong, all);
	cr_expect_eq(above, 0, "%d of %d have a bound above", above, all);
	cr_expect_gt(all, 10000, "only %d pipelines", all);
	mb_schedule_free(s);
}

/* ---- known values ---- */

static const struct { int pp, vp; int64_t micro_batches; double span; int warmup[2]; } vectors[] = {
	/* one stage: forward 1, backward 2; span; warm-ups of the first and the last rank */
	{ 4, 1, 8, 33, { 3, 0 } },
	{ 4, 2, 8, 28.5, { 10, 4 } },
	{ 8, 1, 64, 213, { 7, 0 } },
	{ 8, 4, 64, 197.25, { 38, 24 } },
	{ 4, 4, 16, 50.25, { 18, 12 } },
	{ 2, 4, 8, 24.75, { 8, 6 } },
	{ 1, 1, 5, 15, { 0, 0 } },
};

Test(schedule, uniform_stages_match_known_spans)
{
	struct mb_schedule *s = mb_schedule_new(64);

	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		struct example e;
		int64_t ends[MAX_PP], span;

		fill_uniform(&e, vectors[i].pp, vectors[i].vp, vectors[i].micro_batches, 8000, 16000);
		span = makespan(s, &e, ends);
		cr_expect_eq(span, (int64_t)(8000 * vectors[i].span), "row %zu: %" PRId64, i, span);
		cr_expect_eq(mb_schedule_fast_bound(&e.p, NULL), span, "row %zu: a uniform pipeline meets its bound", i);
		cr_expect_eq(mb_schedule_tight_bound(&e.p, NULL, INT64_MAX), span, "row %zu: a uniform pipeline meets its bound", i);
		cr_expect_eq(mb_pipeline_warmup(&e.p, 0), vectors[i].warmup[0], "row %zu", i);
		cr_expect_eq(mb_pipeline_warmup(&e.p, e.p.pp - 1), vectors[i].warmup[1], "row %zu", i);
	}
	mb_schedule_free(s);
}

Test(schedule, eight_virtual_stages_on_two_ranks)
{
	struct mb_schedule *s = mb_schedule_new(64);
	int64_t forward[16], backward[16], ends[2];
	struct mb_pipeline p = { .pp = 2, .vp = 8, .micro_batches = 8, .forward_ps = forward, .backward_ps = backward };

	for (int j = 0; j < 16; j++) {
		forward[j] = 1000;
		backward[j] = 2000;
	}
	cr_assert(mb_schedule_run(s, &p, ends, NULL));
	cr_expect_eq(ends[0], 8 * 24375);
	mb_schedule_free(s);
}

Test(schedule, uneven_stages_and_hops_match_known_spans)
{
	struct mb_schedule *s = mb_schedule_new(64);
	struct example e;
	int64_t ends[MAX_PP];

	fill_uniform(&e, 4, 1, 16, 1000, 2000);
	e.forward[3] = 1200;
	e.backward[3] = 2400;
	cr_expect_eq(makespan(s, &e, ends), 66600, "last stage slower by a fifth");
	cr_expect_eq(mb_schedule_tight_bound(&e.p, NULL, INT64_MAX), 66600);
	fill_uniform(&e, 4, 1, 16, 1000, 2000);
	e.forward[0] = 1200;
	e.backward[0] = 2400;
	cr_expect_eq(makespan(s, &e, ends), 64800, "first stage slower by a fifth");
	fill_uniform(&e, 4, 1, 8, 1000, 2000);
	e.p.hop_ps = 50;
	cr_expect_eq(makespan(s, &e, ends), 33800, "hops, 1F1B");
	fill_uniform(&e, 4, 2, 8, 1000, 2000);
	e.p.hop_ps = 50;
	cr_expect_eq(makespan(s, &e, ends), 29200, "hops, interleaved");
	mb_schedule_free(s);
}

Test(schedule, one_rank_with_ep_overlap_runs_the_next_forward_first)
{
	struct mb_schedule *s = mb_schedule_new(4);
	struct mb_schedule_op trace[6];
	struct example e;
	int64_t end;
	static const struct { bool backward; int micro_batch; } order[] = {
		{ false, 0 }, { false, 1 }, { true, 0 }, { false, 2 }, { true, 1 }, { true, 2 },
	};

	fill_uniform(&e, 1, 1, 3, 10, 20);
	e.p.ep_overlap = true;
	cr_assert(mb_schedule_run(s, &e.p, &end, trace));
	cr_expect_eq(end, 90);
	for (int i = 0; i < 6; i++)
		cr_expect(trace[i].backward == order[i].backward && trace[i].micro_batch == order[i].micro_batch, "operation %d", i);
	mb_schedule_free(s);
}

Test(schedule, ep_overlap_adds_one_warmup_and_no_bubble)
{
	struct mb_schedule *s = mb_schedule_new(64);
	struct example e;
	int64_t ends[MAX_PP];

	fill_uniform(&e, 8, 4, 64, 8000, 16000);
	e.p.ep_overlap = true;
	cr_expect_eq(mb_pipeline_warmup(&e.p, 0), 39);
	cr_expect_eq(mb_pipeline_warmup(&e.p, 7), 25);
	cr_expect_eq(makespan(s, &e, ends), 8000 * 19725 / 100);
	mb_schedule_free(s);
}

/* ---- bounds ---- */

Test(schedule, bounds_never_exceed_the_truth)
{
	struct mb_schedule *s = mb_schedule_new(64);
	uint64_t state = 2;
	int met = 0, above = 0, order = 0;

	for (int round = 0; round < 200000; round++) {
		struct example e;
		int64_t ends[MAX_PP], step, fast, tight;
		const int64_t *finish = round % 2 ? e.finish : NULL;

		fill_example(&e, &state, MAX_PP, MAX_VP, 3);
		cr_assert(mb_schedule_run(s, &e.p, ends, NULL));
		step = mb_schedule_step(&e.p, ends, finish);
		fast = mb_schedule_fast_bound(&e.p, finish);
		tight = mb_schedule_tight_bound(&e.p, finish, INT64_MAX);
		met += tight == step;
		order += tight < fast;
		above += tight > step || fast > step;
	}
	cr_expect_eq(above, 0, "%d of 200000 bounds are above the simulation", above);
	cr_expect_eq(order, 0, "%d tight bounds are below the fast one", order);
	cr_expect_gt(met, 60000, "the tight bound is exact in only %d of 200000", met);
	mb_schedule_free(s);
}

Test(schedule, finish_of_an_early_rank_counts)
{
	struct mb_schedule *s = mb_schedule_new(8);
	struct example e;
	int64_t ends[MAX_PP], finish[MAX_PP] = { 0, 0, 0, 100000 };

	fill_uniform(&e, 4, 1, 8, 1000, 2000);
	cr_assert(mb_schedule_run(s, &e.p, ends, NULL));
	cr_expect_eq(ends[3], 3000 + 8 * 3000);
	cr_expect_eq(mb_schedule_step(&e.p, ends, finish), 127000);
	cr_expect_eq(mb_schedule_fast_bound(&e.p, finish), 127000);
	mb_schedule_free(s);
}

/* ---- jumps ---- */

Test(schedule, jumps_are_exact)
{
	struct mb_schedule *s = mb_schedule_new(64);
	struct mb_schedule_op *trace = malloc(100000 * sizeof *trace);
	uint64_t state = 3;
	int jumped = 0;

	cr_assert(s && trace);
	for (int round = 0; round < 1500; round++) {
		struct example e;
		int64_t plain[MAX_PP], traced[MAX_PP];

		fill_example(&e, &state, 6, 4, 150);
		cr_assert(mb_schedule_run(s, &e.p, traced, trace));
		cr_assert_eq(mb_schedule_simulated(s), 2 * e.p.micro_batches * e.p.vp * e.p.pp, "a traced run must not jump");
		cr_assert(mb_schedule_run(s, &e.p, plain, NULL));
		jumped += mb_schedule_simulated(s) < e.p.micro_batches * e.p.vp * e.p.pp;
		for (int r = 0; r < e.p.pp; r++)
			cr_assert_eq(plain[r], traced[r], "round %d, rank %d", round, r);
	}
	cr_expect_gt(jumped, 750, "only %d of 1500 jumped over half of the work", jumped);
	free(trace);
	mb_schedule_free(s);
}

static void fill_drifting(struct example *e, uint64_t *state, int round)
{
	fill_uniform(e, (int)between(state, 2, 5), (int)between(state, 2, 4), 0, 40000, 80000);
	e->p.group = e->p.pp + (round % 3 == 0 ? between(state, 0, 3) : 0);
	e->p.ep_overlap = round % 5 == 0;
	e->p.hop_ps = round % 2 ? between(state, 0, 500) : 0;
	for (int64_t i = between(state, 1, 4); i > 0; i--) {
		e->forward[between(state, 0, e->p.pp * e->p.vp - 1)] += between(state, 0, 200);
		e->backward[between(state, 0, e->p.pp * e->p.vp - 1)] += between(state, 0, 200);
	}
}

/*
 * Ranks that differ by a few thousandths lose their slack over hundreds of groups; jumps over such drifts are exact too.
 * A jump too far is forgotten within a group, so every length is tried: some end right there.
 */
Test(schedule, jumps_over_drifts_are_exact)
{
	struct mb_schedule *s = mb_schedule_new(64);
	struct mb_schedule_op *trace = malloc(100000 * sizeof *trace);
	uint64_t state = 4;
	int jumped = 0, wrong = 0, all = 0;

	cr_assert(s && trace);
	for (int round = 0; round < 100; round++) {
		struct example e;

		fill_drifting(&e, &state, round);
		for (int groups = 10; groups < 120; groups++, all++) {
			int64_t plain[MAX_PP], traced[MAX_PP];

			e.p.micro_batches = e.p.group * groups;
			cr_assert(mb_schedule_run(s, &e.p, traced, trace) && mb_schedule_run(s, &e.p, plain, NULL));
			jumped += mb_schedule_simulated(s) < e.p.micro_batches * e.p.vp * e.p.pp;
			wrong += memcmp(plain, traced, (size_t)e.p.pp * sizeof plain[0]) != 0;
		}
	}
	cr_expect_eq(wrong, 0, "%d of %d runs end elsewhere", wrong, all);
	cr_expect_gt(jumped, all / 2, "only %d of %d jumped over half of the work", jumped, all);
	free(trace);
	mb_schedule_free(s);
}

Test(schedule, largest_pipelines_run_and_are_closed_form)
{
	static int64_t forward[2048], backward[2048], ends[512];
	struct mb_pipeline p = { .pp = 512, .vp = 1, .micro_batches = 1000000, .forward_ps = forward, .backward_ps = backward };
	struct mb_schedule *s = mb_schedule_new(1 << 20);

	for (int j = 0; j < 2048; j++) {
		forward[j] = 1000000;
		backward[j] = 2000000;
	}
	cr_assert(mb_schedule_run(s, &p, ends, NULL));
	cr_expect_eq(ends[0], 3000000 * (int64_t)(1000000 + 511));
	p.vp = 4;
	p.micro_batches = 512 * 1900;
	cr_assert(mb_schedule_run(s, &p, ends, NULL));
	cr_expect_eq(ends[0], 3000000 * (int64_t)(4 * 512 * 1900 + 511));
	p.pp = 2;
	p.group = 1000000;
	p.micro_batches = 1000000;
	cr_assert(mb_schedule_run(s, &p, ends, NULL));
	cr_expect_eq(ends[0], 3000000 * (int64_t)(4 * 1000000 + 1));
	mb_schedule_free(s);
}

/* ---- what does not run ---- */

static const struct { const char *why; int pp, vp; int64_t micro_batches, group, hop; bool runs; } shapes[] = {
	{ "plain", 4, 2, 8, 0, 0, true },
	{ "no rank", 0, 1, 8, 0, 0, false },
	{ "no micro-batch", 4, 1, 0, 0, 0, false },
	{ "too many ranks", 513, 1, 8, 0, 0, false },
	{ "too many chunks", 8, 257, 8, 0, 0, false },
	{ "virtual stages on one rank", 1, 2, 8, 0, 0, false },
	{ "fewer micro-batches than ranks, 1F1B", 4, 1, 2, 0, 0, true },
	{ "fewer micro-batches than ranks, interleaved", 4, 2, 2, 0, 0, false },
	{ "last group smaller than pp", 4, 2, 10, 0, 0, false },
	{ "last group of pp", 4, 2, 10, 6, 0, true },
	{ "group smaller than pp", 4, 2, 8, 3, 0, false },
	{ "negative hop", 4, 2, 8, 0, -1, false },
	{ "group beyond the workspace", 4, 2, 1000, 500, 0, false },
	{ "sums beyond 64 bits", 4, 2, 8, 0, INT64_MAX - 5, false },
};

Test(schedule, shapes_without_an_order_are_refused)
{
	static int64_t durations[4096], ends[600];
	struct mb_schedule *s = mb_schedule_new(100);

	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct mb_pipeline p = { .pp = shapes[i].pp, .vp = shapes[i].vp, .micro_batches = shapes[i].micro_batches,
		                         .group = shapes[i].group, .hop_ps = shapes[i].hop, .forward_ps = durations,
		                         .backward_ps = durations };

		cr_expect_eq(mb_schedule_run(s, &p, ends, NULL), shapes[i].runs, "%s", shapes[i].why);
	}
	durations[3] = -1;
	cr_expect_not(mb_schedule_run(s, &(struct mb_pipeline){ .pp = 4, .vp = 1, .micro_batches = 4, .forward_ps = durations,
	                              .backward_ps = durations }, ends, NULL), "negative duration");
	mb_schedule_free(s);
	mb_schedule_free(NULL);
}
