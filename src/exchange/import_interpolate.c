#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "exchange/import_private.h"

/* OmegaConf's interpolations, as far as a file alone can tell their value. */

enum { DEPTH = 8, INTERPOLATIONS = 2000 };

static const struct mb_node *follow(const struct mb_node *map, const char *path, size_t length, const struct mb_node **parent)
{
	while (map != NULL && length > 0) {
		const char *dot = memchr(path, '.', length);
		size_t n = dot != NULL ? (size_t)(dot - path) : length;
		char key[128];

		if (n >= sizeof key)
			return NULL;
		snprintf(key, sizeof key, "%.*s", (int)n, path);
		*parent = map;
		map = mb_node_get(map, key);
		path += n + (dot != NULL);
		length -= n + (dot != NULL);
	}
	return map;
}

static const char *value_at(struct mb_importer *m, const struct mb_node *root, const struct mb_node *parent, const char *path, size_t length,
                            int depth)
{
	const struct mb_node *inside = root, *n;

	if (length > 0 && path[0] == '.')
		n = follow(parent, path + 1, length - 1, &inside);
	else
		n = follow(root, path, length, &inside);
	if (n == NULL || n->type != MB_NODE_SCALAR)
		return NULL;
	return strstr(n->text, "${") != NULL ? mb_import_interpolate(m, root, inside, n->text, depth + 1) : n->text;
}

static const char *preset(struct mb_importer *m, const char *name, size_t length)
{
	for (int i = 0; m->settings != NULL && m->settings[i] != NULL; i++) {
		if (strncmp(m->settings[i], name, length) == 0 && m->settings[i][length] == '=')
			return m->settings[i] + length + 1;
	}
	return NULL;
}

/* The end of the argument at s: a comma outside brackets, or `end`. */
static const char *argument_end(const char *s, const char *end)
{
	int depth = 0;

	for (; s < end; s++) {
		depth += *s == '{' ? 1 : *s == '}' ? -1 : 0;
		if (*s == ',' && depth == 0)
			return s;
	}
	return end;
}

static const char *argument(struct mb_importer *m, const struct mb_node *root, const struct mb_node *parent, const char *s,
                            const char *end, int depth)
{
	while (s < end && isspace((unsigned char)*s))
		s++;
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	const char *text = mb_arena_strndup(m->arena, s, (size_t)(end - s));
	return strstr(text, "${") != NULL ? mb_import_interpolate(m, root, parent, text, depth + 1) : text;
}

static const char *product(struct mb_importer *m, const char *a, const char *b)
{
	double x, y;
	struct mb_node left = { .text = a }, right = { .text = b };

	if (a == NULL || b == NULL || !mb_node_double(&left, &x) || !mb_node_double(&right, &y))
		return NULL;
	return mb_arena_printf(m->arena, "%.15g", x * y);
}

/* The inside of one ${...}. */
static const char *resolve(struct mb_importer *m, const struct mb_node *root, const struct mb_node *parent, const char *s, const char *end,
                           int depth)
{
	const char *colon = memchr(s, ':', (size_t)(end - s)), *comma, *value;
	size_t length = colon != NULL ? (size_t)(colon - s) : (size_t)(end - s);

	if (colon == NULL) {
		value = value_at(m, root, parent, s, length, depth);
		return value != NULL ? value : preset(m, s, length);
	}
	comma = argument_end(colon + 1, end);
	const char *first = argument(m, root, parent, colon + 1, comma, depth);
	const char *second = comma < end ? argument(m, root, parent, comma + 1, end, depth) : NULL;
	if (first == NULL)
		return NULL;
	if (strncmp(s, "multiply", length) == 0)
		return product(m, first, second);
	if (strncmp(s, "oc.select", length) == 0)
		value = value_at(m, root, parent, first, strlen(first), depth);
	else
		value = preset(m, first, strlen(first));
	return value != NULL ? value : second;
}

const char *mb_import_interpolate(struct mb_importer *m, const struct mb_node *root, const struct mb_node *parent, const char *text,
                                  int depth)
{
	const char *open = strstr(text, "${"), *s;
	int level = 0;

	if (open == NULL)
		return text;
	if (depth > DEPTH || ++m->interpolations > INTERPOLATIONS)
		return NULL;
	for (s = open + 1; *s != '\0'; s++) {
		level += *s == '{' ? 1 : *s == '}' ? -1 : 0;
		if (level == 0)
			break;
	}
	if (*s == '\0')
		return NULL;
	const char *value = resolve(m, root, parent, open + 2, s, depth);
	if (value == NULL || strlen(value) > 4096)
		return NULL;
	const char *whole = mb_arena_printf(m->arena, "%.*s%s%s", (int)(open - text), text, value, s + 1);
	return strstr(whole, "${") != NULL && strlen(whole) < 8192 ? mb_import_interpolate(m, root, parent, whole, depth + 1) : whole;
}
