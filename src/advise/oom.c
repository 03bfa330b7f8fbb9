/* Out of memory: the cause, then remedies from free to dear, each tried on the run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/advice.h"
#include "advise/diagnosis.h"
#include "advise/moves.h"
#include "plan/rules_private.h"

static const double GIB = 1073741824.0;

struct oom {
	struct mb_bench b;
	struct mb_advice *a;
	struct mb_diagnosis *d;
	double need_bytes;              /* device use to come down by, at least */
	struct mb_move moves[MB_MAX_MOVES];
};

/* What expandable segments give back: the log knows, else the prediction. */
static double given_back(const struct oom *o, const struct mb_trial *t)
{
	const struct mb_oom_log *log = o->d->log;
	double predicted = o->d->run.used_bytes - t->used_bytes;

	if (!t->changes.expandable || mb_changes_count(&t->changes) > 1 || !log || log->unallocated < 0)
		return predicted;
	return fmax(predicted, log->unallocated - 0.02 * fmax(log->allocated, 0));
}

/*
 * Whether a remedy mends this run: it fits by prediction; and where the log holds more than the prediction, it gives more
 * than is missing.
 */
static bool mends(const struct oom *o, const struct mb_trial *t)
{
	double gives = given_back(o, t);

	if (!t->sized || t->verdict != MB_FITS)
		return false;
	return gives >= o->need_bytes;
}

/* Better of one family: mends before what does not; then faster; of those that do not, what gives more. */
static bool is_better(const struct oom *o, const struct mb_trial *t, const struct mb_trial *than)
{
	bool mended = mends(o, t), was = mends(o, than);

	if (mended != was)
		return mended;
	if (mended && t->run.gpus != than->run.gpus)
		return t->run.gpus < than->run.gpus;
	if (mended)
		return t->step_s < than->step_s;
	return t->used_bytes < than->used_bytes;
}

static void compare(const struct oom *o, struct mb_option *option)
{
	option->saved_bytes = given_back(o, &option->t);
	option->lowers_bytes = o->d->run.peak_bytes - option->t.peak_bytes;
	option->step_frac = option->t.step_s / o->d->run.step_s - 1;
}

/* The best move of each family that gives anything, in the families' order. */
static void add_remedies(struct oom *o)
{
	int count = mb_moves(o->b.q, o->moves);

	for (int f = 0; f < MB_FAMILY_COUNT; f++) {
		struct mb_trial best = { 0 }, t;
		bool has = false;

		for (int i = 0; i < count; i++) {
			if (o->moves[i].family != (enum mb_family)f)
				continue;
			mb_bench_try(&o->b, &o->moves[i].changes, &t);
			if (!t.sized || t.verdict == MB_ILLEGAL || given_back(o, &t) < 0.02 * GIB)
				continue;
			if (!has || is_better(o, &t, &best))
				best = t;
			has = true;
		}
		if (has)
			compare(o, mb_advice_add(o->a, MB_OPTION_OTHER, &best, "%s", ""));
	}
}

/* Two or three keys of different kinds, when no single remedy mends it. */
static void add_combination(struct oom *o, struct mb_arena *arena)
{
	const struct mb_changes nothing = { 0 };
	struct mb_wish wish = { 0 };
	struct mb_trial found[4], closest;
	int count = mb_nearest_plans(&o->b, &nothing, &wish, arena, found, 4, &closest);

	for (int i = 0; i < count; i++) {
		if (mends(o, &found[i]))
			compare(o, mb_advice_add(o->a, MB_OPTION_SET, &found[i], "%s", ""));
	}
	if (count == 0 && closest.sized && closest.used_bytes < o->d->run.used_bytes) {
		struct mb_option *option = mb_advice_add(o->a, MB_OPTION_SET, &closest, "%s", "");

		compare(o, option);
		mb_option_note(option, "the closest without other hardware or dtypes, still %.1f GiB too much", -closest.margin_bytes / GIB);
	}
}

/* Free ones first, then what slows down least; another layout after the same one, learning and hardware last. */
static double price(const struct mb_option *o)
{
	static const enum mb_key_id layout[] = { MB_K_mbs, MB_K_pp, MB_K_vp, MB_K_tp, MB_K_cp, MB_K_ep };
	double price = fmax(o->step_frac, 0) + 1e-3 * mb_changes_count(&o->t.changes) - 1e-3 * o->t.changes.expandable;

	for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++)
		price += mb_changes_has(&o->t.changes, layout[i]) ? 0.01 : 0;
	return price + (o->learning ? 10 : mb_changes_has(&o->t.changes, MB_K_gpus) ? 20 : 0);
}

static bool is_fragmentation(const struct oom *o)
{
	return o->d->cause == MB_CAUSE_FRAGMENTATION;
}

static void sort(struct mb_advice *a)
{
	for (int i = 1; i < a->count; i++) {
		struct mb_option moved = a->options[i];
		int j = i;

		for (; j > 0 && price(&a->options[j - 1]) > price(&moved); j--)
			a->options[j] = a->options[j - 1];
		a->options[j] = moved;
	}
	for (int i = 0; i < a->count; i++) {
		a->options[i].rank = i + 1;
		a->options[i].listed = i < 12;
	}
}

static void recommend(struct oom *o)
{
	struct mb_advice *a = o->a;

	for (int i = 0; i < a->count; i++) {
		const struct mb_trial *t = &a->options[i].t;

		if (is_fragmentation(o) && t->changes.expandable && mb_changes_count(&t->changes) == 1 && mb_option_usable(&a->options[i])) {
			a->recommended = i;
			return;
		}
	}
	for (int i = 0; i < a->count; i++) {
		if (mends(o, &a->options[i].t)) {
			a->recommended = i;
			return;
		}
	}
}

static void tell_cause(struct oom *o)
{
	const struct mb_diagnosis *d = o->d;
	const struct mb_oom_log *log = d->log;
	const struct mb_trial *t = &d->run;
	struct mb_advice *a = o->a;

	switch (d->cause) {
	case MB_CAUSE_ILLEGAL:
		mb_advice_reason(a, "The run breaks %s and would stop at launch; mbsim check says how to mend it.", t->broken ? t->broken->id : "a size rule");
		break;
	case MB_CAUSE_STATES:
		mb_advice_reason(a, "Weights, gradients and optimizer states alone take %.1f GiB between steps: no recompute helps, only sharding them further.",
		                 d->between_bytes / GIB);
		break;
	case MB_CAUSE_SECOND_STEP:
		mb_advice_reason(a, "The first step peaks at %.1f GiB, later ones at %.1f: optimizer states are made at the end of the first step and stay.",
		                 d->first_bytes / GIB, d->peak_bytes / GIB);
		break;
	case MB_CAUSE_IMBALANCE:
		mb_advice_reason(a, "A largest expert rank at %.2f times the mean explains the log: set moe_load_imbalance=%.2f and plan with that headroom.",
		                 d->imbalance, d->imbalance);
		break;
	case MB_CAUSE_LOGITS:
		mb_advice_reason(a, "The request is the logits of %.0f tokens on this rank; a micro-batch has %.0f. One sample is longer than the limit you "
		                 "set: cap it, or shard the vocabulary or the sequence further.", d->logit_tokens,
		                 (double)o->b.q->c.run.seq_length * o->b.q->c.run.plan.micro_batch_size / o->b.q->c.run.plan.cp);
		break;
	case MB_CAUSE_LOADING:
		mb_advice_reason(a, "Reading a checkpoint holds copies beside the states (%.1f GiB): free the cache before the first step, or load optimizer "
		                 "states after the weights.", d->between_bytes / GIB);
		break;
	case MB_CAUSE_OUTSIDE:
		mb_advice_reason(a, "%.1f GiB are in use outside PyTorch's allocator, %.1f are expected for context, communicators and dispatcher buffers: "
		                 "look for other processes on the GPU.", log && log->device_used >= 0 && log->reserved >= 0
		                 ? (log->device_used - log->reserved + fmax(log->other, 0)) / GIB : d->outside_bytes / GIB, d->outside_bytes / GIB);
		break;
	case MB_CAUSE_HOST:
		mb_advice_reason(a, "The host ran out, not the device: offloaded states and pinned copies take %.1f GiB for each GPU of a node.", t->host_bytes / GIB);
		break;
	case MB_CAUSE_UNKNOWN:
		mb_advice_reason(a, "The log holds %.1f GiB that the model does not know: a longer sample, an extra copy, or settings that the run does not say.",
		                 d->missing_bytes / GIB);
		break;
	case MB_CAUSE_FITS:
		mb_advice_reason(a, "Nothing to mend. If it did run out of memory, give the log on standard input or its numbers as options: what differs is "
		                 "what the run does not say.");
		break;
	case MB_CAUSE_FRAGMENTATION:
	case MB_CAUSE_PRESSURE:
	case MB_CAUSE_COUNT:
		break;
	}
	if (d->uneven && d->cause != MB_CAUSE_ILLEGAL)
		mb_advice_reason(a, "Stages are uneven: stage %d peaks at %.1f GiB, stage %d at %.1f.", t->stage, t->peak_bytes / GIB, d->stage,
		                 d->peak_bytes / GIB);
}

/* What has to come down: what is predicted beyond the device, and what the log holds beyond the prediction. */
static double need(const struct mb_diagnosis *d)
{
	const struct mb_oom_log *log = d->log;
	double beyond = fmax(0, d->run.used_bytes - 0.97 * d->usable_bytes), unknown;

	if (!log || log->allocated < 0 || d->cause == MB_CAUSE_FRAGMENTATION || d->cause == MB_CAUSE_FITS)
		return beyond;
	unknown = fmax(log->allocated, log->reserved) + fmax(log->failed, 0) + d->outside_bytes - 0.97 * d->usable_bytes;
	return fmax(beyond, unknown);
}

void mb_advise_oom(const struct mb_query *q, const struct mb_oom_log *log, struct mb_evaluation *e, struct mb_arena *arena,
                   struct mb_advice *ret)
{
	struct oom *o = mb_arena_alloc(arena, sizeof *o);

	mb_advice_init(ret, MB_TOPIC_OOM, q, arena);
	o->a = ret;
	o->d = mb_arena_alloc(arena, sizeof *o->d);
	ret->diagnosis = o->d;
	mb_bench_init(&o->b, q, e);
	mb_diagnose(&o->b, log, o->d);
	o->need_bytes = need(o->d);
	ret->needed = o->d->run.verdict != MB_FITS || o->d->log != NULL;
	tell_cause(o);
	if (o->d->cause == MB_CAUSE_ILLEGAL || o->d->cause == MB_CAUSE_FITS)
		return;
	add_remedies(o);
	sort(ret);
	recommend(o);
	if (ret->recommended < 0 && o->d->run.verdict != MB_FITS) {
		add_combination(o, arena);
		sort(ret);
		recommend(o);
	}
	ret->host_bound = mb_host_bound(&o->d->run);
}
