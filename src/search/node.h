/*
 * Sizes of a plan without virtual stages, split and everything inside: the unit of the search. Lower bounds of what
 * lies under one, from the same functions that evaluate a plan. Private to src/search.
 */
#ifndef MBSIM_SEARCH_NODE_H
#define MBSIM_SEARCH_NODE_H

#include "search/best.h"
#include "search/floors.h"
#include "search/splits.h"

/* Dearer and larger each. */
enum mb_size_bound { MB_BOUND_UNROUTED, MB_BOUND_PARTS, MB_BOUND_LAYERS };

/* There are many, and every pass looks at all: a cache line each. */
struct mb_sizes {
	int tp, cp, pp, ep, etp, mbs;
	bool flat;                      /* no virtual stages under it are legal */
	bool too_large;                 /* whatever the split: its states alone do not fit */
	uint8_t bound;                  /* enum mb_size_bound: of step_s */
	uint8_t facts;                  /* mb_space_facts without virtual stages */
	int family;                     /* alike but for the pipeline's length: layers cost the same */
	double step_s;                  /* lower bound of every plan under it */
	double guess_s;                 /* what its fastest plan may take; no bound */
	double found_s;                 /* of the fastest plan evaluated under it */
	double points;                  /* legal ones */
};

/* Bounds of a micro-batch through the whole model, by those of its nodes; 0: not known yet. Threads share them. */
struct mb_family { double model_s[MB_BOUND_LAYERS + 1]; };

enum { MB_MAX_OPTIMIZERS = 32, MB_MAX_SP = 2, MB_MAX_DISPATCHERS = 16, MB_LIVE_SETS = 8 };

/* A rank's states and the work behind its last micro-batch, for every optimizer choice. */
struct mb_hold {
	long stamp;
	double between[MB_MAX_OPTIMIZERS], running[MB_MAX_OPTIMIZERS];         /* bytes */
	double finish_s[MB_MAX_OPTIMIZERS], pass_s[MB_MAX_OPTIMIZERS];  /* pass: what FSDP adds to each micro-batch */
	double least_between, least_running, least_finish_s, least_pass_s;
};

/* Chunks in flight: [ranks][MB_LIVE_SETS][vp] counts, and how many sets each rank has. */
struct mb_live {
	const struct mb_split_table *table;
	long long micro_batches;
	bool overlap;
	int *set_count;
	int32_t *warm;                  /* [ranks][vp]: after the warm-up of EP overlap, which is in flight without it too */
	int32_t *sets;
};

enum { MB_MAX_LIVE = 4096 };

enum mb_counted { MB_COUNT_TIME, MB_COUNT_MEMORY, MB_COUNT_NEEDLESS, MB_COUNTS };

/* Where points went. */
struct mb_tally {
	double considered, costed, evaluated;
	double rules[MB_MAX_RULES], bounds[MB_COUNTS];
	double unsound;                 /* evaluated plans below their own bound: must be 0 */
};

/* What one thread needs. */
struct mb_worker {
	struct mb_legality *l;
	const struct mb_splits *splits;
	struct mb_rows_cache cache;
	int decoder_layers[MB_KIND_COUNT];              /* of the model, by slot */
	struct mb_plan lightest;        /* every inner axis so that bounds hold for all */
	struct mb_floors floors;
	struct mb_evaluation *e;        /* of complete plans */
	struct mb_evaluation *states;   /* for states of single ranks */
	struct mb_hold *holds;          /* [holdings] */
	long stamp;
	struct mb_live *live;
	int live_count;
	struct mb_arena arena;
	struct mb_goal goal;
	struct mb_tally tally;
	struct mb_visit *visit;         /* room for visit.c */

	/* The node at hand. */
	struct mb_sizes *node;
	struct mb_plan p;
	struct mb_rows *rows;
	struct mb_dims d;
	long long micro_batches;
	double window_s;                /* a micro-batch of a plan worth a look takes no longer */
	unsigned optimizers;            /* candidates, as bits */
	double outside_bytes[MB_MAX_SP][MB_MAX_DISPATCHERS];    /* device memory outside the allocator */
	double reserved_factor;
	double states_bytes;            /* least mean over the ranks */
	/* Over the ranks, by distinct choice; least of the choices that are alike. */
	double mean_bytes[MB_MAX_OPTIMIZERS], mean_fsdp_s[MB_MAX_OPTIMIZERS], mean_finish_s[MB_MAX_OPTIMIZERS];
	double slot_bytes[MB_MAX_OPTIMIZERS][MB_KIND_COUNT];    /* states of a layer, by optimizer choice and slot */
	double slot_fsdp_s[MB_MAX_OPTIMIZERS][MB_KIND_COUNT];   /* least of FSDP's work for one micro-batch that shows */
	double slot_finish_s[MB_MAX_OPTIMIZERS][MB_KIND_COUNT]; /* least of the work behind the last micro-batch, alike choices together */
	uint32_t distinct;              /* the first of each set of alike optimizer candidates */
	int alike[MB_MAX_OPTIMIZERS];   /* first optimizer choice with the same states */
	double limit_bytes;             /* largest peak with any dispatcher */
	double limit_s;                 /* longest step worth a look */
};

bool mb_worker_init(struct mb_worker *w, struct mb_legality *l, const struct mb_splits *splits);
void mb_worker_free(struct mb_worker *w);

void mb_node_plan(const struct mb_worker *w, const struct mb_sizes *n, struct mb_plan *ret);

/* Makes the node the one at hand. step_s: upper bound of steps worth a look. */
void mb_node_enter(struct mb_worker *w, const struct mb_sizes *n, double step_s);

/* What the bounds of memory need beyond. */
void mb_node_weigh(struct mb_worker *w);

/* After mb_node_weigh: what the fastest plan of a node with this bound may take, for the order of a pass alone. */
double mb_node_guess(const struct mb_worker *w, double step_s);

/* States of a rank under a split of the node. */
const struct mb_hold *mb_node_hold(struct mb_worker *w, const struct mb_split_table *t, const struct mb_split_row *row, int rank);

/* Micro-batches of a step under sizes. */
double mb_node_micro_batches(const struct mb_worker *w, const struct mb_sizes *n);

/* A step takes at least so many times what one micro-batch takes through the whole model. */
double mb_node_passes(const struct mb_worker *w, const struct mb_sizes *n);

/* Least step by the time of the slots' layers alone, and least mean of states over the ranks. */
double mb_node_step_floor(const struct mb_worker *w, const struct mb_sizes *n, const double *layer_s);
double mb_node_states_floor(struct mb_worker *w);

/* States of what a rank holds without what is not proportional to parameters, for distinct optimizer choices. */
void mb_node_hold_floor(const struct mb_worker *w, const struct mb_holding *h, struct mb_hold *ret);

/*
 * Least mean over the ranks of bytes in flight when layers of kind slots keep kept[slot] bytes and none takes less than
 * layer_s. [the largest layers on the last ranks, which have fewest micro-batches in flight]
 */
double mb_node_flight_floor(const struct mb_worker *w, const double *kept, double layer_s);

/*
 * Least bytes of the first rank beside an optimizer choice, when layers of kind slots keep kept[slot] bytes, need
 * event[slot] in their backward and take layer_s[slot]: what the other ranks have no time for is there. pp above 1.
 */
double mb_node_first_rank_floor(const struct mb_worker *w, const double *kept, const double *event, const double *layer_s, int optimizer);

/* Most bytes in flight, over all ranks, that recomputing whole layers spares in the time there is. */
double mb_node_spared(const struct mb_worker *w, const struct mb_kind_row *plain, const struct mb_kind_row *full);

const struct mb_live *mb_live_of(struct mb_worker *w, const struct mb_split_table *t, bool overlap);

/* Largest peak of a plan that fits or is at risk, and of one that fits. */
double mb_node_peak_limit(const struct mb_worker *w, int sp, int dispatcher);

#endif
