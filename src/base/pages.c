#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>

static size_t whole(size_t bytes)
{
	return (bytes + MB_PAGES_BYTES - 1) / MB_PAGES_BYTES * MB_PAGES_BYTES;
}

void *mb_pages_new(size_t bytes)
{
	size_t size = whole(bytes), before;
	unsigned char *p;

	if (bytes == 0 || bytes > SIZE_MAX / 2)
		return NULL;
	p = mmap(NULL, size + MB_PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;

	/* The system aligns to its small pages: what lies before and behind goes back. */
	before = (MB_PAGES_BYTES - (uintptr_t)p % MB_PAGES_BYTES) % MB_PAGES_BYTES;
	if (before > 0)
		munmap(p, before);
	munmap(p + before + size, MB_PAGES_BYTES - before);
#ifdef MADV_HUGEPAGE
	madvise(p + before, size, MADV_HUGEPAGE);       /* a wish: without it the memory is the same */
#endif
	return p + before;
}

void mb_pages_free(void *p, size_t bytes)
{
	if (p)
		munmap(p, whole(bytes));
}
