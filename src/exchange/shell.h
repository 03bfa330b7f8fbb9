/*
 * Enough of a POSIX shell with arrays to read launch scripts: words with where they stood, variables set in the file,
 * exported variables, the options of #SBATCH lines. Nothing is run; what only a run could tell stays unresolved.
 */
#ifndef MBSIM_EXCHANGE_SHELL_H
#define MBSIM_EXCHANGE_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct mb_word {
	const char *text;
	struct mb_pos pos;
	const char *unresolved;         /* name of the first variable or command that the file does not tell; NULL */
	bool ends;                      /* last word of its command */
};

struct mb_variable {
	const char *name;
	struct mb_word *words;          /* one, or the elements of an array */
	int count, capacity;
	bool array, exported, used;
	bool added;                     /* between "# mbsim: added" and "# mbsim: end": not part of the run */
};

struct mb_shell {
	struct mb_word *words;          /* of all commands, assignments left out */
	int word_count, word_capacity;
	struct mb_variable *variables;  /* in the order of their first assignment */
	int variable_count, variable_capacity;
	struct mb_word *notes;          /* words behind "# mbsim:" */
	int note_count, note_capacity;
	struct mb_word *slurm;          /* words behind "#SBATCH" */
	int slurm_count, slurm_capacity;
	struct mb_pos condition;        /* the first if, for, while or case; line 0: none */
};

/* `preset`: NAME=value texts that stand above the file. False after an error. */
bool mb_shell_read(const char *text, size_t length, const char *name, const char *const *preset, struct mb_arena *arena,
                   struct mb_shell *ret, struct mb_diags *diags);

/* The variable, or NULL. */
const struct mb_variable *mb_shell_variable(const struct mb_shell *s, const char *name);

#endif
