/* Sections 3 to 5: the plan with its memory and its step, the front it was chosen from, and what would change it. */
#include "report/html_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/cost.h"

static const struct { const char *letter, *label; } families[] = {
	{ "W", "weights" }, { "G", "gradients" }, { "O", "optimizer" }, { "A", "activations" }, { "L", "loss" }, { "X", "workspace, copies" },
};

enum { FAMILIES = 6, MAX_BARS = 64 };

/* A value as it stands in a run file. */
static const char *shown(struct mb_report *r, const cJSON *v)
{
	struct mb_text t = { 0 };
	const char *ret, *separator = "";
	const cJSON *item;

	if (cJSON_IsString(v))
		return mb_arena_strdup(r->page->arena, v->valuestring);
	if (cJSON_IsNull(v) || !v)
		return "null";
	if (cJSON_IsBool(v))
		return cJSON_IsTrue(v) ? "true" : "false";
	if (cJSON_IsNumber(v))
		return mb_arena_printf(r->page->arena, "%.10g", v->valuedouble);
	mb_text_add(&t, "[");
	cJSON_ArrayForEach(item, v) {
		mb_text_printf(&t, "%s%s", separator, shown(r, item));
		separator = ", ";
	}
	mb_text_add(&t, "]");
	ret = mb_arena_strdup(r->page->arena, t.data);
	mb_text_free(&t);
	return ret;
}

/* Keys whose value is not the framework's default; sizes always. */
static void add_keys(struct mb_report *r)
{
	const cJSON *plan = cJSON_GetObjectItem(mb_report_chosen(r)->document, "plan");
	struct mb_block *b;
	struct mb_table *t = mb_page_table(r->page);

	mb_report_column(t, "key", "", MB_LEFT);
	mb_report_column(t, "value", "", MB_LEFT);
	mb_report_column(t, "what it does", "", MB_LEFT);
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		const struct mb_key *key = &mb_keys[id];
		const char *value = key->open ? shown(r, cJSON_GetObjectItem(plan, key->name)) : "null";
		bool size = id >= MB_K_tp && id <= MB_K_mbs;

		if (!key->open || (!size && (strcmp(value, key->bridge_default) == 0 || strcmp(value, "null") == 0 || strcmp(value, "[]") == 0)))
			continue;
		mb_table_row(t, MB_INK_PLAIN);
		mb_report_cell(t, "`%s`", key->name);
		mb_report_cell(t, "%s", value);
		mb_report_cell(t, "%s", key->doc);
	}
	b = mb_page_add(r->page, MB_BLOCK_TABLE, NULL);
	b->table = t;
}

static void begin_bars(struct mb_block *b, const char *x, const char *first)
{
	cJSON_AddStringToObject(b->chart, "x", x);
	cJSON_AddItemToObject(b->chart, "labels", cJSON_CreateArray());
	cJSON_AddItemToObject(b->chart, "series", cJSON_CreateArray());
	cJSON_AddNumberToObject(b->chart, "rowHeight", 26);
	mb_report_column(b->table, first, "", MB_LEFT);
}

static cJSON *add_bar_series(struct mb_block *b, const char *label, int hue)
{
	cJSON *one = cJSON_CreateObject();

	cJSON_AddStringToObject(one, "label", label);
	cJSON_AddNumberToObject(one, "hue", hue);
	cJSON_AddItemToObject(one, "values", cJSON_CreateArray());
	cJSON_AddItemToArray(cJSON_GetObjectItem(b->chart, "series"), one);
	return cJSON_GetObjectItem(one, "values");
}

static void add_memory(struct mb_report *r)
{
	const cJSON *document = mb_report_chosen(r)->document, *stages = cJSON_GetObjectItem(document, "stages"), *stage;
	double usable = mb_capacity_number(cJSON_GetObjectItem(document, "result"), "usable_bytes");
	int peak = (int)mb_capacity_number(document, "peak_stage"), i = 0;
	const cJSON *worst = cJSON_GetArrayItem(stages, peak);
	struct mb_block *b = mb_report_chart(r, "memory", "bars", mb_arena_printf(r->page->arena,
		"Stage %d is fullest: %s of %s GiB, at the %s", peak, mb_number_gib(mb_capacity_number(worst, "peak_allocated_bytes")).s,
		mb_number_gib(usable).s, mb_capacity_text(worst, "peak_phase")));
	cJSON *values[FAMILIES], *line = cJSON_AddObjectToObject(b->chart, "line");

	begin_bars(b, "GiB", "stage");
	cJSON_AddNumberToObject(line, "value", usable / MB_GIB);
	cJSON_AddStringToObject(line, "label", mb_arena_printf(r->page->arena, "usable %s GiB", mb_number_gib(usable).s));
	for (int f = 0; f < FAMILIES; f++) {
		values[f] = add_bar_series(b, families[f].label, f);
		mb_report_column(b->table, families[f].label, "GiB", MB_RIGHT);
	}
	mb_report_column(b->table, "peak", "GiB", MB_RIGHT);
	cJSON_ArrayForEach(stage, stages) {
		if (i >= MAX_BARS)
			break;
		cJSON_AddItemToArray(cJSON_GetObjectItem(b->chart, "labels"), cJSON_CreateString(mb_arena_printf(r->page->arena, "stage %d", i)));
		mb_table_row(b->table, i == peak ? MB_INK_BOLD : MB_INK_PLAIN);
		mb_report_cell(b->table, "%d", i++);
		for (int f = 0; f < FAMILIES; f++) {
			double bytes = mb_capacity_number(stage, families[f].letter);

			cJSON_AddItemToArray(values[f], cJSON_CreateNumber(bytes / MB_GIB));
			mb_report_cell(b->table, "%s", mb_number_gib(bytes).s);
		}
		mb_report_cell(b->table, "%s", mb_number_gib(mb_capacity_number(stage, "peak_allocated_bytes")).s);
	}
}

static void add_step(struct mb_report *r)
{
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	const cJSON *time = cJSON_GetObjectItem(x->document, "time");
	int largest = 0, hue = 0;
	struct mb_block *b;

	for (int i = 1; i < MB_TIME_COUNT; i++) {
		if (mb_capacity_number(time, mb_time_terms[i].json) > mb_capacity_number(time, mb_time_terms[largest].json))
			largest = i;
	}
	b = mb_report_chart(r, "step", "bars", mb_arena_printf(r->page->arena, "A step takes %s, %s %% of it %s", mb_number_duration(x->step_s).s,
		mb_number_percent(mb_capacity_number(time, mb_time_terms[largest].json) / x->step_s).s, mb_time_terms[largest].label));
	begin_bars(b, "s", "part");
	mb_report_column(b->table, "time", "s", MB_RIGHT);
	mb_report_column(b->table, "share", "%", MB_RIGHT);
	cJSON_AddItemToArray(cJSON_GetObjectItem(b->chart, "labels"), cJSON_CreateString("step"));
	for (int i = 0; i < MB_TIME_COUNT; i++) {
		double seconds = mb_capacity_number(time, mb_time_terms[i].json);

		/* What is left of a difference is no part. */
		if (!(seconds > 1e-6 * x->step_s))
			continue;
		cJSON_AddItemToArray(add_bar_series(b, mb_time_terms[i].label, hue++), cJSON_CreateNumber(seconds));
		mb_table_row(b->table, MB_INK_PLAIN);
		mb_table_cell(b->table, mb_time_terms[i].label);
		mb_report_cell(b->table, "%s", mb_number_3(seconds).s);
		mb_report_cell(b->table, "%s", mb_number_percent(seconds / x->step_s).s);
	}
	mb_table_row(b->table, MB_INK_BOLD);
	mb_table_cell(b->table, "sum");
	mb_report_cell(b->table, "%s", mb_number_3(x->step_s).s);
	mb_table_cell(b->table, "100");
}

void mb_report_plan(struct mb_report *r)
{
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	const cJSON *result = cJSON_GetObjectItem(x->document, "result");

	mb_report_section(r, "plan", "Plan");
	mb_page_printf(r->page, MB_BLOCK_TEXT, "%s: %s (%s to %s) a step, %s tokens/s/GPU, %s TFLOP/s/GPU, MFU %s %%.",
	               mb_capacity_text(x->document, "headline"), mb_number_duration(x->step_s).s, mb_number_duration_like(x->low_s, x->step_s).s,
	               mb_number_duration_like(x->high_s, x->step_s).s, mb_number_count(mb_capacity_number(result, "tokens_per_s_per_gpu")).s,
	               mb_number_count(mb_capacity_number(result, "model_tflops_per_gpu")).s, mb_number_mfu(mb_capacity_number(result, "mfu")).s);
	add_keys(r);
	add_memory(r);
	add_step(r);
}

void mb_report_front(struct mb_report *r)
{
	const cJSON *document = mb_report_chosen(r)->document, *front = cJSON_GetObjectItem(document, "front"), *one;
	const cJSON *knee = cJSON_GetObjectItem(document, "knee");
	int at = cJSON_IsNumber(knee) ? (int)knee->valuedouble : -1, i = 0;
	const cJSON *named = at >= 0 ? cJSON_GetArrayItem(front, at) : NULL;
	struct mb_block *b;
	cJSON *points;

	mb_report_section(r, "front", "Front");
	if (cJSON_GetArraySize(front) < 2) {
		mb_page_add(r->page, MB_BLOCK_TEXT, strcmp(mb_capacity_text(r->c->head, "mode"), "estimate") == 0
		            ? "This sweep estimates given plans: there was no choice between time and memory."
		            : "No plan trades time for memory: the fastest is the smallest too.");
		return;
	}
	b = mb_report_chart(r, "pareto", "front", named ? mb_arena_printf(r->page->arena, "The knee saves %s GiB for %s more time",
		mb_number_gib(mb_capacity_number(cJSON_GetArrayItem(front, 0), "peak_allocated_bytes") - mb_capacity_number(named, "peak_allocated_bytes")).s,
		mb_number_duration(mb_capacity_number(named, "step_s") - mb_capacity_number(cJSON_GetArrayItem(front, 0), "step_s")).s)
		: "Less memory costs time");
	points = cJSON_AddArrayToObject(b->chart, "points");
	cJSON_AddNumberToObject(b->chart, "knee", at);
	cJSON_AddStringToObject(b->chart, "x", "step, s");
	cJSON_AddStringToObject(b->chart, "y", "peak, GiB");
	mb_report_column(b->table, "step", "s", MB_RIGHT);
	mb_report_column(b->table, "peak", "GiB", MB_RIGHT);
	mb_report_column(b->table, "plan", "", MB_LEFT);
	cJSON_ArrayForEach(one, front) {
		double step = mb_capacity_number(one, "step_s"), bytes = mb_capacity_number(one, "peak_allocated_bytes");
		const char *words = mb_capacity_text(one, "words");
		cJSON *point = cJSON_CreateObject();

		cJSON_AddNumberToObject(point, "x", step);
		cJSON_AddNumberToObject(point, "y", bytes / MB_GIB);
		cJSON_AddStringToObject(point, "words", mb_arena_printf(r->page->arena, "%s, %s GiB: %s", mb_number_duration(step).s, mb_number_gib(bytes).s, words));
		cJSON_AddItemToArray(points, point);
		mb_table_row(b->table, i == at ? MB_INK_BOLD : MB_INK_PLAIN);
		mb_report_cell(b->table, "%s", mb_number_3(step).s);
		mb_report_cell(b->table, "%s", mb_number_gib(bytes).s);
		mb_report_cell(b->table, "%s%s", words, i == at ? " (knee)" : "");
		i++;
	}
}

/* ---- what if ---- */

struct question { const char *name, *label, *less, *more; double less_days, more_days; };       /* days 0: does not fit */

static int by_reach(const void *a, const void *b)
{
	const struct question *x = a, *y = b;
	double p = fabs(x->more_days - x->less_days), q = fabs(y->more_days - y->less_days);

	return (p < q) - (p > q);
}

/* Answers of the store in pairs, and goodput, which needs none. */
static int collect(struct mb_report *r, struct question *ret, int max)
{
	static const struct { const char *name, *label; } names[] = {
		{ "hbm", "HBM capacity" }, { "hbm_bandwidth", "HBM bandwidth" }, { "nvlink", "NVLink" }, { "scale_out", "scale-out network" },
		{ "moe_load_imbalance", "expert imbalance" },
	};
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	const cJSON *list = cJSON_GetObjectItem(x->document, "what_if");
	double goodput = r->c->goodput_frac.value, lower = fmax(goodput - 0.1, 0.01), higher = fmin(goodput + 0.05, 1);
	int n = 0;

	for (int i = 0; i + 1 < cJSON_GetArraySize(list) && n < max - 1; i += 2) {
		const cJSON *less = cJSON_GetArrayItem(list, i), *more = cJSON_GetArrayItem(list, i + 1);
		struct question *q = &ret[n++];

		*q = (struct question){ mb_capacity_text(less, "name"), mb_capacity_text(less, "name"), mb_capacity_text(less, "change"),
			mb_capacity_text(more, "change"), x->days * mb_capacity_number(less, "step_s") / x->step_s,
			x->days * mb_capacity_number(more, "step_s") / x->step_s };
		for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
			q->label = strcmp(names[k].name, q->name) == 0 ? names[k].label : q->label;
	}
	ret[n++] = (struct question){ "goodput", "goodput", mb_arena_printf(r->page->arena, "%.2f", lower), mb_arena_printf(r->page->arena, "%.2f", higher),
		x->days * goodput / lower, x->days * goodput / higher };
	return n;
}

static void add_answer(struct mb_report *r, struct mb_table *t, const char *change, double days)
{
	double base = mb_report_chosen(r)->days;

	mb_report_cell(t, "%s", change);
	if (!(days > 0))
		mb_table_cell(t, "does not fit");
	else
		mb_report_cell(t, "%s (%s%s %%)", mb_report_days(days).s, days < base ? "-" : "+", mb_number_percent(fabs(days / base - 1)).s);
}

static cJSON *days_or_null(double days)
{
	return days > 0 ? cJSON_CreateNumber(days) : cJSON_CreateNull();
}

/* Of the question with the largest reach: what does not fit reaches furthest. */
static const char *what_if_finding(struct mb_report *r, const struct question *q)
{
	if (q->less_days > 0 && q->more_days > 0)
		return mb_arena_printf(r->page->arena, "%s moves the end most: %s to %s days", q->label, mb_report_days(fmin(q->less_days, q->more_days)).s,
		                       mb_report_days(fmax(q->less_days, q->more_days)).s);
	return mb_arena_printf(r->page->arena, "%s decides: with %s nothing fits", q->label, q->less_days > 0 ? q->more : q->less);
}

void mb_report_what_if(struct mb_report *r)
{
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	struct question q[16];
	int n = collect(r, q, 16);
	struct mb_block *b;
	cJSON *labels, *less, *more;

	qsort(q, (size_t)n, sizeof q[0], by_reach);
	mb_report_section(r, "what-if", "What if");
	b = mb_report_chart(r, "tornado", "tornado", what_if_finding(r, q));
	labels = cJSON_AddArrayToObject(b->chart, "labels");
	less = cJSON_AddArrayToObject(b->chart, "less");
	more = cJSON_AddArrayToObject(b->chart, "more");
	cJSON_AddStringToObject(b->chart, "x", "days");
	cJSON_AddNumberToObject(b->chart, "base", x->days);
	cJSON_AddStringToObject(b->chart, "lessLabel", "first value");
	cJSON_AddStringToObject(b->chart, "moreLabel", "second value");
	cJSON_AddNumberToObject(b->chart, "rowHeight", 34);
	mb_report_column(b->table, "what", "", MB_LEFT);
	mb_report_column(b->table, "first value", "", MB_LEFT);
	mb_report_column(b->table, "days", "", MB_LEFT);
	mb_report_column(b->table, "second value", "", MB_LEFT);
	mb_report_column(b->table, "days", "", MB_LEFT);
	for (int i = 0; i < n; i++) {
		cJSON_AddItemToArray(labels, cJSON_CreateString(mb_arena_printf(r->page->arena, "%s, %s or %s", q[i].label, q[i].less, q[i].more)));
		cJSON_AddItemToArray(less, days_or_null(q[i].less_days));
		cJSON_AddItemToArray(more, days_or_null(q[i].more_days));
		mb_table_row(b->table, MB_INK_PLAIN);
		mb_table_cell(b->table, q[i].label);
		add_answer(r, b->table, q[i].less, q[i].less_days);
		add_answer(r, b->table, q[i].more, q[i].more_days);
	}
	if (n == 1)
		mb_page_add(r->page, MB_BLOCK_TEXT, "Hardware was not varied in this sweep; `what_if: true` in its file does.");
	else
		mb_page_printf(r->page, MB_BLOCK_TEXT, "For each, %s with that one thing changed. A bar that is missing does not fit.",
		               strcmp(mb_capacity_text(r->c->head, "mode"), "estimate") == 0 ? "the same plan was estimated" : "the best plan was searched again");
	if (x->usd > 0)
		mb_page_printf(r->page, MB_BLOCK_TEXT, "A quarter more or less for the GPU-hour makes it %s or %s; no day changes.", mb_report_usd(x->usd * 1.25).s,
		               mb_report_usd(x->usd * 0.75).s);
}
