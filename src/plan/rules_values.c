/* Values worth trying for a key of a broken rule, and how far each is from what the user said. */
#include <math.h>

#include "plan/rules_private.h"

/* Keys that search leaves alone and that change neither what is learnt nor what is bought. */
static const enum mb_key_id harmless[] = {
	MB_K_vp_group, MB_K_p2p_overlap, MB_K_batch_p2p, MB_K_p2p_flush, MB_K_num_sms, MB_K_te_rng, MB_K_check_nan, MB_K_defer_wgrad,
	MB_K_gaf, MB_K_graph_warmup, MB_K_impl, MB_K_grouped_gemm, MB_K_permute_fusion, MB_K_op_fuser, MB_K_grouped_tensor,
	MB_K_early_release, MB_K_ce_fusion, MB_K_ce_impl, MB_K_tp_pp_dp, MB_K_reuse_grad_buf, MB_K_dist_opt_instances,
	MB_K_fp8_gather, MB_K_paged_stash, MB_K_mla_down_fusion, MB_K_fp8_act_store, MB_K_fsdp_buffers, MB_K_pao, MB_K_pad_quant,
	MB_K_deterministic, MB_K_average,
};

double mb_change_cost(enum mb_key_id key)
{
	if (key == MB_K_gpus)
		return 300;
	if (mb_keys[key].open)
		return 0;
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
		if (harmless[i] == key)
			return 0;
	}
	return 1000;
}

static int add_value(struct mb_change *list, int count, const struct mb_change *base, long long value, double cost)
{
	if (count < MB_MAX_VALUES) {
		list[count] = *base;
		list[count].value.i = value;
		list[count].cost += cost;
		count++;
	}
	return count;
}

static int set_values(const struct mb_key *key, unsigned now, const struct mb_change *base, struct mb_change *list)
{
	int count = 0;

	for (const struct mb_name *n = key->names; n->name != NULL; n++) {
		bool member = (now & (unsigned)n->value) != 0;

		count = add_value(list, count, base, now ^ (unsigned)n->value, member ? 1 : 4);
		for (const struct mb_name *o = key->names; member && o->name != NULL; o++) {
			bool both = (now & (unsigned)o->value) != 0;

			if (o > n || !both)
				count = add_value(list, count, base, (now & ~(unsigned)n->value) ^ (unsigned)o->value, both ? 2 : 5 + 0.01 * fabs((double)(o - n)));
		}
	}
	return now != 0 ? add_value(list, count, base, 0, 3) : count;
}

static int enum_values(const struct mb_run *run, const struct mb_key *key, long long now, const struct mb_change *base, struct mb_change *list)
{
	bool modules = run->plan.recompute_modules != 0;
	int count = 0;

	for (const struct mb_name *n = key->names; n->name != NULL; n++) {
		bool far = (key == &mb_keys[MB_K_graph_impl] && n->value == MB_GRAPH_FULL) ||  /* brings conditions of its own */
		           (key == &mb_keys[MB_K_recompute] && n->value == MB_RECOMPUTE_SELECTIVE && !modules);

		if (n->value != now)
			count = add_value(list, count, base, n->value, 1 + 20 * far + 0.01 * fabs((double)(n->value - now)));
	}
	return count;
}

double mb_change_distance(long long from, long long to)
{
	return from > 0 && to > 0 ? 4 * fabs(log2((double)to / (double)from)) : 3;
}

/* A coarse set for pairs: null, halves and doubles, powers of two. */
static int int_values(const struct mb_key *key, long long now, const struct mb_change *base, struct mb_change *list)
{
	int count = 0;

	if (key->min <= 0 && now != 0)
		count = add_value(list, count, base, 0, 3);
	for (long long v = 1; v <= 1024 && (double)v <= key->max; v *= 2) {
		if (v != now)
			count = add_value(list, count, base, v, mb_change_distance(now, v));
	}
	for (long long d = 3; d <= now / 2 && d <= 1024; d++) {
		if (now % d == 0)
			count = add_value(list, count, base, d, mb_change_distance(now, d));
	}
	return count;
}

int mb_change_values(const struct mb_run *run, enum mb_key_id id, double cost, struct mb_change *list)
{
	const struct mb_key *key = &mb_keys[id];
	union mb_value now = mb_key_get(run, key);
	struct mb_change base = { id, now, mb_change_cost(id) + cost };

	switch (key->type) {
	case MB_KEY_BOOL:
		return add_value(list, 0, &base, !now.i, 1);
	case MB_KEY_TRISTATE:
		return add_value(list, add_value(list, 0, &base, now.i != 1, 1), &base, now.i == MB_AUTO ? 0 : MB_AUTO, 1.5);
	case MB_KEY_ENUM:
		return enum_values(run, key, now.i, &base, list);
	case MB_KEY_SET:
		return set_values(key, (unsigned)now.i, &base, list);
	case MB_KEY_LAYOUT:
		return now.i >= 0 ? add_value(list, 0, &base, -1, 3) : 0;
	case MB_KEY_INT:
		return int_values(key, now.i, &base, list);
	case MB_KEY_SIZES:
		return int_values(key, now.i, &base, list);
	case MB_KEY_NUMBER:
	case MB_KEY_MODEL:
		break;
	}
	return 0;
}
