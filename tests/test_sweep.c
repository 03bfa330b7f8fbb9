/* Sweeps: hashes, conditions, how a file becomes cells, and keys of cells. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep/cell.h"
#include "sweep/condition.h"
#include "sweep/grid.h"
#include "sweep/hash.h"

/* ---- hash ---- */

static const struct { const char *text, *hash; } vectors[] = {
	/* FIPS 180-4's examples, by NIST. */
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

Test(hash, matches_published_vectors)
{
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		char got[MB_HASH_TEXT];
		struct mb_hash h;

		mb_hash_start(&h);
		mb_hash_add(&h, vectors[i].text, strlen(vectors[i].text));
		mb_hash_end(&h, got);
		cr_expect_str_eq(got, vectors[i].hash);
	}
}

Test(hash, a_million_letters_in_pieces)
{
	char got[MB_HASH_TEXT];
	struct mb_hash h;

	mb_hash_start(&h);
	for (int i = 0; i < 1000000 / 125; i++) {
		char part[125];

		memset(part, 'a', sizeof part);
		mb_hash_add(&h, part, 60);
		mb_hash_add(&h, part, 65);
	}
	mb_hash_end(&h, got);
	cr_expect_str_eq(got, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

Test(hash, texts_do_not_run_together)
{
	char one[MB_HASH_TEXT], other[MB_HASH_TEXT];
	struct mb_hash h;

	mb_hash_start(&h);
	mb_hash_text(&h, "ab");
	mb_hash_text(&h, "c");
	mb_hash_end(&h, one);
	mb_hash_start(&h);
	mb_hash_text(&h, "a");
	mb_hash_text(&h, "bc");
	mb_hash_end(&h, other);
	cr_expect_str_neq(one, other);
}

/* ---- conditions ---- */

static bool look_up(void *context, const char *name, struct mb_operand *ret)
{
	(void)context;
	if (strcmp(name, "gpus") == 0)
		*ret = (struct mb_operand){ true, 64, "64" };
	else if (strcmp(name, "gbs") == 0)
		*ret = (struct mb_operand){ true, 96, "96" };
	else if (strcmp(name, "hardware") == 0)
		*ret = (struct mb_operand){ false, 0, "dgx-h100" };
	else
		return false;
	return true;
}

static const struct { const char *text; int holds; } conditions[] = {    /* -1: an error */
	{ "gpus == 64", 1 },
	{ "gpus != 64", 0 },
	{ "gpus >= 64 and gbs % gpus == 32", 1 },
	{ "gpus + 2 * 16 <= gbs", 1 },
	{ "(gpus + 2) * 16 <= gbs", 0 },
	{ "gbs - gpus - 32 == 0", 1 },
	{ "gbs / gpus == 1.5", 1 },
	{ "hardware == dgx-h100", 1 },
	{ "hardware == 'dgx-h100' and not hardware == dgx-b200", 1 },
	{ "hardware != dgx-h100 or gpus < 128", 1 },
	{ "hardware != dgx-h100 or gpus < 8 and gbs == 96", 0 },
	{ "not not gpus == 64", 1 },
	{ "true", 1 },
	{ "gpus = 64", -1 },
	{ "gpus ==", -1 },
	{ "gpus == 64 64", -1 },
	{ "(gpus == 64", -1 },
	{ "hardware < 5", -1 },
	{ "gpus % 0 == 1", -1 },
	{ "'open == 1", -1 },
	{ "", -1 },
	{ "hardware", -1 },
};

Test(condition, means_what_it_says)
{
	for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
		struct mb_diags diags = { 0 };
		bool holds = false, ok = mb_condition_holds(conditions[i].text, (struct mb_pos){ "f", 1, 1 }, look_up, NULL, &holds, &diags);

		cr_expect_eq(ok ? (int)holds : -1, conditions[i].holds, "%s", conditions[i].text);
		cr_expect_eq(diags.errors, !ok, "%s", conditions[i].text);
	}
}

Test(condition, deep_nesting_is_an_error_and_no_crash)
{
	struct mb_diags diags = { 0 };
	char text[4001];
	bool holds;

	memset(text, '(', 4000);
	text[4000] = '\0';
	cr_expect_not(mb_condition_holds(text, (struct mb_pos){ 0 }, look_up, NULL, &holds, &diags));
}

/* ---- grids ---- */

static bool read_sweep(const char *yaml, struct mb_arena *arena, struct mb_sweep *ret, struct mb_diags *diags)
{
	char path[] = "/tmp/mbsim-sweep-XXXXXX";
	int fd = mkstemp(path);
	bool ok;

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
	close(fd);
	ok = mb_sweep_read(mb_arena_strdup(arena, path), arena, ret, diags);
	unlink(path);
	return ok;
}

static const struct { const char *yaml; int cells, dropped; } grids[] = {
	{ "base: {model: llama3-8b}\n", 1, 0 },
	{ "grid: {tp: [1, 2, 4], pp: [1, 2]}\n", 6, 0 },
	{ "grid: {gpus: {from: 8, to: 64, factor: 2}}\n", 4, 0 },
	{ "grid: {gpus: {from: 8, to: 100, factor: 2}}\n", 4, 0 },
	{ "grid: {mbs: {from: 1, to: 9, step: 2}}\n", 5, 0 },
	{ "grid: {gpus: 8}\nzip: {seq: [4096, 8192], gbs: [256, 128]}\n", 2, 0 },
	{ "zip: [{seq: [1, 2], gbs: [1, 2]}, {tp: [1, 2, 4], pp: [4, 2, 1]}]\n", 6, 0 },
	{ "grid: {gpus: [8, 16]}\ncases: [{tp: 1}, {tp: 2, pp: 2}]\n", 4, 0 },
	{ "grid: {tp: [1, 2, 4], pp: [1, 2, 4]}\nwhere: tp * pp <= 4\n", 6, 3 },
	{ "base: {gbs: 64}\ngrid: {tp: [1, 2, 4]}\nwhere: [tp >= 2, global_batch_size == 64]\n", 2, 1 },
	{ "grid: {recompute_modules: [[moe_act], [moe_act, layernorm], []]}\n", 3, 0 },
};

Test(grid, has_the_cells_that_the_file_says)
{
	for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
		struct mb_arena arena = { 0 };
		struct mb_diags diags = { 0 };
		struct mb_sweep s;

		cr_expect(read_sweep(grids[i].yaml, &arena, &s, &diags), "%s: %s", grids[i].yaml, diags.item[0].text);
		cr_expect_eq(s.cell_count, grids[i].cells, "%s has %d cells", grids[i].yaml, s.cell_count);
		cr_expect_eq(s.dropped, grids[i].dropped, "%s drops %d", grids[i].yaml, s.dropped);
		mb_arena_free(&arena);
	}
}

Test(grid, the_first_key_varies_slowest)
{
	static const char *const want[] = { "1 8", "1 16", "2 8", "2 16" };
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };
	struct mb_sweep s;

	cr_assert(read_sweep("grid:\n  tp: [1, 2]\n  gpus: [8, 16]\n", &arena, &s, &diags));
	cr_expect_str_eq(s.keys[0], "tensor_model_parallel_size");
	for (int i = 0; i < 4; i++) {
		char got[64];

		snprintf(got, sizeof got, "%s %s", mb_sweep_text(&s, i, 0, &arena), mb_sweep_text(&s, i, 1, &arena));
		cr_expect_str_eq(got, want[i]);
	}
	mb_arena_free(&arena);
}

static const char *const bad[] = {
	"grid: {tp: []}\n",
	"grid: {tp: [1], tensor_model_parallel_size: [2]}\n",
	"grid: {gpus: {from: 8, to: 4, factor: 2}}\n",
	"grid: {gpus: {from: 8, to: 64}}\n",
	"grid: {gpus: {from: 8, to: 64, factor: 1}}\n",
	"grid: {gpus: {from: 1, to: 1e9, step: 1}}\n",
	"zip: {seq: [1, 2], gbs: [1]}\n",
	"cases: {tp: 1}\n",
	"grid: {tp: [1]}\nwhere: tp > 1\n",
	"grid: {tp: [1]}\nwhere: tp >\n",
	"gird: {tp: [1]}\n",
	"mode: guess\n",
	"base: [1]\n",
	"base: /nowhere/run.yaml\n",
	"report: {goodput: 90}\n",
};

Test(grid, mistakes_are_reported)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct mb_arena arena = { 0 };
		struct mb_diags diags = { 0 };
		struct mb_sweep s;

		cr_expect_not(read_sweep(bad[i], &arena, &s, &diags), "%s", bad[i]);
		cr_expect_gt(diags.errors, 0, "%s", bad[i]);
		mb_arena_free(&arena);
	}
}

/* ---- keys ---- */

static void key_of(const char *yaml, char ret[MB_HASH_TEXT])
{
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };
	struct mb_library library;
	struct mb_fingerprints files = { &library, &arena, NULL };
	struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
	struct mb_sweep s;

	cr_assert(mb_library_open(&library, &diags));
	cr_assert(read_sweep(yaml, &arena, &s, &diags), "%s", diags.item[0].text);
	cr_assert(mb_cell_query(&s, 0, &library, &arena, q, &diags), "%s: %s", yaml, diags.item[0].text);
	mb_cell_key(&s, 0, q, &files, ret);
	mb_arena_free(&arena);
}

#define BASE "base: {model: llama3-8b, hardware: dgx-h100, seq: 4096, gbs: 64}\n"

Test(key, the_same_run_has_the_same_key)
{
	char one[MB_HASH_TEXT], other[MB_HASH_TEXT];

	key_of(BASE "grid: {tp: [2], gpus: [8]}\n", one);
	key_of("# a comment\n" BASE "grid: {tensor_model_parallel_size: [2], gpus: [8, 16]}\nreport: {tokens: 1e9}\n", other);
	cr_expect_str_eq(one, other);
}

Test(key, what_changes_the_answer_changes_the_key)
{
	static const char *const others[] = {
		BASE "grid: {tp: [4], gpus: [8]}\n",
		BASE "grid: {tp: [2], gpus: [16]}\n",
		BASE "mode: estimate\ngrid: {tp: [2], gpus: [8]}\n",
		BASE "what_if: true\ngrid: {tp: [2], gpus: [8]}\n",
		BASE "objective: memory\ngrid: {tp: [2], gpus: [8]}\n",
		BASE "grid: {tp: [2], gpus: [8], hardware.hbm: [1.5x]}\n",
		"base: {model: llama3-8b, hardware: dgx-h200, seq: 4096, gbs: 64}\ngrid: {tp: [2], gpus: [8]}\n",
		"base: {model: llama3.1-8b, hardware: dgx-h100, seq: 4096, gbs: 64}\ngrid: {tp: [2], gpus: [8]}\n",
		"base: {model: llama3-8b, hardware: dgx-h100, seq: 4096, gbs: 64, stack: nemo-25.09}\ngrid: {tp: [2], gpus: [8]}\n",
	};
	char one[MB_HASH_TEXT], other[MB_HASH_TEXT];

	key_of(BASE "grid: {tp: [2], gpus: [8]}\n", one);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		key_of(others[i], other);
		cr_expect_str_neq(one, other, "%s", others[i]);
	}
}
