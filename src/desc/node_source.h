/* What happens to the bytes of a document before libyaml sees them. */
#ifndef MBSIM_DESC_NODE_SOURCE_H
#define MBSIM_DESC_NODE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum { MB_SOURCE_MAX = 100 * 1000 * 1000 };

/* The whole file, NUL-terminated. NULL after an error. */
char *mb_source_read(const char *path, struct mb_arena *arena, size_t *length, struct mb_diags *diags);

/* False, with a diagnostic, for binary data and input that is too large. */
bool mb_source_check(const char *text, size_t length, struct mb_pos at, struct mb_diags *diags);

/*
 * JSON documents only (first character a brace or bracket): blanks comments of the form //... and slash-star outside
 * strings, in place, so that positions stay; joins surrogate pairs of \u escapes, which YAML does not know. False: not JSON.
 */
bool mb_source_clean_json(char *text, size_t *length);

/* Whether the indentation of a line holds a tab, and where. */
bool mb_source_tab(const char *text, size_t length, int line, int *column);

#endif
