/* Shared by the files that read shell; nobody else includes it. */
#ifndef MBSIM_EXCHANGE_SHELL_PRIVATE_H
#define MBSIM_EXCHANGE_SHELL_PRIVATE_H

#include "base/text.h"
#include "exchange/shell.h"

enum { MB_SHELL_BYTES = 4 * 1000 * 1000, MB_SHELL_WORDS = 100 * 1000, MB_SHELL_DEPTH = 16, MB_SHELL_VARIABLES = 8192 };

struct mb_shell_reader {
	const char *at, *end, *line_start;
	int line;
	const char *name;
	struct mb_arena *arena;
	struct mb_diags *diags;
	struct mb_shell *s;
	long bytes;                     /* written by expansions: a file must not grow without bound */
	bool failed, added;

	/* The word being read: words that an unquoted expansion split off are in `split`. */
	struct mb_text word;
	bool has_word, quoted;
	const char *unresolved;
	struct mb_pos word_pos;
	struct mb_word *split;
	int split_count, split_capacity;
};

void mb_shell_push(struct mb_shell_reader *r, struct mb_word **list, int *count, int *capacity, struct mb_word w);
void mb_shell_end_word(struct mb_shell_reader *r);              /* moves the word to `split` */
void mb_shell_expand(struct mb_shell_reader *r, bool quoted, int depth);       /* at a '$' or '`' */
struct mb_variable *mb_shell_assign(struct mb_shell_reader *r, const char *name, bool append, bool array);
struct mb_pos mb_shell_here(const struct mb_shell_reader *r);
size_t mb_shell_name_length(const char *s, const char *end);

/* Value of "4 * (A + 1)" by the variables of the file. */
bool mb_shell_arithmetic(struct mb_shell_reader *r, const char *text, size_t length, long long *ret);

#endif
