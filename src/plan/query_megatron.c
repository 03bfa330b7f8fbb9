#include "plan/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A model given by Megatron-LM's flags, turned into the mapping that a model file would hold, so that one reader checks
 * both. [Megatron-LM megatron/training/arguments.py]
 */
enum use { COPY, FLAG, TEXT_ONLY, REFUSED };

static const struct row {
	const char *flag;
	enum use use;                   /* COPY and FLAG: `key` of the model gets the value, or true */
	const char *key;                /* of REFUSED: what is not modelled */
} rows[] = {
	{ "num_layers", COPY, "num_layers" },
	{ "hidden_size", COPY, "hidden_size" },
	{ "ffn_hidden_size", COPY, "ffn_hidden_size" },
	{ "num_attention_heads", COPY, "num_attention_heads" },
	{ "kv_channels", COPY, "kv_channels" },
	{ "max_position_embeddings", COPY, "max_position_embeddings" },
	{ "make_vocab_size_divisible_by", COPY, "make_vocab_size_divisible_by" },
	{ "normalization", COPY, "normalization" },
	{ "rotary_percent", COPY, "rotary_percent" },
	{ "softmax_type", COPY, "softmax_type" },
	{ "window_size", COPY, "window_size" },
	{ "window_attn_skip_freq", COPY, "window_attn_skip_freq" },
	{ "no_rope_freq", COPY, "no_rope_freq" },
	{ "q_lora_rank", COPY, "q_lora_rank" },
	{ "num_experts", COPY, "num_moe_experts" },
	{ "moe_router_topk", COPY, "moe_router_topk" },
	{ "moe_ffn_hidden_size", COPY, "moe_ffn_hidden_size" },
	{ "moe_shared_expert_intermediate_size", COPY, "moe_shared_expert_intermediate_size" },
	{ "moe_latent_size", COPY, "moe_latent_size" },
	{ "moe_router_num_groups", COPY, "moe_router_num_groups" },
	{ "moe_router_group_topk", COPY, "moe_router_group_topk" },
	{ "moe_router_score_function", COPY, "moe_router_score_function" },
	{ "moe_layer_freq", COPY, "moe_layer_freq" },
	{ "mamba_num_heads", COPY, "mamba_num_heads" },
	{ "mamba_head_dim", COPY, "mamba_head_dim" },
	{ "mamba_state_dim", COPY, "mamba_state_dim" },
	{ "mamba_num_groups", COPY, "mamba_num_groups" },
	{ "hybrid_layer_pattern", COPY, "hybrid_layer_pattern" },
	{ "linear_attention_freq", COPY, "linear_attention_freq" },
	{ "linear_num_key_heads", COPY, "linear_num_key_heads" },
	{ "linear_num_value_heads", COPY, "linear_num_value_heads" },
	{ "linear_key_head_dim", COPY, "linear_key_head_dim" },
	{ "linear_value_head_dim", COPY, "linear_value_head_dim" },
	{ "linear_conv_kernel_dim", COPY, "linear_conv_kernel_dim" },
	{ "experimental_attention_variant", COPY, "experimental_attention_variant" },
	{ "add_qkv_bias", FLAG, "add_qkv_bias" },
	{ "qk_layernorm", FLAG, "qk_layernorm" },
	{ "attention_output_gate", FLAG, "attention_output_gate" },
	{ "multi_latent_attention", FLAG, "multi_latent_attention" },
	{ "moe_router_enable_expert_bias", FLAG, "moe_router_enable_expert_bias" },
	{ "moe_shared_expert_gate", FLAG, "moe_shared_expert_gate" },
	{ "mtp_use_repeated_layer", FLAG, "mtp_use_repeated_layer" },
	/* Read below, because they mean something only together. */
	{ "group_query_attention", FLAG, NULL },
	{ "num_query_groups", TEXT_ONLY, NULL },
	{ "kv_lora_rank", TEXT_ONLY, NULL },
	{ "qk_head_dim", TEXT_ONLY, NULL },
	{ "qk_pos_emb_head_dim", TEXT_ONLY, NULL },
	{ "v_head_dim", TEXT_ONLY, NULL },
	{ "swiglu", FLAG, NULL },
	{ "geglu", FLAG, NULL },
	{ "quick_geglu", FLAG, NULL },
	{ "squared_relu", FLAG, NULL },
	{ "disable_bias_linear", FLAG, NULL },
	{ "untie_embeddings_and_output_weights", FLAG, NULL },
	{ "position_embedding_type", TEXT_ONLY, NULL },
	{ "use_rotary_position_embeddings", FLAG, NULL },
	{ "no_position_embedding", FLAG, NULL },
	{ "vocab_size", TEXT_ONLY, NULL },
	{ "padded_vocab_size", TEXT_ONLY, NULL },
	{ "tokenizer_type", TEXT_ONLY, NULL },
	{ "num_layers_per_virtual_pipeline_stage", TEXT_ONLY, NULL },
	{ "no_bias_gelu_fusion", FLAG, NULL },
	{ "no_bias_swiglu_fusion", FLAG, NULL },
	{ "spec", TEXT_ONLY, NULL },
	{ "encoder_num_layers", REFUSED, "an encoder-decoder model (T5)" },
	{ "decoder_num_layers", REFUSED, "an encoder-decoder model (T5)" },
	{ "encoder_seq_length", REFUSED, "an encoder-decoder model (T5)" },
	{ "decoder_seq_length", REFUSED, "an encoder-decoder model (T5)" },
	{ "vocab_extra_ids", REFUSED, "an encoder-decoder model (T5)" },
	{ "bert_load", REFUSED, "BERT" },
	{ "bert_no_binary_head", REFUSED, "BERT" },
	{ "bert_binary_head", REFUSED, "BERT" },
	{ "img_h", REFUSED, "a vision model" },
	{ "img_w", REFUSED, "a vision model" },
	{ "patch_dim", REFUSED, "a vision model" },
	{ "num_channels", REFUSED, "a vision model" },
	{ "disable_vision_class_token", REFUSED, "a vision model" },
	{ "perform_rl_step", REFUSED, "reinforcement learning (--perform-rl-step)" },
	{ "heterogeneous_layers_config_path", REFUSED, "a model of heterogeneous layers" },
	{ "heterogeneous_layers_config_encoded_json", REFUSED, "a model of heterogeneous layers" },
	{ "hybrid_attention_ratio", REFUSED, "a hybrid model without hybrid_layer_pattern" },
	{ "hybrid_mlp_ratio", REFUSED, "a hybrid model without hybrid_layer_pattern" },
	{ "use_torch_fsdp2", REFUSED, "PyTorch's FSDP2" },
};

enum { ROWS = sizeof rows / sizeof rows[0] };

struct mb_megatron_flags {
	const struct mb_setting *said[ROWS];
	const char *refused;
};

static int find(const char *name)
{
	for (int i = 0; i < ROWS; i++) {
		if (mb_query_same_name(name, rows[i].flag))
			return i;
	}
	return mb_query_same_name(name, "hybrid_override_pattern") ? find("hybrid_layer_pattern") : -1;
}

const char *mb_query_megatron_name(int index)
{
	return index < ROWS ? rows[index].flag : NULL;
}

bool mb_query_is_megatron_flag(const char *name, bool *boolean)
{
	int i = find(name);

	*boolean = i >= 0 && (rows[i].use == FLAG || strcmp(rows[i].flag, "perform_rl_step") == 0 ||
	                      strcmp(rows[i].flag, "disable_vision_class_token") == 0);
	return i >= 0;
}

/* One message for each thing that is not modelled, however many flags speak of it. */
static void refuse(struct mb_reader *r, const struct mb_setting *s, const char *what)
{
	const char *last = r->flags->refused;

	r->flags->refused = what;
	if (last != NULL && strcmp(last, what) == 0)
		return;
	mb_report(r->diags, MB_ERROR, s->pos, s->name, "%s: %s is not modelled", s->name, what);
}

bool mb_query_megatron_flag(struct mb_reader *r, const struct mb_setting *s)
{
	int i = find(s->name);
	bool b = true;

	if (i < 0)
		return false;
	if (r->flags == NULL)
		r->flags = mb_arena_alloc(r->arena, sizeof *r->flags);
	bool off = mb_node_is_null(s->value) || (mb_node_bool(s->value, &b) && !b);
	if (rows[i].use == REFUSED && !off)
		refuse(r, s, rows[i].key);
	else if (rows[i].use == FLAG)
		r->flags->said[i] = mb_query_truth(r, s) ? s : NULL;
	else
		r->flags->said[i] = mb_node_is_null(s->value) ? NULL : s;
	return true;
}

bool mb_query_megatron_refused(const struct mb_reader *r)
{
	return r->flags != NULL && r->flags->refused != NULL;
}

static const struct mb_setting *said(const struct mb_reader *r, const char *flag)
{
	return r->flags->said[find(flag)];
}

static const char *text_of(const struct mb_reader *r, const char *flag)
{
	const struct mb_setting *s = said(r, flag);

	return s != NULL && s->value->type == MB_NODE_SCALAR ? s->value->text : NULL;
}

/* ---- the mapping ---- */

struct builder {
	struct mb_reader *r;
	struct mb_node *map;
	const struct mb_node **link;
};

static void put_node(struct builder *b, const char *key, struct mb_pos pos, const struct mb_node *value)
{
	struct mb_node *copy = mb_arena_alloc(b->r->arena, sizeof *copy);

	*copy = *value;
	copy->quoted = false;           /* numbers of test configurations often stand in quotes */
	copy->key = mb_node_scalar(b->r->arena, pos, key);
	copy->next = NULL;
	*b->link = copy;
	b->link = &copy->next;
	b->map->count++;
}

static void put(struct builder *b, const char *key, const char *text)
{
	put_node(b, key, b->map->pos, mb_node_scalar(b->r->arena, b->map->pos, text));
}

static void put_said(struct builder *b, const char *flag, const char *otherwise)
{
	const struct mb_setting *s = said(b->r, flag);

	if (s != NULL)
		put_node(b, flag, s->pos, s->value);
	else if (otherwise != NULL)
		put(b, flag, otherwise);
}

static void put_attention(struct builder *b)
{
	struct mb_reader *r = b->r;

	if (said(r, "multi_latent_attention") != NULL) {
		put_said(b, "kv_lora_rank", "32");
		put_said(b, "qk_head_dim", "128");
		put_said(b, "qk_pos_emb_head_dim", "64");
		put_said(b, "v_head_dim", "128");
	} else if (said(r, "group_query_attention") != NULL) {
		put_said(b, "num_query_groups", "1");
	}
	if (said(r, "use_rotary_position_embeddings") != NULL)
		put(b, "position_embedding_type", "rope");
	else if (said(r, "no_position_embedding") != NULL)
		put(b, "position_embedding_type", "none");
	else
		put_said(b, "position_embedding_type", NULL);
	/* Learned positions need a table; the sequence is the least it can hold. */
	if (said(r, "max_position_embeddings") == NULL && r->q->set[MB_K_seq])
		put(b, "max_position_embeddings", mb_arena_printf(r->arena, "%d", r->q->c.run.seq_length));
}

/* SwiGLU keeps the parameter count of 4 h: 2/3 of it, in multiples of 64. */
static void put_mlp(struct builder *b)
{
	struct mb_reader *r = b->r;
	const char *hidden = text_of(r, "hidden_size");
	bool swiglu = said(r, "swiglu") != NULL;
	bool gated = swiglu || said(r, "geglu") != NULL || said(r, "quick_geglu") != NULL;
	long h = hidden != NULL ? strtol(hidden, NULL, 10) : 0;

	put(b, "activation", swiglu ? "silu" : said(r, "squared_relu") != NULL ? "squared_relu" :
	    said(r, "quick_geglu") != NULL ? "quick_gelu" : "gelu");
	if (gated)
		put(b, "gated_linear_unit", "true");
	if (swiglu && said(r, "ffn_hidden_size") == NULL && h >= 24 && h < 1 << 20)
		put(b, "ffn_hidden_size", mb_arena_printf(r->arena, "%ld", 4 * h * 2 / 3 / 64 * 64));
	if (said(r, "disable_bias_linear") != NULL)
		put(b, "add_bias_linear", "false");
	if (said(r, "untie_embeddings_and_output_weights") != NULL)
		put(b, "share_embeddings_and_output_weights", "false");
	r->q->c.run.bias_activation_fusion = said(r, swiglu ? "no_bias_swiglu_fusion" : "no_bias_gelu_fusion") == NULL;
}

/* Megatron-LM takes the vocabulary from the tokenizer; the null tokenizer adds an end-of-document token. */
static void put_vocabulary(struct builder *b)
{
	struct mb_reader *r = b->r;
	const struct mb_setting *padded = said(r, "padded_vocab_size");
	const struct mb_setting *size = padded != NULL ? padded : said(r, "vocab_size");
	const struct mb_setting *type = said(r, "tokenizer_type");
	const char *tokenizer = text_of(r, "tokenizer_type");
	long long n;

	if (size != NULL && tokenizer != NULL && strcmp(tokenizer, "NullTokenizer") == 0 && padded == NULL &&
	    mb_node_int(size->value, &n) && n > 0 && n < 100000000) {
		put(b, "vocab_size", mb_arena_printf(r->arena, "%lld", n + 1));
	} else if (size != NULL) {
		put_node(b, "vocab_size", size->pos, size->value);
	} else {
		put(b, "vocab_size", "50257");
		if (tokenizer != NULL && strcmp(tokenizer, "GPT2BPETokenizer") != 0)
			mb_report(r->diags, MB_WARNING, type->pos, "tokenizer_type",
			          "tokenizer_type: the vocabulary of %.60s is not known here, 50257 assumed; say --vocab-size", tokenizer);
	}
}

static void put_mtp(struct builder *b)
{
	const struct mb_reader *r = b->r;

	if (r->said[MB_K_mtp] > 0 && r->q->c.run.mtp_num_layers > 0)
		put(b, "mtp_num_layers", mb_arena_printf(r->arena, "%d", r->q->c.run.mtp_num_layers));
}

/* ---- what the flags say about the pipeline ---- */

static bool decided(const struct mb_query *q, enum mb_key_id key)
{
	return !q->open[key] && q->alternatives[key].count == 0;
}

static void virtual_stages(struct mb_reader *r)
{
	const struct mb_setting *s = said(r, "num_layers_per_virtual_pipeline_stage");
	struct mb_plan *plan = &r->q->c.run.plan;
	int layers = r->q->c.model.num_layers;
	long long n = 0;

	if (s == NULL || !decided(r->q, MB_K_pp) || plan->pp == 1)
		return;
	struct mb_node plain = *s->value;
	plain.quoted = false;
	if (!mb_node_int(&plain, &n) || n < 1 || n > layers || layers % (plan->pp * n) != 0) {
		mb_report(r->diags, MB_ERROR, s->value->pos, s->name, "%s: %d layers on %d stages cannot be cut into parts of '%.40s'",
		          s->name, layers, plan->pp, s->value->type == MB_NODE_SCALAR ? s->value->text : "[...]");
		return;
	}
	plan->vp = (int)(layers / plan->pp / n);
	r->q->set[MB_K_vp] = true;
	r->q->pos[MB_K_vp] = s->pos;
}

/* '|' in the pattern marks stages: the same thing as a layout. */
static void pattern_stages(struct mb_reader *r)
{
	const struct mb_setting *s = said(r, "hybrid_layer_pattern");
	struct mb_plan *plan = &r->q->c.run.plan;
	const char *text = text_of(r, "hybrid_layer_pattern");
	union mb_value v;
	bool null;

	if (text == NULL || strchr(text, '|') == NULL || !decided(r->q, MB_K_pp))
		return;
	char *layout = mb_arena_alloc(r->arena, strlen(text) + MB_MAX_MTP_LAYERS + 3);
	size_t n = 0;
	int stages = 1;

	layout[n++] = 'E';
	for (; *text != '\0' && *text != '/'; text++) {
		layout[n++] = *text == '|' ? '|' : 't';
		stages += *text == '|';
	}
	for (int i = 0; i < r->q->c.model.mtp_num_layers; i++)
		layout[n++] = 'm';
	layout[n] = 'L';
	if (!mb_query_value(r, MB_K_layout, mb_node_scalar(r->arena, s->value->pos, layout), &v, &null))
		return;
	if (stages % plan->pp != 0) {
		mb_report(r->diags, MB_ERROR, s->value->pos, s->name, "%s: %d stages do not spread over %d pipeline ranks", s->name,
		          stages, plan->pp);
		return;
	}
	plan->layout = (int)v.i;
	plan->vp = stages / plan->pp;
	r->q->set[MB_K_layout] = r->q->set[MB_K_vp] = true;
	r->q->pos[MB_K_layout] = r->q->pos[MB_K_vp] = s->pos;
}

void mb_query_megatron_model(struct mb_reader *r)
{
	struct mb_node *map = mb_arena_alloc(r->arena, sizeof *map);
	struct builder b = { r, map, &map->child };

	if (r->flags == NULL)
		r->flags = mb_arena_alloc(r->arena, sizeof *r->flags);
	map->type = MB_NODE_MAP;
	for (int i = ROWS - 1; i >= 0; i--) {
		if (r->flags->said[i] != NULL)
			map->pos = r->flags->said[i]->pos;
	}
	put(&b, "name", "megatron_args");
	for (int i = 0; i < ROWS; i++) {
		const struct mb_setting *s = r->flags->said[i];

		if (s != NULL && rows[i].key != NULL)
			put_node(&b, rows[i].key, s->pos, s->value);
	}
	put_attention(&b);
	put_mlp(&b);
	put_vocabulary(&b);
	put_mtp(&b);
	if (!mb_model_read(map, r->arena, &r->q->c.model, r->diags))
		return;
	r->q->c.model.source = "Megatron-LM flags";
	virtual_stages(r);
	pattern_stages(r);
}
