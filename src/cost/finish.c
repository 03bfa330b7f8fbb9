#include "cost/finish.h"

#include "base/larger.h"
#include "cost/build.h"
#include "cost/collective.h"
#include "cost/roofline.h"

/* Groups that share dense and expert parameters: neighbours tp (cp inside) and etp * ep ranks apart. */
static struct mb_place dense_place(const struct mb_case *c, const struct mb_dims *d)
{
	return mb_place_group(c, d->dense_shard, d->tp);
}

static struct mb_place expert_place(const struct mb_case *c, const struct mb_dims *d)
{
	return mb_place_group(c, d->expert_dp, (double)d->etp * d->ep);
}

/* Bytes of one gathered parameter: per-tensor fp8 weights travel in fp8, block-scaled ones in bf16. */
static double gather_bytes(const struct mb_case *c)
{
	bool narrow = mb_fp8_params(c) && (c->run.precision == MB_FP8_CS || c->run.precision == MB_FP8_DS);

	return narrow ? 1 : 2;
}

/* Both groups of a rank. */
struct places { struct mb_place dense, expert; };

static struct places places_of(const struct mb_case *c, const struct mb_dims *d)
{
	return (struct places){ dense_place(c, d), expert_place(c, d) };
}

static double ring(const struct mb_case *c, const struct places *at, double dense_bytes, double expert_bytes)
{
	return mb_ring_seconds(c, at->dense, dense_bytes) + mb_ring_seconds(c, at->expert, expert_bytes);
}

/* Part of an overlapped collective that shows: the last bucket always, the rest once its window is full. */
static double exposed(double busy_s, double window_s, bool overlap, double tail_frac)
{
	return overlap ? mb_larger(busy_s * tail_frac, busy_s - window_s) : busy_s;
}

static void data_parallel(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r,
                          double micro_batch_s, struct mb_finish *f)
{
	const struct mb_params *k = &c->params;
	double grad = mb_gradient_bytes(c, p), gather = gather_bytes(c);
	double dense = r->dense_trained, expert = r->expert_trained;
	struct places at = places_of(c, d);
	bool sharded = p->use_distributed_optimizer || p->use_megatron_fsdp;

	f->reduce_s = ring(c, &at, dense * grad, expert * grad) * (sharded ? 1 : 2);      /* an all-reduce is both halves */
	f->reduce_bytes = (mb_ring_sent(at.dense, dense * grad) + mb_ring_sent(at.expert, expert * grad)) * (sharded ? 1 : 2);
	f->reduce_remote_bytes = (mb_ring_remote(at.dense, dense * grad) + mb_ring_remote(at.expert, expert * grad)) * (sharded ? 1 : 2);
	f->reduce_exposed_s = exposed(f->reduce_s, k->dp_reduce_window_frac * micro_batch_s, p->overlap_grad_reduce, k->dp_tail_frac);
	if (!sharded)
		return;
	f->gather_s = ring(c, &at, dense * gather, expert * gather);
	f->gather_bytes = mb_ring_sent(at.dense, dense * gather) + mb_ring_sent(at.expert, expert * gather);
	f->gather_remote_bytes = mb_ring_remote(at.dense, dense * gather) + mb_ring_remote(at.expert, expert * gather);
	f->gather_exposed_s = exposed(f->gather_s, k->dp_gather_window_frac * micro_batch_s, p->overlap_param_gather, k->dp_tail_frac);
}

/*
 * Adam reads gradient, moments and master weight and writes all but the gradient (30 B a parameter, 22 with bf16
 * moments); norm and clipping read the gradients again; zeroing and casts touch every local parameter (6 B).
 */
static double optimizer_seconds(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r)
{
	const struct mb_run *run = &c->run;
	double state = run->use_precision_aware_optimizer && run->exp_avg_dtype != MB_DT_FP32 ? 22 : 32;
	bool sharded = p->use_distributed_optimizer || p->use_megatron_fsdp;
	double owned = sharded ? r->dense_trained / d->dense_shard + r->expert_trained / d->expert_dp : r->dense_trained + r->expert_trained;
	double on_host = p->optimizer_cpu_offload ? p->optimizer_offload_fraction : 0;
	double device = (owned * (1 - on_host) * (state + 8) + (r->dense_trained + r->expert_trained) * 6) / mb_stream_rate(c);

	/* On the host: gradients down, weights up, and the states through host memory about as fast as through the link. */
	return device + owned * on_host * (4 + 2 + state) / (c->hardware.host_bytes_per_s * c->params.host_link_frac);
}

void mb_finish_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r,
                    double micro_batch_s, struct mb_finish *ret)
{
	*ret = (struct mb_finish){ 0 };
	if (!p->use_megatron_fsdp || p->sharding < MB_SHARD_OPTIM_GRADS)
		data_parallel(c, p, d, r, micro_batch_s, ret);
	ret->optimizer_s = optimizer_seconds(c, p, d, r);
	ret->fixed_s = c->params.step_fixed_s + (d->frozen ? 0 : r->tensors) * c->params.step_tensor_s * c->params.host_factor;
}

double mb_fsdp_exposed(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r,
                       double micro_batch_s)
{
	double gather = p->sharding == MB_SHARD_FULL ? 2 * gather_bytes(c) : 0, reduce = mb_gradient_bytes(c, p), busy;
	struct places at;

	if (!p->use_megatron_fsdp || p->sharding < MB_SHARD_OPTIM_GRADS)
		return 0;
	at = places_of(c, d);
	busy = ring(c, &at, r->dense * gather + r->dense_trained * reduce, r->expert * gather + r->expert_trained * reduce);
	return mb_larger(busy * c->params.fsdp_exposed_frac, busy - 0.9 * micro_batch_s);
}
