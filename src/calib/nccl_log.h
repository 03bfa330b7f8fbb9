/*
 * Logs of nccl-tests (all_reduce_perf and its kin): size and time of collectives, from which the rate and the fixed time
 * of a link follow.
 */
#ifndef MBSIM_CALIB_NCCL_LOG_H
#define MBSIM_CALIB_NCCL_LOG_H

#include "base/arena.h"
#include "base/error.h"
#include "desc/hardware.h"

struct mb_link_fit {
	const char *file;
	int ranks, hosts, points;
	bool across;                    /* ranks on several NVLink domains: the scale-out network decides */
	double bytes_per_s;             /* bus bandwidth of large messages */
	double latency_s;               /* fixed time of one collective */
	double frac;                    /* bytes_per_s over the peak of the link */
	double error_frac;              /* median error of the points */
};

/* Whether a text is such a log. */
bool mb_nccl_recognise(const char *text);

/* Reads the points and fits t = latency + bus bytes / rate, relative errors weighing alike. */
bool mb_nccl_fit(const char *text, const char *name, const struct mb_hardware *hw, struct mb_link_fit *ret, struct mb_diags *diags);

#endif
