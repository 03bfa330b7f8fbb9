#include <math.h>

#include "report/calibrate.h"
#include "report/json.h"

static void add_parameters(cJSON *document, const struct mb_fit *fit)
{
	static const char *const architectures[] = {
		[MB_AMPERE] = "ampere", [MB_HOPPER] = "hopper", [MB_BLACKWELL] = "blackwell", [MB_RUBIN] = "rubin",
	};
	cJSON *list = mb_json_array(document, "parameters");

	for (int j = 0; fit && j < fit->free_count; j++) {
		const struct mb_free *f = &fit->free[j];
		cJSON *o = mb_json_object(list, NULL);

		mb_json_text(o, "name", mb_param_rows[f->id].name);
		mb_json_text(o, "home", f->architecture < 0 ? "stack" : architectures[f->architecture]);
		mb_json_number(o, "prior", mb_fit_value(f, f->center));
		mb_json_number(o, "prior_sigma", f->sigma);
		mb_json_number(o, "fitted", mb_fit_value(f, f->x));
		mb_json_number(o, "low", mb_fit_value(f, f->x - MB_BAND_80 * f->spread));
		mb_json_number(o, "high", mb_fit_value(f, f->x + MB_BAND_80 * f->spread));
		mb_json_number(o, "sigma", f->spread);
		mb_json_number(o, "information_frac", f->information);
		mb_json_bool(o, "prior_kept", f->kept);
	}
}

static void add_correlations(cJSON *document, const struct mb_fit *fit)
{
	cJSON *list = mb_json_array(document, "correlations");
	int p = fit ? fit->free_count : 0;

	for (int j = 0; j < p; j++) {
		for (int k = j + 1; k < p; k++) {
			double r = fit->covariance[j * p + k] / (fit->free[j].spread * fit->free[k].spread);

			if (fabs(r) < 0.5)
				continue;
			cJSON *o = mb_json_object(list, NULL);

			mb_json_int(o, "first", j);
			mb_json_int(o, "second", k);
			mb_json_number(o, "correlation", r);
		}
	}
}

static void add_errors(cJSON *document, const struct mb_accuracy *a)
{
	cJSON *list = mb_json_array(document, "errors");

	for (int i = 0; i < a->summary_count; i++) {
		const struct mb_summary *s = &a->summaries[i];
		cJSON *o = mb_json_object(list, NULL);

		mb_json_text(o, "group", s->group);
		mb_json_int(o, "n", s->n);
		mb_json_number(o, "median", s->median);
		mb_json_number(o, "mean", s->mean);
		mb_json_number(o, "p90", s->p90);
		mb_json_number(o, "max", s->max);
		mb_json_number(o, "bias", s->bias);
	}
}

static void add_links(cJSON *document, const struct mb_calibration *x)
{
	cJSON *list = mb_json_array(document, "links");

	for (int i = 0; i < x->link_count; i++) {
		const struct mb_link_fit *l = &x->links[i];
		cJSON *o = mb_json_object(list, NULL);

		mb_json_text(o, "file", l->file);
		mb_json_text(o, "parameter", l->across ? "scale_out_collective_frac" : "nvlink_collective_frac");
		mb_json_int(o, "ranks", l->ranks);
		mb_json_int(o, "points", l->points);
		mb_json_number(o, "bytes_per_s", l->bytes_per_s);
		mb_json_number(o, "frac", l->frac);
		mb_json_number(o, "collective_latency_s", l->latency_s);
		mb_json_number(o, "error_frac", l->error_frac);
	}
}

void mb_calibration_json(const struct mb_calibration *x, struct mb_text *ret)
{
	cJSON *o = mb_json_document("mbsim.calibrate/1");

	add_parameters(o, x->fit);
	add_correlations(o, x->fit);
	add_errors(o, x->accuracy);
	add_links(o, x);
	mb_json_int(o, "runs", x->fit ? x->fit->count : 0);
	mb_json_int(o, "skipped", x->trials->skipped_count);
	mb_json_number(o, "scatter_frac", x->fit ? x->fit->noise : NAN);
	mb_json_write(o, true, ret);
}
