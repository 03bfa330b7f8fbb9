/* Which token dispatcher: volume, time and memory of each on this machine and this expert-parallel size. */
#include <math.h>
#include <stdio.h>

#include "advise/advice.h"
#include "plan/rules_private.h"

static const struct { enum mb_dispatcher dispatcher; enum mb_backend backend; } dispatchers[] = {
	{ MB_DISPATCH_ALLTOALL, MB_BACKEND_NONE }, { MB_DISPATCH_FLEX, MB_BACKEND_HYBRIDEP }, { MB_DISPATCH_FLEX, MB_BACKEND_DEEPEP },
	{ MB_DISPATCH_ALLGATHER, MB_BACKEND_NONE },
};

static const enum mb_key_id pinned[] = {
	MB_K_dispatcher, MB_K_backend, MB_K_tp, MB_K_cp, MB_K_pp, MB_K_ep, MB_K_etp, MB_K_mbs, MB_K_gpus,
};

enum { PINNED = sizeof pinned / sizeof pinned[0] };

/* What the environment should say [nemo and hybrid-ep documentation]. */
static void note_environment(const struct mb_case *c, const struct mb_plan *p, struct mb_option *o)
{
	int members = c->domain / p->etp < p->ep ? c->domain / p->etp : p->ep;

	if (p->backend == MB_BACKEND_HYBRIDEP)
		mb_option_note(o, "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=%d NVLINK_DOMAIN_SIZE=%d%s", members > 0 ? members : 1, c->hardware.nvlink_domain,
		               c->hardware.nvlink_domain > c->hardware.gpus_per_node ? " USE_MNNVL=1" : "");
	if (p->overlap_moe_expert_parallel_comm)
		mb_option_note(o, "CUDA_DEVICE_MAX_CONNECTIONS=%d", p->dispatcher == MB_DISPATCH_FLEX ? 32 : 8);
}

static void note_support(const struct mb_bench *b, const struct mb_rule *broken, struct mb_option *o)
{
	const struct mb_plan *p = &o->t.run.plan;

	if (broken) {
		mb_option_note(o, "illegal, %s: %.150s", broken->id, broken->says);
		return;
	}
	if (o->t.verdict == MB_OUT_OF_MEMORY)
		mb_option_note(o, "does not fit: %.1f GiB too much", -o->t.margin_bytes / 1073741824.0);
	if (p->dispatcher == MB_DISPATCH_ALLGATHER && p->ep > b->q->c.model.moe_router_topk)
		mb_option_note(o, "every rank gets every token: sensible only while EP is below top-k");
}

static int find(const struct mb_advice *a, enum mb_backend backend, enum mb_dispatcher dispatcher)
{
	for (int i = 0; i < a->count; i++) {
		const struct mb_plan *p = &a->options[i].t.run.plan;

		if (p->dispatcher == dispatcher && p->backend == backend && a->options[i].kind != MB_OPTION_NOW)
			return i;
	}
	return -1;
}

static void try_dispatcher(struct mb_bench *b, struct mb_advice *a, int i)
{
	struct mb_changes c = { 0 };
	struct mb_trial t;
	struct mb_option *o;
	const struct mb_rule *broken;
	const struct mb_trial *now = &a->options[0].t;

	mb_changes_set(&c, b->q, MB_K_dispatcher, dispatchers[i].dispatcher);
	mb_changes_set(&c, b->q, MB_K_backend, dispatchers[i].backend);
	mb_bench_mend(b, &c, pinned, PINNED, &broken);
	mb_bench_try(b, &c, &t);
	o = mb_advice_add(a, MB_OPTION_OTHER, &t, "%s", mb_dispatcher_word(&t.run.plan));
	o->listed = true;
	note_support(b, broken, o);
	if (!t.sized)
		return;
	mb_exchange_fill(b, &t, &o->x);
	o->step_frac = now->sized ? t.step_s / now->step_s - 1 : 0;
	o->lowers_bytes = now->sized ? now->peak_bytes - t.peak_bytes : 0;
	if (!broken)
		note_environment(&b->q->c, &o->t.run.plan, o);
}

/* Fastest usable; the run's own, or the earlier of two closer than one percent. */
static int pick(const struct mb_advice *a)
{
	int best = mb_option_usable(&a->options[a->now]) ? a->now : -1;

	for (int i = 0; i < a->count; i++) {
		if (!mb_option_usable(&a->options[i]))
			continue;
		if (best < 0 || a->options[i].t.step_s < 0.99 * a->options[best].t.step_s)
			best = i;
	}
	return best;
}

static void tell(struct mb_bench *b, struct mb_advice *a)
{
	const struct mb_plan *p = &b->q->c.run.plan;
	const struct mb_model *m = &b->q->c.model;
	int deepep = find(a, MB_BACKEND_DEEPEP, MB_DISPATCH_FLEX), hybridep = find(a, MB_BACKEND_HYBRIDEP, MB_DISPATCH_FLEX);
	const struct mb_option *flex = &a->options[hybridep >= 0 ? hybridep : 0], *best;

	if (a->recommended < 0) {
		mb_advice_reason(a, "No dispatcher is legal and fits: mbsim advise oom says what would make it fit.");
		return;
	}
	best = &a->options[a->recommended];
	mb_advice_reason(a, "A token goes to %d experts on %.2f of %d ranks in %.2f NVLink domain%s: alltoall sends %d copies, flex one for each %s.",
	                 m->moe_router_topk, flex->x.ranks, p->ep, flex->x.domains, flex->x.domains > 1 ? "s" : "", m->moe_router_topk,
	                 flex->x.domains > 1 ? "domain, then one for each rank" : "rank");
	if (best->x.across_bytes <= 0)
		mb_advice_reason(a, "EP %d stays inside one NVLink domain: the choice matters less than across nodes.", p->ep);
	if (deepep >= 0 && hybridep >= 0 && mb_option_usable(&a->options[deepep]) && mb_option_usable(&a->options[hybridep])
	    && fabs(a->options[deepep].t.step_s / a->options[hybridep].t.step_s - 1) < 0.03) {
		a->options[deepep].tie = a->options[hybridep].tie = true;
		mb_advice_reason(a, "DeepEP and HybridEP tie in time; DeepEP waits for the host, so only HybridEP goes with graphs over moe or the iteration.");
	}
	if (mb_host_bound(&best->t))
		mb_advice_reason(a, "Host-bound: %.0f %% of the step waits for launches; graphs over moe_router and moe_preprocess come first.",
		                 100 * best->t.host_s / best->t.step_s);
}

void mb_advise_dispatcher(const struct mb_query *q, struct mb_evaluation *e, struct mb_arena *arena, struct mb_advice *ret)
{
	const struct mb_changes nothing = { 0 };
	struct mb_bench *b = mb_arena_alloc(arena, sizeof *b);
	struct mb_option *now;
	struct mb_trial t;

	mb_advice_init(ret, MB_TOPIC_DISPATCHER, q, arena);
	mb_bench_init(b, q, e);
	mb_bench_try(b, &nothing, &t);
	now = mb_advice_add(ret, MB_OPTION_NOW, &t, "as it is now");
	now->listed = true;
	ret->now = ret->reference = 0;
	if (t.sized)
		mb_exchange_fill(b, &t, &now->x);
	if (!mb_has_moe(&q->c.model) || (int64_t)q->c.run.plan.ep * q->c.run.plan.etp <= 1) {
		mb_advice_reason(ret, mb_has_moe(&q->c.model) ? "EP x ETP is 1: every expert is on every rank and nothing is dispatched."
		                 : "The model has no experts, so there is nothing to dispatch.");
		ret->recommended = mb_option_usable(now) ? 0 : -1;
		return;
	}
	if (mb_advice_hopeless(&t)) {
		mb_advice_tell_illegal(ret, &t);
		return;
	}
	for (size_t i = 0; i < sizeof dispatchers / sizeof dispatchers[0]; i++)
		try_dispatcher(b, ret, (int)i);
	for (int i = 1; i < ret->count && ret->now == 0; i++) {
		if (mb_changes_count(&ret->options[i].t.changes) == 0) {
			ret->options[0].listed = false;
			ret->now = ret->reference = i;
		}
	}
	ret->recommended = pick(ret);
	mb_advice_front(ret);
	tell(b, ret);
	ret->host_bound = mb_host_bound(&ret->options[ret->now].t);
}
