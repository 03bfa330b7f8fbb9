#include <string.h>

#include "cli/command.h"
#include "cli/run.h"
#include "report/check.h"
#include "report/violation.h"

const char mb_help_check[] =
	"usage: mbsim check RUN... [key=value...]\n"
	"\n"
	"  # would it start, and if not, what is the smallest change\n"
	"  mbsim check model=qwen3-30b-a3b hardware=dgx-h100 gpus=16 gbs=1024 seq=4096 ep=8 tp=3\n"
	"  # your file with one change\n"
	"  mbsim check run.yaml pp=4\n"
	"\n"
	"Rules only, no memory and no time. Order: error (stops at launch), changed (the framework sets another\n"
	"value), ignored (no effect), warning, pointless.\n"
	"\n"
	"  --format table|json   --output FILE   --quiet\n"
	"\n"
	"Exit: 0 legal, 4 illegal. A rule in full: mbsim list rules EP6\n";

static const char *run_name(const struct mb_options *o)
{
	for (int i = 0; i < o->argc; i++) {
		if (strncmp(o->argv[i], "--", 2) != 0 && !strchr(o->argv[i], '='))
			return o->argv[i];
	}
	return "run";
}

int mb_cmd_check(struct mb_call *call)
{
	struct mb_judged *judged = mb_arena_alloc(&call->arena, sizeof *judged);
	struct mb_check_report x = { .q = &judged->query, .violations = judged->violations, .args = call->args,
	                             .name = run_name(&call->options) };
	const struct mb_plan *p = &judged->query.c.run.plan;
	struct mb_text text = { 0 };

	if (!mb_run_load(call, true, &judged->query))
		return MB_EXIT_USAGE;
	if (call->options.format == MB_FORMAT_CSV || call->options.format == MB_FORMAT_MD) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "check prints table or json");
		return MB_EXIT_USAGE;
	}

	struct mb_evaluation *e = mb_evaluation_new();

	if (!e)
		return MB_EXIT_INTERNAL;
	mb_run_judge(judged, e);
	x.violation_count = judged->estimate.violation_count;
	x.legal = mb_violation_errors(x.violations, x.violation_count) == 0;
	x.split = judged->estimate.e ? &e->split : NULL;
	x.has_combined = !x.legal && mb_combined_fix(x.q, p, &x.combined, MB_MAX_FIX_KEYS);
	mb_call_report(call);
	if (call->options.format == MB_FORMAT_JSON)
		mb_check_json(&x, &text);
	else
		mb_check_text(&x, &call->style, &text);
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	mb_evaluation_free(e);
	return x.legal ? MB_EXIT_DONE : MB_EXIT_ILLEGAL;
}
