#include "cost/collective.h"

#include <math.h>

#include "base/larger.h"

double mb_domain_rate(const struct mb_case *c)
{
	return c->nvlink_between ? c->hardware.nvlink_bytes_per_s : c->hardware.host_bytes_per_s;
}

double mb_network_rate(const struct mb_case *c)
{
	if (c->hardware.nic_bytes_per_s <= 0)
		return mb_domain_rate(c);
	return c->hardware.nic_bytes_per_s / c->hardware.oversubscription;
}

struct mb_place mb_place_group(const struct mb_case *c, double size, double stride)
{
	double members = mb_smaller(mb_larger(floor(c->domain / stride), 1), size);

	return (struct mb_place){ size, members, ceil(size / members) };
}

double mb_ring_sent(struct mb_place place, double bytes)
{
	return (place.size - 1) / place.size * bytes;
}

double mb_ring_remote(struct mb_place place, double bytes)
{
	return (place.domains - 1) / place.domains * bytes / place.members;
}

double mb_ring_seconds(const struct mb_case *c, struct mb_place place, double bytes)
{
	double inside = place.members > 1 ? mb_ring_sent(place, bytes) / (mb_domain_rate(c) * c->params.nvlink_collective_frac) : 0;
	double across = mb_ring_remote(place, bytes) / (mb_network_rate(c) * c->params.scale_out_collective_frac);

	return mb_larger(inside, across);
}
