#include "report/estimate.h"

#include <stdio.h>
#include <string.h>

#include "report/number.h"
#include "report/table.h"

/* Terms share letters: the order of a bar and of its columns. */
static const struct { char letter; enum mb_ink ink; const char *words; } groups[] = {
	{ 'W', MB_INK_CYAN, "weights" }, { 'G', MB_INK_YELLOW, "gradients" }, { 'O', MB_INK_BLUE, "optimizer" },
	{ 'A', MB_INK_GREEN, "activations" }, { 'L', MB_INK_MAGENTA, "loss" }, { 'X', MB_INK_DIM, "workspace, copies" },
};

enum { GROUPS = sizeof groups / sizeof groups[0], MOST_ROWS = 6, HEAD_ROWS = 3 };

static void sum_groups(const struct mb_stage_memory *m, double ret[GROUPS])
{
	for (int g = 0; g < GROUPS; g++) {
		ret[g] = 0;
		for (int i = 0; i < MB_MEM_COUNT; i++)
			ret[g] += mb_memory_terms[i].letter == groups[g].letter ? m->terms[i] : 0;
	}
}

/* A bar whose right edge is the usable memory; past the edge it ends in an arrow and the excess. */
static void draw_bar(struct mb_text *t, const struct mb_style *s, const struct mb_stage_memory *m, double usable,
                     int width)
{
	double parts[GROUPS];
	long long cells[GROUPS];
	bool over = m->peak_bytes > usable;
	double scale = width / usable;
	int drawn = 0, room = over ? width - 7 : width;

	sum_groups(m, parts);
	mb_round_parts(parts, GROUPS, m->peak_bytes, scale, cells);
	for (int g = 0; g < GROUPS; g++) {
		char letter[2] = { groups[g].letter, '\0' };
		bool block = s->colour && s->utf8;
		struct mb_text segment = { 0 };

		for (long long i = 0; i < cells[g] && drawn < room; i++, drawn++)
			mb_text_add(&segment, block ? "█" : letter);
		if (segment.length)
			mb_ink(t, s, block ? groups[g].ink : MB_INK_PLAIN, segment.data);
		mb_text_free(&segment);
	}
	if (over) {
		mb_ink_printf(t, s, MB_INK_RED, "%s +%s", s->utf8 ? "▶" : ">", mb_number_gib(m->peak_bytes - usable).s);
		return;
	}
	for (; drawn < width; drawn++)
		mb_ink(t, s, MB_INK_DIM, s->utf8 ? "·" : ".");
}

static void stage_row(struct mb_table *table, const struct mb_estimate *x, const struct mb_style *s, int stage, int bar)
{
	const struct mb_stage_memory *m = &x->e->stage_memory[stage];
	double parts[GROUPS];
	long long tenths[GROUPS];
	struct mb_text text = { 0 };

	mb_table_row(table, MB_INK_PLAIN);
	mb_text_printf(&text, "%d", stage);
	mb_table_cell(table, text.data);
	text.length = 0;
	if (bar > 0) {
		draw_bar(&text, s, m, (double)x->q->c.hardware.usable_bytes, bar);
		mb_table_cell(table, text.data);
	}
	mb_table_cell_ink(table, stage == x->e->peak_stage ? MB_INK_BOLD : MB_INK_PLAIN,
	                  mb_number_fixed(m->peak_bytes / MB_GIB, 1).s);
	sum_groups(m, parts);
	mb_round_parts(parts, GROUPS, m->peak_bytes, 10 / MB_GIB, tenths);
	for (int g = 0; g < GROUPS; g++)
		mb_table_cell(table, parts[g] == 0 ? "-" : mb_number_fixed((double)tenths[g] / 10, 1).s);
	if (stage == x->e->peak_stage)
		mb_table_note(table, s->utf8 ? "◀ binds" : "< binds");
	mb_text_free(&text);
}

static void skipped_row(struct mb_table *table, const struct mb_estimate *x, int bar, int first, int last)
{
	double low = x->e->stage_memory[first].peak_bytes, high = low;
	char text[160];

	for (int stage = first; stage <= last; stage++) {
		double peak = x->e->stage_memory[stage].peak_bytes;

		low = peak < low ? peak : low;
		high = peak > high ? peak : high;
	}
	snprintf(text, sizeof text, "%d to %d: %s to %s%s", first, last, mb_number_fixed(low / MB_GIB, 1).s,
	         mb_number_fixed(high / MB_GIB, 1).s, bar == 0 || bar >= 36 ? " (--all-stages)" : "");
	mb_table_row(table, MB_INK_DIM);
	mb_table_cell(table, "");
	if (bar > 0)
		mb_table_cell(table, text);
	else
		mb_table_note(table, text);
}

static bool is_shown(const struct mb_estimate *x, int stage)
{
	int stages = x->e->dims.pp;

	return x->all_stages || stages <= MOST_ROWS || stage < HEAD_ROWS || stage == stages - 1 ||
	       stage == x->e->peak_stage;
}

static void stage_table(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };
	/* 58 columns for the numbers; no bars where they would be too short to read. */
	int bar = s->width - 58 > 38 ? 38 : s->width - 58 < 20 ? 0 : s->width - 58;
	struct mb_number edge = mb_number_gib((double)x->q->c.hardware.usable_bytes);
	int stages = x->e->dims.pp;

	mb_table_column(&table, "stage", "", MB_RIGHT, 0);
	if (bar > 0)
		mb_table_column(&table, mb_arena_printf(&arena, "0%*s", bar - 1, edge.s), "", MB_LEFT, 0);
	mb_table_column(&table, "peak", "", MB_DECIMAL, 0);
	for (int g = 0; g < GROUPS; g++)
		mb_table_column(&table, mb_arena_printf(&arena, "%c", groups[g].letter), "", MB_DECIMAL, 0);
	for (int stage = 0; stage < stages; stage++) {
		int last = stage;

		if (is_shown(x, stage)) {
			stage_row(&table, x, s, stage, bar);
			continue;
		}
		while (last + 1 < stages && !is_shown(x, last + 1))
			last++;
		skipped_row(&table, x, bar, stage, last);
		stage = last;
	}
	mb_table_print(&table, s, ret);
	mb_arena_free(&arena);
}

/* What lowers a peak and what does not; the phases are those of docs/model.md. */
static void advice(const struct mb_stage_memory *m, struct mb_text *ret)
{
	struct mb_number in_flight = mb_number_gib(m->in_flight_bytes);
	const char *saved = in_flight.s;

	switch (m->phase) {
	case MB_PHASE_OPTIMIZER:
		mb_text_add(ret, "Recompute does not lower this peak; optimizer sharding, dtypes and offloading do.\n");
		return;
	case MB_PHASE_LOSS:
		mb_text_printf(ret,
		               "The logits shrink with micro-batch, TP or CP; recompute lowers only the %s GiB in "
		               "flight.\n",
		               saved);
		return;
	case MB_PHASE_CAPTURE:
		mb_text_printf(ret,
		               "A narrower graph scope lowers this peak; recompute lowers only the %s GiB in flight.\n",
		               saved);
		return;
	case MB_PHASE_FORWARD:
	case MB_PHASE_BACKWARD:
	case MB_PHASE_REPLAY:
	case MB_PHASE_COUNT:
		break;
	}
	if (m->in_flight_bytes > 0.1 * m->peak_bytes)
		mb_text_printf(ret,
		               "Recompute lowers this peak (%s GiB saved activations); optimizer dtypes only by their "
		               "own bytes.\n",
		               saved);
	else
		mb_text_printf(ret,
		               "Recompute lowers only the %s GiB of saved activations; sharding the states lowers the "
		               "rest.\n",
		               saved);
}

void mb_binding_words(const struct mb_evaluation *e, struct mb_text *ret)
{
	const struct mb_stage_memory *m = &e->stage_memory[e->peak_stage];

	mb_text_printf(ret, "Binding event: %s of stage %d", mb_phase_names[m->phase], e->peak_stage);
	if (m->phase != MB_PHASE_OPTIMIZER)
		mb_text_printf(ret, " (micro-batch %d, chunk %d)", m->peak_micro_batch, m->peak_chunk);
	if (m->in_flight_chunks > 0 && m->in_flight_bytes > 0 && m->phase != MB_PHASE_OPTIMIZER)
		mb_text_printf(ret, ", %d %s x %s GiB", m->in_flight_chunks,
		               m->in_flight_chunks == 1 ? "chunk" : "chunks",
		               mb_number_3(m->in_flight_bytes / m->in_flight_chunks / MB_GIB).s);
	mb_text_add(ret, ".\n");
	advice(m, ret);
}

void mb_estimate_memory(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret)
{
	const struct mb_stage_memory *m = &x->e->stage_memory[x->e->peak_stage];

	mb_ink(ret, s, MB_INK_BOLD, "MEMORY, GiB");
	mb_text_add(ret, "  ");
	for (int g = 0; g < GROUPS; g++) {
		char letter[4] = { groups[g].letter, '\0' };

		mb_text_add(ret, " ");
		mb_ink(ret, s, groups[g].ink, s->colour && s->utf8 ? "█" : "");
		mb_text_printf(ret, "%s %s", letter, groups[g].words);
	}
	mb_text_add(ret, "\n");
	stage_table(x, s, ret);
	mb_binding_words(x->e, ret);
	mb_text_printf(ret, "first step %s    steady %s    reserved %s    nvidia-smi %s    between steps %s\n",
	               mb_number_gib(m->first_step_peak_bytes).s, mb_number_gib(m->peak_bytes).s,
	               mb_number_gib(m->reserved_bytes).s, mb_number_gib(m->device_used_bytes).s,
	               mb_number_gib(m->between_bytes).s);
	if (x->routing.drawn)
		mb_text_printf(ret, "routing skew %.2g: busiest rank %.2f (median) to %.2f (99 in 100) of the mean, peak %s to %s\n", x->routing.skew,
		               x->routing.p50_imbalance, x->routing.p99_imbalance, mb_number_gib(x->routing.p50_bytes).s,
		               mb_number_gib(x->routing.p99_bytes).s);
	if (m->host_bytes > 0)
		mb_text_printf(ret, "on the host %s GiB a GPU\n", mb_number_gib(m->host_bytes).s);
}
