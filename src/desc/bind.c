#include "desc/bind.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

const char *mb_node_what(const struct mb_node *n)
{
	if (n->type == MB_NODE_LIST)
		return "a list";
	if (n->type == MB_NODE_MAP)
		return "a mapping";
	return mb_node_is_null(n) ? "empty" : "a word";
}

const struct mb_node *mb_bind_unwrap(const struct mb_node *value)
{
	const struct mb_node *inner = mb_node_get(value, "value");

	return inner ? inner : value;
}

/* "'4k' is not a whole number"; lists and mappings are named, not quoted. */
static struct mb_diag *report_wrong(const struct mb_node *v, const char *key, const char *expected,
                                    struct mb_diags *diags)
{
	struct mb_diag *d;

	if (v->type == MB_NODE_SCALAR && !mb_node_is_null(v))
		return mb_report(diags, MB_ERROR, v->pos, key, "%s: '%.80s' is not %s", key, v->text, expected);
	d = mb_report(diags, MB_ERROR, v->pos, key, "%s is %s", key, mb_node_what(v));
	snprintf(d->expected, sizeof d->expected, "%s", expected);
	return d;
}

static bool wrong(const struct mb_node *v, const char *key, const char *expected, struct mb_diags *diags)
{
	report_wrong(v, key, expected, diags);
	return false;
}

static bool in_range(const struct mb_node *v, const char *key, enum mb_dimension dimension, double value, double min,
                     double max, struct mb_diags *diags)
{
	char low[40], high[40];
	struct mb_diag *d;

	if (value >= min && value <= max)
		return true;
	d = mb_report(diags, MB_ERROR, v->pos, key, "%s: %.80s is out of range", key, v->text);
	mb_format_quantity(low, sizeof low, min, dimension);
	mb_format_quantity(high, sizeof high, max, dimension);
	snprintf(d->expected, sizeof d->expected, "%s to %s", low, high);
	return false;
}

/* A text that measures something else deserves to hear what it is. */
bool mb_bind_quantity(const struct mb_node *v, const char *key, enum mb_dimension dimension, double min, double max,
                      double *ret, struct mb_diags *diags)
{
	const char *kind = v->type == MB_NODE_SCALAR ? mb_unit_kind(v->text) : NULL;
	const char *hint = mb_unit_hint(dimension);
	double value;

	if (v->type == MB_NODE_SCALAR && mb_parse_quantity(v->text, dimension, &value)) {
		if (!in_range(v, key, dimension, value, min, max, diags))
			return false;
		*ret = value;
		return true;
	}
	if (kind && strcmp(kind, mb_unit_kind("1")) == 0 && dimension != MB_COUNT_UNIT) {
		struct mb_diag *d = mb_report(diags, MB_ERROR, v->pos, key, "%s: '%.80s' has no unit", key, v->text);

		snprintf(d->expected, sizeof d->expected, "%s", hint);
		return false;
	}
	if (kind && strcmp(kind, mb_unit_kind("1")) != 0) {
		struct mb_diag *d = mb_report(diags, MB_ERROR, v->pos, key, "%s: '%.80s' is %s", key, v->text, kind);

		snprintf(d->expected, sizeof d->expected, "%s", hint);
		return false;
	}
	return wrong(v, key, hint, diags);
}

/* "4k" and "4K" are how people write 4096. */
static void suggest_thousands(const struct mb_node *v, double max, struct mb_diag *d)
{
	const char *end;
	double number;

	if (v->type != MB_NODE_SCALAR || !mb_parse_number(v->text, &end, &number))
		return;
	if ((strcmp(end, "k") == 0 || strcmp(end, "K") == 0) && number > 0 && number * 1024 <= max)
		snprintf(d->nearest, sizeof d->nearest, "%.0f", number * 1024);
}

static bool bind_whole(const struct mb_field *f, const struct mb_node *v, long long *ret, struct mb_diags *diags)
{
	if (!mb_node_int(v, ret)) {
		suggest_thousands(v, f->max, report_wrong(v, f->key, "a whole number", diags));
		return false;
	}
	return in_range(v, f->key, MB_COUNT_UNIT, (double)*ret, f->min, f->max, diags);
}

static bool bind_bool(const struct mb_field *f, const struct mb_node *v, bool *ret, struct mb_diags *diags)
{
	if (!mb_node_bool(v, ret))
		return wrong(v, f->key, "true or false", diags);
	if (strcmp(v->text, *ret ? "true" : "false") != 0)
		mb_report(diags, MB_WARNING, v->pos, f->key, "%s: '%s' is YAML for %s; write %s", f->key, v->text,
		          *ret ? "true" : "false", *ret ? "true" : "false");
	return true;
}

static bool bind_enum(const struct mb_field *f, const struct mb_node *v, int *ret, struct mb_diags *diags)
{
	const char *names[32], *near;
	struct mb_diag *d;
	size_t n = 0, used = 0;

	if (v->type == MB_NODE_SCALAR && mb_name_value(f->names, v->text, ret))
		return true;
	if (v->type != MB_NODE_SCALAR || mb_node_is_null(v))
		return wrong(v, f->key, "a name", diags);
	for (; f->names[n].name && n < 32; n++)
		names[n] = f->names[n].name;
	d = mb_report(diags, MB_ERROR, v->pos, f->key, "%s: '%.80s' is not known", f->key, v->text);
	for (size_t i = 0; i < n; i++) {
		int wrote = snprintf(d->expected + used, sizeof d->expected - used, "%s%s", i ? ", " : "", names[i]);

		if (wrote < 0 || (used += (size_t)wrote) >= sizeof d->expected)
			break;
	}
	near = mb_nearest(v->text, names, n);
	snprintf(d->nearest, sizeof d->nearest, "%s", near ? near : "");
	return false;
}

static bool bind_name(const struct mb_field *f, const struct mb_node *v, char *ret, struct mb_diags *diags)
{
	size_t length;

	if (v->type != MB_NODE_SCALAR)
		return wrong(v, f->key, "a text", diags);
	length = strlen(v->text);
	if (length < (size_t)f->min || length > (size_t)f->max) {
		struct mb_diag *d = mb_report(diags, MB_ERROR, v->pos, f->key, "%s has %zu characters", f->key, length);

		snprintf(d->expected, sizeof d->expected, "%.0f to %.0f", f->min, f->max);
		return false;
	}
	memcpy(ret, v->text, length + 1);
	return true;
}

static bool bind_value(const struct mb_field *f, const struct mb_node *v, struct mb_arena *arena, void *member,
                       struct mb_diags *diags)
{
	long long whole;
	double number;

	switch (f->kind) {
	case MB_FIELD_INT:
		if (!bind_whole(f, v, &whole, diags))
			return false;
		*(int *)member = (int)whole;
		return true;
	case MB_FIELD_INT64:
		if (!mb_bind_quantity(v, f->key, f->dimension, f->min, f->max, &number, diags))
			return false;
		*(int64_t *)member = (int64_t)llround(number);
		return true;
	case MB_FIELD_DOUBLE:
		return mb_bind_quantity(v, f->key, f->dimension, f->min, f->max, member, diags);
	case MB_FIELD_BOOL:
		return bind_bool(f, v, member, diags);
	case MB_FIELD_ENUM:
		return bind_enum(f, v, member, diags);
	case MB_FIELD_NAME:
		return bind_name(f, v, member, diags);
	case MB_FIELD_TEXT:
		if (v->type != MB_NODE_SCALAR)
			return wrong(v, f->key, "a text", diags);
		*(const char **)member = mb_arena_strdup(arena, v->text);
		return true;
	case MB_FIELD_NODE:
		*(const struct mb_node **)member = v;
		return true;
	case MB_FIELD_IGNORED:
		break;
	}
	return true;
}

static void bind_absent(const struct mb_field *f, void *member)
{
	switch (f->kind) {
	case MB_FIELD_INT:
	case MB_FIELD_ENUM:
		*(int *)member = (int)f->absent;
		break;
	case MB_FIELD_INT64:
		*(int64_t *)member = (int64_t)f->absent;
		break;
	case MB_FIELD_BOOL:
		*(bool *)member = f->absent > 0;
		break;
	case MB_FIELD_DOUBLE:
		*(double *)member = f->absent;
		break;
	case MB_FIELD_NAME:
		*(char *)member = '\0';
		break;
	case MB_FIELD_TEXT:
		*(const char **)member = NULL;
		break;
	case MB_FIELD_NODE:
		*(const struct mb_node **)member = NULL;
		break;
	case MB_FIELD_IGNORED:
		break;
	}
}

static const struct mb_field *find_field(const struct mb_binding *b, const char *key)
{
	for (size_t i = 0; i < b->count; i++) {
		if (strcmp(b->fields[i].key, key) == 0)
			return &b->fields[i];
	}
	return NULL;
}

static void report_unknown(const struct mb_binding *b, const struct mb_node *key, struct mb_diags *diags)
{
	const char *names[128], *near;
	size_t n = b->count < 128 ? b->count : 128;
	struct mb_diag *d = mb_report(diags, MB_ERROR, key->pos, key->text, "unknown key '%.100s'", key->text);

	for (size_t i = 0; i < n; i++)
		names[i] = b->fields[i].key;
	near = mb_nearest(key->text, names, n);
	snprintf(d->nearest, sizeof d->nearest, "%s", near ? near : "");
}

/* The keys beside `value:` are for the reader of the file; a misspelt one would hide a source. */
static bool check_wrapper(const struct mb_node *v, const char *key, struct mb_diags *diags)
{
	static const char *const known[] = { "value", "source", "note" };
	bool ok = true;

	for (const struct mb_node *c = v->child; c; c = c->next) {
		const char *k = c->key->text;
		bool is_known = false;

		for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
			is_known |= strcmp(k, known[i]) == 0;
		if (!is_known) {
			mb_report(diags, MB_ERROR, c->key->pos, key, "%s: unknown key '%.80s' beside value, source and note",
			          key, k);
			ok = false;
		}
	}
	return ok;
}

static bool bind_one(const struct mb_binding *b, const struct mb_node *v, struct mb_arena *arena, char *ret,
                     struct mb_diags *diags)
{
	const struct mb_field *f = find_field(b, v->key->text);

	if (!f) {
		if (!b->unknown || !b->unknown(v, diags))
			report_unknown(b, v->key, diags);
		return true;
	}
	if (b->sourced && f->kind != MB_FIELD_NODE && mb_node_get(v, "value")) {
		if (!check_wrapper(v, f->key, diags))
			return false;
		v = mb_bind_unwrap(v);
	}
	/* Over another file, null takes back what that file said: the caller must see it. */
	if (mb_node_is_null(v) && !(b->overlay && f->kind == MB_FIELD_NODE)) {
		if (isnan(f->absent))
			return wrong(v, f->key, "a value", diags);
		if (f->kind != MB_FIELD_IGNORED)
			bind_absent(f, ret + f->offset);
		return true;
	}
	return bind_value(f, v, arena, ret + f->offset, diags);
}

/* One message for all of them: a list of ten would leave no room for other mistakes. */
static void report_missing(const struct mb_binding *b, const struct mb_node *map, struct mb_diags *diags)
{
	char names[256] = "";
	size_t used = 0;
	int missing = 0;

	for (size_t i = 0; i < b->count; i++) {
		const char *key = b->fields[i].key;

		if (!isnan(b->fields[i].absent) || mb_node_get(map, key))
			continue;
		if (used + strlen(key) + 8 < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", missing ? ", " : "", key);
		missing++;
	}
	if (missing)
		mb_report(diags, MB_ERROR, map->pos, NULL, "%s %s missing", names, missing > 1 ? "are" : "is");
}

bool mb_bind(const struct mb_binding *b, const struct mb_node *map, struct mb_arena *arena, void *ret,
             struct mb_diags *diags)
{
	int before = diags->errors;

	if (!map || map->type != MB_NODE_MAP) {
		struct mb_pos nowhere = { 0 };

		return mb_fail(diags, map ? map->pos : nowhere, "expected a mapping of keys and values");
	}
	for (size_t i = 0; !b->overlay && i < b->count; i++) {
		if (!isnan(b->fields[i].absent))
			bind_absent(&b->fields[i], (char *)ret + b->fields[i].offset);
	}
	for (const struct mb_node *v = map->child; v; v = v->next)
		bind_one(b, v, arena, ret, diags);
	if (!b->overlay)
		report_missing(b, map, diags);
	return diags->errors == before;
}
