/* The first two lines of advice, and what an out-of-memory log says. */
#include <math.h>
#include <string.h>

#include "report/advise.h"
#include "report/changes.h"
#include "report/facet.h"
#include "report/number.h"

void mb_advise_headline(const struct mb_advice *a, struct mb_text *ret)
{
	const struct mb_run *run = &a->q->c.run;

	mb_text_printf(ret, "%s: ", a->topic == MB_TOPIC_OOM ? "out of memory" : mb_topic_names[a->topic]);
	mb_headline(ret, a->q);
	if (run->task != MB_PRETRAIN)
		mb_text_printf(ret, ", %s", mb_value_name(mb_task_names, (int)run->task));
	mb_text_add(ret, ", ");
	mb_layout_words(ret, &run->plan);
}

static void step_words(double frac, struct mb_text *ret)
{
	if (fabs(frac) < 5e-4)
		mb_text_add(ret, "no slower");
	else
		mb_text_printf(ret, "the step %s %s %%", frac > 0 ? "grows" : "shrinks", mb_number_percent(fabs(frac)).s);
}

static void recompute_answer(const struct mb_advice *a, struct mb_text *ret)
{
	const struct mb_option *ref = &a->options[a->reference], *best = a->recommended >= 0 ? &a->options[a->recommended] : NULL;
	struct mb_number usable = mb_number_gib((double)a->q->c.hardware.usable_bytes);

	if (ref->t.broken || !ref->t.sized) {
		mb_text_add(ret, "Illegal: there is nothing to compare before the run would start.");
		return;
	}
	if (!a->needed)
		mb_text_printf(ret, "You need none: the peak is %s of %s GiB.", mb_number_gib(ref->t.peak_bytes).s, usable.s);
	else if (best)
		mb_text_printf(ret, "Use %s: the peak is %s of %s GiB, %s free, ", best->name, mb_number_gib(best->t.peak_bytes).s, usable.s,
		               mb_number_gib(best->t.margin_bytes).s);
	else
		mb_text_printf(ret, "No recompute makes it %s: without it the peak is %s of %s GiB.", a->target_bytes > 0 ? "reach the target" : "fit",
		               mb_number_gib(ref->t.peak_bytes).s, usable.s);
	if (a->needed && best) {
		step_words(best->step_frac, ret);
		mb_text_add(ret, best->t.verdict == MB_AT_RISK ? ". It is at risk: within 3 % of full." : ".");
	}
	if (!a->needed && a->shrink >= 0)
		mb_text_printf(ret, " To shrink it: %s, down to %s GiB.", a->options[a->shrink].name, mb_number_gib(a->options[a->shrink].t.peak_bytes).s);
	else if (!a->needed)
		mb_text_add(ret, " No selective recompute lowers it.");
}

static void exchange_answer(const struct mb_advice *a, struct mb_text *ret)
{
	const struct mb_option *now = &a->options[a->now], *best = a->recommended >= 0 ? &a->options[a->recommended] : NULL;

	if (a->topic == MB_TOPIC_OVERLAP && best && a->recommended == a->now && !now->t.run.plan.overlap_moe_expert_parallel_comm) {
		mb_text_printf(ret, "Leave it off: %s a step, and no legal option is clearly faster.", mb_number_duration(now->t.step_s).s);
	} else if (best && a->recommended == a->now) {
		mb_text_printf(ret, "Keep it as it is: %s a step, and no legal option is clearly faster.", mb_number_duration(now->t.step_s).s);
	} else if (best) {
		mb_text_printf(ret, "Try %s: %s (%s to %s)", best->name, mb_number_duration(best->t.step_s).s,
		               mb_number_duration_like(best->t.low_s, best->t.step_s).s, mb_number_duration_like(best->t.high_s, best->t.step_s).s);
		if (now->t.verdict == MB_ILLEGAL)
			mb_text_add(ret, "; the run as it is would not start.");
		else if (now->t.sized)
			mb_text_printf(ret, " instead of %s, %s %%.", mb_number_duration_like(now->t.step_s, best->t.step_s).s,
			               mb_number_percent(best->step_frac).s);
	} else if (a->count == 1 && now->t.verdict == MB_ILLEGAL) {
		mb_text_add(ret, "Illegal: there is nothing to compare before the run would start.");
	} else {
		mb_text_add(ret, "None of them is legal and fits.");
	}
}

static void oom_answer(const struct mb_advice *a, struct mb_text *ret)
{
	const struct mb_diagnosis *d = a->diagnosis;
	struct mb_number peak = mb_number_gib(d->run.peak_bytes), usable = mb_number_gib(d->usable_bytes);

	switch (d->cause) {
	case MB_CAUSE_FITS:
		mb_text_printf(ret, "Fits by prediction: %s of %s GiB in use, %s free.", mb_number_gib(d->run.used_bytes).s, usable.s,
		               mb_number_gib(d->run.margin_bytes).s);
		break;
	case MB_CAUSE_ILLEGAL:
		mb_text_add(ret, "Illegal: it would stop at launch, before it runs out of memory.");
		break;
	case MB_CAUSE_STATES:
		mb_text_printf(ret, "Out of memory before any activation: states need %s of %s GiB.", mb_number_gib(d->between_bytes).s, usable.s);
		break;
	case MB_CAUSE_PRESSURE:
		mb_text_printf(ret, "Real pressure: the predicted peak is %s GiB (%s of stage %d), %s with what lies outside, of %s.", peak.s,
		               mb_phase_names[d->run.phase], d->run.stage, mb_number_gib(d->run.used_bytes).s, usable.s);
		break;
	case MB_CAUSE_SECOND_STEP:
		mb_text_printf(ret, "The first step fits (%s GiB), the second does not: with optimizer states the peak is %s of %s GiB.",
		               mb_number_gib(d->first_bytes).s, peak.s, usable.s);
		break;
	case MB_CAUSE_FRAGMENTATION:
		mb_text_printf(ret, "Fragmentation, not pressure: the predicted peak is %s GiB", mb_number_gib(d->peak_bytes).s);
		if (d->log && d->log->allocated >= 0)
			mb_text_printf(ret, ", your log says %s%s.", mb_number_gib(d->log->allocated).s,
			               fabs(d->missing_bytes) <= 0.1 * d->expected_bytes ? ", so nothing is missing" : "");
		else
			mb_text_printf(ret, " of %s, but without expandable segments blocks take %s.", usable.s, mb_number_gib(d->run.used_bytes).s);
		break;
	case MB_CAUSE_LOGITS:
		mb_text_add(ret, "Logits of an over-long sample.");
		break;
	case MB_CAUSE_IMBALANCE:
		mb_text_printf(ret, "Imbalance between experts: the log holds %s GiB more than balanced routing would.", mb_number_gib(d->missing_bytes).s);
		break;
	case MB_CAUSE_LOADING:
		mb_text_add(ret, "The checkpoint load needs more than training does.");
		break;
	case MB_CAUSE_OUTSIDE:
		mb_text_add(ret, "Memory outside PyTorch's allocator takes the room.");
		break;
	case MB_CAUSE_HOST:
		mb_text_add(ret, "The host is out of memory, not the device.");
		break;
	case MB_CAUSE_UNKNOWN:
		mb_text_printf(ret, "The log holds %s GiB that the model does not know.", mb_number_gib(d->missing_bytes).s);
		break;
	case MB_CAUSE_COUNT:
		break;
	}
}

void mb_advise_answer(const struct mb_advice *a, struct mb_text *ret)
{
	if (a->topic == MB_TOPIC_RECOMPUTE)
		recompute_answer(a, ret);
	else if (a->topic == MB_TOPIC_OOM)
		oom_answer(a, ret);
	else
		exchange_answer(a, ret);
}

static void amount(struct mb_text *ret, const char *name, double bytes, const char **gap)
{
	if (bytes < 0)
		return;
	mb_text_printf(ret, "%s%s %s", *gap, name, mb_number_fixed(bytes / MB_GIB, 2).s);
	*gap = ", ";
}

void mb_advise_log(const struct mb_advice *a, struct mb_text *ret)
{
	const struct mb_oom_log *log = a->diagnosis->log;
	const char *gap = "";

	if (!log)
		return;
	if (log->message)
		mb_text_printf(ret, "read from stdin, line %d, GiB: ", log->line);
	else
		mb_text_add(ret, "given, GiB: ");
	amount(ret, "total capacity", log->capacity, &gap);
	amount(ret, "allocated", log->allocated, &gap);
	amount(ret, "reserved but unallocated", log->unallocated, &gap);
	if (log->unallocated < 0)
		amount(ret, "reserved", log->reserved, &gap);
	amount(ret, "in use", log->device_used, &gap);
	amount(ret, "tried to allocate", log->failed, &gap);
	if (log->rank >= 0)
		mb_text_printf(ret, "%srank %ld", gap, log->rank), gap = ", ";
	if (log->step >= 0)
		mb_text_printf(ret, "%sstep %ld", gap, log->step), gap = ", ";
	if (log->place != MB_OOM_UNKNOWN)
		mb_text_printf(ret, "%sin %s", gap, mb_oom_place_names[log->place]);
}

void mb_advise_budget(const struct mb_advice *a, struct mb_text *ret)
{
	const struct mb_diagnosis *d = a->diagnosis;
	const struct mb_oom_log *log = d->log;

	if (log && log->allocated >= 0 && log->unallocated >= 0) {
		mb_text_printf(ret, "allocated %s  +  held but unusable %s", mb_number_gib(log->allocated).s, mb_number_gib(log->unallocated).s);
		if (log->device_used >= 0)
			mb_text_printf(ret, "  +  outside PyTorch %s  =  %s", mb_number_gib(log->device_used - log->allocated - log->unallocated).s,
			               mb_number_gib(log->device_used).s);
		mb_text_printf(ret, " of %s GiB", mb_number_gib(d->usable_bytes).s);
	} else if (d->run.sized) {
		mb_text_printf(ret, "predicted, GiB: first step %s, later %s, between steps %s, reserved %s, outside PyTorch %s", mb_number_gib(d->first_bytes).s,
		               mb_number_gib(d->peak_bytes).s, mb_number_gib(d->between_bytes).s, mb_number_gib(d->run.reserved_bytes).s,
		               mb_number_gib(d->outside_bytes).s);
	}
}
