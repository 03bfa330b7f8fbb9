/* Pairs of runs under a validation: layouts of one workload, and variants of a study. */
#ifndef MBSIM_REPORT_VALIDATE_PAIRS_H
#define MBSIM_REPORT_VALIDATE_PAIRS_H

#include "base/text.h"
#include "calib/accuracy.h"

struct cJSON;

void mb_pairs_json(const struct mb_accuracy *a, struct cJSON *document);
void mb_pairs_text(const struct mb_accuracy *a, struct mb_text *ret);
void mb_pairs_markdown(const struct mb_accuracy *a, struct mb_text *ret);

#endif
