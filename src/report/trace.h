/*
 * The step as Chrome's trace events, for Perfetto: a process per pipeline rank, a track for operations, for compute and
 * for each kind of communication, and a memory counter. Every moment of a rank is in exactly one span below the
 * operations, so the spans of a rank add up to the step, and those of the slowest rank to the terms of the estimate.
 * [Trace Event Format, Google, 2016]
 */
#ifndef MBSIM_REPORT_TRACE_H
#define MBSIM_REPORT_TRACE_H

#include "base/text.h"
#include "report/timeline.h"

/* In this order; a rank at a time, so that a long step need not be in memory as a whole. */
void mb_trace_begin(const struct mb_timeline *t, const struct mb_query *q, struct mb_text *ret);
void mb_trace_rank(const struct mb_timeline *t, int rank, struct mb_text *ret);
void mb_trace_end(struct mb_text *ret);

#endif
