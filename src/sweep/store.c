#include "sweep/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { APPLICATION = 0x6d62736d, FORMAT = 2 };  /* "mbsm"; read by file(1) */

enum { LOCK_TRIES = 20, LOCK_WAIT_US = 50000 };

struct mb_store {
	sqlite3 *db;
	sqlite3_stmt *has, *put, *put_text, *text, *document;
	int lock;                       /* held open by a writer; closed after the database, see mb_store_open */
	char path[1024];
};

/* `sum` is sum_of() the columns before it: SQLite finds damage to its own structure, not to what it holds. */
static const char schema[] =
	"CREATE TABLE IF NOT EXISTS sweep(one INTEGER PRIMARY KEY CHECK(one = 1), hash TEXT NOT NULL, name TEXT NOT NULL, head TEXT NOT NULL,"
	" sum TEXT NOT NULL);"
	"CREATE TABLE IF NOT EXISTS grid(position INTEGER PRIMARY KEY, key TEXT NOT NULL, settings TEXT NOT NULL, sum TEXT NOT NULL);"
	"CREATE TABLE IF NOT EXISTS cell(key TEXT PRIMARY KEY, verdict TEXT NOT NULL, document TEXT NOT NULL, sum TEXT NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS text(hash TEXT PRIMARY KEY, text TEXT NOT NULL, sum TEXT NOT NULL) WITHOUT ROWID;";

static bool refuse(const char *path, struct mb_diags *diags, const char *why, const char *expected)
{
	struct mb_diag *d = mb_report(diags, MB_ERROR, (struct mb_pos){ 0 }, "", "'%.200s' %s", path, why);

	snprintf(d->expected, sizeof d->expected, "%s", expected);
	return false;
}

/* What SQLite says, in words that tell what to do. Nothing that was stored before is touched by a failure. */
static bool fail(struct mb_store *s, int code, struct mb_diags *diags)
{
	char why[256];

	switch (code & 0xff) {
	case SQLITE_FULL:
		return refuse(s->path, diags, "cannot grow: the disk is full", "space; the same command continues where this one stopped");
	case SQLITE_IOERR:
		return refuse(s->path, diags, "cannot be written or read", "a disk with space; the same command continues where this one stopped");
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return refuse(s->path, diags, "cannot be written here", "a folder that can be written: --store FILE");
	case SQLITE_CORRUPT:
		return refuse(s->path, diags, "is damaged", "move it away and run the sweep again");
	case SQLITE_NOTADB:
		return refuse(s->path, diags, "is no store of mbsim", "a file that mbsim sweep wrote: --store FILE");
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return refuse(s->path, diags, "is in use by another program", "wait for it to end");
	default:
		snprintf(why, sizeof why, "cannot be used: %.200s", s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(code));
		return refuse(s->path, diags, why, "");
	}
}

static bool run(struct mb_store *s, const char *sql, struct mb_diags *diags)
{
	int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return code == SQLITE_OK || fail(s, code, diags);
}

/* First column of the first row, as a number or copied text. */
static int query(struct mb_store *s, const char *sql, long long *number, char *text, size_t size)
{
	sqlite3_stmt *q;
	int code = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(q);
	if (code == SQLITE_ROW && number)
		*number = sqlite3_column_int64(q, 0);
	if (code == SQLITE_ROW && text)
		snprintf(text, size, "%s", (const char *)sqlite3_column_text(q, 0));
	sqlite3_finalize(q);
	return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_EMPTY : code;
}

/* ---- damage ---- */

/* SQL's sum_of(...): a hash of its arguments as text. */
static void sum_of(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct mb_hash h;
	char text[MB_HASH_TEXT];

	mb_hash_start(&h);
	for (int i = 0; i < count; i++) {
		const void *bytes = sqlite3_value_text(values[i]);
		int64_t size = sqlite3_value_bytes(values[i]);

		mb_hash_add(&h, &size, sizeof size);
		mb_hash_add(&h, bytes, (size_t)size);
	}
	mb_hash_end(&h, text);
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

#define DAMAGED(table, ...) "FROM " table " WHERE sum IS NOT sum_of(" __VA_ARGS__ ")"
#define DAMAGED_CELL DAMAGED("cell", "key, verdict, document")
#define DAMAGED_TEXT DAMAGED("text", "hash, text")
#define DAMAGED_GRID DAMAGED("grid", "position, key, settings")
#define DAMAGED_SWEEP DAMAGED("sweep", "one, hash, name, head")

static int count_damage(struct mb_store *s, long long *ret)
{
	return query(s, "SELECT (SELECT count(*) " DAMAGED_CELL ") + (SELECT count(*) " DAMAGED_TEXT ") + (SELECT count(*) " DAMAGED_GRID
	             ") + (SELECT count(*) " DAMAGED_SWEEP ")", ret, NULL, 0);
}

/*
 * Takes out what is not as it was written; the sweep does it again. Cells refer to texts, so that these take all cells
 * with them. False when that does not help.
 */
static bool mend(struct mb_store *s, struct mb_diags *diags)
{
	long long found, left = 1;
	int code = count_damage(s, &found);

	if (code != SQLITE_OK || found == 0)
		return code == SQLITE_OK || fail(s, code, diags);
	if (!run(s, "BEGIN IMMEDIATE; DELETE FROM cell WHERE EXISTS (SELECT 1 " DAMAGED_TEXT "); DELETE " DAMAGED_TEXT "; DELETE " DAMAGED_CELL ";"
	         "CREATE TEMP TABLE broken AS SELECT 1 " DAMAGED_GRID " UNION ALL SELECT 1 " DAMAGED_SWEEP ";"
	         "DELETE FROM grid WHERE EXISTS (SELECT 1 FROM broken); DELETE FROM sweep WHERE EXISTS (SELECT 1 FROM broken); DROP TABLE broken; COMMIT",
	         diags)) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		return false;
	}
	code = count_damage(s, &left);
	if (code != SQLITE_OK || left > 0)
		return fail(s, code != SQLITE_OK ? code : SQLITE_CORRUPT, diags);
	mb_report(diags, MB_WARNING, (struct mb_pos){ 0 }, "", "'%.200s' was damaged: %lld entries were not as written, what they held is done again", s->path, found);
	return true;
}

static bool check(struct mb_store *s, enum mb_store_mode mode, struct mb_diags *diags)
{
	long long application = 0, format = 0, tables = 0, damaged = 0;
	char verdict[64] = "";
	int code = query(s, "PRAGMA application_id", &application, NULL, 0);

	if (code == SQLITE_OK)
		code = query(s, "PRAGMA user_version", &format, NULL, 0);
	if (code == SQLITE_OK)
		code = query(s, "SELECT count(*) FROM sqlite_master", &tables, NULL, 0);
	if (code != SQLITE_OK)
		return fail(s, code, diags);
	if (application == 0 && tables == 0 && mode == MB_STORE_WRITE)
		return true;
	if (application != APPLICATION)
		return fail(s, SQLITE_NOTADB, diags);
	if (format != FORMAT)
		return refuse(s->path, diags, "was written by another version of mbsim", "a new file: --store FILE");
	code = query(s, "PRAGMA quick_check(1)", NULL, verdict, sizeof verdict);
	if (code != SQLITE_OK)
		return fail(s, code, diags);
	if (strcmp(verdict, "ok") != 0)
		return fail(s, SQLITE_CORRUPT, diags);
	if (mode == MB_STORE_WRITE)
		return mend(s, diags);
	code = count_damage(s, &damaged);
	if (code != SQLITE_OK)
		return fail(s, code, diags);
	return damaged == 0 || refuse(s->path, diags, "is damaged: entries are not as they were written",
	                              "the sweep again, which does those anew: mbsim sweep SWEEP.yaml");
}

static bool prepare(struct mb_store *s, struct mb_diags *diags)
{
	const struct { sqlite3_stmt **statement; const char *sql; } all[] = {
		{ &s->has, "SELECT 1 FROM cell WHERE key = ?" },
		{ &s->put, "INSERT OR IGNORE INTO cell VALUES(?1, ?2, ?3, sum_of(?1, ?2, ?3))" },
		{ &s->put_text, "INSERT OR IGNORE INTO text VALUES(?1, ?2, sum_of(?1, ?2))" },
		{ &s->text, "SELECT text FROM text WHERE hash = ?" },
		{ &s->document, "SELECT document FROM cell WHERE key = ?" },
	};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		int code = sqlite3_prepare_v3(s->db, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT, all[i].statement, NULL);

		if (code != SQLITE_OK)
			return fail(s, code, diags);
	}
	return true;
}

/*
 * A writer holds flock(2) on the file, which SQLite's own locks (fcntl) do not see. POSIX drops those of a process when
 * it closes any descriptor of the file, so ours is closed last.
 */
static bool lock(struct mb_store *s, struct mb_diags *diags)
{
	char why[128];
	int code = EWOULDBLOCK;

	s->lock = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (s->lock < 0) {
		snprintf(why, sizeof why, "cannot be written: %.80s", strerror(errno));
		return refuse(s->path, diags, why, "a folder that can be written: --store FILE");
	}
	/* A worker that was just forked when its parent was killed holds the lock until it runs for the first time. */
	for (int tries = 0; tries < LOCK_TRIES && code == EWOULDBLOCK; tries++) {
		if (tries > 0)
			usleep(LOCK_WAIT_US);
		if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
			return true;
		code = errno;
	}
	if (code == EWOULDBLOCK)
		return refuse(s->path, diags, "is being written by another mbsim", "wait for it, or give each its own file and --shard, then merge");
	snprintf(why, sizeof why, "cannot be locked: %.80s", strerror(code));
	return refuse(s->path, diags, why, "a local disk: --store FILE");
}

/* WAL: readers see a consistent state while a sweep runs. Without fsync for every cell a power cut may cost the last ones. */
static bool begin_writing(struct mb_store *s, struct mb_diags *diags)
{
	char sql[128];

	snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION, FORMAT);
	return run(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 256;", diags) && run(s, "BEGIN IMMEDIATE", diags)
	       && run(s, schema, diags) && run(s, sql, diags) && run(s, "COMMIT", diags);
}

struct mb_store *mb_store_open(const char *path, enum mb_store_mode mode, struct mb_diags *diags)
{
	struct mb_store *s = calloc(1, sizeof *s);
	bool write = mode == MB_STORE_WRITE, ok;
	int code;

	if (!s) {
		mb_fail(diags, (struct mb_pos){ 0 }, "out of memory");
		return NULL;
	}
	s->lock = -1;
	snprintf(s->path, sizeof s->path, "%s", path);
	ok = strlen(path) < sizeof s->path || refuse(path, diags, "is too long a name", "");
	if (ok && !write && access(path, R_OK) != 0)
		ok = refuse(path, diags, strerror(errno), "a file that mbsim sweep wrote");
	ok = ok && (!write || lock(s, diags));
	if (ok) {
		code = sqlite3_open_v2(path, &s->db, write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, NULL);
		ok = code == SQLITE_OK || fail(s, code, diags);
	}
	if (ok) {
		sqlite3_extended_result_codes(s->db, 1);
		sqlite3_busy_timeout(s->db, 5000);
		sqlite3_create_function(s->db, "sum_of", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, sum_of, NULL, NULL);
		ok = check(s, mode, diags) && (!write || begin_writing(s, diags)) && prepare(s, diags);
	}
	if (ok)
		return s;
	mb_store_close(s);
	return NULL;
}

void mb_store_close(struct mb_store *s)
{
	if (!s)
		return;
	sqlite3_stmt *all[] = { s->has, s->put, s->put_text, s->text, s->document };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		sqlite3_finalize(all[i]);
	if (s->db && s->lock >= 0)
		sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;", NULL, NULL, NULL);
	sqlite3_close(s->db);
	if (s->lock >= 0)
		close(s->lock);
	free(s);
}

void mb_store_forget(struct mb_store *s)
{
	if (s->lock >= 0)
		close(s->lock);
	s->lock = -1;
}

/* ---- cells ---- */

static void bind_text(sqlite3_stmt *q, int index, const char *text)
{
	sqlite3_bind_text(q, index, text, -1, SQLITE_STATIC);
}

bool mb_store_has(struct mb_store *s, const char *key, bool *ret, struct mb_diags *diags)
{
	int code;

	bind_text(s->has, 1, key);
	code = sqlite3_step(s->has);
	*ret = code == SQLITE_ROW;
	sqlite3_reset(s->has);
	return code == SQLITE_ROW || code == SQLITE_DONE || fail(s, code, diags);
}

static bool finish(struct mb_store *s, sqlite3_stmt *q, struct mb_diags *diags)
{
	int code = sqlite3_step(q);

	sqlite3_reset(q);
	return code == SQLITE_DONE || fail(s, code, diags);
}

bool mb_store_put(struct mb_store *s, const char *key, const char *verdict, const char *document, struct mb_diags *diags)
{
	bind_text(s->put, 1, key);
	bind_text(s->put, 2, verdict);
	bind_text(s->put, 3, document);
	return finish(s, s->put, diags);
}

bool mb_store_put_text(struct mb_store *s, const char *hash, const char *text, struct mb_diags *diags)
{
	bind_text(s->put_text, 1, hash);
	bind_text(s->put_text, 2, text);
	return finish(s, s->put_text, diags);
}

static const char *first_text(sqlite3_stmt *q, const char *key, struct mb_arena *arena)
{
	const char *ret = NULL;

	bind_text(q, 1, key);
	if (sqlite3_step(q) == SQLITE_ROW)
		ret = mb_arena_strdup(arena, (const char *)sqlite3_column_text(q, 0));
	sqlite3_reset(q);
	return ret;
}

const char *mb_store_text(struct mb_store *s, const char *hash, struct mb_arena *arena)
{
	return first_text(s->text, hash, arena);
}

const char *mb_store_document(struct mb_store *s, const char *key, struct mb_arena *arena)
{
	return first_text(s->document, key, arena);
}

/* ---- the grid ---- */

static bool write_grid(struct mb_store *s, const struct mb_store_grid *grid, struct mb_diags *diags)
{
	sqlite3_stmt *row = NULL, *sweep = NULL;
	bool ok = sqlite3_prepare_v2(s->db, "INSERT INTO grid VALUES(?1, ?2, ?3, sum_of(?1, ?2, ?3))", -1, &row, NULL) == SQLITE_OK
	          && sqlite3_prepare_v2(s->db, "INSERT INTO sweep VALUES(1, ?1, ?2, ?3, sum_of(1, ?1, ?2, ?3))", -1, &sweep, NULL) == SQLITE_OK;

	ok = ok || fail(s, sqlite3_errcode(s->db), diags);
	for (int i = 0; ok && i < grid->count; i++) {
		sqlite3_bind_int(row, 1, i);
		bind_text(row, 2, grid->keys[i]);
		bind_text(row, 3, grid->settings[i]);
		ok = finish(s, row, diags);
	}
	if (ok) {
		bind_text(sweep, 1, grid->hash);
		bind_text(sweep, 2, grid->name);
		bind_text(sweep, 3, grid->head);
		ok = finish(s, sweep, diags);
	}
	sqlite3_finalize(row);
	sqlite3_finalize(sweep);
	return ok;
}

bool mb_store_put_grid(struct mb_store *s, const struct mb_store_grid *grid, struct mb_diags *diags)
{
	char hash[MB_HASH_TEXT] = "";

	if (query(s, "SELECT hash FROM sweep", NULL, hash, sizeof hash) == SQLITE_OK && strcmp(hash, grid->hash) == 0)
		return true;
	if (!run(s, "BEGIN IMMEDIATE; DELETE FROM grid; DELETE FROM sweep;", diags) || !write_grid(s, grid, diags) || !run(s, "COMMIT", diags)) {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
		return false;
	}
	return true;
}

static const char *copy(sqlite3_stmt *q, int column, struct mb_arena *arena)
{
	return mb_arena_strdup(arena, (const char *)sqlite3_column_text(q, column));
}

static bool read_rows(struct mb_store *s, struct mb_arena *arena, struct mb_store_grid *ret, struct mb_diags *diags)
{
	sqlite3_stmt *q;
	int code = sqlite3_prepare_v2(s->db, "SELECT key, settings FROM grid ORDER BY position", -1, &q, NULL), i = 0;

	if (code != SQLITE_OK)
		return fail(s, code, diags);
	while (i < ret->count && (code = sqlite3_step(q)) == SQLITE_ROW) {
		ret->keys[i] = copy(q, 0, arena);
		ret->settings[i++] = copy(q, 1, arena);
	}
	sqlite3_finalize(q);
	ret->count = i;
	return code == SQLITE_ROW || code == SQLITE_DONE || fail(s, code, diags);
}

bool mb_store_get_grid(struct mb_store *s, struct mb_arena *arena, struct mb_store_grid *ret, struct mb_diags *diags)
{
	sqlite3_stmt *q;
	long long count = 0;
	int code = sqlite3_prepare_v2(s->db, "SELECT hash, name, head FROM sweep", -1, &q, NULL);

	if (code != SQLITE_OK)
		return fail(s, code, diags);
	code = sqlite3_step(q);
	if (code == SQLITE_ROW)
		*ret = (struct mb_store_grid){ .hash = copy(q, 0, arena), .name = copy(q, 1, arena), .head = copy(q, 2, arena) };
	sqlite3_finalize(q);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? refuse(s->path, diags, "holds no sweep yet", "mbsim sweep SWEEP.yaml") : fail(s, code, diags);
	code = query(s, "SELECT count(*) FROM grid", &count, NULL, 0);
	if (code != SQLITE_OK)
		return fail(s, code, diags);
	ret->count = (int)count;
	ret->keys = mb_arena_alloc(arena, (size_t)(count + 1) * sizeof *ret->keys);
	ret->settings = mb_arena_alloc(arena, (size_t)(count + 1) * sizeof *ret->settings);
	return read_rows(s, arena, ret, diags);
}

bool mb_store_count(struct mb_store *s, const char *verdict, int *ret, struct mb_diags *diags)
{
	sqlite3_stmt *q;
	int code = sqlite3_prepare_v2(s->db, "SELECT count(*) FROM grid JOIN cell USING(key) WHERE verdict = ?", -1, &q, NULL);

	if (code != SQLITE_OK)
		return fail(s, code, diags);
	bind_text(q, 1, verdict);
	code = sqlite3_step(q);
	*ret = code == SQLITE_ROW ? sqlite3_column_int(q, 0) : 0;
	sqlite3_finalize(q);
	return code == SQLITE_ROW || fail(s, code, diags);
}

bool mb_store_merge(struct mb_store *s, const char *path, struct mb_diags *diags)
{
	struct mb_store *other = mb_store_open(path, MB_STORE_READ, diags);
	char mine[MB_HASH_TEXT] = "", theirs[MB_HASH_TEXT] = "";
	sqlite3_stmt *attach;
	bool ok = other != NULL;

	if (ok && query(other, "SELECT hash FROM sweep", NULL, theirs, sizeof theirs) != SQLITE_OK)
		ok = refuse(path, diags, "holds no sweep yet", "a store that mbsim sweep --shard wrote");
	mb_store_close(other);
	if (!ok)
		return false;
	if (query(s, "SELECT hash FROM sweep", NULL, mine, sizeof mine) == SQLITE_OK && strcmp(mine, theirs) != 0)
		return refuse(path, diags, "is of another sweep, program version or data", "stores of the same sweep file");
	if (sqlite3_prepare_v2(s->db, "ATTACH ? AS other", -1, &attach, NULL) != SQLITE_OK)
		return fail(s, sqlite3_errcode(s->db), diags);
	bind_text(attach, 1, path);
	ok = finish(s, attach, diags);
	sqlite3_finalize(attach);
	ok = ok && run(s, "BEGIN IMMEDIATE; INSERT OR IGNORE INTO cell SELECT * FROM other.cell;"
	               "INSERT OR IGNORE INTO text SELECT * FROM other.text; INSERT OR IGNORE INTO grid SELECT * FROM other.grid;"
	               "INSERT OR IGNORE INTO sweep SELECT * FROM other.sweep; COMMIT", diags);
	if (!ok)
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_exec(s->db, "DETACH other", NULL, NULL, NULL);
	return ok;
}
