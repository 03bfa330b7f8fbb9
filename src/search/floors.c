#include "search/floors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one part runs once, under some sizes. */
struct floor_entry {
	int part;
	int tp, cp, mbs, ep, etp;       /* of a feed-forward part: cp 0 and mbs the tokens of a group */
	double tokens;
	struct mb_group group;
	uint8_t dispatcher;
	struct mb_sums once;
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

void mb_floors_init(struct mb_floors *f, const struct mb_legality *l, const struct mb_slots *slots)
{
	*f = (struct mb_floors){ .l = l, .slots = slots, .capacity = 1 << 12 };
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
	const int values[] = { e->part, e->tp, e->cp, e->mbs, e->ep, e->etp, e->group.sp, e->group.cp_comm, e->group.tp_overlap, e->dispatcher,
		(int)e->tokens };
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		h = (h ^ (uint64_t)values[i]) * 1099511628211u;
	return h ^ h >> 29;
}

static bool same_entry(const struct floor_entry *a, const struct floor_entry *b)
{
	return a->part == b->part && a->tp == b->tp && a->cp == b->cp && a->mbs == b->mbs && a->ep == b->ep && a->etp == b->etp
	       && !(a->tokens < b->tokens || a->tokens > b->tokens) && a->group.sp == b->group.sp && a->group.cp_comm == b->group.cp_comm
	       && a->group.tp_overlap == b->group.tp_overlap && a->dispatcher == b->dispatcher;
}

static void grow(struct mb_floors *f)
{
	struct floor_entry **old = f->table, **table = calloc((size_t)f->capacity * 2, sizeof *table);

	if (!table)
		return;
	for (int i = 0; i < f->capacity; i++) {
		size_t at;

		if (!old[i])
			continue;
		at = hash_of(old[i]) & (size_t)(2 * f->capacity - 1);
		while (table[at])
			at = (at + 1) & (size_t)(2 * f->capacity - 1);
		table[at] = old[i];
	}
	free(old);
	f->table = table;
	f->capacity *= 2;
}

/* Expert exchange taken as hidden, gaps as in a graph of the whole iteration. */
static void build(struct mb_floors *f, struct floor_entry *e, const struct mb_plan *p, const struct mb_dims *d)
{
	double gap = d->full_graph ? 1 : fmin(f->parts->params.graph_gap_factor, 1);
	struct mb_kind_pieces pieces;

	mb_kind_pieces_fill(f->parts, p, d, e->part, f->scratch, &pieces);
	e->once = pieces.once;
	for (int dir = 0; dir < MB_DIRECTIONS; dir++) {
		e->once.expert_comm_s[dir] = 0;
		e->once.s[dir][MB_TIME_gaps] *= gap;
	}
}

static const struct mb_sums *part_sums(struct mb_floors *f, int part, bool ffn, const struct mb_plan *p, const struct mb_dims *d,
                                       const struct mb_group *g, int dispatcher)
{
	bool moe = ffn && f->parts->model.kinds[part].ffn == MB_FFN_MOE;
	struct floor_entry key = { .part = part, .tp = p->tp, .cp = ffn ? 0 : p->cp, .mbs = ffn ? 0 : p->micro_batch_size,
		.ep = moe ? p->ep : 0, .etp = moe ? p->etp : 0, .tokens = d->tokens, .group = *g, .dispatcher = moe ? (uint8_t)dispatcher : 0 };
	size_t at;

	if (ffn)
		key.group.cp_comm = 0;
	if (2 * f->count > f->capacity)
		grow(f);
	at = hash_of(&key) & (size_t)(f->capacity - 1);
	for (; f->table[at]; at = (at + 1) & (size_t)(f->capacity - 1))
		if (same_entry(f->table[at], &key))
			return &f->table[at]->once;
	f->table[at] = mb_arena_alloc(&f->arena, sizeof key);
	f->count++;
	*f->table[at] = key;
	build(f, f->table[at], p, d);
	return &f->table[at]->once;
}

static double joined_s(struct mb_floors *f, int slot, const struct mb_plan *p, const struct mb_dims *d, const struct mb_group *g, int dispatcher)
{
	struct mb_kind_pieces pieces = { .replay_count = 0 };
	struct mb_kind_row row;

	if (f->mixer[slot] >= 0)
		pieces.once = *part_sums(f, f->mixer[slot], false, p, d, g, 0);
	if (f->ffn[slot] >= 0) {
		const struct mb_sums *ffn = part_sums(f, f->ffn[slot], true, p, d, g, dispatcher);

		for (int dir = 0; dir < MB_DIRECTIONS; dir++)
			for (int i = 0; i < MB_TIME_COUNT; i++)
				pieces.once.s[dir][i] += ffn->s[dir][i];
	}
	mb_kind_row_fill(f->parts, p, d, &pieces, (struct mb_treatment){ 0, 0, false }, &row);
	return row.gpu_s;
}

void mb_floors_of(struct mb_floors *f, const struct mb_plan *p, const struct mb_groups *groups, double ret[MB_KIND_COUNT])
{
	const struct mb_space *s = f->l->s;
	const struct mb_choices *dispatchers = &s->axis[MB_P_DISPATCHER];
	unsigned facts = mb_space_facts(s, p);

	for (int i = 0; i < f->slots->count; i++)
		ret[i] = INFINITY;
	for (int g = 0; g < groups->count; g++) {
		for (int disp = 0; disp < dispatchers->count; disp++) {
			struct mb_plan one = *p;
			struct mb_dims d;

			if (disp > 0 && !mb_choice_is_candidate(&dispatchers->of[disp], facts))
				continue;
			mb_set_group(s, &groups->of[g], &one);
			mb_set_feature(s, &(struct mb_feature){ (uint8_t)disp, 0, 0, 0 }, &one);
			mb_dims_fill(&s->c, &one, &d);
			for (int i = 0; i < f->slots->count; i++) {
				bool experts = f->ffn[i] >= 0 && f->parts->model.kinds[f->ffn[i]].ffn == MB_FFN_MOE;

				if (disp == 0 || experts || f->whole)
					ret[i] = fmin(ret[i], joined_s(f, i, &one, &d, &groups->of[g], disp));
			}
		}
	}
}
