#include "base/arena.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

enum {
	BLOCK_BYTES = 64 * 1024,
	SMALL_BYTES = 4 * BLOCK_BYTES,  /* an arena above this grows by huge pages */
};

struct mb_arena_block {
	struct mb_arena_block *next;
	size_t used, size;
	enum { PLAIN, ALONE, PAGED, POOLED } kind;      /* alone and paged: what is not used yet is zero */
	alignas(max_align_t) unsigned char data[];
};

/* Of a pool: one that came back, or a piece of what the pool holds. */
static struct mb_arena_block *pooled(struct mb_arena_pool *pool)
{
	struct mb_arena_block *block = pool->back;

	if (block)
		pool->back = block->next;
	else
		block = mb_arena_room(&pool->store, BLOCK_BYTES);
	block->kind = POOLED;
	block->size = BLOCK_BYTES - sizeof *block;
	return block;
}

static struct mb_arena_block *new_block(const struct mb_arena *a, size_t size)
{
	struct mb_arena_block *block;
	int kind = PLAIN;

	if (size > SIZE_MAX / 2)
		abort();
	size += sizeof *block;
	if (a->pool && size <= BLOCK_BYTES)
		return pooled(a->pool);
	if (size > SMALL_BYTES) {
		kind = ALONE;           /* room for the most there can be: pages that are never used cost nothing */
	} else if (a->bytes > SMALL_BYTES) {
		kind = PAGED;
		size = MB_PAGES_BYTES;
	} else if (size < BLOCK_BYTES) {
		size = BLOCK_BYTES;
	}
	block = kind == ALONE ? calloc(1, size) : kind == PAGED ? mb_pages_new(size) : malloc(size);
	if (!block)
		abort();
	block->kind = kind;
	block->size = size - sizeof *block;
	return block;
}

static struct mb_arena_block *add_block(struct mb_arena *a, size_t size)
{
	struct mb_arena_block *block = new_block(a, size), *head = a->head;

	block->used = 0;
	a->bytes += block->size;

	/* The block with more room left is the head. */
	if (head && head->size - head->used > block->size - size) {
		block->next = head->next;
		head->next = block;
	} else {
		block->next = head;
		a->head = block;
	}
	return block;
}

static void *take(struct mb_arena *a, size_t size, bool zero)
{
	const size_t align = alignof(max_align_t);
	struct mb_arena_block *block = a->head;
	void *p;

	if (size > SIZE_MAX - align)
		abort();
	size = size ? (size + align - 1) / align * align : align;
	if (!block || block->size - block->used < size)
		block = add_block(a, size);
	p = block->data + block->used;
	block->used += size;
	if (zero && block->kind != PAGED && block->kind != ALONE)
		memset(p, 0, size);
	return p;
}

void *mb_arena_alloc(struct mb_arena *a, size_t size)
{
	return take(a, size, true);
}

void *mb_arena_room(struct mb_arena *a, size_t size)
{
	return take(a, size, false);
}

char *mb_arena_strndup(struct mb_arena *a, const char *s, size_t n)
{
	char *copy = mb_arena_alloc(a, n + 1);

	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *mb_arena_strdup(struct mb_arena *a, const char *s)
{
	return mb_arena_strndup(a, s, strlen(s));
}

char *mb_arena_printf(struct mb_arena *a, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	s = mb_arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

void mb_arena_free(struct mb_arena *a)
{
	struct mb_arena_block *block = a->head;

	while (block) {
		struct mb_arena_block *next = block->next;

		if (block->kind == PAGED) {
			mb_pages_free(block, MB_PAGES_BYTES);
		} else if (block->kind == POOLED) {
			block->next = a->pool->back;
			a->pool->back = block;
		} else {
			free(block);
		}
		block = next;
	}
	*a = (struct mb_arena){ .pool = a->pool };
}

void mb_arena_pool_free(struct mb_arena_pool *pool)
{
	mb_arena_free(&pool->store);
	pool->back = NULL;
}
