#include <math.h>
#include <string.h>

#include "report/advise.h"
#include "report/changes.h"
#include "report/number.h"

enum { SHORT_NOTE = 22 };

bool mb_advise_note_is_short(const char *note)
{
	return mb_text_width(note) <= SHORT_NOTE;
}

void mb_option_words(const struct mb_advice *a, const struct mb_option *o, struct mb_text *ret)
{
	if (o->name[0])
		mb_text_add(ret, o->name);
	else
		mb_changes_words(ret, a->q, &o->t.changes, false);
}

static void cell(struct mb_table *t, enum mb_ink ink, bool known, const char *text)
{
	mb_table_cell_ink(t, ink, known ? text : "-");
}

/* "+2.0", "-24", "0" */
static const char *percent(struct mb_arena *arena, double frac)
{
	double value = 100 * frac;
	int decimals = fabs(value) < 9.95 ? 1 : 0;

	if (fabs(value) < 0.05)
		return "0";
	return mb_arena_printf(arena, "%+.*f", decimals, value);
}

static enum mb_ink verdict_ink(enum mb_verdict v)
{
	return v == MB_FITS ? MB_INK_PLAIN : v == MB_AT_RISK ? MB_INK_YELLOW : MB_INK_RED;
}

/* Marks and short notes behind a row. */
static void add_note(const struct mb_advice *a, int i, const char *mark, bool utf8, struct mb_table *t)
{
	const struct mb_option *o = &a->options[i];
	struct mb_text text = { 0 };

	mb_text_add(&text, "");
	if (mark)
		mb_text_printf(&text, "%s %s", utf8 ? "◀" : "<", mark);
	else if (o->t.verdict == MB_ILLEGAL)
		mb_text_add(&text, "illegal");
	else if (o->t.verdict == MB_OUT_OF_MEMORY)
		mb_text_add(&text, "does not fit");
	else if (o->t.verdict == MB_AT_RISK)
		mb_text_add(&text, "at risk");
	else if (o->note_count && mb_advise_note_is_short(o->notes[0]))
		mb_text_add(&text, o->notes[0]);
	if (text.length)
		mb_table_note(t, text.data);
	mb_text_free(&text);
}

static void recompute_row(const struct mb_advice *a, int i, bool utf8, struct mb_table *t)
{
	const struct mb_option *o = &a->options[i];
	const struct mb_trial *x = &o->t;
	bool sized = x->sized, reference = i == a->reference, saves = fabs(o->saved_bytes) > 1e7;
	enum mb_ink ink = i == a->recommended ? MB_INK_BOLD : verdict_ink(x->verdict);
	double cost_s = x->step_s - a->options[a->reference].t.step_s;
	const char *mark = i == a->recommended ? (a->needed ? "narrowest" : "enough")
	                   : i == a->shrink ? "helps most" : i == a->now ? "now" : NULL;

	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell_ink(t, ink, o->name);
	cell(t, ink, sized && !reference, mb_number_fixed(o->saved_bytes / MB_GIB, 2).s);
	cell(t, ink, sized && !reference, mb_number_fixed(o->lowers_bytes / MB_GIB, 2).s);
	cell(t, ink, sized, mb_number_fixed(x->peak_bytes / MB_GIB, 2).s);
	cell(t, ink, sized, mb_phase_names[x->phase]);
	cell(t, ink, sized, percent(t->arena, o->step_frac));
	cell(t, ink, sized && !reference && saves && o->saved_bytes > 0, mb_number_3(1000 * fmax(cost_s, 0) / (o->saved_bytes / MB_GIB)).s);
	add_note(a, i, mark, utf8, t);
}

static void recompute_table(const struct mb_advice *a, bool utf8, struct mb_table *t)
{
	mb_table_column(t, "option", "", MB_LEFT, 0);
	mb_table_column(t, "saved", "GiB", MB_DECIMAL, 0);
	mb_table_column(t, "lowers", "peak", MB_DECIMAL, 2);
	mb_table_column(t, "peak", "GiB", MB_DECIMAL, 0);
	mb_table_column(t, "binds in", "", MB_LEFT, 0);
	mb_table_column(t, "step", "%", MB_DECIMAL, 0);
	mb_table_column(t, "ms per", "GiB", MB_DECIMAL, 1);
	for (int i = 0; i < a->count; i++) {
		if (a->options[i].listed)
			recompute_row(a, i, utf8, t);
	}
}

/* "hybridep *, overlap on" in two cells. */
static void exchange_name(const struct mb_advice *a, const struct mb_option *o, enum mb_ink ink, struct mb_table *t)
{
	const char *comma = strstr(o->name, ", overlap ");

	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell_ink(t, ink, comma ? mb_arena_strndup(t->arena, o->name, (size_t)(comma - o->name)) : o->name);
	if (a->topic == MB_TOPIC_OVERLAP)
		mb_table_cell_ink(t, ink, comma ? comma + strlen(", overlap ") : "");
}

static void exchange_cells(const struct mb_advice *a, const struct mb_option *o, enum mb_ink ink, struct mb_table *t)
{
	const struct mb_trial *x = &o->t, *now = &a->options[a->now].t;
	bool sized = x->sized;

	cell(t, ink, sized, mb_number_3(x->step_s).s);
	cell(t, ink, sized && now->sized, percent(t->arena, o->step_frac));
	cell(t, ink, sized, mb_number_3(o->x.busy_s).s);
	cell(t, ink, sized, mb_number_3(o->x.exposed_s).s);
	cell(t, ink, sized, mb_number_percent(o->x.hidden_frac).s);
	cell(t, ink, sized, mb_number_gb(o->x.inside_bytes).s);
	cell(t, ink, sized, mb_number_gb(o->x.across_bytes).s);
	cell(t, ink, sized && now->sized, mb_number_fixed((x->used_bytes - now->used_bytes) / MB_GIB, 1).s);
	cell(t, ink, sized && o->x.sms > 0, mb_number_count(o->x.sms).s);
}

static void exchange_table(const struct mb_advice *a, bool utf8, struct mb_table *t)
{
	mb_table_column(t, "dispatcher", "", MB_LEFT, 0);
	if (a->topic == MB_TOPIC_OVERLAP)
		mb_table_column(t, "overlap", "", MB_LEFT, 0);
	mb_table_column(t, "step", "s", MB_DECIMAL, 0);
	mb_table_column(t, "vs", "now %", MB_DECIMAL, 0);
	mb_table_column(t, "EP busy", "s", MB_DECIMAL, 0);
	mb_table_column(t, "exposed", "s", MB_DECIMAL, 0);
	mb_table_column(t, "hidden", "%", MB_DECIMAL, 4);
	mb_table_column(t, "NVLink", "GB", MB_DECIMAL, 3);
	mb_table_column(t, "off-node", "GB", MB_DECIMAL, 2);
	mb_table_column(t, "adds", "GiB", MB_DECIMAL, 1);
	mb_table_column(t, "SMs", "", MB_DECIMAL, 1);
	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];
		const char *mark = i == a->recommended && i != a->now ? "first" : i == a->now ? "now" : NULL;

		if (!o->listed)
			continue;
		if (i == a->recommended && i == a->now)
			mark = "now, keep";
		else if (!mark && o->tie && mb_option_usable(o))
			mark = "tie";
		exchange_name(a, o, i == a->recommended ? MB_INK_BOLD : verdict_ink(o->t.verdict), t);
		exchange_cells(a, o, i == a->recommended ? MB_INK_BOLD : verdict_ink(o->t.verdict), t);
		add_note(a, i, mark, utf8, t);
	}
}

static void remedy_table(const struct mb_advice *a, bool utf8, struct mb_table *t)
{
	int number = 0;

	mb_table_column(t, "", "", MB_RIGHT, 0);
	mb_table_column(t, "remedy", "", MB_LEFT, 0);
	mb_table_column(t, "gives", "GiB", MB_DECIMAL, 0);
	mb_table_column(t, "step", "%", MB_DECIMAL, 0);
	mb_table_column(t, "changes learning", "", MB_LEFT, 1);
	for (int i = 0; i < a->count; i++) {
		const struct mb_option *o = &a->options[i];
		enum mb_ink ink = i == a->recommended ? MB_INK_BOLD : MB_INK_PLAIN;
		struct mb_text words = { 0 };

		if (!o->listed)
			continue;
		mb_text_add(&words, "");
		mb_option_words(a, o, &words);
		mb_table_row(t, MB_INK_PLAIN);
		mb_table_cell(t, mb_number_count(++number).s);
		mb_table_cell_ink(t, ink, mb_changes_first(t, words.data));
		mb_table_cell_ink(t, ink, mb_number_fixed(o->saved_bytes / MB_GIB, 1).s);
		mb_table_cell_ink(t, ink, percent(t->arena, o->step_frac));
		mb_table_cell_ink(t, ink, o->learning ? "yes" : "no");
		if (i == a->recommended)
			mb_table_note(t, utf8 ? "◀ first" : "< first");
		else if (o->t.verdict != MB_FITS)
			mb_table_note(t, o->t.verdict == MB_AT_RISK ? "at risk" : "not enough");
		mb_changes_rows(t, 1, words.data, ink);
		mb_text_free(&words);
	}
}

void mb_advise_table(const struct mb_advice *a, bool utf8, struct mb_table *ret)
{
	switch (a->topic) {
	case MB_TOPIC_RECOMPUTE:
		recompute_table(a, utf8, ret);
		break;
	case MB_TOPIC_OVERLAP:
	case MB_TOPIC_DISPATCHER:
		exchange_table(a, utf8, ret);
		break;
	case MB_TOPIC_OOM:
		remedy_table(a, utf8, ret);
		break;
	case MB_TOPIC_COUNT:
		break;
	}
}
