/* Ties a mapping to a plain struct by a static table of fields, and reports everything that does not fit. */
#ifndef MBSIM_DESC_BIND_H
#define MBSIM_DESC_BIND_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "desc/node.h"

enum mb_field_kind {
	MB_FIELD_INT,           /* int */
	MB_FIELD_INT64,         /* int64_t; with a dimension: a quantity, rounded */
	MB_FIELD_BOOL,          /* bool */
	MB_FIELD_DOUBLE,        /* double in the dimension of the row */
	MB_FIELD_ENUM,          /* enum stored as int, by `names` */
	MB_FIELD_NAME,          /* char[max + 1] */
	MB_FIELD_TEXT,          /* const char *, in the arena */
	MB_FIELD_NODE,          /* const struct mb_node *, for the caller to read */
	MB_FIELD_IGNORED,       /* known, without influence on size or time */
};

#define MB_REQUIRED NAN         /* as `absent`: the key must be there */

struct mb_field {
	const char *key;
	enum mb_field_kind kind;
	size_t offset;
	double min, max;
	double absent;                  /* what an absent key or null means; texts and nodes become NULL or "" */
	enum mb_dimension dimension;
	const struct mb_name *names;
};

struct mb_binding {
	const struct mb_field *fields;
	size_t count;
	bool overlay;                   /* absent keys leave the struct as it is */
	bool sourced;                   /* a value may also be {value:, source:, note:} */
	/* Called for an unknown key first; true: it was dealt with. May be NULL. */
	bool (*unknown)(const struct mb_node *value, struct mb_diags *diags);
};

/* False if anything was reported as an error. */
bool mb_bind(const struct mb_binding *binding, const struct mb_node *map, struct mb_arena *arena, void *ret,
             struct mb_diags *diags);

/* One quantity with its unit, within min and max; reports and returns false otherwise. */
bool mb_bind_quantity(const struct mb_node *value, const char *key, enum mb_dimension dimension, double min, double max,
                      double *ret, struct mb_diags *diags);

/* The value of {value: x, source: y}, or `value` itself. */
const struct mb_node *mb_bind_unwrap(const struct mb_node *value);

/* "a list" and so on, for messages. */
const char *mb_node_what(const struct mb_node *n);

#endif
