#include "desc/node_source.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool too_large(struct mb_pos at, struct mb_diags *diags)
{
	return mb_fail(diags, at, "larger than %d MB, which no description needs", MB_SOURCE_MAX / 1000000);
}

char *mb_source_read(const char *path, struct mb_arena *arena, size_t *length, struct mb_diags *diags)
{
	struct mb_pos at = { .file = path };
	size_t used = 0, capacity = 16 * 1024;
	char *data = NULL;
	struct stat st;
	FILE *f = fopen(path, "rb");

	if (!f) {
		mb_fail(diags, at, "cannot be opened: %s", strerror(errno));
		return NULL;
	}
	if (fstat(fileno(f), &st) == 0) {
		if (S_ISDIR(st.st_mode)) {
			mb_fail(diags, at, "is a folder, expected a file");
			goto out;
		}
		if (st.st_size > MB_SOURCE_MAX) {
			too_large(at, diags);
			goto out;
		}
		if (st.st_size > 0)
			capacity = (size_t)st.st_size + 1;
	}
	data = mb_arena_alloc(arena, capacity + 1);
	for (;;) {
		used += fread(data + used, 1, capacity - used, f);
		if (used < capacity)
			break;
		if (used > MB_SOURCE_MAX) {
			too_large(at, diags);
			data = NULL;
			goto out;
		}
		capacity *= 2;
		data = memcpy(mb_arena_alloc(arena, capacity + 1), data, used);
	}
	if (ferror(f)) {
		mb_fail(diags, at, "cannot be read: %s", strerror(errno));
		data = NULL;
		goto out;
	}
	data[used] = '\0';
	*length = used;
out:
	fclose(f);
	return data;
}

bool mb_source_check(const char *text, size_t length, struct mb_pos at, struct mb_diags *diags)
{
	bool utf16 = length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
	const char *nul = memchr(text, '\0', length);

	if (length > MB_SOURCE_MAX)
		return too_large(at, diags);
	if (nul && !utf16)
		return mb_fail(diags, at, "is binary (a zero byte at offset %td), expected text", nul - text);
	return true;
}

static bool surrogate(const char *s, const char *end, char low, unsigned *ret)
{
	unsigned code = 0;

	if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
		return false;
	for (int i = 2; i < 6; i++) {
		int c = tolower((unsigned char)s[i]);

		if (!isxdigit(c))
			return false;
		code = code * 16 + (unsigned)(isdigit(c) ? c - '0' : c - 'a' + 10);
	}
	*ret = code & 0x3ff;
	return (code & 0xfc00) == (low ? 0xdc00 : 0xd800);
}

/* \ud83d\ude00 becomes \U0001f600, two characters shorter; returns how much input was used. */
static size_t join_surrogates(const char *s, const char *end, char *to, size_t *written)
{
	unsigned high, low;

	if (!surrogate(s, end, 0, &high) || !surrogate(s + 6, end, 1, &low)) {
		size_t n = end - s < 2 ? 1 : 2;

		memmove(to, s, n);
		*written = n;
		return n;
	}
	char code[11];

	snprintf(code, sizeof code, "\\U%08x", 0x10000 + (high << 10 | low));
	memcpy(to, code, 10);
	*written = 10;
	return 12;
}

/* One past the last character of the comment at s; s itself if there is none. */
static const char *comment_end(const char *s, const char *start, const char *end)
{
	char before = s > start ? s[-1] : ' ';

	if (end - s < 2 || s[0] != '/' || (s[1] != '/' && s[1] != '*') || !strchr(" \t\r\n,{}[]\"", before))
		return s;
	if (s[1] == '/') {
		while (s < end && *s != '\n')
			s++;
		return s;
	}
	for (s += 2; s < end; s++) {
		if (s[-1] == '*' && *s == '/' )
			return s + 1;
	}
	return end;
}

bool mb_source_clean_json(char *text, size_t *length)
{
	const char *s = text, *end = text + *length;
	char *to = text;
	bool string = false;

	if (*length >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
		s += 3;
	while (s < end && isspace((unsigned char)*s))
		s++;
	if (s == end || (*s != '{' && *s != '[' && *s != '/'))
		return false;
	for (s = text; s < end;) {
		const char *stop = string ? s : comment_end(s, text, end);

		if (string && *s == '\\') {
			size_t written;

			s += join_surrogates(s, end, to, &written);
			to += written;
			continue;
		}
		for (; s < stop; s++)
			*to++ = *s == '\n' ? '\n' : ' ';
		if (s == end)
			break;
		if (*s == '"')
			string = !string;
		*to++ = *s++;
	}
	*length = (size_t)(to - text);
	*to = '\0';
	return true;
}

bool mb_source_tab(const char *text, size_t length, int line, int *column)
{
	const char *s = text, *end = text + length;

	for (int i = 1; i < line && s; i++) {
		s = memchr(s, '\n', (size_t)(end - s));
		s = s ? s + 1 : NULL;
	}
	if (!s)
		return false;
	for (const char *c = s; c < end && (*c == ' ' || *c == '\t'); c++) {
		if (*c == '\t') {
			*column = (int)(c - s) + 1;
			return true;
		}
	}
	return false;
}
