#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

static const char *const names[] = { "deepseek-v3", "llama3-70b", "llama3-8b", "qwen3-30b-a3b", "recompute_modules", "tp" };
enum { NAMES = sizeof names / sizeof names[0] };

static const struct { const char *word, *nearest; } near[] = {
	{ "deepseek-v3",      "deepseek-v3" },
	{ "deepseek_v3",      "deepseek-v3" },
	{ "DeepSeek-V3.1",    "deepseek-v3" },
	{ "lama3-70b",        "llama3-70b" },
	{ "lalma3-70b",       "llama3-70b" },
	{ "recompute_module", "recompute_modules" },
	{ "recmopute_modules", "recompute_modules" },
	{ "llama3",           "llama3-8b" },
	{ "30b-a3b",          "qwen3-30b-a3b" },
	{ "tpp",              "tp" },
};

Test(error, nearest_finds_typing_errors)
{
	for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
		const char *got = mb_nearest(near[i].word, names, NAMES);

		cr_expect_str_eq(got ? got : "nothing", near[i].nearest, "%s gives %s", near[i].word, got ? got : "nothing");
	}
}

Test(error, nearest_does_not_guess)
{
	static const char *const far[] = { "", "mistral", "gpt", "x", "hidden_size",
		"a-word-that-is-longer-than-any-name-and-must-not-be-measured-against-them-at-all" };

	for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
		const char *got = mb_nearest(far[i], names, NAMES);

		cr_expect_null(got, "'%s' gives %s", far[i], got ? got : "");
	}
}

Test(error, a_full_list_keeps_counting)
{
	struct mb_diags d = { 0 };
	struct mb_pos at = { "run.yaml", 1, 1 };

	for (int i = 0; i < 50; i++)
		cr_expect(!mb_fail(&d, at, "error %d", i));
	for (int i = 0; i < 30; i++)
		mb_report(&d, MB_WARNING, at, "key", "warning %d", i);
	cr_expect_eq(d.errors, 50);
	cr_expect_eq(d.warnings, 30);
	cr_expect_eq(d.count, 2 * MB_DIAG_MAX);
	cr_expect_str_eq(d.item[0].text, "error 0");
	cr_expect_str_eq(d.item[MB_DIAG_MAX - 1].text, "error 9");
	cr_expect_str_eq(d.item[MB_DIAG_MAX].text, "warning 0");
	mb_report(&d, MB_ERROR, at, NULL, "one more")->expected[0] = 'x';
	cr_expect_eq(d.item[2 * MB_DIAG_MAX - 1].expected[0], '\0');
}

Test(error, messages_cannot_reach_the_terminal_or_break_text)
{
	struct mb_diags d = { 0 };
	struct mb_pos at = { 0 };
	char big[4000];

	mb_fail(&d, at, "%s", "red \x1b[31m, tab \t, \xff, \xc3\xa9, cut \xc3");
	cr_expect_str_eq(d.item[0].text, "red ?[31m, tab ?, ?, \xc3\xa9, cut ?");
	memset(big, 'a', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	mb_report(&d, MB_ERROR, at, big, "%s", big);
	cr_expect_eq(strlen(d.item[1].text), MB_DIAG_TEXT - 1);
	cr_expect_eq(strlen(d.item[1].key), 63);
}

Test(arena, gives_aligned_zeroed_memory_of_any_size)
{
	static const size_t sizes[] = { 0, 1, 15, 17, 4096, 65535, 65536, 65537, 1000000, 3 };
	struct mb_arena a = { 0 };

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			unsigned char *p = mb_arena_alloc(&a, sizes[i]);

			cr_expect_eq((size_t)p % _Alignof(max_align_t), 0);
			for (size_t j = 0; j < sizes[i]; j++)
				cr_assert_eq(p[j], 0);
			memset(p, 0xa5, sizes[i]);
		}
	}
	cr_expect_str_eq(mb_arena_printf(&a, "%s-%d", "x", 7), "x-7");
	cr_expect_str_eq(mb_arena_strndup(&a, "abcdef", 3), "abc");
	mb_arena_free(&a);
	mb_arena_free(&a);
}

Test(text, grows)
{
	struct mb_text t = { 0 };

	for (int i = 0; i < 1000; i++)
		mb_text_printf(&t, "%d,", i % 10);
	mb_text_pad(&t, '.', 3);
	mb_text_pad(&t, '.', -3);
	mb_text_addn(&t, "abc", 2);
	cr_expect_eq(t.length, 2005);
	cr_expect_eq(strlen(t.data), 2005);
	cr_expect_str_eq(t.data + 1998, "9,...ab");
	mb_text_free(&t);
	mb_text_free(&t);
}
