/* How the layers are spread over pipeline ranks and chunks. */
#ifndef MBSIM_COST_SPLIT_H
#define MBSIM_COST_SPLIT_H

#include "cost/cost.h"

/* Fills the split of a plan; false when chunks or layers do not fit (too many chunks, layers that do not add up). */
bool mb_split_fill(const struct mb_case *c, const struct mb_plan *p, struct mb_split *ret);

#endif
