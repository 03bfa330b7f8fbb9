/*
 * A sweep file: a base run, and what varies. Lists and ranges under `grid` multiply, the lists of a `zip` go together,
 * `cases` are spelled out; `where` drops combinations. Every cell is a run, or a search over its open keys.
 */
#ifndef MBSIM_SWEEP_GRID_H
#define MBSIM_SWEEP_GRID_H

#include "base/text.h"
#include "desc/node.h"
#include "search/search.h"

enum { MB_MAX_GRID_KEYS = 64, MB_MAX_CELLS = 1000000 };

struct mb_sweep {
	const char *file;
	const struct mb_node *base;             /* a mapping; NULL: none */
	bool estimate;                          /* one run a cell, instead of a search */
	bool what_if;
	enum mb_objective objective;
	double tokens, goodput_frac, price_usd, pue;    /* for the report; 0: not said */

	int key_count;
	const char *keys[MB_MAX_GRID_KEYS];     /* full names, in the order of the file */

	/* cells[i * key_count + k]: value of key k in cell i; NULL: the cell does not set it. */
	const struct mb_node **cells;
	int cell_count, dropped;                /* dropped by `where` */
};

/* Reads the file, or the document of a file, and lays the cells out. Reports and returns false. */
bool mb_sweep_read(const char *path, struct mb_arena *arena, struct mb_sweep *ret, struct mb_diags *diags);
bool mb_sweep_from_node(const struct mb_node *root, const char *file, struct mb_arena *arena, struct mb_sweep *ret, struct mb_diags *diags);

/* The cell's own settings as one mapping, to be laid over the base. */
const struct mb_node *mb_sweep_settings(const struct mb_sweep *s, int cell, struct mb_arena *arena);

/* A value in YAML's flow form: "64", "[moe_act, layernorm]", "{from: 1}"; "" when the cell does not set the key. */
const char *mb_sweep_text(const struct mb_sweep *s, int cell, int key, struct mb_arena *arena);

/* The full name of a key, so that tp and tensor_model_parallel_size are one. */
const char *mb_sweep_full_name(const char *name);

/* Appends a node in flow form. */
void mb_sweep_flow(const struct mb_node *n, struct mb_text *ret);

#endif
