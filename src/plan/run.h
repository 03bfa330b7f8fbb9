/* A run: everything a user says about one training job, by the keys of keys.def. */
#ifndef MBSIM_PLAN_RUN_H
#define MBSIM_PLAN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/names.h"
#include "plan/plan.h"

enum mb_precision { MB_BF16, MB_FP16, MB_FP8_CS, MB_FP8_DS, MB_FP8_SC, MB_FP8_MX, MB_NVFP4, MB_FP32 };
enum mb_task { MB_PRETRAIN, MB_SFT, MB_LORA };
enum mb_optimizer { MB_ADAM, MB_SGD, MB_MUON };
enum mb_dtype { MB_DT_FP32, MB_DT_BF16, MB_DT_FP16, MB_DT_FP8 };
enum mb_ce { MB_CE_NATIVE, MB_CE_TE };
enum mb_impl { MB_IMPL_TE, MB_IMPL_LOCAL };
enum mb_attention_backend { MB_ATTN_AUTO, MB_ATTN_FLASH, MB_ATTN_FUSED, MB_ATTN_UNFUSED, MB_ATTN_LOCAL };
enum mb_router_balance { MB_BALANCE_AUX, MB_BALANCE_NONE };

enum { MB_AUTO = -1 };          /* of int keys that are decided from others when the user is silent */

struct mb_run {
	int gpus;
	enum mb_precision precision;
	enum mb_task task;
	int seq_length, global_batch_size;
	struct mb_plan plan;

	/* Keys that `search` never opens. Booleans that are `int` may be MB_AUTO. */
	enum mb_optimizer optimizer;
	bool use_precision_aware_optimizer;
	enum mb_dtype main_params_dtype, main_grads_dtype, exp_avg_dtype, exp_avg_sq_dtype;
	int grad_reduce_in_fp32;
	int fp8_param_gather, reuse_grad_buf_for_mxfp8_param_ag;
	bool fp8_dot_product_attention, fp8_output_proj, first_last_layers_bf16;
	int num_layers_at_start_in_bf16, num_layers_at_end_in_bf16;
	bool gradient_accumulation_fusion;
	int num_distributed_optimizer_instances;
	bool average_in_collective;
	int bucket_size;                /* elements; 0: the framework's */
	bool nccl_ub;
	bool cpu_offloading_activations, cpu_offloading_weights;
	enum mb_dtype fsdp_main_params_dtype, fsdp_main_grads_dtype;
	bool fsdp_double_buffer;
	int suggested_communication_unit_size;
	enum mb_sharding outer_dp_sharding_strategy;

	bool cross_entropy_loss_fusion;
	enum mb_ce cross_entropy_fusion_impl;
	enum mb_impl transformer_impl;
	enum mb_attention_backend attention_backend;
	bool attention_softmax_in_fp32, masked_softmax_fusion, apply_rope_fusion;
	bool bias_activation_fusion, bias_dropout_fusion, fused_weighted_squared_relu;
	bool activation_func_fp8_input_store, fp32_residual_connection, deterministic_mode, mla_down_proj_fusion;
	double hidden_dropout, attention_dropout;

	bool moe_grouped_gemm, moe_permute_fusion, moe_router_fusion, moe_router_force_load_balancing;
	enum mb_dtype moe_router_dtype;
	bool moe_pad_expert_input_to_capacity, moe_router_padding_for_quantization, moe_use_grouped_tensor, moe_paged_stash;
	bool use_transformer_engine_op_fuser;
	double moe_expert_capacity_factor, moe_expert_rank_capacity_factor;    /* 0: dropless */
	double moe_load_imbalance;
	int moe_flex_dispatcher_num_sms;
	bool ep_overlap_early_attn_memory_release;
	int mtp_num_layers;             /* MB_AUTO: the model's */

	int batch_p2p_comm;
	bool overlap_p2p_comm_warmup_flush, defer_embedding_wgrad_compute, create_attention_mask_in_dataloader;
	int wgrad_deferral_limit;
	bool tp_comm_overlap_cfg, use_tp_pp_dp_mapping, use_te_rng_tracker, check_for_nan_in_loss, calculate_per_token_loss;
	int cuda_graph_warmup_steps;
	bool rerun_mode_validate;

	/* LoRA. */
	int lora_dim;
	unsigned lora_targets;          /* bit 0 linear_qkv, 1 linear_proj, 2 linear_fc1, 3 linear_fc2 */
	bool sequence_parallel_input_regather;
	bool packed_sequence;
	int mean_sequence_length;       /* of the sequences inside a packed sample; 0: seq_length */

	/* Environment variables that matter; MB_AUTO: not set. */
	int cuda_device_max_connections, nvte_allow_nondeterministic_algo, nvte_fwd_layernorm_sm_margin;
	bool expandable_segments, cublas_workspace_4096_8, nccl_nvls_disabled, nccl_graph_register_0;

	bool fp32_compute;              /* fp8 without bf16: what is not quantised is fp32 [Megatron-LM without --bf16] */
	bool megatron_args;             /* given by Megatron-LM's flags, with Megatron-LM's defaults */
};

/* ---- the key table ---- */

enum mb_key_type { MB_KEY_BOOL, MB_KEY_TRISTATE, MB_KEY_INT, MB_KEY_NUMBER, MB_KEY_ENUM, MB_KEY_SET, MB_KEY_LAYOUT, MB_KEY_SIZES, MB_KEY_MODEL };

enum mb_key_id {
#define KEY(id, ...) MB_K_##id,
#include "plan/keys.def"
#undef KEY
	MB_KEY_COUNT
};

struct mb_key {
	const char *name, *short_name;
	const char *flag;               /* Megatron-LM's, without the dashes; NULL: same as the name with dashes, "" none */
	enum mb_key_type type;
	size_t offset;                  /* in struct mb_run */
	double min, max;
	const struct mb_name *names;    /* of ENUM and SET */
	const char *bridge_default, *megatron_default;
	bool open;                      /* search may open it */
	const char *doc;
};

extern const struct mb_key mb_keys[MB_KEY_COUNT];

extern const struct mb_name mb_precision_names[], mb_task_names[], mb_optimizer_names[], mb_dtype_names[], mb_ce_names[],
	mb_impl_names[], mb_attention_backend_names[], mb_granularity_names[], mb_method_names[], mb_dispatcher_names[],
	mb_backend_names[], mb_cp_comm_names[], mb_graph_names[], mb_sharding_names[], mb_module_names[], mb_scope_names[],
	mb_offload_names[];

#endif
