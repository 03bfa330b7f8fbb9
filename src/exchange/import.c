#include "exchange/import.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "desc/hf.h"
#include "desc/load.h"
#include "desc/node_source.h"
#include "exchange/import_private.h"
#include "exchange/yaml.h"

/* ---- what kind of file ---- */

static bool ends_with(const char *s, const char *ending)
{
	size_t n = strlen(s), length = strlen(ending);

	return n >= length && strcmp(s + n - length, ending) == 0;
}

static const char *skip_comments(const char *s, const char *end)
{
	while (s < end && (isspace((unsigned char)*s) || *s == '#')) {
		const char *stop = *s == '#' ? memchr(s, '\n', (size_t)(end - s)) : s;

		s = stop != NULL ? stop + 1 : end;
	}
	return s;
}

/* "[section]" alone on a line, then "key = value": no format of ours. */
static bool is_toml(const char *name, const char *s, const char *end)
{
	const char *line = skip_comments(s, end), *stop;

	if (ends_with(name, ".toml"))
		return true;
	stop = memchr(line, '\n', (size_t)(end - line));
	while (stop != NULL && stop > line && isspace((unsigned char)stop[-1]))
		stop--;
	return stop != NULL && stop - line > 2 && *line == '[' && isalpha((unsigned char)line[1]) && stop[-1] == ']' &&
	       memchr(line, ',', (size_t)(stop - line)) == NULL && !ends_with(name, ".json") && !ends_with(name, ".yaml");
}

/* A mapping of YAML starts with "key:"; a script or a list of overrides does not. */
static bool is_mapping(const char *name, const char *s, const char *end)
{
	static const char *const yaml[] = { ".yaml", ".yml", ".json" }, *const other[] = { ".sh", ".sbatch", ".slurm", ".txt", ".args", ".log" };
	const char *first = skip_comments(s, end);

	for (size_t i = 0; i < sizeof yaml / sizeof yaml[0]; i++) {
		if (ends_with(name, yaml[i]))
			return true;
	}
	for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
		if (ends_with(name, other[i]))
			return false;
	}
	if (first < end && (*first == '{' || strncmp(first, "---", (size_t)(end - first < 3 ? end - first : 3)) == 0))
		return !(end - first > 3 && first[3] == '-');
	while (first < end && (isalnum((unsigned char)*first) || strchr("_-.\"'", *first) != NULL))
		first++;
	return first < end && *first == ':' && (first + 1 == end || isspace((unsigned char)first[1]));
}

/* ---- the run ---- */

static long long said_int(const struct mb_importer *m, const char *key, const char *flag, long long otherwise)
{
	const struct mb_node *n = mb_node_get(m->run, key) != NULL ? mb_node_get(m->run, key) : mb_node_get(m->flags, flag);
	struct mb_node bare;
	long long value;

	if (n == NULL || n->type != MB_NODE_SCALAR)
		return otherwise;
	bare = *n;
	bare.quoted = false;
	return mb_node_int(&bare, &value) && value > 0 && value < 1 << 20 ? value : otherwise;
}

static void assume(struct mb_importer *m, struct mb_node *run, const char *key, const char *value, const char *why)
{
	mb_map_say(m->arena, run, key, (struct mb_pos){ .file = m->name }, value);
	mb_report(m->diags, MB_NOTE, (struct mb_pos){ .file = m->name }, key, "assumed: %s %s, %s", key, value, why);
}

/* What a launch leaves to its surroundings. The fewest GPUs that hold one replica are enough to start. */
static void assume_missing(struct mb_importer *m, struct mb_node *run)
{
	long long tp = said_int(m, "tensor_model_parallel_size", "--tensor-model-parallel-size", 1);
	long long pp = said_int(m, "pipeline_model_parallel_size", "--pipeline-model-parallel-size", 1);
	long long cp = said_int(m, "context_parallel_size", "--context-parallel-size", 1);
	long long ep = said_int(m, "expert_model_parallel_size", "--expert-model-parallel-size", 1);
	long long etp = said_int(m, "expert_tensor_parallel_size", "--expert-tensor-parallel-size", m->flags->count > 0 ? tp : 1);
	long long mbs = said_int(m, "micro_batch_size", "--micro-batch-size", 1), gpus;

	if (mb_node_get(run, "hardware") == NULL)
		assume(m, run, "hardware", "dgx-h100", "say hardware=NAME");
	if (mb_node_get(run, "gpus") == NULL) {
		gpus = pp * (tp * cp > ep * etp ? tp * cp : ep * etp);
		while (gpus % (tp * pp * cp) != 0)
			gpus += pp * ep * etp;
		assume(m, run, "gpus", mb_arena_printf(m->arena, "%lld", gpus), "the fewest for these sizes; say gpus=N");
	}
	gpus = said_int(m, "gpus", "", 1);
	if (m->flags->count > 0 && mb_node_get(m->flags, "--global-batch-size") == NULL)
		assume(m, m->flags, "--global-batch-size", mb_arena_printf(m->arena, "%lld", mbs * (gpus / (tp * pp * cp) > 0 ? gpus / (tp * pp * cp) : 1)),
		       "one micro-batch on every replica, as Megatron-LM does");
}

/* The fields of the file over those of the shipped model that it names. */
static const struct mb_node *whole_model(struct mb_importer *m)
{
	struct mb_node *map;
	const struct mb_node *base;

	if (m->model_name == NULL || m->model->count == 0)
		return m->model->count > 0 ? m->model : NULL;
	if (strchr(m->model_name, '/') != NULL || ends_with(m->model_name, ".yaml"))
		base = mb_node_read_file(m->model_name, m->arena, m->diags);
	else
		base = mb_load_shipped(m->library, "models", "model", m->model_name, m->model_pos, m->arena, m->diags);
	if (base == NULL)
		return NULL;
	map = mb_map_new(m->arena, m->model_pos);
	for (const struct mb_node *n = base->child; n != NULL; n = n->next) {
		if (strncmp(n->key->text, "published_", 10) != 0 && strcmp(n->key->text, "parameters") != 0)
			mb_map_put(m->arena, map, n->key->text, n->key->pos, n);
	}
	mb_map_merge(m->arena, map, m->model);
	return map;
}

static void put_if(struct mb_importer *m, struct mb_node *run, const char *key, const struct mb_node *map)
{
	if (map->count > 0)
		mb_map_put(m->arena, run, key, map->pos, map);
}

static struct mb_node *put_together(struct mb_importer *m)
{
	struct mb_node *run = mb_map_new(m->arena, (struct mb_pos){ .file = m->name, .line = 1, .column = 1 });
	const struct mb_node *model = whole_model(m);
	static const char *const first[] = { "hardware", "gpus", "stack" };

	if (model != NULL)
		mb_map_put(m->arena, run, "model", m->model_pos, model);
	else if (m->model_name != NULL)
		mb_map_say(m->arena, run, "model", m->model_pos, m->model_name);
	for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
		if (mb_node_get(m->run, first[i]) != NULL)
			mb_map_put(m->arena, run, first[i], m->run->pos, mb_node_get(m->run, first[i]));
	}
	mb_map_merge(m->arena, run, m->run);
	assume_missing(m, run);
	put_if(m, run, "peft", m->peft);
	put_if(m, run, "environment", m->environment);
	put_if(m, run, "megatron_args", m->flags);
	return run;
}

/* Whether `estimate` would take it; what is wrong with values is found by the reader of runs, at the place in the file. */
static const struct mb_query *validate(struct mb_importer *m, struct mb_node *run)
{
	static const char *const needed[] = { "model", "seq_length", "global_batch_size" };
	struct mb_query *q = mb_arena_alloc(m->arena, sizeof *q);
	char list[128] = "";

	for (size_t i = 0; i < sizeof needed / sizeof needed[0] && m->flags->count == 0; i++) {
		size_t used = strlen(list);

		if (mb_node_get(run, needed[i]) == NULL)
			snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", needed[i]);
	}
	if (m->dialect == MB_DIALECT_NEMO1 && m->model_name == NULL && mb_node_get(m->model, "vocab_size") == NULL)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%svocab_size of the tokenizer", list[0] != '\0' ? ", " : "");
	if (list[0] != '\0') {
		mb_report(m->diags, MB_WARNING, (struct mb_pos){ .file = m->name }, "", "not in the file: %s; add key=value here, or when you estimate",
		          list);
		return NULL;
	}
	return mb_query_from_node(run, m->library, m->arena, q, m->diags) ? q : NULL;
}

static void begin(struct mb_importer *m)
{
	struct mb_pos at = { .file = m->name, .line = 1, .column = 1 };

	m->run = mb_map_new(m->arena, at);
	m->model = mb_map_new(m->arena, at);
	m->flags = mb_map_new(m->arena, at);
	m->environment = mb_map_new(m->arena, at);
	m->peft = mb_map_new(m->arena, at);
	m->model_pos = at;
}

static bool finish_run(struct mb_importer *m, struct mb_import *ret)
{
	int before = m->diags->errors;

	mb_import_settings(m);
	mb_import_build(m);
	if (m->diags->errors > before)
		return false;
	struct mb_node *run = put_together(m);
	if (m->diags->errors > before)
		return false;
	*ret = (struct mb_import){ .format = m->format, .map = run, .query = validate(m, run) };
	return m->diags->errors == before;
}

/* A config.json becomes a model; with key=value behind it, the run of that model. */
static bool finish_config(struct mb_importer *m, const struct mb_node *config, struct mb_import *ret)
{
	const struct mb_node *model = mb_hf_model(config, m->arena, m->diags);
	struct mb_model *read = mb_arena_alloc(m->arena, sizeof *read);

	if (model == NULL || !mb_model_read(model, m->arena, read, m->diags))
		return false;
	if (m->settings == NULL || m->settings[0] == NULL) {
		*ret = (struct mb_import){ .format = "Hugging Face config.json", .map = model, .model = true };
		return true;
	}
	mb_map_merge(m->arena, m->model, model);
	return finish_run(m, ret);
}

bool mb_import_text(const char *text, size_t length, const char *name, const char *const *settings,
                    struct mb_library *library, struct mb_arena *arena, struct mb_import *ret, struct mb_diags *diags)
{
	struct mb_importer m = { .arena = arena, .library = library, .diags = diags, .settings = settings,
	                         .name = mb_arena_strdup(arena, name) };
	struct mb_pos at = { .file = m.name, .line = 1, .column = 1 };
	const struct mb_node *root;

	begin(&m);
	if (!mb_source_check(text, length, (struct mb_pos){ .file = m.name }, diags))
		return false;
	if (is_toml(m.name, text, text + length)) {
		struct mb_diag *d = mb_report(diags, MB_ERROR, at, "", "TOML is not read: its sizes are in the code of torchtitan, not in the file");

		snprintf(d->expected, sizeof d->expected, "model=NAME and the sizes as key=value, see docs/formats.md");
		return false;
	}
	if (is_mapping(m.name, text, text + length)) {
		root = mb_node_read_text(text, length, m.name, arena, diags);
		if (root == NULL)
			return false;
		if (root->type != MB_NODE_MAP)
			return mb_fail(diags, root->pos, "expected a mapping of keys");
		if (mb_hf_is_config(root))
			return finish_config(&m, root, ret);
		mb_import_node(&m, root);
	} else if (!(mb_import_is_dump(text, length) ? mb_import_dump(&m, text, length) : mb_import_script(&m, text, length))) {
		return false;
	}
	return finish_run(&m, ret);
}

bool mb_import_file(const char *path, const char *const *settings, struct mb_library *library, struct mb_arena *arena,
                    struct mb_import *ret, struct mb_diags *diags)
{
	struct stat st;
	size_t length;
	char *text;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		path = mb_arena_printf(arena, "%s/config.json", path);
	text = mb_source_read(mb_arena_strdup(arena, path), arena, &length, diags);
	return text != NULL && mb_import_text(text, length, path, settings, library, arena, ret, diags);
}

void mb_import_write(const struct mb_import *x, struct mb_text *out)
{
	const char *file = x->map->pos.file != NULL ? x->map->pos.file : "", *slash = strrchr(file, '/');

	mb_text_add(out, "# ");
	for (const char *c = slash != NULL ? slash + 1 : file; *c != '\0'; c++)
		mb_text_addn(out, (unsigned char)*c < ' ' ? "?" : c, 1);
	mb_text_printf(out, ": %s\n", x->format);
	if (x->model)
		mb_text_add(out, "# a model: use it with model=FILE\n");
	mb_yaml_members(x->map, 0, out);
}
