/*
 * The steady state. The state between two waves is small: two ends a rank and the wrap-around ends not yet read. The
 * table repeats, hence so do the transitions; once that whole state returns plus a constant after some periods, it does
 * so for ever, and the run jumps to the end of the steady state. While it only drifts, it jumps to the end of the drift.
 */
#include "cost/schedule_wave.h"

/* The hot loop: inputs stay in registers along a wave. */
void mb_schedule_full_waves(struct mb_schedule *s, int64_t count)
{
	const int64_t hop = s->p->hop_ps;
	const int last = s->p->pp - 1;
	const bool interleaved = s->p->vp > 1;

	s->simulated += 2 * count * s->p->pp;
	for (; count > 0; count--) {
		int64_t arrival = wrap_arrival(s, &s->forward, &s->lanes[0].forward);

		for (int r = 0; r < last; r++) {
			struct mb_lane *lane = &s->lanes[r];
			int64_t before = lane->forward_end;

			run_forward(s, lane, r, arrival);
			arrival = (interleaved ? before : lane->forward_end) + hop;
			run_backward(s, lane, r, lane[1].backward_end + hop);
		}
		run_forward(s, &s->lanes[last], last, arrival);
		ring_put(s, &s->forward, s->lanes[last].forward_end);
		run_backward(s, &s->lanes[last], last, wrap_arrival(s, &s->backward, &s->lanes[last].backward));
		ring_put(s, &s->backward, s->lanes[0].backward_end);
	}
}

/* ---- jumps ---- */

/* Wrap-around ends that wait to be read between two waves. The rest of the state: both ends of every rank. */
static int64_t window(const struct mb_schedule *s)
{
	return s->p->vp == 1 ? 0 : s->table.group - (s->p->pp - 1);
}

static int64_t state_count(const struct mb_schedule *s)
{
	return 2 * (s->p->pp + window(s));
}

/* The state between two waves, of which a backward is the latest operation of every rank; or its drifts. */
static void read_state(const struct mb_schedule *s, bool drifts, int64_t *to)
{
	const int64_t *forward = drifts ? s->forward.drifts : s->forward.ends;
	const int64_t *backward = drifts ? s->backward.drifts : s->backward.ends;

	for (int r = 0; r < s->p->pp; r++) {
		*to++ = drifts ? s->lanes[r].backward_drift : s->lanes[r].backward_end;
		*to++ = drifts ? s->lanes[r].forward_drift : s->lanes[r].forward_end;
	}
	for (int64_t i = window(s); i > 0; i--) {
		*to++ = forward[(s->forward.written - i) & (s->capacity - 1)];
		*to++ = backward[(s->backward.written - i) & (s->capacity - 1)];
	}
}

static void write_drifts(struct mb_schedule *s, const int64_t *from)
{
	for (int r = 0; r < s->p->pp; r++) {
		s->lanes[r].backward_drift = *from++;
		s->lanes[r].forward_drift = *from++;
	}
	for (int64_t i = window(s); i > 0; i--) {
		s->forward.drifts[(s->forward.written - i) & (s->capacity - 1)] = *from++;
		s->backward.drifts[(s->backward.written - i) & (s->capacity - 1)] = *from++;
	}
}

/* Whether the state is `was` plus a constant. */
static bool same_but_later(const struct mb_schedule *s, const int64_t *was, int64_t *ret_shift)
{
	int64_t shift = s->lanes[0].backward_end - was[0];

	for (int r = 0; r < s->p->pp; r++, was += 2)
		if (s->lanes[r].backward_end - was[0] != shift || s->lanes[r].forward_end - was[1] != shift)
			return false;
	for (int64_t i = window(s); i > 0; i--, was += 2)
		if (ring_get(s, &s->forward, s->forward.written - i) - was[0] != shift ||
		    ring_get(s, &s->backward, s->backward.written - i) - was[1] != shift)
			return false;
	*ret_shift = shift;
	return true;
}

/* Passes over `periods`, in which every number of the state grows by `times` its drift. */
static void jump(struct mb_schedule *s, int64_t periods, int64_t times)
{
	for (int r = 0; r < s->p->pp; r++) {
		struct mb_lane *lane = &s->lanes[r];

		lane->forward_end += times * lane->forward_drift;
		lane->backward_end += times * lane->backward_drift;
		lane->clock = lane->backward_end;
		mb_cursor_skip(&s->table, &lane->forward, periods);
		mb_cursor_skip(&s->table, &lane->backward, periods);
	}
	for (int64_t i = window(s); i > 0; i--) {
		int64_t f = (s->forward.written - i) & (s->capacity - 1), b = (s->backward.written - i) & (s->capacity - 1);

		s->forward.ends[f] += times * s->forward.drifts[f];
		s->backward.ends[b] += times * s->backward.drifts[b];
	}
}

/*
 * The later of two moments that drift a period; notes for how many periods it stays the later one. With equal moments
 * the faster one is the later from now on.
 */
static struct mb_moment later_moment(struct mb_schedule *s, struct mb_moment a, struct mb_moment b)
{
	int64_t lead = b.at - a.at, gain = b.drift - a.drift;
	bool second = lead > 0 || (lead == 0 && gain > 0);

	if ((second ? gain < 0 : gain > 0) && lead / -gain < s->holds)
		s->holds = lead / -gain;
	return second ? b : a;
}

static struct mb_moment wrap_moment(struct mb_schedule *s, struct mb_wrap *w, const struct mb_cursor *c)
{
	int64_t drift = w->drifts[(w->read - c->size) & (s->capacity - 1)];
	int64_t at = wrap_arrival(s, w, c);

	return (struct mb_moment){ at, c->chunk == 0 ? 0 : drift };
}

/*
 * One period of full waves (vp > 1) that also carries the drift of every end: what it would gain if the state moved
 * by its drift. The choices of all operations, hence the drifts, hold for s->holds such moves.
 */
static void run_drifting_period(struct mb_schedule *s)
{
	const int64_t hop = s->p->hop_ps;
	const int last = s->p->pp - 1;

	s->holds = INT64_MAX;
	s->simulated += 2 * s->table.period * s->p->pp;
	for (int64_t i = 0; i < s->table.period; i++) {
		struct mb_moment input = wrap_moment(s, &s->forward, &s->lanes[0].forward), start;

		for (int r = 0; r <= last; r++) {
			struct mb_lane *lane = &s->lanes[r];
			struct mb_moment before = { lane->forward_end + hop, lane->forward_drift };

			start = later_moment(s, (struct mb_moment){ lane->backward_end, lane->backward_drift }, input);
			lane->forward_drift = start.drift;
			run_forward(s, lane, r, start.at);
			input = before;
			if (r < last) {
				start = (struct mb_moment){ lane[1].backward_end + hop, lane[1].backward_drift };
			} else {
				s->forward.drifts[s->forward.written & (s->capacity - 1)] = lane->forward_drift;
				ring_put(s, &s->forward, lane->forward_end);
				start = wrap_moment(s, &s->backward, &lane->backward);
			}
			start = later_moment(s, (struct mb_moment){ lane->forward_end, lane->forward_drift }, start);
			lane->backward_drift = start.drift;
			run_backward(s, lane, r, start.at);
		}
		s->backward.drifts[s->backward.written & (s->capacity - 1)] = s->lanes[0].backward_drift;
		ring_put(s, &s->backward, s->lanes[0].backward_end);
	}
}

/* Brings s->was and s->drift up to date after a period; true when every number moved as in the period before. */
static bool drift_again(struct mb_schedule *s)
{
	int64_t changes = 0;

	read_state(s, false, s->now);
	for (int64_t i = 0; i < state_count(s); i++) {
		int64_t drift = s->now[i] - s->was[i];

		changes += drift != s->drift[i];
		s->drift[i] = drift;
		s->was[i] = s->now[i];
	}
	return changes == 0;
}

/*
 * A slightly slower rank loses its slack over hundreds of periods; until then the numbers of the state move at unequal,
 * constant rates. Let F be one period. If F(x) = x + d, and F grows by d when x does for k such moves, then
 * F(x + j d) = x + (j + 1) d for j <= k: those periods are passed at once. Returns how many periods it moved on.
 */
static int64_t run_drift(struct mb_schedule *s, int64_t most)
{
	bool steady;
	int64_t times;

	write_drifts(s, s->drift);
	run_drifting_period(s);
	steady = drift_again(s);
	read_state(s, true, s->now);
	for (int64_t i = 0; i < state_count(s); i++)
		steady = steady && s->now[i] == s->drift[i];
	times = s->holds < most - 1 ? s->holds : most - 1;
	if (!steady || times <= 0)
		return 1;
	jump(s, times, times);
	read_state(s, false, s->was);
	return 1 + times;
}

/*
 * The state may come back after several periods only (hop latency makes cycles of up to pp micro-batches), so the
 * snapshot is renewed at powers of two, as in Brent's search for cycles.
 */
int64_t mb_schedule_regular_waves(struct mb_schedule *s, int64_t wave, int64_t regular)
{
	const int64_t period = s->table.period;
	int64_t since = 0, renew = 1, shift;

	read_state(s, false, s->snapshot);
	read_state(s, false, s->was);
	for (int64_t i = 0; i < state_count(s); i++)
		s->drift[i] = -1;
	while (wave + period < regular) {
		int64_t left, moved = 1;

		mb_schedule_full_waves(s, period);
		wave += period;
		since++;
		left = (regular - 1 - wave) / period;
		if (same_but_later(s, s->snapshot, &shift)) {
			for (int64_t i = 0; i < state_count(s); i++)
				s->drift[i] = shift;
			write_drifts(s, s->drift);
			jump(s, left / since * since, left / since);
			return wave + left / since * since * period;
		}
		if (s->p->vp > 1 && drift_again(s) && left > 0) {
			moved = run_drift(s, left);
			wave += moved * period;
			since += moved;
		}
		if (since >= renew || moved > 1) {
			read_state(s, false, s->snapshot);
			renew = moved > 1 ? 1 : renew * 2;
			since = 0;
		}
	}
	return wave;
}
