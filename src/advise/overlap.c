/* Whether to overlap expert-parallel communication, and with which dispatcher: the same run with each, requirements met. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/advice.h"
#include "plan/rules_private.h"

enum mode { OFF, ON, DELAY, MODES };

static const struct { enum mb_dispatcher dispatcher; enum mb_backend backend; } transports[] = {
	{ MB_DISPATCH_ALLTOALL, MB_BACKEND_NONE }, { MB_DISPATCH_FLEX, MB_BACKEND_HYBRIDEP }, { MB_DISPATCH_FLEX, MB_BACKEND_DEEPEP },
};

enum { TRANSPORTS = sizeof transports / sizeof transports[0], ROUTER_SCOPE = MB_SCOPE_MOE_ROUTER | MB_SCOPE_MOE_PREPROCESS };

/* The layout and what the option is about stay; virtual stages may come. */
static const enum mb_key_id pinned[] = {
	MB_K_dispatcher, MB_K_backend, MB_K_ep_overlap, MB_K_delay_wgrad, MB_K_tp, MB_K_cp, MB_K_pp, MB_K_ep, MB_K_etp, MB_K_mbs, MB_K_gpus,
};

enum { PINNED = sizeof pinned / sizeof pinned[0] };

struct overlap {
	struct mb_bench b;
	struct mb_advice *a;
	int at[TRANSPORTS][2][MODES];   /* options, with and without router graphs; -1: none */
};

static bool captures_router(const struct mb_plan *p)
{
	return mb_whole_iteration(p) || (p->cuda_graph_impl != MB_GRAPH_NONE && (p->cuda_graph_scope == 0 || (p->cuda_graph_scope & ROUTER_SCOPE)));
}

/* Full recompute and 'moe' replay dispatch and combine, which the overlap owns: the narrowest other set that fits. */
static void keep_off_experts(struct overlap *o, struct mb_changes *c)
{
	static const unsigned sets[] = { 0, MB_MOE_ACT, MB_MOE_ACT | MB_LAYERNORM_MODULE, MB_MOE_ACT | MB_LAYERNORM_MODULE | MB_MLA_UP_PROJ };
	const struct mb_plan *p = &o->b.q->c.run.plan;
	unsigned keep = p->recompute_modules & ~(unsigned)MB_MOE;

	if (p->recompute == MB_RECOMPUTE_NONE || (p->recompute == MB_RECOMPUTE_SELECTIVE && !(p->recompute_modules & MB_MOE)))
		return;
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		struct mb_changes next = *c;
		struct mb_trial t;

		mb_changes_recompute(&next, o->b.q, MB_RECOMPUTE_SELECTIVE, p->recompute == MB_RECOMPUTE_FULL ? sets[i] : keep | sets[i], MB_METHOD_NONE, 0);
		mb_bench_try(&o->b, &next, &t);
		if (t.verdict == MB_FITS || i + 1 == sizeof sets / sizeof sets[0]) {
			*c = next;
			return;
		}
	}
}

static void set_overlap(struct overlap *o, enum mode mode, struct mb_changes *c)
{
	const struct mb_query *q = o->b.q;

	mb_changes_set(c, q, MB_K_ep_overlap, mode != OFF);
	mb_changes_set(c, q, MB_K_delay_wgrad, mode == DELAY);
	if (mode == OFF) {
		mb_changes_set(c, q, MB_K_early_release, false);
		return;
	}
	keep_off_experts(o, c);
	if (q->c.run.cuda_device_max_connections == 1)
		c->max_connections = mb_changes_has(c, MB_K_backend) || q->c.run.plan.dispatcher == MB_DISPATCH_FLEX ? 32 : 8;
}

/* The share of the exchange that the schedule hides is known to a factor: the gain at either end of its band. */
static void gain_band(struct overlap *o, const struct mb_option *off, struct mb_option *on)
{
	const struct mb_case *c = &o->b.q->c;
	bool whole = mb_whole_iteration(&on->t.run.plan);
	enum mb_param_id id = whole ? MB_PARAM_overlap_graph_frac : MB_PARAM_overlap_eager_frac;
	double *param = whole ? &o->b.now.c.params.overlap_graph_frac : &o->b.now.c.params.overlap_eager_frac;
	double given = *param, sigma = c->stack.provenance[id].sigma, factor;
	struct mb_trial t;

	/* Two studies on one machine found 0.44 and 0.54 of the exchange's time saved: a fifth either way. */
	factor = exp(1.2816 * fmax(sigma, 0.2));
	*param = given / factor;
	mb_bench_try(&o->b, &on->t.changes, &t);
	on->x.gain_low_frac = 1 - t.step_s / off->t.step_s;
	*param = fmin(given * factor, 1);
	mb_bench_try(&o->b, &on->t.changes, &t);
	on->x.gain_high_frac = 1 - t.step_s / off->t.step_s;
	*param = given;
	on->x.gain_frac = 1 - on->t.step_s / off->t.step_s;
}

static void compare(struct overlap *o, struct mb_option *option, const struct mb_option *off)
{
	const struct mb_trial *now = &o->a->options[o->a->now].t;

	if (!option->t.sized)
		return;
	mb_exchange_fill(&o->b, &option->t, &option->x);
	option->step_frac = now->sized ? option->t.step_s / now->step_s - 1 : 0;
	option->lowers_bytes = now->sized ? now->peak_bytes - option->t.peak_bytes : 0;
	if (off && off->t.sized && off != option)
		gain_band(o, off, option);
}

static void try_option(struct overlap *o, int transport, bool graphs, enum mode mode)
{
	const struct mb_query *q = o->b.q;
	static const char *const words[MODES] = { "off", "on", "on, delay" };
	int *off_at = &o->at[transport][graphs][OFF];
	struct mb_changes c = { 0 };
	struct mb_option *option;
	struct mb_trial t;
	const struct mb_rule *broken = NULL;

	mb_changes_set(&c, q, MB_K_dispatcher, transports[transport].dispatcher);
	mb_changes_set(&c, q, MB_K_backend, transports[transport].backend);
	if (graphs) {
		mb_changes_set(&c, q, MB_K_graph_impl, MB_GRAPH_TE);
		mb_changes_set(&c, q, MB_K_graph_scope, ROUTER_SCOPE);
		mb_changes_set(&c, q, MB_K_te_rng, true);
	}
	set_overlap(o, mode, &c);
	mb_bench_mend(&o->b, &c, pinned, PINNED, &broken);
	mb_bench_try(&o->b, &c, &t);
	if (graphs && t.verdict == MB_ILLEGAL)
		return;
	option = mb_advice_add(o->a, MB_OPTION_OTHER, &t, "%s%s, overlap %s", mb_dispatcher_word(&t.run.plan), graphs ? " *" : "", words[mode]);
	o->at[transport][graphs][mode] = (int)(option - o->a->options);
	if (broken)
		mb_option_note(option, "illegal, %s: %.150s", broken->id, broken->says);
	else if (t.verdict == MB_OUT_OF_MEMORY)
		mb_option_note(option, "does not fit: %.1f GiB too much", -t.margin_bytes / 1073741824.0);
	if (mode == DELAY)
		option->tie = true;
	compare(o, option, mode != OFF && *off_at >= 0 ? &o->a->options[*off_at] : NULL);
	if (mode == DELAY)
		mb_option_note(option, "tie with plain overlap: no clear win is known");
}

/* Fastest that is legal and fits; delayed weight gradients never come first; a tie stays with fewer changes. */
static int pick(const struct mb_advice *a)
{
	int best = -1;

	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];
		double difference;

		if (!mb_option_usable(o) || (o->tie && o->t.run.plan.delay_wgrad_compute && i != a->now))
			continue;
		if (best < 0) {
			best = i;
			continue;
		}
		difference = o->t.step_s / a->options[best].t.step_s - 1;
		if (a->options[best].t.verdict != o->t.verdict && fabs(difference) < 0.05) {
			best = o->t.verdict == MB_FITS ? i : best;
			continue;
		}
		if (difference < -0.01 || (difference < 0.01 && mb_changes_count(&o->t.changes) < mb_changes_count(&a->options[best].t.changes)))
			best = i;
	}
	return best;
}

/* Why overlap is not worth it: the first reasons that hold. */
static void tell_not_worth(struct mb_advice *a, const struct mb_option *off)
{
	const struct mb_plan *p = &off->t.run.plan;
	double share = off->x.busy_s / off->t.step_s;
	int count = 0;

	if (off->t.micro_batches == 1 && ++count)
		mb_advice_reason(a, "Not worth it here: with one micro-batch there is nothing to overlap with.");
	if (share < 0.05 && ++count)
		mb_advice_reason(a, "Not worth it here: dispatch and combine are only %.1f %% of the step.", 100 * share);
	if (off->x.across_bytes <= 0 && ++count)
		mb_advice_reason(a, "EP %d stays inside one NVLink domain, where the exchange is cheap.", p->ep);
	if (mb_whole_iteration(p) && ++count)
		mb_advice_reason(a, "The iteration is captured in a graph: the host's waits, half of what overlap saves, are gone already.");
	if (mb_host_bound(&off->t) && ++count)
		mb_advice_reason(a, "Host-bound: %.0f %% of the step waits for launches, which overlap does not shorten; graphs over moe_router and "
		                 "moe_preprocess come first.", 100 * off->t.host_s / off->t.step_s);
	if (count == 0)
		mb_advice_reason(a, "Not worth it here: the gain is inside what the model can tell.");
}

static void tell_requirements(struct overlap *o, const struct mb_option *chosen)
{
	static const struct { const char *id, *words; } names[] = {
		{ "EP1", "EP1 EP > 1" }, { "EP2", "EP2 dispatcher" }, { "EP3", "EP3 bf16" }, { "EP4", "EP4 torch" }, { "EP5", "EP5 virtual stages or no pipeline" },
		{ "EP6", "EP6 recompute" }, { "EP7", "EP7 no shared-expert overlap" }, { "EP8", "EP8 MTP" }, { "EP9", "EP9 graphs" },
	};
	struct mb_advice *a = o->a;
	struct mb_changes only = { 0 };
	struct mb_trial t;
	size_t n = 0;

	mb_changes_set(&only, o->b.q, MB_K_ep_overlap, true);
	mb_bench_try(&o->b, &only, &t);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		bool holds = true;

		for (int r = 0; r < mb_rule_count; r++) {
			if (strcmp(mb_rules[r].id, names[i].id) == 0 && mb_rules[r].severity == MB_RULE_ERROR && mb_rule_applies(&mb_rules[r], &o->b.now.c.stack))
				holds = holds && mb_rules[r].holds(&o->b.now.c, &o->b.now.c.run.plan);
		}
		if (holds && n < sizeof a->met)
			n += (size_t)snprintf(a->met + n, sizeof a->met - n, "%s%s", n ? ", " : "", names[i].words);
	}
	a->needs = chosen->t.changes;
	if (chosen->t.run.plan.overlap_moe_expert_parallel_comm)
		snprintf(a->forbids, sizeof a->forbids, "full and 'moe' recompute, moe_shared_expert_overlap, graphs over moe or mlp");
}

static void tell_gain(struct overlap *o, const struct mb_option *chosen)
{
	struct mb_advice *a = o->a;
	const struct mb_plan *p = &chosen->t.run.plan;
	const struct mb_option *now = &a->options[a->now];

	if (now->x.across_bytes > 0)
		mb_advice_reason(a, "EP %d spans more than one NVLink domain: alltoall sends a token once per expert (%d), a flex dispatcher once per "
		                 "domain (%.2f of them).", p->ep, o->b.q->c.model.moe_router_topk, chosen->x.domains);
	if (p->overlap_moe_expert_parallel_comm && chosen->x.gain_frac > 0)
		mb_advice_reason(a, "Overlap alone is worth %.0f %% (%.0f to %.0f): it hides %.0f %% of the exchange and the host's waits beside it.",
		                 100 * chosen->x.gain_frac, 100 * chosen->x.gain_low_frac, 100 * chosen->x.gain_high_frac, 100 * chosen->x.hidden_frac);
	if (p->overlap_moe_expert_parallel_comm)
		mb_advice_reason(a, "delay_wgrad_compute is a tie: try it last, and only if exchange still shows in a trace.");
}

static void number_trials(struct overlap *o)
{
	struct mb_advice *a = o->a;
	struct mb_option *chosen = &a->options[a->recommended];
	int rank = 0;

	for (int i = 0; i < TRANSPORTS; i++) {
		for (int g = 0; g < 2; g++) {
			int *at = o->at[i][g];

			if (at[ON] != a->recommended && at[OFF] != a->recommended)
				continue;
			if (at[OFF] >= 0 && at[OFF] != a->now && mb_option_usable(&a->options[at[OFF]]))
				a->options[at[OFF]].rank = ++rank;
			if (at[ON] == a->recommended)
				chosen->rank = ++rank;
			if (at[ON] == a->recommended && at[DELAY] >= 0 && mb_option_usable(&a->options[at[DELAY]]))
				a->options[at[DELAY]].rank = ++rank;
		}
	}
}

/* Graphs of the router are shown where they matter: eager flex rows give way to them. */
static void choose_rows(struct overlap *o)
{
	struct mb_advice *a = o->a;

	for (int i = 0; i < TRANSPORTS; i++) {
		int plain = o->at[i][0][ON], graphed = o->at[i][1][ON];
		bool better = plain >= 0 && graphed >= 0 && a->options[graphed].t.step_s < 0.98 * a->options[plain].t.step_s;

		for (int m = 0; m < MODES; m++) {
			if (o->at[i][0][m] >= 0)
				a->options[o->at[i][0][m]].listed = !better || i == 0 || o->at[i][0][m] == a->recommended;
			if (o->at[i][1][m] >= 0)
				a->options[o->at[i][1][m]].listed = better && i > 0;
		}
	}
	a->options[a->now].listed = true;
	if (a->recommended >= 0)
		a->options[a->recommended].listed = true;
}

/* The option that is the run as it is; a row of its own when it is none of them. */
static void find_now(struct overlap *o)
{
	struct mb_advice *a = o->a;

	for (int i = 1; i < a->count; i++) {
		if (mb_changes_count(&a->options[i].t.changes) == 0) {
			a->options[0].listed = false;
			a->now = i;
			return;
		}
	}
}

static void conclude(struct overlap *o)
{
	struct mb_advice *a = o->a;
	const struct mb_option *now = &a->options[a->now], *chosen;

	a->host_bound = mb_host_bound(&now->t);
	a->recommended = pick(a);
	if (a->recommended < 0) {
		mb_advice_reason(a, "No option is legal and fits: first make the run fit, mbsim advise oom.");
		return;
	}
	if (mb_option_usable(now) && a->options[a->recommended].t.step_s > 0.98 * now->t.step_s)
		a->recommended = a->now;
	chosen = &a->options[a->recommended];
	if (chosen->t.run.plan.overlap_moe_expert_parallel_comm) {
		tell_gain(o, chosen);
	} else {
		if (a->recommended != a->now)
			tell_gain(o, chosen);
		tell_not_worth(a, chosen);
	}
	tell_requirements(o, chosen);
	number_trials(o);
}

void mb_advise_overlap(const struct mb_query *q, struct mb_evaluation *e, struct mb_arena *arena, struct mb_advice *ret)
{
	struct overlap *o = mb_arena_alloc(arena, sizeof *o);
	const struct mb_changes nothing = { 0 };
	struct mb_option *now;
	struct mb_trial t;

	mb_advice_init(ret, MB_TOPIC_OVERLAP, q, arena);
	o->a = ret;
	mb_bench_init(&o->b, q, e);
	memset(o->at, -1, sizeof o->at);
	mb_bench_try(&o->b, &nothing, &t);
	now = mb_advice_add(ret, MB_OPTION_NOW, &t, "as it is now");
	now->listed = true;
	ret->now = ret->reference = 0;
	compare(o, now, NULL);
	if (!mb_has_moe(&q->c.model) || q->c.run.plan.ep <= 1) {
		mb_advice_reason(ret, mb_has_moe(&q->c.model) ? "EP is 1: there is no expert-parallel communication to overlap."
		                 : "The model has no experts: there is no expert-parallel communication to overlap.");
		ret->recommended = mb_option_usable(now) ? 0 : -1;
		return;
	}
	if (mb_advice_hopeless(&t)) {
		mb_advice_tell_illegal(ret, &t);
		return;
	}
	for (int i = 0; i < TRANSPORTS; i++) {
		for (int m = OFF; m < MODES; m++)
			try_option(o, i, false, m);
		for (int m = OFF; m < MODES && !captures_router(&q->c.run.plan); m++)
			try_option(o, i, true, m);
	}
	find_now(o);
	ret->reference = ret->now;
	conclude(o);
	choose_rows(o);
	mb_advice_front(ret);
}
