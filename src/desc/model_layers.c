/* The sequence of layers: strides, lists and patterns to kinds[] and layers[]. */
#include "desc/model.h"

#include <stdio.h>
#include <string.h>

int mb_model_kind(struct mb_model *m, struct mb_layer_kind kind)
{
	for (int i = 0; i < m->kind_count; i++) {
		const struct mb_layer_kind *k = &m->kinds[i];

		if (k->mixer == kind.mixer && k->ffn == kind.ffn && k->windowed == kind.windowed && k->no_rope == kind.no_rope)
			return i;
	}
	if (m->kind_count == MB_MAX_LAYER_KINDS)
		return -1;
	m->kinds[m->kind_count] = kind;
	return m->kind_count++;
}

static enum mb_mixer attention_of(const struct mb_model *m)
{
	return m->multi_latent_attention ? MB_MIXER_MLA : MB_MIXER_ATTENTION;
}

/* [Megatron-LM, core/models/hybrid/hybrid_layer_allocation.py, Symbols] */
static bool kind_of_symbol(const struct mb_model *m, char symbol, struct mb_layer_kind *ret)
{
	*ret = (struct mb_layer_kind){ 0 };
	switch (symbol) {
	case 'M':
		ret->mixer = MB_MIXER_MAMBA;
		return true;
	case 'G':
		ret->mixer = MB_MIXER_GDN;
		return true;
	case '*':
		ret->mixer = attention_of(m);
		ret->no_rope = m->position_embedding_type == MB_POS_NONE;
		return true;
	case '-':
		ret->ffn = MB_FFN_DENSE;
		return true;
	case 'E':
		ret->ffn = MB_FFN_MOE;
		return true;
	}
	return false;
}

static bool too_many_kinds(struct mb_pos at, struct mb_diags *diags)
{
	return mb_fail(diags, at, "more than %d kinds of layers", MB_MAX_LAYER_KINDS);
}

/* One run of symbols into `to`; '|' only marks pipeline stages, which the run decides here. */
static bool read_symbols(struct mb_model *m, const char *s, size_t length, uint8_t *to, int max, int *count,
                         struct mb_pos at, struct mb_diags *diags)
{
	*count = 0;
	for (size_t i = 0; i < length; i++) {
		struct mb_layer_kind kind;
		int index;

		if (s[i] == '|')
			continue;
		if (!kind_of_symbol(m, s[i], &kind))
			return mb_fail(diags, at, "hybrid_layer_pattern: layer '%c' is not modelled; expected M mamba, * attention, "
			               "- MLP, E experts, G gated delta net, / before each MTP block", s[i]);
		if (kind.ffn == MB_FFN_MOE && !m->num_moe_experts)
			return mb_fail(diags, at, "hybrid_layer_pattern has E layers but num_moe_experts is not given");
		if (*count == max)
			return mb_fail(diags, at, "hybrid_layer_pattern: more than %d layers", max);
		index = mb_model_kind(m, kind);
		if (index < 0)
			return too_many_kinds(at, diags);
		to[(*count)++] = (uint8_t)index;
	}
	return true;
}

/* The decoder, then behind each slash the block of one MTP depth. */
static bool build_hybrid(struct mb_model *m, const char *pattern, struct mb_pos at, struct mb_diags *diags)
{
	const char *slash = strchr(pattern, '/');
	size_t length = slash ? (size_t)(slash - pattern) : strlen(pattern);
	int count, depths = 0;

	if (!read_symbols(m, pattern, length, m->layers, MB_MAX_LAYERS, &count, at, diags))
		return false;
	if (count == 0)
		return mb_fail(diags, at, "hybrid_layer_pattern has no layers");
	if (m->num_layers && m->num_layers != count)
		return mb_fail(diags, at, "hybrid_layer_pattern has %d layers, num_layers says %d", count, m->num_layers);
	m->num_layers = count;

	for (const char *s = slash; s; depths++) {
		const char *next = strchr(s + 1, '/');
		size_t n = next ? (size_t)(next - s - 1) : strlen(s + 1);
		uint8_t block[MB_MAX_MTP_LAYERS];
		int layers;

		if (!read_symbols(m, s + 1, n, block, MB_MAX_MTP_LAYERS, &layers, at, diags))
			return false;
		if (layers == 0)
			return mb_fail(diags, at, "hybrid_layer_pattern has an empty MTP block");
		if (depths > 0 && (layers != m->mtp_layer_count || memcmp(block, m->mtp_layers, (size_t)layers) != 0))
			return mb_fail(diags, at, "hybrid_layer_pattern: MTP blocks that differ are not modelled");
		memcpy(m->mtp_layers, block, (size_t)layers);
		m->mtp_layer_count = layers;
		s = next;
	}
	if (depths && m->mtp_num_layers && m->mtp_num_layers != depths)
		return mb_fail(diags, at, "hybrid_layer_pattern has %d MTP blocks, mtp_num_layers says %d", depths,
		               m->mtp_num_layers);
	if (m->mtp_num_layers && !depths)
		return mb_fail(diags, at, "mtp_num_layers is %d, but hybrid_layer_pattern has no MTP block", m->mtp_num_layers);
	m->mtp_num_layers = depths;
	return true;
}

bool mb_model_build_layers(struct mb_model *m, const int8_t *moe_layer_freq, const int8_t *window_pattern,
                           const int8_t *linear_pattern, const int8_t *no_rope_pattern, const char *hybrid_layer_pattern,
                           struct mb_pos at, struct mb_diags *diags)
{
	m->kind_count = 0;
	m->mtp_layer_count = 0;
	if (hybrid_layer_pattern)
		return build_hybrid(m, hybrid_layer_pattern, at, diags);
	if (m->num_layers < 1 || m->num_layers > MB_MAX_LAYERS)
		return mb_fail(diags, at, "num_layers is %d; expected 1 to %d", m->num_layers, MB_MAX_LAYERS);

	for (int i = 0; i < m->num_layers; i++) {
		bool linear = linear_pattern && linear_pattern[i];
		bool moe = m->num_moe_experts && (!moe_layer_freq || moe_layer_freq[i]);
		struct mb_layer_kind kind = {
			.mixer = linear ? MB_MIXER_GDN : attention_of(m),
			.ffn = moe ? MB_FFN_MOE : MB_FFN_DENSE,
			.windowed = !linear && window_pattern && window_pattern[i],
			.no_rope = !linear && (m->position_embedding_type == MB_POS_NONE || (no_rope_pattern && no_rope_pattern[i])),
		};
		int index = mb_model_kind(m, kind);

		if (index < 0)
			return too_many_kinds(at, diags);
		m->layers[i] = (uint8_t)index;
	}

	/* An MTP depth repeats the last layer. [Megatron-LM, core/models/gpt/gpt_layer_specs.py, get_gpt_mtp_block_spec] */
	m->mtp_layers[0] = m->layers[m->num_layers - 1];
	m->mtp_layer_count = 1;
	return true;
}
