#include "sweep/grid.h"

#include <stdio.h>
#include <string.h>

#include "desc/bind.h"
#include "sweep/axes.h"
#include "sweep/condition.h"

struct file {
	const struct mb_node *base, *grid, *zip, *cases, *where, *report;
	int mode, objective;
	bool what_if;
	double tokens, goodput, price, pue;
};

static const struct mb_name modes[] = { { "search", 0 }, { "estimate", 1 }, { NULL, 0 } };
static const struct mb_name objectives[] = {
	{ "step", MB_OBJECTIVE_STEP }, { "memory", MB_OBJECTIVE_MEMORY }, { "cost", MB_OBJECTIVE_COST }, { "gpus", MB_OBJECTIVE_GPUS },
	{ NULL, 0 },
};

#define NODE(name) { #name, MB_FIELD_NODE, offsetof(struct file, name), 0, 0, 0, MB_PURE, NULL }

static const struct mb_field fields[] = {
	NODE(base), NODE(grid), NODE(zip), NODE(cases), NODE(where), NODE(report),
	{ "mode", MB_FIELD_ENUM, offsetof(struct file, mode), 0, 0, 0, MB_PURE, modes },
	{ "objective", MB_FIELD_ENUM, offsetof(struct file, objective), 0, 0, MB_OBJECTIVE_STEP, MB_PURE, objectives },
	{ "what_if", MB_FIELD_BOOL, offsetof(struct file, what_if), 0, 1, 0, MB_PURE, NULL },
};

#undef NODE

static const struct mb_field report_fields[] = {
	{ "tokens", MB_FIELD_DOUBLE, offsetof(struct file, tokens), 1, 1e18, 0, MB_PURE, NULL },
	{ "goodput", MB_FIELD_DOUBLE, offsetof(struct file, goodput), 0.01, 1, 0, MB_PURE, NULL },
	{ "price", MB_FIELD_DOUBLE, offsetof(struct file, price), 0, 1e6, 0, MB_USD_PER_HOUR, NULL },
	{ "pue", MB_FIELD_DOUBLE, offsetof(struct file, pue), 1, 5, 0, MB_PURE, NULL },
};

const char *mb_sweep_full_name(const char *name)
{
	bool negated;
	const struct mb_key *key = mb_key_find(name, &negated);

	return key && !negated ? key->name : name;
}

void mb_sweep_flow(const struct mb_node *n, struct mb_text *ret)
{
	const char *separator = "";

	if (n->type == MB_NODE_SCALAR) {
		mb_text_printf(ret, n->quoted ? "\"%s\"" : "%s", n->text);
		return;
	}
	mb_text_add(ret, n->type == MB_NODE_LIST ? "[" : "{");
	for (const struct mb_node *child = n->child; child; child = child->next, separator = ", ") {
		mb_text_add(ret, separator);
		if (n->type == MB_NODE_MAP)
			mb_text_printf(ret, "%s: ", child->key->text);
		mb_sweep_flow(child, ret);
	}
	mb_text_add(ret, n->type == MB_NODE_LIST ? "]" : "}");
}

static const char *flow(const struct mb_node *n, struct mb_arena *arena)
{
	struct mb_text text = { 0 };
	const char *ret;

	if (n->type == MB_NODE_SCALAR)
		return n->text;
	mb_sweep_flow(n, &text);
	ret = mb_arena_strdup(arena, text.data);
	mb_text_free(&text);
	return ret;
}

const char *mb_sweep_text(const struct mb_sweep *s, int cell, int key, struct mb_arena *arena)
{
	const struct mb_node *n = s->cells[(size_t)cell * (size_t)s->key_count + (size_t)key];

	return n ? flow(n, arena) : "";
}

const struct mb_node *mb_sweep_settings(const struct mb_sweep *s, int cell, struct mb_arena *arena)
{
	struct mb_node *map = mb_arena_alloc(arena, sizeof *map);
	const struct mb_node **link = &map->child;

	*map = (struct mb_node){ .type = MB_NODE_MAP, .pos = { s->file, 1, 1 } };
	for (int k = 0; k < s->key_count; k++) {
		const struct mb_node *value = s->cells[(size_t)cell * (size_t)s->key_count + (size_t)k];
		struct mb_node *copy;

		if (!value)
			continue;
		copy = mb_arena_alloc(arena, sizeof *copy);
		*copy = *value;
		copy->key = mb_node_scalar(arena, value->pos, s->keys[k]);
		copy->next = NULL;
		*link = copy;
		link = &copy->next;
		map->count++;
	}
	return map;
}

/* ---- conditions ---- */

struct scope {
	const struct mb_sweep *sweep;
	struct mb_arena *arena;
	int cell;
};

static bool look_up(void *context, const char *name, struct mb_operand *ret)
{
	const struct scope *s = context;
	const char *full = mb_sweep_full_name(name), *end;
	const struct mb_node *value = NULL;

	for (const struct mb_node *n = s->sweep->base ? s->sweep->base->child : NULL; n; n = n->next) {
		if (strcmp(mb_sweep_full_name(n->key->text), full) == 0)
			value = n;
	}
	for (int k = 0; k < s->sweep->key_count; k++) {
		const struct mb_node *set = s->sweep->cells[(size_t)s->cell * (size_t)s->sweep->key_count + (size_t)k];

		if (set && strcmp(s->sweep->keys[k], full) == 0)
			value = set;
	}
	if (!value)
		return false;
	ret->text = flow(value, s->arena);
	ret->numeric = mb_parse_number(ret->text, &end, &ret->number) && *end == '\0';
	return true;
}

static bool holds(const struct mb_node *where, struct scope *scope, bool *ret, struct mb_diags *diags)
{
	const struct mb_node *n = where->type == MB_NODE_LIST ? where->child : where;

	*ret = true;
	for (; n && *ret; n = where->type == MB_NODE_LIST ? n->next : NULL) {
		struct mb_pos pos = n->pos;

		if (n->type != MB_NODE_SCALAR)
			return mb_fail(diags, n->pos, "where is a condition or a list of conditions");
		pos.column += n->quoted;
		if (!mb_condition_holds(n->text, pos, look_up, scope, ret, diags))
			return false;
	}
	return true;
}

/* ---- all combinations ---- */

static void fill_cell(const struct mb_axes *a, const int *index, const struct mb_node **cell)
{
	for (int i = 0; i < a->count; i++) {
		const struct mb_sweep_axis *axis = &a->axes[i];

		for (int k = 0; k < axis->key_count; k++)
			cell[axis->keys[k]] = axis->values[index[i] * axis->key_count + k];
	}
}

/* The first axis varies slowest, as nested loops in the order of the file would. */
static bool expand(const struct mb_axes *a, const struct mb_node *where, struct mb_pos pos)
{
	struct mb_sweep *s = a->sweep;
	int index[MB_MAX_AXES] = { 0 }, at;
	double total = 1;

	for (int i = 0; i < a->count; i++)
		total *= a->axes[i].count;
	if (total > MB_MAX_CELLS)
		return mb_fail(a->diags, pos, "this sweep has %.0f cells, at most %d", total, MB_MAX_CELLS);
	s->cells = mb_arena_alloc(a->arena, ((size_t)total * (size_t)s->key_count + 1) * sizeof *s->cells);
	do {
		struct scope scope = { s, a->arena, s->cell_count };
		const struct mb_node **cell = s->cells + (size_t)s->cell_count * (size_t)s->key_count;
		bool keep = true;

		memset(cell, 0, (size_t)s->key_count * sizeof *cell);
		fill_cell(a, index, cell);
		if (!mb_node_is_null(where) && !holds(where, &scope, &keep, a->diags))
			return false;
		s->cell_count += keep;
		s->dropped += !keep;
		for (at = a->count - 1; at >= 0 && ++index[at] == a->axes[at].count; at--)
			index[at] = 0;
	} while (at >= 0);
	return s->cell_count > 0 || mb_fail(a->diags, where->pos, "no combination satisfies where");
}

/* ---- the file ---- */

/* Paths in a sweep file are relative to it. */
static const struct mb_node *read_base(const struct mb_node *n, struct mb_arena *arena, struct mb_diags *diags)
{
	const char *slash, *path;

	if (n->type == MB_NODE_MAP)
		return n;
	if (n->type != MB_NODE_SCALAR) {
		mb_fail(diags, n->pos, "base is a run: a mapping of keys, or the path of a run file");
		return NULL;
	}
	slash = n->pos.file ? strrchr(n->pos.file, '/') : NULL;
	path = slash && n->text[0] != '/' ? mb_arena_printf(arena, "%.*s/%s", (int)(slash - n->pos.file), n->pos.file, n->text) : n->text;
	return mb_node_read_file(path, arena, diags);
}

static bool read_report(const struct mb_node *n, struct mb_arena *arena, struct file *f, struct mb_sweep *ret, struct mb_diags *diags)
{
	const struct mb_binding binding = { report_fields, sizeof report_fields / sizeof report_fields[0], true, false, NULL };

	if (!mb_node_is_null(n) && !mb_bind(&binding, n, arena, f, diags))
		return false;
	ret->tokens = f->tokens;
	ret->goodput_frac = f->goodput;
	ret->price_usd = f->price;
	ret->pue = f->pue;
	return true;
}

bool mb_sweep_from_node(const struct mb_node *root, const char *file, struct mb_arena *arena, struct mb_sweep *ret, struct mb_diags *diags)
{
	const struct mb_binding binding = { fields, sizeof fields / sizeof fields[0], false, false, NULL };
	struct mb_axes *axes = mb_arena_alloc(arena, sizeof *axes);
	struct file f = { 0 };

	*ret = (struct mb_sweep){ .file = file };
	if (!mb_bind(&binding, root, arena, &f, diags))
		return false;
	ret->estimate = f.mode == 1;
	ret->objective = (enum mb_objective)f.objective;
	ret->what_if = f.what_if;
	if (!read_report(f.report, arena, &f, ret, diags))
		return false;
	if (!mb_node_is_null(f.base) && !(ret->base = read_base(f.base, arena, diags)))
		return false;
	*axes = (struct mb_axes){ .sweep = ret, .arena = arena, .diags = diags };
	if (!mb_axes_grid(axes, f.grid) || !mb_axes_zip(axes, f.zip) || !mb_axes_cases(axes, f.cases))
		return false;
	return expand(axes, f.where, root->pos);
}

bool mb_sweep_read(const char *path, struct mb_arena *arena, struct mb_sweep *ret, struct mb_diags *diags)
{
	const struct mb_node *root = mb_node_read_file(path, arena, diags);

	return root && mb_sweep_from_node(root, path, arena, ret, diags);
}
