/* What the libFuzzer targets share: the data root and every shipped file once, one arena an input. */
#ifndef MBSIM_TESTS_FUZZ_H
#define MBSIM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "desc/library.h"
#include "desc/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline struct mb_library *fuzz_library(void)
{
	static struct mb_library library;
	static int opened;
	struct mb_diags diags = { 0 };

	if (!opened && !mb_library_open(&library, &diags)) {
		fprintf(stderr, "no data: %s\n", diags.item[0].text);
		exit(1);
	}
	opened = 1;
	return &library;
}

const struct mb_node *__real_mb_node_read_file(const char *path, struct mb_arena *arena, struct mb_diags *diags);
const struct mb_node *__wrap_mb_node_read_file(const char *path, struct mb_arena *arena, struct mb_diags *diags);

/* In place of the reader of files, by the linker: import reads every model to recognise one, which is most of its time. */
const struct mb_node *__wrap_mb_node_read_file(const char *path, struct mb_arena *arena, struct mb_diags *diags)
{
	static struct { const char *path; const struct mb_node *root; } files[512];
	static struct mb_arena kept;
	static int count;
	const char *root = fuzz_library()->root;

	if (strncmp(path, root, strlen(root)) != 0 || count == sizeof files / sizeof files[0])
		return __real_mb_node_read_file(path, arena, diags);
	for (int i = 0; i < count; i++) {
		if (strcmp(files[i].path, path) == 0)
			return files[i].root;
	}
	const struct mb_node *node = __real_mb_node_read_file(path, &kept, diags);

	if (node != NULL) {
		files[count].path = mb_arena_strdup(&kept, path);
		files[count++].root = node;
	}
	return node;
}

#endif
