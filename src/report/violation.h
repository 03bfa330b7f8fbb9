/* Broken rules in words. */
#ifndef MBSIM_REPORT_VIOLATION_H
#define MBSIM_REPORT_VIOLATION_H

#include "plan/rules.h"
#include "report/style.h"

/* Each with its key, its place, why it fails, and the fix: the body of `mbsim check`. */
void mb_violations_print(struct mb_text *t, const struct mb_style *s, const struct mb_query *q,
                         const struct mb_violation *v, int count);

/* Those that are not errors, one line each. */
void mb_warnings_print(struct mb_text *t, const struct mb_style *s, const struct mb_violation *v, int count);

/* "2 errors, 1 setting ignored" */
void mb_violation_counts(struct mb_text *t, const struct mb_violation *v, int count);
int mb_violation_errors(const struct mb_violation *v, int count);

/* "vp=4 'recompute_modules=[mla_up_proj]'", as typed after a command. */
void mb_fix_words(struct mb_text *t, const struct mb_query *q, const struct mb_fix *fix);

/* "run.yaml:14:34", "argument 3:1"; "default" for what nobody said. */
void mb_place(struct mb_text *t, struct mb_pos pos);

enum mb_ink mb_severity_ink(enum mb_rule_severity severity);

#endif
