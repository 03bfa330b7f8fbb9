#include "report/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/facet.h"
#include "report/number.h"
#include "report/violation.h"

enum mb_verdict mb_estimate_verdict(const struct mb_evaluation *e, const struct mb_violation *v, int count)
{
	if (!e || mb_violation_errors(v, count))
		return MB_ILLEGAL;
	return e->verdict;
}

static enum mb_ink verdict_ink(enum mb_verdict verdict)
{
	return verdict == MB_FITS ? MB_INK_GREEN : verdict == MB_AT_RISK ? MB_INK_YELLOW : MB_INK_RED;
}

/* The difference of the two printed numbers, so that the line adds up. */
static struct mb_number gib_between(double high, double low)
{
	double tenths = (double)llround(high / MB_GIB * 10) - (double)llround(low / MB_GIB * 10);

	if (tenths <= 0 && high > low)
		return mb_number_gib(0.01 * MB_GIB);
	return mb_number_fixed(tenths / 10, 1);
}

static void memory_answer(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *t)
{
	const struct mb_evaluation *e = x->e;
	double usable = (double)x->q->c.hardware.usable_bytes, used = e->device_used_bytes;

	if (e->verdict == MB_OUT_OF_MEMORY) {
		mb_ink_printf(t, s, MB_INK_RED, "Out of memory on stage %d by %s GiB", e->peak_stage,
		              gib_between(used, usable).s);
		mb_text_printf(t, " (%s of %s).", mb_number_gib(used).s, mb_number_gib(usable).s);
		return;
	}
	mb_ink(t, s, verdict_ink(e->verdict), e->verdict == MB_AT_RISK ? "At risk" : "Fits");
	mb_text_printf(t, ": %s of %s GiB on stage %d", mb_number_gib(used).s, mb_number_gib(usable).s, e->peak_stage);
	if (used > usable) {
		mb_text_add(t, ", fits only with expandable segments.");
		return;
	}
	mb_text_printf(t, ", %s free%s.", gib_between(usable, used).s, e->verdict == MB_AT_RISK ? ", under 3 %" : "");
}

static void answer(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *t)
{
	const struct mb_evaluation *e = x->e;
	struct mb_text line = { 0 }, time = { 0 };

	memory_answer(x, s, &line);
	mb_text_printf(&time, "%s%s/step (%s to %s)", e->verdict == MB_OUT_OF_MEMORY ? "If it fitted: " : "",
	               mb_number_duration(e->step_s).s, mb_number_duration_like(e->low_s, e->step_s).s,
	               mb_number_duration_like(e->high_s, e->step_s).s);
	if (e->model_flop_per_s_per_gpu > 0)
		mb_text_printf(&time, ", %s TFLOP/s/GPU", mb_number_tflops(e->model_flop_per_s_per_gpu).s);
	mb_text_add(&time, ".");
	mb_text_add(t, line.data);
	mb_text_add(t, " ");
	mb_wrap(t, s, mb_text_width(line.data) + 1, 0, time.data);
	mb_text_free(&line);
	mb_text_free(&time);
}

static void illegal(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *t)
{
	mb_ink(t, s, MB_INK_RED, "Illegal");
	if (x->violation_count) {
		mb_text_add(t, ": ");
		mb_violation_counts(t, x->violations, x->violation_count);
	}
	mb_text_add(t, ". It would stop at launch.\n\n");
	mb_violations_print(t, s, x->q, x->violations, x->violation_count);
	mb_text_add(t, "\n");
	if (!x->e)
		mb_text_add(t, "Its sizes do not divide: there is nothing to estimate before they do.\n\n");
	else
		mb_text_add(t, "If it started:\n");
}

static void next_lines(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *t)
{
	mb_ink(t, s, MB_INK_DIM, "next  ");
	if (x->verdict == MB_ILLEGAL)
		mb_text_printf(t, "mbsim check %s\n", x->args);
	else if (x->verdict == MB_OUT_OF_MEMORY)
		mb_text_printf(t, "mbsim search %s recompute_granularity=auto recompute_modules=auto\n", x->args);
	else
		mb_text_printf(t, "mbsim check %s\n      mbsim search %s\n", x->args, x->args);
}

static void notes(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *t)
{
	int assumed = mb_count_assumed(&x->q->c);

	mb_text_add(t, "\n");
	if (x->verdict != MB_ILLEGAL)
		mb_warnings_print(t, s, x->violations, x->violation_count);
	if (x->assumptions) {
		mb_estimate_assumptions(x, s, t);
	} else if (assumed) {
		struct mb_text note = { 0 };

		mb_text_printf(&note, "note: %d %s assumed, not measured, on %s: mbsim estimate %s --assumptions",
		               assumed, assumed == 1 ? "constant is" : "constants are", x->q->c.hardware.name, x->args);
		mb_wrap(t, s, 0, 2, note.data);
		mb_text_free(&note);
	}
}

static void headline(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *t)
{
	struct mb_text left = { 0 }, right = { 0 };

	mb_headline(&left, x->q);
	if (x->q->c.run.task != MB_PRETRAIN)
		mb_text_printf(&left, ", %s", mb_value_name(mb_task_names, (int)x->q->c.run.task));
	mb_text_add(&left, ", ");
	mb_layout_words(&left, &x->q->c.run.plan);
	mb_text_printf(&right, "stack %s", x->q->c.stack.name);
	mb_justify(t, s, left.data, right.data);
	mb_text_free(&left);
	mb_text_free(&right);
}

void mb_estimate_text(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret)
{
	headline(x, s, ret);
	if (x->verdict == MB_ILLEGAL)
		illegal(x, s, ret);
	if (x->e) {
		answer(x, s, ret);
		if (!s->quiet) {
			mb_text_add(ret, "\n");
			mb_estimate_memory(x, s, ret);
			mb_text_add(ret, "\n");
			mb_estimate_time(x, s, ret);
			notes(x, s, ret);
		}
	}
	if (!s->quiet)
		next_lines(x, s, ret);
}
