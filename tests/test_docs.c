/*
 * docs/model.md names every parameter and every term that the code has, docs/accuracy.md what validate and the data say,
 * docs/published-layouts.md every published run that it speaks of.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cost/cost.h"
#include "desc/library.h"
#include "desc/params.h"
#include "measured_fixture.h"
#include "report/facet.h"
#include "report/number.h"
#include "report/validate_pairs.h"

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

/* ---- docs/accuracy.md ---- */

static void expect_pairs(const char *page, const char *file)
{
	struct mb_text text = { 0 };

	set.count = 0;
	read_published(file);
	accuracy = (struct mb_accuracy){ .arena = &arena };
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_order(&accuracy);
	mb_accuracy_studies(&accuracy);
	mb_pairs_markdown(&accuracy, &text);
	cr_expect(text.length > 100 && strstr(page, text.data + 1), "docs/accuracy.md has other pairs of %s than validate:\n%s", file, text.data);
	mb_text_free(&text);
}

Test(docs, accuracy_has_the_pairs, .init = begin, .fini = done, .timeout = 60)
{
	char *page = read_page("accuracy.md");

	expect_pairs(page, "ab.jsonl");
	expect_pairs(page, "other.jsonl");
	free(page);
}

static void expect_value(const char *page, const char *name, const char *of, double value, bool seconds)
{
	char row[192], number[32];

	snprintf(number, sizeof number, seconds ? value < 1e-6 ? "%.4g ns" : "%.4g us" : "%.4g", seconds ? value * (value < 1e-6 ? 1e9 : 1e6) : value);
	snprintf(row, sizeof row, "| `%s` | %s | %s |", name, of, number);
	cr_expect(strstr(page, row), "docs/accuracy.md lacks '%s'", row);
}

static void expect_fitted(const char *page, const char *of, bool hardware, const struct mb_params *params, const struct mb_provenance *from)
{
	for (int i = 0; i < MB_PARAM_COUNT; i++) {
		const struct mb_param_row *row = &mb_param_rows[i];

		if (row->hardware == hardware && from[i].origin == MB_FITTED)
			expect_value(page, row->name, of, *(const double *)((const char *)params + row->offset), row->dimension == MB_SECONDS);
	}
}

/* Every fitted number of the shipped data, with the value that it has. */
Test(docs, accuracy_lists_what_was_fitted, .init = begin, .fini = done)
{
	static const struct { const char *run, *of; } machines[] = {
		{ "{id: a, run: {model: llama3-8b, hardware: dgx-h100, gpus: 8, seq: 8192, gbs: 128, stack: nemo-25.09}, measured: {step_s: 1}}", "Hopper" },
		{ "{id: b, run: {model: llama3-8b, hardware: dgx-b200, gpus: 8, seq: 8192, gbs: 128, stack: nemo-25.09}, measured: {step_s: 1}}", "Blackwell" },
	};
	char *page = read_page("accuracy.md");

	for (int i = 0; i < 2; i++) {
		read_row(machines[i].run);
		cr_assert_eq(trials.count, i + 1, "%s", trials.skipped[0].skip);
		const struct mb_case *c = &trials.trials[i].q->c;

		expect_fitted(page, machines[i].of, true, &c->hardware.params, c->hardware.provenance);
		expect_fitted(page, "stack", false, &c->stack.params, c->stack.provenance);
	}
	free(page);
}

/* ---- docs/published-layouts.md ---- */

static bool same_group(const struct mb_case *a, const struct mb_case *b)
{
	return strcmp(a->model.name, b->model.name) == 0 && strcmp(a->hardware.name, b->hardware.name) == 0 && a->run.gpus == b->run.gpus;
}

/* The start of the row of a group whose fastest run this is, up to the measured step; NULL: another one is faster. */
static const char *row_of(const struct mb_trial *t)
{
	const struct mb_case *c = &t->q->c;
	struct mb_text words = { 0 };
	const char *row;
	int runs = 0;

	for (int i = 0; i < trials.count; i++) {
		if (!same_group(c, &trials.trials[i].q->c))
			continue;
		runs++;
		if (trials.trials[i].tokens_per_s > t->tokens_per_s)
			return NULL;
	}
	mb_layout_words(&words, &c->run.plan);
	row = mb_arena_printf(&arena, "| %s | %s | %d | %d | %s | %s | %s |", c->model.name, c->hardware.name, c->run.gpus, runs,
	                      mb_trial_precision(t), words.data, mb_number_3(t->measured_s).s);
	mb_text_free(&words);
	return row;
}

/* The estimate may move a little before the searches are made again. */
Test(docs, published_layouts_has_every_group, .init = begin, .fini = done)
{
	char *page = read_page("published-layouts.md");
	int groups = 0;

	read_published("throughput.jsonl");
	for (int i = 0; i < trials.count; i++) {
		const struct mb_trial *t = &trials.trials[i];
		const char *row = row_of(t), *at = row ? strstr(page, row) : NULL;

		if (!row)
			continue;
		groups++;
		cr_assert(at != NULL, "docs/published-layouts.md lacks '%s'", row);
		mb_evaluate(&t->q->c, &t->q->c.run.plan, e);
		cr_expect_float_eq(atof(at + strlen(row)), e->step_s, 0.05 * e->step_s, "%s %.3g s, the page has another estimate", row, e->step_s);
	}
	cr_expect_eq(groups, 46);
	free(page);
}
