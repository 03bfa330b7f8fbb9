#include "report/error_report.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "report/json.h"

enum { SOURCE_MAX = 512 };

static const char *const severity_names[] = { [MB_ERROR] = "error", [MB_WARNING] = "warning", [MB_NOTE] = "note" };

/* Reads the line a message is about; false when it cannot be read again (a pipe, a directory, binary, too long). */
static bool source_line(struct mb_pos at, char line[SOURCE_MAX])
{
	struct stat st;
	bool found = false;
	int number = 1, c;
	size_t length = 0;

	if (!at.file || at.line < 1 || stat(at.file, &st) != 0 || !S_ISREG(st.st_mode))
		return false;

	FILE *f = fopen(at.file, "r");

	if (!f)
		return false;
	while ((c = getc(f)) != EOF && number <= at.line) {
		if (c == '\n') {
			number++;
		} else if (number == at.line && c != '\r') {
			found = true;
			if (length + 1 == SOURCE_MAX || (iscntrl(c) && c != '\t')) {
				found = false;
				break;
			}
			line[length++] = (char)(c == '\t' ? ' ' : c);
		}
	}
	fclose(f);
	line[length] = '\0';
	return found && length > 0;
}

/* How much to underline: the word or quoted text at the column. */
static int token_width(const char *line, int column)
{
	const char *s = line + column - 1;
	size_t length;

	if (*s == '"' || *s == '\'') {
		const char *end = strchr(s + 1, *s);

		length = end ? (size_t)(end - s) + 1 : 1;
	} else {
		length = strcspn(s, " :,]}#\t");
	}
	return length ? (int)length : 1;
}

/* What would have been right, then the nearest name unless it was named already. */
static void hint(const struct mb_diag *d, struct mb_text *t)
{
	char quoted[80];

	snprintf(quoted, sizeof quoted, "'%s'", d->nearest);
	/* `expected` names what is wanted, or is a whole sentence: then with a reference behind a semicolon. */
	if (d->expected[0])
		mb_text_printf(t, "%s%s", strchr(d->expected, ';') ? "" : "expected ", d->expected);
	if (d->nearest[0] && !strstr(d->expected, quoted) && !strstr(d->text, quoted))
		mb_text_printf(t, "%sdid you mean %s?", d->expected[0] ? "; " : "", quoted);
}

static void excerpt(const struct mb_diag *d, const char *line, const char *words, const struct mb_style *s,
                    struct mb_text *t)
{
	char gutter[16];
	int width = snprintf(gutter, sizeof gutter, "%d", d->pos.line);
	int column = d->pos.column < 1 ? 1 : d->pos.column;
	struct mb_text carets = { 0 };

	mb_text_printf(t, "  %s | %s\n", gutter, line);
	if ((size_t)column > strlen(line) + 1)
		return;
	mb_text_pad(t, ' ', width + 2);
	mb_text_add(t, " | ");
	mb_text_pad(t, ' ', column - 1);
	mb_text_pad(&carets, '^', token_width(line, column));
	mb_ink(t, s, MB_INK_BOLD, carets.data);
	mb_text_printf(t, "%s%s\n", words[0] ? " " : "", words);
	mb_text_free(&carets);
}

void mb_diag_text(const struct mb_diag *d, const struct mb_style *s, struct mb_text *ret)
{
	char line[SOURCE_MAX];
	struct mb_text words = { 0 };

	mb_text_add(&words, "");
	hint(d, &words);
	if (d->pos.file && d->pos.line > 0)
		mb_text_printf(ret, "%s:%d:%d: ", d->pos.file, d->pos.line, d->pos.column);
	else if (d->pos.file && d->pos.column > 0)
		mb_text_printf(ret, "%s:%d: ", d->pos.file, d->pos.column);
	else
		mb_text_printf(ret, "%s: ", d->pos.file ? d->pos.file : "mbsim");
	mb_ink(ret, s, d->severity == MB_ERROR ? MB_INK_RED : d->severity == MB_WARNING ? MB_INK_YELLOW : MB_INK_DIM,
	       severity_names[d->severity]);
	mb_text_printf(ret, ": %s\n", d->text);
	if (source_line(d->pos, line))
		excerpt(d, line, words.length ? words.data : "", s, ret);
	else if (words.length)
		mb_text_printf(ret, "  %s\n", words.data);
	mb_text_free(&words);
}

static void text_or_null(cJSON *o, const char *name, const char *text)
{
	mb_json_text(o, name, text && text[0] ? text : NULL);
}

void mb_diag_json(const struct mb_diag *d, struct mb_text *ret)
{
	cJSON *o = mb_json_document("mbsim.error/1");

	mb_json_text(o, "severity", severity_names[d->severity]);
	mb_json_text(o, "message", d->text);
	text_or_null(o, "file", d->pos.file);
	mb_json_int(o, "line", d->pos.line);
	mb_json_int(o, "column", d->pos.column);
	text_or_null(o, "key", d->key);
	text_or_null(o, "expected", d->expected);
	text_or_null(o, "nearest", d->nearest);
	mb_json_write(o, false, ret);
}

void mb_diags_print(const struct mb_diags *d, bool json, const struct mb_style *s, struct mb_text *ret)
{
	for (int i = 0; i < d->count; i++) {
		if (d->item[i].severity != MB_ERROR && s->quiet)
			continue;
		if (json)
			mb_diag_json(&d->item[i], ret);
		else
			mb_diag_text(&d->item[i], s, ret);
	}

	int errors = 0;

	for (int i = 0; i < d->count; i++)
		errors += d->item[i].severity == MB_ERROR;
	if (!json && d->errors > errors)
		mb_text_printf(ret, "and %d more errors\n", d->errors - errors);
}
