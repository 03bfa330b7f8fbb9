#include <stdio.h>
#include <string.h>

#include "exchange/export_private.h"

/* ---- a mapping that reads back as the model ---- */

/* "[0]*3+[1]*58" */
static const char *pattern_text(struct mb_arena *arena, const bool *flags, int count)
{
	struct mb_text t = { 0 };
	char *copy;

	for (int i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count && flags[i + n] == flags[i]; n++)
			;
		mb_text_printf(&t, "%s[%d]*%d", i > 0 ? "+" : "", flags[i], n);
	}
	copy = mb_arena_strdup(arena, t.data != NULL ? t.data : "");
	mb_text_free(&t);
	return copy;
}

enum flag { EXPERTS, WINDOWED, LINEAR, NO_ROPE, FLAGS };

static bool layer_flag(const struct mb_model *m, int layer, enum flag which)
{
	const struct mb_layer_kind *k = &m->kinds[m->layers[layer]];

	switch (which) {
	case EXPERTS:
		return k->ffn == MB_FFN_MOE;
	case WINDOWED:
		return k->windowed;
	case LINEAR:
		return k->mixer == MB_MIXER_GDN;
	default:
		return k->no_rope;
	}
}

static void put_pattern(struct mb_arena *arena, struct mb_node *map, const struct mb_model *m, enum flag which, const char *key,
                        bool always_when_any, bool everything_is_default)
{
	bool flags[MB_MAX_LAYERS];
	int set = 0;

	for (int i = 0; i < m->num_layers; i++)
		set += flags[i] = layer_flag(m, i, which);
	if ((everything_is_default && set == m->num_layers) || (set == 0 && always_when_any))
		return;
	mb_map_say(arena, map, key, (struct mb_pos){ 0 }, pattern_text(arena, flags, m->num_layers));
}

static char symbol(const struct mb_layer_kind *k)
{
	if (k->mixer == MB_MIXER_MAMBA)
		return 'M';
	if (k->mixer == MB_MIXER_GDN)
		return 'G';
	return k->mixer != MB_MIXER_NONE ? '*' : k->ffn == MB_FFN_MOE ? 'E' : '-';
}

static const char *hybrid_pattern(struct mb_arena *arena, const struct mb_model *m)
{
	char *text = mb_arena_alloc(arena, (size_t)m->num_layers + MB_MAX_MTP_LAYERS * (MB_MAX_MTP_LAYERS + 1) + 1);
	size_t n = 0;

	for (int i = 0; i < m->num_layers; i++)
		text[n++] = symbol(&m->kinds[m->layers[i]]);
	for (int depth = 0; depth < m->mtp_num_layers && depth < MB_MAX_MTP_LAYERS; depth++) {
		text[n++] = '/';
		for (int i = 0; i < m->mtp_layer_count; i++)
			text[n++] = symbol(&m->kinds[m->mtp_layers[i]]);
	}
	return text;
}

const struct mb_node *mb_export_model(struct mb_arena *arena, const struct mb_model *m)
{
	struct mb_node *map = mb_map_new(arena, (struct mb_pos){ 0 });
	bool hybrid = m->family != NULL && strcmp(m->family, "hybrid") == 0;
	const char *key;
	char text[160];

	for (int i = 0; mb_model_field(m, i, &key, text, sizeof text); i++) {
		bool window = strcmp(key, "window_size") == 0;

		if (text[0] != '\0' && !window && !(hybrid && strcmp(key, "mtp_num_layers") == 0))
			mb_map_say(arena, map, key, (struct mb_pos){ 0 }, text);
	}
	if (hybrid) {
		mb_map_say(arena, map, "hybrid_layer_pattern", (struct mb_pos){ 0 }, hybrid_pattern(arena, m));
		return map;
	}
	if (m->num_moe_experts > 0)
		put_pattern(arena, map, m, EXPERTS, "moe_layer_freq", false, true);
	if (m->window_size > 0) {
		mb_map_say(arena, map, "window_size", (struct mb_pos){ 0 }, mb_arena_printf(arena, "%d", m->window_size));
		put_pattern(arena, map, m, WINDOWED, "window_attn_skip_freq", false, true);
	}
	put_pattern(arena, map, m, LINEAR, "linear_attention_freq", true, false);
	if (m->position_embedding_type != MB_POS_NONE)
		put_pattern(arena, map, m, NO_ROPE, "no_rope_freq", true, false);
	return map;
}

/* ---- in overrides and flags ---- */

static const char *window_text(struct mb_exporter *x, const char *text)
{
	int tokens = 0;

	return sscanf(text, "%d", &tokens) == 1 ? mb_arena_printf(x->arena, "[%d,0]", tokens - 1) : text;
}

void mb_export_model_overrides(struct mb_exporter *x)
{
	for (const struct mb_node *n = x->model != NULL ? x->model->child : NULL; n != NULL; n = n->next) {
		bool window = strcmp(n->key->text, "window_size") == 0;

		mb_export_line(x, mb_arena_printf(x->arena, "model.%s", n->key->text), window ? window_text(x, n->text) : n->text, false);
	}
}

static bool is(const struct mb_node *map, const char *key, const char *text)
{
	const struct mb_node *n = mb_node_get(map, key);

	return n != NULL && strcmp(n->text, text) == 0;
}

/* Keys whose flag is not their name with dashes. NULL: written elsewhere, or not needed. */
static const struct { const char *key, *flag; } renamed[] = {
	{ "num_moe_experts", "--num-experts" },
	{ "name", NULL }, { "activation", NULL }, { "gated_linear_unit", NULL }, { "add_bias_linear", NULL },
	{ "share_embeddings_and_output_weights", NULL }, { "layernorm_bias", NULL }, { "num_query_groups", NULL },
	{ "window_size", NULL }, { "mtp_num_layers", NULL }, { "kv_channels", "--kv-channels" },
};

static const char *flag_of(struct mb_exporter *x, const char *key)
{
	char *flag;

	for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++) {
		if (strcmp(renamed[i].key, key) == 0)
			return renamed[i].flag;
	}
	flag = mb_arena_printf(x->arena, "--%s", key);
	for (char *c = flag; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
	return flag;
}

static void activation_flags(struct mb_exporter *x, struct mb_text *cannot)
{
	const struct mb_model *m = &x->q->c.model;
	const char *flag = NULL;
	bool said = true;

	if (m->gated_linear_unit)
		flag = m->activation == MB_ACT_SILU ? "--swiglu" : m->activation == MB_ACT_QUICK_GELU ? "--quick-geglu" :
			m->activation == MB_ACT_GELU ? "--geglu" : NULL;
	else if (m->activation == MB_ACT_SQUARED_RELU)
		flag = "--squared-relu";
	else
		said = m->activation == MB_ACT_GELU;
	if (flag != NULL)
		mb_export_line(x, flag, NULL, false);
	else if (!said || m->gated_linear_unit)
		mb_text_add(cannot, " activation");
}

static void attention_flags(struct mb_exporter *x)
{
	const struct mb_model *m = &x->q->c.model;

	if (!m->multi_latent_attention && m->num_query_groups > 0 && m->num_query_groups != m->num_attention_heads) {
		mb_export_line(x, "--group-query-attention", NULL, false);
		mb_export_line(x, "--num-query-groups", mb_arena_printf(x->arena, "%d", m->num_query_groups), false);
	}
	if (m->window_size > 0)
		mb_export_line(x, "--window-size", mb_arena_printf(x->arena, "%d,0", m->window_size - 1), false);
	if (!m->add_bias_linear)
		mb_export_line(x, "--disable-bias-linear", NULL, false);
	if (!m->share_embeddings_and_output_weights)
		mb_export_line(x, "--untie-embeddings-and-output-weights", NULL, false);
	if (m->mtp_num_layers > 0 && !x->keys[MB_K_mtp])
		mb_export_line(x, "--mtp-num-layers", mb_arena_printf(x->arena, "%d", m->mtp_num_layers), false);
	if (m->layernorm_bias == (m->normalization == MB_LAYERNORM) && m->position_embedding_type == MB_POS_LEARNED)
		mb_export_line(x, "--position-embedding-type", "learned_absolute", false);
}

void mb_export_model_flags(struct mb_exporter *x, struct mb_text *cannot)
{
	static const char *const no_flag[] = { "post_norms", "qk_layernorm_full_dim", "sliding_attention_heads", "sliding_query_groups",
		"sliding_kv_channels", "moe_router_bias_linear" };
	bool flag;

	for (const struct mb_node *n = x->whole->child; n != NULL; n = n->next) {
		const char *name = flag_of(x, n->key->text);
		bool skip = name == NULL || is(x->whole, n->key->text, "false");

		for (size_t i = 0; i < sizeof no_flag / sizeof no_flag[0]; i++) {
			if (strcmp(no_flag[i], n->key->text) == 0) {
				mb_text_printf(cannot, " %s", n->key->text);
				skip = true;
			}
		}
		if (skip)
			continue;
		mb_name_find(name, &flag);
		mb_export_line(x, name, flag ? NULL : n->text, false);
	}
	if (x->q->c.model.layernorm_bias != (x->q->c.model.normalization == MB_LAYERNORM))
		mb_text_add(cannot, " layernorm_bias");
	activation_flags(x, cannot);
	attention_flags(x);
}
