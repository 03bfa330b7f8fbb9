/* Zeroed memory straight from the system, for what is large and lives long. */
#ifndef MBSIM_BASE_PAGES_H
#define MBSIM_BASE_PAGES_H

#include <stddef.h>

enum { MB_PAGES_BYTES = 2 * 1024 * 1024 };

/*
 * At least the bytes asked for, a multiple of MB_PAGES_BYTES and aligned to it, in huge pages where the system has
 * them: a fault for 2 MiB instead of 512. NULL when memory is exhausted.
 */
void *mb_pages_new(size_t bytes);

/* With the bytes that were asked for; p may be NULL. */
void mb_pages_free(void *p, size_t bytes);

#endif
