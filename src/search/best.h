/* The best plans found so far, and whether a plan that costs at least so much can still be among them. */
#ifndef MBSIM_SEARCH_BEST_H
#define MBSIM_SEARCH_BEST_H

#include "search/search.h"

enum mb_aim {
	MB_AIM_STEP,                    /* least step time among plans that fit */
	MB_AIM_PEAK,                    /* least peak among plans within max_step_s */
	MB_AIM_FRONT,                   /* no other plan is faster and smaller */
	MB_AIM_CLOSEST                  /* least device use, whether it fits or not */
};

/* Why a point needs no look. */
enum mb_bound { MB_WORTH, MB_BY_TIME, MB_BY_MEMORY };

struct mb_best {
	enum mb_aim aim;
	int wanted;
	double max_step_s, max_peak_bytes;              /* INFINITY: no limit */
	double fit_peak_bytes;          /* no plan that fits has a larger peak */
	struct mb_ranked *of;           /* sorted; [wanted + 1] */
	int count;
	struct mb_ranked fit;           /* the best that fits, which may stand behind many at risk */
	bool has_fit;
	double fits;                    /* evaluated plans that fit or are at risk */
};

void mb_best_init(struct mb_best *b, enum mb_aim aim, int wanted, struct mb_arena *arena);

/* Lower bounds of a point or of many; a tie is worth a look. */
enum mb_bound mb_best_bound(const struct mb_best *b, double step_s, double peak_bytes);

/* Takes an evaluated plan, or not. */
void mb_best_offer(struct mb_best *b, const struct mb_ranked *r);

/* Sets `tie` and `variants` of a sorted list. */
void mb_best_compare_rows(struct mb_ranked *rows, int count);

int mb_ranked_compare(const struct mb_best *b, const struct mb_ranked *x, const struct mb_ranked *y);

#endif
