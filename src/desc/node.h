/* A YAML or JSON document as a tree that remembers where everything stood. The only file that knows libyaml is node.c. */
#ifndef MBSIM_DESC_NODE_H
#define MBSIM_DESC_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum mb_node_type { MB_NODE_SCALAR, MB_NODE_LIST, MB_NODE_MAP };

struct mb_node {
	enum mb_node_type type;
	struct mb_pos pos;
	bool quoted;                    /* scalar in quotes: never null, boolean or number */
	const char *text;               /* scalar */
	const struct mb_node *key;      /* of a map's child */
	const struct mb_node *child;    /* first element of a list or map */
	const struct mb_node *next;
	int count;                      /* children */
};

/*
 * Reads one document (YAML 1.1 or JSON with comments and trailing commas). Duplicate keys, tabs, several documents,
 * deep nesting (over 64), aliases that expand past 100,000 nodes, files over 100 MB and binary are errors with a place.
 * `name` is what messages call the input. Nodes and their strings live in the arena. NULL after an error.
 */
const struct mb_node *mb_node_read_file(const char *path, struct mb_arena *arena, struct mb_diags *diags);
const struct mb_node *mb_node_read_text(const char *text, size_t length, const char *name, struct mb_arena *arena, struct mb_diags *diags);

const struct mb_node *mb_node_get(const struct mb_node *map, const char *key);         /* NULL: absent */

/* A list for programs that build nodes (key=value arguments). */
const struct mb_node *mb_node_scalar(struct mb_arena *arena, struct mb_pos pos, const char *text);

/* YAML's idea of a plain scalar: null, ~ and empty; true/false (also True, yes, no, on, off with a warning by the caller). */
bool mb_node_is_null(const struct mb_node *n);
bool mb_node_bool(const struct mb_node *n, bool *ret);
bool mb_node_int(const struct mb_node *n, long long *ret);      /* also 1e9, 4096.0, "4_096"; not 1.5, NaN or overflow */
bool mb_node_double(const struct mb_node *n, double *ret);      /* finite only */

#endif
