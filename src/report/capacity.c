#include "report/capacity.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "plan/case.h"

static const double DAY_S = 86400, WITHIN_FRAC = 0.05;

double mb_capacity_number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

const char *mb_capacity_text(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	return cJSON_IsString(v) ? v->valuestring : "";
}

static struct mb_given take(double said, double sweep, double usual)
{
	if (said > 0)
		return (struct mb_given){ said, "command line" };
	if (sweep > 0)
		return (struct mb_given){ sweep, "sweep file" };
	return (struct mb_given){ usual, "assumed" };
}

static const char *short_name(const char *name)
{
	bool negated;
	const struct mb_key *key = mb_key_find(name, &negated);

	return key && key->short_name ? key->short_name : name;
}

/* "tp=1 pp=2", without gpus for the name of a series: short, for legends and first columns. */
static const char *settings_words(const struct mb_capacity *c, int i, bool gpus, struct mb_arena *arena)
{
	const cJSON *keys = cJSON_GetObjectItem(c->head, "keys");
	cJSON *values = cJSON_Parse(c->grid.settings[i]);
	struct mb_text t = { 0 };
	const char *ret;

	mb_text_add(&t, "");
	for (int k = 0; k < cJSON_GetArraySize(keys); k++) {
		const char *key = cJSON_GetArrayItem(keys, k)->valuestring;
		const cJSON *value = cJSON_GetArrayItem(values, k);

		if (!cJSON_IsString(value) || !value->valuestring[0] || (!gpus && strcmp(key, "gpus") == 0))
			continue;
		mb_text_printf(&t, "%s%s=%s", t.length ? " " : "", short_name(key), value->valuestring);
	}
	ret = mb_arena_strdup(arena, t.data);
	mb_text_free(&t);
	cJSON_Delete(values);
	return ret;
}

static int series_of(struct mb_capacity *c, const char *name)
{
	for (int i = 0; i < c->series_count; i++) {
		if (strcmp(c->series[i], name) == 0)
			return i;
	}
	c->series[c->series_count] = name;
	return c->series_count++;
}

static void read_cell(struct mb_capacity *c, int i, struct mb_store *store, double price_usd, struct mb_arena *arena)
{
	struct mb_capacity_cell *x = &c->cells[i];
	const char *text = mb_store_document(store, c->grid.keys[i], arena);
	const cJSON *result;
	double hours;

	x->settings = settings_words(c, i, true, arena);
	x->series = series_of(c, settings_words(c, i, false, arena));
	x->document = text ? cJSON_Parse(text) : NULL;
	x->done = x->document != NULL;
	x->verdict = x->done ? mb_capacity_text(x->document, "verdict") : "missing";
	if (!x->done)
		return;
	c->done_count++;
	result = cJSON_GetObjectItem(x->document, "result");
	x->gpus = mb_capacity_number(x->document, "gpus");
	x->at_risk = strcmp(x->verdict, "at_risk") == 0;
	x->fits = x->at_risk || strcmp(x->verdict, "fits") == 0;
	x->price_usd = price_usd > 0 ? price_usd : mb_capacity_number(x->document, "price_usd_per_gpu_h");
	x->step_s = mb_capacity_number(result, "step_s");
	x->low_s = mb_capacity_number(result, "low_s");
	x->high_s = mb_capacity_number(result, "high_s");
	if (!x->fits || !(x->step_s > 0))
		return;
	c->fit_count++;
	x->tokens_per_s = mb_capacity_number(result, "tokens_per_s_per_gpu") * x->gpus;
	x->days = c->tokens.value / x->tokens_per_s / c->goodput_frac.value / DAY_S;
	x->low_days = x->days * x->low_s / x->step_s;
	x->high_days = x->days * x->high_s / x->step_s;
	hours = x->days * 24;
	x->gpu_hours = hours * x->gpus;
	x->usd = x->gpu_hours * x->price_usd;
	x->mwh = x->gpu_hours * mb_capacity_number(x->document, "tdp_w") * c->pue.value / 1e6;
}

static void fill_efficiency(struct mb_capacity *c)
{
	for (int s = 0; s < c->series_count; s++) {
		const struct mb_capacity_cell *smallest = NULL;

		for (int i = 0; i < c->grid.count; i++) {
			const struct mb_capacity_cell *x = &c->cells[i];

			if (x->fits && x->series == s && (!smallest || x->gpus < smallest->gpus))
				smallest = x;
		}
		for (int i = 0; smallest && i < c->grid.count; i++) {
			struct mb_capacity_cell *x = &c->cells[i];

			if (x->fits && x->series == s)
				x->efficiency_frac = x->tokens_per_s / x->gpus / (smallest->tokens_per_s / smallest->gpus);
		}
	}
}

static double price_of(const struct mb_capacity_cell *x, bool priced)
{
	return priced ? x->usd : x->gpu_hours;
}

/* The fastest within 5 % of the cheapest; with a deadline the cheapest that meets it. Plans at risk only when nothing else fits. */
static int choose(const struct mb_capacity *c, bool risk)
{
	bool priced = true;
	double cheapest = INFINITY;
	int best = -1;

	for (int i = 0; i < c->grid.count; i++)
		priced = priced && (!c->cells[i].fits || c->cells[i].price_usd > 0);
	for (int i = 0; i < c->grid.count; i++) {
		const struct mb_capacity_cell *x = &c->cells[i];

		if (x->fits && x->at_risk <= risk && (c->deadline_days <= 0 || x->days <= c->deadline_days))
			cheapest = fmin(cheapest, price_of(x, priced));
	}
	for (int i = 0; i < c->grid.count; i++) {
		const struct mb_capacity_cell *x = &c->cells[i];
		double limit = c->deadline_days > 0 ? cheapest : cheapest * (1 + WITHIN_FRAC);

		if (!x->fits || x->at_risk > risk || (c->deadline_days > 0 && x->days > c->deadline_days) || price_of(x, priced) > limit)
			continue;
		if (best < 0 || x->days < c->cells[best].days)
			best = i;
	}
	return best;
}

static void pick(struct mb_capacity *c)
{
	c->chosen = choose(c, false);
	if (c->chosen < 0)
		c->chosen = choose(c, true);
	c->larger = -1;
	for (int i = 0; c->chosen >= 0 && i < c->grid.count; i++) {
		const struct mb_capacity_cell *x = &c->cells[i], *now = &c->cells[c->chosen];

		if (x->fits && x->series == now->series && x->gpus > now->gpus && (c->larger < 0 || x->gpus < c->cells[c->larger].gpus))
			c->larger = i;
	}
}

bool mb_capacity_read(struct mb_store *store, const struct mb_capacity_options *o, struct mb_arena *arena, struct mb_capacity *ret,
                      struct mb_diags *diags)
{
	double price;

	*ret = (struct mb_capacity){ .chosen = -1, .larger = -1 };
	if (!mb_store_get_grid(store, arena, &ret->grid, diags))
		return false;
	ret->head = cJSON_Parse(ret->grid.head);
	ret->version = mb_capacity_text(ret->head, "version");
	ret->tokens = take(o->tokens, mb_capacity_number(ret->head, "tokens"), 1e12);
	ret->goodput_frac = take(o->goodput_frac, mb_capacity_number(ret->head, "goodput_frac"), 0.9);
	ret->pue = take(o->pue, mb_capacity_number(ret->head, "pue"), 1.2);
	ret->deadline_days = o->days;
	price = o->price_usd > 0 ? o->price_usd : mb_capacity_number(ret->head, "price_usd_per_gpu_h");
	ret->cells = mb_arena_alloc(arena, (size_t)(ret->grid.count + 1) * sizeof *ret->cells);
	ret->series = mb_arena_alloc(arena, (size_t)(ret->grid.count + 1) * sizeof *ret->series);
	for (int i = 0; i < ret->grid.count; i++)
		read_cell(ret, i, store, price, arena);
	fill_efficiency(ret);
	pick(ret);
	ret->price_from = o->price_usd > 0 ? "command line" : price > 0 ? "sweep file" : "hardware file";
	return true;
}

void mb_capacity_free(struct mb_capacity *c)
{
	for (int i = 0; i < c->grid.count; i++)
		cJSON_Delete(c->cells[i].document);
	cJSON_Delete(c->head);
}
