/* Bump allocator: one per load or search; freed whole. Never used while a plan is evaluated. */
#ifndef MBSIM_BASE_ARENA_H
#define MBSIM_BASE_ARENA_H

#include <stddef.h>

struct mb_arena {
	struct mb_arena_block *head;
	struct mb_arena_pool *pool;     /* NULL: blocks are the system's */
	size_t bytes;                   /* of all blocks */
};

/* What arenas of one thread that come and go take their blocks from and give them back to. Outlives them. */
struct mb_arena_pool {
	struct mb_arena store;
	struct mb_arena_block *back;
};

/* Zero-filled memory aligned for any type; aborts the process when memory is exhausted (no caller can go on). */
void *mb_arena_alloc(struct mb_arena *a, size_t size);

/* The same with any contents, for what is filled at once. */
void *mb_arena_room(struct mb_arena *a, size_t size);

char *mb_arena_strdup(struct mb_arena *a, const char *s);
char *mb_arena_strndup(struct mb_arena *a, const char *s, size_t n);
char *mb_arena_printf(struct mb_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Frees everything but the pool it was from; safe on a zeroed arena and more than once. */
void mb_arena_free(struct mb_arena *a);
void mb_arena_pool_free(struct mb_arena_pool *pool);

#endif
