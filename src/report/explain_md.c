#include "report/changes.h"
#include "report/explain.h"

static void paragraph(const struct mb_explanation *x, void (*words)(const struct mb_explanation *, struct mb_text *), struct mb_text *ret)
{
	size_t before = ret->length;

	words(x, ret);
	if (ret->length > before)
		mb_text_add(ret, "\n\n");
}

static void add_table(const struct mb_explanation *x, void (*fill)(const struct mb_explanation *, struct mb_table *), struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };

	fill(x, &table);
	mb_table_markdown(&table, ret);
	mb_text_add(ret, "\n");
	mb_arena_free(&arena);
}

void mb_explain_markdown(const struct mb_explain_report *r, struct mb_text *ret)
{
	const struct mb_explanation *x = r->x;

	mb_text_add(ret, "## ");
	mb_explain_headline(x, ret);
	mb_text_add(ret, "\n\n**");
	mb_explain_answer(x, ret);
	mb_text_add(ret, "**\n\n");
	paragraph(x, mb_explain_details, ret);
	paragraph(x, mb_explain_proof, ret);
	if (x->fix_count)
		add_table(x, mb_explain_fixes, ret);
	if (x->way_count)
		add_table(x, mb_explain_ways, ret);
	paragraph(x, mb_explain_against_best, ret);
}
