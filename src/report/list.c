#include "report/list.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "report/json.h"
#include "report/number.h"

const char *const mb_list_kinds[] = { "models", "hardware", "stacks", "rules", "keys", NULL };

bool mb_list_fill(struct mb_list *list, const char *kind, struct mb_library *library, struct mb_diags *diags)
{
	int before = diags->errors;

	list->kind = kind;
	if (strcmp(kind, "models") == 0)
		mb_list_models(list, library, diags);
	else if (strcmp(kind, "hardware") == 0)
		mb_list_hardware(list, library, diags);
	else if (strcmp(kind, "stacks") == 0)
		mb_list_stacks(list, library, diags);
	else if (strcmp(kind, "rules") == 0)
		mb_list_rules(list);
	else
		mb_list_keys(list);
	return diags->errors == before;
}

struct mb_list_item *mb_list_add(struct mb_list *list)
{
	if (list->count == list->room) {
		int room = list->room ? 2 * list->room : 64;
		struct mb_list_item *items = mb_arena_alloc(list->arena, (size_t)room * sizeof *items);

		if (list->count)
			memcpy(items, list->items, (size_t)list->count * sizeof *items);
		list->items = items;
		list->room = room;
	}
	return &list->items[list->count++];
}

void mb_list_word(struct mb_list *list, struct mb_list_item *item, const char *key, const char *head, const char *text)
{
	const char *kept = text && text[0] ? mb_arena_strdup(list->arena, text) : NULL;

	if (item->count < MB_LIST_FIELDS)
		item->fields[item->count++] = (struct mb_list_field){ .key = key,
			                                              .head = head,
			                                              .unit = "",
			                                              .type = MB_LIST_TEXT,
			                                              .align = MB_LEFT,
			                                              .text = kept,
			                                              .shown = kept ? kept : "-" };
}

static const char *default_shown(struct mb_arena *arena, enum mb_list_type type, double value)
{
	if (type == MB_LIST_BOOL)
		return value != 0 ? "yes" : "no";
	return mb_arena_strdup(arena, type == MB_LIST_INT ? mb_number_count(value).s : mb_number_3(value).s);
}

void mb_list_number(struct mb_list *list, struct mb_list_item *item, const char *key, const char *head,
                    const char *unit, enum mb_list_type type, double value, const char *shown)
{
	if (item->count == MB_LIST_FIELDS)
		return;
	item->fields[item->count++] = (struct mb_list_field){
		.key = key, .head = head, .unit = unit, .type = type, .align = MB_DECIMAL, .text = "", .number = value,
		.shown = shown ? mb_arena_strdup(list->arena, shown) : default_shown(list->arena, type, value),
	};
}

static bool item_has(const struct mb_list_item *item, const char *word)
{
	for (int i = 0; i < item->count; i++) {
		if (item->fields[i].type == MB_LIST_TEXT && item->fields[i].text &&
		    strcasestr(item->fields[i].text, word))
			return true;
	}
	return false;
}

/* The name, or the short name of a key. */
static bool item_is(const struct mb_list_item *item, const char *word)
{
	for (int i = 0; i < item->count; i++) {
		const struct mb_list_field *f = &item->fields[i];

		if ((i == 0 || strcmp(f->key, "short") == 0) && f->text && strcasecmp(f->text, word) == 0)
			return true;
	}
	return false;
}

void mb_list_filter(struct mb_list *list, char *const *words, int count)
{
	int kept = 0;

	for (int i = 0; count == 1 && i < list->count; i++) {
		if (item_is(&list->items[i], words[0])) {
			list->items[0] = list->items[i];
			list->count = 1;
			list->exact = true;
			return;
		}
	}
	for (int i = 0; i < list->count; i++) {
		bool all = true;

		for (int w = 0; w < count; w++)
			all = all && item_has(&list->items[i], words[w]);
		if (all)
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
}

/* A column of the table: it has a heading, and some item has something to say. */
static bool is_column(const struct mb_list *list, int field)
{
	if (!list->items[0].fields[field].head)
		return false;
	for (int i = 0; i < list->count; i++) {
		if (strcmp(list->items[i].fields[field].shown, "-") != 0)
			return true;
	}
	return false;
}

static void build_table(const struct mb_list *list, struct mb_table *t)
{
	bool column[MB_LIST_FIELDS] = { false };

	for (int i = 0; i < list->items[0].count; i++) {
		const struct mb_list_field *f = &list->items[0].fields[i];

		column[i] = is_column(list, i);
		if (column[i])
			mb_table_column(t, f->head, f->unit, f->align, 0);
	}
	for (int i = 0; i < list->count; i++) {
		mb_table_row(t, MB_INK_PLAIN);
		for (int k = 0; k < list->items[i].count; k++) {
			if (column[k])
				mb_table_cell(t, list->items[i].fields[k].shown);
		}
	}
}

static void print_item(const struct mb_list_item *item, const struct mb_style *s, struct mb_text *ret)
{
	enum { NAME = 24 };

	for (int i = 0; i < item->count; i++) {
		const struct mb_list_field *f = &item->fields[i];
		int width = (int)strlen(f->key);

		mb_ink(ret, s, MB_INK_DIM, f->key);
		mb_text_pad(ret, ' ', width < NAME ? NAME - width : 1);
		struct mb_text value = { 0 };

		mb_text_printf(&value, "%s%s%s", f->shown, f->unit[0] && f->type != MB_LIST_TEXT ? " " : "", f->unit);
		mb_wrap(ret, s, NAME, NAME, value.data);
		mb_text_free(&value);
	}
}

void mb_list_text(struct mb_list *list, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_table table = { .arena = list->arena };

	if (list->count == 0) {
		mb_text_printf(ret, "no such %s; all: mbsim list %s\n", list->kind, list->kind);
		return;
	}
	if (list->exact) {
		print_item(&list->items[0], s, ret);
		return;
	}
	build_table(list, &table);
	table.columns[table.column_count - 1].clip = s->colour;
	mb_table_print(&table, s, ret);
}

void mb_list_markdown(struct mb_list *list, struct mb_text *ret)
{
	struct mb_table table = { .arena = list->arena };

	if (list->count == 0)
		return;
	build_table(list, &table);
	mb_table_markdown(&table, ret);
}

static void add_field(cJSON *o, const struct mb_list_field *f)
{
	if (!f->text) {
		mb_json_null(o, f->key);
		return;
	}
	switch (f->type) {
	case MB_LIST_TEXT:
		mb_json_text(o, f->key, f->text);
		break;
	case MB_LIST_INT:
		mb_json_bytes(o, f->key, f->number);
		break;
	case MB_LIST_NUMBER:
		mb_json_number(o, f->key, f->number);
		break;
	case MB_LIST_BOOL:
		mb_json_bool(o, f->key, f->number != 0);
		break;
	}
}

void mb_list_json(const struct mb_list *list, struct mb_text *ret)
{
	cJSON *document = mb_json_document("mbsim.list/1");

	mb_json_text(document, "kind", list->kind);
	cJSON *items = mb_json_array(document, "items");

	for (int i = 0; i < list->count; i++) {
		cJSON *o = mb_json_object(items, NULL);

		for (int k = 0; k < list->items[i].count; k++)
			add_field(o, &list->items[i].fields[k]);
	}
	mb_json_write(document, true, ret);
}

void mb_list_csv(const struct mb_list *list, struct mb_text *ret)
{
	for (int i = -1; i < list->count && list->count > 0; i++) {
		const struct mb_list_item *item = &list->items[i < 0 ? 0 : i];

		for (int k = 0; k < item->count; k++) {
			const struct mb_list_field *f = &item->fields[k];
			char number[40] = "";

			if (i >= 0 && f->type == MB_LIST_BOOL)
				snprintf(number, sizeof number, "%s", f->number != 0 ? "true" : "false");
			else if (i >= 0 && f->type != MB_LIST_TEXT)
				mb_shortest(f->number, number, sizeof number);
			mb_text_add(ret, k ? "," : "");
			mb_csv_field(ret, i < 0 ? f->key : f->type == MB_LIST_TEXT ? (f->text ? f->text : "") : number);
		}
		mb_text_add(ret, "\n");
	}
}
