/* A sweep on its way: its cells, their keys, and the store that they go to. */
#ifndef MBSIM_CLI_SWEEP_RUN_H
#define MBSIM_CLI_SWEEP_RUN_H

#include "cli/command.h"
#include "sweep/cell.h"
#include "sweep/store.h"

struct mb_sweep_plan {
	struct mb_sweep sweep;
	const char *name;                       /* of the sweep: its file without folder and ending */
	char (*keys)[MB_HASH_TEXT];             /* [cell_count] */
	struct mb_store_grid grid;
};

/* Reads a sweep file and every run in it, so that a mistake shows before anything runs. Reports and returns false. */
bool mb_sweep_prepare(struct mb_call *call, const char *path, struct mb_sweep_plan *ret);

struct mb_sweep_counts {
	int cells, stored, fresh, failed;       /* of this shard */
	double elapsed_s;
};

/* Works out what the store lacks. Returns enum mb_exit, or 130 when it was interrupted. */
int mb_sweep_work(struct mb_call *call, const struct mb_sweep_plan *plan, struct mb_store *store, struct mb_sweep_counts *ret);

#endif
