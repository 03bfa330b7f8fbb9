/* Advice on paper: a table of options, the answer in front, why, and what to type next. */
#ifndef MBSIM_REPORT_ADVISE_H
#define MBSIM_REPORT_ADVISE_H

#include "advise/advice.h"
#include "advise/diagnosis.h"
#include "report/style.h"
#include "report/table.h"

struct mb_advise_report {
	const struct mb_advice *a;
	const char *args;               /* the run as typed */
};

void mb_advise_text(const struct mb_advise_report *x, const struct mb_style *s, struct mb_text *ret);
void mb_advise_json(const struct mb_advise_report *x, struct mb_text *ret);
void mb_advise_markdown(const struct mb_advise_report *x, struct mb_text *ret);

/* The overrides of the recommended option, one a line. False when there is none. */
bool mb_advise_emit(const struct mb_advice *a, struct mb_text *ret);

/* Parts, shared by text and Markdown. */
void mb_advise_headline(const struct mb_advice *a, struct mb_text *ret);
void mb_advise_answer(const struct mb_advice *a, struct mb_text *ret);
void mb_advise_table(const struct mb_advice *a, bool utf8, struct mb_table *ret);
bool mb_advise_note_is_short(const char *note);
void mb_option_words(const struct mb_advice *a, const struct mb_option *o, struct mb_text *ret);

/* Sentences of `advise oom` about what the log says; a line each. */
void mb_advise_log(const struct mb_advice *a, struct mb_text *ret);
void mb_advise_budget(const struct mb_advice *a, struct mb_text *ret);

#endif
