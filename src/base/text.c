#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for n more characters and the NUL; no caller can go on without it, so it aborts like the arena. */
static void reserve(struct mb_text *t, size_t n)
{
	size_t need, capacity = t->capacity ? t->capacity : 256;

	if (n > SIZE_MAX / 4 - t->length)
		abort();
	need = t->length + n + 1;
	if (need <= t->capacity)
		return;
	while (capacity < need)
		capacity *= 2;
	t->data = realloc(t->data, capacity);
	if (!t->data)
		abort();
	t->capacity = capacity;
}

void mb_text_addn(struct mb_text *t, const char *s, size_t n)
{
	reserve(t, n);
	memcpy(t->data + t->length, s, n);
	t->length += n;
	t->data[t->length] = '\0';
}

void mb_text_add(struct mb_text *t, const char *s)
{
	mb_text_addn(t, s, strlen(s));
}

void mb_text_printf(struct mb_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	reserve(t, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(t->data + t->length, (size_t)n + 1, fmt, ap);
	va_end(ap);
	t->length += (size_t)n;
}

void mb_text_pad(struct mb_text *t, char c, int count)
{
	if (count <= 0)
		return;
	reserve(t, (size_t)count);
	memset(t->data + t->length, c, (size_t)count);
	t->length += (size_t)count;
	t->data[t->length] = '\0';
}

void mb_text_free(struct mb_text *t)
{
	free(t->data);
	*t = (struct mb_text){ 0 };
}
