/* What a search found: the answer, the best plans, the front, and where every other plan went. */
#ifndef MBSIM_REPORT_SEARCH_REPORT_H
#define MBSIM_REPORT_SEARCH_REPORT_H

#include "report/style.h"
#include "report/table.h"
#include "search/search.h"

struct mb_search_report {
	const struct mb_query *q;
	const struct mb_search_result *r;
	enum mb_objective objective;
	bool open[MB_KEY_COUNT];                /* keys the search filled */
	const char *args;                       /* the run as typed */
	int top;                                /* rows wanted */
	bool flat;                              /* near-copies too */
	const struct mb_evaluation *closest;    /* of r->closest when nothing fits; may be NULL */
};

void mb_search_text(const struct mb_search_report *x, const struct mb_style *s, struct mb_text *ret);
void mb_search_json(const struct mb_search_report *x, struct mb_text *ret);
void mb_search_csv(const struct mb_search_report *x, struct mb_text *ret);
void mb_search_markdown(const struct mb_search_report *x, struct mb_text *ret);

enum { MB_MAX_SHOWN = MB_MAX_TOP };

/* Indices of the plans that the table lists: near-copies of an earlier one are left out unless `flat`. */
int mb_search_shown(const struct mb_search_report *x, int shown[MB_MAX_SHOWN]);

/* The table of those plans; columns only for keys that differ between them. utf8 is not needed: marks are ASCII. */
void mb_search_table(const struct mb_search_report *x, const int *shown, int count, struct mb_table *ret);

/* What is the same in every row, in words; nothing if nothing is worth saying. */
void mb_search_common(const struct mb_search_report *x, const int *shown, int count, struct mb_text *ret);

/* Step against peak: the front, its knee, and the ranks of the table. Nothing with fewer than three points. */
void mb_search_plot(const struct mb_search_report *x, const int *shown, int count, const struct mb_style *s,
                    struct mb_text *ret);

/* Where all plans went, and how long it took. */
void mb_search_accounts(const struct mb_search_report *x, const struct mb_style *s, struct mb_text *ret);

#endif
