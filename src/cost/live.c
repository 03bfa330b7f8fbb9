/*
 * Walks one rank's list of operations in stretches that neither change the chunk of the forwards nor that of the
 * backwards: along a stretch the set in flight moves on a line, so only its ends are looked at. The sets repeat every
 * period of the schedule table while both forwards and backwards are in its regular part, so one period of the steady
 * state stands for all of them.
 * [Megatron Core pipeline_parallel/schedules.py]
 */
#include "cost/live.h"

#include <string.h>

#include "plan/case.h"

struct walk {
	struct mb_table table;
	int64_t warmup;
	int64_t pair;                   /* forward warmup + pair, then backward pair; warm-up has pairs below 0 */
	int64_t length, offset;         /* of the stretch that begins at `pair`; where in it the walk stands */
	bool has_forward, has_backward; /* of the stretch */
	struct mb_cursor forward, backward;     /* at its begin */
	int64_t in_flight;
	int32_t counts[MB_MAX_CHUNKS];  /* after the forward at `offset`, before the backward there */
};

static int backward_chunk(const struct walk *w)
{
	return w->table.vp - 1 - w->backward.chunk;
}

static void move(struct walk *w, int64_t forwards, int64_t backwards)
{
	if (w->has_forward) {
		w->counts[w->forward.chunk] += (int32_t)forwards;
		w->in_flight += forwards;
	}
	if (w->has_backward) {
		w->counts[backward_chunk(w)] -= (int32_t)backwards;
		w->in_flight -= backwards;
	}
}

static bool begin_stretch(struct walk *w)
{
	int64_t n = w->pair < 0 ? -w->pair : w->pair < w->table.period ? w->table.period - w->pair : INT64_MAX;

	if (w->pair >= w->table.entries)
		return false;
	w->has_forward = w->pair + w->warmup < w->table.entries;
	w->has_backward = w->pair >= 0;
	if (w->has_forward && w->forward.left < n)
		n = w->forward.left;
	if (w->has_backward && w->backward.left < n)
		n = w->backward.left;
	w->length = n;
	w->offset = 0;
	move(w, 1, 0);
	return true;
}

static bool start_walk(const struct mb_pipeline *p, int rank, struct walk *ret)
{
	mb_table_fill(p, &ret->table);
	ret->warmup = mb_pipeline_warmup(p, rank);
	ret->pair = -ret->warmup;
	ret->in_flight = 0;
	mb_cursor_start(&ret->table, &ret->forward);
	mb_cursor_start(&ret->table, &ret->backward);
	memset(ret->counts, 0, (size_t)p->vp * sizeof ret->counts[0]);
	return begin_stretch(ret);
}

/* Passes over all periods that would repeat the first one of the steady state. */
static void skip_periods(struct walk *w)
{
	int64_t periods = (w->table.regular - 1 - w->warmup - w->pair) / w->table.period;

	if (periods <= 0)
		return;
	mb_cursor_skip(&w->table, &w->forward, periods);
	mb_cursor_skip(&w->table, &w->backward, periods);
	w->pair += periods * w->table.period;
}

/* To the other end of the stretch, or into the next one. False at the end of the list. */
static bool next_set(struct walk *w)
{
	int64_t rest = w->length - 1 - w->offset;

	if (rest > 0) {
		move(w, rest, rest);
		w->offset += rest;
		return true;
	}
	move(w, 0, 1);
	if (w->has_forward)
		mb_cursor_pass(&w->table, &w->forward, w->length);
	if (w->has_backward)
		mb_cursor_pass(&w->table, &w->backward, w->length);
	w->pair += w->length;
	if (w->pair == w->table.period)
		skip_periods(w);
	return begin_stretch(w);
}

/* Always summed from the counts, in one order: equal sets give equal sums. */
static double saved_sum(const struct walk *w, const double *saved)
{
	double sum = 0;

	for (int c = 0; c < w->table.vp; c++)
		sum += w->counts[c] * saved[c];
	return sum;
}

static void keep_larger(const struct walk *w, double saved_bytes, double extra, bool backward, int beside,
                        struct mb_live_event *best)
{
	const struct mb_cursor *c = backward ? &w->backward : &w->forward;

	if (best->in_flight > 0 && saved_bytes + extra <= best->bytes)
		return;
	*best = (struct mb_live_event){
		.bytes = saved_bytes + extra, .saved_bytes = saved_bytes, .in_flight = w->in_flight,
		.micro_batch = mb_cursor_micro_batch(c) + w->offset, .chunk = backward ? backward_chunk(w) : c->chunk,
		.beside = beside, .backward = backward,
	};
}

/*
 * Combined forward and backward run layer by layer, one keeping activations while the other frees them: together they
 * hold the larger of the two chunks, not both. Goldens of runs with EP overlap peak where runs without it do.
 */
static double combined_sum(const struct walk *w, double sum, const double *saved)
{
	double kept = saved[w->forward.chunk], freed = saved[backward_chunk(w)];

	return sum - (kept < freed ? kept : freed);
}

void mb_live_peak(const struct mb_pipeline *p, int rank, const double *saved, const double *forward_extra,
                  const double *backward_extra, struct mb_live_event *ret)
{
	const bool combined = p->ep_overlap && (p->vp > 1 || p->pp == 1);
	struct walk w;

	*ret = (struct mb_live_event){ .beside = -1 };
	for (bool more = start_walk(p, rank, &w); more; more = next_set(&w)) {
		double sum = saved_sum(&w, saved);
		double forward = w.has_forward && forward_extra ? forward_extra[w.forward.chunk] : 0;
		double backward = w.has_backward && backward_extra ? backward_extra[backward_chunk(&w)] : 0;

		if (w.has_forward && w.has_backward && combined) {
			keep_larger(&w, combined_sum(&w, sum, saved), forward + backward, true, w.forward.chunk, ret);
			continue;
		}
		if (w.has_forward)
			keep_larger(&w, sum, forward, false, -1, ret);
		if (w.has_backward)
			keep_larger(&w, sum, backward, true, -1, ret);
	}
}

int64_t mb_live_count(const struct mb_pipeline *p, int rank)
{
	int64_t most = mb_pipeline_warmup(p, rank) + 1, entries = p->micro_batches * p->vp;

	return most < entries ? most : entries;
}

static bool covers(const int32_t *a, const int32_t *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i] < b[i])
			return false;
	return true;
}

/* Inserts a set unless one there contains it; drops those that it contains. Returns the new count. */
static int insert_set(int32_t *sets, int count, int max, const int32_t *set, int vp)
{
	int kept = 0;

	for (int i = 0; i < count; i++)
		if (covers(sets + (size_t)i * (size_t)vp, set, vp))
			return count;
	for (int i = 0; i < count; i++) {
		if (covers(set, sets + (size_t)i * (size_t)vp, vp))
			continue;
		if (kept != i)
			memcpy(sets + (size_t)kept * (size_t)vp, sets + (size_t)i * (size_t)vp, (size_t)vp * sizeof *sets);
		kept++;
	}
	if (kept < max)
		memcpy(sets + (size_t)kept * (size_t)vp, set, (size_t)vp * sizeof *sets);
	return kept < max ? kept + 1 : max + 1;
}

int mb_live_vectors(const struct mb_pipeline *p, int rank, int max, int32_t *ret)
{
	int count = 0;
	struct walk w;

	for (bool more = start_walk(p, rank, &w); more && count <= max; more = next_set(&w))
		/* During warm-up the set only grows. */
		if (w.has_backward)
			count = insert_set(ret, count, max, w.counts, p->vp);
	return count;
}
