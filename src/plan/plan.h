/* One point of the search space: every setting that `search` may open. A plain value, compared field by field. */
#ifndef MBSIM_PLAN_PLAN_H
#define MBSIM_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum mb_granularity { MB_RECOMPUTE_NONE, MB_RECOMPUTE_SELECTIVE, MB_RECOMPUTE_FULL };
enum mb_method { MB_METHOD_NONE, MB_METHOD_UNIFORM, MB_METHOD_BLOCK };
enum mb_dispatcher { MB_DISPATCH_ALLGATHER, MB_DISPATCH_ALLTOALL, MB_DISPATCH_FLEX };
enum mb_backend { MB_BACKEND_NONE, MB_BACKEND_DEEPEP, MB_BACKEND_HYBRIDEP, MB_BACKEND_NCCLEP };
enum mb_cp_comm { MB_CP_P2P, MB_CP_ALL_GATHER, MB_CP_A2A, MB_CP_A2A_P2P };
enum mb_graph { MB_GRAPH_NONE, MB_GRAPH_LOCAL, MB_GRAPH_TE, MB_GRAPH_FULL };
enum mb_sharding { MB_SHARD_NONE, MB_SHARD_OPTIM, MB_SHARD_OPTIM_GRADS, MB_SHARD_FULL };

/* Recompute modules, as bits. MB_FULL is not a module: it marks full recompute where modules are expected. */
enum mb_module {
	MB_CORE_ATTN = 1 << 0, MB_MLA_UP_PROJ = 1 << 1, MB_LAYERNORM_MODULE = 1 << 2, MB_MOE_ACT = 1 << 3, MB_MLP = 1 << 4,
	MB_MOE = 1 << 5, MB_SHARED_EXPERTS = 1 << 6, MB_GDN_NORM_OUT = 1 << 7, MB_GDP_IN_PROJ = 1 << 8, MB_GDP_QKV = 1 << 9,
	MB_MHC = 1 << 10, MB_FULL = 1 << 11,
	MB_ALL_MODULES = MB_FULL - 1
};

/* Regions that CUDA graphs may capture, as bits. */
enum mb_scope {
	MB_SCOPE_ATTN = 1 << 0, MB_SCOPE_MLP = 1 << 1, MB_SCOPE_MOE = 1 << 2, MB_SCOPE_MOE_ROUTER = 1 << 3,
	MB_SCOPE_MOE_PREPROCESS = 1 << 4, MB_SCOPE_MAMBA = 1 << 5, MB_SCOPE_FULL_ITERATION = 1 << 6
};

/* Activations that fine-grained offloading may move to the host, as bits. */
enum mb_offload {
	MB_OFF_ATTN_NORM = 1 << 0, MB_OFF_QKV_LINEAR = 1 << 1, MB_OFF_CORE_ATTN = 1 << 2, MB_OFF_ATTN_PROJ = 1 << 3,
	MB_OFF_MLP_NORM = 1 << 4, MB_OFF_EXPERT_FC1 = 1 << 5, MB_OFF_MOE_ACT = 1 << 6, MB_OFF_FUSED_GROUP_MLP = 1 << 7,
	MB_OFF_GDP_QKV = 1 << 8
};

struct mb_plan {
	/* Parallel sizes. vp 1: no virtual stages. */
	int tp, cp, pp, vp, ep, etp;
	int micro_batch_size;
	bool sequence_parallel;
	enum mb_cp_comm cp_comm_type;
	int cp_a2a_size;                /* low-level group of a2a+p2p; 0 otherwise */

	/* Stage split. Counts of 0: even. layout: index into mb_case.layouts; -1: none. */
	int first_stage_layers, last_stage_layers;
	bool account_for_embedding, account_for_loss;
	int layout;
	int microbatch_group_size;      /* per virtual stage; 0: pp */

	enum mb_granularity recompute;
	enum mb_method recompute_method;
	int recompute_num_layers;
	unsigned recompute_modules;     /* enum mb_module bits; only with selective */

	enum mb_dispatcher dispatcher;
	enum mb_backend backend;
	bool overlap_moe_expert_parallel_comm, delay_wgrad_compute, moe_shared_expert_overlap;
	bool tp_comm_overlap;
	bool overlap_p2p_comm;

	enum mb_graph cuda_graph_impl;
	unsigned cuda_graph_scope;      /* enum mb_scope bits */

	bool cpu_offloading;
	int cpu_offloading_num_layers;
	bool fine_grained_activation_offloading;
	unsigned offload_modules;       /* enum mb_offload bits */
	double activation_offload_fraction;
	bool optimizer_cpu_offload;
	double optimizer_offload_fraction;

	bool use_distributed_optimizer, use_megatron_fsdp;
	enum mb_sharding sharding;      /* of Megatron-FSDP */
	bool overlap_grad_reduce, overlap_param_gather;
};

#endif
