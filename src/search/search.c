#include "search/search.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "search/walk.h"

/* A search over one number of GPUs or several; everything is kept until the end, since ranks are given over all. */
struct search {
	const struct mb_query *q;
	const struct mb_search_options *options;
	struct mb_arena *arena;
	struct mb_search_result *ret;
	struct mb_tally tally;
	struct mb_space space;
	struct mb_best top, front, closest;     /* of one number of GPUs */
	struct mb_best fronts;
};

static const double FRONT_SPAN = 0.1;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void set_limits(const struct search *s, struct mb_best *b)
{
	if (s->options->max_step_s > 0)
		b->max_step_s = s->options->max_step_s;
	if (s->options->max_peak_bytes > 0)
		b->max_peak_bytes = s->options->max_peak_bytes;
}

/* The objective memory looks for the least peak among plans hardly slower than the fastest. */
static bool pass_memory(struct search *s, struct mb_walk *walk, int wanted)
{
	struct mb_best fastest;

	mb_best_init(&fastest, MB_AIM_STEP, 1, s->arena);
	set_limits(s, &fastest);
	if (!mb_walk_run(walk, &fastest, s->options))
		return false;
	mb_best_init(&s->top, MB_AIM_PEAK, wanted, s->arena);
	set_limits(s, &s->top);
	if (fastest.has_fit)
		s->top.max_step_s = fmin(s->top.max_step_s, fastest.fit.step_s * (1 + s->options->memory_slack_frac));
	return mb_walk_run(walk, &s->top, s->options);
}

/* The front among plans with the sizes and stage split of a listed plan, up to a tenth slower than the fastest. */
static bool pass_front(struct search *s, struct mb_walk *walk)
{
	struct mb_ranked *near;
	bool ok;

	mb_best_init(&s->front, MB_AIM_FRONT, MB_MAX_FRONT, s->arena);
	set_limits(s, &s->front);
	s->front.max_step_s = fmin(s->front.max_step_s, (s->top.has_fit ? s->top.fit.step_s : s->top.of[0].step_s) * (1 + FRONT_SPAN));
	near = mb_arena_alloc(s->arena, (size_t)(s->top.count + 1) * sizeof *near);
	memcpy(near, s->top.of, (size_t)s->top.count * sizeof *near);
	walk->near = near;
	walk->near_count = s->top.count;
	if (s->top.has_fit)
		near[walk->near_count++] = s->top.fit;
	for (int i = 0; i < walk->near_count; i++)
		mb_best_offer(&s->front, &near[i]);
	ok = mb_walk_run(walk, &s->front, s->options);
	walk->near = NULL;
	walk->near_count = 0;
	return ok;
}

static bool search_gpus(struct search *s, int gpus, int wanted)
{
	struct mb_walk walk;
	bool ok;

	s->top.count = s->front.count = s->closest.count = 0;
	mb_space_fill(s->q, gpus, s->arena, &s->space);
	ok = mb_walk_init(&walk, &s->space);
	if (ok && s->options->objective == MB_OBJECTIVE_MEMORY) {
		ok = pass_memory(s, &walk, wanted);
	} else if (ok) {
		mb_best_init(&s->top, MB_AIM_STEP, wanted, s->arena);
		set_limits(s, &s->top);
		ok = mb_walk_run(&walk, &s->top, s->options);
	}
	if (ok) {
		mb_tally_add(&s->tally, &walk.tally);
		s->ret->plans_fit += s->top.fits;
	}
	if (ok && s->top.count > 0) {
		ok = pass_front(s, &walk);
	} else if (ok) {
		mb_best_init(&s->closest, MB_AIM_CLOSEST, 1, s->arena);
		ok = mb_walk_run(&walk, &s->closest, s->options);
	}
	mb_walk_free(&walk);
	return ok;
}

static double cost_of(const struct search *s, const struct mb_ranked *r)
{
	return s->options->objective == MB_OBJECTIVE_COST ? r->step_s * r->gpus : r->step_s;
}

/* The knee: furthest below the line between the ends of the front, both axes to scale. -1 with fewer than three. */
static int knee_of(const struct mb_ranked *front, int count)
{
	double dx, dy, most = 0;
	int knee = -1;

	if (count < 3)
		return -1;
	dx = front[count - 1].step_s - front[0].step_s;
	dy = front[0].peak_bytes - front[count - 1].peak_bytes;
	for (int i = 1; i < count - 1; i++) {
		double gain = (front[0].peak_bytes - front[i].peak_bytes) / dy - (front[i].step_s - front[0].step_s) / dx;

		if (gain > most) {
			most = gain;
			knee = i;
		}
	}
	return knee;
}

/* Rows of one number of GPUs into the list of all; the list stays sorted by what the objective compares. */
static void merge(struct search *s, int wanted)
{
	struct mb_search_result *ret = s->ret;

	for (int i = 0; i < s->top.count; i++) {
		int at = ret->top_count;

		while (at > 0 && s->options->objective != MB_OBJECTIVE_MEMORY && cost_of(s, &s->top.of[i]) < cost_of(s, &ret->top[at - 1]))
			at--;
		while (at > 0 && s->options->objective == MB_OBJECTIVE_MEMORY && s->top.of[i].peak_bytes < ret->top[at - 1].peak_bytes)
			at--;
		if (at >= wanted)
			continue;
		if (ret->top_count < wanted)
			ret->top_count++;
		memmove(&ret->top[at + 1], &ret->top[at], (size_t)(ret->top_count - 1 - at) * sizeof ret->top[0]);
		ret->top[at] = s->top.of[i];
	}
	if (s->top.has_fit) {           /* so that there is always one to recommend */
		bool fits = false;

		for (int i = 0; i < ret->top_count; i++)
			fits |= ret->top[i].verdict == MB_FITS;
		if (!fits)
			ret->top[ret->top_count < wanted ? ret->top_count++ : wanted - 1] = s->top.fit;
	}
	mb_best_join(&s->fronts, &s->front);
	if (s->top.count == 0 && s->closest.count > 0
	    && (!ret->has_closest || s->closest.of[0].device_used_bytes < ret->closest.device_used_bytes)) {
		ret->closest = s->closest.of[0];
		ret->has_closest = true;
	}
}

static void fill_pruned(struct search *s)
{
	static const char *const bounds[MB_COUNTS] = { [MB_COUNT_TIME] = "time_bound", [MB_COUNT_MEMORY] = "memory_bound",
		[MB_COUNT_NEEDLESS] = "needless_offload" };
	struct mb_search_result *ret = s->ret;

	for (int i = 0; i < mb_rule_count; i++) {
		int row = 0;

		if (s->tally.rules[i] <= 0)
			continue;
		while (row < ret->pruned_count && strcmp(ret->pruned[row].id, mb_rules[i].id) != 0)
			row++;
		if (row == MB_MAX_PRUNE_ROWS - MB_COUNTS)
			row--;
		else if (row == ret->pruned_count)
			ret->pruned[ret->pruned_count++].id = mb_rules[i].id;
		ret->pruned[row].count += s->tally.rules[i];
	}
	for (int i = 0; i < MB_COUNTS; i++)
		if (s->tally.bounds[i] > 0)
			ret->pruned[ret->pruned_count++] = (struct mb_prune_row){ bounds[i], s->tally.bounds[i] };
}

bool mb_search(const struct mb_query *q, const struct mb_search_options *options, struct mb_arena *arena,
               struct mb_search_result *ret, struct mb_diags *diags)
{
	int one[2] = { q->c.run.gpus, 0 };
	const int *gpus = q->gpu_choices[0] > 0 ? q->gpu_choices : one;
	int wanted = options->top < 1 ? 1 : options->top < MB_MAX_TOP ? options->top : MB_MAX_TOP;
	struct search s = { .q = q, .options = options, .arena = arena, .ret = ret };
	double start = now_s();

	memset(ret, 0, sizeof *ret);
	ret->top = mb_arena_alloc(arena, (size_t)(wanted + 1) * sizeof *ret->top);
	ret->recommended = -1;
	ret->threads = mb_pool_threads(options->threads);
	mb_best_init(&s.fronts, MB_AIM_FRONT, MB_MAX_FRONT, arena);
	for (; *gpus > 0; gpus++) {
		if (!search_gpus(&s, *gpus, wanted)) {
			mb_report(diags, MB_ERROR, (struct mb_pos){ NULL, 0, 0 }, "", "not enough memory for the search");
			return false;
		}
		merge(&s, wanted);
		if (options->objective == MB_OBJECTIVE_GPUS && s.top.has_fit)
			break;
	}
	for (int i = 0; i < ret->top_count && ret->recommended < 0; i++)
		if (ret->top[i].verdict == MB_FITS)
			ret->recommended = i;
	mb_best_compare_rows(ret->top, ret->top_count);
	ret->front = s.fronts.of;
	ret->front_count = s.fronts.count;
	ret->knee = knee_of(ret->front, ret->front_count);
	fill_pruned(&s);
	ret->plans_considered = s.tally.considered;
	ret->plans_costed = s.tally.costed;
	ret->plans_evaluated = s.tally.evaluated;
	ret->layouts = s.space.c.layouts;
	ret->layout_count = s.space.c.layout_count;
	ret->elapsed_s = now_s() - start;
	return true;
}
