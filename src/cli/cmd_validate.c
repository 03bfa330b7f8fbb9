#include <string.h>

#include "cli/command.h"

#include "calib/held_out.h"
#include "report/validate.h"

const char mb_help_validate[] =
	"usage: mbsim validate MEASURED... [--by model|family|gpu|precision|stack|source] [--top N]\n"
	"\n"
	"  # how far off are the predictions for published runs\n"
	"  mbsim validate tests/published/throughput.jsonl\n"
	"  # your own: a heading of run keys and step_s, a run a line\n"
	"  mbsim validate measured.csv --by model\n"
	"  # every row, for a spreadsheet\n"
	"  mbsim validate tests/published/golden.jsonl --format csv\n"
	"\n"
	"MEASURED is JSON lines or CSV; docs/accuracy.md describes the forms and what is assumed for each source.\n"
	"  --by GROUPING    errors by that instead of family and source\n"
	"  --top N          name the N worst rows of each kind (default 5)\n"
	"  --format table|json|csv|md   --output FILE   --quiet\n"
	"\n"
	"\"Left out\": the time model's fitted parameters are fitted again without the group of each run.\n";

static void print(struct mb_call *call, const struct mb_validation *x)
{
	struct mb_text text = { 0 };

	switch (call->options.format) {
	case MB_FORMAT_TABLE:
		mb_validation_text(x, &call->style, &text);
		break;
	case MB_FORMAT_JSON:
		mb_validation_json(x, &text);
		break;
	case MB_FORMAT_CSV:
		mb_validation_csv(x, &text);
		break;
	case MB_FORMAT_MD:
		mb_validation_markdown(x, &call->arena, &text);
		break;
	}
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
}

int mb_cmd_validate(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_measured_set set = { .arena = &call->arena };
	struct mb_accuracy accuracy = { .arena = &call->arena };
	struct mb_trials trials;
	struct mb_evaluation *e;

	for (int i = 0; i < o->argc; i++) {
		if (!mb_measured_read(o->argv[i], &set, &call->diags))
			return MB_EXIT_USAGE;
	}
	e = mb_evaluation_new();
	if (!e)
		return MB_EXIT_INTERNAL;
	mb_trials_fill(&set, &call->library, e, &trials);
	if (trials.count == 0) {
		mb_fail(&call->diags, trials.skipped[0].pos, "no row can be compared with a prediction: %s", trials.skipped[0].skip);
		mb_evaluation_free(e);
		return MB_EXIT_USAGE;
	}
	mb_accuracy_score(&trials, e, &accuracy);
	mb_accuracy_group(&accuracy);
	mb_accuracy_order(&accuracy);
	mb_accuracy_studies(&accuracy);
	mb_accuracy_held_out(&trials, e, &accuracy);
	mb_accuracy_baselines(&trials, &accuracy);

	struct mb_validation x = { .accuracy = &accuracy, .trials = &trials, .args = call->args, .worst = o->top ? o->top : 5,
		.by = o->by && strcmp(o->by, "group") != 0 ? o->by : NULL };

	print(call, &x);
	mb_evaluation_free(e);
	return MB_EXIT_DONE;
}
