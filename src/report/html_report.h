/* The capacity report: sections in a fixed order, as one page. */
#ifndef MBSIM_REPORT_HTML_REPORT_H
#define MBSIM_REPORT_HTML_REPORT_H

#include "report/capacity.h"
#include "report/html_page.h"
#include "report/number.h"

struct mb_report {
	const struct mb_capacity *c;
	const char *constants;          /* text of the chosen cell's constants; NULL */
	struct mb_page *page;
};

/* Fills the page. The same store and options give the same bytes. */
void mb_report_fill(struct mb_report *r);

/* The sections, one or a few to a file. All but the last need a chosen cell. */
void mb_report_answer(struct mb_report *r);
void mb_report_scale(struct mb_report *r);
void mb_report_plan(struct mb_report *r);
void mb_report_front(struct mb_report *r);
void mb_report_what_if(struct mb_report *r);
void mb_report_pipeline(struct mb_report *r);
void mb_report_energy(struct mb_report *r);
void mb_report_launch(struct mb_report *r);
void mb_report_assumptions(struct mb_report *r);
void mb_report_cells(struct mb_report *r);

/* Small things that sections share. */
static inline const struct mb_capacity_cell *mb_report_chosen(const struct mb_report *r)
{
	return &r->c->cells[r->c->chosen];
}

struct mb_block *mb_report_section(struct mb_report *r, const char *id, const char *title);
struct mb_block *mb_report_chart(struct mb_report *r, const char *id, const char *kind, const char *finding);
void mb_report_column(struct mb_table *t, const char *head, const char *unit, enum mb_align align);
void mb_report_cell(struct mb_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "$1.2 M", "$59 k"; "21.3", days of three digits; "2 T", tokens. */
struct mb_number mb_report_usd(double usd);
struct mb_number mb_report_days(double days);
struct mb_number mb_report_tokens(double tokens);

#endif
