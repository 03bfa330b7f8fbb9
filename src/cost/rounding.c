/*
 * Block rounding of the caching allocator. Two effects: large blocks come in multiples of 2 MiB and are split only if
 * more than 1 MiB remains; requests of 1 to 10 MiB that reuse a cached block at most 1 MiB larger keep all of it. How
 * often the second happens depends on the history of the process, so it has the two fitted shares of the model.
 * [PyTorch c10/cuda/CUDACachingAllocator.cpp: should_split, get_allocation_size]
 */
#include "cost/rounding.h"

#include <math.h>

static const double MIB = 1048576;

enum { MAX_SIZES = 96 };

struct sizes {
	double bytes[MAX_SIZES], times[MAX_SIZES];
	int count;
};

double mb_block_waste(double bytes)
{
	double rest = fmod(bytes, 2 * MIB);
	double missing = rest > 0 ? 2 * MIB - rest : 0;

	return bytes >= 10 * MIB && missing <= MIB ? missing : 0;
}

/*
 * Development images up to 2025-10-23 set expandable segments too late for PyTorch to see them; that of 2025-10-31 does
 * not. Read off the functional tests.
 */
static bool expandable(const struct mb_case *c)
{
	bool ignored = c->stack.framework == MB_MEGATRON_LM && !mb_stack_since(&c->stack, 2025, 10, 24) && !c->stack.lts
	               && c->hardware.architecture <= MB_HOPPER;

	return c->run.expandable_segments && !ignored;
}

static void add_size(struct sizes *s, double bytes, double times)
{
	int i = 0;

	bytes = ceil(bytes / 512) * 512;
	if (bytes <= MIB)
		return;
	while (i < s->count && fabs(s->bytes[i] - bytes) >= 1)
		i++;
	if (i == MAX_SIZES)
		return;
	if (i == s->count) {
		s->bytes[s->count] = bytes;
		s->times[s->count++] = 0;
	}
	s->times[i] += times;
}

/* Every request between 1 and 10 MiB could sit in the next larger size of the set. */
static double reuse_gap(const struct sizes *s)
{
	double gap = 0;

	for (int i = 0; i < s->count; i++) {
		double next = INFINITY;

		for (int j = 0; j < s->count; j++)
			if (s->bytes[j] > s->bytes[i])
				next = fmin(next, s->bytes[j]);
		if (s->bytes[i] < 10 * MIB && next - s->bytes[i] <= MIB)
			gap += s->times[i] * (next - s->bytes[i]);
	}
	return gap;
}

static double layers_on_rank(const struct mb_plan *p, const struct mb_evaluation *e, int rank, int kind)
{
	double layers = 0;

	for (int j = rank; j < e->split.chunk_count; j += p->pp)
		layers += e->split.kinds[j][kind];
	return layers;
}

static double moment_bytes(const struct mb_run *r)
{
	return r->use_precision_aware_optimizer && r->exp_avg_dtype != MB_DT_FP32 ? 2 : 4;
}

/* A sharded optimizer keeps one tensor a parameter; a parameter larger than the shard is cut to it. */
static double sharded_waste(const struct mb_case *c, const struct mb_weight *w, double shard_params, double share, bool whole)
{
	double n = (double)w->rows * (double)w->cols, moments = moment_bytes(&c->run);

	if (n >= shard_params)
		return 0;
	return share * (mb_block_waste(4 * n) + (whole ? 2 * mb_block_waste(moments * n) : 0));
}

double mb_state_rounding(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         const struct mb_rank_params *params, double *ret_copy)
{
	double sd = e->dims.dense_shard, sx = e->dims.expert_dp, waste = 0;
	bool sharded = p->use_distributed_optimizer, copied = mb_gradient_bytes(c, p) < 4;
	struct sizes all = { .count = 0 };

	*ret_copy = 0;
	if (expandable(c) || c->run.optimizer == MB_MUON || p->use_megatron_fsdp)
		return 0;
	for (int k = 0; k < MB_KIND_COUNT; k++) {
		double layers = layers_on_rank(p, e, rank, k);

		for (int i = 0; layers > 0 && i < e->kinds[k].op_count; i++) {
			for (int j = 0; j < e->kinds[k].ops[i].weight_count; j++) {
				const struct mb_weight *w = &e->kinds[k].ops[i].weights[j];
				double n = (double)w->rows * (double)w->cols, times = layers * w->count;

				if (!sharded) {
					add_size(&all, 4 * n, times);
				} else if (w->expert) {
					waste += sharded_waste(c, w, INFINITY, times / sx, sx <= 1);
					*ret_copy += copied ? times / sx * mb_block_waste(4 * n) : 0;
				} else {
					waste += sharded_waste(c, w, params->dense / sd, times / sd, false);
				}
			}
		}
	}
	if (sharded)
		return waste + mb_block_waste(4 * floor(params->dense_trained / sd));
	return c->params.allocator_state_frac * 2 * reuse_gap(&all);
}

double mb_activation_rounding(const struct mb_case *c, const struct mb_kind_cost *k)
{
	struct sizes all = { .count = 0 };

	if (expandable(c))
		return 0;
	for (int i = 0; i < k->op_count; i++)
		for (int j = 0; j < k->ops[i].saved_count; j++)
			add_size(&all, k->ops[i].saved[j].bytes, 1);
	return c->params.allocator_activation_frac * reuse_gap(&all);
}
