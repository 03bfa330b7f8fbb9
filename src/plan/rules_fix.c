/*
 * The smallest change that mends a broken rule, found by trying: one key, then two. A change counts only when the rule
 * holds afterwards and no error appears that was not there before.
 */
#include <math.h>
#include <string.h>

#include "plan/rules_private.h"

enum { REACH = 4096 };

struct attempt {
	const struct mb_query *q;
	const struct mb_rule *rule;
	struct mb_case start, now;      /* as it is; after the changes being tried */
	struct mb_broken before;
	bool whole;                     /* other errors about the key changed have to go as well */
	struct mb_fix best, other;      /* other: same effort, another key */
	double best_cost, other_cost;
};

/* Settings that mean nothing, or are errors, once another is switched off: they go with it. */
static const struct companion {
	enum mb_key_id key;
	long long only, except;         /* applies when the new value is `only`, or with only -1 anything but `except` */
	enum mb_key_id with;
	long long value;
	bool if_null;                   /* leaves a value that was given */
} companions[] = {
	{ MB_K_method, -1, MB_METHOD_NONE, MB_K_recompute_layers, 1, true },
	{ MB_K_recompute, -1, MB_RECOMPUTE_FULL, MB_K_method, MB_METHOD_NONE, false },
	{ MB_K_recompute, -1, MB_RECOMPUTE_FULL, MB_K_recompute_layers, 0, false },
	{ MB_K_recompute, MB_RECOMPUTE_NONE, 0, MB_K_modules, 0, false },
	{ MB_K_ep_overlap, 0, 0, MB_K_delay_wgrad, 0, false },
	{ MB_K_ep_overlap, 0, 0, MB_K_early_release, 0, false },
	{ MB_K_graph_impl, MB_GRAPH_NONE, 0, MB_K_graph_scope, 0, false },
	{ MB_K_graph_impl, MB_GRAPH_FULL, 0, MB_K_graph_scope, 0, false },
	{ MB_K_dispatcher, -1, MB_DISPATCH_FLEX, MB_K_backend, MB_BACKEND_NONE, false },
	{ MB_K_cpu_offloading, 0, 0, MB_K_cpu_offloading_layers, 0, false },
	{ MB_K_fine_offload, 0, 0, MB_K_offload_modules, 0, false },
	{ MB_K_pp, 1, 0, MB_K_vp, 1, false },
};

void mb_apply_change(struct mb_case *c, const struct mb_query *q, enum mb_key_id key, union mb_value value)
{
	struct mb_plan *p = &c->run.plan;
	bool etp_follows = c->stack.framework == MB_MEGATRON_LM && !q->set[MB_K_etp] && p->etp == p->tp;

	mb_key_put(&c->run, &mb_keys[key], value);
	if (key == MB_K_tp && etp_follows)
		p->etp = p->tp;
	if (key == MB_K_tp && p->tp == 1)
		p->sequence_parallel = false;
	if ((key == MB_K_pp || key == MB_K_vp) && !q->set[MB_K_p2p_overlap] && c->stack.framework == MB_BRIDGE)
		p->overlap_p2p_comm = p->pp > 1 && p->vp > 1;
	if (key == MB_K_recompute && value.i == MB_RECOMPUTE_SELECTIVE && p->recompute_modules == 0 && !q->set[MB_K_modules])
		p->recompute_modules = MB_CORE_ATTN;
	if (key == MB_K_mtp)
		c->mtp_depth = c->run.mtp_num_layers != MB_AUTO ? c->run.mtp_num_layers : c->model.mtp_num_layers;
}

static void add_change(const struct attempt *a, struct mb_fix *fix, struct mb_case *c, enum mb_key_id key, union mb_value value)
{
	if (fix->count < MB_MAX_FIX_KEYS) {
		fix->key[fix->count] = key;
		fix->value[fix->count++] = value;
	}
	mb_apply_change(c, a->q, key, value);
}

static void add_with_companions(const struct attempt *a, struct mb_fix *fix, struct mb_case *c, const struct mb_change *change)
{
	add_change(a, fix, c, change->key, change->value);
	for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++) {
		const struct companion *with = &companions[i];
		bool due = with->only < 0 ? change->value.i != with->except : change->value.i == with->only;
		bool backend = with->with == MB_K_backend && c->stack.framework == MB_MEGATRON_LM;

		long long now = mb_key_get(&c->run, &mb_keys[with->with]).i;
		if (with->key == change->key && due && !backend && now != with->value && (!with->if_null || now == 0))
			add_change(a, fix, c, with->with, (union mb_value){ .i = with->value });
	}
}

static bool is_error_about(const struct mb_rule *rule, enum mb_key_id key)
{
	enum mb_key_id about;

	return rule->severity == MB_RULE_ERROR && mb_rule_keys(rule->keys, &about, 1) > 0 && about == key;
}

/*
 * New errors, and where all have to go, old ones about the key: the index of the first, or -1 with how many settings
 * have newly lost their effect.
 */
static int new_error(const struct attempt *a, const struct mb_case *c, enum mb_key_id key, int *lesser)
{
	struct mb_broken after;

	*lesser = 0;
	mb_find_broken(c, &c->run.plan, &after);
	for (int i = 0; i < mb_rule_count; i++) {
		if (!mb_is_broken(&after, i) || (mb_is_broken(&a->before, i) && !(a->whole && is_error_about(&mb_rules[i], key))))
			continue;
		if (mb_rules[i].severity == MB_RULE_ERROR)
			return i;
		*lesser += mb_rules[i].severity != MB_RULE_WARNING;
	}
	return -1;
}

/* Keys of one feature: another of them is no other choice. */
static enum mb_key_id feature(enum mb_key_id key)
{
	switch (key) {
	case MB_K_modules:
	case MB_K_method:
	case MB_K_recompute_layers:
		return MB_K_recompute;
	case MB_K_graph_scope:
		return MB_K_graph_impl;
	case MB_K_offload_modules:
		return MB_K_fine_offload;
	default:
		return key;
	}
}

static void keep(struct attempt *a, const struct mb_fix *fix, double cost)
{
	bool same_key = a->best.count > 0 && feature(a->best.key[0]) == feature(fix->key[0]);

	if (cost < a->best_cost) {
		if (!same_key) {
			a->other = a->best;
			a->other_cost = a->best_cost;
		}
		a->best = *fix;
		a->best_cost = cost;
	} else if (!same_key && cost < a->other_cost) {
		a->other = *fix;
		a->other_cost = cost;
	}
}

/* Tries one or two changes. Returns -1 when they do, else the rule that stands against them, or that is still broken. */
static int try_changes(struct attempt *a, const struct mb_change *changes, int count)
{
	struct mb_fix fix = { 0 };
	double cost = 0;
	int lesser, error;

	a->now.run = a->start.run;
	a->now.mtp_depth = a->start.mtp_depth;
	for (int i = 0; i < count; i++) {
		add_with_companions(a, &fix, &a->now, &changes[i]);
		cost += changes[i].cost + 100 * (i > 0);
	}
	if (!a->rule->holds(&a->now, &a->now.run.plan))
		return (int)(a->rule - mb_rules);
	error = new_error(a, &a->now, changes[0].key, &lesser);
	if (error < 0)
		keep(a, &fix, cost + 30 * lesser + 12 * (fix.count - 1));
	return error;
}

static long long lcm(long long x, long long y)
{
	long long a = x, b = y;

	while (b > 0) {
		long long rest = a % b;

		a = b;
		b = rest;
	}
	return a > 0 ? x / a * y : 1;
}

/* Values of this key that can be right at all come in steps of: */
static long long step_of(const struct attempt *a, enum mb_key_id key)
{
	const struct mb_plan *p = &a->start.run.plan;
	long long step = 1;

	if (key == MB_K_gbs)
		step = mb_replicas(&a->start, p) * p->micro_batch_size;
	else if (key == MB_K_gpus)
		step = lcm(mb_dense_group(p), mb_expert_group(p));
	else if (key == MB_K_seq)
		step = lcm(2LL * p->cp, (long long)p->cp * p->tp);
	return step > 0 ? step : 1;
}

/* Where to begin: the value as it is, or an even share for stage counts that are not given. */
static long long origin_of(const struct attempt *a, enum mb_key_id key)
{
	const struct mb_plan *p = &a->start.run.plan;
	long long now = mb_key_get(&a->start.run, &mb_keys[key]).i;
	bool share = (key == MB_K_first_layers || key == MB_K_last_layers) && now == 0 && p->pp > 0;

	return share ? a->start.model.num_layers / p->pp : now;
}

/* The nearest value below and the nearest above that do. */
static void try_nearest(struct attempt *a, enum mb_key_id id, int place)
{
	const struct mb_key *key = &mb_keys[id];
	long long from = origin_of(a, id), step = step_of(a, id);
	double given = mb_change_cost(id) + 10 * place + (id == MB_K_vp_group && from == 0 ? 60 : 0);

	for (int direction = -1; direction <= 1; direction += 2) {
		bool heavier = id == MB_K_last_layers && direction > 0;        /* the last stage has the loss as well */
		long long v = direction < 0 ? (from - 1) / step * step : (from / step + 1) * step;

		if (direction < 0 && from != mb_key_get(&a->start.run, key).i)
			v = from;
		for (int i = 0; i < REACH && v >= 0 && (double)v >= key->min && (double)v <= key->max; i++, v += direction * step) {
			struct mb_change change = { id, { .i = v }, given + 2 * heavier + mb_change_distance(from, v) };

			if (try_changes(a, &change, 1) < 0)
				break;
		}
	}
}

static void try_single(struct attempt *a, const enum mb_key_id *keys, int count)
{
	struct mb_change list[MB_MAX_VALUES];

	for (int i = 0; i < count; i++) {
		if (mb_keys[keys[i]].type == MB_KEY_INT) {
			try_nearest(a, keys[i], i);
			continue;
		}
		int values = mb_change_values(&a->start.run, keys[i], 10 * i, list);
		for (int j = 0; j < values; j++)
			try_changes(a, &list[j], 1);
	}
}

/* Two keys: of this rule, or one of this rule and one of the rule that stands against changing it alone. */
static void try_second(struct attempt *a, const struct mb_change *first, const char *words)
{
	enum mb_key_id keys[8];
	struct mb_change list[MB_MAX_VALUES];
	int count = mb_rule_keys(words, keys, 8);

	for (int i = 0; i < count; i++) {
		int values = keys[i] != first->key ? mb_change_values(&a->start.run, keys[i], 10 * i, list) : 0;

		for (int j = 0; j < values; j++) {
			struct mb_change pair[2] = { *first, list[j] };

			try_changes(a, pair, 2);
		}
	}
}

static void try_pairs(struct attempt *a, const enum mb_key_id *keys, int count)
{
	struct mb_change list[MB_MAX_VALUES];

	for (int i = 0; i < count; i++) {
		int values = mb_change_values(&a->start.run, keys[i], 10 * i, list);

		for (int j = 0; j < values; j++) {
			int against = try_changes(a, &list[j], 1);

			if (against >= 0)
				try_second(a, &list[j], mb_rules[against].keys);
		}
	}
}

/* Two features that exclude each other are a choice; two sizes that would do are not. */
static bool is_choice(const struct attempt *a)
{
	enum mb_key_type first = mb_keys[a->best.key[0]].type, second;

	if (a->best.count == 0 || a->other.count == 0 || a->rule->severity != MB_RULE_ERROR || a->other_cost >= 300)
		return false;
	second = mb_keys[a->other.key[0]].type;
	return first != MB_KEY_INT && second != MB_KEY_INT;
}

void mb_find_fix(const struct mb_query *q, const struct mb_plan *p, const struct mb_rule *rule, struct mb_fix *fix,
                 struct mb_fix *alternative)
{
	enum mb_key_id keys[8];
	int count = mb_rule_keys(rule->keys, keys, 8);
	struct attempt a = { .q = q, .rule = rule, .start = q->c, .best_cost = INFINITY, .other_cost = INFINITY };

	a.start.run.plan = *p;
	a.now = a.start;
	mb_find_broken(&a.start, p, &a.before);
	a.whole = true;
	try_single(&a, keys, count);
	a.whole = false;
	if (a.best.count == 0)
		try_single(&a, keys, count);
	if (a.best_cost >= 300)
		try_pairs(&a, keys, count);
	*fix = a.best;
	*alternative = is_choice(&a) ? a.other : (struct mb_fix){ 0 };
}
