/* Which activations to recompute: every boundary of one layout, what it saves and costs, and the narrowest that will do. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/advice.h"
#include "plan/rules_private.h"

struct recompute {
	struct mb_bench b;
	struct mb_advice *a;
	/* Of the reference: what its peak holds. */
	double chunk_saved[MB_MAX_CHUNKS];
	double chunks_in_flight;        /* of each virtual stage, on average */
	int stage, pp, vp, layers;      /* layers of the largest chunk */
	unsigned useful;                /* modules that save something worth naming */
	unsigned idle;                  /* modules that no layer of the model has */
};

/* Next to nothing: half a thousandth of the peak. */
static bool is_something(const struct recompute *r, double bytes)
{
	return bytes > 5e-4 * r->a->options[r->a->reference].t.peak_bytes;
}

static void set_reference(struct recompute *r, const struct mb_trial *t)
{
	const struct mb_evaluation *e = r->b.e;

	r->stage = t->stage;
	r->pp = e->dims.pp;
	r->vp = e->dims.vp;
	r->chunks_in_flight = (double)t->in_flight_chunks / r->vp;
	memcpy(r->chunk_saved, e->chunk_saved_bytes, (size_t)(r->pp * r->vp) * sizeof r->chunk_saved[0]);
	for (int j = 0; j < e->split.chunk_count; j++)
		r->layers = e->split.chunks[j].layers > r->layers ? e->split.chunks[j].layers : r->layers;
}

static double saved_bytes(const struct recompute *r)
{
	const struct mb_evaluation *e = r->b.e;
	double saved = 0;

	for (int v = 0; v < r->vp; v++)
		saved += r->chunk_saved[v * r->pp + r->stage] - e->chunk_saved_bytes[v * r->pp + r->stage];
	return saved * r->chunks_in_flight;
}

static void compare(const struct recompute *r, struct mb_option *o)
{
	static const enum mb_traffic axes[3] = { MB_TRAFFIC_TP, MB_TRAFFIC_CP, MB_TRAFFIC_EP_DISPATCH };
	const struct mb_trial *t = &o->t, *ref = &r->a->options[r->a->reference].t;

	if (!t->sized)
		return;
	o->saved_bytes = o->kind == MB_OPTION_NONE ? 0 : saved_bytes(r);
	o->lowers_bytes = ref->peak_bytes - t->peak_bytes;
	o->step_frac = t->step_s / ref->step_s - 1;
	for (int i = 0; i < 3; i++)
		o->replayed_bytes[i] = t->traffic[axes[i]].bytes - ref->traffic[axes[i]].bytes;
	o->replayed_bytes[2] += t->traffic[MB_TRAFFIC_EP_COMBINE].bytes - ref->traffic[MB_TRAFFIC_EP_COMBINE].bytes;
}

/* Saved bytes that do not lower the peak: what needs the rest. */
static void note_floor(const struct recompute *r, struct mb_option *o)
{
	const struct mb_trial *t = &o->t, *ref = &r->a->options[r->a->reference].t;

	if (!t->sized || !is_something(r, o->saved_bytes) || o->lowers_bytes > 0.9 * o->saved_bytes)
		return;
	if (t->stage != ref->stage)
		mb_option_note(o, "stage %d binds now", t->stage);
	else if (t->phase == MB_PHASE_REPLAY)
		mb_option_note(o, "the replay brings back one layer at a time");
}

/* What the rules say about it: why it is illegal, changed or without effect. */
static void note_rules(struct recompute *r, struct mb_option *o)
{
	struct mb_violation list[MB_MAX_VIOLATIONS];
	int count = mb_check(&r->b.now, &r->b.now.c.run.plan, list);

	for (int i = 0; i < count; i++) {
		const char *id = list[i].rule->id;

		if (list[i].rule->severity == MB_RULE_ERROR)
			mb_option_note(o, "illegal, %s: %.160s", id, list[i].message);
		else if (id[0] == 'R' && strcmp(id, "R12") != 0)
			mb_option_note(o, "%.180s", list[i].message);
	}
}

static struct mb_option *try_recompute(struct recompute *r, enum mb_option_kind kind, enum mb_granularity granularity, unsigned modules,
                                       enum mb_method method, int layers, const char *name)
{
	struct mb_changes c = { 0 };
	struct mb_trial t;
	struct mb_option *o;

	mb_changes_recompute(&c, r->b.q, granularity, modules, method, layers);
	mb_bench_try(&r->b, &c, &t);
	if (kind == MB_OPTION_SET && t.verdict == MB_ILLEGAL)
		return NULL;
	o = mb_advice_add(r->a, kind, &t, "%s", name);
	if (kind == MB_OPTION_NONE) {
		r->a->reference = (int)(o - r->a->options);
		set_reference(r, &t);
	}
	compare(r, o);
	if (t.broken || kind == MB_OPTION_SINGLE)
		note_rules(r, o);
	note_floor(r, o);
	return o;
}

/* Why a module is worth nothing here, in few words. */
static void note_module(const struct recompute *r, struct mb_option *o, unsigned module)
{
	const struct mb_model *m = &r->b.q->c.model;
	int dense = 0;

	if (o->t.verdict == MB_ILLEGAL)
		return;
	for (int i = 0; i < m->num_layers; i++)
		dense += m->kinds[m->layers[i]].ffn == MB_FFN_DENSE;
	if (module == MB_CORE_ATTN && mb_attention_is_fused(&r->b.q->c.run))
		mb_option_note(o, "attention is fused: it keeps no scores, only the replay costs");
	else if (module == MB_MLP && mb_has_moe(m) && dense > 0)
		mb_option_note(o, "%d of %d layers are dense", dense, m->num_layers);
	else if (module == MB_LAYERNORM_MODULE && is_something(r, o->saved_bytes) && mb_host_bound(&o->t))
		mb_option_note(o, "launches, not FLOPs");
}

static void try_singles(struct recompute *r)
{
	for (const struct mb_name *m = mb_module_names; m->name; m++) {
		unsigned module = (unsigned)m->value;
		bool common = module <= MB_SHARED_EXPERTS;
		struct mb_changes c = { 0 };
		struct mb_trial t;

		mb_changes_recompute(&c, r->b.q, MB_RECOMPUTE_SELECTIVE, module, MB_METHOD_NONE, 0);
		mb_bench_try(&r->b, &c, &t);
		if (mb_modules_without_effect(&r->b.now.c, &r->b.now.c.run.plan) & module)
			r->idle |= module;
		if (!common && (t.verdict == MB_ILLEGAL || (r->idle & module)))
			continue;
		struct mb_option *o = try_recompute(r, MB_OPTION_SINGLE, MB_RECOMPUTE_SELECTIVE, module, MB_METHOD_NONE, 0, m->name);

		if (!(r->idle & module))
			note_module(r, o, module);
		if (o->t.verdict != MB_ILLEGAL && is_something(r, o->saved_bytes))
			r->useful |= module;
	}
}

/* Subsets of what saves something; 'moe' already replays what lies inside it. */
static void try_sets(struct recompute *r)
{
	const unsigned inside = MB_MOE_ACT | MB_SHARED_EXPERTS;

	for (unsigned set = 1; set < MB_FULL && r->a->count < MB_MAX_OPTIONS - 160; set++) {
		char name[96];

		if ((set & ~r->useful) || !(set & (set - 1)) || ((set & MB_MOE) && (set & inside)))
			continue;
		mb_module_words(set, name, sizeof name);
		try_recompute(r, MB_OPTION_SET, MB_RECOMPUTE_SELECTIVE, set, MB_METHOD_NONE, 0, name);
	}
}

static void try_full(struct recompute *r)
{
	struct mb_option *o = try_recompute(r, MB_OPTION_FULL, MB_RECOMPUTE_FULL, 0, MB_METHOD_UNIFORM, 1, "full, every layer");
	int stride = r->layers > 64 ? (r->layers + 63) / 64 : 1;
	char name[96];

	if (o->t.verdict == MB_ILLEGAL)
		return;
	for (int n = 1; n < r->layers; n += stride) {
		snprintf(name, sizeof name, "full, %d of %d layers", n, r->layers);
		try_recompute(r, MB_OPTION_FULL, MB_RECOMPUTE_FULL, 0, MB_METHOD_BLOCK, n, name);
	}
	for (int n = 2; n <= 8 && n <= r->layers; n *= 2) {
		snprintf(name, sizeof name, "full, groups of %d layers", n);
		try_recompute(r, MB_OPTION_FULL, MB_RECOMPUTE_FULL, 0, MB_METHOD_UNIFORM, n, name);
	}
}

static struct mb_option *try_offload(struct recompute *r, const struct mb_changes *more, const char *name)
{
	struct mb_changes c = { 0 };
	struct mb_trial t;
	struct mb_option *o;

	mb_changes_recompute(&c, r->b.q, MB_RECOMPUTE_NONE, 0, MB_METHOD_NONE, 0);
	mb_changes_merge(&c, r->b.q, more);
	mb_bench_try(&r->b, &c, &t);
	if (t.verdict == MB_ILLEGAL)
		return NULL;
	o = mb_advice_add(r->a, MB_OPTION_OFFLOAD, &t, "%s", name);
	compare(r, o);
	if (t.terms[MB_TIME_offload] > 0.01 * t.step_s)
		mb_option_note(o, "copies are longer than the compute beside them");
	return o;
}

static void try_offloads(struct recompute *r)
{
	const struct mb_query *q = r->b.q;
	unsigned all = 0;

	for (const struct mb_name *m = mb_offload_names; m->name; m++) {
		struct mb_changes c = { 0 };
		char name[96];
		const struct mb_option *o;

		snprintf(name, sizeof name, "offload %s", m->name);
		mb_changes_set(&c, q, MB_K_fine_offload, true);
		mb_changes_set(&c, q, MB_K_offload_modules, m->value);
		o = try_offload(r, &c, name);
		if (o && is_something(r, o->saved_bytes))
			all |= (unsigned)m->value;
		else if (o)
			r->a->count--;
	}
	if (all & (all - 1)) {
		struct mb_changes c = { 0 };

		mb_changes_set(&c, q, MB_K_fine_offload, true);
		mb_changes_set(&c, q, MB_K_offload_modules, all);
		try_offload(r, &c, "offload all of these");
	}
	for (int part = 1; part <= 2 && r->layers > 2; part++) {
		struct mb_changes c = { 0 };
		int layers = part == 1 ? r->layers / 2 : r->layers - 1;
		char name[96];

		snprintf(name, sizeof name, "offload %d whole layers", layers);
		mb_changes_set(&c, q, MB_K_cpu_offloading, true);
		mb_changes_set(&c, q, MB_K_cpu_offloading_layers, layers);
		try_offload(r, &c, name);
	}
}

static bool reaches(const struct mb_advice *a, const struct mb_option *o)
{
	return o->t.verdict == MB_FITS && (a->target_bytes <= 0 || o->t.peak_bytes <= a->target_bytes);
}

/* Fastest; of equals the one that saves least, which is the narrowest boundary. */
static bool is_narrower(const struct mb_option *o, const struct mb_option *than)
{
	double difference = o->t.step_s / than->t.step_s - 1;

	if (fabs(difference) > 1e-3)
		return difference < 0;
	return o->saved_bytes < than->saved_bytes;
}

static int narrowest(const struct mb_advice *a, bool (*wanted)(const struct mb_advice *, const struct mb_option *), bool offload)
{
	int best = -1;

	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];

		if ((o->kind == MB_OPTION_OFFLOAD) != offload || !wanted(a, o))
			continue;
		if (best < 0 || is_narrower(o, &a->options[best]))
			best = i;
	}
	return best;
}

static bool is_at_risk(const struct mb_advice *a, const struct mb_option *o)
{
	return a->target_bytes <= 0 && o->t.verdict == MB_AT_RISK;
}

static double lowest_peak(const struct mb_advice *a)
{
	double low = INFINITY;

	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];

		if (mb_option_usable(o) && (o->kind == MB_OPTION_SINGLE || o->kind == MB_OPTION_SET))
			low = fmin(low, o->t.peak_bytes);
	}
	return low;
}

/* Whether what the widest boundary saves lowers the peak by as much, or runs into a floor. */
static bool has_floor(const struct mb_advice *a)
{
	const struct mb_option *widest = NULL;

	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];

		if (mb_option_usable(o) && (o->kind == MB_OPTION_SINGLE || o->kind == MB_OPTION_SET) && (!widest || o->saved_bytes > widest->saved_bytes))
			widest = o;
	}
	return widest && widest->lowers_bytes < 0.9 * widest->saved_bytes;
}

static double price(const struct mb_option *o)
{
	return fmax(o->step_frac, 0) / o->lowers_bytes;
}

/*
 * The narrowest boundary that helps: at a floor the fastest that reaches it, nine tenths of the most; else the one that
 * pays least for its bytes among those that lower the peak by a third of the most.
 */
static int find_shrink(const struct mb_advice *a)
{
	double ref = a->options[a->reference].t.peak_bytes, most = ref - lowest_peak(a);
	bool floor = has_floor(a);
	int best = -1;

	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];

		if (!mb_option_usable(o) || (o->kind != MB_OPTION_SINGLE && o->kind != MB_OPTION_SET) || o->lowers_bytes < 5e-4 * ref
		    || o->lowers_bytes < (floor ? 0.9 : 0.33) * most)
			continue;
		if (best < 0 || (floor ? is_narrower(o, &a->options[best]) : price(o) < price(&a->options[best])))
			best = i;
	}
	return best;
}

static void recommend(struct mb_advice *a)
{
	const struct mb_option *now = a->now >= 0 ? &a->options[a->now] : &a->options[a->reference];

	a->needed = !reaches(a, &a->options[a->reference]);
	a->recommended = narrowest(a, reaches, false);
	if (a->recommended < 0)
		a->recommended = narrowest(a, reaches, true);
	if (a->recommended < 0)
		a->recommended = narrowest(a, is_at_risk, false);
	if (a->recommended < 0)
		a->recommended = narrowest(a, is_at_risk, true);
	a->shrink = find_shrink(a);
	a->host_bound = mb_host_bound(&now->t);
}

/* Rows of the short table. */
static void choose_rows(struct recompute *r)
{
	struct mb_advice *a = r->a;
	int blocks = 0, others = 0;

	for (int i = 0; i < a->count; i++) {
		struct mb_option *o = &a->options[i];
		bool idle = o->kind == MB_OPTION_SINGLE && !(r->useful & o->t.run.plan.recompute_modules) && o->t.verdict != MB_ILLEGAL;
		bool core = o->kind == MB_OPTION_SINGLE && (o->t.run.plan.recompute_modules & MB_CORE_ATTN);

		switch (o->kind) {
		case MB_OPTION_NONE:
		case MB_OPTION_NOW:
			o->listed = true;
			break;
		case MB_OPTION_SINGLE:
			o->listed = !idle || (core && !(r->idle & MB_CORE_ATTN));
			break;
		case MB_OPTION_FULL:
			o->listed = o->t.run.plan.recompute_method == MB_METHOD_UNIFORM ? o->t.run.plan.recompute_num_layers == 1
			            : o->on_front && blocks++ < 3;
			break;
		default:
			o->listed = o->on_front && others++ < 6;
			break;
		}
	}
	if (a->recommended >= 0)
		a->options[a->recommended].listed = true;
	if (a->shrink >= 0)
		a->options[a->shrink].listed = true;
}

/* What could lower a floor that recompute does not move; the first that does. */
static void next_lever(struct recompute *r, const struct mb_option *best)
{
	static const struct { enum mb_phase phase; enum mb_key_id key[3]; long long value[3]; const char *words; } levers[] = {
		{ MB_PHASE_LOSS, { MB_K_ce_fusion, MB_K_ce_impl, MB_K_ce_impl }, { true, MB_CE_TE, MB_CE_TE }, "Transformer Engine's fused cross entropy" },
		{ MB_PHASE_OPTIMIZER, { MB_K_dist_opt, MB_K_dist_opt, MB_K_dist_opt }, { true, true, true }, "optimizer states over data parallelism" },
		{ MB_PHASE_OPTIMIZER, { MB_K_pao, MB_K_exp_avg, MB_K_exp_avg_sq }, { true, MB_DT_BF16, MB_DT_BF16 },
		  "moments in bf16, which changes what is learnt" },
		{ MB_PHASE_OPTIMIZER, { MB_K_opt_offload, MB_K_opt_offload, MB_K_opt_offload }, { true, true, true },
		  "optimizer states on the host, a slow step" },
	};

	for (size_t i = 0; i < sizeof levers / sizeof levers[0]; i++) {
		struct mb_changes c = best->t.changes;
		struct mb_trial t;

		if (levers[i].phase != best->t.phase)
			continue;
		for (int k = 0; k < 3; k++)
			mb_changes_set(&c, r->b.q, levers[i].key[k], levers[i].value[k]);
		mb_bench_try(&r->b, &c, &t);
		if (t.verdict == MB_ILLEGAL || t.peak_bytes > 0.99 * best->t.peak_bytes)
			continue;
		mb_advice_reason(r->a, "Next lever: %s, %.1f instead of %.1f GiB.", levers[i].words, t.peak_bytes / 1073741824.0,
		                 best->t.peak_bytes / 1073741824.0);
		return;
	}
}

static void explain_floor(struct recompute *r)
{
	struct mb_advice *a = r->a;
	const struct mb_option *best = NULL;
	double gib = 1073741824.0, most = 0;

	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];

		if (mb_option_usable(o) && (o->kind == MB_OPTION_SINGLE || o->kind == MB_OPTION_SET) && o->saved_bytes > most) {
			most = o->saved_bytes;
			best = o;
		}
	}
	if (!best || !is_something(r, most) || best->lowers_bytes > 0.9 * most)
		return;
	if (best->t.phase == MB_PHASE_OPTIMIZER)
		mb_advice_reason(a, "Savings do not add up: the optimizer step needs %.2f GiB whatever you recompute, %.1f of them an fp32 copy of the "
		                 "gradients.", best->t.peak_bytes / gib, best->t.memory[MB_MEM_gradient_copy] / gib);
	else if (best->t.stage != r->stage)
		mb_advice_reason(a, "Savings do not add up: stage %d binds once stage %d keeps less.", best->t.stage, r->stage);
	else
		mb_advice_reason(a, "Savings do not add up: %.1f GiB are saved, but the %s then needs %.1f GiB beside what is kept.", most / gib,
		                 mb_phase_names[best->t.phase], (best->t.memory[MB_MEM_transient] + best->t.memory[MB_MEM_loss]) / gib);
	next_lever(r, best);
}

static void explain(struct recompute *r)
{
	struct mb_advice *a = r->a;
	const struct mb_option *ref = &a->options[a->reference];
	char words[128];

	explain_floor(r);
	if (a->reason_count == 0 && ref->t.phase == MB_PHASE_OPTIMIZER) {
		mb_advice_reason(a, "The peak is the optimizer step: no boundary lowers it.");
		next_lever(r, ref);
	}
	if (r->idle) {
		mb_module_words(r->idle & (MB_FULL - 1) & ((MB_SHARED_EXPERTS << 1) - 1), words, sizeof words);
		if (strcmp(words, "none") != 0)
			mb_advice_reason(a, "Without effect here, no layer of %s keeps anything for it: %s.", r->b.q->c.model.name, words);
	}
	if (a->host_bound)
		mb_advice_reason(a, "Host-bound (%s, %lld micro-batch%s): what a replay costs is launches, not FLOPs. Trust the percentages; absolute "
		                 "times may be a third low.", ref->t.run.plan.cuda_graph_impl == MB_GRAPH_NONE ? "eager" : "graphs",
		                 (long long)ref->t.micro_batches, ref->t.micro_batches == 1 ? "" : "es");
}

void mb_advise_recompute(const struct mb_query *q, double target_bytes, struct mb_evaluation *e, struct mb_arena *arena,
                         struct mb_advice *ret)
{
	struct recompute *r = mb_arena_alloc(arena, sizeof *r);
	const struct mb_changes nothing = { 0 };
	struct mb_trial t;

	mb_advice_init(ret, MB_TOPIC_RECOMPUTE, q, arena);
	ret->target_bytes = target_bytes;
	r->a = ret;
	mb_bench_init(&r->b, q, e);
	try_recompute(r, MB_OPTION_NONE, MB_RECOMPUTE_NONE, 0, MB_METHOD_NONE, 0, "none");
	if (ret->options[ret->reference].t.broken || !ret->options[ret->reference].t.sized) {
		mb_advice_tell_illegal(ret, &ret->options[ret->reference].t);
		return;
	}
	try_singles(r);
	try_sets(r);
	try_full(r);
	try_offloads(r);
	for (int i = 0; i < ret->count && ret->now < 0; i++)
		ret->now = mb_changes_count(&ret->options[i].t.changes) == 0 ? i : -1;
	if (ret->now < 0) {
		mb_bench_try(&r->b, &nothing, &t);
		compare(r, mb_advice_add(ret, MB_OPTION_NOW, &t, "as it is now"));
		ret->now = ret->count - 1;
	}
	mb_advice_front(ret);
	recommend(ret);
	choose_rows(r);
	explain(r);
}
