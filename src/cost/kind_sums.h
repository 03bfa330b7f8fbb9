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

/* How often forward and backward run (0 or 1), and how often recompute runs the forward again. */
struct mb_times { double once, again; };

/* Adds an operation's exchange. */
void mb_add_send(const struct mb_case *c, const struct mb_plan *p, const struct mb_send *s, struct mb_times n, struct mb_sums *sum,
                 struct mb_kind_cost *ret);

/*
 * Adds operation i of ret->ops: what runs once, and what recompute runs again. forward_s: seconds of the operation
 * proper, as mb_add_once returns them.
 */
double mb_add_once(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, struct mb_sums *sum,
                   struct mb_kind_cost *ret);
void mb_add_again(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, double forward_s, struct mb_sums *sum,
                  struct mb_kind_cost *ret);

/*
 * Share of expert communication (comm_s) that the overlap schedule hides behind compute, or the shared expert's work
 * (shared_s) does.
 */
double mb_hidden_share(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, double comm_s, double forward_s,
                       double backward_s, double shared_s);

/* How much of the wait for token counts shows when `hidden` of the transfers does not: EP overlap keeps the device busy. */
double mb_wait_share(const struct mb_plan *p, double hidden);

/* By how much products run faster when tensor cores work busy_s of all_s. */
double mb_clock_boost(const struct mb_params *k, double busy_s, double all_s);

/* What the plan makes of host time. */
double mb_host_factor(const struct mb_case *c, const struct mb_plan *p);

/* How much of a layer's activations an offloading choice moves. */
double mb_moved_frac(const struct mb_plan *p, struct mb_treatment t);

#endif
