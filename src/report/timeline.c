#include "report/timeline.h"

#include <math.h>

static const double PS = 1e12;

int64_t mb_timeline_operations(const struct mb_evaluation *e)
{
	return 2 * e->dims.micro_batches * e->split.chunk_count;
}

bool mb_timeline_fill(const struct mb_plan *p, const struct mb_evaluation *e, struct mb_arena *arena, struct mb_timeline *ret)
{
	int pp = e->dims.pp;

	*ret = (struct mb_timeline){ .e = e, .pipeline = { pp, e->split.chunk_count / pp, e->dims.micro_batches,
		p->microbatch_group_size, p->overlap_moe_expert_parallel_comm, e->chunk_forward_ps, e->chunk_backward_ps, e->hop_ps } };
	ret->per_rank = 2 * e->dims.micro_batches * ret->pipeline.vp;
	if (!mb_pipeline_runs(&ret->pipeline) || mb_timeline_operations(e) > MB_TIMELINE_MAX)
		return false;
	ret->ops = mb_arena_alloc(arena, (size_t)mb_timeline_operations(e) * sizeof *ret->ops);
	if (!mb_schedule_run(e->schedule, &ret->pipeline, ret->end_ps, ret->ops))
		return false;
	for (int r = 0; r < pp; r++) {
		const struct mb_stage_time *s = &e->stage_time[r];

		ret->warmup[r] = mb_pipeline_warmup(&ret->pipeline, r);
		ret->finish_ps[r][0] = llrint(s->dp_s * PS);
		ret->finish_ps[r][1] = llrint(s->optimizer_s * PS);
		ret->finish_ps[r][2] = llrint(s->fixed_s * PS);
	}
	return true;
}

static int chunk_of(const struct mb_timeline *t, const struct mb_schedule_op *op)
{
	return op->chunk * t->pipeline.pp + op->rank;
}

/* Shares of the chunk's two directions together: terms are not kept by direction. Ends are rounded, not lengths. */
void mb_timeline_parts(const struct mb_timeline *t, const struct mb_schedule_op *op, int64_t ret_ps[MB_TIME_COUNT])
{
	const double *terms = t->e->chunk_terms[chunk_of(t, op)];
	int64_t length = op->end_ps - op->start_ps, before = 0;
	double total = 0, sum = 0;
	int last = 0;

	for (int i = 0; i < MB_TIME_COUNT; i++) {
		total += terms[i];
		if (terms[i] > 0)
			last = i;
	}
	for (int i = 0; i < MB_TIME_COUNT; i++) {
		int64_t end;

		sum += terms[i];
		end = i >= last ? length : total > 0 ? llrint((double)length * fmin(sum / total, 1)) : 0;
		ret_ps[i] = end > before ? end - before : 0;
		before += ret_ps[i];
	}
}

/* Summed from the counts in one order, as the evaluation does, so that both have the same peak. */
static double saved_sum(const struct mb_timeline *t, int rank, const int32_t *counts)
{
	double sum = 0;

	for (int v = 0; v < t->pipeline.vp; v++)
		sum += counts[v] * t->e->chunk_saved_bytes[v * t->pipeline.pp + rank];
	return sum;
}

/* A backward that runs beside the forward before it, layer by layer, under expert-parallel overlap. */
static bool is_combined(const struct mb_timeline *t, int rank, const struct mb_schedule_op *ops, int64_t backward)
{
	return t->pipeline.ep_overlap && (t->pipeline.vp > 1 || t->pipeline.pp == 1) && backward > t->warmup[rank]
	       && ops[backward].backward && !ops[backward - 1].backward;
}

/* Both hold the larger of the two chunks, not both [cost/live.c]. */
static double combined(const struct mb_timeline *t, double saved, const struct mb_schedule_op *forward, const struct mb_schedule_op *backward)
{
	const struct mb_evaluation *e = t->e;
	int f = chunk_of(t, forward), b = chunk_of(t, backward);

	return saved - fmin(e->chunk_saved_bytes[f], e->chunk_saved_bytes[b]) + (e->chunk_forward_bytes[f] + e->chunk_backward_bytes[b]);
}

struct mb_timeline_memory mb_timeline_memory(const struct mb_timeline *t, int rank, int64_t i, int32_t *counts)
{
	const struct mb_schedule_op *ops = &t->ops[rank * t->per_rank], *op = &ops[i];
	const struct mb_evaluation *e = t->e;
	double base = e->stage_memory[rank].running_bytes;
	struct mb_timeline_memory m;

	if (!op->backward) {
		counts[op->chunk]++;
		m.after = saved_sum(t, rank, counts);
		m.during = m.after + e->chunk_forward_bytes[chunk_of(t, op)];
		if (i + 1 < t->per_rank && is_combined(t, rank, ops, i + 1))
			m.after = m.during = combined(t, m.after, op, op + 1);
	} else {
		double before = saved_sum(t, rank, counts);

		m.during = is_combined(t, rank, ops, i) ? combined(t, before, op - 1, op) : before + e->chunk_backward_bytes[chunk_of(t, op)];
		counts[op->chunk]--;
		m.after = saved_sum(t, rank, counts);
	}
	m.during += base;
	m.after += base;
	return m;
}
