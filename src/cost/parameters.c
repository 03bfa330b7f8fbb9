/* Whole-model parameter counts, from the same operation tables that memory and time are read from. */
#include "cost/cost.h"

struct counts {
	double dense, expert;
};

static void count_kind(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind, double times, struct counts *sum)
{
	struct mb_op ops[MB_MAX_OPS];
	int n = mb_ops_build(c, p, d, kind, ops);

	for (int i = 0; i < n; i++) {
		for (int w = 0; w < ops[i].weight_count; w++) {
			const struct mb_weight *weight = &ops[i].weights[w];
			double each = (double)weight->rows * (double)weight->cols * weight->count * times;

			*(weight->expert ? &sum->expert : &sum->dense) += each;
		}
	}
}

void mb_count_parameters(const struct mb_case *c, int64_t *total_without_mtp, int64_t *mtp, int64_t *active)
{
	const struct mb_model *m = &c->model;
	struct mb_plan p = { .tp = 1, .cp = 1, .pp = 1, .vp = 1, .ep = 1, .etp = 1, .micro_batch_size = 1, .layout = -1 };
	struct counts body = { 0, 0 }, tail = { 0, 0 };
	int kinds[MB_MAX_LAYER_KINDS] = { 0 }, copies = m->mtp_use_repeated_layer && c->mtp_depth > 1 ? 1 : c->mtp_depth;
	struct mb_dims d;
	double share = m->num_moe_experts > 0 ? (double)m->moe_router_topk / m->num_moe_experts : 0;

	mb_dims_fill(c, &p, &d);
	d.padded_vocab = m->vocab_size;
	d.frozen = false;
	for (int i = 0; i < m->num_layers; i++)
		kinds[m->layers[i]]++;
	for (int k = 0; k < m->kind_count; k++)
		if (kinds[k])
			count_kind(c, &p, &d, k, kinds[k], &body);
	count_kind(c, &p, &d, MB_KIND_EMBEDDING, 1, &body);
	count_kind(c, &p, &d, MB_KIND_HEAD, 1, &body);
	if (m->share_embeddings_and_output_weights)
		body.dense -= (double)m->vocab_size * m->hidden_size;
	for (int i = 0; i < m->mtp_layer_count; i++)
		count_kind(c, &p, &d, m->mtp_layers[i], copies, &tail);
	if (copies > 0)
		count_kind(c, &p, &d, MB_KIND_MTP, copies, &tail);
	*total_without_mtp = (int64_t)(body.dense + body.expert);
	*mtp = (int64_t)(tail.dense + tail.expert);
	*active = (int64_t)(body.dense + body.expert * share);
}
