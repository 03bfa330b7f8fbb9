/* The reader of runs. */
#include "fuzz.h"
#include "plan/case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };
	const struct mb_node *root = mb_node_read_text((const char *)data, size, "fuzz", &arena, &diags);

	if (root != NULL) {
		struct mb_query *q = mb_arena_alloc(&arena, sizeof *q);

		if (!mb_query_from_node(root, fuzz_library(), &arena, q, &diags) && diags.errors == 0)
			abort();
	}
	mb_arena_free(&arena);
	return 0;
}
