#include "search/search.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "search/walk.h"

enum { MAX_COUNTS = 64 };

/* Layouts of the search over one number of GPUs: its plans name them by index. */
struct layouts {
	int gpus, count;
	const struct mb_layout *of;
};

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
	struct mb_ranked fit;           /* the best that fits, of all numbers of GPUs */
	bool has_fit;
	double fastest_s;               /* objective memory, several numbers of GPUs: the fastest that fits; 0: not known */
	struct layouts layouts[MAX_COUNTS];
	int counts;                     /* numbers of GPUs searched */
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

static bool has_limits(const struct search *s)
{
	return s->options->max_step_s > 0 || s->options->max_peak_bytes > 0;
}

static bool find_fastest(struct search *s, struct mb_walk *walk, double *ret)
{
	struct mb_best fastest;

	mb_best_init(&fastest, MB_AIM_STEP, 1, s->arena);
	set_limits(s, &fastest);
	if (!mb_walk_run(walk, &fastest, s->options))
		return false;
	if (fastest.has_fit && (*ret <= 0 || fastest.fit.step_s < *ret))
		*ret = fastest.fit.step_s;
	return true;
}

/* The objective memory looks for the least peak among plans hardly slower than the fastest. */
static bool pass_memory(struct search *s, struct mb_walk *walk, int wanted)
{
	double fastest_s = s->fastest_s;

	if (fastest_s <= 0 && !find_fastest(s, walk, &fastest_s))
		return false;
	mb_best_init(&s->top, MB_AIM_PEAK, wanted, s->arena);
	set_limits(s, &s->top);
	if (fastest_s > 0)
		s->top.max_step_s = fmin(s->top.max_step_s, fastest_s * (1 + s->options->memory_slack_frac));
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
	ok = mb_walk_init(&walk, &s->space, s->options->threads);
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
	} else if (ok && !has_limits(s)) {      /* what misses a limit may well fit */
		mb_best_init(&s->closest, MB_AIM_CLOSEST, 1, s->arena);
		ok = mb_walk_run(&walk, &s->closest, s->options);
	}
	s->layouts[s->counts++] = (struct layouts){ gpus, s->space.c.layout_count, s->space.c.layouts };
	mb_walk_free(&walk);
	return ok;
}

/* The fastest plan over all numbers of GPUs, which is what the objective memory compares with. */
static bool find_fastest_of(struct search *s, const int *gpus)
{
	bool ok = true;

	for (; ok && *gpus > 0; gpus++) {
		struct mb_walk walk;

		mb_space_fill(s->q, *gpus, s->arena, &s->space);
		ok = mb_walk_init(&walk, &s->space, s->options->threads) && find_fastest(s, &walk, &s->fastest_s);
		mb_walk_free(&walk);
	}
	return ok;
}

/* What the objective compares first, and what among equals. */
static bool is_before(const struct search *s, const struct mb_ranked *a, const struct mb_ranked *b)
{
	switch (s->options->objective) {
	case MB_OBJECTIVE_STEP:
		break;
	case MB_OBJECTIVE_MEMORY:
		return a->peak_bytes < b->peak_bytes;
	case MB_OBJECTIVE_COST:
		return a->step_s * a->gpus < b->step_s * b->gpus;
	case MB_OBJECTIVE_GPUS:
		if (a->gpus != b->gpus)
			return a->gpus < b->gpus;
	}
	return a->step_s < b->step_s;
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

/* Rows of one number of GPUs into the list of all, behind those that the objective does not put after them. */
static void merge(struct search *s, int wanted)
{
	struct mb_search_result *ret = s->ret;

	for (int i = 0; i < s->top.count; i++) {
		int at = ret->top_count;

		while (at > 0 && is_before(s, &s->top.of[i], &ret->top[at - 1]))
			at--;
		if (at >= wanted)
			continue;
		if (ret->top_count < wanted)
			ret->top_count++;
		memmove(&ret->top[at + 1], &ret->top[at], (size_t)(ret->top_count - 1 - at) * sizeof ret->top[0]);
		ret->top[at] = s->top.of[i];
	}
	if (s->top.has_fit && (!s->has_fit || is_before(s, &s->top.fit, &s->fit))) {
		s->fit = s->top.fit;
		s->has_fit = true;
	}
	mb_best_join(&s->fronts, &s->front);
	if (s->top.count == 0 && s->closest.count > 0
	    && (!ret->has_closest || s->closest.of[0].device_used_bytes < ret->closest.device_used_bytes)) {
		ret->closest = s->closest.of[0];
		ret->has_closest = true;
	}
}

/* The first that fits is recommended; there is always one in the list, if only as the last. */
static void recommend(struct search *s, int wanted)
{
	struct mb_search_result *ret = s->ret;

	ret->recommended = 0;
	while (ret->recommended < ret->top_count && ret->top[ret->recommended].verdict != MB_FITS)
		ret->recommended++;
	if (ret->recommended < ret->top_count)
		return;
	ret->recommended = -1;
	if (s->has_fit) {
		ret->recommended = ret->top_count < wanted ? ret->top_count++ : wanted - 1;
		ret->top[ret->recommended] = s->fit;
	}
}

/* Plans within a hundredth of the least cost tie with it, however many GPUs they take. */
static void tie_by_cost(struct mb_search_result *ret)
{
	for (int i = 1; i < ret->top_count; i++) {
		double least = ret->top[0].step_s * ret->top[0].gpus;

		ret->top[i].tie = ret->top[i].step_s * ret->top[i].gpus <= 1.01 * least;
	}
}

/* The plan names a layout of its own number of GPUs: makes it one of the result. */
static void take_layout(const struct search *s, struct mb_ranked *r)
{
	struct mb_search_result *ret = s->ret;
	const struct layouts *from = s->layouts;
	int i = 0;

	if (r->plan.layout < s->q->c.layout_count)      /* the query's; none */
		return;
	while (from->gpus != r->gpus)
		from++;
	while (i < ret->layout_count && strcmp(ret->layouts[i].text, from->of[r->plan.layout].text) != 0)
		i++;
	if (i == ret->layout_count)
		ret->layouts[ret->layout_count++] = from->of[r->plan.layout];
	r->plan.layout = i;
}

static void take_layouts(struct search *s)
{
	struct mb_search_result *ret = s->ret;
	size_t room = (size_t)(s->q->c.layout_count + ret->top_count + s->fronts.count + 1);

	ret->layouts = s->space.c.layouts;
	ret->layout_count = s->space.c.layout_count;
	if (s->counts == 1)
		return;
	ret->layouts = mb_arena_alloc(s->arena, room * sizeof *ret->layouts);
	ret->layout_count = s->q->c.layout_count;
	if (ret->layout_count > 0)
		memcpy(ret->layouts, s->q->c.layouts, (size_t)ret->layout_count * sizeof *ret->layouts);
	for (int i = 0; i < ret->top_count; i++)
		take_layout(s, &ret->top[i]);
	for (int i = 0; i < s->fronts.count; i++)
		take_layout(s, &s->fronts.of[i]);
	if (ret->has_closest)
		take_layout(s, &ret->closest);
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

/* Ascending, each once, 0 terminated: fewer GPUs come first where the objective does not tell plans apart. */
static void sort_counts(const struct mb_query *q, int ret[MAX_COUNTS])
{
	int count = 0;

	for (int i = 0; i < MAX_COUNTS - 1 && q->gpu_choices[i] > 0; i++) {
		int at = count;

		while (at > 0 && ret[at - 1] > q->gpu_choices[i])
			at--;
		if (at > 0 && ret[at - 1] == q->gpu_choices[i])
			continue;
		memmove(&ret[at + 1], &ret[at], (size_t)(count - at) * sizeof *ret);
		ret[at] = q->gpu_choices[i];
		count++;
	}
	if (count == 0)
		ret[count++] = q->c.run.gpus;
	ret[count] = 0;
}

static bool search_all(struct search *s, const int *gpus, int wanted)
{
	if (s->options->objective == MB_OBJECTIVE_MEMORY && gpus[1] > 0 && !find_fastest_of(s, gpus))
		return false;
	for (; *gpus > 0; gpus++) {
		if (!search_gpus(s, *gpus, wanted))
			return false;
		merge(s, wanted);
		if (s->options->objective == MB_OBJECTIVE_GPUS && s->top.has_fit)
			break;
	}
	return true;
}

static void finish(struct search *s, int wanted)
{
	struct mb_search_result *ret = s->ret;

	recommend(s, wanted);
	ret->has_closest = ret->has_closest && ret->top_count == 0;
	mb_best_compare_rows(ret->top, ret->top_count);
	if (s->options->objective == MB_OBJECTIVE_COST)
		tie_by_cost(ret);
	take_layouts(s);
	ret->front = s->fronts.of;
	ret->front_count = s->fronts.count;
	ret->knee = knee_of(ret->front, ret->front_count);
	fill_pruned(s);
	ret->plans_considered = s->tally.considered;
	ret->plans_costed = s->tally.costed;
	ret->plans_evaluated = s->tally.evaluated;
}

bool mb_search(const struct mb_query *q, const struct mb_search_options *options, struct mb_arena *arena,
               struct mb_search_result *ret, struct mb_diags *diags)
{
	int gpus[MAX_COUNTS], wanted = options->top < 1 ? 1 : options->top < MB_MAX_TOP ? options->top : MB_MAX_TOP;
	struct search s = { .q = q, .options = options, .arena = arena, .ret = ret };
	double start = now_s();

	memset(ret, 0, sizeof *ret);
	ret->top = mb_arena_alloc(arena, (size_t)(wanted + 1) * sizeof *ret->top);
	ret->threads = mb_pool_threads(options->threads);
	mb_best_init(&s.fronts, MB_AIM_FRONT, MB_MAX_FRONT, arena);
	sort_counts(q, gpus);
	if (!search_all(&s, gpus, wanted)) {
		mb_report(diags, MB_ERROR, (struct mb_pos){ NULL, 0, 0 }, "", "not enough memory for the search");
		return false;
	}
	finish(&s, wanted);
	ret->elapsed_s = now_s() - start;
	return true;
}
