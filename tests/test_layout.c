#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "plan/case.h"

static struct mb_arena arena;

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(layout, .fini = done);

/* A chunk as "E3m1L": what it holds, in order. */
static void describe(const struct mb_layout *l, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < l->chunk_count && n < size; i++) {
		const struct mb_chunk *c = &l->chunks[i];

		n += (size_t)snprintf(text + n, size - n, "%s%s%d", i > 0 ? " " : "", c->embedding ? "E" : "", c->layers);
		if (c->mtp > 0 && n < size)
			n += (size_t)snprintf(text + n, size - n, "m%d", c->mtp);
		if (c->loss && n < size)
			n += (size_t)snprintf(text + n, size - n, "L");
	}
}

static const struct { const char *text, *chunks; } good[] = {
	{ "EtL", "E1L" },
	{ "Et*3|tt|tmL", "E3 2 1m1L" },
	{ "Et*3|(tt|)*2tmL", "E3 2 2 1m1L" },
	{ "Et|(t*2|)*2,m|L", "E1 2 2 0m1 0L" },
	{ "E|t||L", "E0 1 0 0L" },
	{ "E|t|*2L", "E0 1 0 0L" },
	{ "E(t)*4|((t|)*2t|)*2L", "E4 1 1 1 1 1 1 0L" },
	{ "E t t | t L", "E2 1L" },
	{ "Et\\|tL", "E1 1L" },
	{ "tt|tt", "2 2" },                     /* what is missing is a rule's matter */
	{ "Etmm|L", "E1m2 0L" },
};

Test(layout, chunks_hold_what_the_text_says)
{
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct mb_diags d = { 0 };
		struct mb_layout l;
		char text[256];

		if (!mb_layout_parse(good[i].text, (struct mb_pos){ "x", 1, 1 }, &arena, &l, &d)) {
			cr_expect_fail("%s: %s", good[i].text, d.item[0].text);
			continue;
		}
		describe(&l, text, sizeof text);
		cr_expect_str_eq(text, good[i].chunks, "%s", good[i].text);
		cr_expect_str_eq(l.text, good[i].text);
	}
}

Test(layout, layers_follow_each_other)
{
	struct mb_diags d = { 0 };
	struct mb_layout l;
	int next = 0;

	cr_assert(mb_layout_parse("Et*3|(tt|)*29tmL", (struct mb_pos){ "x", 1, 1 }, &arena, &l, &d));
	cr_expect_eq(l.chunk_count, 31);
	for (int i = 0; i < l.chunk_count; i++) {
		cr_expect_eq(l.chunks[i].first_layer, next);
		next += l.chunks[i].layers;
	}
	cr_expect_eq(next, 3 + 2 * 29 + 1);
}

static const struct { const char *text; int column; const char *says; } bad[] = {
	{ "", 5, "the layout is empty" },
	{ "Etx", 7, "expected E, t, m, L, '|', or a group in parentheses" },
	{ "E(tt", 6, "'(' is never closed" },
	{ "Ett)L", 8, "')' without '('" },
	{ "Et*L", 7, "'*' needs a count of at least 1, as in t*4" },
	{ "Et*0L", 7, "'*' needs a count of at least 1, as in t*4" },
	{ "E(t)*|L", 9, "'*' needs a count of at least 1, as in t*4" },
	{ "*3", 5, "expected E, t, m, L, '|', or a group in parentheses" },
	{ "tE", 6, "a stage is written in the order E, t, m, L" },
	{ "EtLt", 8, "a stage is written in the order E, t, m, L" },
	{ "EE", 6, "two embeddings in one stage" },
	{ "ELL", 7, "two losses in one stage" },
	{ "Et*513", 6, "more than 512 decoder layers" },
	{ "Et*99999999999999999999", 6, "more than 512 decoder layers" },
	{ "E(|)*99999999L", 7, "more than 2048 stages" },
	{ "Em*17L", 6, "more than 16 multi-token prediction layers" },
	{ "E((((((((()))))))))", 14, "groups are nested too deeply" },
	{ "(()*60000)*60000", 6, "the layout is too long" },
};

Test(layout, errors_point_at_the_symbol)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct mb_diags d = { 0 };
		struct mb_layout l;
		char want[160];

		snprintf(want, sizeof want, "pipeline_model_parallel_layout: %s", bad[i].says);
		cr_expect_not(mb_layout_parse(bad[i].text, (struct mb_pos){ "x", 3, 5 }, &arena, &l, &d), "%s", bad[i].text);
		cr_expect_eq(d.errors, 1, "%s", bad[i].text);
		cr_expect_str_eq(d.item[0].text, want, "%s", bad[i].text);
		cr_expect_eq(d.item[0].pos.line, 3);
		if (bad[i].says[4] != 'l')      /* where the work ran out is of no interest */
			cr_expect_eq(d.item[0].pos.column, bad[i].column, "%s: %d", bad[i].text, d.item[0].pos.column);
	}
}
