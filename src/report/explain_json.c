#include "report/changes.h"
#include "report/explain.h"
#include "report/facet.h"
#include "report/json.h"

static void add_binding(cJSON *document, const struct mb_explanation *x)
{
	cJSON *o = mb_json_object(document, "binding");
	const struct mb_trial *t = &x->run;
	struct mb_text message = { 0 };
	bool rule = x->kind == MB_BINDS_RULE, memory = x->kind == MB_BINDS_MEMORY;

	mb_explain_answer(x, &message);
	mb_json_text(o, "kind", mb_binding_names[x->kind]);
	mb_json_text(o, "rule", rule && x->violation_count ? x->violations[0].rule->id : NULL);
	if (memory)
		mb_json_int(o, "stage", t->stage);
	else
		mb_json_null(o, "stage");
	mb_json_text(o, "phase", memory ? mb_phase_names[t->phase] : NULL);
	mb_json_text(o, "term", memory ? mb_memory_terms[x->memory_term].json : rule ? NULL : mb_time_terms[x->time_term].json);
	if (memory)
		mb_json_bytes(o, "missing_bytes", t->margin_bytes < 0 ? -t->margin_bytes : 0);
	mb_json_text(o, "message", message.data);
	mb_text_free(&message);
}

static void add_best(cJSON *document, const struct mb_explanation *x)
{
	cJSON *o;

	if (!x->has_best && x->best.step_s <= 0) {
		mb_json_null(document, "best");
		return;
	}
	o = mb_json_object(document, "best");
	mb_json_changes(o, "plan", x->q, &x->best.changes);
	mb_json_number(o, "step_s", x->best.step_s);
	mb_json_bytes(o, "peak_allocated_bytes", x->best.peak_bytes);
}

static void add_terms(cJSON *document, const struct mb_explanation *x)
{
	cJSON *terms = mb_json_object(document, "terms");

	for (int i = 0; i < MB_TIME_COUNT; i++) {
		cJSON *o = mb_json_object(terms, mb_time_terms[i].json);

		if (x->run.sized)
			mb_json_number(o, "run_s", x->run.terms[i]);
		else
			mb_json_null(o, "run_s");
		if (x->has_best && x->best.sized)
			mb_json_number(o, "best_s", x->best.terms[i]);
		else
			mb_json_null(o, "best_s");
	}
}

static void add_fixes(cJSON *document, const struct mb_explanation *x)
{
	cJSON *list = mb_json_array(document, "fixes");

	for (int i = 0; i < x->fix_count; i++) {
		const struct mb_trial *t = &x->fixes[i];
		cJSON *o = mb_json_object(list, NULL);

		mb_json_changes(o, "changes", x->q, &t->changes);
		mb_json_text(o, "verdict", mb_verdict_names[t->verdict]);
		if (t->sized) {
			mb_json_number(o, "step_s", t->step_s);
			mb_json_bytes(o, "peak_allocated_bytes", t->peak_bytes);
		} else {
			mb_json_null(o, "step_s");
			mb_json_null(o, "peak_allocated_bytes");
		}
		mb_json_bool(o, "changes_learning", mb_changes_learning(&t->changes));
	}
}

static void add_nothing_fits(cJSON *document, const struct mb_explanation *x)
{
	cJSON *o, *list;

	if (!x->nothing_fits)
		return;
	o = mb_json_object(document, "nothing_fits");
	mb_json_bool(o, "proven_by_states", x->states_prove_it);
	mb_json_bytes(o, "state_bytes", x->state_bytes);
	mb_json_int(o, "gpus_for_states", x->gpus_for_states);
	if (x->has_closest)
		mb_json_bytes(o, "closest_device_used_bytes", x->closest.used_bytes);
	list = mb_json_array(o, "ways_out");
	for (int i = 0; i < x->way_count; i++) {
		const struct mb_way_out *w = &x->ways[i];
		cJSON *way = mb_json_object(list, NULL);

		mb_json_text(way, "name", w->words);
		mb_json_int(way, "gpus", w->gpus);
		mb_json_bool(way, "changes_learning", w->learning);
		mb_json_number(way, "step_s", w->plan.step_s);
		mb_json_bytes(way, "peak_allocated_bytes", w->plan.peak_bytes);
	}
}

void mb_explain_json(const struct mb_explain_report *r, struct mb_text *ret)
{
	const struct mb_explanation *x = r->x;
	cJSON *o = mb_json_document("mbsim.explain/1");

	mb_json_run(o, "run", x->q, NULL);
	mb_json_text(o, "verdict", mb_verdict_names[x->run.verdict]);
	add_binding(o, x);
	mb_json_violations(o, x->q, x->violations, x->violation_count);
	add_best(o, x);
	add_terms(o, x);
	add_fixes(o, x);
	add_nothing_fits(o, x);
	mb_json_write(o, true, ret);
}
