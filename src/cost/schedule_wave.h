/* Inside of the schedule simulation (schedule.c, schedule_jump.c): its state, and what one operation does to it. */
#ifndef MBSIM_COST_SCHEDULE_WAVE_H
#define MBSIM_COST_SCHEDULE_WAVE_H

#include "cost/schedule.h"
#include "plan/case.h"

struct mb_lane {
	int64_t forward_end, backward_end, clock;
	int64_t forward_ps, backward_ps;                /* of the chunk at the cursor */
	int64_t forward_drift, backward_drift;          /* of the ends, a period */
	struct mb_cursor forward, backward;
	struct mb_schedule_op *trace;                   /* where its next operation goes */
};

/* Ends that travel from one end of the pipeline to the other, by entry of the table. */
struct mb_wrap {
	int64_t *ends, *drifts;         /* rings */
	int64_t written, read;          /* entries */
};

struct mb_moment {
	int64_t at, drift;
};

struct mb_schedule {
	int64_t capacity;               /* of a ring: a power of two */
	int64_t *numbers;               /* owns the arrays */
	int64_t *snapshot, *was, *now, *drift;          /* states: [2 * MB_MAX_STAGES + 2 * capacity] */
	int64_t holds;                  /* periods for which the choices of a drifting period stay as they were */
	struct mb_wrap forward, backward;
	const struct mb_pipeline *p;
	struct mb_table table;
	int64_t lead;                   /* w' of the last rank */
	int64_t simulated;
	struct mb_lane lanes[MB_MAX_STAGES];
};

static inline int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t ring_get(const struct mb_schedule *s, const struct mb_wrap *w, int64_t entry)
{
	return w->ends[entry & (s->capacity - 1)];
}

static inline void ring_put(const struct mb_schedule *s, struct mb_wrap *w, int64_t end)
{
	w->ends[w->written++ & (s->capacity - 1)] = end;
}

/* When the input of the first rank's next forward, or of the last rank's next backward, arrives by the wrap-around. */
static inline int64_t wrap_arrival(const struct mb_schedule *s, struct mb_wrap *w, const struct mb_cursor *c)
{
	int64_t entry = w->read++;

	return c->chunk == 0 ? 0 : ring_get(s, w, entry - c->size) + s->p->hop_ps;
}

static inline void run_forward(struct mb_schedule *s, struct mb_lane *lane, int rank, int64_t arrival)
{
	lane->clock = lane->forward_end = later(lane->clock, arrival) + lane->forward_ps;
	if (mb_cursor_pass(&s->table, &lane->forward, 1))
		lane->forward_ps = s->p->forward_ps[lane->forward.chunk * s->p->pp + rank];
}

static inline void run_backward(struct mb_schedule *s, struct mb_lane *lane, int rank, int64_t arrival)
{
	lane->clock = lane->backward_end = later(lane->clock, arrival) + lane->backward_ps;
	if (mb_cursor_pass(&s->table, &lane->backward, 1))
		lane->backward_ps = s->p->backward_ps[(s->p->vp - 1 - lane->backward.chunk) * s->p->pp + rank];
}

/* Waves in which every rank runs one forward and one backward. */
void mb_schedule_full_waves(struct mb_schedule *s, int64_t count);

/*
 * Runs full waves from `wave`, jumping when it can; returns the wave it got to. `regular`: the first wave that reads an
 * entry of the table past those that repeat.
 */
int64_t mb_schedule_regular_waves(struct mb_schedule *s, int64_t wave, int64_t regular);

#endif
