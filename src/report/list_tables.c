#include <stdio.h>
#include <string.h>

#include "plan/rules.h"
#include "report/list.h"
#include "report/number.h"

static const char *month_or_null(struct mb_arena *arena, int month)
{
	return month ? mb_arena_printf(arena, "%04d-%02d", month / 12, month % 12 + 1) : NULL;
}

void mb_list_rules(struct mb_list *list)
{
	static const struct { unsigned bit; const char *name;
	} frameworks[] = {
		{ MB_FW_BRIDGE, "Megatron Bridge" },
		{ MB_FW_MEGATRON, "Megatron Core" },
		{ MB_FW_TE, "Transformer Engine" },
	};

	for (int i = 0; i < mb_rule_count; i++) {
		const struct mb_rule *rule = &mb_rules[i];
		struct mb_list_item *item = mb_list_add(list);
		struct mb_text enforced = { 0 };

		for (size_t k = 0; k < sizeof frameworks / sizeof frameworks[0]; k++) {
			if ((unsigned)rule->framework & frameworks[k].bit)
				mb_text_printf(&enforced, "%s%s", enforced.length ? ", " : "", frameworks[k].name);
		}
		mb_list_word(list, item, "id", "ID", rule->id);
		mb_list_word(list, item, "severity", "severity", mb_rule_severity_names[rule->severity]);
		mb_list_word(list, item, "says", "says", rule->says);
		mb_list_word(list, item, "enforced_by", NULL, enforced.data);
		mb_list_word(list, item, "source", NULL, rule->source);
		mb_list_word(list, item, "since", NULL, month_or_null(list->arena, rule->since));
		mb_list_word(list, item, "until", NULL, month_or_null(list->arena, rule->until));
		mb_text_free(&enforced);
	}
}

static const char *type_text(struct mb_arena *arena, const struct mb_key *key)
{
	static const char *const words[] = {
		[MB_KEY_BOOL] = "true or false", [MB_KEY_TRISTATE] = "true, false or null", [MB_KEY_LAYOUT] = "layout",
		[MB_KEY_SIZES] = "list of sizes", [MB_KEY_MODEL] = "model's",
	};
	struct mb_text t = { 0 };
	int seen[64], count = 0;

	switch (key->type) {
	case MB_KEY_INT:
	case MB_KEY_NUMBER:
		return mb_arena_printf(arena, "%s, %s to %s", key->type == MB_KEY_INT ? "whole number" : "number",
		                       mb_number_3(key->min).s, mb_number_count(key->max).s);
	case MB_KEY_ENUM:
	case MB_KEY_SET:
		for (const struct mb_name *n = key->names; n && n->name && count < 64; n++) {
			bool alias = false;

			for (int i = 0; i < count; i++)
				alias = alias || seen[i] == n->value;
			if (!alias)
				mb_text_printf(&t, "%s%s",
				               count                     ? " "
				               : key->type == MB_KEY_SET ? "list of: "
				                                         : "",
				               n->name);
			seen[count++] = n->value;
		}
		break;
	case MB_KEY_BOOL:
	case MB_KEY_TRISTATE:
	case MB_KEY_LAYOUT:
	case MB_KEY_SIZES:
	case MB_KEY_MODEL:
		return words[key->type];
	}
	const char *kept = mb_arena_strdup(arena, t.data ? t.data : "");

	mb_text_free(&t);
	return kept;
}

void mb_list_keys(struct mb_list *list)
{
	static const struct { const char *name, *type, *doc;
	} others[] = {
		{ "model", "name, path or mapping",
		  "a name of `mbsim list models`, a model file, or a Hugging Face config.json" },
		{ "hardware", "name, path or mapping",
		  "a name of `mbsim list hardware`; hardware.hbm=1.5x changes one value in place" },
		{ "stack", "name", "a name of `mbsim list stacks`: releases and their defaults" },
		{ "environment", "mapping", "environment variables that matter, such as CUDA_DEVICE_MAX_CONNECTIONS" },
		{ "megatron_args", "mapping", "a whole run in Megatron-LM's own flags" },
	};

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		struct mb_list_item *item = mb_list_add(list);

		mb_list_word(list, item, "name", "NAME", others[i].name);
		mb_list_word(list, item, "short", "short", NULL);
		mb_list_word(list, item, "default", "default", NULL);
		mb_list_word(list, item, "changes", "what it changes", others[i].doc);
		mb_list_word(list, item, "type", NULL, others[i].type);
		mb_list_word(list, item, "megatron_default", NULL, NULL);
		mb_list_word(list, item, "flag", NULL, NULL);
		mb_list_number(list, item, "searched", NULL, "", MB_LIST_BOOL, 0, NULL);
	}
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		const struct mb_key *key = &mb_keys[id];
		struct mb_list_item *item = mb_list_add(list);

		mb_list_word(list, item, "name", "NAME", key->name);
		mb_list_word(list, item, "short", "short", key->short_name);
		mb_list_word(list, item, "default", "default", key->bridge_default);
		mb_list_word(list, item, "changes", "what it changes", key->doc);
		mb_list_word(list, item, "type", NULL, type_text(list->arena, key));
		mb_list_word(list, item, "megatron_default", NULL, key->megatron_default);
		mb_list_word(list, item, "flag", NULL,
		             key->flag && key->flag[0] ? mb_arena_printf(list->arena, "--%s", key->flag) : NULL);
		mb_list_number(list, item, "searched", NULL, "", MB_LIST_BOOL, key->open, NULL);
	}
}
