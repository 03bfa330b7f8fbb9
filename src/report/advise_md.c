#include "report/advise.h"
#include "report/changes.h"

void mb_advise_markdown(const struct mb_advise_report *x, struct mb_text *ret)
{
	const struct mb_advice *a = x->a;
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };

	mb_text_add(ret, "## ");
	mb_advise_headline(a, ret);
	mb_text_add(ret, "\n\n**");
	mb_advise_answer(a, ret);
	mb_text_add(ret, "**\n\n");
	if (a->topic == MB_TOPIC_OOM) {
		mb_advise_log(a, ret);
		mb_text_add(ret, "\n\n");
		mb_advise_budget(a, ret);
		mb_text_add(ret, "\n\n");
		if (a->diagnosis->ruled_out[0])
			mb_text_printf(ret, "Ruled out: %s.\n\n", a->diagnosis->ruled_out);
	}
	if (a->count) {
		mb_advise_table(a, true, &table);
		mb_table_markdown(&table, ret);
		mb_text_add(ret, "\n");
	}
	for (int i = 0; i < a->count; i++) {
		for (int n = 0; n < a->options[i].note_count && a->options[i].listed; n++) {
			mb_text_add(ret, "- ");
			mb_option_words(a, &a->options[i], ret);
			mb_text_printf(ret, ": %s\n", a->options[i].notes[n]);
		}
	}
	mb_text_add(ret, "\n");
	for (int i = 0; i < a->reason_count; i++)
		mb_text_printf(ret, "%s\n\n", a->reasons[i]);
	if (a->met[0])
		mb_text_printf(ret, "Requirements met: %s.\n\n", a->met);
	if (a->recommended >= 0 && mb_changes_count(&a->options[a->recommended].t.changes)) {
		mb_text_add(ret, "```\n");
		mb_changes_lines(ret, a->q, &a->options[a->recommended].t.changes);
		mb_text_add(ret, "```\n");
	}
	mb_arena_free(&arena);
}
