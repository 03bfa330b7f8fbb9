#include "exchange/map.h"

#include <string.h>

struct mb_node *mb_map_new(struct mb_arena *arena, struct mb_pos pos)
{
	struct mb_node *map = mb_arena_alloc(arena, sizeof *map);

	map->type = MB_NODE_MAP;
	map->pos = pos;
	return map;
}

/* Nodes are not written once they are linked: the list is built again. A mapping of a run has a few hundred members. */
void mb_map_put(struct mb_arena *arena, struct mb_node *map, const char *key, struct mb_pos pos, const struct mb_node *value)
{
	const struct mb_node *old = map->child, **link = &map->child;
	struct mb_node *added = mb_arena_alloc(arena, sizeof *added), *copy;
	bool placed = false;

	*added = *value;
	added->key = mb_node_scalar(arena, pos, key);
	for (map->count = 0; old != NULL || !placed; map->count++) {
		bool here = !placed && (old == NULL || strcmp(old->key->text, key) == 0);

		copy = here ? added : mb_arena_alloc(arena, sizeof *copy);
		if (!here)
			*copy = *old;
		placed = placed || here;
		old = old != NULL ? old->next : NULL;
		copy->next = NULL;
		*link = copy;
		link = &copy->next;
	}
}

void mb_map_say(struct mb_arena *arena, struct mb_node *map, const char *key, struct mb_pos pos, const char *text)
{
	mb_map_put(arena, map, key, pos, mb_node_scalar(arena, pos, text));
}

void mb_map_merge(struct mb_arena *arena, struct mb_node *map, const struct mb_node *from)
{
	for (const struct mb_node *n = from->child; n != NULL; n = n->next)
		mb_map_put(arena, map, n->key->text, n->key->pos, n);
}
