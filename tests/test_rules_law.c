/* Laws of the rule table, tried on random plans. */
#include <criterion/criterion.h>

#include "fixture.h"
#include "plan/rules_private.h"

static uint64_t state = 42;

static unsigned draw(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % below;
}

static int draw_size(void)
{
	static const int sizes[] = { 1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 16, 20, 32, 64 };

	return sizes[draw(sizeof sizes / sizeof sizes[0])];
}

/* The keys that a search fixes last. */
static void redraw_late(struct mb_plan *p, enum mb_plan_key key)
{
	switch (key) {
	case MB_P_GRAPH:
		p->cuda_graph_impl = (enum mb_graph)draw(4);
		p->cuda_graph_scope = draw(2 * MB_SCOPE_FULL_ITERATION);
		break;
	case MB_P_OFFLOAD:
		p->cpu_offloading = draw(2);
		p->cpu_offloading_num_layers = (int)draw(100);
		p->fine_grained_activation_offloading = draw(2);
		p->offload_modules = draw(2 * MB_OFF_GDP_QKV);
		p->activation_offload_fraction = 0.25 * draw(5);
		break;
	case MB_P_OPTIMIZER:
		p->optimizer_cpu_offload = draw(2);
		p->optimizer_offload_fraction = 0.25 * draw(5);
		p->use_distributed_optimizer = draw(2);
		p->use_megatron_fsdp = draw(2);
		p->sharding = (enum mb_sharding)draw(4);
		p->overlap_grad_reduce = draw(2);
		p->overlap_param_gather = draw(2);
		break;
	default: break;
	}
}

/* Gives the plan keys of one bit new values; what no plan key holds by itself goes with the key that decides it. */
static void redraw(struct mb_plan *p, enum mb_plan_key key)
{
	switch (key) {
	case MB_P_TP: p->tp = draw_size(); break;
	case MB_P_CP: p->cp = draw_size(); break;
	case MB_P_PP: p->pp = draw_size(); break;
	case MB_P_EP: p->ep = draw_size(); break;
	case MB_P_ETP: p->etp = draw_size(); break;
	case MB_P_MBS: p->micro_batch_size = draw_size(); break;
	case MB_P_VP:
		p->vp = draw_size();
		p->microbatch_group_size = draw(4) == 0 ? draw_size() : 0;
		p->overlap_p2p_comm = draw(2);
		break;
	case MB_P_SPLIT:
		p->first_stage_layers = draw(2) ? 0 : draw_size();
		p->last_stage_layers = draw(2) ? 0 : draw_size();
		p->account_for_embedding = draw(2);
		p->account_for_loss = draw(2);
		p->layout = (int)draw(3) - 1;
		break;
	case MB_P_SP: p->sequence_parallel = draw(2); break;
	case MB_P_CP_COMM:
		p->cp_comm_type = (enum mb_cp_comm)draw(4);
		p->cp_a2a_size = draw(2) ? 0 : draw_size();
		break;
	case MB_P_RECOMPUTE:
		p->recompute = (enum mb_granularity)draw(3);
		p->recompute_method = (enum mb_method)draw(3);
		p->recompute_num_layers = (int)draw(3);
		p->recompute_modules = draw(MB_ALL_MODULES + 1);
		break;
	case MB_P_DISPATCHER:
		p->dispatcher = (enum mb_dispatcher)draw(3);
		p->backend = (enum mb_backend)draw(4);
		break;
	case MB_P_EP_OVERLAP:
		p->overlap_moe_expert_parallel_comm = draw(2);
		p->delay_wgrad_compute = draw(2);
		break;
	case MB_P_SHARED_OVERLAP: p->moe_shared_expert_overlap = draw(2); break;
	case MB_P_TP_OVERLAP: p->tp_comm_overlap = draw(2); break;
	default: redraw_late(p, key);
	}
}

/* Anything a run may hold beside its plan, so that rules depend on much. */
static void redraw_run(struct mb_case *c)
{
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		const struct mb_key *key = &mb_keys[i];

		if ((key->type == MB_KEY_BOOL || key->type == MB_KEY_TRISTATE) && draw(3) == 0)
			mb_key_put(&c->run, key, (union mb_value){ .i = draw(2) });
	}
	c->run.precision = (enum mb_precision)draw(8);
	c->run.gpus = draw_size() * draw_size();
	c->run.global_batch_size = draw_size() * draw_size() * draw_size();
	c->run.seq_length = 64 * draw_size();
	c->run.cuda_device_max_connections = (int)draw(3) - 1;
	c->run.num_distributed_optimizer_instances = draw_size();
	c->mtp_depth = (int)draw(3);
}

static void random_case(struct mb_case *c, struct mb_arena *arena)
{
	static void (*const fixtures[])(struct mb_case *) = { fixture_dense, fixture_moe, fixture_mla, fixture_hybrid };
	static void (*const machines[])(struct mb_hardware *) = { fixture_a100, fixture_h100, fixture_b200, fixture_gb200 };

	fixtures[draw(4)](c);
	machines[draw(4)](&c->hardware);
	fixture_stack(&c->stack, draw(2));
	redraw_run(c);
	cr_assert(fixture_layout(c, arena, "Et*4|(t*4|)*14tmL") == 0);
	cr_assert(fixture_layout(c, arena, "Et*40|t*40L") == 1);
	for (int k = 0; k < MB_P_COUNT; k++)
		redraw(&c->run.plan, (enum mb_plan_key)k);
}

Test(rules_law, a_rule_depends_on_nothing_outside_its_mask)
{
	static struct mb_case c;
	struct mb_arena arena = { 0 };

	for (int round = 0; round < 400; round++) {
		random_case(&c, &arena);
		for (int k = 0; k < MB_P_COUNT; k++) {
			struct mb_plan other = c.run.plan;

			redraw(&other, (enum mb_plan_key)k);
			for (int i = 0; i < mb_rule_count; i++) {
				if ((mb_rules[i].reads & (1u << k)) == 0)
					cr_expect(mb_rules[i].holds(&c, &c.run.plan) == mb_rules[i].holds(&c, &other),
					          "%s reads plan key %d, which its mask does not say", mb_rules[i].id, k);
			}
		}
	}
	mb_arena_free(&arena);
}

/* Nothing else than `reads` says so: the run's own plan must not be looked at. */
Test(rules_law, rules_look_at_the_plan_given)
{
	static struct mb_case c, other;
	struct mb_arena arena = { 0 };

	for (int round = 0; round < 400; round++) {
		random_case(&c, &arena);
		other = c;
		memset(&other.run.plan, 0x55, sizeof other.run.plan);
		for (int i = 0; i < mb_rule_count; i++)
			cr_expect(mb_rules[i].holds(&c, &c.run.plan) == mb_rules[i].holds(&other, &c.run.plan), "%s reads run.plan", mb_rules[i].id);
	}
	mb_arena_free(&arena);
}

static const struct mb_rule *slowly(const struct mb_case *c, unsigned fixed, unsigned fresh)
{
	unsigned framework = c->stack.framework == MB_MEGATRON_LM ? MB_FW_MEGATRON : MB_FW_BRIDGE;

	for (int i = 0; i < mb_rule_count; i++) {
		const struct mb_rule *rule = &mb_rules[i];

		if (rule->severity != MB_RULE_ERROR || !(rule->framework & framework) || (rule->reads & ~fixed) != 0)
			continue;
		if ((fresh == 0 || (rule->reads & fresh) != 0) && !rule->holds(c, &c->run.plan))
			return rule;
	}
	return NULL;
}

/* What a walk checks key by key is together what a full look checks, each rule once. */
Test(rules_law, a_walk_in_key_order_finds_what_a_full_look_finds)
{
	static struct mb_case c;
	struct mb_arena arena = { 0 };

	for (int round = 0; round < 400; round++) {
		const struct mb_plan *p = &c.run.plan;
		unsigned fixed = 0;
		bool broken;

		random_case(&c, &arena);
		broken = mb_first_broken(&c, p, 0) != NULL;
		for (int k = 0; k < MB_P_COUNT; k++) {
			unsigned fresh = 1u << k;

			fixed |= fresh;
			cr_expect(mb_first_broken_since(&c, p, fixed, fresh) == slowly(&c, fixed, fresh));
			cr_expect(mb_first_broken(&c, p, fixed) == slowly(&c, fixed, 0));
			broken |= slowly(&c, fixed, fresh) != NULL;
		}
		cr_expect(broken == (mb_first_broken(&c, p, MB_ALL_KEYS) != NULL));
	}
	mb_arena_free(&arena);
}

/* No size a key can have, nor none at all, makes a condition divide by zero or overflow (run with the sanitizers). */
Test(rules_law, conditions_are_total)
{
	static const int extremes[] = { 0, 1, 3, 4096, 1048576, 2147483647 };
	static struct mb_case c;
	struct mb_broken all;
	struct mb_arena arena = { 0 };

	for (int round = 0; round < 3000; round++) {
		struct mb_plan *p = &c.run.plan;

		random_case(&c, &arena);
		p->tp = extremes[draw(4)];
		p->cp = extremes[draw(4)];
		p->pp = extremes[draw(4)];
		p->vp = extremes[draw(3)];
		p->ep = extremes[draw(4)];
		p->etp = extremes[draw(4)];
		p->micro_batch_size = extremes[draw(6)];
		p->microbatch_group_size = extremes[draw(6)];
		c.run.gpus = extremes[draw(5)];
		c.run.global_batch_size = extremes[draw(6)];
		if (draw(4) == 0)
			memset(&c.model, 0, sizeof c.model);
		mb_find_broken(&c, p, &all);
	}
	mb_arena_free(&arena);
}

Test(rules_law, the_table_is_well_formed)
{
	for (int i = 0; i < mb_rule_count; i++) {
		const struct mb_rule *rule = &mb_rules[i];

		cr_expect(rule->says[0] != '\0' && rule->says[strlen(rule->says) - 1] != '.', "%s says '%s'", rule->id, rule->says);
		cr_expect(strlen(rule->says) < 200, "%s says too much", rule->id);
		cr_expect((rule->reads & ~(unsigned)MB_ALL_KEYS) == 0);
		for (const char *at = rule->keys; *at != '\0';) {
			size_t n = strcspn(at, " ");

			cr_expect(mb_rule_key(at, n) >= 0, "%s: no key '%.*s'", rule->id, (int)n, at);
			at += n;
			at += strspn(at, " ");
		}
		for (int j = 0; j < i; j++)
			cr_expect(strcmp(rule->id, mb_rules[j].id) != 0 || strcmp(rule->says, mb_rules[j].says) != 0 ||
			          (rule->framework & mb_rules[j].framework) == 0 || rule->severity != mb_rules[j].severity,
			          "%s twice", rule->id);
	}
}
