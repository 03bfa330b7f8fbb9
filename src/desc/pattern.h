/* Per-layer flags as Megatron's configurations write them. */
#ifndef MBSIM_DESC_PATTERN_H
#define MBSIM_DESC_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct mb_node;

/* "[0]*3+[1]*58" or "([1]*3+[0])*12": exactly `count` flags, each 0 or 1. */
bool mb_pattern_text(const char *text, int count, int8_t *ret, const char *key, struct mb_pos at, struct mb_diags *diags);

/* The same from a list of flags or a text. */
bool mb_pattern_read(const struct mb_node *node, int count, int8_t *ret, const char *key, struct mb_diags *diags);

#endif
