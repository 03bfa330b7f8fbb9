#include "cli/command.h"

#include "cli/run.h"
#include "plan/routing.h"
#include "report/estimate.h"

const char mb_help_estimate[] =
	"usage: mbsim estimate RUN... [key=value...] [--rank N] [--all-stages] [--assumptions]\n"
	"       mbsim estimate --batch RUNS.jsonl\n"
	"\n"
	"  # memory of every stage, step time and communication of one run\n"
	"  mbsim estimate model=llama3-70b hardware=dgx-h100 gpus=64 gbs=256 seq=8192 precision=fp8_cs tp=4 pp=8 vp=5\n"
	"  # your file with one change\n"
	"  mbsim estimate run.yaml recompute_granularity=selective 'recompute_modules=[core_attn]'\n"
	"  # plan 2 of the search over the keys that run.yaml leaves open\n"
	"  mbsim estimate run.yaml --rank 2\n"
	"  # a run on each line of a file, an answer on each line of the output\n"
	"  mbsim estimate --batch runs.jsonl --output answers.jsonl\n"
	"\n"
	"  --rank N         plan N of the search over the open keys; --objective: of that search\n"
	"  --all-stages     every pipeline stage\n"
	"  --routing-skew S peak under uneven routing: S spreads the experts' popularity, 0 leaves chance (--seed N)\n"
	"  --assumptions    every constant of the time model, with its source\n"
	"  --require COND   a limit such as 'step_s<=15' or 'margin_bytes>=4 GiB'; exit 5 when missed\n"
	"  --format table|json|csv|md   --output FILE   --quiet   --threads N\n"
	"\n"
	"Exit: 0 fits, 3 out of memory, 4 illegal; the estimate is printed all the same.\n";

static void print(struct mb_call *call, const struct mb_estimate *x)
{
	struct mb_text text = { 0 };

	switch (call->options.format) {
	case MB_FORMAT_TABLE:
		mb_estimate_text(x, &call->style, &text);
		break;
	case MB_FORMAT_JSON:
		mb_estimate_json(x, true, &text);
		break;
	case MB_FORMAT_CSV:
		mb_estimate_csv(x, &text);
		break;
	case MB_FORMAT_MD:
		mb_estimate_markdown(x, &call->arena, &text);
		break;
	}
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
}

static int judge(struct mb_call *call, const struct mb_estimate *x)
{
	int status = mb_verdict_exit(x->verdict);
	struct mb_text lines = { 0 };
	struct mb_quantities q;

	if (!x->e)
		return status;
	mb_quantities_of_evaluation(x->e, &q);
	if (!mb_requirements_hold(call->options.require, call->options.require_count, &q, &lines)) {
		fprintf(stderr, "%s", lines.data);
		status = status == MB_EXIT_DONE ? MB_EXIT_MISSED : status;
	}
	mb_text_free(&lines);
	return status;
}

/* The peak when the busiest expert-parallel rank has more than its share, the median step and one in a hundred. */
static void spread_routing(struct mb_call *call, struct mb_judged *judged, struct mb_evaluation *e)
{
	struct mb_routing_peaks *peaks = &judged->estimate.routing;
	struct mb_case c = judged->query.c;
	const struct mb_plan *p = &judged->query.c.run.plan;
	int seed = call->options.seed > 0 ? call->options.seed : 1;
	struct mb_routing routing;

	if (!call->options.draw_routing || !judged->estimate.e)
		return;
	if (!mb_routing_draw(&c.model, p->ep, judged->estimate.e->dims.local_tokens * p->ep, call->options.routing_skew,
	                     (uint64_t)seed, &routing)) {
		mb_report(&call->diags, MB_WARNING, (struct mb_pos){ NULL, 0, 0 }, "", "--routing-skew: %s has no experts to route to", c.model.name);
		return;
	}
	*peaks = (struct mb_routing_peaks){ true, call->options.routing_skew, routing.p50, routing.p99, 0, 0, seed };
	c.run.moe_router_force_load_balancing = false;
	c.run.moe_load_imbalance = routing.p50;
	mb_evaluate(&c, p, e);
	peaks->p50_bytes = e->peak_bytes;
	c.run.moe_load_imbalance = routing.p99;
	mb_evaluate(&c, p, e);
	peaks->p99_bytes = e->peak_bytes;
	mb_evaluate(&judged->query.c, p, e);
}

int mb_cmd_estimate(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_judged *judged = mb_arena_alloc(&call->arena, sizeof *judged);
	int status;

	if (o->batch)
		return mb_batch(call);
	if (!mb_run_load(call, o->rank == 0, &judged->query))
		return MB_EXIT_USAGE;
	if (o->rank && (status = mb_run_take_rank(call, &judged->query)) != MB_EXIT_DONE)
		return status;

	struct mb_evaluation *e = mb_evaluation_new();

	if (!e)
		return MB_EXIT_INTERNAL;
	mb_run_judge(judged, e);
	spread_routing(call, judged, e);
	judged->estimate.args = o->rank ? mb_run_rank_args(call) : call->args;
	judged->estimate.all_stages = o->all_stages;
	judged->estimate.assumptions = o->assumptions;
	mb_call_report(call);
	print(call, &judged->estimate);
	status = judge(call, &judged->estimate);
	mb_evaluation_free(e);
	return status;
}
