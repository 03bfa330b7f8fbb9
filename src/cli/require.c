#include "cli/require.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

static const struct { const char *name; enum mb_dimension dimension; } quantities[MB_Q_COUNT] = {
	[MB_Q_STEP] = { "step_s", MB_SECONDS },
	[MB_Q_PEAK] = { "peak_allocated_bytes", MB_BYTES },
	[MB_Q_USED] = { "device_used_bytes", MB_BYTES },
	[MB_Q_MARGIN] = { "margin_bytes", MB_BYTES },
	[MB_Q_TOKENS] = { "tokens_per_s_per_gpu", MB_PURE },
	[MB_Q_TFLOPS] = { "model_tflops_per_gpu", MB_PURE },
	[MB_Q_MFU] = { "mfu", MB_PURE },
};

static bool read_value(const char *text, enum mb_dimension dimension, double *ret)
{
	char *end;
	double plain = strtod(text, &end);

	if (end != text && *end == '\0' && isfinite(plain)) {
		*ret = plain;
		return true;
	}
	return mb_parse_quantity(text, dimension, ret);
}

static bool read_range(const char *text, enum mb_dimension dimension, struct mb_requirement *ret)
{
	const char *dots = strstr(text, "..");
	char low[64];

	if (!dots)
		return false;
	snprintf(low, sizeof low, "%.*s", (int)(dots - text), text);
	if (low[0] && !read_value(low, dimension, &ret->low))
		return false;
	if (dots[2] && !read_value(dots + 2, dimension, &ret->high))
		return false;
	return low[0] || dots[2];
}

static bool fail(struct mb_diags *diags, struct mb_pos at, const char *text, const char *expected, const char *nearest)
{
	struct mb_diag *d = mb_report(diags, MB_ERROR, at, "", "--require: cannot read '%.100s'", text);

	snprintf(d->expected, sizeof d->expected, "%s", expected);
	snprintf(d->nearest, sizeof d->nearest, "%s", nearest ? nearest : "");
	return false;
}

bool mb_requirement_read(const char *text, struct mb_pos at, struct mb_requirement *ret, struct mb_diags *diags)
{
	const char *names[MB_Q_COUNT];
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
	const char *rest = text + length;
	char name[64];
	struct mb_requirement r = { text, MB_Q_COUNT, -INFINITY, INFINITY };
	bool ok;

	snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
	for (int i = 0; i < MB_Q_COUNT; i++) {
		names[i] = quantities[i].name;
		if (strcmp(name, quantities[i].name) == 0)
			r.quantity = (enum mb_quantity)i;
	}
	if (r.quantity == MB_Q_COUNT)
		return fail(diags, at, text, "a limit such as 'step_s<=15' or 'mfu>=0.4'",
		            mb_nearest(name, names, MB_Q_COUNT));
	rest += strspn(rest, " ");
	if (strncmp(rest, "<=", 2) == 0)
		ok = read_value(rest + 2, quantities[r.quantity].dimension, &r.high);
	else if (strncmp(rest, ">=", 2) == 0)
		ok = read_value(rest + 2, quantities[r.quantity].dimension, &r.low);
	else
		ok = rest[0] == '=' && read_range(rest + 1, quantities[r.quantity].dimension, &r);
	if (!ok)
		return fail(diags, at, text, "a limit such as 'step_s<=15', 'step_s=..15' or 'mfu>=0.4'", NULL);
	*ret = r;
	return true;
}

bool mb_requirements_hold(const struct mb_requirement *require, int count, const struct mb_quantities *q,
                          struct mb_text *ret)
{
	bool all = true;

	for (int i = 0; i < count; i++) {
		const struct mb_requirement *r = &require[i];
		double value = q->value[r->quantity];

		if (value >= r->low && value <= r->high)
			continue;
		all = false;
		mb_text_printf(ret, "--require missed: %s is %.6g, wanted %s %.6g\n", quantities[r->quantity].name,
		               value, value > r->high ? "at most" : "at least", value > r->high ? r->high : r->low);
	}
	return all;
}

double mb_requirement_limit(const struct mb_requirement *require, int count, enum mb_quantity quantity)
{
	double limit = INFINITY;

	for (int i = 0; i < count; i++) {
		if (require[i].quantity == quantity && require[i].high < limit)
			limit = require[i].high;
	}
	return isfinite(limit) ? limit : 0;
}
