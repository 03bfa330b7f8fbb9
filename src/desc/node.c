/* libyaml events to a tree. Everything the outside world can get wrong about a document is caught here. */
#include "desc/node.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "desc/node_source.h"

enum { DEPTH_MAX = 64, EXPANDED_MAX = 100 * 1000, ANCHORS_MAX = 1000 };

struct anchor {
	const char *name;
	const struct mb_node *node;     /* NULL while it is being read */
	long size;                      /* nodes below and including it, aliases expanded */
	struct anchor *older;
};

struct reader {
	yaml_parser_t parser;
	const char *name, *text;
	size_t length;
	bool json;
	struct mb_arena *arena;
	struct mb_diags *diags;
	struct anchor *anchors;
	int anchor_count;
	long expanded;                  /* nodes that exist only through aliases */
};

static struct mb_pos position(const struct reader *r, yaml_mark_t mark)
{
	return (struct mb_pos){ r->name, (int)mark.line + 1, (int)mark.column + 1 };
}

/* libyaml's wording for what it met, in ours where people meet it often. */
static bool report_syntax(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	const char *problem = p->problem ? p->problem : "malformed text";
	bool context = p->context && p->context_mark.line < p->problem_mark.line + 1;
	struct mb_pos at = position(r, p->problem_mark), from = position(r, p->context_mark);
	bool ended = p->problem_mark.index >= r->length || strstr(problem, "unexpected end of stream");
	int column;

	if (p->error == YAML_READER_ERROR) {
		at = (struct mb_pos){ .file = r->name };
		return mb_fail(r->diags, at, "is not text: %s at byte %zu", problem, p->problem_offset);
	}
	if (p->error == YAML_MEMORY_ERROR)
		abort();
	/* JSON may be indented with tabs; in YAML one on the line where reading stopped is the cause, whatever libyaml says. */
	if (!r->json && mb_source_tab(r->text, r->length, at.line, &column)) {
		at.column = column;
		return mb_fail(r->diags, at, "tab used for indentation, YAML allows only spaces");
	}
	if (ended && context && strstr(p->context, "quoted scalar"))
		return mb_fail(r->diags, from, "string never ends, the file stops at byte %zu", r->length);
	if (ended && context && strstr(p->context, "flow node"))
		return mb_fail(r->diags, at, "a value is missing, the file stops at byte %zu", r->length);
	if (ended && context && strstr(p->context, "flow"))
		return mb_fail(r->diags, from, "'%c' is never closed, the file stops at byte %zu",
		               strstr(p->context, "mapping") ? '{' : '[', r->length);
	if (context)
		return mb_fail(r->diags, at, "%s, %s that starts on line %d", problem, p->context, from.line);
	return mb_fail(r->diags, at, "%s", problem);
}

static bool next_event(struct reader *r, yaml_event_t *event)
{
	return yaml_parser_parse(&r->parser, event) ? true : report_syntax(r);
}

/* ---- anchors and aliases ---- */

static bool add_anchor(struct reader *r, const yaml_char_t *name, struct mb_pos at, struct anchor **ret)
{
	struct anchor *a;

	*ret = NULL;
	if (!name)
		return true;
	if (++r->anchor_count > ANCHORS_MAX)
		return mb_fail(r->diags, at, "more than %d anchors", ANCHORS_MAX);
	a = mb_arena_alloc(r->arena, sizeof *a);
	a->name = mb_arena_strdup(r->arena, (const char *)name);
	a->older = r->anchors;
	r->anchors = a;
	*ret = a;
	return true;
}

/* The alias gets a node of its own, which sits in a list of its own, over the children of what it names. */
static bool read_alias(struct reader *r, const yaml_event_t *event, struct mb_node *node, long *size)
{
	const char *name = (const char *)event->data.alias.anchor;
	const struct anchor *a = r->anchors;

	while (a && strcmp(a->name, name) != 0)
		a = a->older;
	if (!a)
		return mb_fail(r->diags, node->pos, "alias '*%s' names no anchor above it", name);
	if (!a->node)
		return mb_fail(r->diags, node->pos, "alias '*%s' stands inside what it names", name);
	r->expanded += a->size;
	if (r->expanded > EXPANDED_MAX)
		return mb_fail(r->diags, node->pos, "aliases expand to more than %d values", EXPANDED_MAX);
	node->type = a->node->type;
	node->quoted = a->node->quoted;
	node->text = a->node->text;
	node->child = a->node->child;
	node->count = a->node->count;
	*size = a->size;
	return true;
}

/* ---- nodes ---- */

static bool read_node(struct reader *r, const yaml_event_t *event, int depth, struct mb_node *node, long *size);

static bool known_tag(const yaml_char_t *tag)
{
	return !tag || strncmp((const char *)tag, "tag:yaml.org,2002:", 18) == 0;
}

static bool read_scalar(struct reader *r, const yaml_event_t *event, struct mb_node *node)
{
	const char *value = (const char *)event->data.scalar.value;
	const char *tag = (const char *)event->data.scalar.tag;
	size_t length = event->data.scalar.length;

	if (memchr(value, '\0', length))
		return mb_fail(r->diags, node->pos, "text holds a zero character");
	node->text = mb_arena_strndup(r->arena, value, length);
	node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || (tag && strcmp(tag + 18, "str") == 0);
	return true;
}

static int by_text(const void *a, const void *b)
{
	const struct mb_node *const *x = a, *const *y = b;
	int order = strcmp((*x)->key->text, (*y)->key->text);

	if (order)
		return order;
	if ((*x)->key->pos.line != (*y)->key->pos.line)
		return (*x)->key->pos.line < (*y)->key->pos.line ? -1 : 1;
	return (*x)->key->pos.column < (*y)->key->pos.column ? -1 : 1;
}

static bool check_duplicates(struct reader *r, const struct mb_node *map)
{
	const struct mb_node **sorted = mb_arena_alloc(r->arena, (size_t)map->count * sizeof *sorted);
	size_t n = 0;
	bool ok = true;

	for (const struct mb_node *c = map->child; c; c = c->next)
		sorted[n++] = c;
	qsort(sorted, n, sizeof *sorted, by_text);
	for (size_t i = 1; i < n; i++) {
		const struct mb_node *a = sorted[i - 1]->key, *b = sorted[i]->key;

		if (strcmp(a->text, b->text) != 0)
			continue;
		mb_report(r->diags, MB_ERROR, b->pos, b->text, "duplicate key '%.100s', first given at line %d column %d",
		          b->text, a->pos.line, a->pos.column);
		ok = false;
	}
	return ok;
}

static bool read_key(struct reader *r, const yaml_event_t *event, int depth, struct mb_node **ret)
{
	struct mb_node *key = mb_arena_alloc(r->arena, sizeof *key);
	long size;

	*ret = key;
	if (!read_node(r, event, depth, key, &size))
		return false;
	if (key->type != MB_NODE_SCALAR)
		return mb_fail(r->diags, key->pos, "a key is a word, not a list or a mapping");
	return true;
}

/* Children of a list or a map up to its end event. */
static bool read_children(struct reader *r, int depth, struct mb_node *node, long *size)
{
	yaml_event_type_t stop = node->type == MB_NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	const struct mb_node **tail = &node->child;
	bool ok = true;

	while (ok) {
		struct mb_node *child, *key = NULL;
		yaml_event_t event;
		long below = 0;

		if (!next_event(r, &event))
			return false;
		if (event.type == stop) {
			yaml_event_delete(&event);
			break;
		}
		if (node->type == MB_NODE_MAP) {
			ok = read_key(r, &event, depth, &key);
			yaml_event_delete(&event);
			if (!ok || !next_event(r, &event))
				return false;
		}
		child = mb_arena_alloc(r->arena, sizeof *child);
		child->key = key;
		ok = read_node(r, &event, depth, child, &below);
		yaml_event_delete(&event);
		*size += below;
		*tail = child;
		tail = &child->next;
		node->count++;
	}
	return ok;
}

static bool read_node(struct reader *r, const yaml_event_t *event, int depth, struct mb_node *node, long *size)
{
	const yaml_char_t *name = NULL, *tag = NULL;
	struct anchor *anchor;
	bool ok;

	node->pos = position(r, event->start_mark);
	*size = 1;
	if (depth > DEPTH_MAX)
		return mb_fail(r->diags, node->pos, "nested more than %d deep", DEPTH_MAX);
	if (event->type == YAML_ALIAS_EVENT)
		return read_alias(r, event, node, size);

	if (event->type == YAML_SCALAR_EVENT) {
		node->type = MB_NODE_SCALAR;
		name = event->data.scalar.anchor, tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		node->type = MB_NODE_LIST;
		name = event->data.sequence_start.anchor, tag = event->data.sequence_start.tag;
	} else {
		node->type = MB_NODE_MAP;
		name = event->data.mapping_start.anchor, tag = event->data.mapping_start.tag;
	}
	if (!known_tag(tag))
		return mb_fail(r->diags, node->pos, "tag '%.100s' is not understood", (const char *)tag);
	if (!add_anchor(r, name, node->pos, &anchor))
		return false;
	ok = node->type == MB_NODE_SCALAR ? read_scalar(r, event, node) : read_children(r, depth + 1, node, size);
	if (ok && node->type == MB_NODE_MAP)
		ok = check_duplicates(r, node);
	if (anchor) {
		anchor->node = node;
		anchor->size = *size;
	}
	return ok;
}

/* Stream start, document start, the document, its end, stream end: anything else is an error. */
static const struct mb_node *read_document(struct reader *r)
{
	struct mb_node *root = mb_arena_alloc(r->arena, sizeof *root);
	yaml_event_t event;
	bool ok = true;
	long size;

	for (int seen = 0; ok && next_event(r, &event); yaml_event_delete(&event)) {
		switch (event.type) {
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
			break;
		case YAML_DOCUMENT_START_EVENT:
			if (seen++)
				ok = mb_fail(r->diags, position(r, event.start_mark), "a second document starts here, expected one");
			break;
		case YAML_STREAM_END_EVENT:
			yaml_event_delete(&event);
			if (!seen)
				mb_fail(r->diags, (struct mb_pos){ .file = r->name }, "is empty");
			return seen ? root : NULL;
		default:
			ok = read_node(r, &event, 0, root, &size);
		}
	}
	return NULL;
}

static const struct mb_node *read_source(char *text, size_t length, const char *name, struct mb_arena *arena,
                                         struct mb_diags *diags)
{
	struct reader r = { .name = name, .text = text, .arena = arena, .diags = diags };
	const struct mb_node *root;

	if (!mb_source_check(text, length, (struct mb_pos){ .file = name }, diags))
		return NULL;
	r.json = mb_source_clean_json(text, &length);
	r.length = length;
	if (!yaml_parser_initialize(&r.parser))
		abort();
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
	root = read_document(&r);
	yaml_parser_delete(&r.parser);
	return root;
}

const struct mb_node *mb_node_read_file(const char *path, struct mb_arena *arena, struct mb_diags *diags)
{
	const char *name = mb_arena_strdup(arena, path);
	size_t length = 0;
	char *text = mb_source_read(name, arena, &length, diags);

	return text ? read_source(text, length, name, arena, diags) : NULL;
}

const struct mb_node *mb_node_read_text(const char *text, size_t length, const char *name, struct mb_arena *arena,
                                        struct mb_diags *diags)
{
	return read_source(mb_arena_strndup(arena, text, length), length, mb_arena_strdup(arena, name), arena, diags);
}
