/* A layer's time as a function of what is recomputed and offloaded: the same sums as in kind.c, kept apart by modules. */
#include "cost/bounds.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/larger.h"
#include "cost/roofline.h"

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

static void add_directions(const struct mb_sums *from, int dir, struct mb_brief *to)
{
	const double *s = from->s[dir];

	for (int i = 0; i < MB_TIME_COUNT; i++)
		to->all_s[dir] += s[i];
	for (int i = MB_TIME_gemm; i <= MB_TIME_gaps; i++)
		to->compute_s[dir] += s[i];
	to->product_s[dir] += s[MB_TIME_gemm] + s[MB_TIME_expert_gemm];
	to->attention_s += s[MB_TIME_attention];
	to->expert_comm_s[dir] += from->expert_comm_s[dir];
}

static void brief_of(const struct mb_sums *from, struct mb_brief *ret)
{
	*ret = (struct mb_brief){ .shared_s = from->shared_s };
	add_directions(from, MB_FORWARD, ret);
	add_directions(from, MB_BACKWARD, ret);
}

void mb_brief_add(struct mb_brief *to, const struct mb_brief *from)
{
	for (int dir = 0; dir < MB_DIRECTIONS; dir++) {
		to->all_s[dir] += from->all_s[dir];
		to->product_s[dir] += from->product_s[dir];
		to->compute_s[dir] += from->compute_s[dir];
		to->expert_comm_s[dir] += from->expert_comm_s[dir];
	}
	to->attention_s += from->attention_s;
	to->shared_s += from->shared_s;
}

static void replay_of(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, double forward_s,
                      struct mb_kind_cost *scratch, struct mb_kind_pieces *ret)
{
	const struct mb_op *op = &scratch->ops[i];
	struct mb_replay_piece *piece = replay_piece(ret, op->replayed_by);
	struct mb_sums sum;
	struct mb_brief brief;

	memset(&sum, 0, sizeof sum);
	mb_add_again(c, p, d, i, forward_s, &sum, scratch);
	brief_of(&sum, &brief);
	mb_brief_add(&piece->add, &brief);
	piece->host_s += op->replay_host_ops * c->params.host_op_s + op->replay_host_s;
}

/* Adds operation i of the scratch, which runs once. Returns its forward seconds, as mb_add_once does. */
static double once_of(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int i, struct mb_kind_cost *scratch,
                      struct mb_sums *sums, struct mb_kind_once *ret)
{
	const struct mb_op *op = &scratch->ops[i];

	ret->host_s += op->host_ops * c->params.host_op_s + op->host_s;
	ret->sync_s += op->sync_s;
	return mb_add_once(c, p, d, i, sums, scratch);
}

void mb_kind_once_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                       struct mb_kind_cost *scratch, struct mb_kind_once *ret)
{
	struct mb_sums once;

	memset(&once, 0, sizeof once);
	ret->host_s = ret->sync_s = 0;
	scratch->op_count = mb_ops_build(c, p, d, kind, scratch->ops);
	for (int i = 0; i < scratch->op_count; i++)
		once_of(c, p, d, i, scratch, &once, ret);
	brief_of(&once, &ret->brief);
}

void mb_kind_unrouted_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                           struct mb_kind_cost *scratch, struct mb_brief *ret)
{
	struct mb_sums once;

	memset(&once, 0, sizeof once);
	scratch->op_count = mb_ops_build(c, p, d, kind, scratch->ops);
	for (int i = 0; i < scratch->op_count; i++) {
		const struct mb_op *op = &scratch->ops[i];

		if (op->class == MB_CLASS_EXPERT_GEMM) {
			once.s[MB_FORWARD][MB_TIME_expert_gemm] += op->forward_flops / mb_product_rate(c, op->format, true);
			once.s[MB_BACKWARD][MB_TIME_expert_gemm] += op->backward_flops / mb_product_rate(c, op->format, true);
		} else if (op->scope != MB_SCOPE_MOE) {
			mb_add_once(c, p, d, i, &once, scratch);
		}
	}
	brief_of(&once, ret);
}

void mb_kind_pieces_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                         struct mb_kind_cost *scratch, struct mb_kind_pieces *ret)
{
	struct mb_sums once;

	memset(&once, 0, sizeof once);
	memset(ret, 0, offsetof(struct mb_kind_pieces, replay));
	ret->saved_count = 0;
	ret->full_saved_bytes = ret->forward_transient_bytes = ret->backward_transient_bytes = 0;
	scratch->op_count = mb_ops_build(c, p, d, kind, scratch->ops);
	for (int i = 0; i < scratch->op_count; i++) {
		const struct mb_op *op = &scratch->ops[i];
		double forward_s = once_of(c, p, d, i, scratch, &once, &ret->once);

		if (op->replayed_by)
			replay_of(c, p, d, i, forward_s, scratch, ret);
		for (int j = 0; j < op->saved_count; j++)
			keep_piece(ret, &op->saved[j]);
		ret->forward_transient_bytes = mb_larger(ret->forward_transient_bytes, op->forward_transient_bytes);
		ret->backward_transient_bytes = mb_larger(ret->backward_transient_bytes, op->replay_transient_bytes);
	}
	brief_of(&once, &ret->once.brief);
	ret->input_bytes = scratch->op_count > 0 && scratch->ops[0].saved_count > 0 ? scratch->ops[0].saved[0].bytes : 0;
}

/* A direction with its share of expert communication, and of copies to the host what its own work does not cover. */
static double direction_seconds(const struct mb_case *c, const struct mb_brief *sum, int dir, double hidden, double offloaded_bytes)
{
	double s = sum->all_s[dir] + sum->expert_comm_s[dir] * (1 - hidden), copy;

	if (offloaded_bytes <= 0)
		return s;
	copy = offloaded_bytes / (c->hardware.host_bytes_per_s * c->params.host_link_frac);
	return s + (copy > s ? copy - s : 0) + offloaded_bytes / mb_stream_rate(c);
}

static double hidden_share(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_brief *sum)
{
	return mb_hidden_share(c, p, d, sum->expert_comm_s[MB_FORWARD] + sum->expert_comm_s[MB_BACKWARD], sum->compute_s[MB_FORWARD],
	                       sum->compute_s[MB_BACKWARD], sum->shared_s);
}

void mb_brief_row(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_brief *sum,
                  const struct mb_brief *once, double host_s, double sync_s, double offloaded_bytes, struct mb_kind_row *ret)
{
	double products = sum->product_s[MB_FORWARD] + sum->product_s[MB_BACKWARD], forward, backward, faster;
	double hidden = hidden_share(c, p, d, sum);

	forward = direction_seconds(c, sum, MB_FORWARD, hidden, offloaded_bytes);
	backward = direction_seconds(c, sum, MB_BACKWARD, hidden, offloaded_bytes);
	faster = 1 - 1 / mb_clock_boost(&c->params, products + sum->attention_s, forward + backward);
	ret->host_s = host_s * mb_host_factor(c, p);
	ret->sync_s = sync_s * c->params.host_factor * mb_wait_share(p, once == sum ? hidden : hidden_share(c, p, d, once));
	ret->forward_s = forward - sum->product_s[MB_FORWARD] * faster;
	ret->gpu_s = ret->forward_s + backward - sum->product_s[MB_BACKWARD] * faster;
}

/*
 * As in memory.c: a backward's working set beside what was offloaded and is back, or what is made again; full recompute
 * makes a whole layer again. Under EP overlap what is back is counted with the forward beside.
 */
static double event_bytes(const struct mb_plan *p, const struct mb_kind_pieces *pieces, struct mb_treatment t, double removed, double offloaded)
{
	double backward = offloaded > 0 && p->overlap_moe_expert_parallel_comm ? 0 : pieces->backward_transient_bytes + offloaded;
	double replay = t.modules & MB_FULL ? pieces->full_saved_bytes : removed;

	return backward > replay ? backward : replay;
}

void mb_kind_bytes_fill(const struct mb_plan *p, const struct mb_kind_pieces *pieces, struct mb_treatment t, struct mb_kind_row *ret)
{
	double offloaded = 0, removed = 0, kept = 0;

	for (int i = 0; i < pieces->saved_count; i++) {
		const struct mb_saved *s = &pieces->saved[i];

		if (s->removed_by & t.modules)
			removed += s->bytes;
		else if (!t.offload_all && !(s->offload & t.offload))
			kept += s->bytes;
		else
			offloaded += s->bytes;
	}
	ret->offloaded_bytes = offloaded > 0 ? rint(mb_moved_frac(p, t) * offloaded) : 0;
	ret->saved_bytes = kept + (offloaded - ret->offloaded_bytes);
	ret->event_bytes = event_bytes(p, pieces, t, removed, ret->offloaded_bytes);
}

void mb_kind_row_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_kind_pieces *pieces,
                      struct mb_treatment t, struct mb_kind_row *ret)
{
	struct mb_brief sum = pieces->once.brief;
	double host_s = pieces->once.host_s;

	for (int i = 0; i < pieces->replay_count; i++) {
		if (!(pieces->replay[i].modules & t.modules))
			continue;
		mb_brief_add(&sum, &pieces->replay[i].add);
		host_s += pieces->replay[i].host_s;
	}
	mb_kind_bytes_fill(p, pieces, t, ret);
	mb_brief_row(c, p, d, &sum, &pieces->once.brief, host_s, pieces->once.sync_s, ret->offloaded_bytes, ret);
}
