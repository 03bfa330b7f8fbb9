/* Work of a step outside the micro-batches: data parallelism, optimizer, fixed costs. Private to src/cost. */
#ifndef MBSIM_COST_FINISH_H
#define MBSIM_COST_FINISH_H

#include "cost/states.h"

struct mb_finish {
	double reduce_s, gather_s;              /* collectives alone */
	double reduce_exposed_s, gather_exposed_s;
	double reduce_bytes, gather_bytes, reduce_remote_bytes, gather_remote_bytes;
	double optimizer_s, fixed_s;
};

/* micro_batch_s: time of one micro-batch on the rank, behind which overlapped collectives hide. */
void mb_finish_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r,
                    double micro_batch_s, struct mb_finish *ret);

/* FSDP's gathers and reductions of one micro-batch on a rank that takes micro_batch_s without them: exposed seconds. */
double mb_fsdp_exposed(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r,
                       double micro_batch_s);

#endif
