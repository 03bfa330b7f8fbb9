/*
 * The operations of a layer: the one table that memory, recompute, communication and time are read from.
 * All sizes are per GPU, layer and micro-batch under one plan.
 */
#ifndef MBSIM_COST_OP_H
#define MBSIM_COST_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/case.h"

enum mb_class {
	MB_CLASS_ELEMENTWISE,           /* time by bytes: norms, residuals, activations, rotary, casts */
	MB_CLASS_GEMM, MB_CLASS_EXPERT_GEMM,
	MB_CLASS_ATTENTION,             /* by executed FLOPs */
	MB_CLASS_SSM,                   /* by bytes, at the state-space rate */
	MB_CLASS_PERMUTE, MB_CLASS_CROSS_ENTROPY       /* by bytes, at their own rates */
};

enum mb_axis { MB_AXIS_NONE, MB_AXIS_TP, MB_AXIS_CP, MB_AXIS_EP_DISPATCH, MB_AXIS_EP_COMBINE, MB_AXIS_ETP };

enum mb_format { MB_FMT_FP32, MB_FMT_BF16, MB_FMT_FP8, MB_FMT_MXFP8, MB_FMT_FP4 };

/* A tensor kept for the backward. Gone when any module of removed_by is recomputed; offload: group that may move it. */
struct mb_saved {
	double bytes;
	unsigned removed_by;            /* enum mb_module bits, MB_FULL included */
	unsigned offload;               /* enum mb_offload bit; 0: always stays */
};

/* A weight matrix or vector on this rank; `count` equal ones. cols 1: a vector. */
struct mb_weight {
	int64_t rows, cols;
	int count;
	bool expert;                    /* sharded by expert parallelism, reduced over expert data parallelism */
	bool linear;                    /* a Transformer Engine linear: may be stored and cached in fp8 */
	bool dummy;                     /* its fused weight gradient keeps a dummy buffer */
};

struct mb_send {
	enum mb_axis axis;
	double forward_bytes, backward_bytes;           /* sent by this GPU, self excluded */
	double backward_hidden_bytes;                   /* part of backward_bytes that runs beside a matrix product */
	double forward_remote_bytes, backward_remote_bytes;     /* part that leaves the NVLink domain */
	double forward_calls, backward_calls;
};

enum { MB_OP_SAVED = 6, MB_OP_WEIGHTS = 5, MB_MAX_OPS = 40 };

struct mb_op {
	const char *name;
	enum mb_class class;
	unsigned replayed_by;           /* modules whose recompute runs the forward of this operation again */
	unsigned scope;                 /* graph scopes that capture it */

	/* Matrix product: `groups` products [m,k] x [k,n]. */
	double m, n, k, groups;
	enum mb_format format;
	bool frozen;                    /* no weight gradient */
	bool trained;                   /* its weights have gradients and optimizer states */

	double forward_flops, backward_flops;           /* executed */
	double time_factor;                             /* of attention: time over that of heads of 128 */
	double forward_bytes, backward_bytes;           /* device memory traffic of memory-bound work */
	double accumulate_bytes;                        /* read and write of the main gradient */
	double quantise_forward_bytes, quantise_replay_bytes, quantise_backward_bytes;
	double forward_kernels, backward_kernels, expert_kernels;
	double host_ops, replay_host_ops;               /* framework operations, forward and backward */
	double host_s, replay_host_s;                   /* host time beyond operations (dispatcher, per-expert kernels) */
	double sync_s;                                  /* wait of the device for the host */

	struct mb_saved saved[MB_OP_SAVED];
	int saved_count;
	struct mb_weight weights[MB_OP_WEIGHTS];
	int weight_count;
	struct mb_send send;
	double forward_transient_bytes, replay_transient_bytes; /* working set beyond what is saved */
};

/* Sizes that a plan implies for every layer. Names follow spec: N tokens of a TP group, Nt of one rank. */
struct mb_dims {
	int tp, cp, pp, vp, ep, etp, mbs;
	int dp;                         /* gpus / (tp cp pp): data-parallel replicas */
	int dense_shard;                /* dp * cp: ranks that share dense parameters */
	int expert_dp;                  /* gpus / (etp ep pp) */
	int64_t micro_batches;
	double tokens;                  /* N = seq * mbs / cp */
	double local_tokens;            /* Nt = N / tp with sequence parallelism, else N */
	double act_bytes;               /* bytes of an activation element: 2, or 4 without bf16/fp16 */
	double experts_local;           /* E / ep */
	double rows;                    /* rows entering the local experts, imbalance and padding included */
	double rows_balanced;           /* the same without imbalance */
	int padded_vocab;
	bool sp;                        /* sequence parallelism is in force */
	bool quantised;                 /* linears run in fp8 or fp4 */
	enum mb_format format;          /* of the linears */
	double saved_bytes;             /* bytes of a saved quantised element */
	bool full_graph;                /* the whole iteration is captured */
	unsigned scope;                 /* what is captured, full graph expanded */
	unsigned modules;               /* recompute modules in force; MB_FULL for full recompute */
	bool frozen;                    /* base weights are frozen (LoRA) */
	double imbalance;               /* busiest expert-parallel rank over the mean */
	double core_seq;                /* sequence length that attention sees (packed samples are shorter) */
};

void mb_dims_fill(const struct mb_case *c, const struct mb_plan *p, struct mb_dims *ret);

/* Kinds: those of the model, then the special blocks. */
#define MB_KIND_EMBEDDING (MB_MAX_LAYER_KINDS + 0)
#define MB_KIND_MTP       (MB_MAX_LAYER_KINDS + 1)      /* projection and norms of one MTP depth */
#define MB_KIND_HEAD      (MB_MAX_LAYER_KINDS + 2)      /* final norm, output layer, loss; all MTP heads */
#define MB_KIND_COUNT     (MB_MAX_LAYER_KINDS + 3)

/* The operations of one layer of a kind, in order of execution. Returns how many of MB_MAX_OPS are used. */
int mb_ops_build(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind, struct mb_op *ops);

#endif
