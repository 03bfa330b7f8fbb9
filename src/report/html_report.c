#include "report/html_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mb_block *mb_report_section(struct mb_report *r, const char *id, const char *title)
{
	struct mb_block *b = mb_page_add(r->page, MB_BLOCK_SECTION, title);

	b->id = id;
	return b;
}

struct mb_block *mb_report_chart(struct mb_report *r, const char *id, const char *kind, const char *finding)
{
	struct mb_block *b = mb_page_add(r->page, MB_BLOCK_CHART, finding);

	b->id = id;
	b->table = mb_page_table(r->page);
	b->chart = cJSON_CreateObject();
	cJSON_AddStringToObject(b->chart, "kind", kind);
	return b;
}

void mb_report_column(struct mb_table *t, const char *head, const char *unit, enum mb_align align)
{
	mb_table_column(t, head, unit, align, 0);
}

void mb_report_cell(struct mb_table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	mb_table_cell(t, mb_arena_strdup(t->arena, text ? text : ""));
	free(text);
}

static struct mb_number scaled(const char *before, double value, const char *after)
{
	struct mb_number n;

	snprintf(n.s, sizeof n.s, "%.4s%.30s%.4s", before, mb_number_3(value).s, after);
	return n;
}

struct mb_number mb_report_usd(double usd)
{
	if (usd >= 0.9995e6)
		return scaled("$", usd / 1e6, " M");
	if (usd >= 999.5)
		return scaled("$", usd / 1e3, " k");
	return scaled("$", usd, "");
}

/* Nobody books a tenth of a day once it takes weeks. */
struct mb_number mb_report_days(double days)
{
	return days >= 20 ? mb_number_count(round(days)) : days >= 1 ? mb_number_fixed(days, 1) : days >= 0.1 ? mb_number_fixed(days, 2) : mb_number_3(days);
}

struct mb_number mb_report_tokens(double tokens)
{
	static const struct { double size; const char *letter; } steps[] = { { 1e12, " T" }, { 1e9, " B" }, { 1e6, " M" }, { 1, "" } };
	int i = 0;

	while (i < 3 && tokens < steps[i].size)
		i++;
	struct mb_number n;

	snprintf(n.s, sizeof n.s, "%.4g%s", tokens / steps[i].size, steps[i].letter);
	return n;
}

static void fill_footer(struct mb_report *r)
{
	const struct mb_capacity *c = r->c;
	const char *stack = "";

	for (int i = 0; i < c->grid.count && !stack[0]; i++)
		stack = c->cells[i].done ? mb_capacity_text(c->cells[i].document, "stack") : "";
	if (c->chosen >= 0)
		stack = mb_capacity_text(mb_report_chosen(r)->document, "stack");
	r->page->footer = mb_arena_printf(r->page->arena, "mbsim %s, stack %s, sweep %s, %s", c->version, stack, c->grid.name, c->grid.hash);
}

/* Of those that fit, the one that ends first; NULL when none does. */
static const struct mb_capacity_cell *first_to_end(const struct mb_capacity *c)
{
	const struct mb_capacity_cell *first = NULL;

	for (int i = 0; i < c->grid.count; i++) {
		const struct mb_capacity_cell *x = &c->cells[i];

		if (x->done && x->fits && (!first || x->days < first->days))
			first = x;
	}
	return first;
}

static void nothing_fits(struct mb_report *r)
{
	const struct mb_capacity *c = r->c;
	const struct mb_capacity_cell *first = first_to_end(c);

	mb_report_section(r, "answer", "Answer");
	if (first) {
		mb_page_printf(r->page, MB_BLOCK_LEAD, "**Nothing ends within %s days.** %d of %d finished cells fit in memory; the first to end takes %s.",
		               mb_number_3(c->deadline_days).s, c->fit_count, c->done_count, mb_number_3(first->days).s);
		mb_page_add(r->page, MB_BLOCK_TEXT, "More GPUs, fewer tokens or a later day: `gpus` in the sweep file, `--tokens`, `--days`.");
		return;
	}
	mb_page_printf(r->page, MB_BLOCK_LEAD, "**Nothing fits.** None of %d finished cells of %d holds the run in memory.", c->done_count, c->grid.count);
	mb_page_add(r->page, MB_BLOCK_TEXT, "`mbsim explain` says what binds, and what would make one of them fit.");
}

void mb_report_fill(struct mb_report *r)
{
	r->page->title = mb_arena_printf(r->page->arena, "Capacity report: %s", r->c->grid.name);
	fill_footer(r);
	if (r->c->chosen < 0) {
		nothing_fits(r);
	} else {
		mb_report_answer(r);
		mb_report_scale(r);
		mb_report_plan(r);
		mb_report_front(r);
		mb_report_what_if(r);
		mb_report_pipeline(r);
		mb_report_energy(r);
		mb_report_launch(r);
		mb_report_assumptions(r);
	}
	mb_report_cells(r);
}
