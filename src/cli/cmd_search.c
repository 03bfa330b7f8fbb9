#include "cli/command.h"

#include "cli/run.h"
#include "report/search_report.h"

const char mb_help_search[] =
	"usage: mbsim search RUN... [key=value...] [--top N] [--flat] [--require COND]\n"
	"                    [--objective step|memory|cost|gpus]\n"
	"\n"
	"  # everything open: mbsim picks layout, recompute, dispatcher, overlap, graphs\n"
	"  mbsim search model=llama3-70b hardware=dgx-h100 gpus=64 gbs=256 seq=8192 precision=fp8_cs\n"
	"  # keep your file, let only recompute move\n"
	"  mbsim search run.yaml recompute_modules=auto\n"
	"  # narrow a key; quote lists and comparisons, the shell reads [ ] and < itself\n"
	"  mbsim search run.yaml tp=1,2 'recompute_modules=[],[moe_act],[moe_act,layernorm]'\n"
	"  # fewest GPUs that reach a step time\n"
	"  mbsim search run.yaml gpus=64,128,256 --objective gpus --require 'step_s<=15'\n"
	"  # what if HBM were half as large again\n"
	"  mbsim search run.yaml hardware.hbm=1.5x\n"
	"\n"
	"  --top N          plans to list (10)\n"
	"  --flat           near-copies too: plans closer to a listed one than the model can tell\n"
	"  --objective      step: fastest; memory: smallest peak within 5 % of the fastest;\n"
	"                   cost: cheapest step; gpus: fewest GPUs\n"
	"  --require COND   a limit on step_s, peak_allocated_bytes, device_used_bytes, margin_bytes,\n"
	"                   tokens_per_s_per_gpu, model_tflops_per_gpu or mfu; exit 5 when missed\n"
	"  --format table|json|csv|md   --output FILE   --quiet   --threads N\n"
	"\n"
	"Open unless set: parallel sizes, stage split, micro-batch, recompute, dispatcher, overlaps, graphs,\n"
	"offload. Never opened by itself, it changes what is learnt or bought: model, gpus, hardware, stack,\n"
	"precision, sequence, global batch, optimizer and dtypes.\n";

enum { DEFAULT_TOP = 10 };

static const struct mb_evaluation *evaluate_closest(const struct mb_query *q, const struct mb_search_result *r,
                                                    struct mb_evaluation *e, struct mb_case *c)
{
	if (!r->has_closest)
		return NULL;
	*c = q->c;
	c->run.gpus = r->closest.gpus;
	mb_case_compile(c);
	mb_evaluate(c, &r->closest.plan, e);
	return e;
}

static void print(struct mb_call *call, struct mb_search_report *x)
{
	struct mb_text text = { 0 };

	switch (call->options.format) {
	case MB_FORMAT_TABLE:
		mb_search_text(x, &call->style, &text);
		break;
	case MB_FORMAT_JSON:
		mb_search_json(x, &text);
		break;
	case MB_FORMAT_CSV:
		mb_search_csv(x, &text);
		break;
	case MB_FORMAT_MD:
		mb_search_markdown(x, &text);
		break;
	}
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
}

static int judge(struct mb_call *call, const struct mb_search_result *r, bool missed)
{
	struct mb_text lines = { 0 };
	struct mb_quantities q;

	if (r->top_count == 0)
		return MB_EXIT_NO_FIT;
	mb_quantities_of_ranked(&r->top[r->recommended >= 0 ? r->recommended : 0], &q);
	if (!mb_requirements_hold(call->options.require, call->options.require_count, &q, &lines))
		missed = true;
	if (lines.length)
		fprintf(stderr, "%s", lines.data);
	mb_text_free(&lines);
	return missed ? MB_EXIT_MISSED : MB_EXIT_DONE;
}

/*
 * Nothing within the limits: is it they, or does nothing fit at all? What comes closest to a target of few GPUs is the
 * fastest plan of any number.
 */
static bool search_without_limits(struct mb_call *call, const struct mb_query *q, int wanted, struct mb_search_result *r)
{
	if (call->options.objective == MB_OBJECTIVE_GPUS)
		call->options.objective = MB_OBJECTIVE_STEP;
	return mb_run_search(call, q, wanted, false, r);
}

int mb_cmd_search(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_query *q = mb_arena_alloc(&call->arena, sizeof *q);
	struct mb_search_result *r = mb_arena_alloc(&call->arena, sizeof *r);
	struct mb_search_report x = { .q = q, .r = r, .flat = o->flat, .top = o->top ? o->top : DEFAULT_TOP };
	bool steer = mb_run_limits_steer(o), missed = false;
	int wanted = mb_run_wanted(x.top);

	if (!mb_run_load(call, false, q))
		return MB_EXIT_USAGE;
	if (!mb_run_search(call, q, wanted, steer, r))
		return MB_EXIT_USAGE;
	if (r->top_count == 0 && steer && o->require_count) {
		missed = true;
		if (!search_without_limits(call, q, wanted, r))
			return MB_EXIT_USAGE;
	}

	struct mb_evaluation *e = mb_evaluation_new();

	if (!e)
		return MB_EXIT_INTERNAL;
	x.objective = o->objective;
	x.args = r->top_count ? mb_run_search_args(call, steer && !missed) : call->args;
	mb_search_open_keys(q, x.open);
	x.closest =
		r->top_count ? NULL : evaluate_closest(q, r, e, mb_arena_alloc(&call->arena, sizeof(struct mb_case)));
	mb_call_report(call);
	print(call, &x);
	mb_evaluation_free(e);
	return judge(call, r, missed);
}
