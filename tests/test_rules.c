#include "rule_rows.h"

static bool broken(const struct mb_case *c, enum mb_rule_index rule)
{
	struct mb_broken all;

	mb_find_broken(c, &c->run.plan, &all);
	return mb_is_broken(&all, (int)rule);
}

static const char *legal_id(const struct mb_case *c)
{
	const struct mb_rule *first = mb_first_broken(c, &c->run.plan, MB_ALL_KEYS);

	return first != NULL ? first->id : "none";
}

Test(rules, each_error_rule_breaks_and_holds_just_inside)
{
	static struct mb_case c;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		build(&c, rows[i].fixture, rows[i].tweak, rows[i].broken);
		cr_expect(broken(&c, rows[i].rule), "%s: %s should break", rows[i].name, mb_rules[rows[i].rule].id);
		cr_expect(mb_first_broken(&c, &c.run.plan, MB_ALL_KEYS) != NULL, "%s: should be illegal", rows[i].name);
		build(&c, rows[i].fixture, rows[i].tweak, rows[i].inside);
		cr_expect(!broken(&c, rows[i].rule), "%s: %s should hold inside", rows[i].name, mb_rules[rows[i].rule].id);
		cr_expect_str_eq(legal_id(&c), "none", "%s: inside breaks %s", rows[i].name, legal_id(&c));
	}
}

Test(rules, rules_of_model_and_stack)
{
	static struct mb_case c;

	for (size_t i = 0; i < sizeof fixed_rows / sizeof fixed_rows[0]; i++) {
		build(&c, fixed_rows[i].fixture, fixed_rows[i].tweak, fixed_rows[i].settings);
		cr_expect(broken(&c, fixed_rows[i].rule), "%s should break", mb_rules[fixed_rows[i].rule].id);
		if (fixed_rows[i].tweak == b200_te_2_5)
			build(&c, fixed_rows[i].fixture, b200, fixed_rows[i].settings);
		else
			build(&c, fixed_rows[i].fixture, NULL, fixed_rows[i].settings);
		cr_expect(!broken(&c, fixed_rows[i].rule), "%s should hold", mb_rules[fixed_rows[i].rule].id);
	}
}

Test(rules, every_error_rule_has_a_row)
{
	for (int i = 0; i < mb_rule_count; i++) {
		bool found = mb_rules[i].severity != MB_RULE_ERROR || i == MB_RULE_P8;

		for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++)
			found |= rows[j].rule == (enum mb_rule_index)i;
		for (size_t j = 0; j < sizeof fixed_rows / sizeof fixed_rows[0]; j++)
			found |= fixed_rows[j].rule == (enum mb_rule_index)i;
		cr_expect(found, "%s (%s) is not tested", mb_rules[i].id, mb_rules[i].says);
	}
}

/* A layout is a list of stages, so it needs an arena: text, pp, vp, mtp, expected fault. */
Test(rules, layouts)
{
	static const struct {
		const char *text, *settings;
		enum mb_layout_fault fault;
	} layouts[] = {
		{ "Et*4|(t*4|)*14tmL", "pp=2 vp=8", MB_LAYOUT_FITS },
		{ "Et*4|(t*4|)*14tmL", "pp=2 vp=4", MB_LAYOUT_STAGES },
		{ "Et*4|(t*4|)*14tmL", "pp=2 vp=8 mtp=0", MB_LAYOUT_MTP },
		{ "Et*4|(t*4|)*14ttmL", "pp=2 vp=8", MB_LAYOUT_LAYERS },
		{ "t*4|E(t*4|)*14tmL", "pp=2 vp=8", MB_LAYOUT_ENDS },
		{ "Et*4|(t*4|)*14tmL|", "pp=17", MB_LAYOUT_ENDS },
		{ "Et*31|t*30m|L", "pp=3 gpus=3 gbs=3 ep=1", MB_LAYOUT_FITS },
		{ "Et*31m|t*30L", "pp=2", MB_LAYOUT_MTP_SPREAD },
		{ "Et*31|t*30m|L||", "pp=5 mtp=1", MB_LAYOUT_ENDS },
		{ "Et*20|t*20|t*21m||||||L", "pp=4 vp=2", MB_LAYOUT_STAGES },
		{ "Et*20|t*20|t*21m|L", "pp=2 vp=2", MB_LAYOUT_MTP_PLACE },
		{ "E|t*31||t*30mL", "pp=4", MB_LAYOUT_FITS },
	};
	static struct mb_case c;
	struct mb_arena arena = { 0 };

	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
		build(&c, fixture_mla, NULL, layouts[i].settings);
		c.run.plan.layout = fixture_layout(&c, &arena, layouts[i].text);
		cr_assert(c.run.plan.layout == 0, "%s does not parse", layouts[i].text);
		cr_expect(mb_layout_fault(&c, &c.run.plan) == layouts[i].fault, "%s with %s: fault %d, expected %d", layouts[i].text,
		          layouts[i].settings, (int)mb_layout_fault(&c, &c.run.plan), (int)layouts[i].fault);
		cr_expect(broken(&c, MB_RULE_P8) == (layouts[i].fault != MB_LAYOUT_FITS));
	}
	mb_arena_free(&arena);
}

/* What is legal: the accepting half of the published vectors, and runs that were published. */
Test(rules, accepts)
{
	static const struct {
		void (*fixture)(struct mb_case *);
		void (*tweak)(struct mb_case *);
		const char *settings;
	} legal[] = {
		{ fixture_moe, NULL, "tp=8 sp=true" },                                  /* 4 groups on 8 ranks: copies */
		{ fixture_moe, NULL, OVERLAP },                                         /* no pipeline, no virtual stages */
		{ fixture_moe, NULL, OVERLAP " recompute=selective modules=moe_act+layernorm" },
		{ fixture_dense, NULL, "gpus=8 pp=8 gbs=3" },                           /* 1F1B has no condition on micro-batches */
		{ fixture_dense, NULL, "gpus=8 pp=8 vp=2 gbs=8" },
		{ fixture_moe, NULL, "dispatcher=flex backend=hybridep" },
		{ fixture_moe, gb200, "dispatcher=flex backend=hybridep" },
		{ fixture_moe, NULL, "dispatcher=alltoall backend=hybridep" },          /* ignored, not an error */
		{ fixture_dense, NULL, "precision=fp8_cs tp=4 sp=true pp=8 vp=5 p2p_overlap=true seq=8192 tp_overlap=true" },
		{ fixture_moe, gb200, "precision=fp8_mx graph_impl=full_iteration dispatcher=flex backend=hybridep paged_stash=true "
		                      "rank_capacity=1.5 op_fuser=true " OVERLAP },
		{ fixture_mla, b200, "precision=fp8_mx dispatcher=flex backend=deepep graph_impl=transformer_engine "
		                     "graph_scope=attn+moe_router+moe_preprocess recompute=selective modules=mla_up_proj+mlp "
		                     "delay_wgrad=true " OVERLAP },
		{ fixture_hybrid, gb200, "graph_impl=transformer_engine graph_scope=attn+mamba+moe_router+moe_preprocess "
		                         "dispatcher=flex backend=hybridep precision=fp8_mx" },
		{ fixture_dense, gb200, "fsdp=true gaf=false sharding=optim_grads_params cpu_offloading=true cpu_offloading_layers=40 precision=fp8_cs" },
		{ fixture_mla, NULL, "dispatcher=flex backend=deepep precision=fp8_sc grad_overlap=false" },
	};
	static struct mb_case c;

	for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++) {
		build(&c, legal[i].fixture, legal[i].tweak, legal[i].settings);
		cr_expect_str_eq(legal_id(&c), "none", "'%s' breaks %s", legal[i].settings, legal_id(&c));
	}
}

/* What is not an error but deserves a word: the settings on the left bring it, those on the right do not. */
Test(rules, lesser_complaints)
{
	static const struct {
		enum mb_rule_index rule;
		void (*fixture)(struct mb_case *);
		void (*tweak)(struct mb_case *);
		const char *broken, *inside;
	} lesser[] = {
		{ MB_RULE_M3, fixture_moe, NULL, "backend=hybridep", "backend=hybridep dispatcher=flex" },
		{ MB_RULE_M3_none, fixture_moe, NULL, "dispatcher=flex", "dispatcher=flex backend=deepep" },
		{ MB_RULE_T1, fixture_dense, NULL, "sp=true", "sp=true tp=2" },
		{ MB_RULE_T3, fixture_dense, NULL, "tp_overlap=true tp=2", "tp_overlap=true tp=2 sp=true" },
		{ MB_RULE_T4, fixture_dense, NULL, "tp=2", "tp=1" },
		{ MB_RULE_T4, fixture_dense, NULL, "tp=2", "tp=2 fsdp=true" },
		{ MB_RULE_T5, fixture_dense, NULL, "tp_overlap=true tp=2 sp=true", "tp_overlap=true tp=2 sp=true tp_overlap_cfg=true" },
		{ MB_RULE_R4, fixture_dense, NULL, "recompute=selective method=block", "recompute=selective" },
		{ MB_RULE_R5, fixture_moe, NULL, "modules=moe_act", "modules=moe_act recompute=selective" },
		{ MB_RULE_R6, fixture_moe, NULL, FULL " modules=moe_act", FULL },
		{ MB_RULE_R12, fixture_moe, NULL, "recompute=selective modules=core_attn", "recompute=selective modules=core_attn attn_backend=unfused" },
		{ MB_RULE_R19, fixture_moe, NULL, "recompute=selective modules=layernorm graph_impl=transformer_engine graph_scope=moe_router", "recompute=selective modules=layernorm graph_impl=transformer_engine graph_scope=moe_router+moe_preprocess" },
		{ MB_RULE_R20, fixture_moe, NULL, "recompute=selective modules=mlp", "recompute=selective modules=moe_act" },
		{ MB_RULE_R20, fixture_dense, NULL, "recompute=selective modules=layernorm", "recompute=selective modules=mlp" },
		{ MB_RULE_R20, fixture_mla, NULL, "recompute=selective modules=moe+moe_act", "recompute=selective modules=moe+mlp" },
		{ MB_RULE_R21_block, fixture_mla, NULL, "recompute=full method=block recompute_layers=2", FULL },
		{ MB_RULE_G2_none, fixture_dense, NULL, "graph_scope=attn", "graph_scope=attn graph_impl=transformer_engine" },
		{ MB_RULE_G7, fixture_moe, megatron, "graph_impl=local graph_scope=moe_router", "graph_impl=local graph_scope=moe_router+moe_preprocess" },
		{ MB_RULE_G3_megatron, fixture_dense, megatron, "graph_impl=local te_rng=false", "graph_impl=local" },
		{ MB_RULE_O6, fixture_dense, NULL, "offload_modules=core_attn", "offload_modules=core_attn fine_offload=true" },
		{ MB_RULE_O7, fixture_dense, NULL, "cpu_offloading=true", "cpu_offloading=true cpu_offloading_layers=1" },
		{ MB_RULE_M7, fixture_moe, NULL, "router_dtype=bf16", "router_dtype=fp32" },
		{ MB_RULE_M7_cast, fixture_moe, NULL, "router_dtype=bf16 dispatcher=flex backend=deepep", "router_dtype=bf16" },
		{ MB_RULE_M4_ampere, fixture_moe, a100, "ep=16 dispatcher=flex backend=deepep", "ep=8 dispatcher=flex backend=deepep" },
		{ MB_RULE_W20, fixture_dense, NULL, "packed=true deterministic=true", "packed=true" },
		{ MB_RULE_F21, fixture_dense, segments, "nccl_ub=true", "nccl_ub=false" },
		{ MB_RULE_M11_none, fixture_moe, NULL, "shared_overlap=true", "shared_overlap=false" },
		{ MB_RULE_M23, fixture_dense, NULL, "dispatcher=flex", "dispatcher=alltoall" },
		{ MB_RULE_EP17, fixture_moe, NULL, OVERLAP " gbs=64", OVERLAP " gbs=128" },
		{ MB_RULE_EP18, fixture_moe, env1, OVERLAP, "ep_overlap=false" },
		{ MB_RULE_C2_sizes, fixture_dense, NULL, "cp=4 cp_sizes=2", "cp=4 cp_sizes=2 cp_comm_type=a2a+p2p" },
		{ MB_RULE_F4, fixture_dense, b200, "precision=fp8_mx reuse_grad_buf=false", "precision=fp8_mx" },
		{ MB_RULE_F2_stand_in, fixture_dense, megatron_b200, "precision=fp8_sc", "precision=fp8_mx" },
		{ MB_RULE_F8, fixture_dense, NULL, "dist_opt=false", "dist_opt=true" },
		{ MB_RULE_F11_dist_opt, fixture_dense, NULL, "fsdp=true dist_opt=false", "fsdp=true" },
		{ MB_RULE_F3_fsdp, fixture_dense, b200, "fsdp=true reuse_grad_buf=true", "fsdp=true" },
		{ MB_RULE_F20, fixture_dense, NULL, "sharding=optim_grads_params", "sharding=optim_grads_params fsdp=true" },
	};
	static struct mb_case c;

	for (size_t i = 0; i < sizeof lesser / sizeof lesser[0]; i++) {
		build(&c, lesser[i].fixture, lesser[i].tweak, lesser[i].broken);
		cr_expect(broken(&c, lesser[i].rule), "'%s' should break %s", lesser[i].broken, mb_rules[lesser[i].rule].id);
		cr_expect(mb_rules[lesser[i].rule].severity != MB_RULE_ERROR);
		build(&c, lesser[i].fixture, lesser[i].tweak, lesser[i].inside);
		cr_expect(!broken(&c, lesser[i].rule), "'%s' should not break %s", lesser[i].inside, mb_rules[lesser[i].rule].id);
	}
}
