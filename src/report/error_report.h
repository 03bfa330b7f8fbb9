/* Diagnostics as people and programs read them. */
#ifndef MBSIM_REPORT_ERROR_REPORT_H
#define MBSIM_REPORT_ERROR_REPORT_H

#include "base/error.h"
#include "report/style.h"

/* "file:line:column: error: what", the source line with a caret, and the nearest valid choice. */
void mb_diag_text(const struct mb_diag *d, const struct mb_style *s, struct mb_text *ret);

/* The same as mbsim.error/1 on one line. */
void mb_diag_json(const struct mb_diag *d, struct mb_text *ret);

/* All of them; quiet leaves out warnings and notes. */
void mb_diags_print(const struct mb_diags *d, bool json, const struct mb_style *s, struct mb_text *ret);

#endif
