/* Running sums over the operations of a layer. Private to kind.c and kind_send.c. */
#ifndef MBSIM_COST_KIND_SUMS_H
#define MBSIM_COST_KIND_SUMS_H

#include "cost/kind.h"

enum { MB_FORWARD, MB_BACKWARD, MB_DIRECTIONS };

struct mb_sums {
	double s[MB_DIRECTIONS][MB_TIME_COUNT];
	double expert_comm_s[MB_DIRECTIONS];    /* dispatch and combine before any overlap */
	double shared_s;                        /* shared expert, both directions */
};

/* Adds an operation's exchange; replays: how often recompute repeats its forward (0 or 1). */
void mb_add_send(const struct mb_case *c, const struct mb_plan *p, const struct mb_send *s, double replays, struct mb_sums *sum,
                 struct mb_kind_cost *ret);

#endif
