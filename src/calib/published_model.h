/* From the columns `arch` and `gpu` of a published result to the names that a run uses. Private to src/calib. */
#ifndef MBSIM_CALIB_PUBLISHED_MODEL_H
#define MBSIM_CALIB_PUBLISHED_MODEL_H

#include "base/text.h"
#include "desc/node.h"

/* Appends "model: {...}", the vocabulary larger by `added_tokens`; NULL, or why the architecture is not complete. */
const char *mb_published_model(const struct mb_node *row, int added_tokens, struct mb_text *run);

/* The machine that holds such GPUs; NULL when none is shipped. */
const char *mb_published_hardware(const char *gpu);

#endif
