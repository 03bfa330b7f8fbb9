/*
 * The space of a search: candidate values of every axis. The outer axes (parallel sizes, micro-batch, virtual stages,
 * stage split) depend on each other; the inner ones only on a few facts about them. Private to src/search.
 */
#ifndef MBSIM_SEARCH_SPACE_H
#define MBSIM_SEARCH_SPACE_H

#include "search/search.h"

/* Facts about the outer axes that candidates and rules of the inner axes see. */
enum mb_fact {
	MB_FACT_TP = 1 << 0, MB_FACT_CP = 1 << 1, MB_FACT_PP = 1 << 2, MB_FACT_EP = 1 << 3, MB_FACT_GROUP = 1 << 4,     /* above 1 */
	MB_FACT_VP = 1 << 5, MB_FACT_DP = 1 << 6,
	MB_FACT_FLAT = 1 << 7,          /* pp 1 */
	MB_FACTS = 1 << 8,
	/* Of the recompute choice, for offloading. */
	MB_FACT_NO_RECOMPUTE = 1 << 8, MB_FACT_NOT_FULL = 1 << 9
};

/* How the number of candidates grows with the layers of a chunk. */
enum mb_growth { MB_GROWS_NOT, MB_GROWS_UNIFORM, MB_GROWS_BLOCK, MB_GROWTHS };

/* A candidate of one inner axis; only the axis's own fields of the plan mean anything. */
struct mb_choice {
	struct mb_plan plan;
	unsigned need;                  /* facts without which it is no candidate */
	enum mb_growth growth;
	int layers;                     /* of full recompute: a candidate up to the layers of a chunk */
};

struct mb_choices {
	int count;
	struct mb_choice *of;
};

struct mb_space {
	const struct mb_query *q;
	struct mb_case c;               /* the query's, with this many GPUs and the layouts of the search */
	struct mb_arena *arena;
	bool open[MB_KEY_COUNT];
	struct mb_choices axis[MB_P_COUNT];     /* inner axes */
	bool derive_p2p;                /* overlap_p2p_comm follows virtual stages */
};

void mb_space_fill(const struct mb_query *q, int gpus, struct mb_arena *arena, struct mb_space *ret);

/* Whether the user's values and alternatives of the axis's keys allow this plan. */
bool mb_space_allows(const struct mb_space *s, enum mb_plan_key axis, const struct mb_plan *p);

/* Copies the fields of an axis. */
void mb_axis_copy(enum mb_plan_key axis, const struct mb_plan *from, struct mb_plan *to);

/* Whether the fields of an axis are the same. */
bool mb_axis_equal(enum mb_plan_key axis, const struct mb_plan *a, const struct mb_plan *b);

/* Virtual stages, and what follows from them. */
static inline void mb_space_set_vp(const struct mb_space *s, int vp, struct mb_plan *p)
{
	p->vp = vp;
	if (s->derive_p2p)
		p->overlap_p2p_comm = vp > 1;
}

/* Candidates of an outer axis, ascending, when those before it are set in `p`. At least one. */
enum { MB_MAX_SIZES = 512 };
int mb_space_sizes(const struct mb_space *s, enum mb_plan_key axis, const struct mb_plan *p, int ret[MB_MAX_SIZES]);

/* Facts that hold for sizes. */
unsigned mb_space_facts(const struct mb_space *s, const struct mb_plan *p);

/* Whether a candidate is one for these facts. The first of an axis stands in when none is. */
static inline bool mb_choice_is_candidate(const struct mb_choice *v, unsigned facts)
{
	return (v->need & ~facts) == 0;
}

/* Whether choice i of an axis is tried for these facts, as a candidate or standing in. */
static inline bool mb_choices_has(const struct mb_choices *a, int i, unsigned facts)
{
	if (mb_choice_is_candidate(&a->of[i], facts))
		return true;
	for (int j = 1; i == 0 && j < a->count; j++)
		if (mb_choice_is_candidate(&a->of[j], facts))
			return false;
	return i == 0;
}

/* A group of a2a+p2p is a candidate for a CP that it divides properly, if the size is open. */
bool mb_choice_divides(const struct mb_space *s, const struct mb_choice *v, int cp);

/* Most layers of a group or block of full recompute that is tried. */
int mb_space_recompute_layers(const struct mb_space *s, int pp, int vp);

#endif
