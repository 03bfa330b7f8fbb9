/* Which sizes there are, and how many points lie under them; what rules exclude is counted here, once for all passes. */
#include "search/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

/* Branches that differ in nothing that counting sees: legal features, groups and the layers of a chunk. */
struct cell {
	const struct mb_legal_class *class;
	const struct mb_groups *groups;
	int layers;
	double candidates, points;      /* under one split: all, and the legal ones */
	double splits;                  /* that no rule about sizes and splits excludes */
};

enum { CELLS = 1 << 12 };

/* What a table's virtual stages and splits break for a TP, CP, PP and micro-batch size; -1: nothing. */
struct broken { int outer, rule; };

enum { MBS_KNOWN = 32 };

/* A thread's part: nodes and counts of its own. */
struct enumeration {
	struct mb_walk *w;              /* legality and splits, which all share */
	struct mb_plan p;
	struct mb_sizes *nodes;
	int node_count, node_capacity;
	struct mb_tally rules;
	bool failed;
	struct cell *cells;             /* hashed; a full table is emptied into the tally */
	int cell_count;
	struct broken *tables;          /* [tables][MBS_KNOWN] */
	int outer, mbs_at;              /* TP, CP and PP now, counted; which of the micro-batch sizes */
	bool apart;                     /* no rule about virtual stages and splits reads EP or ETP */
};

static const enum mb_plan_key size_axes[] = { MB_P_TP, MB_P_CP, MB_P_PP, MB_P_EP, MB_P_ETP, MB_P_MBS };
enum { SIZE_AXES = sizeof size_axes / sizeof size_axes[0] };

static void set_size(struct mb_plan *p, enum mb_plan_key axis, int value)
{
	int *at[] = { [MB_P_TP] = &p->tp, [MB_P_CP] = &p->cp, [MB_P_PP] = &p->pp, [MB_P_EP] = &p->ep, [MB_P_ETP] = &p->etp,
		[MB_P_MBS] = &p->micro_batch_size, [MB_P_VP] = &p->vp };

	*at[axis] = value;
}

static void free_nodes(struct mb_sizes *nodes, int capacity)
{
	mb_pages_free(nodes, (size_t)capacity * sizeof *nodes);
}

static bool grow(struct mb_sizes **nodes, int *capacity, int count)
{
	int wanted = *capacity ? *capacity : (int)(MB_PAGES_BYTES / sizeof **nodes);
	struct mb_sizes *grown;

	if (count <= *capacity)
		return true;
	while (wanted < count)
		wanted *= 2;
	grown = mb_pages_new((size_t)wanted * sizeof *grown);
	if (!grown)
		return false;
	if (*nodes)
		memcpy(grown, *nodes, (size_t)*capacity * sizeof *grown);
	free_nodes(*nodes, *capacity);
	*nodes = grown;
	*capacity = wanted;
	return true;
}

static bool add_node(struct enumeration *e, bool flat, double points)
{
	const struct mb_plan *p = &e->p;

	if (!grow(&e->nodes, &e->node_capacity, e->node_count + 1))
		return false;
	e->nodes[e->node_count++] = (struct mb_sizes){ .tp = p->tp, .cp = p->cp, .pp = p->pp, .ep = p->ep, .etp = p->etp,
		.mbs = p->micro_batch_size, .facts = (uint8_t)mb_space_facts(e->w->s, p), .flat = flat, .bound = MB_BOUND_UNROUTED, .points = points };
	return true;
}

/* Points that rules about the inner axes exclude. */
static void tally_cell(struct enumeration *e, const struct cell *cell)
{
	const struct mb_legality *l = &e->w->legality;
	const struct mb_legal_class *c = cell->class;
	const struct mb_groups *g = cell->groups;
	double times[MB_GROWTHS], tail = 0, *rules = e->rules.rules;

	for (int k = 0; k < MB_GROWTHS; k++) {
		times[k] = mb_legality_choices(l, k, cell->layers);
		tail += c->tail[k] * times[k];
	}
	for (int r = 0; r < mb_rule_count; r++) {
		double beside = 0;

		for (int k = 0; k < MB_GROWTHS; k++)
			beside += c->broken[k][r] * times[k];
		rules[r] += cell->splits * (g->broken[r] * c->features * tail + g->count * (c->broken_features[r] * tail + beside));
	}
}

static void tally_cells(struct enumeration *e)
{
	for (int i = 0; i < CELLS; i++)
		if (e->cells[i].splits > 0)
			tally_cell(e, &e->cells[i]);
	memset(e->cells, 0, CELLS * sizeof *e->cells);
	e->cell_count = 0;
}

static struct cell *cell_of(struct enumeration *e, const struct mb_legal_class *class, const struct mb_groups *groups, int layers)
{
	const struct mb_legality *l = &e->w->legality;
	size_t at;

	if (2 * e->cell_count > CELLS)
		tally_cells(e);
	at = ((size_t)class->facts * 31 + (size_t)groups->tp * 8191 + (size_t)groups->cp * 127 + (size_t)layers * 1021) % CELLS;
	for (; e->cells[at].class; at = (at + 1) % CELLS)
		if (e->cells[at].class == class && e->cells[at].groups == groups && e->cells[at].layers == layers)
			return &e->cells[at];
	e->cell_count++;
	e->cells[at] = (struct cell){ class, groups, layers, mb_class_candidates(l, class, groups, layers),
		mb_class_points(l, class, groups, layers), 0 };
	return &e->cells[at];
}

/* First rule that the virtual stages or every split of them breaks; -1: none. */
static int first_broken(struct enumeration *e, const struct mb_split_table *t)
{
	const struct mb_legality *l = &e->w->legality;
	int rule = mb_legality_broken(l, &e->p, MB_P_VP);

	if (rule >= 0 || t->legal)
		return rule;
	mb_axis_copy(MB_P_SPLIT, &t->rows[0].plan, &e->p);
	return mb_legality_broken(l, &e->p, MB_P_SPLIT);
}

static int broken_by(struct enumeration *e, const struct mb_split_table *t)
{
	struct broken *known;

	if (!e->apart || e->mbs_at >= MBS_KNOWN)
		return first_broken(e, t);
	known = &e->tables[(t - e->w->splits.table) * MBS_KNOWN + e->mbs_at];
	if (known->outer != e->outer)
		*known = (struct broken){ e->outer, first_broken(e, t) };
	return known->rule;
}

/*
 * All virtual stages and splits under the sizes; broken: the rule that the sizes break already, or -1. Returns the legal
 * points, and whether all of them are without virtual stages.
 */
static double count_splits(struct enumeration *e, int broken, bool *ret_flat)
{
	struct mb_walk *w = e->w;
	const struct mb_groups *groups = mb_legality_groups(&w->legality, &e->p);
	const struct mb_legal_class *class = NULL;
	const struct mb_split_table *t = NULL;
	int n = mb_splits_tables(&w->splits, e->p.pp, &t);
	double legal = 0;

	*ret_flat = true;
	for (int i = 0; i < n; i++, t++) {
		struct cell *cell;
		int rule = broken;

		mb_space_set_vp(w->s, t->vp, &e->p);
		if (!class || (t[0].vp > 1) != (t[-1].vp > 1))          /* knows only whether there are virtual stages */
			class = mb_legality_class(&w->legality, &e->p);
		cell = cell_of(e, class, groups, mb_space_recompute_layers(w->s, e->p.pp, e->p.vp));
		e->rules.considered += t->count * cell->candidates;
		if (rule < 0)
			rule = broken_by(e, t);
		if (rule >= 0) {
			e->rules.rules[rule] += t->count * cell->candidates;
		} else {
			cell->splits += t->count;
			*ret_flat &= t->vp <= 1;
			legal += t->count * cell->points;
		}
	}
	e->p.vp = 1;
	return legal;
}

static bool enumerate(struct enumeration *e, int level, int broken)
{
	int sizes[MB_MAX_SIZES], n;

	if (level == SIZE_AXES) {
		bool flat;
		double points = count_splits(e, broken, &flat);

		return !(points > 0) || add_node(e, flat, points);
	}
	n = mb_space_sizes(e->w->s, size_axes[level], &e->p, sizes);
	for (int i = 0; i < n; i++) {
		set_size(&e->p, size_axes[level], sizes[i]);
		if (size_axes[level] == MB_P_PP)
			e->outer++;
		else if (size_axes[level] == MB_P_MBS)
			e->mbs_at = i;
		if (!enumerate(e, level + 1, broken >= 0 ? broken : mb_legality_broken(&e->w->legality, &e->p, size_axes[level])))
			return false;
	}
	return true;
}

/* ---- threads ---- */

/* Sizes of the first two axes, and the first rule that they break. */
struct unit { int tp, cp, broken; };

struct enumerations {
	struct unit *units;
	int unit_count, next;
	struct enumeration *of;         /* [threads] */
};

static void enumerate_units(void *context, int thread)
{
	struct enumerations *all = context;
	struct enumeration *e = &all->of[thread];

	for (int i = mb_pool_next(&all->next); i < all->unit_count && !e->failed; i = mb_pool_next(&all->next)) {
		e->p.tp = all->units[i].tp;
		e->p.cp = all->units[i].cp;
		e->failed = !enumerate(e, 2, all->units[i].broken);
	}
	tally_cells(e);
}

static void fill_units(struct mb_walk *w, struct mb_plan p, struct enumerations *ret)
{
	int tps[MB_MAX_SIZES], n = mb_space_sizes(w->s, MB_P_TP, &p, tps);

	ret->units = mb_arena_alloc(w->s->arena, (size_t)n * MB_MAX_SIZES * sizeof *ret->units);
	for (int i = 0; i < n; i++) {
		int cps[MB_MAX_SIZES], count, broken;

		p.tp = tps[i];
		broken = mb_legality_broken(&w->legality, &p, MB_P_TP);
		count = mb_space_sizes(w->s, MB_P_CP, &p, cps);
		for (int j = 0; j < count; j++) {
			p.cp = cps[j];
			ret->units[ret->unit_count++] = (struct unit){ tps[i], cps[j],
				broken >= 0 ? broken : mb_legality_broken(&w->legality, &p, MB_P_CP) };
		}
	}
}

static bool start_enumeration(struct mb_walk *w, const struct mb_plan *p, struct enumeration *ret)
{
	ret->w = w;
	ret->p = *p;
	ret->cells = calloc(CELLS, sizeof *ret->cells);
	ret->tables = calloc((size_t)(w->splits.count + 1) * MBS_KNOWN, sizeof *ret->tables);
	ret->apart = ((mb_legality_reads(&w->legality, MB_P_VP) | mb_legality_reads(&w->legality, MB_P_SPLIT)) & (1u << MB_P_EP | 1u << MB_P_ETP)) == 0;
	return ret->cells && ret->tables;
}

/* What a thread found becomes the walk's. */
static bool take(struct mb_walk *w, struct enumeration *e)
{
	bool ok = !e->failed;

	if (ok && !w->nodes) {
		w->nodes = e->nodes;
		w->node_capacity = e->node_capacity;
		e->nodes = NULL;
	} else if (ok && e->node_count > 0) {
		ok = grow(&w->nodes, &w->node_capacity, w->node_count + e->node_count);
		if (ok)
			memcpy(w->nodes + w->node_count, e->nodes, (size_t)e->node_count * sizeof *e->nodes);
	}
	w->node_count += ok ? e->node_count : 0;
	mb_tally_add(&w->rules, &e->rules);
	free_nodes(e->nodes, e->node_capacity);
	free(e->cells);
	free(e->tables);
	return ok;
}

bool mb_walk_init(struct mb_walk *w, struct mb_space *s, int threads)
{
	struct mb_plan p = s->q->c.run.plan;
	struct enumerations all = { .next = 0 };
	bool ok;

	memset(w, 0, sizeof *w);
	w->s = s;
	threads = mb_pool_threads(threads);
	mb_splits_fill(s, &w->splits);
	all.of = calloc((size_t)threads, sizeof *all.of);
	ok = mb_legality_fill(s, &w->legality) && all.of;
	p.vp = 1;
	for (int i = 0; ok && i < threads; i++)
		ok = start_enumeration(w, &p, &all.of[i]);
	if (ok) {
		fill_units(w, p, &all);
		mb_pool_start(threads, enumerate_units, &all);
	}
	for (int i = 0; all.of && i < threads; i++)
		ok &= take(w, &all.of[i]);
	free(all.of);
	return ok;
}

void mb_walk_free(struct mb_walk *w)
{
	free_nodes(w->nodes, w->node_capacity);
	free(w->families);
	free(w->order);
	mb_legality_free(&w->legality);
}
