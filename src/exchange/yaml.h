/* Nodes as YAML text that reads back to the same nodes. */
#ifndef MBSIM_EXCHANGE_YAML_H
#define MBSIM_EXCHANGE_YAML_H

#include "base/text.h"
#include "desc/node.h"

/* Members of a mapping, one a line, each behind `indent` spaces; lists stand on the line of their key. */
void mb_yaml_members(const struct mb_node *map, int indent, struct mb_text *out);

/* One word of a shell, quoted where it must be. */
void mb_exchange_shell_word(const char *word, struct mb_text *out);

#endif
