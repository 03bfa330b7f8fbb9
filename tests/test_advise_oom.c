/* Out-of-memory messages in every wording of PyTorch 1.13 to 2.9, and what is made of them. */
#include "advise/advice.h"
#include "advise/diagnosis.h"
#include "advise_fixture.h"
#include "expect.h"

static const double GIB = 1073741824.0;

static const struct wording {
	const char *name, *text;
	double capacity, allocated, unallocated, used, failed;  /* GiB; negative: not said */
	long step, rank;
	enum mb_oom_place place;
} wordings[] = {
	{ "1.13", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.11 GiB total capacity; 75.20 GiB already allocated; "
	  "15.31 MiB free; 77.27 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb",
	  79.11, 75.20, 2.07, 79.095, 0.01953, -1, -1, MB_OOM_UNKNOWN },
	{ "1.13 capped", "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 39.39 GiB total capacity; 30.00 GiB already allocated; 1.31 GiB free; "
	  "35.00 GiB allowed; 33.00 GiB reserved in total by PyTorch)", 39.39, 30, 3, 38.08, 2, -1, -1, MB_OOM_UNKNOWN },
	{ "2.1", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 23.69 GiB of which 1.37 GiB "
	  "is free. Including non-PyTorch memory, this process has 22.29 GiB memory in use. Of the allocated memory 21.02 GiB is allocated by PyTorch, "
	  "and 912.83 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb",
	  23.69, 21.02, 0.89144, 22.29, 2, -1, -1, MB_OOM_UNKNOWN },
	{ "2.4, rank and step", " iteration        1/      50 | consumed samples: 32 |\n[rank3]:   File \"optimizer/distrib_optimizer.py\", line 1\n"
	  "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 3 has a total capacity of 79.11 GiB of which 522.56 MiB "
	  "is free. Including non-PyTorch memory, this process has 78.59 GiB memory in use. Of the allocated memory 54.76 GiB is allocated by PyTorch, and "
	  "19.52 GiB is reserved by PyTorch but unallocated.", 79.11, 54.76, 19.52, 78.59, 0.875, 2, 3, MB_OOM_OPTIMIZER },
	{ "2.7, graphs", "[rank0]:   File \"cross_entropy.py\"\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.54 GiB. GPU 0 has a "
	  "total capacity of 79.11 GiB of which 0.90 GiB is free. Process 77 has 1.00 GiB memory in use. Including non-PyTorch memory, this process has "
	  "77.00 GiB memory in use. 78.00 GiB allowed; Of the allocated memory 69.50 GiB is allocated by PyTorch, with 12.00 GiB allocated in private pools "
	  "(e.g., CUDA Graphs), and 3.00 GiB is reserved by PyTorch but unallocated.", 79.11, 69.5, 3, 77, 1.54, -1, 0, MB_OOM_LOGITS },
	{ "Ascend", "RuntimeError: NPU out of memory. Tried to allocate 26.44 GiB (NPU 0; 60.96 GiB total capacity; 30.23 GiB already allocated; 30.23 GiB "
	  "current active; 25.36 GiB free; 33.08 GiB reserved in total by PyTorch)", 60.96, 30.23, 2.85, 35.6, 26.44, -1, -1, MB_OOM_UNKNOWN },
};

Test(advise_oom, every_wording)
{
	for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++) {
		const struct wording *w = &wordings[i];
		struct mb_oom_log log;

		mb_oom_log_init(&log);
		cr_assert(mb_oom_log_read(w->text, strlen(w->text), &log), "%s", w->name);
		expect_rel(log.capacity / GIB, w->capacity, 1e-3, w->name);
		expect_rel(log.allocated / GIB, w->allocated, 1e-3, w->name);
		expect_rel(log.unallocated / GIB, w->unallocated, 1e-3, w->name);
		expect_rel(log.device_used / GIB, w->used, 1e-3, w->name);
		expect_rel(log.failed / GIB, w->failed, 1e-3, w->name);
		cr_expect_eq(log.step, w->step, "%s: step %ld", w->name, log.step);
		cr_expect_eq(log.rank, w->rank, "%s: rank %ld", w->name, log.rank);
		cr_expect_eq(log.place, w->place, "%s: %s", w->name, mb_oom_place_names[log.place]);
	}
}

/* Cut anywhere, or with bytes turned over: never read past the end, never a size that is no size. */
Test(advise_oom, damaged_logs)
{
	for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++) {
		size_t length = strlen(wordings[i].text);

		for (size_t n = 0; n <= length; n++) {
			char *copy = malloc(n ? n : 1);
			struct mb_oom_log log;

			cr_assert(copy);
			memcpy(copy, wordings[i].text, n);
			if (n > 3)
				copy[n * 7919 % n] = (char)(n * 31);
			mb_oom_log_init(&log);
			mb_oom_log_read(copy, n, &log);
			cr_expect(log.failed < 1e15 && log.allocated < 1e15 && log.step < 1000000000);
			free(copy);
		}
	}
}

/* ---- causes ---- */

#define DENSE "model: llama3-8b\nhardware: dgx-h100\ngpus: 8\ntp: 2\nsequence_parallel: true\nseq: 4096\ngbs: 64\n"
#define MOE "model: qwen3-30b-a3b\nhardware: dgx-h100\ngpus: 16\nep: 16\nseq: 4096\ngbs: 1024\n"

static const struct {
	const char *name, *run;
	double allocated, unallocated, used, failed;    /* GiB */
	long step, rank;
	enum mb_oom_place place;
	enum mb_cause cause;
} causes[] = {
	{ "fits, no log", DENSE, -1, -1, -1, -1, -1, -1, 0, MB_CAUSE_FITS },
	{ "states", "model: llama3-70b\nhardware: dgx-h100\ngpus: 8\nseq: 4096\ngbs: 64\ntp: 8\nsequence_parallel: true\n", -1, -1, -1, -1, -1, -1, 0, MB_CAUSE_STATES },
	{ "pressure", DENSE "mbs: 8\n", -1, -1, -1, -1, 1, -1, 0, MB_CAUSE_PRESSURE },
	{ "fragmented", DENSE, 40, 30, 73, 2, 3, 0, 0, MB_CAUSE_FRAGMENTATION },
	{ "only allocated is known", DENSE, 50, -1, -1, -1, -1, -1, 0, MB_CAUSE_FRAGMENTATION },
	{ "another process", DENSE, 40, 0.2, 78, 2, 3, 0, 0, MB_CAUSE_OUTSIDE },
	{ "logits of a long sample", "model: qwen3-4b\nhardware: dgx-h100\ngpus: 8\nseq: 8192\ngbs: 64\n", 44.61, -1, 52.04, 61.34, 37, -1, 0, MB_CAUSE_LOGITS },
	{ "experts out of balance", MOE "cross_entropy_fusion_impl: te\ngrad_reduce_in_fp32: false\n", 72, 0.5, 77, 2, 300, 0, 0, MB_CAUSE_IMBALANCE },
	{ "checkpoint", DENSE, 76, 0.2, 78.5, 1, -1, -1, MB_OOM_LOAD, MB_CAUSE_LOADING },
	{ "more than the model knows", DENSE, 75, 0.2, 78.5, 1, 5, 0, 0, MB_CAUSE_UNKNOWN },
	{ "host", DENSE, -1, -1, -1, -1, -1, -1, MB_OOM_HOST, MB_CAUSE_HOST },
	{ "illegal", "model: llama3-8b\nhardware: dgx-h100\ngpus: 8\ntp: 3\nseq: 4096\ngbs: 64\n", 40, -1, -1, -1, -1, -1, 0, MB_CAUSE_ILLEGAL },
};

static double bytes(double gib)
{
	return gib < 0 ? -1 : gib * GIB;
}

Test(advise_oom, causes)
{
	struct mb_evaluation *e = mb_evaluation_new();

	for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
		struct mb_arena arena = { 0 };
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
		struct mb_advice *a = mb_arena_alloc(&arena, sizeof *a);
		struct mb_oom_log log;

		load_query(causes[i].run, &arena, q);
		mb_oom_log_init(&log);
		log.allocated = bytes(causes[i].allocated);
		log.unallocated = bytes(causes[i].unallocated);
		log.device_used = bytes(causes[i].used);
		log.failed = bytes(causes[i].failed);
		log.step = causes[i].step;
		log.rank = causes[i].rank;
		log.place = causes[i].place;
		mb_oom_log_complete(&log);
		log.given |= log.place != MB_OOM_UNKNOWN;
		mb_advise_oom(q, &log, e, &arena, a);
		cr_expect_eq(a->diagnosis->cause, causes[i].cause, "%s: %s", causes[i].name, mb_cause_names[a->diagnosis->cause]);
		if (causes[i].cause == MB_CAUSE_FRAGMENTATION)
			cr_expect(a->recommended >= 0 && a->options[a->recommended].t.changes.expandable, "%s: expandable segments first", causes[i].name);
		mb_arena_free(&arena);
	}
	mb_evaluation_free(e);
}

Test(advise_oom, remedies_run_from_free_to_dear)
{
	struct mb_arena arena = { 0 };
	struct mb_evaluation *e = mb_evaluation_new();
	struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);
	struct mb_advice *a = mb_arena_alloc(&arena, sizeof *a);
	bool learning = false;

	load_query("model: llama3-70b\nhardware: dgx-h100\ngpus: 64\nseq: 8192\ngbs: 256\ntp: 4\npp: 4\nsequence_parallel: true\n", &arena, q);
	mb_advise_oom(q, NULL, e, &arena, a);
	cr_assert(a->count > 3 && a->recommended >= 0);
	cr_expect(a->options[0].t.changes.expandable, "free first");
	for (int i = 0; i < a->count; i++) {
		bool dear = mb_changes_has(&a->options[i].t.changes, MB_K_gpus);

		cr_expect(!learning || a->options[i].learning || dear, "%d: what changes learning comes after what does not", i);
		learning |= a->options[i].learning;
		cr_expect_eq(a->options[i].learning, mb_changes_learning(&a->options[i].t.changes));
	}
	cr_expect_eq(a->options[a->recommended].t.verdict, MB_FITS);
	mb_evaluation_free(e);
	mb_arena_free(&arena);
}
