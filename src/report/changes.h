/* Changes to a run, as they are typed and as JSON. */
#ifndef MBSIM_REPORT_CHANGES_H
#define MBSIM_REPORT_CHANGES_H

#include <cjson/cJSON.h>

#include "advise/trial.h"
#include "report/table.h"

/* "pp=4 vp=4 recompute_modules=[mla_up_proj]": short names; quoted: as a shell takes it, full names. "" for none. */
void mb_changes_words(struct mb_text *t, const struct mb_query *q, const struct mb_changes *c, bool quoted);

/*
 * The same in several cells of a table's first columns: adds what does not fit as rows of their own behind the row just
 * begun. `column`: where the words stand. To be called once the row's other cells are in.
 */
void mb_changes_rows(struct mb_table *t, int column, const char *words, enum mb_ink ink);
enum { MB_CHANGES_WIDTH = 52 };

/* What of the words stands in the first row. */
const char *mb_changes_first(struct mb_table *t, const char *words);

/* One "key=value" a line, lists as a+b, so that no shell reads anything into it. */
void mb_changes_lines(struct mb_text *t, const struct mb_query *q, const struct mb_changes *c);

/* {"pipeline_model_parallel_size": 4, ..., "environment": {...}} */
void mb_json_changes(cJSON *o, const char *name, const struct mb_query *q, const struct mb_changes *c);

#endif
