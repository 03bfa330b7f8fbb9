/* Chunks in flight: known counts, and a full walk over lists built another way. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cost/live.h"

enum { MAX_VP = 5 };

static uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
	return low + (int64_t)(random_bits(state) % (uint64_t)(high - low + 1));
}

static struct mb_pipeline random_pipeline(uint64_t *state)
{
	struct mb_pipeline p = { 0 };

	p.pp = (int)between(state, 1, 6);
	p.vp = p.pp == 1 ? 1 : (int)between(state, 1, MAX_VP);
	p.ep_overlap = between(state, 0, 2) == 0;
	p.group = between(state, 0, 1) ? 0 : p.pp + between(state, 0, 5);
	p.micro_batches = (p.group ? p.group : p.pp) * between(state, 1, 12);
	if (between(state, 0, 1))
		p.micro_batches += p.pp + between(state, 0, 5);
	if (p.vp == 1)
		p.micro_batches = between(state, 1, 40);
	if (!mb_pipeline_ordered(&p))
		p.micro_batches = p.group ? p.group : p.pp;
	return p;
}

/* ---- every operation of a rank, in order ---- */

struct listed { int chunk, micro_batch; bool backward, paired; };      /* paired: follows a forward of the steady state */

static int list_rank(const struct mb_pipeline *p, int rank, struct listed *ops)
{
	struct listed table[2048];
	int entries = 0, n = 0, forwards = 0, backwards = 0, warmup = p->pp - rank - 1;
	int group = p->vp == 1 ? 1 : p->group ? (int)p->group : p->pp;

	if (p->vp > 1)
		warmup = 2 * warmup + (p->vp - 1) * group + p->ep_overlap;
	else if (p->pp == 1)
		warmup = p->ep_overlap;
	for (int first = 0; first < p->micro_batches; first += group)
		for (int c = 0; c < p->vp; c++)
			for (int m = first; m < first + group && m < p->micro_batches; m++)
				table[entries++] = (struct listed){ .chunk = c, .micro_batch = m };
	while (backwards < entries) {
		bool backward = forwards == entries || forwards > warmup + backwards;
		struct listed op = table[backward ? backwards++ : forwards++];

		if (backward)
			op.chunk = p->vp - 1 - op.chunk;
		op.backward = backward;
		op.paired = backward && !ops[n - 1].backward && forwards > warmup;
		ops[n++] = op;
	}
	return n;
}

/* The peak over all operations. */
static struct mb_live_event full_walk(const struct mb_pipeline *p, const struct listed *ops, int n, const double *saved,
                                      const double *forward_extra, const double *backward_extra)
{
	const bool combined = p->ep_overlap && (p->vp > 1 || p->pp == 1);
	struct mb_live_event best = { .bytes = -1, .beside = -1 };
	int64_t counts[MAX_VP] = { 0 };

	for (int i = 0; i < n; i++) {
		struct mb_live_event e = { .micro_batch = ops[i].micro_batch, .chunk = ops[i].chunk, .beside = -1,
		                           .backward = ops[i].backward };

		if (!ops[i].backward)
			counts[ops[i].chunk]++;
		for (int c = 0; c < p->vp; c++) {
			e.saved_bytes += (double)counts[c] * saved[c];
			e.in_flight += counts[c];
		}
		e.bytes = e.saved_bytes + (e.backward ? backward_extra : forward_extra)[e.chunk];
		if (ops[i].paired && combined) {
			double kept = saved[ops[i - 1].chunk], freed = saved[e.chunk];

			e.beside = ops[i - 1].chunk;
			e.saved_bytes -= kept < freed ? kept : freed;
			e.bytes = e.saved_bytes + (backward_extra[e.chunk] + forward_extra[e.beside]);
		}
		if (combined && i + 1 < n && ops[i + 1].paired)
			continue;       /* the pair is one event */
		if (e.bytes > best.bytes)
			best = e;
		if (ops[i].backward)
			counts[ops[i].chunk]--;
	}
	return best;
}

static bool same_event(const struct mb_live_event *a, const struct mb_live_event *b)
{
	return a->bytes - b->bytes == 0 && a->saved_bytes - b->saved_bytes == 0 && a->in_flight == b->in_flight && a->micro_batch == b->micro_batch && a->chunk == b->chunk &&
	       a->beside == b->beside && a->backward == b->backward;
}

Test(live, peak_equals_a_walk_over_every_operation)
{
	struct listed *ops = malloc(8192 * sizeof *ops);
	uint64_t state = 1;

	cr_assert(ops);
	for (int round = 0; round < 100000; round++) {
		struct mb_pipeline p = random_pipeline(&state);
		int rank = (int)between(&state, 0, p.pp - 1), n = list_rank(&p, rank, ops);
		double saved[MAX_VP], forward[MAX_VP], backward[MAX_VP];
		struct mb_live_event want, got;

		/* Binary fractions: the sums are exact, so equal means equal. */
		for (int c = 0; c < p.vp; c++) {
			saved[c] = round % 3 ? (double)between(&state, 0, 1000) / 8 : 100;
			forward[c] = (double)between(&state, 0, 600) / 4;
			backward[c] = (double)between(&state, 0, 1000) / 4;
		}
		want = full_walk(&p, ops, n, saved, forward, backward);
		mb_live_peak(&p, rank, saved, forward, backward, &got);
		cr_assert(same_event(&want, &got),
		          "round %d: pp %d vp %d M %" PRId64 " group %" PRId64 " rank %d: %g in %s of %" PRId64 ", not %g in %s of %" PRId64,
		          round, p.pp, p.vp, p.micro_batches, p.group, rank, got.bytes, got.backward ? "backward" : "forward",
		          got.micro_batch, want.bytes, want.backward ? "backward" : "forward", want.micro_batch);
	}
	free(ops);
}

/* Largest weighted count over the list. */
static int64_t heaviest(const struct listed *ops, int n, const int64_t *weights)
{
	int64_t best = 0, sum = 0;

	for (int i = 0; i < n; i++) {
		sum += ops[i].backward ? -weights[ops[i].chunk] : weights[ops[i].chunk];
		best = sum > best ? sum : best;
	}
	return best;
}

static int64_t weigh(const int32_t *set, const int64_t *weights, int vp)
{
	int64_t sum = 0;

	for (int c = 0; c < vp; c++)
		sum += set[c] * weights[c];
	return sum;
}

static bool occurs(const struct mb_pipeline *p, const struct listed *ops, int n, const int32_t *set)
{
	int32_t live[MAX_VP] = { 0 };

	for (int i = 0; i < n; i++) {
		live[ops[i].chunk] += ops[i].backward ? -1 : 1;
		if (memcmp(live, set, (size_t)p->vp * sizeof *set) == 0)
			return true;
	}
	return false;
}

static bool contains(const int32_t *a, const int32_t *b, int vp)
{
	for (int c = 0; c < vp; c++)
		if (a[c] < b[c])
			return false;
	return true;
}

Test(live, vectors_hold_the_heaviest_set_for_any_weights)
{
	struct listed *ops = malloc(8192 * sizeof *ops);
	int32_t sets[512 * MAX_VP];
	uint64_t state = 2;

	cr_assert(ops);
	for (int round = 0; round < 5000; round++) {
		struct mb_pipeline p = random_pipeline(&state);
		int rank = (int)between(&state, 0, p.pp - 1), n = list_rank(&p, rank, ops);
		int count = mb_live_vectors(&p, rank, 512, sets);

		cr_assert(count >= 1 && count <= 512);
		for (int trial = 0; trial < 10; trial++) {
			int64_t weights[MAX_VP], best = 0;

			for (int c = 0; c < p.vp; c++)
				weights[c] = trial == 0 ? 1 : between(&state, 0, 1) ? between(&state, 0, 100) : 0;
			for (int k = 0; k < count; k++) {
				int64_t sum = weigh(&sets[k * p.vp], weights, p.vp);

				best = sum > best ? sum : best;
			}
			cr_assert_eq(best, heaviest(ops, n, weights), "round %d, trial %d", round, trial);
			cr_assert(trial > 0 || best == mb_live_count(&p, rank), "round %d", round);
		}
		for (int k = 0; k < count; k++) {
			cr_assert(occurs(&p, ops, n, &sets[k * p.vp]), "round %d: vector %d never occurs", round, k);
			for (int j = 0; j < count; j++)
				cr_assert(j == k || !contains(&sets[j * p.vp], &sets[k * p.vp], p.vp), "round %d: %d contains %d", round, j, k);
		}
	}
	free(ops);
}

static const struct { int64_t micro_batches; int vp, pp, group, rank; bool overlap; int64_t warmup, live; } vectors[] = {
	{ 32, 5, 4, 4, 0, false, 22, 23 },
	{ 32, 5, 4, 4, 3, false, 16, 17 },
	{ 64, 2, 8, 8, 0, false, 22, 23 },
	{ 64, 4, 16, 16, 0, false, 78, 79 },
	{ 8, 2, 4, 4, 0, true, 11, 12 },
	{ 4, 2, 4, 4, 0, false, 8, 8 },
	{ 8, 1, 4, 0, 0, false, 3, 4 },
	{ 8, 1, 4, 0, 3, false, 0, 1 },
	{ 8, 1, 1, 0, 0, false, 0, 1 },
	{ 8, 1, 1, 0, 0, true, 1, 2 },
	{ 1, 1, 1, 0, 0, true, 1, 1 },
	{ 2, 1, 4, 0, 0, false, 2, 2 },
};

Test(live, known_warmups_and_counts)
{
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		struct mb_pipeline p = { .pp = vectors[i].pp, .vp = vectors[i].vp, .micro_batches = vectors[i].micro_batches,
		                         .group = vectors[i].group, .ep_overlap = vectors[i].overlap };

		cr_expect_eq(mb_pipeline_warmup(&p, vectors[i].rank), vectors[i].warmup, "row %zu", i);
		cr_expect_eq(mb_live_count(&p, vectors[i].rank), vectors[i].live, "row %zu", i);
	}
}

/* Rank 0 holds 1 + (pp - 1) / (pp vp) times the activations of pp whole micro-batches of its stage. */
Test(live, equal_chunks_on_the_first_rank)
{
	static const double saved[] = { 25, 25, 25, 25 };
	struct mb_pipeline p = { .pp = 4, .vp = 4, .micro_batches = 64 };
	struct mb_live_event e;

	mb_live_peak(&p, 0, saved, NULL, NULL, &e);
	cr_expect_eq(e.bytes, 4 * 100 * (1 + 3.0 / 16));
	cr_expect_eq(e.in_flight, 19);
	cr_expect_not(e.backward);
	cr_expect_eq(e.beside, -1);
}

/* 1F1B on rank 0 of 4: the fourth forward is the deepest; a costly backward moves the peak to the first backward. */
Test(live, the_event_is_named)
{
	const double saved = 10, forward = 3, cheap = 2, costly = 5;
	struct mb_pipeline p = { .pp = 4, .vp = 1, .micro_batches = 100 };
	struct mb_live_event e;

	mb_live_peak(&p, 0, &saved, &forward, &cheap, &e);
	cr_expect(!e.backward && e.micro_batch == 3 && e.bytes == 43 && e.saved_bytes == 40);
	mb_live_peak(&p, 0, &saved, &forward, &costly, &e);
	cr_expect(e.backward && e.micro_batch == 0 && e.bytes == 45 && e.in_flight == 4);
	p.pp = 1;
	p.ep_overlap = true;
	mb_live_peak(&p, 0, &saved, &forward, &costly, &e);
	cr_expect(e.backward && e.beside == 0 && e.bytes == 18, "both operations run at once on one micro-batch's activations");
}

Test(live, vectors_stop_at_the_room_given)
{
	struct mb_pipeline p = { .pp = 4, .vp = 4, .micro_batches = 64 };
	int32_t sets[64 * 4], guard = 77;
	int count = mb_live_vectors(&p, 0, 64, sets);

	cr_assert(count > 1 && count <= 64, "%d", count);
	sets[4] = guard;
	cr_expect_eq(mb_live_vectors(&p, 0, 1, sets), 2);
	cr_expect_eq(sets[4], guard);
}
