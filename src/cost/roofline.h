/* Seconds of compute from FLOPs, bytes and shapes. */
#ifndef MBSIM_COST_ROOFLINE_H
#define MBSIM_COST_ROOFLINE_H

#include "cost/op.h"

/* One product of `groups` equal [m,k] x [k,n]. */
double mb_gemm_seconds(const struct mb_case *c, double m, double n, double k, double groups, enum mb_format format, bool grouped);

/* FLOP/s that no product of a format exceeds at the clock of a busy device. */
double mb_product_rate(const struct mb_case *c, enum mb_format format, bool grouped);

/* Useful share of the tiles that the product's grid computes, best tile shape, last wave included. */
double mb_wave_efficiency(const struct mb_hardware *hw, double m, double n, double groups);

double mb_format_peak(const struct mb_hardware *hw, enum mb_format format);    /* FLOP/s, dense */

/* Streaming rate of memory-bound kernels, bytes/s. */
double mb_stream_rate(const struct mb_case *c);

#endif
