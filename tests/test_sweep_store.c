/* The results store: what is put in comes out, writers exclude each other, and bad files are refused in words. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sweep/store.h"

static char folder[] = "/tmp/mbsim-store-XXXXXX";

static void make_folder(void)
{
	cr_assert(mkdtemp(folder));
}

static void drop_folder(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	cr_expect_eq(system(command), 0);
}

static const char *path(const char *name)
{
	static char text[128];

	snprintf(text, sizeof text, "%s/%s", folder, name);
	return text;
}

static const char *keys[] = { "k1", "k2", "k3" }, *settings[] = { "[\"1\"]", "[\"2\"]", "[\"3\"]" };
static const struct mb_store_grid grid = { "hash", "plan", "{}", 3, keys, settings };

static struct mb_store *open_store(const char *name, enum mb_store_mode mode)
{
	struct mb_diags diags = { 0 };
	struct mb_store *s = mb_store_open(path(name), mode, &diags);

	cr_assert(s, "%s", diags.item[0].text);
	return s;
}

static void expect_refused(const char *name, enum mb_store_mode mode, const char *word)
{
	struct mb_diags diags = { 0 };
	struct mb_store *s = mb_store_open(path(name), mode, &diags);

	cr_expect_null(s, "%s was opened", name);
	cr_expect_eq(diags.errors, 1);
	cr_expect(strstr(diags.item[0].text, word), "'%s' does not say '%s'", diags.item[0].text, word);
	mb_store_close(s);
}

TestSuite(store, .init = make_folder, .fini = drop_folder);

Test(store, gives_back_what_was_put)
{
	struct mb_store *s = open_store("a.db", MB_STORE_WRITE);
	struct mb_diags diags = { 0 };
	struct mb_arena arena = { 0 };
	struct mb_store_grid got;
	bool has;
	int n;

	cr_assert(mb_store_put_grid(s, &grid, &diags));
	cr_assert(mb_store_put(s, "k2", "fits", "{\"a\":1}", &diags));
	cr_assert(mb_store_put(s, "k2", "illegal", "{}", &diags));
	cr_assert(mb_store_put_text(s, "h", "words", &diags));
	mb_store_close(s);

	s = open_store("a.db", MB_STORE_READ);
	cr_expect(mb_store_has(s, "k2", &has, &diags) && has);
	cr_expect(mb_store_has(s, "k1", &has, &diags) && !has);
	cr_expect_str_eq(mb_store_document(s, "k2", &arena), "{\"a\":1}", "a finished cell was replaced");
	cr_expect_null(mb_store_document(s, "k1", &arena));
	cr_expect_str_eq(mb_store_text(s, "h", &arena), "words");
	cr_assert(mb_store_get_grid(s, &arena, &got, &diags));
	cr_expect_eq(got.count, 3);
	cr_expect_str_eq(got.keys[2], "k3");
	cr_expect_str_eq(got.settings[0], "[\"1\"]");
	cr_expect(mb_store_count(s, "fits", &n, &diags) && n == 1);
	cr_expect(mb_store_count(s, "illegal", &n, &diags) && n == 0);
	mb_store_close(s);
	mb_arena_free(&arena);
	cr_expect_neq(access(path("a.db-wal"), F_OK), 0, "a closed store is one file");
}

Test(store, another_grid_keeps_the_cells)
{
	struct mb_store *s = open_store("b.db", MB_STORE_WRITE);
	struct mb_store_grid other = grid;
	struct mb_diags diags = { 0 };
	struct mb_arena arena = { 0 };

	cr_assert(mb_store_put_grid(s, &grid, &diags));
	cr_assert(mb_store_put(s, "k1", "fits", "{}", &diags));
	other.hash = "other";
	other.count = 1;
	cr_assert(mb_store_put_grid(s, &other, &diags));
	cr_assert(mb_store_get_grid(s, &arena, &other, &diags));
	cr_expect_eq(other.count, 1);
	cr_expect_str_eq(mb_store_document(s, "k1", &arena), "{}");
	mb_store_close(s);
	mb_arena_free(&arena);
}

Test(store, keeps_a_second_writer_out_and_lets_readers_in)
{
	struct mb_store *s = open_store("c.db", MB_STORE_WRITE);
	struct mb_diags diags = { 0 };
	struct mb_arena arena = { 0 };
	struct mb_store *reader;

	cr_assert(mb_store_put(s, "k1", "fits", "{}", &diags));
	expect_refused("c.db", MB_STORE_WRITE, "another mbsim");
	reader = open_store("c.db", MB_STORE_READ);
	cr_expect_not_null(mb_store_document(reader, "k1", &arena));
	mb_store_close(reader);
	cr_expect(mb_store_put(s, "k2", "fits", "{}", &diags), "the first writer was disturbed");
	mb_store_close(s);
	mb_store_close(open_store("c.db", MB_STORE_WRITE));
	mb_arena_free(&arena);
}

Test(store, merges_shards_of_one_sweep_only)
{
	struct mb_store *a = open_store("x.db", MB_STORE_WRITE), *b = open_store("y.db", MB_STORE_WRITE), *z = open_store("z.db", MB_STORE_WRITE);
	struct mb_store_grid other = grid;
	struct mb_diags diags = { 0 };
	struct mb_arena arena = { 0 };
	char x[128], y[128];

	other.hash = "other";
	cr_assert(mb_store_put_grid(a, &grid, &diags) && mb_store_put(a, "k1", "fits", "one", &diags));
	cr_assert(mb_store_put_grid(b, &grid, &diags) && mb_store_put(b, "k2", "fits", "two", &diags));
	mb_store_close(a);
	mb_store_close(b);
	snprintf(x, sizeof x, "%s", path("x.db"));
	snprintf(y, sizeof y, "%s", path("y.db"));
	cr_assert(mb_store_merge(z, x, &diags) && mb_store_merge(z, y, &diags), "%s", diags.item[0].text);
	cr_expect_str_eq(mb_store_document(z, "k1", &arena), "one");
	cr_expect_str_eq(mb_store_document(z, "k2", &arena), "two");
	cr_assert(mb_store_put_grid(z, &other, &diags));
	cr_expect_not(mb_store_merge(z, x, &diags));
	cr_expect(strstr(diags.item[0].text, "another sweep"));
	mb_store_close(z);
	mb_arena_free(&arena);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(path(name), "w");

	cr_assert(f && fputs(text, f) >= 0);
	fclose(f);
}

Test(store, refuses_what_is_no_store)
{
	expect_refused("none.db", MB_STORE_READ, "No such file");
	expect_refused("no/folder.db", MB_STORE_WRITE, "cannot be written");
	write_file("text.db", "this is a text, long enough to be looked at as a database header, and it is none at all..........");
	expect_refused("text.db", MB_STORE_READ, "no store of mbsim");
	expect_refused("text.db", MB_STORE_WRITE, "no store of mbsim");
	write_file("empty.db", "");
	expect_refused("empty.db", MB_STORE_READ, "no store of mbsim");
}

Test(store, refuses_a_damaged_file_and_leaves_it_as_it_is)
{
	struct mb_store *s = open_store("d.db", MB_STORE_WRITE);
	struct mb_diags diags = { 0 };
	struct stat before, after;
	char *junk = malloc(20000);
	FILE *f;

	memset(junk, 'x', 19999);
	junk[19999] = '\0';
	cr_assert(mb_store_put_grid(s, &grid, &diags));
	for (int i = 0; i < 20; i++) {
		char key[16];

		snprintf(key, sizeof key, "key%d", i);
		cr_assert(mb_store_put(s, key, "fits", junk, &diags));
	}
	mb_store_close(s);
	f = fopen(path("d.db"), "r+");
	cr_assert(f && fseek(f, 4096, SEEK_SET) == 0);
	for (int i = 0; i < 12288; i++)
		fputc(0xff, f);
	fclose(f);
	cr_assert_eq(stat(path("d.db"), &before), 0);
	expect_refused("d.db", MB_STORE_WRITE, "damaged");
	expect_refused("d.db", MB_STORE_READ, "damaged");
	cr_assert_eq(stat(path("d.db"), &after), 0);
	cr_expect_eq(before.st_size, after.st_size);
	free(junk);
}

/* One letter changed in place, which SQLite does not notice. */
static void change_letter(const char *name, const char *words)
{
	FILE *f = fopen(path(name), "r+");
	size_t n = strlen(words), size;
	static char bytes[200000];
	char *at;

	cr_assert(f);
	size = fread(bytes, 1, sizeof bytes, f);
	at = memmem(bytes, size, words, n);
	cr_assert(at, "no '%s' in %s", words, name);
	cr_assert(fseek(f, at - bytes, SEEK_SET) == 0 && fputc(*at ^ 1, f) != EOF);
	fclose(f);
}

static void fill(const char *name)
{
	struct mb_store *s = open_store(name, MB_STORE_WRITE);
	struct mb_diags diags = { 0 };

	cr_assert(mb_store_put_grid(s, &grid, &diags) && mb_store_put_text(s, "t", "constants", &diags));
	cr_assert(mb_store_put(s, "k1", "fits", "document one", &diags) && mb_store_put(s, "k2", "fits", "document two", &diags));
	mb_store_close(s);
}

/* What is changed, and what a writer finds afterwards: the cell k1, the cell k2, the grid. */
static const struct { const char *words; bool first, second, grid; } changes[] = {
	{ "document one", false, true, true }, { "constants", false, false, true }, { "[\"2\"]", true, true, false }, { "plan", true, true, false },
};

Test(store, finds_a_changed_letter_and_takes_out_what_it_spoils)
{
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		struct mb_arena arena = { 0 };
		struct mb_diags diags = { 0 };
		struct mb_store_grid got;
		struct mb_store *s;

		unlink(path("e.db"));
		fill("e.db");
		change_letter("e.db", changes[i].words);
		expect_refused("e.db", MB_STORE_READ, "damaged");
		s = mb_store_open(path("e.db"), MB_STORE_WRITE, &diags);
		cr_assert(s && diags.warnings == 1, "%s", changes[i].words);
		cr_expect_eq(mb_store_document(s, "k1", &arena) != NULL, changes[i].first, "%s", changes[i].words);
		cr_expect_eq(mb_store_document(s, "k2", &arena) != NULL, changes[i].second, "%s", changes[i].words);
		cr_expect_eq(mb_store_get_grid(s, &arena, &got, &diags), changes[i].grid, "%s", changes[i].words);
		mb_store_close(s);
		if (changes[i].grid)
			mb_store_close(open_store("e.db", MB_STORE_READ));
		mb_arena_free(&arena);
	}
}
