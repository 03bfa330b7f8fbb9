#include <stdio.h>
#include <string.h>

#include "desc/hf_private.h"
#include "desc/not_modelled.h"

/* Names that a config.json may hold. Others are either not modelled, or named in a warning. */
static const char *const known[] = {
	/* read by hf.c and hf_layers.c */
	"architectures", "model_type", "text_config", "llm_config", "language_config", "thinker_config", "_name_or_path",
	"num_hidden_layers", "n_layers", "n_layer", "hidden_size", "d_model", "n_embd", "vocab_size", "num_attention_heads",
	"n_heads", "n_head", "intermediate_size", "intermediate_size_mlp", "n_inner", "ffn_config", "attn_config", "n_positions",
	"max_position_embeddings", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
	"num_key_value_heads", "num_attention_groups", "head_dim", "attention_head_dim", "attention_bias", "use_qkv_bias",
	"qkv_bias", "use_qk_norm", "qk_layernorm", "mlp_bias", "use_bias", "partial_rotary_factor", "rotary_percent",
	"rope_scaling", "rope_parameters", "rotary_dim", "hidden_act", "hidden_activation", "mlp_hidden_act",
	"activation_function", "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
	"moe_intermediate_size", "n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts",
	"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "num_experts_per_tok",
	"num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "moe_latent_size", "routed_expert_hidden_size", "n_group",
	"num_expert_group", "topk_group", "scoring_func", "score_function", "mamba_num_heads", "mamba_head_dim", "n_groups",
	"ssm_state_size", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
	"linear_conv_kernel_dim", "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_use_repeated_layer",
	"tie_word_embeddings", "mlp_layer_types", "moe_layer_freq", "interleave_moe_layer_step", "decoder_sparse_step",
	"mlp_only_layers", "first_k_dense_replace", "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval",
	"layer_types", "full_attention_interval", "sliding_window", "use_sliding_window", "no_rope_layers",
	"no_rope_layer_interval", "hybrid_override_pattern", "mtp_hybrid_override_pattern",
	/* learning, generation, storage and tokens */
	"activation_dropout", "add_cross_attention", "attention_dropout", "attention_multiplier", "attn_implementation",
	"attn_logit_softcapping", "attn_pdrop", "attn_temperature_tuning", "attn_scale", "floor_scale", "auto_map",
	"aux_loss_alpha", "router_aux_loss_coef", "bad_words_ids", "begin_suppress_tokens", "bos_token_id", "eos_token_id",
	"pad_token_id", "sep_token_id", "unk_token_id", "cls_token_id", "decoder_start_token_id", "boi_token_index",
	"eoi_token_index", "image_token_index", "image_token_id", "video_token_id", "audio_token_id", "vision_start_token_id",
	"vision_end_token_id", "vision_token_id", "cache_implementation", "chunk_size", "chunk_size_feed_forward",
	"clip_qkv", "conv_kernel", "use_conv_bias", "cross_attention_hidden_size", "default_theta", "dtype", "torch_dtype",
	"embd_pdrop", "resid_pdrop", "emb_pdrop", "embedding_multiplier", "ep_size", "expand", "experts_per_token", "finetuning_task",
	"forced_bos_token_id", "forced_eos_token_id", "hidden_dropout", "hidden_dropout_prob", "id2label", "label2id",
	"ignore_index", "initial_context_length", "initializer_range", "initializer_factor", "init_std", "input_jitter_noise",
	"is_decoder", "is_encoder_decoder", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_eps",
	"rms_norm_eps", "length_penalty", "logits_scaling", "mamba_hidden_act", "mamba_proj_bias", "mamba_ssm_dtype",
	"max_seq_len", "max_window_layers", "mlp_bias_linear", "mm_tokens_per_image", "model_max_length", "moe_group_score",
	"moe_router_enable_expert_bias", "moe_router_topk_scaling_factor", "moe_gate", "moe_use_aux_free", "norm_topk_prob",
	"num_logits_to_keep", "num_return_sequences", "original_max_position_embeddings", "output_attentions",
	"output_dropout", "output_hidden_states", "output_router_logits", "prefix", "pretraining_tp", "problem_type",
	"projector_hidden_act", "pruned_heads", "quantization_config", "query_pre_attn_scalar", "qk_head_dim",
	"rescale_prenorm_residual", "residual_in_fp32", "residual_multiplier", "return_dict", "rms_norm", "rope_interleave",
	"rope_local_base_freq", "rope_theta", "rotary_base", "rotary_emb_base", "routed_scaling_factor", "router_bias_update_speed",
	"router_jitter_noise", "router_z_loss_coef", "scale_attn_weights", "scale_attn_by_inverse_layer_idx",
	"reorder_and_upcast_attn", "scale_depth", "seq_aux", "seq_length", "sliding_window_pattern", "_sliding_window_pattern",
	"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
	"suppress_tokens", "swiglu_limit", "swiglu_alpha", "task_specific_params", "temperature", "time_step_floor",
	"time_step_limit", "time_step_max", "time_step_min", "time_step_rank", "tokenizer_class", "topk_method",
	"torchscript", "transformers_version", "typical_p", "use_bfloat16", "use_cache", "use_mrope", "use_mamba_kernels",
	"use_rmsnorm", "vision_feature_layer", "vision_feature_select_strategy", "spatial_merge_size", "image_seq_length",
	"multimodal_projector_bias", "projector_layernorm_eps", "mlp_type", "mtp_loss_scaling_factor", "attn_output_gate",
	"mtp_use_dedicated_embeddings", "mrope_section", "mrope_interleaved", "moe_renormalize", "pos_emb", "use_cla",
	"cla_share_factor", "pad_id", "im_start_id", "im_end_id", "im_newline_id", "text_start_id", "text_end_id",
	"use_rotary_pos_emb", "capacity_factor", "moe_dropped_token", "moe_random_routing_dropped_token", "group_limited_greedy",
	"num_media_embeds", "moe_layer_num_skipped", "moe_drop_tokens", "class_num", "add_classification_head", "n_ctx",
	"bias", "weight_tile_size", "moe_use_token_type_bias", "use_moe", "moe_norm_min", "moe_aux_loss_coef",
	"token_balance_loss_weight", "moe_capacity", "moe_gate_act", "mamba_expand", "d_conv", "attn_type_list",
	"shared_intermediate_size", "shared_moe_mode", "layernorm_full_attention_alpha", "use_routing_bias", "moe_norm_topk_prob",
	"head_wise", "qk_norm_type", "qk_norm", "mtp_transformer_layers", "num_mtp_modules", "use_mtp", "router_dtype",
	"tokenizer_padding_side", "unsloth_fixed", "unsloth_version", "_attn_implementation_autoset", "_commit_hash",
	"text_config_dict", "output_past", "use_qk_norm_bias", "use_scaled_rope", "rope_scaling_type", "moe_jitter_eps",
};

/* Parts beside the language model. Their parameters are not counted, which a reader must hear. */
static const char *const towers[] = {
	"vision_config", "vision_tower", "visual", "audio_config", "talker_config", "token2wav_config", "vit_config", "speech_config",
	"vision_model_config", "sound_config", "code2wav_config",
};

static bool listed(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

#define LISTED(names, name) listed(names, sizeof(names) / sizeof(names)[0], name)

static void add_unknown(char *text, size_t size, int *count, const char *key)
{
	size_t used = strlen(text);

	if (++*count <= 8)
		snprintf(text + used, size - used, "%s%.40s", used > 0 ? ", " : "", key);
}

/* Switched on by the class when the file is silent; not_modelled.c knows the key. */
static void class_features(struct mb_hf *h)
{
	static const char *const keys[] = { "attention_chunk_size", "final_logit_softcapping" };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		const struct mb_node *n = mb_node_get(h->text, keys[i]) == NULL ? mb_hf_get(h, keys[i]) : NULL;
		struct mb_node copy;

		if (n == NULL)
			continue;
		copy = *n;
		copy.key = mb_node_scalar(h->arena, h->text->pos, keys[i]);
		mb_not_modelled(&copy, h->diags);
	}
}

void mb_hf_leftovers(struct mb_hf *h)
{
	char unknown[400] = "";
	const struct mb_node *encoder = mb_node_get(h->top, "is_encoder_decoder");
	bool both = false;
	int count = 0;

	if (encoder != NULL && mb_node_bool(encoder, &both) && both)
		mb_report(h->diags, MB_ERROR, encoder->key->pos, "is_encoder_decoder",
		          "is_encoder_decoder: an encoder beside the decoder: not modelled");
	for (const struct mb_node *n = h->top->child; n != NULL; n = n->next) {
		if (LISTED(towers, n->key->text) && !mb_node_is_null(n))
			mb_report(h->diags, MB_NOTE, n->key->pos, n->key->text, "%s: left out, only the language model is sized", n->key->text);
	}
	for (const struct mb_node *n = h->text->child; n != NULL; n = n->next) {
		const char *key = n->key->text;

		if (LISTED(towers, key) || LISTED(known, key) || mb_not_modelled(n, h->diags))
			continue;
		if (!mb_node_is_null(n))
			add_unknown(unknown, sizeof unknown, &count, key);
	}
	class_features(h);
	if (count > 0)
		mb_report(h->diags, MB_WARNING, h->text->pos, "", "%d %s taken to change no size: %s%s", count,
		          count > 1 ? "unknown keys are" : "unknown key is", unknown, count > 8 ? ", ..." : "");
}
