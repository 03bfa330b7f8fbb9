/*
 * Conditions of a grid: "gpus >= 64 and gbs % gpus == 0", "hardware == dgx-h100 or precision != fp8_mx".
 * Operators, weakest first: or, and, not, comparisons, + -, * / %. A name stands for a value of the cell; a word that
 * is no key of the grid or the base stands for itself.
 */
#ifndef MBSIM_SWEEP_CONDITION_H
#define MBSIM_SWEEP_CONDITION_H

#include <stdbool.h>

#include "base/error.h"

struct mb_operand {
	bool numeric;
	double number;
	const char *text;               /* as written; of a number too */
};

/* Looks a name up; false: it names nothing. */
typedef bool (*mb_condition_lookup)(void *context, const char *name, struct mb_operand *ret);

/* Reports at `at`, with the column of the mistake, and returns false when the text makes no sense. */
bool mb_condition_holds(const char *text, struct mb_pos at, mb_condition_lookup lookup, void *context, bool *ret,
                        struct mb_diags *diags);

#endif
