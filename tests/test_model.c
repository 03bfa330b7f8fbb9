#include <criterion/criterion.h>
#include <stdio.h>

#include "desc/library.h"
#include "desc/model.h"
#include "desc/node.h"
#include "desc/pattern.h"

static struct mb_arena arena;
static struct mb_diags diags;
static struct mb_model m;

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(model, .fini = done);

static bool read_model(const char *keys)
{
	char text[2048];
	const struct mb_node *n;

	snprintf(text, sizeof text, "hidden_size: 64\nvocab_size: 1000\nposition_embedding_type: rope\n%s\n", keys);
	memset(&diags, 0, sizeof diags);
	n = mb_node_read_text(text, strlen(text), "model.yaml", &arena, &diags);
	return n && mb_model_read(n, &arena, &m, &diags);
}

static bool load(const char *name)
{
	struct mb_library library;

	memset(&diags, 0, sizeof diags);
	return mb_library_open(&library, &diags) &&
		mb_model_load(mb_node_scalar(&arena, (struct mb_pos){ "argument 1", 0, 7 }, name), &library, &arena, &m, &diags);
}

/* One letter for each layer: a attention, w windowed, l MLA, m Mamba, g delta net, - none; then d dense, e experts. */
static const char *layers(void)
{
	static char text[2 * MB_MAX_LAYERS + 1];
	char *s = text;

	for (int i = 0; i < m.num_layers; i++) {
		const struct mb_layer_kind *k = &m.kinds[m.layers[i]];

		*s++ = k->no_rope && k->mixer == MB_MIXER_ATTENTION ? 'n' : k->windowed ? 'w' : "-almg"[k->mixer];
		*s++ = "-de"[k->ffn];
	}
	*s = '\0';
	return text;
}

static const struct { const char *words, *keys, *layers; } sequences[] = {
	{ "dense",             "num_layers: 3\nnum_attention_heads: 4", "adadad" },
	{ "all experts",       "num_layers: 2\nnum_attention_heads: 4\nnum_moe_experts: 8", "aeae" },
	{ "expert stride",     "num_layers: 5\nnum_attention_heads: 4\nnum_moe_experts: 8\nmoe_layer_freq: 2", "aeadaeadae" },
	{ "expert text",       "num_layers: 4\nnum_attention_heads: 4\nnum_moe_experts: 8\nmoe_layer_freq: '[0]*3+[1]*1'", "adadadae" },
	{ "expert list",       "num_layers: 3\nnum_attention_heads: 4\nnum_moe_experts: 8\nmoe_layer_freq: [0, 1, 0]", "adaead" },
	{ "window everywhere", "num_layers: 2\nnum_attention_heads: 4\nwindow_size: 16", "wdwd" },
	{ "window stride",     "num_layers: 4\nnum_attention_heads: 4\nwindow_size: [15, 0]\nwindow_attn_skip_freq: 2", "wdadwdad" },
	{ "window pattern",    "num_layers: 3\nnum_attention_heads: 4\nwindow_size: 16\nwindow_pattern: [1, 1, 0]", "wdwdad" },
	{ "linear stride",     "num_layers: 4\nnum_attention_heads: 4\nlinear_attention_freq: 4", "gdgdgdad" },
	{ "linear list",       "num_layers: 2\nnum_attention_heads: 4\nlinear_attention_freq: [0, 1]", "adgd" },
	{ "no rope stride",    "num_layers: 4\nnum_attention_heads: 4\nno_rope_freq: 4", "adadadnd" },
	{ "latent attention",  "num_layers: 1\nnum_attention_heads: 4\nmulti_latent_attention: true\nkv_lora_rank: 8\n"
	                       "qk_head_dim: 8\nv_head_dim: 8", "ld" },
	{ "hybrid",            "num_attention_heads: 4\nnum_moe_experts: 8\nhybrid_layer_pattern: ME*|-\nmamba_head_dim: 16",
	                       "m--ea--d" },
};

Test(model, strides_lists_and_patterns_become_layers)
{
	for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
		bool ok = read_model(sequences[i].keys);

		cr_assert(ok, "%s: %s", sequences[i].words, diags.item[0].text);
		cr_expect_str_eq(layers(), sequences[i].layers, "%s: %s", sequences[i].words, layers());
		cr_expect_eq(diags.count, 0);
	}
}

Test(model, window_size_counts_the_token_itself)
{
	cr_assert(read_model("num_layers: 1\nnum_attention_heads: 4\nwindow_size: [127, 0]"));
	cr_expect_eq(m.window_size, 128);
	cr_assert(read_model("num_layers: 1\nnum_attention_heads: 4\nwindow_size: 128"));
	cr_expect_eq(m.window_size, 128);
}

static const struct { const char *words, *keys, *says; int line; } bad[] = {
	{ "misspelt key",      "num_layer: 1", "unknown key 'num_layer'", 4 },
	{ "no layers",         "num_attention_heads: 4", "'num_layers' is missing", 1 },
	{ "no heads",          "num_layers: 1", "'num_attention_heads' is missing", 1 },
	{ "zero",              "num_layers: 0", "num_layers: 0 is out of range", 4 },
	{ "a word",            "num_layers: many", "num_layers: 'many' is not a whole number", 4 },
	{ "a list",            "num_layers: [1]", "num_layers is a list", 4 },
	{ "quoted number",     "num_layers: '4'", "num_layers: '4' is not a whole number", 4 },
	{ "unknown name",      "normalization: RMSnorm", "normalization: 'RMSnorm' is not known", 4 },
	{ "short list",        "num_layers: 3\nnum_attention_heads: 4\nnum_moe_experts: 8\nmoe_layer_freq: [0, 1]",
	                       "moe_layer_freq has 2 entries for 3 layers", 7 },
	{ "bad expression",    "num_layers: 3\nnum_attention_heads: 4\nnum_moe_experts: 8\nmoe_layer_freq: '[0]*x'",
	                       "moe_layer_freq: '[0]*x' is not understood; expected flags such as '[0]*3+[1]*58'", 7 },
	{ "heads by groups",   "num_layers: 1\nnum_attention_heads: 4\nnum_query_groups: 3",
	                       "num_attention_heads 4 is no multiple of num_query_groups 3", 1 },
	{ "too few experts",   "num_layers: 1\nnum_attention_heads: 4\nnum_moe_experts: 2\nmoe_router_topk: 4",
	                       "moe_router_topk 4 is more than num_moe_experts 2", 1 },
	{ "sparse attention",  "dsa_indexer_topk: 2048", "dsa_indexer_topk: sparse attention with an indexer: not modelled", 4 },
	{ "delta attention",   "kda_num_heads: 32", "kda_num_heads: Kimi delta attention: not modelled", 4 },
	{ "variant",           "num_layers: 1\nexperimental_attention_variant: dsa",
	                       "experimental_attention_variant: sparse attention with an indexer: not modelled", 5 },
	{ "hybrid letter",     "hybrid_layer_pattern: MXM", NULL, 1 },
	{ "hybrid length",     "num_layers: 4\nnum_attention_heads: 4\nhybrid_layer_pattern: '**-'",
	                       "hybrid_layer_pattern has 3 layers, num_layers says 4", 1 },
	{ "unequal MTP",       "num_attention_heads: 4\nhybrid_layer_pattern: '*-/*/-'",
	                       "hybrid_layer_pattern: MTP blocks that differ are not modelled", 1 },
	{ "learned positions", "position_embedding_type: rope", NULL, 4 },
};

Test(model, mistakes_are_named_at_their_place)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		cr_expect(!read_model(bad[i].keys), "%s is accepted", bad[i].words);
		cr_assert_geq(diags.errors, 1, "%s: no message", bad[i].words);
		cr_expect_eq(diags.item[0].pos.line, bad[i].line, "%s: line %d", bad[i].words, diags.item[0].pos.line);
		if (bad[i].says)
			cr_expect_str_eq(diags.item[0].text, bad[i].says, "%s: %s", bad[i].words, diags.item[0].text);
	}
}

Test(model, all_errors_of_a_file_come_at_once_with_the_nearest_key)
{
	cr_expect(!read_model("num_layer: 1\nnum_atention_heads: 4\nnormalization: 3"));
	cr_expect_eq(diags.errors, 3);
	cr_expect_str_eq(diags.item[0].nearest, "num_layers");
	cr_expect_str_eq(diags.item[1].nearest, "num_attention_heads");
	cr_expect_str_eq(diags.item[2].expected, "RMSNorm, LayerNorm");
}

Test(model, switched_off_features_and_yaml_words_are_accepted)
{
	cr_assert(read_model("num_layers: 1\nnum_attention_heads: 4\nhead_wise_attn_gate: false\nkda_layers: []\n"
	                     "dsa_indexer_topk: null\ngated_linear_unit: yes"));
	cr_expect_eq(diags.errors, 0);
	cr_expect_eq(diags.warnings, 1);
	cr_expect(m.gated_linear_unit);
}

Test(model, too_many_kinds_are_refused_not_truncated)
{
	struct mb_layer_kind kind = { MB_MIXER_ATTENTION, MB_FFN_DENSE, false, false };

	memset(&m, 0, sizeof m);
	for (int i = 0; i < MB_MAX_LAYER_KINDS; i++) {
		kind.windowed = i & 1;
		kind.no_rope = i & 2;
		kind.ffn = i & 4 ? MB_FFN_MOE : MB_FFN_DENSE;
		cr_expect_eq(mb_model_kind(&m, kind), i);
	}
	cr_expect_eq(mb_model_kind(&m, kind), MB_MAX_LAYER_KINDS - 1);
	kind.mixer = MB_MIXER_MAMBA;
	cr_expect_eq(mb_model_kind(&m, kind), -1);
}

static const struct { const char *text; int count; const char *flags; } patterns[] = {
	{ "[0]*3+[1]*2",       5, "00011" },
	{ "([1]*3+[0])*2",     8, "11101110" },
	{ "[0, 1, 1]",         3, "011" },
	{ "[1]*0+[0]",         1, "0" },
	{ "[0]*600",         600, NULL },
	{ "((((((((([1])))))))))", 1, NULL },
	{ "[2]",               1, NULL },
	{ "[1]*2",             3, NULL },
	{ "[1]*2 x",           2, NULL },
	{ "[1]*99999999999",   2, NULL },
	{ "",                  0, NULL },
	{ "[",                 1, NULL },
	{ "([1]*500)*500",     5, NULL },
};

Test(model, flag_expressions)
{
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		int8_t flags[1024] = { 0 };
		bool ok = mb_pattern_text(patterns[i].text, patterns[i].count, flags, "k", (struct mb_pos){ 0 }, &diags);

		cr_expect_eq(ok, patterns[i].flags != NULL, "%s", patterns[i].text);
		for (int j = 0; ok && j < patterns[i].count; j++)
			cr_expect_eq(flags[j], patterns[i].flags[j] - '0', "%s at %d", patterns[i].text, j);
	}
}

Test(model, shipped_sequences)
{
	cr_assert(load("deepseek-v3"));
	cr_expect_str_eq(m.name, "deepseek-v3");
	cr_expect_eq(m.kinds[m.layers[2]].ffn, MB_FFN_DENSE);
	cr_expect_eq(m.kinds[m.layers[3]].ffn, MB_FFN_MOE);
	cr_expect_eq(m.kinds[m.mtp_layers[0]].ffn, MB_FFN_MOE);
	cr_expect_eq(m.mtp_layer_count, 1);

	cr_assert(load("nemotron-3.5-lightning"));
	cr_expect_eq(m.num_layers, 52);
	cr_expect_eq(m.mtp_num_layers, 2);
	cr_expect_eq(m.mtp_layer_count, 2);
	cr_expect_eq(m.kinds[m.mtp_layers[0]].mixer, MB_MIXER_ATTENTION);
	cr_expect_eq(m.kinds[m.mtp_layers[1]].ffn, MB_FFN_MOE);

	cr_assert(load("gpt-oss-120b"));
	cr_expect_eq(m.window_size, 128);
	cr_expect(m.kinds[m.layers[0]].windowed);
	cr_expect(!m.kinds[m.layers[1]].windowed);
}

Test(model, unknown_names_come_with_the_nearest)
{
	cr_expect(!load("deepseek-v3.1"));
	cr_expect_str_eq(diags.item[0].text, "unknown model 'deepseek-v3.1'");
	cr_expect_str_eq(diags.item[0].nearest, "deepseek-v3");
	cr_expect_eq(diags.item[0].pos.column, 7);
	cr_expect(!load(""));
	cr_expect(!load(".."));
	cr_expect(!load("nowhere/model.yaml"));
}
