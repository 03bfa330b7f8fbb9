/* How numbers, tables, JSON and diagnostics are written: UX rules as cases. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/error_report.h"
#include "report/json.h"
#include "report/number.h"
#include "report/table.h"

#define GIB MB_GIB

static const struct mb_style plain = { .width = 100 };

Test(number, three_significant_digits)
{
	static const struct { double value; const char *text;
	} cases[] = {
		{ 0, "0" },           { 0.876, "0.876" },      { 4.1249, "4.12" }, { 13.74, "13.7" },
		{ 148.2, "148" },     { 1235.6, "1,236" },     { 9.996, "10.0" },  { 99.96, "100" },
		{ 0.09996, "0.100" }, { 0.0123456, "0.0123" }, { -2.5, "-2.50" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		cr_expect_str_eq(mb_number_3(cases[i].value).s, cases[i].text, "%g: %s, not %s", cases[i].value,
		                 mb_number_3(cases[i].value).s, cases[i].text);
}

Test(number, commas_stand_between_thousands)
{
	static const struct { double value; const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 999, "999" },
		{ 1000, "1,000" },
		{ 2418176, "2,418,176" },
		{ -12345, "-12,345" },
		{ 1e15, "1,000,000,000,000,000" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		cr_expect_str_eq(mb_number_count(cases[i].value).s, cases[i].text);
	cr_expect_str_eq(mb_number_fixed(1234.56, 1).s, "1,234.6");
}

Test(number, never_nan_inf_or_minus_zero)
{
	cr_expect_str_eq(mb_number_fixed(-0.0, 1).s, "0.0");
	cr_expect_str_eq(mb_number_fixed(-0.04, 1).s, "0.0");
	cr_expect_str_eq(mb_number_fixed(NAN, 1).s, "unknown");
	cr_expect_str_eq(mb_number_3(INFINITY).s, "unknown");
	cr_expect_str_eq(mb_number_duration(NAN).s, "unknown");
	cr_expect_str_eq(mb_number_gib(-INFINITY).s, "unknown");
}

Test(number, memory_has_one_decimal_and_no_false_zero)
{
	static const struct { double bytes; const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 1, "<0.1" },
		{ 0.04 * GIB, "<0.1" },
		{ 0.06 * GIB, "0.1" },
		{ 79.11 * GIB, "79.1" },
		{ 1536 * GIB, "1,536.0" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		cr_expect_str_eq(mb_number_gib(cases[i].bytes).s, cases[i].text);
}

Test(number, units_follow_the_size)
{
	cr_expect_str_eq(mb_number_duration(13.72).s, "13.7 s");
	cr_expect_str_eq(mb_number_duration(0.876).s, "876 ms");
	cr_expect_str_eq(mb_number_duration(0.99996).s, "1.00 s");
	cr_expect_str_eq(mb_number_duration(8.6e-6).s, "8.60 us");
	cr_expect_str_eq(mb_number_gb(1288.4e9).s, "1,288");
	cr_expect_str_eq(mb_number_gb(2.44e9).s, "2.4");
	cr_expect_str_eq(mb_number_percent(0.654).s, "65");
	cr_expect_str_eq(mb_number_percent(0.0254).s, "2.5");
	cr_expect_str_eq(mb_number_mfu(0.357).s, "35.7");
	cr_expect_str_eq(mb_number_params(671.03e9).s, "671.0 B");
}

Test(number, parts_add_up_to_the_printed_total)
{
	static const double parts[] = { 4.46, 4.46, 13.43, 41.14, 0, 0.61 };
	long long shown[6], sum = 0;

	mb_round_parts(parts, 6, 64.1, 10, shown);
	for (int i = 0; i < 6; i++)
		sum += shown[i];
	cr_expect_eq(sum, 641);
	cr_expect_eq(shown[4], 0, "a part that is absent stays absent");
	for (int i = 0; i < 6; i++)
		cr_expect_lt(fabs((double)shown[i] - 10 * parts[i]), 1.0, "no part moves by a whole unit");
}

Test(number, parts_larger_than_the_total_are_taken_back)
{
	static const double parts[] = { 1.6, 1.6, 1.6 };
	long long shown[3];

	mb_round_parts(parts, 3, 2.0, 1, shown);
	cr_expect_eq(shown[0] + shown[1] + shown[2], 2);
}

static const char *print(struct mb_table *t, const struct mb_style *s)
{
	static char kept[4096];
	struct mb_text text = { 0 };

	mb_table_print(t, s, &text);
	snprintf(kept, sizeof kept, "%s", text.data);
	mb_text_free(&text);
	return kept;
}

static void two_rows(struct mb_table *t)
{
	mb_table_column(t, "plan", "", MB_LEFT, 0);
	mb_table_column(t, "step", "s", MB_DECIMAL, 0);
	mb_table_column(t, "MFU", "%", MB_DECIMAL, 1);
	mb_table_row(t, MB_INK_BOLD);
	mb_table_cell(t, "a");
	mb_table_cell(t, "13.7");
	mb_table_cell(t, "24.8");
	mb_table_row(t, MB_INK_PLAIN);
	mb_table_cell(t, "longer");
	mb_table_cell(t, "148");
	mb_table_cell(t, "-");
}

Test(table, numbers_stand_on_their_decimal_point)
{
	struct mb_arena arena = { 0 };
	struct mb_table t = { .arena = &arena };

	two_rows(&t);
	cr_expect_str_eq(print(&t, &plain), "plan     step   MFU\n"
	                                    "            s     %\n"
	                                    "a        13.7  24.8\n"
	                                    "longer  148       -\n");
	mb_arena_free(&arena);
}

Test(table, columns_are_dropped_before_a_row_would_wrap)
{
	struct mb_arena arena = { 0 };
	struct mb_table t = { .arena = &arena };
	struct mb_style narrow = { .width = 14, .cut = true }, piped = { .width = 14 };

	two_rows(&t);
	cr_expect_not_null(strstr(print(&t, &piped), "MFU"), "into a pipe nothing is left out");

	const char *text = print(&t, &narrow);

	cr_expect_null(strstr(text, "MFU"));
	cr_expect_not_null(strstr(text, "13.7"));
	mb_arena_free(&arena);
}

Test(table, colour_changes_no_width)
{
	struct mb_arena arena = { 0 };
	struct mb_table t = { .arena = &arena };
	struct mb_style colour = { .width = 100, .utf8 = true, .colour = true };

	two_rows(&t);
	const char *text = print(&t, &colour);

	cr_expect_not_null(strstr(text, "\033[1ma\033[0m"));
	cr_expect_eq(mb_text_width("\033[1mab\033[0m"), 2);
	cr_expect_eq(mb_text_width("◆●é"), 3);
	mb_arena_free(&arena);
}

Test(table, markdown_escapes_bars)
{
	struct mb_arena arena = { 0 };
	struct mb_table t = { .arena = &arena };
	struct mb_text text = { 0 };

	mb_table_column(&t, "layout", "", MB_LEFT, 0);
	mb_table_row(&t, MB_INK_PLAIN);
	mb_table_cell(&t, "Et|tL");
	mb_table_markdown(&t, &text);
	cr_expect_str_eq(text.data, "| layout |\n|---|\n| Et\\|tL |\n");
	mb_text_free(&text);
	mb_arena_free(&arena);
}

Test(style, shell_words_are_quoted_only_when_they_must)
{
	static const struct { const char *word, *text;
	} cases[] = {
		{ "tp=1,2", "tp=1,2" },           { "recompute_modules=[moe_act]", "'recompute_modules=[moe_act]'" },
		{ "it's", "'it'\\''s'" },         { "", "''" },
		{ "step_s<=15", "'step_s<=15'" }, { "a b", "'a b'" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct mb_text t = { 0 };

		mb_shell_word(&t, cases[i].word);
		cr_expect_str_eq(t.data, cases[i].text);
		mb_text_free(&t);
	}
}

Test(style, wrapping_keeps_lines_within_the_canvas)
{
	struct mb_style narrow = { .width = 20 };
	struct mb_text t = { 0 };

	mb_text_add(&t, "error EP5    ");
	mb_wrap(&t, &narrow, 13, 4, "one two three four five");
	cr_expect_str_eq(t.data, "error EP5    one two\n    three four five\n");
	mb_text_free(&t);
}

Test(style, blocks_go_below_each_other_when_too_wide)
{
	struct mb_style narrow = { .width = 12 };
	struct mb_text wide = { 0 }, small = { 0 };

	mb_beside(&wide, &plain, "aa\nb\n", "cc\ndd\nee\n", 5);
	cr_expect_str_eq(wide.data, "aa   cc\nb    dd\n     ee\n");
	mb_beside(&small, &narrow, "aaaaaaaa\n", "bbbbbbbb\n", 5);
	cr_expect_str_eq(small.data, "aaaaaaaa\n\nbbbbbbbb\n");
	mb_text_free(&wide);
	mb_text_free(&small);
}

Test(json, numbers_are_the_shortest_that_read_back)
{
	static const struct { double value; const char *text; } cases[] = {
		{ 0.1, "0.1" }, { 13.7, "13.7" }, { 1.0 / 3, "0.3333333333333333" }, { -0.0, "0" }, { 1e21, "1e+21" },
		{ 84941864960.0, "84941864960" }, { 1500000, "1500000" }, { 5e-324, "5e-324" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[40];

		mb_shortest(cases[i].value, text, sizeof text);
		cr_expect_str_eq(text, cases[i].text);
	}
}

Test(json, bytes_are_integers_and_nothing_is_nan)
{
	struct mb_text t = { 0 };
	cJSON *o = mb_json_document("mbsim.test/1");

	mb_json_bytes(o, "large", 9007199254740993.0);
	mb_json_bytes(o, "half", 2.5);
	mb_json_bytes(o, "none", NAN);
	mb_json_number(o, "inf", INFINITY);
	mb_json_number(o, "step_s", 20.85);
	mb_json_text(o, "word", "a\"b\n");
	mb_json_write(o, false, &t);
	cr_expect_str_eq(t.data, "{\"schema\":\"mbsim.test/"
	                         "1\",\"large\":9007199254740992,\"half\":3,\"none\":null,\"inf\":null,"
	                         "\"step_s\":20.85,\"word\":\"a\\\"b\\n\"}\n");
	mb_text_free(&t);
}

Test(csv, fields_are_quoted_when_they_must_be)
{
	struct mb_text t = { 0 };

	mb_csv_field(&t, "plain");
	mb_text_add(&t, ",");
	mb_csv_field(&t, "[a, \"b\"]");
	cr_expect_str_eq(t.data, "plain,\"[a, \"\"b\"\"]\"");
	mb_text_free(&t);
}

static struct mb_diag unknown_key(const char *file)
{
	struct mb_diag d = { .severity = MB_ERROR, .pos = { file, 2, 1 }, .key = "recompute_module" };

	snprintf(d.text, sizeof d.text, "unknown key 'recompute_module'");
	snprintf(d.nearest, sizeof d.nearest, "recompute_modules");
	return d;
}

Test(diag, a_file_error_shows_the_line_and_a_caret)
{
	char path[] = "/tmp/mbsim-test-XXXXXX", want[512];
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct mb_text t = { 0 };

	fputs("tp: 1\nrecompute_module: [moe_act]\n", f);
	fclose(f);

	struct mb_diag d = unknown_key(path);

	mb_diag_text(&d, &plain, &t);
	snprintf(want, sizeof want,
	         "%s:2:1: error: unknown key 'recompute_module'\n"
	         "  2 | recompute_module: [moe_act]\n"
	         "    | ^^^^^^^^^^^^^^^^ did you mean 'recompute_modules'?\n", path);
	cr_expect_str_eq(t.data, want);
	remove(path);
	mb_text_free(&t);
}

Test(diag, an_unreadable_source_still_says_all)
{
	struct mb_diag d = unknown_key("gone.yaml");
	struct mb_text t = { 0 };

	mb_diag_text(&d, &plain, &t);
	cr_expect_str_eq(t.data,
	                 "gone.yaml:2:1: error: unknown key 'recompute_module'\n  did you mean 'recompute_modules'?\n");
	mb_text_free(&t);
}

Test(diag, an_argument_has_a_column_only)
{
	struct mb_diag d = { .severity = MB_ERROR, .pos = { "argument 4", 0, 5 } };
	struct mb_text t = { 0 };

	snprintf(d.text, sizeof d.text, "seq_length: '4k' is not a whole number of tokens");
	mb_diag_text(&d, &plain, &t);
	cr_expect_str_eq(t.data, "argument 4:5: error: seq_length: '4k' is not a whole number of tokens\n");
	mb_text_free(&t);
}

Test(diag, json_is_one_object_a_line)
{
	struct mb_diag d = unknown_key("run.yaml");
	struct mb_text t = { 0 };

	mb_diag_json(&d, &t);
	cr_expect_str_eq(t.data,
	                 "{\"schema\":\"mbsim.error/1\",\"severity\":\"error\",\"message\":\"unknown key "
	                 "'recompute_module'\","
	                 "\"file\":\"run.yaml\",\"line\":2,\"column\":1,\"key\":\"recompute_module\",\"expected\":null,"
	                 "\"nearest\":\"recompute_modules\"}\n");
	mb_text_free(&t);
}

Test(diag, quiet_leaves_errors)
{
	struct mb_diags d = { .errors = 1, .warnings = 1, .count = 2 };
	struct mb_style quiet = { .width = 100, .quiet = true };
	struct mb_text t = { 0 };

	d.item[0] = (struct mb_diag){ .severity = MB_WARNING, .text = "soft" };
	d.item[1] = (struct mb_diag){ .severity = MB_ERROR, .text = "hard" };
	mb_diags_print(&d, false, &quiet, &t);
	cr_expect_str_eq(t.data, "mbsim: error: hard\n");
	mb_text_free(&t);
}
