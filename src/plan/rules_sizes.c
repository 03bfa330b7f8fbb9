/* Sizes that rules compare. Everything here is total: no division by zero, no overflow for any key in its range. */
#include <string.h>

#include "plan/rules_private.h"

bool mb_divides(int64_t part, int64_t whole)
{
	return part > 0 && whole > 0 && whole % part == 0;
}

int64_t mb_dense_group(const struct mb_plan *p)
{
	return (int64_t)p->tp * p->cp * p->pp;
}

int64_t mb_expert_group(const struct mb_plan *p)
{
	return (int64_t)p->etp * p->ep * p->pp;
}

int64_t mb_replicas(const struct mb_case *c, const struct mb_plan *p)
{
	int64_t group = mb_dense_group(p);

	return mb_divides(group, c->run.gpus) ? c->run.gpus / group : 0;
}

int64_t mb_expert_replicas(const struct mb_case *c, const struct mb_plan *p)
{
	int64_t group = mb_expert_group(p);

	return mb_divides(group, c->run.gpus) ? c->run.gpus / group : 0;
}

int64_t mb_micro_batch_count(const struct mb_case *c, const struct mb_plan *p)
{
	int64_t samples = mb_replicas(c, p) * p->micro_batch_size;

	return mb_divides(samples, c->run.global_batch_size) ? c->run.global_batch_size / samples : 0;
}

int64_t mb_vp_group(const struct mb_plan *p)
{
	return p->microbatch_group_size > 0 ? p->microbatch_group_size : p->pp;
}

bool mb_has_mixer(const struct mb_model *m, enum mb_mixer mixer)
{
	for (int i = 0; i < m->kind_count; i++) {
		if (m->kinds[i].mixer == mixer)
			return true;
	}
	return false;
}

bool mb_has_ffn(const struct mb_model *m, enum mb_ffn ffn)
{
	for (int i = 0; i < m->kind_count; i++) {
		if (m->kinds[i].ffn == ffn)
			return true;
	}
	return false;
}

bool mb_has_moe(const struct mb_model *m)
{
	return m->num_moe_experts > 0 && mb_has_ffn(m, MB_FFN_MOE);
}

bool mb_has_dense(const struct mb_model *m)
{
	return mb_has_ffn(m, MB_FFN_DENSE);
}

bool mb_has_shared(const struct mb_model *m)
{
	return mb_has_moe(m) && m->moe_shared_expert_intermediate_size > 0;
}

bool mb_has_window(const struct mb_model *m)
{
	for (int i = 0; i < m->kind_count; i++) {
		if (m->kinds[i].windowed && m->window_size > 0)
			return true;
	}
	return false;
}

bool mb_is_hybrid(const struct mb_model *m)
{
	return (m->family != NULL && strcmp(m->family, "hybrid") == 0) || mb_has_mixer(m, MB_MIXER_MAMBA);
}

bool mb_mtp_is_moe(const struct mb_model *m)
{
	for (int i = 0; i < m->mtp_layer_count; i++) {
		if (m->mtp_layers[i] < MB_MAX_LAYER_KINDS && m->kinds[m->mtp_layers[i]].ffn == MB_FFN_MOE)
			return true;
	}
	return m->mtp_layer_count == 0 && mb_has_moe(m);
}

static bool has_attention(const struct mb_model *m)
{
	return mb_has_mixer(m, MB_MIXER_ATTENTION) || mb_has_mixer(m, MB_MIXER_MLA);
}

bool mb_heads_split(const struct mb_model *m, int64_t ranks)
{
	if (!has_attention(m))
		return true;
	return mb_divides(ranks, m->num_attention_heads) &&
	       (m->sliding_attention_heads == 0 || mb_divides(ranks, m->sliding_attention_heads));
}

static bool split_or_replicated(int64_t groups, int64_t ranks)
{
	return mb_divides(ranks, groups) || mb_divides(groups, ranks);
}

bool mb_groups_split(const struct mb_model *m, int64_t ranks)
{
	if (!mb_has_mixer(m, MB_MIXER_ATTENTION))
		return true;
	return split_or_replicated(m->num_query_groups, ranks) &&
	       (m->sliding_query_groups == 0 || split_or_replicated(m->sliding_query_groups, ranks));
}

bool mb_matrices_split(const struct mb_model *m, const struct mb_plan *p)
{
	bool dense = !mb_has_dense(m) || mb_divides(p->tp, m->ffn_hidden_size);
	bool shared = !mb_has_shared(m) || mb_divides(p->tp, m->moe_shared_expert_intermediate_size);
	bool experts = !mb_has_moe(m) || mb_divides(p->etp, m->moe_ffn_hidden_size);

	return dense && shared && experts && mb_divides(p->tp, m->hidden_size);
}

/* Context parallelism goes over heads, and over groups or copies of them [mamba_context_parallel.py]. */
bool mb_mamba_splits(const struct mb_model *m, const struct mb_plan *p)
{
	int64_t heads = m->mamba_num_heads, groups = m->mamba_num_groups;

	if (!mb_has_mixer(m, MB_MIXER_MAMBA))
		return true;
	if (!mb_divides(p->tp, heads) || !mb_divides(p->tp, groups) || !mb_divides(groups, heads))
		return false;
	return mb_divides(p->cp, heads / p->tp) && split_or_replicated(groups / p->tp, p->cp);
}

bool mb_gdn_splits(const struct mb_model *m, const struct mb_plan *p)
{
	int64_t ranks = (int64_t)p->tp * p->cp;

	if (!mb_has_mixer(m, MB_MIXER_GDN))
		return true;
	return mb_divides(ranks, m->linear_num_key_heads) && mb_divides(ranks, m->linear_num_value_heads) &&
	       mb_divides(m->linear_num_key_heads, m->linear_num_value_heads);
}

bool mb_quantised_inputs_align(const struct mb_case *c, const struct mb_plan *p)
{
	const struct mb_model *m = &c->model;
	int64_t unit = c->run.precision == MB_FP8_MX ? 32 : 16;
	int64_t inner = (int64_t)m->mamba_num_heads * m->mamba_head_dim;
	int64_t mamba = 2 * inner + 2LL * m->mamba_num_groups * m->mamba_state_dim + m->mamba_num_heads;
	int64_t key = (int64_t)m->linear_num_key_heads * m->linear_key_head_dim;
	int64_t value = (int64_t)m->linear_num_value_heads * m->linear_value_head_dim;
	int64_t gdn = 2 * key + 2 * value + 2LL * m->linear_num_value_heads;

	if (!mb_is_fp8(&c->run) || !mb_mamba_splits(m, p) || !mb_gdn_splits(m, p))
		return true;
	if (mb_has_mixer(m, MB_MIXER_MAMBA) && mamba / p->tp % unit != 0)
		return false;
	return !mb_has_mixer(m, MB_MIXER_GDN) || gdn / p->tp % unit == 0;
}

/* Ulysses hands whole heads to each rank; latent attention has as many key heads as query heads by then. */
bool mb_a2a_splits(const struct mb_model *m, const struct mb_plan *p)
{
	int64_t ranks = p->tp * (int64_t)(p->cp_comm_type == MB_CP_A2A_P2P ? p->cp_a2a_size : p->cp);

	if (p->cp_comm_type != MB_CP_A2A && p->cp_comm_type != MB_CP_A2A_P2P)
		return true;
	if (p->cp <= 1 || ranks <= 0)
		return true;
	return mb_heads_split(m, ranks) &&
	       (!mb_has_mixer(m, MB_MIXER_ATTENTION) || mb_divides(ranks, m->num_query_groups)) &&
	       (m->sliding_query_groups == 0 || mb_divides(ranks, m->sliding_query_groups));
}
