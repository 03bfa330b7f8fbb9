#include <criterion/criterion.h>
#include <math.h>

#include "desc/library.h"
#include "desc/node.h"

static struct mb_arena arena;
static struct mb_diags diags;
static struct mb_library library;
static struct mb_hardware hw;

static void begin(void)
{
	memset(&diags, 0, sizeof diags);
	cr_assert(mb_library_open(&library, &diags), "%s", diags.item[0].text);
}

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(hardware, .init = begin, .fini = done);

static void expect_rel(double got, double want, const char *words)
{
	cr_expect(fabs(got - want) <= 1e-5 * fabs(want), "%s: %.12g, expected %.12g", words, got, want);
}

static const struct mb_node *word(const char *text)
{
	return mb_node_scalar(&arena, (struct mb_pos){ "argument 1", 0, 1 }, text);
}

static bool load(const char *name)
{
	memset(&diags, 0, sizeof diags);
	return mb_hardware_load(word(name), &library, &arena, &hw, &diags);
}

static bool read_text(const char *text)
{
	const struct mb_node *n;

	memset(&diags, 0, sizeof diags);
	n = mb_node_read_text(text, strlen(text), "mine.yaml", &arena, &diags);
	return n && mb_hardware_load(n, &library, &arena, &hw, &diags);
}

Test(hardware, dgx_h100_is_what_the_datasheet_says)
{
	cr_assert(load("dgx-h100"));
	cr_expect_eq(hw.hbm_bytes, 80000000000);
	cr_expect_eq(hw.usable_bytes, llround(79.1 * 1073741824));
	expect_rel(hw.nic_bytes_per_s, 50e9, "a 400 Gb/s card");
	expect_rel(hw.nvlink_bytes_per_s, 450e9, "NVLink");
	expect_rel(hw.bf16_flop_per_s, 989e12, "bf16");
	cr_expect_eq(hw.fp4_flop_per_s, 0);
	cr_expect(hw.params.gemm_bf16_frac > 0.6 && hw.params.gemm_bf16_frac < 0.75, "620 to 700 of 989 TFLOP/s");
	cr_expect_eq(hw.provenance[MB_PARAM_gemm_bf16_frac].origin, MB_FITTED);
	cr_expect_not_null(hw.provenance[MB_PARAM_gemm_bf16_frac].source);
	expect_rel(hw.price_usd_per_gpu_h, 2.95, "price");
	cr_expect_not_null(hw.price_source);
}

Test(hardware, extends_inherits_and_overrides)
{
	double base, base_gemm;

	cr_assert(load("gb200-nvl72"));
	base = hw.params.attention_frac;
	base_gemm = hw.params.gemm_bf16_frac;
	expect_rel(hw.params.host_factor, 1.2, "Grace host");
	cr_expect(hw.price_usd_per_gpu_h > 0);

	cr_assert(load("gb300-nvl72"));
	cr_expect_str_eq(hw.name, "gb300-nvl72");
	cr_expect(fabs(hw.params.attention_frac / base - 1.3) < 1e-3, "attention of Ultra");
	expect_rel(hw.params.gemm_bf16_frac, base_gemm, "inherited");
	expect_rel(hw.params.host_factor, 1.2, "inherited from the base file");
	expect_rel(hw.mfu_fp4_flop_per_s, 14700e12, "MFU peak");
	cr_expect_eq(hw.nvlink_domain, 72);
	cr_expect(hw.superchip && hw.ultra);
	expect_rel(hw.price_usd_per_gpu_h, 0, "null takes the price back");
	cr_expect_null(hw.price_source);
}

Test(hardware, a_mapping_can_extend_a_shipped_machine)
{
	cr_assert(read_text("extends: dgx-h100\nscale_out: 200 Gb/s\nefficiency:\n"
	                    "  hbm_frac: {measured: 0.8, source: mine}\n"));
	cr_expect_str_eq(hw.name, "custom");
	expect_rel(hw.nic_bytes_per_s, 25e9, "network");
	expect_rel(hw.params.hbm_frac, 0.8, "own row");
	cr_expect_eq(hw.provenance[MB_PARAM_hbm_frac].origin, MB_MEASURED);
	cr_expect_eq(hw.provenance[MB_PARAM_hbm_frac].pos.line, 4);
}

static const struct { const char *words, *text, *says, *expected; int line, column; } bad[] = {
	{ "size for a rate", "extends: dgx-h100\nnvlink: 900 GiB", "nvlink: '900 GiB' is a size", "a rate such as '900 GB/s'", 2, 9 },
	{ "no unit", "extends: dgx-h100\nhbm: 80", "hbm: '80' has no unit", "a size such as '80 GB' or '79.1 GiB'", 2, 6 },
	{ "out of range", "extends: dgx-h100\nhbm_bandwidth: {value: 3350000 TB/s, source: x}",
	  "hbm_bandwidth: 3350000 TB/s is out of range", "100 GB/s to 1000 TB/s", 2, 24 },
	{ "unknown key", "extends: dgx-h100\nhbm_bandwith: 3 TB/s", "unknown key 'hbm_bandwith'", "", 2, 1 },
	{ "unknown base", "extends: dgx-h10", "unknown hardware 'dgx-h10'", NULL, 1, 10 },
	{ "unknown row", "extends: dgx-h100\nefficiency: {gemm_frac: {fitted: 1, source: x}}", "unknown parameter 'gemm_frac'",
	  "", 2, 14 },
	{ "row of the stack", "extends: dgx-h100\nefficiency: {kernel_gap_s: {fitted: 1 us, source: x}}",
	  "unknown parameter 'kernel_gap_s'", "", 2, 14 },
	{ "row without source", "extends: dgx-h100\nefficiency: {hbm_frac: {fitted: 0.7}}", "hbm_frac: the source is missing", "",
	  2, 24 },
	{ "two origins", "extends: dgx-h100\nefficiency: {hbm_frac: {fitted: 0.7, assumed: 0.7, source: x}}",
	  "hbm_frac: is it fitted or assumed", "", 2, 38 },
	{ "bare row", "extends: dgx-h100\nefficiency: {hbm_frac: 0.7}",
	  "hbm_frac: expected {measured|fitted|assumed: VALUE, source: TEXT}", "", 2, 24 },
	{ "misspelt wrapper", "extends: dgx-h100\nhbm: {value: 80 GB, sources: x}",
	  "hbm: unknown key 'sources' beside value, source and note", "", 2, 21 },
	{ "incomplete", "gpu: mine\narchitecture: hopper",
	  "'compute_capability', 'sm_count', 'hbm', 'usable', 'hbm_bandwidth', 'l2', 'bf16', 'tdp', 'gpus_per_node', "
	  "'nvlink_domain', 'host_link', 'non_torch' are missing", "", 1, 1 },
	{ "domain without links", "extends: h100-pcie\nnvlink_domain: 8", "nvlink_domain is 8, but nvlink is not given", "", 1, 1 },
	{ "a list", "[1, 2]", NULL, NULL, 1, 1 },
};

Test(hardware, mistakes_are_named_at_their_place)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const struct mb_diag *d = &diags.item[0];

		cr_expect(!read_text(bad[i].text), "%s is accepted", bad[i].words);
		cr_assert_geq(diags.errors, 1, "%s: no message", bad[i].words);
		if (bad[i].says)
			cr_expect_str_eq(d->text, bad[i].says, "%s: %s", bad[i].words, d->text);
		if (bad[i].expected)
			cr_expect_str_eq(d->expected, bad[i].expected, "%s: %s", bad[i].words, d->expected);
		cr_expect_eq(d->pos.line, bad[i].line, "%s: line %d", bad[i].words, d->pos.line);
		cr_expect_eq(d->pos.column, bad[i].column, "%s: column %d", bad[i].words, d->pos.column);
	}
}

Test(hardware, what_if_changes)
{
	cr_assert(load("gb200-nvl72"));
	struct mb_hardware before = hw;

	cr_expect(mb_hardware_change(&hw, "hbm", word("1.5x"), &diags));
	cr_expect_eq(hw.hbm_bytes, 279000000000);
	expect_rel((double)hw.usable_bytes, 1.5 * (double)before.usable_bytes, "usable follows");
	cr_expect(mb_hardware_change(&hw, "hbm", word("186 GB"), &diags));
	cr_expect(llabs(hw.usable_bytes - before.usable_bytes) <= 1);
	cr_expect(mb_hardware_change(&hw, "scale_out", word("2x"), &diags));
	expect_rel(hw.nic_bytes_per_s, 100e9, "scale_out");
	cr_expect(mb_hardware_change(&hw, "nvlink_domain", word("36"), &diags));
	cr_expect_eq(hw.nvlink_domain, 36);
	cr_expect(mb_hardware_change(&hw, "bf16", word("2x"), &diags));
	expect_rel(hw.mfu_bf16_flop_per_s, 2 * before.mfu_bf16_flop_per_s, "MFU follows");
	cr_expect(mb_hardware_change(&hw, "oversubscription", word("2"), &diags));
	expect_rel(hw.oversubscription, 2, "oversubscription");
	cr_expect(mb_hardware_change(&hw, "price", word("$2/h"), &diags));
	expect_rel(hw.price_usd_per_gpu_h, 2, "price");
	cr_expect_eq(diags.errors, 0);
}

static const struct { const char *name, *value, *says; } bad_changes[] = {
	{ "hbmm", "2x", "unknown hardware key 'hbmm'" },
	{ "hbm", "288", "hbm: '288' has no unit" },
	{ "hbm", "-1x", "hbm: -1x is out of range" },
	{ "hbm", "1e9x", "hbm: 1e9x is out of range" },
	{ "fp4", "2x", "fp4: this machine has none, a factor says nothing" },
	{ "nvlink_domain", "0.3x", "nvlink_domain: 2.4 is not a whole number of GPUs" },
	{ "oversubscription", "0.5", "oversubscription: 0.5 is out of range" },
};

Test(hardware, impossible_changes_leave_the_machine_alone)
{
	cr_assert(load("dgx-h100"));
	for (size_t i = 0; i < sizeof bad_changes / sizeof bad_changes[0]; i++) {
		struct mb_hardware before = hw;

		memset(&diags, 0, sizeof diags);
		cr_expect(!mb_hardware_change(&hw, bad_changes[i].name, word(bad_changes[i].value), &diags), "%s",
		          bad_changes[i].says);
		cr_expect_str_eq(diags.item[0].text, bad_changes[i].says, "%s", diags.item[0].text);
		cr_expect_eq(memcmp(&before, &hw, sizeof hw), 0, "%s changed something", bad_changes[i].name);
	}
}

static bool load_stack(const char *name, struct mb_stack *s)
{
	memset(&diags, 0, sizeof diags);
	return mb_stack_load(name, (struct mb_pos){ "argument 2", 0, 7 }, &library, &arena, s, &diags);
}

Test(hardware, stacks_inherit_and_carry_their_month)
{
	struct mb_stack s, base;

	cr_assert(load_stack("nemo-25.09", &base));
	cr_assert(load_stack("nemo-26.06.01", &s));
	cr_expect_eq(s.month, 12 * 2026 + 5);
	cr_expect_eq(s.framework, MB_BRIDGE);
	cr_expect(s.params.sink_attention_token_s > 400e-9, "defect of one release");
	cr_expect(s.params.kernel_gap_s - base.params.kernel_gap_s == 0, "inherited over seven files");
	cr_expect(!s.flops_gpt_oss_dense);
	cr_assert(load_stack("nemo-26.08", &s));
	cr_expect_eq(s.params.sink_attention_token_s, 0);
	cr_assert(load_stack("nemo-26.04.01", &s));
	cr_expect(s.flops_gpt_oss_dense);

	cr_assert(load_stack("mlm-lts-2025-10", &s));
	cr_expect_str_eq(s.name, "mlm-lts-2025-10");
	cr_expect_eq(s.month, MB_MONTH_2025_10);
	cr_expect_eq(s.framework, MB_MEGATRON_LM);
	cr_expect(s.lts);
	cr_assert(load_stack("mlm-dev-2026-05", &s));
	cr_expect(!s.lts);
}

Test(hardware, unknown_stacks_are_refused)
{
	static const struct { const char *name, *says; } wrong[] = {
		{ "nemo-26.07",      "unknown stack 'nemo-26.07'" },
		{ "mlm-dev",         "stack 'mlm-dev' needs a month, such as mlm-dev-2026-05" },
		{ "mlm-dev-2026-13", "unknown stack 'mlm-dev-2026-13'" },
		{ "mlm-foo-2026-05", "unknown stack 'mlm-foo'" },
		{ "../stacks/nemo-26.08", "unknown stack '../stacks/nemo-26.08'" },
	};
	struct mb_stack s;

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		cr_expect(!load_stack(wrong[i].name, &s), "%s", wrong[i].name);
		cr_expect_str_eq(diags.item[0].text, wrong[i].says, "%s", diags.item[0].text);
	}
	cr_expect_str_eq(mb_library_default_stack(&library, &arena), "nemo-26.08");
}
