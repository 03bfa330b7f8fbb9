#include "report/cell_json.h"

#include <string.h>

#include "mbsim.h"
#include "report/facet.h"
#include "report/json.h"

static void add_plan(cJSON *document, const struct mb_query *q)
{
	cJSON *plan = mb_json_object(document, "plan");

	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (mb_keys[id].open)
			mb_json_key(plan, &q->c, &q->c.run, &mb_keys[id]);
	}
}

static void add_result(cJSON *document, const struct mb_outcome *x)
{
	const struct mb_evaluation *e = x->e;
	cJSON *o = mb_json_object(document, "result");
	int64_t total, mtp, active;

	mb_count_parameters(&x->q->c, &total, &mtp, &active);
	mb_json_number(o, "step_s", e->step_s);
	mb_json_number(o, "low_s", e->low_s);
	mb_json_number(o, "high_s", e->high_s);
	mb_json_number(o, "tokens_per_s_per_gpu", e->tokens_per_s_per_gpu);
	mb_json_number(o, "model_tflops_per_gpu", e->model_flop_per_s_per_gpu / 1e12);
	mb_json_number(o, "mfu", e->mfu);
	mb_json_bytes(o, "peak_allocated_bytes", e->peak_bytes);
	mb_json_bytes(o, "device_used_bytes", e->device_used_bytes);
	mb_json_bytes(o, "margin_bytes", e->margin_bytes);
	mb_json_int(o, "usable_bytes", x->q->c.hardware.usable_bytes);
	mb_json_int(o, "parameters", total);
	mb_json_int(o, "active_parameters", active);
}

/* By letter, as in the bars of mbsim estimate. */
static void add_stages(cJSON *document, const struct mb_evaluation *e)
{
	static const char letters[] = "WGOALX";
	cJSON *stages = mb_json_array(document, "stages");

	for (int r = 0; r < e->dims.pp; r++) {
		cJSON *o = mb_json_object(stages, NULL);

		mb_json_bytes(o, "peak_allocated_bytes", e->stage_memory[r].peak_bytes);
		mb_json_text(o, "peak_phase", mb_phase_names[e->stage_memory[r].phase]);
		for (const char *letter = letters; *letter; letter++) {
			const char name[2] = { *letter, '\0' };
			double sum = 0;

			for (int i = 0; i < MB_MEM_COUNT; i++)
				sum += mb_memory_terms[i].letter == *letter ? e->stage_memory[r].terms[i] : 0;
			mb_json_bytes(o, name, sum);
		}
	}
	mb_json_int(document, "peak_stage", e->peak_stage);
}

static void add_time(cJSON *document, const struct mb_evaluation *e)
{
	cJSON *o = mb_json_object(document, "time");

	for (int i = 0; i < MB_TIME_COUNT; i++)
		mb_json_number(o, mb_time_terms[i].json, e->time_terms[i]);
}

/* Durations, from which the report runs the schedule again. */
static void add_pipeline(cJSON *document, const struct mb_query *q, const struct mb_evaluation *e)
{
	cJSON *o = mb_json_object(document, "pipeline");
	cJSON *forward, *backward;

	mb_json_int(o, "pp", e->dims.pp);
	mb_json_int(o, "vp", e->split.chunk_count / e->dims.pp);
	mb_json_int(o, "micro_batches", e->dims.micro_batches);
	mb_json_int(o, "group", q->c.run.plan.microbatch_group_size);
	mb_json_bool(o, "ep_overlap", q->c.run.plan.overlap_moe_expert_parallel_comm);
	mb_json_int(o, "hop_ps", e->hop_ps);
	forward = mb_json_array(o, "forward_ps");
	backward = mb_json_array(o, "backward_ps");
	for (int j = 0; j < e->split.chunk_count; j++) {
		mb_json_int(forward, NULL, e->chunk_forward_ps[j]);
		mb_json_int(backward, NULL, e->chunk_backward_ps[j]);
	}
}

static void add_words(cJSON *o, const struct mb_query *q, const struct mb_plan *p)
{
	struct mb_text t = { 0 };

	mb_layout_words(&t, p);
	for (int i = 0; i < MB_FACET_COUNT; i++) {
		struct mb_text word = { 0 };

		mb_facets[i].words(&q->c, p, &word);
		if (word.length)
			mb_text_printf(&t, ", %s %s", mb_facets[i].label, word.data);
		mb_text_free(&word);
	}
	mb_json_text(o, "words", t.data);
	mb_text_free(&t);
}

static void add_front(cJSON *document, const struct mb_outcome *x)
{
	const struct mb_search_result *r = &x->search;
	cJSON *front = mb_json_array(document, "front");

	for (int i = 0; i < r->front_count; i++) {
		cJSON *o = mb_json_object(front, NULL);

		mb_json_number(o, "step_s", r->front[i].step_s);
		mb_json_bytes(o, "peak_allocated_bytes", r->front[i].peak_bytes);
		mb_json_text(o, "verdict", mb_verdict_names[r->front[i].verdict]);
		add_words(o, x->q, &r->front[i].plan);
	}
	if (r->front_count > 0 && r->knee >= 0)
		mb_json_int(document, "knee", r->knee);
	else
		mb_json_null(document, "knee");
}

static void add_what_if(cJSON *document, const struct mb_outcome *x)
{
	cJSON *list = mb_json_array(document, "what_if");

	for (int i = 0; i < x->what_if_count; i++) {
		cJSON *o = mb_json_object(list, NULL);

		mb_json_text(o, "name", x->what_if[i].name);
		mb_json_text(o, "change", x->what_if[i].change);
		if (x->what_if[i].step_s > 0)
			mb_json_number(o, "step_s", x->what_if[i].step_s);
		else
			mb_json_null(o, "step_s");
	}
}

void mb_cell_json(const struct mb_outcome *x, const char *constants, struct mb_text *ret)
{
	static const char *const parts[] = { "plan", "result", "stages", "time", "pipeline" };
	cJSON *document = mb_json_document("mbsim.cell/1");
	struct mb_text words = { 0 };
	const struct mb_run *run = &x->q->c.run;

	mb_headline(&words, x->q);
	mb_json_text(document, "headline", words.data);
	mb_text_free(&words);
	mb_json_run(document, "run", x->q, x->e ? NULL : x->open);
	mb_json_text(document, "model", x->q->c.model.name[0] ? x->q->c.model.name : x->q->model_text);
	mb_json_text(document, "hardware", x->q->c.hardware.name);
	mb_json_text(document, "stack", x->q->c.stack.name);
	mb_json_int(document, "gpus", run->gpus);
	mb_json_number(document, "tokens_per_step", (double)run->global_batch_size * run->seq_length);
	mb_json_number(document, "tdp_w", x->q->c.hardware.tdp_w);
	mb_json_number(document, "price_usd_per_gpu_h", x->q->c.hardware.price_usd_per_gpu_h);
	mb_json_text(document, "price_source", x->q->c.hardware.price_source);
	mb_json_text(document, "verdict", mb_verdict_names[x->verdict]);
	mb_json_text(document, "reason", x->reason);
	mb_json_text(document, "constants", constants);
	if (x->e) {
		add_plan(document, x->q);
		add_words(document, x->q, &run->plan);
		add_result(document, x);
		add_stages(document, x->e);
		add_time(document, x->e);
		add_pipeline(document, x->q, x->e);
	}
	for (size_t i = 0; !x->e && i < sizeof parts / sizeof parts[0]; i++)
		mb_json_null(document, parts[i]);
	add_front(document, x);
	add_what_if(document, x);
	mb_json_write(document, false, ret);
	ret->data[--ret->length] = '\0';
}

void mb_cell_constants(const struct mb_query *q, struct mb_text *ret)
{
	static const char *const origins[] = {
		[MB_ORIGIN_NONE] = "default", [MB_MEASURED] = "measured", [MB_FITTED] = "fitted", [MB_ASSUMED] = "assumed",
	};
	cJSON *document = mb_json_document("mbsim.constants/1"), *rows;

	mb_json_text(document, "hardware", q->c.hardware.name);
	mb_json_text(document, "stack", q->c.stack.name);
	mb_json_text(document, "hardware_source", q->c.hardware.sources);
	mb_json_bool(document, "announced", q->c.hardware.announced);
	rows = mb_json_array(document, "constants");
	for (int id = 0; id < MB_PARAM_COUNT; id++) {
		const struct mb_param_row *row = &mb_param_rows[id];
		const struct mb_provenance *from = row->hardware ? &q->c.hardware.provenance[id] : &q->c.stack.provenance[id];
		const char *base = (const char *)&q->c.params;
		cJSON *o = mb_json_object(rows, NULL);

		mb_json_text(o, "name", row->name);
		mb_json_number(o, "value", *(const double *)(const void *)(base + row->offset));
		mb_json_text(o, "unit", row->dimension == MB_SECONDS ? "s" : row->dimension == MB_WATTS ? "W" : "");
		mb_json_text(o, "origin", origins[from->origin]);
		mb_json_text(o, "source", from->source);
		mb_json_text(o, "what", row->doc);
	}
	mb_json_write(document, false, ret);
	ret->data[--ret->length] = '\0';
}

void mb_sweep_head_json(const struct mb_sweep *s, struct mb_text *ret)
{
	cJSON *document = mb_json_document("mbsim.sweep/1"), *keys;

	mb_json_text(document, "version", mbsim_version());
	mb_json_text(document, "mode", s->estimate ? "estimate" : "search");
	keys = mb_json_array(document, "keys");
	for (int k = 0; k < s->key_count; k++)
		mb_json_text(keys, NULL, s->keys[k]);
	mb_json_number(document, "tokens", s->tokens);
	mb_json_number(document, "goodput_frac", s->goodput_frac);
	mb_json_number(document, "price_usd_per_gpu_h", s->price_usd);
	mb_json_number(document, "pue", s->pue);
	mb_json_write(document, false, ret);
	ret->data[--ret->length] = '\0';
}

void mb_sweep_settings_json(const struct mb_sweep *s, int cell, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	cJSON *list = mb_json_array(NULL, NULL);

	for (int k = 0; k < s->key_count; k++)
		mb_json_text(list, NULL, mb_sweep_text(s, cell, k, &arena));
	mb_json_write(list, false, ret);
	ret->data[--ret->length] = '\0';
	mb_arena_free(&arena);
}
