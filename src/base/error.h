/* Diagnostics: values on the caller's side, filled by the library, printed by the command line. */
#ifndef MBSIM_BASE_ERROR_H
#define MBSIM_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* A place in the input. `file` is a path, or "argument N" for the command line; both outlive the diagnostics. */
struct mb_pos {
	const char *file;
	int line;               /* 1-based; 0: not in a file */
	int column;             /* 1-based; for arguments the column inside the argument, line is 0 */
};

enum mb_severity { MB_ERROR, MB_WARNING, MB_NOTE };

enum { MB_DIAG_MAX = 10, MB_DIAG_TEXT = 320 };

struct mb_diag {
	enum mb_severity severity;
	struct mb_pos pos;
	char key[64];                   /* key the message is about; "" if none */
	char text[MB_DIAG_TEXT];        /* what is wrong: lower case, no full stop */
	char expected[MB_DIAG_TEXT];    /* what would have been right; "" if the text says it */
	char nearest[64];               /* nearest valid name or value; "" if none */
};

/* Everything found wrong with one input: the first MB_DIAG_MAX errors and as many warnings. */
struct mb_diags {
	int errors, warnings;           /* all that were reported, also those past the end of `item` */
	int count;
	struct mb_diag item[2 * MB_DIAG_MAX];
	struct mb_diag spare;           /* where mb_report writes once the list is full */
};

/*
 * Adds a diagnostic and returns false, so that callers write `return mb_fail(...)`. A full list still counts.
 * The returned pointer of mb_report lets a caller add `expected` and `nearest`; it is never NULL.
 */
bool mb_fail(struct mb_diags *d, struct mb_pos at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
struct mb_diag *mb_report(struct mb_diags *d, enum mb_severity severity, struct mb_pos at, const char *key,
                          const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Nearest of `count` names to `word` by edit distance, or NULL when none is close enough to be a typing error. */
const char *mb_nearest(const char *word, const char *const *names, size_t count);

#endif
