#include "cli/command.h"

#include <ctype.h>
#include <string.h>

#include "exchange/import.h"

const char mb_help_import[] =
	"usage: mbsim import FILE [key=value...] [NAME=value...]\n"
	"\n"
	"  # a Hugging Face model as a model file\n"
	"  mbsim import path/to/config.json --output mine.yaml\n"
	"  mbsim estimate model=mine.yaml hardware=dgx-h100 gpus=8 gbs=128 seq=4096\n"
	"  # a launch script, an argument file or a log of all arguments as a run\n"
	"  mbsim import pretrain.sh hardware=dgx-h100 --output run.yaml\n"
	"  # variables that only the surroundings of a script know\n"
	"  mbsim import deepseek.yaml TP=1 PP=8 EP=32 CP=1 MBS=1 GBS=2048 SEQ_LEN=4096 gpus=256\n"
	"\n"
	"Read are config.json (also a folder that holds one), Megatron-LM scripts and argument logs, Megatron Bridge overrides and\n"
	"saved configurations, and the Megatron parts of verl, ms-swift and NeMo 1 files. What was assumed or left out is listed\n"
	"on standard error. key=value goes over what the file says.\n"
	"\n"
	"  --output FILE   --quiet\n"
	"\n"
	"Exit: 0, or 2 when the file needs something that is not modelled or not in it.\n";

static bool arguments_are_settings(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	bool ok = true;

	for (int i = 1; i < o->argc; i++) {
		struct mb_pos at = { mb_arena_printf(&call->arena, "argument %d", i + 1), 0, 1 };

		if (strchr(o->argv[i], '=') != NULL && (isalpha((unsigned char)o->argv[i][0]) || strncmp(o->argv[i], "--", 2) == 0))
			continue;
		mb_report(&call->diags, MB_ERROR, at, "", "'%.100s' is no key=value; one file at a time", o->argv[i]);
		ok = false;
	}
	return ok;
}

int mb_cmd_import(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	const char **settings = mb_arena_alloc(&call->arena, (size_t)(o->argc + 1) * sizeof *settings);
	struct mb_import x = { 0 };
	struct mb_text text = { 0 };

	if (o->format != MB_FORMAT_TABLE)
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "import prints YAML, it has no other --format");
	if (!arguments_are_settings(call) || o->format != MB_FORMAT_TABLE)
		return MB_EXIT_USAGE;
	for (int i = 1; i < o->argc; i++)
		settings[i - 1] = o->argv[i];
	if (o->argv[0][0] == '-' || !mb_import_file(o->argv[0], settings, &call->library, &call->arena, &x, &call->diags)) {
		if (call->diags.errors == 0)
			mb_fail(&call->diags, (struct mb_pos){ "argument 1", 0, 1 }, "the file comes first");
		return MB_EXIT_USAGE;
	}
	if (o->quiet)
		call->diags.count = 0;
	mb_import_write(&x, &text);
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	return MB_EXIT_DONE;
}
