#include "plan/query.h"

#include <stdio.h>
#include <string.h>

/* What a setting says: one value, alternatives, or that the key is open. */

enum { MAX_ALTERNATIVES = 256 };

struct choices {
	const struct mb_node *node[MAX_ALTERNATIVES];
	int count;
	bool overflow;
};

static void add(struct choices *c, const struct mb_node *n)
{
	if (c->count == MAX_ALTERNATIVES)
		c->overflow = true;
	else
		c->node[c->count++] = n;
}

/* Commas have a meaning inside layouts too: one separates alternatives only before another layout. */
static bool separates(enum mb_key_type type, const char *comma)
{
	if (type != MB_KEY_LAYOUT)
		return true;
	for (comma++; *comma == ' '; comma++)
		;
	return *comma == 'E' || *comma == '[' || strncmp(comma, "null", 4) == 0 || strncmp(comma, "none", 4) == 0 ||
	       strncmp(comma, "auto", 4) == 0;
}

static const struct mb_node *piece(struct mb_arena *arena, const struct mb_node *whole, size_t from, size_t to)
{
	struct mb_pos pos = whole->pos;

	while (from < to && whole->text[from] == ' ')
		from++;
	while (to > from && whole->text[to - 1] == ' ')
		to--;
	pos.column += (int)from;
	return mb_query_list_text(arena, pos, whole->text + from, to - from);
}

static void split_text(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, struct choices *c)
{
	size_t start = 0, i;
	int depth = 0;

	for (i = 0; n->text[i] != '\0'; i++) {
		depth += strchr("[(", n->text[i]) != NULL ? 1 : strchr("])", n->text[i]) != NULL ? -1 : 0;
		if (n->text[i] == ',' && depth <= 0 && separates(key->type, n->text + i)) {
			add(c, piece(r->arena, n, start, i));
			start = i + 1;
		}
	}
	add(c, start == 0 && n->text[0] != '[' ? n : piece(r->arena, n, start, i));
}

/* A list is one value for the keys that hold lists, unless it is a list of lists. */
static bool lists_are_values(const struct mb_key *key, const struct mb_node *n)
{
	bool nested = n->count > 0;

	for (const struct mb_node *c = n->child; c != NULL; c = c->next)
		nested = nested && c->type == MB_NODE_LIST;
	switch (key->type) {
	case MB_KEY_SET:
	case MB_KEY_SIZES:
		return !nested;
	case MB_KEY_LAYOUT:
		return nested;
	default:
		return key == &mb_keys[MB_K_tp_overlap_cfg] || n->count == 0;
	}
}

static void split(struct mb_reader *r, const struct mb_key *key, const struct mb_node *n, struct choices *c)
{
	if (n->type == MB_NODE_SCALAR && key != &mb_keys[MB_K_tp_overlap_cfg]) {
		split_text(r, key, n, c);
	} else if (n->type != MB_NODE_LIST || lists_are_values(key, n)) {
		add(c, n);
	} else {
		for (const struct mb_node *child = n->child; child != NULL; child = child->next)
			add(c, child);
	}
}

static bool is_auto(const struct mb_key *key, const struct mb_node *n)
{
	int value;

	if (n->type != MB_NODE_SCALAR || strcmp(n->text, "auto") != 0)
		return false;
	return key->names == NULL || !mb_name_value(key->names, "auto", &value);
}

static void open_key(struct mb_reader *r, enum mb_key_id id, const struct mb_node *n)
{
	const struct mb_key *key = &mb_keys[id];

	if (r->single) {
		mb_report(r->diags, MB_ERROR, n->pos, key->name, "%s: 'auto' leaves it open, one value is expected here", key->name);
	} else if (!key->open) {
		mb_report(r->diags, MB_ERROR, n->pos, key->name, "%s: search does not choose it, one value is expected", key->name);
	} else {
		r->q->open[id] = true;
	}
}

static bool may_vary(struct mb_reader *r, enum mb_key_id id, const struct mb_node *second, int count)
{
	const struct mb_key *key = &mb_keys[id];

	if (r->single) {
		mb_report(r->diags, MB_ERROR, second->pos, key->name, "%s: %d alternatives, one value is expected here", key->name,
		          count);
		return false;
	}
	if (!key->open && id != MB_K_gpus) {
		mb_report(r->diags, MB_ERROR, second->pos, key->name, "%s: search compares no alternatives of it, one value is expected",
		          key->name);
		return false;
	}
	return true;
}

static bool known_value(const union mb_value *values, int count, const struct mb_key *key, union mb_value v)
{
	for (int i = 0; i < count; i++) {
		if (key->type == MB_KEY_NUMBER ? !(values[i].d < v.d || values[i].d > v.d) : values[i].i == v.i)
			return true;
	}
	return false;
}

static void keep_gpus(struct mb_reader *r, const union mb_value *values, int count, struct mb_pos pos)
{
	enum { ROOM = sizeof r->q->gpu_choices / sizeof r->q->gpu_choices[0] - 1 };

	if (count > ROOM) {
		mb_report(r->diags, MB_ERROR, pos, "gpus", "gpus: more than %d alternatives", ROOM);
		return;
	}
	for (int i = 0; i < count; i++)
		r->q->gpu_choices[i] = (int)values[i].i;
}

static void keep_alternatives(struct mb_reader *r, enum mb_key_id id, const struct choices *c)
{
	union mb_value *values = mb_arena_alloc(r->arena, (size_t)c->count * sizeof values[0]);
	int count = 0;
	bool ok = true, null;

	for (int i = 0; i < c->count; i++) {
		union mb_value v;

		if (is_auto(&mb_keys[id], c->node[i])) {
			mb_report(r->diags, MB_ERROR, c->node[i]->pos, mb_keys[id].name, "%s: 'auto' beside other values", mb_keys[id].name);
			ok = false;
		} else if (!mb_query_value(r, id, c->node[i], &v, &null)) {
			ok = false;
		} else if (!known_value(values, count, &mb_keys[id], v)) {
			values[count++] = v;
		}
	}
	if (!ok)
		return;
	mb_key_put(&r->q->c.run, &mb_keys[id], values[0]);
	if (id == MB_K_gpus)
		keep_gpus(r, values, count, c->node[0]->pos);
	else
		r->q->alternatives[id] = (struct mb_alternatives){ count, values };
}

void mb_query_values(struct mb_reader *r, enum mb_key_id id, const struct mb_node *value)
{
	struct choices *c = mb_arena_alloc(r->arena, sizeof *c);
	union mb_value v;

	split(r, &mb_keys[id], value, c);
	if (c->overflow) {
		mb_report(r->diags, MB_ERROR, value->pos, mb_keys[id].name, "%s: more than %d alternatives", mb_keys[id].name,
		          MAX_ALTERNATIVES);
	} else if (c->count > 1) {
		if (may_vary(r, id, c->node[1], c->count))
			keep_alternatives(r, id, c);
	} else if (is_auto(&mb_keys[id], c->node[0])) {
		open_key(r, id, c->node[0]);
	} else if (mb_query_value(r, id, c->node[0], &v, &r->null[id])) {
		mb_key_put(&r->q->c.run, &mb_keys[id], v);
		r->q->set[id] = true;
	}
}
