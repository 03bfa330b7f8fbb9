#include "report/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/number.h"
#include "report/table.h"

enum { TIME_ROWS = 8, BAR = 14 };

struct part {
	const char *label;
	double seconds;
};

/* Largest first; what is small or past the last row becomes "rest". Returns how many rows there are. */
static int sort_terms(const struct mb_evaluation *e, struct part *ret)
{
	int count = 0, kept = 0;
	double rest = 0;

	for (int i = 0; i < MB_TIME_COUNT; i++) {
		struct part p = { mb_time_terms[i].label, e->time_terms[i] };
		int at = count;

		if (p.seconds == 0)
			continue;
		while (at > 0 && ret[at - 1].seconds < p.seconds) {
			ret[at] = ret[at - 1];
			at--;
		}
		ret[at] = p;
		count++;
	}
	for (int i = 0; i < count; i++) {
		if (i < TIME_ROWS && (ret[i].seconds >= 0.005 * e->step_s || count <= TIME_ROWS))
			kept++;
		else
			rest += ret[i].seconds;
	}
	if (kept < count)
		ret[kept++] = (struct part){ "rest", rest };
	return kept;
}

/* Decimals that show about four digits of the sum. */
static int time_decimals(double seconds)
{
	return seconds >= 100 ? 1 : seconds >= 1 ? 2 : seconds >= 0.1 ? 3 : 4;
}

static void time_bar(struct mb_text *t, const struct mb_style *s, double share)
{
	int cells = (int)lround(share * BAR);

	for (int i = 0; i < (cells < 1 ? 1 : cells); i++)
		mb_text_add(t, s->utf8 ? "█" : "#");
}

static void time_block(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret)
{
	const struct mb_evaluation *e = x->e;
	struct part parts[MB_TIME_COUNT + 1] = { { 0 } };
	double seconds[MB_TIME_COUNT + 1];
	long long shown[MB_TIME_COUNT + 1], percent[MB_TIME_COUNT + 1];
	int count = sort_terms(e, parts), decimals = time_decimals(e->step_s);
	double scale = pow(10, decimals);
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };

	for (int i = 0; i < count; i++)
		seconds[i] = parts[i].seconds;
	mb_round_parts(seconds, count, e->step_s, scale, shown);
	mb_round_parts(seconds, count, e->step_s, 100 / e->step_s, percent);
	for (int i = 0; i < 4; i++)
		mb_table_column(&table, "", "", i == 0 || i == 3 ? MB_LEFT : MB_DECIMAL, 0);
	for (int i = 0; i < count; i++) {
		struct mb_text bar = { 0 };

		mb_table_row(&table, MB_INK_PLAIN);
		mb_table_cell(&table, parts[i].label);
		mb_table_cell(&table, mb_number_fixed((double)shown[i] / scale, decimals).s);
		mb_table_cell(&table, mb_arena_printf(&arena, "%s %%",
		                                      percent[i] ? mb_number_count((double)percent[i]).s : "<1"));
		time_bar(&bar, s, seconds[0] > 0 ? seconds[i] / seconds[0] : 0);
		mb_table_cell(&table, bar.data);
		mb_text_free(&bar);
	}
	mb_table_row(&table, MB_INK_BOLD);
	mb_table_cell(&table, "sum");
	mb_table_cell(&table, mb_number_fixed((double)llround(e->step_s * scale) / scale, decimals).s);
	mb_ink_printf(ret, s, MB_INK_BOLD, "TIME, s per step, stage %d", e->slowest_stage);
	mb_text_add(ret, "\n");
	mb_table_print(&table, s, ret);
	mb_arena_free(&arena);
}

static void label(const char *name, char *text, size_t size)
{
	snprintf(text, size, "%s", name);
	for (char *c = text; *c; c++) {
		if (*c == '_')
			*c = ' ';
	}
}

static void traffic_row(struct mb_table *table, const char *name, const struct mb_traffic_cost *cost)
{
	char words[40];

	label(name, words, sizeof words);
	mb_table_row(table, MB_INK_PLAIN);
	mb_table_cell(table, words);
	mb_table_cell(table, mb_number_gb(cost->bytes).s);
	mb_table_cell(table, mb_number_gb(cost->remote_bytes).s);
	mb_table_cell(table, mb_number_fixed(cost->seconds, 2).s);
	mb_table_cell(table, mb_number_fixed(cost->exposed_seconds, 2).s);
}

static void traffic_block(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };
	struct mb_text unused = { 0 };

	mb_table_column(&table, "what", "", MB_LEFT, 0);
	mb_table_column(&table, "GB", "", MB_DECIMAL, 0);
	mb_table_column(&table, "off-domain", "", MB_DECIMAL, 0);
	mb_table_column(&table, "busy s", "", MB_DECIMAL, 0);
	mb_table_column(&table, "exposed s", "", MB_DECIMAL, 0);
	for (int i = 0; i < MB_TRAFFIC_COUNT; i++) {
		const struct mb_traffic_cost *cost = &x->e->traffic[i];
		char words[40];

		if (cost->bytes > 0 || cost->seconds > 0) {
			traffic_row(&table, mb_traffic_names[i], cost);
			continue;
		}
		label(mb_traffic_names[i], words, sizeof words);
		mb_text_printf(&unused, "%s%s", unused.length ? ", " : "not used: ", words);
	}
	mb_ink(ret, s, MB_INK_BOLD, "COMMUNICATION, per GPU and step");
	mb_text_add(ret, "\n");
	if (table.row_count)
		mb_table_print(&table, s, ret);
	if (unused.data) {
		struct mb_style half = *s;

		half.width = 50;
		mb_wrap(ret, &half, 0, 0, unused.data);
	}
	mb_text_free(&unused);
	mb_arena_free(&arena);
}

static const char *peak_format(enum mb_precision precision)
{
	switch (precision) {
	case MB_FP8_CS:
	case MB_FP8_DS:
	case MB_FP8_SC:
	case MB_FP8_MX:
		return "fp8";
	case MB_NVFP4:
		return "fp4";
	case MB_BF16:
	case MB_FP16:
	case MB_FP32:
		break;
	}
	return "bf16";
}

void mb_estimate_time(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret)
{
	const struct mb_evaluation *e = x->e;
	struct mb_text left = { 0 }, right = { 0 };

	time_block(x, s, &left);
	traffic_block(x, s, &right);
	mb_beside(ret, s, left.data, right.data, 44);
	mb_text_printf(ret, "%s tokens/s/GPU", mb_number_count(e->tokens_per_s_per_gpu).s);
	if (e->mfu > 0)
		mb_text_printf(ret, ", MFU %s %% (Bridge FLOPs over %s dense %s TFLOP/s)", mb_number_mfu(e->mfu).s,
		               mb_number_tflops(e->model_flop_per_s_per_gpu / e->mfu).s,
		               peak_format(x->q->c.run.precision));
	if (e->bubble_frac > 0)
		mb_text_printf(ret, ", bubble %s %%", mb_number_percent(e->bubble_frac).s);
	mb_text_add(ret, "\n");
	mb_text_free(&left);
	mb_text_free(&right);
}
