#include "report/advise.h"
#include "report/changes.h"
#include "report/json.h"

static void add_violations(cJSON *o, const struct mb_advice *a, const struct mb_option *option, struct mb_arena *arena)
{
	struct mb_query *q = mb_arena_alloc(arena, sizeof *q);
	struct mb_violation *list = mb_arena_alloc(arena, MB_MAX_VIOLATIONS * sizeof *list);

	*q = *a->q;
	q->c.run = option->t.run;
	mb_case_compile(&q->c);
	for (int i = 0; i < option->t.changes.count; i++)
		q->set[option->t.changes.key[i]] = true;
	mb_json_violations(o, q, list, mb_check(q, &q->c.run.plan, list));
}

static void add_exchange(cJSON *o, const struct mb_exchange *x)
{
	cJSON *e = mb_json_object(o, "expert_communication");

	mb_json_bytes(e, "intra_domain_bytes_per_gpu_per_step", x->inside_bytes);
	mb_json_bytes(e, "inter_domain_bytes_per_gpu_per_step", x->across_bytes);
	mb_json_number(e, "seconds", x->busy_s);
	mb_json_number(e, "exposed_seconds", x->exposed_s);
	mb_json_number(e, "hidden_frac", x->hidden_frac);
	mb_json_number(e, "distinct_ranks", x->ranks);
	mb_json_number(e, "distinct_domains", x->domains);
	mb_json_int(e, "sms", x->sms);
	mb_json_number(e, "overlap_gain_frac", x->gain_frac);
	mb_json_number(e, "overlap_gain_low_frac", x->gain_low_frac);
	mb_json_number(e, "overlap_gain_high_frac", x->gain_high_frac);
}

static void add_recompute(cJSON *o, const struct mb_advice *a, const struct mb_option *option)
{
	const struct mb_trial *ref = &a->options[a->reference].t;
	double saved = option->saved_bytes / 1073741824.0;

	mb_json_bytes(o, "lowers_peak_bytes", option->lowers_bytes);
	mb_json_number(o, "recompute_flops_per_step", option->t.recompute_flops);
	mb_json_number(o, "recompute_s", option->t.recompute_s);
	mb_json_bytes(o, "replayed_tp_bytes", option->replayed_bytes[0]);
	mb_json_bytes(o, "replayed_cp_bytes", option->replayed_bytes[1]);
	mb_json_bytes(o, "replayed_ep_bytes", option->replayed_bytes[2]);
	if (saved > 0.01)
		mb_json_number(o, "ms_per_gib", 1000 * (option->t.step_s - ref->step_s) / saved);
	else
		mb_json_null(o, "ms_per_gib");
}

static void add_numbers(cJSON *o, const struct mb_advice *a, const struct mb_option *option)
{
	const struct mb_trial *t = &option->t;

	mb_json_number(o, "step_s", t->step_s);
	mb_json_number(o, "low_s", t->low_s);
	mb_json_number(o, "high_s", t->high_s);
	mb_json_number(o, "step_change_frac", option->step_frac);
	mb_json_bytes(o, "peak_allocated_bytes", t->peak_bytes);
	mb_json_bytes(o, "first_step_peak_bytes", t->first_peak_bytes);
	mb_json_bytes(o, "device_used_bytes", t->used_bytes);
	mb_json_bytes(o, "margin_bytes", t->margin_bytes);
	mb_json_bytes(o, "saved_bytes", option->saved_bytes);
	mb_json_text(o, "binding_phase", mb_phase_names[t->phase]);
	mb_json_int(o, "binding_stage", t->stage);
	mb_json_bool(o, "host_bound", mb_host_bound(t));
	mb_json_bool(o, "pareto", option->on_front);
	if (a->topic == MB_TOPIC_RECOMPUTE)
		add_recompute(o, a, option);
	else if (a->topic == MB_TOPIC_OOM)
		mb_json_bool(o, "changes_learning", option->learning);
	else
		add_exchange(o, &option->x);
}

static void option_name(const struct mb_advice *a, int i, cJSON *o, const char *key)
{
	struct mb_text words = { 0 };

	if (i < 0) {
		mb_json_null(o, key);
		return;
	}
	mb_text_add(&words, "");
	mb_option_words(a, &a->options[i], &words);
	mb_json_text(o, key, words.data);
	mb_text_free(&words);
}

static void add_option(cJSON *list, const struct mb_advice *a, int i, struct mb_arena *arena)
{
	const struct mb_option *option = &a->options[i];
	cJSON *o = mb_json_object(list, NULL), *notes;

	option_name(a, i, o, "name");
	mb_json_changes(o, "changes", a->q, &option->t.changes);
	mb_json_text(o, "verdict", mb_verdict_names[option->t.verdict]);
	add_violations(o, a, option, arena);
	if (option->t.sized) {
		add_numbers(o, a, option);
	} else {
		static const char *const missing[] = { "step_s", "step_change_frac", "peak_allocated_bytes", "saved_bytes", "binding_phase" };

		for (size_t m = 0; m < sizeof missing / sizeof missing[0]; m++)
			mb_json_null(o, missing[m]);
	}
	mb_json_bool(o, "tie", option->tie);
	if (option->rank)
		mb_json_int(o, "trial", option->rank);
	notes = mb_json_array(o, "notes");
	for (int n = 0; n < option->note_count; n++)
		mb_json_text(notes, NULL, option->notes[n]);
}

static void said(cJSON *o, const char *key, double bytes)
{
	if (bytes < 0)
		mb_json_null(o, key);
	else
		mb_json_bytes(o, key, bytes);
}

static void add_log(cJSON *parent, const struct mb_oom_log *log)
{
	cJSON *o = mb_json_object(parent, "log");

	said(o, "capacity_bytes", log->capacity);
	said(o, "allocated_bytes", log->allocated);
	said(o, "reserved_unallocated_bytes", log->unallocated);
	said(o, "reserved_bytes", log->reserved);
	said(o, "device_used_bytes", log->device_used);
	said(o, "free_bytes", log->free);
	said(o, "failed_bytes", log->failed);
	if (log->step >= 0)
		mb_json_int(o, "step", log->step);
	if (log->rank >= 0)
		mb_json_int(o, "rank", log->rank);
	mb_json_text(o, "place", mb_oom_place_names[log->place]);
}

static void add_diagnosis(cJSON *document, const struct mb_diagnosis *d)
{
	cJSON *o = mb_json_object(document, "diagnosis");

	mb_json_text(o, "cause", mb_cause_names[d->cause]);
	mb_json_text(o, "verdict", mb_verdict_names[d->run.verdict]);
	mb_json_int(o, "stage", d->stage);
	mb_json_bytes(o, "predicted_peak_bytes", d->peak_bytes);
	mb_json_bytes(o, "predicted_first_step_peak_bytes", d->first_bytes);
	mb_json_bytes(o, "predicted_between_steps_bytes", d->between_bytes);
	mb_json_bytes(o, "predicted_outside_bytes", d->outside_bytes);
	mb_json_bytes(o, "usable_bytes", d->usable_bytes);
	mb_json_bytes(o, "unexplained_bytes", d->missing_bytes);
	if (d->imbalance > 0)
		mb_json_number(o, "moe_load_imbalance", d->imbalance);
	if (d->logit_tokens > 0)
		mb_json_number(o, "logit_tokens", d->logit_tokens);
	mb_json_text(o, "ruled_out", d->ruled_out);
	if (d->log)
		add_log(o, d->log);
}

void mb_advise_json(const struct mb_advise_report *x, struct mb_text *ret)
{
	const struct mb_advice *a = x->a;
	struct mb_arena arena = { 0 };
	cJSON *o = mb_json_document("mbsim.advise/1"), *list;

	mb_json_text(o, "topic", mb_topic_names[a->topic]);
	mb_json_run(o, "run", a->q, NULL);
	if (a->diagnosis)
		add_diagnosis(o, a->diagnosis);
	list = mb_json_array(o, "options");
	for (int i = 0; i < a->count; i++)
		add_option(list, a, i, &arena);
	option_name(a, a->recommended, o, "recommended");
	option_name(a, a->reference, o, "reference");
	if (a->topic == MB_TOPIC_RECOMPUTE)
		option_name(a, a->shrink, o, "to_shrink");
	mb_json_bool(o, "host_bound", a->host_bound);
	list = mb_json_array(o, "reasons");
	for (int i = 0; i < a->reason_count; i++)
		mb_json_text(list, NULL, a->reasons[i]);
	if (a->topic == MB_TOPIC_OVERLAP) {
		mb_json_text(o, "requirements_met", a->met);
		mb_json_changes(o, "requirements_to_set", a->q, &a->needs);
		mb_json_text(o, "forbids", a->forbids);
	}
	mb_json_write(o, true, ret);
	mb_arena_free(&arena);
}
