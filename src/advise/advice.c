#include "advise/advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cost/build.h"

const char *const mb_topic_names[MB_TOPIC_COUNT] = {
	[MB_TOPIC_RECOMPUTE] = "recompute", [MB_TOPIC_OVERLAP] = "overlap", [MB_TOPIC_DISPATCHER] = "dispatcher", [MB_TOPIC_OOM] = "oom",
};

void mb_advice_init(struct mb_advice *a, enum mb_topic topic, const struct mb_query *q, struct mb_arena *arena)
{
	*a = (struct mb_advice){ .topic = topic, .q = q, .now = -1, .reference = -1, .recommended = -1, .shrink = -1 };
	a->options = mb_arena_alloc(arena, MB_MAX_OPTIONS * sizeof a->options[0]);
}

struct mb_option *mb_advice_add(struct mb_advice *a, enum mb_option_kind kind, const struct mb_trial *t, const char *fmt, ...)
{
	int at = a->count < MB_MAX_OPTIONS ? a->count++ : MB_MAX_OPTIONS - 1;
	struct mb_option *o = &a->options[at];
	va_list args;

	memset(o, 0, sizeof *o);
	o->kind = kind;
	o->t = *t;
	o->learning = mb_changes_learning(&t->changes);
	va_start(args, fmt);
	vsnprintf(o->name, sizeof o->name, fmt, args);
	va_end(args);
	return o;
}

void mb_option_note(struct mb_option *o, const char *fmt, ...)
{
	va_list args;

	if (o->note_count == MB_MAX_NOTES)
		return;
	va_start(args, fmt);
	vsnprintf(o->notes[o->note_count++], MB_NOTE_TEXT, fmt, args);
	va_end(args);
}

void mb_advice_reason(struct mb_advice *a, const char *fmt, ...)
{
	va_list args;

	if (a->reason_count == MB_MAX_REASONS)
		return;
	va_start(args, fmt);
	vsnprintf(a->reasons[a->reason_count++], sizeof a->reasons[0], fmt, args);
	va_end(args);
}

void mb_advice_front(struct mb_advice *a)
{
	for (int i = 0; i < a->count; i++) {
		struct mb_option *o = &a->options[i];

		o->on_front = o->t.verdict != MB_ILLEGAL;
		for (int j = 0; j < a->count && o->on_front; j++) {
			const struct mb_trial *t = &a->options[j].t, *u = &o->t;
			bool no_worse = t->step_s <= u->step_s && t->peak_bytes <= u->peak_bytes;
			bool better = t->step_s < u->step_s || t->peak_bytes < u->peak_bytes;

			if (t->verdict != MB_ILLEGAL && no_worse && (better || j < i))
				o->on_front = false;
		}
	}
}

void mb_advice_tell_illegal(struct mb_advice *a, const struct mb_trial *t)
{
	mb_advice_reason(a, "The run breaks %s and would stop at launch whatever is chosen here; mbsim check says how to mend it.",
	                 t->broken ? t->broken->id : "a size rule");
}

bool mb_advice_hopeless(const struct mb_trial *t)
{
	unsigned choices = 1u << MB_P_DISPATCHER | 1u << MB_P_EP_OVERLAP | 1u << MB_P_SHARED_OVERLAP | 1u << MB_P_GRAPH | 1u << MB_P_RECOMPUTE | 1u << MB_P_VP;

	return t->broken && !(t->broken->reads & choices);
}

bool mb_option_usable(const struct mb_option *o)
{
	return o->t.sized && (o->t.verdict == MB_FITS || o->t.verdict == MB_AT_RISK);
}

void mb_module_words(unsigned modules, char *text, size_t size)
{
	size_t n = 0;

	snprintf(text, size, "none");
	for (const struct mb_name *m = mb_module_names; m->name && n < size; m++) {
		if (modules & (unsigned)m->value)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "," : "", m->name);
	}
}

/* Beyond a tenth of the step, launches and not arithmetic decide what an option costs. */
bool mb_host_bound(const struct mb_trial *t)
{
	return t->sized && t->host_s > 0.1 * t->step_s;
}

const char *mb_dispatcher_word(const struct mb_plan *p)
{
	if (p->dispatcher == MB_DISPATCH_FLEX && p->backend != MB_BACKEND_NONE)
		return mb_value_name(mb_backend_names, p->backend);
	return p->dispatcher == MB_DISPATCH_ALLGATHER ? "allgather" : "alltoall";
}

/*
 * What the run says, else the framework's default: DeepEP 20 [fused_a2a.py], HybridEP 16 [transformer_config.py]; NCCL
 * takes one for each channel, of which it opens 16 by default on these machines.
 */
int mb_dispatcher_sms(const struct mb_case *c, const struct mb_plan *p)
{
	if (p->dispatcher != MB_DISPATCH_FLEX || p->backend == MB_BACKEND_NONE)
		return 16;
	if (c->run.moe_flex_dispatcher_num_sms > 0)
		return c->run.moe_flex_dispatcher_num_sms;
	return p->backend == MB_BACKEND_DEEPEP ? 20 : 16;
}

void mb_exchange_fill(const struct mb_bench *b, const struct mb_trial *t, struct mb_exchange *ret)
{
	const struct mb_case *c = &b->now.c;
	const struct mb_plan *p = &t->run.plan;
	const struct mb_traffic_cost *out = &t->traffic[MB_TRAFFIC_EP_DISPATCH], *back = &t->traffic[MB_TRAFFIC_EP_COMBINE];
	double members = fmin(fmax(floor(c->domain / (double)p->etp), 1), p->ep);

	*ret = (struct mb_exchange){ 0 };
	ret->across_bytes = out->remote_bytes + back->remote_bytes;
	ret->inside_bytes = out->bytes + back->bytes - ret->across_bytes;
	ret->busy_s = out->seconds + back->seconds;
	ret->exposed_s = out->exposed_seconds + back->exposed_seconds;
	ret->hidden_frac = ret->busy_s > 0 ? fmax(0, 1 - ret->exposed_s / ret->busy_s) : 0;
	ret->ranks = mb_distinct_groups(&c->model, p->ep);
	ret->domains = mb_distinct_groups(&c->model, ceil(p->ep / members));
	ret->sms = mb_dispatcher_sms(c, p);
}
