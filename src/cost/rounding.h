/* What PyTorch's allocator adds to requests. Private to src/cost. */
#ifndef MBSIM_COST_ROUNDING_H
#define MBSIM_COST_ROUNDING_H

#include "cost/states.h"

/* Without expandable segments, requests of 10 MiB and more round up to 2 MiB when less than 1 MiB would be split off. */
double mb_block_waste(double bytes);

/* Waste of optimizer-state tensors between steps; the part that sits in the fp32 gradient copy apart. */
double mb_state_rounding(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         const struct mb_rank_params *params, double *ret_copy);

/* Waste of one layer's saved activations. */
double mb_activation_rounding(const struct mb_case *c, const struct mb_kind_cost *k);

#endif
