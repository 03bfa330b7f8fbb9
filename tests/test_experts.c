/* Expert routing and placement: how many copies of a token travel, and where to. */
#include "cost/build.h"
#include "cost/collective.h"
#include "expect.h"
#include "fixture.h"

static const struct { const char *what; int experts, topk; double groups, distinct; int routing_groups, kept; } cases[] = {
	{ "E128 k8 over 8 ranks", 128, 8, 8, 5.3394, 0, 0 },
	{ "E128 k8 over 16 ranks", 128, 8, 16, 6.5965, 0, 0 },
	{ "E128 k8 over 2 nodes", 128, 8, 2, 1.9938, 0, 0 },
	{ "E128 k8 over 32 ranks", 128, 8, 32, 7.3594, 0, 0 },
	{ "E128 k8 over 4 nodes", 128, 8, 4, 3.6290, 0, 0 },
	{ "E256 k8 over 32 ranks", 256, 8, 32, 7.2668, 0, 0 },
	{ "E256 k8 over 64 ranks", 256, 8, 64, 7.6758, 0, 0 },
	{ "E256 k8 over 8 nodes", 256, 8, 8, 5.2947, 0, 0 },
	{ "E256 k8 over 16 domains of 4", 256, 8, 16, 6.5233, 0, 0 },
	{ "E64 k6 over 8 ranks", 64, 6, 8, 4.5355, 0, 0 },
	{ "E512 k10 over 64 ranks", 512, 10, 64, 9.4026, 0, 0 },
	{ "E512 k10 over 8 nodes", 512, 10, 8, 5.9220, 0, 0 },
	{ "E256 k8, 4 of 8 groups, over 8 nodes", 256, 8, 8, 3.6290, 8, 4 },
	{ "one group holds everything", 256, 8, 1, 1, 8, 4 },
};

Test(experts, distinct_destinations)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct mb_model m = { .num_moe_experts = cases[i].experts, .moe_router_topk = cases[i].topk,
			.moe_router_num_groups = cases[i].routing_groups, .moe_router_group_topk = cases[i].kept };

		expect_rel(mb_distinct_groups(&m, cases[i].groups), cases[i].distinct, 2e-5, cases[i].what);
	}
}

/* More destinations never hold fewer distinct experts, and never more than top-k. */
Test(experts, distinct_destinations_grow)
{
	struct mb_model m = { .num_moe_experts = 256, .moe_router_topk = 8, .moe_router_num_groups = 8, .moe_router_group_topk = 4 };
	double before = 0;

	for (int limited = 0; limited < 2; limited++) {
		before = 0;
		for (double groups = 1; groups <= 256; groups *= 2) {
			double now = mb_distinct_groups(&m, groups);

			cr_expect(now >= before && now <= 8 + 1e-9, "%g groups: %g after %g", groups, now, before);
			before = now;
		}
		m.moe_router_num_groups = 0;
	}
}

/* Bytes that one dispatch sends, by dispatcher and machine: Qwen3-30B on two nodes, DeepSeek-V3 in one domain. */
Test(experts, bytes_of_one_dispatch)
{
	struct mb_case c;
	struct mb_dims d;
	struct mb_op ops[MB_MAX_OPS];
	double sent = 0, remote = 0;

	fixture_moe(&c);
	c.run.gpus = 16;
	c.run.global_batch_size = 1024;
	c.run.plan.ep = 16;
	c.run.plan.dispatcher = MB_DISPATCH_FLEX;
	mb_case_compile(&c);
	mb_dims_fill(&c, &c.run.plan, &d);
	for (int i = 0, n = mb_ops_build(&c, &c.run.plan, &d, 0, ops); i < n; i++) {
		if (ops[i].send.axis == MB_AXIS_EP_DISPATCH) {
			sent = ops[i].send.forward_bytes;
			remote = ops[i].send.forward_remote_bytes;
		}
	}
	expect_rel(remote, 16.73e6, 1e-3, "across nodes, one copy a node");
	expect_rel(sent - remote, 96.84e6, 1e-3, "inside the node");
	c.run.plan.dispatcher = MB_DISPATCH_ALLTOALL;
	for (int i = 0, n = mb_ops_build(&c, &c.run.plan, &d, 0, ops); i < n; i++)
		if (ops[i].send.axis == MB_AXIS_EP_DISPATCH)
			remote = ops[i].send.forward_remote_bytes;
	expect_rel(remote * 4 * 48 * 64, 824.6e9, 1e-3, "across nodes in a step, one copy an expert");
}

Test(experts, groups_and_domains)
{
	struct mb_case c;
	struct mb_place place;

	fixture_mla(&c);
	fixture_gb200(&c.hardware);
	c.run.gpus = 256;
	mb_case_compile(&c);
	cr_expect_eq(c.domain, 64, "256 GPUs fill 64 of 72");
	place = mb_place_group(&c, 64, 1);
	cr_expect(place.members == 64 && place.domains == 1);
	place = mb_place_group(&c, 64, 2);
	cr_expect(place.members == 32 && place.domains == 2);
	place = mb_place_group(&c, 4, 128);
	cr_expect(place.members == 1 && place.domains == 4);
}
