#include "base/names.h"

#include <stddef.h>
#include <string.h>

bool mb_name_value(const struct mb_name *table, const char *name, int *ret)
{
	for (; table->name; table++) {
		if (strcmp(table->name, name) == 0) {
			*ret = table->value;
			return true;
		}
	}
	return false;
}

const char *mb_value_name(const struct mb_name *table, int value)
{
	for (; table->name; table++) {
		if (table->value == value)
			return table->name;
	}
	return NULL;
}
