/* The only place that knows threads. */
#ifndef MBSIM_SEARCH_POOL_H
#define MBSIM_SEARCH_POOL_H

#include <stdbool.h>

enum { MB_MAX_THREADS = 256 };

struct mb_lock;

struct mb_lock *mb_lock_new(void);      /* NULL when memory is exhausted */
void mb_lock_free(struct mb_lock *lock);
void mb_lock_take(struct mb_lock *lock);
void mb_lock_leave(struct mb_lock *lock);

/* Runs work(context, i) for i below `count`, each in a thread of its own, and waits for all. Those that cannot start run here. */
void mb_pool_start(int count, void (*work)(void *context, int thread), void *context);

/* Threads to start: as many as asked for, 0: one for each processor that this process may use; never more than the most. */
int mb_pool_threads(int asked);

/* Next of a sequence that threads share. */
int mb_pool_next(int *next);

#endif
