#include <stdio.h>
#include <string.h>

#include "desc/hf_private.h"
#include "desc/model.h"

/* Per-layer choices: a config.json writes them in a dozen ways, a model of ours as lists of 0 and 1. */

static void put_flags(struct mb_hf *h, const char *key, struct mb_pos at, const int8_t *flags)
{
	struct mb_node *list = mb_arena_alloc(h->arena, sizeof *list);
	const struct mb_node **tail = &list->child;

	list->type = MB_NODE_LIST;
	list->pos = at;
	for (int i = 0; i < h->layers; i++) {
		struct mb_node *n = mb_arena_alloc(h->arena, sizeof *n);

		*n = (struct mb_node){ .type = MB_NODE_SCALAR, .pos = at, .text = flags[i] ? "1" : "0" };
		*tail = n;
		tail = &n->next;
		list->count++;
	}
	mb_hf_put(h, key, list);
}

/* Which entries of a list of words are one of two; every word must be one of `known`. Lists may go on with MTP layers. */
static bool read_words(struct mb_hf *h, const struct mb_node *list, const char *key, const char *const *yes,
                       const char *const *no, int8_t *ret)
{
	int i = 0;

	if (list->type != MB_NODE_LIST || list->count < h->layers) {
		mb_report(h->diags, MB_ERROR, list->pos, key, "%s: expected a list of %d layers, found %d", key, h->layers,
		          list->type == MB_NODE_LIST ? list->count : 0);
		return false;
	}
	for (const struct mb_node *n = list->child; i < h->layers; n = n->next, i++) {
		const char *word = n->type == MB_NODE_SCALAR ? n->text : "[...]";
		int found = -1;

		for (int k = 0; yes[k] != NULL; k++)
			found = strcmp(word, yes[k]) == 0 ? 1 : found;
		for (int k = 0; no[k] != NULL; k++)
			found = strcmp(word, no[k]) == 0 ? 0 : found;
		if (found < 0) {
			mb_report(h->diags, MB_ERROR, n->pos, key, "%s: layer type '%.60s' is not modelled here", key, word);
			return false;
		}
		ret[i] = (int8_t)found;
	}
	return true;
}

static bool read_numbers(struct mb_hf *h, const struct mb_node *list, const char *key, int8_t *ret)
{
	int i = 0;

	if (list->count < h->layers) {
		mb_report(h->diags, MB_ERROR, list->pos, key, "%s: %d entries for %d layers", key, list->count, h->layers);
		return false;
	}
	for (const struct mb_node *n = list->child; i < h->layers; n = n->next, i++) {
		long long flag;

		if (!mb_node_int(n, &flag) || flag < 0 || flag > 1) {
			mb_report(h->diags, MB_ERROR, n->pos, key, "%s: entry %d is neither 0 nor 1", key, i + 1);
			return false;
		}
		ret[i] = (int8_t)flag;
	}
	return true;
}

/* ---- experts ---- */

static void clear_listed(const struct mb_node *list, int layers, int8_t *flags)
{
	for (const struct mb_node *n = list != NULL && list->type == MB_NODE_LIST ? list->child : NULL; n != NULL; n = n->next) {
		long long i;

		if (mb_node_int(n, &i) && i >= 0 && i < layers)
			flags[i] = 0;
	}
}

/* Layer i has experts from `first` on where i + offset is a multiple of `stride`. */
static void stride_flags(struct mb_hf *h, long long first, long long last, long long stride, int offset, int8_t *flags)
{
	for (int i = 0; i < h->layers; i++)
		flags[i] = i >= first && i <= last && (i + offset) % stride == 0;
}

static bool positive(struct mb_hf *h, const char *key, long long *ret)
{
	if (mb_hf_int(h, key, ret) && *ret < 1) {
		mb_report(h->diags, MB_ERROR, mb_hf_get(h, key)->pos, key, "%s: %lld is no stride", key, *ret);
		*ret = 1;
		return false;
	}
	return true;
}

static void expert_layers(struct mb_hf *h)
{
	static const char *const sparse[] = { "sparse", "moe", NULL }, *const dense[] = { "dense", NULL };
	const struct mb_node *types = mb_hf_get(h, "mlp_layer_types"), *freq = mb_hf_get(h, "moe_layer_freq");
	long long first = 0, last = h->layers, stride = 1;
	int8_t flags[MB_MAX_LAYERS];
	bool all = true;

	if (types != NULL) {
		if (!read_words(h, types, "mlp_layer_types", sparse, dense, flags))
			return;
	} else if (freq != NULL && freq->type == MB_NODE_LIST) {
		if (!read_numbers(h, freq, "moe_layer_freq", flags))
			return;
	} else if (mb_hf_get(h, "interleave_moe_layer_step") != NULL) {
		positive(h, "interleave_moe_layer_step", &stride);
		stride_flags(h, 0, last, stride, 1, flags);
	} else if ((h->family->traits & MB_HF_SPARSE_STEP) != 0) {
		positive(h, "decoder_sparse_step", &stride);
		stride_flags(h, 0, last, stride, 1, flags);
		clear_listed(mb_hf_get(h, "mlp_only_layers"), h->layers, flags);
	} else {
		mb_hf_int(h, "first_k_dense_replace|moe_layer_start_index", &first);
		if (mb_hf_int(h, "moe_layer_end_index", &last) && last < 0)
			last = h->layers;
		positive(h, "moe_layer_freq|moe_layer_interval", &stride);
		stride_flags(h, first, last, stride, mb_hf_get(h, "moe_layer_interval") != NULL ? 1 : 0, flags);
	}
	for (int i = 0; i < h->layers; i++)
		all = all && flags[i];
	if (!all)
		put_flags(h, "moe_layer_freq", h->text->pos, flags);
}

/* ---- attention ---- */

static void linear_layers(struct mb_hf *h)
{
	static const char *const linear[] = { "linear_attention", NULL }, *const full[] = { "full_attention", NULL };
	const struct mb_node *types = mb_hf_get(h, "layer_types");
	int8_t flags[MB_MAX_LAYERS];
	long long interval = 4;

	if (types != NULL && read_words(h, types, "layer_types", linear, full, flags)) {
		put_flags(h, "linear_attention_freq", types->pos, flags);
	} else if (types == NULL) {
		positive(h, "full_attention_interval", &interval);
		mb_hf_say(h, "linear_attention_freq", h->text->pos, "%lld", interval);
	}
}

static bool window_is_off(struct mb_hf *h)
{
	const struct mb_node *use = mb_hf_get(h, "use_sliding_window");
	long long window = 0, positions = 0;
	bool on = true;

	if (use != NULL && mb_node_bool(use, &on) && !on)
		return true;
	if (!mb_hf_int(h, "sliding_window", &window))
		return true;
	return mb_hf_int(h, "max_position_embeddings", &positions) && window >= positions;
}

/* The file counts the tokens a layer sees, itself included; so do we. */
static void windowed_layers(struct mb_hf *h)
{
	static const char *const sliding[] = { "sliding_attention", NULL }, *const full[] = { "full_attention", NULL };
	const struct mb_node *types = mb_hf_get(h, "layer_types");
	int8_t flags[MB_MAX_LAYERS];

	if (window_is_off(h))
		return;
	mb_hf_put(h, "window_size", mb_hf_get(h, "sliding_window"));
	if (types != NULL && read_words(h, types, "layer_types", sliding, full, flags))
		put_flags(h, "window_pattern", types->pos, flags);
	else if (types == NULL && strcmp(h->family->type, "gemma3_text") == 0)
		mb_hf_say(h, "window_attn_skip_freq", h->text->pos, "6");
	else if (types == NULL && (strcmp(h->family->type, "gpt_oss") == 0 || strcmp(h->family->type, "gemma2") == 0))
		mb_hf_say(h, "window_attn_skip_freq", h->text->pos, "2");
}

/* no_rope_layers: 1 where there is rotary embedding; an empty list leaves it to the interval. */
static void rotary_layers(struct mb_hf *h)
{
	const struct mb_node *list = mb_hf_get(h, "no_rope_layers");
	int8_t flags[MB_MAX_LAYERS];
	long long interval;

	if (list != NULL && list->type == MB_NODE_LIST && list->count > 0) {
		if (!read_numbers(h, list, "no_rope_layers", flags))
			return;
		for (int i = 0; i < h->layers; i++)
			flags[i] = !flags[i];
		put_flags(h, "no_rope_freq", list->pos, flags);
	} else if (mb_hf_get(h, "no_rope_layer_interval") != NULL && positive(h, "no_rope_layer_interval", &interval)) {
		mb_hf_say(h, "no_rope_freq", h->text->pos, "%lld", interval);
	}
}

/* M mamba, * attention, - MLP, E experts: Megatron's letters; MTP blocks follow behind slashes. */
static bool pattern(struct mb_hf *h)
{
	const struct mb_node *main = mb_hf_get(h, "hybrid_override_pattern"), *mtp = mb_hf_get(h, "mtp_hybrid_override_pattern");
	struct { char text[2048]; } *buffer;
	long long depths = 0;
	int n;

	if (main == NULL || main->type != MB_NODE_SCALAR)
		return false;
	buffer = mb_arena_alloc(h->arena, sizeof *buffer);
	n = snprintf(buffer->text, sizeof buffer->text, "%.1000s", main->text);
	if (mb_hf_int(h, "num_nextn_predict_layers", &depths) && depths > 0 && (mtp == NULL || mtp->type != MB_NODE_SCALAR))
		mb_report(h->diags, MB_ERROR, main->pos, "mtp_hybrid_override_pattern",
		          "num_nextn_predict_layers is %lld, but 'mtp_hybrid_override_pattern' is missing", depths);
	for (int i = 0; i < depths && i < MB_MAX_MTP_LAYERS && mtp != NULL && mtp->type == MB_NODE_SCALAR; i++)
		n += snprintf(buffer->text + n, sizeof buffer->text - (size_t)n, "/%.50s", mtp->text);
	mb_hf_say(h, "hybrid_layer_pattern", main->pos, "%s", buffer->text);
	return true;
}

void mb_hf_layers(struct mb_hf *h)
{
	long long experts = 0;

	if (pattern(h))
		return;
	if (mb_node_get(h->out, "num_moe_experts") != NULL &&
	    mb_node_int(mb_node_get(h->out, "num_moe_experts"), &experts) && experts > 0)
		expert_layers(h);
	if ((h->family->traits & MB_HF_LINEAR) != 0)
		linear_layers(h);
	if ((h->family->traits & MB_HF_WINDOW) != 0)
		windowed_layers(h);
	rotary_layers(h);
}
