/* Every stage split of a pipeline: which layers each chunk holds. Private to src/search. */
#ifndef MBSIM_SEARCH_SPLITS_H
#define MBSIM_SEARCH_SPLITS_H

#include "search/space.h"

/* Kinds that the model has, in slots. */
struct mb_slots {
	int count;
	uint8_t kind[MB_KIND_COUNT];
};

void mb_slots_fill(const struct mb_case *c, struct mb_slots *ret);

/* Layers of a kind in the whole model, MTP included; 1 for the blocks at the ends. */
int mb_layers_of_kind(const struct mb_case *c, int kind);

/* A chunk as time and memory see it: its layers in order and the blocks at the ends. Interned: equal chunks share one. */
struct mb_piece {
	uint16_t kinds[MB_KIND_COUNT];
	uint16_t first_layer, layers;
	uint8_t mtp;
	bool embedding, loss;
	uint32_t hash;
};

/* What a pipeline rank holds in all its chunks. */
struct mb_holding {
	uint16_t kinds[MB_KIND_COUNT];
	uint16_t vp;
	uint16_t layers;                /* decoder and MTP layers */
	uint32_t hash;
};

/* So many chunks of a piece, told by its place among those of the split. */
struct mb_share { uint16_t piece, count; };

/* Ranks next to each other that hold the same chunks. */
struct mb_rank_run {
	uint16_t first, ranks;
	uint16_t head;                  /* piece of the first chunk */
	uint16_t share_count;
	const struct mb_share *shares;  /* all chunks of one rank */
};

struct mb_split_row {
	struct mb_plan plan;            /* fields of the split axis */
	int max_layers;                 /* on one rank */
	int piece_count, run_count;
	uint16_t *pieces;               /* different ones, in the order of their first chunks */
	uint16_t *at;                   /* [pp * vp]: which of them each chunk is */
	uint16_t *holding;              /* [pp] */
	struct mb_rank_run *runs;
};

struct mb_split_table {
	int pp, vp, count;
	bool legal;                     /* else the one row breaks a rule */
	struct mb_split_row *rows;      /* by max_layers, then in the order of spellings */
};

enum { MB_MAX_PIECES = 4096, MB_MAX_HOLDINGS = 16384 };

struct mb_splits {
	struct mb_split_table *table;   /* by pp, then vp: found through mb_splits_tables */
	int first[MB_MAX_STAGES + 1], tables[MB_MAX_STAGES + 1];        /* of a pp: first table, how many */
	int count, capacity;
	int piece_count, holding_count;
	struct mb_piece *pieces;
	struct mb_holding *holdings;
	struct mb_slots slots;
	double *layers;                 /* [piece][slots] */
	bool bare[MB_MAX_STAGES + 1];   /* by pp: some split gives the first rank a chunk without layers */
};

/* Layers of a piece by slot. */
static inline const double *mb_piece_layers(const struct mb_splits *s, int piece)
{
	return s->layers + (size_t)piece * (size_t)s->slots.count;
}

void mb_splits_fill(struct mb_space *s, struct mb_splits *ret);

/* Tables of a pipeline's length, by virtual stages. Returns how many. */
int mb_splits_tables(const struct mb_splits *s, int pp, const struct mb_split_table **ret);

#endif
