#include "base/error.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 sequence at s, 0 if it is malformed or cut off by the end of the string. */
static int utf8_length(const unsigned char *s)
{
	int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 :
		s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	for (int i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

/* Messages quote the input: control characters and broken UTF-8 must not reach a terminal or a JSON document. */
static void make_printable(char *text)
{
	unsigned char *s = (unsigned char *)text;

	while (*s) {
		int n = utf8_length(s);

		if (n == 0 || *s < 0x20 || *s == 0x7f || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0))
			*s++ = '?';
		else
			s += n;
	}
}

struct mb_diag *mb_report(struct mb_diags *d, enum mb_severity severity, struct mb_pos at, const char *key,
                          const char *fmt, ...)
{
	struct mb_diag *item = &d->spare;
	int kept = 0;
	va_list ap;

	assert(d);
	for (int i = 0; i < d->count; i++)
		kept += (d->item[i].severity == MB_ERROR) == (severity == MB_ERROR);
	if (kept < MB_DIAG_MAX)
		item = &d->item[d->count++];
	if (severity == MB_ERROR)
		d->errors++;
	else if (severity == MB_WARNING)
		d->warnings++;

	*item = (struct mb_diag){ .severity = severity, .pos = at };
	snprintf(item->key, sizeof item->key, "%s", key ? key : "");
	make_printable(item->key);
	va_start(ap, fmt);
	vsnprintf(item->text, sizeof item->text, fmt, ap);
	va_end(ap);
	make_printable(item->text);
	return item;
}

bool mb_fail(struct mb_diags *d, struct mb_pos at, const char *fmt, ...)
{
	char text[MB_DIAG_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	mb_report(d, MB_ERROR, at, NULL, "%s", text);
	return false;
}

enum { WORD_MAX = 64 };

static int fold(char c)
{
	return c == '-' || c == '.' ? '_' : tolower((unsigned char)c);
}

static void fold_all(char *ret, const char *word)
{
	while ((*ret++ = *word ? (char)fold(*word++) : '\0'))
		;
}

/*
 * Edit distance of folded words with swaps of neighbours (optimal string alignment); more than `limit` as soon as that is
 * certain: a row is made of the two before it.
 *
 * [Damerau 1964, CACM 7(3); recurrence of Boytsov 2011, ACM JEA 16, section 2.1.2]
 */
static int distance(const char *a, size_t n, const char *b, size_t m, int limit)
{
	int row[3][WORD_MAX + 1], least_before = 0;
	int *two = row[0], *one = row[1], *now = row[2];

	for (size_t j = 0; j <= m; j++)
		one[j] = (int)j;
	for (size_t i = 1; i <= n; i++) {
		int *spare = two, least = (int)i;

		now[0] = (int)i;
		for (size_t j = 1; j <= m; j++) {
			int best = one[j - 1] + (a[i - 1] != b[j - 1]);

			if (one[j] + 1 < best)
				best = one[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < best)
				best = two[j - 2] + 1;
			now[j] = best;
			least = best < least ? best : least;
		}
		if (least > limit && least_before > limit)
			return limit + 1;
		least_before = least;
		two = one;
		one = now;
		now = spare;
	}
	return one[m];
}

const char *mb_nearest(const char *word, const char *const *names, size_t count)
{
	char a[WORD_MAX + 1], b[WORD_MAX + 1];
	size_t n = strlen(word), shortest = WORD_MAX + 1;
	int limit = n < 5 ? 1 : n < 9 ? 2 : n < 15 ? (int)n / 3 : 5;
	const char *best = NULL, *whole = NULL;

	if (n == 0 || n > WORD_MAX)
		return NULL;
	fold_all(a, word);
	for (size_t i = 0; i < count; i++) {
		size_t m = strlen(names[i]);
		int d, longer = (int)m - (int)n;

		if (m > WORD_MAX)
			continue;
		fold_all(b, names[i]);
		if (abs(longer) <= limit && (d = distance(a, n, b, m, limit)) <= limit) {
			limit = d - 1;
			best = names[i];
		}
		/* "h100" is not a typing error but half a name; of equally long names the last is the larger machine. */
		if (n >= 3 && m <= shortest && strstr(b, a) != NULL) {
			shortest = m;
			whole = names[i];
		}
	}
	return best ? best : whole;
}
