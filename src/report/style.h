/* How a report is drawn: width, character set, colour. Decided once by the command line. */
#ifndef MBSIM_REPORT_STYLE_H
#define MBSIM_REPORT_STYLE_H

#include <stdbool.h>

#include "base/text.h"

struct mb_style {
	int width;              /* columns of the canvas */
	bool cut;               /* tables leave out and shorten what is too wide for it; not into a pipe or file */
	bool utf8;              /* else ASCII only */
	bool colour;            /* 16-colour codes, so that the user's theme decides */
	bool quiet;             /* tables and verdicts only */
};

enum mb_ink {
	MB_INK_PLAIN,
	MB_INK_BOLD,
	MB_INK_DIM,
	MB_INK_RED,
	MB_INK_YELLOW,
	MB_INK_GREEN,
	MB_INK_CYAN,
	MB_INK_BLUE,
	MB_INK_MAGENTA
};

/* Appends text in an ink; without colour just the text. */
void mb_ink(struct mb_text *t, const struct mb_style *s, enum mb_ink ink, const char *text);
void mb_ink_printf(struct mb_text *t, const struct mb_style *s, enum mb_ink ink, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Columns that UTF-8 text takes on screen: one a code point, colour codes none. */
int mb_text_width(const char *s);

/* `left`, spaces, `right` so that right ends at the canvas edge; on its own line when it does not fit. */
void mb_justify(struct mb_text *t, const struct mb_style *s, const char *left, const char *right);

/*
 * Appends text broken at spaces so that no line passes the canvas. The first line is already `start` columns long;
 * further lines start with `indent` spaces.
 */
void mb_wrap(struct mb_text *t, const struct mb_style *s, int start, int indent, const char *text);

/* Two blocks of lines side by side, the second from column `at`; one below the other when that is too wide. */
void mb_beside(struct mb_text *t, const struct mb_style *s, const char *left, const char *right, int at);

/* A word as a POSIX shell reads it: quoted only when it must be. */
void mb_shell_word(struct mb_text *t, const char *word);

#endif
