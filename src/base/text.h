/* Growable string for reports. Zero-initialise, append, free. */
#ifndef MBSIM_BASE_TEXT_H
#define MBSIM_BASE_TEXT_H

#include <stddef.h>

struct mb_text {
	char *data;             /* NUL-terminated; NULL while nothing was appended */
	size_t length, capacity;
};

void mb_text_add(struct mb_text *t, const char *s);
void mb_text_addn(struct mb_text *t, const char *s, size_t n);
void mb_text_printf(struct mb_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mb_text_pad(struct mb_text *t, char c, int count);
void mb_text_free(struct mb_text *t);

#endif
