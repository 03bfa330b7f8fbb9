/*
 * Time and saved bytes of a layer of every kind, for the sizes of one tensor-, context- and expert-parallel group and
 * all that may be chosen beside them. Filled as asked for. Private to src/search.
 */
#ifndef MBSIM_SEARCH_ROWS_H
#define MBSIM_SEARCH_ROWS_H

#include "cost/bounds.h"
#include "search/legal.h"
#include "search/splits.h"

struct mb_extreme { int group; struct mb_feature f; bool out; };

struct mb_built { const struct variant *v; int group; };

struct mb_rows {
	struct mb_plan p;               /* outer axes of the sizes; pp 1 or 2 for whether there is a pipeline */
	struct mb_arena arena;
	const struct mb_groups *groups;
	struct variant **variants;      /* [group][dispatcher][overlap][shared][graph] */
	const struct mb_kind_row **least;               /* [rep] */
	const struct mb_kind_row *least_full;
	struct mb_kind_row *floors;     /* least device time of a layer by slot, nothing recomputed; NULL: not known */
	struct mb_built *built;         /* variants with pieces of their own */
	int built_count;
	struct mb_extreme *extremes;    /* variants among which the least of everything is */
	int extreme_count;
	double narrowed_s;              /* limit of steps under which some of them were left out; 0: none were */
	const struct mb_kind_row **least_offloaded;     /* [rep][offloading choice] */
	long used;                      /* for the cache */
};

enum { MB_ROWS_CACHED = 20 };

struct mb_rows_cache {
	struct mb_legality *l;
	struct mb_slots slots;
	double layers[MB_KIND_COUNT];   /* of the whole model, by slot */
	struct mb_rows rows[MB_ROWS_CACHED];
	struct mb_arena_pool pool;      /* of their arenas */
	long clock;
	struct mb_kind_cost *scratch;
	bool graphs_help;               /* capturing more never costs host time */
};

void mb_rows_cache_init(struct mb_rows_cache *cache, struct mb_legality *l);

/* Rows for a plan's sizes; valid until MB_ROWS_CACHED others were asked for. */
struct mb_rows *mb_rows_of(struct mb_rows_cache *cache, const struct mb_plan *p);

/* By slot. rep: recompute choice; of full recompute, what layers outside its treatment cost. */
const struct mb_kind_row *mb_rows_plain(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep);
const struct mb_kind_row *mb_rows_full(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f);
/* The same beside an offloading choice. */
const struct mb_kind_row *mb_rows_offloaded(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep, int offload);
double mb_rows_input_bytes(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int slot);

/* No more than any group and feature costs, nothing offloaded. Full: of layers fully recomputed, which save their input. */
const struct mb_kind_row *mb_rows_least(struct mb_rows_cache *cache, struct mb_rows *r, int rep);
const struct mb_kind_row *mb_rows_least_full(struct mb_rows_cache *cache, struct mb_rows *r);

/* The same beside an offloading choice of groups of tensors; saved_bytes: what stays. */
const struct mb_kind_row *mb_rows_least_offloaded(struct mb_rows_cache *cache, struct mb_rows *r, int rep, int offload);

/* The bytes of the same rows alone, quickly: [slots] saved, and needed in the backward; none of the blocks at the ends. */
void mb_rows_least_bytes(struct mb_rows_cache *cache, struct mb_rows *r, int rep, int offload, double *ret_saved, double *ret_event);

/* One micro-batch's time of the whole model with plain rows: over the pipeline ranks its mean is no more than the longest. */
double mb_rows_model_s(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep);
double mb_rows_offloaded_model_s(struct mb_rows_cache *cache, struct mb_rows *r, int group, struct mb_feature f, int rep, int offload);

/*
 * Leaves out the extremes that cannot be part of a step below a limit; step_s: their bounds. What was computed for a
 * smaller limit is forgotten.
 */
void mb_rows_narrow(struct mb_rows_cache *cache, struct mb_rows *r, double limit_s, const double *step_s);

bool mb_rows_graphs_help(struct mb_rows_cache *cache, struct mb_rows *r);
void mb_rows_free(struct mb_rows_cache *cache);

/* Sets a plan's group or features from their indices. */
void mb_set_group(const struct mb_space *s, const struct mb_group *g, struct mb_plan *p);
void mb_set_feature(const struct mb_space *s, const struct mb_feature *f, struct mb_plan *p);

#endif
