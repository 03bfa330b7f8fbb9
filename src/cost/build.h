/* Shared pieces of the operation tables. Private to src/cost. */
#ifndef MBSIM_COST_BUILD_H
#define MBSIM_COST_BUILD_H

#include "cost/formats.h"
#include "cost/op.h"

struct mb_build {
	const struct mb_case *c;
	const struct mb_plan *p;
	const struct mb_dims *d;
	const struct mb_format_row *format;
	double quantise_bytes;          /* per element on this machine */
	unsigned scope;                 /* graph scope of the block under construction */
	struct mb_op *ops;
	int count;
};

/* What decides a linear layer. Rows are tokens; weights are [out, in] on this rank. */
struct mb_linear {
	const char *name;
	double rows, out, in;
	unsigned replayed_by;
	enum { MB_WHOLE, MB_COLUMN, MB_ROW } parallel;  /* tensor-parallel split */
	double send_width;              /* features of the gathered input (column) or reduced output (row) */
	bool plain;                     /* bf16 whatever the precision: router, MTP projection of hybrids */
};

struct mb_op *mb_build_op(struct mb_build *b, const char *name, enum mb_class class, unsigned replayed_by);
struct mb_op *mb_build_linear(struct mb_build *b, struct mb_linear l);
struct mb_op *mb_build_norm(struct mb_build *b, const char *name, unsigned replayed_by, double reader_bytes, unsigned removed_by,
                            unsigned offload);
struct mb_op *mb_build_residual(struct mb_build *b, const char *name);
void mb_build_keep(struct mb_op *op, double bytes, unsigned removed_by, unsigned offload);
void mb_build_weight(struct mb_op *op, double rows, double cols, double count, struct mb_weight flags);
void mb_build_traffic(struct mb_op *op, double forward_bytes, double backward_bytes);
void mb_build_kernels(struct mb_op *op, double forward, double backward);

/*
 * Kernels that eager code launches one by one, beside those that the host operations of its region stand for: gaps on the
 * device and, unless a graph of `scope` replays them, time on the host.
 */
void mb_build_launches(struct mb_build *b, struct mb_op *op, double forward, double backward, unsigned scope);

/* Host operations of a region: all of them when launched eagerly, a few when a graph of `scope` replays it. */
void mb_build_host(struct mb_build *b, struct mb_op *op, double ops, double replay_ops, unsigned scope);

/* Tensor-parallel collectives of a column- or row-parallel linear over `width` features. */
void mb_build_tp(struct mb_build *b, struct mb_op *op, bool column, double width);

bool mb_build_captured(const struct mb_build *b, unsigned scope);
double mb_build_gate(const struct mb_model *m);         /* 2 with a gated linear unit, else 1 */
double mb_build_norm_vectors(const struct mb_model *m);         /* weight, and bias of a LayerNorm that has one */
double mb_build_stats(const struct mb_build *b);        /* bytes of the norm's saved statistics */

/* ---- LoRA, in lora.c. Targets are bits of mb_run.lora_targets. ---- */

enum { MB_TARGET_QKV = 1 << 0, MB_TARGET_PROJ = 1 << 1, MB_TARGET_FC1 = 1 << 2, MB_TARGET_FC2 = 1 << 3 };

/* The linear that an adapter stands beside: its rows and sizes on this rank. */
struct mb_adapter {
	double rows, out, in;
	bool column;                    /* column-parallel */
	bool expert;
	unsigned replayed_by;
};

bool mb_build_adapted(const struct mb_build *b, unsigned target);
double mb_build_input_bytes(const struct mb_build *b, unsigned target);
void mb_build_adapter(struct mb_build *b, const char *name, unsigned target, struct mb_adapter a);

/* Blocks, in the files of their names. */
void mb_build_attention(struct mb_build *b, struct mb_layer_kind kind);
void mb_build_mla(struct mb_build *b);
void mb_build_mamba(struct mb_build *b);
void mb_build_gdn(struct mb_build *b);
void mb_build_mlp(struct mb_build *b);
void mb_build_moe(struct mb_build *b);
void mb_build_embedding(struct mb_build *b);
void mb_build_mtp(struct mb_build *b);
void mb_build_head(struct mb_build *b);

/* Core attention of `heads` query heads on this rank: FLOPs, kept tensors, context-parallel exchange. */
struct mb_core {
	double heads, kv_heads;         /* of this rank */
	double qk_dim, v_dim;
	double context;                 /* keys a query sees on average */
	unsigned qkv_removed_by;        /* modules whose recompute drops q, k, v besides full */
	double backward_ratio;          /* executed backward FLOPs over forward */
	double dim_factor;              /* slow-down of small head dimensions */
};
void mb_build_core_attention(struct mb_build *b, struct mb_core core);

/* Which attention kernel runs [Transformer Engine attention/dot_product_attention; spec of measured choices in docs/model.md]. */
enum mb_attention_backend mb_attention_kernel(const struct mb_case *c);

/* Expected number of distinct groups out of `groups` equal ones that a token's experts fall into. */
double mb_distinct_groups(const struct mb_model *m, double groups);

#endif
