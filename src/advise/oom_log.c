/*
 * The wordings of PyTorch 1.13 to 2.9:
 *   1.13, 2.0   Tried to allocate 20.00 MiB (GPU 0; 79.11 GiB total capacity; 5.20 GiB already allocated; 15.31 MiB free;
 *               5.27 GiB reserved in total by PyTorch)
 *   2.1         Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 23.69 GiB of which 1.37 GiB is free. Process 7 has ...
 *   2.2 to 2.9  ... total capacity of ... Including non-PyTorch memory, this process has 22.29 GiB memory in use. [60.00 GiB
 *               allowed; ]Of the allocated memory 21.02 GiB is allocated by PyTorch, [with 38.00 MiB allocated in private pools
 *               (e.g., CUDA Graphs), ]and 912.83 MiB is reserved by PyTorch but unallocated.
 * Sizes are in binary units. [c10/cuda/CUDACachingAllocator.cpp, format_size]
 */
#include "advise/oom_log.h"

#include <stdlib.h>
#include <string.h>

const char *const mb_oom_place_names[MB_OOM_PLACES] = {
	[MB_OOM_UNKNOWN] = "unknown", [MB_OOM_BUILD] = "model construction", [MB_OOM_LOAD] = "checkpoint load",
	[MB_OOM_FORWARD] = "forward", [MB_OOM_LOGITS] = "logits and loss", [MB_OOM_BACKWARD] = "backward",
	[MB_OOM_OPTIMIZER] = "optimizer step", [MB_OOM_NCCL] = "NCCL", [MB_OOM_HOST] = "host memory", [MB_OOM_GRAPH] = "graph capture",
};

enum { MESSAGE = 1600, TRACE = 6000, WORD = 48 };

void mb_oom_log_init(struct mb_oom_log *log)
{
	*log = (struct mb_oom_log){ .capacity = -1, .allocated = -1, .unallocated = -1, .reserved = -1, .device_used = -1, .free = -1,
		.failed = -1, .pools = -1, .other = -1, .step = -1, .rank = -1 };
}

/* Text with an end, which may hold NUL bytes. */
struct span { const char *at, *end; };

static const char *find(struct span s, const char *words)
{
	size_t n = strlen(words);

	for (const char *p = s.at; n <= (size_t)(s.end - p); p++) {
		p = memchr(p, words[0], (size_t)(s.end - p) - n + 1);
		if (!p)
			return NULL;
		if (memcmp(p, words, n) == 0)
			return p;
	}
	return NULL;
}

static double unit_of(struct span s)
{
	static const struct { const char *name; double bytes; } units[] = {
		{ "bytes", 1 }, { "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 }, { "TiB", 1099511627776.0 },
		{ "KB", 1024.0 }, { "MB", 1048576.0 }, { "GB", 1073741824.0 }, { "B", 1 },
	};

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		size_t n = strlen(units[i].name);

		if (n <= (size_t)(s.end - s.at) && memcmp(s.at, units[i].name, n) == 0)
			return units[i].bytes;
	}
	return 0;
}

/* "22.29 GiB" at the start; *end: behind it. Negative: no size. */
static double size_at(struct span s, const char **end)
{
	char number[WORD];
	size_t n = 0;
	double value, unit;

	while (s.at < s.end && n + 1 < sizeof number && ((*s.at >= '0' && *s.at <= '9') || *s.at == '.'))
		number[n++] = *s.at++;
	number[n] = '\0';
	if (n == 0 || s.at == s.end || *s.at != ' ')
		return -1;
	s.at++;
	unit = unit_of(s);
	value = strtod(number, NULL);
	if (unit <= 0 || !(value >= 0 && value < 1e15))
		return -1;
	if (end)
		*end = s.at;
	return value * unit;
}

/* The size behind words, as in "total capacity of 23.69 GiB". */
static double size_after(struct span s, const char *words)
{
	const char *p = find(s, words);

	return p ? size_at((struct span){ p + strlen(words), s.end }, NULL) : -1;
}

/* The size in front of words, as in "1.37 GiB is free": back over the unit and the number. */
static double size_before(struct span s, const char *words)
{
	const char *p = find(s, words);

	for (int blanks = 0; p && p > s.at; p--) {
		if (p[-1] != ' ')
			continue;
		if (++blanks == 2)
			return size_at((struct span){ p, s.end }, NULL);
	}
	return p && p == s.at ? size_at(s, NULL) : -1;
}

static void take(double value, double *ret)
{
	if (value >= 0)
		*ret = value;
}

/* The newer wordings, then the older ones: what one does not say the other leaves alone. */
static void read_message(struct span m, struct mb_oom_log *log)
{
	take(size_after(m, "Tried to allocate "), &log->failed);
	take(size_after(m, "total capacty of "), &log->capacity);
	take(size_after(m, "total capacity of "), &log->capacity);
	take(size_before(m, " total capacity"), &log->capacity);
	take(size_before(m, " is free"), &log->free);
	take(size_before(m, " free;"), &log->free);
	take(size_after(m, "this process has "), &log->device_used);
	take(size_before(m, " already allocated"), &log->allocated);
	take(size_before(m, " is allocated by PyTorch"), &log->allocated);
	take(size_before(m, " allocated in private pools"), &log->pools);
	take(size_before(m, " is reserved by PyTorch but unallocated"), &log->unallocated);
	take(size_before(m, " reserved in total by PyTorch"), &log->reserved);
	for (struct span rest = m; (rest.at = find(rest, "Process ")) != NULL; rest.at++) {
		double other = size_after((struct span){ rest.at, rest.end - rest.at > 60 ? rest.at + 60 : rest.end }, " has ");

		if (other >= 0)
			log->other = (log->other > 0 ? log->other : 0) + other;
	}
}

static long number_at(struct span s)
{
	long n = 0;
	int digits = 0;

	while (s.at < s.end && (*s.at == ' ' || *s.at == '='))
		s.at++;
	for (; s.at < s.end && *s.at >= '0' && *s.at <= '9' && digits < 9; s.at++, digits++)
		n = 10 * n + (*s.at - '0');
	return digits ? n : -1;
}

/* The last "[rank3]" before the message, torchrun's mark. */
static void read_rank(struct span before, struct mb_oom_log *log)
{
	static const char *const marks[] = { "[rank", "[Rank ", "Rank " };

	for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
		for (struct span s = before; (s.at = find(s, marks[i])) != NULL; s.at++) {
			long n = number_at((struct span){ s.at + strlen(marks[i]), s.end });

			if (n >= 0)
				log->rank = n;
		}
		if (log->rank >= 0)
			return;
	}
}

/* Megatron logs an iteration when it is over: " iteration        1/      50 |". It fails in the next one. */
static void read_step(struct span before, struct mb_oom_log *log)
{
	long last = -1;

	for (struct span s = before; (s.at = find(s, "iteration ")) != NULL; s.at++) {
		const char *slash = memchr(s.at, '/', (size_t)(s.end - s.at));
		long n = number_at((struct span){ s.at + strlen("iteration "), s.end });

		if (n >= 0 && slash && slash - s.at < 40)
			last = n;
	}
	if (last >= 0)
		log->step = last + 1;
}

/*
 * Where a traceback is: its innermost frames decide, so the later words win. Names are files and functions of
 * Megatron Core, Megatron Bridge, Transformer Engine and PyTorch.
 */
static enum mb_oom_place place_of(struct span trace)
{
	static const struct { const char *words; enum mb_oom_place place; } marks[] = {
		{ "forward_step", MB_OOM_FORWARD }, { "transformer_layer.py", MB_OOM_FORWARD }, { "token_dispatcher.py", MB_OOM_FORWARD },
		{ "experts.py", MB_OOM_FORWARD }, { "loss.backward", MB_OOM_BACKWARD }, { "backward_step", MB_OOM_BACKWARD },
		{ "run_backward", MB_OOM_BACKWARD }, { "autograd", MB_OOM_BACKWARD }, { "cross_entropy", MB_OOM_LOGITS },
		{ "output_layer", MB_OOM_LOGITS }, { "logits", MB_OOM_LOGITS }, { "_postprocess", MB_OOM_LOGITS },
		{ "exp_avg", MB_OOM_OPTIMIZER }, { "optimizer.step", MB_OOM_OPTIMIZER }, { "_initialize_state", MB_OOM_OPTIMIZER },
		{ "fused_adam", MB_OOM_OPTIMIZER }, { "distrib_optimizer.py", MB_OOM_OPTIMIZER }, { "load_checkpoint", MB_OOM_LOAD },
		{ "dist_checkpointing", MB_OOM_LOAD }, { "load_state_dict", MB_OOM_LOAD }, { "param_and_grad_buffer.py", MB_OOM_BUILD },
		{ "model_provider", MB_OOM_BUILD }, { "get_model", MB_OOM_BUILD }, { "reset_parameters", MB_OOM_BUILD },
		{ "cuda_graphs.py", MB_OOM_GRAPH }, { "make_graphed_callables", MB_OOM_GRAPH },
	};
	const char *latest = NULL;
	enum mb_oom_place place = MB_OOM_UNKNOWN;

	for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
		for (struct span s = trace; (s.at = find(s, marks[i].words)) != NULL; s.at++) {
			if (!latest || s.at > latest) {
				latest = s.at;
				place = marks[i].place;
			}
		}
	}
	return place;
}

static bool read_other(struct span all, struct mb_oom_log *log)
{
	if (find(all, "Killed process") || find(all, "oom-kill") || find(all, "exitcode: -9") || find(all, "DefaultCPUAllocator: can't allocate"))
		log->place = MB_OOM_HOST;
	else if (find(all, "ncclUnhandledCudaError") || find(all, "Failed to CUDA calloc") || find(all, "CUBLAS_STATUS_ALLOC_FAILED")
	         || find(all, "CUBLAS_STATUS_NOT_INITIALIZED"))
		log->place = MB_OOM_NCCL;
	else
		return false;
	return log->given = true;
}

bool mb_oom_log_read(const char *text, size_t size, struct mb_oom_log *log)
{
	struct span all = { text, text + size }, message, before;
	const char *start = size ? find(all, "Tried to allocate ") : NULL;

	if (!start)
		return size && read_other(all, log);
	message = (struct span){ start, all.end - start > MESSAGE ? start + MESSAGE : all.end };
	for (const char *next = start + 1; (next = find((struct span){ next, message.end }, "Tried to allocate ")) != NULL;)
		message.end = next;     /* another rank's message follows */
	before = (struct span){ text, start };
	log->given = log->message = true;
	log->line = 1;
	for (const char *p = text; p < start; p++)
		log->line += *p == '\n';
	read_message(message, log);
	read_rank(before, log);
	read_step(before, log);
	log->place = place_of((struct span){ start - text > TRACE ? start - TRACE : text, start });
	mb_oom_log_complete(log);
	return true;
}

void mb_oom_log_complete(struct mb_oom_log *log)
{
	if (log->reserved < 0 && log->allocated >= 0 && log->unallocated >= 0)
		log->reserved = log->allocated + log->unallocated;
	if (log->unallocated < 0 && log->allocated >= 0 && log->reserved >= log->allocated)
		log->unallocated = log->reserved - log->allocated;
	if (log->device_used < 0 && log->capacity >= 0 && log->free >= 0)
		log->device_used = log->capacity - log->free;
	if (log->allocated >= 0 || log->failed >= 0 || log->reserved >= 0 || log->device_used >= 0 || log->step >= 0)
		log->given = true;
}
