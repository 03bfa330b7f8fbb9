#include "report/sweep_export.h"

#include <stdio.h>
#include <string.h>

#include "report/json.h"
#include "report/number.h"
#include "report/table.h"

struct export {
	struct mb_store *store;
	const struct mb_store_grid *grid;
	cJSON *head, *keys;
};

struct row {
	struct mb_arena arena;
	cJSON *settings, *document;
};

static const char *const facts[] = { "model", "hardware", "stack" };
static const char *const run_keys[] = { "gpus", "seq_length", "global_batch_size", "precision", "task" };
static const char *const results[] = {
	"step_s", "low_s", "high_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu", "peak_allocated_bytes", "device_used_bytes",
	"margin_bytes", "usable_bytes",
};

enum { FACTS = 3, RUN_KEYS = 5, RESULTS = 10 };

static void begin(struct export *x, struct mb_store *store, const struct mb_store_grid *grid)
{
	*x = (struct export){ .store = store, .grid = grid, .head = cJSON_Parse(grid->head) };
	x->keys = cJSON_GetObjectItem(x->head, "keys");
}

/* False: the cell is not finished. */
static bool read_row(const struct export *x, int i, struct row *ret)
{
	const char *text;

	*ret = (struct row){ 0 };
	text = mb_store_document(x->store, x->grid->keys[i], &ret->arena);
	ret->document = text ? cJSON_Parse(text) : NULL;
	ret->settings = text ? cJSON_Parse(x->grid->settings[i]) : NULL;
	return ret->document != NULL;
}

static void drop_row(struct row *r)
{
	cJSON_Delete(r->document);
	cJSON_Delete(r->settings);
	mb_arena_free(&r->arena);
}

static bool is_setting(const struct export *x, const char *key)
{
	const cJSON *name;

	cJSON_ArrayForEach(name, x->keys) {
		if (name->valuestring && strcmp(name->valuestring, key) == 0)
			return true;
	}
	return false;
}

/* A value as text: words bare, lists in YAML's flow form. */
static void add_value(struct mb_text *t, const cJSON *v)
{
	struct mb_text text = { 0 };
	char number[40];

	if (cJSON_IsString(v)) {
		mb_csv_field(t, v->valuestring);
	} else if (cJSON_IsNumber(v)) {
		mb_shortest(v->valuedouble, number, sizeof number);
		mb_text_add(t, number);
	} else if (cJSON_IsBool(v)) {
		mb_text_add(t, cJSON_IsTrue(v) ? "true" : "false");
	} else if (cJSON_IsArray(v)) {
		const cJSON *item;
		const char *separator = "[";

		cJSON_ArrayForEach(item, v) {
			mb_text_add(&text, separator);
			add_value(&text, item);
			separator = ", ";
		}
		mb_text_add(&text, v->child ? "]" : "[]");
		mb_csv_field(t, text.data);
		mb_text_free(&text);
	}
}

/* What the run came to have, rather than what was asked: "auto" or "1,2" says little. */
static const cJSON *setting_value(const struct export *x, const struct row *r, int k)
{
	const cJSON *name = cJSON_GetArrayItem(x->keys, k);
	const cJSON *run = cJSON_GetObjectItem(r->document, "run");
	const cJSON *found = name ? cJSON_GetObjectItem(run, name->valuestring) : NULL;

	return found && !cJSON_IsNull(cJSON_GetObjectItem(r->document, "result")) && !cJSON_IsNull(found) ? found : cJSON_GetArrayItem(r->settings, k);
}

static void csv_head(const struct export *x, struct mb_text *ret)
{
	const cJSON *name;

	mb_text_add(ret, "cell");
	cJSON_ArrayForEach(name, x->keys) {
		mb_text_add(ret, ",");
		mb_csv_field(ret, name->valuestring);
	}
	for (int i = 0; i < FACTS + RUN_KEYS; i++) {
		const char *key = i < FACTS ? facts[i] : run_keys[i - FACTS];

		if (!is_setting(x, key))
			mb_text_printf(ret, ",%s", key);
	}
	mb_text_add(ret, ",verdict,reason");
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (mb_keys[id].open && !is_setting(x, mb_keys[id].name))
			mb_text_printf(ret, ",%s", mb_keys[id].name);
	}
	for (int i = 0; i < RESULTS; i++)
		mb_text_printf(ret, ",%s", results[i]);
	mb_text_add(ret, ",price_usd_per_gpu_h,usd_per_step\n");
}

static void add_field(struct mb_text *t, const cJSON *v)
{
	mb_text_add(t, ",");
	add_value(t, v);
}

static double number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static double usd_per_step(const struct row *r)
{
	return number(r->document, "price_usd_per_gpu_h") * number(r->document, "gpus") * number(cJSON_GetObjectItem(r->document, "result"), "step_s")
	       / 3600;
}

static void csv_row(const struct export *x, const struct row *r, int i, struct mb_text *ret)
{
	const cJSON *run = cJSON_GetObjectItem(r->document, "run"), *plan = cJSON_GetObjectItem(r->document, "plan");
	const cJSON *result = cJSON_GetObjectItem(r->document, "result");
	double price = number(r->document, "price_usd_per_gpu_h");
	char text[40];

	mb_text_printf(ret, "%d", i + 1);
	for (int k = 0; k < cJSON_GetArraySize(x->keys); k++)
		add_field(ret, setting_value(x, r, k));
	for (int k = 0; k < FACTS; k++) {
		if (!is_setting(x, facts[k]))
			add_field(ret, cJSON_GetObjectItem(r->document, facts[k]));
	}
	for (int k = 0; k < RUN_KEYS; k++) {
		if (!is_setting(x, run_keys[k]))
			add_field(ret, cJSON_GetObjectItem(run, run_keys[k]));
	}
	add_field(ret, cJSON_GetObjectItem(r->document, "verdict"));
	add_field(ret, cJSON_GetObjectItem(r->document, "reason"));
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (mb_keys[id].open && !is_setting(x, mb_keys[id].name))
			add_field(ret, cJSON_GetObjectItem(plan, mb_keys[id].name));
	}
	for (int k = 0; k < RESULTS; k++)
		add_field(ret, cJSON_GetObjectItem(result, results[k]));
	mb_text_add(ret, ",");
	mb_shortest(price, text, sizeof text);
	mb_text_add(ret, price > 0 ? text : "");
	mb_shortest(usd_per_step(r), text, sizeof text);
	mb_text_printf(ret, ",%s\n", usd_per_step(r) > 0 ? text : "");
}

void mb_sweep_csv(struct mb_store *store, const struct mb_store_grid *grid, struct mb_text *ret)
{
	struct export x;
	struct row r;

	begin(&x, store, grid);
	csv_head(&x, ret);
	for (int i = 0; i < grid->count; i++) {
		if (read_row(&x, i, &r))
			csv_row(&x, &r, i, ret);
		drop_row(&r);
	}
	cJSON_Delete(x.head);
}

void mb_sweep_jsonl(struct mb_store *store, const struct mb_store_grid *grid, struct mb_text *ret)
{
	static const char *const parts[] = { "model", "hardware", "stack", "gpus", "verdict", "reason", "plan", "result", "time", "run" };
	struct export x;
	struct row r;

	begin(&x, store, grid);
	for (int i = 0; i < grid->count; i++) {
		if (read_row(&x, i, &r)) {
			cJSON *o = mb_json_document("mbsim.row/1"), *settings;

			mb_json_int(o, "cell", i + 1);
			settings = mb_json_object(o, "settings");
			for (int k = 0; k < cJSON_GetArraySize(x.keys); k++)
				cJSON_AddItemToObject(settings, cJSON_GetArrayItem(x.keys, k)->valuestring,
				                      cJSON_Duplicate(cJSON_GetArrayItem(r.settings, k), true));
			for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
				cJSON_AddItemToObject(o, parts[k], cJSON_DetachItemFromObject(r.document, parts[k]));
			mb_json_write(o, false, ret);
		}
		drop_row(&r);
	}
	cJSON_Delete(x.head);
}

static const char *shown(struct mb_arena *arena, const cJSON *v)
{
	struct mb_text t = { 0 };
	const char *text;

	if (cJSON_IsString(v))          /* quotes are CSV's */
		return mb_arena_strdup(arena, v->valuestring);
	mb_text_add(&t, "");
	add_value(&t, v);
	text = mb_arena_strdup(arena, t.data);
	mb_text_free(&t);
	return text;
}

static void markdown_row(const struct export *x, const struct row *r, struct mb_table *t)
{
	const cJSON *result = cJSON_GetObjectItem(r->document, "result");
	bool any = cJSON_IsObject(result);
	struct mb_number n[4] = { 0 };

	mb_table_row(t, MB_INK_PLAIN);
	for (int k = 0; k < cJSON_GetArraySize(x->keys) && k < MB_MAX_COLUMNS - 6; k++)
		mb_table_cell(t, shown(t->arena, setting_value(x, r, k)));
	mb_table_cell(t, shown(t->arena, cJSON_GetObjectItem(r->document, "verdict")));
	if (any) {
		n[0] = mb_number_3(number(result, "step_s"));
		n[1] = mb_number_count(number(result, "tokens_per_s_per_gpu"));
		n[2] = mb_number_gib(number(result, "peak_allocated_bytes"));
		n[3] = mb_number_fixed(number(result, "margin_bytes") / MB_GIB, 1);
	}
	for (int k = 0; k < 4; k++)
		mb_table_cell(t, any ? mb_arena_strdup(t->arena, n[k].s) : "-");
	mb_table_cell(t, shown(t->arena, cJSON_GetObjectItem(r->document, any ? "words" : "reason")));
}

void mb_sweep_markdown(struct mb_store *store, const struct mb_store_grid *grid, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };
	struct export x;
	struct row r;

	begin(&x, store, grid);
	for (int k = 0; k < cJSON_GetArraySize(x.keys) && k < MB_MAX_COLUMNS - 6; k++)
		mb_table_column(&table, mb_arena_strdup(&arena, cJSON_GetArrayItem(x.keys, k)->valuestring), "", MB_LEFT, 0);
	mb_table_column(&table, "verdict", "", MB_LEFT, 0);
	mb_table_column(&table, "step", "s", MB_DECIMAL, 0);
	mb_table_column(&table, "tokens/s/GPU", "", MB_RIGHT, 0);
	mb_table_column(&table, "peak", "GiB", MB_DECIMAL, 0);
	mb_table_column(&table, "free", "GiB", MB_DECIMAL, 0);
	mb_table_column(&table, "plan", "", MB_LEFT, 0);
	for (int i = 0; i < grid->count; i++) {
		if (read_row(&x, i, &r))
			markdown_row(&x, &r, &table);
		drop_row(&r);
	}
	mb_table_markdown(&table, ret);
	cJSON_Delete(x.head);
	mb_arena_free(&arena);
}
