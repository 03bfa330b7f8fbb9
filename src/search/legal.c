#include "search/legal.h"

#include <stdlib.h>
#include <string.h>

#include "plan/rules_private.h"

enum { NO_RULE = 255 };

/* Offloading choices that rules leave beside one kind of recompute choice and one set of features. */
struct off_sets {
	bool done;
	uint64_t legal[MB_OFF_WORDS];
	uint8_t broken[64 * MB_OFF_WORDS];
	int candidates;
};

/* The order in which the search sets the axes. */
static const enum mb_plan_key order[] = { MB_P_TP, MB_P_CP, MB_P_PP, MB_P_EP, MB_P_ETP, MB_P_MBS, MB_P_VP, MB_P_SPLIT, MB_P_SP, MB_P_CP_COMM,
	MB_P_TP_OVERLAP, MB_P_DISPATCHER, MB_P_EP_OVERLAP, MB_P_SHARED_OVERLAP, MB_P_GRAPH, MB_P_RECOMPUTE, MB_P_OFFLOAD, MB_P_OPTIMIZER };
_Static_assert(sizeof order / sizeof order[0] == MB_P_COUNT, "every axis once");

static void fill_due(struct mb_legality *l)
{
	unsigned fixed = 0;

	for (int i = 0; i < MB_P_COUNT; i++) {
		fixed |= 1u << order[i];
		for (int r = 0; r < mb_rule_count; r++) {
			const struct mb_rule *rule = &mb_rules[r];
			bool fresh = (rule->reads >> order[i] & 1) != 0 || (i == 0 && rule->reads == 0);

			if (fresh && (rule->reads & ~fixed) == 0 && rule->severity == MB_RULE_ERROR && mb_rule_applies(rule, &l->s->c.stack))
				l->due[order[i]][l->due_count[order[i]]++] = (uint8_t)r;
		}
	}
}

int mb_legality_broken(const struct mb_legality *l, const struct mb_plan *p, enum mb_plan_key axis)
{
	for (int i = 0; i < l->due_count[axis]; i++)
		if (!mb_rules[l->due[axis][i]].holds(&l->s->c, p))
			return l->due[axis][i];
	return -1;
}

unsigned mb_legality_reads(const struct mb_legality *l, enum mb_plan_key axis)
{
	unsigned reads = 0;

	for (int i = 0; i < l->due_count[axis]; i++)
		reads |= mb_rules[l->due[axis][i]].reads;
	return reads;
}

static struct mb_choices *axis_of(const struct mb_legality *l, enum mb_plan_key axis)
{
	return &l->s->axis[axis];
}

static unsigned recompute_facts(const struct mb_plan *p)
{
	return (p->recompute == MB_RECOMPUTE_NONE ? MB_FACT_NO_RECOMPUTE : 0) | (p->recompute != MB_RECOMPUTE_FULL ? MB_FACT_NOT_FULL : 0);
}

/* Candidates under facts; the first stands in when there are none. */
static int count_candidates(const struct mb_choices *a, unsigned facts)
{
	int n = 0;

	for (int i = 0; i < a->count; i++)
		n += mb_choice_is_candidate(&a->of[i], facts);
	return n > 0 ? n : 1;
}

/* ---- representatives of recompute choices ---- */

/* What rules about offloading see of recompute: none, selective with and without what drops expert activations, full. */
static int off_kind(struct mb_legality *l, int choice)
{
	const unsigned seen = MB_MOE | MB_GDP_IN_PROJ;
	const struct mb_plan *p = &axis_of(l, MB_P_RECOMPUTE)->of[choice].plan;

	for (int i = 0; i < l->off_kinds; i++) {
		const struct mb_plan *o = &axis_of(l, MB_P_RECOMPUTE)->of[l->off_rep[i]].plan;

		if (o->recompute == p->recompute && (o->recompute_modules & seen) == (p->recompute_modules & seen))
			return i;
	}
	if (l->off_kinds == MB_OFF_KINDS)
		return MB_OFF_KINDS - 1;
	l->off_rep[l->off_kinds] = choice;
	return l->off_kinds++;
}

static void fill_reps(struct mb_legality *l)
{
	const struct mb_choices *a = axis_of(l, MB_P_RECOMPUTE);
	int *first = l->grown_rep;

	for (int g = 0; g < MB_GROWTHS; g++)
		first[g] = -1;
	l->rep_of = mb_arena_alloc(l->s->arena, (size_t)a->count * sizeof *l->rep_of);
	for (int i = 0; i < a->count; i++) {
		enum mb_growth g = a->of[i].growth;

		if (g != MB_GROWS_NOT && first[g] >= 0) {
			l->rep_of[i] = first[g];
			continue;
		}
		if (l->rep_count == MB_MAX_REPS - 1 && g == MB_GROWS_NOT) {
			l->rep_of[i] = l->rep_count - 1;
			continue;
		}
		l->rep_of[i] = first[g] = l->rep_count;
		l->rep[l->rep_count] = (uint16_t)i;
		l->rep_off[l->rep_count] = (uint8_t)off_kind(l, i);
		if (g == MB_GROWS_NOT)
			l->of_kind[l->rep_off[l->rep_count]][l->rep_count / 64] |= UINT64_C(1) << (l->rep_count % 64);
		l->rep_count++;
	}
}

static bool is_part(const struct mb_plan *part, const struct mb_plan *of)
{
	if (part->recompute == MB_RECOMPUTE_NONE || of->recompute != MB_RECOMPUTE_SELECTIVE)
		return part->recompute == MB_RECOMPUTE_NONE && of->recompute != MB_RECOMPUTE_NONE;
	return part->recompute == MB_RECOMPUTE_SELECTIVE && part->recompute_modules != of->recompute_modules
	       && (part->recompute_modules & ~of->recompute_modules) == 0;
}

static void fill_parts(struct mb_legality *l)
{
	const struct mb_choice *of = axis_of(l, MB_P_RECOMPUTE)->of;

	l->parts = mb_arena_alloc(l->s->arena, (size_t)l->rep_count * sizeof *l->parts);
	for (int i = 0; i < l->rep_count; i++)
		for (int j = 0; j < l->rep_count; j++)
			if (is_part(&of[l->rep[j]].plan, &of[l->rep[i]].plan))
				l->parts[i][j / 64] |= UINT64_C(1) << (j % 64);
}

static void fill_grown(struct mb_legality *l)
{
	const struct mb_choices *a = axis_of(l, MB_P_RECOMPUTE);

	l->most_layers = mb_space_recompute_layers(l->s, 1, 1);
	for (int g = MB_GROWS_UNIFORM; g < MB_GROWTHS; g++) {
		l->grown[g] = mb_arena_alloc(l->s->arena, (size_t)(l->most_layers + 1) * sizeof *l->grown[g]);
		for (int i = 0; i < a->count; i++)
			for (int n = a->of[i].layers; a->of[i].growth == (enum mb_growth)g && n <= l->most_layers; n++)
				l->grown[g][n]++;
	}
}

double mb_legality_choices(const struct mb_legality *l, enum mb_growth growth, int layers)
{
	return growth == MB_GROWS_NOT ? 1 : l->grown[growth][layers < l->most_layers ? layers : l->most_layers];
}

/* ---- tables of rules between inner axes ---- */

static void set_features(const struct mb_legality *l, const struct mb_feature *f, struct mb_plan *p)
{
	mb_axis_copy(MB_P_DISPATCHER, &axis_of(l, MB_P_DISPATCHER)->of[f->dispatcher].plan, p);
	mb_axis_copy(MB_P_EP_OVERLAP, &axis_of(l, MB_P_EP_OVERLAP)->of[f->overlap].plan, p);
	mb_axis_copy(MB_P_SHARED_OVERLAP, &axis_of(l, MB_P_SHARED_OVERLAP)->of[f->shared].plan, p);
	mb_axis_copy(MB_P_GRAPH, &axis_of(l, MB_P_GRAPH)->of[f->graph].plan, p);
}

/* Rules about recompute read the overlaps and graphs, nothing else; filled where first needed. */
static const uint8_t *recompute_row(struct mb_legality *l, const struct mb_feature *f, struct mb_plan p)
{
	int graphs = axis_of(l, MB_P_GRAPH)->count, shared = axis_of(l, MB_P_SHARED_OVERLAP)->count;
	uint8_t *row = l->recompute_broken + (((size_t)f->overlap * (size_t)shared + f->shared) * (size_t)graphs + f->graph) * (MB_MAX_REPS + 1);

	if (row[MB_MAX_REPS])
		return row;
	set_features(l, f, &p);
	for (int r = 0; r < l->rep_count; r++) {
		int rule;

		mb_axis_copy(MB_P_RECOMPUTE, &axis_of(l, MB_P_RECOMPUTE)->of[l->rep[r]].plan, &p);
		rule = mb_legality_broken(l, &p, MB_P_RECOMPUTE);
		row[r] = rule < 0 ? NO_RULE : (uint8_t)rule;
	}
	row[MB_MAX_REPS] = 1;
	return row;
}

/* Rules about offloading read dispatcher, EP overlap, graphs, whether there is a pipeline, and the kind of recompute. */
static struct off_sets *off_row(struct mb_legality *l, const struct mb_feature *f, int kind, unsigned facts, struct mb_plan p)
{
	size_t graphs = (size_t)axis_of(l, MB_P_GRAPH)->count, overlaps = (size_t)axis_of(l, MB_P_EP_OVERLAP)->count;
	size_t dispatchers = (size_t)axis_of(l, MB_P_DISPATCHER)->count;
	struct mb_choices *a = axis_of(l, MB_P_OFFLOAD);
	const struct mb_plan *rec = &axis_of(l, MB_P_RECOMPUTE)->of[l->off_rep[kind]].plan;
	struct off_sets *row = &l->off_sets[((((facts & MB_FACT_FLAT ? 1u : 0u) * MB_OFF_KINDS + (size_t)kind) * dispatchers + f->dispatcher)
	                                     * overlaps + f->overlap) * graphs + f->graph];
	unsigned all = facts | recompute_facts(rec);

	if (row->done)
		return row;
	set_features(l, f, &p);
	mb_axis_copy(MB_P_RECOMPUTE, rec, &p);
	for (int i = 0; i < a->count && i < 64 * MB_OFF_WORDS; i++) {
		int rule;

		row->broken[i] = NO_RULE;
		if (!mb_choices_has(a, i, all))
			continue;
		row->candidates++;
		mb_axis_copy(MB_P_OFFLOAD, &a->of[i].plan, &p);
		rule = mb_legality_broken(l, &p, MB_P_OFFLOAD);
		if (rule < 0)
			row->legal[i / 64] |= UINT64_C(1) << (i % 64);
		else
			row->broken[i] = (uint8_t)rule;
	}
	row->done = true;
	return row;
}

static double popcount(const uint64_t *bits, int words)
{
	int n = 0;

	for (int i = 0; i < words; i++)
		n += __builtin_popcountll(bits[i]);
	return n;
}

/* ---- a class ---- */

static void fill_optimizer(struct mb_legality *l, struct mb_legal_class *c, struct mb_legal *y, struct mb_plan p, double broken[MB_MAX_RULES],
                           int *ret_candidates)
{
	struct mb_choices *a = axis_of(l, MB_P_OPTIMIZER);

	*ret_candidates = 0;
	for (int i = 0; i < a->count && i < 32; i++) {
		int rule;

		if (!mb_choices_has(a, i, c->facts))
			continue;
		++*ret_candidates;
		mb_axis_copy(MB_P_OPTIMIZER, &a->of[i].plan, &p);
		rule = mb_legality_broken(l, &p, MB_P_OPTIMIZER);
		if (rule < 0)
			y->optimizer |= 1u << i;
		else
			broken[rule]++;
	}
}

/* Everything that may be chosen beside one legal combination of features. */
static void fill_beside(struct mb_legality *l, struct mb_legal_class *c, struct mb_legal *y, const struct mb_plan *p)
{
	struct mb_choices *a = axis_of(l, MB_P_RECOMPUTE);
	const uint8_t *recompute = recompute_row(l, &y->f, *p);
	double broken_optimizer[MB_MAX_RULES] = { 0 };
	struct mb_plan full = *p;
	int optimizers;

	set_features(l, &y->f, &full);
	fill_optimizer(l, c, y, full, broken_optimizer, &optimizers);
	for (int r = 0; r < l->rep_count; r++) {
		enum mb_growth g = a->of[l->rep[r]].growth;
		int kind = l->rep_off[r];
		struct off_sets *off = off_row(l, &y->f, kind, c->facts, *p);
		double offs = popcount(off->legal, MB_OFF_WORDS);

		y->offload[kind] = off->legal;
		y->offload_count[kind] = (int)offs;
		if (recompute[r] != NO_RULE) {
			c->broken[g][recompute[r]] += (double)off->candidates * optimizers;
			continue;
		}
		y->recompute[r / 64] |= UINT64_C(1) << (r % 64);
		for (int i = 0; i < axis_of(l, MB_P_OFFLOAD)->count; i++)
			if (off->broken[i] != NO_RULE && (off->legal[i / 64] >> (i % 64) & 1) == 0)
				c->broken[g][off->broken[i]] += optimizers;
		for (int i = 0; i < mb_rule_count; i++)
			if (broken_optimizer[i] > 0)
				c->broken[g][i] += broken_optimizer[i] * offs;
		y->points[g] += offs * __builtin_popcount(y->optimizer);
	}
	for (int g = 0; g < MB_GROWTHS; g++)
		c->points[g] += y->points[g];
}

static void fill_tail(struct mb_legality *l, struct mb_legal_class *c)
{
	struct mb_choices *a = axis_of(l, MB_P_RECOMPUTE);
	int optimizers = count_candidates(axis_of(l, MB_P_OPTIMIZER), c->facts);

	for (int r = 0; r < l->rep_count; r++) {
		const struct mb_choice *v = &a->of[l->rep[r]];

		c->tail[v->growth] += (double)count_candidates(axis_of(l, MB_P_OFFLOAD), c->facts | recompute_facts(&v->plan)) * optimizers;
	}
}

struct descent {
	struct mb_legality *l;
	struct mb_legal_class *c;
	struct mb_plan p;
	struct mb_feature f;
	double below[4];                /* candidates of the axes after this one */
};

static const enum mb_plan_key feature_axes[] = { MB_P_DISPATCHER, MB_P_EP_OVERLAP, MB_P_SHARED_OVERLAP, MB_P_GRAPH };

static void descend(struct descent *d, int level)
{
	struct mb_choices *a;

	if (level == 4) {
		struct mb_legal *y = &d->c->of[d->c->count++];

		y->f = d->f;
		fill_beside(d->l, d->c, y, &d->p);
		return;
	}
	a = axis_of(d->l, feature_axes[level]);
	for (int i = 0; i < a->count; i++) {
		uint8_t *index[] = { &d->f.dispatcher, &d->f.overlap, &d->f.shared, &d->f.graph };
		int rule;

		if (!mb_choices_has(a, i, d->c->facts))
			continue;
		mb_axis_copy(feature_axes[level], &a->of[i].plan, &d->p);
		rule = mb_legality_broken(d->l, &d->p, feature_axes[level]);
		*index[level] = (uint8_t)i;
		if (rule >= 0)
			d->c->broken_features[rule] += d->below[level];
		else
			descend(d, level + 1);
	}
}

/* Whether graphs of these regions may take the least time: as much captured as possible, or everything. */
static bool is_extreme(const struct mb_legality *l, const struct mb_legal_class *c, const struct mb_feature *f)
{
	const struct mb_choices *graphs = axis_of(l, MB_P_GRAPH);
	const struct mb_plan *p = &graphs->of[f->graph].plan;

	if (p->cuda_graph_impl != MB_GRAPH_TE && p->cuda_graph_impl != MB_GRAPH_NONE)
		return true;
	for (int i = 0; i < c->count; i++) {
		const struct mb_feature *o = &c->of[i].f;
		const struct mb_plan *q = &graphs->of[o->graph].plan;

		if (o->dispatcher == f->dispatcher && o->overlap == f->overlap && o->shared == f->shared && q->cuda_graph_impl == MB_GRAPH_TE
		    && o->graph != f->graph && q->cuda_graph_scope != p->cuda_graph_scope && (p->cuda_graph_scope & ~q->cuda_graph_scope) == 0)
			return false;
	}
	return true;
}

static struct mb_legal_class *new_class(struct mb_legality *l, const struct mb_plan *p, unsigned facts)
{
	struct descent d = { .l = l, .p = *p };
	size_t most = 1;

	d.c = mb_arena_alloc(l->s->arena, sizeof *d.c);
	d.c->facts = facts;
	d.c->features = 1;
	for (int i = 3; i >= 0; i--) {
		d.below[i] = d.c->features;
		d.c->features *= count_candidates(axis_of(l, feature_axes[i]), facts);
		most *= (size_t)axis_of(l, feature_axes[i])->count;
	}
	d.c->of = mb_arena_alloc(l->s->arena, most * sizeof *d.c->of);
	fill_tail(l, d.c);
	descend(&d, 0);
	for (int i = 0; i < d.c->count; i++)
		d.c->of[i].extreme = is_extreme(l, d.c, &d.c->of[i].f);
	return d.c;
}

const struct mb_legal_class *mb_legality_class(struct mb_legality *l, const struct mb_plan *p)
{
	unsigned facts = mb_space_facts(l->s, p);
	struct mb_legal_class *c = __atomic_load_n(&l->classes[facts], __ATOMIC_ACQUIRE);

	if (c)
		return c;
	mb_lock_take(l->lock);
	c = l->classes[facts];
	if (!c) {
		c = new_class(l, p, facts);
		__atomic_store_n(&l->classes[facts], c, __ATOMIC_RELEASE);
	}
	mb_lock_leave(l->lock);
	return c;
}

double mb_legality_grown(const struct mb_legality *l, const double by_growth[MB_GROWTHS], int layers)
{
	double sum = 0;

	for (int g = 0; g < MB_GROWTHS; g++)
		if (by_growth[g] > 0)
			sum += by_growth[g] * mb_legality_choices(l, g, layers);
	return sum;
}

double mb_class_candidates(const struct mb_legality *l, const struct mb_legal_class *c, const struct mb_groups *g, int layers)
{
	return g->candidates * c->features * mb_legality_grown(l, c->tail, layers);
}

double mb_class_points(const struct mb_legality *l, const struct mb_legal_class *c, const struct mb_groups *g, int layers)
{
	return g->count * mb_legality_grown(l, c->points, layers);
}

/* The backend of flex decides only buffers outside of layers. */
static void fill_dispatchers(struct mb_legality *l)
{
	const struct mb_choices *a = axis_of(l, MB_P_DISPATCHER);

	for (int i = 0; i < a->count; i++)
		while (a->of[l->timed_dispatcher[i]].plan.dispatcher != a->of[i].plan.dispatcher)
			l->timed_dispatcher[i]++;
}

bool mb_legality_fill(struct mb_space *s, struct mb_legality *ret)
{
	size_t cells;

	memset(ret, 0, sizeof *ret);
	ret->s = s;
	fill_due(ret);
	fill_reps(ret);
	fill_parts(ret);
	fill_grown(ret);
	fill_dispatchers(ret);
	cells = (size_t)s->axis[MB_P_EP_OVERLAP].count * (size_t)s->axis[MB_P_SHARED_OVERLAP].count * (size_t)s->axis[MB_P_GRAPH].count;
	ret->recompute_broken = mb_arena_alloc(s->arena, cells * (MB_MAX_REPS + 1));
	cells = 2 * MB_OFF_KINDS * (size_t)s->axis[MB_P_DISPATCHER].count * (size_t)s->axis[MB_P_EP_OVERLAP].count * (size_t)s->axis[MB_P_GRAPH].count;
	ret->off_sets = mb_arena_alloc(s->arena, cells * sizeof *ret->off_sets);
	ret->groups = mb_arena_alloc(s->arena, MB_MAX_GROUPS * sizeof *ret->groups);
	ret->lock = mb_lock_new();
	return ret->lock != NULL;
}

void mb_legality_free(struct mb_legality *l)
{
	mb_lock_free(l->lock);
}
