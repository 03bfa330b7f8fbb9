/* What the exchanges of a layer cost, and how much of it other work hides. */
#include "cost/kind_sums.h"

#include "base/larger.h"
#include "cost/collective.h"

static void add_tp(const struct mb_case *c, const struct mb_plan *p, const struct mb_send *s, struct mb_times n, struct mb_sums *sum,
                   struct mb_traffic_cost *traffic)
{
	const struct mb_params *k = &c->params;
	struct mb_place place = mb_place_group(c, p->tp, 1);
	double per_byte = mb_ring_seconds(c, place, 1) * place.size / (place.size - 1);         /* per byte sent */
	double open = p->tp_comm_overlap ? k->tp_overlap_exposed_frac : k->tp_exposed_frac;
	double hidden = p->tp_comm_overlap ? k->tp_overlap_exposed_frac / 2 : k->tp_hidden_frac * k->tp_exposed_frac;
	double latency = k->collective_latency_s * (p->tp_comm_overlap ? k->tp_overlap_latency_factor : 1);
	double forward_s = s->forward_bytes * per_byte, open_s = (s->backward_bytes - s->backward_hidden_bytes) * per_byte;
	double hidden_s = s->backward_hidden_bytes * per_byte;
	double forward = forward_s * open + s->forward_calls * latency;
	double backward = n.once * (open_s * open + hidden_s * hidden + s->backward_calls * latency) + n.again * forward;
	double sent = s->forward_bytes * (n.once + n.again) + n.once * s->backward_bytes;

	forward *= n.once;
	sum->s[MB_FORWARD][MB_TIME_tp] += forward;
	sum->s[MB_BACKWARD][MB_TIME_tp] += backward;
	traffic->bytes += sent;
	traffic->remote_bytes += sent * mb_ring_remote(place, 1) / mb_ring_sent(place, 1);
	traffic->seconds += forward_s * (n.once + n.again) + n.once * (open_s + hidden_s)
	                    + (s->forward_calls * (n.once + n.again) + n.once * s->backward_calls) * latency;
	traffic->exposed_seconds += forward + backward;
}

static void add_cp(const struct mb_case *c, const struct mb_plan *p, const struct mb_send *s, struct mb_times n, struct mb_sums *sum,
                   struct mb_traffic_cost *traffic)
{
	struct mb_place place = mb_place_group(c, p->cp, p->tp);
	double per_byte = mb_ring_seconds(c, place, 1) * place.size / (place.size - 1);
	bool ring = p->cp_comm_type == MB_CP_P2P || p->cp_comm_type == MB_CP_A2A_P2P;
	double open = ring ? c->params.cp_exposed_frac : 1, latency = c->params.context_latency_s;
	double forward = s->forward_bytes * per_byte * open + s->forward_calls * latency;
	double backward = n.once * (s->backward_bytes * per_byte * open + s->backward_calls * latency) + n.again * forward;
	double sent = s->forward_bytes * (n.once + n.again) + n.once * s->backward_bytes;

	forward *= n.once;
	sum->s[MB_FORWARD][MB_TIME_cp] += forward;
	sum->s[MB_BACKWARD][MB_TIME_cp] += backward;
	traffic->bytes += sent;
	traffic->remote_bytes += sent * mb_ring_remote(place, 1) / mb_ring_sent(place, 1);
	traffic->seconds += sent * per_byte + (s->forward_calls * (n.once + n.again) + n.once * s->backward_calls) * latency;
	traffic->exposed_seconds += forward + backward;
}

/* Dispatch and combine: the slower of NVLink copies and network copies, and a fixed time each. */
static void add_ep(const struct mb_case *c, const struct mb_send *s, struct mb_times n, struct mb_sums *sum, struct mb_kind_cost *ret)
{
	const struct mb_params *k = &c->params;
	double inside = (s->forward_bytes - s->forward_remote_bytes) / (mb_domain_rate(c) * k->nvlink_expert_frac);
	double across = s->forward_remote_bytes / (mb_network_rate(c) * k->scale_out_expert_frac);
	double once = mb_larger(inside, across) + (s->forward_remote_bytes > 0 ? k->expert_scale_out_latency_s : k->expert_domain_latency_s);
	enum mb_traffic name = s->axis == MB_AXIS_EP_DISPATCH ? MB_TRAFFIC_EP_DISPATCH : MB_TRAFFIC_EP_COMBINE;
	struct mb_traffic_cost *traffic = &ret->traffic[name];
	double times = 2 * n.once + n.again;    /* the backward of one is a transfer like the other */

	sum->expert_comm_s[MB_FORWARD] += once * n.once;
	sum->expert_comm_s[MB_BACKWARD] += once * (n.once + n.again);
	traffic->bytes += s->forward_bytes * times;
	traffic->remote_bytes += s->forward_remote_bytes * times;
	traffic->seconds += once * times;
}

static void add_etp(const struct mb_case *c, const struct mb_plan *p, const struct mb_send *s, struct mb_times n, struct mb_sums *sum,
                    struct mb_traffic_cost *traffic)
{
	struct mb_place place = mb_place_group(c, p->etp, 1);
	double per_byte = mb_ring_seconds(c, place, 1) * place.size / (place.size - 1), latency = c->params.collective_latency_s;
	double forward = s->forward_bytes * per_byte + s->forward_calls * latency;
	double backward = n.once * (s->backward_bytes * per_byte + s->backward_calls * latency) + n.again * forward;

	forward *= n.once;
	sum->s[MB_FORWARD][MB_TIME_ep] += forward;
	sum->s[MB_BACKWARD][MB_TIME_ep] += backward;
	traffic->bytes += s->forward_bytes * (n.once + n.again) + n.once * s->backward_bytes;
	traffic->seconds += forward + backward;
	traffic->exposed_seconds += forward + backward;
}

void mb_add_send(const struct mb_case *c, const struct mb_plan *p, const struct mb_send *s, struct mb_times n, struct mb_sums *sum,
                 struct mb_kind_cost *ret)
{
	switch (s->axis) {
	case MB_AXIS_NONE:
		return;
	case MB_AXIS_TP:
		add_tp(c, p, s, n, sum, &ret->traffic[MB_TRAFFIC_TP]);
		return;
	case MB_AXIS_CP:
		add_cp(c, p, s, n, sum, &ret->traffic[MB_TRAFFIC_CP]);
		return;
	case MB_AXIS_EP_DISPATCH:
	case MB_AXIS_EP_COMBINE:
		add_ep(c, s, n, sum, ret);
		return;
	case MB_AXIS_ETP:
		add_etp(c, p, s, n, sum, &ret->traffic[MB_TRAFFIC_ETP]);
		return;
	}
}

/*
 * Two streams run a forward and a backward layer side by side: compute PRE_f MLP_b MLP_f PRE_b, communication C_b D_f D_b
 * C_f. The period of the recursion is the longest of its cycles: all compute; all communication; and the backward chain
 * C_b MLP_b D_b PRE_b, which holds the backward's compute and half of the transfers. Delayed weight gradients leave that
 * chain: a sixth of the compute and three transfers then find room beside each other.
 * [megatron/core/pipeline_parallel/combined_1f1b.py, models/common/model_chunk_schedule_plan.py]
 */
double mb_overlapped_seconds(double forward_s, double backward_s, double comm_s, bool delay_wgrad)
{
	double compute = forward_s + backward_s;
	double chain = delay_wgrad ? compute * 5 / 6 + comm_s / 4 : backward_s + comm_s / 2;

	return mb_larger(mb_larger(compute, comm_s), mb_smaller(chain, backward_s + comm_s / 2));
}
