/* One pass over the space: every point evaluated, or excluded by a rule or a bound and counted. Private to src/search. */
#ifndef MBSIM_SEARCH_WALK_H
#define MBSIM_SEARCH_WALK_H

#include "search/node.h"

enum mb_count { MB_COUNT_TIME, MB_COUNT_MEMORY, MB_COUNT_NEEDLESS, MB_COUNTS };

/* Where points went. */
struct mb_tally {
	double considered, costed, evaluated;
	double rules[MB_MAX_RULES], bounds[MB_COUNTS];
	double unsound;                 /* evaluated plans below their own bound: must be 0 */
};

struct mb_walk {
	struct mb_space *s;
	struct mb_splits splits;
	struct mb_legality legality;
	struct mb_sizes *nodes;
	int node_count, node_capacity;
	bool dive;                      /* only a likely part of the space, for a first limit; counts mean nothing */
	bool floored;                   /* nodes have their bounds and are sorted by them */
	struct mb_tally rules;          /* of the enumeration: the same for every pass */
	struct mb_best *best;
	struct mb_tally tally;
	const struct mb_search_options *options;
};

/* Enumerates the nodes; counts what rules exclude. False when memory is exhausted. */
bool mb_walk_init(struct mb_walk *w, struct mb_space *s);
void mb_walk_free(struct mb_walk *w);

/* Runs one pass with the aim of `best`. False when memory is exhausted. */
bool mb_walk_run(struct mb_walk *w, struct mb_best *best, const struct mb_search_options *options);

/* Everything under the node at hand that is worth a look. False: nothing is, and nothing was counted. */
bool mb_visit_node(struct mb_walk *w, struct mb_worker *k, const struct mb_sizes *n);

#endif
