/* What follows from the order of a schedule without running it: the table, the warm-ups, and lower bounds. */
#include "cost/schedule.h"

#include "plan/case.h"

static inline int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- order ---- */

void mb_table_fill(const struct mb_pipeline *p, struct mb_table *ret)
{
	int64_t m = p->micro_batches;
	int64_t group = p->vp == 1 ? m : p->group > 0 ? p->group : p->pp;

	*ret = (struct mb_table){ .vp = p->vp, .group = group, .full_groups = m / group, .tail = m % group,
	                          .entries = m * p->vp };
	ret->regular = ret->full_groups * group * p->vp;
	ret->period = p->vp == 1 ? 1 : group * p->vp;
}

void mb_cursor_start(const struct mb_table *t, struct mb_cursor *ret)
{
	int64_t size = t->full_groups > 0 ? t->group : t->tail;

	*ret = (struct mb_cursor){ .left = size, .size = size, .full_groups_after = later(t->full_groups - 1, 0) };
}

void mb_cursor_skip(const struct mb_table *t, struct mb_cursor *c, int64_t periods)
{
	if (t->vp == 1) {
		c->left -= periods;
	} else {
		c->first += periods * t->group;
		c->full_groups_after -= periods;
	}
}

/* [Megatron Core pipeline_parallel/schedules.py get_pp_rank_microbatches] */
int64_t mb_pipeline_unclamped_warmup(const struct mb_pipeline *p, int rank)
{
	int64_t after = p->pp - 1 - rank;

	if (p->vp == 1)
		return after + (p->pp == 1 && p->ep_overlap);
	return 2 * after + (p->vp - 1) * (p->group > 0 ? p->group : p->pp) + p->ep_overlap;
}

int64_t mb_pipeline_warmup(const struct mb_pipeline *p, int rank)
{
	int64_t w = mb_pipeline_unclamped_warmup(p, rank), entries = p->micro_batches * p->vp;

	return w < entries ? w : entries;
}

bool mb_pipeline_ordered(const struct mb_pipeline *p)
{
	const int64_t most = INT32_MAX;
	struct mb_table t;

	if (p->pp < 1 || p->pp > MB_MAX_STAGES || p->vp < 1 || p->vp > MB_MAX_CHUNKS / p->pp || p->micro_batches < 1 ||
	    p->micro_batches > most || p->group < 0 || p->group > most)
		return false;
	if (p->vp == 1)
		return true;
	mb_table_fill(p, &t);
	return p->pp > 1 && t.group >= p->pp && (t.tail == 0 || t.tail >= p->pp);
}

/* A wave takes at most two of the longest operations with their hops, and all waves follow each other. */
bool mb_pipeline_runs(const struct mb_pipeline *p)
{
	int64_t longest = 0;
	double waves;

	if (!mb_pipeline_ordered(p) || p->hop_ps < 0)
		return false;
	for (int j = 0; j < p->pp * p->vp; j++) {
		if (p->forward_ps[j] < 0 || p->backward_ps[j] < 0)
			return false;
		longest = later(longest, later(p->forward_ps[j], p->backward_ps[j]));
	}
	waves = (double)p->micro_batches * p->vp + (double)mb_pipeline_unclamped_warmup(p, 0) + 2.0 * p->pp;
	return waves * 2.0 * ((double)longest + (double)p->hop_ps) < 9e18;
}

/* ---- bounds ---- */

int64_t mb_schedule_step(const struct mb_pipeline *p, const int64_t *end_ps, const int64_t *finish_ps)
{
	int64_t step = 0;

	for (int r = 0; r < p->pp; r++)
		step = later(step, end_ps[r] + (finish_ps ? finish_ps[r] : 0));
	return step;
}

/*
 * What must follow the last operation of `rank`, a backward of chunk 0: its own finish, or the backwards of the ranks
 * before it and then theirs. `before`: the same of rank - 1.
 */
static int64_t tail_after(const struct mb_pipeline *p, const int64_t *finish_ps, int rank, int64_t before)
{
	int64_t own = finish_ps ? finish_ps[rank] : 0;

	return rank == 0 ? own : later(own, p->hop_ps + p->backward_ps[rank - 1] + before);
}

/*
 * A rank cannot start before its first input, then runs all its operations, and the last gradient still has to reach
 * the first rank:
 *
 *     T >= sum_{q<r} (f + b)[q][chunk 0] + 2 r hop + M W_r                    for every rank r
 */
int64_t mb_schedule_fast_bound(const struct mb_pipeline *p, const int64_t *finish_ps)
{
	int64_t bound = 0, head = 0, tail = 0;

	for (int r = 0; r < p->pp; r++) {
		int64_t work = 0;

		for (int j = r; j < p->pp * p->vp; j += p->pp)
			work += p->forward_ps[j] + p->backward_ps[j];
		tail = tail_after(p, finish_ps, r, tail);
		bound = later(bound, head + p->micro_batches * work + tail);
		head += p->forward_ps[r] + p->hop_ps;
	}
	return bound;
}

/* One rank's durations in the order of the table, and the sums over the ranks before it and all ranks, by chunk. */
struct row {
	int64_t duration, passed;       /* of this table position; of all positions before it, for one micro-batch */
};

struct view {
	struct mb_table table;
	int64_t warmup;
	struct row forward[MB_MAX_CHUNKS / 2 + 1], backward[MB_MAX_CHUNKS / 2 + 1];     /* [vp]: all work of a micro-batch */
};

struct travel {
	int64_t forward_before, forward_all, backward_before, backward_all;
};

/* Time of the first `entries` entries of the table on this rank. */
static int64_t table_time(const struct mb_table *t, const struct row *rows, int64_t entries)
{
	int64_t groups = entries / (t->group * t->vp), size = t->group, rest, chunk;

	if (groups >= t->full_groups) {
		groups = t->full_groups;
		size = t->tail;
	}
	rest = entries - groups * t->group * t->vp;
	if (rest == 0)
		return groups * t->group * rows[t->vp].passed;
	chunk = rest / size;
	return groups * t->group * rows[t->vp].passed + size * rows[chunk].passed + (rest - chunk * size) * rows[chunk].duration;
}

/* Time of the first `count` operations of this rank's list. */
static int64_t list_time(const struct view *v, int64_t count)
{
	int64_t steady = v->table.entries - v->warmup, pairs = count - v->warmup, forwards, backwards;

	if (pairs <= 0) {
		forwards = count;
		backwards = 0;
	} else if (pairs <= 2 * steady) {
		forwards = v->warmup + (pairs + 1) / 2;
		backwards = pairs / 2;
	} else {
		forwards = v->table.entries;
		backwards = count - v->table.entries;
	}
	return table_time(&v->table, v->forward, forwards) + table_time(&v->table, v->backward, backwards);
}

static int64_t table_entry(const struct mb_table *t, int64_t micro_batch, int chunk)
{
	int64_t group = micro_batch / t->group;
	int64_t size = group < t->full_groups ? t->group : t->tail;

	return group * t->group * t->vp + chunk * size + (micro_batch - group * t->group);
}

/* Place in the list of link i of a micro-batch's chain F(0) .. F(vp - 1), B(vp - 1) .. B(0). */
static int64_t list_position(const struct view *v, int64_t micro_batch, int link)
{
	int64_t entries = v->table.entries, w = v->warmup, k;

	if (link < v->table.vp) {
		k = table_entry(&v->table, micro_batch, link);
		return k < w ? k : w + 2 * (k - w);
	}
	k = table_entry(&v->table, micro_batch, link - v->table.vp);
	return k < entries - w ? w + 2 * k + 1 : entries + k;
}

/* Least time between the end of link i on `rank` and the start of link i + 1 there: the way through the other ranks. */
static int64_t way_round(const struct mb_pipeline *p, const struct travel *travel, int rank, int link)
{
	int c = link < p->vp ? link : 2 * p->vp - 1 - link;
	const struct travel *here = &travel[c];
	int64_t forward_after = here->forward_all - here->forward_before - p->forward_ps[c * p->pp + rank];
	int64_t backward_after = here->backward_all - here->backward_before - p->backward_ps[c * p->pp + rank];

	if (link < p->vp - 1)
		return forward_after + travel[c + 1].forward_before + p->pp * p->hop_ps;
	if (link == p->vp - 1)
		return forward_after + backward_after + 2 * (p->pp - 1 - rank) * p->hop_ps;
	backward_after = travel[c - 1].backward_all - travel[c - 1].backward_before - p->backward_ps[(c - 1) * p->pp + rank];
	return here->backward_before + backward_after + p->pp * p->hop_ps;
}

struct interval {
	int64_t from, to, idle;         /* positions of two links; least idle time between them */
};

static void fill_intervals(const struct mb_pipeline *p, const struct view *v, const struct travel *travel, int rank,
                           int64_t micro_batch, struct interval *ret)
{
	int64_t to = list_position(v, micro_batch, 0), before_to = list_time(v, to);

	for (int i = 0; i < 2 * p->vp - 1; i++) {
		int64_t from = to, before = before_to + (i < p->vp ? v->forward[i].duration : v->backward[i - p->vp].duration);

		to = list_position(v, micro_batch, i + 1);
		before_to = list_time(v, to);
		ret[i] = (struct interval){ from, to, later(0, way_round(p, travel, rank, i) - (before_to - before)) };
	}
}

/*
 * Idle time that the rank cannot avoid: between two links of a micro-batch's chain the work is on other ranks, and the
 * rank has only the operations between them in its list. Intervals of the first micro-batch up to some cut, then those
 * of the last micro-batch after it, do not overlap, so their idle times add up.
 */
static int64_t unavoidable_idle(const struct mb_pipeline *p, const struct view *v, const struct travel *travel, int rank)
{
	struct interval first[MB_MAX_CHUNKS], last[MB_MAX_CHUNKS];
	int count = 2 * p->vp - 1, next = 0;
	int64_t sum = 0, rest = 0, best;

	fill_intervals(p, v, travel, rank, 0, first);
	fill_intervals(p, v, travel, rank, p->micro_batches - 1, last);
	for (int i = 0; i < count; i++)
		rest += last[i].idle;
	best = rest;
	for (int i = 0; i < count; i++) {
		sum += first[i].idle;
		for (; next < count && last[next].from < first[i].to; next++)
			rest -= last[next].idle;
		best = later(best, sum + rest);
	}
	return best;
}

static void fill_view(const struct mb_pipeline *p, int rank, struct view *ret)
{
	int64_t forward = 0, backward = 0;

	ret->warmup = mb_pipeline_warmup(p, rank);
	for (int c = 0; c < p->vp; c++) {
		ret->forward[c] = (struct row){ p->forward_ps[c * p->pp + rank], forward };
		ret->backward[c] = (struct row){ p->backward_ps[(p->vp - 1 - c) * p->pp + rank], backward };
		forward += ret->forward[c].duration;
		backward += ret->backward[c].duration;
	}
	ret->forward[p->vp] = (struct row){ 0, forward };
	ret->backward[p->vp] = (struct row){ 0, backward };
}

/* One micro-batch through everything; what follows its last backward on the last rank is that rank's tail. */
static int64_t one_micro_batch(const struct mb_pipeline *p, int64_t tail)
{
	int64_t chunks = (int64_t)p->pp * p->vp, sum = tail + (2 * chunks - 1 - p->pp) * p->hop_ps;

	for (int j = 0; j < chunks; j++)
		sum += p->forward_ps[j] + (j < p->pp - 1 ? 0 : p->backward_ps[j]);
	return sum;
}

/*
 * The fast bound plus the unavoidable idle time, and one micro-batch through everything. Equal to the simulation for
 * equal chunks; holds for any durations, hop, group and warm-up.
 */
int64_t mb_schedule_tight_bound(const struct mb_pipeline *p, const int64_t *finish_ps, int64_t enough_ps)
{
	struct travel travel[MB_MAX_CHUNKS / 2 + 1];
	struct view view;
	int64_t bound = 0, head = 0, tail = 0;

	mb_table_fill(p, &view.table);
	for (int c = 0; c < p->vp; c++)
		travel[c] = (struct travel){ 0 };
	for (int j = 0; j < p->pp * p->vp; j++) {
		travel[j / p->pp].forward_all += p->forward_ps[j];
		travel[j / p->pp].backward_all += p->backward_ps[j];
	}
	for (int r = 0; r < p->pp && bound <= enough_ps; r++) {
		fill_view(p, r, &view);
		tail = tail_after(p, finish_ps, r, tail);
		bound = later(bound, head + tail + unavoidable_idle(p, &view, travel, r) +
		              p->micro_batches * (view.forward[p->vp].passed + view.backward[p->vp].passed));
		head += p->forward_ps[r] + p->hop_ps;
		for (int c = 0; c < p->vp; c++) {
			travel[c].forward_before += p->forward_ps[c * p->pp + r];
			travel[c].backward_before += p->backward_ps[c * p->pp + r];
		}
	}
	return bound > enough_ps ? bound : later(bound, one_micro_batch(p, tail));
}
