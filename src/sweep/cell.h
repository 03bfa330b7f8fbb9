/* One cell of a sweep: what determines it, and what comes out. */
#ifndef MBSIM_SWEEP_CELL_H
#define MBSIM_SWEEP_CELL_H

#include "desc/library.h"
#include "sweep/grid.h"
#include "sweep/hash.h"

/* Files that keys depend on, read once. */
struct mb_fingerprints {
	struct mb_library *library;
	struct mb_arena *arena;
	struct mb_fingerprint *first;
};

/*
 * Reads the cell's run, and the key of the cell: a hash of the program's version, the base, the settings, and the
 * content of every data file that the run names. Reports and returns false when the run makes no sense.
 */
bool mb_cell_query(const struct mb_sweep *s, int cell, struct mb_library *library, struct mb_arena *arena, struct mb_query *ret,
                   struct mb_diags *diags);
void mb_cell_key(const struct mb_sweep *s, int cell, const struct mb_query *q, struct mb_fingerprints *files, char ret[MB_HASH_TEXT]);

/* Puts a plan of a search into its query, which then has one value for every key; layouts may be the search's own. */
void mb_cell_settle(struct mb_query *q, const struct mb_search_result *r, const struct mb_ranked *p);

/* The answer to one what-if question: the best step once one thing is different. */
struct mb_what_if {
	const char *name;               /* "hbm", "nvlink", ... */
	const char *change;             /* "0.5x" */
	double step_s;                  /* 0: nothing fits */
};

enum { MB_MAX_WHAT_IF = 16 };

struct mb_outcome {
	struct mb_query *q;             /* with the plan put in */
	struct mb_evaluation *e;        /* of that plan; NULL: there is none */
	enum mb_verdict verdict;
	const char *reason;             /* of an illegal run: rule and message; NULL */
	bool open[MB_KEY_COUNT];        /* keys that the search filled */
	struct mb_search_result search; /* front_count 0 for estimates */
	struct mb_what_if what_if[MB_MAX_WHAT_IF];
	int what_if_count;
};

/* Works a cell out, in `e` and the arena. False after an error, which is reported. */
bool mb_cell_run(const struct mb_sweep *s, struct mb_query *q, int threads, struct mb_arena *arena, struct mb_evaluation *e,
                 struct mb_outcome *ret, struct mb_diags *diags);

#endif
