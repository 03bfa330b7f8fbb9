#include "plan/case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * Names as Megatron Core and Megatron Bridge spell them; the first spelling of a value is the one printed.
 * mixed_precision recipe names are accepted wherever a precision is.
 */
const struct mb_name mb_precision_names[] = {
	{ "bf16", MB_BF16 }, { "fp16", MB_FP16 }, { "fp8_cs", MB_FP8_CS }, { "fp8_ds", MB_FP8_DS }, { "fp8_sc", MB_FP8_SC },
	{ "fp8_mx", MB_FP8_MX }, { "nvfp4", MB_NVFP4 }, { "fp32", MB_FP32 },
	{ "bf16_mixed", MB_BF16 }, { "fp16_mixed", MB_FP16 },
	{ "bf16_with_fp8_current_scaling_mixed", MB_FP8_CS }, { "bf16_with_fp8_delayed_scaling_mixed", MB_FP8_DS },
	{ "bf16_with_fp8_subchannel_scaling_mixed", MB_FP8_SC }, { "bf16_with_mxfp8_mixed", MB_FP8_MX },
	{ "bf16_with_nvfp4_mixed", MB_NVFP4 },
	{ NULL, 0 }
};

const struct mb_name mb_task_names[] = {
	{ "pretrain", MB_PRETRAIN }, { "sft", MB_SFT }, { "lora", MB_LORA }, { NULL, 0 }
};

const struct mb_name mb_optimizer_names[] = {
	{ "adam", MB_ADAM }, { "sgd", MB_SGD }, { "muon", MB_MUON }, { "dist_muon", MB_MUON }, { NULL, 0 }
};

const struct mb_name mb_dtype_names[] = {
	{ "fp32", MB_DT_FP32 }, { "bf16", MB_DT_BF16 }, { "fp16", MB_DT_FP16 }, { "fp8", MB_DT_FP8 },
	{ "float32", MB_DT_FP32 }, { "bfloat16", MB_DT_BF16 }, { "float16", MB_DT_FP16 }, { "uint8", MB_DT_FP8 },
	{ "torch.float32", MB_DT_FP32 }, { "torch.bfloat16", MB_DT_BF16 }, { "torch.float16", MB_DT_FP16 },
	{ "torch.uint8", MB_DT_FP8 },
	{ NULL, 0 }
};

const struct mb_name mb_ce_names[] = { { "native", MB_CE_NATIVE }, { "te", MB_CE_TE }, { NULL, 0 } };

const struct mb_name mb_impl_names[] = {
	{ "transformer_engine", MB_IMPL_TE }, { "local", MB_IMPL_LOCAL }, { NULL, 0 }
};

const struct mb_name mb_attention_backend_names[] = {
	{ "auto", MB_ATTN_AUTO }, { "flash", MB_ATTN_FLASH }, { "fused", MB_ATTN_FUSED }, { "unfused", MB_ATTN_UNFUSED },
	{ "local", MB_ATTN_LOCAL }, { NULL, 0 }
};

const struct mb_name mb_granularity_names[] = {
	{ "null", MB_RECOMPUTE_NONE }, { "none", MB_RECOMPUTE_NONE }, { "selective", MB_RECOMPUTE_SELECTIVE },
	{ "full", MB_RECOMPUTE_FULL }, { NULL, 0 }
};

const struct mb_name mb_method_names[] = {
	{ "null", MB_METHOD_NONE }, { "none", MB_METHOD_NONE }, { "uniform", MB_METHOD_UNIFORM }, { "block", MB_METHOD_BLOCK },
	{ NULL, 0 }
};

const struct mb_name mb_dispatcher_names[] = {
	{ "allgather", MB_DISPATCH_ALLGATHER }, { "alltoall", MB_DISPATCH_ALLTOALL }, { "flex", MB_DISPATCH_FLEX }, { NULL, 0 }
};

const struct mb_name mb_backend_names[] = {
	{ "null", MB_BACKEND_NONE }, { "none", MB_BACKEND_NONE }, { "deepep", MB_BACKEND_DEEPEP },
	{ "hybridep", MB_BACKEND_HYBRIDEP }, { "ncclep", MB_BACKEND_NCCLEP }, { NULL, 0 }
};

const struct mb_name mb_cp_comm_names[] = {
	{ "p2p", MB_CP_P2P }, { "all_gather", MB_CP_ALL_GATHER }, { "allgather", MB_CP_ALL_GATHER }, { "a2a", MB_CP_A2A },
	{ "a2a+p2p", MB_CP_A2A_P2P }, { NULL, 0 }
};

const struct mb_name mb_graph_names[] = {
	{ "none", MB_GRAPH_NONE }, { "null", MB_GRAPH_NONE }, { "local", MB_GRAPH_LOCAL }, { "transformer_engine", MB_GRAPH_TE },
	{ "full_iteration", MB_GRAPH_FULL }, { NULL, 0 }
};

const struct mb_name mb_sharding_names[] = {
	{ "no_shard", MB_SHARD_NONE }, { "optim", MB_SHARD_OPTIM }, { "optim_grads", MB_SHARD_OPTIM_GRADS },
	{ "optim_grads_params", MB_SHARD_FULL }, { NULL, 0 }
};

const struct mb_name mb_module_names[] = {
	{ "core_attn", MB_CORE_ATTN }, { "mla_up_proj", MB_MLA_UP_PROJ }, { "layernorm", MB_LAYERNORM_MODULE },
	{ "moe_act", MB_MOE_ACT }, { "mlp", MB_MLP }, { "moe", MB_MOE }, { "shared_experts", MB_SHARED_EXPERTS },
	{ "gdn_norm_out", MB_GDN_NORM_OUT }, { "gdp_in_proj", MB_GDP_IN_PROJ }, { "gdp_qkv", MB_GDP_QKV }, { "mhc", MB_MHC },
	{ NULL, 0 }
};

const struct mb_name mb_scope_names[] = {
	{ "attn", MB_SCOPE_ATTN }, { "mlp", MB_SCOPE_MLP }, { "moe", MB_SCOPE_MOE }, { "moe_router", MB_SCOPE_MOE_ROUTER },
	{ "moe_preprocess", MB_SCOPE_MOE_PREPROCESS }, { "mamba", MB_SCOPE_MAMBA },
	{ "full_iteration", MB_SCOPE_FULL_ITERATION }, { NULL, 0 }
};

const struct mb_name mb_offload_names[] = {
	{ "attn_norm", MB_OFF_ATTN_NORM }, { "qkv_linear", MB_OFF_QKV_LINEAR }, { "core_attn", MB_OFF_CORE_ATTN },
	{ "attn_proj", MB_OFF_ATTN_PROJ }, { "mlp_norm", MB_OFF_MLP_NORM }, { "expert_fc1", MB_OFF_EXPERT_FC1 },
	{ "moe_act", MB_OFF_MOE_ACT }, { "fused_group_mlp", MB_OFF_FUSED_GROUP_MLP }, { "gdp_qkv", MB_OFF_GDP_QKV }, { NULL, 0 }
};

const struct mb_key mb_keys[MB_KEY_COUNT] = {
#define KEY(id, name, short_name, flag, type, member, min, max, names, bridge, megatron, open, doc) \
	[MB_K_##id] = { name, short_name, flag, MB_KEY_##type, offsetof(struct mb_run, member), min, max, names, bridge, megatron, open, doc },
#include "plan/keys.def"
#undef KEY
};

/* Other spellings. `inverse`: true switches the key off. */
static const struct alias {
	const char *name;
	enum mb_key_id key;
	bool inverse;
} aliases[] = {
	{ "cuda_graph_modules", MB_K_graph_scope, false },
	{ "hybridep_num_sms", MB_K_num_sms, false },
	{ "use_nccl_ub", MB_K_nccl_ub, false },
	{ "moe_deepep_num_sms", MB_K_num_sms, false },
	{ "moe_hybridep_num_sms", MB_K_num_sms, false },
	{ "mixed_precision", MB_K_precision, false },
	{ "sequence_length", MB_K_seq, false },
	{ "fp8_param", MB_K_fp8_gather, false },
	{ "grad_reduce_in_bf16", MB_K_grad_fp32, true },
	{ "bias_swiglu_fusion", MB_K_act_fusion, false },
};

/* Groups of a Bridge configuration: a key may be written with any of them in front. */
static const char *const prefixes[] = {
	"model.", "train.", "comm_overlap.", "ddp.", "optimizer.", "mixed_precision.", "dist.", "dataset.", "rng.",
};

/* Equal names, '-' and '_' taken as the same. */
static bool same(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++) {
		char x = *a == '-' ? '_' : *a;
		char y = *b == '-' ? '_' : *b;

		if (x != y)
			return false;
	}
	return *a == *b;
}

static const struct mb_key *find_plain(const char *name, bool *inverse)
{
	*inverse = false;
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		const struct mb_key *k = &mb_keys[i];

		if (same(name, k->name) || (k->short_name != NULL && same(name, k->short_name)))
			return k;
		if (k->flag != NULL && k->flag[0] != '\0' && same(name, k->flag))
			return k;
	}
	for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
		if (same(name, aliases[i].name)) {
			*inverse = aliases[i].inverse;
			return &mb_keys[aliases[i].key];
		}
	}
	return NULL;
}

const struct mb_key *mb_key_find(const char *name, bool *negated)
{
	bool inverse;

	if (strncmp(name, "--", 2) == 0)
		name += 2;
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], n) == 0) {
			name += n;
			break;
		}
	}

	const struct mb_key *k = find_plain(name, &inverse);
	bool no = k == NULL && (strncmp(name, "no-", 3) == 0 || strncmp(name, "no_", 3) == 0);
	if (no)
		k = find_plain(name + 3, &inverse);
	if (k == NULL || (no && k->type != MB_KEY_BOOL && k->type != MB_KEY_TRISTATE))
		return NULL;
	if ((no || inverse) && negated == NULL)
		return NULL;
	if (negated != NULL)
		*negated = no != inverse;
	return k;
}

union mb_value mb_key_get(const struct mb_run *run, const struct mb_key *key)
{
	const char *at = (const char *)run + key->offset;
	union mb_value v = { .i = 0 };
	bool b;
	int i;

	switch (key->type) {
	case MB_KEY_BOOL:
		memcpy(&b, at, sizeof b);
		v.i = b;
		break;
	case MB_KEY_NUMBER:
		memcpy(&v.d, at, sizeof v.d);
		break;
	default:
		memcpy(&i, at, sizeof i);
		v.i = i;
	}
	return v;
}

void mb_key_put(struct mb_run *run, const struct mb_key *key, union mb_value value)
{
	char *at = (char *)run + key->offset;
	bool b = value.i != 0;
	int i = (int)value.i;

	switch (key->type) {
	case MB_KEY_BOOL:
		memcpy(at, &b, sizeof b);
		break;
	case MB_KEY_NUMBER:
		memcpy(at, &value.d, sizeof value.d);
		break;
	default:
		memcpy(at, &i, sizeof i);
	}
}

static void format_set(const struct mb_name *names, unsigned set, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "[");
	const char *comma = "";

	for (; names->name != NULL && n < size; names++) {
		if ((set & (unsigned)names->value) == 0)
			continue;
		n += (size_t)snprintf(text + n, size - n, "%s%s", comma, names->name);
		comma = ", ";
	}
	if (n < size)
		snprintf(text + n, size - n, "]");
}

/* Zero stands for null in the keys whose default is null; 1 virtual stage is written as such. */
static void format_int(const struct mb_key *key, long long i, char *text, size_t size)
{
	bool nullable = strcmp(key->bridge_default, "null") == 0;

	if (i == MB_AUTO || (nullable && i == 0 && key != &mb_keys[MB_K_mtp]))
		snprintf(text, size, "null");
	else
		snprintf(text, size, "%lld", i);
}

/* The shortest of 6 or 17 digits that reads back as the same number. */
static void format_number(const struct mb_key *key, double d, char *text, size_t size)
{
	double back = 0;

	if (strcmp(key->bridge_default, "null") == 0 && d <= 0) {
		snprintf(text, size, "null");
		return;
	}
	snprintf(text, size, "%g", d);
	if (sscanf(text, "%lf", &back) != 1 || fabs(back - d) > 0)
		snprintf(text, size, "%.17g", d);
}

void mb_key_format(const struct mb_case *c, const struct mb_run *run, const struct mb_key *key, char *text, size_t size)
{
	union mb_value v = mb_key_get(run, key);
	const char *name;

	switch (key->type) {
	case MB_KEY_BOOL:
	case MB_KEY_TRISTATE:
		snprintf(text, size, "%s", v.i == MB_AUTO ? "null" : v.i ? "true" : "false");
		break;
	case MB_KEY_ENUM:
		name = mb_value_name(key->names, (int)v.i);
		snprintf(text, size, "%s", name != NULL ? name : "null");
		break;
	case MB_KEY_SET:
		format_set(key->names, (unsigned)v.i, text, size);
		break;
	case MB_KEY_NUMBER:
		format_number(key, v.d, text, size);
		break;
	case MB_KEY_LAYOUT:
		if (c != NULL && v.i >= 0 && v.i < c->layout_count)
			snprintf(text, size, "%s", c->layouts[v.i].text);
		else
			snprintf(text, size, "null");
		break;
	case MB_KEY_SIZES:
		if (v.i <= 0)
			snprintf(text, size, "null");
		else
			snprintf(text, size, "[%lld, %lld]", v.i, v.i <= run->plan.cp ? run->plan.cp / v.i : 1);
		break;
	default:
		format_int(key, v.i, text, size);
	}
}
