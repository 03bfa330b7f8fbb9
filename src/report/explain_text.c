#include "report/changes.h"
#include "report/explain.h"
#include "report/number.h"
#include "report/violation.h"

typedef void (*sentence)(const struct mb_explanation *x, struct mb_text *ret);
typedef void (*table_of)(const struct mb_explanation *x, struct mb_table *ret);

static void paragraph(const struct mb_explanation *x, sentence words, const char *before, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_text line = { 0 };

	words(x, &line);
	if (line.length) {
		mb_text_add(ret, before);
		mb_wrap(ret, s, 0, 0, line.data[0] == ' ' ? line.data + 1 : line.data);
		if (ret->data[ret->length - 1] != '\n')
			mb_text_add(ret, "\n");
	}
	mb_text_free(&line);
}

static void print_table(const struct mb_explanation *x, table_of fill, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };

	mb_text_add(ret, "\n");
	fill(x, &table);
	mb_table_print(&table, s, ret);
	mb_arena_free(&arena);
}

static void next_lines(const struct mb_explain_report *r, const struct mb_style *s, struct mb_text *ret)
{
	const struct mb_explanation *x = r->x;

	mb_text_add(ret, "\n");
	mb_ink(ret, s, MB_INK_DIM, "next  ");
	if (x->fix_count) {
		mb_text_printf(ret, "mbsim estimate %s ", r->args);
		mb_changes_words(ret, x->q, &x->fixes[0].changes, true);
		mb_text_add(ret, "\n");
		if (x->kind == MB_BINDS_MEMORY)
			mb_text_printf(ret, "      mbsim advise recompute %s\n", r->args);
	} else if (x->kind == MB_BINDS_RULE) {
		mb_text_printf(ret, "mbsim check %s\n", r->args);
	} else if (x->kind == MB_BINDS_MEMORY) {
		mb_text_printf(ret, "mbsim advise oom %s\n", r->args);
	} else {
		mb_text_printf(ret, "mbsim trace %s --output step.json\n", r->args);
	}
}

void mb_explain_text(const struct mb_explain_report *r, const struct mb_style *s, struct mb_text *ret)
{
	const struct mb_explanation *x = r->x;
	struct mb_text left = { 0 }, right = { 0 };

	mb_explain_headline(x, &left);
	mb_text_printf(&right, "stack %s", x->q->c.stack.name);
	mb_justify(ret, s, left.data, right.data);
	mb_text_free(&left);
	mb_text_free(&right);
	paragraph(x, mb_explain_answer, "", s, ret);
	paragraph(x, mb_explain_details, "\n", s, ret);
	paragraph(x, mb_explain_proof, "\n", s, ret);
	if (x->fix_count)
		print_table(x, mb_explain_fixes, s, ret);
	if (x->way_count)
		print_table(x, mb_explain_ways, s, ret);
	if (x->fix_count && !x->fix_fits)
		mb_text_add(ret, "With these it starts, but it does not fit.\n");
	paragraph(x, mb_explain_against_best, x->fix_count ? "" : "\n", s, ret);
	if (!s->quiet)
		next_lines(r, s, ret);
}
