/* Sections 1 and 2: what to book, and how it scales. */
#include "report/html_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_lead(struct mb_report *r, struct mb_text *t)
{
	const struct mb_capacity *c = r->c;
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	const cJSON *result = cJSON_GetObjectItem(x->document, "result");

	mb_text_printf(t, "**Book %s %s for %s days** (%s to %s) to train %s on ", mb_number_count(x->gpus).s, mb_capacity_text(x->document, "hardware"),
	               mb_report_days(x->days).s, mb_report_days(x->low_days).s, mb_report_days(x->high_days).s,
	               mb_capacity_text(x->document, "model"));
	mb_text_printf(t, "%s tokens at %s %% goodput", mb_report_tokens(c->tokens.value).s, mb_number_percent(c->goodput_frac.value).s);
	if (x->usd > 0)
		mb_text_printf(t, "; **about %s** at $%.2f per GPU-hour (%s)", mb_report_usd(x->usd).s, x->price_usd, c->price_from);
	mb_text_add(t, ". ");
	if (c->larger >= 0) {
		const struct mb_capacity_cell *y = &c->cells[c->larger];
		double more = y->gpu_hours / x->gpu_hours - 1;

		mb_text_printf(t, "%s GPUs finish in %s days for %s %% %s. ", mb_number_count(y->gpus).s, mb_report_days(y->days).s,
		               mb_number_percent(fabs(more)).s, more < 0 ? "less" : "more");
	}
	mb_text_printf(t, x->at_risk ? "**At risk:** only %s GiB are free, too little to be sure." : "The plan fits with %s GiB free.",
	               mb_number_gib(mb_capacity_number(result, "margin_bytes")).s);
}

static void add_tiles(struct mb_report *r)
{
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	struct mb_block *b = mb_page_add(r->page, MB_BLOCK_TILES, NULL);
	struct mb_table *t = b->table = mb_page_table(r->page);

	mb_report_column(t, "", "", MB_LEFT);
	mb_report_column(t, "", "", MB_LEFT);
	mb_report_column(t, "", "", MB_LEFT);
	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell(t, "GPUs");
	mb_report_cell(t, "%s", mb_number_count(x->gpus).s);
	mb_report_cell(t, "%s, scaling efficiency %s %%", mb_capacity_text(x->document, "hardware"), mb_number_percent(x->efficiency_frac).s);
	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell(t, "days");
	mb_report_cell(t, "%s", mb_report_days(x->days).s);
	mb_report_cell(t, "%s to %s in 80 of 100 cases", mb_report_days(x->low_days).s, mb_report_days(x->high_days).s);
	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell(t, x->usd > 0 ? "cost" : "GPU-hours");
	mb_report_cell(t, "%s", x->usd > 0 ? mb_report_usd(x->usd).s : mb_number_count(x->gpu_hours).s);
	if (x->usd > 0)
		mb_report_cell(t, "%s GPU-hours at $%.2f", mb_number_count(x->gpu_hours).s, x->price_usd);
	else
		mb_report_cell(t, "the price of a GPU-hour is unknown: --price");
}

/* The largest of the what-if answers in a sentence; the rest is section 5. */
static void add_changes(struct mb_report *r)
{
	const struct mb_capacity *c = r->c;
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	const cJSON *list = cJSON_GetObjectItem(x->document, "what_if"), *one, *most = NULL;
	double largest = 0;

	cJSON_ArrayForEach(one, list) {
		double step = mb_capacity_number(one, "step_s"), change = step > 0 ? fabs(step / x->step_s - 1) : 0;

		if (change > largest) {
			largest = change;
			most = one;
		}
	}
	mb_page_printf(r->page, MB_BLOCK_TEXT, "**What would change this.** Ten points of goodput move the end by %s days; the price moves the cost in proportion.%s",
	               mb_report_days(x->days * (c->goodput_frac.value / fmax(c->goodput_frac.value - 0.1, 0.01) - 1)).s,
	               most ? "" : " Hardware was not varied: `what_if: true` in the sweep file does.");
	if (most) {
		double days = x->days * mb_capacity_number(most, "step_s") / x->step_s;

		mb_page_printf(r->page, MB_BLOCK_TEXT, "Of the hardware, `%s` matters most: with %s the job takes %s days.", mb_capacity_text(most, "name"),
		               mb_capacity_text(most, "change"), mb_report_days(days).s);
	}
	mb_page_printf(r->page, MB_BLOCK_TEXT, "Chosen: %s%s%s%s.", c->deadline_days > 0 ? "the cheapest that ends within " : "the fastest within 5 % of the cheapest",
	               c->deadline_days > 0 ? mb_report_days(c->deadline_days).s : "", c->deadline_days > 0 ? " days" : "",
	               c->done_count < c->grid.count ? ", among the cells that are finished" : "");
}

void mb_report_answer(struct mb_report *r)
{
	struct mb_text t = { 0 };

	mb_report_section(r, "answer", "Answer");
	add_lead(r, &t);
	mb_page_add(r->page, MB_BLOCK_LEAD, t.data);
	mb_text_free(&t);
	add_tiles(r);
	add_changes(r);
}

/* ---- scale ---- */

enum { MAX_SERIES = 6 };

struct panel {
	const char *id, *what, *unit;
	bool cost;
};

static double value_of(const struct mb_report *r, const struct mb_capacity_cell *x, const struct panel *p, double step_s)
{
	double tokens = x->tokens_per_s * x->step_s / step_s;

	if (!p->cost)
		return tokens;
	return x->gpus / 3600 / tokens * 1e12 / r->c->goodput_frac.value * (x->price_usd > 0 ? x->price_usd : 1);
}

static int by_gpus(const void *a, const void *b)
{
	const struct mb_capacity_cell *const *x = a, *const *y = b;

	return ((*x)->gpus > (*y)->gpus) - ((*x)->gpus < (*y)->gpus);
}

/* Cells of a series by size; their count. */
static int collect(const struct mb_report *r, int series, const struct mb_capacity_cell **ret)
{
	int n = 0;

	for (int i = 0; i < r->c->grid.count; i++) {
		if (r->c->cells[i].done && r->c->cells[i].series == series)
			ret[n++] = &r->c->cells[i];
	}
	qsort(ret, (size_t)n, sizeof *ret, by_gpus);
	return n;
}

static void add_series(struct mb_report *r, struct mb_block *b, cJSON *list, const struct panel *p, int series, const struct mb_capacity_cell **cells,
                       int n)
{
	cJSON *o = cJSON_CreateObject(), *points = cJSON_CreateArray(), *hollow = cJSON_CreateArray();
	const char *name = r->c->series[series][0] ? r->c->series[series] : p->what;

	cJSON_AddStringToObject(o, "label", name);
	for (int i = 0; i < n; i++) {
		const struct mb_capacity_cell *x = cells[i];
		cJSON *point = cJSON_CreateObject();

		mb_table_row(b->table, x == mb_report_chosen(r) ? MB_INK_BOLD : MB_INK_PLAIN);
		mb_report_cell(b->table, "%s", mb_number_count(x->gpus).s);
		if (r->c->series_count > 1)
			mb_report_cell(b->table, "%s", name);
		if (!x->fits) {
			cJSON_AddItemToArray(hollow, cJSON_CreateNumber(x->gpus));
			cJSON_Delete(point);
			mb_report_cell(b->table, "%s", strcmp(x->verdict, "illegal") == 0 ? "illegal" : "does not fit");
			mb_table_cell(b->table, "-");
			mb_table_cell(b->table, "-");
			continue;
		}
		cJSON_AddNumberToObject(point, "x", x->gpus);
		cJSON_AddNumberToObject(point, "y", value_of(r, x, p, x->step_s));
		cJSON_AddNumberToObject(point, "low", value_of(r, x, p, p->cost ? x->low_s : x->high_s));
		cJSON_AddNumberToObject(point, "high", value_of(r, x, p, p->cost ? x->high_s : x->low_s));
		cJSON_AddItemToArray(points, point);
		mb_report_cell(b->table, "%s", mb_number_count(value_of(r, x, p, x->step_s)).s);
		mb_report_cell(b->table, "%s", mb_number_count(value_of(r, x, p, p->cost ? x->low_s : x->high_s)).s);
		mb_report_cell(b->table, "%s", mb_number_count(value_of(r, x, p, p->cost ? x->high_s : x->low_s)).s);
	}
	cJSON_AddItemToObject(o, "points", points);
	cJSON_AddItemToObject(o, "hollow", hollow);
	cJSON_AddBoolToObject(o, "band", true);
	cJSON_AddItemToArray(list, o);
}

static void add_panel(struct mb_report *r, const struct panel *p, const char *finding)
{
	const struct mb_capacity *c = r->c;
	const struct mb_capacity_cell *x = mb_report_chosen(r), **cells;
	struct mb_block *b = mb_report_chart(r, p->id, "scale", finding);
	cJSON *list = cJSON_AddArrayToObject(b->chart, "series"), *ring = cJSON_CreateObject();

	cells = mb_arena_alloc(r->page->arena, (size_t)(c->grid.count + 1) * sizeof *cells);
	mb_report_column(b->table, "GPUs", "", MB_RIGHT);
	if (c->series_count > 1)
		mb_report_column(b->table, "series", "", MB_LEFT);
	mb_report_column(b->table, p->what, p->unit, MB_RIGHT);
	mb_report_column(b->table, "low", p->unit, MB_RIGHT);
	mb_report_column(b->table, "high", p->unit, MB_RIGHT);
	add_series(r, b, list, p, x->series, cells, collect(r, x->series, cells));
	for (int s = 0, shown = 1; s < c->series_count && shown < MAX_SERIES; s++) {
		if (s != x->series) {
			add_series(r, b, list, p, s, cells, collect(r, s, cells));
			shown++;
		}
	}
	cJSON_AddStringToObject(b->chart, "x", "GPUs");
	cJSON_AddStringToObject(b->chart, "y", mb_arena_printf(r->page->arena, "%s%s%s", p->what, p->unit[0] ? ", " : "", p->unit));
	cJSON_AddBoolToObject(b->chart, "plain", c->series_count == 1);
	cJSON_AddNumberToObject(ring, "x", x->gpus);
	cJSON_AddNumberToObject(ring, "y", value_of(r, x, p, x->step_s));
	cJSON_AddStringToObject(ring, "label", "chosen");
	cJSON_AddItemToObject(b->chart, "ring", ring);
}

/* How far it scales well, in words. */
static const char *scale_finding(struct mb_report *r)
{
	const struct mb_capacity_cell *x = mb_report_chosen(r), *last = x;

	for (int i = 0; i < r->c->grid.count; i++) {
		const struct mb_capacity_cell *y = &r->c->cells[i];

		if (y->fits && y->series == x->series && y->gpus > last->gpus)
			last = y;
	}
	return mb_arena_printf(r->page->arena, "%s GPUs train %s tokens/s; at %s GPUs each does %s %% of what it does in the smallest job",
	                       mb_number_count(x->gpus).s, mb_number_count(x->tokens_per_s).s, mb_number_count(last->gpus).s,
	                       mb_number_percent(last->efficiency_frac).s);
}

void mb_report_scale(struct mb_report *r)
{
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	const struct panel tokens = { "tokens", "tokens/s", "", false };
	const struct panel cost = { "cost", x->price_usd > 0 ? "$ per 10^12 tokens" : "GPU-hours per 10^12 tokens", "", true };

	mb_report_section(r, "scale", "Scale");
	add_panel(r, &tokens, scale_finding(r));
	add_panel(r, &cost, mb_arena_printf(r->page->arena, "10^12 tokens cost %s%s with %s GPUs, goodput included",
	                                    x->price_usd > 0 ? mb_report_usd(value_of(r, x, &cost, x->step_s)).s : mb_number_count(value_of(r, x, &cost, x->step_s)).s,
	                                    x->price_usd > 0 ? "" : " GPU-hours", mb_number_count(x->gpus).s));
	mb_page_add(r->page, MB_BLOCK_TEXT, "The shaded band holds 80 in 100 measured runs. A hollow mark at zero is a job that does not fit.");
}
