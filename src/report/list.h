/* What is shipped and known, as one list of items with named fields. */
#ifndef MBSIM_REPORT_LIST_H
#define MBSIM_REPORT_LIST_H

#include "desc/library.h"
#include "report/style.h"
#include "report/table.h"

enum mb_list_type { MB_LIST_TEXT, MB_LIST_INT, MB_LIST_NUMBER, MB_LIST_BOOL };

enum { MB_LIST_FIELDS = 20 };

struct mb_list_field {
	const char *key;                /* in JSON and in the view of one item */
	const char *head, *unit;        /* of the table; head NULL: only in the view of one item */
	enum mb_list_type type;
	enum mb_align align;
	const char *text;               /* NULL: unknown */
	double number;
	const char *shown;              /* how the table prints it */
};

struct mb_list_item {
	struct mb_list_field fields[MB_LIST_FIELDS];
	int count;
};

struct mb_list {
	struct mb_arena *arena;
	const char *kind;
	struct mb_list_item *items;
	int count, room;
	bool exact;                     /* one item was asked for by its name */
};

/* Kinds, ending with NULL: models, hardware, stacks, rules, keys. */
extern const char *const mb_list_kinds[];

/* Fills the list of a kind that is one of mb_list_kinds. A file that cannot be read is reported and left out. */
bool mb_list_fill(struct mb_list *list, const char *kind, struct mb_library *library, struct mb_diags *diags);

/* Keeps items in which every word occurs; a single word that is an item's name keeps that item alone. */
void mb_list_filter(struct mb_list *list, char *const *words, int count);

void mb_list_text(struct mb_list *list, const struct mb_style *s, struct mb_text *ret);
void mb_list_json(const struct mb_list *list, struct mb_text *ret);
void mb_list_csv(const struct mb_list *list, struct mb_text *ret);
void mb_list_markdown(struct mb_list *list, struct mb_text *ret);

/* For the kinds: a new item, then its fields. `shown` NULL: as the value. */
struct mb_list_item *mb_list_add(struct mb_list *list);
void mb_list_word(struct mb_list *list, struct mb_list_item *item, const char *key, const char *head, const char *text);
void mb_list_number(struct mb_list *list, struct mb_list_item *item, const char *key, const char *head,
                    const char *unit, enum mb_list_type type, double value, const char *shown);

void mb_list_models(struct mb_list *list, struct mb_library *library, struct mb_diags *diags);
void mb_list_hardware(struct mb_list *list, struct mb_library *library, struct mb_diags *diags);
void mb_list_stacks(struct mb_list *list, struct mb_library *library, struct mb_diags *diags);
void mb_list_rules(struct mb_list *list);
void mb_list_keys(struct mb_list *list);

#endif
