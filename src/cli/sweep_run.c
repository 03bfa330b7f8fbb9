#include "cli/sweep_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/sweep_pool.h"
#include "report/cell_json.h"
#include "report/error_report.h"
#include "report/number.h"

enum { INTERRUPTED = 130, DEFAULT_JOBS_MAX = 64, BAR = 20 };

/* ---- preparing ---- */

static const char *base_name(struct mb_arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

	return dot && dot > name ? mb_arena_strndup(arena, name, (size_t)(dot - name)) : mb_arena_strdup(arena, name);
}

/* The message says which cell it is about: the place may be in the base. */
static void name_cell(const struct mb_sweep *s, int cell, struct mb_arena *arena, struct mb_diags *diags)
{
	struct mb_text t = { 0 };

	for (int k = 0; k < s->key_count; k++) {
		const char *value = mb_sweep_text(s, cell, k, arena);

		if (value[0])
			mb_text_printf(&t, "%s%s=%s", t.length ? " " : "", s->keys[k], value);
	}
	if (t.length)
		mb_report(diags, MB_NOTE, (struct mb_pos){ 0 }, "", "this is cell %d: %.240s", cell + 1, t.data);
	mb_text_free(&t);
}

static const char *text_of(struct mb_arena *arena, struct mb_text *t)
{
	const char *ret = mb_arena_strdup(arena, t->data);

	mb_text_free(t);
	return ret;
}

static void fill_grid(struct mb_call *call, struct mb_sweep_plan *plan)
{
	struct mb_sweep *s = &plan->sweep;
	struct mb_store_grid *g = &plan->grid;
	struct mb_text head = { 0 };
	char hash[MB_HASH_TEXT];
	struct mb_hash h;

	mb_sweep_head_json(s, &head);
	*g = (struct mb_store_grid){ .name = plan->name, .count = s->cell_count };
	g->head = text_of(&call->arena, &head);
	g->keys = mb_arena_alloc(&call->arena, (size_t)s->cell_count * sizeof *g->keys);
	g->settings = mb_arena_alloc(&call->arena, (size_t)s->cell_count * sizeof *g->settings);
	mb_hash_start(&h);
	mb_hash_text(&h, g->name);
	mb_hash_text(&h, g->head);
	for (int i = 0; i < s->cell_count; i++) {
		struct mb_text settings = { 0 };

		mb_sweep_settings_json(s, i, &settings);
		g->keys[i] = plan->keys[i];
		g->settings[i] = text_of(&call->arena, &settings);
		mb_hash_text(&h, g->keys[i]);
		mb_hash_text(&h, g->settings[i]);
	}
	mb_hash_end(&h, hash);
	g->hash = mb_arena_strdup(&call->arena, hash);
}

bool mb_sweep_prepare(struct mb_call *call, const char *path, struct mb_sweep_plan *ret)
{
	struct mb_fingerprints files = { .library = &call->library, .arena = &call->arena };
	struct mb_query *q = mb_arena_alloc(&call->arena, sizeof *q);

	*ret = (struct mb_sweep_plan){ .name = base_name(&call->arena, path) };
	if (!mb_sweep_read(path, &call->arena, &ret->sweep, &call->diags))
		return false;
	ret->keys = mb_arena_alloc(&call->arena, (size_t)ret->sweep.cell_count * sizeof *ret->keys);
	for (int i = 0; i < ret->sweep.cell_count; i++) {
		struct mb_arena arena = { 0 };
		struct mb_diags *diags = mb_arena_alloc(&arena, sizeof *diags);
		bool ok = mb_cell_query(&ret->sweep, i, &call->library, &arena, q, diags);

		if (ok)
			mb_cell_key(&ret->sweep, i, q, &files, ret->keys[i]);
		mb_arena_free(&arena);
		if (!ok) {
			/* Once more, for messages whose places outlive this loop. */
			mb_cell_query(&ret->sweep, i, &call->library, &call->arena, q, &call->diags);
			name_cell(&ret->sweep, i, &call->arena, &call->diags);
			return false;
		}
	}
	fill_grid(call, ret);
	return true;
}

/* ---- working ---- */

struct work {
	struct mb_call *call;
	const struct mb_sweep_plan *plan;
	struct mb_store *store;
	struct mb_sweep_counts *counts;
	struct mb_evaluation *e;                /* of this process */
	int threads, pending, finished;
	bool progress;
	double start_s, shown_s;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void first_message(const struct mb_diags *diags, struct mb_text *ret)
{
	for (int i = 0; i < diags->count; i++) {
		if (diags->item[i].severity == MB_ERROR) {
			mb_text_add(ret, diags->item[i].text);
			return;
		}
	}
	mb_text_add(ret, "no reason given");
}

static void begin_worker(void *context)
{
	struct work *w = context;

	mb_store_forget(w->store);
}

/* In a worker. The answer is four lines: verdict, hash of the constants, constants, document. */
static bool work_out(void *context, int index, struct mb_text *answer)
{
	struct work *w = context;
	const struct mb_sweep *s = &w->plan->sweep;
	struct mb_arena arena = { 0 };
	struct mb_diags *diags = mb_arena_alloc(&arena, sizeof *diags);
	struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
	struct mb_outcome *x = mb_arena_alloc(&arena, sizeof *x);
	struct mb_library library = w->call->library;
	char hash[MB_HASH_TEXT];
	struct mb_text constants = { 0 };
	struct mb_hash h;
	bool ok;

	if (!w->e)
		w->e = mb_evaluation_new();
	ok = w->e && mb_cell_query(s, index, &library, &arena, q, diags) && mb_cell_run(s, q, w->threads, &arena, w->e, x, diags);
	if (ok) {
		mb_cell_constants(q, &constants);
		mb_hash_start(&h);
		mb_hash_text(&h, constants.data);
		mb_hash_end(&h, hash);
		mb_text_printf(answer, "%s\n%s\n", mb_verdict_names[x->verdict], hash);
		mb_text_addn(answer, constants.data, constants.length);
		mb_text_add(answer, "\n");
		mb_cell_json(x, hash, answer);
		mb_text_free(&constants);
	} else {
		first_message(diags, answer);
	}
	mb_arena_free(&arena);
	return ok;
}

static bool keep(struct work *w, int index, char *answer)
{
	char *lines[4] = { answer };

	for (int i = 1; i < 4; i++) {
		char *end = strchr(lines[i - 1], '\n');

		if (!end)
			return mb_fail(&w->call->diags, (struct mb_pos){ 0 }, "cell %d: the worker's answer is cut", index + 1);
		*end = '\0';
		lines[i] = end + 1;
	}
	return mb_store_put_text(w->store, lines[1], lines[2], &w->call->diags)
	       && mb_store_put(w->store, w->plan->keys[index], lines[0], lines[3], &w->call->diags);
}

static void show_progress(struct work *w, bool last)
{
	double now = now_s(), elapsed = now - w->start_s, rate = elapsed > 0 ? w->finished / elapsed : 0;
	int total = w->counts->stored + w->pending, done = w->counts->stored + w->finished, filled = total > 0 ? (int)((double)done / total * BAR) : 0;

	if (!w->progress || (!last && now - w->shown_s < 0.1))
		return;
	w->shown_s = now;
	fprintf(stderr, "\rsweep %s  %s/%s  %d %%  ", w->plan->name, mb_number_count(done).s, mb_number_count(total).s,
	        total > 0 ? (int)(100.0 * done / total) : 100);
	for (int i = 0; i < BAR; i++)
		fputs(w->call->err_style.utf8 ? i < filled ? "█" : "·" : i < filled ? "#" : ".", stderr);
	if (rate > 0)
		fprintf(stderr, "  %s/s  %s left", mb_number_3(rate).s, mb_number_duration((w->pending - w->finished) / rate).s);
	fputs("\033[K", stderr);
	fflush(stderr);
}

static bool take(void *context, int index, bool ok, const char *answer)
{
	struct work *w = context;

	if (ok) {
		char *copy = strdup(answer);
		bool kept = copy && keep(w, index, copy);

		free(copy);
		if (!kept)
			return false;
		w->counts->fresh++;
	} else {
		w->counts->failed++;
		fprintf(stderr, "%scell %d failed: %s\n", w->progress ? "\r\033[K" : "", index + 1, answer);
	}
	w->finished++;
	show_progress(w, false);
	return true;
}

static int by_key(const void *a, const void *b, void *context)
{
	char (*keys)[MB_HASH_TEXT] = context;
	int x = *(const int *)a, y = *(const int *)b, order = strcmp(keys[x], keys[y]);

	return order ? order : (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* Cells of this shard that the store lacks, each key once; -1 after an error. Shards are cut by key, so that none shares a cell. */
static int find_pending(struct work *w, int *pending)
{
	const struct mb_sweep_plan *plan = w->plan;
	const struct mb_options *o = &w->call->options;
	int n = plan->sweep.cell_count, count = 0, unique = 0;
	int *order = mb_arena_alloc(&w->call->arena, (size_t)n * sizeof *order);

	for (int i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, (size_t)n, sizeof *order, by_key, plan->keys);
	for (int i = 0; i < n; i++) {
		bool again = i > 0 && strcmp(plan->keys[order[i]], plan->keys[order[i - 1]]) == 0, stored;

		unique += !again;
		if (o->shards && (unique - 1) % o->shards != o->shard - 1)
			continue;
		w->counts->cells++;
		if (!mb_store_has(w->store, plan->keys[order[i]], &stored, &w->call->diags))
			return -1;
		w->counts->stored += stored || again;
		if (!stored && !again)
			pending[count++] = order[i];
	}
	qsort(pending, (size_t)count, sizeof *pending, by_number);
	return count;
}

static int processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > DEFAULT_JOBS_MAX ? DEFAULT_JOBS_MAX : (int)n;
}

int mb_sweep_work(struct mb_call *call, const struct mb_sweep_plan *plan, struct mb_store *store, struct mb_sweep_counts *ret)
{
	const struct mb_options *o = &call->options;
	struct work w = { .call = call, .plan = plan, .store = store, .counts = ret, .progress = isatty(STDERR_FILENO) && !o->quiet };
	struct mb_pool_task task = { &w, begin_worker, work_out, take };
	int *pending = mb_arena_alloc(&call->arena, (size_t)plan->sweep.cell_count * sizeof *pending);
	int jobs = o->jobs ? o->jobs : o->threads ? o->threads : processors();
	enum mb_pool_end end = MB_POOL_DONE;

	*ret = (struct mb_sweep_counts){ 0 };
	w.start_s = now_s();
	if (!mb_store_put_grid(store, &plan->grid, &call->diags) || (w.pending = find_pending(&w, pending)) < 0)
		return MB_EXIT_USAGE;
	jobs = jobs > w.pending ? w.pending : jobs;
	w.threads = o->threads ? o->threads : jobs > 0 && processors() > jobs ? processors() / jobs : 1;
	if (w.pending > 0)
		end = mb_pool_run(&task, pending, w.pending, jobs);
	if (w.progress && w.pending > 0)
		fputs("\r\033[K", stderr);
	ret->elapsed_s = now_s() - w.start_s;
	if (end == MB_POOL_DONE)
		return ret->failed ? MB_EXIT_INTERNAL : MB_EXIT_DONE;
	fprintf(stderr, "stopped at %s of %s, nothing is lost; the same command continues\n", mb_number_count(ret->stored + ret->fresh).s,
	        mb_number_count(ret->cells).s);
	return end == MB_POOL_INTERRUPTED ? INTERRUPTED : MB_EXIT_USAGE;
}
