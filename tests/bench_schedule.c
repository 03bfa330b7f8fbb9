/* Time of a schedule, its bounds and its peak: ns per call, and per operation computed and covered. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cost/live.h"
#include "cost/schedule.h"

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

enum shape { EQUAL, ENDS, EACH };

static const struct { int pp, vp; int64_t micro_batches, hop; enum shape shape; const char *name; } cases[] = {
	{ 4, 4, 64, 0, ENDS, "pp 4, vp 4, 64 micro-batches, heavy ends" },
	{ 8, 1, 64, 0, ENDS, "pp 8, 64 micro-batches, heavy ends" },
	{ 8, 4, 1024, 0, EQUAL, "pp 8, vp 4, 1024 micro-batches, equal" },
	{ 8, 4, 1024, 0, ENDS, "the same, heavy ends" },
	{ 8, 4, 1024, 0, EACH, "the same, every chunk different" },
	{ 8, 4, 1024, 20, ENDS, "the same, heavy ends, hops" },
	{ 8, 1, 1024, 0, ENDS, "pp 8, 1024 micro-batches, heavy ends" },
	{ 16, 8, 4096, 20, ENDS, "pp 16, vp 8, 4096 micro-batches, heavy ends, hops" },
	{ 64, 2, 4096, 20, ENDS, "pp 64, vp 2, 4096 micro-batches, heavy ends, hops" },
	{ 8, 4, 1000000, 20, EACH, "pp 8, vp 4, 1000000 micro-batches, every chunk different, hops" },
};

/* Layers of 1000 ps forward; the embedding adds 15 and the head 400 of them. */
static void fill_durations(const struct mb_pipeline *p, enum shape shape, int64_t *forward, int64_t *backward)
{
	int n = p->pp * p->vp;
	uint64_t seed = 7;

	for (int j = 0; j < n; j++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		forward[j] = 1000 + (shape == EACH ? (int64_t)(seed >> 33) % 200 : 0);
		backward[j] = 2000 + (shape == EACH ? (int64_t)(seed >> 40) % 400 : 0);
	}
	if (shape == ENDS) {
		forward[0] += 15;
		backward[0] += 30;
		forward[n - 1] += 400;
		backward[n - 1] += 800;
	}
}

static void bench(struct mb_schedule *s, const struct mb_pipeline *p, const char *name)
{
	double saved[64], run_ns, fast_ns, tight_ns, live_ns, start = now_ns();
	int64_t ends[512], fast = 0, tight = 0, step, all = 2 * p->micro_batches * p->pp * p->vp;
	struct mb_live_event peak = { 0 };
	int rounds = 0, many = 2000;

	do {
		if (!mb_schedule_run(s, p, ends, NULL))
			return;
		rounds++;
		run_ns = (now_ns() - start) / rounds;
	} while (rounds < 2000 && now_ns() - start < 1e8);
	start = now_ns();
	for (int i = 0; i < many; i++)
		fast += mb_schedule_fast_bound(p, NULL);
	fast_ns = (now_ns() - start) / many;
	start = now_ns();
	for (int i = 0; i < many; i++)
		tight += mb_schedule_tight_bound(p, NULL, INT64_MAX);
	tight_ns = (now_ns() - start) / many;
	for (int c = 0; c < 64; c++)
		saved[c] = 100 + c;
	start = now_ns();
	for (int i = 0; i < many; i++)
		mb_live_peak(p, i % p->pp, saved, NULL, NULL, &peak);
	live_ns = (now_ns() - start) / many;
	step = mb_schedule_step(p, ends, NULL);
	printf("%s\n  run   %9.1f us   %5.2f ns per operation computed, %.4f per operation (%" PRId64 " of %" PRId64 ")\n",
	       name, run_ns / 1e3, run_ns / (double)mb_schedule_simulated(s), run_ns / (double)all, mb_schedule_simulated(s), all);
	printf("  fast  %9.3f us   %.3f %% below\n  tight %9.3f us   %.3f %% below\n  live  %9.3f us a rank   (%g bytes)\n",
	       fast_ns / 1e3, 100 * (1 - (double)(fast / many) / (double)step), tight_ns / 1e3,
	       100 * (1 - (double)(tight / many) / (double)step), live_ns / 1e3, peak.bytes);
}

int main(void)
{
	static int64_t forward[2048], backward[2048];
	struct mb_schedule *s = mb_schedule_new(1 << 20);

	if (!s)
		return 1;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct mb_pipeline p = { .pp = cases[i].pp, .vp = cases[i].vp, .micro_batches = cases[i].micro_batches,
		                         .hop_ps = cases[i].hop, .forward_ps = forward, .backward_ps = backward };

		fill_durations(&p, cases[i].shape, forward, backward);
		bench(s, &p, cases[i].name);
	}
	mb_schedule_free(s);
	return 0;
}
