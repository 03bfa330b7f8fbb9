#include <math.h>
#include <string.h>

#include "advise/moves.h"

enum { MOST_KEYS = 10, SEEDS = 12 };

struct nearest {
	struct mb_bench *b;
	const struct mb_wish *wish;
	struct mb_move moves[MB_MAX_MOVES];
	struct mb_trial tried[MB_MAX_MOVES];    /* each alone */
	struct mb_trial best[MOST_KEYS + 1];    /* by keys changed */
	bool found[MOST_KEYS + 1];
	struct mb_trial closest;
	bool has_closest;
	/* Pairs that come closest, where a third move starts. */
	struct mb_trial seeds[SEEDS];
	int seed_moves[SEEDS][2];
	int seed_count;
};

static bool grants(const struct mb_wish *w, const struct mb_trial *t)
{
	if (!t->sized || t->verdict == MB_ILLEGAL || (!w->legal_only && t->verdict != MB_FITS))
		return false;
	return w->below_s <= 0 || t->step_s < w->below_s;
}

static void judge(struct nearest *n, const struct mb_trial *t)
{
	int keys = mb_changes_count(&t->changes);

	if (t->sized && t->verdict != MB_ILLEGAL && (!n->has_closest || t->used_bytes < n->closest.used_bytes)) {
		n->closest = *t;
		n->has_closest = true;
	}
	if (keys < 1 || keys > MOST_KEYS || !grants(n->wish, t))
		return;
	if (!n->found[keys] || t->step_s < n->best[keys].step_s) {
		n->found[keys] = true;
		n->best[keys] = *t;
	}
}

static bool allowed(const struct nearest *n, enum mb_family family)
{
	if (family == MB_FAMILY_GPUS)
		return n->wish->gpus;
	return n->wish->learning || (family != MB_FAMILY_DTYPES && family != MB_FAMILY_MTP);
}

/* Moves of one family replace each other. */
static bool goes_with(enum mb_family a, enum mb_family b)
{
	bool both_recompute = (a == MB_FAMILY_RECOMPUTE || a == MB_FAMILY_FULL_RECOMPUTE) && (b == MB_FAMILY_RECOMPUTE || b == MB_FAMILY_FULL_RECOMPUTE);

	return a != b && !both_recompute;
}

/* The seed that is farthest gives way to a closer one. */
static void keep_seed(struct nearest *n, const struct mb_trial *t, int i, int j)
{
	int at = n->seed_count;

	if (!t->sized || t->verdict == MB_ILLEGAL)
		return;
	if (n->seed_count == SEEDS) {
		at = 0;
		for (int k = 1; k < SEEDS; k++)
			at = n->seeds[k].used_bytes > n->seeds[at].used_bytes ? k : at;
		if (t->used_bytes >= n->seeds[at].used_bytes)
			return;
	} else {
		n->seed_count++;
	}
	n->seeds[at] = *t;
	n->seed_moves[at][0] = i;
	n->seed_moves[at][1] = j;
}

static void try_with(struct nearest *n, const struct mb_changes *first, const struct mb_changes *second, struct mb_trial *ret)
{
	struct mb_changes c = *first;

	ret->verdict = MB_ILLEGAL;
	ret->sized = false;
	if (!mb_changes_merge(&c, n->b->q, second) || mb_changes_count(&c) > MOST_KEYS)
		return;
	mb_bench_try(n->b, &c, ret);
	judge(n, ret);
}

static void try_pairs(struct nearest *n, int count)
{
	struct mb_trial t;

	for (int i = 0; i < count; i++) {
		for (int j = i + 1; j < count; j++) {
			if (!goes_with(n->moves[i].family, n->moves[j].family) || !allowed(n, n->moves[i].family) || !allowed(n, n->moves[j].family))
				continue;
			try_with(n, &n->tried[i].changes, &n->moves[j].changes, &t);
			keep_seed(n, &t, i, j);
		}
	}
}

static void try_triples(struct nearest *n, int count)
{
	struct mb_trial t;

	for (int s = 0; s < n->seed_count; s++) {
		for (int k = 0; k < count; k++) {
			enum mb_family f = n->moves[k].family;

			if (!allowed(n, f) || !goes_with(f, n->moves[n->seed_moves[s][0]].family) || !goes_with(f, n->moves[n->seed_moves[s][1]].family))
				continue;
			try_with(n, &n->seeds[s].changes, &n->moves[k].changes, &t);
		}
	}
}

static bool any_found(const struct nearest *n, int most_keys)
{
	for (int k = 0; k <= most_keys; k++) {
		if (n->found[k])
			return true;
	}
	return false;
}

int mb_nearest_plans(struct mb_bench *b, const struct mb_changes *start, const struct mb_wish *wish, struct mb_arena *arena,
                     struct mb_trial *ret, int max, struct mb_trial *closest)
{
	struct nearest *n = mb_arena_alloc(arena, sizeof *n);
	int count = mb_moves(b->q, n->moves), kept = 0;
	double fastest = INFINITY;

	n->b = b;
	n->wish = wish;
	b->legal_only = true;
	mb_bench_try(b, start, &n->tried[0]);
	judge(n, &n->tried[0]);
	for (int i = 0; i < count; i++) {
		if (allowed(n, n->moves[i].family))
			try_with(n, start, &n->moves[i].changes, &n->tried[i]);
		n->tried[i].changes = *start;
		mb_changes_merge(&n->tried[i].changes, b->q, &n->moves[i].changes);
	}
	try_pairs(n, count);
	if (!any_found(n, MOST_KEYS))
		try_triples(n, count);
	b->legal_only = false;
	for (int k = 1; k <= MOST_KEYS && kept < max; k++) {
		if (n->found[k] && n->best[k].step_s < fastest * 0.995) {
			fastest = n->best[k].step_s;
			ret[kept++] = n->best[k];
		}
	}
	if (closest) {
		closest->sized = false;
		if (n->has_closest)
			*closest = n->closest;
	}
	return kept;
}
