/* A node's splits one by one, and the choices under them. Private to the files that walk over them. */
#ifndef MBSIM_SEARCH_VISIT_H
#define MBSIM_SEARCH_VISIT_H

#include "search/walk.h"

/* Time and bytes of each piece of the split under one choice. */
struct mb_chunk_costs {
	double step_s[MB_MAX_CHUNKS], forward_s[MB_MAX_CHUNKS], saved_bytes[MB_MAX_CHUNKS];
	double event_bytes[MB_MAX_CHUNKS];      /* what its backward needs beside, at least */
};

/* A piece under the rows of a choice; the same for all splits of the node at hand. */
struct mb_piece_cost {
	const struct mb_kind_row *plain, *treated;
	uint64_t key;                   /* mb_worker.stamp of the node; piece; how and how many layers are treated */
	double step_s, forward_s, saved_bytes, event_bytes;
};

enum { MB_KNOWN_PIECES = 1 << 13 };

/* Chunks in flight on a rank at once, as counts of its run's shares, with bytes of something else beside them. */
struct mb_flight {
	uint16_t tight;
	bool less_one;                  /* the largest of the chunks is not there */
	bool backward;                  /* while one of the rank's chunks runs backward */
	double bytes;
	const double *counts;           /* [shares of the run] */
};

/* Sets of which one is the largest, for every tight rank. */
struct mb_flights {
	bool known;
	int count, used, first;         /* first: of the rank at hand, while they are filled */
	struct mb_flight of[(MB_LIVE_SETS + 2) * (MB_MAX_STAGES + 1)];
	double counts[(MB_LIVE_SETS + 2) * 2 * MB_MAX_CHUNKS];
};

enum mb_flight_kind { MB_FLIGHTS_PLAIN, MB_FLIGHTS_OVERLAP, MB_FLIGHTS_EITHER, MB_FLIGHT_KINDS };

enum mb_treated_layers { MB_TREAT_ALL, MB_TREAT_FIRST };

/* What a recompute or offloading choice does to some layers of a chunk. */
struct mb_treated {
	enum mb_treated_layers how;
	int layers;                     /* of the first ones, or of a group */
	const struct mb_kind_row *rows;
	const double *input_bytes;      /* full recompute keeps only these; NULL: the rows' saved bytes */
};

/*
 * Recompute choices not worth a look by why, time or memory: those that do not grow by representative, and how many of
 * those that do.
 */
struct mb_dead {
	uint64_t of[2][MB_MAX_REPS / 64];
	double grown[2][MB_GROWTHS];
};

/* Recompute choices after bounds: of the node, then of a split, then of a split with or without EP overlap. */
struct mb_judged {
	int open_count;
	uint16_t *open;                 /* worth a look */
	uint8_t *worth, *worth_offloaded;       /* by choice: enum mb_bound */
	uint64_t (*may_fit)[MB_OFF_WORDS];      /* by choice: offloading choices worth a look */
	struct mb_dead dead;
	enum mb_bound shut_by;          /* where none is open: what excludes the first of them */
};

struct mb_visit {
	struct mb_walk *walk;
	struct mb_worker *w;
	const struct mb_split_table *table;
	const struct mb_split_row *row;
	const struct mb_legal_class *class;
	int layers;                     /* most of full recompute */
	double passes;                  /* of the node: mb_node_passes */
	const struct mb_hold *hold[MB_MAX_STAGES];      /* by run */
	struct mb_hold *floors;         /* [runs] */
	int tight_count;
	struct mb_tight { uint16_t run, rank; } tight[MB_MAX_STAGES + 1];       /* no earlier rank exceeds it in memory */
	double loss_bytes, loss_both_bytes;     /* of the loss forward, and of the larger of forward and backward */
	double flight_bytes[MB_MAX_STAGES + 1];            /* by tight rank, of the costs looked at */
	struct mb_flights *flights;     /* [MB_FLIGHT_KINDS], filled when asked for */
	enum mb_flight_kind flown;      /* no feature looked at keeps less in flight */
	uint64_t too_slow[MB_MAX_REPS / 64];            /* by representative, of choices that do not grow: by time alone */
	bool growth_too_slow[MB_GROWTHS];               /* of those that do, from a number of layers on */
	struct mb_judged under_node, under_split, at_hand;
	int widest;                     /* offloading choice that moves all that any choice of groups of tensors moves; -1: none */
	int dead_layers;                /* under_node.dead is for chunks of so many layers; -1: of no split yet */
	int idle_tried, idle_cut;       /* features under the node that mb_visit_tight_step looked at and excluded */
	int64_t *forward_ps, *backward_ps, *finish_ps;  /* for mb_visit_tight_step */
	struct mb_chunk_costs costs;
	struct mb_piece_cost *known;    /* [MB_KNOWN_PIECES], by hash: what was worked out last */
	struct mb_piece_time { double step_s, forward_s; } *least;      /* by interned piece: of no choice alive under the node less */
	double *least_hold_s;           /* by interned holding, the same; negative: not known yet */
};

enum { MB_MAX_FITTING = 64 };

/* A group, features and a recompute choice under the split. */
struct mb_visit_choice {
	const struct mb_legal *legal;
	int group, rep, recompute;
	double transfer_s, hop_s, limit;
	/* By optimizer: offloading choices that fit. */
	uint8_t fit_count[MB_MAX_OPTIMIZERS];
	uint16_t fit[MB_MAX_OPTIMIZERS][MB_MAX_FITTING];
};

static inline const struct mb_plan *mb_visit_recompute(const struct mb_visit *v, int choice)
{
	return &v->walk->s->axis[MB_P_RECOMPUTE].of[choice].plan;
}

static inline const struct mb_plan *mb_visit_offload(const struct mb_visit *v, int choice)
{
	return &v->walk->s->axis[MB_P_OFFLOAD].of[choice].plan;
}

static inline bool mb_visit_offloads(const struct mb_plan *p)
{
	return p->cpu_offloading || p->fine_grained_activation_offloading;
}

/* Whether the recompute choice is a candidate under the split. */
static inline bool mb_visit_is_tried(const struct mb_visit *v, int choice)
{
	const struct mb_choice *r = &v->walk->s->axis[MB_P_RECOMPUTE].of[choice];

	return r->growth == MB_GROWS_NOT || r->layers <= v->layers;
}

static inline void mb_visit_count(struct mb_visit *v, enum mb_bound why, double points)
{
	v->w->tally.bounds[why == MB_BY_TIME ? MB_COUNT_TIME : MB_COUNT_MEMORY] += points;
}

/* What a micro-batch's time through the whole model says of the step under any split. */
static inline enum mb_bound mb_visit_model_bound(const struct mb_visit *v, double model_s)
{
	return mb_best_bound(&v->w->goal, v->passes * model_s, 0);
}

/* Whether a step and peak are worth a look where a plan may have so many bytes. */
static inline enum mb_bound mb_visit_bound(const struct mb_visit *v, double step_s, double peak, double limit)
{
	if (v->w->goal.aim != MB_AIM_CLOSEST && peak * (1 - 1e-9) > limit)
		return MB_BY_MEMORY;
	return mb_best_bound(&v->w->goal, step_s, peak);
}

/* chunk_costs.c: pieces of the split under a choice, and bounds from them. Optimizer -1: the least of all choices. */
void mb_visit_ranks(struct mb_visit *v);
void mb_visit_floors(struct mb_visit *v);       /* states in proportion to parameters */
void mb_visit_holds(struct mb_visit *v);        /* states in full */
/* plain: rows of layers that are not treated; t: NULL, or what is done to the others. Rows stay as they are under a node. */
void mb_visit_costs(const struct mb_visit *v, const struct mb_kind_row *plain, const struct mb_treated *t, struct mb_chunk_costs *ret);
double mb_visit_step(const struct mb_visit *v, const struct mb_chunk_costs *costs, double transfer_s, double hop_s, int optimizer);
double mb_visit_peak(const struct mb_visit *v, int optimizer);  /* after mb_visit_flight */

/*
 * idle.c: a larger bound of the step than mb_visit_step between virtual stages, worth its time where mb_visit_may_idle,
 * and before an evaluation.
 */
bool mb_visit_has_waits(const struct mb_visit *v);
bool mb_visit_may_idle(const struct mb_visit *v);
double mb_visit_tight_step(struct mb_visit *v, const struct mb_chunk_costs *costs, double transfer_s, double hop_s, bool overlap, int optimizer);

/* flights.c: fills flight_bytes. */
void mb_visit_flight(struct mb_visit *v, const struct mb_chunk_costs *costs, enum mb_flight_kind kind);

/*
 * judge.c: recompute choices under any group and features. False: none is worth a look. Closely: ranks' states are known
 * in full, and what is in flight by flown.
 */
bool mb_visit_judge_node(struct mb_visit *v, const struct mb_sizes *n);
bool mb_visit_judge_split(struct mb_visit *v);
bool mb_visit_judge_closely(struct mb_visit *v);
void mb_visit_least_rows(struct mb_visit *v, int choice, struct mb_kind_row *ret);

/* choice.c: every recompute, offloading and optimizer choice beside a group and features. */
void mb_visit_try(struct mb_visit *v, struct mb_visit_choice *c);

#endif
