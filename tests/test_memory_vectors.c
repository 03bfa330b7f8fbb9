/*
 * Measured rows of Megatron-LM's functional tests, one for each mechanism: memory between steps and in the steady peak, on
 * the last rank. The worked figures are sums of the row's terms (states, extras, activations, loss), so that a change of
 * any term shows here. Runs and sources: tests/published/golden.jsonl.
 */
#include "expect.h"

#include <stdio.h>

#include "calib/measured.h"
#include "load.h"

static struct mb_arena arena;
static struct mb_library library;
static struct mb_measured_set set;
static struct mb_evaluation *e;

static void begin(void)
{
	struct mb_diags diags = { 0 };
	char path[4200];

	e = mb_evaluation_new();
	set = (struct mb_measured_set){ .arena = &arena };
	cr_assert(mb_library_open(&library, &diags), "%s", diags.item[0].text);
	snprintf(path, sizeof path, "%s/tests/published/golden.jsonl", library.root);
	cr_assert(mb_measured_read(path, &set, &diags), "%s", diags.item[0].text);
}

static void done(void)
{
	mb_evaluation_free(e);
	mb_arena_free(&arena);
}

TestSuite(memory_vectors, .init = begin, .fini = done);

/*
 * Bytes: measured and worked between steps, measured and worked peak. Wider tolerances: how often the allocator reuses a
 * block whole depends on the history of the process, and two rows have tensors of nearly equal size; and the worked figure
 * of the MLA row leaves out the sines and cosines of unfused rotary embedding, with which the prediction is nearer.
 */
static const struct vector { const char *id; double between, worked_between, peak, worked_peak, tolerance; } vectors[] = {
	{ "gpt/gpt3_7b_tp4_pp1_memory_speed/golden_values_dev_dgx_h100",
	  20663519232, 20660408832, 57143791616, 57138991616, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files/golden_values_dev_dgx_h100",
	  581489664, 581489664, 4702430720, 4702311424, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files_1node/golden_values_dev_dgx_gb200",
	  678556160, 678556160, 4801303040, 4799377920, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp1_resume_torch_dist_dist_optimizer/golden_values_dev_dgx_h100",
	  581489664, 581489664, 2691792384, 2690618368, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp1_resume_torch_dist_dist_optimizer/golden_values_dev_dgx_gb200",
	  581489664, 581489664, 2743026176, 2740950016, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp1_resume_torch_dist_uniform_full_recompute_1node/golden_values_dev_dgx_gb200",
	  1259751936, 1273724211, 2562384384, 2575187251, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp2_resume_torch_dist_rope_embeddings/golden_values_dev_dgx_h100",
	  919557120, 921942118, 2598238208, 2599876710, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp4_resume_torch_dist_untie_embeddings_and_outputs/golden_values_dev_dgx_h100",
	  745395712, 747309363, 2210100224, 2210744627, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp4_resume_torch_dist_swiglu_1node/golden_values_dev_dgx_gb200",
	  745077248, 742821939, 2220400640, 2217267251, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp4_vp1/golden_values_dev_dgx_h100",
	  776656384, 776656384, 4161191424, 4161033728, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp4_vp1_1node/golden_values_dev_dgx_gb200",
	  759682560, 759682560, 4148528640, 4148303360, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline/golden_values_dev_dgx_h100",
	  688128512, 689098444, 2415566336, 2416316108, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp1_pp4_vp2_account_for_embedding_loss_in_pipeline_split_1node/golden_values_dev_dgx_gb200",
	  638725632, 639276134, 2842088960, 2840581222, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp2_pp2_cp2/golden_values_dev_dgx_h100",
	  510689792, 512069939, 935253504, 936546611, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp2_pp2_cross_entropy_loss_fusion/golden_values_dev_dgx_h100",
	  514359808, 516264243, 1837640192, 1839386931, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp2_pp2_mla/golden_values_dev_dgx_h100",
	  388269568, 386365952, 1248256512, 1246394880, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp2_pp2_resume_torch_dist_defer_embedding_wgrad_compute/golden_values_dev_dgx_h100",
	  545423872, 545231155, 1894918656, 1885131059, 1e-3 },
	{ "gpt/gpt3_mcore_te_tp4_pp1_resume_torch_dist_qk_layernorm_test_mode_1node/golden_values_dev_dgx_gb200",
	  397748736, 397690368, 1185178624, 1186006528, 5e-3 },
	{ "gpt/gpt3_mcore_tp1_pp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce_param_gather/golden_values_dev_dgx_h100",
	  518880768, 518880768, 4608815616, 4607647744, 1e-3 },
	{ "gpt/gpt3_mcore_tp2_pp2_uninstall_te/golden_values_dev_dgx_a100",
	  560548864, 561021235, 2086473728, 2085742899, 1e-3 },
	{ "gpt/gpt3_weekly_mcore_tp2_pp2_current_scaling_native_fp8_tp_pp_sp_tp_overlap/golden_values_dev_dgx_h100",
	  476258816, 473981440, 883747328, 882676224, 1e-3 },
	{ "moe/gpt3_mcore_te_tp2_pp1_te_8experts2parallel_ddp_average_in_collective/golden_values_dev_dgx_h100",
	  1027088896, 1026450944, 3300554752, 3296454144, 1e-3 },
	{ "moe/gpt3_mcore_tp2_pp2_ep2_etp2_te_4experts2parallel/golden_values_dev_dgx_h100",
	  491767808, 491788800, 1226082304, 1228683776, 1e-3 },
	{ "moe/gpt3_mcore_cp2_pp2_ep2_te_4experts2parallel_nondeterministic/golden_values_dev_dgx_h100",
	  1155746816, 1156841574, 2061327360, 2057732198, 1e-3 },
	{ "moe/gpt3_mcore_te_tp2_pp1_te_a2a_ovlp_8experts_etp1_ep4/golden_values_dev_dgx_h100",
	  1562563072, 1562185830, 4065854464, 4083847270, 1e-3 },
	{ "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_muon/golden_values_dev_dgx_h100",
	  994024704, 993167872, 3526288384, 3513993728, 1e-3 },
	{ "moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed/golden_values_dev_dgxh100_dgxc",
	  6637274624, 6597485056, 57961472000, 57668149760, 5e-3 },
	{ "hybrid/hybrid_mr_mcore_te_tp1_pp4_cp1_dgx_a100_1N8G/golden_values_dev_dgx_h100",
	  1784293376, 1783924864, 4483712000, 4473178240, 1e-3 },
	{ "nemotron/nemotron3_5_lightning_no_load_optim_tp1_pp1_cp1_ep4_dgx_gb200_1N4G/golden_values_dev_dgx_gb200",
	  2150481408, 2144365312, 6953188864, 6922956256, 5e-3 },
};

static const struct mb_measured *find(const char *id)
{
	for (int i = 0; i < set.count; i++)
		if (strcmp(set.rows[i].id, id) == 0)
			return &set.rows[i];
	cr_assert_fail("%s is not in golden.jsonl", id);
	return NULL;
}

/* The last rank's memory; NULL when the row cannot be expressed. */
static const struct mb_stage_memory *predict(const char *id)
{
	static struct mb_query q;
	const struct mb_measured *row = find(id);
	struct mb_diags diags = { 0 };

	if (row->skip != NULL)
		return NULL;
	memset(&q, 0, sizeof q);
	cr_assert(mb_query_from_node(row->run, &library, &arena, &q, &diags), "%s: %s", id, diags.item[0].text);
	load_evaluate(&q, e);
	return &e->stage_memory[q.c.run.plan.pp - 1];
}

Test(memory_vectors, one_row_for_each_mechanism)
{
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		const struct vector *v = &vectors[i];
		const struct mb_stage_memory *m = predict(v->id);

		cr_assert(m != NULL, "%s is skipped", v->id);
		expect_rel(m->between_bytes, v->worked_between, v->tolerance, v->id);
		expect_rel(m->peak_bytes, v->worked_peak, v->tolerance, v->id);
		/* The worked figures are at most 1.2 % from what the run reported. */
		expect_rel(m->between_bytes, v->between, 0.012, v->id);
		expect_rel(m->peak_bytes, v->peak, 0.012, v->id);
	}
}

/* Encoders are refused by name, not sized as something else. */
Test(memory_vectors, bert_is_refused)
{
	static struct mb_query q;
	const struct mb_measured *row = find("bert/bert_mcore_tp1_pp2/golden_values_dev_dgx_a100");
	struct mb_diags diags = { 0 };

	cr_expect(row->skip != NULL || !mb_query_from_node(row->run, &library, &arena, &q, &diags));
	cr_expect(strstr(row->skip != NULL ? row->skip : diags.item[0].text, "bert") != NULL, "%s", diags.item[0].text);
}

/*
 * With expandable segments no block is rounded and every byte has an owner. 3 chunks a rank of one layer each, h 512:
 * P = 3 * 3,152,384 + 50304 * 512 + 1024 parameters of 18 bytes, three 32 MiB workspaces and one of 1 KiB, three stage
 * inputs of 4 MiB with their gradients, 3,584 bytes of scalars.
 */
Test(memory_vectors, every_byte_between_steps)
{
	static const char *const machines[] = { "dgx_gb200", "dgx_h100" };
	double parameters = 3 * 3152384 + 50304 * 512 + 1024;

	for (size_t i = 0; i < 2; i++) {
		char id[128];
		const struct mb_stage_memory *m;

		snprintf(id, sizeof id, "gpt/gpt3_mcore_te_tp1_pp4_vp1_tunable_overlap/golden_values_dev_%s", machines[i]);
		m = predict(id);
		cr_assert(m != NULL);
		cr_expect_eq(m->dense_params, 35213824);
		expect_rel(parameters, 35213824, 1e-15, "parameters");
		expect_rel(m->between_bytes, parameters * 18 + 3 * 32 * 1048576 + 1024 + 3 * 2 * 4 * 1048576 + 3584, 1e-15, id);
		expect_rel(m->between_bytes, 759682560, 1e-15, "measured");
		expect_rel(m->peak_bytes, 4622615552, 1e-4, "peak");
	}
}

/*
 * h 512, 12 layers, s 1024, b 4, one rank of 8 with a distributed optimizer: 64,109,568 parameters of 6 + 12 / 8 bytes. A
 * layer keeps, in MiB, norm in and out 4 + 4, q k v 12, output 4, softmax 64, its mask 32 and product 64, mask 2, norm
 * 4 + 4, fc1 16, gelu 16, mask 2, and four statistics of 16 KiB; the embedding a mask of 2; the final norm 8; the loss 6
 * bytes a logit. The batch: a mask of 4 MiB and 28 bytes a token.
 */
Test(memory_vectors, every_byte_of_a_peak)
{
	const char *row = "gpt/gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files/golden_values_dev_dgx_h100";
	const struct mb_stage_memory *m = predict(row);
	double layer = (4 + 4 + 12 + 4 + 64 + 32 + 64 + 2 + 4 + 4 + 16 + 16 + 2) * 1048576.0 + 4 * 16384;
	double saved = 12 * layer + 2 * 1048576 + 8 * 4096 + 8 * 1048576 + 2 * 16384;
	double between = 64109568 * 7.5 + 3 * 32 * 1048576 + 1024 + 3584;

	cr_assert(m != NULL);
	expect_rel(between, 581489664, 1e-15, "between steps by hand");
	expect_rel(m->between_bytes, 581489664, 1e-15, "between steps");
	expect_rel(m->terms[MB_MEM_activations], saved, 1e-12, "activations by hand");
	expect_rel(m->terms[MB_MEM_loss], 6.0 * 4096 * 50304, 1e-12, "loss by hand");
	expect_rel(m->terms[MB_MEM_batch], 4 * 1048576 + 28 * 4096, 1e-12, "batch by hand");
	expect_rel(m->peak_bytes, 4702430720, 1e-4, "measured peak");
}

Test(memory_vectors, larger_models)
{
	const struct mb_stage_memory *m = predict("gpt/gpt3_7b_tp4_pp1_memory_speed/golden_values_dev_dgx_a100");

	cr_assert(m != NULL);
	expect_rel(m->between_bytes, 20634103808, 3e-4, "7B on A100, between steps");
	expect_rel(m->peak_bytes, 58188115968, 3e-4, "7B on A100, peak");
	m = predict("nemotron/nemotron3_5_lightning_nightly_tp1_pp1_cp1_ep8_dgx_gb200/golden_values_dev_dgx_gb200");
	cr_assert(m != NULL);
	expect_rel(m->between_bytes, 88828780544, 4e-3, "Nemotron 30B, between steps");
	expect_rel(m->first_step_peak_bytes, 123182538752, 1e-2, "Nemotron 30B, first step, when routing is still even");
}
