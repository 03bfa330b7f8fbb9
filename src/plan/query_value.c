#include "plan/query.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 60 };       /* characters of the input that a message quotes */

static bool bad(struct mb_reader *r, const struct mb_key *key, struct mb_pos pos, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static bool bad(struct mb_reader *r, const struct mb_key *key, struct mb_pos pos, const char *fmt, ...)
{
	char text[MB_DIAG_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	mb_report(r->diags, MB_ERROR, pos, key->name, "%s: %s", key->name, text);
	return false;
}

static bool has_name(const struct mb_name *names, const char *name)
{
	int ignored;

	return names != NULL && mb_name_value(names, name, &ignored);
}

static bool nullable(const struct mb_key *key)
{
	switch (key->type) {
	case MB_KEY_ENUM:
		return has_name(key->names, "null");
	case MB_KEY_TRISTATE:
	case MB_KEY_SET:
	case MB_KEY_LAYOUT:
	case MB_KEY_SIZES:
		return true;
	default:
		return strcmp(key->bridge_default, "null") == 0 || strcmp(key->megatron_default, "null") == 0;
	}
}

/* What null is inside struct mb_run. */
static union mb_value null_value(enum mb_key_id id)
{
	union mb_value v = { .i = 0 };
	int value = 0;

	switch (mb_keys[id].type) {
	case MB_KEY_TRISTATE:
		v.i = MB_AUTO;
		break;
	case MB_KEY_LAYOUT:
		v.i = -1;
		break;
	case MB_KEY_NUMBER:
		v.d = 0;
		break;
	case MB_KEY_ENUM:
		mb_name_value(mb_keys[id].names, "null", &value);
		v.i = value;
		break;
	default:
		v.i = id == MB_K_vp ? 1 : id == MB_K_mtp ? MB_AUTO : 0;
	}
	return v;
}

static bool read_bool(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, union mb_value *ret)
{
	struct mb_node plain = *n;
	bool b;

	plain.quoted = false;
	if (key == &mb_keys[MB_K_tp_overlap_cfg] && (n->type != MB_NODE_SCALAR || !mb_node_bool(&plain, &b))) {
		ret->i = !mb_node_is_null(n);           /* the table itself, or the file that holds it */
		return true;
	}
	if (n->type != MB_NODE_SCALAR || !mb_node_bool(&plain, &b))
		return bad(r, key, n->pos, "'%.*s' is neither true nor false", SHOWN, n->text != NULL ? n->text : "[...]");
	if (strcasecmp(n->text, "true") != 0 && strcasecmp(n->text, "false") != 0)
		mb_report(r->diags, MB_WARNING, n->pos, key->name, "%s: '%s' is YAML for %s; write %s", key->name, n->text,
		          b ? "true" : "false", b ? "true" : "false");
	ret->i = b;
	return true;
}

/* "4k" and "8M" are how people say it, but 4000 or 4096? Never guessed. */
static bool suffixed(const char *text, long long *ret)
{
	char *end;
	long long n = strtoll(text, &end, 10);

	if (end == text || n < 1 || n > 1000000 || end[0] == '\0' || end[1] != '\0')
		return false;
	if (tolower((unsigned char)*end) == 'k')
		*ret = n * 1024;
	else if (tolower((unsigned char)*end) == 'm')
		*ret = n * 1024 * 1024;
	else
		return false;
	return true;
}

static bool not_whole(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n)
{
	const char *of = key == &mb_keys[MB_K_seq] || key == &mb_keys[MB_K_mean_seq] ? " of tokens" : "";
	long long meant;

	if (n->type != MB_NODE_SCALAR)
		return bad(r, key, n->pos, "a %s where a whole number is expected", n->type == MB_NODE_LIST ? "list" : "mapping");
	if (!suffixed(n->text, &meant))
		return bad(r, key, n->pos, "'%.*s' is not a whole number%s", SHOWN, n->text, of);
	return bad(r, key, n->pos, "'%.*s' is not a whole number%s, did you mean %lld?", SHOWN, n->text, of, meant);
}

static bool read_int(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, union mb_value *ret)
{
	struct mb_node plain = *n;
	long long i;

	plain.quoted = false;
	if (n->type != MB_NODE_SCALAR || !mb_node_int(&plain, &i))
		return not_whole(r, key, n);
	if ((double)i < key->min || (double)i > key->max)
		return bad(r, key, n->pos, "%lld is out of range, expected %.0f to %.0f", i, key->min, key->max);
	ret->i = i;
	return true;
}

static bool read_number(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, union mb_value *ret)
{
	struct mb_node plain = *n;
	double d;

	plain.quoted = false;
	if (n->type != MB_NODE_SCALAR || !mb_node_double(&plain, &d))
		return bad(r, key, n->pos, "'%.*s' is not a number", SHOWN, n->text != NULL ? n->text : "[...]");
	if (d < key->min || d > key->max)
		return bad(r, key, n->pos, "%g is out of range, expected %g to %g", d, key->min, key->max);
	ret->d = d;
	return true;
}

/* Reports a name that is not in the table, with all that are, or the nearest. */
static bool unknown_name(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, const char *what)
{
	const char *names[32];
	size_t count = 0, length = 0;

	for (const struct mb_name *row = key->names; row->name != NULL && count < 32; row++) {
		if (strcmp(mb_value_name(key->names, row->value), row->name) == 0)
			names[count++] = row->name;
	}
	struct mb_diag *d = mb_report(r->diags, MB_ERROR, n->pos, key->name, "%s: unknown %s '%.*s'", key->name, what, SHOWN,
	                              n->type == MB_NODE_SCALAR ? n->text : "[...]");
	const char *nearest = n->type == MB_NODE_SCALAR ? mb_nearest(n->text, names, count) : NULL;
	if (nearest != NULL)
		snprintf(d->nearest, sizeof d->nearest, "%s", nearest);
	for (size_t i = 0; i < count && length < sizeof d->expected; i++)
		length += (size_t)snprintf(d->expected + length, sizeof d->expected - length, "%s%s", i > 0 ? ", " : "", names[i]);
	return false;
}

static bool read_enum(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, union mb_value *ret,
                      bool *null)
{
	bool b = true;
	int value;

	if (n->type == MB_NODE_SCALAR && mb_name_value(key->names, n->text, &value)) {
		ret->i = value;
		*null = strcmp(n->text, "none") == 0 && has_name(key->names, "null");
		return true;
	}
	if (n->type == MB_NODE_SCALAR && mb_node_bool(n, &b) && !b && has_name(key->names, "null")) {
		mb_report(r->diags, MB_WARNING, n->pos, key->name, "%s: '%s' is YAML for false, read as null; write null", key->name,
		          n->text);
		mb_name_value(key->names, "null", &value);
		ret->i = value;
		return true;
	}
	return unknown_name(r, key, n, "value");
}

static bool read_member(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, long long *set)
{
	int bit;

	if (n->type == MB_NODE_SCALAR && mb_name_value(key->names, n->text, &bit)) {
		*set |= bit;
		return true;
	}
	return unknown_name(r, key, n, "module");
}

/* A list, "none", "a+b", or text that holds a list. */
static bool read_set(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, union mb_value *ret)
{
	bool ok = true;

	ret->i = 0;
	if (n->type == MB_NODE_SCALAR && (strcmp(n->text, "none") == 0 || strcmp(n->text, "None") == 0))
		return true;
	if (n->type == MB_NODE_SCALAR)
		n = mb_query_sum_text(r->arena, n->pos, n->text);
	if (n->type == MB_NODE_MAP)
		return bad(r, key, n->pos, "a mapping where a list is expected");
	if (n->type == MB_NODE_SCALAR)
		return read_member(r, key, n, &ret->i);
	for (const struct mb_node *c = n->child; c != NULL; c = c->next)
		ok = read_member(r, key, c, &ret->i) && ok;
	return ok;
}

/* [a, r] of a2a+p2p. */
static bool read_sizes(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, union mb_value *ret)
{
	union mb_value size[2] = { { .i = 0 }, { .i = 0 } };

	if (n->type == MB_NODE_SCALAR)
		n = mb_query_sum_text(r->arena, n->pos, n->text);
	if (n->type != MB_NODE_LIST || n->count != 2)
		return bad(r, key, n->pos, "expected two sizes such as [2, 4]");
	if (!read_int(r, key, n->child, &size[0]) || !read_int(r, key, n->child->next, &size[1]))
		return false;
	if (size[0].i < 1 || size[1].i < 1)
		return bad(r, key, n->pos, "both sizes are at least 1");
	r->cp_ring = (int)size[1].i;
	ret->i = size[0].i;
	return true;
}

/* The list form of Bridge, [["embedding", "decoder"], ["decoder", "loss"]], as the text form. */
static const char *layout_from_lists(struct mb_reader *r, const struct mb_key *key, const struct mb_node *list)
{
	static const struct mb_name symbols[] = {
		{ "embedding", 'E' }, { "decoder", 't' }, { "mtp", 'm' }, { "loss", 'L' },
		{ "E", 'E' }, { "t", 't' }, { "m", 'm' }, { "L", 'L' },
		{ NULL, 0 }
	};
	struct { char text[8192]; } *buffer = mb_arena_alloc(r->arena, sizeof *buffer);
	size_t n = 0;
	int symbol;

	for (const struct mb_node *stage = list->child; stage != NULL; stage = stage->next) {
		for (const struct mb_node *c = stage->child; c != NULL; c = c->next) {
			if (c->type != MB_NODE_SCALAR || !mb_name_value(symbols, c->text, &symbol)) {
				bad(r, key, c->pos, "a stage holds embedding, decoder, mtp and loss");
				return NULL;
			}
			if (n < sizeof buffer->text - 2)
				buffer->text[n++] = (char)symbol;
		}
		if (stage->next != NULL && n < sizeof buffer->text - 2)
			buffer->text[n++] = '|';
	}
	return buffer->text;
}

/* Alternatives that spell the same text share one layout. */
static bool read_layout(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, union mb_value *ret)
{
	struct mb_case *c = &r->q->c;
	const char *text = n->type == MB_NODE_LIST ? layout_from_lists(r, key, n) : n->text;

	if (n->type == MB_NODE_MAP)
		return bad(r, key, n->pos, "a mapping where a text such as \"Et*3|(tt|)*29tmL\" is expected");
	if (text == NULL)
		return false;
	for (int i = 0; i < c->layout_count; i++) {
		ret->i = i;
		if (strcmp(c->layouts[i].text, text) == 0)
			return true;
	}
	if (c->layouts == NULL)
		c->layouts = mb_arena_alloc(r->arena, MB_MAX_LAYOUTS * sizeof c->layouts[0]);
	if (c->layout_count == MB_MAX_LAYOUTS)
		return bad(r, key, n->pos, "more than %d layouts", MB_MAX_LAYOUTS);
	if (!mb_layout_parse(text, n->pos, r->arena, &c->layouts[c->layout_count], r->diags))
		return false;
	ret->i = c->layout_count++;
	return true;
}

static bool says_null(const struct mb_key *key, const struct mb_node *n)
{
	if (mb_node_is_null(n))
		return true;
	bool word = n->type == MB_NODE_SCALAR && (strcmp(n->text, "None") == 0 || strcmp(n->text, "none") == 0);
	return word && key->type != MB_KEY_SET && key->type != MB_KEY_ENUM;
}

bool mb_query_value(struct mb_reader *r, enum mb_key_id id, const struct mb_node *n, union mb_value *ret, bool *null)
{
	const struct mb_key *key = &mb_keys[id];

	*null = says_null(key, n);
	if (*null && id != MB_K_tp_overlap_cfg) {
		*ret = null_value(id);
		if (nullable(key))
			return true;
		const char *otherwise = r->q->c.run.megatron_args ? key->megatron_default : key->bridge_default;
		return bad(r, key, n->pos, "null is not possible here%s%s", otherwise[0] != '\0' ? ", the default is " : "", otherwise);
	}
	switch (key->type) {
	case MB_KEY_BOOL:
	case MB_KEY_TRISTATE:
		return read_bool(r, key, n, ret);
	case MB_KEY_NUMBER:
		return read_number(r, key, n, ret);
	case MB_KEY_ENUM:
		return read_enum(r, key, n, ret, null);
	case MB_KEY_SET:
		return read_set(r, key, n, ret);
	case MB_KEY_LAYOUT:
		return read_layout(r, key, n, ret);
	case MB_KEY_SIZES:
		return read_sizes(r, key, n, ret);
	default:
		return read_int(r, key, n, ret);
	}
}
