#include <ctype.h>
#include <string.h>

#include "exchange/import_private.h"

/* ---- a log of all arguments ---- */

bool mb_import_is_dump(const char *text, size_t length)
{
	return memmem(text, length, "- arguments -", 13) != NULL || memmem(text, length, "Namespace(", 10) != NULL ||
	       memmem(text, length, " .........", 10) != NULL;
}

static void say_dumped(struct mb_importer *m, const char *name, size_t name_length, const char *value, size_t length, struct mb_pos at)
{
	struct mb_said s = { .pos = at };
	char quote;

	while (length > 0 && isspace((unsigned char)value[length - 1]))
		length--;
	quote = length >= 2 && value[0] == value[length - 1] ? value[0] : '\0';
	if (quote == '\'' || quote == '"') {
		value++;
		length -= 2;
	}
	s.name = mb_arena_strndup(m->arena, name, name_length);
	s.value = mb_node_scalar(m->arena, at, mb_arena_strndup(m->arena, value, length));
	s.flag = true;
	mb_import_say(m, s);
}

/* "  hidden_size ........ 4096", perhaps behind a rank or a time. */
static void dump_line(struct mb_importer *m, const char *line, size_t length, int number)
{
	const char *dots = memmem(line, length, " ..", 3), *end = line + length, *name, *value;

	if (dots == NULL)
		return;
	for (name = dots; name > line && (isalnum((unsigned char)name[-1]) || name[-1] == '_'); name--)
		;
	for (value = dots + 1; value < end && (*value == '.' || *value == ' '); value++)
		;
	/* ".5" after the dots loses its point; no argument of ours is written so. */
	if (name < dots && value < end)
		say_dumped(m, name, (size_t)(dots - name), value, (size_t)(end - value), (struct mb_pos){ m->name, number, (int)(name - line) + 1 });
}

/* "Namespace(a=1, b='x', c=[1, 2])" */
static void dump_repr(struct mb_importer *m, const char *s, const char *end)
{
	while (s < end) {
		const char *equals = memchr(s, '=', (size_t)(end - s)), *stop;
		int depth = 0;
		char quote = '\0';

		if (equals == NULL)
			return;
		for (stop = equals + 1; stop < end; stop++) {
			if (quote != '\0' ? *stop == quote : (*stop == '\'' || *stop == '"'))
				quote = quote != '\0' ? '\0' : *stop;
			else if (quote == '\0' && (*stop == '[' || *stop == '(' || *stop == '{' || *stop == '<'))
				depth++;
			else if (quote == '\0' && (*stop == ']' || *stop == '}' || *stop == '>' || (*stop == ')' && depth > 0)))
				depth--;
			else if (quote == '\0' && depth == 0 && (*stop == ',' || *stop == ')'))
				break;
		}
		s += strspn(s, " \n");
		if (s < equals)
			say_dumped(m, s, (size_t)(equals - s), equals + 1, (size_t)(stop - equals - 1), (struct mb_pos){ m->name, 1, 1 });
		if (stop >= end || *stop == ')')
			return;
		s = stop + 1;
	}
}

bool mb_import_dump(struct mb_importer *m, const char *text, size_t length)
{
	const char *end = text + length, *repr = memmem(text, length, "Namespace(", 10);
	int number = 1;

	m->dump = true;
	if (repr != NULL) {
		dump_repr(m, repr + 10, end);
	} else {
		for (const char *line = text; line < end; number++) {
			const char *stop = memchr(line, '\n', (size_t)(end - line));

			stop = stop != NULL ? stop : end;
			dump_line(m, line, (size_t)(stop - line), number);
			line = stop + 1;
		}
	}
	return m->count > 0 || mb_fail(m->diags, (struct mb_pos){ .file = m->name }, "no arguments found");
}
