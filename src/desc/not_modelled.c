#include "desc/not_modelled.h"

#include <stdio.h>
#include <string.h>

#include "desc/node.h"

static const struct feature {
	const char *key;                /* a trailing '*' stands for anything */
	const char *what;
	const char *anchor;             /* in docs/not-modelled.md */
} features[] = {
	{ "dsa_*",                     "sparse attention with an indexer",           "sparse-attention" },
	{ "index_*",                   "sparse attention with an indexer",           "sparse-attention" },
	{ "sparse_attention_config",   "sparse attention with an indexer",           "sparse-attention" },
	{ "csa_*",                     "compressed sparse attention",                "compressed-attention" },
	{ "compress_*",                "compressed sparse attention",                "compressed-attention" },
	{ "attention_variant",         "compressed sparse attention",                "compressed-attention" },
	{ "o_groups",                  "grouped low-rank output projection",         "compressed-attention" },
	{ "o_lora_rank",               "grouped low-rank output projection",         "compressed-attention" },
	{ "moe_n_hash_layers",         "routing by a hash of the token",             "compressed-attention" },
	{ "num_hash_layers",           "routing by a hash of the token",             "compressed-attention" },
	{ "num_residual_streams",      "several residual streams",                   "residual-streams" },
	{ "hc_mult",                   "several residual streams",                   "residual-streams" },
	{ "mhc_*",                     "several residual streams",                   "residual-streams" },
	{ "hyper_connection*",         "several residual streams",                   "residual-streams" },
	{ "kda_*",                     "Kimi delta attention",                       "kimi-delta-attention" },
	{ "linear_attn_config",        "Kimi delta attention",                       "kimi-delta-attention" },
	{ "mla_output_gate",           "a gate on latent attention",                 "kimi-delta-attention" },
	{ "mla_use_nope",              "latent attention beside delta attention",    "kimi-delta-attention" },
	{ "latent_moe_norm",           "a norm inside latent experts",               "kimi-delta-attention" },
	{ "attn_res*",                 "attention over earlier residuals",           "kimi-delta-attention" },
	{ "kimi_attn_res*",            "attention over earlier residuals",           "kimi-delta-attention" },
	{ "head_wise_attn_gate",       "a gate for each attention head",             "head-wise-gates" },
	{ "use_head_wise_attn_gate",   "a gate for each attention head",             "head-wise-gates" },
	{ "sliding_attention_setting", "per-layer attention shapes in this form",    "head-wise-gates" },
	{ "attention_chunk_size",      "chunked attention",                          "chunked-attention" },
	{ "qk_l2_norm",                "L2 norms of queries and keys",               "chunked-attention" },
	{ "final_logit_softcapping",   "capping of the logits",                      "logit-capping" },
	{ "post_norm_only",            "norms only after attention and MLP",         "post-norm-only" },
	{ "encoder_*",                 "an encoder beside the decoder",              "encoders" },
	{ "num_encoder_*",             "an encoder beside the decoder",              "encoders" },
	{ "decoder_*",                 "an encoder beside the decoder",              "encoders" },
	{ "vision_*",                  "a vision tower",                             "encoders" },
	{ "audio_*",                   "an audio tower",                             "encoders" },
	{ "block_configs",             "layers of individual shapes",                "individual-layers" },
	{ "heterogeneous_*",           "layers of individual shapes",                "individual-layers" },
};

static bool matches(const char *pattern, const char *key)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return strncmp(pattern, key, n - 1) == 0;
	return strcmp(pattern, key) == 0;
}

static bool switched_off(const struct mb_node *value)
{
	long long number;
	bool truth;

	if (mb_node_is_null(value) || (value->type != MB_NODE_SCALAR && value->count == 0))
		return true;
	return (mb_node_bool(value, &truth) && !truth) || (mb_node_int(value, &number) && number == 0);
}

static void refuse(const struct mb_node *key, const char *what, const char *anchor, struct mb_diags *diags)
{
	struct mb_diag *d = mb_report(diags, MB_ERROR, key->pos, key->text, "%.80s: %s: not modelled", key->text, what);

	snprintf(d->expected, sizeof d->expected, "any size given would be wrong; see docs/not-modelled.md#%s", anchor);
}

bool mb_not_modelled(const struct mb_node *value, struct mb_diags *diags)
{
	for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
		if (!matches(features[i].key, value->key->text))
			continue;
		if (!switched_off(value))
			refuse(value->key, features[i].what, features[i].anchor, diags);
		return true;
	}
	return false;
}

bool mb_attention_variant_known(const struct mb_node *variant, struct mb_diags *diags)
{
	if (mb_node_is_null(variant))
		return true;
	if (variant->type == MB_NODE_SCALAR && strcmp(variant->text, "gated_delta_net") == 0)
		return true;
	refuse(variant->key, variant->type == MB_NODE_SCALAR && strcmp(variant->text, "dsa") == 0 ?
	       "sparse attention with an indexer" : "this attention variant", "sparse-attention", diags);
	return false;
}
