/* Limits given with --require: "step_s<=15", "step_s=..15", "mfu>=0.4", "peak_allocated_bytes<=70 GiB". */
#ifndef MBSIM_CLI_REQUIRE_H
#define MBSIM_CLI_REQUIRE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

enum mb_quantity {
	MB_Q_STEP, MB_Q_PEAK, MB_Q_USED, MB_Q_MARGIN, MB_Q_TOKENS, MB_Q_TFLOPS, MB_Q_MFU, MB_Q_COUNT
};

enum { MB_MAX_REQUIREMENTS = 8 };

struct mb_requirement {
	const char *text;               /* as said */
	enum mb_quantity quantity;
	double low, high;               /* infinite: no limit on that side */
};

/* Values of a plan by enum mb_quantity, in the units of the JSON fields. */
struct mb_quantities {
	double value[MB_Q_COUNT];
};

/* Reads one limit; reports at `at` and returns false when it makes no sense. */
bool mb_requirement_read(const char *text, struct mb_pos at, struct mb_requirement *ret, struct mb_diags *diags);

/* Whether all hold; appends a line for each that is missed. */
bool mb_requirements_hold(const struct mb_requirement *require, int count, const struct mb_quantities *q,
                          struct mb_text *ret);

/* The upper limit on a quantity; 0: none. */
double mb_requirement_limit(const struct mb_requirement *require, int count, enum mb_quantity quantity);

#endif
