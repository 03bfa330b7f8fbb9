#include "exchange/shell.h"

#include <ctype.h>
#include <string.h>

#include "exchange/shell_private.h"

struct mb_pos mb_shell_here(const struct mb_shell_reader *r)
{
	return (struct mb_pos){ r->name, r->line, (int)(r->at - r->line_start) + 1 };
}

size_t mb_shell_name_length(const char *s, const char *end)
{
	const char *start = s;

	while (s < end && (isalpha((unsigned char)*s) || *s == '_' || (s > start && isdigit((unsigned char)*s))))
		s++;
	return (size_t)(s - start);
}

void mb_shell_push(struct mb_shell_reader *r, struct mb_word **list, int *count, int *capacity, struct mb_word w)
{
	if (*count >= MB_SHELL_WORDS) {
		if (!r->failed)
			mb_fail(r->diags, w.pos, "expands to more than %d words", MB_SHELL_WORDS);
		r->failed = true;
		return;
	}
	if (*count == *capacity) {
		int more = *capacity > 0 ? 2 * *capacity : 32;
		struct mb_word *grown = mb_arena_alloc(r->arena, (size_t)more * sizeof *grown);

		if (*count > 0)
			memcpy(grown, *list, (size_t)*count * sizeof *grown);
		*list = grown;
		*capacity = more;
	}
	(*list)[(*count)++] = w;
}

const struct mb_variable *mb_shell_variable(const struct mb_shell *s, const char *name)
{
	for (int i = 0; i < s->variable_count; i++) {
		if (strcmp(s->variables[i].name, name) == 0)
			return &s->variables[i];
	}
	return NULL;
}

struct mb_variable *mb_shell_assign(struct mb_shell_reader *r, const char *name, bool append, bool array)
{
	struct mb_shell *s = r->s;
	struct mb_variable *v = NULL;

	for (int i = 0; i < s->variable_count; i++) {
		if (strcmp(s->variables[i].name, name) == 0)
			v = &s->variables[i];
	}
	if (v == NULL) {
		if (s->variable_count == s->variable_capacity) {
			int more = s->variable_capacity > 0 ? 2 * s->variable_capacity : 32;
			struct mb_variable *grown = mb_arena_alloc(r->arena, (size_t)more * sizeof *grown);

			if (more > MB_SHELL_VARIABLES && !r->failed)
				r->failed = !mb_fail(r->diags, mb_shell_here(r), "more than %d variables", MB_SHELL_VARIABLES / 2);
			if (s->variable_count > 0)
				memcpy(grown, s->variables, (size_t)s->variable_count * sizeof *grown);
			s->variables = grown;
			s->variable_capacity = more;
		}
		v = &s->variables[s->variable_count++];
		*v = (struct mb_variable){ .name = name };
	}
	if (!append)
		v->count = 0;
	v->array = array;
	v->added = r->added;
	return v;
}

void mb_shell_end_word(struct mb_shell_reader *r)
{
	struct mb_word w = { .pos = r->word_pos, .unresolved = r->unresolved };

	if (r->has_word) {
		w.text = mb_arena_strndup(r->arena, r->word.data != NULL ? r->word.data : "", r->word.length);
		mb_shell_push(r, &r->split, &r->split_count, &r->split_capacity, w);
	}
	r->word.length = 0;
	r->has_word = false;
	r->unresolved = NULL;
}

static void add(struct mb_shell_reader *r, char c)
{
	if (!r->has_word)
		r->word_pos = mb_shell_here(r);
	r->has_word = true;
	mb_text_addn(&r->word, &c, 1);
}

static void new_line(struct mb_shell_reader *r)
{
	r->line++;
	r->line_start = r->at;
}

static char next(struct mb_shell_reader *r)
{
	char c = *r->at++;

	if (c == '\n')
		new_line(r);
	return c;
}

static void read_quoted(struct mb_shell_reader *r)
{
	struct mb_pos start = mb_shell_here(r);
	char quote = *r->at;

	if (!r->has_word)
		r->word_pos = start;
	r->has_word = r->quoted = true;
	r->at++;
	while (r->at < r->end && *r->at != quote && !r->failed) {
		if (quote == '"' && (*r->at == '$' || *r->at == '`')) {
			mb_shell_expand(r, true, 0);
		} else if (quote == '"' && *r->at == '\\' && r->at + 1 < r->end && strchr("$`\"\\\n", r->at[1]) != NULL) {
			r->at++;
			char c = next(r);

			if (c != '\n')
				mb_text_addn(&r->word, &c, 1);
		} else {
			char c = next(r);

			mb_text_addn(&r->word, &c, 1);
		}
	}
	if (r->at == r->end && !r->failed) {
		mb_fail(r->diags, start, "quote never ends, the file stops at line %d", r->line);
		r->failed = true;
	}
	r->at += r->at < r->end;
}

/* A backslash at the end of a line, with or without a carriage return, joins it to the next; its length. */
static size_t continuation(const struct mb_shell_reader *r)
{
	if (r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == '\n')
		return 2;
	return r->end - r->at >= 3 && strncmp(r->at, "\\\r\n", 3) == 0 ? 3 : 0;
}

/* One piece of a word. False: what stands here ends the word. */
static bool read_piece(struct mb_shell_reader *r)
{
	size_t joined = continuation(r);
	char c = *r->at;

	if (r->failed)
		return false;
	if (joined > 0) {
		r->at += joined - 1;
		next(r);
		return true;
	}
	if (c == '\\' && r->at + 1 < r->end) {
		r->at++;
		c = next(r);
		add(r, c);
		return true;
	}
	if (c == '\'' || c == '"')
		read_quoted(r);
	else if (c == '$' || c == '`')
		mb_shell_expand(r, false, 0);
	else if (isspace((unsigned char)c) || strchr(";&|()<>", c) != NULL)
		return false;
	else {
		add(r, c);
		r->at++;
	}
	return true;
}

/* ---- comments ---- */

/* "# mbsim: model=..." and "#SBATCH --nodes=8" are for us; their words are read as a command would be. */
static void read_comment(struct mb_shell_reader *r)
{
	static const char ours[] = "# mbsim:", slurm[] = "#SBATCH";
	const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at)), *end = r->end;
	size_t left = (size_t)((stop != NULL ? stop : end) - r->at);
	bool note = left > sizeof ours && strncmp(r->at, ours, sizeof ours - 1) == 0;
	bool batch = left > sizeof slurm && strncmp(r->at, slurm, sizeof slurm - 1) == 0;

	if (note || batch) {
		struct mb_shell *s = r->s;

		r->end = r->at + left;
		r->at += note ? sizeof ours - 1 : sizeof slurm - 1;
		while (r->at < r->end && !r->failed) {
			while (r->at < r->end && read_piece(r))
				;
			mb_shell_end_word(r);
			r->at += r->at < r->end;
		}
		r->end = end;
		for (int i = 0; i < r->split_count; i++) {
			if (note && strcmp(r->split[i].text, "added") == 0)
				r->added = true;
			else if (note && strcmp(r->split[i].text, "end") == 0)
				r->added = false;
			else if (note)
				mb_shell_push(r, &s->notes, &s->note_count, &s->note_capacity, r->split[i]);
			else
				mb_shell_push(r, &s->slurm, &s->slurm_count, &s->slurm_capacity, r->split[i]);
		}
		r->split_count = 0;
	}
	r->at = stop != NULL ? stop : end;
}

/* ---- commands ---- */

/* NAME=, NAME+= at the start of the word being read; returns how long it is with the '='. */
static size_t assignment(const struct mb_shell_reader *r, bool *append)
{
	size_t length = mb_shell_name_length(r->at, r->end);
	const char *s = r->at + length;

	*append = r->end - s > 1 && s[0] == '+' && s[1] == '=';
	if (length == 0 || s == r->end || (*s != '=' && !*append))
		return 0;
	return length + 1 + *append;
}

static void skip_blank(struct mb_shell_reader *r, bool lines)
{
	while (r->at < r->end) {
		size_t joined = continuation(r);

		if (joined > 0) {
			r->at += joined - 1;
			next(r);
		} else if (lines && *r->at == '#') {
			read_comment(r);
		} else if (isspace((unsigned char)*r->at) && (lines || *r->at != '\n')) {
			next(r);
		} else {
			return;
		}
	}
}

static void read_array(struct mb_shell_reader *r, struct mb_pos start)
{
	r->at++;
	for (skip_blank(r, true); r->at < r->end && *r->at != ')' && !r->failed; skip_blank(r, true)) {
		const char *before = r->at;

		while (r->at < r->end && read_piece(r))
			;
		mb_shell_end_word(r);
		if (r->at == before)
			next(r);
	}
	if (r->at == r->end && !r->failed) {
		mb_fail(r->diags, start, "'(' is never closed, the file stops at line %d", r->line);
		r->failed = true;
	}
	r->at += r->at < r->end;
}

/* What was read is the value: the elements of an array, or one text, in which an unquoted expansion is not split. */
static void take_values(struct mb_shell_reader *r, struct mb_variable *v, bool append)
{
	struct mb_text text = { 0 };
	struct mb_word w = { .text = "", .pos = r->word_pos };

	if (v->array) {
		for (int i = 0; i < r->split_count; i++)
			mb_shell_push(r, &v->words, &v->count, &v->capacity, r->split[i]);
		return;
	}
	if (append && v->count > 0)
		mb_text_add(&text, v->words[0].text);
	for (int i = 0; i < r->split_count; i++) {
		mb_text_add(&text, i > 0 ? " " : "");
		mb_text_add(&text, r->split[i].text);
		w.unresolved = w.unresolved != NULL ? w.unresolved : r->split[i].unresolved;
	}
	if (r->split_count > 0)
		w.pos = r->split[0].pos;
	r->bytes += (long)text.length;
	if (text.length > 0)
		w.text = mb_arena_strndup(r->arena, text.data, text.length);
	mb_text_free(&text);
	v->count = 0;
	mb_shell_push(r, &v->words, &v->count, &v->capacity, w);
}

static void read_assignment(struct mb_shell_reader *r, size_t length, bool append, bool exported)
{
	const char *name = mb_arena_strndup(r->arena, r->at, length - 1 - append);
	const struct mb_variable *before;
	struct mb_variable *v;
	bool array;

	r->at += length;
	array = r->at < r->end && *r->at == '(';
	if (array) {
		read_array(r, mb_shell_here(r));
	} else {
		r->word_pos = mb_shell_here(r);
		r->has_word = true;
		while (r->at < r->end && read_piece(r))
			;
		mb_shell_end_word(r);
	}
	before = mb_shell_variable(r->s, name);
	v = mb_shell_assign(r, name, append, array || (append && before != NULL && before->array));
	v->exported = v->exported || exported;
	take_values(r, v, append);
	r->split_count = 0;
}

/* Words of a command that a file of flags may hold but that say nothing themselves. */
static bool structure(struct mb_shell_reader *r, const struct mb_word *w)
{
	static const char *const conditions[] = { "if", "elif", "case", "for", "while", "until" };
	static const char *const others[] = { "then", "else", "fi", "do", "done", "esac", "{", "}", "in", "[", "]", "[[", "]]" };

	for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
		if (strcmp(w->text, conditions[i]) == 0) {
			if (r->s->condition.line == 0)
				r->s->condition = w->pos;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		if (strcmp(w->text, others[i]) == 0)
			return true;
	}
	return false;
}

static void skip_redirection(struct mb_shell_reader *r)
{
	while (r->at < r->end && strchr("<>&", *r->at) != NULL)
		r->at++;
	skip_blank(r, false);
	while (r->at < r->end && read_piece(r))
		;
	r->has_word = false;
	r->word.length = 0;
	r->split_count = 0;
}

static bool ends_command(char c)
{
	return c == '\n' || strchr(";&|()", c) != NULL;
}

/* Words up to the end of the command; assignments in front of them go to the variables. */
static void read_command(struct mb_shell_reader *r)
{
	struct mb_shell *s = r->s;
	bool front = true, exported = false, append;
	int first = s->word_count;

	for (skip_blank(r, false); r->at < r->end && !r->failed && !ends_command(*r->at); skip_blank(r, false)) {
		size_t length = front ? assignment(r, &append) : 0;

		if (*r->at == '#') {
			read_comment(r);
			continue;
		}
		if (*r->at == '<' || *r->at == '>') {
			skip_redirection(r);
			continue;
		}
		if (length > 0) {
			read_assignment(r, length, append, exported);
			continue;
		}
		while (r->at < r->end && read_piece(r))
			;
		mb_shell_end_word(r);
		if (r->split_count == 1 && front && (strcmp(r->split[0].text, "export") == 0 || strcmp(r->split[0].text, "declare") == 0 ||
		    strcmp(r->split[0].text, "local") == 0 || strcmp(r->split[0].text, "readonly") == 0)) {
			exported = exported || strcmp(r->split[0].text, "export") == 0;
			r->split_count = 0;
			continue;
		}
		front = front && r->split_count == 1 && (structure(r, &r->split[0]) || (exported && r->split[0].text[0] == '-'));
		for (int i = 0; i < r->split_count && !front; i++)
			mb_shell_push(r, &s->words, &s->word_count, &s->word_capacity, r->split[i]);
		r->split_count = 0;
	}
	if (s->word_count > first)
		s->words[s->word_count - 1].ends = true;
	if (r->at < r->end && !r->failed)
		next(r);
}

static void preset_variables(struct mb_shell_reader *r, const char *const *preset)
{
	for (; preset != NULL && *preset != NULL; preset++) {
		const char *equals = strchr(*preset, '=');
		struct mb_word w = { .pos = { .file = "argument" } };

		if (equals == NULL)
			continue;
		w.text = equals + 1;
		struct mb_variable *v = mb_shell_assign(r, mb_arena_strndup(r->arena, *preset, (size_t)(equals - *preset)), false, false);
		mb_shell_push(r, &v->words, &v->count, &v->capacity, w);
	}
}

bool mb_shell_read(const char *text, size_t length, const char *name, const char *const *preset, struct mb_arena *arena,
                   struct mb_shell *ret, struct mb_diags *diags)
{
	bool bom = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
	struct mb_shell_reader r = { .at = text + 3 * bom, .end = text + length, .line_start = text + 3 * bom, .line = 1, .name = name,
	                             .arena = arena, .diags = diags, .s = ret };

	memset(ret, 0, sizeof *ret);
	preset_variables(&r, preset);
	while (r.at < r.end && !r.failed)
		read_command(&r);
	mb_text_free(&r.word);
	return !r.failed;
}
