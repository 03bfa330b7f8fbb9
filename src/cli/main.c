/* mbsim: reads the command line, hands it to a command, prints what went wrong. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "report/error_report.h"
#include "report/style.h"

static const struct mb_command commands[] = {
	{ "search",   MB_CMD_SEARCH,   true, true,  mb_cmd_search,   mb_help_search },
	{ "estimate", MB_CMD_ESTIMATE, true, true,  mb_cmd_estimate, mb_help_estimate },
	{ "check",    MB_CMD_CHECK,    true, true,  mb_cmd_check,    mb_help_check },
	{ "explain",  MB_CMD_EXPLAIN,  true, true,  mb_cmd_explain,  mb_help_explain },
	{ "advise",   MB_CMD_ADVISE,   true, true,  mb_cmd_advise,   mb_help_advise },
	{ "list",     MB_CMD_LIST,     true, false, mb_cmd_list,     mb_help_list },
	{ "trace",    MB_CMD_TRACE,    true, true,  mb_cmd_trace,    mb_help_trace },
	{ "sweep",    MB_CMD_SWEEP,    false, false, mb_cmd_sweep,    mb_help_sweep },
	{ "report",   MB_CMD_REPORT,   false, false, mb_cmd_report,  mb_help_report },
	{ "validate", MB_CMD_VALIDATE, true, true,  mb_cmd_validate, mb_help_validate },
	{ "calibrate", MB_CMD_CALIBRATE, true, true, mb_cmd_calibrate, mb_help_calibrate },
	{ "import",   MB_CMD_IMPORT,   true, true,  mb_cmd_import,   mb_help_import },
	{ "export",   MB_CMD_EXPORT,   true, true,  mb_cmd_export,   mb_help_export },
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const char first_contact[] =
	"mbsim: memory and step time of Megatron Bridge training, without a GPU\n"
	"\n"
	"  Which layout is fastest?   mbsim search model=llama3-8b hardware=dgx-h100 gpus=16 seq=8192 gbs=512\n"
	"  Does my run fit?           mbsim estimate run.yaml\n"
	"  Will it start?             mbsim check run.yaml\n"
	"\n"
	"mbsim --help lists all commands, mbsim list models what is shipped.\n";

static const char help[] =
	"usage: mbsim COMMAND [RUN...] [key=value...] [options]\n"
	"\n"
	"A RUN is a YAML or JSON file; key=value adds to it or overrides it. Names are Megatron Bridge's.\n"
	"  plan      search      best plans that fit memory, over every key you leave open\n"
	"            sweep       many searches or estimates from one file, as a table\n"
	"            report      capacity planning: GPUs, days, cost and energy, as a page\n"
	"  judge     estimate    memory, step time and communication of one run, term by term\n"
	"            check       rules only: what would fail at launch, and the smallest fix\n"
	"            explain     why this run is not the best, and the nearest one that is\n"
	"            advise      recompute | overlap | dispatcher | oom: options side by side\n"
	"            trace       one step as a timeline of every stage\n"
	"  exchange  import      a Hugging Face config, a Bridge recipe or a command line into a run\n"
	"            export      a run as a command line or a Bridge recipe\n"
	"  measure   validate    predictions against measured runs\n"
	"            calibrate   fits the machine's figures to your own runs\n"
	"  look up   list        models, hardware, stacks, rules, keys\n"
	"\n"
	"  --format table|json|csv|md   --output FILE   --quiet   --threads N   --version\n"
	"  exit: 0 done, 1 internal error, 2 bad input, 3 does not fit, 4 illegal, 5 --require missed\n"
	"Start with: mbsim search --help      One key: mbsim list keys recompute_modules\n";

static const struct mb_command *find_command(const char *name)
{
	for (int i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int unknown_command(const char *word)
{
	const char *names[COMMANDS];

	for (int i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;

	const char *near = mb_nearest(word, names, COMMANDS);

	fprintf(stderr, "mbsim: error: unknown command '%s'\n", word);
	if (near)
		fprintf(stderr, "  did you mean '%s'?     all: mbsim --help\n", near);
	else
		fprintf(stderr, "  all: mbsim --help\n");
	return MB_EXIT_USAGE;
}

bool mb_call_report(struct mb_call *call)
{
	struct mb_text text = { 0 };
	bool failed = call->diags.errors > 0;

	for (int i = 0; i < call->diags.count; i++)
		mb_options_renumber(&call->options, &call->arena, &call->diags.item[i].pos);
	mb_diags_print(&call->diags, call->options.format == MB_FORMAT_JSON, &call->err_style, &text);
	if (text.length)
		fputs(text.data, stderr);
	mb_text_free(&text);
	memset(&call->diags, 0, sizeof call->diags);
	return failed;
}

static void join_arguments(struct mb_call *call)
{
	struct mb_text text = { 0 };

	mb_text_add(&text, "");
	for (int i = 0; i < call->options.argc; i++) {
		mb_text_add(&text, i ? " " : "");
		mb_shell_word(&text, call->options.argv[i]);
	}
	call->args = mb_arena_strdup(&call->arena, text.length ? text.data : "");
	mb_text_free(&text);
}

static bool prepare(struct mb_call *call, const struct mb_command *command)
{
	const struct mb_options *o = &call->options;

	struct mb_pos nowhere = { 0 };

	if (command->needs_run && o->argc == 0 && !o->batch)
		return mb_fail(&call->diags, nowhere, "no run given: a file or key=value; see mbsim %s --help",
		               command->name);
	if (o->batch && o->argc > 0)
		return mb_fail(&call->diags, nowhere, "--batch takes its runs from the file alone");
	return !command->needs_library || mb_library_open(&call->library, &call->diags);
}

static int run_command(struct mb_call *call, const struct mb_command *command, int argc, char **argv)
{
	bool ok = mb_options_read(argc, argv, command->bit, &call->arena, &call->options, &call->diags);

	call->err_style = mb_style_of(stderr, call->options.quiet);
	if (call->options.help) {
		fputs(command->help, stdout);
		return MB_EXIT_DONE;
	}
	if (call->options.version) {
		puts("mbsim " MBSIM_VERSION);
		return MB_EXIT_DONE;
	}
	join_arguments(call);
	if (!ok || !prepare(call, command)) {
		mb_call_report(call);
		return MB_EXIT_USAGE;
	}
	if (!mb_output_open(&call->out, call->options.output))
		return MB_EXIT_USAGE;
	call->style = mb_style_of(call->out.stream, call->options.quiet);

	int status = command->run(call);
	/* A failed run leaves the file of an earlier one alone; a verdict is a result. */
	bool keep = status != MB_EXIT_INTERNAL && status < 128 && !(status == MB_EXIT_USAGE && !call->options.batch);

	mb_call_report(call);
	if (!mb_output_close(&call->out, keep))
		return MB_EXIT_INTERNAL;
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs(first_contact, stderr);
		return MB_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(help, stdout);
		return MB_EXIT_DONE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("mbsim " MBSIM_VERSION);
		return MB_EXIT_DONE;
	}

	const struct mb_command *command = find_command(argv[1]);

	if (!command)
		return unknown_command(argv[1]);

	struct mb_call call = { .options.format = MB_FORMAT_TABLE };
	int status = run_command(&call, command, argc - 2, argv + 2);

	mb_arena_free(&call.arena);
	return status;
}
