/* Mappings that are put together while something is imported or exported. */
#ifndef MBSIM_EXCHANGE_MAP_H
#define MBSIM_EXCHANGE_MAP_H

#include "desc/node.h"

struct mb_node *mb_map_new(struct mb_arena *arena, struct mb_pos pos);

/* A copy of `value` under `key`; takes the place of an earlier one. */
void mb_map_put(struct mb_arena *arena, struct mb_node *map, const char *key, struct mb_pos pos, const struct mb_node *value);
void mb_map_say(struct mb_arena *arena, struct mb_node *map, const char *key, struct mb_pos pos, const char *text);

/* Copies every member of `from`. */
void mb_map_merge(struct mb_arena *arena, struct mb_node *map, const struct mb_node *from);

#endif
