/* How unevenly a router loads expert-parallel ranks: a seeded Monte Carlo. */
#ifndef MBSIM_PLAN_ROUTING_H
#define MBSIM_PLAN_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "desc/model.h"

/* Quantiles of the busiest rank's load over the mean, over many steps: every layer of a step is drawn, the worst counts. */
struct mb_routing {
	double p50, p99, mean;
	int samples;
};

/*
 * skew: standard deviation of the logarithm of the experts' popularity; 0: all alike, only chance is left. tokens: of the
 * whole expert-parallel group, in one micro-batch. False: no experts, ranks that do not divide them, or no memory.
 */
bool mb_routing_draw(const struct mb_model *m, int expert_ranks, double tokens, double skew, uint64_t seed, struct mb_routing *ret);

#endif
