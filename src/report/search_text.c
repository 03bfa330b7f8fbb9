#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/facet.h"
#include "report/number.h"
#include "report/search_report.h"

/* Counts of plans: with commas, in words from ten million on. */
static struct mb_number plan_count(double value)
{
	static const struct { double unit; const char *word; } words[] = {
		{ 1e15, "quadrillion" }, { 1e12, "trillion" }, { 1e9, "billion" }, { 1e6, "million" },
	};
	struct mb_number n = { "" };

	for (size_t i = 0; value >= 1e7 && i < sizeof words / sizeof words[0]; i++) {
		if (value < words[i].unit)
			continue;
		snprintf(n.s, sizeof n.s, "%.20s %s", mb_number_3(value / words[i].unit).s, words[i].word);
		return n;
	}
	return mb_number_count(value);
}

static bool is_word(const char *id, const char *word)
{
	return strncmp(id, word, strlen(word)) == 0;
}

void mb_search_accounts(const struct mb_search_report *x, const struct mb_style *s, struct mb_text *ret)
{
	const struct mb_search_result *r = x->r;
	double illegal = 0, large = 0, slow = 0;
	struct mb_text t = { 0 };

	for (int i = 0; i < r->pruned_count; i++) {
		const struct mb_prune_row *row = &r->pruned[i];

		if (is_word(row->id, "memory"))
			large += row->count;
		else if (strchr(row->id, '_') && is_word(row->id, "time"))
			slow += row->count;
		else
			illegal += row->count;
	}
	mb_text_printf(&t, "%s plans:", plan_count(r->plans_considered).s);
	mb_text_printf(&t, " %s illegal,", plan_count(illegal).s);
	mb_text_printf(&t, " %s too large,", plan_count(large).s);
	mb_text_printf(&t, " %s slower by bound,", plan_count(slow).s);
	mb_text_printf(&t, " %s evaluated.\n%s on %d %s.", plan_count(r->plans_evaluated).s,
	               mb_number_duration(r->elapsed_s).s, r->threads, r->threads == 1 ? "thread" : "threads");
	double all = illegal + large + slow + r->plans_evaluated;

	if (fabs(all - r->plans_considered) <= 1e-9 * r->plans_considered + 0.5)
		mb_text_add(&t, " Every plan is accounted for: the best is proven, not sampled.");
	mb_ink(ret, s, MB_INK_DIM, t.data);
	mb_text_add(ret, "\n");
	mb_text_free(&t);
}

static void headline(const struct mb_search_report *x, const struct mb_style *s, struct mb_text *t)
{
	struct mb_text left = { 0 }, right = { 0 };
	double price = x->q->c.hardware.price_usd_per_gpu_h;

	mb_headline(&left, x->q);
	mb_text_printf(&left, ", %s", mb_value_name(mb_task_names, (int)x->q->c.run.task));
	if (x->objective == MB_OBJECTIVE_COST && price > 0)
		mb_text_printf(&left, ", $%s per GPU-hour (hardware/%s.yaml)", mb_number_fixed(price, 2).s,
		               x->q->c.hardware.name);
	mb_text_printf(&right, "stack %s", x->q->c.stack.name);
	mb_justify(t, s, left.data, right.data);
	mb_text_free(&left);
	mb_text_free(&right);
}

static void name_ties(const struct mb_search_report *x, const int *shown, int count, struct mb_text *t)
{
	int ties[16], n = 0;

	for (int i = 0; i < count && n < 16; i++) {
		if (x->r->top[shown[i]].tie && shown[i] > 0)
			ties[n++] = shown[i] + 1;
	}
	for (int i = 0; i < n; i++)
		mb_text_printf(t, "%s%d",
		               i == 0       ? (n == 1 ? " Rank " : " Ranks ")
		               : i + 1 == n ? " and "
		                            : ", ",
		               ties[i]);
	if (n)
		mb_text_add(t, n == 1 ? " ties." : " tie.");
}

static void answer(const struct mb_search_report *x, const int *shown, int count, const struct mb_style *s,
                   struct mb_text *t)
{
	const struct mb_search_result *r = x->r;
	const struct mb_ranked *best = &r->top[r->recommended >= 0 ? r->recommended : 0];
	struct mb_text line = { 0 };

	mb_text_printf(&line, "%s: %s/step (%s to %s)", r->recommended >= 0 ? "Best" : "Only at risk",
	               mb_number_duration(best->step_s).s, mb_number_duration_like(best->low_s, best->step_s).s,
	               mb_number_duration_like(best->high_s, best->step_s).s);
	mb_text_printf(&line, ", %s tokens/s/GPU, ", mb_number_count(best->tokens_per_s_per_gpu).s);
	if (best->margin_bytes < 0)
		mb_text_add(&line, "and only with expandable segments.");
	else
		mb_text_printf(&line, "%s GiB free of %s.", mb_number_gib(best->margin_bytes).s,
		               mb_number_gib((double)x->q->c.hardware.usable_bytes).s);
	name_ties(x, shown, count, &line);
	if (s->colour)
		mb_text_add(t, "\033[1m");
	mb_wrap(t, s, 0, 0, line.data);
	if (s->colour)
		mb_text_add(t, "\033[0m");
	mb_text_free(&line);
}

static void risky(const struct mb_search_report *x, struct mb_text *t)
{
	const struct mb_search_result *r = x->r;

	if (r->recommended <= 0 || r->top[0].verdict != MB_AT_RISK)
		return;

	double usable = (double)x->q->c.hardware.usable_bytes, gain = r->top[r->recommended].step_s - r->top[0].step_s;

	if (gain > 0)
		mb_text_printf(t, "1! is %s faster", mb_number_duration(gain).s);
	else
		mb_text_add(t, "1! comes first");
	if (r->top[0].margin_bytes < 0)
		mb_text_add(t, " but needs expandable segments: at risk.\n");
	else
		mb_text_printf(t, " but %s %% from full: at risk.\n",
		               mb_number_percent(r->top[0].margin_bytes / usable).s);
}

static void most_pruned(const struct mb_search_report *x, struct mb_text *t)
{
	const struct mb_search_result *r = x->r;
	bool used[MB_MAX_PRUNE_ROWS] = { false };

	for (int n = 0; n < 3; n++) {
		int best = -1;

		for (int i = 0; i < r->pruned_count; i++) {
			if (!used[i] && r->pruned[i].count > 0 &&
			    (best < 0 || r->pruned[i].count > r->pruned[best].count))
				best = i;
		}
		if (best < 0)
			return;
		used[best] = true;
		mb_text_printf(t, "%s%s %s", n ? ", " : "Most fail ", r->pruned[best].id,
		               plan_count(r->pruned[best].count).s);
	}
	mb_text_add(t, " (mbsim list rules ID).\n");
}

static void states(const struct mb_search_report *x, struct mb_text *t)
{
	const struct mb_evaluation *e = x->closest;
	double sum = 0;

	if (!e)
		return;
	for (int i = 0; i < MB_MEM_COUNT; i++)
		sum += strchr("WGO", mb_memory_terms[i].letter) ? e->stage_memory[e->peak_stage].terms[i] : 0;
	mb_text_printf(t,
	               "Of them %s GiB are weights, gradients and optimizer states, the rest activations and "
	               "workspace.\n",
	               mb_number_gib(sum).s);
}

static int most_gpus(const struct mb_query *q)
{
	int most = q->c.run.gpus;

	for (int i = 0; i < 64 && q->gpu_choices[i]; i++)
		most = q->gpu_choices[i] > most ? q->gpu_choices[i] : most;
	return most;
}

/* Commands for one run take no alternatives and no auto. */
static bool is_one_run(const struct mb_query *q)
{
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		if (q->open[i] || q->alternatives[i].count)
			return false;
	}
	return !q->gpu_choices[0] || !q->gpu_choices[1];
}

/* A proof, then the way out; no ranking of the impossible. */
static void nothing_fits(const struct mb_search_report *x, const struct mb_style *s, struct mb_text *t)
{
	const struct mb_search_result *r = x->r;
	const struct mb_ranked *p = &r->closest;
	double usable = (double)x->q->c.hardware.usable_bytes;
	struct mb_text words = { 0 };

	mb_ink(t, s, MB_INK_RED, r->has_closest ? "Nothing fits" : "No legal plan");
	if (!r->has_closest) {
		mb_text_printf(t, ": %s plans, every one breaks a rule.\n", plan_count(r->plans_considered).s);
		most_pruned(x, t);
	} else {
		mb_layout_words(&words, &p->plan);
		mb_text_printf(t, ": the closest of %s plans is too large by %s GiB.\n\n",
		               plan_count(r->plans_considered).s, mb_number_gib(p->device_used_bytes - usable).s);
		mb_text_printf(t, "It is %s, recompute ", words.data);
		mb_facets[0].words(&x->q->c, &p->plan, t);
		mb_text_printf(t, ": %s GiB a GPU, ", mb_number_gib(p->device_used_bytes).s);
		mb_text_printf(t, "%s times the usable %s.\n", mb_number_3(p->device_used_bytes / usable).s,
		               mb_number_gib(usable).s);
		states(x, t);
		mb_text_free(&words);
	}
	mb_text_add(t, "\n");
	mb_search_accounts(x, s, t);
	mb_text_printf(t, "\nnext  mbsim search %s gpus=%d\n", x->args, 2 * most_gpus(x->q));
	if (is_one_run(x->q))
		mb_text_printf(t, "      mbsim check %s\n", x->args);
}

static bool is_folded(const int *shown, int count)
{
	for (int i = 0; i < count; i++) {
		if (shown[i] != i)
			return true;
	}
	return false;
}

static void next_lines(const struct mb_search_report *x, bool folded, const struct mb_style *s, struct mb_text *t)
{
	int best = x->r->recommended >= 0 ? x->r->recommended : 0;

	mb_text_add(t, "\n");
	mb_ink(t, s, MB_INK_DIM, "next  ");
	mb_text_printf(t, "mbsim estimate %s --rank %d\n", x->args, best + 1);
	if (folded && !x->flat)
		mb_text_printf(t, "      mbsim search %s --flat\n", x->args);
}

static void legend(const struct mb_search_report *x, const int *shown, int count, const struct mb_style *s,
                   struct mb_text *t)
{
	bool ties = false, folded = !x->flat && is_folded(shown, count);

	for (int i = 0; i < count; i++)
		ties = ties || (x->r->top[shown[i]].tie && shown[i] > 0);
	if (ties)
		mb_ink(t, s, MB_INK_DIM, "=  closer to rank 1 than the model can tell: try both.");
	if (folded)
		mb_ink_printf(t, s, MB_INK_DIM, "%sNear-copies folded; --flat shows all.", ties ? "    " : "");
	if (ties || folded)
		mb_text_add(t, "\n");
}

void mb_search_text(const struct mb_search_report *x, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };
	struct mb_text common = { 0 };
	int shown[MB_MAX_SHOWN], count = mb_search_shown(x, shown);

	headline(x, s, ret);
	if (count == 0) {
		nothing_fits(x, s, ret);
		return;
	}
	answer(x, shown, count, s, ret);
	risky(x, ret);
	mb_text_add(ret, "\n");
	mb_search_table(x, shown, count, &table);
	mb_table_print(&table, s, ret);
	legend(x, shown, count, s, ret);
	mb_search_common(x, shown, count, &common);
	if (common.length)
		mb_wrap(ret, s, 0, 0, common.data);
	if (!s->quiet) {
		mb_search_plot(x, shown, count, s, ret);
		mb_text_add(ret, "\n");
		mb_search_accounts(x, s, ret);
		next_lines(x, is_folded(shown, count), s, ret);
	}
	mb_text_free(&common);
	mb_arena_free(&arena);
}
