#include "report/json.h"

#include <stdio.h>
#include <string.h>

/* "[a, b]" as an array; sizes are numbers, modules are words. */
static void add_list(cJSON *o, const char *name, const char *text, bool numbers)
{
	cJSON *list = mb_json_array(o, name);

	for (const char *s = text + strspn(text, "[ "); *s && *s != ']'; s += strspn(s, ", ")) {
		size_t length = strcspn(s, ",] ");
		char word[128];
		int size;

		snprintf(word, sizeof word, "%.*s", (int)length, s);
		if (numbers && sscanf(word, "%d", &size) == 1)
			mb_json_int(list, NULL, size);
		else
			mb_json_text(list, NULL, word);
		s += length;
	}
}

/* A layout may come in quotes. */
static void add_word(cJSON *o, const char *name, const char *text)
{
	char word[4096];
	size_t length = strlen(text);

	if (length >= 2 && (text[0] == '"' || text[0] == '\'') && text[length - 1] == text[0])
		snprintf(word, sizeof word, "%.*s", (int)(length - 2), text + 1);
	else
		snprintf(word, sizeof word, "%s", text);
	mb_json_text(o, name, word);
}

void mb_json_key(cJSON *o, const struct mb_case *c, const struct mb_run *run, const struct mb_key *key)
{
	char text[4096];

	mb_key_format(c, run, key, text, sizeof text);
	if (strcmp(text, "null") == 0) {
		mb_json_null(o, key->name);
		return;
	}
	switch (key->type) {
	case MB_KEY_BOOL:
	case MB_KEY_TRISTATE:
		mb_json_bool(o, key->name, strcmp(text, "true") == 0);
		break;
	case MB_KEY_INT:
		mb_json_int(o, key->name, mb_key_get(run, key).i);
		break;
	case MB_KEY_NUMBER:
		mb_json_number(o, key->name, mb_key_get(run, key).d);
		break;
	case MB_KEY_SET:
	case MB_KEY_SIZES:
		add_list(o, key->name, text, key->type == MB_KEY_SIZES);
		break;
	case MB_KEY_ENUM:
	case MB_KEY_LAYOUT:
	case MB_KEY_MODEL:
		add_word(o, key->name, text);
		break;
	}
}

/* A key that is still open, or narrowed: what the user may still get. */
static void add_open(cJSON *o, const struct mb_query *q, int id)
{
	const struct mb_key *key = &mb_keys[id];

	if (q->alternatives[id].count == 0) {
		mb_json_text(o, key->name, "auto");
		return;
	}

	struct mb_run run = q->c.run;
	cJSON *list = mb_json_array(o, key->name), *one = cJSON_CreateObject();

	for (int i = 0; i < q->alternatives[id].count; i++) {
		mb_key_put(&run, key, q->alternatives[id].values[i]);
		mb_json_key(one, &q->c, &run, key);
		cJSON_AddItemToArray(list, cJSON_DetachItemFromObject(one, key->name));
	}
	cJSON_Delete(one);
}

/* Variables that the run sets; the names are NVIDIA's and PyTorch's. */
static void add_environment(cJSON *o, const struct mb_run *run)
{
	const struct { const char *name; int value; } numbers[] = {
		{ "CUDA_DEVICE_MAX_CONNECTIONS", run->cuda_device_max_connections },
		{ "NVTE_ALLOW_NONDETERMINISTIC_ALGO", run->nvte_allow_nondeterministic_algo },
		{ "NVTE_FWD_LAYERNORM_SM_MARGIN", run->nvte_fwd_layernorm_sm_margin },
		{ "NCCL_NVLS_ENABLE", run->nccl_nvls_disabled ? 0 : MB_AUTO },
		{ "NCCL_GRAPH_REGISTER", run->nccl_graph_register_0 ? 0 : MB_AUTO },
	};
	cJSON *environment = mb_json_object(o, "environment");

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		if (numbers[i].value != MB_AUTO)
			mb_json_int(environment, numbers[i].name, numbers[i].value);
	}
	if (run->expandable_segments)
		mb_json_text(environment, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
	if (run->cublas_workspace_4096_8)
		mb_json_text(environment, "CUBLAS_WORKSPACE_CONFIG", ":4096:8");
}

/* What was changed in place: without it the document would be the run of another machine. */
static void add_hardware_changes(cJSON *run, const struct mb_query *q)
{
	for (const struct mb_node *n = q->hardware_changes ? q->hardware_changes->child : NULL; n; n = n->next) {
		char name[64];

		snprintf(name, sizeof name, "hardware.%s", n->key->text);
		if (n->type == MB_NODE_SCALAR)
			mb_json_text(run, name, n->text);
	}
}

void mb_json_run(cJSON *o, const char *name, const struct mb_query *q, const bool *open)
{
	cJSON *run = mb_json_object(o, name);

	mb_json_text(run, "model", q->model_text ? q->model_text : q->c.model.name);
	mb_json_text(run, "hardware", q->hardware_text ? q->hardware_text : q->c.hardware.name);
	add_hardware_changes(run, q);
	mb_json_text(run, "stack", q->stack_text ? q->stack_text : q->c.stack.name);
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (id == MB_K_gpus && q->gpu_choices[0] && q->gpu_choices[1]) {
			cJSON *list = mb_json_array(run, "gpus");

			for (int i = 0; i < 64 && q->gpu_choices[i]; i++)
				mb_json_int(list, NULL, q->gpu_choices[i]);
		} else if ((open && open[id]) || q->alternatives[id].count) {
			add_open(run, q, id);
		} else {
			mb_json_key(run, &q->c, &q->c.run, &mb_keys[id]);
		}
	}
	add_environment(run, &q->c.run);
}

void mb_json_fix(cJSON *o, const char *name, const struct mb_query *q, const struct mb_fix *fix)
{
	struct mb_run run = q->c.run;

	if (fix->count == 0) {
		mb_json_null(o, name);
		return;
	}

	cJSON *changes = mb_json_object(o, name);

	for (int i = 0; i < fix->count && i < MB_MAX_FIX_KEYS; i++) {
		mb_key_put(&run, &mb_keys[fix->key[i]], fix->value[i]);
		mb_json_key(changes, &q->c, &run, &mb_keys[fix->key[i]]);
	}
}

void mb_json_violations(cJSON *o, const struct mb_query *q, const struct mb_violation *v, int count)
{
	cJSON *list = mb_json_array(o, "violations");

	for (int i = 0; i < count; i++) {
		cJSON *item = mb_json_object(list, NULL);

		mb_json_text(item, "rule", v[i].rule->id);
		mb_json_text(item, "severity", mb_rule_severity_names[v[i].rule->severity]);
		mb_json_text(item, "message", v[i].message);
		cJSON *keys = mb_json_array(item, "keys");

		for (int k = 0; k < v[i].key_count; k++)
			mb_json_text(keys, NULL, mb_keys[v[i].keys[k]].name);
		mb_json_fix(item, "fix", q, &v[i].fix);
		mb_json_text(item, "file", v[i].pos.file);
		mb_json_int(item, "line", v[i].pos.line);
		mb_json_int(item, "column", v[i].pos.column);
	}
}
