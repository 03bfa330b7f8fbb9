/* Architectures that no field of struct mb_model describes: naming them beats sizing them wrongly. */
#ifndef MBSIM_DESC_NOT_MODELLED_H
#define MBSIM_DESC_NOT_MODELLED_H

#include <stdbool.h>

#include "base/error.h"

struct mb_node;

/* If the key of `value` belongs to such an architecture: reports it, unless it is switched off, and returns true. */
bool mb_not_modelled(const struct mb_node *value, struct mb_diags *diags);

/* experimental_attention_variant: absent, null or gated_delta_net. */
bool mb_attention_variant_known(const struct mb_node *variant, struct mb_diags *diags);

#endif
