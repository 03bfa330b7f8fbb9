/* Load of expert-parallel ranks under uneven routing. */
#include "expect.h"
#include "plan/routing.h"

static struct mb_model model(int experts, int topk)
{
	return (struct mb_model){ .num_layers = 2, .num_moe_experts = experts, .moe_router_topk = topk,
		.kinds = { { MB_MIXER_ATTENTION, MB_FFN_MOE, false, false } }, .kind_count = 1 };
}

/* Two ranks, one expert each, top-1, n tokens, one layer: |binomial - n/2| has mean sqrt(n / (2 pi)); busiest = 1 + that / (n/2). */
Test(routing, chance_alone)
{
	struct mb_model m = model(2, 1);
	struct mb_routing r;
	double n = 10000;

	m.num_layers = 1;
	cr_assert(mb_routing_draw(&m, 2, n, 0, 1, &r));
	expect_rel(r.mean - 1, sqrt(n / (2 * M_PI)) / (n / 2), 0.1, "mean excess");
	cr_expect(r.p50 >= 1 && r.p99 > r.p50);
}

Test(routing, more_skew_loads_more)
{
	struct mb_model m = model(64, 8);
	double before = 1;

	for (double skew = 0; skew < 1.6; skew += 0.3) {
		struct mb_routing r;

		cr_assert(mb_routing_draw(&m, 8, 32768, skew, 7, &r));
		cr_expect(r.p50 > before, "skew %g: %g after %g", skew, r.p50, before);
		cr_expect(r.p99 <= 8, "a rank has no more than everything");
		before = r.p50;
	}
}

Test(routing, the_seed_decides)
{
	struct mb_model m = model(64, 8);
	struct mb_routing a, b, c;

	cr_assert(mb_routing_draw(&m, 8, 32768, 0.5, 1, &a) && mb_routing_draw(&m, 8, 32768, 0.5, 1, &b) && mb_routing_draw(&m, 8, 32768, 0.5, 2, &c));
	cr_expect(a.p99 - b.p99 == 0 && a.p50 - b.p50 == 0);
	cr_expect(fabs(a.p99 - c.p99) > 0);
	cr_expect_not(mb_routing_draw(&m, 7, 32768, 0.5, 1, &a), "7 ranks do not divide 64 experts");
	m.num_moe_experts = 0;
	cr_expect_not(mb_routing_draw(&m, 1, 32768, 0.5, 1, &a));
}
