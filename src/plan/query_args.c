#include "plan/query.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- "[a, [b, c]]" written in one word ---- */

enum { MAX_DEPTH = 8 };

struct list_scanner {
	struct mb_arena *arena;
	struct mb_pos pos;
	const char *text, *at, *end;
};

static struct mb_node *new_node(struct list_scanner *s, enum mb_node_type type, const char *where)
{
	struct mb_node *n = mb_arena_alloc(s->arena, sizeof *n);

	n->type = type;
	n->pos = s->pos;
	n->pos.column += (int)(where - s->text);
	return n;
}

static bool ends_word(char c)
{
	return c == ',' || c == '[' || c == ']' || isspace((unsigned char)c);
}

static struct mb_node *read_word(struct list_scanner *s)
{
	const char *start = s->at;
	char quote = *start == '"' || *start == '\'' ? *start : '\0';
	struct mb_node *n = new_node(s, MB_NODE_SCALAR, start);

	if (quote != '\0')
		start = ++s->at;
	while (s->at < s->end && (quote != '\0' ? *s->at != quote : !ends_word(*s->at)))
		s->at++;
	n->quoted = quote != '\0';
	n->text = mb_arena_strndup(s->arena, start, (size_t)(s->at - start));
	if (quote != '\0' && s->at < s->end)
		s->at++;
	return n;
}

/* Elements are separated by commas or, as in Megatron-LM's test configurations, by spaces. NULL: malformed. */
static struct mb_node *read_list(struct list_scanner *s, int depth)
{
	struct mb_node *list = new_node(s, MB_NODE_LIST, s->at++);
	const struct mb_node **link = &list->child;

	while (s->at < s->end && *s->at != ']') {
		if (*s->at == ',' || isspace((unsigned char)*s->at)) {
			s->at++;
			continue;
		}
		struct mb_node *n = *s->at != '[' ? read_word(s) : depth < MAX_DEPTH ? read_list(s, depth + 1) : NULL;
		if (n == NULL)
			return NULL;
		*link = n;
		link = &n->next;
		list->count++;
	}
	if (s->at == s->end)
		return NULL;
	s->at++;
	return list;
}

/* a+b and "a b" are lists as well; a single word is a scalar. */
static const struct mb_node *read_sum(struct list_scanner *s)
{
	struct mb_node *list = new_node(s, MB_NODE_LIST, s->at);
	const struct mb_node **link = &list->child;

	while (s->at < s->end) {
		const char *start = s->at;

		while (s->at < s->end && *s->at != '+' && *s->at != ' ')
			s->at++;
		struct mb_node *n = new_node(s, MB_NODE_SCALAR, start);
		n->text = mb_arena_strndup(s->arena, start, (size_t)(s->at - start));
		*link = n;
		link = &n->next;
		list->count++;
		while (s->at < s->end && (*s->at == '+' || *s->at == ' '))
			s->at++;
	}
	return list->count == 1 ? list->child : list;
}

/* Text that opens with '[' as a list; without, `length` of it as it stands, or for whole texts as a sum of words. */
const struct mb_node *mb_query_list_text(struct mb_arena *arena, struct mb_pos pos, const char *text, size_t length)
{
	struct list_scanner s = { arena, pos, text, text, text + length };

	if (length > 0 && text[0] == '[') {
		const struct mb_node *list = read_list(&s, 0);

		if (list != NULL && s.at == s.end)
			return list;
	}
	return mb_node_scalar(arena, pos, mb_arena_strndup(arena, text, length));
}

const struct mb_node *mb_query_sum_text(struct mb_arena *arena, struct mb_pos pos, const char *text)
{
	struct list_scanner s = { arena, pos, text, text, text + strlen(text) };
	const struct mb_node *n = mb_query_list_text(arena, pos, text, strlen(text));

	return n->type == MB_NODE_SCALAR && text[0] != '[' && text[0] != '\0' ? read_sum(&s) : n;
}

/* ---- the words of a command line ---- */

struct words {
	int count, next;
	char **word;
};

static bool is_truth(const char *word)
{
	return strcasecmp(word, "true") == 0 || strcasecmp(word, "false") == 0;
}

static struct mb_pos place(struct mb_reader *r, int index, int column)
{
	return (struct mb_pos){ mb_arena_printf(r->arena, "argument %d", index + 1), 0, column };
}

/* Whether a flag stands alone. Unknown flags are told apart later; a word that looks like a value is taken as theirs. */
static bool stands_alone(const char *name, const char *following)
{
	bool negated = false, flag;
	const struct mb_key *key = mb_key_find(name, &negated);

	if (following == NULL || strncmp(following, "--", 2) == 0)
		return true;
	if (key != NULL)
		flag = key->type == MB_KEY_BOOL || key->type == MB_KEY_TRISTATE;
	else if (!mb_query_is_special(name, &flag) && !mb_query_is_megatron_flag(name, &flag) && !mb_query_ignored(name, &flag))
		return strchr(following, '=') != NULL || strchr(following, '.') != NULL;
	return flag && !is_truth(following);
}

static bool belongs_to_list(const struct mb_key *key, const char *word)
{
	int value;

	if (key->type == MB_KEY_SIZES)
		return word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
	return key->type == MB_KEY_SET && mb_name_value(key->names, word, &value);
}

/* argparse takes several words for a list: --recompute-modules moe_act layernorm. */
static const char *list_words(struct mb_reader *r, const char *name, struct words *w, const char *first)
{
	bool negated;
	const struct mb_key *key = mb_key_find(name, &negated);
	const char *text = first;

	if (key == NULL || !belongs_to_list(key, first))
		return first;
	while (w->next < w->count && belongs_to_list(key, w->word[w->next]))
		text = mb_arena_printf(r->arena, "%s+%s", text, w->word[w->next++]);
	return text;
}

static void add_flag(struct mb_reader *r, struct words *w, int index)
{
	const char *name = w->word[index] + 2;
	const char *equals = strchr(name, '=');
	struct mb_setting s = { .name = name, .pos = place(r, index, 3), .flag = true };

	if (equals != NULL) {
		s.name = mb_arena_strndup(r->arena, name, (size_t)(equals - name));
		s.value = mb_node_scalar(r->arena, place(r, index, (int)(equals - name) + 4), equals + 1);
	} else if (stands_alone(name, w->next < w->count ? w->word[w->next] : NULL)) {
		s.value = mb_node_scalar(r->arena, s.pos, "true");
	} else {
		int at = w->next++;

		s.value = mb_node_scalar(r->arena, place(r, at, 1), list_words(r, name, w, w->word[at]));
	}
	mb_query_add(r, s);
}

static void add_assignment(struct mb_reader *r, const char *word, int index, const char *equals)
{
	size_t length = (size_t)(equals - word);
	struct mb_setting s = { .name = mb_arena_strndup(r->arena, word, length), .pos = place(r, index, 1) };

	s.value = mb_node_scalar(r->arena, place(r, index, (int)length + 2), equals + 1);
	mb_query_add(r, s);
}

/* A path, or the name of a shipped run. */
static void read_run_file(struct mb_reader *r, const char *word, int index)
{
	const char *path = word;

	if (access(path, F_OK) != 0 && strchr(path, '/') == NULL && r->library != NULL) {
		const char *shipped = mb_arena_printf(r->arena, "%s/configs/runs/%s.yaml", r->library->root, word);

		if (access(shipped, F_OK) == 0)
			path = shipped;
	}
	if (access(path, F_OK) != 0) {
		struct mb_diag *d = mb_report(r->diags, MB_ERROR, place(r, index, 1), "", "no such file: '%.200s'", word);

		snprintf(d->expected, sizeof d->expected, "a run file or key=value");
		return;
	}
	const struct mb_node *map = mb_node_read_file(path, r->arena, r->diags);
	if (map != NULL)
		mb_query_mapping(r, map);
}

static bool is_file(const char *word)
{
	return strncmp(word, "--", 2) != 0 && strchr(word, '=') == NULL;
}

void mb_query_arguments(struct mb_reader *r, int argc, char **argv)
{
	struct words w = { argc, 0, argv };
	bool *taken = mb_arena_alloc(r->arena, (size_t)argc + 1);

	/* Flags first, since a word after one may be its value and no file. */
	while (w.next < argc) {
		int index = w.next++;
		const char *equals = strchr(argv[index], '=');

		taken[index] = is_file(argv[index]);
		if (strncmp(argv[index], "--", 2) == 0)
			add_flag(r, &w, index);
		else if (equals != NULL)
			add_assignment(r, argv[index], index, equals);
	}
	for (int i = 0; i < argc; i++) {
		if (taken[i])
			read_run_file(r, argv[i], i);
	}
}
