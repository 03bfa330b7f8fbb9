/* SHA-256, for keys that must be the same on every machine [FIPS 180-4]. */
#ifndef MBSIM_SWEEP_HASH_H
#define MBSIM_SWEEP_HASH_H

#include <stddef.h>
#include <stdint.h>

struct mb_hash {
	uint32_t state[8];
	uint8_t block[64];
	uint64_t length;                /* bytes so far */
};

enum { MB_HASH_TEXT = 65 };             /* 64 hexadecimal digits and the end */

void mb_hash_start(struct mb_hash *h);
void mb_hash_add(struct mb_hash *h, const void *data, size_t size);
/* With its length first, so that "ab","c" and "a","bc" differ. NULL is not the empty text. */
void mb_hash_text(struct mb_hash *h, const char *text);
void mb_hash_end(struct mb_hash *h, char ret[MB_HASH_TEXT]);

#endif
