/* The larger and the smaller of two numbers that are not NaN, without the call that fmax() and fmin() are. */
#ifndef MBSIM_BASE_LARGER_H
#define MBSIM_BASE_LARGER_H

static inline double mb_larger(double a, double b)
{
	return a > b ? a : b;
}

static inline double mb_smaller(double a, double b)
{
	return a < b ? a : b;
}

#endif
