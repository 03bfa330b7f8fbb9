#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "desc/hf_private.h"

/* ---- reading ---- */

static const struct mb_node *member(const struct mb_node *map, const char *path, size_t length)
{
	char key[80];
	const char *dot = memchr(path, '.', length);
	size_t first = dot != NULL ? (size_t)(dot - path) : length;

	snprintf(key, sizeof key, "%.*s", (int)first, path);
	const struct mb_node *n = mb_node_get(map, key);
	return n != NULL && dot != NULL ? member(n, dot + 1, length - first - 1) : n;
}

/* Files of other tools quote numbers and truths; names are not harmed. */
const struct mb_node *mb_hf_unquoted(struct mb_hf *h, const struct mb_node *n)
{
	struct mb_node *copy, plain = *n;
	double d;
	bool b;

	plain.quoted = false;
	if (n->type != MB_NODE_SCALAR || !n->quoted || (!mb_node_double(&plain, &d) && !mb_node_bool(&plain, &b)))
		return n;
	copy = mb_arena_alloc(h->arena, sizeof *copy);
	*copy = plain;
	return copy;
}

static const struct mb_node *class_default(struct mb_hf *h, const char *keys)
{
	static const char *const sizes[] = { "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
		"num_key_value_heads", "head_dim", "vocab_size", "num_experts", "moe_intermediate_size", "num_experts_per_tok" };
	const char *rows = h->family->defaults;
	char key[64], value[64];

	while (mb_hf_row(&rows, key, sizeof key, value, sizeof value)) {
		for (const char *s = keys; *s != '\0'; s += strcspn(s, "|"), s += *s == '|') {
			size_t length = strcspn(s, "|"), used = strlen(h->taken);

			if (strlen(key) != length || strncmp(s, key, length) != 0)
				continue;
			for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
				if (strcmp(key, sizes[i]) == 0 && strstr(h->taken, key) == NULL)
					snprintf(h->taken + used, sizeof h->taken - used, "%s%s %s", used > 0 ? ", " : "", key, value);
			}
			return mb_node_scalar(h->arena, h->text->pos, value);
		}
	}
	return NULL;
}

const struct mb_node *mb_hf_get(struct mb_hf *h, const char *keys)
{
	for (const char *s = keys; *s != '\0'; s += strcspn(s, "|"), s += *s == '|') {
		const struct mb_node *n = member(h->text, s, strcspn(s, "|"));

		if (n != NULL)
			return mb_node_is_null(n) ? NULL : mb_hf_unquoted(h, n);
	}
	return class_default(h, keys);
}

/* Some files give a number for each layer; only equal ones have a place in a model of ours. */
bool mb_hf_int(struct mb_hf *h, const char *keys, long long *ret)
{
	const struct mb_node *n = mb_hf_get(h, keys);
	const char *key = n != NULL && n->key != NULL ? n->key->text : keys;
	long long value, other;

	if (n == NULL)
		return false;
	const struct mb_node *first = n->type == MB_NODE_LIST ? n->child : n;
	if (first == NULL || !mb_node_int(first, &value)) {
		mb_report(h->diags, MB_ERROR, n->pos, key, "%.60s: '%.60s' is not a whole number", key,
		          first != NULL && first->type == MB_NODE_SCALAR ? first->text : "[...]");
		return false;
	}
	for (const struct mb_node *c = n->type == MB_NODE_LIST ? first->next : NULL; c != NULL; c = c->next) {
		if (!mb_node_int(c, &other) || other != value) {
			mb_report(h->diags, MB_ERROR, c->pos, key, "%.60s: sizes that differ from layer to layer are not modelled", key);
			return false;
		}
	}
	*ret = value;
	return true;
}

/* ---- writing ---- */

void mb_hf_put(struct mb_hf *h, const char *key, const struct mb_node *value)
{
	struct mb_node *copy;

	if (value == NULL || mb_node_get(h->out, key) != NULL)
		return;
	copy = mb_arena_alloc(h->arena, sizeof *copy);
	*copy = *value;
	copy->key = mb_node_scalar(h->arena, value->key != NULL ? value->key->pos : value->pos, key);
	copy->next = NULL;
	*h->tail = copy;
	h->tail = &copy->next;
	h->out->count++;
}

void mb_hf_say(struct mb_hf *h, const char *key, struct mb_pos at, const char *fmt, ...)
{
	char text[2200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	mb_hf_put(h, key, mb_node_scalar(h->arena, at, text));
}
