/*
 * How numbers are written for people. No digit is finer than it can be trusted, and parts add up to the printed total.
 * Each function returns a small value, so that calls can stand inside a printf.
 */
#ifndef MBSIM_REPORT_NUMBER_H
#define MBSIM_REPORT_NUMBER_H

#include <stdbool.h>

struct mb_number {
	char s[40];
};

/* With thousands commas: 2418176 -> "2,418,176". */
struct mb_number mb_number_count(double value);

/* Three significant digits: 0.876, 4.12, 13.7, 148, 1,236. Zero is "0". */
struct mb_number mb_number_3(double value);

/* Decimals fixed, commas kept; never "-0.0". */
struct mb_number mb_number_fixed(double value, int decimals);

/* A time with its unit: "13.7 s", "876 ms", "63.0 us". */
struct mb_number mb_number_duration(double seconds);

/* The same number without its unit, in the unit that `like` gets: for "13.7 s (12.6 to 14.9)". */
struct mb_number mb_number_duration_like(double seconds, double like);

/* GiB with one decimal, without the unit. A positive amount that would print 0.0 is "<0.1"; zero is "0". */
struct mb_number mb_number_gib(double bytes);

/* Traffic in GB (10^9): whole, one decimal under 10. */
struct mb_number mb_number_gb(double bytes);

/* A fraction as percent: whole, one decimal under 10. mfu: always one decimal. */
struct mb_number mb_number_percent(double fraction);
struct mb_number mb_number_mfu(double fraction);

/* A rate in GB/s: whole, one decimal where there is one. */
struct mb_number mb_number_gb_per_s(double bytes_per_s);

/* TFLOP/s, whole. */
struct mb_number mb_number_tflops(double flop_per_s);

/* Parameters: "671.0 B", "22.9 M". */
struct mb_number mb_number_params(double count);

enum { MB_MAX_PARTS = 64 };

/*
 * Rounds `parts` (at most MB_MAX_PARTS) to multiples of 1/scale so that they add up to the rounded `total`
 * (largest remainder, Hamilton's method): ret[i] / scale is what to print.
 */
void mb_round_parts(const double *parts, int count, double total, double scale, long long *ret);

#define MB_GIB 1073741824.0

#endif
