/* Where results go, and how they may look there. */
#ifndef MBSIM_CLI_OUTPUT_H
#define MBSIM_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "report/style.h"

/* A terminal may have colour and UTF-8; a pipe gets ASCII, whatever NO_COLOR, TERM and the locale say. */
struct mb_style mb_style_of(FILE *stream, bool quiet);

/* Standard output, or a file that appears under its name only when it is complete. */
struct mb_output {
	FILE *stream;
	const char *path;
	char temporary[4200];
};

/* False with a message on stderr when the file cannot be made. path NULL: standard output. */
bool mb_output_open(struct mb_output *out, const char *path);
void mb_output_text(struct mb_output *out, const struct mb_text *text);
bool mb_output_close(struct mb_output *out, bool keep);

#endif
