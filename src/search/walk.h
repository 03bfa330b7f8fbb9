/* One pass over the space: every point evaluated, or excluded by a rule or a bound and counted. Private to src/search. */
#ifndef MBSIM_SEARCH_WALK_H
#define MBSIM_SEARCH_WALK_H

#include "search/node.h"
#include "search/pool.h"

struct mb_walk {
	struct mb_space *s;
	struct mb_splits splits;
	struct mb_legality legality;
	struct mb_sizes *nodes;
	int node_count, node_capacity;
	struct mb_family *families;
	struct mb_sizes **order;        /* in which a pass takes them, and as much room again */
	bool floored;                   /* nodes have their bounds and are ordered by them */
	struct mb_tally rules;          /* of the enumeration: the same for every pass */
	struct mb_best *best;           /* behind the lock while threads run */
	struct mb_tally tally;
	const struct mb_search_options *options;
	const struct mb_ranked *near;   /* not NULL: only sizes and splits of these plans are looked at; counts mean nothing */
	int near_count;
	struct mb_worker *workers;
	int threads, next;              /* next: node to be taken */
	struct mb_lock *lock;
};

void mb_tally_add(struct mb_tally *to, const struct mb_tally *from);

/* Enumerates the nodes; counts what rules exclude. threads 0: as many as there are processors. False when memory is exhausted. */
bool mb_walk_init(struct mb_walk *w, struct mb_space *s, int threads);
void mb_walk_free(struct mb_walk *w);

/* Offers an evaluated plan; what the worker compares bounds with is brought up to date. */
void mb_walk_offer(struct mb_walk *w, struct mb_worker *k, const struct mb_ranked *r);

/* Finds what `best` aims at. False when memory is exhausted. */
bool mb_walk_run(struct mb_walk *w, struct mb_best *best, const struct mb_search_options *options);

/* Whether one of the plans to stay near has the sizes, and the split unless its plan is NULL. */
bool mb_walk_is_near(const struct mb_walk *w, const struct mb_sizes *n, int vp, const struct mb_plan *split);

/* Lower bound of the step under the node at hand, by the least times of its layers: of the first split worth a look, or of all. */
double mb_visit_least_step(struct mb_walk *w, struct mb_worker *k);

/* Everything under the node at hand that is worth a look. False: nothing is, and nothing was counted. */
bool mb_visit_node(struct mb_walk *w, struct mb_worker *k, const struct mb_sizes *n);

#endif
