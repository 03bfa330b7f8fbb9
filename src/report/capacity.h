/* What a sweep means for a training job: how many GPUs for how long, at what price. Read from a store alone. */
#ifndef MBSIM_REPORT_CAPACITY_H
#define MBSIM_REPORT_CAPACITY_H

#include <cjson/cJSON.h>

#include "sweep/store.h"

/* One assumption of the job, and where it came from. */
struct mb_given {
	double value;                   /* 0: unknown */
	const char *from;               /* "command line", "sweep file", "hardware file", "assumed" */
};

struct mb_capacity_options { double tokens, goodput_frac, price_usd, pue, days; };      /* 0: not given */

struct mb_capacity_cell {
	bool done, fits, at_risk;       /* fits: also at risk */
	cJSON *document;
	const char *settings;           /* "gpus=64 precision=bf16" */
	const char *verdict;
	int series;                     /* cells that differ in gpus only */
	double gpus, step_s, low_s, high_s, tokens_per_s, price_usd;
	double days, low_days, high_days, gpu_hours, usd, mwh;         /* usd 0: the price is unknown */
	double efficiency_frac;         /* tokens per GPU, over the smallest job of the series that fits; 0: none does */
};

struct mb_capacity {
	struct mb_store_grid grid;
	cJSON *head;
	const char *version;
	struct mb_given tokens, goodput_frac, pue;
	double deadline_days;
	struct mb_capacity_cell *cells;         /* [grid.count] */
	const char **series;                    /* names; "" when there is one */
	int series_count, done_count, fit_count;
	int chosen;                             /* -1: nothing fits */
	int larger;                             /* next larger job of the chosen series; -1: none */
	const char *price_from;                 /* of the chosen cell */
};

/* Reports and returns false when the store cannot be read. Documents live until mb_capacity_free. */
bool mb_capacity_read(struct mb_store *store, const struct mb_capacity_options *options, struct mb_arena *arena, struct mb_capacity *ret,
                      struct mb_diags *diags);
void mb_capacity_free(struct mb_capacity *c);

/* Number under a key; 0 when there is none. Text; "" when there is none. */
double mb_capacity_number(const cJSON *o, const char *key);
const char *mb_capacity_text(const cJSON *o, const char *key);

#endif
