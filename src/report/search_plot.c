#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/facet.h"
#include "report/number.h"
#include "report/search_report.h"

enum { PLOT_WIDTH = 64, MAX_ROWS = 12, TICK = 10 };

struct plot {
	double x0, dx;                  /* seconds at the left edge and per column */
	double y0, dy;                  /* GiB of the lowest row and per row */
	int rows;
	/* 0 empty, '*' a plan of the front, 'K' the knee, or a character of a rank. */
	char cell[MAX_ROWS][PLOT_WIDTH + 1];
};

/* 1, 2 or 5 times a power of ten, at least `raw`. */
static double nice_step(double raw)
{
	double power = pow(10, floor(log10(raw)));
	double lead = raw / power;

	return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

static bool on_scale(const struct mb_ranked *p, double limit)
{
	return p->step_s <= limit;
}

/* The axis ends a little behind the slowest row of the table; what is slower is named, not drawn. */
static bool set_scale(const struct mb_search_report *x, const int *shown, int count, struct plot *plot, double *limit)
{
	const struct mb_search_result *r = x->r;
	double best = r->front[0].step_s, worst = best * 1.05, low = INFINITY, high = 0;
	int points = 0;

	for (int i = 0; i < count; i++)
		worst = fmax(worst, r->top[shown[i]].step_s);
	*limit = fmin(worst, best * 1.5);
	for (int i = 0; i < r->front_count; i++) {
		if (!on_scale(&r->front[i], *limit))
			continue;
		low = fmin(low, r->front[i].peak_bytes / MB_GIB);
		high = fmax(high, r->front[i].peak_bytes / MB_GIB);
		points++;
	}
	for (int i = 0; i < count; i++) {
		if (!on_scale(&r->top[shown[i]], *limit))
			continue;
		low = fmin(low, r->top[shown[i]].peak_bytes / MB_GIB);
		high = fmax(high, r->top[shown[i]].peak_bytes / MB_GIB);
	}
	if (points < 3 || !(high > low))
		return false;
	plot->dy = nice_step((high - low) / 6);
	plot->y0 = plot->dy * round(low / plot->dy);
	plot->rows = (int)round((high - plot->y0) / plot->dy) + 1;

	/* Five or six ticks from a round number at or before the best: at most 60 columns, so that a rank still fits. */
	double tick = nice_step((*limit - best) / 5);

	plot->x0 = tick * floor(best / tick);
	plot->dx = tick / TICK;
	return plot->rows <= MAX_ROWS && plot->dx > 0;
}

static void mark(struct plot *plot, const struct mb_ranked *p, const char *what)
{
	int row = (int)round((p->peak_bytes / MB_GIB - plot->y0) / plot->dy);
	int column = (int)round((p->step_s - plot->x0) / plot->dx);
	int length = (int)strlen(what);

	if (row < 0 || row >= plot->rows || column < 0 || column + length > PLOT_WIDTH)
		return;
	/* Two ranks side by side would read as one. */
	int first = column > 0 ? column - 1 : 0, last = column + length < PLOT_WIDTH ? column + length : PLOT_WIDTH - 1;

	for (int i = first; i <= last; i++) {
		bool beside = i < column || i >= column + length;

		if (plot->cell[row][i] && !(beside && what[0] == '*'))
			return;
	}
	memcpy(&plot->cell[row][column], what, (size_t)length);
}

static void fill(const struct mb_search_report *x, const int *shown, int count, double limit, struct plot *plot)
{
	const struct mb_search_result *r = x->r;

	for (int i = 0; i < count; i++) {
		char rank[16];

		snprintf(rank, sizeof rank, "%d", shown[i] + 1);
		if (on_scale(&r->top[shown[i]], limit))
			mark(plot, &r->top[shown[i]], rank);
	}
	if (r->knee >= 0 && r->knee < r->front_count && on_scale(&r->front[r->knee], limit))
		mark(plot, &r->front[r->knee], "K");
	for (int i = 0; i < r->front_count; i++) {
		if (on_scale(&r->front[i], limit))
			mark(plot, &r->front[i], "*");
	}
}

static void draw_row(const struct plot *plot, int row, const struct mb_style *s, struct mb_text *t)
{
	int end = PLOT_WIDTH;

	mb_text_printf(t, "%6s %s", mb_number_fixed(plot->y0 + row * plot->dy, plot->dy < 1 ? 1 : 0).s,
	               s->utf8 ? "┤" : "|");
	while (end > 0 && !plot->cell[row][end - 1])
		end--;
	for (int i = 0; i < end; i++) {
		char one[2] = { plot->cell[row][i], '\0' };

		if (!one[0])
			mb_text_add(t, " ");
		else if (one[0] == 'K')
			mb_ink(t, s, MB_INK_CYAN, s->utf8 ? "◆" : "K");
		else
			mb_text_add(t, one[0] == '*' && s->utf8 ? "●" : one);
	}
	mb_text_add(t, "\n");
}

static void draw_axis(const struct plot *plot, const struct mb_style *s, struct mb_text *t)
{
	double span = plot->dx * TICK;
	int decimals = span >= 1 ? 0 : span >= 0.1 ? 1 : span >= 0.01 ? 2 : 3;

	mb_text_printf(t, "       %s", s->utf8 ? "└" : "+");
	for (int i = 0; i < PLOT_WIDTH; i++)
		mb_text_add(t, i % TICK == 0 ? (s->utf8 ? "┬" : "+") : (s->utf8 ? "─" : "-"));
	mb_text_add(t, "\n");

	int column = 0;

	for (int i = 0; i < PLOT_WIDTH; i += TICK) {
		struct mb_number label = mb_number_fixed(plot->x0 + i * plot->dx, decimals);
		int start = 8 + i - (int)strlen(label.s) / 2;

		mb_text_pad(t, ' ', start - column);
		mb_text_add(t, label.s);
		column = start + (int)strlen(label.s);
	}
	mb_text_add(t, "  s/step\n");
}

/* Names the most frugal plan that is too slow for the axis. */
static void name_off_scale(const struct mb_search_report *x, double limit, const struct mb_style *s, struct mb_text *t)
{
	const struct mb_ranked *last = &x->r->front[x->r->front_count - 1];
	struct mb_text words = { 0 };

	if (on_scale(last, limit))
		return;
	mb_layout_words(&words, &last->plan);
	mb_text_add(&words, ", recompute ");
	mb_facets[0].words(&x->q->c, &last->plan, &words);
	mb_text_printf(t, "       %s %s: %s, %s GiB\n", s->utf8 ? "→" : "->", words.data,
	               mb_number_duration(last->step_s).s, mb_number_gib(last->peak_bytes).s);
	mb_text_free(&words);
}

void mb_search_plot(const struct mb_search_report *x, const int *shown, int count, const struct mb_style *s,
                    struct mb_text *ret)
{
	struct plot plot = { 0 };
	double limit;

	if (s->width < 80 || x->r->front_count < 3 || !set_scale(x, shown, count, &plot, &limit))
		return;
	fill(x, shown, count, limit, &plot);
	mb_text_printf(ret, "\npeak GiB%32s%s plan   %s knee\n", "", s->utf8 ? "●" : "*", s->utf8 ? "◆" : "K");
	for (int row = plot.rows - 1; row >= 0; row--)
		draw_row(&plot, row, s, ret);
	draw_axis(&plot, s, ret);
	name_off_scale(x, limit, s, ret);
}
