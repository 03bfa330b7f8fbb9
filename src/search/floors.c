#include "search/floors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/larger.h"

/* What one part runs once, under some sizes. */
struct floor_entry {
	int part;
	int tp, cp, mbs, ep, etp;       /* of a feed-forward part: cp 0 and mbs the tokens of a group */
	double tokens;
	struct mb_group group;
	struct mb_feature feature;
	bool filled;
	struct mb_kind_once once;       /* host_s: seconds alone, of an entry for all groups and features */
};

enum { ALL_GROUPS = UINT8_MAX };        /* in place of sp */

struct floor_slot {
	struct floor_entry *entry;      /* NULL: free */
	uint64_t hash;
};

static int part_of(struct mb_floors *f, struct mb_layer_kind kind)
{
	struct mb_model *m = &f->parts->model;

	for (int i = 0; i < m->kind_count; i++)
		if (m->kinds[i].mixer == kind.mixer && m->kinds[i].ffn == kind.ffn && m->kinds[i].windowed == kind.windowed
		    && m->kinds[i].no_rope == kind.no_rope)
			return i;
	if (m->kind_count == MB_MAX_LAYER_KINDS) {
		f->whole = true;
		return 0;
	}
	m->kinds[m->kind_count] = kind;
	return m->kind_count++;
}

void mb_floors_init(struct mb_floors *f, struct mb_rows_cache *cache)
{
	struct mb_legality *l = cache->l;
	const struct mb_slots *slots = &cache->slots;

	*f = (struct mb_floors){ .l = l, .slots = slots, .layers = cache->layers, .capacity = 1 << 12 };
	f->parts = mb_arena_alloc(&f->arena, sizeof *f->parts);
	f->scratch = mb_arena_alloc(&f->arena, sizeof *f->scratch);
	f->table = calloc((size_t)f->capacity, sizeof *f->table);
	*f->parts = l->s->c;
	f->parts->model.kind_count = 0;
	for (int i = 0; i < slots->count; i++) {
		struct mb_layer_kind kind;

		f->mixer[i] = slots->kind[i];
		f->ffn[i] = -1;
		if (slots->kind[i] >= MB_MAX_LAYER_KINDS)
			continue;
		kind = l->s->c.model.kinds[slots->kind[i]];
		f->mixer[i] = kind.mixer == MB_MIXER_NONE ? -1 : part_of(f, (struct mb_layer_kind){ kind.mixer, MB_FFN_NONE, kind.windowed, kind.no_rope });
		if (kind.ffn != MB_FFN_NONE)
			f->ffn[i] = part_of(f, (struct mb_layer_kind){ MB_MIXER_NONE, kind.ffn, false, false });
	}
	if (!f->whole)
		return;
	*f->parts = l->s->c;
	for (int i = 0; i < slots->count; i++) {
		f->mixer[i] = slots->kind[i];
		f->ffn[i] = -1;
	}
}

void mb_floors_free(struct mb_floors *f)
{
	free(f->table);
	mb_arena_free(&f->arena);
}

static uint64_t hash_of(const struct floor_entry *e)
{
	const int values[] = { e->part, e->tp, e->cp, e->mbs, e->ep, e->etp, e->group.sp, e->group.cp_comm, e->group.tp_overlap, e->feature.dispatcher,
		e->feature.graph, (int)e->tokens };
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		h = (h ^ (uint64_t)values[i]) * 1099511628211u;
	return h ^ h >> 29;
}

static bool same_entry(const struct floor_entry *a, const struct floor_entry *b)
{
	return a->part == b->part && a->tp == b->tp && a->cp == b->cp && a->mbs == b->mbs && a->ep == b->ep && a->etp == b->etp
	       && !(a->tokens < b->tokens || a->tokens > b->tokens) && a->group.sp == b->group.sp && a->group.cp_comm == b->group.cp_comm
	       && a->group.tp_overlap == b->group.tp_overlap && a->feature.dispatcher == b->feature.dispatcher
	       && a->feature.graph == b->feature.graph;
}

static struct floor_slot *slot_of(struct floor_slot *table, int capacity, uint64_t hash, const struct floor_entry *key)
{
	size_t mask = (size_t)capacity - 1, at = hash & mask;

	while (table[at].entry && !(key && table[at].hash == hash && same_entry(table[at].entry, key)))
		at = (at + 1) & mask;
	return &table[at];
}

static void grow(struct mb_floors *f)
{
	struct floor_slot *table = calloc((size_t)f->capacity * 2, sizeof *table);

	if (!table)
		return;
	for (int i = 0; i < f->capacity; i++)
		if (f->table[i].entry)
			*slot_of(table, 2 * f->capacity, f->table[i].hash, NULL) = f->table[i];
	free(f->table);
	f->table = table;
	f->capacity *= 2;
}

static bool is_moe(const struct mb_floors *f, int part)
{
	return part < MB_MAX_LAYER_KINDS && f->parts->model.kinds[part].ffn == MB_FFN_MOE;
}

/* The entry with this key; a new one's `once` is empty. */
static struct floor_entry *entry_of(struct mb_floors *f, const struct floor_entry *key)
{
	struct floor_entry **recent = &f->recent[key->part][key->group.sp == ALL_GROUPS];
	struct floor_slot *slot;
	uint64_t hash;

	if (*recent && same_entry(*recent, key))
		return *recent;
	hash = hash_of(key);
	if (2 * f->count > f->capacity)
		grow(f);
	slot = slot_of(f->table, f->capacity, hash, key);
	if (!slot->entry) {
		*slot = (struct floor_slot){ mb_arena_room(&f->arena, sizeof *key), hash };
		f->count++;
		*slot->entry = *key;
	}
	return *recent = slot->entry;
}

/* Blocks at the ends know tokens alone. */
static bool is_end(int part)
{
	return part >= MB_MAX_LAYER_KINDS;
}

static bool captures_all(const struct mb_floors *f, int graph)
{
	return f->l->s->axis[MB_P_GRAPH].of[graph].plan.cuda_graph_impl == MB_GRAPH_FULL;
}

/* What a part depends on of the sizes alone. */
static struct floor_entry key_of(const struct mb_floors *f, int part, bool ffn, const struct mb_plan *p, const struct mb_dims *d)
{
	bool moe = is_moe(f, part), tokens = ffn || is_end(part);

	return (struct floor_entry){ .part = part, .tp = p->tp, .cp = tokens ? 0 : p->cp, .mbs = tokens ? 0 : p->micro_batch_size,
		.ep = moe ? p->ep : 0, .etp = moe ? p->etp : 0, .tokens = d->tokens };
}

static const struct floor_entry *part_entry(struct mb_floors *f, int part, bool ffn, const struct mb_plan *p, const struct mb_dims *d,
                                            const struct mb_group *g, const struct mb_feature *feature)
{
	bool moe = is_moe(f, part);
	struct floor_entry key = key_of(f, part, ffn, p, d), *e;

	key.group = *g;
	key.feature = (struct mb_feature){ moe ? f->l->timed_dispatcher[feature->dispatcher] : 0, 0, 0, feature->graph };
	if (ffn || is_end(part))
		key.group.cp_comm = 0;
	if (is_end(part) && !captures_all(f, feature->graph))
		key.feature.graph = 0;
	e = entry_of(f, &key);
	if (!e->filled)
		mb_kind_once_fill(f->parts, p, d, part, f->scratch, &e->once);
	e->filled = true;
	return e;
}

static void add_part(const struct floor_entry *e, struct mb_kind_once *to)
{
	mb_brief_add(&to->brief, &e->once.brief);
	to->host_s += e->once.host_s;
	to->sync_s += e->once.sync_s;
}

/* Layers of the slot, with their time under a group and feature. */
static void join(struct mb_floors *f, int slot, const struct mb_plan *p, const struct mb_dims *d, const struct mb_group *g,
                 const struct mb_feature *feature, struct mb_kind_row *ret)
{
	struct mb_kind_once sum = { .host_s = 0 };

	if (f->mixer[slot] >= 0)
		add_part(part_entry(f, f->mixer[slot], false, p, d, g, feature), &sum);
	if (f->ffn[slot] >= 0)
		add_part(part_entry(f, f->ffn[slot], true, p, d, g, feature), &sum);
	mb_brief_row(f->parts, p, d, &sum.brief, &sum.brief, sum.host_s, sum.sync_s, 0, ret);
}

/* Whether the slot's time knows more of a feature than its graph. */
static bool has_experts(const struct mb_floors *f, int slot)
{
	return (f->whole && f->slots->kind[slot] < MB_MAX_LAYER_KINDS) || (f->ffn[slot] >= 0 && is_moe(f, f->ffn[slot]));
}

struct total { double gpu_s, host_s, sync_s; };

static void add_slot(const struct mb_kind_row *row, double layers, struct total *t)
{
	t->gpu_s += layers * row->gpu_s;
	t->host_s += layers * row->host_s;
	t->sync_s += layers * row->sync_s;
}

static void lower(const struct mb_kind_row *row, struct mb_kind_row *to)
{
	to->gpu_s = row->gpu_s < to->gpu_s ? row->gpu_s : to->gpu_s;
	to->forward_s = row->forward_s < to->forward_s ? row->forward_s : to->forward_s;
}

/* Adds the layers of slots with experts, or of those without. */
static void add_slots(struct mb_floors *f, bool experts, const struct mb_plan *p, const struct mb_dims *d, const struct mb_group *g,
                      const struct mb_feature *feature, struct total *t, struct mb_kind_row *ret_least)
{
	for (int i = 0; i < f->slots->count; i++) {
		struct mb_kind_row row;

		if (has_experts(f, i) != experts)
			continue;
		join(f, i, p, d, g, feature, &row);
		add_slot(&row, f->layers[i], t);
		if (ret_least)
			lower(&row, &ret_least[i]);
	}
}

/* The blocks at the ends and layers without experts are the same for all features with a graph. */
static struct total plain_total(struct mb_floors *f, const struct mb_plan *p, const struct mb_dims *d, const struct mb_group *g,
                                const struct mb_feature *feature, struct mb_kind_row *ret_least)
{
	struct mb_feature first = { 0, feature->overlap, 0, feature->graph };
	struct mb_plan one = *p;
	struct total t = { 0, 0, 0 };

	mb_set_feature(f->l->s, &first, &one);
	add_slots(f, false, &one, d, g, &first, &t, ret_least);
	return t;
}

/* Least device time that a part adds to a layer under one group and feature, whatever it is put together with. */
static double seconds_alone(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_brief *once)
{
	double comm = once->expert_comm_s[MB_FORWARD] + once->expert_comm_s[MB_BACKWARD], hidden = 0;
	double products = once->product_s[MB_FORWARD] + once->product_s[MB_BACKWARD];

	if (p->overlap_moe_expert_parallel_comm)
		hidden = d->full_graph ? c->params.overlap_graph_frac : c->params.overlap_eager_frac;
	else if (comm > 0)
		hidden = mb_hidden_share(c, p, d, comm, 0, 0, once->shared_s);
	return once->all_s[MB_FORWARD] + once->all_s[MB_BACKWARD] + comm * (1 - hidden) - products * (1 - 1 / (1 + c->params.power_boost_frac));
}

/* Features of the plan's facts, without those whose device time is that of an earlier one. */
static const struct mb_timed_features *timed_features(struct mb_floors *f, const struct mb_plan *p, bool moe)
{
	unsigned facts = mb_space_facts(f->l->s, p) & ~(unsigned)MB_FACT_VP;
	struct mb_timed_features *t = &f->timed[facts][moe];
	const struct mb_feature *from;
	struct mb_feature *of;
	int count;

	if (t->count > 0)
		return t;
	from = mb_legality_extremes(f->l, p, &count);
	t->of = of = mb_arena_alloc(&f->arena, (size_t)(count + 1) * sizeof *of);
	for (int i = 0; i < count; i++) {
		bool known = false;

		for (int j = 0; j < t->count && !known; j++)
			known = captures_all(f, of[j].graph) == captures_all(f, from[i].graph)
			        && (!moe || (of[j].dispatcher == from[i].dispatcher && of[j].overlap == from[i].overlap && of[j].shared == from[i].shared));
		if (!known)
			of[t->count++] = from[i];
	}
	for (t->id = 0; t->id < (int)facts; t->id++) {
		const struct mb_timed_features *o = &f->timed[t->id][moe];

		if (o->count == t->count && memcmp(o->of, t->of, (size_t)t->count * sizeof *of) == 0)
			break;
	}
	return t;
}

/* Seconds of a part under one group and feature; unrouted: what holds for all expert-parallel sizes. */
static double part_seconds(struct mb_floors *f, int part, bool ffn, const struct mb_plan *p, const struct mb_group *g,
                           const struct mb_feature *feature, bool unrouted)
{
	struct mb_brief brief;
	struct mb_dims d;

	mb_dims_fill(f->parts, p, &d);
	if (!unrouted)
		return seconds_alone(f->parts, p, &d, &part_entry(f, part, ffn, p, &d, g, feature)->once.brief);
	mb_kind_unrouted_fill(f->parts, p, &d, part, f->scratch, &brief);
	return seconds_alone(f->parts, p, &d, &brief);
}

/* A feed-forward part knows no context parallelism, and only experts know more of the features than the graph. */
static double least_of_group(struct mb_floors *f, int part, bool ffn, const struct mb_plan *p, const struct mb_group *g, bool unrouted)
{
	const struct mb_timed_features *t = timed_features(f, p, is_moe(f, part));
	struct mb_plan one = *p;
	double least = INFINITY;

	mb_set_group(f->l->s, g, &one);
	for (int i = 0; i < t->count; i++) {
		mb_set_feature(f->l->s, &t->of[i], &one);
		least = mb_smaller(least, part_seconds(f, part, ffn, &one, g, &t->of[i], unrouted));
	}
	return least;
}

/* The least over groups and features, kept under what these depend on. */
static double least_alone(struct mb_floors *f, int part, bool ffn, const struct mb_plan *p, const struct mb_dims *d, const struct mb_groups *groups,
                          bool routed)
{
	struct floor_entry key = key_of(f, part, ffn, p, d), *e;
	bool tokens = ffn || is_end(part), unrouted = is_moe(f, part) && !routed;

	if (unrouted)
		key.ep = key.etp = 0;
	key.group.sp = ALL_GROUPS;
	key.feature.dispatcher = (uint8_t)timed_features(f, p, is_moe(f, part))->id;
	for (int g = 0; g < groups->count; g++)
		key.group.cp_comm |= (uint8_t)(1 << (groups->of[g].sp * 2 + groups->of[g].tp_overlap));
	e = entry_of(f, &key);
	if (e->filled)
		return e->once.host_s;
	e->filled = true;
	e->once.host_s = INFINITY;
	for (int g = 0; g < groups->count; g++) {
		bool known = false;

		for (int o = 0; tokens && o < g && !known; o++)
			known = groups->of[o].sp == groups->of[g].sp && groups->of[o].tp_overlap == groups->of[g].tp_overlap;
		if (!known)
			e->once.host_s = mb_smaller(e->once.host_s, least_of_group(f, part, ffn, p, &groups->of[g], unrouted));
	}
	return e->once.host_s;
}

double mb_floors_crude(struct mb_floors *f, const struct mb_plan *p, const struct mb_groups *groups, bool routed)
{
	struct mb_dims d;
	double sum = 0;

	mb_dims_fill(&f->l->s->c, p, &d);
	for (int i = 0; i < f->slots->count; i++) {
		if (f->mixer[i] >= 0 && f->layers[i] > 0)
			sum += f->layers[i] * least_alone(f, f->mixer[i], false, p, &d, groups, routed);
		if (f->ffn[i] >= 0 && f->layers[i] > 0)
			sum += f->layers[i] * least_alone(f, f->ffn[i], true, p, &d, groups, routed);
	}
	return sum * (1 - 1e-9);
}

double mb_floors_model(struct mb_floors *f, const struct mb_plan *p, const struct mb_groups *groups, double *ret_each,
                       struct mb_kind_row *ret_least)
{
	const struct mb_space *s = f->l->s;
	int count, known_graph = -1, known_group = -1, known_overlap = -1;
	const struct mb_feature *features = mb_legality_extremes(f->l, p, &count);
	struct total plain = { 0, 0, 0 };
	double least = INFINITY;

	for (int i = 0; ret_least && i < f->slots->count; i++)
		ret_least[i] = (struct mb_kind_row){ .gpu_s = INFINITY, .forward_s = INFINITY };
	for (int g = 0; g < groups->count; g++) {
		struct mb_plan one = *p;
		struct mb_dims d;

		mb_set_group(s, &groups->of[g], &one);
		for (int i = 0; i < count; i++) {
			struct total t;
			double model_s;

			mb_set_feature(s, &features[i], &one);
			if (known_graph != features[i].graph || known_group != g || known_overlap != features[i].overlap) {
				mb_dims_fill(&s->c, &one, &d);          /* of features they know graphs alone */
				plain = plain_total(f, &one, &d, &groups->of[g], &features[i], ret_least);
			}
			known_graph = features[i].graph;
			known_group = g;
			known_overlap = features[i].overlap;
			t = plain;
			add_slots(f, true, &one, &d, &groups->of[g], &features[i], &t, ret_least);
			model_s = mb_meet(&s->c.params, t.gpu_s, t.host_s, t.sync_s);
			if (ret_each)
				ret_each[i * groups->count + g] = model_s;
			least = mb_smaller(least, model_s);
		}
	}
	return least;
}
