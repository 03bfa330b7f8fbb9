#include "cli/run.h"

#include <string.h>
#include <unistd.h>

#include "sweep/cell.h"

bool mb_run_load(struct mb_call *call, bool single, struct mb_query *ret)
{
	struct mb_options *o = &call->options;
	bool ok = mb_query_load(o->argc, o->argv, single, &call->library, &call->arena, ret, &call->diags);

	for (int i = 0; i < MB_KEY_COUNT; i++)
		mb_options_renumber(o, &call->arena, &ret->pos[i]);
	mb_options_renumber(o, &call->arena, &ret->model_pos);
	mb_options_renumber(o, &call->arena, &ret->hardware_pos);
	mb_options_renumber(o, &call->arena, &ret->stack_pos);
	return ok;
}

void mb_run_judge(struct mb_judged *judged, struct mb_evaluation *e)
{
	const struct mb_case *c = &judged->query.c;
	const struct mb_plan *p = &c->run.plan;
	struct mb_estimate *x = &judged->estimate;

	x->q = &judged->query;
	x->violations = judged->violations;
	x->violation_count = mb_check(&judged->query, p, judged->violations);
	x->e = NULL;
	if (mb_evaluable(c, p)) {
		mb_evaluate(c, p, e);
		x->e = e;
	}
	x->verdict = mb_estimate_verdict(x->e, x->violations, x->violation_count);
}

int mb_verdict_exit(enum mb_verdict verdict)
{
	switch (verdict) {
	case MB_FITS:
	case MB_AT_RISK:
		break;
	case MB_OUT_OF_MEMORY:
		return MB_EXIT_NO_FIT;
	case MB_ILLEGAL:
		return MB_EXIT_ILLEGAL;
	}
	return MB_EXIT_DONE;
}

struct progress {
	int percent;
};

static void show_progress(void *context, double done_frac)
{
	struct progress *p = context;
	int percent = (int)(done_frac * 100);

	if (percent <= p->percent || percent > 100)
		return;
	p->percent = percent;
	fprintf(stderr, "\rsearching  %d %%", percent);
	fflush(stderr);
}

static int default_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}

bool mb_run_search(struct mb_call *call, const struct mb_query *q, int top, bool limits, struct mb_search_result *ret)
{
	const struct mb_options *o = &call->options;
	struct progress progress = { -1 };
	bool shown = isatty(STDERR_FILENO) && !o->quiet;
	struct mb_search_options options = {
		.top = top, .objective = o->objective, .threads = o->threads ? o->threads : default_threads(),
		.memory_slack_frac = 0.05, .progress = shown ? show_progress : NULL, .context = &progress,
	};

	if (limits) {
		options.max_step_s = mb_requirement_limit(o->require, o->require_count, MB_Q_STEP);
		options.max_peak_bytes = mb_requirement_limit(o->require, o->require_count, MB_Q_PEAK);
	}

	bool ok = mb_search(q, &options, &call->arena, ret, &call->diags);

	if (progress.percent >= 0)
		fputs("\r\033[K", stderr);
	return ok;
}

bool mb_run_limits_steer(const struct mb_options *o)
{
	return o->objective != MB_OBJECTIVE_STEP || mb_requirement_limit(o->require, o->require_count, MB_Q_PEAK) > 0;
}

/* More than are shown: near-copies are folded, and plans at risk may stand before the first that fits. */
enum { ROOM = 2, LEAST = 20 };

int mb_run_wanted(int top)
{
	int wanted = top * ROOM < LEAST ? LEAST : top * ROOM;

	return wanted > MB_MAX_TOP ? MB_MAX_TOP : wanted;
}

/* As many as the list had: the best that fits may stand in for its last plan. */
int mb_run_wanted_rank(int rank)
{
	return rank < LEAST ? LEAST : rank;
}

const char *mb_run_search_args(struct mb_call *call, bool limits)
{
	const struct mb_options *o = &call->options;
	struct mb_text text = { 0 };
	const char *args;

	mb_text_add(&text, call->args);
	if (o->objective != MB_OBJECTIVE_STEP)
		mb_text_printf(&text, " --objective %s", mb_value_name(mb_objective_names, o->objective));
	for (int i = 0; limits && i < o->require_count; i++) {
		mb_text_add(&text, " --require ");
		mb_shell_word(&text, o->require[i].text);
	}
	args = mb_arena_strdup(&call->arena, text.data);
	mb_text_free(&text);
	return args;
}

const char *mb_run_rank_args(struct mb_call *call)
{
	return mb_arena_printf(&call->arena, "%s --rank %d", mb_run_search_args(call, false), call->options.rank);
}

int mb_run_take_rank(struct mb_call *call, struct mb_query *q)
{
	int rank = call->options.rank;
	struct mb_search_result *r = mb_arena_alloc(&call->arena, sizeof *r);

	if (!mb_run_search(call, q, mb_run_wanted_rank(rank), mb_run_limits_steer(&call->options), r))
		return MB_EXIT_USAGE;
	if (r->top_count < rank) {
		if (r->top_count == 0)
			mb_fail(&call->diags, (struct mb_pos){ 0 }, "nothing fits, so there is no plan %d", rank);
		else
			mb_fail(&call->diags, (struct mb_pos){ 0 }, "only %d plans fit, so there is no plan %d",
			        r->top_count, rank);
		return MB_EXIT_NO_FIT;
	}
	mb_cell_settle(q, r, &r->top[rank - 1]);
	return MB_EXIT_DONE;
}

void mb_quantities_of_evaluation(const struct mb_evaluation *e, struct mb_quantities *ret)
{
	*ret = (struct mb_quantities){ .value = {
		[MB_Q_STEP] = e->step_s, [MB_Q_PEAK] = e->peak_bytes, [MB_Q_USED] = e->device_used_bytes,
		[MB_Q_MARGIN] = e->margin_bytes, [MB_Q_TOKENS] = e->tokens_per_s_per_gpu,
		[MB_Q_TFLOPS] = e->model_flop_per_s_per_gpu / 1e12, [MB_Q_MFU] = e->mfu,
	} };
}

void mb_quantities_of_ranked(const struct mb_ranked *p, struct mb_quantities *ret)
{
	*ret = (struct mb_quantities){ .value = {
		[MB_Q_STEP] = p->step_s, [MB_Q_PEAK] = p->peak_bytes, [MB_Q_USED] = p->device_used_bytes,
		[MB_Q_MARGIN] = p->margin_bytes, [MB_Q_TOKENS] = p->tokens_per_s_per_gpu,
		[MB_Q_TFLOPS] = p->model_flop_per_s_per_gpu / 1e12, [MB_Q_MFU] = p->mfu,
	} };
}
