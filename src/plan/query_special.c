#include "plan/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Settings of a run that are no keys: what it is made of, versions, and the parts that number formats come in. */

bool mb_query_same_name(const char *said, const char *name)
{
	for (; *said != '\0' && (*said == *name || (*said == '-' && *name == '_')); said++)
		name++;
	return *said == *name;
}

bool mb_query_truth(struct mb_reader *r, const struct mb_setting *s)
{
	bool b = false;

	if (s->value->type != MB_NODE_SCALAR || !mb_node_bool(s->value, &b))
		mb_report(r->diags, MB_ERROR, s->value->pos, s->name, "%.60s: '%.60s' is neither true nor false", s->name,
		          s->value->type == MB_NODE_SCALAR ? s->value->text : "[...]");
	return b;
}

static void take_model(struct mb_reader *r, const struct mb_setting *s)
{
	r->model = s;
}

static void take_hardware(struct mb_reader *r, const struct mb_setting *s)
{
	r->hardware = s;
}

static void take_stack(struct mb_reader *r, const struct mb_setting *s)
{
	r->stack = s;
}

/* "2.14.0", "2.11.0a0+gitabc", "0.16": three numbers at most, what follows is the build. */
static bool version(const char *text, int *ret)
{
	int part[3] = { 0, 0, 0 };
	const char *at = text;

	for (int i = 0; i < 3; i++) {
		char *end;
		long n = strtol(at, &end, 10);

		if (end == at || *at < '0' || *at > '9')
			return i > 0 && (*ret = MB_VERSION(part[0], part[1], part[2])) > 0;
		if (n > 99 * (i == 0 ? 100 : 1))
			return false;
		part[i] = (int)n;
		at = *end == '.' ? end + 1 : "";
	}
	*ret = MB_VERSION(part[0], part[1], part[2]);
	return *ret > 0;
}

static void take_version(struct mb_reader *r, const struct mb_setting *s)
{
	struct mb_stack *stack = &r->q->c.stack;
	int *to = mb_query_same_name(s->name, "torch") ? &stack->torch :
		  mb_query_same_name(s->name, "transformer_engine") ? &stack->transformer_engine :
		  mb_query_same_name(s->name, "megatron_core") ? &stack->megatron_core : &stack->megatron_bridge;

	if (mb_node_is_null(s->value))
		return;
	if (s->value->type != MB_NODE_SCALAR || !version(s->value->text, to))
		mb_report(r->diags, MB_ERROR, s->value->pos, s->name, "%s: '%.60s' is not a version such as 2.14.0", s->name,
		          s->value->type == MB_NODE_SCALAR ? s->value->text : "[...]");
}

static void take_precision(struct mb_reader *r, const struct mb_setting *s)
{
	struct mb_precision_parts *p = &r->precision;
	const char *text = s->value->type == MB_NODE_SCALAR && !mb_node_is_null(s->value) ? s->value->text : NULL;

	if (text != NULL && (strcmp(text, "None") == 0 || strcmp(text, "none") == 0))
		text = NULL;
	if (mb_query_same_name(s->name, "bf16"))
		p->bf16 = mb_query_truth(r, s);
	else if (mb_query_same_name(s->name, "fp16"))
		p->fp16 = mb_query_truth(r, s);
	else if (mb_query_same_name(s->name, "fp8_recipe"))
		p->fp8_recipe = text;
	else if (mb_query_same_name(s->name, "fp4") || mb_query_same_name(s->name, "fp4_format"))
		p->fp4 = text;
	else
		p->fp8 = text;
}

static void take_recipe(struct mb_reader *r, const struct mb_setting *s)
{
	static const char *const recipes[] = { "delayed", "tensorwise", "blockwise", "mxfp8" };
	enum { COUNT = sizeof recipes / sizeof recipes[0] };
	const char *text = s->value->type == MB_NODE_SCALAR ? s->value->text : "[...]";

	for (int i = 0; i < COUNT; i++) {
		if (strcmp(text, recipes[i]) == 0) {
			take_precision(r, s);
			return;
		}
	}
	if (mb_node_is_null(s->value))
		return;
	struct mb_diag *d = mb_report(r->diags, MB_ERROR, s->value->pos, s->name, "%s: unknown recipe '%.60s'", s->name, text);
	const char *nearest = mb_nearest(text, recipes, COUNT);
	snprintf(d->nearest, sizeof d->nearest, "%s", nearest != NULL ? nearest : "");
	snprintf(d->expected, sizeof d->expected, "delayed, tensorwise, blockwise, mxfp8");
}

static void take_rerun(struct mb_reader *r, const struct mb_setting *s)
{
	r->q->c.run.rerun_mode_validate = s->value->type == MB_NODE_SCALAR && strcmp(s->value->text, "validate_results") == 0;
}

/* Only as a guard: rows of measured runs name families that the model does not cover. */
static void take_family(struct mb_reader *r, const struct mb_setting *s)
{
	static const char *const known[] = { "gpt", "moe", "hybrid", "nemotron", "transformer" };
	const char *text = s->value->type == MB_NODE_SCALAR ? s->value->text : "[...]";

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strcmp(text, known[i]) == 0)
			return;
	}
	struct mb_diag *d = mb_report(r->diags, MB_ERROR, s->value->pos, "family", "family: '%.60s' is not modelled", text);
	snprintf(d->expected, sizeof d->expected, "gpt, moe or hybrid");
}

/* The day on which a measured row's memory values last changed: finer than the month in its stack's name. */
static void take_recorded(struct mb_reader *r, const struct mb_setting *s)
{
	r->recorded = s;
}

static void take_nothing(struct mb_reader *r, const struct mb_setting *s)
{
	(void)r;
	(void)s;
}

static const struct special {
	const char *name;
	void (*take)(struct mb_reader *r, const struct mb_setting *s);
	bool flag;                      /* no value needed */
} specials[] = {
	{ "model", take_model, false },
	{ "hardware", take_hardware, false },
	{ "stack", take_stack, false },
	{ "family", take_family, false },
	{ "memory_recorded", take_recorded, false },
	{ "environment", mb_query_environment, false },
	{ "peft", mb_query_peft, false },
	{ "torch", take_version, false },
	{ "transformer_engine", take_version, false },
	{ "megatron_core", take_version, false },
	{ "megatron_bridge", take_version, false },
	{ "bf16", take_precision, true },
	{ "fp16", take_precision, true },
	{ "fp8", take_precision, false },
	{ "fp8_format", take_precision, false },
	{ "fp8_recipe", take_recipe, false },
	{ "fp4", take_precision, false },
	{ "fp4_format", take_precision, false },
	{ "fp4_recipe", take_nothing, false },
	{ "rerun_mode", take_rerun, false },
};

static const struct special *find(const char *name)
{
	for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
		if (mb_query_same_name(name, specials[i].name))
			return &specials[i];
	}
	return NULL;
}

/* Old switches, and the key and value each stands for. */
static const struct old_switch { const char *old, *key, *value; } switches[] = {
	{ "recompute_activations", "recompute_granularity", "selective" },
	{ "enable_cuda_graph", "cuda_graph_impl", "local" },
	{ "external_cuda_graph", "cuda_graph_impl", "transformer_engine" },
	{ "moe_enable_deepep", "moe_flex_dispatcher_backend", "deepep" },
	{ "use_flash_attn", "attention_backend", "flash" },
};

static const struct old_switch *find_switch(const char *name)
{
	for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
		if (mb_query_same_name(name, switches[i].old))
			return &switches[i];
	}
	return NULL;
}

bool mb_query_is_special(const char *name, bool *flag)
{
	const struct special *found = find(name);

	*flag = find_switch(name) != NULL || (found != NULL && found->flag);
	return *flag || found != NULL || mb_query_is_environment(name);
}

bool mb_query_special(struct mb_reader *r, const struct mb_setting *s)
{
	const char *group = s->group != NULL ? s->group : "";

	if (strcmp(group, "hardware") == 0)
		return true;                    /* changes of the machine: applied once it is loaded */
	if (strcmp(group, "peft") == 0) {
		mb_query_peft(r, s);
		return true;
	}
	if (strcmp(group, "environment") == 0 || mb_query_is_environment(s->name)) {
		mb_query_environment(r, s);
		return true;
	}
	const struct special *found = find(s->name);
	if (found != NULL)
		found->take(r, s);
	return found != NULL;
}

bool mb_query_rewrite(struct mb_reader *r, struct mb_setting *s)
{
	const struct old_switch *found = find_switch(s->name);

	if (found == NULL)
		return false;
	if (!mb_query_truth(r, s))
		return true;
	s->name = found->key;
	s->value = mb_node_scalar(r->arena, s->value->pos, found->value);
	return false;
}
