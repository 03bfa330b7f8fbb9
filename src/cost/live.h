/* What a pipeline rank holds in flight: chunks whose forward ran and whose backward did not, over its schedule. */
#ifndef MBSIM_COST_LIVE_H
#define MBSIM_COST_LIVE_H

#include "cost/schedule.h"

/* The durations of the pipeline are not read here; mb_pipeline_ordered must hold. */

struct mb_live_event {
	double bytes;                   /* saved_bytes and what the operation needs beyond */
	double saved_bytes;             /* of all chunks in flight, the operation's own included */
	int64_t in_flight;              /* chunks */
	int64_t micro_batch;
	int chunk;                      /* of the operation: virtual stage on the rank */
	int beside;                     /* chunk of the forward that runs at the same time (EP overlap); -1: none */
	bool backward;
};

/*
 * The operation of `rank` with the most bytes, the first one of equals. saved[vp]: kept per chunk in flight;
 * forward_extra[vp], backward_extra[vp]: needed only while the operation runs (NULL: nothing). With EP overlap a steady
 * backward runs beside a forward layer by layer: both extras, and the larger of their two chunks.
 */
void mb_live_peak(const struct mb_pipeline *p, int rank, const double *saved, const double *forward_extra,
                  const double *backward_extra, struct mb_live_event *ret);

/* Most chunks in flight at once. */
int64_t mb_live_count(const struct mb_pipeline *p, int rank);

/*
 * Sets in flight, as counts per chunk, of which one has the largest sum whatever the weights of the chunks are: of all
 * sets, without those that another one contains and those on the line between two others. ret: [max][vp]. Returns how
 * many there are; max + 1: more than ret has room for.
 */
int mb_live_vectors(const struct mb_pipeline *p, int rank, int max, int32_t *ret);

#endif
