/* docs/model.md names every parameter and every term that the code has, with the words of its tables. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/cost.h"
#include "desc/library.h"
#include "desc/params.h"

static char *read_page(const char *name)
{
	struct mb_library library;
	struct mb_diags diags = { 0 };
	char path[4200], *text = calloc(1, 1 << 20);
	FILE *f;

	cr_assert(text != NULL && mb_library_open(&library, &diags), "%s", diags.item[0].text);
	snprintf(path, sizeof path, "%s/docs/%s", library.root, name);
	f = fopen(path, "r");
	cr_assert(f != NULL && fread(text, 1, (1 << 20) - 1, f) > 0, "no %s", path);
	fclose(f);
	return text;
}

static void expect_row(const char *page, const char *name, const char *words)
{
	char mark[96];
	const char *row, *end;

	snprintf(mark, sizeof mark, "| `%s` |", name);
	row = strstr(page, mark);
	cr_expect(row != NULL, "%s is not in docs/model.md", name);
	if (row == NULL)
		return;
	end = strstr(row, words);
	cr_expect(end != NULL && memchr(row, '\n', (size_t)(end - row)) == NULL, "%s is not told as '%s'", name, words);
}

Test(docs, model_names_every_parameter_and_term)
{
	char *page = read_page("model.md");

	for (int i = 0; i < MB_PARAM_COUNT; i++)
		expect_row(page, mb_param_rows[i].name, mb_param_rows[i].doc);
	for (int i = 0; i < MB_MEM_COUNT; i++)
		expect_row(page, mb_memory_terms[i].json, mb_memory_terms[i].label);
	for (int i = 0; i < MB_TIME_COUNT; i++)
		expect_row(page, mb_time_terms[i].json, mb_time_terms[i].label);
	free(page);
}

/* Equations are numbered without a gap, once each. */
Test(docs, equations_are_numbered_in_order)
{
	char *page = read_page("model.md"), *at = page;
	char mark[8];
	int number = 1;

	for (; number < 100; number++) {
		snprintf(mark, sizeof mark, "(%d)", number);
		at = strstr(at, mark);
		if (at == NULL)
			break;
	}
	cr_expect(number > 40, "(%d) is missing", number);
	free(page);
}
