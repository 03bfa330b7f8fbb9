/* config.json files: every model_type reads to the parameters of a model that was counted elsewhere. */
#include "import_fixture.h"

#include "cost/cost.h"
#include "desc/hf.h"

TestSuite(import_hf, .init = begin, .fini = done);

/* The total without MTP, its MTP part and the active part of the model that a name or path loads. */
static bool count(const char *what, int64_t ret[3])
{
	struct mb_case *c = mb_arena_alloc(&arena, sizeof *c);

	memset(&diags, 0, sizeof diags);
	if (!mb_model_load(mb_node_scalar(&arena, (struct mb_pos){ "test", 0, 1 }, what), &library, &arena, &c->model, &diags))
		return false;
	c->run.mtp_num_layers = MB_AUTO;
	mb_case_compile(c);
	mb_count_parameters(c, &ret[0], &ret[1], &ret[2]);
	return true;
}

/* no_mtp: the public file does not say what the shipped model has. */
static const struct { const char *type, *shipped; bool no_mtp; } types[] = {
	{ "llama", "llama3.1-8b", false }, { "mistral", "mistral-7b", false }, { "mistral3", "mistral-small-24b", false },
	{ "ministral3", "mistral-small-24b", false }, { "mixtral", "mixtral-8x22b", false }, { "qwen2", "qwen2.5-7b", false },
	{ "qwen2_5_vl", "qwen2.5-7b", false }, { "qwen3", "qwen3-8b", false }, { "qwen3_vl", "qwen3-8b", false },
	{ "qwen3_moe", "qwen3-30b-a3b", false }, { "qwen3_vl_moe", "qwen3-235b-a22b", false },
	{ "qwen3_next", "qwen3-next-80b-a3b", true }, { "qwen3_5", "qwen3.5-27b", false }, { "qwen3_5_text", "qwen3.5-9b", false },
	{ "qwen3_5_moe", "qwen3.5-35b-a3b", false }, { "qwen3_5_moe_text", "qwen3.5-397b-a17b", false },
	{ "deepseek_v2", "deepseek-v2", false }, { "deepseek_v3", "deepseek-v3", false }, { "kimi_k2", "kimi-k2", false },
	{ "kimi_k25", "kimi-k2", false }, { "glm4_moe", "glm-4.5", false }, { "glm4v_moe", "glm-4.5-air", true },
	{ "glm4_moe_lite", "glm-4.7-flash", false }, { "gpt_oss", "gpt-oss-20b", false }, { "gpt2", "gpt3-175b", false },
	{ "minimax_m2", "minimax-m2", false }, { "bailing_moe_v2", "ling-mini-2", false },
	{ "ernie4_5_moe", "ernie-4.5-300b-a47b", false }, { "gemma3_text", "gemma-3-1b", false }, { "gemma3", "gemma-3-27b", false },
	{ "olmoe", "olmoe-7b", false }, { "phi3", "phi-4", false }, { "dbrx", "dbrx", false }, { "hunyuan_v1_moe", "hunyuan-a13b", false },
	{ "nemotron", "nemotron-4-15b", false }, { "nemotron_h", "nemotron-3-super", false }, { "llava", "llama2-7b", false },
};

Test(import_hf, types_have_the_parameters_of_shipped_models)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		int64_t a[3] = { 0 }, b[3] = { 0 };
		bool read = count(path(mb_arena_printf(&arena, "hf/%s.json", types[i].type)), a);

		if (!read || diags.warnings > 0) {
			cr_expect_fail("%s: %s", types[i].type, diags.item[0].text);
			continue;
		}
		cr_assert(count(types[i].shipped, b));
		cr_expect_eq(a[0], b[0], "%s: %ld, %s has %ld", types[i].type, (long)a[0], types[i].shipped, (long)b[0]);
		cr_expect_eq(a[2], b[2], "%s: %ld active, %s has %ld", types[i].type, (long)a[2], types[i].shipped, (long)b[2]);
		cr_expect_eq(a[1], types[i].no_mtp ? 0 : b[1], "%s: MTP %ld", types[i].type, (long)a[1]);
	}
}

/*
 * Files of users. The published totals of sigmoid routers count the expert bias, which is no parameter in Megatron:
 * 58 x 256, 26 x 64, 60 x 384 and 45 x 128 less.
 */
static const struct { const char *file; int64_t total; int layers; } files[] = {
	{ "hf_deepseek_v3.json", 671026419200 - 58 * 256, 61 },
	{ "hf_deepseek_v2_lite_qlora_null.json", 15706484224, 27 },
	{ "hf_moonlight_16b_a3b.json", 15960110208 - 26 * 64, 27 },
	{ "hf_kimi_k2.json", 1026408232448 - 60 * 384, 61 },
	{ "hf_glm45_air.json", 106852251264 - 45 * 128, 46 },
	{ "hf_gemma3_4b_nested_missing_vocab.json", 3880263168, 34 },
	{ "hf_mixtral_8x7b.json", 46702792704, 32 },
	{ "hf_qwen25_0_5b_tied.json", 494032768, 24 },
	{ "hf_llama31_8b_rope_scaling.json", 8030261248, 32 },
	{ "hf_dbrx_nested_names.json", 131596523520, 40 },
	{ "hf_qwen3_vl_30b_nested.json", 30532122624, 48 },
	{ "hf_phi35_mini_longrope.json", 3821079552, 32 },
};

Test(import_hf, files_of_users_have_their_published_totals)
{
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		int64_t a[3] = { 0 };

		if (!count(path(mb_arena_printf(&arena, "cases/%s", files[i].file)), a))
			cr_expect_fail("%s: %s", files[i].file, diags.item[0].text);
		else
			cr_expect_eq(a[0], files[i].total, "%s: %ld", files[i].file, (long)a[0]);
	}
}

static struct mb_model *load(const char *name)
{
	struct mb_model *m = mb_arena_alloc(&arena, sizeof *m);

	memset(&diags, 0, sizeof diags);
	bool ok = mb_model_load(mb_node_scalar(&arena, (struct mb_pos){ "test", 0, 1 }, path(name)), &library, &arena, m, &diags);
	cr_assert(ok, "%s: %s", name, diags.item[0].text);
	return m;
}

Test(import_hf, class_defaults_stand_in_for_absent_keys)
{
	const struct mb_model *m = load("cases/hf_llava15_7b_sparse_text_config.json");

	cr_expect(m->num_layers == 32 && m->hidden_size == 4096 && m->num_attention_heads == 32);
	cr_expect(m->ffn_hidden_size == 11008 && m->vocab_size == 32064);
	cr_expect(told(MB_NOTE, 22, "vision_config: left out"));
	cr_expect(told(MB_NOTE, 10, "taken from the class llama"));

	m = load("cases/hf_gemma3_4b_nested_missing_vocab.json");
	cr_expect(m->vocab_size == 262208 && m->num_attention_heads == 8 && m->num_query_groups == 4 && m->kv_channels == 256);
	cr_expect(m->share_embeddings_and_output_weights && m->window_size == 1024);
	cr_expect(m->kinds[m->layers[0]].windowed && !m->kinds[m->layers[5]].windowed);
}

Test(import_hf, odd_numbers_are_numbers)
{
	const struct mb_model *m = load("cases/odd_json_numbers.json");

	cr_expect(m->hidden_size == 4096 && m->ffn_hidden_size == 14336 && m->vocab_size == 128256);
	cr_expect(m->num_query_groups == 32 && m->kv_channels == 128);
	cr_expect(!m->share_embeddings_and_output_weights);
}

static int layers_of(const struct mb_model *m, enum mb_mixer mixer, enum mb_ffn ffn)
{
	int n = 0;

	for (int i = 0; i < m->num_layers; i++)
		n += m->kinds[m->layers[i]].mixer == mixer && m->kinds[m->layers[i]].ffn == ffn;
	return n;
}

Test(import_hf, layers_are_of_the_right_kinds)
{
	const struct mb_model *m = load("cases/hf_qwen3_next_80b.json");

	cr_expect_eq(layers_of(m, MB_MIXER_ATTENTION, MB_FFN_MOE), 12);
	cr_expect_eq(layers_of(m, MB_MIXER_GDN, MB_FFN_MOE), 36);
	cr_expect(m->num_moe_experts == 512 && m->moe_shared_expert_intermediate_size == 512);
	cr_expect_eq(m->kinds[m->layers[3]].mixer, MB_MIXER_ATTENTION);

	m = load("cases/hf_deepseek_v3.json");
	cr_expect_eq(layers_of(m, MB_MIXER_MLA, MB_FFN_DENSE), 3);
	cr_expect_eq(m->mtp_num_layers, 1);
	cr_expect_eq(m->moe_shared_expert_intermediate_size, 2048);

	m = load("cases/hf_deepseek_v2_lite_qlora_null.json");
	cr_expect_eq(layers_of(m, MB_MIXER_MLA, MB_FFN_DENSE), 1);
	cr_expect_eq(m->q_lora_rank, 0);
}

/* Every other way to spell expert layers gives the same model. */
Test(import_hf, expert_layers_are_spelt_in_many_ways)
{
	static const char *const ways[] = {
		"\"first_k_dense_replace\": 1", "\"mlp_layer_types\": [\"dense\", \"sparse\", \"sparse\", \"sparse\"]",
		"\"moe_layer_freq\": [0, 1, 1, 1]", "\"first_k_dense_replace\": 1, \"moe_layer_freq\": 1", "\"moe_layer_start_index\": 1",
	};

	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		const char *text = mb_arena_printf(&arena, "{\"model_type\": \"glm4_moe\", \"hidden_size\": 64, \"num_hidden_layers\": 4, "
			"\"num_attention_heads\": 4, \"vocab_size\": 128, \"intermediate_size\": 128, \"moe_intermediate_size\": 32, "
			"\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, %s}", ways[i]);
		struct mb_model m;

		memset(&diags, 0, sizeof diags);
		const struct mb_node *config = mb_node_read_text(text, strlen(text), "config.json", &arena, &diags);
		const struct mb_node *node = config != NULL ? mb_hf_model(config, &arena, &diags) : NULL;
		cr_assert(node != NULL && mb_model_read(node, &arena, &m, &diags), "%s: %s", ways[i], diags.item[0].text);
		cr_expect(m.kinds[m.layers[0]].ffn == MB_FFN_DENSE && m.kinds[m.layers[1]].ffn == MB_FFN_MOE, "%s", ways[i]);
		cr_expect_eq(layers_of(&m, MB_MIXER_ATTENTION, MB_FFN_MOE), 3, "%s", ways[i]);
	}
}

/* What cannot be sized is refused where it stands. */
static const struct { const char *text; int line, column; const char *words; } refused[] = {
	{ "{\"model_type\": \"glm_moe_dsa\",\n  \"index_topk\": 2048}", 2, 3, "index_topk: sparse attention" },
	{ "{\"model_type\": \"deepseek_v4\",\n\n \"hc_mult\": 4}", 3, 2, "hc_mult: several residual streams" },
	{ "{\"model_type\": \"kimi_linear\",\n \"linear_attn_config\": {\"kda_layers\": [1]}}", 2, 2, "Kimi delta attention" },
	{ "{\"model_type\": \"gemma2\",\n \"final_logit_softcapping\": 30.0}", 2, 2, "capping of the logits" },
	{ "{\"model_type\": \"gemma2\"}", 1, 1, "capping of the logits" },
	{ "{\"model_type\": \"llama\",\n\"is_encoder_decoder\": true}", 2, 1, "an encoder beside the decoder" },
	{ "{\"architectures\": [],\n\"model_type\": \"t5\"}", 2, 15, "an encoder beside the decoder" },
	{ "{\n\"model_type\": \"step3p5\"}", 2, 15, "a gate for each attention head" },
	{ "{\n\"model_type\": \"quen3\"}", 2, 15, "'quen3' is not known" },
	{ "{\"model_type\": \"llama4\", \"text_config\": {\n\"attention_chunk_size\": 8192}}", 2, 1, "chunked attention" },
	{ "{\"model_type\": \"qwen3\",\n \"hidden_size\": 64, \"num_hidden_layers\": 2}", 1, 1, "is missing" },
	{ "{\"model_type\": \"llama\",\n \"hidden_size\": NaN}", 2, 17, "hidden_size: 'NaN' is not a whole number" },
	{ "{\"model_type\": \"llama\", \"hidden_size\": 1e300}", 1, 40, "is not a whole number" },
	{ "{\"model_type\": \"llama\", \"hidden_act\": \"tanh\"}", 1, 39, "the activation 'tanh' is not modelled" },
	{ "{\"model_type\": \"llama\", \"num_hidden_layers\": 100000}", 1, 1, "more than 512" },
	{ "{\"model_type\": \"hunyuan_v1_moe\", \"moe_topk\": [8, 8, 4], \"num_experts\": 8}", 1, 53, "differ from layer to layer" },
};

Test(import_hf, what_is_not_modelled_is_refused_where_it_stands)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		bool found = false;

		cr_expect(!import_text(refused[i].text, "config.json", ""), "%s", refused[i].text);
		for (int k = 0; k < diags.count; k++) {
			const struct mb_diag *d = &diags.item[k];

			found = found || (d->severity == MB_ERROR && d->pos.line == refused[i].line && d->pos.column == refused[i].column &&
			                  strstr(d->text, refused[i].words) != NULL);
		}
		cr_expect(found, "%s: %d:%d %s", refused[i].text, diags.item[0].pos.line, diags.item[0].pos.column, diags.item[0].text);
	}
}

Test(import_hf, llama4_without_chunks_is_sized)
{
	char *text = mb_arena_strdup(&arena, "{\"model_type\": \"llama4\", \"tie_word_embeddings\": false, \"text_config\": {"
		"\"attention_chunk_size\": null, \"head_dim\": 128, \"hidden_size\": 5120, \"interleave_moe_layer_step\": 1, "
		"\"intermediate_size\": 8192, \"intermediate_size_mlp\": 16384, \"model_type\": \"llama4_text\", \"no_rope_layers\": [], "
		"\"num_attention_heads\": 40, \"num_experts_per_tok\": 1, \"num_hidden_layers\": 48, \"num_key_value_heads\": 8, "
		"\"num_local_experts\": 16, \"vocab_size\": 202048}}");
	int64_t total[3];
	struct mb_case *c = mb_arena_alloc(&arena, sizeof *c);

	cr_assert(import_text(text, "config.json", ""), "%s", diags.item[0].text);
	cr_assert(mb_model_read(got.map, &arena, &c->model, &diags));
	c->run.mtp_num_layers = MB_AUTO;
	mb_case_compile(c);
	mb_count_parameters(c, &total[0], &total[1], &total[2]);
	cr_expect_eq(total[0], 107769861120);
	cr_expect(!c->model.kinds[c->model.layers[0]].no_rope && c->model.kinds[c->model.layers[3]].no_rope);
}

Test(import_hf, a_folder_is_its_config)
{
	struct mb_model m;

	memset(&diags, 0, sizeof diags);
	cr_assert(mb_model_load(mb_node_scalar(&arena, (struct mb_pos){ "test", 0, 1 }, path("folder")), &library, &arena, &m, &diags), "%s",
	          diags.item[0].text);
	cr_expect_str_eq(m.name, "folder");
	cr_expect(m.num_layers == 2 && m.hidden_size == 64);
}

/* What is printed is a model file that gives the same model. */
Test(import_hf, printed_models_read_back)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		int64_t a[3] = { 0 }, b[3] = { 0 };
		const char *file = path(mb_arena_printf(&arena, "hf/%s.json", types[i].type));
		struct mb_case *c = mb_arena_alloc(&arena, sizeof *c);

		cr_assert(count(file, a) && import_file(mb_arena_printf(&arena, "hf/%s.json", types[i].type), ""));
		const char *yaml = printed();
		const struct mb_node *map = mb_node_read_text(yaml, strlen(yaml), "model.yaml", &arena, &diags);
		cr_assert(map != NULL && mb_model_read(map, &arena, &c->model, &diags), "%s: %s", types[i].type, diags.item[0].text);
		c->run.mtp_num_layers = MB_AUTO;
		mb_case_compile(c);
		mb_count_parameters(c, &b[0], &b[1], &b[2]);
		cr_expect(a[0] == b[0] && a[1] == b[1] && a[2] == b[2], "%s", types[i].type);
	}
}
