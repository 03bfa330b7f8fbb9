/*
 * Event simulation without an event queue. Shift rank r by pp - 1 - r steps and every input of a step comes from an
 * earlier step (or, without virtual stages, from the rank before it in the same step):
 *
 *     rank r in wave s:  forward i + w'_r, then backward i       i = s - (pp - 1 - r), w' before clamping
 *
 *     forward k on r-1 is one wave earlier (vp > 1: w' falls by 2 a rank) or in this wave (vp 1: by 1);
 *     backward k on r+1 is one wave earlier; the wrap-around inputs are group - (pp - 1) >= 1 waves earlier.
 *
 * So a wave is one loop over the ranks. Most waves of a long step are not run at all: schedule_jump.c.
 */
#include "cost/schedule.h"

#include <stdlib.h>

#include "cost/schedule_wave.h"

/* ---- the first and the last waves ---- */

/* Notes the operation that `lane` runs next. */
static void record(const struct mb_schedule *s, struct mb_lane *lane, int rank, bool backward, int64_t arrival)
{
	const struct mb_cursor *c = backward ? &lane->backward : &lane->forward;
	int64_t start = later(lane->clock, arrival);

	if (lane->trace)
		*lane->trace++ = (struct mb_schedule_op){
			.start_ps = start, .end_ps = start + (backward ? lane->backward_ps : lane->forward_ps),
			.micro_batch = mb_cursor_micro_batch(c), .rank = rank,
			.chunk = backward ? s->p->vp - 1 - c->chunk : c->chunk, .backward = backward,
		};
}

/* A wave in which some ranks have no forward or no backward, or that is traced. */
static void run_edge_wave(struct mb_schedule *s, int64_t wave)
{
	const int64_t hop = s->p->hop_ps, entries = s->table.entries;
	const int last = s->p->pp - 1, step = s->p->vp == 1 ? 1 : 2;
	int64_t before = 0;             /* forward of the previous rank, as of the wave before */

	for (int r = 0; r <= last; r++) {
		struct mb_lane *lane = &s->lanes[r];
		int64_t b = wave - (last - r), f = b + s->lead + step * (last - r);
		int64_t input = r == 0 ? 0 : (step == 1 ? lane[-1].forward_end : before) + hop;

		before = lane->forward_end;
		if (f >= 0 && f < entries) {
			if (r == 0)
				input = wrap_arrival(s, &s->forward, &lane->forward);
			record(s, lane, r, false, input);
			run_forward(s, lane, r, input);
			if (r == last)
				ring_put(s, &s->forward, lane->forward_end);
			s->simulated++;
		}
		if (b >= 0 && b < entries) {
			input = r == last ? wrap_arrival(s, &s->backward, &lane->backward) : lane[1].backward_end + hop;
			record(s, lane, r, true, input);
			run_backward(s, lane, r, input);
			if (r == 0)
				ring_put(s, &s->backward, lane->backward_end);
			s->simulated++;
		}
	}
}

/* ---- a run ---- */

struct mb_schedule *mb_schedule_new(int64_t max_group)
{
	struct mb_schedule *s = calloc(1, sizeof *s);
	int64_t state, *numbers;

	if (!s)
		return NULL;
	s->capacity = 2;
	while (s->capacity <= max_group && s->capacity < (int64_t)1 << 32)
		s->capacity *= 2;
	state = 2 * (MB_MAX_STAGES + s->capacity);
	/* Pages of rings that no pipeline fills are never touched. */
	s->numbers = numbers = malloc((size_t)(4 * state + 4 * s->capacity) * sizeof *numbers);
	if (!numbers) {
		free(s);
		return NULL;
	}
	s->snapshot = numbers;
	s->was = s->snapshot + state;
	s->now = s->was + state;
	s->drift = s->now + state;
	s->forward.ends = s->drift + state;
	s->forward.drifts = s->forward.ends + s->capacity;
	s->backward.ends = s->forward.drifts + s->capacity;
	s->backward.drifts = s->backward.ends + s->capacity;
	return s;
}

void mb_schedule_free(struct mb_schedule *s)
{
	if (s)
		free(s->numbers);
	free(s);
}

static void start_run(struct mb_schedule *s, const struct mb_pipeline *p, struct mb_schedule_op *trace)
{
	s->p = p;
	mb_table_fill(p, &s->table);
	s->lead = mb_pipeline_unclamped_warmup(p, p->pp - 1);
	s->simulated = 0;
	s->forward.written = s->forward.read = s->backward.written = s->backward.read = 0;
	for (int r = 0; r < p->pp; r++) {
		struct mb_lane *lane = &s->lanes[r];

		*lane = (struct mb_lane){ .forward_ps = p->forward_ps[r], .backward_ps = p->backward_ps[(p->vp - 1) * p->pp + r] };
		lane->trace = trace ? trace + r * 2 * s->table.entries : NULL;
		mb_cursor_start(&s->table, &lane->forward);
		mb_cursor_start(&s->table, &lane->backward);
	}
}

bool mb_schedule_run(struct mb_schedule *s, const struct mb_pipeline *p, int64_t *ret_end_ps, struct mb_schedule_op *trace)
{
	int64_t skew = p->pp - 1, wave, ahead, full, regular, ends, state;

	if (!mb_pipeline_runs(p))
		return false;
	start_run(s, p, trace);
	if (p->vp > 1 && (s->table.group < p->micro_batches ? s->table.group : p->micro_batches) >= s->capacity)
		return false;

	/* Rank 0 is furthest ahead in forwards, and last to reach its first backward. */
	ahead = mb_pipeline_unclamped_warmup(p, 0) - skew;
	full = s->table.entries - ahead;
	regular = s->table.regular - ahead;
	ends = s->table.entries + skew;
	state = later(p->pp, p->vp == 1 ? 0 : s->table.group);
	for (wave = -ahead; wave < ends && (wave <= skew || wave >= full || trace); wave++)
		run_edge_wave(s, wave);
	if (wave < full && state + s->table.period < regular) {
		mb_schedule_full_waves(s, state - wave);
		wave = mb_schedule_regular_waves(s, state, regular);
	}
	if (wave < full) {
		mb_schedule_full_waves(s, full - wave);
		wave = full;
	}
	for (; wave < ends; wave++)
		run_edge_wave(s, wave);
	for (int r = 0; r < p->pp; r++)
		ret_end_ps[r] = s->lanes[r].backward_end;
	return true;
}

int64_t mb_schedule_simulated(const struct mb_schedule *s)
{
	return s->simulated;
}
