/* Measured runs in tests: the files of tests/published, and rows from a text. */
#ifndef MBSIM_TESTS_MEASURED_FIXTURE_H
#define MBSIM_TESTS_MEASURED_FIXTURE_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "calib/accuracy.h"

static struct mb_arena arena;
static struct mb_library library;
static struct mb_diags diags;
static struct mb_evaluation *e;
static struct mb_measured_set set;
static struct mb_trials trials;
static struct mb_accuracy accuracy;

static inline void begin(void)
{
	cr_assert(mb_library_open(&library, &diags), "no data: %s", diags.item[0].text);
	e = mb_evaluation_new();
	cr_assert(e != NULL);
	set.arena = accuracy.arena = &arena;
}

static inline void done(void)
{
	mb_evaluation_free(e);
	mb_arena_free(&arena);
}

static inline void read_published(const char *name)
{
	cr_assert(mb_measured_read(mb_arena_printf(&arena, "%s/tests/published/%s", library.root, name), &set, &diags), "%s", diags.item[0].text);
	mb_trials_fill(&set, &library, e, &trials);
}

static inline void read_row(const char *text)
{
	const struct mb_node *row = mb_node_read_text(text, strlen(text), "row", &arena, &diags);

	cr_assert(row != NULL, "%s", diags.item[0].text);
	mb_measured_row(row, &arena, mb_measured_add(&set));
	mb_trials_fill(&set, &library, e, &trials);
}

#endif
