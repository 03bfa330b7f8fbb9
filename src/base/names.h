/* Enumerations and their names: one table, read in both directions. */
#ifndef MBSIM_BASE_NAMES_H
#define MBSIM_BASE_NAMES_H

#include <stdbool.h>

struct mb_name {
	const char *name;
	int value;
};

/* Tables end with {NULL, 0}; the first row with a value is its canonical name, later rows are accepted aliases. */
bool mb_name_value(const struct mb_name *table, const char *name, int *ret);
const char *mb_value_name(const struct mb_name *table, int value);      /* NULL if the value has no name */

#endif
