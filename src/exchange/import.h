/* Files of other tools as runs, or models, of ours. */
#ifndef MBSIM_EXCHANGE_IMPORT_H
#define MBSIM_EXCHANGE_IMPORT_H

#include "base/text.h"
#include "plan/case.h"

struct mb_import {
	const char *format;             /* "Megatron-LM launch script" and the like */
	const struct mb_node *map;      /* a run; or the mapping of a model file */
	bool model;                     /* the latter */
	const struct mb_query *query;   /* the run as `estimate` reads it; NULL when something is missing that it needs */
};

/*
 * `settings`: key=value texts of the command line, over what the file says; NAME=value also fills variables that the
 * file leaves open; ends with NULL. What was assumed, left out or not understood is reported as notes and warnings.
 */
bool mb_import_file(const char *path, const char *const *settings, struct mb_library *library, struct mb_arena *arena,
                    struct mb_import *ret, struct mb_diags *diags);
bool mb_import_text(const char *text, size_t length, const char *name, const char *const *settings,
                    struct mb_library *library, struct mb_arena *arena, struct mb_import *ret, struct mb_diags *diags);

/* The file that `estimate` (or `model=`) accepts. */
void mb_import_write(const struct mb_import *x, struct mb_text *out);

#endif
