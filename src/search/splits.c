#include "search/splits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cost/split.h"
#include "plan/rules_private.h"

struct maker {
	struct mb_space *s;
	struct mb_splits *splits;
	struct mb_split *split;         /* scratch */
	struct mb_split_row *rows;
	int count, capacity;
	struct mb_plan plan;            /* pp and vp set */
	int pp, vp;
};

enum { MAX_ROWS = 8192 };

static uint32_t mix(uint32_t h, uint32_t value)
{
	return (h ^ value) * 16777619u;
}

static uint16_t intern_piece(struct maker *m, int j)
{
	const struct mb_chunk *chunk = &m->split->chunks[j];
	struct mb_splits *s = m->splits;
	uint32_t hash = 2166136261u;
	struct mb_piece *p;

	for (int i = 0; i < chunk->layers; i++)
		hash = mix(hash, m->s->c.model.layers[chunk->first_layer + i] + 1u);
	hash = mix(mix(mix(hash, 1000u + chunk->mtp), 2000u + chunk->embedding), 3000u + chunk->loss);
	for (int i = 0; i < s->piece_count; i++) {
		p = &s->pieces[i];
		if (p->hash == hash && p->layers == chunk->layers && p->mtp == chunk->mtp && p->embedding == chunk->embedding
		    && p->loss == chunk->loss && memcmp(p->kinds, m->split->kinds[j], sizeof p->kinds) == 0)
			return (uint16_t)i;
	}
	if (s->piece_count == MB_MAX_PIECES)
		return UINT16_MAX;
	p = &s->pieces[s->piece_count];
	memcpy(p->kinds, m->split->kinds[j], sizeof p->kinds);
	p->first_layer = chunk->first_layer;
	p->layers = chunk->layers;
	p->mtp = chunk->mtp;
	p->embedding = chunk->embedding;
	p->loss = chunk->loss;
	p->hash = hash;
	return (uint16_t)s->piece_count++;
}

static uint16_t intern_holding(struct maker *m, int rank)
{
	struct mb_splits *s = m->splits;
	struct mb_holding h = { .vp = (uint16_t)m->vp, .hash = 2166136261u };

	for (int j = rank; j < m->split->chunk_count; j += m->pp) {
		for (int k = 0; k < MB_KIND_COUNT; k++)
			h.kinds[k] = (uint16_t)(h.kinds[k] + m->split->kinds[j][k]);
		h.layers = (uint16_t)(h.layers + m->split->chunks[j].layers + m->split->chunks[j].mtp);
	}
	for (int k = 0; k < MB_KIND_COUNT; k++)
		h.hash = mix(h.hash, h.kinds[k]);
	h.hash = mix(h.hash, h.vp);
	for (int i = 0; i < s->holding_count; i++)
		if (s->holdings[i].hash == h.hash && memcmp(s->holdings[i].kinds, h.kinds, sizeof h.kinds) == 0 && s->holdings[i].vp == h.vp)
			return (uint16_t)i;
	if (s->holding_count == MB_MAX_HOLDINGS)
		return UINT16_MAX;
	s->holdings[s->holding_count] = h;
	return (uint16_t)s->holding_count++;
}

static bool breaks_rule(const struct maker *m, const struct mb_plan *p)
{
	unsigned split = 1u << MB_P_SPLIT, fixed = split | 1u << MB_P_PP | 1u << MB_P_VP;

	return mb_first_broken_since(&m->s->c, p, fixed, split) != NULL;
}

/* The same layers in every chunk: another spelling of a split that is there. */
static bool is_known(const struct maker *m, const struct mb_split_row *row)
{
	size_t chunks = (size_t)(m->pp * m->vp) * sizeof *row->at, pieces = (size_t)row->piece_count * sizeof *row->pieces;

	for (int i = 0; i < m->count; i++) {
		const struct mb_split_row *o = &m->rows[i];

		if (o->piece_count == row->piece_count && memcmp(o->at, row->at, chunks) == 0 && memcmp(o->pieces, row->pieces, pieces) == 0)
			return true;
	}
	return false;
}

/* Different pieces of the split in m->split. False when there are too many of them in all. */
static bool fill_pieces(struct maker *m, uint16_t pieces[MB_MAX_CHUNKS], uint16_t at[MB_MAX_CHUNKS], int *ret_count)
{
	int count = 0;

	for (int j = 0; j < m->pp * m->vp; j++) {
		uint16_t piece = intern_piece(m, j);
		int i = 0;

		if (piece == UINT16_MAX)
			return false;
		while (i < count && pieces[i] != piece)
			i++;
		if (i == count)
			pieces[count++] = piece;
		at[j] = (uint16_t)i;
	}
	*ret_count = count;
	return true;
}

static bool same_chunks(const struct maker *m, const uint16_t *at, int a, int b)
{
	for (int j = 0; j < m->vp; j++)
		if (at[j * m->pp + a] != at[j * m->pp + b])
			return false;
	return true;
}

static void fill_run(struct maker *m, const struct mb_split_row *row, int rank, struct mb_rank_run *ret)
{
	struct mb_share shares[MB_MAX_CHUNKS], *copy;
	int count = 0;

	for (int j = rank; j < m->pp * m->vp; j += m->pp) {
		int i = 0;

		while (i < count && shares[i].piece != row->at[j])
			i++;
		if (i == count)
			shares[count++] = (struct mb_share){ row->at[j], 0 };
		shares[i].count++;
	}
	copy = mb_arena_alloc(m->s->arena, (size_t)count * sizeof *copy);
	memcpy(copy, shares, (size_t)count * sizeof *copy);
	*ret = (struct mb_rank_run){ (uint16_t)rank, 1, row->at[rank], (uint16_t)count, copy };
}

static void fill_runs(struct maker *m, struct mb_split_row *row)
{
	int count = 0;

	for (int r = 0; r < m->pp; r++)
		count += r == 0 || !same_chunks(m, row->at, r, r - 1);
	row->runs = mb_arena_alloc(m->s->arena, (size_t)count * sizeof *row->runs);
	for (int r = 0; r < m->pp; r++)
		if (r == 0 || !same_chunks(m, row->at, r, r - 1))
			fill_run(m, row, r, &row->runs[row->run_count++]);
		else
			row->runs[row->run_count - 1].ranks++;
}

static uint16_t *copied(struct maker *m, const uint16_t *from, int count)
{
	uint16_t *copy = mb_arena_alloc(m->s->arena, (size_t)count * sizeof *copy);

	memcpy(copy, from, (size_t)count * sizeof *copy);
	return copy;
}

static bool add_row(struct maker *m, const struct mb_plan *p)
{
	uint16_t pieces[MB_MAX_CHUNKS], at[MB_MAX_CHUNKS];
	struct mb_split_row row = { .plan = *p, .pieces = pieces, .at = at };

	if (m->count == m->capacity || !mb_split_fill(&m->s->c, p, m->split) || !fill_pieces(m, pieces, at, &row.piece_count)
	    || is_known(m, &row))
		return false;
	row.pieces = copied(m, pieces, row.piece_count);
	row.at = copied(m, at, m->pp * m->vp);
	row.holding = mb_arena_alloc(m->s->arena, (size_t)m->pp * sizeof *row.holding);
	for (int r = 0; r < m->pp; r++) {
		row.holding[r] = intern_holding(m, r);
		if (row.holding[r] == UINT16_MAX)
			return false;
		if (m->splits->holdings[row.holding[r]].layers > row.max_layers)
			row.max_layers = m->splits->holdings[row.holding[r]].layers;
	}
	fill_runs(m, &row);
	m->rows[m->count++] = row;
	return true;
}

static void offer_split(struct maker *m, const struct mb_plan *p)
{
	if (mb_space_allows(m->s, MB_P_SPLIT, p) && !breaks_rule(m, p))
		add_row(m, p);
}

/* The stages between share the rest, and virtual stages each stage. */
static bool ends_divide(const struct maker *m, int first, int last)
{
	int middle = m->pp - (first > 0) - (last > 0), rest = m->s->c.model.num_layers - first - last;

	if (first + last == 0 || first % m->vp != 0 || last % m->vp != 0)
		return false;
	return middle == 0 ? rest == 0 : rest > 0 && rest % (middle * m->vp) == 0;
}

/* Counts of the first and the last stage up to twice the even share. */
static void offer_ends(struct maker *m)
{
	int most = 2 * mb_space_recompute_layers(m->s, m->pp, 1);
	struct mb_plan p = m->plan;

	for (int first = 0; first <= most; first++) {
		for (int last = 0; last <= most; last++) {
			p.first_stage_layers = first;
			p.last_stage_layers = last;
			if (ends_divide(m, first, last))
				offer_split(m, &p);
		}
	}
}

static void add_symbols(struct mb_text *t, char symbol, int count)
{
	if (count > 1)
		mb_text_printf(t, "%c*%d", symbol, count);
	else if (count == 1)
		mb_text_printf(t, "%c", symbol);
}

/* "Et*3|(t*4|)*14mL" */
static char *layout_text(const struct maker *m, const struct mb_chunk *chunks, int n)
{
	struct mb_text t = { 0 };
	char *copy;

	for (int j = 0, run; j < n; j += run) {
		run = 1;
		while (j > 0 && j + run < n - 1 && chunks[j + run].layers == chunks[j].layers)
			run++;
		if (run > 1)
			mb_text_add(&t, "(");
		if (chunks[j].embedding)
			mb_text_add(&t, "E");
		add_symbols(&t, 't', chunks[j].layers);
		add_symbols(&t, 'm', chunks[j].mtp);
		mb_text_add(&t, chunks[j].loss ? "L" : "|");
		if (run > 1)
			mb_text_printf(&t, ")*%d", run);
	}
	copy = mb_arena_strdup(m->s->arena, t.data);
	mb_text_free(&t);
	return copy;
}

/* Layers of each chunk when embedding and loss take the place of some; false when a chunk between the ends is empty. */
static bool balance(const struct maker *m, int embedding, int loss, bool front, struct mb_chunk *chunks)
{
	int n = m->pp * m->vp, slots = m->s->c.model.num_layers + embedding + loss, rest = slots % n, first = 0;

	for (int j = 0; j < n; j++) {
		bool more = front ? j < rest : j >= n - rest;

		chunks[j] = (struct mb_chunk){ .layers = (uint16_t)(slots / n + more), .embedding = j == 0, .loss = j == n - 1 };
	}
	if (chunks[0].layers < embedding)
		return false;
	chunks[0].layers = (uint16_t)(chunks[0].layers - embedding);
	for (int j = n - 1; j > 0 && loss > 0; j--) {
		int take = loss < chunks[j].layers ? loss : chunks[j].layers;

		chunks[j].layers = (uint16_t)(chunks[j].layers - take);
		loss -= take;
	}
	for (int j = 0; j < n; j++) {
		if (j > 0 && j < n - 1 && chunks[j].layers == 0)
			return false;
		chunks[j].first_layer = (uint16_t)first;
		first += chunks[j].layers;
	}
	chunks[n - 1].mtp = (uint8_t)m->s->c.mtp_depth;
	return loss == 0 && first == m->s->c.model.num_layers;
}

static void offer_layout(struct maker *m, const struct mb_chunk *chunks)
{
	struct mb_case *c = &m->s->c;
	int n = m->pp * m->vp;
	struct mb_chunk *copy = mb_arena_alloc(m->s->arena, (size_t)n * sizeof *copy);
	struct mb_plan p = m->plan;

	if (c->layout_count == MB_MAX_LAYOUTS)
		return;
	memcpy(copy, chunks, (size_t)n * sizeof *copy);
	p.layout = c->layout_count;
	c->layouts[c->layout_count++] = (struct mb_layout){ layout_text(m, copy, n), n, copy };
	if (breaks_rule(m, &p) || !add_row(m, &p))
		c->layout_count--;
}

/*
 * Balanced layouts: the embedding takes the place of 0 or 1 layer, loss and MTP that of 0 to 3 + 2 per depth, and what
 * does not divide goes to the first or to the last chunks.
 */
static void offer_layouts(struct maker *m)
{
	struct mb_chunk chunks[MB_MAX_CHUNKS];
	int most = 3 + 2 * m->s->c.mtp_depth;
	bool open = m->s->open[MB_K_layout] && m->s->q->alternatives[MB_K_layout].count == 0;

	if (!open || m->pp == 1 || mb_is_hybrid(&m->s->c.model))
		return;
	for (int embedding = 0; embedding <= 1; embedding++)
		for (int loss = 0; loss <= most; loss++)
			for (int front = 1; front >= 0; front--)
				if (balance(m, embedding, loss, front > 0, chunks))
					offer_layout(m, chunks);
}

static int by_layers(const void *a, const void *b)
{
	const struct mb_split_row *x = a, *y = b;
	int order = mb_plan_compare(&x->plan, &y->plan);

	if (x->max_layers != y->max_layers)
		return x->max_layers - y->max_layers;
	return order;
}

static void fill_rows(struct maker *m)
{
	struct mb_plan p = m->plan;

	p.first_stage_layers = p.last_stage_layers = 0;
	p.layout = -1;
	m->plan = p;
	for (int ends = 0; ends < (m->pp > 1 ? 4 : 1); ends++) {
		p.account_for_embedding = ends & 1;
		p.account_for_loss = ends >> 1;
		offer_split(m, &p);
	}
	m->plan.account_for_embedding = m->plan.account_for_loss = false;
	if (m->pp > 1) {
		offer_ends(m);
		offer_layouts(m);
	}
	for (int i = 0; i < m->s->q->alternatives[MB_K_layout].count; i++) {
		p = m->plan;
		p.layout = (int)m->s->q->alternatives[MB_K_layout].values[i].i;
		offer_split(m, &p);
	}
}

static void fill_table(struct maker *m, int pp, int vp)
{
	struct mb_split_table *t = &m->splits->table[m->splits->count];

	m->pp = pp;
	m->vp = vp;
	m->count = 0;
	m->plan = m->s->q->c.run.plan;
	m->plan.pp = pp;
	m->plan.vp = vp;
	fill_rows(m);
	if (m->count == 0) {            /* what the user said, or the even split: legal or not */
		struct mb_plan p = m->s->q->c.run.plan;

		p.pp = pp;
		p.vp = vp;
		if (!breaks_rule(m, &p))
			add_row(m, &p);
	}
	if (m->count == 0 && vp > 1 && m->s->open[MB_K_vp] && m->s->q->alternatives[MB_K_vp].count == 0)
		return;                 /* no such number of virtual stages */
	*t = (struct mb_split_table){ .pp = pp, .vp = vp, .count = m->count, .legal = m->count > 0 };
	t->count = m->count > 0 ? m->count : 1;
	t->rows = mb_arena_alloc(m->s->arena, (size_t)t->count * sizeof *t->rows);
	if (m->count > 0)
		memcpy(t->rows, m->rows, (size_t)m->count * sizeof *t->rows);
	else
		t->rows[0] = (struct mb_split_row){ .plan = m->s->q->c.run.plan };
	qsort(t->rows, (size_t)t->count, sizeof *t->rows, by_layers);
	m->splits->count++;
}

int mb_splits_tables(const struct mb_splits *s, int pp, const struct mb_split_table **ret)
{
	if (pp < 1 || pp > MB_MAX_STAGES)
		return 0;
	*ret = s->table + s->first[pp];
	return s->tables[pp];
}

static void extend_layouts(struct mb_space *s)
{
	struct mb_layout *all = mb_arena_alloc(s->arena, MB_MAX_LAYOUTS * sizeof *all);

	if (s->c.layout_count > 0)
		memcpy(all, s->c.layouts, (size_t)s->c.layout_count * sizeof *all);
	s->c.layouts = all;
}

/* Pipelines of any size that the sizes allow: PP divides the GPUs or is the user's. */
static int pipeline_sizes(const struct mb_space *s, int ret[MB_MAX_SIZES])
{
	struct mb_plan p = s->q->c.run.plan;

	p.tp = p.cp = 1;
	return mb_space_sizes(s, MB_P_PP, &p, ret);
}

static void fill_layers(struct mb_space *s, struct mb_splits *ret)
{
	double *to;

	mb_slots_fill(&s->c, &ret->slots);
	to = ret->layers = mb_arena_alloc(s->arena, (size_t)(ret->piece_count * ret->slots.count + 1) * sizeof *ret->layers);
	for (int i = 0; i < ret->piece_count; i++)
		for (int k = 0; k < ret->slots.count; k++)
			*to++ = ret->pieces[i].kinds[ret->slots.kind[k]];
}

static void fill_bare(struct mb_splits *s)
{
	for (int i = 0; i < s->count; i++)
		for (int row = 0; s->table[i].legal && row < s->table[i].count; row++) {
			const struct mb_split_row *r = &s->table[i].rows[row];

			for (int k = 0; k < r->runs[0].share_count; k++)
				s->bare[s->table[i].pp] |= s->pieces[r->pieces[r->runs[0].shares[k].piece]].layers == 0;
		}
}

void mb_splits_fill(struct mb_space *s, struct mb_splits *ret)
{
	int pps[MB_MAX_SIZES], vps[MB_MAX_SIZES], n = pipeline_sizes(s, pps);
	struct maker m = { .s = s, .splits = ret, .capacity = MAX_ROWS };

	*ret = (struct mb_splits){ .capacity = 0 };
	extend_layouts(s);
	m.split = mb_arena_alloc(s->arena, sizeof *m.split);
	m.rows = mb_arena_alloc(s->arena, MAX_ROWS * sizeof *m.rows);
	ret->pieces = mb_arena_alloc(s->arena, MB_MAX_PIECES * sizeof *ret->pieces);
	ret->holdings = mb_arena_alloc(s->arena, MB_MAX_HOLDINGS * sizeof *ret->holdings);
	for (int i = 0; i < n; i++) {
		struct mb_plan p = s->q->c.run.plan;

		p.pp = pps[i];
		ret->capacity += mb_space_sizes(s, MB_P_VP, &p, vps);
	}
	ret->table = mb_arena_alloc(s->arena, (size_t)ret->capacity * sizeof *ret->table);
	for (int i = 0; i < n; i++) {
		struct mb_plan p = s->q->c.run.plan;
		int count;

		p.pp = pps[i];
		count = mb_space_sizes(s, MB_P_VP, &p, vps);
		if (pps[i] > 0 && pps[i] <= MB_MAX_STAGES)
			ret->first[pps[i]] = ret->count;
		for (int j = 0; j < count; j++)
			if (pps[i] > 0 && vps[j] > 0 && (long long)pps[i] * vps[j] <= MB_MAX_CHUNKS && pps[i] <= MB_MAX_STAGES)
				fill_table(&m, pps[i], vps[j]);
		if (pps[i] > 0 && pps[i] <= MB_MAX_STAGES)
			ret->tables[pps[i]] = ret->count - ret->first[pps[i]];
	}
	fill_layers(s, ret);
	fill_bare(ret);
}
