/*
 * Lower bounds of the step of many sizes quickly: mixers and feed-forward parts are built apart and put together, since
 * a mixer does not know experts and experts do not know context parallelism.
 */
#ifndef MBSIM_SEARCH_FLOORS_H
#define MBSIM_SEARCH_FLOORS_H

#include "search/rows.h"

/* Features that device time tells apart: of layers with experts, or of the others. */
struct mb_timed_features {
	int count, id;                  /* id: equal lists have one */
	const struct mb_feature *of;
};

struct mb_floors {
	struct mb_legality *l;
	const struct mb_slots *slots;
	struct mb_case *parts;          /* the case with every mixer and every feed-forward part as a kind of its own */
	int mixer[MB_KIND_COUNT], ffn[MB_KIND_COUNT];   /* kind in parts, by slot; -1: none */
	const double *layers;           /* of the model, by slot */
	bool whole;                     /* too many parts: kinds are built as they are */
	struct mb_arena arena;
	struct mb_timed_features timed[MB_FACTS][2];    /* with experts: 1; count 0: not known yet */
	struct floor_slot *table;       /* hash of what was built */
	struct floor_entry *recent[MB_KIND_COUNT][2];   /* asked for last, by part: one build; all groups and features */
	int count, capacity;
	struct mb_kind_cost *scratch;
};

/* Slots and layers stay the cache's. */
void mb_floors_init(struct mb_floors *f, struct mb_rows_cache *cache);
void mb_floors_free(struct mb_floors *f);

/*
 * No more than mb_floors_model, and quickly: each part by itself, in the group and features that suit it. routed false:
 * more quickly, and no more for any expert-parallel size.
 */
double mb_floors_crude(struct mb_floors *f, const struct mb_plan *p, const struct mb_groups *groups, bool routed);

/*
 * Time of a micro-batch through the whole model without recompute, for the sizes of `p`: least of the groups and extreme
 * features. ret_each: NULL, or one for each feature and group (mb_legality_extremes). ret_least: NULL, or the least
 * device time of a layer by slot (gpu_s and forward_s).
 */
double mb_floors_model(struct mb_floors *f, const struct mb_plan *p, const struct mb_groups *groups, double *ret_each,
                       struct mb_kind_row *ret_least);

#endif
