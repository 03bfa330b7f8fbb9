/*
 * From the operations of a layer to its time and memory. Everything that is not additive (overlap, clock, offload) is
 * applied here, to one layer of one kind, so that a pipeline stage is a plain sum of its layers.
 */
#include "cost/bounds.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

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

static void add_op(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, bool replayed, struct mb_sums *sum,
                   struct mb_kind_cost *ret)
{
	const struct mb_op *op = &ret->ops[i];
	double stream = mb_stream_rate(c), rate = traffic_rate(c, op->class);
	double gap = c->params.kernel_gap_s * (d->full_graph ? c->params.graph_gap_factor : 1);
	double fp4 = d->format == MB_FMT_FP4 ? c->params.quantise_fp4_factor : 1;
	enum mb_time_term compute = term_of_class[op->class];
	enum mb_time_term traffic = op->class == MB_CLASS_SSM ? MB_TIME_ssm : MB_TIME_elementwise;
	double t[MB_DIRECTIONS], replay = 0;
	double forward_bytes_s = op->forward_bytes / rate, quantise_s = op->quantise_forward_bytes * fp4 / stream;

	compute_seconds(c, d, op, t);
	sum->s[MB_FORWARD][compute] += t[MB_FORWARD];
	sum->s[MB_BACKWARD][compute] += t[MB_BACKWARD];
	sum->s[MB_FORWARD][traffic] += forward_bytes_s;
	sum->s[MB_BACKWARD][traffic] += op->backward_bytes / rate + op->accumulate_bytes * c->params.main_grad_frac / stream;
	sum->s[MB_FORWARD][MB_TIME_quantise] += quantise_s;
	sum->s[MB_BACKWARD][MB_TIME_quantise] += op->quantise_backward_bytes * fp4 / stream;
	sum->s[MB_FORWARD][MB_TIME_gaps] += (op->forward_kernels + op->expert_kernels / 6) * gap;
	sum->s[MB_BACKWARD][MB_TIME_gaps] += (op->backward_kernels + op->expert_kernels / 3) * gap;
	ret->op_forward_s[i] = t[MB_FORWARD] + forward_bytes_s + quantise_s + (op->forward_kernels + op->expert_kernels / 6) * gap;
	ret->op_backward_s[i] = t[MB_BACKWARD] + op->backward_bytes / rate + op->accumulate_bytes * c->params.main_grad_frac / stream
	                        + op->quantise_backward_bytes * fp4 / stream + (op->backward_kernels + op->expert_kernels / 3) * gap;
	if (replayed) {
		double replay_quantise_s = op->quantise_replay_bytes * fp4 / stream;

		sum->s[MB_BACKWARD][compute] += t[MB_FORWARD];
		sum->s[MB_BACKWARD][traffic] += forward_bytes_s;
		sum->s[MB_BACKWARD][MB_TIME_quantise] += replay_quantise_s;
		sum->s[MB_BACKWARD][MB_TIME_gaps] += op->forward_kernels * gap;
		replay = t[MB_FORWARD] + forward_bytes_s + replay_quantise_s + op->forward_kernels * gap;
		ret->op_backward_s[i] += replay;
	}
	mb_add_send(c, p, &op->send, replayed ? 1 : 0, sum, ret);
	ret->replay_s += replay;
	ret->forward_flops += op->forward_flops;
	ret->backward_flops += op->backward_flops;
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

/* Share of expert communication that the overlap schedule or the shared expert hides. */
static double hidden_share(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_sums *sum)
{
	double comm = sum->expert_comm_s[MB_FORWARD] + sum->expert_comm_s[MB_BACKWARD], forward = 0, backward = 0, ideal, reached;

	if (comm <= 0)
		return 0;
	if (p->overlap_moe_expert_parallel_comm) {
		for (int i = MB_TIME_gemm; i <= MB_TIME_quantise; i++) {
			forward += sum->s[MB_FORWARD][i];
			backward += sum->s[MB_BACKWARD][i];
		}
		ideal = mb_overlapped_seconds(forward, backward, comm, p->delay_wgrad_compute);
		reached = d->full_graph ? c->params.overlap_graph_frac : c->params.overlap_eager_frac;
		return reached * (forward + backward + comm - ideal) / comm;
	}
	if (p->moe_shared_expert_overlap)
		return fmin(1, sum->shared_s / comm);
	return 0;
}

/*
 * Where tensor cores idle often enough the board has power to spare and products run faster: up to power_boost_frac when
 * their share of device time falls from 85 % to 45 %.
 */
static void apply_clock(const struct mb_case *c, struct mb_sums *sum)
{
	double dense = both(sum, MB_TIME_gemm) + both(sum, MB_TIME_expert_gemm) + both(sum, MB_TIME_attention);
	double all = total(sum->s[MB_FORWARD]) + total(sum->s[MB_BACKWARD]);
	double idle = all > 0 ? fmin(fmax(0.85 - dense / all, 0), 0.4) : 0;
	double boost = 1 + c->params.power_boost_frac * idle / 0.4;

	for (int dir = 0; dir < MB_DIRECTIONS; dir++) {
		sum->s[dir][MB_TIME_gemm] /= boost;
		sum->s[dir][MB_TIME_expert_gemm] /= boost;
	}
}

static double host_factor(const struct mb_case *c, const struct mb_plan *p)
{
	double factor = c->params.host_factor;

	if (p->overlap_moe_expert_parallel_comm)
		factor *= p->pp > 1 ? c->params.host_overlap_factor : c->params.host_overlap_flat_factor;
	return factor;
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
	ret->host_s = host * host_factor(c, p);
	ret->sync_s = sync * c->params.host_factor * (1 - hidden);
}

double mb_meet(const struct mb_params *k, double gpu_s, double host_s, double sync_s)
{
	double n = k->host_norm_power, longer = fmax(gpu_s, host_s), shorter = fmin(gpu_s, host_s);

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
		sum->s[dir][MB_TIME_offload] += fmax(0, copy - total(sum->s[dir])) + bytes / mb_stream_rate(c);
}

static int lowest_bit(unsigned bits)
{
	return __builtin_ctz(bits);
}

/* Fine-grained offloading leaves the last groups of each name on the device: told as a share of every layer. */
static double moved_frac(const struct mb_plan *p, struct mb_treatment t)
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
	ret->forward_transient_bytes = fmax(ret->forward_transient_bytes, op->forward_transient_bytes);
	ret->backward_transient_bytes = fmax(ret->backward_transient_bytes, op->replay_transient_bytes);
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
	struct mb_sums sum;
	double hidden;

	memset(&sum, 0, sizeof sum);
	*ret = (struct mb_kind_cost){ .present = true };
	ret->op_count = mb_ops_build(c, p, d, kind, ret->ops);
	for (int i = 0; i < ret->op_count; i++) {
		bool replayed = (ret->ops[i].replayed_by & t.modules) != 0;
		double before = ret->replay_s;

		add_op(c, p, d, i, replayed, &sum, ret);
		replay_of_op(&ret->ops[i], t.modules, ret->replay_s - before, ret);
		if (ret->ops[i].replayed_by & MB_SHARED_EXPERTS)
			sum.shared_s += ret->op_forward_s[i] + ret->op_backward_s[i];
		memory_of_op(&ret->ops[i], t, moved_frac(p, t), d->scope, i, ret);
		weights_of_op(&ret->ops[i], ret);
	}
	hidden = hidden_share(c, p, d, &sum);
	expose_experts(hidden, &sum, ret);
	offload_seconds(c, &sum, ret->offloaded_bytes);
	apply_clock(c, &sum);
	host_seconds(c, p, t.modules, hidden, ret);
	for (int i = 0; i < MB_TIME_COUNT; i++)
		ret->gpu_s[i] = sum.s[MB_FORWARD][i] + sum.s[MB_BACKWARD][i];
	ret->forward_gpu_s = total(sum.s[MB_FORWARD]);
	ret->backward_gpu_s = total(sum.s[MB_BACKWARD]);
	ret->rounding_bytes = mb_activation_rounding(c, ret);
	ret->input_bytes = ret->op_count > 0 && ret->ops[0].saved_count > 0 ? ret->ops[0].saved[0].bytes : 0;
}

/* ---- the same for every choice of recompute and offloading: cost/bounds.h ---- */

static void add_sums(struct mb_sums *to, const struct mb_sums *from, double sign)
{
	for (int dir = 0; dir < MB_DIRECTIONS; dir++) {
		for (int i = 0; i < MB_TIME_COUNT; i++)
			to->s[dir][i] += sign * from->s[dir][i];
		to->expert_comm_s[dir] += sign * from->expert_comm_s[dir];
	}
	to->shared_s += sign * from->shared_s;
}

static struct mb_sums sums_of_op(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, bool replayed,
                                 struct mb_kind_cost *scratch)
{
	struct mb_sums sum;

	memset(&sum, 0, sizeof sum);
	add_op(c, p, d, i, replayed, &sum, scratch);
	if (scratch->ops[i].replayed_by & MB_SHARED_EXPERTS)
		sum.shared_s = scratch->op_forward_s[i] + scratch->op_backward_s[i];
	return sum;
}

static struct mb_replay_piece *replay_piece(struct mb_kind_pieces *k, unsigned modules)
{
	int i = 0;

	while (i < k->replay_count && k->replay[i].modules != modules)
		i++;
	if (i == k->replay_count) {
		assert(k->replay_count < MB_KIND_REPLAYS);
		memset(&k->replay[i], 0, sizeof k->replay[i]);
		k->replay[i].modules = modules;
		k->replay_count++;
	}
	return &k->replay[i];
}

static void keep_piece(struct mb_kind_pieces *k, const struct mb_saved *s)
{
	int i = 0;

	while (i < k->saved_count && (k->saved[i].removed_by != s->removed_by || k->saved[i].offload != s->offload))
		i++;
	if (i == k->saved_count) {
		assert(k->saved_count < MB_KIND_TENSORS);
		k->saved[k->saved_count++] = (struct mb_saved){ 0, s->removed_by, s->offload };
	}
	k->saved[i].bytes += s->bytes;
	k->full_saved_bytes += s->bytes;
}

void mb_kind_pieces_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                         struct mb_kind_cost *scratch, struct mb_kind_pieces *ret)
{
	memset(ret, 0, offsetof(struct mb_kind_pieces, replay));
	ret->saved_count = 0;
	ret->full_saved_bytes = ret->forward_transient_bytes = ret->backward_transient_bytes = 0;
	memset(scratch->traffic, 0, sizeof scratch->traffic);
	scratch->op_count = mb_ops_build(c, p, d, kind, scratch->ops);
	for (int i = 0; i < scratch->op_count; i++) {
		const struct mb_op *op = &scratch->ops[i];
		struct mb_sums once = sums_of_op(c, p, d, i, false, scratch);

		add_sums(&ret->once, &once, 1);
		ret->host_s += op->host_ops * c->params.host_op_s + op->host_s;
		ret->sync_s += op->sync_s;
		if (op->replayed_by) {
			struct mb_replay_piece *piece = replay_piece(ret, op->replayed_by);
			struct mb_sums twice = sums_of_op(c, p, d, i, true, scratch);

			add_sums(&piece->add, &twice, 1);
			add_sums(&piece->add, &once, -1);
			piece->host_s += op->replay_host_ops * c->params.host_op_s + op->replay_host_s;
		}
		for (int j = 0; j < op->saved_count; j++)
			keep_piece(ret, &op->saved[j]);
		ret->forward_transient_bytes = fmax(ret->forward_transient_bytes, op->forward_transient_bytes);
		ret->backward_transient_bytes = fmax(ret->backward_transient_bytes, op->replay_transient_bytes);
	}
	ret->input_bytes = scratch->op_count > 0 && scratch->ops[0].saved_count > 0 ? scratch->ops[0].saved[0].bytes : 0;
}

void mb_kind_row_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_kind_pieces *pieces,
                      struct mb_treatment t, struct mb_kind_row *ret)
{
	struct mb_sums sum = pieces->once;
	double host = pieces->host_s, hidden, offloaded = 0, moved = moved_frac(p, t);

	*ret = (struct mb_kind_row){ 0 };
	for (int i = 0; i < pieces->replay_count; i++) {
		if (!(pieces->replay[i].modules & t.modules))
			continue;
		add_sums(&sum, &pieces->replay[i].add, 1);
		host += pieces->replay[i].host_s;
	}
	for (int i = 0; i < pieces->saved_count; i++) {
		const struct mb_saved *s = &pieces->saved[i];

		if (s->removed_by & t.modules)
			ret->replay_transient_bytes += s->bytes;
		else if (!t.offload_all && !(s->offload & t.offload))
			ret->saved_bytes += s->bytes;
		else
			offloaded += s->bytes;
	}
	ret->offloaded_bytes = rint(moved * offloaded);
	ret->saved_bytes += offloaded - ret->offloaded_bytes;
	hidden = hidden_share(c, p, d, &sum);
	for (int dir = 0; dir < MB_DIRECTIONS; dir++)
		sum.s[dir][MB_TIME_ep] += sum.expert_comm_s[dir] * (1 - hidden);
	offload_seconds(c, &sum, ret->offloaded_bytes);
	apply_clock(c, &sum);
	ret->host_s = host * host_factor(c, p);
	ret->sync_s = pieces->sync_s * c->params.host_factor * (1 - hidden);
	ret->forward_s = total(sum.s[MB_FORWARD]);
	ret->gpu_s = ret->forward_s + total(sum.s[MB_BACKWARD]);
}
