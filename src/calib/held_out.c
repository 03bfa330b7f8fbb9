#include "calib/held_out.h"

#include <math.h>

const char *const mb_leave_names[] = {
	[MB_LEAVE_GROUP]    = "each model, GPU and precision left out",
	[MB_LEAVE_MODEL]    = "each model left out",
	[MB_LEAVE_HARDWARE] = "each GPU left out",
	[MB_LEAVE_STACK]    = "each stack left out",
};

int mb_accuracy_leave(struct mb_fit *fit, enum mb_leave leave, struct mb_accuracy *a)
{
	double *errors = mb_arena_alloc(a->arena, (size_t)fit->count * sizeof *errors);
	int groups = mb_fit_leave_out(fit, leave, errors), inside = 0;

	for (int i = 0; i < fit->count; i++) {
		const struct mb_trial *t = fit->trials[i];

		mb_evaluate(&t->q->c, &t->q->c.run.plan, fit->e);
		/* The band is a share of the prediction, whatever the parameters. */
		double predicted = 1 + errors[i], scale = predicted / fit->e->step_s;

		inside += fit->e->low_s * scale <= 1 && 1 <= fit->e->high_s * scale;
	}
	struct mb_summary s = mb_summarise(errors, fit->count, inside);

	s.by = "left out";
	s.group = mb_leave_names[leave];
	s.quantity = "step_s";
	s.kind = "time";
	if (groups > 1)
		mb_accuracy_add(a, s);
	return groups;
}

void mb_accuracy_held_out(const struct mb_trials *trials, struct mb_evaluation *e, struct mb_accuracy *a)
{
	struct mb_fit fit = { .arena = a->arena, .e = e };
	struct mb_fit_options options = { .loosen = 1, .from_priors = true, .whole_runs = true };
	struct mb_diags diags = { 0 };

	if (!mb_fit_prepare(&fit, trials, &options, &diags) || fit.count < MB_HELD_OUT_RUNS || fit.count > MB_HELD_OUT_MOST)
		return;
	if (!mb_fit_solve(&fit, &diags))
		return;
	for (enum mb_leave leave = MB_LEAVE_GROUP; leave <= MB_LEAVE_HARDWARE; leave++) {
		int before = a->summary_count;

		if (mb_accuracy_leave(&fit, leave, a) < MB_HELD_OUT_GROUPS)
			a->summary_count = before;
	}
	mb_fit_apply(&fit, NULL);
}
