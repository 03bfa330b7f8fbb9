#include "sweep/axes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool fail(struct mb_axes *a, struct mb_pos pos, const char *text, const char *expected)
{
	struct mb_diag *d = mb_report(a->diags, MB_ERROR, pos, "", "%s", text);

	snprintf(d->expected, sizeof d->expected, "%s", expected);
	return false;
}

/* Index of the key a node stands under; -1 after an error. fresh: no other axis may have it. */
static int key_of(struct mb_axes *a, const struct mb_node *value, bool fresh)
{
	const char *name = mb_sweep_full_name(value->key->text);
	struct mb_sweep *s = a->sweep;

	for (int i = 0; i < s->key_count; i++) {
		if (strcmp(s->keys[i], name) != 0)
			continue;
		if (fresh)
			mb_fail(a->diags, value->key->pos, "%.80s varies twice in this sweep", name);
		return fresh ? -1 : i;
	}
	if (s->key_count == MB_MAX_GRID_KEYS) {
		mb_fail(a->diags, value->key->pos, "more than %d keys vary", MB_MAX_GRID_KEYS);
		return -1;
	}
	s->keys[s->key_count] = name;
	return s->key_count++;
}

static struct mb_sweep_axis *new_axis(struct mb_axes *a, struct mb_pos pos)
{
	if (a->count == MB_MAX_AXES) {
		mb_fail(a->diags, pos, "more than %d things vary", MB_MAX_AXES);
		return NULL;
	}
	a->axes[a->count] = (struct mb_sweep_axis){ .pos = pos };
	return &a->axes[a->count++];
}

/* ---- values ---- */

static bool range_number(struct mb_axes *a, const struct mb_node *map, const char *key, double *ret)
{
	const struct mb_node *n = mb_node_get(map, key);

	if (!n)
		return false;
	if (!mb_node_double(n, ret))
		return fail(a, n->pos, "a range needs numbers", "{from: 64, to: 1024, factor: 2} or {from: 1, to: 8, step: 1}");
	return true;
}

static bool is_range(const struct mb_node *n)
{
	return n->type == MB_NODE_MAP && mb_node_get(n, "from") && mb_node_get(n, "to");
}

/* Values as they would be written: rounding must not turn 64 into 63.99999. */
static const struct mb_node *range_value(struct mb_axes *a, struct mb_pos pos, double value)
{
	bool whole = fabs(value - nearbyint(value)) < 1e-9 * fmax(1, fabs(value));

	return mb_node_scalar(a->arena, pos, whole ? mb_arena_printf(a->arena, "%.0f", nearbyint(value)) : mb_arena_printf(a->arena, "%.12g", value));
}

static int read_range(struct mb_axes *a, const struct mb_node *n, const struct mb_node ***ret)
{
	double from, to, step = 0, factor = 0;
	int errors = a->diags->errors, count = 0;
	bool ok = range_number(a, n, "from", &from) && range_number(a, n, "to", &to);
	bool stepped = ok && range_number(a, n, "step", &step), scaled = ok && range_number(a, n, "factor", &factor);

	if (a->diags->errors > errors)
		return -1;
	if (!ok || stepped == scaled || n->count != 3 || from > to || (stepped && step <= 0) || (scaled && (factor <= 1 || from <= 0))) {
		fail(a, n->pos, "this range makes no sense", "{from: 64, to: 1024, factor: 2} or {from: 1, to: 8, step: 1}");
		return -1;
	}
	double steps = stepped ? (to - from) / step : log(to / from) / log(factor);

	if (steps > 100000) {
		mb_fail(a->diags, n->pos, "this range has more than 100,000 values");
		return -1;
	}
	*ret = mb_arena_alloc(a->arena, ((size_t)steps + 2) * sizeof **ret);
	for (double i = 0; i <= steps + 1e-9; i++)
		(*ret)[count++] = range_value(a, n->pos, stepped ? from + i * step : from * pow(factor, i));
	return count;
}

/* The values under a key: a list, a range, or one value. Count, -1 after an error. */
static int read_values(struct mb_axes *a, const struct mb_node *n, const struct mb_node ***ret)
{
	int count = 0;

	if (is_range(n))
		return read_range(a, n, ret);
	if (n->type != MB_NODE_LIST) {
		*ret = mb_arena_alloc(a->arena, sizeof **ret);
		(*ret)[0] = n;
		return 1;
	}
	if (n->count == 0) {
		fail(a, n->pos, "this list is empty", "at least one value");
		return -1;
	}
	*ret = mb_arena_alloc(a->arena, (size_t)n->count * sizeof **ret);
	for (const struct mb_node *child = n->child; child; child = child->next)
		(*ret)[count++] = child;
	return count;
}

/* ---- sections ---- */

static bool expect_map(struct mb_axes *a, const struct mb_node *n, const char *what)
{
	if (n->type == MB_NODE_MAP)
		return true;
	return fail(a, n->pos, what, "keys with lists, such as gpus: [64, 128]");
}

bool mb_axes_grid(struct mb_axes *a, const struct mb_node *section)
{
	if (mb_node_is_null(section))
		return true;
	if (!expect_map(a, section, "grid is a mapping of keys"))
		return false;
	for (const struct mb_node *n = section->child; n; n = n->next) {
		struct mb_sweep_axis *axis = new_axis(a, n->key->pos);

		if (!axis || (axis->keys[0] = key_of(a, n, true)) < 0 || (axis->count = read_values(a, n, &axis->values)) < 0)
			return false;
		axis->key_count = 1;
	}
	return true;
}

/* Fills column k of an axis whose size the first key decides. */
static bool add_column(struct mb_axes *a, struct mb_sweep_axis *axis, const struct mb_node *n, int keys)
{
	const struct mb_node **values;
	int count = read_values(a, n, &values);

	if (count < 0)
		return false;
	if (axis->key_count == 0) {
		axis->count = count;
		axis->values = mb_arena_alloc(a->arena, (size_t)count * (size_t)keys * sizeof *axis->values);
	} else if (count != axis->count) {
		return mb_fail(a->diags, n->key->pos, "lists of a zip have the same length: %.60s has %d values, the first key %d",
		               n->key->text, count, axis->count);
	}
	for (int i = 0; i < count; i++)
		axis->values[i * keys + axis->key_count] = values[i];
	axis->key_count++;
	return true;
}

static bool read_zip(struct mb_axes *a, const struct mb_node *map)
{
	struct mb_sweep_axis *axis;

	if (!expect_map(a, map, "a zip is a mapping of keys") || !(axis = new_axis(a, map->pos)))
		return false;
	for (const struct mb_node *n = map->child; n; n = n->next) {
		int key = key_of(a, n, true);

		if (key < 0)
			return false;
		axis->keys[axis->key_count] = key;
		if (!add_column(a, axis, n, map->count))
			return false;
	}
	return axis->count > 0 || fail(a, map->pos, "this zip is empty", "keys with lists of the same length");
}

bool mb_axes_zip(struct mb_axes *a, const struct mb_node *section)
{
	if (mb_node_is_null(section))
		return true;
	if (section->type != MB_NODE_LIST)
		return read_zip(a, section);
	for (const struct mb_node *n = section->child; n; n = n->next) {
		if (!read_zip(a, n))
			return false;
	}
	return true;
}

/* Position of a key in the axis, added if it is new to it. */
static int column_of(struct mb_sweep_axis *axis, int key)
{
	for (int i = 0; i < axis->key_count; i++) {
		if (axis->keys[i] == key)
			return i;
	}
	axis->keys[axis->key_count] = key;
	return axis->key_count++;
}

bool mb_axes_cases(struct mb_axes *a, const struct mb_node *section)
{
	int before = a->sweep->key_count, row = 0;
	struct mb_sweep_axis *axis;

	if (mb_node_is_null(section))
		return true;
	if (section->type != MB_NODE_LIST || section->count == 0)
		return fail(a, section->pos, "cases is a list of mappings", "lines such as - {tp: 4, pp: 2}");
	if (!(axis = new_axis(a, section->pos)))
		return false;
	for (const struct mb_node *map = section->child; map; map = map->next) {
		if (!expect_map(a, map, "a case is a mapping of keys"))
			return false;
		for (const struct mb_node *n = map->child; n; n = n->next) {
			int key = key_of(a, n, false);

			if (key < 0)
				return false;
			if (key < before)
				return mb_fail(a->diags, n->key->pos, "%.80s varies twice in this sweep", a->sweep->keys[key]);
			column_of(axis, key);
		}
	}
	axis->count = section->count;
	axis->values = mb_arena_alloc(a->arena, (size_t)axis->count * (size_t)(axis->key_count + 1) * sizeof *axis->values);
	for (const struct mb_node *map = section->child; map; map = map->next, row++)
		for (const struct mb_node *n = map->child; n; n = n->next)
			axis->values[row * axis->key_count + column_of(axis, key_of(a, n, false))] = n;
	return true;
}
