/* Nothing fits: the proof where there is one, and what would make it fit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/explain.h"
#include "cost/states.h"
#include "desc/node.h"

void mb_open_query(const struct mb_query *q, struct mb_query *ret)
{
	*ret = *q;
	for (int i = 0; i < MB_KEY_COUNT; i++) {
		if (!mb_keys[i].open)
			continue;
		ret->set[i] = false;
		ret->open[i] = false;
		ret->alternatives[i].count = 0;
	}
	ret->gpu_choices[0] = 0;
}

/* Bytes of a parameter however it is spread: weight, gradient, master weight and moments, each once. */
static double bytes_per_param(const struct mb_case *c)
{
	const struct mb_run *r = &c->run;
	static const double of_dtype[] = { [MB_DT_FP32] = 4, [MB_DT_BF16] = 2, [MB_DT_FP16] = 2, [MB_DT_FP8] = 1 };
	double moments = r->use_precision_aware_optimizer ? of_dtype[r->exp_avg_dtype] + of_dtype[r->exp_avg_sq_dtype] : 8;

	if (r->optimizer == MB_SGD || r->optimizer == MB_MUON)
		moments = 4;
	return (r->precision == MB_FP32 ? 4 : 2 + 4) + mb_gradient_bytes(c, &r->plan) + moments;
}

static void prove(struct mb_explanation *x)
{
	const struct mb_case *c = &x->q->c;
	int64_t total, mtp, active;
	double room = (double)c->hardware.usable_bytes;

	if (c->run.task == MB_LORA)
		return;
	mb_count_parameters(c, &total, &mtp, &active);
	x->state_bytes_per_param = bytes_per_param(c);
	x->state_bytes = x->state_bytes_per_param * (double)(total + (c->mtp_depth > 0 ? mtp : 0));
	x->gpus_for_states = (int)ceil(x->state_bytes / room);
	x->states_prove_it = x->gpus_for_states > c->run.gpus;
}

static bool search_fits(const struct mb_query *q, int threads, struct mb_arena *arena, struct mb_ranked *ret)
{
	struct mb_search_options options = { .top = 1, .threads = threads };
	struct mb_search_result *r = mb_arena_alloc(arena, sizeof *r);
	struct mb_diags diags = { 0 };

	if (!mb_search(q, &options, arena, r, &diags) || r->top_count == 0)
		return false;
	*ret = r->top[0];
	return true;
}

/* The fewest GPUs, doubling, on which something fits. */
static void add_way(struct mb_explanation *x, struct mb_query *q, int from, bool learning, const char *words, int threads, struct mb_arena *arena)
{
	struct mb_way_out *w = &x->ways[x->way_count];

	if (x->way_count == MB_MAX_WAYS_OUT)
		return;
	*w = (struct mb_way_out){ .learning = learning };
	snprintf(w->words, sizeof w->words, "%s", words);
	for (int gpus = from; gpus <= 64 * x->q->c.run.gpus && gpus <= 65536; gpus *= 2) {
		q->c.run.gpus = gpus;
		mb_case_compile(&q->c);
		if (search_fits(q, threads, arena, &w->plan)) {
			w->gpus = gpus;
			w->found = true;
			x->way_count++;
			return;
		}
	}
}

static void narrow_states(struct mb_query *q)
{
	q->c.run.use_precision_aware_optimizer = true;
	q->c.run.exp_avg_dtype = q->c.run.exp_avg_sq_dtype = MB_DT_BF16;
	q->c.run.main_grads_dtype = MB_DT_BF16;
	q->c.run.grad_reduce_in_fp32 = false;
	q->set[MB_K_pao] = true;
}

static bool load_machine(const char *name, struct mb_library *library, struct mb_arena *arena, struct mb_hardware *ret)
{
	struct mb_node node = { .type = MB_NODE_SCALAR, .text = name };
	struct mb_diags diags = { 0 };

	return mb_hardware_load(&node, library, arena, ret, &diags);
}

/* Machines with more memory that are widely sold; the smallest that helps. */
static void add_machine(struct mb_explanation *x, struct mb_query *q, int threads, struct mb_library *library, struct mb_arena *arena)
{
	static const char *const machines[] = { "dgx-h200", "gb200-nvl72", "dgx-b300" };
	const struct mb_query given = *q;

	for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
		char words[96];
		int before = x->way_count;

		*q = given;
		if (!load_machine(machines[i], library, arena, &q->c.hardware) || q->c.hardware.usable_bytes < given.c.hardware.usable_bytes * 5 / 4)
			continue;
		snprintf(words, sizeof words, "%.40s instead of %.40s", machines[i], given.c.hardware.name);
		add_way(x, q, x->q->c.run.gpus, false, words, threads, arena);
		if (x->way_count > before && x->ways[before].gpus == x->q->c.run.gpus)
			return;
	}
}

void mb_explain_nothing_fits(struct mb_explanation *x, int threads, struct mb_library *library, struct mb_arena *arena)
{
	struct mb_query *q = mb_arena_alloc(arena, sizeof *q);
	char words[96];

	x->nothing_fits = true;
	prove(x);
	mb_open_query(x->q, q);
	if (x->states_prove_it)
		snprintf(words, sizeof words, "more GPUs (%d for the states alone)", x->gpus_for_states);
	else
		snprintf(words, sizeof words, "more GPUs");
	add_way(x, q, 2 * x->q->c.run.gpus, false, words, threads, arena);
	if (x->q->c.run.optimizer == MB_ADAM && x->q->c.run.task != MB_LORA) {
		mb_open_query(x->q, q);
		narrow_states(q);
		snprintf(words, sizeof words, "bf16 gradients and moments, %.0f B each", bytes_per_param(&q->c));
		add_way(x, q, x->q->c.run.gpus, true, words, threads, arena);
	}
	mb_open_query(x->q, q);
	if (library)
		add_machine(x, q, threads, library, arena);
}
