/*
 * Worker processes. The parent hands out cells and alone writes to the store, so a worker that dies costs the cell it
 * had. Workers end with their parent.
 */
#ifndef MBSIM_CLI_SWEEP_POOL_H
#define MBSIM_CLI_SWEEP_POOL_H

#include <stdbool.h>

#include "base/text.h"

struct mb_pool_task {
	void *context;
	/* In a worker, first of all: lets go of what the parent alone holds. */
	void (*begin)(void *context);
	/* In a worker: the answer to cell `index`, as text. False: it failed, and the text says why. */
	bool (*work)(void *context, int index, struct mb_text *answer);
	/* In the parent: takes the answer; false stops the sweep. ok false: the text says why the cell failed. */
	bool (*done)(void *context, int index, bool ok, const char *answer);
};

enum mb_pool_end { MB_POOL_DONE, MB_POOL_STOPPED, MB_POOL_INTERRUPTED };

/* Works through indices[0..count) with `jobs` processes; SIGINT and SIGTERM end it after what is under way is thrown away. */
enum mb_pool_end mb_pool_run(const struct mb_pool_task *task, const int *indices, int count, int jobs);

#endif
