/* Whether an evaluation is complete: every number finite, nothing negative that cannot be, parts adding up to totals. */
#ifndef MBSIM_TESTS_SOUND_H
#define MBSIM_TESTS_SOUND_H

#include <math.h>
#include <stdio.h>

#include "cost/cost.h"

/* NULL, or the name of the first number that is not as it should be. */
static inline const char *unsound_memory(const struct mb_evaluation *e, const struct mb_plan *p)
{
	static char name[160];
	int stages = e->dims.pp;

	(void)p;
	for (int s = 0; s < stages; s++) {
		const struct mb_stage_memory *m = &e->stage_memory[s];
		const double all[] = { m->between_bytes, m->first_step_peak_bytes, m->peak_bytes, m->in_flight_bytes, m->host_bytes,
			m->reserved_bytes, m->device_used_bytes };
		double peak = 0, between = 0;

		for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
			snprintf(name, sizeof name, "stage %d memory %zu: %g", s, i, all[i]);
			if (!isfinite(all[i]) || all[i] < 0)
				return name;
		}
		for (int i = 0; i < MB_MEM_COUNT; i++) {
			snprintf(name, sizeof name, "stage %d term %s: %g, between %g", s, mb_memory_terms[i].json, m->terms[i], m->between_terms[i]);
			if (!isfinite(m->terms[i]) || m->terms[i] < 0 || !isfinite(m->between_terms[i]) || m->between_terms[i] < 0)
				return name;
			peak += m->terms[i];
			between += m->between_terms[i];
		}
		snprintf(name, sizeof name, "stage %d terms add up to %.17g, peak %.17g", s, peak, m->peak_bytes);
		if (peak < m->peak_bytes || peak > m->peak_bytes)
			return name;
		snprintf(name, sizeof name, "stage %d terms between steps add up to %.17g, not %.17g", s, between, m->between_bytes);
		if (between < m->between_bytes || between > m->between_bytes)
			return name;
		snprintf(name, sizeof name, "stage %d parameters %lld and %lld", s, (long long)m->dense_params, (long long)m->expert_params);
		if (m->dense_params < 0 || m->expert_params < 0)
			return name;
		snprintf(name, sizeof name, "stage %d peak %.17g below between %.17g", s, m->peak_bytes, m->between_bytes);
		if (m->peak_bytes < m->between_bytes - m->between_terms[MB_MEM_graph])
			return name;
	}
	return NULL;
}

static inline const char *unsound_time(const struct mb_evaluation *e)
{
	static char name[160];
	const double all[] = { e->step_s, e->low_s, e->high_s, e->bubble_frac, e->model_flops_per_token, e->hardware_flops_per_step,
		e->tokens_per_s_per_gpu, e->model_flop_per_s_per_gpu, e->mfu, e->hfu, e->recompute_flops, e->recompute_s,
		e->recompute_saved_bytes };
	double sum = 0;

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		snprintf(name, sizeof name, "time %zu: %g", i, all[i]);
		if (!isfinite(all[i]) || all[i] < 0)
			return name;
	}
	for (int i = 0; i < MB_TIME_COUNT; i++) {
		snprintf(name, sizeof name, "term %s: %g", mb_time_terms[i].json, e->time_terms[i]);
		if (!isfinite(e->time_terms[i]) || e->time_terms[i] < -1e-9 * e->step_s)
			return name;
		sum += e->time_terms[i];
	}
	snprintf(name, sizeof name, "terms add up to %.17g s, step %.17g s", sum, e->step_s);
	if (!(e->step_s > 0) || fabs(sum / e->step_s - 1) > 1e-9)
		return name;
	for (int i = 0; i < MB_TRAFFIC_COUNT; i++) {
		const struct mb_traffic_cost *t = &e->traffic[i];

		snprintf(name, sizeof name, "traffic %s: %g B, %g B, %g s, %g s", mb_traffic_names[i], t->bytes, t->remote_bytes, t->seconds,
		         t->exposed_seconds);
		if (!isfinite(t->bytes) || !isfinite(t->remote_bytes) || !isfinite(t->seconds) || !isfinite(t->exposed_seconds) || t->bytes < 0 ||
		    t->remote_bytes < 0 || t->seconds < 0 || t->exposed_seconds < 0 || t->remote_bytes > t->bytes * (1 + 1e-9))
			return name;
	}
	return NULL;
}

static inline const char *unsound(const struct mb_evaluation *e, const struct mb_plan *p)
{
	const char *what = unsound_memory(e, p);

	return what != NULL ? what : unsound_time(e);
}

#endif
