/*
 * Models, machines and runs built by hand, so that tests of rules, cost and search need no files. Sizes are the
 * published ones. Efficiencies (params) stay zero: a test that needs time sets them.
 */
#ifndef MBSIM_TESTS_FIXTURE_H
#define MBSIM_TESTS_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "plan/case.h"

static inline union mb_value fixture_default(const struct mb_key *key, const char *text)
{
	union mb_value v = { .i = 0 };
	int named;

	if (key->names != NULL && key->type == MB_KEY_ENUM && mb_name_value(key->names, text, &named))
		v.i = named;
	else if (key->type == MB_KEY_NUMBER)
		v.d = strtod(text, NULL);
	else if (strcmp(text, "true") == 0)
		v.i = 1;
	else if (strcmp(text, "null") == 0)
		v.i = key->type == MB_KEY_TRISTATE || key->type == MB_KEY_LAYOUT || key == &mb_keys[MB_K_mtp] ? MB_AUTO : 0;
	else
		v.i = strtoll(text, NULL, 10);
	return v;
}

/* The framework's defaults, with what the loader derives for one GPU group: vp and etp 1, no environment. */
static inline void fixture_run(struct mb_run *run, bool megatron)
{
	memset(run, 0, sizeof *run);
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		const struct mb_key *key = &mb_keys[i];

		mb_key_put(run, key, fixture_default(key, megatron ? key->megatron_default : key->bridge_default));
	}
	run->plan.vp = run->plan.etp = 1;
	run->gpus = 64;
	run->global_batch_size = 256;
	run->seq_length = 4096;
	run->precision = MB_BF16;
	run->cuda_device_max_connections = MB_AUTO;
	run->nvte_allow_nondeterministic_algo = run->nvte_fwd_layernorm_sm_margin = MB_AUTO;
	run->megatron_args = megatron;
}

/* ---- machines ---- */

static inline void fixture_h100(struct mb_hardware *hw)
{
	*hw = (struct mb_hardware){ .name = "dgx-h100", .gpu = "NVIDIA H100 80GB HBM3", .architecture = MB_HOPPER,
		.sm_count = 132, .compute_capability = 90, .hbm_bytes = 80000000000, .usable_bytes = 84942979072,
		.hbm_bytes_per_s = 3.35e12, .l2_bytes = 50e6, .bf16_flop_per_s = 989e12, .fp8_flop_per_s = 1979e12,
		.mfu_bf16_flop_per_s = 989e12, .mfu_fp8_flop_per_s = 1979e12, .tdp_w = 700, .gpus_per_node = 8,
		.nvlink_domain = 8, .nvlink_bytes_per_s = 450e9, .nic_bytes_per_s = 50e9, .host_bytes_per_s = 55e9,
		.oversubscription = 1, .nvls = true, .non_torch_bytes = 2e9 };
}

static inline void fixture_a100(struct mb_hardware *hw)
{
	fixture_h100(hw);
	strcpy(hw->name, "dgx-a100");
	strcpy(hw->gpu, "NVIDIA A100-SXM4-80GB");
	hw->architecture = MB_AMPERE;
	hw->sm_count = 108;
	hw->compute_capability = 80;
	hw->hbm_bytes_per_s = 2.04e12;
	hw->bf16_flop_per_s = hw->mfu_bf16_flop_per_s = 312e12;
	hw->fp8_flop_per_s = hw->mfu_fp8_flop_per_s = 0;
	hw->nvlink_bytes_per_s = 300e9;
	hw->nic_bytes_per_s = 25e9;
}

static inline void fixture_b200(struct mb_hardware *hw)
{
	fixture_h100(hw);
	strcpy(hw->name, "dgx-b200");
	strcpy(hw->gpu, "NVIDIA B200");
	hw->architecture = MB_BLACKWELL;
	hw->sm_count = 148;
	hw->compute_capability = 100;
	hw->hbm_bytes = 192000000000;
	hw->usable_bytes = 191503138816;
	hw->hbm_bytes_per_s = 8e12;
	hw->bf16_flop_per_s = hw->mfu_bf16_flop_per_s = 2250e12;
	hw->fp8_flop_per_s = hw->mfu_fp8_flop_per_s = 4500e12;
	hw->fp4_flop_per_s = hw->mfu_fp4_flop_per_s = 9000e12;
	hw->nvlink_bytes_per_s = 900e9;
}

static inline void fixture_gb200(struct mb_hardware *hw)
{
	fixture_b200(hw);
	strcpy(hw->name, "gb200-nvl72");
	strcpy(hw->gpu, "NVIDIA GB200");
	hw->superchip = true;
	hw->gpus_per_node = 4;
	hw->nvlink_domain = 72;
	hw->host_bytes_per_s = 200e9;
}

static inline void fixture_stack(struct mb_stack *s, bool megatron)
{
	*s = (struct mb_stack){ .framework = megatron ? MB_MEGATRON_LM : MB_BRIDGE, .month = 12 * 2026 + 7,
		.transformer_engine = MB_VERSION(2, 17, 0), .torch = MB_VERSION(2, 11, 0) };
	strcpy(s->name, megatron ? "mlm-dev-2026-08" : "nemo-26.08");
}

/* ---- models ---- */

static inline void fixture_layers(struct mb_model *m, int from, int count, int kind)
{
	for (int i = from; i < from + count; i++)
		m->layers[i] = (uint8_t)kind;
}

static inline void fixture_model_dense(struct mb_model *m)
{
	*m = (struct mb_model){ .name = "llama3-70b", .family = "transformer", .num_layers = 80, .hidden_size = 8192,
		.ffn_hidden_size = 28672, .vocab_size = 128256, .make_vocab_size_divisible_by = 128, .rotary_percent = 1,
		.gated_linear_unit = true, .num_attention_heads = 64, .num_query_groups = 8, .kv_channels = 128,
		.kinds = { { MB_MIXER_ATTENTION, MB_FFN_DENSE, false, false } }, .kind_count = 1 };
}

static inline void fixture_model_moe(struct mb_model *m)
{
	*m = (struct mb_model){ .name = "qwen3-30b-a3b", .family = "transformer", .num_layers = 48, .hidden_size = 2048,
		.ffn_hidden_size = 6144, .vocab_size = 151936, .make_vocab_size_divisible_by = 128, .rotary_percent = 1,
		.gated_linear_unit = true, .num_attention_heads = 32, .num_query_groups = 4, .kv_channels = 128,
		.qk_layernorm = true, .num_moe_experts = 128, .moe_router_topk = 8, .moe_ffn_hidden_size = 768,
		.kinds = { { MB_MIXER_ATTENTION, MB_FFN_MOE, false, false } }, .kind_count = 1 };
}

static inline void fixture_model_mla(struct mb_model *m)
{
	*m = (struct mb_model){ .name = "deepseek-v3", .family = "transformer", .num_layers = 61, .hidden_size = 7168,
		.ffn_hidden_size = 18432, .vocab_size = 129280, .make_vocab_size_divisible_by = 1280, .rotary_percent = 1,
		.gated_linear_unit = true, .num_attention_heads = 128, .num_query_groups = 128, .kv_channels = 128,
		.qk_layernorm = true, .multi_latent_attention = true, .q_lora_rank = 1536, .kv_lora_rank = 512,
		.qk_head_dim = 128, .qk_pos_emb_head_dim = 64, .v_head_dim = 128, .num_moe_experts = 256,
		.moe_router_topk = 8, .moe_ffn_hidden_size = 2048, .moe_shared_expert_intermediate_size = 2048,
		.moe_router_num_groups = 8, .moe_router_group_topk = 4, .moe_router_score_function = MB_SCORE_SIGMOID,
		.moe_router_enable_expert_bias = true, .mtp_num_layers = 1,
		.kinds = { { MB_MIXER_MLA, MB_FFN_DENSE, false, false }, { MB_MIXER_MLA, MB_FFN_MOE, false, false } },
		.kind_count = 2, .mtp_layers = { 1 }, .mtp_layer_count = 1 };
	fixture_layers(m, 0, 3, 0);
	fixture_layers(m, 3, 58, 1);
}

static inline void fixture_model_hybrid(struct mb_model *m)
{
	static const char pattern[] = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";

	*m = (struct mb_model){ .name = "nemotron-3-nano", .family = "hybrid", .num_layers = 52, .hidden_size = 2688,
		.ffn_hidden_size = 1856, .vocab_size = 131072, .make_vocab_size_divisible_by = 128,
		.activation = MB_ACT_SQUARED_RELU, .position_embedding_type = MB_POS_NONE, .num_attention_heads = 32,
		.num_query_groups = 2, .kv_channels = 128, .mamba_num_heads = 64, .mamba_head_dim = 64,
		.mamba_state_dim = 128, .mamba_num_groups = 8, .num_moe_experts = 128, .moe_router_topk = 6,
		.moe_ffn_hidden_size = 1856, .moe_shared_expert_intermediate_size = 3712,
		.moe_router_score_function = MB_SCORE_SIGMOID,
		.kinds = { { MB_MIXER_MAMBA, MB_FFN_NONE, false, false }, { MB_MIXER_NONE, MB_FFN_MOE, false, false },
			{ MB_MIXER_ATTENTION, MB_FFN_NONE, false, false } }, .kind_count = 3 };
	for (int i = 0; i < m->num_layers; i++)
		m->layers[i] = pattern[i] == 'M' ? 0 : pattern[i] == 'E' ? 1 : 2;
}

/* ---- cases: 64 H100 with the newest Bridge stack ---- */

static inline void fixture_case(struct mb_case *c, void (*model)(struct mb_model *m), bool megatron)
{
	memset(c, 0, sizeof *c);
	model(&c->model);
	fixture_h100(&c->hardware);
	fixture_stack(&c->stack, megatron);
	fixture_run(&c->run, megatron);
	if (c->model.num_moe_experts > 0)
		c->run.plan.ep = 8;
	mb_case_compile(c);
}

static inline void fixture_dense(struct mb_case *c) { fixture_case(c, fixture_model_dense, false); }
static inline void fixture_moe(struct mb_case *c) { fixture_case(c, fixture_model_moe, false); }
static inline void fixture_mla(struct mb_case *c) { fixture_case(c, fixture_model_mla, false); }
static inline void fixture_hybrid(struct mb_case *c) { fixture_case(c, fixture_model_hybrid, false); }

/* Adds a parsed layout and returns its index, -1 when it is malformed. */
static inline int fixture_layout(struct mb_case *c, struct mb_arena *arena, const char *text)
{
	struct mb_layout *all = mb_arena_alloc(arena, (size_t)(c->layout_count + 1) * sizeof *all);
	struct mb_diags diags = { 0 };

	if (c->layout_count > 0)
		memcpy(all, c->layouts, (size_t)c->layout_count * sizeof *all);
	if (!mb_layout_parse(text, (struct mb_pos){ 0 }, arena, &all[c->layout_count], &diags))
		return -1;
	c->layouts = all;
	return c->layout_count++;
}

/* Marks a key as given by the user: key i at line i + 1 of "run.yaml". */
static inline void fixture_said(struct mb_query *q, enum mb_key_id key)
{
	q->set[key] = true;
	q->pos[key] = (struct mb_pos){ "run.yaml", (int)key + 1, 1 };
}

/* Key by its word in keys.def ("tp") or its full name; -1 if there is none. */
static inline int fixture_key(const char *word)
{
	static const char *const words[MB_KEY_COUNT] = {
#define KEY(id, ...) #id,
#include "plan/keys.def"
#undef KEY
	};

	for (int i = 0; i < MB_KEY_COUNT; i++) {
		if (strcmp(words[i], word) == 0 || strcmp(mb_keys[i].name, word) == 0)
			return i;
	}
	return -1;
}

/* "a+b", "none" is the empty set. */
static inline bool fixture_members(const struct mb_key *key, const char *value, union mb_value *ret)
{
	int named;

	ret->i = 0;
	for (const char *at = value; *at != '\0' && strcmp(value, "none") != 0;) {
		char member[32] = "";
		size_t n = strcspn(at, "+");

		strncat(member, at, n < sizeof member ? n : sizeof member - 1);
		if (!mb_name_value(key->names, member, &named))
			return false;
		ret->i |= named;
		at += n;
		at += *at == '+';
	}
	return true;
}

/* "tp=4 modules=moe_act+layernorm": with `q` the keys count as said by the user. False: no such key or value. */
static inline bool fixture_settings(struct mb_case *c, struct mb_query *q, const char *settings)
{
	char text[512], *save = NULL;
	bool good = strlen(settings) < sizeof text;
	int named;

	strcpy(text, good ? settings : "");
	for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		int id;

		if (value != NULL)
			*value++ = '\0';
		id = fixture_key(word);
		if (value == NULL || id < 0)
			return false;

		const struct mb_key *key = &mb_keys[id];
		union mb_value v;
		if (key->type == MB_KEY_SET)
			good &= fixture_members(key, value, &v);
		else
			v = fixture_default(key, value);
		if (key->type == MB_KEY_ENUM)
			good &= mb_name_value(key->names, value, &named);
		mb_key_put(&c->run, key, v);
		if (q != NULL)
			fixture_said(q, (enum mb_key_id)id);
	}
	mb_case_compile(c);
	return good;
}

#endif
