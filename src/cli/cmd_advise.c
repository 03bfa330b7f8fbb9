#include "cli/command.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run.h"
#include "report/advise.h"

const char mb_help_advise[] =
	"usage: mbsim advise recompute|overlap|dispatcher|oom RUN... [key=value...] [--emit]\n"
	"       mbsim advise recompute RUN... [--target SIZE]\n"
	"       mbsim advise oom RUN... [--allocated A] [--reserved R] [--device-used U] [--failed-alloc F]\n"
	"                               [--step N] [--rank K] < train.log\n"
	"\n"
	"  # which activations to recompute, and what each costs\n"
	"  mbsim advise recompute model=llama3-70b hardware=dgx-h100 gpus=64 gbs=256 seq=8192 tp=4 pp=4 vp=5\n"
	"  # whether to overlap expert-parallel communication, and with which dispatcher\n"
	"  mbsim advise overlap model=qwen3-30b-a3b hardware=dgx-h100 gpus=16 gbs=1024 seq=4096 ep=16\n"
	"  # why out of memory: a log with PyTorch's message on standard input, or its numbers as options\n"
	"  mbsim advise oom run.yaml --allocated '54.8 GiB' --failed-alloc '896 MiB' --step 2\n"
	"  # the chosen option as overrides\n"
	"  mbsim estimate run.yaml $(mbsim advise recompute run.yaml --emit)\n"
	"\n"
	"  --target SIZE    recompute: the peak to reach; without it, to fit with margin\n"
	"  --emit           only the recommended option's overrides, one a line\n"
	"  --allocated, --reserved, --device-used, --failed-alloc SIZE   oom: what the log says; a bare number is GiB\n"
	"  --step N         oom: the step that failed, 1 is the first\n"
	"  --rank K         oom: the rank that failed; else plan K of the search over the open keys\n"
	"  --format table|json|md   --output FILE   --quiet   --threads N\n"
	"\n"
	"Exit: 0 once it has advised, whatever the verdict.\n";

enum { LOG_MAX = 64 << 20, WAIT_MS = 2000 };

/* A file is read at once; a pipe may need a moment, but nobody waits for one that stays silent. */
static bool has_input(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct stat st;

	if (isatty(STDIN_FILENO) || fstat(STDIN_FILENO, &st) != 0)
		return false;
	if (S_ISREG(st.st_mode))
		return true;
	return (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) && poll(&input, 1, WAIT_MS) > 0;
}

static void read_input(struct mb_text *ret)
{
	static const size_t most = LOG_MAX;
	char block[65536];
	ssize_t n;

	if (!has_input())
		return;
	while (ret->length < most && ((n = read(STDIN_FILENO, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))) {
		if (n > 0)
			mb_text_addn(ret, block, (size_t)n);
	}
}

static void take(double given, double *ret)
{
	if (given > 0)
		*ret = given;
}

/* What the options say goes before what the log says. */
static void read_log(const struct mb_options *o, bool process_rank, struct mb_oom_log *ret)
{
	struct mb_text text = { 0 };

	mb_oom_log_init(ret);
	read_input(&text);
	if (text.length)
		mb_oom_log_read(text.data, text.length, ret);
	mb_text_free(&text);
	take(o->allocated_bytes, &ret->allocated);
	take(o->reserved_bytes, &ret->reserved);
	take(o->device_used_bytes, &ret->device_used);
	take(o->failed_bytes, &ret->failed);
	if (o->step)
		ret->step = o->step;
	if (process_rank)
		ret->rank = o->rank;
	mb_oom_log_complete(ret);
}

static bool read_topic(struct mb_call *call, enum mb_topic *ret)
{
	struct mb_options *o = &call->options;
	struct mb_pos at = { "argument 1", 0, 1 };

	for (int i = 0; i < MB_TOPIC_COUNT; i++) {
		if (strcmp(o->argv[0], mb_topic_names[i]) != 0)
			continue;
		*ret = (enum mb_topic)i;
		o->argc--;
		o->argv++;
		o->number++;
		call->args += strlen(mb_topic_names[i]) + (o->argc > 0);
		if (o->argc == 0)
			return mb_fail(&call->diags, (struct mb_pos){ 0 }, "no run given: a file or key=value; see mbsim advise --help");
		return true;
	}

	struct mb_diag *d = mb_report(&call->diags, MB_ERROR, at, "", "advise: '%.60s' is no topic", o->argv[0]);
	const char *near = mb_nearest(o->argv[0], mb_topic_names, MB_TOPIC_COUNT);

	snprintf(d->expected, sizeof d->expected, "recompute, overlap, dispatcher or oom");
	snprintf(d->nearest, sizeof d->nearest, "%s", near ? near : "");
	return false;
}

/* Options that belong to one topic. */
static bool options_fit(struct mb_call *call, enum mb_topic topic)
{
	const struct mb_options *o = &call->options;
	bool log = o->allocated_bytes > 0 || o->reserved_bytes > 0 || o->device_used_bytes > 0 || o->failed_bytes > 0 || o->step > 0;
	struct mb_pos nowhere = { 0 };

	if (o->format == MB_FORMAT_CSV)
		return mb_fail(&call->diags, nowhere, "advise prints table, json or md");
	if (topic != MB_TOPIC_RECOMPUTE && o->target_bytes > 0)
		return mb_fail(&call->diags, nowhere, "--target goes with advise recompute");
	if (topic != MB_TOPIC_OOM && log)
		return mb_fail(&call->diags, nowhere, "--allocated, --reserved, --device-used, --failed-alloc and --step go with advise oom");
	if (topic != MB_TOPIC_OOM && o->rank_given && o->rank == 0)
		return mb_fail(&call->diags, nowhere, "--rank 0 is no plan, they count from 1");
	return true;
}

static void advise(struct mb_call *call, enum mb_topic topic, const struct mb_query *q, const struct mb_oom_log *log,
                   struct mb_evaluation *e, struct mb_advice *ret)
{
	switch (topic) {
	case MB_TOPIC_RECOMPUTE:
		mb_advise_recompute(q, call->options.target_bytes, e, &call->arena, ret);
		break;
	case MB_TOPIC_OVERLAP:
		mb_advise_overlap(q, e, &call->arena, ret);
		break;
	case MB_TOPIC_DISPATCHER:
		mb_advise_dispatcher(q, e, &call->arena, ret);
		break;
	case MB_TOPIC_OOM:
	case MB_TOPIC_COUNT:
		mb_advise_oom(q, log, e, &call->arena, ret);
		break;
	}
}

static int print(struct mb_call *call, const struct mb_advice *a)
{
	struct mb_advise_report x = { a, call->args };
	struct mb_text text = { 0 };
	int status = MB_EXIT_DONE;

	if (call->options.emit_changes) {
		if (!mb_advise_emit(a, &text)) {
			mb_fail(&call->diags, (struct mb_pos){ 0 }, "no option is legal and fits, so there is nothing to emit");
			status = MB_EXIT_NO_FIT;
		}
	} else if (call->options.format == MB_FORMAT_JSON) {
		mb_advise_json(&x, &text);
	} else if (call->options.format == MB_FORMAT_MD) {
		mb_advise_markdown(&x, &text);
	} else {
		mb_advise_text(&x, &call->style, &text);
	}
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	return status;
}

/* Open keys: then --rank is a plan's, and needed. */
static bool is_open(const struct mb_query *q)
{
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		if (q->open[i] || q->alternatives[i].count > 0)
			return true;
	}
	return false;
}

int mb_cmd_advise(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_query *q = mb_arena_alloc(&call->arena, sizeof *q);
	struct mb_advice *a = mb_arena_alloc(&call->arena, sizeof *a);
	struct mb_oom_log *log = mb_arena_alloc(&call->arena, sizeof *log);
	enum mb_topic topic;
	bool plan_rank;
	int status;

	if (!read_topic(call, &topic) || !options_fit(call, topic))
		return MB_EXIT_USAGE;
	plan_rank = o->rank_given && o->rank > 0;
	if (!mb_run_load(call, !plan_rank, q))
		return MB_EXIT_USAGE;
	if (topic == MB_TOPIC_OOM && !is_open(q))
		plan_rank = false;
	if (plan_rank && (status = mb_run_take_rank(call, q)) != MB_EXIT_DONE)
		return status;
	if (plan_rank)
		call->args = mb_run_rank_args(call);
	if (topic == MB_TOPIC_OOM)
		read_log(o, o->rank_given && !plan_rank, log);

	struct mb_evaluation *e = mb_evaluation_new();

	if (!e)
		return MB_EXIT_INTERNAL;
	mb_call_report(call);
	advise(call, topic, q, log, e, a);
	status = print(call, a);
	mb_evaluation_free(e);
	return status;
}
