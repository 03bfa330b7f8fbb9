#include <string.h>

#include "exchange/import_private.h"

/* Mappings of YAML or JSON as dotted names. */

static bool flag_names(const struct mb_node *map)
{
	return map->type == MB_NODE_MAP && map->child != NULL && strncmp(map->child->key->text, "--", 2) == 0;
}

static void say_member(struct mb_importer *m, const struct mb_node *root, const struct mb_node *parent, const struct mb_node *n,
                       const char *prefix, bool flag)
{
	const char *key = n->key->text + (flag && strncmp(n->key->text, "--", 2) == 0 ? 2 : 0);
	struct mb_said s = { .pos = n->key->pos, .value = n, .flag = flag };

	s.name = prefix[0] != '\0' ? mb_arena_printf(m->arena, "%s.%s", prefix, key) : key;
	if (n->type == MB_NODE_SCALAR && strstr(n->text, "${") != NULL) {
		const char *text = mb_import_interpolate(m, root, parent, n->text, 0);
		const char *open = strstr(n->text, "${") + 2;
		struct mb_node *copy = mb_arena_alloc(m->arena, sizeof *copy);

		*copy = *n;
		copy->text = text != NULL ? text : n->text;
		s.value = copy;
		if (text == NULL)
			s.unresolved = mb_arena_strndup(m->arena, open, strcspn(open, "}"));
	}
	mb_import_say(m, s);
}

static void say_members(struct mb_importer *m, const struct mb_node *root, const struct mb_node *map, const char *prefix, bool flag)
{
	for (const struct mb_node *n = map->child; n != NULL; n = n->next) {
		const char *key = n->key->text;

		if (key[0] == '_' || (prefix[0] == '\0' && strcmp(key, "defaults") == 0))
			continue;
		if (n->type == MB_NODE_MAP && strcmp(key, "ENV_VARS") == 0)
			mb_map_merge(m->arena, m->environment, n);
		else if (n->type == MB_NODE_MAP && (flag_names(n) || strcmp(key, "megatron_args") == 0))
			say_members(m, root, n, "", true);
		else if (n->type == MB_NODE_MAP && prefix[0] == '\0' && strcmp(key, "environment") == 0)
			mb_map_merge(m->arena, m->environment, n);
		else if (n->type == MB_NODE_MAP && n->count > 0 && !(prefix[0] == '\0' && strcmp(key, "hardware") == 0))
			say_members(m, root, n, prefix[0] != '\0' ? mb_arena_printf(m->arena, "%s.%s", prefix, key) : key, flag);
		else
			say_member(m, root, map, n, prefix, flag);
	}
}

void mb_import_node(struct mb_importer *m, const struct mb_node *root)
{
	say_members(m, root, root, "", flag_names(root));
}
