/* The best plans found so far, and whether a plan that costs at least so much can still be among them. */
#ifndef MBSIM_SEARCH_BEST_H
#define MBSIM_SEARCH_BEST_H

#include <stdint.h>

#include "search/search.h"

enum mb_aim {
	MB_AIM_STEP,                    /* least step time among plans that fit */
	MB_AIM_PEAK,                    /* least peak among plans within max_step_s */
	MB_AIM_FRONT,                   /* no plan of a smaller or the same slot of peaks is as fast */
	MB_AIM_CLOSEST                  /* least device use within the resolution, whether it fits or not */
};

#define MB_CLOSEST_RESOLUTION 0.03

/* Why a point needs no look. */
enum mb_bound { MB_WORTH, MB_BY_TIME, MB_BY_MEMORY };

struct mb_best {
	enum mb_aim aim;
	int wanted;
	double max_step_s, max_peak_bytes;              /* INFINITY: no limit */
	double fit_peak_bytes;          /* no plan that fits has a larger peak */
	double device_factor;           /* device use is at least so many times the peak */
	struct mb_ranked *of;           /* sorted; [wanted + 1] */
	int count;
	struct mb_ranked fit;           /* the best that fits, which may stand behind many at risk */
	bool has_fit;
	double fits;                    /* evaluated plans that fit or are at risk */
};

/* What bounds are compared with: a copy that a thread keeps, never better than the truth. */
struct mb_goal {
	enum mb_aim aim;
	double max_step_s, max_peak_bytes, fit_peak_bytes;
	double last, fit;               /* of the last plan of a full list and of the best that fits, in the aim's unit */
	double device_factor;           /* device use is at least so many times the peak */
	int front_count;
	double front_s[MB_MAX_FRONT];   /* in order */
	int64_t front_slot[MB_MAX_FRONT];        /* grow with the peak */
};

void mb_best_goal(const struct mb_best *b, struct mb_goal *ret);

/* No slower step is worth a look, whatever its peak. */
double mb_goal_limit_s(const struct mb_goal *g);

void mb_best_init(struct mb_best *b, enum mb_aim aim, int wanted, struct mb_arena *arena);

/* Lower bounds of a point or of many; a tie is worth a look. */
enum mb_bound mb_best_bound(const struct mb_goal *g, double step_s, double peak_bytes);

/* Takes an evaluated plan, or not. */
void mb_best_offer(struct mb_best *b, const struct mb_ranked *r);

/* Adds another front: what is left is the front of both. */
void mb_best_join(struct mb_best *b, const struct mb_best *front);

/* Sets `tie` and `variants` of a sorted list. */
void mb_best_compare_rows(struct mb_ranked *rows, int count);

int mb_ranked_compare(const struct mb_best *b, const struct mb_ranked *x, const struct mb_ranked *y);

#endif
