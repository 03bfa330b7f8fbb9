/*
 * Whether layouts of one workload come out in the order they were measured in, which is what a search lives on: pairs
 * of runs that share model, machine, GPUs, precision, batch, sequence and software, and differ in their parallel sizes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calib/accuracy.h"

/* Published step times scatter by a few percent between repetitions: closer pairs have no order. */
static const double apart = 0.05;

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_model(const struct mb_model *a, const struct mb_model *b)
{
	return strcmp(a->name, b->name) == 0 && a->num_layers == b->num_layers && a->hidden_size == b->hidden_size &&
	       a->vocab_size == b->vocab_size && a->num_moe_experts == b->num_moe_experts && a->mtp_num_layers == b->mtp_num_layers;
}

static bool same_workload(const struct mb_trial *a, const struct mb_trial *b)
{
	const struct mb_case *x = &a->q->c, *y = &b->q->c;
	const struct mb_run *r = &x->run, *s = &y->run;

	return same_model(&x->model, &y->model) && strcmp(x->hardware.name, y->hardware.name) == 0 &&
	       strcmp(x->stack.name, y->stack.name) == 0 && same_text(a->row->source, b->row->source) &&
	       same_text(a->row->software, b->row->software) && r->gpus == s->gpus && r->precision == s->precision &&
	       r->seq_length == s->seq_length && r->global_batch_size == s->global_batch_size && r->task == s->task;
}

static bool same_layout(const struct mb_plan *a, const struct mb_plan *b)
{
	return a->tp == b->tp && a->pp == b->pp && a->vp == b->vp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp &&
	       a->micro_batch_size == b->micro_batch_size;
}

static bool comparable(const struct mb_outcome *a, const struct mb_outcome *b)
{
	return strcmp(b->quantity, "step_s") == 0 && same_workload(a->trial, b->trial) &&
	       !same_layout(&a->trial->q->c.run.plan, &b->trial->q->c.run.plan) && fabs(log(b->measured / a->measured)) > log1p(apart);
}

static void add_pair(struct mb_accuracy *a, const struct mb_outcome *first, const struct mb_outcome *second)
{
	struct mb_pair *p;

	if (a->pair_count == a->pair_room) {
		int room = a->pair_room ? 2 * a->pair_room : 64;
		struct mb_pair *more = mb_arena_alloc(a->arena, (size_t)room * sizeof *more);

		if (a->pair_count)
			memcpy(more, a->pairs, (size_t)a->pair_count * sizeof *more);
		a->pairs = more;
		a->pair_room = room;
	}
	p = &a->pairs[a->pair_count++];
	*p = (struct mb_pair){ first, second, second->measured / first->measured, second->predicted / first->predicted, false };
	p->right = (p->measured > 1) == (p->predicted > 1);
	a->pairs_right += p->right;
}

void mb_accuracy_order(struct mb_accuracy *a)
{
	for (int i = 0; i < a->score_count; i++) {
		if (strcmp(a->scores[i].quantity, "step_s") != 0)
			continue;
		for (int j = i + 1; j < a->score_count; j++) {
			if (comparable(&a->scores[i], &a->scores[j]))
				add_pair(a, &a->scores[i], &a->scores[j]);
		}
	}
}
