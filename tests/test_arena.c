#include <criterion/criterion.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/pages.h"

static bool is_zero(const unsigned char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i])
			return false;
	return true;
}

/* Zeroed and aligned whatever block it comes from; filled, so that what overlaps or comes again unzeroed shows. */
static unsigned char *take(struct mb_arena *a, size_t size)
{
	unsigned char *p = mb_arena_alloc(a, size);

	cr_assert(is_zero(p, size), "%zu bytes are not zero", size);
	cr_assert((uintptr_t)p % alignof(max_align_t) == 0);
	memset(p, 0xa5, size);
	return p;
}

Test(arena, allocations_of_every_size_are_zero_and_apart)
{
	static const size_t sizes[] = { 1, 40, 70000, 16, 300000, 65520, 5000000, 8, 262144, 100000 };
	enum { ROUNDS = 60, COUNT = sizeof sizes / sizeof sizes[0] };
	static unsigned char *all[ROUNDS][COUNT];
	struct mb_arena a = { 0 };

	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < COUNT; i++) {
			all[round][i] = take(&a, sizes[i]);
			all[round][i][0] = all[round][i][sizes[i] - 1] = (unsigned char)(round * COUNT + i);
		}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < COUNT; i++) {
			unsigned char mark = (unsigned char)(round * COUNT + i);

			cr_assert(all[round][i][0] == mark && all[round][i][sizes[i] - 1] == mark, "round %d, %zu bytes", round, sizes[i]);
		}
	mb_arena_free(&a);
	mb_arena_free(&a);
	take(&a, 100);
	mb_arena_free(&a);
}

Test(arena, a_pool_gives_again_what_came_back)
{
	struct mb_arena_pool pool = { .back = NULL };
	struct mb_arena first = { .pool = &pool }, second = { .pool = &pool };
	size_t held;

	for (int i = 0; i < 500; i++) {
		take(&first, 1000);
		take(&second, 3000);
	}
	take(&first, 1000000);          /* larger than the pool's blocks: the system's */
	held = pool.store.bytes;
	for (int round = 0; round < 20; round++) {
		mb_arena_free(&first);
		for (int i = 0; i < 500; i++)
			take(&first, 1000);
		take(&second, 1);
		cr_expect(pool.store.bytes == held, "round %d: %zu bytes, %zu before", round, pool.store.bytes, held);
	}
	mb_arena_free(&first);
	mb_arena_free(&second);
	mb_arena_pool_free(&pool);
	cr_expect(pool.store.bytes == 0);
}

Test(arena, pages_are_zero_aligned_and_whole)
{
	static const size_t sizes[] = { 1, MB_PAGES_BYTES - 1, MB_PAGES_BYTES, MB_PAGES_BYTES + 1, 5 * (size_t)MB_PAGES_BYTES };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		size_t whole = (sizes[i] + MB_PAGES_BYTES - 1) / MB_PAGES_BYTES * MB_PAGES_BYTES;
		unsigned char *p = mb_pages_new(sizes[i]);

		cr_assert(p && (uintptr_t)p % MB_PAGES_BYTES == 0);
		cr_expect(is_zero(p, whole));
		memset(p, 1, whole);
		mb_pages_free(p, sizes[i]);
	}
	cr_expect(mb_pages_new(0) == NULL);
	cr_expect(mb_pages_new(SIZE_MAX) == NULL);
	mb_pages_free(NULL, 10);
}
