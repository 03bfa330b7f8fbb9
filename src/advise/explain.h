/* Why a run is not the best: the rule it breaks, the term that makes it miss memory, or the terms that make it slower. */
#ifndef MBSIM_ADVISE_EXPLAIN_H
#define MBSIM_ADVISE_EXPLAIN_H

#include "advise/trial.h"
#include "base/arena.h"
#include "search/search.h"

enum mb_binding { MB_BINDS_RULE, MB_BINDS_MEMORY, MB_BINDS_TIME };
extern const char *const mb_binding_names[];                    /* "rule", "memory", "time" */

enum { MB_MAX_FIXES = 6 };

/* One way to make something fit that no layout makes fit. */
struct mb_way_out {
	char words[96];                 /* "more GPUs", "gb200-nvl72 instead of dgx-h100" */
	int gpus;
	bool learning, found;
	struct mb_ranked plan;
};

enum { MB_MAX_WAYS_OUT = 6 };

struct mb_explanation {
	const struct mb_query *q;       /* the run, with the layouts that fixes and best name */
	enum mb_binding kind;
	struct mb_violation violations[MB_MAX_VIOLATIONS];
	int violation_count;
	struct mb_trial run;
	enum mb_memory_term memory_term;        /* largest of the part that is the cause */
	enum mb_time_term time_term;            /* that costs most against the best */
	double cause_bytes;                     /* of that part */
	const char *cause_words;                /* "activations" */
	struct mb_trial fixes[MB_MAX_FIXES];    /* fewest keys first; all legal, and they fit where `fix_fits` */
	int fix_count;
	bool fix_fits;
	bool has_best;
	struct mb_trial best;                   /* the best plan as changes to this run; run itself when nothing is faster */
	bool has_closest;
	struct mb_trial closest;                /* legal neighbour with the least device use, when no fix fits */

	/* When the search says that nothing fits. */
	bool nothing_fits;
	double state_bytes, state_bytes_per_param;      /* of the whole model */
	bool states_prove_it;                   /* they exceed what all GPUs have together */
	int gpus_for_states;
	struct mb_way_out ways[MB_MAX_WAYS_OUT];
	int way_count;
};

/* found: of a search with every key open that it opens; NULL: not searched, then the fastest fix stands for the best. */
void mb_explain(const struct mb_query *q, const struct mb_search_result *found, struct mb_evaluation *e, struct mb_arena *arena,
                struct mb_explanation *ret);

/* The query with everything open that a search opens, whatever the run says. */
void mb_open_query(const struct mb_query *q, struct mb_query *ret);

/* Fills the proof and the ways out. library: to try other machines; NULL: only this one. */
void mb_explain_nothing_fits(struct mb_explanation *x, int threads, struct mb_library *library, struct mb_arena *arena);

#endif
