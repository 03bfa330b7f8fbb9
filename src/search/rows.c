#include "search/rows.h"

#include <math.h>
#include <string.h>

#include "base/larger.h"

/* One group and set of features. */
struct variant {
	struct mb_plan p;
	struct mb_dims d;
	const struct mb_kind_pieces **pieces;           /* [slots]; shared where variants do not differ in them */
	const struct mb_kind_row **plain;               /* [rep]: [slots] */
	const struct mb_kind_row *full;
	double *model_s, *offloaded_model_s;            /* as plain and offloaded; 0: not known yet */
	const struct mb_kind_row **offloaded;           /* [rep][offloading choice]: [slots] */
};

void mb_set_group(const struct mb_space *s, const struct mb_group *g, struct mb_plan *p)
{
	mb_axis_copy(MB_P_SP, &s->axis[MB_P_SP].of[g->sp].plan, p);
	mb_axis_copy(MB_P_CP_COMM, &s->axis[MB_P_CP_COMM].of[g->cp_comm].plan, p);
	mb_axis_copy(MB_P_TP_OVERLAP, &s->axis[MB_P_TP_OVERLAP].of[g->tp_overlap].plan, p);
}

void mb_set_feature(const struct mb_space *s, const struct mb_feature *f, struct mb_plan *p)
{
	mb_axis_copy(MB_P_DISPATCHER, &s->axis[MB_P_DISPATCHER].of[f->dispatcher].plan, p);
	mb_axis_copy(MB_P_EP_OVERLAP, &s->axis[MB_P_EP_OVERLAP].of[f->overlap].plan, p);
	mb_axis_copy(MB_P_SHARED_OVERLAP, &s->axis[MB_P_SHARED_OVERLAP].of[f->shared].plan, p);
	mb_axis_copy(MB_P_GRAPH, &s->axis[MB_P_GRAPH].of[f->graph].plan, p);
}

static size_t variant_index(const struct mb_legality *l, int group, struct mb_feature f)
{
	const struct mb_space *s = l->s;
	size_t i = (size_t)group;

	i = i * (size_t)s->axis[MB_P_DISPATCHER].count + l->timed_dispatcher[f.dispatcher];
	i = i * (size_t)s->axis[MB_P_EP_OVERLAP].count + f.overlap;
	i = i * (size_t)s->axis[MB_P_SHARED_OVERLAP].count + f.shared;
	return i * (size_t)s->axis[MB_P_GRAPH].count + f.graph;
}

/* Layers know whether there is a pipeline, not how long it is. */
static bool same_layers(const struct mb_space *s, const struct mb_plan *a, const struct mb_plan *b)
{
	return a->tp == b->tp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp && a->micro_batch_size == b->micro_batch_size
	       && mb_space_facts(s, a) == mb_space_facts(s, b);
}

static void fill_extremes(struct mb_rows_cache *cache, struct mb_rows *r);

void mb_rows_cache_init(struct mb_rows_cache *cache, struct mb_legality *l)
{
	cache->l = l;
	mb_slots_fill(&l->s->c, &cache->slots);
	for (int i = 0; i < cache->slots.count; i++)
		cache->layers[i] = mb_layers_of_kind(&l->s->c, cache->slots.kind[i]);
}

static size_t moved_count(const struct mb_rows_cache *cache);

struct mb_rows *mb_rows_of(struct mb_rows_cache *cache, const struct mb_plan *p)
{
	struct mb_rows *oldest = &cache->rows[0];
	size_t variants;

	cache->clock++;
	for (int i = 0; i < MB_ROWS_CACHED; i++) {
		struct mb_rows *r = &cache->rows[i];

		if (r->used > 0 && same_layers(cache->l->s, &r->p, p)) {
			r->used = cache->clock;
			return r;
		}
		if (r->used < oldest->used)
			oldest = r;
	}
	mb_arena_free(&oldest->arena);
	*oldest = (struct mb_rows){ .p = *p, .arena.pool = &cache->pool, .used = cache->clock, .groups = mb_legality_groups(cache->l, p) };
	variants = variant_index(cache->l, oldest->groups->count, (struct mb_feature){ 0, 0, 0, 0 });
	oldest->variants = mb_arena_alloc(&oldest->arena, (variants + 1) * sizeof *oldest->variants);
	oldest->least = mb_arena_alloc(&oldest->arena, MB_MAX_REPS * sizeof *oldest->least);
	oldest->built = mb_arena_alloc(&oldest->arena, (variants + 1) * sizeof *oldest->built);
	fill_extremes(cache, oldest);
	oldest->least_offloaded = mb_arena_alloc(&oldest->arena, moved_count(cache) * sizeof *oldest->least_offloaded);
	return oldest;
}

/*
 * A variant whose pieces of the kind are the same: blocks at the ends know neither experts nor single graphs, layers
 * without experts no dispatcher and shared expert.
 */
static const struct variant *known_for(const struct mb_rows_cache *cache, const struct mb_rows *r, const struct variant *v, int group, int kind)
{
	const struct mb_model *m = &cache->l->s->c.model;

	if (kind < MB_MAX_LAYER_KINDS && m->kinds[kind].ffn == MB_FFN_MOE)
		return NULL;
	for (int i = 0; i < r->built_count; i++) {
		const struct variant *o = r->built[i].v;

		if (r->built[i].group == group && o->d.full_graph == v->d.full_graph && (kind >= MB_MAX_LAYER_KINDS || o->d.scope == v->d.scope))
			return o;
	}
	return NULL;
}

static struct variant *variant_of(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f)
{
	const struct mb_space *s = cache->l->s;
	struct variant **at = &r->variants[variant_index(cache->l, group, f)], *v = *at;

	if (v)
		return v;
	v = *at = mb_arena_alloc(&r->arena, sizeof *v);
	v->plain = mb_arena_alloc(&r->arena, (size_t)cache->l->rep_count * sizeof *v->plain);
	v->model_s = mb_arena_alloc(&r->arena, (size_t)cache->l->rep_count * sizeof *v->model_s);
	v->p = r->p;
	mb_set_group(s, &r->groups->of[group], &v->p);
	mb_set_feature(s, &f, &v->p);
	mb_dims_fill(&s->c, &v->p, &v->d);
	if (f.overlap > 0) {
		f.overlap = 0;
		v->pieces = variant_of(cache, r, group, f)->pieces;
		return v;
	}
	v->pieces = mb_arena_alloc(&r->arena, (size_t)cache->slots.count * sizeof *v->pieces);
	for (int i = 0; i < cache->slots.count; i++) {
		int kind = cache->slots.kind[i];
		const struct variant *o = known_for(cache, r, v, group, kind);
		struct mb_kind_pieces *new;

		if (o) {
			v->pieces[i] = o->pieces[i];
			continue;
		}
		v->pieces[i] = new = mb_arena_room(&r->arena, sizeof *new);
		mb_kind_pieces_fill(&s->c, &v->p, &v->d, kind, cache->scratch, new);
	}
	r->built[r->built_count++] = (struct mb_built){ v, group };
	return v;
}

static unsigned modules_of(const struct mb_rows_cache *cache, int rep)
{
	const struct mb_plan *p = &cache->l->s->axis[MB_P_RECOMPUTE].of[cache->l->rep[rep]].plan;

	return p->recompute == MB_RECOMPUTE_SELECTIVE ? p->recompute_modules : 0;
}

static const struct mb_kind_row *treat(struct mb_rows_cache *cache, struct mb_rows *r, const struct variant *v, struct mb_treatment t)
{
	struct mb_kind_row *rows = mb_arena_room(&r->arena, (size_t)cache->slots.count * sizeof *rows);
	const struct mb_kind_row *known = (t.modules & MB_FULL) || t.offload_all ? NULL : v->plain[0];

	for (int i = 0; i < cache->slots.count; i++)    /* the blocks at the ends have no modules and nothing to move */
		if (known && cache->slots.kind[i] >= MB_MAX_LAYER_KINDS)
			rows[i] = known[i];
		else
			mb_kind_row_fill(&cache->l->s->c, &v->p, &v->d, v->pieces[i], t, &rows[i]);
	return rows;
}

const struct mb_kind_row *mb_rows_plain(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep)
{
	struct variant *v = variant_of(cache, r, group, f);

	if (!v->plain[rep])
		v->plain[rep] = treat(cache, r, v, (struct mb_treatment){ modules_of(cache, rep), 0, false });
	return v->plain[rep];
}

static double model_seconds(const struct mb_rows_cache *cache, const struct mb_kind_row *rows)
{
	double gpu = 0, host = 0, sync = 0;

	for (int i = 0; i < cache->slots.count; i++) {
		gpu += cache->layers[i] * rows[i].gpu_s;
		host += cache->layers[i] * rows[i].host_s;
		sync += cache->layers[i] * rows[i].sync_s;
	}
	return mb_meet(&cache->l->s->c.params, gpu, host, sync);
}

double mb_rows_model_s(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep)
{
	struct variant *v = variant_of(cache, r, group, f);

	if (!(v->model_s[rep] > 0))
		v->model_s[rep] = model_seconds(cache, mb_rows_plain(cache, r, group, f, rep));
	return v->model_s[rep];
}

const struct mb_kind_row *mb_rows_full(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f)
{
	struct variant *v = variant_of(cache, r, group, f);

	if (!v->full)
		v->full = treat(cache, r, v, (struct mb_treatment){ MB_FULL, 0, false });
	return v->full;
}

static struct mb_treatment treatment_of(const struct mb_rows_cache *cache, int rep, int offload)
{
	const struct mb_plan *o = &cache->l->s->axis[MB_P_OFFLOAD].of[offload].plan;

	return (struct mb_treatment){ modules_of(cache, rep), o->offload_modules, o->cpu_offloading };
}

static size_t moved_index(const struct mb_rows_cache *cache, int rep, int offload)
{
	return (size_t)rep * (size_t)cache->l->s->axis[MB_P_OFFLOAD].count + (size_t)offload;
}

static size_t moved_count(const struct mb_rows_cache *cache)
{
	return moved_index(cache, cache->l->rep_count, 0);
}

const struct mb_kind_row *mb_rows_offloaded(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep, int offload)
{
	struct variant *v = variant_of(cache, r, group, f);
	size_t at = moved_index(cache, rep, offload);

	if (!v->offloaded)
		v->offloaded = mb_arena_alloc(&r->arena, moved_count(cache) * sizeof *v->offloaded);
	if (!v->offloaded[at])
		v->offloaded[at] = treat(cache, r, v, treatment_of(cache, rep, offload));
	return v->offloaded[at];
}

double mb_rows_offloaded_model_s(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep, int offload)
{
	struct variant *v = variant_of(cache, r, group, f);
	double *model_s;

	if (!v->offloaded_model_s)
		v->offloaded_model_s = mb_arena_alloc(&r->arena, moved_count(cache) * sizeof *v->offloaded_model_s);
	model_s = &v->offloaded_model_s[moved_index(cache, rep, offload)];
	if (!(*model_s > 0))
		*model_s = model_seconds(cache, mb_rows_offloaded(cache, r, group, f, rep, offload));
	return *model_s;
}

double mb_rows_input_bytes(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int slot)
{
	return variant_of(cache, r, group, f)->pieces[slot]->input_bytes;
}

/* ---- minima ---- */

/* In the order of mb_floors_model: by feature, then group. */
static void fill_extremes(struct mb_rows_cache *cache, struct mb_rows *r)
{
	int count;
	const struct mb_feature *features = mb_legality_extremes(cache->l, &r->p, &count);

	r->extremes = mb_arena_alloc(&r->arena, (size_t)(count * r->groups->count + 1) * sizeof *r->extremes);
	for (int i = 0; i < count; i++)
		for (int g = 0; g < r->groups->count; g++)
			r->extremes[r->extreme_count++] = (struct mb_extreme){ g, features[i], false };
}

static void lower(const struct mb_rows_cache *cache, const struct mb_kind_row *from, struct mb_kind_row *to)
{
	for (int i = 0; i < cache->slots.count; i++) {
		to[i].gpu_s = mb_smaller(to[i].gpu_s, from[i].gpu_s);
		to[i].forward_s = mb_smaller(to[i].forward_s, from[i].forward_s);
		to[i].host_s = cache->graphs_help ? mb_smaller(to[i].host_s, from[i].host_s) : 0;
		to[i].sync_s = cache->graphs_help ? mb_smaller(to[i].sync_s, from[i].sync_s) : 0;
		to[i].saved_bytes = mb_smaller(to[i].saved_bytes, from[i].saved_bytes);
		to[i].event_bytes = mb_smaller(to[i].event_bytes, from[i].event_bytes);
	}
}

static struct mb_kind_row *start_least(struct mb_rows_cache *cache, struct mb_rows *r)
{
	struct mb_kind_row *least = mb_arena_room(&r->arena, (size_t)cache->slots.count * sizeof *least);

	for (int i = 0; i < cache->slots.count; i++)
		least[i] = (struct mb_kind_row){ .gpu_s = INFINITY, .forward_s = INFINITY, .saved_bytes = INFINITY, .host_s = INFINITY,
			.sync_s = INFINITY, .event_bytes = INFINITY };
	return least;
}

/* Over the extremes; offload -1: nothing offloaded. */
static const struct mb_kind_row *least_over(struct mb_rows_cache *cache, struct mb_rows *r, int rep, int offload)
{
	struct mb_kind_row *least = start_least(cache, r);

	for (int e = 0; e < r->extreme_count; e++) {
		const struct mb_extreme *x = &r->extremes[e];

		if (!x->out)
			lower(cache, offload < 0 ? mb_rows_plain(cache, r, x->group, x->f, rep) : mb_rows_offloaded(cache, r, x->group, x->f, rep, offload),
			      least);
	}
	return least;
}

const struct mb_kind_row *mb_rows_least(struct mb_rows_cache *cache, struct mb_rows *r, int rep)
{
	if (!r->least[rep])
		r->least[rep] = least_over(cache, r, rep, -1);
	return r->least[rep];
}

const struct mb_kind_row *mb_rows_least_offloaded(struct mb_rows_cache *cache, struct mb_rows *r, int rep, int offload)
{
	size_t at = moved_index(cache, rep, offload);

	if (!r->least_offloaded[at])
		r->least_offloaded[at] = least_over(cache, r, rep, offload);
	return r->least_offloaded[at];
}

void mb_rows_least_bytes(struct mb_rows_cache *cache, struct mb_rows *r, int rep, int offload, double *ret_saved, double *ret_event)
{
	struct mb_treatment t = treatment_of(cache, rep, offload);

	for (int i = 0; i < cache->slots.count; i++)
		ret_saved[i] = ret_event[i] = cache->slots.kind[i] < MB_MAX_LAYER_KINDS ? INFINITY : 0;
	for (int e = 0; e < r->extreme_count; e++) {
		const struct variant *v;

		if (r->extremes[e].out)
			continue;
		v = variant_of(cache, r, r->extremes[e].group, r->extremes[e].f);
		for (int i = 0; i < cache->slots.count; i++) {
			struct mb_kind_row row;

			if (cache->slots.kind[i] >= MB_MAX_LAYER_KINDS)
				continue;
			mb_kind_bytes_fill(&v->p, v->pieces[i], t, &row);
			ret_saved[i] = mb_smaller(ret_saved[i], row.saved_bytes);
			ret_event[i] = mb_smaller(ret_event[i], row.event_bytes);
		}
	}
}

const struct mb_kind_row *mb_rows_least_full(struct mb_rows_cache *cache, struct mb_rows *r)
{
	struct mb_kind_row *least, rows[MB_KIND_COUNT];

	if (r->least_full)
		return r->least_full;
	least = start_least(cache, r);
	for (int e = 0; e < r->extreme_count; e++) {
		int group = r->extremes[e].group;
		struct mb_feature f = r->extremes[e].f;
		const struct mb_kind_row *full;

		if (r->extremes[e].out)
			continue;
		full = mb_rows_full(cache, r, group, f);

		for (int i = 0; i < cache->slots.count; i++) {
			rows[i] = full[i];
			rows[i].saved_bytes = mb_rows_input_bytes(cache, r, group, f, i);
		}
		lower(cache, rows, least);
	}
	return r->least_full = least;
}

void mb_rows_narrow(struct mb_rows_cache *cache, struct mb_rows *r, double limit_s, const double *step_s)
{
	if (r->narrowed_s > 0 && limit_s <= r->narrowed_s)
		return;
	if (r->narrowed_s > 0) {
		memset(r->least, 0, MB_MAX_REPS * sizeof *r->least);
		memset(r->least_offloaded, 0, moved_count(cache) * sizeof *r->least_offloaded);
		r->least_full = NULL;
	}
	r->narrowed_s = limit_s;
	for (int e = 0; e < r->extreme_count; e++)
		r->extremes[e].out = step_s[e] > limit_s * (1 + 1e-9) + 1e-7;
}

/* Whether, at some sizes, no layer takes less host time with fewer regions captured. */
bool mb_rows_graphs_help(struct mb_rows_cache *cache, struct mb_rows *r)
{
	const struct mb_choices *graphs = &cache->l->s->axis[MB_P_GRAPH];

	for (int a = 0; a < graphs->count; a++) {
		for (int b = 0; b < graphs->count; b++) {
			const struct mb_plan *p = &graphs->of[a].plan, *o = &graphs->of[b].plan;
			bool te = (p->cuda_graph_impl == MB_GRAPH_TE || p->cuda_graph_impl == MB_GRAPH_NONE) && o->cuda_graph_impl == MB_GRAPH_TE;
			struct mb_feature f = { 0, 0, 0, (uint8_t)a }, g = { 0, 0, 0, (uint8_t)b };

			if (!te || (p->cuda_graph_scope & ~o->cuda_graph_scope) != 0)
				continue;
			for (int k = 0; k < cache->slots.count; k++)
				if (mb_rows_plain(cache, r, 0, g, 0)[k].host_s > mb_rows_plain(cache, r, 0, f, 0)[k].host_s
				    || mb_rows_plain(cache, r, 0, g, 0)[k].gpu_s > mb_rows_plain(cache, r, 0, f, 0)[k].gpu_s * (1 + 1e-12)
				    || mb_rows_plain(cache, r, 0, g, 0)[k].sync_s > mb_rows_plain(cache, r, 0, f, 0)[k].sync_s)
					return false;
		}
	}
	return true;
}

void mb_rows_free(struct mb_rows_cache *cache)
{
	for (int i = 0; i < MB_ROWS_CACHED; i++) {
		mb_arena_free(&cache->rows[i].arena);
		cache->rows[i] = (struct mb_rows){ .used = 0 };
	}
	mb_arena_pool_free(&cache->pool);
}
