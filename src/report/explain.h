/* Why a run is not the best, on paper. */
#ifndef MBSIM_REPORT_EXPLAIN_H
#define MBSIM_REPORT_EXPLAIN_H

#include "advise/explain.h"
#include "report/style.h"
#include "report/table.h"

struct mb_explain_report {
	const struct mb_explanation *x;
	const char *args;               /* the run as typed */
};

void mb_explain_text(const struct mb_explain_report *r, const struct mb_style *s, struct mb_text *ret);
void mb_explain_json(const struct mb_explain_report *r, struct mb_text *ret);
void mb_explain_markdown(const struct mb_explain_report *r, struct mb_text *ret);

/* Parts, shared by text, Markdown and JSON. */
void mb_explain_headline(const struct mb_explanation *x, struct mb_text *ret);
void mb_explain_answer(const struct mb_explanation *x, struct mb_text *ret);    /* one or two sentences */
void mb_explain_details(const struct mb_explanation *x, struct mb_text *ret);   /* sentences that follow; may be empty */
void mb_explain_against_best(const struct mb_explanation *x, struct mb_text *ret);
void mb_explain_proof(const struct mb_explanation *x, struct mb_text *ret);
void mb_explain_fixes(const struct mb_explanation *x, struct mb_table *ret);
void mb_explain_ways(const struct mb_explanation *x, struct mb_table *ret);

#endif
