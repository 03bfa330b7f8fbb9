#include <math.h>

#include "report/json.h"
#include "report/validate.h"
#include "report/validate_pairs.h"

static void add_rows(cJSON *document, const struct mb_accuracy *a)
{
	cJSON *rows = mb_json_array(document, "rows");

	for (int i = 0; i < a->score_count; i++) {
		const struct mb_outcome *s = &a->scores[i];
		cJSON *row = mb_json_object(rows, NULL);

		mb_json_text(row, "id", s->trial->row->id);
		mb_json_text(row, "source", s->trial->row->source);
		mb_json_text(row, "quantity", s->quantity);
		if (s->kind[0] == 'm') {
			mb_json_bytes(row, "measured", s->measured);
			mb_json_bytes(row, "predicted", s->predicted);
		} else {
			mb_json_number(row, "measured", s->measured);
			mb_json_number(row, "predicted", s->predicted);
		}
		mb_json_number(row, "error_frac", s->error_frac);
		mb_json_number(row, "low", s->high > 0 ? s->low : NAN);
		mb_json_number(row, "high", s->high > 0 ? s->high : NAN);
	}
}

static void add_skipped(cJSON *document, const struct mb_trials *trials)
{
	cJSON *skipped = mb_json_array(document, "skipped");

	for (int i = 0; i < trials->skipped_count; i++) {
		cJSON *row = mb_json_object(skipped, NULL);

		mb_json_text(row, "id", trials->skipped[i].id);
		mb_json_text(row, "reason", trials->skipped[i].skip);
	}
}

static void add_summary(cJSON *document, const struct mb_accuracy *a)
{
	cJSON *summary = mb_json_array(document, "summary");

	for (int i = 0; i < a->summary_count; i++) {
		const struct mb_summary *s = &a->summaries[i];
		cJSON *group = mb_json_object(summary, NULL);

		mb_json_text(group, "by", s->by);
		mb_json_text(group, "group", s->group);
		mb_json_text(group, "quantity", s->quantity);
		mb_json_int(group, "n", s->n);
		mb_json_number(group, "median", s->median);
		mb_json_number(group, "mean", s->mean);
		mb_json_number(group, "p90", s->p90);
		mb_json_number(group, "max", s->max);
		mb_json_number(group, "bias", s->bias);
		mb_json_number(group, "in_band_frac", s->in_band);
	}
}

void mb_validation_json(const struct mb_validation *x, struct mb_text *ret)
{
	cJSON *o = mb_json_document("mbsim.validate/1");

	add_rows(o, x->accuracy);
	add_skipped(o, x->trials);
	add_summary(o, x->accuracy);
	mb_pairs_json(x->accuracy, o);
	mb_json_write(o, true, ret);
}

void mb_validation_csv(const struct mb_validation *x, struct mb_text *ret)
{
	char number[32];

	mb_text_add(ret, "id,source,model,hardware,precision,stack,quantity,measured,predicted,error_frac\n");
	for (int i = 0; i < x->accuracy->score_count; i++) {
		const struct mb_outcome *s = &x->accuracy->scores[i];
		const struct mb_case *c = &s->trial->q->c;
		const char *words[] = { s->trial->row->id, s->trial->row->source, c->model.name, c->hardware.name,
			mb_trial_precision(s->trial), c->stack.name, s->quantity };
		const double numbers[] = { s->measured, s->predicted, s->error_frac };

		for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
			mb_csv_field(ret, words[w]);
			mb_text_add(ret, ",");
		}
		for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
			mb_shortest(numbers[n], number, sizeof number);
			mb_text_printf(ret, "%s%s", n ? "," : "", number);
		}
		mb_text_add(ret, "\n");
	}
}
