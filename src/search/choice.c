/* A recompute choice under a split, group and features: offloading and the optimizer, then the whole evaluation. */
#include "search/visit.h"

#include <string.h>

static void rank_plan(const struct mb_walk *w, const struct mb_evaluation *e, const struct mb_plan *p, struct mb_ranked *ret)
{
	*ret = (struct mb_ranked){ .plan = *p, .gpus = w->s->c.run.gpus, .verdict = e->verdict, .step_s = e->step_s, .low_s = e->low_s,
		.high_s = e->high_s, .tokens_per_s_per_gpu = e->tokens_per_s_per_gpu,
		.model_flop_per_s_per_gpu = e->model_flop_per_s_per_gpu, .mfu = e->mfu, .peak_bytes = e->peak_bytes,
		.device_used_bytes = e->device_used_bytes, .margin_bytes = e->margin_bytes };
}

/* Evaluates a complete plan; a rule that the tables did not foresee still excludes it. */
static enum mb_verdict evaluate(struct mb_visit *v, const struct mb_plan *p)
{
	const struct mb_rule *rule = mb_first_broken(&v->walk->s->c, p, MB_ALL_KEYS);
	struct mb_ranked r;

	if (rule) {
		v->w->tally.rules[rule - mb_rules]++;
		return MB_ILLEGAL;
	}
	mb_evaluate(&v->walk->s->c, p, v->w->e);
	v->w->tally.evaluated++;
	rank_plan(v->walk, v->w->e, p, &r);
	mb_walk_offer(v->walk, v->w, &r);
	return r.verdict;
}

/* Whether a moves less than b: nothing, a proper subset of its modules, or fewer layers. */
static bool moves_less(const struct mb_plan *a, const struct mb_plan *b)
{
	if (!mb_visit_offloads(a) || !mb_visit_offloads(b))
		return !mb_visit_offloads(a) && mb_visit_offloads(b);
	if (a->cpu_offloading || b->cpu_offloading)
		return a->cpu_offloading && b->cpu_offloading && a->cpu_offloading_num_layers < b->cpu_offloading_num_layers;
	return a->offload_modules != b->offload_modules && (a->offload_modules & ~b->offload_modules) == 0;
}

/* The complete plan. */
static void assemble(const struct mb_visit *v, const struct mb_visit_choice *c, int offload, int optimizer, struct mb_plan *ret)
{
	const struct mb_space *s = v->walk->s;

	*ret = v->w->p;
	mb_space_set_vp(s, v->table->vp, ret);
	mb_axis_copy(MB_P_SPLIT, &v->row->plan, ret);
	mb_set_group(s, &v->w->rows->groups->of[c->group], ret);
	mb_set_feature(s, &c->legal->f, ret);
	mb_axis_copy(MB_P_RECOMPUTE, mb_visit_recompute(v, c->recompute), ret);
	mb_axis_copy(MB_P_OFFLOAD, mb_visit_offload(v, offload), ret);
	mb_axis_copy(MB_P_OPTIMIZER, &s->axis[MB_P_OPTIMIZER].of[optimizer].plan, ret);
}

static void note_verdict(const struct mb_visit *v, struct mb_visit_choice *c, int offload, int o, enum mb_verdict verdict, double peak)
{
	if (verdict == MB_FITS && peak <= v->w->goal.max_peak_bytes && c->fit_count[o] < MB_MAX_FITTING)
		c->fit[o][c->fit_count[o]++] = (uint16_t)offload;
}

/* Who looks for speed offloads only where moving less does not fit. */
static bool is_needless(const struct mb_visit *v, const struct mb_visit_choice *c, int offload, int o)
{
	if (v->w->goal.aim != MB_AIM_STEP)
		return false;
	for (int i = 0; i < c->fit_count[o]; i++)
		if (moves_less(mb_visit_offload(v, c->fit[o][i]), mb_visit_offload(v, offload)))
			return true;
	return false;
}

/* The plan evaluated last must not be below its bounds. */
static void audit(struct mb_visit *v, double step_s, double peak)
{
	const struct mb_evaluation *e = v->w->e;

	if (e->verdict != MB_ILLEGAL && (step_s * (1 - 1e-9) - 1e-7 > e->step_s || peak * (1 - 1e-9) > e->peak_bytes))
		v->w->tally.unsound++;
}

/* Bounds that hold for every optimizer choice. */
static bool all_excluded(struct mb_visit *v, struct mb_visit_choice *c, const struct mb_chunk_costs *costs, int offload)
{
	double peak = mb_visit_peak(v, -1), step_s = mb_visit_step(v, costs, c->transfer_s, c->hop_s, -1);
	enum mb_bound bound = mb_visit_bound(v, step_s, peak, c->limit);

	if (bound == MB_WORTH)
		return false;
	for (int o = 0; o < MB_MAX_OPTIMIZERS; o++) {
		if (!(c->legal->optimizer >> o & 1))
			continue;
		if (mb_visit_offloads(mb_visit_offload(v, offload)) && is_needless(v, c, offload, o))
			v->w->tally.bounds[MB_COUNT_NEEDLESS]++;
		else
			mb_visit_count(v, bound, 1);
	}
	v->w->tally.costed++;
	return true;
}

/* Every optimizer choice beside chunks of known cost. */
static void try_optimizers(struct mb_visit *v, struct mb_visit_choice *c, const struct mb_chunk_costs *costs, int offload)
{
	bool selective = mb_visit_offloads(mb_visit_offload(v, offload));

	mb_visit_flight(v, costs, v->flown);
	if (all_excluded(v, c, costs, offload))
		return;
	for (int o = 0; o < MB_MAX_OPTIMIZERS; o++) {
		enum mb_verdict verdict;
		enum mb_bound bound;
		struct mb_plan p;
		double peak, step_s = 0;

		if (!(c->legal->optimizer >> o & 1))
			continue;
		if (selective && is_needless(v, c, offload, o)) {
			v->w->tally.bounds[MB_COUNT_NEEDLESS]++;
			continue;
		}
		v->w->tally.costed++;
		peak = mb_visit_peak(v, o);
		bound = mb_visit_bound(v, 0, peak, c->limit);
		if (bound == MB_WORTH) {
			step_s = mb_visit_step(v, costs, c->transfer_s, c->hop_s, o);
			bound = mb_best_bound(&v->w->goal, step_s, peak);
		}
		if (bound == MB_WORTH && mb_visit_has_waits(v))
			bound = mb_best_bound(&v->w->goal, mb_visit_tight_step(v, costs, c->transfer_s, c->hop_s, v->flown == MB_FLIGHTS_OVERLAP, o), peak);
		if (bound != MB_WORTH) {
			mb_visit_count(v, bound, 1);
			continue;
		}
		assemble(v, c, offload, o, &p);
		verdict = evaluate(v, &p);
		note_verdict(v, c, offload, o, verdict, v->w->e->peak_bytes);
		audit(v, step_s, peak);
	}
}

/* One offloading choice that moves something. */
static void try_offload(struct mb_visit *v, struct mb_visit_choice *c, const struct mb_kind_row *plain, int offload)
{
	const struct mb_plan *o = mb_visit_offload(v, offload);
	const struct mb_kind_row *rows = mb_rows_offloaded(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep, offload);
	enum mb_bound bound = MB_WORTH;

	if (!o->cpu_offloading)
		bound = mb_visit_model_bound(v, mb_rows_offloaded_model_s(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep, offload));
	if (bound != MB_WORTH) {
		mb_visit_count(v, bound, __builtin_popcount(c->legal->optimizer));
		return;
	}
	if (o->cpu_offloading) {
		struct mb_treated t = { MB_TREAT_FIRST, o->cpu_offloading_num_layers, rows, NULL };

		mb_visit_costs(v, plain, &t, &v->costs);
	} else {
		mb_visit_costs(v, rows, NULL, &v->costs);
	}
	try_optimizers(v, c, &v->costs, offload);
}

static bool all_needless(const struct mb_visit *v, const struct mb_visit_choice *c, int offload)
{
	for (int o = 0; o < MB_MAX_OPTIMIZERS; o++)
		if ((c->legal->optimizer >> o & 1) && !is_needless(v, c, offload, o))
			return false;
	return true;
}

/* All offloading choices of one recompute choice that treats no whole layers. */
static void try_selective(struct mb_visit *v, struct mb_visit_choice *c, int choice)
{
	const struct mb_kind_row *plain = mb_rows_plain(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep);
	const struct mb_choices *a = &v->walk->s->axis[MB_P_OFFLOAD];
	const uint64_t *legal = c->legal->offload[v->walk->legality.rep_off[c->rep]];
	int optimizers = __builtin_popcount(c->legal->optimizer), first = 0;
	enum mb_bound bound;

	bound = mb_visit_model_bound(v, mb_rows_model_s(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep));
	if (bound == MB_WORTH) {
		mb_visit_costs(v, plain, NULL, &v->costs);
		bound = mb_best_bound(&v->w->goal, mb_visit_step(v, &v->costs, c->transfer_s, c->hop_s, -1), 0);
	}
	if (bound != MB_WORTH) {
		mb_visit_count(v, bound, (double)c->legal->offload_count[v->walk->legality.rep_off[c->rep]] * optimizers);
		return;
	}
	if (legal[0] & 1 && !mb_visit_offloads(&a->of[0].plan)) {
		if (v->at_hand.worth[choice] == MB_WORTH)
			try_optimizers(v, c, &v->costs, 0);
		else
			mb_visit_count(v, v->at_hand.worth[choice], optimizers);
		first = 1;
	}
	for (int word = 0; word * 64 < a->count; word++) {
		uint64_t all = legal[word] & (word == 0 ? ~(uint64_t)first : ~UINT64_C(0));
		uint64_t left = v->at_hand.worth_offloaded[choice] == MB_WORTH ? all & v->at_hand.may_fit[choice][word] : 0;
		enum mb_bound why = v->at_hand.worth_offloaded[choice] == MB_WORTH ? MB_BY_MEMORY : v->at_hand.worth_offloaded[choice];

		if (all != left)
			mb_visit_count(v, why, (double)__builtin_popcountll(all & ~left) * optimizers);
		for (; left; left &= left - 1) {
			int i = word * 64 + __builtin_ctzll(left);

			if (all_needless(v, c, i))
				v->w->tally.bounds[MB_COUNT_NEEDLESS] += optimizers;
			else
				try_offload(v, c, plain, i);
		}
	}
}

/* Full recompute of groups of n layers, or of the first n. Layers outside may still be offloaded. */
static void try_full(struct mb_visit *v, struct mb_visit_choice *c)
{
	const struct mb_plan *p = mb_visit_recompute(v, c->recompute);
	const struct mb_slots *slots = &v->w->cache.slots;
	const uint64_t *legal = c->legal->offload[v->walk->legality.rep_off[c->rep]];
	bool uniform = p->recompute_method != MB_METHOD_BLOCK;
	double input[MB_KIND_COUNT];
	struct mb_treated t = { uniform ? MB_TREAT_ALL : MB_TREAT_FIRST, p->recompute_num_layers, NULL, input };

	t.rows = mb_rows_full(&v->w->cache, v->w->rows, c->group, c->legal->f);
	for (int k = 0; k < slots->count; k++)
		input[k] = mb_rows_input_bytes(&v->w->cache, v->w->rows, c->group, c->legal->f, k);
	for (int i = 0; i < v->walk->s->axis[MB_P_OFFLOAD].count; i++) {
		const struct mb_kind_row *plain;

		if (!(legal[i / 64] >> (i % 64) & 1))
			continue;
		plain = mb_visit_offload(v, i)->fine_grained_activation_offloading
		        ? mb_rows_offloaded(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep, i)
		        : mb_rows_plain(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep);
		mb_visit_costs(v, plain, &t, &v->costs);
		try_optimizers(v, c, &v->costs, i);
	}
}

/* Whether memory leaves any offloading choice that is legal here; nothing offloaded counts if it is worth a look. */
static bool may_fit(const struct mb_visit *v, const struct mb_visit_choice *c, int choice)
{
	const uint64_t *legal = c->legal->offload[v->walk->legality.rep_off[c->rep]];

	if (v->at_hand.worth[choice] == MB_WORTH)
		return true;
	for (int i = 0; i < MB_OFF_WORDS; i++)
		if (legal[i] & v->at_hand.may_fit[choice][i])
			return true;
	return false;
}

/* What lies under a recompute choice, offloading and optimizer choices together. */
static double points_of(const struct mb_visit *v, const struct mb_legal *y, int rep)
{
	return (double)y->offload_count[v->walk->legality.rep_off[rep]] * __builtin_popcount(y->optimizer);
}

static void try_choice(struct mb_visit *v, struct mb_visit_choice *c, int choice)
{
	const struct mb_plan *p = mb_visit_recompute(v, choice);

	c->recompute = choice;
	c->rep = v->walk->legality.rep_of[choice];
	if (p->recompute != MB_RECOMPUTE_FULL && !may_fit(v, c, choice)) {
		mb_visit_count(v, MB_BY_MEMORY, points_of(v, c->legal, c->rep));
		return;
	}
	memset(c->fit_count, 0, sizeof c->fit_count);
	if (p->recompute == MB_RECOMPUTE_FULL)
		try_full(v, c);
	else
		try_selective(v, c, choice);
}

static double dead_points(const struct mb_visit *v, const struct mb_legal *y, int why)
{
	const struct mb_legality *l = &v->walk->legality;
	double points = 0;

	for (int kind = 0; kind < l->off_kinds; kind++) {
		int choices = 0;

		for (int word = 0; word * 64 < l->rep_count; word++)
			choices += __builtin_popcountll(y->recompute[word] & v->at_hand.dead.of[why][word] & l->of_kind[kind][word]);
		points += (double)choices * y->offload_count[kind] * __builtin_popcount(y->optimizer);
	}
	for (int g = MB_GROWS_UNIFORM; g < MB_GROWTHS; g++) {
		int rep = l->grown_rep[g];

		if (v->at_hand.dead.grown[why][g] > 0 && (y->recompute[rep / 64] >> (rep % 64) & 1))
			points += v->at_hand.dead.grown[why][g] * points_of(v, y, rep);
	}
	return points;
}

void mb_visit_try(struct mb_visit *v, struct mb_visit_choice *c)
{
	const struct mb_legality *l = &v->walk->legality;

	mb_visit_count(v, MB_BY_TIME, dead_points(v, c->legal, 0));
	mb_visit_count(v, MB_BY_MEMORY, dead_points(v, c->legal, 1));
	for (int i = 0; i < v->at_hand.open_count; i++)
		if (c->legal->recompute[l->rep_of[v->at_hand.open[i]] / 64] >> (l->rep_of[v->at_hand.open[i]] % 64) & 1)
			try_choice(v, c, v->at_hand.open[i]);
}
