/* What determines a cell, as a hash: two cells with the same key have the same answer, on any machine. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "desc/node_source.h"
#include "mbsim.h"
#include "sweep/cell.h"

enum { MAX_DEPTH = 16 };

struct mb_fingerprint {
	const char *path;
	char hash[MB_HASH_TEXT];
	const struct mb_node *node;     /* of a YAML file, for the files that it names in turn */
	struct mb_fingerprint *next;
};

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static const struct mb_fingerprint *read_file(struct mb_fingerprints *files, const char *path)
{
	struct mb_diags *unheard;
	struct mb_fingerprint *f;
	struct mb_hash h;
	size_t length;
	char *text;

	for (f = files->first; f; f = f->next) {
		if (strcmp(f->path, path) == 0)
			return f;
	}
	unheard = mb_arena_alloc(files->arena, sizeof *unheard);
	f = mb_arena_alloc(files->arena, sizeof *f);
	text = mb_source_read(path, files->arena, &length, unheard);
	mb_hash_start(&h);
	mb_hash_add(&h, text ? text : "", text ? length : 0);
	mb_hash_end(&h, f->hash);
	f->path = mb_arena_strdup(files->arena, path);
	f->node = mb_node_read_file(path, files->arena, unheard);
	f->next = files->first;
	files->first = f;
	return f;
}

static void add_node(struct mb_fingerprints *files, const char *kind, const struct mb_node *node, int depth, struct mb_hash *h);

static void add_path(struct mb_fingerprints *files, const char *kind, const char *path, int depth, struct mb_hash *h)
{
	const struct mb_fingerprint *f;

	if (!is_file(path))
		return;
	f = read_file(files, path);
	mb_hash_text(h, f->hash);
	add_node(files, kind, f->node, depth + 1, h);
}

/* A name among the shipped files, with the month of a Megatron-LM stack cut off, or a path to a file or its folder. */
static void add_named(struct mb_fingerprints *files, const char *kind, const char *name, int depth, struct mb_hash *h)
{
	const char *root = files->library->root;
	size_t length = strlen(name);

	if (depth > MAX_DEPTH)
		return;
	add_path(files, kind, mb_arena_printf(files->arena, "%s/%s/%s.yaml", root, kind, name), depth, h);
	if (length > 8 && strncmp(name, "mlm-", 4) == 0)
		add_path(files, kind, mb_arena_printf(files->arena, "%s/%s/%.*s.yaml", root, kind, (int)length - 8, name), depth, h);
	add_path(files, kind, name, depth, h);
	add_path(files, kind, mb_arena_printf(files->arena, "%s/config.json", name), depth, h);
}

/* Files that a descriptor builds on. */
static void add_node(struct mb_fingerprints *files, const char *kind, const struct mb_node *node, int depth, struct mb_hash *h)
{
	static const struct { const char *key, *kind; } references[] = {
		{ "extends", NULL }, { "base", NULL }, { "architecture", "hardware/architectures" },
	};

	for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
		const struct mb_node *n = mb_node_get(node, references[i].key);

		if (n && n->type == MB_NODE_SCALAR)
			add_named(files, references[i].kind ? references[i].kind : kind, n->text, depth + 1, h);
	}
}

static const struct mb_node *inline_value(const struct mb_sweep *s, int cell, const char *key)
{
	for (int k = 0; k < s->key_count; k++) {
		const struct mb_node *n = s->cells[(size_t)cell * (size_t)s->key_count + (size_t)k];

		if (n && strcmp(s->keys[k], key) == 0)
			return n;
	}
	return mb_node_get(s->base, key);
}

static void add_data(const struct mb_sweep *s, int cell, const struct mb_query *q, struct mb_fingerprints *files, struct mb_hash *h)
{
	const struct { const char *key, *kind, *name; } data[] = {
		{ "model", "models", q->model_text }, { "hardware", "hardware", q->hardware_text },
		{ "stack", "configs/stacks", q->stack_text },
	};

	for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
		const struct mb_node *n = inline_value(s, cell, data[i].key);

		mb_hash_text(h, data[i].name);
		if (data[i].name)
			add_named(files, data[i].kind, data[i].name, 0, h);
		if (n && n->type == MB_NODE_MAP)
			add_node(files, data[i].kind, n, 0, h);
	}
}

void mb_cell_key(const struct mb_sweep *s, int cell, const struct mb_query *q, struct mb_fingerprints *files, char ret[MB_HASH_TEXT])
{
	struct mb_text text = { 0 };
	struct mb_hash h;

	mb_hash_start(&h);
	mb_hash_text(&h, "mbsim.cell/1");
	mb_hash_text(&h, mbsim_version());
	mb_text_printf(&text, "%d %d %d", s->estimate, s->what_if, (int)s->objective);
	mb_hash_text(&h, text.data);
	text.length = 0;
	mb_text_add(&text, "base ");
	if (s->base)
		mb_sweep_flow(s->base, &text);
	mb_hash_text(&h, text.data);
	for (int k = 0; k < s->key_count; k++) {
		const struct mb_node *n = s->cells[(size_t)cell * (size_t)s->key_count + (size_t)k];

		text.length = 0;
		mb_text_printf(&text, "%s ", s->keys[k]);
		if (n) {
			mb_sweep_flow(n, &text);
			mb_hash_text(&h, text.data);
		}
	}
	add_data(s, cell, q, files, &h);
	mb_text_free(&text);
	mb_hash_end(&h, ret);
}
