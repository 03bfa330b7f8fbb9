/* What the libFuzzer targets share: the data root once, one arena an input. */
#ifndef MBSIM_TESTS_FUZZ_H
#define MBSIM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

#endif
