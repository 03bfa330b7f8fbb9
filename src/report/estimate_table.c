#include "report/estimate.h"

#include <math.h>

#include "report/facet.h"
#include "report/json.h"
#include "report/number.h"
#include "report/table.h"

static void csv_row(struct mb_text *t, const char *section, int stage, const char *name, double value)
{
	char number[40];

	mb_shortest(value, number, sizeof number);
	if (stage >= 0)
		mb_text_printf(t, "%s,%d,%s,%s\n", section, stage, name, number);
	else
		mb_text_printf(t, "%s,,%s,%s\n", section, name, number);
}

static void csv_memory(struct mb_text *t, const struct mb_evaluation *e, double usable)
{
	long long bytes[MB_MEM_COUNT];

	csv_row(t, "memory", -1, "usable_bytes", usable);
	csv_row(t, "memory", -1, "peak_reserved_bytes", round(e->reserved_bytes));
	csv_row(t, "memory", -1, "device_used_bytes", round(e->device_used_bytes));
	for (int stage = 0; stage < e->dims.pp; stage++) {
		const struct mb_stage_memory *m = &e->stage_memory[stage];

		csv_row(t, "memory", stage, "peak_allocated_bytes", round(m->peak_bytes));
		csv_row(t, "memory", stage, "first_step_peak_bytes", round(m->first_step_peak_bytes));
		csv_row(t, "memory", stage, "between_steps_bytes", round(m->between_bytes));
		mb_round_parts(m->terms, MB_MEM_COUNT, m->peak_bytes, 1, bytes);
		for (int i = 0; i < MB_MEM_COUNT; i++)
			csv_row(t, "memory", stage, mb_memory_terms[i].json, (double)bytes[i]);
	}
}

void mb_estimate_csv(const struct mb_estimate *x, struct mb_text *ret)
{
	const struct mb_evaluation *e = x->e;

	mb_text_add(ret, "section,stage,name,value\n");
	mb_text_printf(ret, "run,,verdict,%s\n", mb_verdict_names[x->verdict]);
	if (!e)
		return;
	csv_memory(ret, e, (double)x->q->c.hardware.usable_bytes);
	csv_row(ret, "time", -1, "step_s", e->step_s);
	csv_row(ret, "time", -1, "low_s", e->low_s);
	csv_row(ret, "time", -1, "high_s", e->high_s);
	for (int i = 0; i < MB_TIME_COUNT; i++)
		csv_row(ret, "time", -1, mb_time_terms[i].json, e->time_terms[i]);
	csv_row(ret, "throughput", -1, "tokens_per_s_per_gpu", e->tokens_per_s_per_gpu);
	csv_row(ret, "throughput", -1, "model_tflops_per_gpu", e->model_flop_per_s_per_gpu / 1e12);
	csv_row(ret, "throughput", -1, "mfu", e->mfu);
	for (int i = 0; i < MB_TRAFFIC_COUNT; i++) {
		csv_row(ret, "communication_bytes", -1, mb_traffic_names[i], round(e->traffic[i].bytes));
		csv_row(ret, "communication_exposed_s", -1, mb_traffic_names[i], e->traffic[i].exposed_seconds);
	}
}

static bool term_used(const struct mb_evaluation *e, int term)
{
	for (int stage = 0; stage < e->dims.pp; stage++) {
		if (e->stage_memory[stage].terms[term] != 0)
			return true;
	}
	return false;
}

static void memory_table(const struct mb_evaluation *e, struct mb_arena *arena, struct mb_text *ret)
{
	struct mb_table table = { .arena = arena };
	long long tenths[MB_MEM_COUNT];

	mb_table_column(&table, "stage", "", MB_RIGHT, 0);
	mb_table_column(&table, "peak", "GiB", MB_DECIMAL, 0);
	for (int i = 0; i < MB_MEM_COUNT; i++) {
		if (term_used(e, i))
			mb_table_column(&table, mb_memory_terms[i].label, "GiB", MB_DECIMAL, 0);
	}
	for (int stage = 0; stage < e->dims.pp; stage++) {
		const struct mb_stage_memory *m = &e->stage_memory[stage];

		mb_table_row(&table, MB_INK_PLAIN);
		mb_table_cell(&table, mb_number_count(stage).s);
		mb_table_cell(&table, mb_number_fixed(m->peak_bytes / MB_GIB, 1).s);
		mb_round_parts(m->terms, MB_MEM_COUNT, m->peak_bytes, 10 / MB_GIB, tenths);
		for (int i = 0; i < MB_MEM_COUNT; i++) {
			if (term_used(e, i))
				mb_table_cell(&table,
				              m->terms[i] == 0 ? "-" : mb_number_fixed((double)tenths[i] / 10, 1).s);
		}
	}
	mb_table_markdown(&table, ret);
}

static void time_table(const struct mb_evaluation *e, struct mb_arena *arena, struct mb_text *ret)
{
	struct mb_table table = { .arena = arena };

	mb_table_column(&table, "term", "", MB_LEFT, 0);
	mb_table_column(&table, "exposed", "s per step", MB_DECIMAL, 0);
	for (int i = 0; i < MB_TIME_COUNT; i++) {
		if (e->time_terms[i] == 0)
			continue;
		mb_table_row(&table, MB_INK_PLAIN);
		mb_table_cell(&table, mb_time_terms[i].label);
		mb_table_cell(&table, mb_number_3(e->time_terms[i]).s);
	}
	mb_table_row(&table, MB_INK_PLAIN);
	mb_table_cell(&table, "sum");
	mb_table_cell(&table, mb_number_3(e->step_s).s);
	mb_table_markdown(&table, ret);
}

void mb_estimate_markdown(const struct mb_estimate *x, struct mb_arena *arena, struct mb_text *ret)
{
	mb_headline(ret, x->q);
	mb_text_add(ret, ", ");
	mb_layout_words(ret, &x->q->c.run.plan);
	mb_text_printf(ret, "\n\nVerdict: %s\n", mb_verdict_names[x->verdict]);
	for (int i = 0; i < x->violation_count; i++)
		mb_text_printf(ret, "\n- %s %s: %s", mb_rule_severity_names[x->violations[i].rule->severity],
		               x->violations[i].rule->id, x->violations[i].message);
	if (x->violation_count)
		mb_text_add(ret, "\n");
	if (!x->e)
		return;
	mb_text_add(ret, "\n");
	memory_table(x->e, arena, ret);
	mb_text_add(ret, "\n");
	time_table(x->e, arena, ret);
}
