/* Candidates of the outer axes. Open sizes are divisors; a value of the user is tried as it is. */
#include "plan/rules_private.h"
#include "search/space.h"

static const int8_t size_keys[] = { [MB_P_TP] = MB_K_tp, [MB_P_CP] = MB_K_cp, [MB_P_PP] = MB_K_pp, [MB_P_EP] = MB_K_ep,
	[MB_P_ETP] = MB_K_etp, [MB_P_MBS] = MB_K_mbs, [MB_P_VP] = MB_K_vp };

static int divisors(long long n, long long most, int ret[MB_MAX_SIZES])
{
	int count = 0, low;
	long long d;

	for (d = 1; d * d <= n && count < MB_MAX_SIZES / 2; d++)
		if (n % d == 0)
			ret[count++] = (int)d;
	low = count;
	for (int i = low - 1; i >= 0; i--)
		if ((long long)ret[i] * ret[i] != n && n / ret[i] <= most)
			ret[count++] = (int)(n / ret[i]);
	while (count > 1 && ret[count - 1] > most)
		count--;
	return count;
}

/* Divisors of both. */
static int common_divisors(long long n, long long m, int ret[MB_MAX_SIZES])
{
	int count = divisors(n, n, ret), kept = 0;

	for (int i = 0; i < count; i++)
		if (m % ret[i] == 0)
			ret[kept++] = ret[i];
	return kept;
}

int mb_space_recompute_layers(const struct mb_space *s, int pp, int vp)
{
	return (s->c.model.num_layers + pp * vp - 1) / (pp * vp);
}

/* More stages than layers and two ends would leave some empty. */
static int most_chunks(const struct mb_space *s)
{
	return s->c.model.num_layers + 2 < MB_MAX_STAGES ? s->c.model.num_layers + 2 : MB_MAX_STAGES;
}

static int virtual_stages(const struct mb_space *s, const struct mb_plan *p, int ret[MB_MAX_SIZES])
{
	int count = 0, most = most_chunks(s) / p->pp;

	ret[count++] = 1;
	if (p->pp == 1 || mb_is_hybrid(&s->c.model))
		return count;
	for (int v = 2; v <= most && count < MB_MAX_SIZES; v++)
		ret[count++] = v;
	return count;
}

static int open_sizes(const struct mb_space *s, enum mb_plan_key axis, const struct mb_plan *p, int ret[MB_MAX_SIZES])
{
	const struct mb_model *m = &s->c.model;
	long long gpus = s->c.run.gpus, replicas, samples;

	switch (axis) {
	case MB_P_TP:
		return divisors(gpus, 4096, ret);
	case MB_P_CP:
		return divisors(gpus % p->tp ? 1 : gpus / p->tp, 4096, ret);
	case MB_P_PP:
		return divisors(gpus % ((long long)p->tp * p->cp) ? 1 : gpus / ((long long)p->tp * p->cp), most_chunks(s), ret);
	case MB_P_EP:
		return mb_has_moe(m) && gpus % p->pp == 0 ? common_divisors(m->num_moe_experts, gpus / p->pp, ret) : divisors(1, 1, ret);
	case MB_P_ETP:
		return mb_has_moe(m) && gpus % ((long long)p->pp * p->ep) == 0 ? common_divisors(p->tp, gpus / ((long long)p->pp * p->ep), ret)
		                                                               : divisors(1, 1, ret);
	case MB_P_MBS:
		replicas = gpus / ((long long)p->tp * p->cp * p->pp);
		samples = replicas > 0 && s->c.run.global_batch_size % replicas == 0 ? s->c.run.global_batch_size / replicas : 1;
		return divisors(samples, 65536, ret);
	case MB_P_VP:
		return virtual_stages(s, p, ret);
	default:
		ret[0] = 1;
		return 1;
	}
}

int mb_space_sizes(const struct mb_space *s, enum mb_plan_key axis, const struct mb_plan *p, int ret[MB_MAX_SIZES])
{
	int key = size_keys[axis], count = 0;
	const struct mb_alternatives *a = &s->q->alternatives[key];

	if (a->count == 0 && s->open[key])
		return open_sizes(s, axis, p, ret);
	if (a->count == 0) {
		ret[0] = (int)mb_key_get(&s->q->c.run, &mb_keys[key]).i;
		return 1;
	}
	for (int i = 0; i < a->count && count < MB_MAX_SIZES; i++)
		ret[count++] = (int)a->values[i].i;
	for (int i = 1; i < count; i++)         /* ascending, whatever order they were said in */
		for (int j = i; j > 0 && ret[j] < ret[j - 1]; j--) {
			int swap = ret[j];

			ret[j] = ret[j - 1];
			ret[j - 1] = swap;
		}
	return count;
}

unsigned mb_space_facts(const struct mb_space *s, const struct mb_plan *p)
{
	long long dense = mb_dense_group(p), expert = mb_expert_group(p);
	bool replicas = s->c.run.gpus / dense * p->cp > 1 || s->c.run.gpus / expert > 1;

	return (p->tp > 1 ? MB_FACT_TP : 0) | (p->cp > 1 ? MB_FACT_CP : 0) | (p->pp > 1 ? MB_FACT_PP : MB_FACT_FLAT)
	       | (p->ep > 1 ? MB_FACT_EP : 0) | ((long long)p->ep * p->etp > 1 ? MB_FACT_GROUP : 0) | (p->vp > 1 ? MB_FACT_VP : 0)
	       | (replicas ? MB_FACT_DP : 0);
}

bool mb_choice_divides(const struct mb_space *s, const struct mb_choice *v, int cp)
{
	int a = v->plan.cp_a2a_size;

	if (v->plan.cp_comm_type != MB_CP_A2A_P2P || !s->open[MB_K_cp_sizes])
		return true;
	return a > 0 && a < cp && cp % a == 0;
}
