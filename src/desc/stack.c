#include "desc/stack.h"

#include <stdio.h>
#include <string.h>

#include "desc/bind.h"
#include "desc/library.h"
#include "desc/load.h"

static const struct mb_name frameworks[] = {
	{ "megatron_bridge", MB_BRIDGE }, { "megatron_lm", MB_MEGATRON_LM }, { NULL, 0 }
};

struct stack_file {
	struct mb_stack s;
	const struct mb_node *month, *transformer_engine, *torch, *megatron_core, *megatron_bridge, *parameters;
};

#define AT(member) offsetof(struct stack_file, member)
#define BOOL(name) { #name, MB_FIELD_BOOL, AT(s.name), 0, 1, 0, MB_PURE, NULL }
#define NODE(name) { #name, MB_FIELD_NODE, AT(name), 0, 0, 0, MB_PURE, NULL }
#define IGNORED(name) { name, MB_FIELD_IGNORED, 0, 0, 0, 0, MB_PURE, NULL }

static const struct mb_field fields[] = {
	{ "name", MB_FIELD_NAME, AT(s.name), 1, 63, 0, MB_PURE, NULL },
	{ "source", MB_FIELD_TEXT, AT(s.source), 0, 0, 0, MB_PURE, NULL },
	{ "framework", MB_FIELD_ENUM, AT(s.framework), 0, 0, MB_REQUIRED, MB_PURE, frameworks },
	BOOL(lts),
	BOOL(flops_gpt_oss_dense),
	NODE(month),
	NODE(transformer_engine),
	NODE(torch),
	NODE(megatron_core),
	NODE(megatron_bridge),
	NODE(parameters),
	IGNORED("extends"),
	IGNORED("note"),
};

#undef AT
#undef BOOL
#undef NODE
#undef IGNORED

/* "2025-09" -> 12 * 2025 + 8 */
static bool parse_month(const char *text, int *ret)
{
	int year, month, end = 0;

	if (sscanf(text, "%4d-%2d%n", &year, &month, &end) != 2 || text[end] || strlen(text) != 7)
		return false;
	if (year < 2020 || year > 2100 || month < 1 || month > 12)
		return false;
	*ret = 12 * year + month - 1;
	return true;
}

/* "2.7", "2.14.0" or "0.16.0rc1"; null: unknown. */
static bool read_version(const struct mb_node *node, const char *key, int *ret, struct mb_diags *diags)
{
	int major = 0, minor = 0, patch = 0;

	if (!node)
		return true;
	*ret = 0;
	if (mb_node_is_null(node))
		return true;
	if (node->type != MB_NODE_SCALAR || sscanf(node->text, "%4d.%2d.%2d", &major, &minor, &patch) < 2 || major < 0 ||
	    minor < 0 || patch < 0)
		return mb_fail(diags, node->pos, "%s is not a version such as 2.14.0", key);
	*ret = MB_VERSION(major, minor, patch);
	return true;
}

static bool read_month(const struct mb_node *node, int *ret, struct mb_diags *diags)
{
	if (!node)
		return true;
	*ret = 0;
	if (mb_node_is_null(node) || (node->type == MB_NODE_SCALAR && parse_month(node->text, ret)))
		return true;
	return mb_fail(diags, node->pos, "month is not a month such as 2026-05");
}

static bool apply(const struct mb_node *node, bool base, struct mb_arena *arena, struct mb_stack *stack,
                  struct mb_diags *diags)
{
	const struct mb_binding binding = {
		.fields = fields, .count = sizeof fields / sizeof fields[0], .overlay = !base
	};
	struct stack_file f = { .s = *stack };
	struct mb_stack *s = &f.s;

	if (!mb_bind(&binding, node, arena, &f, diags))
		return false;
	if (!read_month(f.month, &s->month, diags) ||
	    !read_version(f.transformer_engine, "transformer_engine", &s->transformer_engine, diags) ||
	    !read_version(f.torch, "torch", &s->torch, diags) ||
	    !read_version(f.megatron_core, "megatron_core", &s->megatron_core, diags) ||
	    !read_version(f.megatron_bridge, "megatron_bridge", &s->megatron_bridge, diags))
		return false;
	if (!mb_node_is_null(f.parameters) && !mb_params_read(f.parameters, false, arena, &s->params, s->provenance, diags))
		return false;
	*stack = *s;
	return true;
}

static bool read_stack(const struct mb_node *node, struct mb_library *library, struct mb_arena *arena,
                       struct mb_stack *ret, struct mb_diags *diags)
{
	const struct mb_node *chain[MB_EXTENDS_MAX];
	struct mb_stack stack = { 0 };
	int count = mb_load_chain(library, "configs/stacks", "stack", node, chain, arena, diags);

	if (count == 0)
		return false;
	for (int i = count - 1; i >= 0; i--) {
		/* A name belongs to one file, what it inherits does not. */
		stack.name[0] = '\0';
		if (!apply(chain[i], i == count - 1, arena, &stack, diags))
			return false;
	}
	if (!mb_params_complete(stack.provenance, false, node->pos, diags))
		return false;
	*ret = stack;
	return true;
}

bool mb_stack_read(const struct mb_node *node, struct mb_library *library, struct mb_arena *arena, struct mb_stack *ret,
                   struct mb_diags *diags)
{
	struct mb_stack stack;

	if (!read_stack(node, library, arena, &stack, diags))
		return false;
	if (stack.month == 0)
		return mb_fail(diags, node->pos, "'month' is missing");
	*ret = stack;
	return true;
}

bool mb_stack_since(const struct mb_stack *s, int year, int month, int day)
{
	int then = 12 * year + month - 1;

	return s->month > then || (s->month == then && (s->day > 0 ? s->day : 15) >= day);
}

/* mlm-dev-2026-05 is the file mlm-dev and a month, mlm-dev-2026-05-29 also a day. */
static bool split_month(const char *name, char *base, size_t size, int *month, int *day)
{
	size_t length = strlen(name);
	int end = 0;

	*day = 0;
	if (length > 15 && length < 64 && name[length - 3] == '-' && sscanf(name + length - 2, "%2d%n", day, &end) == 1 && end == 2
	    && *day >= 1 && *day <= 31) {
		char shorter[64];
		int ignored;

		memcpy(shorter, name, length - 3);
		shorter[length - 3] = '\0';
		if (split_month(shorter, base, size, month, &ignored))
			return true;
	}
	*day = 0;

	if (strncmp(name, "mlm-", 4) != 0 || length < 12 || length - 8 >= size || name[length - 8] != '-')
		return false;
	if (!parse_month(name + length - 7, month))
		return false;
	memcpy(base, name, length - 8);
	base[length - 8] = '\0';
	return true;
}

bool mb_stack_load(const char *name, struct mb_pos at, struct mb_library *library, struct mb_arena *arena,
                   struct mb_stack *ret, struct mb_diags *diags)
{
	char base[64];
	int month = 0, day;
	bool dated = split_month(name, base, sizeof base, &month, &day);
	const char *suffix = strrchr(name, '.'), *slash = strrchr(name, '/');
	bool path = suffix && strcmp(suffix, ".yaml") == 0;
	const struct mb_node *node = path ? mb_node_read_file(name, arena, diags)
		: mb_load_shipped(library, "configs/stacks", "stack", dated ? base : name, at, arena, diags);
	struct mb_stack stack;

	if (!node || !read_stack(node, library, arena, &stack, diags))
		return false;
	if (dated) {
		stack.month = month;
		stack.day = day;
	}
	if (stack.month == 0) {
		mb_report(diags, MB_ERROR, at, "stack", "stack '%s' needs a month, such as %s-2026-05", name, name);
		return false;
	}
	if (path)
		name = mb_arena_strndup(arena, slash ? slash + 1 : name, (size_t)(suffix - (slash ? slash + 1 : name)));
	snprintf(stack.name, sizeof stack.name, "%s", name);
	*ret = stack;
	return true;
}
