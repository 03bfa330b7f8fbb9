#include <criterion/criterion.h>

#include <string.h>

#include "plan/query.h"

Test(keys, names_are_unique_over_all_spellings)
{
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		bool negated;

		cr_expect_eq(mb_key_find(mb_keys[i].name, &negated), &mb_keys[i], "%s", mb_keys[i].name);
		cr_expect_not(negated, "%s", mb_keys[i].name);
		if (mb_keys[i].short_name != NULL)
			cr_expect_eq(mb_key_find(mb_keys[i].short_name, NULL), &mb_keys[i], "%s", mb_keys[i].short_name);
		if (mb_keys[i].flag != NULL && mb_keys[i].flag[0] != '\0')
			cr_expect_eq(mb_key_find(mb_keys[i].flag, NULL), &mb_keys[i], "%s", mb_keys[i].flag);
	}
}

static const struct { const char *said; enum mb_key_id key; bool negated; } spellings[] = {
	{ "tp", MB_K_tp, false },
	{ "model.tensor_model_parallel_size", MB_K_tp, false },
	{ "--tensor-model-parallel-size", MB_K_tp, false },
	{ "tensor-model-parallel-size", MB_K_tp, false },
	{ "train.global_batch_size", MB_K_gbs, false },
	{ "comm_overlap.tp_comm_overlap", MB_K_tp_overlap, false },
	{ "ddp.use_distributed_optimizer", MB_K_dist_opt, false },
	{ "optimizer.use_distributed_optimizer", MB_K_dist_opt, false },
	{ "optimizer.optimizer", MB_K_optimizer, false },
	{ "mixed_precision.grad_reduce_in_fp32", MB_K_grad_fp32, false },
	{ "dist.use_megatron_fsdp", MB_K_fsdp, false },
	{ "dataset.seq_length", MB_K_seq, false },
	{ "dataset.sequence_length", MB_K_seq, false },
	{ "rng.te_rng_tracker", MB_K_te_rng, false },
	{ "--no-overlap-p2p-communication", MB_K_p2p_overlap, true },
	{ "--no-rope-fusion", MB_K_rope_fusion, true },
	{ "--no-masked-softmax-fusion", MB_K_softmax_fusion, true },
	{ "--grad-reduce-in-bf16", MB_K_grad_fp32, true },
	{ "--no-grad-reduce-in-bf16", MB_K_grad_fp32, false },
	{ "--accumulate-allreduce-grads-in-fp32", MB_K_grad_fp32, false },
	{ "--ddp-average-in-collective", MB_K_average, false },
	{ "--decoder-first-pipeline-num-layers", MB_K_first_layers, false },
	{ "--num-virtual-stages-per-pipeline-rank", MB_K_vp, false },
	{ "--cuda-graph-modules", MB_K_graph_scope, false },
	{ "cuda_graph_modules", MB_K_graph_scope, false },
	{ "hybridep_num_sms", MB_K_num_sms, false },
	{ "moe_deepep_num_sms", MB_K_num_sms, false },
	{ "moe_hybridep_num_sms", MB_K_num_sms, false },
	{ "mixed_precision", MB_K_precision, false },
};

Test(keys, every_spelling_is_found)
{
	for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
		bool negated = false;
		const struct mb_key *key = mb_key_find(spellings[i].said, &negated);

		cr_expect_eq(key, &mb_keys[spellings[i].key], "%s", spellings[i].said);
		cr_expect_eq(negated, spellings[i].negated, "%s", spellings[i].said);
	}
}

Test(keys, others_are_not)
{
	static const char *const unknown[] = { "", "--", "no_", "model.", "tensor", "model.model.tp", "--no-tensor-model-parallel-size",
		"tp ", "gpus=8", "no_no_rope_fusion" };
	bool negated;

	for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
		cr_expect_null(mb_key_find(unknown[i], &negated), "'%s'", unknown[i]);
	cr_expect_null(mb_key_find("--no-rope-fusion", NULL), "a negated flag needs somewhere to say so");
}

/* A wrong offset or member type would show as a value that leaks into another key. */
Test(keys, put_changes_one_key_only)
{
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		struct mb_run before, after;
		bool number = mb_keys[i].type == MB_KEY_NUMBER;

		memset(&before, 0, sizeof before);
		memset(&after, 0, sizeof after);
		mb_key_put(&after, &mb_keys[i], number ? (union mb_value){ .d = 0.5 } : (union mb_value){ .i = 1 });
		for (int j = 0; j < MB_KEY_COUNT; j++) {
			union mb_value a = mb_key_get(&before, &mb_keys[j]), b = mb_key_get(&after, &mb_keys[j]);
			bool same = memcmp(&a, &b, sizeof a) == 0;

			cr_expect_eq(same, i != j, "%s and %s", mb_keys[i].name, mb_keys[j].name);
		}
	}
}

Test(keys, only_plan_keys_are_open)
{
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		bool in_plan = mb_keys[i].offset >= offsetof(struct mb_run, plan) &&
		               mb_keys[i].offset < offsetof(struct mb_run, plan) + sizeof(struct mb_plan);

		cr_expect(!mb_keys[i].open || in_plan, "%s", mb_keys[i].name);
	}
}

static const struct { enum mb_key_id key; long long value; const char *text; } formats[] = {
	{ MB_K_tp, 8, "8" },
	{ MB_K_vp, 1, "1" },
	{ MB_K_first_layers, 0, "null" },
	{ MB_K_mtp, MB_AUTO, "null" },
	{ MB_K_mtp, 0, "0" },
	{ MB_K_sp, 1, "true" },
	{ MB_K_fp8_gather, MB_AUTO, "null" },
	{ MB_K_fp8_gather, 0, "false" },
	{ MB_K_recompute, MB_RECOMPUTE_NONE, "null" },
	{ MB_K_recompute, MB_RECOMPUTE_FULL, "full" },
	{ MB_K_backend, MB_BACKEND_NONE, "null" },
	{ MB_K_graph_impl, MB_GRAPH_NONE, "none" },
	{ MB_K_modules, 0, "[]" },
	{ MB_K_modules, MB_MOE_ACT | MB_LAYERNORM_MODULE, "[layernorm, moe_act]" },
	{ MB_K_cp_comm_type, MB_CP_A2A_P2P, "a2a+p2p" },
	{ MB_K_cp_sizes, 2, "[2, 4]" },
	{ MB_K_cp_sizes, 0, "null" },
	{ MB_K_layout, -1, "null" },
	{ MB_K_layout, 7, "null" },
	{ MB_K_precision, MB_FP8_MX, "fp8_mx" },
};

Test(keys, format_is_what_a_file_would_say)
{
	struct mb_run run;
	char text[64];

	memset(&run, 0, sizeof run);
	run.plan.cp = 8;
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		const struct mb_key *key = &mb_keys[formats[i].key];

		mb_key_put(&run, key, (union mb_value){ .i = formats[i].value });
		mb_key_format(NULL, &run, key, text, sizeof text);
		cr_expect_str_eq(text, formats[i].text, "%s", key->name);
	}
	mb_key_put(&run, &mb_keys[MB_K_imbalance], (union mb_value){ .d = 1.25 });
	mb_key_format(NULL, &run, &mb_keys[MB_K_imbalance], text, sizeof text);
	cr_expect_str_eq(text, "1.25");
	mb_key_format(NULL, &run, &mb_keys[MB_K_capacity], text, sizeof text);
	cr_expect_str_eq(text, "null");
	mb_key_put(&run, &mb_keys[MB_K_modules], (union mb_value){ .i = MB_ALL_MODULES });
	mb_key_format(NULL, &run, &mb_keys[MB_K_modules], text, 16);
	cr_expect_lt(strlen(text), 16, "a short buffer is respected");
}

/* An ignored name that is a key as well would never be reached. */
Test(keys, ignored_names_are_sorted_and_no_keys)
{
	bool flag;
	int n = 0;

	for (const char *name; (name = mb_query_ignored_name(n)) != NULL; n++) {
		bool negated;

		cr_expect(n == 0 || strcmp(mb_query_ignored_name(n - 1), name) < 0, "%s", name);
		cr_expect_null(mb_key_find(name, &negated), "%s", name);
		cr_expect_not(mb_query_is_special(name, &flag), "%s", name);
		cr_expect_not(mb_query_is_megatron_flag(name, &flag), "%s", name);
		cr_expect(mb_query_ignored(name, &flag), "%s", name);
	}
	cr_expect_gt(n, 250);
	cr_expect(mb_query_ignored("no-log-progress", &flag));
	cr_expect(mb_query_ignored("lr-warmup-fraction", &flag) && !flag);
	cr_expect_not(mb_query_ignored("no-lr", &flag), "only flags can be negated");
	cr_expect_not(mb_query_ignored("", &flag));
}
