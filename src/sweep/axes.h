/* What varies in a sweep file, before it is multiplied out. Private to src/sweep. */
#ifndef MBSIM_SWEEP_AXES_H
#define MBSIM_SWEEP_AXES_H

#include "sweep/grid.h"

enum { MB_MAX_AXES = 64 };

/* One thing that varies: `count` alternatives, each a value for every one of its keys (NULL: does not say). */
struct mb_sweep_axis {
	int count, key_count;
	int keys[MB_MAX_GRID_KEYS];             /* index into mb_sweep.keys */
	const struct mb_node **values;          /* [count][key_count] */
	struct mb_pos pos;
};

struct mb_axes {
	struct mb_sweep *sweep;
	struct mb_arena *arena;
	struct mb_diags *diags;
	int count;
	struct mb_sweep_axis axes[MB_MAX_AXES];
};

/* Each reads one section of the file; false after an error. NULL: the section is not there. */
bool mb_axes_grid(struct mb_axes *a, const struct mb_node *section);
bool mb_axes_zip(struct mb_axes *a, const struct mb_node *section);
bool mb_axes_cases(struct mb_axes *a, const struct mb_node *section);

#endif
