/* Every shipped descriptor loads without a word of complaint and says where its numbers come from. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "desc/library.h"
#include "desc/node.h"

static struct mb_arena arena;
static struct mb_library library;

static void begin(void)
{
	struct mb_diags diags = { 0 };

	cr_assert(mb_library_open(&library, &diags), "%s", diags.item[0].text);
}

static void done(void)
{
	mb_arena_free(&arena);
}

TestSuite(data, .init = begin, .fini = done);

static int list(const char *kind, const char *const **names)
{
	int count = mb_library_list(&library, kind, &arena, names);

	cr_assert_gt(count, 0, "no %s in %s", kind, library.root);
	return count;
}

static const struct mb_node *word(const char *text)
{
	return mb_node_scalar(&arena, (struct mb_pos){ "test", 0, 1 }, text);
}

static const struct mb_node *file(const char *kind, const char *name)
{
	struct mb_diags diags = { 0 };

	return mb_node_read_file(mb_arena_printf(&arena, "%s/%s/%s.yaml", library.root, kind, name), &arena, &diags);
}

static void expect_silence(const char *name, const struct mb_diags *diags)
{
	for (int i = 0; i < diags->count; i++)
		cr_expect_fail("%s: line %d: %s", name, diags->item[i].pos.line, diags->item[i].text);
}

Test(data, models_load)
{
	const char *const *names;
	int count = list("models", &names);

	cr_expect_geq(count, 70);
	for (int i = 0; i < count; i++) {
		struct mb_diags diags = { 0 };
		struct mb_model m;

		cr_expect(mb_model_load(word(names[i]), &library, &arena, &m, &diags), "%s", names[i]);
		expect_silence(names[i], &diags);
		if (diags.errors)
			continue;
		cr_expect_str_eq(m.name, names[i]);
		cr_expect(m.source && *m.source, "%s: no source", names[i]);
		cr_expect_gt(m.parameters, 0, "%s: no parameters", names[i]);
		cr_expect(m.published_total <= 0 || (double)m.parameters > 0.97 * m.published_total, "%s: far from published",
		          names[i]);
	}
}

/* Wrapped numbers, and shipped machines leave none unwrapped where a source matters. */
static void expect_sources(const char *name, const struct mb_node *map)
{
	static const char *const free_of_source[] = { "extends", "name", "gpu", "description", "source", "architecture", "ultra",
		"superchip", "announced", "efficiency", "note" };

	for (const struct mb_node *v = map->child; v; v = v->next) {
		bool needs = true;

		for (size_t i = 0; i < sizeof free_of_source / sizeof free_of_source[0]; i++)
			needs &= strcmp(v->key->text, free_of_source[i]) != 0;
		cr_expect(!needs || mb_node_get(v, "source"), "%s: %s has no source", name, v->key->text);
	}
}

Test(data, hardware_loads)
{
	const char *const *names;
	int count = list("hardware", &names);

	for (int i = 0; i < count; i++) {
		struct mb_diags diags = { 0 };
		struct mb_hardware hw;

		cr_expect(mb_hardware_load(word(names[i]), &library, &arena, &hw, &diags), "%s", names[i]);
		expect_silence(names[i], &diags);
		if (diags.errors)
			continue;
		cr_expect_str_eq(hw.name, names[i]);
		cr_expect(hw.sources && *hw.sources, "%s: no source", names[i]);
		cr_expect(hw.price_usd_per_gpu_h <= 0 || hw.price_source, "%s: a price without a source", names[i]);
		expect_sources(names[i], file("hardware", names[i]));
		for (int p = 0; p < MB_PARAM_COUNT; p++)
			cr_expect(!mb_param_rows[p].hardware || hw.provenance[p].source, "%s: %s", names[i], mb_param_rows[p].name);
	}
}

Test(data, stacks_load)
{
	const char *const *names;
	int count = list("configs/stacks", &names);

	for (int i = 0; i < count; i++) {
		struct mb_diags diags = { 0 };
		struct mb_stack stack;
		const char *month = strncmp(names[i], "mlm-", 4) == 0 ? "-2026-05" : "";
		const char *name = mb_arena_printf(&arena, "%s%s", names[i], month);

		cr_expect(mb_stack_load(name, (struct mb_pos){ 0 }, &library, &arena, &stack, &diags), "%s", name);
		expect_silence(name, &diags);
		cr_expect(!diags.errors && stack.source && *stack.source, "%s: no source", name);
	}
}
