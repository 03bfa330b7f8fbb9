/*
 * The start of a step, as the report draws it: warm-up and one period of the steady state, run again from the durations
 * that a cell keeps. (cost/schedule.h and report/table.h both have a struct mb_table: this stands between them.)
 */
#ifndef MBSIM_REPORT_PIPELINE_WINDOW_H
#define MBSIM_REPORT_PIPELINE_WINDOW_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/arena.h"

struct mb_window_op { double start_ms, end_ms; long long micro_batch; int chunk; bool backward; };

struct mb_window_rank {
	struct mb_window_op *ops;       /* that start inside the window, ends cut at its end */
	int count;
	long long warmup;               /* forwards before the first pair */
	double busy_frac;
};

struct mb_window {
	int pp;
	long long micro_batches;
	double end_ms;
	struct mb_window_rank *ranks;   /* [pp] */
};

/* False: the stored sizes make no sense, or the step is too long to be run for a picture. */
bool mb_window_fill(const cJSON *pipeline, struct mb_arena *arena, struct mb_window *ret);

#endif
