/* Fitted values as a descriptor that extends the one they started from. */
#include <math.h>
#include <stdio.h>

#include "calib/fit_private.h"

static double given(const struct mb_trial *t, const struct mb_free *f)
{
	const struct mb_param_row *row = &mb_param_rows[f->id];
	const struct mb_params *params = row->hardware ? &t->q->c.hardware.params : &t->q->c.stack.params;

	return *(const double *)((const char *)params + row->offset);
}

static void write_value(const struct mb_free *f, double value, const char *measured, int runs, struct mb_text *ret)
{
	const struct mb_param_row *row = &mb_param_rows[f->id];
	char text[64];

	if (row->dimension == MB_PURE)
		snprintf(text, sizeof text, "%.5g", value);
	else
		mb_format_quantity(text, sizeof text, value, row->dimension);
	mb_text_printf(ret, "  %s: {fitted: %s, sigma: %.2g, source: \"fitted to %d runs of %s\"}\n", row->name, text, f->spread, runs,
	               measured);
}

int mb_fit_write(const struct mb_fit *fit, const struct mb_trial *like, bool hardware, const char *measured, struct mb_text *ret)
{
	const struct mb_case *c = &like->q->c;
	const char *base = hardware ? c->hardware.name : c->stack.name;
	int changed = 0;

	mb_text_printf(ret, "extends: %s\nsource: \"fitted to %d runs of %s; the rest as %s\"\n\n%s:\n", base, fit->count, measured, base,
	               hardware ? "efficiency" : "parameters");
	for (int j = 0; j < fit->free_count; j++) {
		const struct mb_free *f = &fit->free[j];
		const struct mb_param_row *row = &mb_param_rows[f->id];

		if (row->hardware != hardware || f->kept || !mb_fit_touches(f, like) || !(given(like, f) > 0))
			continue;
		write_value(f, fmin(fmax(given(like, f) * exp(f->x), row->min), row->max), measured, fit->count, ret);
		changed++;
	}
	return changed;
}
