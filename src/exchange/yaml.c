#include "exchange/yaml.h"

#include <ctype.h>
#include <string.h>

/* Plain words of YAML that stay words: no indicator, no blank at an end, no ": " or " #" inside. */
static bool plain(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || strchr(" ?:,[]{}#&*!|>'\"%@`", s[0]) != NULL || isspace((unsigned char)s[n - 1]) || s[n - 1] == ':' ||
	    (s[0] == '-' && (s[1] == ' ' || s[1] == '\0' || strncmp(s, "---", 3) == 0)))
		return false;
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < ' ' || (unsigned char)*s > '~' || strchr(",[]{}#'\"", *s) != NULL || (*s == ':' && s[1] == ' '))
			return false;
	}
	return true;
}

static void add_quoted(const char *s, struct mb_text *out)
{
	mb_text_add(out, "\"");
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			mb_text_printf(out, "\\%c", *s);
		else if ((unsigned char)*s < ' ' || *s == 127)
			mb_text_printf(out, "\\x%02x", (unsigned)(unsigned char)*s);
		else
			mb_text_addn(out, s, 1);
	}
	mb_text_add(out, "\"");
}

static void add_scalar(const struct mb_node *n, struct mb_text *out)
{
	struct mb_node bare = *n;
	double number;
	bool truth;

	bare.quoted = false;
	bool word = mb_node_is_null(&bare) || mb_node_bool(&bare, &truth) || mb_node_double(&bare, &number);
	if ((n->quoted && word) || (!plain(n->text) && n->text[0] != '\0') || (n->quoted && n->text[0] == '\0'))
		add_quoted(n->text, out);
	else
		mb_text_add(out, n->text[0] != '\0' ? n->text : "null");
}

static void add_flow(const struct mb_node *n, struct mb_text *out)
{
	const char *comma = "";

	if (n->type == MB_NODE_SCALAR) {
		add_scalar(n, out);
		return;
	}
	mb_text_add(out, n->type == MB_NODE_LIST ? "[" : "{");
	for (const struct mb_node *c = n->child; c != NULL; c = c->next) {
		mb_text_add(out, comma);
		if (n->type == MB_NODE_MAP) {
			add_scalar(c->key, out);
			mb_text_add(out, ": ");
		}
		add_flow(c, out);
		comma = ", ";
	}
	mb_text_add(out, n->type == MB_NODE_LIST ? "]" : "}");
}

void mb_yaml_members(const struct mb_node *map, int indent, struct mb_text *out)
{
	for (const struct mb_node *c = map->child; c != NULL; c = c->next) {
		mb_text_pad(out, ' ', indent);
		add_scalar(c->key, out);
		mb_text_add(out, ":");
		if (c->type == MB_NODE_MAP && c->count > 0) {
			mb_text_add(out, "\n");
			mb_yaml_members(c, indent + 2, out);
			continue;
		}
		mb_text_add(out, " ");
		add_flow(c, out);
		mb_text_add(out, "\n");
	}
}

void mb_exchange_shell_word(const char *word, struct mb_text *out)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+%@";

	if (word[0] != '\0' && strspn(word, safe) == strlen(word)) {
		mb_text_add(out, word);
		return;
	}
	mb_text_add(out, "'");
	for (; *word != '\0'; word++)
		mb_text_add(out, *word == '\'' ? "'\\''" : (char[]){ *word, '\0' });
	mb_text_add(out, "'");
}
