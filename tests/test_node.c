#include <criterion/criterion.h>
#include <stdio.h>

#include "base/text.h"
#include "desc/node.h"

static struct mb_arena arena;
static struct mb_diags diags;

static const struct mb_node *read_text(const char *text)
{
	memset(&diags, 0, sizeof diags);
	return mb_node_read_text(text, strlen(text), "run.yaml", &arena, &diags);
}

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(node, .fini = done);

/* The tree as text, positions left out: {key: value} and [a, b]. */
static void print(struct mb_text *t, const struct mb_node *n)
{
	if (n->type == MB_NODE_SCALAR) {
		mb_text_printf(t, n->quoted ? "'%s'" : "%s", n->text);
		return;
	}
	mb_text_add(t, n->type == MB_NODE_MAP ? "{" : "[");
	for (const struct mb_node *c = n->child; c; c = c->next) {
		if (n->type == MB_NODE_MAP)
			mb_text_printf(t, "%s: ", c->key->text);
		print(t, c);
		mb_text_add(t, c->next ? ", " : "");
	}
	mb_text_add(t, n->type == MB_NODE_MAP ? "}" : "]");
}

static const struct { const char *words, *text, *tree; } good[] = {
	{ "block mapping",       "a: 1\nb: [x, y]\n",                        "{a: 1, b: [x, y]}" },
	{ "byte order mark",     "\xef\xbb\xbf" "a: 1\n",                    "{a: 1}" },
	{ "carriage returns",    "a: 1\r\nb: 2\r\n",                         "{a: 1, b: 2}" },
	{ "JSON with tabs",      "{\n\t\"a\":1,\n\t\"b\":[true,null]\n}",    "{a: 1, b: [true, null]}" },
	{ "JSON, slashes",       "{ // note\n \"a\": \"http://x\", /* b */\n}", "{a: 'http://x'}" },
	{ "JSON, hash",          "{ # note\n \"a\": 1, }",                   "{a: 1}" },
	{ "JSON, surrogates",    "{\"a\": \"\\ud83d\\ude00\"}",              "{a: '\xf0\x9f\x98\x80'}" },
	{ "JSON, escaped quote", "{\"a\": \"\\\" // no comment\"}",          "{a: '\" // no comment'}" },
	{ "block text keeps //", "a: http://x // y\n",                       "{a: http://x // y}" },
	{ "alias",               "a: &x [1, 2]\nb: *x\nc: *x\n",             "{a: [1, 2], b: [1, 2], c: [1, 2]}" },
	{ "text tag",            "a: !!str 12\n",                            "{a: '12'}" },
	{ "empty value",         "a:\n",                                     "{a: }" },
};

Test(node, reads_what_people_write)
{
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		const struct mb_node *n = read_text(good[i].text);
		struct mb_text t = { 0 };

		cr_assert(n, "%s: %s", good[i].words, diags.item[0].text);
		print(&t, n);
		cr_expect_str_eq(t.data, good[i].tree, "%s: %s", good[i].words, t.data);
		cr_expect_eq(diags.count, 0);
		mb_text_free(&t);
	}
}

static const struct { const char *words, *text; int line, column; const char *says; } bad[] = {
	{ "tab",              "a:\n\tb: 1\n",              2, 1, "tab used for indentation, YAML allows only spaces" },
	{ "tab after spaces", "a: 1\n  \tb: 1\n",          2, 3, "tab used for indentation, YAML allows only spaces" },
	{ "duplicate",        "a: 1\nb: 2\na: 3\n",        3, 1, "duplicate key 'a', first given at line 1 column 1" },
	{ "second document",  "a: 1\n---\nb: 1\n",         2, 1, "a second document starts here, expected one" },
	{ "string",           "{\"a\": \"bcd",             1, 7, "string never ends, the file stops at byte 10" },
	{ "brace",            "{\"a\": [1, 2",             1, 7, "'[' is never closed, the file stops at byte 11" },
	{ "unknown alias",    "a: *x\n",                   1, 4, NULL },
	{ "circular alias",   "a: &x [1, *x]\n",           1, 11, "alias '*x' stands inside what it names" },
	{ "foreign tag",      "a: !python/object x\n",     1, 4, "tag '!python/object' is not understood" },
	{ "complex key",      "? [a, b]\n: 1\n",           1, 3, "a key is a word, not a list or a mapping" },
	{ "zero in a string", "a: \"x\\0y\"\n",            1, 4, "text holds a zero character" },
	{ "nothing",          "",                          0, 0, "is empty" },
	{ "only comments",    "# nothing\n",               0, 0, "is empty" },
};

Test(node, says_what_is_wrong_and_where)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const struct mb_node *n = read_text(bad[i].text);

		cr_expect_null(n, "%s is accepted", bad[i].words);
		cr_assert_geq(diags.errors, 1, "%s: no message", bad[i].words);
		cr_expect_eq(diags.item[0].pos.line, bad[i].line, "%s: line %d", bad[i].words, diags.item[0].pos.line);
		cr_expect_eq(diags.item[0].pos.column, bad[i].column, "%s: column %d", bad[i].words, diags.item[0].pos.column);
		if (bad[i].says)
			cr_expect_str_eq(diags.item[0].text, bad[i].says, "%s: %s", bad[i].words, diags.item[0].text);
	}
}

Test(node, remembers_where_things_stood)
{
	const struct mb_node *n = read_text("a: 1\nlist:\n  - x\n  - {k: v}\n");
	const struct mb_node *list = mb_node_get(n, "list");

	cr_assert(list);
	cr_expect_eq(list->key->pos.line, 2);
	cr_expect_eq(list->count, 2);
	cr_expect_eq(list->child->pos.line, 3);
	cr_expect_eq(list->child->pos.column, 5);
	cr_expect_eq(mb_node_get(list->child->next, "k")->pos.column, 9);
	cr_expect_str_eq(list->pos.file, "run.yaml");
	cr_expect_null(mb_node_get(n, "b"));
	cr_expect_null(mb_node_get(list, "b"));
	cr_expect_null(mb_node_get(NULL, "b"));
}

Test(node, alias_bombs_and_deep_nesting_are_refused)
{
	struct mb_text t = { 0 };

	mb_text_add(&t, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 12; i++)
		mb_text_printf(&t, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1);
	cr_expect_null(read_text(t.data));
	cr_expect_str_eq(diags.item[0].text, "aliases expand to more than 100000 values");
	mb_text_free(&t);

	mb_text_pad(&t, '[', 100000);
	cr_expect_null(read_text(t.data));
	cr_expect_str_eq(diags.item[0].text, "nested more than 64 deep");
	mb_text_free(&t);
}

Test(node, binary_and_missing_files_are_refused)
{
	memset(&diags, 0, sizeof diags);
	cr_expect_null(mb_node_read_text("a: \0b", 5, "x.yaml", &arena, &diags));
	cr_expect_eq(diags.errors, 1);
	cr_expect_null(mb_node_read_text("a: \xff\xfe\xfd", 6, "x.yaml", &arena, &diags));
	cr_expect_eq(diags.errors, 2);
	cr_expect_null(mb_node_read_file("/nonexistent/x.yaml", &arena, &diags));
	cr_expect_null(mb_node_read_file("/", &arena, &diags));
	cr_expect_null(mb_node_read_file("/dev/zero", &arena, &diags));
	cr_expect_eq(diags.errors, 5);
}

Test(node, every_cut_of_a_document_is_survived)
{
	static const char text[] = "a: &x {b: [1, \"two\", 'three'], c: *y}\nd: |\n  text\ne: !!str 5\n{\"f\": /* x */ \"\\ud83d\"}";

	for (size_t length = 0; length < sizeof text; length++) {
		memset(&diags, 0, sizeof diags);
		if (!mb_node_read_text(text, length, "cut", &arena, &diags))
			cr_expect_geq(diags.errors, 1, "no message at %zu", length);
	}
}

static const struct { const char *text; bool null, is_bool, truth, is_int; long long whole; } scalars[] = {
	{ "null",   true,  false, false, false, 0 },
	{ "~",      true,  false, false, false, 0 },
	{ "",       true,  false, false, false, 0 },
	{ "true",   false, true,  true,  false, 0 },
	{ "off",    false, true,  false, false, 0 },
	{ "4096",   false, false, false, true,  4096 },
	{ "4096.0", false, false, false, true,  4096 },
	{ "1e9",    false, false, false, true,  1000000000 },
	{ "4_096",  false, false, false, true,  4096 },
	{ "-3",     false, false, false, true,  -3 },
	{ "1.5",    false, false, false, false, 0 },
	{ "1e30",   false, false, false, false, 0 },
	{ "nan",    false, false, false, false, 0 },
	{ ".inf",   false, false, false, false, 0 },
	{ "0x10",   false, false, false, false, 0 },
	{ "4k",     false, false, false, false, 0 },
};

Test(node, plain_scalars_mean_what_yaml_says)
{
	for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
		struct mb_node *n, quoted;
		long long whole = 0;
		bool truth = false;

		n = (struct mb_node *)(size_t)mb_node_scalar(&arena, (struct mb_pos){ 0 }, scalars[i].text);
		cr_expect_eq(mb_node_is_null(n), scalars[i].null, "%s", scalars[i].text);
		cr_expect_eq(mb_node_bool(n, &truth), scalars[i].is_bool, "%s", scalars[i].text);
		cr_expect_eq(truth, scalars[i].truth, "%s", scalars[i].text);
		cr_expect_eq(mb_node_int(n, &whole), scalars[i].is_int, "%s", scalars[i].text);
		cr_expect_eq(whole, scalars[i].whole, "%s", scalars[i].text);
		quoted = *n;
		quoted.quoted = true;
		cr_expect(!mb_node_is_null(&quoted) && !mb_node_bool(&quoted, &truth) && !mb_node_int(&quoted, &whole), "'%s'",
		          scalars[i].text);
	}
}
