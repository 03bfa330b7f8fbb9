#include "query_fixture.h"

TestSuite(query_errors, .init = begin, .fini = done);

static const struct { const char *text; int line, column; const char *says, *nearest; } wrong[] = {
	{ "recompute_module: [moe_act]", 6, 1, "unknown key 'recompute_module'", "recompute_modules" },
	{ "ddp: {use_distributed_optimiser: true}", 6, 7, "unknown key 'use_distributed_optimiser'", "use_distributed_optimizer" },
	{ "tp: 4k", 6, 5, "tensor_model_parallel_size: '4k' is not a whole number, did you mean 4096?", "" },
	{ "mean_sequence_length: 2K", 6, 23, "mean_sequence_length: '2K' is not a whole number of tokens, did you mean 2048?", "" },
	{ "tp: two", 6, 5, "tensor_model_parallel_size: 'two' is not a whole number", "" },
	{ "tp: 1.5", 6, 5, "tensor_model_parallel_size: '1.5' is not a whole number", "" },
	{ "tp: {a: 1}", 6, 5, "tensor_model_parallel_size: a mapping where a whole number is expected", "" },
	{ "tp: 0", 6, 5, "tensor_model_parallel_size: 0 is out of range, expected 1 to 4096", "" },
	{ "tp: -8", 6, 5, "tensor_model_parallel_size: -8 is out of range, expected 1 to 4096", "" },
	{ "tp: null", 6, 5, "tensor_model_parallel_size: null is not possible here, the default is 1", "" },
	{ "sequence_parallel: 2", 6, 20, "sequence_parallel: '2' is neither true nor false", "" },
	{ "sequence_parallel: null", 6, 20, "sequence_parallel: null is not possible here, the default is false", "" },
	{ "moe_load_imbalance: 0.5", 6, 21, "moe_load_imbalance: 0.5 is out of range, expected 1 to 64", "" },
	{ "moe_load_imbalance: much", 6, 21, "moe_load_imbalance: 'much' is not a number", "" },
	{ "precision: fp8_mix", 6, 12, "precision: unknown value 'fp8_mix'", "fp8_mx" },
	{ "recompute_modules: [moe_act, mpl]", 6, 30, "recompute_modules: unknown module 'mpl'", "mlp" },
	{ "recompute_modules: moe_act+mpl", 6, 28, "recompute_modules: unknown module 'mpl'", "mlp" },
	{ "hierarchical_context_parallel_sizes: [2]", 6, 38, "hierarchical_context_parallel_sizes: expected two sizes such as [2, 4]", "" },
	{ "cp: 6\nhierarchical_context_parallel_sizes: [4, 2]", 7, 1,
		"hierarchical_context_parallel_sizes: 4 does not divide context_parallel_size 6", "" },
	{ "pipeline_model_parallel_layout: Et*4|tx", 6, 39,
		"pipeline_model_parallel_layout: expected E, t, m, L, '|', or a group in parentheses", "" },
	{ "pipeline_model_parallel_layout: [[embedding, layer]]", 6, 46,
		"pipeline_model_parallel_layout: a stage holds embedding, decoder, mtp and loss", "" },
	{ "tp: 2\ntensor_model_parallel_size: 4", 7, 1,
		"tensor_model_parallel_size is given twice, first as 'tp' in line 6", "" },
	{ "torch: new", 6, 8, "torch: 'new' is not a version such as 2.14.0", "" },
	{ "environment: 1", 6, 14, "environment: expected a mapping of variables to values", "" },
	{ "environment: {CUDA_DEVICE_MAX_CONNECTIONS: many}", 6, 44,
		"CUDA_DEVICE_MAX_CONNECTIONS: 'many' is not a whole number of 0 to 65536", "" },
	{ "peft: dora", 6, 7, "peft: 'dora' is not modelled, expected lora or null", "" },
	{ "peft: {target_modules: [linear_x]}", 6, 25, "target_modules: unknown module 'linear_x'", "" },
	{ "precision: auto", 6, 12, "precision: search does not choose it, one value is expected", "" },
	{ "precision: bf16,fp16", 6, 17, "precision: search compares no alternatives of it, one value is expected", "" },
	{ "tp: 1,auto", 6, 7, "tensor_model_parallel_size: 'auto' beside other values", "" },
	{ "num_layers: 4", 6, 1, "'num_layers' is part of the model, not of the run", "" },
	{ "family: bert", 6, 9, "family: 'bert' is not modelled", "" },
};

Test(query_errors, errors_say_what_and_where)
{
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		const struct mb_diag *d = &diags.item[0];

		cr_expect_not(load_text(mb_arena_printf(&arena, "%s%s\n", RUN, wrong[i].text)), "%s", wrong[i].text);
		cr_expect_eq(diags.errors, 1, "%s: %d errors", wrong[i].text, diags.errors);
		cr_expect_str_eq(d->text, wrong[i].says, "%s: %s", wrong[i].text, d->text);
		cr_expect_str_eq(d->pos.file != NULL ? d->pos.file : "", "run.yaml", "%s", wrong[i].text);
		cr_expect(d->pos.line == wrong[i].line && d->pos.column == wrong[i].column, "%s: %d:%d", wrong[i].text, d->pos.line,
		          d->pos.column);
		cr_expect_str_eq(d->nearest, wrong[i].nearest, "%s: %s", wrong[i].text, d->nearest);
	}
}

static const struct { const char *words; const char *argument; int column; const char *says; } mistyped[] = {
	{ "seq=4k", "argument 2", 5, "seq_length: '4k' is not a whole number of tokens, did you mean 4096?" },
	{ "--seq-length 4k", "argument 3", 1, "seq_length: '4k' is not a whole number of tokens, did you mean 4096?" },
	{ "--seq-length=4k", "argument 2", 14, "seq_length: '4k' is not a whole number of tokens, did you mean 4096?" },
	{ "tpp=2", "argument 2", 1, "unknown key 'tpp'" },
	{ "--tensor-parallel 2", "argument 2", 3, "unknown key '--tensor-parallel'" },
	{ "recompute_modules=[moe_act,mpl]", "argument 2", 28, "recompute_modules: unknown module 'mpl'" },
	{ "recompute_modules=[mlp],[mpl]", "argument 2", 26, "recompute_modules: unknown module 'mpl'" },
	{ "recompute_modules=[mlp", "argument 2", 19, "recompute_modules: unknown module '[mlp'" },
	{ "tp=1,two", "argument 2", 6, "tensor_model_parallel_size: 'two' is not a whole number" },
	{ "tp=", "argument 2", 4, "tensor_model_parallel_size: null is not possible here, the default is 1" },
	{ "no-such-file.yaml", "argument 2", 1, "no such file: 'no-such-file.yaml'" },
};

Test(query_errors, errors_name_the_argument)
{
	char path[] = "/tmp/mbsim-test-XXXXXX";

	cr_assert(close(mkstemp(path)) == 0);
	write_file(path, RUN);
	for (size_t i = 0; i < sizeof mistyped / sizeof mistyped[0]; i++) {
		const struct mb_diag *d = &diags.item[0];

		cr_expect_not(load_words(mb_arena_printf(&arena, "%s %s", path, mistyped[i].words), false), "%s", mistyped[i].words);
		cr_expect_eq(diags.errors, 1, "%s: %d errors", mistyped[i].words, diags.errors);
		cr_expect_str_eq(d->text, mistyped[i].says, "%s: %s", mistyped[i].words, d->text);
		cr_expect_str_eq(d->pos.file, mistyped[i].argument, "%s: %s", mistyped[i].words, d->pos.file);
		cr_expect(d->pos.line == 0 && d->pos.column == mistyped[i].column, "%s: %d", mistyped[i].words, d->pos.column);
	}
	unlink(path);
}

Test(query_errors, all_errors_of_a_run_at_once)
{
	cr_expect_not(load_text("tp: x\npp: y\nrecompute_module: []\n"));
	cr_expect_eq(diags.errors, 3 + 5, "three wrong values, and model, hardware, gpus, sequence and batch are missing");
	cr_expect_not(load_text("[1, 2]"));
	cr_expect_str_eq(diags.item[0].text, "a run is a mapping of keys");
}

Test(query_errors, yaml_booleans_are_read_with_a_warning)
{
	cr_expect(load_text(RUN "recompute_granularity: no\nsequence_parallel: yes\n"));
	cr_assert_eq(diags.warnings, 2);
	cr_expect_str_eq(diags.item[0].text, "recompute_granularity: 'no' is YAML for false, read as null; write null");
	cr_expect_eq(diags.item[0].pos.line, 6);
	cr_expect_eq(diags.item[0].pos.column, 24);
	cr_expect_str_eq(diags.item[1].text, "sequence_parallel: 'yes' is YAML for true; write true");
	cr_expect(q->c.run.plan.sequence_parallel);
}
