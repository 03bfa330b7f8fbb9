/*
 * What the search needs of the cost model before a plan is complete: a layer's time as a function of what is recomputed
 * and offloaded, without building its operations again. The same sums as mb_kind_cost_fill's.
 */
#ifndef MBSIM_COST_BOUNDS_H
#define MBSIM_COST_BOUNDS_H

#include "cost/kind_sums.h"

enum { MB_KIND_REPLAYS = 12, MB_KIND_TENSORS = 32 };

/* Sums over the terms of a layer's time, as far as its device time depends on them. Seconds by direction. */
struct mb_brief {
	double all_s[MB_DIRECTIONS];            /* without expert dispatch and combine */
	double product_s[MB_DIRECTIONS];        /* dense and expert matrix products, at the clock of a busy device */
	double compute_s[MB_DIRECTIONS];        /* what expert communication can hide behind, gaps included */
	double expert_comm_s[MB_DIRECTIONS];    /* dispatch and combine before any overlap */
	double attention_s, shared_s;
};

void mb_brief_add(struct mb_brief *to, const struct mb_brief *from);

/* One layer without recompute. */
struct mb_kind_once {
	struct mb_brief brief;
	double host_s, sync_s;          /* before the factors of the plan */
};

/* One layer of a kind: what runs once, what each set of recompute modules runs again, and the tensors kept. */
struct mb_kind_pieces {
	struct mb_kind_once once;
	int replay_count;
	struct mb_replay_piece {
		unsigned modules;
		struct mb_brief add;
		double host_s;
	} replay[MB_KIND_REPLAYS];
	int saved_count;
	struct mb_saved saved[MB_KIND_TENSORS];         /* equal removers and offload groups together */
	double full_saved_bytes, input_bytes;
	double forward_transient_bytes, backward_transient_bytes;
};

/* What a stage adds up for each of its layers. */
struct mb_kind_row {
	double gpu_s, forward_s, host_s, sync_s;
	double saved_bytes, offloaded_bytes;
	double event_bytes;             /* what the backward of a chunk with such a layer needs at least, beyond what is saved */
};

/* scratch: any kind cost; its contents are lost, except that its ops are those of the kind. */
void mb_kind_once_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                       struct mb_kind_cost *scratch, struct mb_kind_once *ret);
/*
 * No more than mb_kind_once_fill's for any expert- and expert-tensor-parallel size and dispatcher: expert products at their
 * full rate, and nothing of what moves tokens.
 */
void mb_kind_unrouted_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                           struct mb_kind_cost *scratch, struct mb_brief *ret);

void mb_kind_pieces_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                         struct mb_kind_cost *scratch, struct mb_kind_pieces *ret);

/* Equal to mb_kind_cost_fill up to rounding. The plan may differ from that of the pieces in EP overlap and pipeline. */
void mb_kind_row_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_kind_pieces *pieces,
                      struct mb_treatment t, struct mb_kind_row *ret);

/* The bytes of the row. */
void mb_kind_bytes_fill(const struct mb_plan *p, const struct mb_kind_pieces *pieces, struct mb_treatment t, struct mb_kind_row *ret);

/*
 * The times of the row: of sums (once: without recompute, which hides no wait), host and sync seconds before the factors of
 * the plan, and bytes that go to the host.
 */
void mb_brief_row(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_brief *sum,
                  const struct mb_brief *once, double host_s, double sync_s, double offloaded_bytes, struct mb_kind_row *ret);

/* What pipeline transfers add to each micro-batch of a rank, and the delay between neighbours in the schedule. */
double mb_transfer_seconds(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, double *ret_hop_s);

#endif
