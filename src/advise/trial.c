#include "advise/trial.h"

#include <math.h>
#include <string.h>

#include "plan/rules_private.h"

void mb_bench_init(struct mb_bench *b, const struct mb_query *q, struct mb_evaluation *e)
{
	b->q = q;
	b->now = *q;
	b->e = e;
	b->legal_only = false;
}

static void remove_change(struct mb_changes *c, int at)
{
	c->count--;
	memmove(&c->key[at], &c->key[at + 1], (size_t)(c->count - at) * sizeof c->key[0]);
	memmove(&c->value[at], &c->value[at + 1], (size_t)(c->count - at) * sizeof c->value[0]);
}

static bool set_value(struct mb_changes *c, const struct mb_query *q, enum mb_key_id key, union mb_value value)
{
	union mb_value given = mb_key_get(&q->c.run, &mb_keys[key]);
	bool same = mb_keys[key].type == MB_KEY_NUMBER ? fabs(given.d - value.d) < 1e-12 : given.i == value.i;
	int at = 0;

	while (at < c->count && c->key[at] != key)
		at++;
	if (same) {
		if (at < c->count)
			remove_change(c, at);
		return true;
	}
	if (at == MB_MAX_CHANGES)
		return false;
	c->key[at] = key;
	c->value[at] = value;
	c->count += at == c->count;
	return true;
}

bool mb_changes_set(struct mb_changes *c, const struct mb_query *q, enum mb_key_id key, long long value)
{
	return set_value(c, q, key, (union mb_value){ .i = value });
}

bool mb_changes_merge(struct mb_changes *c, const struct mb_query *q, const struct mb_changes *more)
{
	bool ok = true;

	for (int i = 0; i < more->count; i++)
		ok = set_value(c, q, more->key[i], more->value[i]) && ok;
	if (more->max_connections)
		c->max_connections = more->max_connections;
	c->expandable |= more->expandable;
	return ok;
}

bool mb_changes_fix(struct mb_changes *c, const struct mb_query *q, const struct mb_fix *fix)
{
	bool ok = true;

	for (int i = 0; i < fix->count; i++)
		ok = set_value(c, q, fix->key[i], fix->value[i]) && ok;
	return ok;
}

int mb_changes_count(const struct mb_changes *c)
{
	return c->count + (c->max_connections > 0) + c->expandable;
}

bool mb_changes_has(const struct mb_changes *c, enum mb_key_id key)
{
	for (int i = 0; i < c->count; i++) {
		if (c->key[i] == key)
			return true;
	}
	return false;
}

bool mb_changes_learning(const struct mb_changes *c)
{
	static const enum mb_key_id keys[] = {
		MB_K_precision, MB_K_task, MB_K_seq, MB_K_gbs, MB_K_optimizer, MB_K_pao, MB_K_main_params, MB_K_main_grads, MB_K_exp_avg,
		MB_K_exp_avg_sq, MB_K_grad_fp32, MB_K_mtp, MB_K_capacity, MB_K_pad_capacity, MB_K_fp8_gather, MB_K_fp8_dpa, MB_K_router_dtype,
	};

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (mb_changes_has(c, keys[i]))
			return true;
	}
	return false;
}

/* What the loader decides from the precision and from FSDP where the user is silent. */
static void derive_dtypes(struct mb_bench *b)
{
	struct mb_run *r = &b->now.c.run;
	bool bridge = b->now.c.stack.framework == MB_BRIDGE;

	if (!b->q->set[MB_K_grad_fp32])
		r->grad_reduce_in_fp32 = r->precision != MB_FP16;
	if (!b->q->set[MB_K_fp8_gather])
		r->fp8_param_gather = bridge && (r->precision == MB_FP8_CS || r->precision == MB_FP8_MX);
	if (!b->q->set[MB_K_reuse_grad_buf])
		r->reuse_grad_buf_for_mxfp8_param_ag = bridge && r->precision == MB_FP8_MX && r->fp8_param_gather == 1 && !r->plan.use_megatron_fsdp;
}

/* A list of modules without a granularity means selective, as in a run file. */
static void apply_change(struct mb_bench *b, enum mb_key_id key, union mb_value value)
{
	struct mb_plan *p = &b->now.c.run.plan;

	mb_apply_change(&b->now.c, b->q, key, value);
	if (key == MB_K_modules && value.i != 0 && p->recompute == MB_RECOMPUTE_NONE && !b->q->set[MB_K_recompute])
		p->recompute = MB_RECOMPUTE_SELECTIVE;
	if (key == MB_K_precision || (key == MB_K_fsdp && b->now.c.stack.framework == MB_BRIDGE))
		derive_dtypes(b);
	b->now.set[key] = true;
}

static void apply(struct mb_bench *b, const struct mb_changes *c)
{
	struct mb_case *now = &b->now.c;

	now->run = b->q->c.run;
	now->mtp_depth = b->q->c.mtp_depth;
	now->domain = b->q->c.domain;
	memcpy(b->now.set, b->q->set, sizeof b->now.set);
	for (int i = 0; i < c->count; i++)
		apply_change(b, c->key[i], c->value[i]);
	if (c->max_connections)
		now->run.cuda_device_max_connections = c->max_connections;
	if (c->expandable)
		now->run.expandable_segments = true;
	if (now->run.gpus != b->q->c.run.gpus)
		mb_case_compile(now);
}

static void take_memory(const struct mb_evaluation *e, struct mb_trial *ret)
{
	const struct mb_stage_memory *m = &e->stage_memory[e->peak_stage];

	ret->stage = e->peak_stage;
	ret->phase = m->phase;
	ret->peak_bytes = e->peak_bytes;
	ret->reserved_bytes = e->reserved_bytes;
	ret->used_bytes = e->device_used_bytes;
	ret->margin_bytes = e->margin_bytes;
	ret->first_peak_bytes = m->first_step_peak_bytes;
	ret->between_bytes = m->between_bytes;
	ret->host_bytes = m->host_bytes;
	ret->in_flight_chunks = m->in_flight_chunks;
	ret->in_flight_bytes = m->in_flight_bytes;
	memcpy(ret->memory, m->terms, sizeof ret->memory);
	ret->first_used_bytes = 0;
	for (int r = 0; r < e->dims.pp; r++) {
		const struct mb_stage_memory *s = &e->stage_memory[r];
		double factor = s->peak_bytes > 0 ? s->reserved_bytes / s->peak_bytes : 1;

		ret->first_used_bytes = fmax(ret->first_used_bytes, s->device_used_bytes - s->reserved_bytes + factor * s->first_step_peak_bytes);
	}
}

static void take_time(const struct mb_evaluation *e, struct mb_trial *ret)
{
	ret->step_s = e->step_s;
	ret->low_s = e->low_s;
	ret->high_s = e->high_s;
	ret->host_s = e->time_terms[MB_TIME_host];
	memcpy(ret->terms, e->time_terms, sizeof ret->terms);
	memcpy(ret->traffic, e->traffic, sizeof ret->traffic);
	ret->ep_s = e->traffic[MB_TRAFFIC_EP_DISPATCH].seconds + e->traffic[MB_TRAFFIC_EP_COMBINE].seconds;
	ret->recompute_s = e->recompute_s;
	ret->recompute_flops = e->recompute_flops;
	ret->micro_batches = e->dims.micro_batches;
}

void mb_bench_try(struct mb_bench *b, const struct mb_changes *c, struct mb_trial *ret)
{
	const struct mb_plan *p = &b->now.c.run.plan;

	*ret = (struct mb_trial){ .changes = *c };
	apply(b, c);
	ret->run = b->now.c.run;
	ret->broken = mb_first_broken(&b->now.c, p, MB_ALL_KEYS);
	ret->verdict = MB_ILLEGAL;
	if ((ret->broken && b->legal_only) || !mb_evaluable(&b->now.c, p))
		return;
	ret->verdict = mb_evaluate(&b->now.c, p, b->e);
	ret->sized = ret->verdict != MB_ILLEGAL;
	if (ret->sized) {
		take_memory(b->e, ret);
		take_time(b->e, ret);
	}
	if (ret->broken)
		ret->verdict = MB_ILLEGAL;
}

void mb_changes_recompute(struct mb_changes *c, const struct mb_query *q, enum mb_granularity granularity, unsigned modules,
                          enum mb_method method, int layers)
{
	bool implied = granularity == MB_RECOMPUTE_SELECTIVE && modules != 0 && !q->set[MB_K_recompute]
	               && q->c.run.plan.recompute == MB_RECOMPUTE_NONE;

	bool empty = q->c.run.plan.recompute == MB_RECOMPUTE_SELECTIVE && q->set[MB_K_modules];

	/* Selective with an empty list is how some runs say "nothing"; it stays so. */
	if (granularity == MB_RECOMPUTE_SELECTIVE && modules == 0)
		granularity = MB_RECOMPUTE_NONE;
	if ((granularity == MB_RECOMPUTE_NONE && empty) || implied)
		granularity = q->c.run.plan.recompute;
	mb_changes_set(c, q, MB_K_recompute, granularity);
	mb_changes_set(c, q, MB_K_method, method);
	mb_changes_set(c, q, MB_K_recompute_layers, layers);
	mb_changes_set(c, q, MB_K_modules, modules);
}

/* ---- mending ---- */

struct mending {
	struct mb_bench *b;
	const struct mb_changes *so_far;
	const enum mb_key_id *pinned;
	int pinned_count;
	struct mb_broken before;
};

static bool is_free(const struct mending *m, enum mb_key_id key)
{
	for (int i = 0; i < m->pinned_count; i++) {
		if (m->pinned[i] == key)
			return false;
	}
	return !mb_changes_has(m->so_far, key) && mb_change_cost(key) < 300;
}

static bool fix_is_free(const struct mending *m, const struct mb_fix *fix)
{
	for (int i = 0; i < fix->count; i++) {
		if (!is_free(m, fix->key[i]))
			return false;
	}
	return fix->count > 0;
}

/* No error that was not there before. */
static bool no_worse(const struct mending *m)
{
	struct mb_broken after;

	mb_find_broken(&m->b->now.c, &m->b->now.c.run.plan, &after);
	for (int i = 0; i < mb_rule_count; i++) {
		if (mb_is_broken(&after, i) && !mb_is_broken(&m->before, i) && mb_rules[i].severity == MB_RULE_ERROR)
			return false;
	}
	return true;
}

/* The cheapest single value of a free key of the rule after which it holds. */
static bool try_keys(struct mending *m, const struct mb_rule *rule, struct mb_changes *c)
{
	enum mb_key_id keys[8];
	struct mb_change list[MB_MAX_VALUES];
	int count = mb_rule_keys(rule->keys, keys, 8);
	struct mb_changes best = { 0 };
	double best_cost = INFINITY;

	for (int i = 0; i < count; i++) {
		int values = is_free(m, keys[i]) ? mb_change_values(&m->b->now.c.run, keys[i], 10 * i, list) : 0;

		for (int j = 0; j < values; j++) {
			struct mb_changes next = *c;

			if (list[j].cost >= best_cost || !mb_changes_set(&next, m->b->q, list[j].key, list[j].value.i))
				continue;
			apply(m->b, &next);
			if (rule->holds(&m->b->now.c, &m->b->now.c.run.plan) && no_worse(m)) {
				best = next;
				best_cost = list[j].cost;
			}
			apply(m->b, c);
		}
	}
	if (best_cost < INFINITY)
		*c = best;
	return best_cost < INFINITY;
}

static bool mend_once(struct mending *m, const struct mb_rule *rule, struct mb_changes *c)
{
	struct mb_fix fix, alternative;

	mb_find_broken(&m->b->now.c, &m->b->now.c.run.plan, &m->before);
	mb_find_fix(&m->b->now, &m->b->now.c.run.plan, rule, &fix, &alternative);
	if (fix_is_free(m, &fix))
		return mb_changes_fix(c, m->b->q, &fix);
	if (fix_is_free(m, &alternative))
		return mb_changes_fix(c, m->b->q, &alternative);
	return try_keys(m, rule, c);
}

bool mb_bench_mend(struct mb_bench *b, struct mb_changes *c, const enum mb_key_id *pinned, int pinned_count,
                   const struct mb_rule **ret_broken)
{
	struct mb_changes wanted = *c;
	struct mending m = { .b = b, .so_far = &wanted, .pinned = pinned, .pinned_count = pinned_count };

	for (int i = 0; i < 8; i++) {
		const struct mb_rule *rule;

		apply(b, c);
		rule = mb_first_broken(&b->now.c, &b->now.c.run.plan, MB_ALL_KEYS);
		if (ret_broken)
			*ret_broken = rule;
		if (!rule)
			return true;
		if (!mend_once(&m, rule, c))
			return false;
	}
	return false;
}
