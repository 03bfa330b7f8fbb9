#include <math.h>
#include <string.h>

#include "report/estimate.h"
#include "report/facet.h"
#include "report/json.h"
#include "report/number.h"

/* Whole bytes that add up to the rounded total. */
static void add_terms(cJSON *o, const double terms[MB_MEM_COUNT], double total)
{
	cJSON *object = mb_json_object(o, "terms");
	long long bytes[MB_MEM_COUNT];

	mb_round_parts(terms, MB_MEM_COUNT, total, 1, bytes);
	for (int i = 0; i < MB_MEM_COUNT; i++)
		mb_json_int(object, mb_memory_terms[i].json, bytes[i]);
}

static void add_memory(cJSON *document, const struct mb_estimate *x)
{
	const struct mb_evaluation *e = x->e;
	const struct mb_stage_memory *peak = &e->stage_memory[e->peak_stage];
	cJSON *o = mb_json_object(document, "memory");

	mb_json_int(o, "device_bytes", x->q->c.hardware.hbm_bytes);
	mb_json_int(o, "usable_bytes", x->q->c.hardware.usable_bytes);
	mb_json_bytes(o, "peak_allocated_bytes", e->peak_bytes);
	mb_json_bytes(o, "peak_reserved_bytes", e->reserved_bytes);
	mb_json_bytes(o, "device_used_bytes", e->device_used_bytes);
	mb_json_bytes(o, "margin_bytes", e->margin_bytes);
	mb_json_bytes(o, "between_steps_bytes", peak->between_bytes);
	mb_json_bytes(o, "first_step_peak_bytes", peak->first_step_peak_bytes);
	mb_json_bytes(o, "host_bytes", peak->host_bytes);
	mb_json_bytes(o, "low_bytes", e->low_bytes);
	mb_json_bytes(o, "high_bytes", e->high_bytes);
	mb_json_int(o, "peak_stage", e->peak_stage);
	mb_json_text(o, "peak_phase", mb_phase_names[peak->phase]);
	add_terms(o, peak->terms, e->peak_bytes);
	if (x->routing.drawn) {
		cJSON *routing = mb_json_object(o, "routing");

		mb_json_number(routing, "skew", x->routing.skew);
		mb_json_int(routing, "seed", x->routing.seed);
		mb_json_number(routing, "imbalance_p50", x->routing.p50_imbalance);
		mb_json_number(routing, "imbalance_p99", x->routing.p99_imbalance);
		mb_json_bytes(routing, "peak_allocated_bytes_p50", x->routing.p50_bytes);
		mb_json_bytes(routing, "peak_allocated_bytes_p99", x->routing.p99_bytes);
	}

	cJSON *stages = mb_json_array(o, "stages");

	for (int i = 0; i < e->dims.pp; i++) {
		const struct mb_stage_memory *m = &e->stage_memory[i];
		cJSON *stage = mb_json_object(stages, NULL);

		mb_json_int(stage, "stage", i);
		mb_json_bytes(stage, "between_steps_bytes", m->between_bytes);
		mb_json_bytes(stage, "first_step_peak_bytes", m->first_step_peak_bytes);
		mb_json_bytes(stage, "peak_allocated_bytes", m->peak_bytes);
		mb_json_text(stage, "peak_phase", mb_phase_names[m->phase]);
		add_terms(stage, m->terms, m->peak_bytes);
	}
}

static void add_time(cJSON *document, const struct mb_evaluation *e)
{
	cJSON *o = mb_json_object(document, "time");

	mb_json_number(o, "step_s", e->step_s);
	mb_json_number(o, "low_s", e->low_s);
	mb_json_number(o, "high_s", e->high_s);
	cJSON *terms = mb_json_object(o, "terms");

	for (int i = 0; i < MB_TIME_COUNT; i++)
		mb_json_number(terms, mb_time_terms[i].json, e->time_terms[i]);
	mb_json_number(o, "bubble_frac", e->bubble_frac);
	cJSON *stages = mb_json_array(o, "stages");

	for (int i = 0; i < e->dims.pp; i++) {
		cJSON *stage = mb_json_object(stages, NULL);

		mb_json_int(stage, "stage", i);
		mb_json_number(stage, "busy_s", e->stage_time[i].busy_s);
	}

	cJSON *throughput = mb_json_object(document, "throughput");

	mb_json_number(throughput, "tokens_per_s_per_gpu", e->tokens_per_s_per_gpu);
	mb_json_number(throughput, "model_tflops_per_gpu", e->model_flop_per_s_per_gpu / 1e12);
	mb_json_number(throughput, "mfu", e->mfu);
	mb_json_number(throughput, "hfu", e->hfu);
}

/* Layers of a kind that stage `stage` runs. */
static double layers_on_stage(const struct mb_evaluation *e, int stage, int kind)
{
	double layers = 0;

	for (int chunk = stage; chunk < e->split.chunk_count; chunk += e->dims.pp)
		layers += e->split.kinds[chunk][kind];
	return layers;
}

static void add_module(cJSON *modules, const struct mb_evaluation *e, int bit, const char *name)
{
	double flops = 0, seconds = 0, saved = 0, all_saved = 0;

	for (int kind = 0; kind < MB_KIND_COUNT; kind++) {
		const struct mb_kind_cost *k = &e->kinds[kind];
		double layers = k->present ? layers_on_stage(e, e->slowest_stage, kind) : 0;

		flops += layers * k->module_replay_flops[bit] * (double)e->dims.micro_batches;
		seconds += layers * k->module_replay_s[bit] * (double)e->dims.micro_batches;
		saved += layers * k->module_saved_bytes[bit];
		for (int other = 0; other < 16; other++)
			all_saved += layers * k->module_saved_bytes[other];
	}

	cJSON *o = mb_json_object(modules, name);

	mb_json_number(o, "flops_per_step", flops);
	mb_json_number(o, "seconds", seconds);
	mb_json_bytes(o, "bytes_saved", all_saved > 0 ? e->recompute_saved_bytes * saved / all_saved : 0);
}

static void add_recompute(cJSON *document, const struct mb_evaluation *e)
{
	cJSON *o = mb_json_object(document, "recompute");

	mb_json_number(o, "flops_per_step", e->recompute_flops);
	mb_json_number(o, "seconds", e->recompute_s);
	mb_json_bytes(o, "bytes_saved", e->recompute_saved_bytes);
	cJSON *modules = mb_json_object(o, "modules");

	for (int bit = 0; bit < 16; bit++) {
		unsigned mask = 1u << bit;
		const char *name = mask == MB_FULL ? "full" : mb_value_name(mb_module_names, (int)mask);

		if ((e->dims.modules & mask) && name)
			add_module(modules, e, bit, name);
	}
}

static void add_communication(cJSON *document, const struct mb_evaluation *e)
{
	cJSON *o = mb_json_object(document, "communication");

	for (int i = 0; i < MB_TRAFFIC_COUNT; i++) {
		const struct mb_traffic_cost *cost = &e->traffic[i];
		cJSON *item = mb_json_object(o, mb_traffic_names[i]);

		mb_json_bytes(item, "bytes_per_gpu_per_step", cost->bytes);
		mb_json_bytes(item, "inter_domain_bytes_per_gpu_per_step", cost->remote_bytes);
		mb_json_number(item, "seconds", cost->seconds);
		mb_json_number(item, "exposed_seconds", cost->exposed_seconds);
		mb_json_number(item, "hidden_frac",
		               cost->seconds > 0 ? fmax(0, 1 - cost->exposed_seconds / cost->seconds) : 0);
	}
}

static void add_parameters(cJSON *document, const struct mb_case *c, const struct mb_evaluation *e)
{
	cJSON *o = mb_json_object(document, "parameters");
	int64_t total, mtp, active;

	mb_count_parameters(c, &total, &mtp, &active);
	mb_json_int(o, "total", total);
	mb_json_int(o, "mtp", mtp);
	mb_json_int(o, "active", active);
	mb_json_int(o, "per_gpu", e->params_per_gpu);
}

void mb_estimate_json(const struct mb_estimate *x, bool pretty, struct mb_text *ret)
{
	static const char *const parts[] = {
		"memory", "layers", "time", "throughput", "recompute", "communication", "parameters",
	};
	cJSON *document = mb_json_document("mbsim.estimate/1");

	mb_json_run(document, "run", x->q, NULL);
	mb_json_text(document, "verdict", mb_verdict_names[x->verdict]);
	mb_json_violations(document, x->q, x->violations, x->violation_count);
	if (x->e) {
		add_memory(document, x);
		mb_json_layers(document, x->q, x->e);
		add_time(document, x->e);
		add_recompute(document, x->e);
		add_communication(document, x->e);
		add_parameters(document, &x->q->c, x->e);
	} else {
		for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
			mb_json_null(document, parts[i]);
	}
	mb_json_write(document, pretty, ret);
}
