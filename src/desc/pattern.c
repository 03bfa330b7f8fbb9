#include "desc/pattern.h"

#include <string.h>

#include "desc/bind.h"
#include "desc/model.h"

/* Recursive descent over: sum = term {"+" term}; term = ("[" flags "]" | "(" sum ")") ["*" count]. */
struct scan {
	const char *s;
	int8_t *flags;
	int used, max, depth;
};

static void skip(struct scan *p)
{
	while (*p->s == ' ')
		p->s++;
}

static bool accept(struct scan *p, char c)
{
	skip(p);
	if (*p->s != c)
		return false;
	p->s++;
	return true;
}

static bool number(struct scan *p, int *ret)
{
	int value = 0;

	skip(p);
	if (*p->s < '0' || *p->s > '9')
		return false;
	for (; *p->s >= '0' && *p->s <= '9'; p->s++) {
		value = value * 10 + (*p->s - '0');
		if (value > MB_MAX_LAYERS)
			return false;
	}
	*ret = value;
	return true;
}

static bool flags(struct scan *p)
{
	do {
		int value;

		if (!number(p, &value) || value > 1 || p->used == p->max)
			return false;
		p->flags[p->used++] = (int8_t)value;
	} while (accept(p, ','));
	return accept(p, ']');
}

static bool sum(struct scan *p);

static bool term(struct scan *p)
{
	int start = p->used, times, length;
	bool ok;

	if (accept(p, '['))
		ok = flags(p);
	else
		ok = accept(p, '(') && sum(p) && accept(p, ')');
	if (!ok || !accept(p, '*'))
		return ok;
	if (!number(p, &times))
		return false;
	length = p->used - start;
	if (times == 0)
		p->used = start;
	for (int i = 1; i < times; i++) {
		if (length > p->max - p->used)
			return false;
		memcpy(p->flags + p->used, p->flags + start, (size_t)length);
		p->used += length;
	}
	return true;
}

static bool sum(struct scan *p)
{
	bool ok = ++p->depth < 8 && term(p);

	while (ok && accept(p, '+'))
		ok = term(p);
	p->depth--;
	return ok;
}

bool mb_pattern_text(const char *text, int count, int8_t *ret, const char *key, struct mb_pos at, struct mb_diags *diags)
{
	int8_t all[MB_MAX_LAYERS];
	struct scan p = { .s = text, .flags = all, .max = MB_MAX_LAYERS };

	if (!sum(&p) || (skip(&p), *p.s)) {
		mb_report(diags, MB_ERROR, at, key, "%s: '%.80s' is not understood; expected flags such as '[0]*3+[1]*58'", key,
		          text);
		return false;
	}
	if (p.used != count) {
		mb_report(diags, MB_ERROR, at, key, "%s has %d entries for %d layers", key, p.used, count);
		return false;
	}
	memcpy(ret, all, (size_t)count);
	return true;
}

bool mb_pattern_read(const struct mb_node *node, int count, int8_t *ret, const char *key, struct mb_diags *diags)
{
	int i = 0;

	if (node->type == MB_NODE_SCALAR)
		return mb_pattern_text(node->text, count, ret, key, node->pos, diags);
	if (node->type == MB_NODE_MAP || node->count != count) {
		mb_report(diags, MB_ERROR, node->pos, key, node->type == MB_NODE_MAP ? "%s is a mapping, expected a list" :
		          "%s has %d entries for %d layers", key, node->count, count);
		return false;
	}
	for (const struct mb_node *v = node->child; v; v = v->next, i++) {
		long long flag;
		bool truth;

		if (mb_node_bool(v, &truth))
			flag = truth;
		else if (!mb_node_int(v, &flag) || flag < 0 || flag > 1) {
			mb_report(diags, MB_ERROR, v->pos, key, "%s: entry %d is not 0 or 1", key, i + 1);
			return false;
		}
		ret[i] = (int8_t)flag;
	}
	return true;
}
