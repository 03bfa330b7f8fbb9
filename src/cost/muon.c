/* Optimizer states under Muon. */
#include "cost/states.h"

/*
 * Muon keeps one momentum for each matrix of a layer, Adam's two for everything else. Sharded, it deals whole parameters,
 * sorted by size, to data-parallel ranks 0 .. D-1, D-1 .. 0 and so on; the last rank's share is told. Experts are dealt
 * over their own data parallelism. [megatron/core/optimizer/layer_wise_optimizer.py, emerging_optimizers.py]
 */
struct dealt {
	double numel, count;
	bool matrix;
};

static int collect_dense(const struct mb_plan *p, const struct mb_evaluation *e, int rank, bool shares_embedding,
                         struct dealt *ret, int max)
{
	int n = 0;

	for (int k = 0; k < MB_KIND_COUNT; k++) {
		double layers = 0;

		for (int j = rank; j < e->split.chunk_count; j += p->pp)
			layers += e->split.kinds[j][k];
		for (int i = 0; layers > 0 && i < e->kinds[k].op_count; i++) {
			for (int w = 0; w < e->kinds[k].ops[i].weight_count && n < max; w++) {
				const struct mb_weight *weight = &e->kinds[k].ops[i].weights[w];
				bool tied = shares_embedding && k == MB_KIND_HEAD && weight->cols > 1;

				if (!weight->expert && !tied)
					ret[n++] = (struct dealt){ (double)weight->rows * (double)weight->cols, layers * weight->count,
						weight->cols > 1 && k < MB_MAX_LAYER_KINDS };
			}
		}
	}
	return n;
}

/* Insertion sort: a hundred rows at most, and qsort may allocate. */
static void sort_by_size(struct dealt *all, int n)
{
	for (int i = 1; i < n; i++) {
		struct dealt row = all[i];
		int j = i;

		for (; j > 0 && all[j - 1].numel > row.numel; j--)
			all[j] = all[j - 1];
		all[j] = row;
	}
}

void mb_muon_terms(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank, const struct mb_rank_params *r,
                   double *ret_master, double *ret_moments)
{
	struct dealt all[MB_KIND_COUNT * MB_MAX_OPS];
	bool tied = c->model.share_embeddings_and_output_weights && r->has_embedding && r->has_loss;
	int n = collect_dense(p, e, rank, tied, all, MB_KIND_COUNT * MB_MAX_OPS), ranks = p->use_distributed_optimizer ? e->dims.dense_shard : 1;
	double expert = r->expert_trained / (p->use_distributed_optimizer ? e->dims.expert_dp : 1);
	int64_t position = 0;

	*ret_master = 4 * expert;
	*ret_moments = 4 * expert;
	sort_by_size(all, n);
	for (int i = 0; i < n; i++) {
		for (double k = 0; k < all[i].count; k++, position++) {
			int64_t turn = position % (2 * ranks), owner = turn < ranks ? turn : 2 * ranks - 1 - turn;

			if (owner != ranks - 1)
				continue;
			*ret_master += 4 * all[i].numel;
			*ret_moments += (all[i].matrix ? 4 : 8) * all[i].numel;
		}
	}
}
