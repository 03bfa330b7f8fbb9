#include "plan/query.h"

#include <stdio.h>
#include <string.h>

/* What people say for a key whose name is too far away to be a typing error. */
static const char *habit(const char *name)
{
	static const struct { const char *said, *key; } habits[] = {
		{ "tensor_parallel", "tensor_model_parallel_size" }, { "tensor_parallel_size", "tensor_model_parallel_size" },
		{ "pipeline_parallel", "pipeline_model_parallel_size" }, { "pipeline_parallel_size", "pipeline_model_parallel_size" },
		{ "context_parallel", "context_parallel_size" }, { "expert_parallel", "expert_model_parallel_size" },
		{ "expert_parallel_size", "expert_model_parallel_size" }, { "virtual_pipeline", "virtual_pipeline_model_parallel_size" },
		{ "vpp", "virtual_pipeline_model_parallel_size" }, { "batch_size", "global_batch_size" },
		{ "num_gpus", "gpus" }, { "gpu", "hardware" }, { "system", "hardware" }, { "dtype", "precision" },
		{ "recompute", "recompute_granularity" }, { "dispatcher", "moe_token_dispatcher_type" },
		{ "container", "stack" }, { "env", "environment" },
	};

	for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
		if (mb_query_same_name(name, habits[i].said))
			return habits[i].key;
	}
	return NULL;
}

/* Nearest of everything that may be said. Names are compared as a user writes them, without dashes in front. */
static const char *nearest_name(struct mb_reader *r, const char *name)
{
	enum { MAX_NAMES = 2048 };
	const char **names = mb_arena_alloc(r->arena, MAX_NAMES * sizeof names[0]);
	size_t count = 0;

	if (habit(name) != NULL)
		return habit(name);
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		names[count++] = mb_keys[i].name;
		if (mb_keys[i].short_name != NULL)
			names[count++] = mb_keys[i].short_name;
	}
	static const char *const others[] = { "model", "hardware", "stack", "environment", "megatron_args", "peft", "torch",
		"transformer_engine", "megatron_core", "megatron_bridge" };
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		names[count++] = others[i];
	for (int i = 0; r->megatron && count < MAX_NAMES && mb_query_megatron_name(i) != NULL; i++)
		names[count++] = mb_query_megatron_name(i);
	for (int i = 0; count < MAX_NAMES && mb_query_ignored_name(i) != NULL; i++)
		names[count++] = mb_query_ignored_name(i);
	return mb_nearest(name, names, count);
}

void mb_query_unknown(struct mb_reader *r, const struct mb_setting *s)
{
	bool boolean;
	struct mb_diag *d;

	if (mb_query_is_megatron_flag(s->name, &boolean)) {
		d = mb_report(r->diags, MB_ERROR, s->pos, s->name, "'%.80s' is part of the model, not of the run", s->name);
		snprintf(d->expected, sizeof d->expected, "a model given as a mapping or a file, or the whole run as megatron_args");
		return;
	}
	d = mb_report(r->diags, MB_ERROR, s->pos, s->name, "unknown key '%s%.80s'", s->flag ? "--" : "", s->name);
	const char *nearest = r->diags->errors <= MB_DIAG_MAX ? nearest_name(r, s->name) : NULL;
	if (nearest == NULL)
		return;
	snprintf(d->nearest, sizeof d->nearest, "%s%s", s->flag ? "--" : "", nearest);
	for (char *c = d->nearest; s->flag && *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
}

enum mb_name_kind mb_name_find(const char *name, bool *flag)
{
	bool negated = false;
	const struct mb_key *key;

	if (strncmp(name, "--", 2) == 0)
		name += 2;
	key = mb_key_find(name, &negated);
	*flag = key != NULL && (key->type == MB_KEY_BOOL || key->type == MB_KEY_TRISTATE);
	if (key != NULL)
		return MB_NAME_KEY;
	if (mb_query_is_special(name, flag))
		return MB_NAME_SPECIAL;
	if (mb_query_is_megatron_flag(name, flag))
		return MB_NAME_MODEL_FLAG;
	return mb_query_ignored(name, flag) ? MB_NAME_IGNORED : MB_NAME_UNKNOWN;
}
