#include "calib/published_model.h"

#include <string.h>

#include "calib/measured.h"

/*
 * What each family's name implies beyond the sizes that a source states: the choices of the family's own paper or
 * checkpoint, as in models/. The families "gpt" and "gpt3" are those of Megatron-LM's papers.
 */
static const struct family {
	const char *name, *implies;
} families[] = {
	{ "gpt3",        "normalization: LayerNorm, activation: gelu, position_embedding_type: learned_absolute, "
	                 "max_position_embeddings: 2048, add_bias_linear: true, add_qkv_bias: true" },
	{ "gpt",         "normalization: LayerNorm, activation: gelu, position_embedding_type: learned_absolute, "
	                 "max_position_embeddings: 2048, add_bias_linear: true, add_qkv_bias: true" },
	{ "llama",       "normalization: RMSNorm, activation: silu, gated_linear_unit: true, add_bias_linear: false, "
	                 "position_embedding_type: rope, share_embeddings_and_output_weights: false" },
	{ "nemotron4",   "normalization: LayerNorm, activation: squared_relu, add_bias_linear: false, "
	                 "position_embedding_type: rope, rotary_percent: 0.5, share_embeddings_and_output_weights: false" },
	{ "qwen3_moe",   "normalization: RMSNorm, activation: silu, gated_linear_unit: true, add_bias_linear: false, "
	                 "position_embedding_type: rope, share_embeddings_and_output_weights: false, qk_layernorm: true" },
	{ "deepseek_v2", "normalization: RMSNorm, activation: silu, gated_linear_unit: true, add_bias_linear: false, "
	                 "position_embedding_type: rope, share_embeddings_and_output_weights: false, qk_layernorm: true, "
	                 "moe_router_num_groups: 8, moe_router_group_topk: 3" },
	{ "deepseek_v3", "normalization: RMSNorm, activation: silu, gated_linear_unit: true, add_bias_linear: false, "
	                 "position_embedding_type: rope, share_embeddings_and_output_weights: false, qk_layernorm: true, "
	                 "moe_router_num_groups: 8, moe_router_group_topk: 4, moe_router_score_function: sigmoid, "
	                 "moe_router_enable_expert_bias: true" },
};

static const struct size {
	const char *column, *key;
	bool required;
} sizes[] = {
	{ "layers",     "num_layers",                          true },
	{ "hidden",     "hidden_size",                         true },
	{ "heads",      "num_attention_heads",                 true },
	{ "vocab",      "vocab_size",                          true },
	{ "ffn",        "ffn_hidden_size",                     false },
	{ "kv_heads",   "num_query_groups",                    false },
	{ "head_dim",   "kv_channels",                         false },
	{ "experts",    "num_moe_experts",                     false },
	{ "topk",       "moe_router_topk",                     false },
	{ "moe_ffn",    "moe_ffn_hidden_size",                 false },
	{ "shared_ffn", "moe_shared_expert_intermediate_size", false },
}, latent[] = {
	{ "q_lora",  "q_lora_rank",         true },
	{ "kv_lora", "kv_lora_rank",        true },
	{ "qk_head", "qk_head_dim",         true },
	{ "qk_rope", "qk_pos_emb_head_dim", true },
	{ "v_head",  "v_head_dim",          true },
};

static bool add_sizes(const struct mb_node *from, const struct size *rows, size_t count, int added_tokens, struct mb_text *run)
{
	for (size_t i = 0; i < count; i++) {
		double value;

		if (mb_row_number(from, rows[i].column, &value))
			mb_text_printf(run, ", %s: %.0f", rows[i].key, value + (strcmp(rows[i].column, "vocab") == 0 ? added_tokens : 0));
		else if (rows[i].required)
			return false;
	}
	return true;
}

/* llama2, llama3 and llama3.1 are one family here: they differ in sizes alone. */
static const struct family *find_family(const char *name)
{
	for (size_t i = 0; name && i < sizeof families / sizeof families[0]; i++) {
		if (strcmp(name, families[i].name) == 0)
			return &families[i];
	}
	return name && strncmp(name, "llama", 5) == 0 && name[5] != '\0' ? find_family("llama") : NULL;
}

static void add_name(const char *name, struct mb_text *run)
{
	mb_text_add(run, "model: {name: '");
	for (size_t i = 0; name && name[i] && i < 60; i++)
		mb_text_add(run, name[i] == '\'' ? " " : (char[]){ name[i], '\0' });
	mb_text_add(run, "'");
}

const char *mb_published_model(const struct mb_node *row, int added_tokens, struct mb_text *run)
{
	const struct mb_node *arch = mb_node_get(row, "arch"), *mla;
	const struct family *family = find_family(mb_row_text(arch, "family"));
	const char *note = mb_row_text(arch, "note");
	double first;

	if (!arch || arch->type != MB_NODE_MAP)
		return "its architecture is not stated";
	if (note && strstr(note, "unverified"))
		return "its architecture is recalled, not published";
	if (!family)
		return "its architecture is of a family that the source does not describe";
	add_name(mb_row_text(row, "model"), run);
	if (!add_sizes(arch, sizes, sizeof sizes / sizeof sizes[0], added_tokens, run))
		return "its architecture is not complete";
	mb_text_printf(run, ", %s", family->implies);
	if (mb_row_number(arch, "dense_layers", &first) && mb_row_number(arch, "experts", &(double){ 0 })) {
		double layers = 0;

		mb_row_number(arch, "layers", &layers);
		mb_text_printf(run, ", moe_layer_freq: '[0]*%.0f+[1]*%.0f'", first, layers - first);
	}
	if ((mla = mb_node_get(arch, "mla"))) {
		mb_text_add(run, ", multi_latent_attention: true");
		if (!add_sizes(mla, latent, sizeof latent / sizeof latent[0], 0, run))
			return "its architecture is not complete";
	}
	mb_text_add(run, "}");
	return NULL;
}

const char *mb_published_hardware(const char *gpu)
{
	/* Longer names first: "H100-96GB" is a part of its own, with less power and bandwidth. */
	static const struct { const char *gpu, *hardware; } machines[] = {
		{ "H100-96GB", NULL }, { "B200 (power limited)", NULL }, { "H100", "dgx-h100" }, { "h100", "dgx-h100" },
		{ "H200", "dgx-h200" }, { "h200", "dgx-h200" }, { "B200", "dgx-b200" }, { "b200", "dgx-b200" },
		{ "B300", "dgx-b300" }, { "b300", "dgx-b300" }, { "GB200", "gb200-nvl72" }, { "gb200", "gb200-nvl72" },
		{ "GB300", "gb300-nvl72" }, { "gb300", "gb300-nvl72" }, { "A100-PCIe", "a100-pcie" }, { "A100-80GB", "dgx-a100" },
	};

	for (size_t i = 0; gpu && i < sizeof machines / sizeof machines[0]; i++) {
		if (strncmp(gpu, machines[i].gpu, strlen(machines[i].gpu)) == 0)
			return machines[i].hardware;
	}
	return NULL;
}
