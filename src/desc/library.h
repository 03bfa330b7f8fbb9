/* Where shipped data lives, and reading it by name. */
#ifndef MBSIM_DESC_LIBRARY_H
#define MBSIM_DESC_LIBRARY_H

#include "desc/hardware.h"
#include "desc/model.h"
#include "desc/stack.h"

/*
 * The data root holds models/, hardware/ and configs/. It is, in this order: $MBSIM_DATA; the source tree when the
 * executable stands in its build folder; the installed share directory relative to the executable; the compiled-in one.
 */
struct mb_library {
	char root[4096];
};

bool mb_library_open(struct mb_library *library, struct mb_diags *diags);

/* Names of a kind: "models", "hardware", "configs/stacks", "configs/runs"; sorted, without ".yaml". Count, -1 on error. */
int mb_library_list(const struct mb_library *library, const char *kind, struct mb_arena *arena, const char *const **ret);

/* Newest stack whose name starts with "nemo-". */
const char *mb_library_default_stack(const struct mb_library *library, struct mb_arena *arena);

/*
 * `what` is a name, a path to a YAML or JSON file, or a mapping. An unknown name is an error with the nearest ones.
 */
bool mb_model_load(const struct mb_node *what, struct mb_library *library, struct mb_arena *arena, struct mb_model *ret, struct mb_diags *diags);
bool mb_hardware_load(const struct mb_node *what, struct mb_library *library, struct mb_arena *arena, struct mb_hardware *ret, struct mb_diags *diags);

#endif
