/*
 * Evaluating a plan allocates nothing and does no I/O: linked so that every allocation and every way to a file is counted.
 * The counter is volatile because compilers assume that their own malloc touches no variable of ours.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "cost/cost.h"
#include "desc/node.h"

static volatile long calls;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
FILE *__real_fopen(const char *path, const char *mode);
int __real_open(const char *path, int flags, mode_t mode);
ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __real_read(int fd, void *data, size_t n);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_open(const char *path, int flags, mode_t mode);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_read(int fd, void *data, size_t n);

void *__wrap_malloc(size_t size) { calls++; return __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { calls++; return __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t size) { calls++; return __real_realloc(p, size); }
FILE *__wrap_fopen(const char *path, const char *mode) { calls++; return __real_fopen(path, mode); }
int __wrap_open(const char *path, int flags, mode_t mode) { calls++; return __real_open(path, flags, mode); }
ssize_t __wrap_write(int fd, const void *data, size_t n) { calls++; return __real_write(fd, data, n); }
ssize_t __wrap_read(int fd, void *data, size_t n) { calls++; return __real_read(fd, data, n); }

static const char *const runs[] = {
	"{model: llama3-70b, hardware: dgx-h100, gpus: 64, seq: 8192, gbs: 256, precision: fp8_cs, tp: 4, pp: 8, vp: 5, sp: true}",
	"{model: llama3-8b, hardware: dgx-h100, gpus: 8, seq: 8192, gbs: 128, recompute_granularity: full, recompute_method: block,"
	" recompute_num_layers: 4}",
	"{model: deepseek-v3, hardware: gb200-nvl72, gpus: 256, seq: 4096, gbs: 4096, precision: fp8_mx, pp: 4, vp: 4, ep: 64,"
	" recompute_modules: [mla_up_proj], moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: hybridep,"
	" overlap_moe_expert_parallel_comm: true, pipeline_model_parallel_layout: 'Et*4|(t*4|)*14tmL'}",
	"{model: qwen3-30b-a3b, hardware: dgx-h100, gpus: 16, seq: 4096, gbs: 1024, ep: 16, cuda_graph_impl: transformer_engine,"
	" cuda_graph_scope: [attn, moe_router]}",
	"{model: nemotron-3-nano, hardware: gb300-nvl72, gpus: 8, seq: 8192, gbs: 512, precision: fp8_mx, ep: 8, optimizer: muon}",
	"{model: qwen3-next-80b-a3b, hardware: dgx-b200, gpus: 16, seq: 4096, gbs: 64, ep: 8, pp: 2,"
	" fine_grained_activation_offloading: true, offload_modules: [moe_act]}",
};

int main(void)
{
	struct mb_evaluation *e = mb_evaluation_new();
	struct mb_query *q = calloc(1, sizeof *q);
	struct mb_arena arena = { 0 };
	struct mb_library library;
	struct mb_diags diags = { 0 };
	int failed = 0;

	if (!e || !q || !mb_library_open(&library, &diags))
		return 99;
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		const struct mb_node *run = mb_node_read_text(runs[i], strlen(runs[i]), "run", &arena, &diags);
		long before;

		memset(q, 0, sizeof *q);
		if (!run || !mb_query_from_node(run, &library, &arena, q, &diags) || !mb_evaluable(&q->c, &q->c.run.plan)) {
			printf("run %zu is not accepted: %s\n", i, diags.count ? diags.item[0].text : "sizes");
			return 1;
		}
		before = calls;
		if (mb_evaluate(&q->c, &q->c.run.plan, e) == MB_ILLEGAL)
			return 1;
		if (calls != before) {
			printf("run %zu: %ld calls\n", i, calls - before);
			failed = 1;
		}
	}
	if (calls == 0) {
		printf("nothing was counted: the wrapping does not work\n");
		failed = 1;
	}
	mb_arena_free(&arena);
	free(q);
	mb_evaluation_free(e);
	return failed;
}
