#include "cli/command.h"

#include <string.h>

#include "cli/run.h"
#include "exchange/export.h"

const char mb_help_export[] =
	"usage: mbsim export RUN... [key=value...] --to bridge|megatron|yaml|sbatch [--rank N]\n"
	"\n"
	"  # overrides for a Megatron Bridge script, one a line\n"
	"  mbsim export run.yaml --to bridge\n"
	"  # flags for Megatron-LM's pretrain_gpt.py\n"
	"  mbsim export run.yaml --to megatron\n"
	"  # plan 2 of the search over the keys that run.yaml leaves open, as a run file\n"
	"  mbsim export run.yaml --rank 2 --to yaml\n"
	"  # a batch script, with the environment that the plan needs\n"
	"  mbsim export run.yaml --to sbatch --output train.sbatch\n"
	"\n"
	"Lines that change what is learnt, compared with the framework's defaults, are marked. mbsim import reads each of them\n"
	"back as the same run.\n"
	"\n"
	"  --output FILE   --quiet   --threads N\n"
	"\n"
	"Exit: 0, or 3 when --rank finds no such plan.\n";

int mb_cmd_export(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_query *q = mb_arena_alloc(&call->arena, sizeof *q);
	struct mb_text text = { 0 };
	int status;

	if (o->format != MB_FORMAT_TABLE) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "export has --to, and no --format");
		return MB_EXIT_USAGE;
	}
	if (!o->has_to) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "--to is missing, expected bridge, megatron, yaml or sbatch");
		return MB_EXIT_USAGE;
	}
	if (!mb_run_load(call, o->rank == 0, q))
		return MB_EXIT_USAGE;
	if (o->rank && (status = mb_run_take_rank(call, q)) != MB_EXIT_DONE)
		return status;
	if (!mb_export(q, o->to, &call->library, &call->arena, &text, &call->diags)) {
		mb_text_free(&text);
		return MB_EXIT_USAGE;
	}
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	return MB_EXIT_DONE;
}
