/* The reader of documents: any bytes give a tree or a diagnostic. */
#include "fuzz.h"

static size_t walk(const struct mb_node *n)
{
	size_t sum = n->text != NULL ? (size_t)n->text[0] : 0;
	long long i;
	double d;
	bool b;

	sum += mb_node_int(n, &i) + mb_node_double(n, &d) + mb_node_bool(n, &b) + mb_node_is_null(n);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };
	const struct mb_node *root = mb_node_read_text((const char *)data, size, "fuzz", &arena, &diags);
	volatile size_t sum = 0;

	if (root == NULL && diags.errors == 0)
		abort();
	for (const struct mb_node *n = root != NULL ? root->child : NULL; n != NULL; n = n->next)
		sum += walk(n);
	(void)sum;
	mb_arena_free(&arena);
	return 0;
}
