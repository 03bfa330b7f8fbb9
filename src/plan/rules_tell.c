/* The words of a violation: which line of rules.def applies, with the run's values put in. */
#include <stdio.h>
#include <string.h>

#include "plan/rules_private.h"

#define RULE(...)
#define NAMED(name, line) tell_##name##_##line
#define TELL_FUNCTION(name, line, condition) \
	static bool NAMED(name, line)(const struct mb_case *c, const struct mb_plan *p) \
	{ \
		const struct mb_model *m = &c->model; \
		const struct mb_hardware *hw = &c->hardware; \
		const struct mb_run *r = &c->run; \
		(void)m, (void)hw, (void)r, (void)p; \
		return (condition); \
	}
#define TELL_LINE(name, line, text, about) { MB_RULE_##name, NAMED(name, line), text, about },
#define TELL(name, condition, text, about) TELL_AT(name, __LINE__, condition, text, about)

#define TELL_AT(name, line, condition, text, about) TELL_FUNCTION(name, line, condition)
#include "plan/rules.def"
#undef TELL_AT

static const struct mb_telling tellings[] = {
#define TELL_AT(name, line, condition, text, about) TELL_LINE(name, line, text, about)
#include "plan/rules.def"
#undef TELL_AT
};
#undef RULE
#undef TELL

const struct mb_telling *mb_rule_telling(const struct mb_rule *rule, const struct mb_case *c, const struct mb_plan *p)
{
	enum mb_rule_index index = (enum mb_rule_index)(rule - mb_rules);

	for (size_t i = 0; i < sizeof tellings / sizeof tellings[0]; i++) {
		if (tellings[i].rule == index && tellings[i].when(c, p))
			return &tellings[i];
	}
	return NULL;
}

static const char *const key_words[MB_KEY_COUNT] = {
#define KEY(id, ...) #id,
#include "plan/keys.def"
#undef KEY
};

int mb_rule_key(const char *word, size_t length)
{
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		if (strlen(key_words[i]) == length && memcmp(key_words[i], word, length) == 0)
			return i;
	}
	return -1;
}

int mb_rule_keys(const char *words, enum mb_key_id *ret, int max)
{
	int count = 0;

	for (const char *at = words; *at != '\0' && count < max;) {
		size_t length = strcspn(at, " ");
		int key = mb_rule_key(at, length);

		if (key >= 0)
			ret[count++] = (enum mb_key_id)key;
		at += length;
		at += strspn(at, " ");
	}
	return count;
}

/* A size that no key holds. */
static bool find_size(const struct mb_case *c, const struct mb_plan *p, const char *name, long long *ret)
{
	const struct mb_model *m = &c->model;
	const struct mb_layout *l = mb_plan_layout(c, p);
	const struct {
		const char *name;
		long long value;
	} sizes[] = {
		{ "heads", m->num_attention_heads }, { "kv", m->num_query_groups }, { "experts", m->num_moe_experts },
		{ "layers", m->num_layers }, { "hidden", m->hidden_size }, { "ffn", m->ffn_hidden_size },
		{ "moe_ffn", m->moe_ffn_hidden_size }, { "shared_ffn", m->moe_shared_expert_intermediate_size },
		{ "mamba_heads", m->mamba_num_heads }, { "mamba_groups", m->mamba_num_groups },
		{ "dp", mb_replicas(c, p) }, { "micro_batches", mb_micro_batch_count(c, p) }, { "group", mb_vp_group(p) },
		{ "dense_group", mb_dense_group(p) }, { "expert_group", mb_expert_group(p) },
		{ "units", mb_split_units(c, p) }, { "stages", (long long)p->pp * p->vp }, { "mtp_depth", c->mtp_depth },
		{ "layout_stages", l != NULL ? l->chunk_count : 0 }, { "layout_layers", l != NULL ? mb_layout_layers(l) : 0 },
		{ "layout_mtp", l != NULL ? mb_layout_mtp(l) : 0 },
	};

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		if (strcmp(sizes[i].name, name) == 0) {
			*ret = sizes[i].value;
			return true;
		}
	}
	return false;
}

/* "'moe_act' and 'layernorm'" */
static void idle_modules(const struct mb_case *c, const struct mb_plan *p, char *text, size_t size)
{
	unsigned idle = mb_modules_without_effect(c, p);
	size_t n = 0;

	text[0] = '\0';
	for (const struct mb_name *name = mb_module_names; name->name != NULL && n < size; name++) {
		if ((idle & (unsigned)name->value) == 0)
			continue;
		idle &= ~(unsigned)name->value;
		n += (size_t)snprintf(text + n, size - n, "%s'%s'", n == 0 ? "" : idle == 0 ? " and " : ", ", name->name);
	}
}

static void value_of(const struct mb_case *c, const struct mb_plan *p, const char *name, char *text, size_t size)
{
	struct mb_run run = c->run;
	int key = mb_rule_key(name, strlen(name));
	long long number;

	run.plan = *p;
	if (find_size(c, p, name, &number))
		snprintf(text, size, "%lld", number);
	else if (strcmp(name, "model") == 0)
		snprintf(text, size, "%s", c->model.name);
	else if (strcmp(name, "hardware") == 0)
		snprintf(text, size, "%s", c->hardware.name);
	else if (strcmp(name, "gpu") == 0)
		snprintf(text, size, "%s", c->hardware.gpu);
	else if (strcmp(name, "idle_modules") == 0)
		idle_modules(c, p, text, size);
	else if (key >= 0)
		mb_key_format(c, &run, &mb_keys[key], text, size);
	else
		snprintf(text, size, "{%s}", name);
}

void mb_rule_render(const struct mb_case *c, const struct mb_plan *p, const char *text, char *ret, size_t size)
{
	size_t n = strlen(ret);

	while (*text != '\0' && n + 1 < size) {
		size_t length = strcspn(text, "}");
		char name[32], value[128];

		if (*text == '{' && text[length] == '}' && length <= sizeof name) {
			snprintf(name, sizeof name, "%.*s", (int)(length - 1), text + 1);
			value_of(c, p, name, value, sizeof value);
			snprintf(ret + n, size - n, "%s", value);
			n += strlen(ret + n);
			text += length + 1;
			continue;
		}
		ret[n++] = *text++;
		ret[n] = '\0';
	}
}
