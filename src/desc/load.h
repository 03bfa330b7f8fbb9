/* What the readers of descriptors share: shipped files by name, and chains of `extends`. */
#ifndef MBSIM_DESC_LOAD_H
#define MBSIM_DESC_LOAD_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

struct mb_library;
struct mb_node;

enum { MB_EXTENDS_MAX = 16 };

/* The mapping of ROOT/KIND/NAME.yaml; an unknown name is an error at `at` with the nearest ones. NULL after an error. */
const struct mb_node *mb_load_shipped(const struct mb_library *library, const char *kind, const char *noun,
                                      const char *name, struct mb_pos at, struct mb_arena *arena, struct mb_diags *diags);

/*
 * Follows `extends:` from node; chain[0] is the node itself, the last entry extends nothing. Count, 0 after an error.
 */
int mb_load_chain(const struct mb_library *library, const char *kind, const char *noun, const struct mb_node *node,
                  const struct mb_node *chain[MB_EXTENDS_MAX], struct mb_arena *arena, struct mb_diags *diags);

#endif
