#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/run.h"
#include "desc/node.h"
#include "report/error_report.h"

struct line {
	const char *text;
	size_t length;
	int number;
};

/* Each line is read as a document of its own: its places move to the line of the file. */
static void shift(struct mb_pos *pos, const struct line *line)
{
	if (pos->line > 0)
		pos->line += line->number - 1;
}

static void answer(const struct line *line, struct mb_judged *judged, struct mb_evaluation *e, struct mb_text *ret)
{
	for (int i = 0; i < MB_KEY_COUNT; i++)
		shift(&judged->query.pos[i], line);
	shift(&judged->query.model_pos, line);
	shift(&judged->query.hardware_pos, line);
	shift(&judged->query.stack_pos, line);
	mb_run_judge(judged, e);
	mb_estimate_json(&judged->estimate, false, ret);
}

/* The first error of a line, in the place of its answer. */
static void complain(struct mb_diags *diags, const struct line *line, struct mb_text *ret)
{
	for (int i = 0; i < diags->count; i++) {
		if (diags->item[i].severity != MB_ERROR)
			continue;
		shift(&diags->item[i].pos, line);
		mb_diag_json(&diags->item[i], ret);
		return;
	}
}

static bool batch_line(struct mb_call *call, const struct line *line, struct mb_evaluation *e)
{
	struct mb_arena arena = { 0 };
	struct mb_diags *diags = mb_arena_alloc(&arena, sizeof *diags);
	struct mb_judged *judged = mb_arena_alloc(&arena, sizeof *judged);
	struct mb_text text = { 0 };
	const char *name = strcmp(call->options.batch, "-") == 0 ? "standard input" : call->options.batch;
	const struct mb_node *node = mb_node_read_text(line->text, line->length, name, &arena, diags);
	bool ok = node && mb_query_from_node(node, &call->library, &arena, &judged->query, diags);

	if (ok)
		answer(line, judged, e, &text);
	else
		complain(diags, line, &text);
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	mb_arena_free(&arena);
	return ok;
}

static bool is_blank(const struct line *line)
{
	for (size_t i = 0; i < line->length; i++) {
		if (!strchr(" \t\r\n", line->text[i]))
			return false;
	}
	return true;
}

static int run_lines(struct mb_call *call, FILE *f, struct mb_evaluation *e)
{
	char *buffer = NULL;
	size_t room = 0;
	ssize_t length;
	int status = MB_EXIT_DONE;

	for (int number = 1; (length = getline(&buffer, &room, f)) >= 0; number++) {
		struct line line = { buffer, (size_t)length, number };

		if (!is_blank(&line) && !batch_line(call, &line, e))
			status = MB_EXIT_USAGE;
	}
	free(buffer);
	return status;
}

int mb_batch(struct mb_call *call)
{
	const char *path = call->options.batch;
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");

	if (!f) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "cannot read '%.200s': %s", path, strerror(errno));
		return MB_EXIT_USAGE;
	}

	struct mb_evaluation *e = mb_evaluation_new();
	int status = e ? run_lines(call, f, e) : MB_EXIT_INTERNAL;

	mb_evaluation_free(e);
	if (f != stdin)
		fclose(f);
	return status;
}
