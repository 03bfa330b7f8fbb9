#include <stdio.h>
#include <string.h>

#include "desc/hf_private.h"

/*
 * [Megatron Bridge src/megatron/bridge/models: one *_bridge.py for each type; transformers: class defaults]
 * Types without a bridge (mixtral, phi3, dbrx, ...) follow transformers' own model code.
 */
#define LLAMA "normalization=RMSNorm activation=silu gated_linear_unit=true position_embedding_type=rope"
#define PLAIN LLAMA " add_bias_linear=false add_qkv_bias=false"
#define BIASED LLAMA " add_bias_linear=false add_qkv_bias=true"
#define NORMED PLAIN " qk_layernorm=true"
#define LATENT NORMED " multi_latent_attention=true"
#define SIGMOID " moe_router_score_function=sigmoid moe_router_enable_expert_bias=true"
#define UNTIED "tie_word_embeddings=false"
#define GEMMA "normalization=RMSNorm activation=gelu gated_linear_unit=true add_bias_linear=false add_qkv_bias=false " \
	"position_embedding_type=rope"
#define DELTA NORMED " attention_output_gate=true"
#define DELTA_MOE DELTA " moe_shared_expert_gate=true"
#define DELTA_SIZES UNTIED " head_dim=256 partial_rotary_factor=0.25 linear_num_value_heads=32 linear_num_key_heads=16 " \
	"linear_key_head_dim=128 linear_value_head_dim=128 linear_conv_kernel_dim=4 full_attention_interval=4"
#define DELTA_EXPERTS DELTA_SIZES " moe_intermediate_size=1024 num_experts=512 num_experts_per_tok=10"

static const struct mb_hf_family families[] = {
	{ "bailing_moe_v2", NORMED SIGMOID, UNTIED, MB_HF_SHARED_ONE },
	{ "dbrx", LLAMA " normalization=LayerNorm layernorm_bias=false add_bias_linear=false add_qkv_bias=false",
	  UNTIED, MB_HF_EXPERT_FFN },
	{ "deepseek_v2", LATENT " make_vocab_size_divisible_by=3200", UNTIED, MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "deepseek_v3", LATENT SIGMOID " make_vocab_size_divisible_by=1280", UNTIED, MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "deepseek_v32", LATENT SIGMOID " make_vocab_size_divisible_by=1280", UNTIED, MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "deepseek_v4", LATENT SIGMOID, UNTIED, MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "ernie4_5", PLAIN, "", 0 },
	{ "ernie4_5_moe", PLAIN, "moe_num_shared_experts=2 moe_layer_start_index=1", MB_HF_SHARED_COUNT | MB_HF_NO_MTP },
	{ "gemma", GEMMA, "head_dim=256", 0 },
	{ "gemma2", GEMMA " post_norms=true", "head_dim=256 num_key_value_heads=4 sliding_window=4096 "
	  "final_logit_softcapping=30.0", MB_HF_WINDOW },
	{ "gemma3_text", GEMMA " post_norms=true qk_layernorm=true", "vocab_size=262208 num_attention_heads=8 "
	  "num_key_value_heads=4 head_dim=256 sliding_window=4096", MB_HF_WINDOW },
	{ "glm4_moe", LLAMA " add_bias_linear=false" SIGMOID, UNTIED " attention_bias=false", MB_HF_SHARED_ONE },
	{ "glm4_moe_lite", LATENT, UNTIED " n_shared_experts=1 first_k_dense_replace=1", MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "glm_moe_dsa", LATENT SIGMOID " make_vocab_size_divisible_by=1280", UNTIED,
	  MB_HF_MLA | MB_HF_SHARED_COUNT | MB_HF_NO_MTP },
	{ "gpt2", "normalization=LayerNorm activation=gelu position_embedding_type=learned_absolute add_bias_linear=true "
	  "add_qkv_bias=true", "", MB_HF_LEARNED },
	{ "gpt_oss", LLAMA " activation=quick_gelu position_embedding_type=yarn add_bias_linear=true softmax_type=learnable "
	  "moe_router_bias_linear=true", UNTIED " head_dim=64 attention_bias=true", MB_HF_EXPERT_FFN | MB_HF_WINDOW },
	{ "hunyuan_v1_dense", NORMED, "", 0 },
	{ "hunyuan_v1_moe", NORMED, "", MB_HF_SHARED_COUNT },
	{ "hy_v3", NORMED SIGMOID, UNTIED, MB_HF_SHARED_COUNT },
	{ "kimi_k2", LATENT SIGMOID " make_vocab_size_divisible_by=1280", UNTIED, MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "kimi_k3", LATENT SIGMOID, UNTIED, MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "kimi_linear", LATENT SIGMOID, UNTIED, MB_HF_MLA | MB_HF_SHARED_COUNT },
	{ "llama", LLAMA, UNTIED " hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 num_attention_heads=32 "
	  "vocab_size=32000", 0 },
	{ "llama4_text", PLAIN " qk_layernorm=false moe_router_score_function=sigmoid",
	  UNTIED " interleave_moe_layer_step=1 no_rope_layer_interval=4 attention_chunk_size=8192", 0 },
	{ "mimo", BIASED, UNTIED, 0 },
	{ "minimax_m2", NORMED " qk_layernorm_full_dim=true" SIGMOID, UNTIED, MB_HF_EXPERT_FFN | MB_HF_NO_MTP },
	{ "ministral3", PLAIN, UNTIED, MB_HF_WINDOW | MB_HF_TEXT_TIES },
	{ "mistral", PLAIN, UNTIED " num_key_value_heads=8 sliding_window=4096", MB_HF_WINDOW },
	{ "mixtral", PLAIN, UNTIED " num_key_value_heads=8", MB_HF_EXPERT_FFN | MB_HF_WINDOW },
	{ "nemotron", "normalization=LayerNorm activation=squared_relu position_embedding_type=rope add_bias_linear=false "
	  "add_qkv_bias=false", UNTIED " partial_rotary_factor=0.5", 0 },
	{ "nemotron_h", "normalization=RMSNorm activation=squared_relu position_embedding_type=none add_bias_linear=false "
	  "add_qkv_bias=false" SIGMOID, UNTIED " mtp_use_repeated_layer=true", 0 },
	{ "olmoe", NORMED " qk_layernorm_full_dim=true", UNTIED, MB_HF_EXPERT_FFN },
	{ "phi3", PLAIN, UNTIED, MB_HF_WINDOW },
	{ "qwen2", BIASED, UNTIED, 0 },
	{ "qwen2_5_vl_text", BIASED, UNTIED, 0 },
	{ "qwen2_moe", BIASED " moe_shared_expert_gate=true", UNTIED, MB_HF_SPARSE_STEP },
	{ "qwen3", NORMED, UNTIED " head_dim=128", 0 },
	{ "qwen3_5_moe_text", DELTA_MOE, DELTA_EXPERTS, MB_HF_LINEAR },
	{ "qwen3_5_text", DELTA, DELTA_SIZES, MB_HF_LINEAR },
	{ "qwen3_moe", NORMED, UNTIED " head_dim=128", MB_HF_SPARSE_STEP },
	{ "qwen3_next", DELTA_MOE, DELTA_SIZES, MB_HF_LINEAR | MB_HF_SPARSE_STEP },
	{ "qwen3_vl_moe_text", NORMED, UNTIED " head_dim=128", MB_HF_SPARSE_STEP },
	{ "qwen3_vl_text", NORMED, UNTIED " head_dim=128", 0 },
};

/* The text model that a composite or an older spelling of a type stands for. */
static const struct { const char *type, *text; } same_as[] = {
	{ "gemma3", "gemma3_text" }, { "glm4v_moe", "glm4_moe" }, { "glm4v_moe_text", "glm4_moe" }, { "kimi_k25", "kimi_k2" },
	{ "llama4", "llama4_text" }, { "llava", "llama" }, { "llava_next", "llama" }, { "mistral3", "mistral" },
	{ "qwen2_5_vl", "qwen2_5_vl_text" }, { "qwen2_vl", "qwen2_5_vl_text" }, { "qwen2_vl_text", "qwen2_5_vl_text" },
	{ "qwen3_5", "qwen3_5_text" }, { "qwen3_5_moe", "qwen3_5_moe_text" }, { "qwen3_vl", "qwen3_vl_text" },
	{ "qwen3_vl_moe", "qwen3_vl_moe_text" }, { "bailing_moe", "bailing_moe_v2" },
};

static const struct { const char *type, *why; } refused[] = {
	{ "gemma4", "attention shapes that differ from layer to layer" },
	{ "gemma4_text", "attention shapes that differ from layer to layer" },
	{ "mimo_v2_flash", "key and value heads of different sizes" },
	{ "step3p5", "a gate for each attention head" },
	{ "step3p7", "a gate for each attention head" },
	{ "minimax_m3_vl", "sparse attention with an indexer" },
	{ "falcon_h1", "attention and state space side by side in one layer" },
	{ "olmo2", "norms only after attention and MLP" },
	{ "olmo3", "norms only after attention and MLP" },
	{ "exaone4", "norms only after attention and MLP" },
	{ "t5", "an encoder beside the decoder" },
	{ "mt5", "an encoder beside the decoder" },
	{ "bart", "an encoder beside the decoder" },
	{ "whisper", "an encoder beside the decoder" },
	{ "bert", "an encoder" },
	{ "roberta", "an encoder" },
	{ "modernbert", "an encoder" },
	{ "mamba", "Mamba-1" },
	{ "jamba", "Mamba-1" },
};

enum { FAMILIES = sizeof families / sizeof families[0] };

const struct mb_hf_family *mb_hf_family_find(const char *type)
{
	for (size_t i = 0; i < sizeof same_as / sizeof same_as[0]; i++) {
		if (strcmp(type, same_as[i].type) == 0)
			type = same_as[i].text;
	}
	for (int i = 0; i < FAMILIES; i++) {
		if (strcmp(type, families[i].type) == 0)
			return &families[i];
	}
	return NULL;
}

const char *mb_hf_family_type(int index)
{
	return index < FAMILIES ? families[index].type : NULL;
}

const char *mb_hf_family_refused(const char *type)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		if (strcmp(type, refused[i].type) == 0)
			return refused[i].why;
	}
	return NULL;
}

bool mb_hf_row(const char **rows, char *key, size_t key_size, char *value, size_t value_size)
{
	const char *s = *rows + strspn(*rows, " ");
	size_t length = strcspn(s, "="), after;

	if (*s == '\0')
		return false;
	after = strcspn(s + length + 1, " ");
	snprintf(key, key_size, "%.*s", (int)length, s);
	snprintf(value, value_size, "%.*s", (int)after, s + length + 1);
	*rows = s + length + 1 + after;
	return true;
}
