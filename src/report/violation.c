#include "report/violation.h"

#include <stdio.h>
#include <string.h>

enum { ID_WIDTH = 13, PLACE_WIDTH = 18 };

enum mb_ink mb_severity_ink(enum mb_rule_severity severity)
{
	switch (severity) {
	case MB_RULE_ERROR:
		return MB_INK_RED;
	case MB_RULE_CHANGED:
	case MB_RULE_WARNING:
		return MB_INK_YELLOW;
	case MB_RULE_IGNORED:
	case MB_RULE_POINTLESS:
		break;
	}
	return MB_INK_DIM;
}

void mb_place(struct mb_text *t, struct mb_pos pos)
{
	if (!pos.file)
		mb_text_add(t, "default");
	else if (pos.line == 0)
		mb_text_printf(t, "%s:%d", pos.file, pos.column);
	else
		mb_text_printf(t, "%s:%d:%d", pos.file, pos.line, pos.column);
}

void mb_fix_words(struct mb_text *t, const struct mb_query *q, const struct mb_fix *fix)
{
	struct mb_run run = q->c.run;

	for (int i = 0; i < fix->count && i < MB_MAX_FIX_KEYS; i++) {
		const struct mb_key *key = &mb_keys[fix->key[i]];
		char value[2048], word[2200], *w = word;

		mb_key_put(&run, key, fix->value[i]);
		mb_key_format(&q->c, &run, key, value, sizeof value);
		w += snprintf(word, sizeof word, "%s=", key->name);
		for (const char *v = value; *v; v++) {
			if (*v != ' ' || key->type == MB_KEY_LAYOUT)
				*w++ = *v;
		}
		*w = '\0';
		mb_text_add(t, i ? " " : "");
		mb_shell_word(t, word);
	}
}

int mb_violation_errors(const struct mb_violation *v, int count)
{
	int errors = 0;

	for (int i = 0; i < count; i++)
		errors += v[i].rule->severity == MB_RULE_ERROR;
	return errors;
}

void mb_violation_counts(struct mb_text *t, const struct mb_violation *v, int count)
{
	static const struct { const char *one, *many; } words[] = {
		[MB_RULE_ERROR] = { "error", "errors" },
		[MB_RULE_CHANGED] = { "setting changed", "settings changed" },
		[MB_RULE_IGNORED] = { "setting ignored", "settings ignored" },
		[MB_RULE_WARNING] = { "warning", "warnings" },
		[MB_RULE_POINTLESS] = { "setting pointless", "settings pointless" },
	};
	const char *comma = "";

	for (int severity = 0; severity <= MB_RULE_POINTLESS; severity++) {
		int n = 0;

		for (int i = 0; i < count; i++)
			n += (int)v[i].rule->severity == severity;
		if (n == 0)
			continue;
		mb_text_printf(t, "%s%d %s", comma, n, n == 1 ? words[severity].one : words[severity].many);
		comma = ", ";
	}
}

static void print_fix(struct mb_text *t, const struct mb_style *s, const struct mb_query *q,
                      const struct mb_violation *v)
{
	struct mb_text first = { 0 }, second = { 0 };

	mb_text_pad(t, ' ', ID_WIDTH);
	if (v->fix.count == 0) {
		mb_text_add(t, v->rule->severity == MB_RULE_ERROR ? "no single key mends this\n" : "nothing to mend\n");
		return;
	}
	mb_fix_words(&first, q, &v->fix);
	mb_text_add(t, "fix: ");
	mb_ink(t, s, MB_INK_CYAN, first.data);
	if (v->alternative.count) {
		mb_fix_words(&second, q, &v->alternative);
		if (ID_WIDTH + 15 + mb_text_width(first.data) + mb_text_width(second.data) > s->width) {
			mb_text_add(t, "\n");
			mb_text_pad(t, ' ', ID_WIDTH);
			mb_text_printf(t, "or:  %s", second.data);
		} else {
			mb_text_printf(t, "    or: %s", second.data);
		}
	}
	mb_text_add(t, "\n");
	mb_text_free(&first);
	mb_text_free(&second);
}

static void print_one(struct mb_text *t, const struct mb_style *s, const struct mb_query *q,
                      const struct mb_violation *v)
{
	struct mb_text head = { 0 }, place = { 0 };
	char value[2048];

	mb_text_printf(&head, "%s %s", mb_rule_severity_names[v->rule->severity], v->rule->id);
	mb_ink(t, s, mb_severity_ink(v->rule->severity), head.data);
	mb_text_pad(t, ' ', ID_WIDTH - mb_text_width(head.data) > 1 ? ID_WIDTH - mb_text_width(head.data) : 1);
	mb_place(&place, v->pos);
	mb_text_add(t, place.data);
	if (v->key_count) {
		const struct mb_key *key = &mb_keys[v->keys[0]];

		mb_key_format(&q->c, &q->c.run, key, value, sizeof value);
		mb_text_pad(t, ' ',
		            PLACE_WIDTH - mb_text_width(place.data) > 2 ? PLACE_WIDTH - mb_text_width(place.data) : 2);
		mb_text_printf(t, "%s: %s", key->name, value);
	}
	mb_text_add(t, "\n");
	mb_text_pad(t, ' ', ID_WIDTH);
	mb_wrap(t, s, ID_WIDTH, ID_WIDTH, v->message);
	if (v->fix.count || v->rule->severity == MB_RULE_ERROR)
		print_fix(t, s, q, v);
	mb_text_free(&head);
	mb_text_free(&place);
}

void mb_violations_print(struct mb_text *t, const struct mb_style *s, const struct mb_query *q,
                         const struct mb_violation *v, int count)
{
	for (int severity = 0; severity <= MB_RULE_POINTLESS; severity++) {
		for (int i = 0; i < count; i++) {
			if ((int)v[i].rule->severity == severity)
				print_one(t, s, q, &v[i]);
		}
	}
}

void mb_warnings_print(struct mb_text *t, const struct mb_style *s, const struct mb_violation *v, int count)
{
	for (int i = 0; i < count; i++) {
		struct mb_text place = { 0 };

		if (v[i].rule->severity == MB_RULE_ERROR)
			continue;
		mb_ink_printf(t, s, mb_severity_ink(v[i].rule->severity), "%s %s",
		              mb_rule_severity_names[v[i].rule->severity], v[i].rule->id);
		if (v[i].pos.file)
			mb_place(&place, v[i].pos);
		int start = (int)strlen(mb_rule_severity_names[v[i].rule->severity]) + (int)strlen(v[i].rule->id) + 3;

		if (place.data) {
			mb_text_printf(t, ": %s", place.data);
			start += mb_text_width(place.data) + 2;
		}
		mb_text_add(t, ": ");
		mb_wrap(t, s, start, 2, v[i].message);
		mb_text_free(&place);
	}
}
