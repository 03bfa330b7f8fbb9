/* The commands: each in its own file, all with the same shape. */
#ifndef MBSIM_CLI_COMMAND_H
#define MBSIM_CLI_COMMAND_H

#include "cli/option.h"
#include "cli/output.h"
#include "desc/library.h"

enum mb_exit {
	MB_EXIT_DONE, MB_EXIT_INTERNAL, MB_EXIT_USAGE, MB_EXIT_NO_FIT, MB_EXIT_ILLEGAL, MB_EXIT_MISSED
};

/* One invocation, in main's hands. */
struct mb_call {
	struct mb_options options;
	struct mb_library library;
	struct mb_arena arena;
	struct mb_diags diags;
	struct mb_style style, err_style;
	struct mb_output out;
	const char *args;               /* the run as a shell reads it, for "next" lines */
};

struct mb_command {
	const char *name;
	unsigned bit;                   /* MB_CMD_... */
	bool needs_library, needs_run;
	int (*run)(struct mb_call *call);       /* prints to call->out; returns enum mb_exit */
	const char *help;
};

int mb_cmd_search(struct mb_call *call);
int mb_cmd_estimate(struct mb_call *call);
int mb_cmd_check(struct mb_call *call);
int mb_cmd_list(struct mb_call *call);
int mb_cmd_import(struct mb_call *call);
int mb_cmd_export(struct mb_call *call);
int mb_cmd_validate(struct mb_call *call);
int mb_cmd_calibrate(struct mb_call *call);
int mb_cmd_explain(struct mb_call *call);
int mb_cmd_advise(struct mb_call *call);
int mb_cmd_trace(struct mb_call *call);
int mb_cmd_sweep(struct mb_call *call);
int mb_cmd_report(struct mb_call *call);

/* The lines of a JSON file, one run each; for estimate --batch. */
int mb_batch(struct mb_call *call);

extern const char mb_help_search[], mb_help_estimate[], mb_help_check[], mb_help_list[];

extern const char mb_help_explain[], mb_help_advise[];

extern const char mb_help_validate[], mb_help_calibrate[];

extern const char mb_help_trace[], mb_help_sweep[], mb_help_report[];

extern const char mb_help_import[], mb_help_export[];

/* Prints what has been reported to stderr, then forgets it. Returns whether there was an error. */
bool mb_call_report(struct mb_call *call);

#endif
