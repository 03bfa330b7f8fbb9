/* The readers of models, config.json files, machines and stacks; the first byte chooses. */
#include "fuzz.h"

#include "desc/hf.h"

static bool read(int which, const struct mb_node *root, struct mb_arena *arena, struct mb_diags *diags)
{
	struct mb_model *model = mb_arena_alloc(arena, sizeof *model);
	struct mb_hardware *hardware = mb_arena_alloc(arena, sizeof *hardware);
	struct mb_stack *stack = mb_arena_alloc(arena, sizeof *stack);

	if (which == 0)
		return mb_model_read(root, arena, model, diags);
	if (which == 1) {
		const struct mb_node *map = mb_hf_is_config(root) ? mb_hf_model(root, arena, diags) : NULL;

		return !mb_hf_is_config(root) || (map != NULL && mb_model_read(map, arena, model, diags));
	}
	if (which == 2)
		return mb_hardware_read(root, fuzz_library(), arena, hardware, diags);
	return mb_stack_read(root, fuzz_library(), arena, stack, diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };
	const struct mb_node *root = size > 0 ? mb_node_read_text((const char *)data + 1, size - 1, "fuzz", &arena, &diags) : NULL;

	if (root != NULL && !read(data[0] & 3, root, &arena, &diags) && diags.errors == 0)
		abort();
	mb_arena_free(&arena);
	return 0;
}
