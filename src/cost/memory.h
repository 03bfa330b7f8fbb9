/* Peaks of every stage. Private to src/cost. */
#ifndef MBSIM_COST_MEMORY_H
#define MBSIM_COST_MEMORY_H

#include "cost/live.h"
#include "cost/states.h"

/* The order of a plan's schedule, without durations. */
struct mb_pipeline mb_memory_pipeline(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d);

/* Needs dims, split and kinds; fills stage_memory[rank]. */
void mb_stage_memory_fill(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e, int rank);

/* Bytes around the loss: while it is computed, kept until its backward, during its backward. All MTP heads. */
struct mb_loss_bytes { double forward, saved, backward; };
struct mb_loss_bytes mb_loss_bytes_of(const struct mb_case *c, const struct mb_dims *d);

/* Static buffers of captured layers, and the terms of a capture, whose sum is returned [src/cost/capture.c]. */
double mb_graph_static_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank);
double mb_capture_terms(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                        const double between[MB_MEM_COUNT], double ret[MB_MEM_COUNT]);

/* Device memory outside the allocator's live blocks: reserved but free, context, communicators, dispatcher buffers. */
void mb_device_memory_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, struct mb_stage_memory *m);

#endif
