/*
 * Published layouts beside what the search finds when the layout is open and the rest is as published. Prints the tables
 * of docs/published-layouts.md. Arguments: words that the model and the hardware of a row must have, all of them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calib/predict.h"
#include "report/facet.h"
#include "report/number.h"
#include "search/search.h"

enum { LISTED = 1000, MAX_GROUPS = 128, TERMS = 2, SMALL = 10 };

/* What is kept as published in a second look at a claim, to see how much of it is left. */
static const struct held { const char *head; int keys[24]; } held[] = {
	{ "sizes and split", { MB_K_tp, MB_K_pp, MB_K_vp, MB_K_cp, MB_K_ep, MB_K_etp, MB_K_mbs, MB_K_sp, MB_K_cp_comm_type, MB_K_cp_sizes,
		MB_K_first_layers, MB_K_last_layers, MB_K_acc_embed, MB_K_acc_loss, MB_K_layout, -1 } },
	{ "micro-batch", { MB_K_mbs, -1 } },
	{ "recompute", { MB_K_recompute, MB_K_method, MB_K_recompute_layers, MB_K_modules, -1 } },
	{ "dispatcher", { MB_K_dispatcher, MB_K_backend, -1 } },
	{ "overlaps", { MB_K_ep_overlap, MB_K_delay_wgrad, MB_K_shared_overlap, MB_K_tp_overlap, MB_K_grad_overlap, MB_K_param_overlap, -1 } },
	{ "graphs", { MB_K_graph_impl, MB_K_graph_scope, -1 } },
	{ "offloading", { MB_K_cpu_offloading, MB_K_cpu_offloading_layers, MB_K_fine_offload, MB_K_offload_modules, MB_K_opt_offload,
		MB_K_opt_offload_fraction, -1 } },
	{ "sharding", { MB_K_dist_opt, MB_K_fsdp, MB_K_sharding, -1 } },
	{ "all five", { MB_K_dispatcher, MB_K_backend, MB_K_ep_overlap, MB_K_delay_wgrad, MB_K_shared_overlap, MB_K_tp_overlap, MB_K_grad_overlap,
		MB_K_param_overlap, MB_K_graph_impl, MB_K_graph_scope, MB_K_cpu_offloading, MB_K_cpu_offloading_layers, MB_K_fine_offload,
		MB_K_offload_modules, MB_K_opt_offload, MB_K_opt_offload_fraction, MB_K_dist_opt, MB_K_fsdp, MB_K_sharding, -1 } },
};
enum { HELD = sizeof held / sizeof held[0] };

/* The fastest published run of a (model, hardware, gpus), and what is said of it. */
struct group {
	const struct mb_trial *t;
	int runs;                       /* published ones of this group */
	double step_s, terms[MB_TIME_COUNT];
	enum mb_verdict verdict;
	const char *broken;             /* rule that the published layout breaks; NULL: none */
	bool found;
	struct mb_ranked best;
	double best_terms[MB_TIME_COUNT];
	int faster, sizes;              /* listed plans that are faster, and how many different sizes they have */
	bool beyond;                    /* all listed plans are faster */
	double kept_s[HELD];            /* best step with some keys as published; 0: not asked, NAN: nothing fits */
	struct mb_text best_words;
};

static struct mb_arena arena;
static struct mb_diags diags;
static struct mb_evaluation *e;

static double claim(const struct group *g, double best_s)
{
	return g->step_s / best_s - 1;
}

static bool is_large(const struct group *g)
{
	return g->found && 100 * claim(g, g->best.step_s) > SMALL;
}

/* ---- groups ---- */

static bool is_wanted(const struct mb_case *c, int count, char **words)
{
	for (int i = 0; i < count; i++)
		if (!strstr(c->model.name, words[i]) && !strstr(c->hardware.name, words[i]))
			return false;
	return true;
}

static struct group *group_of(struct group *groups, int *count, const struct mb_trial *t)
{
	const struct mb_case *c = &t->q->c;

	for (int i = 0; i < *count; i++) {
		const struct mb_case *o = &groups[i].t->q->c;

		if (strcmp(o->model.name, c->model.name) == 0 && strcmp(o->hardware.name, c->hardware.name) == 0 && o->run.gpus == c->run.gpus)
			return &groups[i];
	}
	if (*count == MAX_GROUPS)
		return NULL;
	groups[*count] = (struct group){ .t = t };
	return &groups[(*count)++];
}

static int compare_groups(const void *x, const void *y)
{
	const struct mb_case *a = &((const struct group *)x)->t->q->c, *b = &((const struct group *)y)->t->q->c;
	int order = strcmp(a->model.name, b->model.name);

	order = order ? order : strcmp(a->hardware.name, b->hardware.name);
	return order ? order : a->run.gpus - b->run.gpus;
}

static int collect(const struct mb_trials *trials, int word_count, char **words, struct group *groups)
{
	int count = 0;

	for (int i = 0; i < trials->count; i++) {
		const struct mb_trial *t = &trials->trials[i];
		struct group *g = t->tokens_per_s > 0 && is_wanted(&t->q->c, word_count, words) ? group_of(groups, &count, t) : NULL;

		if (!g)
			continue;
		g->runs++;
		if (t->tokens_per_s > g->t->tokens_per_s)
			g->t = t;
	}
	qsort(groups, (size_t)count, sizeof groups[0], compare_groups);
	return count;
}

/* ---- a group ---- */

static void evaluate_published(struct group *g)
{
	const struct mb_case *c = &g->t->q->c;
	const struct mb_rule *broken = mb_first_broken(c, &c->run.plan, MB_ALL_KEYS);

	mb_evaluate(c, &c->run.plan, e);
	g->step_s = e->step_s;
	g->verdict = e->verdict;
	memcpy(g->terms, e->time_terms, sizeof g->terms);
	g->broken = broken ? broken->id : NULL;
}

/* The run of the group, its plan open but for some keys. */
static void open_plan(const struct group *g, const int *keep, struct mb_query *ret)
{
	*ret = *g->t->q;
	for (int i = 0; i < MB_KEY_COUNT; i++)
		ret->set[i] = ret->set[i] && !mb_keys[i].open;
	for (; keep && *keep >= 0; keep++)
		ret->set[*keep] = true;
}

static bool search(const struct group *g, const int *keep, int top, struct mb_query *q, struct mb_search_result *r)
{
	struct mb_search_options options = { .top = top, .threads = getenv("MBSIM_THREADS") ? atoi(getenv("MBSIM_THREADS")) : 1 };

	open_plan(g, keep, q);
	return mb_search(q, &options, &arena, r, &diags);
}

static bool same_sizes(const struct mb_plan *a, const struct mb_plan *b)
{
	return a->tp == b->tp && a->cp == b->cp && a->pp == b->pp && a->vp == b->vp && a->ep == b->ep && a->etp == b->etp
	       && a->micro_batch_size == b->micro_batch_size;
}

static void rank_published(struct group *g, const struct mb_search_result *r)
{
	while (g->faster < r->top_count && r->top[g->faster].step_s < g->step_s) {
		int i = 0;

		while (i < g->faster && !same_sizes(&r->top[i].plan, &r->top[g->faster].plan))
			i++;
		g->sizes += i == g->faster;
		g->faster++;
	}
	g->beyond = g->faster == LISTED;
}

/* A bar would end the cell of the table. */
static void add_cell(struct mb_text *t, const char *words)
{
	for (; *words; words++)
		mb_text_printf(t, *words == '|' ? "\\%c" : "%c", *words);
}

/* Sizes, then what is not what the published layout has. */
static void describe_best(struct group *g, const struct mb_case *c)
{
	mb_layout_words(&g->best_words, &g->best.plan);
	for (int i = 0; i < MB_FACET_COUNT; i++) {
		struct mb_text was = { 0 }, is = { 0 };

		mb_facets[i].words(c, &g->t->q->c.run.plan, &was);
		mb_facets[i].words(c, &g->best.plan, &is);
		if (is.length > 0 && (was.length == 0 || strcmp(was.data, is.data) != 0)) {
			mb_text_printf(&g->best_words, "; %s ", mb_facets[i].label);
			add_cell(&g->best_words, is.data);
		}
		mb_text_free(&was);
		mb_text_free(&is);
	}
}

static void take_best(struct group *g, const struct mb_query *q, const struct mb_search_result *r)
{
	static struct mb_case c;

	c = q->c;
	c.layouts = r->layouts;
	c.layout_count = r->layout_count;
	g->found = true;
	g->best = r->top[r->recommended];
	mb_evaluate(&c, &g->best.plan, e);
	memcpy(g->best_terms, e->time_terms, sizeof g->best_terms);
	rank_published(g, r);
	describe_best(g, &c);
}

static void ask(struct group *g)
{
	static struct mb_query q;
	static struct mb_search_result r;

	evaluate_published(g);
	if (!search(g, NULL, LISTED, &q, &r) || r.recommended < 0)
		return;
	take_best(g, &q, &r);
	for (int i = 0; i < HELD && (i == 0 || is_large(g)); i++)
		g->kept_s[i] = search(g, held[i].keys, 1, &q, &r) && r.recommended >= 0 ? r.top[r.recommended].step_s : (double)NAN;
}

/* ---- tables ---- */

static void print_name(const struct group *g)
{
	const struct mb_case *c = &g->t->q->c;

	printf("| %s | %s | %d |", c->model.name, c->hardware.name, c->run.gpus);
}

static void print_published(const struct group *g)
{
	const struct mb_case *c = &g->t->q->c;
	struct mb_text words = { 0 };

	mb_layout_words(&words, &c->run.plan);
	print_name(g);
	printf(" %d | %s | %s | %s | %s |", g->runs, mb_trial_precision(g->t), words.data, mb_number_3(g->t->measured_s).s, mb_number_3(g->step_s).s);
	mb_text_free(&words);
}

static void print_percent(const struct group *g, double best_s, int decimals)
{
	printf(isnan(best_s) ? " - |" : " %.*f |", decimals, 100 * claim(g, best_s));
}

static void print_group(const struct group *g)
{
	static const char *const words[] = { [MB_FITS] = "", [MB_AT_RISK] = "at risk", [MB_OUT_OF_MEMORY] = "too large", [MB_ILLEGAL] = "illegal" };

	print_published(g);
	if (!g->found) {
		printf(" nothing fits | - | - | - | - |");
	} else {
		printf(" %s |", mb_number_3(g->best.step_s).s);
		print_percent(g, g->best.step_s, 1);
		print_percent(g, g->kept_s[0], 1);
		printf(" %s%d | %d |", g->beyond ? "> " : "", g->beyond ? LISTED : g->faster + 1, g->sizes);
	}
	printf(" %s%s%s |\n", g->broken ? "breaks " : "", g->broken ? g->broken : "", words[g->verdict]);
}

/* The terms that the best plan saves most of, with their seconds. */
static void print_terms(const struct group *g)
{
	bool told[MB_TIME_COUNT] = { false };

	for (int n = 0; n < TERMS; n++) {
		int most = -1;

		for (int i = 0; i < MB_TIME_COUNT; i++)
			if (!told[i] && (most < 0 || g->terms[i] - g->best_terms[i] > g->terms[most] - g->best_terms[most]))
				most = i;
		told[most] = true;
		printf("%s%s %.3g", n ? ", " : " ", mb_time_terms[most].label, g->terms[most] - g->best_terms[most]);
	}
	printf(" of %.3g |", g->step_s - g->best.step_s);
}

static void print_claim(const struct group *g)
{
	print_name(g);
	printf(" %.0f |", 100 * claim(g, g->best.step_s));
	print_terms(g);
	for (int i = 0; i < HELD; i++)
		print_percent(g, g->kept_s[i], 0);
	printf("\n");
}

static void print_claims(const struct group *groups, int count)
{
	printf("\n| model | hardware | GPUs | faster, %% | terms that save most, s |");
	for (int i = 0; i < HELD; i++)
		printf(" %s |", held[i].head);
	printf("\n|---|---|--:|--:|---|");
	for (int i = 0; i < HELD; i++)
		printf("--:|");
	printf("\n");
	for (int i = 0; i < count; i++)
		if (is_large(&groups[i]))
			print_claim(&groups[i]);
	printf("\n| model | hardware | GPUs | the best plan, with what it does otherwise than the published one |\n|---|---|--:|---|\n");
	for (int i = 0; i < count; i++) {
		if (!groups[i].found)
			continue;
		print_name(&groups[i]);
		printf(" %s |\n", groups[i].best_words.data);
	}
}

static int compare_numbers(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof values[0], compare_numbers);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void print_summary(const struct group *groups, int count)
{
	double claims[MAX_GROUPS], kept[MAX_GROUPS], middle;
	int n = 0, large = 0, first = 0, beyond = 0, outside = 0, kept_count = 0;

	for (int i = 0; i < count; i++) {
		const struct group *g = &groups[i];

		if (!g->found)
			continue;
		claims[n++] = 100 * claim(g, g->best.step_s);
		if (!isnan(g->kept_s[0]))
			kept[kept_count++] = 100 * claim(g, g->kept_s[0]);
		large += is_large(g);
		first += g->faster < 10;
		beyond += g->beyond;
		outside += g->step_s > g->best.high_s;
	}
	if (n == 0 || kept_count == 0)
		return;
	middle = median(claims, n);
	printf("%d groups. Faster by %.1f %% (median), %.1f to %.1f %%; by more than %d %% in %d; by more than the best plan's own band in %d."
	       " With the published sizes and split %.1f %% (median). The published plan is among our first ten in %d groups, behind our first %d in %d.\n",
	       n, middle, claims[0], claims[n - 1], SMALL, large, outside, median(kept, kept_count), first, LISTED, beyond);
}

static void print_all(const struct group *groups, int count, const struct mb_trials *trials)
{
	printf("| model | hardware | GPUs | runs | precision | published layout | measured, s | estimated, s | our best, s | faster, %% | with its sizes, %% | rank | sizes | |\n"
	       "|---|---|--:|--:|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n");
	for (int i = 0; i < count; i++)
		print_group(&groups[i]);
	for (int i = 0; i < trials->skipped_count; i++)
		printf("\nSkipped: %s: %s\n", trials->skipped[i].id, trials->skipped[i].skip);
	printf("\n");
	print_summary(groups, count);
	print_claims(groups, count);
}

int main(int argc, char **argv)
{
	static struct group groups[MAX_GROUPS];
	struct mb_library library;
	struct mb_measured_set set = { .arena = &arena };
	struct mb_trials trials;
	int count;

	e = mb_evaluation_new();
	if (!e || !mb_library_open(&library, &diags)
	    || !mb_measured_read(mb_arena_printf(&arena, "%s/tests/published/throughput.jsonl", library.root), &set, &diags)) {
		printf("%s\n", diags.count > 0 ? diags.item[0].text : "no memory");
		return 1;
	}
	mb_trials_fill(&set, &library, e, &trials);
	count = collect(&trials, argc - 1, argv + 1, groups);
	for (int i = 0; i < count; i++) {
		ask(&groups[i]);
		fprintf(stderr, "%d of %d\r", i + 1, count);
	}
	print_all(groups, count, &trials);
	for (int i = 0; i < count; i++)
		mb_text_free(&groups[i].best_words);
	mb_evaluation_free(e);
	mb_arena_free(&arena);
	return 0;
}
