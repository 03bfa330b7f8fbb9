/*
 * Pipelines to test with, and a second method for them: list every operation, start all at 0, and push starts later
 * until no dependency is violated.
 */
#ifndef MBSIM_TESTS_SCHEDULE_NAIVE_H
#define MBSIM_TESTS_SCHEDULE_NAIVE_H

#include "cost/schedule.h"

enum { MAX_PP = 8, MAX_VP = 5, MAX_CHUNK_COUNT = MAX_PP * MAX_VP };

struct example {
	struct mb_pipeline p;
	int64_t forward[MAX_CHUNK_COUNT], backward[MAX_CHUNK_COUNT], finish[MAX_PP];
};

struct naive_op {
	int rank, chunk;
	int64_t micro_batch, end, duration;
	bool backward;
	int previous, input;            /* operations that must end before; -1: none */
};

static inline int naive_find(const struct naive_op *ops, int n, int rank, int chunk, int64_t micro_batch, bool backward)
{
	for (int i = 0; i < n; i++)
		if (ops[i].rank == rank && ops[i].chunk == chunk && ops[i].micro_batch == micro_batch &&
		    ops[i].backward == backward)
			return i;
	return -1;
}

/* The lists of all ranks, [pp][2 * entries]; warm-ups as in the framework's documentation. */
static inline int naive_lists(const struct example *e, struct naive_op *ops)
{
	const struct mb_pipeline *p = &e->p;
	int vp = p->vp, entries = (int)p->micro_batches * vp, n = 0, table = 0;
	int group = vp == 1 ? 1 : p->group ? (int)p->group : p->pp;
	int chunk_of[4096], micro_batch_of[4096];

	for (int first = 0; first < p->micro_batches; first += group)
		for (int c = 0; c < vp; c++)
			for (int m = first; m < first + group && m < p->micro_batches; m++) {
				chunk_of[table] = c;
				micro_batch_of[table++] = m;
			}
	for (int r = 0; r < p->pp; r++) {
		int forwards = 0, backwards = 0, warmup = p->pp - r - 1;

		if (vp > 1)
			warmup = 2 * (p->pp - r - 1) + (vp - 1) * group + (p->ep_overlap ? 1 : 0);
		else if (p->pp == 1 && p->ep_overlap)
			warmup = 1;
		for (int i = 0; i < 2 * entries; i++) {
			bool backward = forwards == entries || forwards > warmup + backwards;
			int k = backward ? backwards++ : forwards++;
			int c = backward ? vp - 1 - chunk_of[k] : chunk_of[k];

			ops[n] = (struct naive_op){ .rank = r, .chunk = c, .micro_batch = micro_batch_of[k], .backward = backward };
			ops[n].duration = backward ? e->backward[c * p->pp + r] : e->forward[c * p->pp + r];
			ops[n].previous = i ? n - 1 : -1;
			n++;
		}
	}
	return n;
}

static inline void naive_inputs(const struct mb_pipeline *p, struct naive_op *ops, int n)
{
	for (int i = 0; i < n; i++) {
		int step = ops[i].backward ? 1 : -1;
		int stage = ops[i].chunk * p->pp + ops[i].rank + step;

		ops[i].input = -1;
		if (stage >= 0 && stage < p->pp * p->vp)
			ops[i].input = naive_find(ops, n, stage % p->pp, stage / p->pp, ops[i].micro_batch, ops[i].backward);
	}
}

static inline void naive_relax(const struct mb_pipeline *p, struct naive_op *ops, int n)
{
	bool changed = true;

	for (int i = 0; i < n; i++)
		ops[i].end = ops[i].duration;
	while (changed) {
		changed = false;
		for (int i = 0; i < n; i++) {
			int64_t start = 0;

			if (ops[i].previous >= 0 && ops[ops[i].previous].end > start)
				start = ops[ops[i].previous].end;
			if (ops[i].input >= 0 && ops[ops[i].input].end + p->hop_ps > start)
				start = ops[ops[i].input].end + p->hop_ps;
			if (start + ops[i].duration > ops[i].end) {
				ops[i].end = start + ops[i].duration;
				changed = true;
			}
		}
	}
}

#endif
