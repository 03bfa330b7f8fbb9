#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/shell_private.h"

/* ---- arithmetic ---- */

struct sum {
	struct mb_shell_reader *r;
	const char *s, *end;
	bool ok;
	int depth;
};

static void skip(struct sum *m)
{
	while (m->s < m->end && isspace((unsigned char)*m->s))
		m->s++;
}

static long long read_sum(struct sum *m);

static long long read_name(struct sum *m)
{
	const char *start = m->s;
	const struct mb_variable *v;
	char *end;
	long long n;

	while (m->s < m->end && (isalnum((unsigned char)*m->s) || *m->s == '_'))
		m->s++;
	v = mb_shell_variable(m->r->s, mb_arena_strndup(m->r->arena, start, (size_t)(m->s - start)));
	if (v == NULL || v->count != 1 || v->words[0].unresolved != NULL) {
		m->ok = false;
		return 0;
	}
	n = strtoll(v->words[0].text, &end, 10);
	m->ok = m->ok && end != v->words[0].text && *end == '\0' && n > -1000000000000LL && n < 1000000000000LL;
	return n;
}

static long long read_factor(struct sum *m)
{
	long long n = 0;

	skip(m);
	if (m->s < m->end && *m->s == '$') {
		m->s++;
		if (m->s < m->end && *m->s == '{')
			m->s++;
		n = read_name(m);
		if (m->s < m->end && *m->s == '}')
			m->s++;
	} else if (m->s < m->end && *m->s == '(' && ++m->depth < MB_SHELL_DEPTH) {
		m->s++;
		n = read_sum(m);
		skip(m);
		m->ok = m->ok && m->s < m->end && *m->s == ')';
		m->s += m->ok;
		m->depth--;
	} else if (m->s < m->end && isdigit((unsigned char)*m->s)) {
		for (; m->s < m->end && isdigit((unsigned char)*m->s); m->s++) {
			n = n * 10 + (*m->s - '0');
			m->ok = m->ok && n < 1000000000000LL;
			n = m->ok ? n : 0;
		}
	} else if (m->s < m->end && (isalpha((unsigned char)*m->s) || *m->s == '_')) {
		n = read_name(m);
	} else {
		m->ok = false;
	}
	return n;
}

static long long read_product(struct sum *m)
{
	long long n = read_factor(m);

	for (skip(m); m->ok && m->s < m->end && strchr("*/%", *m->s) != NULL; skip(m)) {
		char op = *m->s++;
		long long by = read_factor(m), product = 0;

		if (op == '*')
			m->ok = m->ok && !__builtin_mul_overflow(n, by, &product);
		else
			m->ok = m->ok && by > 0;
		if (!m->ok)
			return 0;
		n = op == '*' ? product : op == '/' ? n / by : n % by;
	}
	return n;
}

static long long read_sum(struct sum *m)
{
	long long n = read_product(m);

	for (skip(m); m->ok && m->s < m->end && (*m->s == '+' || *m->s == '-'); skip(m)) {
		char op = *m->s++;
		long long by = read_product(m), sum = 0;

		m->ok = m->ok && !(op == '+' ? __builtin_add_overflow(n, by, &sum) : __builtin_sub_overflow(n, by, &sum));
		n = sum;
	}
	return n;
}

bool mb_shell_arithmetic(struct mb_shell_reader *r, const char *text, size_t length, long long *ret)
{
	struct sum m = { .r = r, .s = text, .end = text + length, .ok = true };
	long long n = read_sum(&m);

	skip(&m);
	if (!m.ok || m.s != m.end)
		return false;
	*ret = n;
	return true;
}

/* ---- $NAME and its kin ---- */

static void add_text(struct mb_shell_reader *r, const char *text, struct mb_pos pos)
{
	size_t length = strlen(text);

	r->bytes += (long)length;
	if (r->bytes > MB_SHELL_BYTES) {
		if (!r->failed)
			mb_fail(r->diags, mb_shell_here(r), "variables expand to more than %d bytes", MB_SHELL_BYTES);
		r->failed = true;
		return;
	}
	if (!r->has_word)
		r->word_pos = pos;
	r->has_word = true;
	mb_text_addn(&r->word, text, length);
}

/* Outside quotes blanks in the value end words. */
static void add_split(struct mb_shell_reader *r, const struct mb_word *w)
{
	const char *s = w->text;

	while (*s != '\0' && !r->failed) {
		size_t length = strcspn(s, " \t\n");

		if (length > 0) {
			add_text(r, mb_arena_strndup(r->arena, s, length), w->pos);
			r->unresolved = r->unresolved != NULL ? r->unresolved : w->unresolved;
		}
		s += length;
		if (*s != '\0')
			mb_shell_end_word(r);
		s += strspn(s, " \t\n");
	}
}

static void add_words(struct mb_shell_reader *r, const struct mb_variable *v, bool quoted, bool all)
{
	for (int i = 0; i < v->count && (all || i == 0); i++) {
		const struct mb_word *w = &v->words[i];

		if (i > 0)
			mb_shell_end_word(r);
		if (quoted) {
			add_text(r, w->text, w->pos);
			r->unresolved = r->unresolved != NULL ? r->unresolved : w->unresolved;
		} else {
			add_split(r, w);
		}
	}
}

static void add_unresolved(struct mb_shell_reader *r, const char *what, size_t length)
{
	const char *name = mb_arena_strndup(r->arena, what, length < 60 ? length : 60);

	add_text(r, mb_arena_printf(r->arena, "${%s}", name), mb_shell_here(r));
	if (r->unresolved == NULL)
		r->unresolved = name;
}

/* The end of a bracketed expansion that opens at `s`; NULL if it never closes. */
static const char *closing(const char *s, const char *end, char open, char close)
{
	int depth = 0;

	for (; s < end; s++) {
		depth += *s == open;
		if (*s == close && --depth == 0)
			return s;
	}
	return NULL;
}

static struct mb_variable *used_variable(struct mb_shell_reader *r, const char *name, size_t length)
{
	for (int i = 0; i < r->s->variable_count; i++) {
		struct mb_variable *v = &r->s->variables[i];

		if (strlen(v->name) == length && strncmp(v->name, name, length) == 0) {
			v->used = true;
			return v;
		}
	}
	return NULL;
}

static bool filled(const struct mb_variable *v)
{
	return v != NULL && v->count > 0 && (v->array || v->words[0].text[0] != '\0');
}

/* The text behind ":-" is a word of its own, with expansions. */
static void add_default(struct mb_shell_reader *r, const char *text, const char *stop, bool quoted, int depth)
{
	const char *at = r->at, *end = r->end;

	for (r->at = text, r->end = stop; r->at < stop && !r->failed;) {
		if (*r->at == '$' && depth < MB_SHELL_DEPTH) {
			mb_shell_expand(r, quoted, depth + 1);
		} else if (*r->at == '"' || *r->at == '\'') {
			r->at++;
		} else {
			add_text(r, mb_arena_strndup(r->arena, r->at, 1), mb_shell_here(r));
			r->at++;
		}
	}
	r->at = at;
	r->end = end;
}

/* ${NAME}, ${NAME[@]}, ${NAME:-word}; other operators are not worked out. */
static void expand_braces(struct mb_shell_reader *r, bool quoted, int depth)
{
	const char *open = r->at + 1, *close = closing(open, r->end, '{', '}');
	const char *s = open + 1;
	size_t length;
	bool all = false;

	if (close == NULL) {
		mb_fail(r->diags, mb_shell_here(r), "'${' is never closed");
		r->failed = true;
		r->at = r->end;
		return;
	}
	length = mb_shell_name_length(s, close);
	struct mb_variable *v = used_variable(r, s, length);
	const char *rest = s + length;
	if (close - rest >= 3 && rest[0] == '[' && (rest[1] == '@' || rest[1] == '*') && rest[2] == ']') {
		all = true;
		rest += 3;
	}
	bool with_default = (close - rest >= 2 && rest[0] == ':' && strchr("-=", rest[1]) != NULL) || (close - rest >= 1 && strchr("-=", rest[0]) != NULL);
	if (rest == close && v != NULL)
		add_words(r, v, quoted, all);
	else if (with_default && filled(v))
		add_words(r, v, quoted, all);
	else if (with_default)
		add_default(r, rest + (rest[0] == ':' ? 2 : 1), close, quoted, depth);
	else
		add_unresolved(r, s, length > 0 ? length : (size_t)(close - s));
	r->at = close + 1;
}

static void expand_command(struct mb_shell_reader *r)
{
	bool back = *r->at == '`';
	const char *open = back ? r->at : r->at + 1;
	const char *close = back ? memchr(r->at + 1, '`', (size_t)(r->end - r->at - 1)) : closing(open, r->end, '(', ')');
	long long n;

	if (close == NULL) {
		mb_fail(r->diags, mb_shell_here(r), "'%s' is never closed", back ? "`" : "$(");
		r->failed = true;
		r->at = r->end;
		return;
	}
	bool sum = !back && close - open >= 3 && open[1] == '(' && close[-1] == ')';
	if (sum && mb_shell_arithmetic(r, open + 2, (size_t)(close - open - 3), &n))
		add_text(r, mb_arena_printf(r->arena, "%lld", n), mb_shell_here(r));
	else
		add_unresolved(r, open + 1, (size_t)(close - open - 1));
	for (const char *s = r->at; s < close; s++) {
		if (*s == '\n') {
			r->line++;
			r->line_start = s + 1;
		}
	}
	r->at = close + 1;
}

void mb_shell_expand(struct mb_shell_reader *r, bool quoted, int depth)
{
	const char *s = r->at + 1;
	size_t length;

	if (*r->at == '`' || (s < r->end && *s == '(')) {
		expand_command(r);
		return;
	}
	if (s < r->end && *s == '{') {
		expand_braces(r, quoted, depth);
		return;
	}
	length = mb_shell_name_length(s, r->end);
	if (length == 0) {
		bool all = s < r->end && (*s == '@' || *s == '*');      /* what follows the script's name: nothing here */
		bool special = all || (s < r->end && strchr("#?0123456789", *s) != NULL);

		if (all)
			r->has_word = r->has_word && r->word.length > 0;
		else if (special)
			add_unresolved(r, s, 1);
		else
			add_text(r, "$", mb_shell_here(r));
		r->at += 1 + special;
		return;
	}
	const struct mb_variable *v = used_variable(r, s, length);
	if (v != NULL && v->count > 0)
		add_words(r, v, quoted, false);
	else
		add_unresolved(r, s, length);
	r->at = s + length;
}
