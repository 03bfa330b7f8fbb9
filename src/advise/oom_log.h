/* What a PyTorch out-of-memory message, and the log around it, say. */
#ifndef MBSIM_ADVISE_OOM_LOG_H
#define MBSIM_ADVISE_OOM_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Where the log shows the failure to be. */
enum mb_oom_place {
	MB_OOM_UNKNOWN, MB_OOM_BUILD, MB_OOM_LOAD, MB_OOM_FORWARD, MB_OOM_LOGITS, MB_OOM_BACKWARD, MB_OOM_OPTIMIZER, MB_OOM_NCCL, MB_OOM_HOST,
	MB_OOM_GRAPH, MB_OOM_PLACES
};
extern const char *const mb_oom_place_names[MB_OOM_PLACES];

/* Bytes; negative: not said. */
struct mb_oom_log {
	bool given;                     /* anything is known */
	bool message;                   /* a message of PyTorch was found */
	int line;                       /* of the message; 1 is the first */
	double capacity, allocated, unallocated, reserved, device_used, free, failed, pools, other;
	long step, rank;                /* negative: not said */
	enum mb_oom_place place;
};

void mb_oom_log_init(struct mb_oom_log *log);

/* Reads any text, complete or cut. What it does not say stays as it was. True when there was a message. */
bool mb_oom_log_read(const char *text, size_t size, struct mb_oom_log *log);

/* Derives what follows from the rest: reserved from its parts, and the parts from it. */
void mb_oom_log_complete(struct mb_oom_log *log);

#endif
