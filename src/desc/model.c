#include "desc/model.h"

#include <stdio.h>
#include <string.h>

#include "desc/bind.h"
#include "desc/not_modelled.h"
#include "desc/pattern.h"

static const struct mb_name families[] = { { "transformer", 0 }, { "hybrid", 1 }, { NULL, 0 } };

static const struct mb_name normalizations[] = {
	{ "RMSNorm", MB_RMSNORM }, { "LayerNorm", MB_LAYERNORM }, { NULL, 0 }
};

static const struct mb_name activations[] = {
	{ "silu", MB_ACT_SILU }, { "gelu", MB_ACT_GELU }, { "gelu_tanh", MB_ACT_GELU }, { "quick_gelu", MB_ACT_QUICK_GELU },
	{ "squared_relu", MB_ACT_SQUARED_RELU }, { "relu", MB_ACT_RELU }, { NULL, 0 }
};

static const struct mb_name positions[] = {
	{ "rope", MB_POS_ROPE }, { "learned_absolute", MB_POS_LEARNED }, { "none", MB_POS_NONE }, { "yarn", MB_POS_YARN },
	{ NULL, 0 }
};

static const struct mb_name scores[] = {
	{ "softmax", MB_SCORE_SOFTMAX }, { "sigmoid", MB_SCORE_SIGMOID }, { "sqrtsoftplus", MB_SCORE_SQRTSOFTPLUS },
	{ NULL, 0 }
};

static const struct mb_name softmaxes[] = {
	{ "vanilla", MB_SOFTMAX_VANILLA }, { "off-by-one", MB_SOFTMAX_OFF_BY_ONE }, { "learnable", MB_SOFTMAX_LEARNABLE },
	{ NULL, 0 }
};

/* Keys that need a second look, beside the model they belong to. */
struct model_file {
	struct mb_model m;
	int family;
	const struct mb_node *window_size, *moe_layer_freq, *window_pattern, *window_attn_skip_freq, *linear_attention_freq,
		*no_rope_freq, *experimental_attention_variant;
	const char *hybrid_layer_pattern;
};

#define AT(member) offsetof(struct model_file, member)
#define INT(name, low, high, absent_value) \
	{ #name, MB_FIELD_INT, AT(m.name), low, high, absent_value, MB_COUNT_UNIT, NULL }
#define BOOL(name, absent_value) \
	{ #name, MB_FIELD_BOOL, AT(m.name), 0, 1, absent_value, MB_PURE, NULL }
#define ENUM(name, member, table, absent_value) \
	{ name, MB_FIELD_ENUM, AT(member), 0, 0, absent_value, MB_PURE, table }
#define NODE(name) \
	{ #name, MB_FIELD_NODE, AT(name), 0, 0, 0, MB_PURE, NULL }
#define IGNORED(name) \
	{ name, MB_FIELD_IGNORED, 0, 0, 0, 0, MB_PURE, NULL }

enum { DIM = 1 << 20 };

/* Absent keys mean what they mean to Megatron Bridge's GPTModelProvider. */
static const struct mb_field fields[] = {
	{ "name", MB_FIELD_NAME, AT(m.name), 1, 63, 0, MB_PURE, NULL },
	{ "source", MB_FIELD_TEXT, AT(m.source), 0, 0, 0, MB_PURE, NULL },
	ENUM("family", family, families, 0),
	INT(num_layers, 1, MB_MAX_LAYERS, 0),
	INT(hidden_size, 1, DIM, MB_REQUIRED),
	INT(ffn_hidden_size, 1, DIM, 0),
	INT(vocab_size, 1, 100000000, MB_REQUIRED),
	INT(make_vocab_size_divisible_by, 1, DIM, 128),
	INT(max_position_embeddings, 1, 100000000, 0),
	ENUM("normalization", m.normalization, normalizations, MB_LAYERNORM),
	ENUM("activation", m.activation, activations, MB_ACT_GELU),
	ENUM("position_embedding_type", m.position_embedding_type, positions, MB_POS_LEARNED),
	{ "rotary_percent", MB_FIELD_DOUBLE, AT(m.rotary_percent), 0, 1, 1, MB_PURE, NULL },
	BOOL(gated_linear_unit, 0),
	BOOL(add_bias_linear, 1),
	BOOL(add_qkv_bias, 0),
	BOOL(layernorm_bias, 0),
	BOOL(post_norms, 0),
	BOOL(share_embeddings_and_output_weights, 1),
	INT(num_attention_heads, 1, 65536, 0),
	INT(num_query_groups, 1, 65536, 0),
	INT(kv_channels, 1, 65536, 0),
	BOOL(qk_layernorm, 0),
	BOOL(qk_layernorm_full_dim, 0),
	BOOL(attention_output_gate, 0),
	ENUM("softmax_type", m.softmax_type, softmaxes, MB_SOFTMAX_VANILLA),
	NODE(window_size),
	NODE(window_pattern),
	NODE(window_attn_skip_freq),
	INT(sliding_attention_heads, 1, 65536, 0),
	INT(sliding_query_groups, 1, 65536, 0),
	INT(sliding_kv_channels, 1, 65536, 0),
	NODE(no_rope_freq),
	BOOL(multi_latent_attention, 0),
	INT(q_lora_rank, 0, DIM, 0),
	INT(kv_lora_rank, 1, DIM, 0),
	INT(qk_head_dim, 1, 65536, 0),
	INT(qk_pos_emb_head_dim, 0, 65536, 0),
	INT(v_head_dim, 1, 65536, 0),
	INT(num_moe_experts, 0, 65536, 0),
	INT(moe_router_topk, 1, 65536, 2),
	INT(moe_ffn_hidden_size, 1, DIM, 0),
	INT(moe_shared_expert_intermediate_size, 0, DIM, 0),
	INT(moe_latent_size, 0, DIM, 0),
	INT(moe_router_num_groups, 0, 65536, 0),
	INT(moe_router_group_topk, 0, 65536, 0),
	ENUM("moe_router_score_function", m.moe_router_score_function, scores, MB_SCORE_SOFTMAX),
	BOOL(moe_router_enable_expert_bias, 0),
	BOOL(moe_shared_expert_gate, 0),
	BOOL(moe_router_bias_linear, 0),
	NODE(moe_layer_freq),
	INT(mamba_num_heads, 1, DIM, 0),
	INT(mamba_head_dim, 1, DIM, 64),
	INT(mamba_state_dim, 1, DIM, 128),
	INT(mamba_num_groups, 1, 65536, 8),
	{ "hybrid_layer_pattern", MB_FIELD_TEXT, AT(hybrid_layer_pattern), 0, 0, 0, MB_PURE, NULL },
	NODE(linear_attention_freq),
	INT(linear_num_key_heads, 1, 65536, 16),
	INT(linear_num_value_heads, 1, 65536, 32),
	INT(linear_key_head_dim, 1, 65536, 128),
	INT(linear_value_head_dim, 1, 65536, 128),
	INT(linear_conv_kernel_dim, 1, 64, 4),
	INT(mtp_num_layers, 0, MB_MAX_MTP_LAYERS, 0),
	BOOL(mtp_use_repeated_layer, 0),
	{ "published_total", MB_FIELD_DOUBLE, AT(m.published_total), 0, 1e15, 0, MB_PURE, NULL },
	{ "published_active", MB_FIELD_DOUBLE, AT(m.published_active), 0, 1e15, 0, MB_PURE, NULL },
	{ "parameters", MB_FIELD_INT64, AT(m.parameters), 0, 1e15, 0, MB_COUNT_UNIT, NULL },
	NODE(experimental_attention_variant),
	IGNORED("hf_id"),
	IGNORED("note"),
	IGNORED("seq_length"),
	IGNORED("rotary_base"),
	IGNORED("rotary_interleaved"),
	IGNORED("layernorm_epsilon"),
	IGNORED("layernorm_zero_centered_gamma"),
	IGNORED("init_method_std"),
	IGNORED("attn_logit_softcapping"),
	IGNORED("moe_router_topk_scaling_factor"),
	IGNORED("moe_aux_loss_coeff"),
	IGNORED("mtp_loss_scaling_factor"),
};

#undef AT
#undef INT
#undef BOOL
#undef ENUM
#undef NODE
#undef IGNORED

bool mb_model_key(const char *name)
{
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (strcmp(fields[i].key, name) == 0)
			return true;
	}
	return false;
}

static void format_value(const struct mb_field *f, int value, char *text, size_t size)
{
	if (f->kind == MB_FIELD_INT)
		snprintf(text, size, "%d", value);
	else
		snprintf(text, size, "%s", mb_value_name(f->names, value));
}

/* Rows of the model itself: struct mb_model stands at the start of struct model_file. */
bool mb_model_field(const struct mb_model *m, int index, const char **key, char *text, size_t size)
{
	const struct mb_field *f;
	const char *at;
	int value = 0;
	bool truth;
	double number;

	if ((size_t)index >= sizeof fields / sizeof fields[0])
		return false;
	f = &fields[index];
	at = (const char *)m + f->offset;
	*key = f->key;
	text[0] = '\0';
	if (f->kind == MB_FIELD_NAME) {
		snprintf(text, size, "%s", at);
	} else if (f->kind == MB_FIELD_BOOL) {
		memcpy(&truth, at, sizeof truth);
		if (truth != (f->absent > 0) || strcmp(f->key, "layernorm_bias") == 0)
			snprintf(text, size, "%s", truth ? "true" : "false");
	} else if (f->kind == MB_FIELD_DOUBLE && strncmp(f->key, "published", 9) != 0) {
		memcpy(&number, at, sizeof number);
		if (number > f->absent || number < f->absent)
			snprintf(text, size, "%.12g", number);
	} else if ((f->kind == MB_FIELD_INT || f->kind == MB_FIELD_ENUM) && f->offset < sizeof *m) {
		memcpy(&value, at, sizeof value);
		if (isnan(f->absent) || value != (int)f->absent)
			format_value(f, value, text, size);
	}
	return true;
}

/* ---- keys that fill several layers ---- */

/* Megatron writes [w - 1, 0]: tokens to the left, none to the right. We keep the tokens a layer sees, itself included. */
static bool read_window(const struct mb_node *node, int *ret, struct mb_diags *diags)
{
	const struct mb_node *left = node->type == MB_NODE_LIST ? node->child : node;
	long long tokens, right = 0;

	if (node->type == MB_NODE_LIST && (node->count != 2 || !mb_node_int(left->next, &right)))
		return mb_fail(diags, node->pos, "window_size: expected a number of tokens or [left, 0]");
	if (!left || !mb_node_int(left, &tokens))
		return mb_fail(diags, node->pos, "window_size is not a whole number of tokens");
	if (right != 0)
		return mb_fail(diags, node->pos, "window_size: a window to the right is not modelled");
	tokens += node->type == MB_NODE_LIST;
	if (tokens < 1 || tokens > 100000000)
		return mb_fail(diags, node->pos, "window_size: %lld tokens is out of range", tokens);
	*ret = (int)tokens;
	return true;
}

/*
 * A stride or a list. last: with stride n, which layers get `flag`: every n-th (n, 2n, ... counted from 1) if true,
 * the first of each n (counted from 0) if false; the others get the opposite.
 */
static bool read_frequency(const struct mb_node *node, const char *key, int layers, bool last, int flag, int8_t *ret,
                           struct mb_diags *diags)
{
	long long stride;

	if (node->type != MB_NODE_SCALAR || !mb_node_int(node, &stride))
		return mb_pattern_read(node, layers, ret, key, diags);
	if (stride < 1 || stride > MB_MAX_LAYERS) {
		mb_report(diags, MB_ERROR, node->pos, key, "%s: a stride of %lld is out of range; expected 1 to %d", key, stride,
		          MB_MAX_LAYERS);
		return false;
	}
	for (int i = 0; i < layers; i++)
		ret[i] = (int8_t)((i + last) % stride == 0 ? flag : !flag);
	return true;
}

/* Windowed unless said otherwise, when there is a window at all. */
static bool read_windows(const struct model_file *f, int layers, int8_t *ret, struct mb_diags *diags)
{
	const struct mb_node *list = f->window_pattern, *skip = f->window_attn_skip_freq;

	if (list && skip)
		return mb_fail(diags, skip->pos, "window_attn_skip_freq and window_pattern say the same thing; keep one");
	if (list)
		return mb_pattern_read(list, layers, ret, "window_pattern", diags);
	if (skip)
		return read_frequency(skip, "window_attn_skip_freq", layers, true, 0, ret, diags);
	memset(ret, 1, (size_t)layers);
	return true;
}

static bool build_layers(struct model_file *f, struct mb_pos at, struct mb_diags *diags)
{
	int8_t moe[MB_MAX_LAYERS], window[MB_MAX_LAYERS], linear[MB_MAX_LAYERS], no_rope[MB_MAX_LAYERS];
	struct mb_model *m = &f->m;
	bool ok = true;

	if (f->hybrid_layer_pattern) {
		if (f->moe_layer_freq || f->linear_attention_freq || f->window_size || f->no_rope_freq)
			return mb_fail(diags, at, "hybrid_layer_pattern excludes moe_layer_freq, linear_attention_freq, window_size "
			               "and no_rope_freq");
		return mb_model_build_layers(m, NULL, NULL, NULL, NULL, f->hybrid_layer_pattern, at, diags);
	}
	if (m->num_layers == 0)
		return mb_fail(diags, at, "'num_layers' is missing");
	if (f->moe_layer_freq)
		ok &= read_frequency(f->moe_layer_freq, "moe_layer_freq", m->num_layers, false, 1, moe, diags);
	if (f->window_size)
		ok &= read_windows(f, m->num_layers, window, diags);
	else if (f->window_pattern || f->window_attn_skip_freq)
		ok = mb_fail(diags, at, "'window_size' is missing, but some layers are said to be windowed");
	if (f->linear_attention_freq)
		ok &= read_frequency(f->linear_attention_freq, "linear_attention_freq", m->num_layers, true, 0, linear, diags);
	if (f->no_rope_freq)
		ok &= read_frequency(f->no_rope_freq, "no_rope_freq", m->num_layers, true, 1, no_rope, diags);
	return ok && mb_model_build_layers(m, f->moe_layer_freq ? moe : NULL, f->window_size ? window : NULL,
	                                   f->linear_attention_freq ? linear : NULL, f->no_rope_freq ? no_rope : NULL, NULL,
	                                   at, diags);
}

/* ---- what follows from other keys, and what must fit together ---- */

static bool has_mixer(const struct mb_model *m, enum mb_mixer mixer)
{
	for (int i = 0; i < m->kind_count; i++) {
		if (m->kinds[i].mixer == mixer)
			return true;
	}
	return false;
}

static bool check_attention(struct mb_model *m, struct mb_pos at, struct mb_diags *diags)
{
	if (m->num_attention_heads == 0)
		return mb_fail(diags, at, "'num_attention_heads' is missing");
	if (m->multi_latent_attention) {
		if (!m->kv_lora_rank || !m->qk_head_dim || !m->v_head_dim)
			return mb_fail(diags, at, "multi_latent_attention needs kv_lora_rank, qk_head_dim and v_head_dim");
		return true;
	}
	if (m->num_query_groups == 0)
		m->num_query_groups = m->num_attention_heads;
	if (m->kv_channels == 0) {
		if (m->hidden_size % m->num_attention_heads)
			return mb_fail(diags, at, "kv_channels is missing, and hidden_size %d is no multiple of num_attention_heads %d",
			               m->hidden_size, m->num_attention_heads);
		m->kv_channels = m->hidden_size / m->num_attention_heads;
	}
	if (m->num_attention_heads % m->num_query_groups)
		return mb_fail(diags, at, "num_attention_heads %d is no multiple of num_query_groups %d", m->num_attention_heads,
		               m->num_query_groups);
	if (m->sliding_attention_heads && m->sliding_query_groups && m->sliding_attention_heads % m->sliding_query_groups)
		return mb_fail(diags, at, "sliding_attention_heads %d is no multiple of sliding_query_groups %d",
		               m->sliding_attention_heads, m->sliding_query_groups);
	return true;
}

static bool check_experts(struct mb_model *m, struct mb_pos at, struct mb_diags *diags)
{
	int groups = m->moe_router_num_groups;

	if (!m->num_moe_experts)
		return true;
	if (m->moe_ffn_hidden_size == 0)
		m->moe_ffn_hidden_size = m->ffn_hidden_size;
	if (m->moe_router_topk > m->num_moe_experts)
		return mb_fail(diags, at, "moe_router_topk %d is more than num_moe_experts %d", m->moe_router_topk,
		               m->num_moe_experts);
	if (!groups != !m->moe_router_group_topk)
		return mb_fail(diags, at, "moe_router_num_groups and moe_router_group_topk go together");
	if (groups && (m->num_moe_experts % groups || m->moe_router_group_topk > groups))
		return mb_fail(diags, at, "%d of %d groups of %d experts are impossible", m->moe_router_group_topk, groups,
		               m->num_moe_experts);
	if (groups && m->moe_router_topk > m->num_moe_experts / groups * m->moe_router_group_topk)
		return mb_fail(diags, at, "moe_router_topk %d is more than %d groups hold", m->moe_router_topk,
		               m->moe_router_group_topk);
	return true;
}

static bool check_state_space(struct mb_model *m, struct mb_pos at, struct mb_diags *diags)
{
	if (has_mixer(m, MB_MIXER_MAMBA)) {
		if (m->mamba_num_heads == 0)
			m->mamba_num_heads = 2 * m->hidden_size / m->mamba_head_dim;
		if (m->mamba_num_heads == 0 || m->mamba_num_heads % m->mamba_num_groups)
			return mb_fail(diags, at, "mamba_num_heads %d is no multiple of mamba_num_groups %d", m->mamba_num_heads,
			               m->mamba_num_groups);
	}
	if (has_mixer(m, MB_MIXER_GDN) && m->linear_num_value_heads % m->linear_num_key_heads)
		return mb_fail(diags, at, "linear_num_value_heads %d is no multiple of linear_num_key_heads %d",
		               m->linear_num_value_heads, m->linear_num_key_heads);
	return true;
}

static bool check(struct model_file *f, struct mb_pos at, struct mb_diags *diags)
{
	struct mb_model *m = &f->m;

	if (m->position_embedding_type == MB_POS_LEARNED && !m->max_position_embeddings)
		return mb_fail(diags, at, "'max_position_embeddings' is missing; learned_absolute positions are a table of that size "
		               "(position_embedding_type: rope, if they are rotary)");
	if (m->position_embedding_type != MB_POS_LEARNED)
		m->max_position_embeddings = 0;
	if (m->ffn_hidden_size == 0)
		m->ffn_hidden_size = 4 * m->hidden_size;
	if (!build_layers(f, at, diags) || !check_experts(m, at, diags) || !check_state_space(m, at, diags))
		return false;
	if (has_mixer(m, MB_MIXER_ATTENTION) || has_mixer(m, MB_MIXER_MLA))
		return check_attention(m, at, diags);
	return true;
}

bool mb_model_read(const struct mb_node *node, struct mb_arena *arena, struct mb_model *ret, struct mb_diags *diags)
{
	static const struct mb_binding binding = {
		.fields = fields, .count = sizeof fields / sizeof fields[0], .unknown = mb_not_modelled
	};
	struct model_file f = { 0 };

	if (!mb_bind(&binding, node, arena, &f, diags))
		return false;
	if (!mb_attention_variant_known(f.experimental_attention_variant, diags))
		return false;
	if (f.window_size && !read_window(f.window_size, &f.m.window_size, diags))
		return false;
	if (!mb_node_get(node, "layernorm_bias"))
		f.m.layernorm_bias = f.m.normalization == MB_LAYERNORM;
	f.m.family = f.hybrid_layer_pattern ? "hybrid" : "transformer";
	if (!check(&f, node->pos, diags))
		return false;
	*ret = f.m;
	return true;
}
