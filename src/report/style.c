#include "report/style.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const codes[] = {
	[MB_INK_PLAIN] = "", [MB_INK_BOLD] = "1", [MB_INK_DIM] = "2", [MB_INK_RED] = "31", [MB_INK_YELLOW] = "33",
	[MB_INK_GREEN] = "32", [MB_INK_CYAN] = "36", [MB_INK_BLUE] = "34", [MB_INK_MAGENTA] = "35",
};

void mb_ink(struct mb_text *t, const struct mb_style *s, enum mb_ink ink, const char *text)
{
	if (!s->colour || ink == MB_INK_PLAIN || text[0] == '\0') {
		mb_text_add(t, text);
		return;
	}
	mb_text_printf(t, "\033[%sm%s\033[0m", codes[ink], text);
}

void mb_ink_printf(struct mb_text *t, const struct mb_style *s, enum mb_ink ink, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	mb_ink(t, s, ink, line);
}

int mb_text_width(const char *s)
{
	int width = 0;

	for (; *s; s++) {
		if (*s == '\033') {
			const char *end = strchr(s, 'm');

			if (!end)
				break;
			s = end;
		} else if (((unsigned char)*s & 0xc0) != 0x80) {
			width++;
		}
	}
	return width;
}

void mb_justify(struct mb_text *t, const struct mb_style *s, const char *left, const char *right)
{
	int gap = s->width - mb_text_width(left) - mb_text_width(right);

	mb_text_add(t, left);
	if (gap >= 2) {
		mb_text_pad(t, ' ', gap);
	} else {
		mb_text_add(t, "\n");
		mb_text_pad(t, ' ', 2);
	}
	mb_text_add(t, right);
	mb_text_add(t, "\n");
}

void mb_wrap(struct mb_text *t, const struct mb_style *s, int start, int indent, const char *text)
{
	int column = start;
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");
		char word[512];

		snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), text);
		int width = mb_text_width(word);

		if (!first && column + 1 + width > s->width) {
			mb_text_add(t, "\n");
			mb_text_pad(t, ' ', indent);
			column = indent;
		} else if (!first) {
			mb_text_add(t, " ");
			column++;
		}
		mb_text_addn(t, text, length);
		column += width;
		first = false;
		text += length;
		text += strspn(text, " ");
	}
	mb_text_add(t, "\n");
}

static int widest_line(const char *s)
{
	int widest = 0;
	char line[1024];

	while (*s) {
		size_t length = strcspn(s, "\n");

		snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), s);
		int width = mb_text_width(line);

		if (width > widest)
			widest = width;
		s += length + (s[length] == '\n');
	}
	return widest;
}

/* Appends the first line of *s and moves past it; returns its width. */
static int take_line(struct mb_text *t, const char **s)
{
	size_t length = strcspn(*s, "\n");
	char line[1024];

	snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), *s);
	mb_text_add(t, line);
	*s += length + ((*s)[length] == '\n');
	return mb_text_width(line);
}

void mb_beside(struct mb_text *t, const struct mb_style *s, const char *left, const char *right, int at)
{
	if (widest_line(left) + 2 > at)
		at = widest_line(left) + 2;
	if (at + widest_line(right) > s->width) {
		mb_text_add(t, left);
		mb_text_add(t, "\n");
		mb_text_add(t, right);
		return;
	}
	while (*left || *right) {
		int width = *left ? take_line(t, &left) : 0;

		if (*right && *right != '\n')
			mb_text_pad(t, ' ', at - width);
		if (*right)
			take_line(t, &right);
		mb_text_add(t, "\n");
	}
}

void mb_shell_word(struct mb_text *t, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";

	if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
		mb_text_add(t, word);
		return;
	}
	mb_text_add(t, "'");
	for (; *word; word++) {
		if (*word == '\'')
			mb_text_add(t, "'\\''");
		else
			mb_text_addn(t, word, 1);
	}
	mb_text_add(t, "'");
}
