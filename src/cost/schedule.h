/*
 * Pipeline schedules in integer picoseconds: 1F1B, interleaved 1F1B, and both with expert-parallel overlap.
 *
 * Rank r runs a fixed list: w_r warm-up forwards, pairs of one forward and one backward, then the remaining backwards.
 * Forward k of a rank is micro-batch and chunk k of the schedule table: groups of `group` micro-batches pass chunk 0,
 * then chunk 1, and so on; the backward takes the same table with the chunks reversed. An operation starts once its
 * rank is free and its input has arrived, hop_ps after the neighbour finished it. Operations are max-plus in int64, so
 * a bound and a simulation compare exactly and every compiler gives the same answer.
 *
 * [Megatron Core pipeline_parallel/schedules.py: get_schedule_table, get_pp_rank_microbatches]
 */
#ifndef MBSIM_COST_SCHEDULE_H
#define MBSIM_COST_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct mb_pipeline {
	int pp, vp;
	int64_t micro_batches;
	int64_t group;                  /* micro-batches that pass a chunk before the next chunk; 0: pp. Unused for vp 1 */
	bool ep_overlap;                /* one more warm-up forward (vp > 1, or pp 1) */
	const int64_t *forward_ps, *backward_ps;        /* [pp * vp], chunk j = v * pp + rank */
	int64_t hop_ps;                 /* between neighbouring ranks, wrap-around included, both directions */
};

/* Whether the order of the schedule exists: sizes in range, vp 1 on one rank, every group at least pp micro-batches. */
bool mb_pipeline_ordered(const struct mb_pipeline *p);

/* The same, and durations are not negative and small enough for no sum to overflow. What follows requires it. */
bool mb_pipeline_runs(const struct mb_pipeline *p);

/* Warm-up forwards of a rank; the framework clamps them to all forwards of the step. */
int64_t mb_pipeline_unclamped_warmup(const struct mb_pipeline *p, int rank);
int64_t mb_pipeline_warmup(const struct mb_pipeline *p, int rank);

struct mb_schedule_op {
	int64_t start_ps, end_ps, micro_batch;
	int rank, chunk;                /* virtual stage on the rank, 0 .. vp - 1 */
	bool backward;
};

/* Workspace for any pipeline whose groups hold up to max_group micro-batches; NULL when memory is exhausted. */
struct mb_schedule *mb_schedule_new(int64_t max_group);
void mb_schedule_free(struct mb_schedule *s);

/*
 * Exact end of the last operation of every rank, in ret_end_ps[pp]. trace: NULL, or room for every operation,
 * [pp][2 * micro_batches * vp], filled in the order each rank runs them. False: the pipeline does not run
 * (mb_pipeline_runs) or its groups exceed the workspace; nothing is written then.
 */
bool mb_schedule_run(struct mb_schedule *s, const struct mb_pipeline *p, int64_t *ret_end_ps, struct mb_schedule_op *trace);

/* Operations that the last run computed one by one; the others were covered by jumps. */
int64_t mb_schedule_simulated(const struct mb_schedule *s);

/* max over ranks of end + finish; finish_ps[pp] may be NULL. */
int64_t mb_schedule_step(const struct mb_pipeline *p, const int64_t *end_ps, const int64_t *finish_ps);

/*
 * Lower bounds of mb_schedule_step after mb_schedule_run; finish_ps as there. The fast one needs pp * vp additions and
 * compares poorly only where chunks are uneven; the tight one adds the idle time that a rank cannot avoid, and may stop
 * once it is above enough_ps.
 */
int64_t mb_schedule_fast_bound(const struct mb_pipeline *p, const int64_t *finish_ps);
int64_t mb_schedule_tight_bound(const struct mb_pipeline *p, const int64_t *finish_ps, int64_t enough_ps);

/* ---- the schedule table, walked ---- */

/* Position in the schedule table. `chunk` counts chunks in the order of the table: a backward is in vp - 1 - chunk. */
struct mb_cursor {
	int64_t left, size;             /* micro-batches of this group still to pass this chunk, and of the whole group */
	int64_t first;                  /* micro-batch that leads the group */
	int64_t full_groups_after;
	int chunk;
};

/* How the table repeats: every `period` entries, within the first `regular` entries. */
struct mb_table {
	int vp;
	int64_t group, tail;            /* micro-batches of a full group; of the last, shorter one */
	int64_t full_groups;
	int64_t entries, regular, period;
};

void mb_table_fill(const struct mb_pipeline *p, struct mb_table *ret);
void mb_cursor_start(const struct mb_table *t, struct mb_cursor *ret);

/* Moves over whole periods that end before the regular entries do. */
void mb_cursor_skip(const struct mb_table *t, struct mb_cursor *c, int64_t periods);

static inline int64_t mb_cursor_micro_batch(const struct mb_cursor *c)
{
	return c->first + c->size - c->left;
}

/* Passes over `count` entries of the same chunk; true when the next one is in another chunk or group. */
static inline bool mb_cursor_pass(const struct mb_table *t, struct mb_cursor *c, int64_t count)
{
	c->left -= count;
	if (c->left > 0)
		return false;
	if (++c->chunk == t->vp) {
		c->chunk = 0;
		c->first += c->size;
		if (c->full_groups_after > 0)
			c->full_groups_after--;
		else
			c->size = t->tail;
	}
	c->left = c->size;
	return true;
}

#endif
