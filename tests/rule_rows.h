/* Runs around every error rule: one that breaks it, one just inside. Shared by the tests of rules and of fixes. */
#ifndef MBSIM_TESTS_RULE_ROWS_H
#define MBSIM_TESTS_RULE_ROWS_H

#include <criterion/criterion.h>

#include "fixture.h"
#include "plan/rules_private.h"

/* What a row needs beyond keys. */
static inline void no_network(struct mb_case *c) { c->hardware.nic_bytes_per_s = 0; }
static inline void a100(struct mb_case *c) { fixture_a100(&c->hardware); }
static inline void b200(struct mb_case *c) { fixture_b200(&c->hardware); }
static inline void gb200(struct mb_case *c) { fixture_gb200(&c->hardware); }
static inline void megatron(struct mb_case *c) { fixture_stack(&c->stack, true); }
static inline void megatron_b200(struct mb_case *c) { megatron(c); b200(c); }
static inline void megatron_env8(struct mb_case *c) { megatron(c); c->run.cuda_device_max_connections = 8; }
static inline void megatron_segments(struct mb_case *c) { megatron(c); c->run.expandable_segments = true; }
static inline void segments(struct mb_case *c) { c->run.expandable_segments = true; }
static inline void env1(struct mb_case *c) { c->run.cuda_device_max_connections = 1; }
static inline void learned(struct mb_case *c) { c->model.position_embedding_type = MB_POS_LEARNED; c->model.max_position_embeddings = 4096; }
static inline void megatron_learned(struct mb_case *c) { megatron(c); learned(c); }
static inline void biased(struct mb_case *c) { c->model.add_bias_linear = true; }
static inline void windowed(struct mb_case *c) { c->model.window_size = 128; c->model.kinds[0].windowed = true; }
static inline void sinks(struct mb_case *c) { c->model.softmax_type = MB_SOFTMAX_LEARNABLE; }
static inline void gdn(struct mb_case *c)
{
	c->model.kinds[0].mixer = MB_MIXER_GDN;
	c->model.linear_num_key_heads = c->model.linear_num_value_heads = 16;
	c->model.linear_key_head_dim = c->model.linear_value_head_dim = 128;
}
static inline void old_torch(struct mb_case *c) { c->stack.torch = MB_VERSION(2, 5, 1); }
static inline void torch_2_8(struct mb_case *c) { c->stack.torch = MB_VERSION(2, 8, 0); }
static inline void te_1_5(struct mb_case *c) { c->stack.transformer_engine = MB_VERSION(1, 5, 0); }
static inline void te_2_0(struct mb_case *c) { c->stack.transformer_engine = MB_VERSION(2, 0, 0); }
static inline void te_2_5(struct mb_case *c) { c->stack.transformer_engine = MB_VERSION(2, 5, 0); }
static inline void b200_te_2_5(struct mb_case *c) { b200(c); te_2_5(c); }
static inline void te_2_6(struct mb_case *c) { c->stack.transformer_engine = MB_VERSION(2, 6, 0); }
static inline void bad_groups(struct mb_case *c) { c->model.moe_router_group_topk = 9; }
static inline void softmax_bias(struct mb_case *c) { c->model.moe_router_score_function = MB_SCORE_SOFTMAX; }
static inline void gated_mla(struct mb_case *c) { c->model.attention_output_gate = true; }
static inline void mtp_dense(struct mb_case *c) { c->model.mtp_layers[0] = 0; }
static inline void gelu(struct mb_case *c) { c->model.activation = MB_ACT_GELU; }
static inline void rubin(struct mb_case *c) { c->hardware.architecture = MB_RUBIN; c->hardware.compute_capability = 110; }

#define FULL "recompute=full method=uniform recompute_layers=1"
#define OVERLAP "ep_overlap=true"

/* Each error rule: a run that breaks it, and one just inside. */
static const struct row {
	const char *name;
	enum mb_rule_index rule;
	void (*fixture)(struct mb_case *c);
	void (*tweak)(struct mb_case *c);
	const char *broken, *inside;
} rows[] = {
	{ "64 GPUs without a network", MB_RULE_H1, fixture_dense, no_network, "gpus=64", "gpus=8 gbs=8" },
	{ "TP3, 64 heads", MB_RULE_W5, fixture_dense, NULL, "tp=3 gpus=6 gbs=6", "tp=4" },
	{ "TP16 of 24 heads, 8 groups", MB_RULE_W6, fixture_moe, NULL, "tp=32 ep=1 sp=true tp=6", "tp=8 sp=true" },
	{ "TP x PP over 64", MB_RULE_W1, fixture_dense, NULL, "tp=8 pp=5", "tp=8 pp=4" },
	{ "250 samples on 64", MB_RULE_W4, fixture_dense, NULL, "gbs=250", "gbs=256" },
	{ "EP 64 x PP 2 over 64", MB_RULE_W2, fixture_moe, NULL, "ep=64 pp=2", "ep=32 pp=2" },
	{ "tp-pp-dp", MB_RULE_W3, fixture_moe, NULL, "tp_pp_dp=true ep=8", "tp_pp_dp=true ep=1" },
	{ "EP16, 72 experts", MB_RULE_W7, fixture_moe, NULL, "ep=3 gpus=192 gbs=192", "ep=16" },
	{ "EP of a dense model", MB_RULE_W7, fixture_dense, NULL, "ep=2", "ep=1" },
	{ "seq 4100 on CP4", MB_RULE_W8, fixture_dense, NULL, "seq=4100 cp=4", "seq=4104 cp=4" },
	{ "SP with an odd sequence", MB_RULE_W9, fixture_dense, NULL, "tp=8 sp=true seq=4100", "tp=4 sp=true seq=4100" },
	{ "ETP 64 of 768", MB_RULE_W12, fixture_moe, NULL, "etp=5 gpus=40 gbs=40", "etp=4" },
	{ "Mamba groups", MB_RULE_W13, fixture_hybrid, NULL, "tp=16 sp=true", "tp=8 sp=true" },
	{ "linear heads", MB_RULE_W14, fixture_dense, gdn, "tp=8 cp=4", "tp=8 cp=2" },
	{ "fused down projection", MB_RULE_W15, fixture_mla, NULL, "mla_down_fusion=true tp=128 sp=true gpus=128", "mla_down_fusion=true tp=64 sp=true" },
	{ "mxfp8 Mamba projection", MB_RULE_W16, fixture_hybrid, b200, "precision=fp8_mx tp=4 sp=true", "precision=fp8_mx tp=2 sp=true" },
	{ "learned positions", MB_RULE_W17, fixture_dense, learned, "seq=8192", "seq=4096" },
	{ "optimizer instances", MB_RULE_W18, fixture_dense, NULL, "dist_opt_instances=3", "dist_opt_instances=2" },
	{ "packed samples", MB_RULE_W19, fixture_dense, NULL, "packed=true mbs=2", "packed=true mbs=1" },
	{ "VP without PP", MB_RULE_P1, fixture_dense, NULL, "vp=2", "vp=2 pp=2" },
	{ "VP on 2 ranks, no p2p overlap", MB_RULE_P1_p2p, fixture_dense, megatron, "pp=2 vp=2 p2p_overlap=false", "pp=4 vp=2 p2p_overlap=false" },
	{ "hybrid with VP", MB_RULE_P10, fixture_hybrid, NULL, "pp=2 vp=2", "pp=2 vp=1" },
	{ "too many stages", MB_RULE_P16, fixture_dense, NULL, "pp=1024 gpus=1024 gbs=1024", "pp=80 gpus=80 gbs=80" },
	{ "80 layers on PP 3", MB_RULE_W10, fixture_dense, NULL, "pp=3 gpus=6 gbs=6", "pp=4" },
	{ "61 layers on PP 4", MB_RULE_W10, fixture_mla, NULL, "pp=4 acc_loss=true", "pp=2 acc_loss=true" },
	{ "counts and accounts", MB_RULE_P6, fixture_dense, NULL, "pp=4 first_layers=20 acc_loss=true", "pp=4 first_layers=20" },
	{ "odd middle", MB_RULE_P7, fixture_dense, NULL, "pp=4 first_layers=18", "pp=4 first_layers=17" },
	{ "VP 3 of 20 layers", MB_RULE_W11, fixture_dense, NULL, "pp=4 vp=3", "pp=4 vp=5" },
	{ "M 12 in groups of 8", MB_RULE_P3, fixture_dense, NULL, "gpus=8 pp=8 vp=2 gbs=12", "gpus=8 pp=8 vp=2 gbs=16" },
	{ "M 4 below PP 8", MB_RULE_P3, fixture_dense, NULL, "gpus=8 pp=8 vp=2 gbs=4", "gpus=8 pp=8 vp=2 gbs=8" },
	{ "group below PP", MB_RULE_P3, fixture_dense, NULL, "gpus=8 pp=8 vp=2 gbs=16 vp_group=4", "gpus=8 pp=8 vp=2 gbs=32 vp_group=16" },
	{ "batched and overlapped", MB_RULE_P4, fixture_dense, NULL, "pp=4 vp=2 p2p_overlap=true batch_p2p=true", "pp=4 vp=2 p2p_overlap=true batch_p2p=false" },
	{ "flush without overlap", MB_RULE_P4, fixture_dense, NULL, "pp=4 p2p_flush=true", "pp=4 vp=2 p2p_overlap=true p2p_flush=true" },
	{ "deferred head gradient", MB_RULE_P12, fixture_dense, NULL, "defer_wgrad=true", "defer_wgrad=true pp=2" },
	{ "MTP, learned positions", MB_RULE_P13, fixture_mla, megatron_learned, "mtp=1", "mtp=0" },
	{ "MoE, TP2, SP off", MB_RULE_T2, fixture_moe, NULL, "tp=2", "tp=2 sp=true" },
	{ "TP overlap without SP", MB_RULE_T3_megatron, fixture_dense, megatron, "tp=2 tp_overlap=true", "tp=2 tp_overlap=true sp=true" },
	{ "8 connections", MB_RULE_T4_set, fixture_dense, megatron_env8, "tp=2", "tp=1" },
	{ "biased experts", MB_RULE_T6, fixture_moe, biased, "etp=2", "etp=1" },
	{ "hierarchical without sizes", MB_RULE_C2, fixture_dense, NULL, "cp=4 cp_comm_type=a2a+p2p", "cp=4 cp_comm_type=a2a+p2p cp_sizes=2" },
	{ "a2a, CP 8, 4 groups", MB_RULE_C3, fixture_moe, NULL, "cp=8 cp_comm_type=a2a", "cp=4 cp_comm_type=a2a" },
	{ "window over p2p", MB_RULE_C4, fixture_dense, windowed, "cp=2", "cp=2 cp_comm_type=all_gather" },
	{ "sinks over all_gather", MB_RULE_C4_sinks, fixture_dense, sinks, "cp=2 cp_comm_type=all_gather", "cp=2 cp_comm_type=a2a" },
	{ "fine-tuning with CP", MB_RULE_C7, fixture_dense, NULL, "task=sft cp=2", "task=sft cp=2 per_token=true average=false" },
	{ "CP of local attention", MB_RULE_C9, fixture_dense, NULL, "impl=local cp=2", "impl=local" },
	{ "full without method", MB_RULE_R2, fixture_dense, NULL, "recompute=full recompute_layers=1", FULL },
	{ "full without layers", MB_RULE_R2, fixture_dense, NULL, "recompute=full method=block", "recompute=full method=block recompute_layers=4" },
	{ "selective with layers", MB_RULE_R3, fixture_dense, NULL, "recompute=selective recompute_layers=1", "recompute=selective" },
	{ "selective with method", MB_RULE_R4_megatron, fixture_dense, megatron, "recompute=selective method=block", "recompute=selective" },
	{ "moe_act, no grouped gemm", MB_RULE_R9, fixture_moe, NULL, "recompute=selective modules=moe_act grouped_gemm=false", "recompute=selective modules=moe_act" },
	{ "mla_up_proj without MLA", MB_RULE_R10, fixture_moe, NULL, "recompute=selective modules=mla_up_proj", "recompute=selective modules=moe_act" },
	{ "gdn_norm_out without GDN", MB_RULE_R11, fixture_moe, NULL, "recompute=selective modules=gdn_norm_out", "recompute=selective modules=layernorm" },
	{ "shared experts twice", MB_RULE_R13, fixture_mla, NULL, "recompute=selective modules=shared_experts shared_overlap=true", "recompute=selective modules=shared_experts" },
	{ "delayed, moe_act", MB_RULE_R14, fixture_moe, NULL, "precision=fp8_ds recompute=selective modules=moe_act", "precision=fp8_cs recompute=selective modules=moe_act" },
	{ "delayed, layernorm", MB_RULE_R14, fixture_moe, NULL, "precision=fp8_ds recompute=selective modules=layernorm", "precision=fp8_ds recompute=selective modules=moe" },
	{ "fp8 on old TE", MB_RULE_R14_te, fixture_moe, te_2_5, "precision=fp8_cs recompute=selective modules=moe_act", "precision=bf16 recompute=selective modules=moe_act" },
	{ "moe with graphed router", MB_RULE_R15, fixture_moe, NULL, "recompute=selective modules=moe graph_impl=transformer_engine graph_scope=moe_router", "recompute=selective modules=moe graph_impl=transformer_engine graph_scope=attn" },
	{ "full with scoped graphs", MB_RULE_R16, fixture_dense, NULL, FULL " graph_impl=transformer_engine graph_scope=attn", FULL " graph_impl=full_iteration" },
	{ "mhc", MB_RULE_R17, fixture_moe, NULL, "recompute=selective modules=mhc", "recompute=selective modules=none" },
	{ "dropout in a graph", MB_RULE_R18, fixture_dense, NULL, "attention_dropout=0.1 recompute=selective modules=core_attn graph_impl=transformer_engine graph_scope=attn", "attention_dropout=0.1 recompute=selective modules=core_attn graph_impl=transformer_engine graph_scope=mlp" },
	{ "MTP, uniform 2", MB_RULE_R21, fixture_mla, NULL, "recompute=full method=uniform recompute_layers=2", FULL },
	{ "offload and recompute", MB_RULE_R23, fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=8 recompute=selective modules=mlp", "cpu_offloading=true cpu_offloading_layers=8" },
	{ "offload and pipeline", MB_RULE_O1_pp, fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=8 pp=2", "cpu_offloading=true cpu_offloading_layers=8" },
	{ "offload every layer", MB_RULE_O1, fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=80", "cpu_offloading=true cpu_offloading_layers=79" },
	{ "offload nothing", MB_RULE_O1_what, fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=8 cpu_offloading_activations=false", "cpu_offloading=true cpu_offloading_layers=8 cpu_offloading_activations=false cpu_offloading_weights=true" },
	{ "offload and graphs", MB_RULE_G8, fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=8 graph_impl=transformer_engine graph_scope=attn", "cpu_offloading=true cpu_offloading_layers=8 graph_impl=full_iteration" },
	{ "both offloads", MB_RULE_O2, fixture_dense, NULL, "cpu_offloading=true cpu_offloading_layers=8 fine_offload=true offload_modules=attn_norm", "fine_offload=true offload_modules=attn_norm" },
	{ "offload nothing", MB_RULE_O2, fixture_dense, NULL, "fine_offload=true", "fine_offload=true offload_modules=core_attn" },
	{ "attn_proj alone", MB_RULE_O2, fixture_dense, NULL, "fine_offload=true offload_modules=attn_proj", "fine_offload=true offload_modules=attn_proj+core_attn" },
	{ "fused group MLP", MB_RULE_O2_fuser, fixture_moe, NULL, "fine_offload=true offload_modules=fused_group_mlp", "fine_offload=true offload_modules=fused_group_mlp op_fuser=true" },
	{ "moe recompute, moe_act offload", MB_RULE_R24, fixture_moe, NULL, "recompute=selective modules=moe fine_offload=true offload_modules=moe_act", "recompute=selective modules=moe fine_offload=true offload_modules=core_attn" },
	{ "gdp", MB_RULE_R24_gdp, fixture_dense, NULL, "recompute=selective modules=gdp_in_proj fine_offload=true offload_modules=gdp_qkv", "recompute=selective modules=gdp_qkv fine_offload=true offload_modules=gdp_qkv" },
	{ "offload, graph without warm-up", MB_RULE_O3, fixture_dense, NULL, "fine_offload=true offload_modules=core_attn graph_impl=transformer_engine graph_scope=mlp graph_warmup=0", "fine_offload=true offload_modules=core_attn graph_impl=transformer_engine graph_scope=mlp" },
	{ "captured offload, old torch", MB_RULE_O3_versions, fixture_dense, torch_2_8, "fine_offload=true offload_modules=core_attn graph_impl=transformer_engine graph_scope=attn", "fine_offload=true offload_modules=core_attn graph_impl=transformer_engine graph_scope=mlp" },
	{ "optimizer offload", MB_RULE_O4, fixture_dense, megatron, "opt_offload=true", "opt_offload=true pao=true" },
	{ "paged stash", MB_RULE_O5, fixture_moe, NULL, "paged_stash=true", "paged_stash=true rank_capacity=1.5 dispatcher=flex backend=hybridep op_fuser=true" },
	{ "flex on one rank", MB_RULE_M2, fixture_moe, NULL, "ep=1 dispatcher=flex backend=deepep", "ep=2 dispatcher=flex backend=deepep" },
	{ "DeepEP on GB200", MB_RULE_M4, fixture_moe, gb200, "dispatcher=flex backend=deepep", "dispatcher=flex backend=hybridep" },
	{ "HybridEP beyond Blackwell", MB_RULE_M4_hybridep, fixture_moe, rubin, "dispatcher=flex backend=hybridep", "dispatcher=alltoall" },
	{ "DeepEP padded", MB_RULE_M6, fixture_moe, NULL, "dispatcher=flex backend=deepep capacity=1 pad_capacity=true", "dispatcher=flex backend=hybridep capacity=1 pad_capacity=true" },
	{ "ncclep by alltoall", MB_RULE_M10, fixture_moe, NULL, "dispatcher=alltoall backend=ncclep", "dispatcher=flex backend=ncclep" },
	{ "odd multiprocessors", MB_RULE_M20, fixture_moe, NULL, "dispatcher=flex backend=deepep num_sms=21", "dispatcher=flex backend=deepep num_sms=20" },
	{ "rank capacity", MB_RULE_M9, fixture_moe, NULL, "rank_capacity=1.5", "rank_capacity=1.5 dispatcher=flex backend=ncclep" },
	{ "padding in bf16", MB_RULE_M13, fixture_moe, NULL, "pad_quant=true", "pad_quant=true precision=fp8_cs" },
	{ "shared overlap by allgather", MB_RULE_M11, fixture_mla, NULL, "shared_overlap=true dispatcher=allgather", "shared_overlap=true" },
	{ "padding without capacity", MB_RULE_M8, fixture_moe, NULL, "pad_capacity=true", "pad_capacity=true capacity=1" },
	{ "grouped tensor in fp8_cs", MB_RULE_M19, fixture_moe, b200, "grouped_tensor=true precision=fp8_cs", "grouped_tensor=true precision=fp8_mx" },
	{ "overlap with EP 1", MB_RULE_EP1, fixture_moe, NULL, OVERLAP " ep=1", OVERLAP " ep=2" },
	{ "overlap by allgather", MB_RULE_EP2, fixture_moe, NULL, OVERLAP " dispatcher=allgather", OVERLAP " dispatcher=alltoall" },
	{ "overlap in fp32", MB_RULE_EP3, fixture_moe, NULL, OVERLAP " precision=fp32", OVERLAP " precision=fp16" },
	{ "overlap, p=4, no VP", MB_RULE_EP5, fixture_moe, NULL, OVERLAP " pp=4", OVERLAP " pp=4 vp=2" },
	{ "overlap, full", MB_RULE_EP6, fixture_moe, NULL, OVERLAP " " FULL, OVERLAP },
	{ "overlap, moe", MB_RULE_EP6, fixture_moe, NULL, OVERLAP " recompute=selective modules=moe", OVERLAP " recompute=selective modules=moe_act+layernorm" },
	{ "overlap, moe listed only", MB_RULE_EP6, fixture_moe, NULL, OVERLAP " modules=moe", OVERLAP " modules=mlp" },
	{ "two overlaps", MB_RULE_EP7, fixture_mla, NULL, OVERLAP " shared_overlap=true", OVERLAP },
	{ "overlap, MTP 2", MB_RULE_EP8, fixture_mla, NULL, OVERLAP " mtp=2", OVERLAP " mtp=1" },
	{ "overlap, mlp graph", MB_RULE_EP9, fixture_mla, NULL, OVERLAP " graph_impl=transformer_engine graph_scope=attn+mlp", OVERLAP " graph_impl=transformer_engine graph_scope=attn+moe_router+moe_preprocess" },
	{ "overlap, ncclep offload", MB_RULE_EP10, fixture_moe, NULL, OVERLAP " dispatcher=flex backend=ncclep fine_offload=true offload_modules=expert_fc1", OVERLAP " dispatcher=flex backend=hybridep fine_offload=true offload_modules=expert_fc1" },
	{ "overlap, FSDP, PP", MB_RULE_EP11, fixture_moe, NULL, OVERLAP " fsdp=true pp=2 vp=2", OVERLAP " fsdp=true" },
	{ "delay alone", MB_RULE_EP12, fixture_moe, NULL, "delay_wgrad=true", OVERLAP " delay_wgrad=true" },
	{ "delay, attention graph, no fusion", MB_RULE_EP12_versions, fixture_moe, NULL, OVERLAP " delay_wgrad=true gaf=false graph_impl=transformer_engine graph_scope=attn", OVERLAP " delay_wgrad=true gaf=false graph_impl=transformer_engine graph_scope=moe_router" },
	{ "early release alone", MB_RULE_EP14, fixture_moe, NULL, "early_release=true", OVERLAP " early_release=true" },
	{ "full iteration with modules", MB_RULE_G1, fixture_dense, NULL, "graph_impl=full_iteration graph_scope=attn", "graph_impl=full_iteration" },
	{ "local modules", MB_RULE_G2, fixture_dense, NULL, "graph_impl=local graph_scope=attn", "graph_impl=local graph_scope=full_iteration" },
	{ "graphs without TE's RNG", MB_RULE_G3, fixture_dense, NULL, "graph_impl=transformer_engine graph_scope=attn te_rng=false", "graph_impl=none te_rng=false" },
	{ "NaN check in a graph", MB_RULE_G4, fixture_dense, NULL, "graph_impl=full_iteration check_nan=true", "graph_impl=transformer_engine graph_scope=attn check_nan=true" },
	{ "moe and router", MB_RULE_G5, fixture_moe, NULL, "graph_impl=transformer_engine graph_scope=moe+moe_router", "graph_impl=transformer_engine graph_scope=moe_router" },
	{ "preprocess alone", MB_RULE_G5, fixture_moe, NULL, "graph_impl=transformer_engine graph_scope=moe_preprocess", "graph_impl=transformer_engine graph_scope=moe_router+moe_preprocess" },
	{ "mlp of an MoE", MB_RULE_G5, fixture_moe, NULL, "graph_impl=transformer_engine graph_scope=mlp", "graph_impl=transformer_engine graph_scope=attn" },
	{ "dropless moe graph", MB_RULE_G5_moe, fixture_moe, NULL, "graph_impl=transformer_engine graph_scope=moe", "graph_impl=transformer_engine graph_scope=moe capacity=1 pad_capacity=true" },
	{ "preprocess with padding", MB_RULE_G6, fixture_moe, NULL, "precision=fp8_cs graph_impl=transformer_engine graph_scope=moe_router+moe_preprocess pad_quant=true", "precision=fp8_cs graph_impl=transformer_engine graph_scope=moe_router+moe_preprocess" },
	{ "segments", MB_RULE_G9, fixture_dense, megatron_segments, "graph_impl=transformer_engine graph_scope=attn", "graph_impl=none" },
	{ "dropless experts in a whole-iteration graph", MB_RULE_G13, fixture_moe, NULL, "dispatcher=flex backend=hybridep graph_impl=full_iteration", "dispatcher=flex backend=hybridep op_fuser=true graph_impl=full_iteration rank_capacity=1.5" },
	{ "DeepEP in a graph", MB_RULE_G11, fixture_moe, NULL, "dispatcher=flex backend=deepep graph_impl=full_iteration", "dispatcher=flex backend=deepep graph_impl=transformer_engine graph_scope=attn+moe_router" },
	{ "fp8 on Ampere", MB_RULE_F2, fixture_dense, a100, "precision=fp8_cs", "precision=bf16" },
	{ "mxfp8 on Hopper", MB_RULE_F2, fixture_dense, NULL, "precision=fp8_mx", "precision=fp8_sc" },
	{ "blockwise on Blackwell", MB_RULE_F2, fixture_dense, b200, "precision=fp8_sc", "precision=fp8_mx" },
	{ "nvfp4 on Hopper", MB_RULE_F2, fixture_dense, NULL, "precision=nvfp4", "precision=fp8_ds" },
	{ "bf16 ends, delayed", MB_RULE_F2_ends, fixture_dense, NULL, "bf16_ends=true precision=fp8_ds", "bf16_ends=true precision=fp8_cs" },
	{ "bf16 ends beyond a stage", MB_RULE_F2_count, fixture_dense, NULL, "bf16_ends=true precision=fp8_cs pp=8 bf16_start=11", "bf16_ends=true precision=fp8_cs pp=8 bf16_start=10" },
	{ "fp8 gather in bf16", MB_RULE_F1, fixture_dense, NULL, "fp8_gather=true", "fp8_gather=true precision=fp8_cs" },
	{ "fp8 gather, no dist-opt", MB_RULE_F3, fixture_dense, NULL, "fp8_gather=true precision=fp8_cs dist_opt=false", "fp8_gather=true precision=fp8_cs" },
	{ "mxfp8 gather, own buffer", MB_RULE_F3_reuse, fixture_dense, b200, "fp8_gather=true precision=fp8_mx reuse_grad_buf=false", "fp8_gather=true precision=fp8_mx reuse_grad_buf=true" },
	{ "narrow moments", MB_RULE_F5, fixture_dense, NULL, "exp_avg=bf16", "exp_avg=bf16 pao=true" },
	{ "precision-aware sgd", MB_RULE_F5, fixture_dense, NULL, "pao=true optimizer=sgd", "optimizer=sgd" },
	{ "fp8 store of GELU", MB_RULE_F15, fixture_dense, gelu, "fp8_act_store=true", "fp8_act_store=false" },
	{ "muon and FSDP", MB_RULE_F17, fixture_dense, NULL, "optimizer=muon fsdp=true", "optimizer=muon" },
	{ "deterministic", MB_RULE_F18, fixture_dense, NULL, "deterministic=true", "deterministic=true ce_fusion=false" },
	{ "te cross entropy", MB_RULE_F14, fixture_dense, megatron, "ce_fusion=true ce_impl=te", "ce_fusion=true ce_impl=native" },
	{ "gather without reduce", MB_RULE_F7, fixture_dense, megatron, "param_overlap=true grad_overlap=false", "param_overlap=true grad_overlap=true" },
	{ "FSDP order", MB_RULE_F11, fixture_dense, NULL, "fsdp=true tp_pp_dp=true", "fsdp=true" },
	{ "FSDP, one connection", MB_RULE_F11_env, fixture_dense, env1, "fsdp=true", "fsdp=false" },
};

/* Rules of model and stack alone: the tweak breaks them, without it they hold. */
static const struct {
	enum mb_rule_index rule;
	void (*fixture)(struct mb_case *c);
	void (*tweak)(struct mb_case *c);
	const char *settings;
} fixed_rows[] = {
	{ MB_RULE_M15, fixture_mla, bad_groups, "" },
	{ MB_RULE_M16, fixture_mla, softmax_bias, "" },
	{ MB_RULE_M17, fixture_moe, te_1_5, "precision=fp8_cs" },
	{ MB_RULE_M18, fixture_moe, te_2_0, "permute_fusion=true" },
	{ MB_RULE_F16, fixture_mla, gated_mla, "" },
	{ MB_RULE_EP4, fixture_moe, old_torch, OVERLAP },
	{ MB_RULE_EP8, fixture_mla, mtp_dense, OVERLAP },
	{ MB_RULE_EP12_versions, fixture_moe, te_2_6, OVERLAP " delay_wgrad=true" },
	{ MB_RULE_F1, fixture_dense, b200_te_2_5, "precision=nvfp4" },
	{ MB_RULE_F11_fusion, fixture_dense, te_2_6, "fsdp=true" },
};

static inline void build(struct mb_case *c, void (*fixture)(struct mb_case *), void (*tweak)(struct mb_case *), const char *settings)
{
	fixture(c);
	if (tweak != NULL)
		tweak(c);
	cr_assert(fixture_settings(c, NULL, settings), "bad settings: %s", settings);
}

#endif
