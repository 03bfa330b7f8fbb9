#include "report/changes.h"

#include <stdio.h>
#include <string.h>

#include "report/json.h"

static void value_words(const struct mb_query *q, struct mb_run *run, const struct mb_changes *c, int i, char *text, size_t size)
{
	const struct mb_key *key = &mb_keys[c->key[i]];
	char value[2048];
	size_t n = 0;

	mb_key_put(run, key, c->value[i]);
	mb_key_format(&q->c, run, key, value, sizeof value);
	for (const char *v = value; *v && n + 1 < size; v++) {
		if (*v != ' ' || key->type == MB_KEY_LAYOUT)
			text[n++] = *v;
	}
	text[n] = '\0';
}

static void environment_words(const struct mb_changes *c, int which, char *text, size_t size)
{
	text[0] = '\0';
	if (which == 0 && c->max_connections)
		snprintf(text, size, "CUDA_DEVICE_MAX_CONNECTIONS=%d", c->max_connections);
	else if (which == 1 && c->expandable)
		snprintf(text, size, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

void mb_changes_words(struct mb_text *t, const struct mb_query *q, const struct mb_changes *c, bool quoted)
{
	struct mb_run run = q->c.run;
	const char *gap = "";

	for (int i = 0; i < c->count; i++) {
		const struct mb_key *key = &mb_keys[c->key[i]];
		char value[2048], word[2200];

		value_words(q, &run, c, i, value, sizeof value);
		snprintf(word, sizeof word, "%s=%s", key->short_name ? key->short_name : key->name, value);
		mb_text_add(t, gap);
		if (quoted)
			mb_shell_word(t, word);
		else
			mb_text_add(t, word);
		gap = " ";
	}
	for (int which = 0; which < 2; which++) {
		char word[96];

		environment_words(c, which, word, sizeof word);
		if (!word[0])
			continue;
		mb_text_printf(t, "%s%s", gap, word);
		gap = " ";
	}
}

/* Bytes of the words that go into one row: whole words, at least one; a long list breaks behind a comma. */
static size_t row_length(const char *words)
{
	size_t n = strcspn(words, " ");

	if (n > MB_CHANGES_WIDTH) {
		for (size_t at = MB_CHANGES_WIDTH; at > 8; at--) {
			if (words[at - 1] == ',')
				return at;
		}
		return n;
	}
	while (words[n] == ' ' && n + 1 + strcspn(words + n + 1, " ") <= MB_CHANGES_WIDTH)
		n += 1 + strcspn(words + n + 1, " ");
	return n;
}

const char *mb_changes_first(struct mb_table *t, const char *words)
{
	return mb_arena_strndup(t->arena, words, row_length(words));
}

void mb_changes_rows(struct mb_table *t, int column, const char *words, enum mb_ink ink)
{
	for (words += row_length(words); *words; words += row_length(words)) {
		words += strspn(words, " ");
		mb_table_row(t, MB_INK_PLAIN);
		for (int i = 0; i < column; i++)
			mb_table_cell(t, "");
		mb_table_cell_ink(t, ink, mb_arena_printf(t->arena, "  %s", mb_changes_first(t, words)));
	}
}

void mb_changes_lines(struct mb_text *t, const struct mb_query *q, const struct mb_changes *c)
{
	struct mb_run run = q->c.run;

	for (int i = 0; i < c->count; i++) {
		const struct mb_key *key = &mb_keys[c->key[i]];
		char value[2048];
		size_t length;

		value_words(q, &run, c, i, value, sizeof value);
		length = strlen(value);
		if (key->type == MB_KEY_SET && value[0] == '[' && length > 2) {
			value[length - 1] = '\0';
			for (char *v = value; *v; v++)
				*v = *v == ',' ? '+' : *v;
			mb_text_printf(t, "%s=%s\n", key->name, value + 1);
		} else {
			mb_text_printf(t, "%s=%s\n", key->name, strcmp(value, "[]") == 0 ? "none" : value);
		}
	}
	for (int which = 0; which < 2; which++) {
		char word[96];

		environment_words(c, which, word, sizeof word);
		if (word[0])
			mb_text_printf(t, "%s\n", word);
	}
}

void mb_json_changes(cJSON *o, const char *name, const struct mb_query *q, const struct mb_changes *c)
{
	struct mb_run run = q->c.run;
	cJSON *changes = mb_json_object(o, name);

	for (int i = 0; i < c->count; i++) {
		mb_key_put(&run, &mb_keys[c->key[i]], c->value[i]);
		mb_json_key(changes, &q->c, &run, &mb_keys[c->key[i]]);
	}
	if (c->max_connections || c->expandable) {
		cJSON *environment = mb_json_object(changes, "environment");

		if (c->max_connections)
			mb_json_int(environment, "CUDA_DEVICE_MAX_CONNECTIONS", c->max_connections);
		if (c->expandable)
			mb_json_text(environment, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
	}
}
