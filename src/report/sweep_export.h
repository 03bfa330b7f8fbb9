/* The cells of a store as rows: one for each finished cell, in the order of the sweep, columns always the same. No timings. */
#ifndef MBSIM_REPORT_SWEEP_EXPORT_H
#define MBSIM_REPORT_SWEEP_EXPORT_H

#include "base/text.h"
#include "sweep/store.h"

void mb_sweep_csv(struct mb_store *store, const struct mb_store_grid *grid, struct mb_text *ret);
void mb_sweep_jsonl(struct mb_store *store, const struct mb_store_grid *grid, struct mb_text *ret);
void mb_sweep_markdown(struct mb_store *store, const struct mb_store_grid *grid, struct mb_text *ret);

#endif
