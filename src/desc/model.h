/*
 * A model: a sequence of layers of several kinds. Plain data in Megatron's names; sizes are whole-model (not per rank).
 * Read from models/NAME.yaml, or from a mapping with the same keys.
 */
#ifndef MBSIM_DESC_MODEL_H
#define MBSIM_DESC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { MB_MAX_LAYERS = 512, MB_MAX_LAYER_KINDS = 8, MB_MAX_MTP_LAYERS = 16 };

enum mb_mixer { MB_MIXER_NONE, MB_MIXER_ATTENTION, MB_MIXER_MLA, MB_MIXER_MAMBA, MB_MIXER_GDN };
enum mb_ffn { MB_FFN_NONE, MB_FFN_DENSE, MB_FFN_MOE };
enum mb_normalization { MB_RMSNORM, MB_LAYERNORM };
enum mb_activation { MB_ACT_SILU, MB_ACT_GELU, MB_ACT_QUICK_GELU, MB_ACT_SQUARED_RELU, MB_ACT_RELU };
enum mb_position { MB_POS_ROPE, MB_POS_LEARNED, MB_POS_NONE, MB_POS_YARN };
enum mb_score { MB_SCORE_SOFTMAX, MB_SCORE_SIGMOID, MB_SCORE_SQRTSOFTPLUS };
enum mb_softmax { MB_SOFTMAX_VANILLA, MB_SOFTMAX_OFF_BY_ONE, MB_SOFTMAX_LEARNABLE };

/* A kind of layer: what mixes tokens, then what mixes channels; either may be absent (hybrid models). */
struct mb_layer_kind {
	enum mb_mixer mixer;
	enum mb_ffn ffn;
	bool windowed;          /* attention sees only the sliding window */
	bool no_rope;           /* attention without rotary embedding on this layer */
};

struct mb_model {
	char name[64];
	const char *source;             /* where the architecture comes from */
	const char *family;             /* "transformer", "hybrid" */

	int num_layers;
	int hidden_size, ffn_hidden_size;
	int vocab_size, make_vocab_size_divisible_by;
	int max_position_embeddings;    /* learned positions only; 0 otherwise */
	enum mb_normalization normalization;
	enum mb_activation activation;
	enum mb_position position_embedding_type;
	double rotary_percent;
	bool gated_linear_unit, add_bias_linear, add_qkv_bias, layernorm_bias;
	bool post_norms;                /* also a norm after attention and after the MLP (Gemma) */
	bool share_embeddings_and_output_weights;

	/* Attention. */
	int num_attention_heads, num_query_groups, kv_channels;
	bool qk_layernorm, qk_layernorm_full_dim;       /* full_dim: one norm over all heads (MiniMax, OLMo) */
	bool attention_output_gate;
	enum mb_softmax softmax_type;
	int window_size;                /* tokens a windowed layer sees, itself included; 0: no window */
	int sliding_attention_heads, sliding_query_groups, sliding_kv_channels;    /* windowed layers; 0: as the others */

	/* Multi-latent attention. */
	bool multi_latent_attention;
	int q_lora_rank;                /* 0: no query compression */
	int kv_lora_rank, qk_head_dim, qk_pos_emb_head_dim, v_head_dim;

	/* Mixture of experts. */
	int num_moe_experts, moe_router_topk, moe_ffn_hidden_size, moe_shared_expert_intermediate_size;
	int moe_latent_size;            /* routed experts work in this dimension; 0: hidden_size */
	int moe_router_num_groups, moe_router_group_topk;       /* 0: routing is not limited to groups */
	enum mb_score moe_router_score_function;
	bool moe_router_enable_expert_bias, moe_shared_expert_gate, moe_router_bias_linear;

	/* Mamba-2. */
	int mamba_num_heads, mamba_head_dim, mamba_state_dim, mamba_num_groups;

	/* Gated delta net. */
	int linear_num_key_heads, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim, linear_conv_kernel_dim;

	/* Multi-token prediction. */
	int mtp_num_layers;             /* depths; the run may change it */
	bool mtp_use_repeated_layer;    /* all depths share one set of weights */

	/* The sequence: layers[i] indexes kinds[]; mtp_layers is the block of one depth. */
	struct mb_layer_kind kinds[MB_MAX_LAYER_KINDS];
	int kind_count;
	uint8_t layers[MB_MAX_LAYERS];
	uint8_t mtp_layers[MB_MAX_MTP_LAYERS];
	int mtp_layer_count;

	/* Published facts, for tests and reports only; 0 when unknown. */
	double published_total, published_active;
	int64_t parameters;             /* counted elsewhere, MTP included: what a test compares with */
};

struct mb_node;

/* `node` is a mapping; every unknown key, wrong type or impossible value is reported at its place. */
bool mb_model_read(const struct mb_node *node, struct mb_arena *arena, struct mb_model *ret, struct mb_diags *diags);

/* Whether a mapping that describes a model may have this key. */
bool mb_model_key(const char *name);

/*
 * The key of row `index` and its value as text, "" where it is what an absent key means; layers are not among them.
 * False past the last row.
 */
bool mb_model_field(const struct mb_model *m, int index, const char **key, char *text, size_t size);

/*
 * Expands moe_layer_freq (an integer stride or a list) or hybrid_layer_pattern ("MEM*E", "/" before each MTP block)
 * into kinds[] and layers[]. Called by mb_model_read and for models given by megatron_args.
 *   moe_layer_freq: list of num_layers 0/1 flags. window_pattern: list, 1 = windowed. linear_pattern: list, 1 = linear
 *   attention. no_rope_pattern: list, 1 = no rotary. NULL: none (moe_layer_freq NULL: every layer, if there are experts).
 */
bool mb_model_build_layers(struct mb_model *m, const int8_t *moe_layer_freq, const int8_t *window_pattern,
                           const int8_t *linear_pattern, const int8_t *no_rope_pattern, const char *hybrid_layer_pattern,
                           struct mb_pos at, struct mb_diags *diags);

/* Index of the kind, added if it is new; -1 when MB_MAX_LAYER_KINDS are in use. */
int mb_model_kind(struct mb_model *m, struct mb_layer_kind kind);

#endif
