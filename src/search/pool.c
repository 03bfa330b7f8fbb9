#include "search/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct mb_lock {
	pthread_mutex_t mutex;
};

struct mb_lock *mb_lock_new(void)
{
	struct mb_lock *lock = malloc(sizeof *lock);

	if (lock && pthread_mutex_init(&lock->mutex, NULL) != 0) {
		free(lock);
		return NULL;
	}
	return lock;
}

void mb_lock_free(struct mb_lock *lock)
{
	if (lock)
		pthread_mutex_destroy(&lock->mutex);
	free(lock);
}

void mb_lock_take(struct mb_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

void mb_lock_leave(struct mb_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

struct task {
	void (*work)(void *context, int thread);
	void *context;
	int thread;
};

static void *run_task(void *context)
{
	const struct task *t = context;

	t->work(t->context, t->thread);
	return NULL;
}

void mb_pool_start(int count, void (*work)(void *context, int thread), void *context)
{
	struct task tasks[MB_MAX_THREADS];
	pthread_t threads[MB_MAX_THREADS];
	bool started[MB_MAX_THREADS] = { false };

	for (int i = 1; i < count && i < MB_MAX_THREADS; i++) {
		tasks[i] = (struct task){ work, context, i };
		started[i] = pthread_create(&threads[i], NULL, run_task, &tasks[i]) == 0;
	}
	work(context, 0);
	for (int i = 1; i < count && i < MB_MAX_THREADS; i++) {
		if (started[i])
			pthread_join(threads[i], NULL);
		else
			work(context, i);
	}
}

int mb_pool_threads(int asked)
{
	cpu_set_t set;
	int n = asked > 0 ? asked : sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	return n < MB_MAX_THREADS ? n : MB_MAX_THREADS;
}

int mb_pool_next(int *next)
{
	return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
}
