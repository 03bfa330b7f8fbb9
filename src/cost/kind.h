/* The cost of one layer of a kind. Private to src/cost and the search. */
#ifndef MBSIM_COST_KIND_H
#define MBSIM_COST_KIND_H

#include "cost/cost.h"

/* Which recompute modules apply (MB_FULL: the whole layer), and whether all its saved tensors go to the host. */
struct mb_treatment {
	unsigned modules;
	unsigned offload;               /* enum mb_offload bits */
	bool offload_all;
};

void mb_kind_cost_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                       struct mb_treatment treatment, struct mb_kind_cost *ret);

/*
 * Ideal time of a layer whose four expert transfers (comm_s in all) run beside the compute of the layer it is paired with.
 * Grows with each of its arguments; never below the longest of compute and communication, never above their sum.
 */
double mb_overlapped_seconds(double forward_s, double backward_s, double comm_s, bool delay_wgrad);

/* How long host and device take together: (gpu^n + host^n)^(1/n) + sync. */
double mb_meet(const struct mb_params *k, double gpu_s, double host_s, double sync_s);

#endif
