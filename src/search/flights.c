/* What a rank of the split has in flight at once. */
#include "search/visit.h"

#include <math.h>
#include <string.h>

#include "base/larger.h"

static bool covers(const struct mb_flight *a, const struct mb_flight *b, int shares)
{
	if (a->bytes < b->bytes || (a->less_one && !b->less_one) || (b->backward && !a->backward))
		return false;
	for (int k = 0; k < shares; k++)
		if (a->counts[k] < b->counts[k])
			return false;
	return true;
}

/* Adds counts of a tight rank unless a set that is there covers them; drops what they cover. */
static void add_flight(struct mb_flights *f, const struct mb_flight *new, int shares)
{
	int kept = f->first;

	for (int i = f->first; i < f->count; i++)
		if (covers(&f->of[i], new, shares))
			return;
	for (int i = f->first; i < f->count; i++)
		if (!covers(new, &f->of[i], shares))
			f->of[kept++] = f->of[i];
	f->of[kept] = *new;
	f->count = kept + 1;
	f->used += shares;
}

/* Counts by chunk become counts by share. */
static void add_set(struct mb_visit *v, struct mb_flights *f, int tight, const int32_t *set, struct mb_flight new)
{
	const struct mb_rank_run *run = &v->row->runs[v->tight[tight].run];
	double *counts = f->counts + f->used;

	new.tight = (uint16_t)tight;
	new.counts = counts;
	for (int k = 0; k < run->share_count; k++) {
		counts[k] = 0;
		for (int j = 0; j < v->table->vp; j++)
			if (v->row->at[j * v->table->pp + run->first] == run->shares[k].piece)
				counts[k] += set[j];
	}
	add_flight(f, &new, run->share_count);
}

/* The first forward of the last chunk follows a group of each chunk before it, and needs the loss beside. */
static void add_loss(struct mb_visit *v, struct mb_flights *f, int tight)
{
	double group = mb_smaller(mb_larger(v->w->p.microbatch_group_size, v->table->pp), (double)v->w->micro_batches);
	int32_t set[MB_MAX_CHUNKS];

	for (int j = 0; j < v->table->vp; j++)
		set[j] = j < v->table->vp - 1 ? (int32_t)group : 1;
	add_set(v, f, tight, set, (struct mb_flight){ .bytes = v->loss_bytes });
}

/*
 * After its warm-up a rank has the last chunk run backward beside a forward, if there is one more: under EP overlap the
 * loss is needed then, forward and backward as one. Either: a flat pipeline's last rank meets the loss at once.
 */
static void add_warm(struct mb_visit *v, struct mb_flights *f, enum mb_flight_kind kind, const struct mb_live *live, int tight)
{
	int rank = v->tight[tight].rank, vp = v->table->vp;
	const int32_t *set = live->warm + (size_t)(rank * vp);
	struct mb_flight new = { .bytes = 0 };
	double warm = 0;

	for (int j = 0; j < vp; j++)
		warm += set[j];
	new.backward = warm < (double)v->w->micro_batches * vp;
	add_set(v, f, tight, set, new);
	if (!new.backward || rank != v->table->pp - 1 || (kind == MB_FLIGHTS_EITHER && vp > 1))
		return;
	new.backward = false;
	new.bytes = kind == MB_FLIGHTS_EITHER ? v->loss_bytes : v->loss_both_bytes;
	add_set(v, f, tight, set, new);
}

/*
 * Under EP overlap a forward and a backward run together and hold the larger of their chunks only: its sets are those
 * after the warm-up, and all others without their largest chunk. Either: what is in flight with the overlap and without
 * it.
 */
static void fill_tight(struct mb_visit *v, enum mb_flight_kind kind, const struct mb_live *live, int tight)
{
	struct mb_flights *f = &v->flights[kind];
	int rank = v->tight[tight].rank, vp = v->table->vp;
	const int32_t *set = live->sets + (size_t)rank * (MB_LIVE_SETS + 1) * (size_t)vp;

	f->first = f->count;
	if (kind != MB_FLIGHTS_PLAIN)
		add_warm(v, f, kind, live, tight);
	if (kind == MB_FLIGHTS_EITHER)
		return;
	for (int i = 0; i < live->set_count[rank]; i++, set += vp)
		add_set(v, f, tight, set, (struct mb_flight){ .less_one = kind == MB_FLIGHTS_OVERLAP, .backward = true });
	if (kind == MB_FLIGHTS_PLAIN && rank == v->table->pp - 1)
		add_loss(v, f, tight);
}

static double bytes_of(const struct mb_visit *v, const struct mb_flight *flight, const struct mb_chunk_costs *costs)
{
	const struct mb_rank_run *run = &v->row->runs[v->tight[flight->tight].run];
	double sum = flight->bytes, one = 0, event = INFINITY;

	for (int k = 0; k < run->share_count; k++) {
		double saved = costs->saved_bytes[run->shares[k].piece], beside = costs->event_bytes[run->shares[k].piece];

		sum += flight->counts[k] * saved;
		one = saved > one ? saved : one;
		event = beside < event ? beside : event;
	}
	return sum - (flight->less_one ? one : 0) + (flight->backward ? event : 0);
}

/* Where graphs are captured without an eager step before, the step itself may be smaller than its bound. */
void mb_visit_flight(struct mb_visit *v, const struct mb_chunk_costs *costs, enum mb_flight_kind kind)
{
	struct mb_flights *f = &v->flights[kind];
	bool captured_first = v->walk->s->c.run.cuda_graph_warmup_steps == 0;

	if (!f->known) {
		const struct mb_live *live = mb_live_of(v->w, v->table, kind == MB_FLIGHTS_OVERLAP);

		f->known = true;
		f->count = f->used = 0;
		for (int i = 0; i < v->tight_count; i++)
			fill_tight(v, kind, live, i);
	}
	for (int i = 0; i < v->tight_count; i++)
		v->flight_bytes[i] = captured_first ? -INFINITY : 0;
	for (int i = 0; i < f->count && !captured_first; i++) {
		double bytes = bytes_of(v, &f->of[i], costs), *most = &v->flight_bytes[f->of[i].tight];

		*most = bytes > *most ? bytes : *most;
	}
}
