/* What-if questions: one number of a machine changed in place, by a factor ("1.5x") or to a value ("288 GB"). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "desc/bind.h"
#include "desc/hardware.h"

#define AT(member) offsetof(struct mb_hardware, member)

static const struct change {
	const char *name;
	size_t offset;
	size_t follows;                 /* another member that scales along; 0: none */
	enum mb_dimension dimension;
	double min, max;
} changes[] = {
	{ "hbm_bandwidth",    AT(hbm_bytes_per_s),     0,                        MB_BYTES_PER_S,  1e10, 1e15 },
	{ "bf16",             AT(bf16_flop_per_s),     AT(mfu_bf16_flop_per_s),  MB_FLOP_PER_S,   1e11, 1e18 },
	{ "fp8",              AT(fp8_flop_per_s),      AT(mfu_fp8_flop_per_s),   MB_FLOP_PER_S,   1e11, 1e18 },
	{ "fp4",              AT(fp4_flop_per_s),      AT(mfu_fp4_flop_per_s),   MB_FLOP_PER_S,   1e11, 1e18 },
	{ "tdp",              AT(tdp_w),               0,                        MB_WATTS,        50,   10000 },
	{ "nvlink",           AT(nvlink_bytes_per_s),  0,                        MB_BYTES_PER_S,  1e8,  1e14 },
	{ "scale_out",        AT(nic_bytes_per_s),     0,                        MB_BYTES_PER_S,  1e7,  1e14 },
	{ "host_link",        AT(host_bytes_per_s),    0,                        MB_BYTES_PER_S,  1e8,  1e14 },
	{ "oversubscription", AT(oversubscription),    0,                        MB_PURE,         1,    1000 },
	{ "price",            AT(price_usd_per_gpu_h), 0,                        MB_USD_PER_HOUR, 0,    10000 },
};

#undef AT

static double *member(struct mb_hardware *hw, size_t offset)
{
	return (double *)(void *)((char *)hw + offset);
}

/* "1.5x" */
static bool is_factor(const struct mb_node *v, double *factor)
{
	const char *end;

	return v->type == MB_NODE_SCALAR && mb_parse_number(v->text, &end, factor) && strcmp(end, "x") == 0;
}

/* The new value of a quantity that is `old` now. */
static bool read_new(const struct mb_node *v, const char *name, enum mb_dimension dimension, double old, double min,
                     double max, double *ret, struct mb_diags *diags)
{
	double factor;

	if (!is_factor(v, &factor))
		return mb_bind_quantity(v, name, dimension, min, max, ret, diags);
	if (old <= 0)
		return mb_fail(diags, v->pos, "%s: this machine has none, a factor says nothing", name);
	if (factor <= 0 || old * factor < min || old * factor > max)
		return mb_fail(diags, v->pos, "%s: %.40s is out of range", name, v->text);
	*ret = old * factor;
	return true;
}

/* What PyTorch can use keeps its share of what is sold. */
static bool change_hbm(struct mb_hardware *hw, const struct mb_node *v, struct mb_diags *diags)
{
	double old = (double)hw->hbm_bytes, bytes;

	if (!read_new(v, "hbm", MB_BYTES, old, 1e9, 1e13, &bytes, diags))
		return false;
	hw->usable_bytes = llround((double)hw->usable_bytes * (bytes / old));
	hw->hbm_bytes = llround(bytes);
	return true;
}

static bool change_domain(struct mb_hardware *hw, const struct mb_node *v, struct mb_diags *diags)
{
	double gpus;

	if (!read_new(v, "nvlink_domain", MB_COUNT_UNIT, hw->nvlink_domain, 1, 65536, &gpus, diags))
		return false;
	if (floor(gpus) < gpus)
		return mb_fail(diags, v->pos, "nvlink_domain: %g is not a whole number of GPUs", gpus);
	if (gpus > 1 && hw->nvlink_bytes_per_s <= 0)
		return mb_fail(diags, v->pos, "nvlink_domain: this machine has no NVLink");
	hw->nvlink_domain = (int)gpus;
	return true;
}

static bool unknown(const char *name, struct mb_pos at, struct mb_diags *diags)
{
	enum { COUNT = sizeof changes / sizeof changes[0] };
	const char *names[COUNT + 2] = { "hbm", "nvlink_domain" }, *near;
	struct mb_diag *d = mb_report(diags, MB_ERROR, at, name, "unknown hardware key '%.80s'", name);

	for (size_t i = 0; i < COUNT; i++)
		names[i + 2] = changes[i].name;
	near = mb_nearest(name, names, COUNT + 2);
	snprintf(d->nearest, sizeof d->nearest, "%s", near ? near : "");
	return false;
}

bool mb_hardware_change(struct mb_hardware *hw, const char *name, const struct mb_node *value, struct mb_diags *diags)
{
	if (strcmp(name, "hbm") == 0)
		return change_hbm(hw, value, diags);
	if (strcmp(name, "nvlink_domain") == 0)
		return change_domain(hw, value, diags);
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		const struct change *c = &changes[i];
		double *now = member(hw, c->offset), changed;

		if (strcmp(c->name, name) != 0)
			continue;
		if (!read_new(value, name, c->dimension, *now, c->min, c->max, &changed, diags))
			return false;
		if (c->follows)
			*member(hw, c->follows) *= *now > 0 ? changed / *now : 0;
		if (c->follows && *now <= 0)
			*member(hw, c->follows) = changed;
		*now = changed;
		return true;
	}
	return unknown(name, value->pos, diags);
}
