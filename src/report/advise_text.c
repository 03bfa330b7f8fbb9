#include <string.h>

#include "report/advise.h"
#include "report/changes.h"
#include "report/number.h"

static void paragraph(struct mb_text *t, const struct mb_style *s, const char *text)
{
	if (text[0] == '\0')
		return;
	mb_wrap(t, s, 0, 2, text);
	if (t->length && t->data[t->length - 1] != '\n')
		mb_text_add(t, "\n");
}

/* Notes that do not fit behind their row. */
static void footnotes(const struct mb_advice *a, const struct mb_style *s, struct mb_text *t)
{
	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];
		bool marked = i == a->recommended || i == a->shrink || i == a->now || o->t.verdict == MB_ILLEGAL || o->tie;

		for (int n = 0; n < o->note_count && o->listed; n++) {
			struct mb_text line = { 0 };

			if ((n == 0 && !marked && mb_advise_note_is_short(o->notes[0])) || strncmp(o->notes[n], "tie ", 4) == 0)
				continue;
			mb_option_words(a, o, &line);
			mb_text_printf(&line, ": %s", o->notes[n]);
			paragraph(t, s, line.data);
			mb_text_free(&line);
		}
	}
}

static void graphs_note(const struct mb_advice *a, struct mb_text *t)
{
	for (int i = 0; i < a->count; i++) {
		if (a->options[i].listed && strstr(a->options[i].name, " *")) {
			mb_text_add(t, "*  with moe_router and moe_preprocess graphed\n");
			return;
		}
	}
}

static void requirements(const struct mb_advice *a, const struct mb_style *s, struct mb_text *t)
{
	struct mb_text line = { 0 };

	if (a->recommended < 0 || a->met[0] == '\0')
		return;
	mb_text_add(t, "\n");
	mb_text_printf(&line, "Needs, met: %s", a->met);
	paragraph(t, s, line.data);
	line.length = 0;
	if (mb_changes_count(&a->needs)) {
		mb_text_add(&line, "Needs, to set: ");
		mb_changes_words(&line, a->q, &a->needs, true);
		paragraph(t, s, line.data);
	}
	mb_text_free(&line);
	if (a->forbids[0])
		mb_text_printf(t, "Forbids from then on: %s\n", a->forbids);
}

static void trials(const struct mb_advice *a, const struct mb_style *s, struct mb_text *t)
{
	struct mb_text line = { 0 };
	bool found = a->topic == MB_TOPIC_OVERLAP;

	for (int rank = 1; found; rank++) {
		found = false;
		for (int i = 0; i < a->count && !found; i++) {
			if (a->options[i].rank != rank)
				continue;
			mb_text_printf(&line, "%s%d) %s%s", rank == 1 ? "Trials: " : "; ", rank, a->options[i].name,
			               a->options[i].t.run.plan.delay_wgrad_compute ? ", only if exposed EP time still shows" : "");
			found = true;
		}
	}
	if (line.length)
		paragraph(t, s, line.data);
	mb_text_free(&line);
}

static void next_lines(const struct mb_advise_report *x, const struct mb_style *s, struct mb_text *t)
{
	const struct mb_advice *a = x->a;
	const struct mb_option *best = a->recommended >= 0 ? &a->options[a->recommended] : NULL;
	struct mb_text words = { 0 };

	mb_ink(t, s, MB_INK_DIM, "next  ");
	if (best && mb_changes_count(&best->t.changes)) {
		mb_text_add(&words, " ");
		mb_changes_words(&words, a->q, &best->t.changes, true);
		mb_text_printf(t, "mbsim estimate %s%s\n", x->args, words.data);
		mb_text_printf(t, "      mbsim advise %s %s --emit\n", mb_topic_names[a->topic], x->args);
	} else if (best || a->topic == MB_TOPIC_OOM) {
		mb_text_printf(t, a->diagnosis && a->diagnosis->cause == MB_CAUSE_ILLEGAL ? "mbsim check %s\n" : "mbsim explain %s\n", x->args);
	} else if (a->count <= 1) {
		mb_text_printf(t, "mbsim check %s\n", x->args);
	} else {
		mb_text_printf(t, "mbsim advise oom %s\n", x->args);
	}
	mb_text_free(&words);
}

static void oom_head(const struct mb_advice *a, const struct mb_style *s, struct mb_text *t)
{
	struct mb_text line = { 0 };

	mb_text_add(&line, "");
	mb_advise_log(a, &line);
	paragraph(t, s, line.data);
	mb_text_free(&line);
}

static void oom_budget(const struct mb_advice *a, const struct mb_style *s, struct mb_text *t)
{
	struct mb_text line = { 0 };

	mb_text_add(&line, "");
	mb_advise_budget(a, &line);
	if (line.length) {
		mb_text_add(t, "  ");
		mb_wrap(t, s, 2, 2, line.data);
		mb_text_add(t, t->data[t->length - 1] == '\n' ? "" : "\n");
	}
	line.length = 0;
	if (a->diagnosis->ruled_out[0]) {
		mb_text_printf(&line, "ruled out: %s", a->diagnosis->ruled_out);
		mb_text_add(t, "  ");
		mb_wrap(t, s, 2, 4, line.data);
		mb_text_add(t, t->data[t->length - 1] == '\n' ? "" : "\n");
	}
	mb_text_free(&line);
}

static void body(const struct mb_advise_report *x, const struct mb_style *s, struct mb_text *t)
{
	const struct mb_advice *a = x->a;
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };
	bool listed = false;

	for (int i = 0; i < a->count; i++)
		listed |= a->options[i].listed;
	if (a->topic == MB_TOPIC_OOM && a->diagnosis->run.sized)
		oom_budget(a, s, t);
	if (listed) {
		mb_text_add(t, a->topic == MB_TOPIC_OOM ? "" : "\n");
		mb_advise_table(a, s->utf8, &table);
		mb_table_print(&table, s, t);
		graphs_note(a, t);
		footnotes(a, s, t);
	}
	mb_arena_free(&arena);
	if (a->reason_count)
		mb_text_add(t, "\n");
	for (int i = 0; i < a->reason_count; i++)
		paragraph(t, s, a->reasons[i]);
	requirements(a, s, t);
	trials(a, s, t);
}

void mb_advise_text(const struct mb_advise_report *x, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_text line = { 0 }, right = { 0 };

	mb_advise_headline(x->a, &line);
	mb_text_printf(&right, "stack %s", x->a->q->c.stack.name);
	mb_justify(ret, s, line.data, right.data);
	mb_text_free(&right);
	if (x->a->topic == MB_TOPIC_OOM)
		oom_head(x->a, s, ret);
	line.length = 0;
	mb_text_add(&line, "");
	mb_advise_answer(x->a, &line);
	paragraph(ret, s, line.data);
	mb_text_free(&line);
	body(x, s, ret);
	if (!s->quiet)
		next_lines(x, s, ret);
}

bool mb_advise_emit(const struct mb_advice *a, struct mb_text *ret)
{
	if (a->recommended < 0)
		return false;
	mb_changes_lines(ret, a->q, &a->options[a->recommended].t.changes);
	return true;
}
