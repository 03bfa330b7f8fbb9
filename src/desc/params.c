#include "desc/params.h"

#include <stdio.h>
#include <string.h>

#include "desc/bind.h"
#include "desc/node.h"

#define HW true
#define STACK false

const struct mb_param_row mb_param_rows[MB_PARAM_COUNT] = {
#define PARAM(member, home, dimension, min, max, doc) \
	{ #member, offsetof(struct mb_params, member), home, MB_##dimension, min, max, doc },
#include "desc/params.def"
#undef PARAM
};

#undef HW
#undef STACK

static const char *const origins[] = { [MB_MEASURED] = "measured", [MB_FITTED] = "fitted", [MB_ASSUMED] = "assumed" };

static double *member(struct mb_params *params, const struct mb_param_row *row)
{
	return (double *)(void *)((char *)params + row->offset);
}

static void report_unknown(const struct mb_node *key, bool hardware, struct mb_diags *diags)
{
	const char *names[MB_PARAM_COUNT], *near;
	struct mb_diag *d;
	size_t n = 0;

	for (int i = 0; i < MB_PARAM_COUNT; i++) {
		if (mb_param_rows[i].hardware == hardware)
			names[n++] = mb_param_rows[i].name;
	}
	near = mb_nearest(key->text, names, n);
	d = mb_report(diags, MB_ERROR, key->pos, key->text, "unknown parameter '%.80s'", key->text);
	snprintf(d->nearest, sizeof d->nearest, "%s", near ? near : "");
}

static bool read_prior(const struct mb_node *value, const struct mb_node *sigma, const struct mb_param_row *row, struct mb_provenance *p,
                       struct mb_diags *diags)
{
	if (!value && !sigma)
		return true;
	if (!value || !sigma || p->origin != MB_FITTED)
		return mb_fail(diags, (value ? value : sigma)->key->pos, "%s: prior and prior_sigma go together, with fitted", row->name);
	return mb_bind_quantity(value, "prior", row->dimension, row->min, row->max, &p->prior, diags) &&
	       mb_bind_quantity(sigma, "prior_sigma", MB_PURE, 0.001, 5, &p->prior_sigma, diags);
}

/* {fitted: 0.669, sigma: 0.06, source: "..."}: exactly one word of origin. */
static bool read_row(const struct mb_node *v, const struct mb_param_row *row, struct mb_arena *arena,
                     struct mb_params *params, struct mb_provenance *ret, struct mb_diags *diags)
{
	struct mb_provenance p = { .pos = v->pos };
	const struct mb_node *value = NULL, *prior = NULL, *prior_sigma = NULL;
	double number;

	if (v->type != MB_NODE_MAP)
		return mb_fail(diags, v->pos, "%s: expected {measured|fitted|assumed: VALUE, source: TEXT}", row->name);
	for (const struct mb_node *c = v->child; c; c = c->next) {
		enum mb_origin origin = MB_ORIGIN_NONE;

		for (int i = MB_MEASURED; i <= MB_ASSUMED; i++) {
			if (strcmp(c->key->text, origins[i]) == 0)
				origin = (enum mb_origin)i;
		}
		if (origin != MB_ORIGIN_NONE && value)
			return mb_fail(diags, c->key->pos, "%s: is it %s or %s", row->name, value->key->text, c->key->text);
		if (origin != MB_ORIGIN_NONE) {
			p.origin = origin;
			value = c;
		} else if (strcmp(c->key->text, "sigma") == 0) {
			if (!mb_bind_quantity(c, "sigma", MB_PURE, 0, 5, &p.sigma, diags))
				return false;
		} else if (strcmp(c->key->text, "prior") == 0) {
			prior = c;
		} else if (strcmp(c->key->text, "prior_sigma") == 0) {
			prior_sigma = c;
		} else if (strcmp(c->key->text, "source") == 0 && c->type == MB_NODE_SCALAR && *c->text) {
			p.source = mb_arena_strdup(arena, c->text);
		} else {
			return mb_fail(diags, c->key->pos, "%s: unexpected '%.80s'; expected measured, fitted or assumed, source, sigma, prior",
			               row->name, c->key->text);
		}
	}
	if (!value)
		return mb_fail(diags, v->pos, "%s: the value is missing, expected measured:, fitted: or assumed:", row->name);
	if (!p.source)
		return mb_fail(diags, v->pos, "%s: the source is missing", row->name);
	if (!mb_bind_quantity(value, row->name, row->dimension, row->min, row->max, &number, diags) ||
	    !read_prior(prior, prior_sigma, row, &p, diags))
		return false;
	*member(params, row) = number;
	*ret = p;
	return true;
}

bool mb_params_read(const struct mb_node *map, bool hardware, struct mb_arena *arena, struct mb_params *params,
                    struct mb_provenance *provenance, struct mb_diags *diags)
{
	int before = diags->errors;

	if (map->type != MB_NODE_MAP)
		return mb_fail(diags, map->pos, "expected a mapping of parameters");
	for (const struct mb_node *v = map->child; v; v = v->next) {
		int i = 0;

		while (i < MB_PARAM_COUNT && (mb_param_rows[i].hardware != hardware ||
		                              strcmp(mb_param_rows[i].name, v->key->text) != 0))
			i++;
		if (i == MB_PARAM_COUNT)
			report_unknown(v->key, hardware, diags);
		else
			read_row(v, &mb_param_rows[i], arena, params, &provenance[i], diags);
	}
	return diags->errors == before;
}

bool mb_params_complete(const struct mb_provenance *provenance, bool hardware, struct mb_pos at, struct mb_diags *diags)
{
	bool ok = true;

	for (int i = 0; i < MB_PARAM_COUNT; i++) {
		if (mb_param_rows[i].hardware != hardware || provenance[i].origin != MB_ORIGIN_NONE)
			continue;
		mb_report(diags, MB_ERROR, at, mb_param_rows[i].name, "parameter '%s' is missing", mb_param_rows[i].name);
		ok = false;
	}
	return ok;
}
