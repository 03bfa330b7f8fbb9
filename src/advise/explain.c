#include "advise/explain.h"

#include <math.h>
#include <string.h>

#include "advise/moves.h"
#include "plan/rules_private.h"

const char *const mb_binding_names[] = { [MB_BINDS_RULE] = "rule", [MB_BINDS_MEMORY] = "memory", [MB_BINDS_TIME] = "time" };

struct explain {
	struct mb_bench b;
	struct mb_explanation *x;
	struct mb_arena *arena;
};

static bool same_changes(const struct mb_changes *a, const struct mb_changes *b)
{
	if (a->count != b->count || a->max_connections != b->max_connections || a->expandable != b->expandable)
		return false;
	for (int i = 0; i < a->count; i++) {
		bool found = false;

		for (int j = 0; j < b->count; j++)
			found |= a->key[i] == b->key[j] && a->value[i].i == b->value[j].i;
		if (!found)
			return false;
	}
	return true;
}

/* Fewest keys first; of equals the faster. */
static void add_fix(struct mb_explanation *x, const struct mb_trial *t)
{
	int at = x->fix_count;

	for (int i = 0; i < x->fix_count; i++) {
		if (same_changes(&x->fixes[i].changes, &t->changes))
			return;
	}
	if (x->fix_count == MB_MAX_FIXES)
		return;
	while (at > 0) {
		const struct mb_trial *before = &x->fixes[at - 1];
		int keys = mb_changes_count(&before->changes) - mb_changes_count(&t->changes);

		if (keys < 0 || (keys == 0 && before->step_s <= t->step_s))
			break;
		x->fixes[at] = x->fixes[at - 1];
		at--;
	}
	x->fixes[at] = *t;
	x->fix_count++;
}

/* The nearest plans that fit, from changes already made; dtypes and more GPUs only when nothing else does. */
static int add_nearest(struct explain *s, const struct mb_changes *start, double below_s, int max)
{
	struct mb_wish wishes[] = { { .below_s = below_s }, { .learning = true }, { .learning = true, .gpus = true } };
	struct mb_trial found[MB_MAX_FIXES], closest;
	int count = 0;

	for (size_t i = 0; i < sizeof wishes / sizeof wishes[0] && count == 0; i++) {
		count = mb_nearest_plans(&s->b, start, &wishes[i], s->arena, found, max, &closest);
		if (i == 0 && closest.sized && (!s->x->has_closest || closest.used_bytes < s->x->closest.used_bytes)) {
			s->x->closest = closest;
			s->x->has_closest = true;
		}
		if (below_s > 0)
			break;
	}
	for (int i = 0; i < count; i++)
		add_fix(s->x, &found[i]);
	return count;
}

/* ---- a broken rule ---- */

static bool add_legal(struct explain *s, const struct mb_changes *c, struct mb_trial *legal, bool *has_legal)
{
	struct mb_trial t;

	mb_bench_try(&s->b, c, &t);
	if (t.verdict == MB_ILLEGAL)
		return false;
	if (!*has_legal || t.used_bytes < legal->used_bytes) {
		*legal = t;
		*has_legal = true;
	}
	if (t.verdict == MB_FITS || t.verdict == MB_AT_RISK)
		add_fix(s->x, &t);
	return true;
}

/* One fix after the other, the first or the second choice of each; what is still broken is mended by whatever does. */
static void mend(struct explain *s, bool second, struct mb_trial *legal, bool *has_legal)
{
	struct mb_changes c = { 0 };

	for (int i = 0; i < s->x->violation_count; i++) {
		const struct mb_violation *v = &s->x->violations[i];
		bool other = second && i == 0 && v->alternative.count > 0;

		if (v->rule->severity != MB_RULE_ERROR)
			break;
		if (i == 0)
			mb_changes_fix(&c, s->b.q, other ? &v->alternative : &v->fix);
	}
	mb_bench_mend(&s->b, &c, NULL, 0, NULL);
	add_legal(s, &c, legal, has_legal);
}

static void explain_rule(struct explain *s)
{
	struct mb_explanation *x = s->x;
	const struct mb_query *q = s->b.q;
	struct mb_changes c = { 0 };
	struct mb_trial legal;
	struct mb_fix all;
	bool has_legal = false;

	if (mb_combined_fix(q, &q->c.run.plan, &all, MB_MAX_FIX_KEYS) && mb_changes_fix(&c, q, &all))
		add_legal(s, &c, &legal, &has_legal);
	mend(s, false, &legal, &has_legal);
	mend(s, true, &legal, &has_legal);
	if (x->fix_count > 0)
		x->fix_fits = true;
	else
		x->fix_fits = add_nearest(s, &(struct mb_changes){ 0 }, 0, 3) > 0 || (has_legal && add_nearest(s, &legal.changes, 0, 3) > 0);
	if (x->fix_count == 0 && has_legal)
		add_fix(x, &legal);
}

/* ---- memory ---- */

/* The part of the peak that is largest, and its largest term. */
static void find_cause(struct mb_explanation *x)
{
	static const struct { const char *letters, *words; } parts[] = {
		{ "WGO", "weights, gradients and optimizer states" }, { "A", "activations" }, { "L", "logits and loss" }, { "X", "working set and buffers" },
	};
	double largest = -1;

	for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
		double sum = 0;

		for (int i = 0; i < MB_MEM_COUNT; i++)
			sum += strchr(parts[p].letters, mb_memory_terms[i].letter) ? x->run.memory[i] : 0;
		if (sum <= largest)
			continue;
		largest = sum;
		x->cause_bytes = sum;
		x->cause_words = parts[p].words;
		x->memory_term = MB_MEM_COUNT;
		for (int i = 0; i < MB_MEM_COUNT; i++) {
			if (strchr(parts[p].letters, mb_memory_terms[i].letter)
			    && (x->memory_term == MB_MEM_COUNT || x->run.memory[i] > x->run.memory[x->memory_term]))
				x->memory_term = (enum mb_memory_term)i;
		}
	}
}

/* ---- the best ---- */

/* Every key that the best plan has otherwise. */
static void changes_to(const struct mb_query *q, const struct mb_ranked *best, struct mb_changes *ret)
{
	struct mb_run run = q->c.run;

	run.plan = best->plan;
	run.gpus = best->gpus > 0 ? best->gpus : run.gpus;
	*ret = (struct mb_changes){ 0 };
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		bool number = mb_keys[id].type == MB_KEY_NUMBER;

		if ((mb_keys[id].open || id == MB_K_gpus) && !number)
			mb_changes_set(ret, q, (enum mb_key_id)id, mb_key_get(&run, &mb_keys[id]).i);
	}
}

static void take_best(struct explain *s, const struct mb_ranked *best)
{
	struct mb_explanation *x = s->x;
	struct mb_changes c;

	if (best) {
		changes_to(s->b.q, best, &c);
		mb_bench_try(&s->b, &c, &x->best);
		x->has_best = x->best.sized && fabs(x->best.step_s - best->step_s) < 1e-6 * best->step_s;
		if (!x->has_best) {
			x->best.step_s = best->step_s;
			x->best.low_s = best->low_s;
			x->best.high_s = best->high_s;
			x->best.peak_bytes = best->peak_bytes;
			x->best.verdict = best->verdict;
		}
	}
	if (x->has_best && x->best.step_s < 0.995 * x->run.step_s && x->fix_count < MB_MAX_FIXES && mb_changes_count(&x->best.changes) > 0)
		add_fix(x, &x->best);
	if (!x->has_best && x->fix_count > 0) {
		x->best = x->fixes[0];
		for (int i = 1; i < x->fix_count; i++)
			x->best = x->fixes[i].step_s < x->best.step_s ? x->fixes[i] : x->best;
		x->has_best = true;
	}
	if (x->run.verdict == MB_FITS && (!x->has_best || x->run.step_s <= x->best.step_s)) {
		x->best = x->run;
		x->has_best = true;
	}
}

static void find_slow_term(struct mb_explanation *x)
{
	double most = -INFINITY;

	for (int i = 0; i < MB_TIME_COUNT; i++) {
		double excess = x->run.terms[i] - (x->has_best ? x->best.terms[i] : 0);

		if (excess > most) {
			most = excess;
			x->time_term = (enum mb_time_term)i;
		}
	}
}

/* The run with the layouts of the search, which its plans name, and those of its neighbours. */
static const struct mb_query *with_layouts(const struct mb_query *q, const struct mb_search_result *found, struct mb_arena *arena)
{
	struct mb_query *copy = mb_arena_alloc(arena, sizeof *copy);

	*copy = *q;
	if (found && found->top_count > 0 && found->layout_count >= q->c.layout_count) {
		copy->c.layouts = found->layouts;
		copy->c.layout_count = found->layout_count;
	}
	mb_add_layouts(copy, arena);
	return copy;
}

void mb_explain(const struct mb_query *q, const struct mb_search_result *found, struct mb_evaluation *e, struct mb_arena *arena,
                struct mb_explanation *ret)
{
	struct explain *s = mb_arena_alloc(arena, sizeof *s);
	const struct mb_changes nothing = { 0 };

	memset(ret, 0, sizeof *ret);
	q = ret->q = with_layouts(q, found, arena);
	s->x = ret;
	s->arena = arena;
	mb_bench_init(&s->b, q, e);
	mb_bench_try(&s->b, &nothing, &ret->run);
	ret->violation_count = mb_check(q, &q->c.run.plan, ret->violations);
	if (ret->run.sized)
		find_cause(ret);
	if (ret->run.verdict == MB_ILLEGAL) {
		ret->kind = MB_BINDS_RULE;
		explain_rule(s);
	} else if (ret->run.verdict != MB_FITS) {
		ret->kind = MB_BINDS_MEMORY;
		ret->fix_fits = add_nearest(s, &nothing, 0, 4) > 0;
	} else {
		ret->kind = MB_BINDS_TIME;
		ret->fix_fits = add_nearest(s, &nothing, 0.995 * ret->run.step_s, 4) > 0;
	}
	take_best(s, found && found->top_count > 0 ? &found->top[found->recommended >= 0 ? found->recommended : 0] : NULL);
	find_slow_term(ret);
}
