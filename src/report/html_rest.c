/* Sections 7 to 10: energy, launch commands, assumptions, all cells. */
#include "report/html_report.h"

#include <stdio.h>
#include <string.h>

#include "plan/run.h"

void mb_report_energy(struct mb_report *r)
{
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	double tdp = mb_capacity_number(x->document, "tdp_w");

	mb_report_section(r, "energy", "Energy");
	if (!(tdp > 0)) {
		mb_page_add(r->page, MB_BLOCK_TEXT, "The board power of this GPU is unknown.");
		return;
	}
	mb_page_printf(r->page, MB_BLOCK_LEAD, "**%s MWh**, at most: %s GPUs at their board power of %s W for %s days, PUE %s (%s).", mb_number_3(x->mwh).s,
	               mb_number_count(x->gpus).s, mb_number_count(tdp).s, mb_report_days(x->days).s, mb_number_3(r->c->pue.value).s, r->c->pue.from);
	mb_page_printf(r->page, MB_BLOCK_TEXT, "That is %s kW of GPUs, %s kW with the site, and %s kWh for 10^9 tokens. Host CPUs, network and storage come on top.",
	               mb_number_3(x->gpus * tdp / 1e3).s, mb_number_3(x->gpus * tdp * r->c->pue.value / 1e3).s,
	               mb_number_3(x->mwh * 1e3 / (r->c->tokens.value / 1e9)).s);
}

/* ---- launch ---- */

static void add_value(struct mb_text *t, const cJSON *v)
{
	const cJSON *item;
	const char *separator = "";
	char number[40];

	if (cJSON_IsString(v))
		mb_text_add(t, v->valuestring);
	else if (cJSON_IsBool(v))
		mb_text_add(t, cJSON_IsTrue(v) ? "true" : "false");
	else if (cJSON_IsNumber(v) && snprintf(number, sizeof number, "%.15g", v->valuedouble) > 0)
		mb_text_add(t, number);
	else if (!cJSON_IsArray(v))
		mb_text_add(t, "null");
	if (!cJSON_IsArray(v))
		return;
	mb_text_add(t, "[");
	cJSON_ArrayForEach(item, v) {
		mb_text_add(t, separator);
		add_value(t, item);
		separator = ",";
	}
	mb_text_add(t, "]");
}

static void add_argument(struct mb_text *t, const char *key, const cJSON *v)
{
	struct mb_text word = { 0 };

	mb_text_printf(&word, "%s=", key);
	add_value(&word, v);
	mb_text_add(t, " ");
	mb_shell_word(t, word.data);
	mb_text_free(&word);
}

static bool is_default(const struct mb_key *key, const cJSON *v)
{
	struct mb_text t = { 0 };
	bool same;

	mb_text_add(&t, "");
	add_value(&t, v);
	same = strcmp(t.data, key->bridge_default) == 0;
	mb_text_free(&t);
	return same;
}

/* The run as arguments: every key that is not the framework's default, and changed hardware. False: it was given inline. */
static bool add_run(struct mb_report *r, struct mb_text *t)
{
	static const char *const names[] = { "model", "hardware", "stack" };
	const struct mb_capacity_cell *x = mb_report_chosen(r);
	const cJSON *run = cJSON_GetObjectItem(x->document, "run"), *keys = cJSON_GetObjectItem(r->c->head, "keys");
	cJSON *settings = cJSON_Parse(r->c->grid.settings[r->c->chosen]);
	const cJSON *variable;

	for (size_t i = 0; i < 3; i++) {
		if (mb_capacity_text(run, names[i])[0] == '(') {
			cJSON_Delete(settings);
			return false;
		}
		add_argument(t, names[i], cJSON_GetObjectItem(run, names[i]));
	}
	for (int k = 0; k < cJSON_GetArraySize(keys); k++) {
		if (strncmp(cJSON_GetArrayItem(keys, k)->valuestring, "hardware.", 9) == 0)
			add_argument(t, cJSON_GetArrayItem(keys, k)->valuestring, cJSON_GetArrayItem(settings, k));
	}
	cJSON_Delete(settings);
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		const cJSON *v = cJSON_GetObjectItem(run, mb_keys[id].name);

		if (v && !cJSON_IsNull(v) && !is_default(&mb_keys[id], v))
			add_argument(t, mb_keys[id].name, v);
	}
	cJSON_ArrayForEach(variable, cJSON_GetObjectItem(run, "environment"))
		add_argument(t, mb_arena_printf(r->page->arena, "environment.%s", variable->string), variable);
	return true;
}

void mb_report_launch(struct mb_report *r)
{
	struct mb_text run = { 0 };

	mb_report_section(r, "launch", "Launch");
	if (!add_run(r, &run)) {
		mb_page_add(r->page, MB_BLOCK_TEXT, "The model or the hardware of this sweep was given inline: put it into a file of its own to get commands.");
		mb_text_free(&run);
		return;
	}
	mb_page_add(r->page, MB_BLOCK_TEXT, "The plan in full, term by term:");
	mb_page_printf(r->page, MB_BLOCK_COMMAND, "mbsim estimate%s", run.data);
	mb_page_add(r->page, MB_BLOCK_TEXT, "As a configuration of Megatron Bridge:");
	mb_page_printf(r->page, MB_BLOCK_COMMAND, "mbsim export%s --to bridge", run.data);
	mb_page_add(r->page, MB_BLOCK_TEXT, "The step as a timeline for ui.perfetto.dev:");
	mb_page_printf(r->page, MB_BLOCK_COMMAND, "mbsim trace%s --output step.json", run.data);
	mb_text_free(&run);
}

/* ---- assumptions ---- */

static void add_given(struct mb_table *t, const char *name, const char *value, const char *unit, const char *from, const char *source)
{
	mb_table_row(t, MB_INK_PLAIN);
	mb_report_cell(t, "%s", name);
	mb_report_cell(t, "%s", value);
	mb_report_cell(t, "%s", unit);
	mb_report_cell(t, "%s", from);
	mb_report_cell(t, "%s", source);
}

static void add_job(struct mb_report *r, struct mb_table *t)
{
	const struct mb_capacity *c = r->c;
	const struct mb_capacity_cell *x = mb_report_chosen(r);

	add_given(t, "tokens", mb_report_tokens(c->tokens.value).s, "tokens", c->tokens.from, "");
	add_given(t, "goodput", mb_number_percent(c->goodput_frac.value).s, "%", c->goodput_frac.from, "share of the time that trains");
	add_given(t, "price", x->price_usd > 0 ? mb_number_fixed(x->price_usd, 2).s : "unknown", "$ per GPU-hour", c->price_from,
	          strcmp(c->price_from, "hardware file") == 0 ? mb_capacity_text(x->document, "price_source") : "");
	add_given(t, "PUE", mb_number_3(c->pue.value).s, "", c->pue.from, "power of the site over that of the machines");
	add_given(t, "board power", mb_number_count(mb_capacity_number(x->document, "tdp_w")).s, "W", "hardware file", "at all times: an upper limit");
}

void mb_report_assumptions(struct mb_report *r)
{
	cJSON *document = r->constants ? cJSON_Parse(r->constants) : NULL;
	const cJSON *one;
	struct mb_table *job = mb_page_table(r->page), *t = mb_page_table(r->page);
	const char *const heads[] = { "constant", "value", "unit", "origin", "source" };
	int assumed = 0, count = 0;
	struct mb_block *b;

	for (int i = 0; i < 5; i++) {
		mb_report_column(job, heads[i], "", i == 1 ? MB_RIGHT : MB_LEFT);
		mb_report_column(t, heads[i], "", i == 1 ? MB_RIGHT : MB_LEFT);
	}
	mb_report_section(r, "assumptions", "Assumptions");
	add_job(r, job);
	b = mb_page_add(r->page, MB_BLOCK_TABLE, NULL);
	b->table = job;
	cJSON_ArrayForEach(one, cJSON_GetObjectItem(document, "constants")) {
		const char *origin = mb_capacity_text(one, "origin");

		count++;
		assumed += strcmp(origin, "assumed") == 0;
		add_given(t, mb_capacity_text(one, "name"), mb_arena_printf(r->page->arena, "%.6g", mb_capacity_number(one, "value")), mb_capacity_text(one, "unit"),
		          origin, mb_capacity_text(one, "source"));
	}
	mb_page_printf(r->page, MB_BLOCK_TEXT, "The time model has %d constants for %s and %s; %d of them are assumed, not measured or fitted.%s", count,
	               mb_capacity_text(document, "hardware"), mb_capacity_text(document, "stack"), assumed,
	               cJSON_IsTrue(cJSON_GetObjectItem(document, "announced")) ? " This machine is announced, not shipped: its figures are the vendor's." : "");
	b = mb_page_add(r->page, MB_BLOCK_TABLE, "show every constant");
	b->table = t;
	b->folded = true;
	cJSON_Delete(document);
}

/* ---- all cells ---- */

static void add_numbers(struct mb_table *t, const struct mb_capacity_cell *x)
{
	const cJSON *result = cJSON_GetObjectItem(x->document, "result");

	mb_report_cell(t, "%s", mb_number_3(x->step_s).s);
	mb_report_cell(t, "%s", mb_number_count(mb_capacity_number(result, "tokens_per_s_per_gpu")).s);
	mb_report_cell(t, "%s", mb_number_mfu(mb_capacity_number(result, "mfu")).s);
	mb_report_cell(t, "%s", mb_number_percent(x->efficiency_frac).s);
	mb_report_cell(t, "%s", mb_number_gib(mb_capacity_number(result, "peak_allocated_bytes")).s);
	mb_report_cell(t, "%s", mb_number_gib(mb_capacity_number(result, "margin_bytes")).s);
	mb_report_cell(t, "%s", mb_report_days(x->days).s);
	mb_report_cell(t, "%s", mb_number_count(x->gpu_hours).s);
	if (x->usd > 0)
		mb_report_cell(t, "%s", mb_number_count(x->usd).s);
	else
		mb_table_cell(t, "-");
	mb_report_cell(t, "%s", mb_number_3(x->mwh).s);
}

/* What words a cell's plan takes; of an illegal one the reason. */
static const char *plan_words(const struct mb_capacity_cell *x)
{
	const char *reason = mb_capacity_text(x->document, "reason");

	return !x->done ? "not finished" : reason[0] ? reason : mb_capacity_text(x->document, "words");
}

void mb_report_cells(struct mb_report *r)
{
	static const struct { const char *head, *unit; } columns[] = {
		{ "step", "s" }, { "tokens/s/GPU", "" }, { "MFU", "%" }, { "scaling", "%" }, { "peak", "GiB" }, { "free", "GiB" }, { "days", "" },
		{ "GPU-hours", "" }, { "cost", "$" }, { "energy", "MWh" },
	};
	const struct mb_capacity *c = r->c;
	struct mb_block *b;
	struct mb_table *t = mb_page_table(r->page);
	const int count = (int)(sizeof columns / sizeof columns[0]);

	mb_report_section(r, "cells", "All cells");
	mb_page_printf(r->page, MB_BLOCK_TEXT, "%s of %s cells are finished, %s fit. `!` marks plans at risk: under 3 %% of the memory is free, or they need "
	               "expandable segments.", mb_number_count(c->done_count).s, mb_number_count(c->grid.count).s, mb_number_count(c->fit_count).s);
	mb_report_column(t, "cell", "", MB_LEFT);
	mb_report_column(t, "verdict", "", MB_LEFT);
	for (int i = 0; i < count; i++)
		mb_report_column(t, columns[i].head, columns[i].unit, MB_RIGHT);
	mb_report_column(t, "plan", "", MB_LEFT);
	for (int i = 0; i < c->grid.count; i++) {
		const struct mb_capacity_cell *x = &c->cells[i];

		mb_table_row(t, i == c->chosen ? MB_INK_BOLD : MB_INK_PLAIN);
		mb_report_cell(t, "%s", x->settings[0] ? x->settings : "the base run");
		mb_report_cell(t, "%s%s", strcmp(x->verdict, "out_of_memory") == 0 ? "out of memory" : x->at_risk ? "at risk" : x->verdict, x->at_risk ? " !" : "");
		if (x->fits)
			add_numbers(t, x);
		for (int k = 0; !x->fits && k < count; k++)
			mb_table_cell(t, "-");
		mb_report_cell(t, "%s", plan_words(x));
	}
	b = mb_page_add(r->page, MB_BLOCK_TABLE, NULL);
	b->table = t;
	b->sortable = true;
}
