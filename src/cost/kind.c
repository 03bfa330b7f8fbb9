/*
 * From the operations of a layer to its time and memory. Everything that is not additive (overlap, clock, offload) is
 * applied here, to one layer of one kind, so that a pipeline stage is a plain sum of its layers.
 */
#include "cost/bounds.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/larger.h"
#include "cost/roofline.h"
#include "cost/rounding.h"

static const enum mb_time_term term_of_class[] = {
	[MB_CLASS_ELEMENTWISE] = MB_TIME_elementwise, [MB_CLASS_GEMM] = MB_TIME_gemm, [MB_CLASS_EXPERT_GEMM] = MB_TIME_expert_gemm,
	[MB_CLASS_ATTENTION] = MB_TIME_attention, [MB_CLASS_SSM] = MB_TIME_ssm, [MB_CLASS_PERMUTE] = MB_TIME_elementwise,
	[MB_CLASS_CROSS_ENTROPY] = MB_TIME_elementwise,
};

static double traffic_rate(const struct mb_case *c, enum mb_class class)
{
	double rate = mb_stream_rate(c);

	switch (class) {
	case MB_CLASS_SSM:
		return rate * c->params.ssm_frac;
	case MB_CLASS_PERMUTE:
		return rate * c->params.permute_frac;
	case MB_CLASS_CROSS_ENTROPY:
		return rate * c->params.cross_entropy_frac;
	default:
		return rate;
	}
}

static double attention_rate(const struct mb_case *c)
{
	const struct mb_params *k = &c->params;
	double rate = c->hardware.bf16_flop_per_s * k->attention_frac;

	if (c->run.fp8_dot_product_attention)
		rate *= k->attention_fp8_factor;
	if (c->model.softmax_type != MB_SOFTMAX_VANILLA)
		rate /= k->sink_attention_factor;
	return rate;
}

/* Seconds of the operation proper, without gaps, quantisation and communication. */
static void compute_seconds(const struct mb_case *c, const struct mb_dims *d, const struct mb_op *op, double ret[MB_DIRECTIONS])
{
	bool grouped = op->class == MB_CLASS_EXPERT_GEMM;

	ret[MB_FORWARD] = ret[MB_BACKWARD] = 0;
	switch (op->class) {
	case MB_CLASS_GEMM:
	case MB_CLASS_EXPERT_GEMM:
		ret[MB_FORWARD] = mb_gemm_seconds(c, op->m, op->n, op->k, op->groups, op->format, grouped);
		ret[MB_BACKWARD] = mb_gemm_seconds(c, op->m, op->k, op->n, op->groups, op->format, grouped);
		if (!op->frozen)
			ret[MB_BACKWARD] += mb_gemm_seconds(c, op->n, op->k, op->m, op->groups, op->format, grouped);
		break;
	case MB_CLASS_ATTENTION:
		ret[MB_FORWARD] = op->forward_flops * op->time_factor / attention_rate(c);
		ret[MB_BACKWARD] = op->backward_flops * op->time_factor / attention_rate(c);
		if (c->model.softmax_type != MB_SOFTMAX_VANILLA)
			ret[MB_FORWARD] += d->tokens * c->params.sink_attention_token_s;
		break;
	default:
		break;
	}
}

static double gap_seconds(const struct mb_case *c, const struct mb_dims *d)
{
	return c->params.kernel_gap_s * (d->full_graph ? c->params.graph_gap_factor : 1);
}

static double quantise_factor(const struct mb_case *c, const struct mb_dims *d)
{
	return d->format == MB_FMT_FP4 ? c->params.quantise_fp4_factor : 1;
}

static enum mb_time_term traffic_term(const struct mb_op *op)
{
	return op->class == MB_CLASS_SSM ? MB_TIME_ssm : MB_TIME_elementwise;
}

double mb_add_once(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, struct mb_sums *sum,
                   struct mb_kind_cost *ret)
{
	const struct mb_op *op = &ret->ops[i];
	double stream = mb_stream_rate(c), rate = traffic_rate(c, op->class), gap = gap_seconds(c, d), fp4 = quantise_factor(c, d);
	double forward_bytes_s = op->forward_bytes / rate;
	double backward_bytes_s = op->backward_bytes / rate + op->accumulate_bytes * c->params.main_grad_frac / stream;
	double forward_quantise_s = op->quantise_forward_bytes * fp4 / stream, backward_quantise_s = op->quantise_backward_bytes * fp4 / stream;
	double forward_gaps_s = (op->forward_kernels + op->expert_kernels / 6) * gap;
	double backward_gaps_s = (op->backward_kernels + op->expert_kernels / 3) * gap;
	double t[MB_DIRECTIONS];

	compute_seconds(c, d, op, t);
	sum->s[MB_FORWARD][term_of_class[op->class]] += t[MB_FORWARD];
	sum->s[MB_BACKWARD][term_of_class[op->class]] += t[MB_BACKWARD];
	sum->s[MB_FORWARD][traffic_term(op)] += forward_bytes_s;
	sum->s[MB_BACKWARD][traffic_term(op)] += backward_bytes_s;
	sum->s[MB_FORWARD][MB_TIME_quantise] += forward_quantise_s;
	sum->s[MB_BACKWARD][MB_TIME_quantise] += backward_quantise_s;
	sum->s[MB_FORWARD][MB_TIME_gaps] += forward_gaps_s;
	sum->s[MB_BACKWARD][MB_TIME_gaps] += backward_gaps_s;
	ret->op_forward_s[i] = t[MB_FORWARD] + forward_bytes_s + forward_quantise_s + forward_gaps_s;
	ret->op_backward_s[i] = t[MB_BACKWARD] + backward_bytes_s + backward_quantise_s + backward_gaps_s;
	mb_add_send(c, p, &op->send, (struct mb_times){ 1, 0 }, sum, ret);
	ret->forward_flops += op->forward_flops;
	ret->backward_flops += op->backward_flops;
	if (op->replayed_by & MB_SHARED_EXPERTS)
		sum->shared_s += ret->op_forward_s[i] + ret->op_backward_s[i];
	return t[MB_FORWARD];
}

void mb_add_again(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, double forward_s, struct mb_sums *sum,
                  struct mb_kind_cost *ret)
{
	const struct mb_op *op = &ret->ops[i];
	double bytes_s = op->forward_bytes / traffic_rate(c, op->class), gaps_s = op->forward_kernels * gap_seconds(c, d);
	double quantise_s = op->quantise_replay_bytes * quantise_factor(c, d) / mb_stream_rate(c);
	double replay_s = forward_s + bytes_s + quantise_s + gaps_s;

	sum->s[MB_BACKWARD][term_of_class[op->class]] += forward_s;
	sum->s[MB_BACKWARD][traffic_term(op)] += bytes_s;
	sum->s[MB_BACKWARD][MB_TIME_quantise] += quantise_s;
	sum->s[MB_BACKWARD][MB_TIME_gaps] += gaps_s;
	ret->op_backward_s[i] += replay_s;
	ret->replay_s += replay_s;
	mb_add_send(c, p, &op->send, (struct mb_times){ 0, 1 }, sum, ret);
	if (op->replayed_by & MB_SHARED_EXPERTS)
		sum->shared_s += replay_s;
}

static double total(const double terms[MB_TIME_COUNT])
{
	double t = 0;

	for (int i = 0; i < MB_TIME_COUNT; i++)
		t += terms[i];
	return t;
}

static double both(const struct mb_sums *sum, enum mb_time_term term)
{
	return sum->s[MB_FORWARD][term] + sum->s[MB_BACKWARD][term];
}

/*
 * Without pipeline stages the overlap pairs the backward of each micro-batch with the forward of the next: the first
 * forward and the last backward of a step run alone. [megatron/core/pipeline_parallel/combined_1f1b.py]
 */
static double paired_share(const struct mb_plan *p, const struct mb_dims *d)
{
	return p->pp > 1 ? 1 : 1 - 1.0 / (double)d->micro_batches;
}

double mb_hidden_share(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, double comm_s, double forward_s,
                       double backward_s, double shared_s)
{
	if (comm_s <= 0)
		return 0;
	if (p->overlap_moe_expert_parallel_comm) {
		double ideal_s = mb_overlapped_seconds(forward_s, backward_s, comm_s, p->delay_wgrad_compute);
		double reached = d->full_graph ? c->params.overlap_graph_frac : c->params.overlap_eager_frac;

		return paired_share(p, d) * reached * (forward_s + backward_s + comm_s - ideal_s) / comm_s;
	}
	if (p->moe_shared_expert_overlap)
		return mb_smaller(1, shared_s / comm_s);
	return 0;
}

static double hidden_share(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_sums *sum)
{
	double compute[MB_DIRECTIONS] = { 0, 0 };

	for (int dir = 0; dir < MB_DIRECTIONS; dir++)
		for (int i = MB_TIME_gemm; i <= MB_TIME_gaps; i++)
			compute[dir] += sum->s[dir][i];
	return mb_hidden_share(c, p, d, sum->expert_comm_s[MB_FORWARD] + sum->expert_comm_s[MB_BACKWARD], compute[MB_FORWARD],
	                       compute[MB_BACKWARD], sum->shared_s);
}

/*
 * Where tensor cores idle often enough the board has power to spare and products run faster: up to power_boost_frac when
 * their share of device time falls from 85 % to 45 %.
 */
double mb_clock_boost(const struct mb_params *k, double busy_s, double all_s)
{
	double idle;

	if (k->power_boost_frac <= 0 || busy_s >= 0.85 * all_s)
		return 1;
	idle = mb_smaller(0.85 - busy_s / all_s, 0.4);
	return 1 + k->power_boost_frac * idle / 0.4;
}

static void apply_clock(const struct mb_case *c, struct mb_sums *sum)
{
	double busy = both(sum, MB_TIME_gemm) + both(sum, MB_TIME_expert_gemm) + both(sum, MB_TIME_attention);
	double boost = mb_clock_boost(&c->params, busy, total(sum->s[MB_FORWARD]) + total(sum->s[MB_BACKWARD]));

	for (int dir = 0; dir < MB_DIRECTIONS; dir++) {
		sum->s[dir][MB_TIME_gemm] /= boost;
		sum->s[dir][MB_TIME_expert_gemm] /= boost;
	}
}

double mb_host_factor(const struct mb_case *c, const struct mb_plan *p)
{
	double factor = c->params.host_factor;

	if (p->overlap_moe_expert_parallel_comm)
		factor *= p->pp > 1 ? c->params.host_overlap_factor : c->params.host_overlap_flat_factor;
	return factor;
}

/*
 * The shared expert does not: it is launched behind the dispatch, which the wait precedes.
 * [megatron/core/transformer/moe/token_dispatcher.py]
 */
double mb_wait_share(const struct mb_plan *p, double hidden)
{
	return p->overlap_moe_expert_parallel_comm ? 1 - hidden : 1;
}

static void host_seconds(const struct mb_case *c, const struct mb_plan *p, unsigned modules, double hidden, struct mb_kind_cost *ret)
{
	double host = 0, sync = 0;

	for (int i = 0; i < ret->op_count; i++) {
		const struct mb_op *op = &ret->ops[i];
		bool replayed = (op->replayed_by & modules) != 0;

		host += op->host_ops * c->params.host_op_s + op->host_s;
		if (replayed)
			host += op->replay_host_ops * c->params.host_op_s + op->replay_host_s;
		sync += op->sync_s;
	}
	ret->host_s = host * mb_host_factor(c, p);
	ret->sync_s = sync * c->params.host_factor * mb_wait_share(p, hidden);
}

double mb_meet(const struct mb_params *k, double gpu_s, double host_s, double sync_s)
{
	double n = k->host_norm_power, longer = mb_larger(gpu_s, host_s), shorter = mb_smaller(gpu_s, host_s);

	if (shorter <= 0)
		return longer + sync_s;
	if (n == 8) {           /* three square roots instead of pow, exact enough and the same on every libm */
		double r = shorter / longer, r2 = r * r, r4 = r2 * r2, x = 1 + r4 * r4;

		return longer * sqrt(sqrt(sqrt(x))) + sync_s;
	}
	return longer * pow(1 + pow(shorter / longer, n), 1 / n) + sync_s;
}

/*
 * Copies to the host run beside compute; what is longer than the compute shows, and every copied byte takes its turn at
 * device memory. (DeepSeek-V3 on GB200 lost 1.6 to 2 % of its throughput to fine-grained offloading.)
 */
static void offload_seconds(const struct mb_case *c, struct mb_sums *sum, double bytes)
{
	double copy = bytes / (c->hardware.host_bytes_per_s * c->params.host_link_frac);

	if (bytes <= 0)
		return;
	for (int dir = 0; dir < MB_DIRECTIONS; dir++)
		sum->s[dir][MB_TIME_offload] += mb_larger(0, copy - total(sum->s[dir])) + bytes / mb_stream_rate(c);
}

static int lowest_bit(unsigned bits)
{
	return __builtin_ctz(bits);
}

/* Fine-grained offloading leaves the last groups of each name on the device: told as a share of every layer. */
double mb_moved_frac(const struct mb_plan *p, struct mb_treatment t)
{
	return t.offload_all ? 1 : p->activation_offload_fraction;
}

static void memory_of_op(const struct mb_op *op, struct mb_treatment t, double moved, unsigned captured, int i, struct mb_kind_cost *ret)
{
	double kept = 0, removed = 0;

	for (int j = 0; j < op->saved_count; j++) {
		const struct mb_saved *s = &op->saved[j];
		unsigned by = s->removed_by & t.modules;

		ret->full_saved_bytes += s->bytes;
		if (op->class == MB_CLASS_ATTENTION && j == 0)
			ret->qkv_bytes = s->bytes;
		else if (op->class == MB_CLASS_ATTENTION && s->offload == MB_OFF_CORE_ATTN)
			ret->score_bytes += s->bytes;
		if (by) {
			ret->module_saved_bytes[lowest_bit(by)] += s->bytes;
			removed += s->bytes;
		} else if (t.offload_all || (s->offload & t.offload)) {
			ret->offloaded_bytes += rint(moved * s->bytes);
			kept += s->bytes - rint(moved * s->bytes);
		} else {
			kept += s->bytes;
		}
	}
	ret->op_saved_bytes[i] = kept;
	if (op->scope & captured)
		ret->captured_bytes += kept;
	ret->saved_bytes += kept;
	ret->replay_transient_bytes += removed;
	ret->forward_transient_bytes = mb_larger(ret->forward_transient_bytes, op->forward_transient_bytes);
	ret->backward_transient_bytes = mb_larger(ret->backward_transient_bytes, op->replay_transient_bytes);
}

static void weights_of_op(const struct mb_op *op, struct mb_kind_cost *ret)
{
	for (int j = 0; j < op->weight_count; j++) {
		const struct mb_weight *w = &op->weights[j];
		int64_t n = w->rows * w->cols * w->count;

		*(w->expert ? &ret->expert_params : &ret->dense_params) += n;
		if (w->linear)
			*(w->expert ? &ret->expert_linear_params : &ret->dense_linear_params) += n;
		if (op->trained)
			*(w->expert ? &ret->expert_trained_params : &ret->dense_trained_params) += n;
		ret->tensors += w->count;
	}
}

static void replay_of_op(const struct mb_op *op, unsigned modules, double replay_s, struct mb_kind_cost *ret)
{
	unsigned by = op->replayed_by & modules;

	if (!by)
		return;
	ret->module_replay_s[lowest_bit(by)] += replay_s;
	ret->module_replay_flops[lowest_bit(by)] += op->forward_flops;
	ret->replay_flops += op->forward_flops;
}

static void expose_experts(double hidden, struct mb_sums *sum, struct mb_kind_cost *ret)
{
	for (int dir = 0; dir < MB_DIRECTIONS; dir++)
		sum->s[dir][MB_TIME_ep] += sum->expert_comm_s[dir] * (1 - hidden);
	ret->traffic[MB_TRAFFIC_EP_DISPATCH].exposed_seconds = ret->traffic[MB_TRAFFIC_EP_DISPATCH].seconds * (1 - hidden);
	ret->traffic[MB_TRAFFIC_EP_COMBINE].exposed_seconds = ret->traffic[MB_TRAFFIC_EP_COMBINE].seconds * (1 - hidden);
}

void mb_kind_cost_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                       struct mb_treatment t, struct mb_kind_cost *ret)
{
	double hidden, wait_hidden, forward_s[sizeof ret->ops / sizeof ret->ops[0]];
	struct mb_sums sum;

	memset(&sum, 0, sizeof sum);
	memset(ret, 0, offsetof(struct mb_kind_cost, ops));
	ret->present = true;
	ret->op_count = mb_ops_build(c, p, d, kind, ret->ops);
	for (int i = 0; i < ret->op_count; i++)
		forward_s[i] = mb_add_once(c, p, d, i, &sum, ret);
	wait_hidden = hidden_share(c, p, d, &sum);
	for (int i = 0; i < ret->op_count; i++) {
		bool replayed = (ret->ops[i].replayed_by & t.modules) != 0;
		double before = ret->replay_s;

		if (replayed)
			mb_add_again(c, p, d, i, forward_s[i], &sum, ret);
		replay_of_op(&ret->ops[i], t.modules, ret->replay_s - before, ret);
		memory_of_op(&ret->ops[i], t, mb_moved_frac(p, t), d->scope, i, ret);
		weights_of_op(&ret->ops[i], ret);
	}
	hidden = hidden_share(c, p, d, &sum);
	expose_experts(hidden, &sum, ret);
	offload_seconds(c, &sum, ret->offloaded_bytes);
	apply_clock(c, &sum);
	host_seconds(c, p, t.modules, wait_hidden, ret);       /* what a backward recomputes hides no wait of a forward */
	for (int i = 0; i < MB_TIME_COUNT; i++)
		ret->gpu_s[i] = sum.s[MB_FORWARD][i] + sum.s[MB_BACKWARD][i];
	ret->forward_gpu_s = total(sum.s[MB_FORWARD]);
	ret->backward_gpu_s = total(sum.s[MB_BACKWARD]);
	ret->rounding_bytes = mb_activation_rounding(c, ret);
	ret->input_bytes = ret->op_count > 0 && ret->ops[0].saved_count > 0 ? ret->ops[0].saved[0].bytes : 0;
}
