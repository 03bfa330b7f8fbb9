#include "plan/query.h"

#include <stdio.h>
#include <string.h>

/* A run file, flat or in the groups of a Bridge configuration, as a flat list of settings. */

/* Groups whose members are keys. The order does not matter. */
static const char *const groups[] = {
	"model", "train", "comm_overlap", "ddp", "optimizer", "mixed_precision", "dist", "dataset", "rng",
	"hardware", "environment", "peft",
};

static const char *group_of(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
		if (strlen(groups[i]) == length && strncmp(groups[i], name, length) == 0)
			return groups[i];
	}
	return NULL;
}

void mb_query_add(struct mb_reader *r, struct mb_setting s)
{
	const char *dot = strchr(s.name, '.');
	const char *group = dot != NULL ? group_of(s.name, (size_t)(dot - s.name)) : NULL;

	if (group != NULL) {
		s.group = group;
		s.name = dot + 1;
	}
	if (r->count == r->capacity) {
		int capacity = r->capacity > 0 ? 2 * r->capacity : 128;
		struct mb_setting *grown = mb_arena_alloc(r->arena, (size_t)capacity * sizeof *grown);

		if (r->count > 0)
			memcpy(grown, r->settings, (size_t)r->count * sizeof *grown);
		r->settings = grown;
		r->capacity = capacity;
	}
	r->settings[r->count++] = s;
}

static struct mb_setting setting(struct mb_reader *r, const struct mb_node *child, const char *group)
{
	return (struct mb_setting){
		.name = child->key->text, .group = group, .pos = child->key->pos, .value = child, .source = r->sources,
	};
}

static void add_members(struct mb_reader *r, const struct mb_node *map, const char *group)
{
	for (const struct mb_node *child = map->child; child != NULL; child = child->next) {
		if (child->key->text[0] != '_')
			mb_query_add(r, setting(r, child, group));
	}
}

static void add_flags(struct mb_reader *r, const struct mb_node *map)
{
	r->megatron = true;
	for (const struct mb_node *child = map->child; child != NULL; child = child->next) {
		struct mb_setting s = setting(r, child, NULL);

		if (strncmp(s.name, "--", 2) == 0) {
			s.name += 2;
			s.pos.column += 2;
		}
		s.flag = true;
		mb_query_add(r, s);
	}
}

/*
 * Bridge keeps the parallel sizes beside the architecture. Keys of a run go to the run; what remains describes a model,
 * unless nothing remains. MTP depth belongs to both.
 */
static void add_model(struct mb_reader *r, const struct mb_node *map)
{
	struct mb_node *rest = mb_arena_alloc(r->arena, sizeof *rest);
	const struct mb_node **link = &rest->child;
	bool describes = false, negated, flag;

	*rest = *map;
	rest->child = NULL;
	rest->next = NULL;
	rest->count = 0;
	for (const struct mb_node *child = map->child; child != NULL; child = child->next) {
		const struct mb_key *key = mb_key_find(child->key->text, &negated);
		bool both = key == &mb_keys[MB_K_mtp];

		if (child->key->text[0] == '_')
			continue;
		if (key != NULL && !(both && mb_node_is_null(child)))
			mb_query_add(r, setting(r, child, "model"));
		if ((key != NULL && !both) || (key == NULL && mb_query_ignored(child->key->text, &flag)))
			continue;
		describes = describes || !both;
		struct mb_node *copy = mb_arena_alloc(r->arena, sizeof *copy);
		*copy = *child;
		copy->next = NULL;
		*link = copy;
		link = &copy->next;
		rest->count++;
	}
	if (describes) {
		struct mb_setting s = setting(r, map, NULL);

		s.value = rest;
		mb_query_add(r, s);
	}
}

/* What rows of measured runs hold beside the run. */
static bool about_the_row(const char *name)
{
	static const char *const names[] = { "id", "test", "env_label", "measured", "golden_commit", "config_commit", "flags",
		"source", "corrected", "flop_per_token" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

static void add_children(struct mb_reader *r, const struct mb_node *map);

static void add_child(struct mb_reader *r, const struct mb_node *child)
{
	const char *name = child->key->text;
	const char *group = group_of(name, strlen(name));
	bool map = child->type == MB_NODE_MAP;

	if (map && strcmp(name, "megatron_args") == 0)
		add_flags(r, child);
	else if (map && strcmp(name, "run") == 0)
		add_children(r, child);
	else if (map && strcmp(name, "model") == 0)
		add_model(r, child);
	else if (map && group != NULL && strcmp(name, "hardware") != 0)
		add_members(r, child, group);
	else if (name[0] != '_' && !mb_query_ignored_group(name) && !about_the_row(name))
		mb_query_add(r, setting(r, child, NULL));
}

static void add_children(struct mb_reader *r, const struct mb_node *map)
{
	for (const struct mb_node *child = map->child; child != NULL; child = child->next)
		add_child(r, child);
}

void mb_query_mapping(struct mb_reader *r, const struct mb_node *map)
{
	r->sources++;
	if (map->type != MB_NODE_MAP) {
		struct mb_diag *d = mb_report(r->diags, MB_ERROR, map->pos, "", "a run is a mapping of keys");

		snprintf(d->expected, sizeof d->expected, "lines such as tensor_model_parallel_size: 4");
		return;
	}
	add_children(r, map);
}
