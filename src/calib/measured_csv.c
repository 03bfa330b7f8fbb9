/* Measured runs as a table: a heading of run keys and measured quantities, a run a line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "calib/measured.h"

enum { MAX_FIELDS = 128 };

struct fields {
	char *text[MAX_FIELDS];
	int count;
};

/* Splits a line in place, quotes as in RFC 4180 but without line breaks. False when there are too many fields. */
static bool split(char *line, struct fields *ret)
{
	ret->count = 0;
	for (char *p = line;;) {
		char *start = p, *w = p;

		if (ret->count == MAX_FIELDS)
			return false;
		if (*p == '"') {
			for (p++; *p && !(*p == '"' && p[1] != '"'); p++) {
				p += *p == '"';
				*w++ = *p;
			}
			p += *p == '"';
			p += strcspn(p, ",");
		} else {
			p += strcspn(p, ",");
			w = p;
		}
		bool last = *p == '\0';

		*w = '\0';
		ret->text[ret->count++] = start + strspn(start, " \t");
		for (size_t n = strlen(start); n > 0 && strchr(" \t\r", start[n - 1]); n--)
			start[n - 1] = '\0';
		if (last)
			return true;
		p++;
	}
}

static int measure_of(const char *name)
{
	for (int i = 0; i < MB_M_COUNT; i++) {
		if (strcmp(name, mb_measure_rows[i].json) == 0)
			return i;
	}
	return -1;
}

/* Values are YAML as on the command line; only text that would break the mapping is quoted. */
static void add_value(struct mb_text *run, const char *key, const char *value)
{
	bool list = value[0] == '[' || value[0] == '{';

	mb_text_printf(run, "%s%s: ", run->length > 1 ? ", " : "", key);
	if (list || !strpbrk(value, ",:#{}[]&*!|>'\"%@`")) {
		mb_text_add(run, value);
		return;
	}
	mb_text_add(run, "'");
	for (const char *c = value; *c; c++)
		mb_text_add(run, *c == '\'' ? "''" : (char[]){ *c, '\0' });
	mb_text_add(run, "'");
}

static bool take_line(const struct fields *head, const struct fields *line, struct mb_pos at, struct mb_measured *row,
                      struct mb_arena *arena, struct mb_diags *diags)
{
	struct mb_text run = { 0 };
	bool ok = true;

	mb_text_add(&run, "{");
	for (int i = 0; ok && i < head->count && i < line->count; i++) {
		const char *name = head->text[i], *value = line->text[i], *end;
		int measure = measure_of(name);

		if (value[0] == '\0')
			continue;
		if (strcmp(name, "id") == 0)
			row->id = mb_arena_strdup(arena, value);
		else if (strcmp(name, "source") == 0)
			row->source = mb_arena_strdup(arena, value);
		else if (measure < 0)
			add_value(&run, name, value);
		else if (!mb_parse_number(value, &end, &row->value[measure]) || *end != '\0' || row->value[measure] <= 0)
			ok = mb_fail(diags, at, "%s: '%.60s' is not a positive number", name, value);
	}
	mb_text_add(&run, "}");
	if (ok)
		mb_measured_run(row, arena, run.data);
	mb_text_free(&run);
	return ok;
}

bool mb_measured_csv(const char *text, const char *name, struct mb_measured_set *set, struct mb_diags *diags)
{
	char *copy = mb_arena_strdup(set->arena, text);
	struct fields head = { .count = 0 }, line;
	int number = 0;

	for (char *p = copy, *next; *p; p = next) {
		size_t length = strcspn(p, "\n");
		struct mb_pos at = { name, ++number, 1 };

		next = p + length + (p[length] == '\n');
		p[length] = '\0';
		if (strspn(p, " \t\r") == length)
			continue;
		if (!split(p, &line))
			return mb_fail(diags, at, "more than %d columns", MAX_FIELDS);
		if (head.count == 0) {
			head = line;
			continue;
		}
		if (line.count != head.count)
			return mb_fail(diags, at, "%d fields under a heading of %d", line.count, head.count);
		struct mb_measured *row = mb_measured_add(set);

		row->id = mb_arena_printf(set->arena, "line %d", number);
		row->source = name;
		row->configured = true;
		row->pos = at;
		if (!take_line(&head, &line, at, row, set->arena, diags))
			return false;
	}
	return true;
}
