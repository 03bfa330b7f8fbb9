/* A step laid out in time: every operation of every pipeline rank, what it consists of, and the memory it holds. */
#ifndef MBSIM_REPORT_TIMELINE_H
#define MBSIM_REPORT_TIMELINE_H

#include "base/arena.h"
#include "cost/cost.h"
#include "cost/schedule.h"

enum { MB_TIMELINE_MAX = 4000000 };     /* operations; beyond that no viewer is of use */

struct mb_timeline {
	const struct mb_evaluation *e;
	struct mb_pipeline pipeline;
	struct mb_schedule_op *ops;             /* [pp][per_rank], in the order each rank runs them */
	int64_t per_rank;
	int64_t warmup[MB_MAX_STAGES];          /* forwards before the first pair */
	int64_t end_ps[MB_MAX_STAGES];          /* of the last operation */
	int64_t finish_ps[MB_MAX_STAGES][3];    /* after it: data-parallel tail, optimizer, fixed */
};

/* Operations of the step, all ranks. */
int64_t mb_timeline_operations(const struct mb_evaluation *e);

/* Needs mb_evaluate before, and at most MB_TIMELINE_MAX operations. False: the schedule cannot be run. */
bool mb_timeline_fill(const struct mb_plan *p, const struct mb_evaluation *e, struct mb_arena *arena, struct mb_timeline *ret);

/* The parts of an operation by term; they add up to its duration to the picosecond. */
void mb_timeline_parts(const struct mb_timeline *t, const struct mb_schedule_op *op, int64_t ret_ps[MB_TIME_COUNT]);

/* Bytes allocated on a rank while operation i runs and once it is over. counts[vp]: chunks in flight, kept by the caller. */
struct mb_timeline_memory { double during, after; };
struct mb_timeline_memory mb_timeline_memory(const struct mb_timeline *t, int rank, int64_t i, int32_t *counts);

#endif
