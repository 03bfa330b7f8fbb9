#include "plan/query.h"

#include <string.h>

/*
 * Names that change neither memory nor time (logging, checkpoints, learning rates, seeds, inference, ...), accepted in
 * silence so that whole configurations can be pasted. Sorted. true: a flag that takes no value.
 */
static const struct ignored {
	const char *name;
	bool flag;
} ignored[] = {
	{ "activation_offload_min_size", false }, { "adam_beta1", false }, { "adam_beta2", false },
	{ "adam_eps", false }, { "align_grad_reduce", true }, { "align_param_gather", true },
	{ "apply_query_key_layer_scaling", true }, { "apply_residual_connection_post_layernorm", true },
	{ "async_ckpt_use_cpu_shm", true }, { "async_save", true }, { "async_strategy", false },
	{ "async_tensor_model_parallel_allreduce", true }, { "auto_detect_ckpt_format", true },
	{ "autocast_dtype", false }, { "batch_invariant_mode", true }, { "beta_fast", false },
	{ "beta_slow", false }, { "calc_ft_timeouts", true }, { "check_for_large_grads", true },
	{ "check_for_nan_in_grad", true }, { "check_weight_hash_across_dp_replicas_interval", false },
	{ "ckpt_assume_constant_structure", true }, { "ckpt_drop_redundant_extra_state", true },
	{ "ckpt_format", false }, { "ckpt_fully_parallel_load", true },
	{ "ckpt_fully_parallel_load_per_rank_objects", true }, { "ckpt_fully_parallel_save", true },
	{ "ckpt_step", false }, { "clip_grad", false }, { "comment", false },
	{ "cpu_offloading_double_buffering", false }, { "cuda_graph_retain_backward_graph", true },
	{ "cuda_graph_share_io_buffers", true }, { "cuda_graph_use_single_mempool", true },
	{ "data_args_path", false }, { "data_cache_path", false }, { "data_path", false },
	{ "data_sharding", true }, { "dataloader_seq_length", false }, { "dataloader_type", false },
	{ "ddp_pad_buckets_for_high_nccl_busbw", true },
	{ "ddp_param_name_patterns_for_fp32_local_accumulation", false }, { "deallocate_pipeline_outputs", true },
	{ "decoupled_lr", false }, { "decoupled_min_lr", false }, { "decrease_batch_size_if_needed", true },
	{ "defer_fp32_logits", true }, { "delay_offload_until_cuda_graph", false },
	{ "delta_offload_bytes_across_pp_ranks", false }, { "description", false },
	{ "disable_bf16_reduced_precision_matmul", true }, { "disable_gloo_process_groups", true },
	{ "disable_mamba_mem_eff_path", true }, { "disable_msc", true },
	{ "disable_parameter_transpose_cache", true }, { "disable_straggler_on_startup", true },
	{ "dist_ckpt_optim_fully_reshardable", true }, { "dist_ckpt_strictness", false },
	{ "distribute_saved_activations", true }, { "distributed_backend", false },
	{ "distributed_timeout_minutes", false }, { "embedding_init_method_std", false },
	{ "empty_unused_memory_level", false }, { "enable_experimental", true }, { "enable_ft_package", true },
	{ "enable_gloo_process_groups", true }, { "enable_msc", true }, { "end_weight_decay", false },
	{ "eod_mask_loss", true }, { "eval_batch_size", false }, { "eval_global_batch_size", false },
	{ "eval_interval", false }, { "eval_iters", false }, { "eval_micro_batch_size", false },
	{ "exit_duration_in_mins", false }, { "exit_interval", false }, { "exit_on_missing_checkpoint", true },
	{ "exit_signal", false }, { "exit_signal_handler", true }, { "fim_rate", false }, { "finetune", true },
	{ "fp8_amax_compute_algo", false }, { "fp8_amax_history_len", false }, { "fp8_interval", false },
	{ "fp8_margin", false }, { "fp8_wgrad", true }, { "fsdp_db_use_persist_buf_on_alloc_fail", true },
	{ "full_validation", true }, { "grad_scale_func", false }, { "grpo_clamp_eps_lower", false },
	{ "grpo_clamp_eps_upper", false }, { "grpo_entropy_term_weight", false }, { "grpo_group_size", false },
	{ "grpo_iterations", false }, { "grpo_kl_beta", false }, { "grpo_prompts_per_step", false },
	{ "high_priority_a2a_comm_stream", true }, { "high_priority_stream_groups", false },
	{ "hysteresis", false }, { "id", false }, { "inference_batch_times_seqlen_threshold", false },
	{ "inference_dynamic_batching_buffer_size_gb", false },
	{ "inference_dynamic_batching_cuda_graph_sizing_distribution", false },
	{ "inference_dynamic_batching_num_cuda_graphs", false },
	{ "inference_dynamic_batching_unified_memory_level", false }, { "inference_logging_step_interval", false },
	{ "inference_max_seq_length", false }, { "inference_rng_tracker", true }, { "init_method_std", false },
	{ "init_model_with_meta_device", true }, { "initial_loss_scale", false },
	{ "keep_fp8_weight_transpose_cache", true }, { "langrl_env_config", false }, { "layernorm_epsilon", false },
	{ "load", false }, { "local_rank", false }, { "log_batch_size_to_tensorboard", true },
	{ "log_device_memory_used", true }, { "log_energy", true }, { "log_interval", false },
	{ "log_loss_scale_to_tensorboard", true }, { "log_memory_interval", false },
	{ "log_memory_to_tensorboard", true }, { "log_num_zeros_in_grad", true }, { "log_params_norm", true },
	{ "log_progress", true }, { "log_straggler", true }, { "log_throughput", true },
	{ "log_timers_to_tensorboard", true }, { "log_validation_ppl_to_tensorboard", true },
	{ "log_world_size_to_tensorboard", true }, { "loss_scale", false }, { "loss_scale_window", false },
	{ "lr", false }, { "lr_decay_iters", false }, { "lr_decay_samples", false }, { "lr_decay_style", false },
	{ "lr_scheduler", false }, { "lr_warmup_fraction", false }, { "lr_warmup_init", false },
	{ "lr_warmup_iters", false }, { "lr_warmup_samples", false }, { "lr_wsd_decay_iters", false },
	{ "lr_wsd_decay_samples", false }, { "lr_wsd_decay_style", false }, { "manual_gc", true },
	{ "manual_gc_interval", false }, { "mask_prob", false }, { "mask_token_id", false },
	{ "master_addr", false }, { "master_port", false }, { "max_tokens_to_oom", false },
	{ "megatron_fsdp_grad_comm_dtype", false }, { "memory_snapshot_path", false }, { "merge_file", false },
	{ "min_loss_scale", false }, { "min_lr", false }, { "min_offloaded_tensor_size", false },
	{ "mock_data", true }, { "moe_apply_probs_on_input", true }, { "moe_aux_loss_coeff", false },
	{ "moe_extended_tp", true }, { "moe_flex_dispatcher_num_blocks_permute", false },
	{ "moe_flex_dispatcher_num_blocks_unpermute", false }, { "moe_hybridep_num_permute_sms", false },
	{ "moe_hybridep_num_preprocessing_sms", false }, { "moe_input_jitter_eps", false },
	{ "moe_pad_experts_for_cuda_graph_inference", true }, { "moe_per_layer_logging", true },
	{ "moe_router_bias_update_rate", false }, { "moe_router_force_bias", false },
	{ "moe_router_load_balancing_type", false }, { "moe_router_pre_softmax", true },
	{ "moe_router_topk_scaling_factor", false }, { "moe_token_drop_policy", false },
	{ "moe_upcycling_granularity", false }, { "moe_use_upcycling", true }, { "moe_z_loss_coeff", false },
	{ "mrope_section", false }, { "mscale", false }, { "mscale_all_dim", false }, { "mtp_detach_heads", true },
	{ "mtp_loss_scaling_factor", false }, { "multiple_validation_sets", true },
	{ "muon_extra_scale_factor", false }, { "muon_momentum", false }, { "muon_num_ns_steps", false },
	{ "muon_scale_mode", false }, { "muon_tp_mode", false }, { "nccl_communicator_config_path", false },
	{ "no_align_grad_reduce", true }, { "no_align_param_gather", true },
	{ "no_async_tensor_model_parallel_allreduce", true }, { "no_ckpt_fully_parallel_save", true },
	{ "no_ckpt_load_validate_sharding_integrity", true }, { "no_data_sharding", true },
	{ "no_deallocate_pipeline_outputs", true }, { "no_fp8_wgrad", true }, { "no_initialization", true },
	{ "no_load_optim", true }, { "no_load_rng", true }, { "no_mmap_bin_files", true },
	{ "no_persist_layer_norm", true }, { "no_pin_cpu_grads", true }, { "no_pin_cpu_params", true },
	{ "no_save_optim", true }, { "no_save_rng", true }, { "no_use_layer_wise_param_layout", true },
	{ "no_use_tokenizer_model_from_checkpoint_args", true }, { "non_persistent_ckpt_type", false },
	{ "non_persistent_global_ckpt_dir", false }, { "non_persistent_save_interval", false },
	{ "norm_epsilon", false }, { "note", false }, { "notes", false }, { "num_dataset_builder_threads", false },
	{ "num_workers", false }, { "original_max_position_embeddings", false },
	{ "output_layer_init_method", false }, { "overlap_cpu_optimizer_d2h_h2d", true },
	{ "overlap_param_gather_with_optimizer_step", true }, { "override_opt_param_scheduler", true },
	{ "pad_buckets_for_high_nccl_busbw", true }, { "param_name_patterns_for_fp32_local_accumulation", false },
	{ "params_dtype", false }, { "perform_initialization", true }, { "persist_layer_norm", true },
	{ "pin_cpu_grads", true }, { "pin_cpu_params", true }, { "pipeline_dtype", false },
	{ "pretrained_checkpoint", false }, { "profile", true }, { "profile_ranks", false },
	{ "profile_step_end", false }, { "profile_step_start", false }, { "rampup_batch_size", false },
	{ "rank", false }, { "record_memory_history", true }, { "refit_method", false },
	{ "reset_attention_mask", true }, { "reset_position_ids", true },
	{ "result_rejected_tracker_filename", false }, { "rl_consumption_granularity", false },
	{ "rl_generation_lag", false }, { "rl_inference_expert_model_parallel_size", false },
	{ "rl_inference_expert_tensor_model_parallel_size", false },
	{ "rl_inference_model_unified_memory_level", false }, { "rl_inference_tensor_model_parallel_size", false },
	{ "rl_offload_inference_model_weights_when_idle", true }, { "rl_offload_optimizer_during_inference", true },
	{ "rl_partial_rollouts", true }, { "rl_sequence_packing_algo", false },
	{ "rl_submission_granularity", false }, { "rl_training_cuda_graphs", true },
	{ "rl_use_sequence_packing", true }, { "rope_scaling_factor", false }, { "rotary_base", false },
	{ "rotary_interleaved", true }, { "rotary_scaling_factor", false },
	{ "rotary_seq_len_interpolation_factor", false }, { "save", false }, { "save_interval", false },
	{ "save_retain_interval", false }, { "seed", false }, { "sft", true }, { "sgd_momentum", false },
	{ "short_seq_prob", false }, { "skip_train", true }, { "split", false }, { "start_weight_decay", false },
	{ "straggler_minmax_count", false }, { "tensorboard_dir", false }, { "tensorboard_log_interval", false },
	{ "tensorboard_queue_size", false }, { "test_data_path", false }, { "test_mode", true },
	{ "tiktoken_num_special_tokens", false }, { "tiktoken_pattern", false }, { "timing_log_level", false },
	{ "timing_log_option", false }, { "tokenizer_metadata", false }, { "tokenizer_model", false },
	{ "tokenizer_name_or_path", false }, { "tp_comm_atomic_ag", true }, { "tp_comm_atomic_rs", true },
	{ "tp_comm_bootstrap_backend", false }, { "tp_comm_bulk_dgrad", true }, { "tp_comm_bulk_wgrad", true },
	{ "tp_comm_overlap_ag", true }, { "tp_comm_overlap_disable_fc1", true },
	{ "tp_comm_overlap_disable_qkv", true }, { "tp_comm_overlap_rs", true },
	{ "tp_comm_overlap_rs_dgrad", true }, { "tp_comm_split_ag", true }, { "tp_comm_split_rs", true },
	{ "train_data_path", false }, { "train_iters", false }, { "train_samples", false },
	{ "use_checkpoint_args", true }, { "use_checkpoint_opt_param_scheduler", true },
	{ "use_cpu_initialization", true }, { "use_dist_ckpt", true }, { "use_gloo_process_groups", true },
	{ "use_legacy_models", true }, { "use_mamba_mem_eff_path", true }, { "use_mcore_models", true },
	{ "use_one_sent_docs", true }, { "use_packed_sequence", true },
	{ "use_persistent_ckpt_worker", true }, { "use_pytorch_profiler", true }, { "use_ring_exchange", true },
	{ "use_ring_exchange_p2p", true }, { "use_rope_scaling", true }, { "use_sharp", true },
	{ "use_tokenizer_model_from_checkpoint_args", true }, { "use_torch_optimizer_for_cpu_offload", true },
	{ "valid_data_path", false }, { "variable_seq_lengths", true }, { "verify_integrity", true },
	{ "vocab_file", false }, { "wandb_entity", false }, { "wandb_exp_name", false }, { "wandb_project", false },
	{ "wandb_save_dir", false }, { "weight_decay", false }, { "weight_decay_incr_style", false },
	{ "world_size", false }, { "yarn_beta_fast", false }, { "yarn_beta_slow", false },
	{ "yarn_correction_range_round_to_int", true }, { "yarn_mscale", false }, { "yarn_mscale_all_dim", false },
	{ "yarn_original_max_position_embeddings", false }, { "yarn_rotary_scaling_factor", false },
};

/* Groups of a Bridge configuration without any such name, sorted. */
static const char *const groups[] = {
	"checkpoint", "convert", "dataloader", "ft", "inprocess_restart", "logger",
	"nvrx_straggler", "profiling", "rerun_state_machine", "scheduler", "straggler", "tensor_inspect", "tokenizer", "validation",
};

enum { IGNORED_COUNT = sizeof ignored / sizeof ignored[0], GROUP_COUNT = sizeof groups / sizeof groups[0] };

/* As strcmp, '-' and '_' taken as the same. */
static int compare(const char *word, const char *name)
{
	for (; *word != '\0' && (*word == *name || (*word == '-' && *name == '_')); word++)
		name++;
	return (*word == '-' ? '_' : *word) - *name;
}

static const struct ignored *find(const char *word)
{
	int low = 0, high = IGNORED_COUNT;

	while (low < high) {
		int mid = (low + high) / 2;
		int order = compare(word, ignored[mid].name);

		if (order == 0)
			return &ignored[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

bool mb_query_ignored(const char *name, bool *flag)
{
	const struct ignored *found = find(name);
	bool no = found == NULL && (strncmp(name, "no-", 3) == 0 || strncmp(name, "no_", 3) == 0);

	if (no)
		found = find(name + 3);
	if (found == NULL || (no && !found->flag))
		return false;
	*flag = found->flag;
	return true;
}

bool mb_query_ignored_group(const char *name)
{
	for (int i = 0; i < GROUP_COUNT; i++) {
		if (strcmp(name, groups[i]) == 0)
			return true;
	}
	return false;
}

const char *mb_query_ignored_name(int index)
{
	return index < IGNORED_COUNT ? ignored[index].name : NULL;
}
