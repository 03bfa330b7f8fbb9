/* Relative comparison that prints both sides. */
#ifndef MBSIM_TESTS_EXPECT_H
#define MBSIM_TESTS_EXPECT_H

#include <criterion/criterion.h>
#include <math.h>

static inline void expect_rel(double got, double want, double tolerance, const char *what)
{
	double error = want < 0 || want > 0 ? fabs(got / want - 1) : fabs(got);

	cr_expect(error <= tolerance, "%s: got %.17g, want %.17g, off by %.3g", what, got, want, error);
}

#endif
