/* The sentences of an explanation. */
#include <math.h>
#include <string.h>

#include "report/changes.h"
#include "report/explain.h"
#include "report/facet.h"
#include "report/number.h"
#include "report/violation.h"

void mb_explain_headline(const struct mb_explanation *x, struct mb_text *ret)
{
	const struct mb_run *run = &x->q->c.run;

	mb_headline(ret, x->q);
	if (run->task != MB_PRETRAIN)
		mb_text_printf(ret, ", %s", mb_value_name(mb_task_names, (int)run->task));
	mb_text_add(ret, ", ");
	mb_layout_words(ret, &run->plan);
}

static void rule_answer(const struct mb_explanation *x, struct mb_text *ret)
{
	int errors = mb_violation_errors(x->violations, x->violation_count);

	if (errors == 0) {
		mb_text_add(ret, "Illegal: the sizes do not divide.");
		return;
	}
	mb_text_printf(ret, "Illegal, it would stop at launch. %s: %s.", x->violations[0].rule->id, x->violations[0].message);
	if (errors > 1)
		mb_text_printf(ret, " And %d more %s broken.", errors - 1, errors == 2 ? "rule is" : "rules are");
}

static void memory_answer(const struct mb_explanation *x, struct mb_text *ret)
{
	const struct mb_trial *t = &x->run;
	struct mb_number usable = mb_number_gib((double)x->q->c.hardware.usable_bytes);

	if (t->verdict == MB_AT_RISK)
		mb_text_printf(ret, "At risk on stage %d: %s of %s GiB in use, less than 3 %% free.", t->stage, mb_number_gib(t->used_bytes).s, usable.s);
	else
		mb_text_printf(ret, "Out of memory on stage %d by %s GiB (%s of %s).", t->stage, mb_number_gib(-t->margin_bytes).s,
		               mb_number_gib(t->used_bytes).s, usable.s);
	mb_text_printf(ret, " Cause: %s, %s of the %s GiB peak.", x->cause_words, mb_number_gib(x->cause_bytes).s, mb_number_gib(t->peak_bytes).s);
}

static void time_answer(const struct mb_explanation *x, struct mb_text *ret)
{
	const struct mb_trial *t = &x->run;
	double behind = x->has_best || x->best.step_s > 0 ? t->step_s - x->best.step_s : 0;

	mb_text_printf(ret, "Fits with %s GiB free and takes %s a step (%s to %s)", mb_number_gib(t->margin_bytes).s, mb_number_duration(t->step_s).s,
	               mb_number_duration_like(t->low_s, t->step_s).s, mb_number_duration_like(t->high_s, t->step_s).s);
	if (behind < 0.005 * t->step_s)
		mb_text_add(ret, ". Nothing faster is known: it is the best.");
	else
		mb_text_printf(ret, ", %s more than the best (%s %%). Cause: %s.", mb_number_duration(behind).s, mb_number_percent(behind / x->best.step_s).s,
		               mb_time_terms[x->time_term].label);
}

void mb_explain_answer(const struct mb_explanation *x, struct mb_text *ret)
{
	switch (x->kind) {
	case MB_BINDS_RULE:
		rule_answer(x, ret);
		break;
	case MB_BINDS_MEMORY:
		memory_answer(x, ret);
		break;
	case MB_BINDS_TIME:
		time_answer(x, ret);
		break;
	}
}

static void floor_words(const struct mb_trial *t, struct mb_text *ret)
{
	switch (t->phase) {
	case MB_PHASE_OPTIMIZER:
		mb_text_add(ret, " The peak is the optimizer step: recompute does not lower it, sharding, dtypes and offloading do.");
		break;
	case MB_PHASE_LOSS:
		mb_text_printf(ret, " Head and loss take %s GiB on top: micro-batch, TP, CP or another cross entropy shrink them.",
		               mb_number_gib(t->memory[MB_MEM_loss]).s);
		break;
	default:
		break;
	}
}

void mb_explain_details(const struct mb_explanation *x, struct mb_text *ret)
{
	const struct mb_trial *t = &x->run;

	if (x->kind != MB_BINDS_MEMORY || !t->sized)
		return;
	if (t->in_flight_chunks > 0 && t->in_flight_bytes > 0)
		mb_text_printf(ret, "Its %s holds %d %s of %s GiB.", t->phase == MB_PHASE_OPTIMIZER ? "deepest forward" : mb_phase_names[t->phase],
		               t->in_flight_chunks, t->in_flight_chunks == 1 ? "chunk" : "chunks",
		               mb_number_3(t->in_flight_bytes / t->in_flight_chunks / MB_GIB).s);
	mb_text_printf(ret, " Between steps %s GiB stay.", mb_number_gib(t->between_bytes).s);
	floor_words(t, ret);
}

/* Terms by how much they differ, largest first, the rest together. */
static void differences(const struct mb_explanation *x, struct mb_text *ret)
{
	double rest = x->run.step_s - x->best.step_s;
	bool told[MB_TIME_COUNT] = { false };

	for (int n = 0; n < 5; n++) {
		int most = -1;

		for (int i = 0; i < MB_TIME_COUNT; i++) {
			double d = fabs(x->run.terms[i] - x->best.terms[i]);

			if (!told[i] && d > 0.002 * x->run.step_s && (most < 0 || d > fabs(x->run.terms[most] - x->best.terms[most])))
				most = i;
		}
		if (most < 0)
			break;
		told[most] = true;
		rest -= x->run.terms[most] - x->best.terms[most];
		mb_text_printf(ret, "%s%s %+.3g", n ? ", " : "", mb_time_terms[most].label, x->run.terms[most] - x->best.terms[most]);
	}
	if (fabs(rest) > 0.001 * x->run.step_s)
		mb_text_printf(ret, ", other %+.3g", rest);
	mb_text_add(ret, " s.");
}

void mb_explain_against_best(const struct mb_explanation *x, struct mb_text *ret)
{
	double behind = x->run.step_s - x->best.step_s;

	if (!x->has_best || !x->run.sized || !x->best.sized || behind < 0.005 * x->run.step_s)
		return;
	if (x->kind == MB_BINDS_TIME)
		mb_text_add(ret, "Against the best: ");
	else
		mb_text_printf(ret, "If it %s it would still be %s behind the best: ", x->kind == MB_BINDS_RULE ? "started" : "fitted",
		               mb_number_duration(behind).s);
	differences(x, ret);
}

void mb_explain_proof(const struct mb_explanation *x, struct mb_text *ret)
{
	double together = (double)x->q->c.hardware.usable_bytes * x->q->c.run.gpus;

	if (!x->nothing_fits)
		return;
	mb_text_printf(ret, "No plan of the whole space fits. ");
	if (x->states_prove_it)
		mb_text_printf(ret, "Model states alone need %.0f B x %.1fe9 parameters = %s GiB; %d GPUs have %s together.", x->state_bytes_per_param,
		               x->state_bytes / x->state_bytes_per_param / 1e9, mb_number_count(x->state_bytes / MB_GIB).s, x->q->c.run.gpus,
		               mb_number_count(together / MB_GIB).s);
	if (x->has_closest)
		mb_text_printf(ret, " The closest neighbour needs %s of %s GiB a GPU.", mb_number_gib(x->closest.used_bytes).s,
		               mb_number_gib((double)x->q->c.hardware.usable_bytes).s);
}

void mb_explain_fixes(const struct mb_explanation *x, struct mb_table *ret)
{
	mb_table_column(ret, x->kind == MB_BINDS_TIME ? "nearest that is faster" : "nearest fixes", "", MB_LEFT, 0);
	mb_table_column(ret, "keys", "", MB_DECIMAL, 2);
	mb_table_column(ret, "verdict", "", MB_LEFT, 0);
	mb_table_column(ret, "step", "s", MB_DECIMAL, 0);
	mb_table_column(ret, "vs", "best %", MB_DECIMAL, 3);
	mb_table_column(ret, "peak", "GiB", MB_DECIMAL, 0);
	mb_table_column(ret, "changes learning", "", MB_LEFT, 1);
	for (int i = 0; i < x->fix_count; i++) {
		const struct mb_trial *t = &x->fixes[i];
		struct mb_text words = { 0 };
		double over = x->best.step_s > 0 ? t->step_s / x->best.step_s - 1 : 0;

		mb_text_add(&words, "");
		mb_changes_words(&words, x->q, &t->changes, false);
		mb_table_row(ret, MB_INK_PLAIN);
		mb_table_cell(ret, mb_changes_first(ret, words.data));
		mb_table_cell(ret, mb_number_count(mb_changes_count(&t->changes)).s);
		mb_table_cell(ret, mb_verdict_names[t->verdict]);
		mb_table_cell(ret, t->sized ? mb_number_3(t->step_s).s : "-");
		mb_table_cell(ret, fabs(over) < 5e-4 ? "best" : mb_arena_printf(ret->arena, "%+.1f", 100 * over));
		mb_table_cell(ret, t->sized ? mb_number_gib(t->peak_bytes).s : "-");
		mb_table_cell(ret, mb_changes_learning(&t->changes) ? "yes" : "no");
		mb_changes_rows(ret, 0, words.data, MB_INK_PLAIN);
		mb_text_free(&words);
	}
}

void mb_explain_ways(const struct mb_explanation *x, struct mb_table *ret)
{
	mb_table_column(ret, "what would make it fit", "", MB_LEFT, 0);
	mb_table_column(ret, "GPUs", "", MB_DECIMAL, 0);
	mb_table_column(ret, "changes learning", "", MB_LEFT, 0);
	mb_table_column(ret, "step", "s", MB_DECIMAL, 0);
	mb_table_column(ret, "a plan", "", MB_LEFT, 1);
	for (int i = 0; i < x->way_count; i++) {
		const struct mb_way_out *w = &x->ways[i];
		struct mb_text plan = { 0 };

		mb_layout_words(&plan, &w->plan.plan);
		if (w->plan.plan.recompute == MB_RECOMPUTE_FULL)
			mb_text_add(&plan, ", full recompute");
		mb_table_row(ret, MB_INK_PLAIN);
		mb_table_cell(ret, w->words);
		mb_table_cell(ret, mb_number_count(w->gpus).s);
		mb_table_cell(ret, w->learning ? "yes, dtypes" : "no");
		mb_table_cell(ret, mb_number_3(w->plan.step_s).s);
		mb_table_cell(ret, plan.data);
		mb_text_free(&plan);
	}
}
