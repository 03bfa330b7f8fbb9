/* A Hugging Face config.json as the mapping that models/NAME.yaml holds, so that one reader checks both. */
#ifndef MBSIM_DESC_HF_H
#define MBSIM_DESC_HF_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

struct mb_node;

/* Whether a mapping is a config.json rather than a model of ours: it names a model_type or a class. */
bool mb_hf_is_config(const struct mb_node *node);

/*
 * What Megatron Bridge makes of the file, class defaults of absent keys included. Keys of architectures that are not
 * modelled are errors at their place; towers that are left out, defaults that were taken and keys that nothing knows
 * are notes. Values keep their place in config.json. NULL after an error.
 */
const struct mb_node *mb_hf_model(const struct mb_node *config, struct mb_arena *arena, struct mb_diags *diags);

#endif
