/* Importing in tests: files of tests/import/, or a text. */
#ifndef MBSIM_TESTS_IMPORT_FIXTURE_H
#define MBSIM_TESTS_IMPORT_FIXTURE_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/import.h"

static struct mb_arena arena;
static struct mb_library library;
static struct mb_diags diags;
static struct mb_import got;

static inline void begin(void)
{
	struct mb_diags d = { 0 };

	cr_assert(mb_library_open(&library, &d), "no data: %s", d.item[0].text);
}

static inline void done(void)
{
	mb_arena_free(&arena);
}

static inline const char *path(const char *name)
{
	return mb_arena_printf(&arena, "%s/tests/import/%s", library.root, name);
}

/* `settings`: words separated by spaces, "" for none. */
static inline const char *const *words(const char *settings)
{
	const char **list = mb_arena_alloc(&arena, 64 * sizeof *list);
	char *copy = mb_arena_strdup(&arena, settings);
	int n = 0;

	for (char *word = strtok(copy, " "); word != NULL && n < 63; word = strtok(NULL, " "))
		list[n++] = word;
	return list;
}

static inline bool import_file(const char *name, const char *settings)
{
	memset(&diags, 0, sizeof diags);
	memset(&got, 0, sizeof got);
	return mb_import_file(path(name), words(settings), &library, &arena, &got, &diags);
}

static inline bool import_text(const char *text, const char *name, const char *settings)
{
	memset(&diags, 0, sizeof diags);
	memset(&got, 0, sizeof got);
	return mb_import_text(text, strlen(text), name, words(settings), &library, &arena, &got, &diags);
}

static inline const char *printed(void)
{
	struct mb_text t = { 0 };

	mb_import_write(&got, &t);

	const char *copy = mb_arena_strdup(&arena, t.data);

	mb_text_free(&t);
	return copy;
}

/* Whether some diagnostic of that severity at that line (0: any) holds the words. */
static inline bool told(enum mb_severity severity, int line, const char *text)
{
	for (int i = 0; i < diags.count; i++) {
		const struct mb_diag *d = &diags.item[i];

		if (d->severity == severity && (line == 0 || d->pos.line == line) && strstr(d->text, text) != NULL)
			return true;
	}
	return false;
}

#endif
