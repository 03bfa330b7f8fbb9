/* Everything that `import` reads: the first byte chooses the name of the file, and with it the reader. */
#include "fuzz.h"

#include "exchange/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "run.sh", "config.json", "run.yaml", "overrides.txt", "any" };
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };
	struct mb_import *got = mb_arena_alloc(&arena, sizeof *got);
	struct mb_text text = { 0 };

	if (size > 0 && mb_import_text((const char *)data + 1, size - 1, names[data[0] % 5], NULL, fuzz_library(), &arena, got, &diags))
		mb_import_write(got, &text);
	else if (size > 0 && diags.errors == 0)
		abort();
	mb_text_free(&text);
	mb_arena_free(&arena);
	return 0;
}
