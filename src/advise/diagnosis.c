#include "advise/diagnosis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/rules_private.h"

const char *const mb_cause_names[MB_CAUSE_COUNT] = {
	[MB_CAUSE_FITS] = "fits", [MB_CAUSE_ILLEGAL] = "illegal", [MB_CAUSE_STATES] = "states", [MB_CAUSE_PRESSURE] = "pressure",
	[MB_CAUSE_SECOND_STEP] = "second_step", [MB_CAUSE_FRAGMENTATION] = "fragmentation", [MB_CAUSE_LOGITS] = "logits",
	[MB_CAUSE_IMBALANCE] = "imbalance", [MB_CAUSE_LOADING] = "loading", [MB_CAUSE_OUTSIDE] = "outside", [MB_CAUSE_HOST] = "host_memory",
	[MB_CAUSE_UNKNOWN] = "unknown",
};

static const double GIB = 1073741824.0;

static bool said(double bytes)
{
	return bytes >= 0;
}

/* Pipeline stages are the slowest dimension of the ranks, unless the mapping puts data parallelism outside. */
static int stage_of_rank(const struct mb_case *c, long rank)
{
	const struct mb_plan *p = &c->run.plan;
	long group = c->run.use_tp_pp_dp_mapping ? (long)p->tp * p->cp : c->run.gpus / (p->pp > 0 ? p->pp : 1);

	return group > 0 ? (int)(rank / group % p->pp) : 0;
}

static void predict(struct mb_bench *b, struct mb_diagnosis *d)
{
	const struct mb_changes nothing = { 0 };
	const struct mb_oom_log *log = d->log;
	const struct mb_stage_memory *m;
	double largest = 0;

	mb_bench_try(b, &nothing, &d->run);
	d->usable_bytes = log && said(log->capacity) && log->capacity > 0 ? log->capacity : (double)b->q->c.hardware.usable_bytes;
	if (!d->run.sized)
		return;
	d->stage = log && log->rank >= 0 ? stage_of_rank(&b->q->c, log->rank) : d->run.stage;
	m = &b->e->stage_memory[d->stage];
	d->peak_bytes = m->peak_bytes;
	d->first_bytes = m->first_step_peak_bytes;
	d->between_bytes = m->between_bytes;
	d->outside_bytes = m->device_used_bytes - m->reserved_bytes;
	for (int r = 0; r < b->e->dims.pp; r++)
		largest = fmax(largest, b->e->stage_memory[r].peak_bytes);
	d->uneven = largest > 1.1 * m->peak_bytes;
	d->expected_bytes = log && log->step == 1 ? d->first_bytes : d->peak_bytes;
	if (log && said(log->allocated))
		d->missing_bytes = log->allocated + fmax(log->failed, 0) - d->expected_bytes;
}

/*
 * A request that is a whole number of rows of the vocabulary of this rank, in fp32 or bf16, and of more tokens than a
 * micro-batch has.
 */
static double logit_tokens(const struct mb_bench *b, const struct mb_oom_log *log)
{
	const struct mb_dims *d = &b->e->dims;
	double row = (double)d->padded_vocab / d->tp;

	if (log->failed < 0.25 * GIB || row <= 0)
		return 0;
	for (int bytes = 4; bytes >= 2; bytes -= 2) {
		double tokens = log->failed / (row * bytes);

		/* The log rounds to hundredths of a GiB. */
		if (tokens > 1.05 * d->tokens && (log->place == MB_OOM_LOGITS || log->failed > 8 * GIB))
			return tokens;
	}
	return 0;
}

/* The imbalance at which the predicted peak is what the log holds; 0 when even eight times the mean does not explain it. */
static double solve_imbalance(struct mb_bench *b, const struct mb_diagnosis *d)
{
	double low = b->q->c.run.moe_load_imbalance, high = 8, need = d->log->allocated + fmax(d->log->failed, 0);
	struct mb_case *now = &b->now.c;

	if (!mb_has_moe(&b->q->c.model) || b->q->c.run.plan.ep < 2 || b->q->c.run.moe_router_force_load_balancing
	    || b->q->c.run.moe_pad_expert_input_to_capacity)
		return 0;
	for (int i = 0; i < 24; i++) {
		double middle = i == 0 ? high : 0.5 * (low + high), peak;

		now->run = b->q->c.run;
		now->run.moe_load_imbalance = middle;
		mb_evaluate(now, &now->run.plan, b->e);
		peak = b->e->stage_memory[d->stage].peak_bytes;
		if (i == 0 && peak < need)
			return 0;
		if (peak < need)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* What a run alone, without a log, says about itself. */
static enum mb_cause predicted_cause(const struct mb_bench *b, const struct mb_diagnosis *d)
{
	const struct mb_trial *t = &d->run;
	double room = d->usable_bytes - d->outside_bytes;
	bool first_fits = t->first_used_bytes <= d->usable_bytes;

	if (t->verdict == MB_AT_RISK)
		return b->q->c.run.expandable_segments ? MB_CAUSE_PRESSURE : MB_CAUSE_FRAGMENTATION;
	if (t->verdict != MB_OUT_OF_MEMORY)
		return MB_CAUSE_FITS;
	if (t->between_bytes - t->memory[MB_MEM_gradient_copy] > room)
		return MB_CAUSE_STATES;
	if (first_fits && t->first_peak_bytes < t->peak_bytes - 0.01 * d->usable_bytes)
		return MB_CAUSE_SECOND_STEP;
	return MB_CAUSE_PRESSURE;
}

/* Enough is free, in the allocator or on the device, for what was asked: it only lies in pieces. */
static bool is_fragmented(const struct mb_diagnosis *d)
{
	const struct mb_oom_log *log = d->log;
	double failed = fmax(log->failed, 0), room = d->usable_bytes - d->outside_bytes;

	if (said(log->unallocated))
		return log->unallocated >= fmax(failed, 0.02 * d->usable_bytes);
	if (said(log->allocated) && !said(log->device_used))
		return log->allocated + failed < 0.95 * room;
	return false;
}

static bool is_outside(const struct mb_diagnosis *d)
{
	const struct mb_oom_log *log = d->log;

	if (log->other > GIB)
		return true;
	if (said(log->device_used) && said(log->reserved))
		return log->device_used - log->reserved > d->outside_bytes + 0.06 * d->usable_bytes;
	return false;
}

/* The log is below the prediction by so much that its peak was not reached. */
static bool is_early(const struct mb_diagnosis *d)
{
	return d->log->allocated < 0.9 * d->expected_bytes;
}

static enum mb_cause logged_cause(struct mb_bench *b, struct mb_diagnosis *d)
{
	const struct mb_oom_log *log = d->log;
	enum mb_cause predicted = predicted_cause(b, d);
	bool too_large = predicted == MB_CAUSE_STATES || predicted == MB_CAUSE_PRESSURE || predicted == MB_CAUSE_SECOND_STEP;
	bool known = said(log->allocated) && d->missing_bytes <= 0.1 * d->expected_bytes;

	if (log->place == MB_OOM_HOST)
		return MB_CAUSE_HOST;
	d->logit_tokens = logit_tokens(b, log);
	if (d->logit_tokens > 0)
		return MB_CAUSE_LOGITS;
	if (is_outside(d))
		return MB_CAUSE_OUTSIDE;
	if (is_fragmented(d) && !(too_large && is_early(d)))
		return MB_CAUSE_FRAGMENTATION;
	if (log->place == MB_OOM_NCCL)
		return MB_CAUSE_OUTSIDE;
	if (log->place == MB_OOM_LOAD)
		return MB_CAUSE_LOADING;
	if (log->place == MB_OOM_BUILD && too_large)
		return MB_CAUSE_STATES;
	if (too_large && (log->place == MB_OOM_OPTIMIZER || log->step == 2) && predicted != MB_CAUSE_STATES
	    && d->run.first_used_bytes <= d->usable_bytes)
		return MB_CAUSE_SECOND_STEP;
	if (too_large || !said(log->allocated))
		return predicted == MB_CAUSE_SECOND_STEP && log->step == 1 ? MB_CAUSE_PRESSURE : predicted;
	if (!known && (d->imbalance = solve_imbalance(b, d)) > 0)
		return MB_CAUSE_IMBALANCE;
	if (!known)
		return MB_CAUSE_UNKNOWN;
	return log->allocated + fmax(log->failed, 0) > d->usable_bytes - d->outside_bytes ? MB_CAUSE_PRESSURE : predicted;
}

static void rule_out(const struct mb_bench *b, struct mb_diagnosis *d)
{
	const struct mb_trial *t = &d->run;
	size_t n = 0, size = sizeof d->ruled_out;

	if (d->cause != MB_CAUSE_SECOND_STEP && d->cause != MB_CAUSE_STATES && t->first_used_bytes <= d->usable_bytes && t->margin_bytes > 0)
		n += (size_t)snprintf(d->ruled_out + n, size - n, "optimizer states at step 2 (predicted, %.1f GiB)", d->between_bytes / GIB);
	if (!d->uneven && n < size)
		n += (size_t)snprintf(d->ruled_out + n, size - n, "%suneven stages (stage %d is the peak)", n ? ", " : "", t->stage);
	if (d->cause != MB_CAUSE_LOGITS && t->phase != MB_PHASE_LOSS && n < size)
		n += (size_t)snprintf(d->ruled_out + n, size - n, "%slogits (%.1f GiB)", n ? ", " : "", t->memory[MB_MEM_loss] / GIB);
	if (!mb_has_moe(&b->q->c.model) && n < size)
		snprintf(d->ruled_out + n, size - n, "%simbalance between experts (there are none)", n ? ", " : "");
}

void mb_diagnose(struct mb_bench *b, const struct mb_oom_log *log, struct mb_diagnosis *ret)
{
	*ret = (struct mb_diagnosis){ .log = log && log->given ? log : NULL };
	predict(b, ret);
	if (!ret->run.sized || ret->run.verdict == MB_ILLEGAL) {
		ret->cause = MB_CAUSE_ILLEGAL;
		return;
	}
	ret->cause = ret->log ? logged_cause(b, ret) : predicted_cause(b, ret);
	rule_out(b, ret);
}
