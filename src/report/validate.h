/* Predictions against measured runs: errors by group, the worst rows, what was left out and why. */
#ifndef MBSIM_REPORT_VALIDATE_H
#define MBSIM_REPORT_VALIDATE_H

#include "calib/accuracy.h"
#include "report/style.h"

struct mb_validation {
	const struct mb_accuracy *accuracy;
	const struct mb_trials *trials;
	const char *args;               /* the files as typed, for the "next" line */
	int worst;                      /* rows named */
	const char *by;                 /* grouping shown; NULL: family and source */
};

void mb_validation_text(const struct mb_validation *x, const struct mb_style *s, struct mb_text *ret);
void mb_validation_json(const struct mb_validation *x, struct mb_text *ret);
void mb_validation_csv(const struct mb_validation *x, struct mb_text *ret);
void mb_validation_markdown(const struct mb_validation *x, struct mb_arena *arena, struct mb_text *ret);

/* Reasons for skipping, most frequent first, with a row each. Returns how many of `ret` are filled. */
struct mb_skip_reason {
	const char *reason, *example;
	struct mb_pos pos;              /* of the first one */
	int count;
};
int mb_skip_reasons(const struct mb_trials *trials, struct mb_skip_reason *ret);

#endif
