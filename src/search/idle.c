/* Bounds of a split's step that know which idle time few micro-batches leave between virtual stages. */
#include "search/visit.h"

#include "cost/schedule.h"

/* With more of them the idle time is a small part of a step, and the bound saves less than it costs but for an evaluation. */
enum { FEW_PER_RANK = 8 };

static int64_t picoseconds(double s)
{
	return (int64_t)(s * 1e12);
}

bool mb_visit_has_waits(const struct mb_visit *v)
{
	return v->table->vp > 1 && v->table->pp > 1;
}

bool mb_visit_may_idle(const struct mb_visit *v)
{
	return mb_visit_has_waits(v) && v->w->micro_batches <= (long long)FEW_PER_RANK * v->table->pp;
}

/* Durations of the chunks of a run's ranks, with their parts of the transfers. */
static void fill_run(struct mb_visit *v, const struct mb_rank_run *run, const struct mb_chunk_costs *costs, double transfer_s)
{
	int pp = v->table->pp, vp = v->table->vp;

	for (int j = run->first; j < pp * vp; j += pp) {
		double own_s = costs->step_s[v->row->at[j]], step_s = own_s + transfer_s / vp;
		double forward_s = own_s > 0 ? step_s * costs->forward_s[v->row->at[j]] / own_s : step_s / 2;

		for (int r = 0; r < run->ranks; r++) {
			v->forward_ps[j + r] = picoseconds(forward_s);
			v->backward_ps[j + r] = picoseconds(step_s - forward_s);
		}
	}
}

double mb_visit_tight_step(struct mb_visit *v, const struct mb_chunk_costs *costs, double transfer_s, double hop_s, bool overlap, int optimizer)
{
	struct mb_pipeline order = { .pp = v->table->pp, .vp = v->table->vp, .micro_batches = v->w->micro_batches,
		.group = v->w->p.microbatch_group_size, .ep_overlap = overlap, .forward_ps = v->forward_ps, .backward_ps = v->backward_ps,
		.hop_ps = picoseconds(hop_s) };
	double limit_s = mb_goal_limit_s(&v->w->goal);

	for (int i = 0; i < v->row->run_count; i++) {
		const struct mb_rank_run *run = &v->row->runs[i];
		double finish_s = optimizer < 0 ? v->hold[i]->least_finish_s : v->hold[i]->finish_s[optimizer];

		fill_run(v, run, costs, transfer_s);
		for (int r = 0; r < run->ranks; r++)
			v->finish_ps[run->first + r] = picoseconds(finish_s);
	}
	if (!mb_pipeline_runs(&order))
		return 0;
	return (double)mb_schedule_tight_bound(&order, v->finish_ps, limit_s < 1e6 ? picoseconds(limit_s * (1 + 1e-6)) : INT64_MAX) * 1e-12;
}
