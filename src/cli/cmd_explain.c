#include "cli/command.h"

#include "cli/run.h"
#include "report/explain.h"

const char mb_help_explain[] =
	"usage: mbsim explain RUN... [key=value...] [--rank N]\n"
	"\n"
	"  # the rule it breaks, the term that makes it miss memory, or the terms that make it slow; and what mends it\n"
	"  mbsim explain model=llama3-70b hardware=dgx-h100 gpus=64 gbs=256 seq=8192 tp=2 pp=4\n"
	"  # why plan 19 of a search is not the best\n"
	"  mbsim explain run.yaml --rank 19\n"
	"\n"
	"The best is searched over every key that a search opens, whatever the run says of it.\n"
	"\n"
	"  --rank N         plan N of the search over the open keys\n"
	"  --format table|json|md   --output FILE   --quiet   --threads N\n"
	"\n"
	"Exit: 0 once it has explained, whatever the verdict.\n";

static void print(struct mb_call *call, const struct mb_explanation *x)
{
	struct mb_explain_report report = { x, call->args };
	struct mb_text text = { 0 };

	if (call->options.format == MB_FORMAT_JSON)
		mb_explain_json(&report, &text);
	else if (call->options.format == MB_FORMAT_MD)
		mb_explain_markdown(&report, &text);
	else
		mb_explain_text(&report, &call->style, &text);
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
}

int mb_cmd_explain(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_query *q = mb_arena_alloc(&call->arena, sizeof *q), *open = mb_arena_alloc(&call->arena, sizeof *open);
	struct mb_search_result *r = mb_arena_alloc(&call->arena, sizeof *r);
	struct mb_explanation *x = mb_arena_alloc(&call->arena, sizeof *x);
	struct mb_diags silent = call->diags;
	int status;

	if (o->format == MB_FORMAT_CSV) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "explain prints table, json or md");
		return MB_EXIT_USAGE;
	}
	if (!mb_run_load(call, o->rank == 0, q))
		return MB_EXIT_USAGE;
	if (o->rank && (status = mb_run_take_rank(call, q)) != MB_EXIT_DONE)
		return status;
	if (o->rank)
		call->args = mb_run_rank_args(call);
	mb_call_report(call);

	struct mb_evaluation *e = mb_evaluation_new();

	if (!e)
		return MB_EXIT_INTERNAL;
	mb_open_query(q, open);
	bool searched = mb_run_search(call, open, 10, false, r);

	call->diags = silent;   /* a run that cannot be searched is still explained */
	mb_explain(q, searched ? r : NULL, e, &call->arena, x);
	if (searched && r->top_count == 0)
		mb_explain_nothing_fits(x, o->threads, &call->library, &call->arena);
	print(call, x);
	mb_evaluation_free(e);
	return MB_EXIT_DONE;
}
