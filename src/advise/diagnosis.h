/* Why a run is out of memory: what the log says against what is predicted. */
#ifndef MBSIM_ADVISE_DIAGNOSIS_H
#define MBSIM_ADVISE_DIAGNOSIS_H

#include "advise/oom_log.h"
#include "advise/trial.h"

enum mb_cause {
	MB_CAUSE_FITS,                  /* predicted to fit, and the log does not say otherwise */
	MB_CAUSE_ILLEGAL,               /* a rule stops it before memory matters */
	MB_CAUSE_STATES,                /* weights, gradients and optimizer alone are too much */
	MB_CAUSE_PRESSURE,              /* live tensors exceed the device */
	MB_CAUSE_SECOND_STEP,           /* the first step fits, optimizer states come after it */
	MB_CAUSE_FRAGMENTATION,         /* room is there, but not in one piece */
	MB_CAUSE_LOGITS,                /* one request as large as the logits of a longer sample */
	MB_CAUSE_IMBALANCE,             /* one expert rank gets more tokens than the mean */
	MB_CAUSE_LOADING,               /* copies while a checkpoint is read */
	MB_CAUSE_OUTSIDE,               /* other processes, or memory outside PyTorch */
	MB_CAUSE_HOST,                  /* the host's memory, not the device's */
	MB_CAUSE_UNKNOWN,               /* the log holds what the model does not know */
	MB_CAUSE_COUNT
};
extern const char *const mb_cause_names[MB_CAUSE_COUNT];        /* "fragmentation", ... */

struct mb_diagnosis {
	enum mb_cause cause;
	const struct mb_oom_log *log;
	struct mb_trial run;            /* as predicted, at its own peak */
	int stage;                      /* that the rank of the log is on; the predicted peak's without a rank */
	double peak_bytes, first_bytes, between_bytes;  /* predicted on that stage */
	double usable_bytes, outside_bytes;     /* of the device; predicted outside PyTorch */
	double expected_bytes;          /* allocated, predicted for the step of the log */
	double missing_bytes;           /* log minus expected; 0 without a log */
	double imbalance;               /* that explains the log; 0: none does */
	double logit_tokens;            /* that a failed request of logits amounts to; 0: it is none */
	bool uneven;                    /* another stage holds much more than this one */
	char ruled_out[320];
};

void mb_diagnose(struct mb_bench *b, const struct mb_oom_log *log, struct mb_diagnosis *ret);

#endif
