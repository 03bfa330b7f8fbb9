/*
 * Results of a sweep in one SQLite file. Every cell is committed by itself: a process may be killed at any moment, and
 * what was finished is there. One process writes at a time, any number read.
 */
#ifndef MBSIM_SWEEP_STORE_H
#define MBSIM_SWEEP_STORE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "sweep/hash.h"

struct mb_store;

enum mb_store_mode { MB_STORE_READ, MB_STORE_WRITE };   /* write: creates the file, and keeps other writers out */

/* Reports and returns NULL when the file cannot be used, is no store, or is damaged. */
struct mb_store *mb_store_open(const char *path, enum mb_store_mode mode, struct mb_diags *diags);

/* A writer leaves one file behind. NULL is fine. */
void mb_store_close(struct mb_store *s);

/* In a forked child: gives up the writer's lock, which else lasts as long as the child does, without ending the parent's. */
void mb_store_forget(struct mb_store *s);

/* ---- cells ---- */

/* False after an error; *ret: the cell is there. */
bool mb_store_has(struct mb_store *s, const char *key, bool *ret, struct mb_diags *diags);

/* A finished cell. Storing it again changes nothing. */
bool mb_store_put(struct mb_store *s, const char *key, const char *verdict, const char *document, struct mb_diags *diags);

/* Texts that many cells share, by their hash. */
bool mb_store_put_text(struct mb_store *s, const char *hash, const char *text, struct mb_diags *diags);
const char *mb_store_text(struct mb_store *s, const char *hash, struct mb_arena *arena);       /* NULL: not there */

/* ---- the grid: which cells the sweep has, in order ---- */

struct mb_store_grid {
	const char *hash;               /* of all keys of the sweep */
	const char *name;               /* of the sweep: its file without .yaml */
	const char *head;               /* JSON: what the report needs to know of the sweep */
	int count;
	const char **keys;              /* [count] */
	const char **settings;          /* [count] JSON arrays, one value for each key of the sweep */
};

/* Replaces the grid, unless it is the same. */
bool mb_store_put_grid(struct mb_store *s, const struct mb_store_grid *grid, struct mb_diags *diags);

/* False after an error, or when the store holds no sweep. */
bool mb_store_get_grid(struct mb_store *s, struct mb_arena *arena, struct mb_store_grid *ret, struct mb_diags *diags);

/* The cell's document, in the arena; NULL: not finished. */
const char *mb_store_document(struct mb_store *s, const char *key, struct mb_arena *arena);

/* How many positions of the grid have a cell with this verdict. */
bool mb_store_count(struct mb_store *s, const char *verdict, int *ret, struct mb_diags *diags);

/* Adds what another store has. Both must be of one sweep; an empty store takes over the other's. */
bool mb_store_merge(struct mb_store *s, const char *path, struct mb_diags *diags);

#endif
