#include "cli/command.h"

#include "cli/run.h"
#include "report/trace.h"
#include "report/violation.h"

const char mb_help_trace[] =
	"usage: mbsim trace RUN... [key=value...] [--rank N] [--output FILE]\n"
	"\n"
	"  # the step as a timeline; open it in ui.perfetto.dev or chrome://tracing\n"
	"  mbsim trace model=qwen3-30b-a3b hardware=dgx-h100 gpus=16 gbs=64 seq=4096 ep=8 pp=2 --output step.json\n"
	"  # plan 1 of the search over the keys that run.yaml leaves open\n"
	"  mbsim trace run.yaml --rank 1 --output step.json\n"
	"\n"
	"A process per pipeline rank; a track for operations, compute, host and each kind of communication; a counter of\n"
	"allocated memory. Communication is what compute does not hide. The spans below the operations of the slowest rank\n"
	"add up to the terms of mbsim estimate.\n"
	"\n"
	"  --rank N   plan N of the search over the open keys\n"
	"  --output FILE   --quiet   --threads N\n"
	"\n"
	"Exit: 0 fits, 3 out of memory, 4 illegal; the timeline is written all the same.\n";

static bool write_trace(struct mb_call *call, const struct mb_query *q, const struct mb_evaluation *e)
{
	struct mb_timeline t;
	struct mb_text text = { 0 };

	if (mb_timeline_operations(e) > MB_TIMELINE_MAX)
		return mb_fail(&call->diags, (struct mb_pos){ 0 }, "a step of %lld operations is too long to draw, at most %d; a smaller "
		               "global_batch_size shows the same pattern", (long long)mb_timeline_operations(e), MB_TIMELINE_MAX);
	if (!mb_timeline_fill(&q->c.run.plan, e, &call->arena, &t))
		return mb_fail(&call->diags, (struct mb_pos){ 0 }, "the schedule of this run cannot be laid out");
	mb_trace_begin(&t, q, &text);
	for (int r = 0; r < t.pipeline.pp; r++) {
		mb_trace_rank(&t, r, &text);
		mb_output_text(&call->out, &text);
		text.length = 0;
	}
	mb_trace_end(&text);
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	return true;
}

int mb_cmd_trace(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_judged *judged = mb_arena_alloc(&call->arena, sizeof *judged);
	struct mb_evaluation *e;
	struct mb_text words = { 0 };
	int status;

	if (!mb_run_load(call, o->rank == 0, &judged->query))
		return MB_EXIT_USAGE;
	if (o->rank && (status = mb_run_take_rank(call, &judged->query)) != MB_EXIT_DONE)
		return status;
	e = mb_evaluation_new();
	if (!e)
		return MB_EXIT_INTERNAL;
	mb_run_judge(judged, e);
	mb_violations_print(&words, &call->err_style, &judged->query, judged->violations,
	                    mb_violation_errors(judged->violations, judged->estimate.violation_count));
	if (words.length && !o->quiet)
		fputs(words.data, stderr);
	mb_text_free(&words);
	status = mb_verdict_exit(judged->estimate.verdict);
	if (!judged->estimate.e)
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "the sizes of this run make no sense, there is no step to draw");
	else if (!write_trace(call, &judged->query, e))
		status = MB_EXIT_USAGE;
	mb_evaluation_free(e);
	return status;
}
