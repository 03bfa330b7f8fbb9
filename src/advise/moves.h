/* Steps from a run to its neighbours, and the nearest plans that they reach. */
#ifndef MBSIM_ADVISE_MOVES_H
#define MBSIM_ADVISE_MOVES_H

#include "advise/trial.h"
#include "base/arena.h"

/* What a move turns, from free to dear. The last two are not the framework's to decide. */
enum mb_family {
	MB_FAMILY_ALLOCATOR, MB_FAMILY_LOSS, MB_FAMILY_SHARD, MB_FAMILY_GRAPH, MB_FAMILY_OVERLAP, MB_FAMILY_TP_OVERLAP, MB_FAMILY_DISPATCHER,
	MB_FAMILY_RECOMPUTE,
	MB_FAMILY_OFFLOAD, MB_FAMILY_MICRO_BATCH, MB_FAMILY_PIPELINE, MB_FAMILY_EXPERT, MB_FAMILY_TENSOR, MB_FAMILY_CONTEXT,
	MB_FAMILY_FULL_RECOMPUTE, MB_FAMILY_FSDP, MB_FAMILY_OPTIMIZER_OFFLOAD, MB_FAMILY_DTYPES, MB_FAMILY_MTP, MB_FAMILY_GPUS, MB_FAMILY_COUNT
};

struct mb_move {
	enum mb_family family;
	struct mb_changes changes;
};

enum { MB_MAX_MOVES = 192 };

/* Adds balanced layouts for pipelines near the run's that its layers do not divide, for mb_moves to name. */
void mb_add_layouts(struct mb_query *q, struct mb_arena *arena);

/* All moves from a run; whether one is legal has to be tried. */
int mb_moves(const struct mb_query *q, struct mb_move ret[MB_MAX_MOVES]);

/* What a search for neighbours looks for. */
struct mb_wish {
	bool legal_only;                /* enough that the rules hold; else it has to fit as well */
	double below_s;                 /* step under this; 0: any */
	bool learning, gpus;            /* may change what is learnt, may take more GPUs */
};

/*
 * The plans that grant the wish with the fewest keys changed from `start` (already changes to the run): for each number of
 * keys the fastest, as long as more keys are faster. Returns how many of `max` there are, fewest keys first. closest: of
 * all legal neighbours the one with the least device use; may be NULL.
 */
int mb_nearest_plans(struct mb_bench *b, const struct mb_changes *start, const struct mb_wish *wish, struct mb_arena *arena,
                     struct mb_trial *ret, int max, struct mb_trial *closest);

#endif
