/* Where groups lie and what their collectives cost. */
#ifndef MBSIM_COST_COLLECTIVE_H
#define MBSIM_COST_COLLECTIVE_H

#include "plan/case.h"

/* Group of `size` ranks `stride` apart, against NVLink domains of consecutive ranks. */
struct mb_place {
	double size;
	double members;                 /* of them in one domain */
	double domains;                 /* domains it spans */
};

struct mb_place mb_place_group(const struct mb_case *c, double size, double stride);

/*
 * Ring all-gather or reduce-scatter of `bytes` (the full buffer): inside a domain at NVLink rate, across at the rate of
 * all NICs of the members in a domain, whichever is slower. No latency.
 */
double mb_ring_seconds(const struct mb_case *c, struct mb_place place, double bytes);

/* Bytes of such a ring that a GPU sends in all and out of its domain. */
double mb_ring_sent(struct mb_place place, double bytes);
double mb_ring_remote(struct mb_place place, double bytes);

double mb_domain_rate(const struct mb_case *c);         /* NVLink, or PCIe without it; bytes/s, peak */
double mb_network_rate(const struct mb_case *c);        /* NIC over oversubscription; the domain's rate on a single machine */

#endif
