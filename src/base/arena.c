#include "base/arena.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024 };

struct mb_arena_block {
	struct mb_arena_block *next;
	size_t used, size;
	bool zero;                      /* what is not used yet is */
	alignas(max_align_t) unsigned char data[];
};

static struct mb_arena_block *add_block(struct mb_arena *a, size_t size)
{
	size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
	struct mb_arena_block *block;

	if (bytes > SIZE_MAX - sizeof *block)
		abort();
	block = size > BLOCK_BYTES ? calloc(1, sizeof *block + bytes) : malloc(sizeof *block + bytes);
	if (!block)
		abort();
	block->used = 0;
	block->size = bytes;
	block->zero = size > BLOCK_BYTES;

	/* A large request gets a block of its own behind the head, so that the room left in the head is not lost. */
	if (size > BLOCK_BYTES && a->head) {
		block->next = a->head->next;
		a->head->next = block;
	} else {
		block->next = a->head;
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
	if (zero && !block->zero)
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

		free(block);
		block = next;
	}
	a->head = NULL;
}
