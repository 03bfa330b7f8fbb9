/* A software stack: which releases run, what they do by default, and what they cost on the host. */
#ifndef MBSIM_DESC_STACK_H
#define MBSIM_DESC_STACK_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "desc/params.h"

enum mb_framework { MB_BRIDGE, MB_MEGATRON_LM };

struct mb_stack {
	char name[64];
	enum mb_framework framework;
	bool lts;                       /* Megatron-LM's long-term-support image */
	int month;                      /* release, 12 * year + month - 1: decides behaviour that changed */
	int day;                        /* of the month; 0: unknown */
	int transformer_engine, torch, megatron_core, megatron_bridge;  /* versions as major * 10000 + minor * 100 + patch; 0 unknown */
	bool flops_gpt_oss_dense;       /* Bridge's own FLOP count takes GPT-OSS experts as not gated and ignores the window */
	struct mb_params params;        /* the stack half */
	struct mb_provenance provenance[MB_PARAM_COUNT];
	const char *source;
};

enum { MB_MONTH_2025_10 = 12 * 2025 + 9 };

struct mb_node;
struct mb_library;

/* Versions compare as integers: MB_VERSION(2, 14, 0). */
#define MB_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))

/* `extends: OTHER` inherits every value of another stack file. */
bool mb_stack_read(const struct mb_node *node, struct mb_library *library, struct mb_arena *arena, struct mb_stack *ret,
                   struct mb_diags *diags);

/* Whether the release is of that day or later; an unknown day counts as the middle of its month. */
bool mb_stack_since(const struct mb_stack *s, int year, int month, int day);

/*
 * A shipped name, a path that ends in ".yaml", or "mlm-dev-2026-05", "mlm-dev-2026-05-29" or "mlm-lts-2025-10": the base
 * file configs/stacks/mlm-dev.yaml or mlm-lts.yaml at that month.
 */
bool mb_stack_load(const char *name, struct mb_pos at, struct mb_library *library, struct mb_arena *arena, struct mb_stack *ret,
                   struct mb_diags *diags);

#endif
