/* Reading nodes that exist: what a plain scalar means. */
#include "desc/node.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "base/units.h"

const struct mb_node *mb_node_get(const struct mb_node *map, const char *key)
{
	if (!map || map->type != MB_NODE_MAP)
		return NULL;
	for (const struct mb_node *n = map->child; n; n = n->next) {
		if (strcmp(n->key->text, key) == 0)
			return n;
	}
	return NULL;
}

const struct mb_node *mb_node_scalar(struct mb_arena *arena, struct mb_pos pos, const char *text)
{
	struct mb_node *n = mb_arena_alloc(arena, sizeof *n);

	*n = (struct mb_node){ .type = MB_NODE_SCALAR, .pos = pos, .text = mb_arena_strdup(arena, text) };
	return n;
}

static bool plain(const struct mb_node *n)
{
	return n && n->type == MB_NODE_SCALAR && !n->quoted;
}

bool mb_node_is_null(const struct mb_node *n)
{
	static const struct mb_name nulls[] = {
		{ "", 0 }, { "~", 0 }, { "null", 0 }, { "Null", 0 }, { "NULL", 0 }, { NULL, 0 }
	};
	int unused;

	return !n || (plain(n) && mb_name_value(nulls, n->text, &unused));
}

bool mb_node_bool(const struct mb_node *n, bool *ret)
{
	static const struct mb_name words[] = {
		{ "true", 1 }, { "True", 1 }, { "TRUE", 1 }, { "yes", 1 }, { "Yes", 1 }, { "YES", 1 },
		{ "on", 1 }, { "On", 1 }, { "ON", 1 }, { "false", 0 }, { "False", 0 }, { "FALSE", 0 },
		{ "no", 0 }, { "No", 0 }, { "NO", 0 }, { "off", 0 }, { "Off", 0 }, { "OFF", 0 }, { NULL, 0 }
	};
	int value;

	if (!plain(n) || !mb_name_value(words, n->text, &value))
		return false;
	*ret = value != 0;
	return true;
}

bool mb_node_double(const struct mb_node *n, double *ret)
{
	const char *end;
	double value;

	if (!plain(n) || !mb_parse_number(n->text, &end, &value) || *end)
		return false;
	*ret = value;
	return true;
}

/* Every whole number up to 2^53 is exact in a double, which is far beyond any key. */
bool mb_node_int(const struct mb_node *n, long long *ret)
{
	double value;

	if (!mb_node_double(n, &value) || fabs(value) > 0x1p53 || floor(value) < value)
		return false;
	*ret = (long long)value;
	return true;
}
