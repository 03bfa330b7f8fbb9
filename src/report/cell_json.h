/* What a sweep keeps of a cell, as JSON (mbsim.cell/1): all that exports and reports need, so that they read only the store. */
#ifndef MBSIM_REPORT_CELL_JSON_H
#define MBSIM_REPORT_CELL_JSON_H

#include "base/text.h"
#include "sweep/cell.h"

/* The document of a cell, in one line. constants: hash of the text that mb_cell_constants wrote. */
void mb_cell_json(const struct mb_outcome *x, const char *constants, struct mb_text *ret);

/* Constants of the time model and the machine, with their sources: the same for many cells (mbsim.constants/1). */
void mb_cell_constants(const struct mb_query *q, struct mb_text *ret);

/* What the store keeps of the sweep itself, and the settings of one of its cells. */
void mb_sweep_head_json(const struct mb_sweep *s, struct mb_text *ret);
void mb_sweep_settings_json(const struct mb_sweep *s, int cell, struct mb_text *ret);

#endif
