#include <math.h>
#include <stdio.h>

#include "report/json.h"
#include "report/search_report.h"

static bool several_gpu_counts(const struct mb_query *q)
{
	return q->gpu_choices[0] && q->gpu_choices[1];
}

static bool key_shown(const struct mb_search_report *x, int id)
{
	return x->open[id] || x->q->alternatives[id].count > 0 || (id == MB_K_gpus && several_gpu_counts(x->q));
}

static struct mb_run run_of(const struct mb_search_report *x, const struct mb_ranked *p)
{
	struct mb_run run = x->q->c.run;

	run.plan = p->plan;
	run.gpus = p->gpus;
	return run;
}

static void add_plan(cJSON *list, const struct mb_search_report *x, const struct mb_ranked *p, int rank)
{
	struct mb_run run = run_of(x, p);
	cJSON *o = mb_json_object(list, NULL);

	if (rank > 0)
		mb_json_int(o, "rank", rank);
	else
		mb_json_null(o, "rank");
	cJSON *plan = mb_json_object(o, "plan");

	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (key_shown(x, id))
			mb_json_key(plan, &x->q->c, &run, &mb_keys[id]);
	}
	mb_json_text(o, "verdict", mb_verdict_names[p->verdict]);
	mb_json_number(o, "step_s", p->step_s);
	mb_json_number(o, "low_s", p->low_s);
	mb_json_number(o, "high_s", p->high_s);
	mb_json_number(o, "tokens_per_s_per_gpu", p->tokens_per_s_per_gpu);
	mb_json_number(o, "model_tflops_per_gpu", p->model_flop_per_s_per_gpu / 1e12);
	mb_json_number(o, "mfu", p->mfu);
	mb_json_bytes(o, "peak_allocated_bytes", p->peak_bytes);
	mb_json_bytes(o, "device_used_bytes", p->device_used_bytes);
	mb_json_bytes(o, "margin_bytes", p->margin_bytes);
	mb_json_bool(o, "tie", p->tie);
	mb_json_int(o, "variants", p->variants);
}

/* Rank of a plan of the front; 0 when the list does not reach it. */
static int rank_of(const struct mb_search_report *x, const struct mb_ranked *p)
{
	for (int i = 0; i < x->r->top_count && i < x->top; i++) {
		if (x->r->top[i].gpus == p->gpus && mb_plan_compare(&x->r->top[i].plan, &p->plan) == 0)
			return i + 1;
	}
	return 0;
}

static void add_stats(cJSON *document, const struct mb_search_result *r)
{
	cJSON *o = mb_json_object(document, "stats");

	mb_json_bytes(o, "plans_considered", r->plans_considered);
	mb_json_bytes(o, "plans_costed", r->plans_costed);
	mb_json_bytes(o, "plans_evaluated", r->plans_evaluated);
	mb_json_bytes(o, "plans_fit", r->plans_fit);
	cJSON *pruned = mb_json_object(o, "pruned");

	for (int i = 0; i < r->pruned_count; i++)
		mb_json_bytes(pruned, r->pruned[i].id, r->pruned[i].count);
	mb_json_number(o, "elapsed_s", r->elapsed_s);
	mb_json_int(o, "threads", r->threads);
}

void mb_search_json(const struct mb_search_report *x, struct mb_text *ret)
{
	const struct mb_search_result *r = x->r;
	cJSON *document = mb_json_document("mbsim.search/1");

	mb_json_run(document, "query", x->q, x->open);
	cJSON *plans = mb_json_array(document, "plans");

	for (int i = 0; i < r->top_count; i++) {
		/* The recommended plan is listed even when many faster ones are at risk. */
		if (i < x->top || i == r->recommended)
			add_plan(plans, x, &r->top[i], i + 1);
	}
	if (r->recommended >= 0)
		mb_json_int(document, "recommended", r->recommended + 1);
	else
		mb_json_null(document, "recommended");
	cJSON *front = mb_json_array(document, "pareto");

	for (int i = 0; i < r->front_count; i++)
		add_plan(front, x, &r->front[i], rank_of(x, &r->front[i]));
	if (r->has_closest) {
		cJSON *closest = mb_json_array(NULL, NULL);

		add_plan(closest, x, &r->closest, 0);
		cJSON_AddItemToObject(document, "closest", cJSON_DetachItemFromArray(closest, 0));
		cJSON_Delete(closest);
	}
	add_stats(document, r);
	mb_json_write(document, true, ret);
}

static void csv_number(struct mb_text *t, double value)
{
	char text[40];

	mb_shortest(value, text, sizeof text);
	mb_text_printf(t, ",%s", text);
}

void mb_search_csv(const struct mb_search_report *x, struct mb_text *ret)
{
	mb_text_add(ret, "rank");
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (key_shown(x, id))
			mb_text_printf(ret, ",%s", mb_keys[id].name);
	}
	mb_text_add(ret,
	            ",verdict,step_s,low_s,high_s,tokens_per_s_per_gpu,model_tflops_per_gpu,mfu,peak_allocated_bytes,"
	            "device_used_bytes,margin_bytes,tie,variants\n");
	for (int i = 0; i < x->r->top_count; i++) {
		const struct mb_ranked *p = &x->r->top[i];
		struct mb_run run = run_of(x, p);

		if (i >= x->top && i != x->r->recommended)
			continue;
		const double numbers[] = { p->step_s,
			                   p->low_s,
			                   p->high_s,
			                   p->tokens_per_s_per_gpu,
			                   p->model_flop_per_s_per_gpu / 1e12,
			                   p->mfu,
			                   round(p->peak_bytes),
			                   round(p->device_used_bytes),
			                   round(p->margin_bytes) };

		mb_text_printf(ret, "%d", i + 1);
		for (int id = 0; id < MB_KEY_COUNT; id++) {
			char value[4096];

			if (!key_shown(x, id))
				continue;
			mb_key_format(&x->q->c, &run, &mb_keys[id], value, sizeof value);
			mb_text_add(ret, ",");
			mb_csv_field(ret, value);
		}
		mb_text_printf(ret, ",%s", mb_verdict_names[p->verdict]);
		for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
			csv_number(ret, numbers[k]);
		mb_text_printf(ret, ",%s,%d\n", p->tie ? "true" : "false", p->variants);
	}
}

void mb_search_markdown(const struct mb_search_report *x, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };
	struct mb_text common = { 0 };
	int shown[MB_MAX_SHOWN], count = mb_search_shown(x, shown);

	if (count == 0) {
		mb_text_add(ret, "Nothing fits.\n");
		return;
	}
	mb_search_table(x, shown, count, &table);
	mb_table_markdown(&table, ret);
	mb_search_common(x, shown, count, &common);
	if (common.length)
		mb_text_printf(ret, "\n%s\n", common.data);
	mb_text_free(&common);
	mb_arena_free(&arena);
}
