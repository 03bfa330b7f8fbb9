#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "desc/node_source.h"
#include "report/calibrate.h"

const char mb_help_calibrate[] =
	"usage: mbsim calibrate MEASURED... [hardware=NAME] [--by model|gpu|stack] [--output FILE.yaml]\n"
	"\n"
	"  # fit the fitted parameters of the time model to your own runs: a heading of run keys and step_s\n"
	"  mbsim calibrate measured.csv --output mine.yaml\n"
	"  mbsim estimate run.yaml hardware=mine.yaml stack=mine-stack.yaml\n"
	"  # rate and fixed time of a link from nccl-tests\n"
	"  mbsim calibrate all_reduce.log hardware=dgx-h100\n"
	"  # how well the fit speaks for a model it has not seen\n"
	"  mbsim calibrate tests/published/throughput.jsonl --by model --from-priors\n"
	"\n"
	"  --output FILE.yaml   a machine with the fitted values, and FILE-stack.yaml with those of the stack\n"
	"  --by GROUPING        leave out each model, GPU or stack (default: model, GPU and precision together)\n"
	"  --free A,B           further parameters that are free; those marked fitted: always are\n"
	"  --from-priors        start from what was expected before the shipped fit, as if its runs had not been seen\n"
	"  --loosen F           take priors that were fitted for F times as uncertain (default 1)\n"
	"  --format table|json  --quiet\n"
	"\n"
	"What the runs cannot determine stays at the prior. Names: mbsim estimate RUN... --assumptions\n";

enum { MAX_LINKS = 16 };

struct work {
	struct mb_call *call;
	struct mb_measured_set set;
	struct mb_trials trials;
	struct mb_accuracy accuracy;
	struct mb_fit fit;
	struct mb_hardware hardware;
	bool has_hardware;
	struct mb_link_fit links[MAX_LINKS];
	int link_count;
	const char *written[3];
	int changed;
};

/* ---- input ---- */

static bool take_hardware(struct work *w, const char *name, int argument)
{
	struct mb_pos at = { mb_arena_printf(&w->call->arena, "argument %d", argument + 1), 0, 10 };

	w->has_hardware = true;
	return mb_hardware_load(mb_node_scalar(&w->call->arena, at, name), &w->call->library, &w->call->arena, &w->hardware,
	                        &w->call->diags);
}

static bool take_log(struct work *w, const char *path, const char *text)
{
	if (!w->has_hardware)
		return mb_fail(&w->call->diags, (struct mb_pos){ .file = path }, "which machine is this log of: add hardware=NAME");
	if (w->link_count == MAX_LINKS)
		return mb_fail(&w->call->diags, (struct mb_pos){ .file = path }, "more than %d logs", MAX_LINKS);
	return mb_nccl_fit(text, path, &w->hardware, &w->links[w->link_count++], &w->call->diags);
}

static bool take_file(struct work *w, const char *path)
{
	size_t length;
	const char *text = mb_source_read(path, &w->call->arena, &length, &w->call->diags);

	if (!text)
		return false;
	return mb_nccl_recognise(text) ? take_log(w, path, text) : mb_measured_read(path, &w->set, &w->call->diags);
}

static bool read_input(struct work *w)
{
	const struct mb_options *o = &w->call->options;

	for (int i = 0; i < o->argc; i++) {
		if (strncmp(o->argv[i], "hardware=", 9) == 0 && !take_hardware(w, o->argv[i] + 9, i))
			return false;
	}
	for (int i = 0; i < o->argc; i++) {
		if (strncmp(o->argv[i], "hardware=", 9) != 0 && !take_file(w, o->argv[i]))
			return false;
	}
	return true;
}

/* ---- the fit ---- */

static void add_errors(struct work *w, const double *x, const char *name)
{
	double *errors = mb_arena_alloc(&w->call->arena, (size_t)w->fit.count * sizeof *errors);
	struct mb_summary s;

	mb_fit_errors(&w->fit, x, errors);
	s = mb_summarise(errors, w->fit.count, -1);
	s.by = "all";
	s.group = name;
	s.quantity = "step_s";
	s.kind = "time";
	mb_accuracy_add(&w->accuracy, s);
}

static enum mb_leave leave_of(const char *by)
{
	if (!by || strcmp(by, "group") == 0)
		return MB_LEAVE_GROUP;
	return strcmp(by, "model") == 0 ? MB_LEAVE_MODEL : strcmp(by, "stack") == 0 ? MB_LEAVE_STACK : MB_LEAVE_HARDWARE;
}

static bool fit(struct work *w, struct mb_evaluation *e)
{
	const struct mb_options *o = &w->call->options;
	struct mb_fit_options options = { .loosen = o->loosen > 0 ? o->loosen : 1, .also = o->also_free,
		.from_priors = o->from_priors };
	double *x;

	w->fit.e = e;
	mb_trials_fill(&w->set, &w->call->library, e, &w->trials);
	if (w->set.count == 0)
		return true;
	if (!mb_fit_prepare(&w->fit, &w->trials, &options, &w->call->diags) || !mb_fit_solve(&w->fit, &w->call->diags))
		return false;
	x = mb_arena_alloc(&w->call->arena, (size_t)w->fit.free_count * sizeof *x);
	mb_fit_values(&w->fit, x);
	add_errors(w, NULL, "as shipped");
	add_errors(w, x, "fitted, on the same runs");
	mb_accuracy_leave(&w->fit, leave_of(o->by), &w->accuracy);
	return true;
}

/* ---- files ---- */

/* Runs on one machine name it; on several the machine must be said. */
static const struct mb_trial *machine_of(struct work *w)
{
	const struct mb_trial *found = NULL;

	for (int i = 0; i < w->fit.count; i++) {
		const struct mb_trial *t = w->fit.trials[i];

		if (w->has_hardware && strcmp(t->q->c.hardware.name, w->hardware.name) != 0)
			continue;
		if (found && strcmp(t->q->c.hardware.name, found->q->c.hardware.name) != 0) {
			mb_fail(&w->call->diags, (struct mb_pos){ 0 }, "the runs are of several machines: add hardware=NAME to say which to write");
			return NULL;
		}
		/* Its newest stack is what the next run will use. */
		if (!found || t->q->c.stack.month > found->q->c.stack.month)
			found = t;
	}
	if (!found)
		mb_fail(&w->call->diags, (struct mb_pos){ 0 }, "no measured run is on %s", w->hardware.name);
	return found;
}

static bool write_stack(struct work *w, const char *text)
{
	const char *path = w->call->options.output, *dot = strrchr(path, '.');
	int stem = dot && !strchr(dot, '/') ? (int)(dot - path) : (int)strlen(path);
	struct mb_output out;
	struct mb_text copy = { 0 };

	w->written[1] = mb_arena_printf(&w->call->arena, "%.*s-stack.yaml", stem, path);
	if (!mb_output_open(&out, w->written[1]))
		return false;
	mb_text_add(&copy, text);
	mb_output_text(&out, &copy);
	mb_text_free(&copy);
	return mb_output_close(&out, true);
}

static void write_links(const struct work *w, struct mb_text *text)
{
	mb_text_printf(text, "extends: %s\nsource: \"measured with nccl-tests; the rest as %s\"\n\nefficiency:\n", w->hardware.name,
	               w->hardware.name);
	for (int i = 0; i < w->link_count; i++) {
		const struct mb_link_fit *l = &w->links[i];

		mb_text_printf(text, "  %s: {measured: %.3f, sigma: %.2f, source: \"nccl-tests, %d ranks, %s\"}\n",
		               l->across ? "scale_out_collective_frac" : "nvlink_collective_frac", l->frac < 1 ? l->frac : 1,
		               l->error_frac > 0.01 ? l->error_frac : 0.01, l->ranks, l->file);
		if (i == 0 && l->latency_s > 0)
			mb_text_printf(text, "  collective_latency_s: {measured: %.1f us, sigma: 0.2, source: \"nccl-tests, %d ranks, %s\"}\n",
			               l->latency_s * 1e6, l->ranks, l->file);
	}
}

static bool write_files(struct work *w)
{
	struct mb_text machine = { 0 }, stack = { 0 };
	bool ok = true;

	w->written[0] = w->call->options.output;
	if (w->fit.count) {
		const struct mb_trial *t = machine_of(w);

		if (!t)
			return false;
		const char *measured = mb_arena_printf(&w->call->arena, "%s", w->call->options.argv[0]);

		w->changed = mb_fit_write(&w->fit, t, true, measured, &machine);
		int more = mb_fit_write(&w->fit, t, false, measured, &stack);

		w->changed += more;
		ok = more == 0 || write_stack(w, stack.data);
	} else {
		write_links(w, &machine);
		w->changed = 2 * w->link_count;
	}
	mb_output_text(&w->call->out, &machine);
	mb_text_free(&machine);
	mb_text_free(&stack);
	return ok;
}

int mb_cmd_calibrate(struct mb_call *call)
{
	struct work *w = mb_arena_alloc(&call->arena, sizeof *w);
	struct mb_evaluation *e = mb_evaluation_new();
	struct mb_text text = { 0 };
	struct mb_style style = mb_style_of(stdout, call->options.quiet);
	int status = MB_EXIT_USAGE;

	w->call = call;
	w->set.arena = w->accuracy.arena = w->fit.arena = &call->arena;
	if (e && read_input(w) && fit(w, e) && (!call->options.output || write_files(w))) {
		struct mb_calibration x = { .fit = w->fit.count ? &w->fit : NULL, .accuracy = &w->accuracy, .trials = &w->trials,
			.links = w->links, .link_count = w->link_count, .written = w->written, .changed = w->changed, .args = call->args };

		if (call->options.format == MB_FORMAT_JSON)
			mb_calibration_json(&x, &text);
		else
			mb_calibration_text(&x, &style, &text);
		/* With --output the descriptor goes to the file, what was found to the terminal. */
		fputs(text.data, stdout);
		status = MB_EXIT_DONE;
	}
	mb_text_free(&text);
	mb_evaluation_free(e);
	return e ? status : MB_EXIT_INTERNAL;
}
