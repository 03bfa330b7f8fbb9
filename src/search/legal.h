/*
 * Which combinations of inner axes are legal, and how many points every rule excludes. The outer axes matter only
 * through a few facts (mb_fact) and, for the axes of a tensor-parallel group, through tp and cp. Private to src/search.
 */
#ifndef MBSIM_SEARCH_LEGAL_H
#define MBSIM_SEARCH_LEGAL_H

#include "search/pool.h"
#include "search/space.h"

enum { MB_MAX_REPS = 256, MB_OFF_WORDS = 12, MB_OFF_KINDS = 6, MB_MAX_RULES = 256, MB_MAX_GROUPS = 4096 };

/* Choices of one axis each, by index. */
struct mb_group { uint8_t sp, cp_comm, tp_overlap; };            /* around tp and cp */
struct mb_feature { uint8_t dispatcher, overlap, shared, graph; };

struct mb_groups {
	int tp, cp;
	int count;                      /* legal */
	struct mb_group *of;
	double candidates;
	double broken[MB_MAX_RULES];
};

/* A legal combination of features, and what may be chosen beside it. */
struct mb_legal {
	struct mb_feature f;
	bool extreme;                   /* no other graph of the same features captures more */
	uint64_t recompute[MB_MAX_REPS / 64];           /* by representative */
	const uint64_t *offload[MB_OFF_KINDS];          /* by kind of recompute choice; [MB_OFF_WORDS] */
	int offload_count[MB_OFF_KINDS];
	uint32_t optimizer;
	double points[MB_GROWTHS];      /* for one recompute choice that grows so; MB_GROWS_NOT: for all that do not */
};

struct mb_legal_class {
	unsigned facts;
	int count;
	struct mb_legal *of;
	double features;                /* candidates */
	double tail[MB_GROWTHS];        /* candidates of recompute, offload and optimizer, as `points` */
	double points[MB_GROWTHS];      /* legal ones, all features */
	double broken_features[MB_MAX_RULES];           /* times the tail */
	double broken[MB_GROWTHS][MB_MAX_RULES];
};

struct mb_legality {
	struct mb_space *s;
	struct mb_lock *lock;           /* classes, extremes and groups are filled behind it when they are asked for */
	int rep_count;
	uint16_t rep[MB_MAX_REPS];      /* recompute choices that stand for all that rules treat alike */
	uint8_t rep_off[MB_MAX_REPS];   /* kind for offloading */
	int *rep_of;                    /* of every recompute choice */
	uint64_t (*parts)[MB_MAX_REPS / 64];            /* by representative: those that recompute a part of what it does */
	int *grown[MB_GROWTHS];         /* recompute choices of a growth for chunks of so many layers; up to the model's */
	int most_layers;
	uint8_t timed_dispatcher[UINT8_MAX + 1];        /* of every dispatcher choice the first that is like it but for the backend */
	uint64_t of_kind[MB_OFF_KINDS][MB_MAX_REPS / 64];       /* representatives that do not grow, by kind */
	int grown_rep[MB_GROWTHS];      /* -1: none */
	int off_kinds;
	int off_rep[MB_OFF_KINDS];
	struct mb_legal_class *classes[MB_FACTS];
	struct mb_feature *extremes[MB_FACTS];
	int extreme_count[MB_FACTS];
	struct mb_groups **groups;
	int group_count;
	uint8_t *recompute_broken;      /* [overlap][shared][graph][rep]: rule, or none */
	struct off_sets *off_sets;
	uint8_t due[MB_P_COUNT][MB_MAX_RULES];          /* error rules that can be judged once an axis is set */
	int due_count[MB_P_COUNT];
};

/* False when there is no lock to be had. */
bool mb_legality_fill(struct mb_space *s, struct mb_legality *ret);
void mb_legality_free(struct mb_legality *l);

/* `p`: any plan with these facts, outer axes set. */
const struct mb_legal_class *mb_legality_class(struct mb_legality *l, const struct mb_plan *p);
const struct mb_groups *mb_legality_groups(struct mb_legality *l, const struct mb_plan *p);

/*
 * Features, legal with or without virtual stages, among which those that take the least time are, whatever the rest of
 * the plan: of graphs the largest only, of choices that cost the same one.
 */
const struct mb_feature *mb_legality_extremes(struct mb_legality *l, const struct mb_plan *p, int *ret_count);

/* Recompute choices of a growth that are candidates for chunks of so many layers. */
double mb_legality_choices(const struct mb_legality *l, enum mb_growth growth, int layers);

/* Points for chunks of so many layers, where by_growth are those of one choice of each growth. */
double mb_legality_grown(const struct mb_legality *l, const double by_growth[MB_GROWTHS], int layers);

/* Points under one split: candidates, legal ones. */
double mb_class_candidates(const struct mb_legality *l, const struct mb_legal_class *c, const struct mb_groups *g, int layers);
double mb_class_points(const struct mb_legality *l, const struct mb_legal_class *c, const struct mb_groups *g, int layers);

/* First rule broken among those that can be judged once `axis` is set, in the order of the search; -1: none. */
int mb_legality_broken(const struct mb_legality *l, const struct mb_plan *p, enum mb_plan_key axis);

/* The axes that these rules read, as bits. */
unsigned mb_legality_reads(const struct mb_legality *l, enum mb_plan_key axis);

#endif
