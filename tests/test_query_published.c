#include "query_fixture.h"

TestSuite(query_published, .init = begin, .fini = done);

/*
 * Configurations of Megatron Bridge's performance summary as run mappings [docs/performance-summary.md]; only the model
 * is replaced by a small one, so that no model file is read.
 */
static const struct { const char *name, *text; int gpus, pp, vp; } published[] = {
	{ "26.08-pretrain-deepseek_v3-gb200-256-fp8_mx-g4096-m1-t1p4c1v4e64",
		"hardware: gb200-nvl72\ngpus: 256\ntask: pretrain\nprecision: fp8_mx\nseq_length: 4096\nglobal_batch_size: 4096\n"
		"micro_batch_size: 1\ntensor_model_parallel_size: 1\npipeline_model_parallel_size: 4\n"
		"virtual_pipeline_model_parallel_size: 4\ncontext_parallel_size: 1\nexpert_model_parallel_size: 64\n"
		"expert_tensor_parallel_size: 1\nsequence_parallel: false\nrecompute_granularity: selective\n"
		"recompute_modules: [mla_up_proj]\nmoe_token_dispatcher_type: flex\nmoe_flex_dispatcher_backend: hybridep\n"
		"overlap_moe_expert_parallel_comm: true\ndelay_wgrad_compute: true\nmoe_shared_expert_overlap: false\n"
		"cuda_graph_impl: full_iteration\ntp_comm_overlap: false\noverlap_grad_reduce: true\noverlap_param_gather: true\n"
		"overlap_p2p_comm: true\nuse_distributed_optimizer: true\nuse_megatron_fsdp: false\noptimizer: adam\n"
		"use_precision_aware_optimizer: true\nmain_params_dtype: fp32\nmain_grads_dtype: bf16\nexp_avg_dtype: bf16\n"
		"exp_avg_sq_dtype: bf16\ngrad_reduce_in_fp32: false\nfp8_param_gather: true\nfp8_dot_product_attention: false\n"
		"cpu_offloading: false\nfine_grained_activation_offloading: false\n"
		"pipeline_model_parallel_layout: 'Etttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tttt|tmL'\n"
		"mtp_num_layers: 1\naccount_for_embedding_in_pipeline_split: false\naccount_for_loss_in_pipeline_split: false\n"
		"moe_router_force_load_balancing: true\nmoe_permute_fusion: true\nmoe_router_fusion: true\n"
		"use_transformer_engine_op_fuser: true\nmoe_paged_stash: true\nmoe_expert_rank_capacity_factor: 1.5\n"
		"cross_entropy_fusion_impl: te\nhybridep_num_sms: 32\nstack: nemo-26.08\nfp8_output_proj: true\n",
		256, 4, 4 },
	{ "26.06-lora-llama3_70b-gb300-8-fp8_cs-g32-m1-t1p2c1v20e1",
		"hardware: gb300-nvl72\ngpus: 8\ntask: lora\nprecision: fp8_cs\nseq_length: 4096\nglobal_batch_size: 32\n"
		"micro_batch_size: 1\ntensor_model_parallel_size: 1\npipeline_model_parallel_size: 2\n"
		"virtual_pipeline_model_parallel_size: 20\ncontext_parallel_size: 1\nsequence_parallel: false\n"
		"cuda_graph_impl: transformer_engine\ncuda_graph_scope: [mlp]\ntp_comm_overlap: false\noverlap_grad_reduce: true\n"
		"overlap_param_gather: true\noverlap_p2p_comm: true\nuse_distributed_optimizer: true\noptimizer: adam\n"
		"use_precision_aware_optimizer: false\nmain_params_dtype: fp32\nmain_grads_dtype: fp32\nexp_avg_dtype: fp32\n"
		"exp_avg_sq_dtype: fp32\ngrad_reduce_in_fp32: false\nfp8_param_gather: true\nfp8_dot_product_attention: false\n"
		"cpu_offloading: false\nfine_grained_activation_offloading: false\ncross_entropy_fusion_impl: te\n"
		"peft: {dim: 16, alpha: 32, target_modules: [linear_qkv], _class: LoRA}\nstack: nemo-26.06\n",
		8, 2, 20 },
	{ "26.04.01-pretrain-llama3_70b-gb300-64-fp8_cs-g256-m2-t1p1c1v1e1",
		"hardware: gb300-nvl72\ngpus: 64\ntask: pretrain\nprecision: fp8_cs\nseq_length: 8192\nglobal_batch_size: 256\n"
		"micro_batch_size: 2\ntensor_model_parallel_size: 1\npipeline_model_parallel_size: 1\ncontext_parallel_size: 1\n"
		"sequence_parallel: false\ncuda_graph_impl: none\ntp_comm_overlap: false\noverlap_grad_reduce: true\n"
		"overlap_param_gather: true\noverlap_p2p_comm: false\nuse_distributed_optimizer: true\nuse_megatron_fsdp: true\n"
		"data_parallel_sharding_strategy: optim_grads_params\noptimizer: adam\nuse_precision_aware_optimizer: false\n"
		"main_params_dtype: fp32\nmain_grads_dtype: fp32\nexp_avg_dtype: fp32\nexp_avg_sq_dtype: fp32\n"
		"grad_reduce_in_fp32: false\nfp8_param_gather: true\nfp8_dot_product_attention: false\ncpu_offloading: true\n"
		"cpu_offloading_num_layers: 20\nfine_grained_activation_offloading: false\ncross_entropy_fusion_impl: te\n"
		"gradient_accumulation_fusion: false\nstack: nemo-26.04.01\n",
		64, 1, 1 },
	{ "26.08-pretrain-nemotron_3_super-gb300-64-fp8_mx-g512-m1-t1p1c1v1e64",
		"hardware: gb300-nvl72\ngpus: 64\ntask: pretrain\nprecision: fp8_mx\nseq_length: 8192\nglobal_batch_size: 512\n"
		"micro_batch_size: 1\ntensor_model_parallel_size: 1\npipeline_model_parallel_size: 1\ncontext_parallel_size: 1\n"
		"expert_model_parallel_size: 64\nexpert_tensor_parallel_size: 1\nsequence_parallel: false\n"
		"moe_token_dispatcher_type: flex\nmoe_flex_dispatcher_backend: hybridep\noverlap_moe_expert_parallel_comm: false\n"
		"delay_wgrad_compute: false\nmoe_shared_expert_overlap: false\ncuda_graph_impl: transformer_engine\n"
		"cuda_graph_scope: [attn, mamba, moe_router, moe_preprocess]\ntp_comm_overlap: false\noverlap_grad_reduce: true\n"
		"overlap_param_gather: true\nuse_distributed_optimizer: true\noptimizer: adam\n"
		"use_precision_aware_optimizer: false\nmain_params_dtype: fp32\nexp_avg_dtype: fp32\nexp_avg_sq_dtype: fp32\n"
		"grad_reduce_in_fp32: false\nfp8_param_gather: true\nfp8_dot_product_attention: false\ncpu_offloading: false\n"
		"mtp_num_layers: 2\nmoe_router_force_load_balancing: true\ncross_entropy_fusion_impl: te\n"
		"gradient_accumulation_fusion: true\nhybridep_num_sms: 32\nstack: nemo-26.08\n",
		64, 1, 1 },
	{ "26.08-pretrain-deepseek_v3-gb300-256-fp8_mx-g4096-m1-t1p2c1v8e32",
		"hardware: gb300-nvl72\ngpus: 256\ntask: pretrain\nprecision: fp8_mx\nseq_length: 4096\nglobal_batch_size: 4096\n"
		"micro_batch_size: 1\ntensor_model_parallel_size: 1\npipeline_model_parallel_size: 2\n"
		"virtual_pipeline_model_parallel_size: 8\ncontext_parallel_size: 1\nexpert_model_parallel_size: 32\n"
		"expert_tensor_parallel_size: 1\nsequence_parallel: false\nrecompute_granularity: selective\nrecompute_modules: []\n"
		"moe_token_dispatcher_type: flex\nmoe_flex_dispatcher_backend: hybridep\noverlap_moe_expert_parallel_comm: true\n"
		"delay_wgrad_compute: true\nmoe_shared_expert_overlap: false\ncuda_graph_impl: full_iteration\n"
		"tp_comm_overlap: false\noverlap_grad_reduce: true\noverlap_param_gather: true\noverlap_p2p_comm: true\n"
		"use_distributed_optimizer: true\nuse_megatron_fsdp: false\noptimizer: adam\nuse_precision_aware_optimizer: true\n"
		"main_params_dtype: fp32\nmain_grads_dtype: bf16\nexp_avg_dtype: bf16\nexp_avg_sq_dtype: bf16\n"
		"grad_reduce_in_fp32: false\nfp8_param_gather: true\nfp8_dot_product_attention: true\ncpu_offloading: false\n"
		"fine_grained_activation_offloading: false\npipeline_model_parallel_layout: 'Et*4|(t*4|)*14tmL'\nmtp_num_layers: 1\n"
		"account_for_embedding_in_pipeline_split: false\naccount_for_loss_in_pipeline_split: false\n"
		"moe_router_force_load_balancing: true\nmoe_permute_fusion: true\nmoe_router_fusion: true\n"
		"use_transformer_engine_op_fuser: true\nmoe_paged_stash: true\nmoe_expert_rank_capacity_factor: 1.5\n"
		"cross_entropy_fusion_impl: te\nhybridep_num_sms: 32\nstack: nemo-26.08\nfp8_output_proj: true\n",
		256, 2, 8 },
	{ "26.04.01-pretrain-llama3_70b-gb300-64-fp8_cs-g256-m2-t1p1c1v1e1",
		"hardware: gb300-nvl72\ngpus: 64\ntask: pretrain\nprecision: fp8_cs\nseq_length: 8192\nglobal_batch_size: 256\n"
		"micro_batch_size: 2\ntensor_model_parallel_size: 1\npipeline_model_parallel_size: 1\ncontext_parallel_size: 1\n"
		"sequence_parallel: false\ncuda_graph_impl: none\ntp_comm_overlap: false\noverlap_grad_reduce: true\n"
		"overlap_param_gather: true\noverlap_p2p_comm: false\nuse_distributed_optimizer: true\nuse_megatron_fsdp: true\n"
		"data_parallel_sharding_strategy: optim_grads_params\noptimizer: adam\nuse_precision_aware_optimizer: false\n"
		"main_params_dtype: fp32\nmain_grads_dtype: fp32\nexp_avg_dtype: fp32\nexp_avg_sq_dtype: fp32\n"
		"grad_reduce_in_fp32: false\nfp8_param_gather: true\nfp8_dot_product_attention: false\ncpu_offloading: true\n"
		"cpu_offloading_num_layers: 20\nfine_grained_activation_offloading: false\ncross_entropy_fusion_impl: te\n"
		"gradient_accumulation_fusion: false\nstack: nemo-26.04.01\n",
		64, 1, 1 },
	{ "25.09-pretrain-deepseek_v3-h100-1024-fp8_sc-g8192-m1-t2p8c1v4e64",
		"hardware: dgx-h100\ngpus: 1024\ntask: pretrain\nprecision: fp8_sc\nseq_length: 4096\nglobal_batch_size: 8192\n"
		"micro_batch_size: 1\ntensor_model_parallel_size: 2\npipeline_model_parallel_size: 8\n"
		"virtual_pipeline_model_parallel_size: 4\ncontext_parallel_size: 1\nexpert_model_parallel_size: 64\n"
		"expert_tensor_parallel_size: 1\nsequence_parallel: true\nrecompute_granularity: selective\n"
		"recompute_modules: [mla_up_proj, mlp]\nmoe_token_dispatcher_type: flex\nmoe_flex_dispatcher_backend: deepep\n"
		"overlap_moe_expert_parallel_comm: true\ndelay_wgrad_compute: true\nmoe_shared_expert_overlap: false\n"
		"tp_comm_overlap: false\noverlap_grad_reduce: false\noverlap_param_gather: true\noverlap_p2p_comm: true\n"
		"use_distributed_optimizer: true\nuse_megatron_fsdp: false\noptimizer: adam\nuse_precision_aware_optimizer: true\n"
		"main_params_dtype: fp32\nmain_grads_dtype: bf16\nexp_avg_dtype: bf16\nexp_avg_sq_dtype: bf16\n"
		"grad_reduce_in_fp32: false\nfp8_param_gather: false\nfp8_dot_product_attention: false\ncpu_offloading: false\n"
		"pipeline_model_parallel_layout: 'Et|(tt|)*30mL'\nmtp_num_layers: 1\n"
		"account_for_embedding_in_pipeline_split: false\naccount_for_loss_in_pipeline_split: false\n"
		"moe_router_force_load_balancing: true\nmoe_permute_fusion: true\nmoe_router_fusion: true\n"
		"cross_entropy_fusion_impl: te\ngradient_accumulation_fusion: true\ncuda_graph_impl: none\nstack: nemo-25.09\n",
		1024, 8, 4 },
};

Test(query_published, every_key_is_known)
{
	for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
		bool ok = load_text(mb_arena_printf(&arena, MODEL "%s", published[i].text));

		cr_expect(ok && diags.count == 0, "%s: %s", published[i].name, diags.item[0].text);
		cr_expect_eq(q->c.run.gpus, published[i].gpus, "%s", published[i].name);
		cr_expect_eq(q->c.run.plan.pp, published[i].pp, "%s", published[i].name);
		cr_expect(q->c.run.plan.vp == published[i].vp || q->c.run.plan.layout >= 0, "%s", published[i].name);
	}
}

/* What the loader prints reads back as what it read. */
Test(query_published, printed_values_read_back)
{
	for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
		struct mb_run first;
		char *text = mb_arena_strdup(&arena, MODEL);

		if (!load_text(mb_arena_printf(&arena, MODEL "%s", published[i].text)))
			continue;
		first = q->c.run;
		for (int k = 0; k < MB_KEY_COUNT; k++)
			text = mb_arena_printf(&arena, "%s%s: \"%s\"\n", text, mb_keys[k].name, value((enum mb_key_id)k));
		for (char *c = strstr(text, "\"null\""); c != NULL; c = strstr(c, "\"null\""))
			memcpy(c, " null ", 6);
		text = mb_arena_printf(&arena, "%shardware: %s\nstack: %s\n", text, q->c.hardware.name, q->c.stack.name);
		if (!load_text(text)) {
			cr_expect_fail("%s: %s", published[i].name, diags.item[0].text);
			continue;
		}
		for (int k = 0; k < MB_KEY_COUNT; k++) {
			union mb_value a = mb_key_get(&first, &mb_keys[k]), b = mb_key_get(&q->c.run, &mb_keys[k]);

			cr_expect_eq(memcmp(&a, &b, sizeof a), 0, "%s: %s", published[i].name, mb_keys[k].name);
		}
	}
}

Test(query_published, rows_of_measurements_are_runs)
{
	cr_expect(load_text(mb_arena_printf(&arena, "id: x\nsource: y\nmeasured: {step_s: 1}\nrun: {%s, hardware: dgx-h100, gpus: 8, "
	                                    "seq: 4096, gbs: 8, tp: 2}\n", "model: {name: tiny, num_layers: 2, hidden_size: 512, "
	                                    "num_attention_heads: 8, vocab_size: 1000, position_embedding_type: rope}")), "%s",
	          diags.item[0].text);
	cr_expect_eq(q->c.run.plan.tp, 2);
}
