#include "report/pipeline_window.h"

#include <stdint.h>

#include "cost/schedule.h"
#include "plan/case.h"

static const double PS_PER_MS = 1e9;

static double number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static int64_t *durations(const cJSON *list, struct mb_arena *arena)
{
	int64_t *ret = mb_arena_alloc(arena, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *ret);
	const cJSON *one;
	int i = 0;

	cJSON_ArrayForEach(one, list)
		ret[i++] = (int64_t)one->valuedouble;
	return ret;
}

/* Every operation of every rank; NULL when there is no such schedule. */
static const struct mb_schedule_op *run(const cJSON *o, struct mb_arena *arena, struct mb_pipeline *p)
{
	const cJSON *forward = cJSON_GetObjectItem(o, "forward_ps"), *backward = cJSON_GetObjectItem(o, "backward_ps");
	int64_t end_ps[MB_MAX_STAGES];
	struct mb_schedule_op *ops;
	struct mb_schedule *s;

	*p = (struct mb_pipeline){ .pp = (int)number(o, "pp"), .vp = (int)number(o, "vp"), .micro_batches = (int64_t)number(o, "micro_batches"),
		.group = (int64_t)number(o, "group"), .ep_overlap = cJSON_IsTrue(cJSON_GetObjectItem(o, "ep_overlap")), .hop_ps = (int64_t)number(o, "hop_ps") };
	if (p->pp < 1 || p->pp > MB_MAX_STAGES || p->vp < 1 || p->vp > MB_MAX_CHUNKS || p->micro_batches > 1000000
	    || cJSON_GetArraySize(forward) != p->pp * p->vp || cJSON_GetArraySize(backward) != p->pp * p->vp)
		return NULL;
	p->forward_ps = durations(forward, arena);
	p->backward_ps = durations(backward, arena);
	if (!mb_pipeline_runs(p) || p->pp * p->vp * p->micro_batches > 2000000)
		return NULL;
	s = mb_schedule_new(p->group > MB_MAX_STAGES ? p->group : MB_MAX_STAGES);
	ops = mb_arena_alloc(arena, (size_t)(2 * p->pp * p->vp * p->micro_batches) * sizeof *ops);
	if (!s || !mb_schedule_run(s, p, end_ps, ops))
		ops = NULL;
	mb_schedule_free(s);
	return ops;
}

/* End of the first rank's warm-up and of one period after it. */
static int64_t end_of_window(const struct mb_pipeline *p, const struct mb_schedule_op *ops)
{
	int64_t entries = p->vp * p->micro_batches, period = p->vp * (p->group ? p->group : p->pp);
	int64_t last = mb_pipeline_warmup(p, 0) + 2 * period;

	return ops[last < 2 * entries ? last : 2 * entries - 1].end_ps;
}

static void fill_rank(const struct mb_schedule_op *ops, int64_t count, int64_t end_ps, struct mb_arena *arena, struct mb_window_rank *ret)
{
	int64_t n = 0, busy = 0;

	while (n < count && ops[n].start_ps < end_ps)
		n++;
	ret->ops = mb_arena_alloc(arena, ((size_t)n + 1) * sizeof *ret->ops);
	ret->count = (int)n;
	for (int64_t i = 0; i < n; i++) {
		int64_t end = ops[i].end_ps < end_ps ? ops[i].end_ps : end_ps;

		busy += end - ops[i].start_ps;
		ret->ops[i] = (struct mb_window_op){ (double)ops[i].start_ps / PS_PER_MS, (double)end / PS_PER_MS, ops[i].micro_batch, ops[i].chunk,
			ops[i].backward };
	}
	ret->busy_frac = end_ps > 0 ? (double)busy / (double)end_ps : 0;
}

bool mb_window_fill(const cJSON *pipeline, struct mb_arena *arena, struct mb_window *ret)
{
	struct mb_pipeline p;
	const struct mb_schedule_op *ops = run(pipeline, arena, &p);
	int64_t end_ps, per_rank;

	if (!ops)
		return false;
	end_ps = end_of_window(&p, ops);
	per_rank = 2 * p.vp * p.micro_batches;
	*ret = (struct mb_window){ .pp = p.pp, .micro_batches = p.micro_batches, .end_ms = (double)end_ps / PS_PER_MS };
	ret->ranks = mb_arena_alloc(arena, (size_t)p.pp * sizeof *ret->ranks);
	for (int r = 0; r < p.pp; r++) {
		fill_rank(ops + r * per_rank, per_rank, end_ps, arena, &ret->ranks[r]);
		ret->ranks[r].warmup = mb_pipeline_warmup(&p, r);
	}
	return true;
}
