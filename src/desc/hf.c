#include "desc/hf.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "desc/hf_private.h"
#include "desc/model.h"

static void put_int(struct mb_hf *h, const char *key, const char *from)
{
	long long n;

	if (mb_hf_int(h, from, &n))
		mb_hf_say(h, key, mb_hf_get(h, from)->pos, "%lld", n);
}

/* Bridge turns rope into yarn for all but latent attention, which scales in its own way. */
static const char *position_type(struct mb_hf *h, const char *forced)
{
	const struct mb_node *type = mb_hf_get(h, "rope_scaling.rope_type|rope_scaling.type|rope_parameters.rope_type");
	bool yarn = type != NULL && type->type == MB_NODE_SCALAR && strcmp(type->text, "yarn") == 0;

	return yarn && (h->family->traits & MB_HF_MLA) == 0 && strcmp(forced, "rope") == 0 ? "yarn" : forced;
}

/* The first of a list of rows wins, and forced values come first. Later ones in the same text override earlier ones. */
static void put_forced(struct mb_hf *h)
{
	const char *rows = h->family->forced;
	char key[64], value[64], other[64], last[64];

	while (mb_hf_row(&rows, key, sizeof key, value, sizeof value)) {
		const char *rest = rows;

		snprintf(last, sizeof last, "%s", value);
		while (mb_hf_row(&rest, other, sizeof other, value, sizeof value)) {
			if (strcmp(other, key) == 0)
				snprintf(last, sizeof last, "%s", value);
		}
		mb_hf_say(h, key, h->text->pos, "%s", strcmp(key, "position_embedding_type") == 0 ? position_type(h, last) : last);
	}
}

/* ---- groups of keys ---- */

static void put_sizes(struct mb_hf *h)
{
	static const struct { const char *key, *from; } rows[] = {
		{ "num_layers", "num_hidden_layers|n_layers|n_layer" },
		{ "hidden_size", "hidden_size|d_model|n_embd" },
		{ "vocab_size", "vocab_size" },
		{ "num_attention_heads", "num_attention_heads|n_heads|n_head" },
	};
	long long vocab, divisor = 128;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t length = strcspn(rows[i].from, "|");

		put_int(h, rows[i].key, rows[i].from);
		if (mb_node_get(h->out, rows[i].key) == NULL)
			mb_report(h->diags, MB_ERROR, h->text->pos, rows[i].key, "'%.*s' is missing", (int)length, rows[i].from);
	}
	put_int(h, "ffn_hidden_size", "ffn_config.ffn_hidden_size|intermediate_size_mlp|intermediate_size|n_inner");
	if ((h->family->traits & MB_HF_LEARNED) != 0)
		put_int(h, "max_position_embeddings", "n_positions|max_position_embeddings");
	if (!mb_hf_int(h, "vocab_size", &vocab))
		return;
	while (divisor > 1 && vocab % divisor != 0)
		divisor /= 2;
	mb_hf_say(h, "make_vocab_size_divisible_by", mb_hf_get(h, "vocab_size")->pos, "%lld", divisor);
}

static void put_attention(struct mb_hf *h)
{
	if ((h->family->traits & MB_HF_MLA) != 0) {
		put_int(h, "q_lora_rank", "q_lora_rank");
		put_int(h, "kv_lora_rank", "kv_lora_rank");
		put_int(h, "qk_head_dim", "qk_nope_head_dim");
		put_int(h, "qk_pos_emb_head_dim", "qk_rope_head_dim");
		put_int(h, "v_head_dim", "v_head_dim");
	} else {
		put_int(h, "num_query_groups", "num_key_value_heads|attn_config.kv_n_heads|num_attention_groups");
		put_int(h, "kv_channels", "head_dim|attention_head_dim");
	}
	mb_hf_put(h, "add_qkv_bias", mb_hf_get(h, "attention_bias|use_qkv_bias|qkv_bias"));
	mb_hf_put(h, "qk_layernorm", mb_hf_get(h, "use_qk_norm|qk_layernorm"));
	mb_hf_put(h, "add_bias_linear", mb_hf_get(h, "mlp_bias|use_bias"));
	mb_hf_say(h, "add_bias_linear", h->text->pos, "false");
	mb_hf_say(h, "add_qkv_bias", h->text->pos, "false");
}

static void put_positions(struct mb_hf *h)
{
	const struct mb_node *part = mb_hf_get(h, "partial_rotary_factor|rope_parameters.partial_rotary_factor|"
	                                          "rope_parameters.full_attention.partial_rotary_factor|rotary_percent");
	long long rotary, dim;

	if (part == NULL && mb_hf_int(h, "rotary_dim", &rotary) && mb_hf_int(h, "head_dim", &dim) && dim > 0 && rotary <= dim)
		mb_hf_say(h, "rotary_percent", mb_hf_get(h, "rotary_dim")->pos, "%g", (double)rotary / (double)dim);
	mb_hf_put(h, "rotary_percent", part);
}

/* Class names of transformers' activations to ours. */
static void put_activation(struct mb_hf *h)
{
	static const struct mb_name names[] = {
		{ "silu", 0 }, { "swish", 0 }, { "gelu", 1 }, { "gelu_new", 1 }, { "gelu_pytorch_tanh", 1 }, { "gelu_fast", 1 },
		{ "relu2", 2 }, { "relu_squared", 2 }, { "relu", 3 }, { "quick_gelu", 4 }, { NULL, 0 }
	};
	static const char *const ours[] = { "silu", "gelu", "squared_relu", "relu", "quick_gelu" };
	const struct mb_node *n = mb_hf_get(h, "hidden_act|hidden_activation|mlp_hidden_act|activation_function");
	const struct mb_node *forced = mb_node_get(h->out, "activation");
	int which;

	if (n == NULL || (forced != NULL && strcmp(forced->text, "quick_gelu") == 0))
		return;
	if (n->type != MB_NODE_SCALAR || !mb_name_value(names, n->text, &which)) {
		mb_report(h->diags, MB_ERROR, n->pos, "activation", "the activation '%.60s' is not modelled",
		          n->type == MB_NODE_SCALAR ? n->text : "[...]");
		return;
	}
	if (forced != NULL && strcmp(forced->text, ours[which]) != 0)
		mb_report(h->diags, MB_ERROR, n->pos, "activation", "the activation of %s is %s, the file says '%.60s'",
		          h->family->type, forced->text, n->text);
}

static bool positive(struct mb_hf *h, const char *keys, long long *ret)
{
	return mb_hf_int(h, keys, ret) && *ret > 0;
}

static void put_shared(struct mb_hf *h)
{
	long long count = 0, size = 0;

	put_int(h, "moe_shared_expert_intermediate_size", "shared_expert_intermediate_size|moe_shared_expert_intermediate_size");
	if (strcmp(h->family->type, "llama4_text") == 0)
		put_int(h, "moe_shared_expert_intermediate_size", "intermediate_size");
	if ((h->family->traits & MB_HF_SHARED_ONE) != 0 && positive(h, "moe_intermediate_size", &size))
		count = 1;
	else if ((h->family->traits & MB_HF_SHARED_COUNT) != 0 && positive(h, "moe_intermediate_size|intermediate_size", &size))
		mb_hf_int(h, "n_shared_experts|num_shared_experts|num_shared_expert|moe_num_shared_experts", &count);
	if (count < 0 || count > 64 || size > 1 << 20)
		mb_report(h->diags, MB_ERROR, h->text->pos, "n_shared_experts", "%lld shared experts of %lld are out of range", count,
		          size);
	else if (count > 0)
		mb_hf_say(h, "moe_shared_expert_intermediate_size", h->text->pos, "%lld", count * size);
}

static void put_experts(struct mb_hf *h)
{
	static const char keys[] = "n_routed_experts|num_experts|num_local_experts|moe_num_experts|ffn_config.moe_num_experts";
	long long experts = 0, groups = 0;

	if (!positive(h, keys, &experts))
		return;
	mb_hf_say(h, "num_moe_experts", mb_hf_get(h, keys)->pos, "%lld", experts);
	put_int(h, "moe_router_topk", "num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|moe_top_k|ffn_config.moe_top_k");
	if (mb_node_get(h->out, "moe_router_topk") == NULL)
		mb_report(h->diags, MB_ERROR, h->text->pos, "num_experts_per_tok", "'num_experts_per_tok' is missing");
	if ((h->family->traits & MB_HF_EXPERT_FFN) != 0 || strcmp(h->family->type, "llama4_text") == 0)
		put_int(h, "moe_ffn_hidden_size", "intermediate_size|ffn_config.ffn_hidden_size");
	put_int(h, "moe_ffn_hidden_size", "moe_intermediate_size");
	put_int(h, "moe_latent_size", "moe_latent_size|routed_expert_hidden_size");
	put_shared(h);
	if (mb_hf_int(h, "n_group|num_expert_group", &groups) && groups > 1) {
		put_int(h, "moe_router_num_groups", "n_group|num_expert_group");
		put_int(h, "moe_router_group_topk", "topk_group");
	}
	mb_hf_put(h, "moe_router_score_function", mb_hf_get(h, "scoring_func|score_function"));
}

static void put_state_space(struct mb_hf *h)
{
	static const struct { const char *key, *from; } rows[] = {
		{ "mamba_num_heads", "mamba_num_heads" }, { "mamba_head_dim", "mamba_head_dim" },
		{ "mamba_num_groups", "n_groups" }, { "mamba_state_dim", "ssm_state_size" },
		{ "linear_num_key_heads", "linear_num_key_heads" }, { "linear_num_value_heads", "linear_num_value_heads" },
		{ "linear_key_head_dim", "linear_key_head_dim" }, { "linear_value_head_dim", "linear_value_head_dim" },
		{ "linear_conv_kernel_dim", "linear_conv_kernel_dim" },
	};
	bool linear = (h->family->traits & MB_HF_LINEAR) != 0, mamba = strcmp(h->family->type, "nemotron_h") == 0;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (strncmp(rows[i].key, "mamba", 5) == 0 ? mamba : linear)
			put_int(h, rows[i].key, rows[i].from);
	}
}

static void put_mtp(struct mb_hf *h)
{
	const char *keys = "num_nextn_predict_layers|mtp_num_hidden_layers";
	long long depths = 0;

	if ((h->family->traits & MB_HF_NO_MTP) != 0 || !positive(h, keys, &depths))
		return;
	put_int(h, "mtp_num_layers", keys);
	mb_hf_put(h, "mtp_use_repeated_layer", mb_hf_get(h, "mtp_use_repeated_layer"));
}

/* Composites say it at the top, and some again inside; both may be stale, the outer one is what is loaded. */
static void put_ties(struct mb_hf *h)
{
	const struct mb_node *outer = mb_node_get(h->top, "tie_word_embeddings"), *inner = mb_node_get(h->text, "tie_word_embeddings");
	bool inside = h->top == h->text || mb_node_is_null(outer) || (h->family->traits & MB_HF_TEXT_TIES) != 0;

	if (!inside && inner != NULL && !mb_node_is_null(inner) && strcmp(inner->text != NULL ? inner->text : "",
	    outer->text != NULL ? outer->text : "") != 0)
		mb_report(h->diags, MB_NOTE, inner->key->pos, "tie_word_embeddings",
		          "tie_word_embeddings: the value of the whole file, line %d, is taken", outer->pos.line);
	if (!inside) {
		mb_hf_put(h, "share_embeddings_and_output_weights", mb_hf_unquoted(h, outer));
		return;
	}
	mb_hf_put(h, "share_embeddings_and_output_weights", mb_hf_get(h, "tie_word_embeddings"));
	mb_hf_say(h, "share_embeddings_and_output_weights", h->text->pos, "true");
}

/* ---- the file ---- */

static const char *word(const struct mb_node *map, const char *key)
{
	const struct mb_node *n = mb_node_get(map, key);

	return n != NULL && n->type == MB_NODE_SCALAR && !mb_node_is_null(n) ? n->text : NULL;
}

static bool unknown_type(struct mb_hf *h, const struct mb_node *config, const char *type)
{
	const struct mb_node *at = mb_node_get(config, "model_type");
	const char *names[128], *why = mb_hf_family_refused(type), *near;
	size_t count = 0;

	if (why != NULL) {
		struct mb_diag *d = mb_report(h->diags, MB_ERROR, at->pos, "model_type", "model_type: %.60s: %s: not modelled", type, why);

		snprintf(d->expected, sizeof d->expected, "any size given would be wrong; see docs/not-modelled.md");
		return false;
	}
	struct mb_diag *d = mb_report(h->diags, MB_ERROR, at->pos, "model_type", "model_type: '%.60s' is not known", type);

	for (; count < 128 && mb_hf_family_type((int)count) != NULL; count++)
		names[count] = mb_hf_family_type((int)count);
	near = mb_nearest(type, names, count);
	snprintf(d->nearest, sizeof d->nearest, "%s", near != NULL ? near : "");
	snprintf(d->expected, sizeof d->expected, "a type of docs/formats.md, or a model written as a mapping of Megatron's keys");
	return false;
}

/* Published by class alone: MistralForCausalLM has no bridge of its own, old files have no type. */
static const char *type_of_class(const struct mb_node *config)
{
	static const struct mb_name classes[] = {
		{ "LlamaForCausalLM", 0 }, { "MistralForCausalLM", 1 }, { "MixtralForCausalLM", 2 }, { "Qwen2ForCausalLM", 3 },
		{ "Qwen3ForCausalLM", 4 }, { "Qwen3MoeForCausalLM", 5 }, { "DeepseekV2ForCausalLM", 6 }, { "DeepseekV3ForCausalLM", 7 },
		{ NULL, 0 }
	};
	static const char *const types[] = { "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "deepseek_v2",
		"deepseek_v3" };
	const struct mb_node *list = mb_node_get(config, "architectures");
	int which;

	if (list == NULL || list->type != MB_NODE_LIST || list->child == NULL || list->child->type != MB_NODE_SCALAR ||
	    !mb_name_value(classes, list->child->text, &which))
		return NULL;
	return types[which];
}

static bool find_family(struct mb_hf *h)
{
	const char *outer = word(h->top, "model_type"), *inner = h->text != h->top ? word(h->text, "model_type") : NULL;
	const char *type = inner != NULL && mb_hf_family_find(inner) != NULL ? inner : outer != NULL ? outer : inner;

	if (type == NULL)
		type = type_of_class(h->top);
	if (type == NULL)
		return mb_fail(h->diags, h->top->pos, "'model_type' is missing");
	h->family = mb_hf_family_find(type);
	if (h->family != NULL)
		return true;
	if (word(h->top, "model_type") == NULL)
		return mb_fail(h->diags, h->text->pos, "model_type '%.60s' is not known", type);
	return unknown_type(h, h->top, type);
}

static void find_text(struct mb_hf *h)
{
	static const char *const names[] = { "text_config", "llm_config", "language_config", "thinker_config" };

	h->text = h->top;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const struct mb_node *inner = mb_node_get(h->text, names[i]);

		if (inner != NULL && inner->type == MB_NODE_MAP)
			h->text = inner;
	}
}

static void put_all(struct mb_hf *h)
{
	const char *name = word(h->top, "_name_or_path");
	long long layers = 0;

	if (name != NULL && name[0] != '/' && name[0] != '.' && strlen(name) < 100)
		mb_hf_say(h, "hf_id", h->top->pos, "%s", name);
	mb_hf_say(h, "source", h->top->pos, "config.json, model_type %s", h->family->type);
	put_forced(h);
	put_sizes(h);
	put_attention(h);
	put_activation(h);
	put_positions(h);
	put_experts(h);
	put_state_space(h);
	put_ties(h);
	mb_hf_int(h, "num_hidden_layers|n_layers|n_layer", &layers);
	if (layers > MB_MAX_LAYERS)
		mb_report(h->diags, MB_ERROR, h->text->pos, "num_hidden_layers", "num_hidden_layers: %lld is more than %d", layers,
		          MB_MAX_LAYERS);
	h->layers = layers > 0 && layers <= MB_MAX_LAYERS ? (int)layers : 0;
	if (h->layers > 0)
		mb_hf_layers(h);
	put_mtp(h);
}

bool mb_hf_is_config(const struct mb_node *node)
{
	return node != NULL && node->type == MB_NODE_MAP && mb_node_get(node, "num_layers") == NULL &&
	       mb_node_get(node, "hybrid_layer_pattern") == NULL &&
	       (mb_node_get(node, "model_type") != NULL || mb_node_get(node, "architectures") != NULL ||
	        mb_node_get(node, "text_config") != NULL || mb_node_get(node, "num_hidden_layers") != NULL);
}

const struct mb_node *mb_hf_model(const struct mb_node *config, struct mb_arena *arena, struct mb_diags *diags)
{
	struct mb_hf h = { .top = config, .arena = arena, .diags = diags };
	int before = diags->errors;

	find_text(&h);
	if (!find_family(&h))
		return NULL;
	h.out = mb_arena_alloc(arena, sizeof *h.out);
	h.out->type = MB_NODE_MAP;
	h.out->pos = h.text->pos;
	h.tail = &h.out->child;
	mb_hf_leftovers(&h);
	if (diags->errors > before)
		return NULL;
	put_all(&h);
	if (h.taken[0] != '\0')
		mb_report(diags, MB_NOTE, h.text->pos, "", "not in the file, taken from the class %s: %s", h.family->type, h.taken);
	return diags->errors > before ? NULL : h.out;
}
