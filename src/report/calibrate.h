/* A fit in words: values, how sure they are, what the data could not decide, and the errors. */
#ifndef MBSIM_REPORT_CALIBRATE_H
#define MBSIM_REPORT_CALIBRATE_H

#include "calib/fit.h"
#include "calib/held_out.h"
#include "calib/nccl_log.h"
#include "report/style.h"

struct mb_calibration {
	const struct mb_fit *fit;               /* NULL: no run had a time */
	const struct mb_accuracy *accuracy;     /* before, after, and left out */
	const struct mb_trials *trials;
	const struct mb_link_fit *links;        /* from logs of nccl-tests */
	int link_count;
	const char *const *written;             /* files, NULL-terminated; and how many values */
	int changed;
	const char *args;
};

void mb_calibration_text(const struct mb_calibration *x, const struct mb_style *s, struct mb_text *ret);
void mb_calibration_json(const struct mb_calibration *x, struct mb_text *ret);

/* "80 of 100": factor on a standard deviation. */
#define MB_BAND_80 1.2816

#endif
