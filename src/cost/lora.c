/*
 * LoRA: a frozen linear and two thin products beside it, x A B added to its output. A column-parallel linear gathers its
 * input under sequence parallelism; its adapter keeps that copy, unless it is told to gather again in the backward.
 * Experts of a rank share one adapter. [Megatron Bridge peft/lora.py, peft/utils.py: ParallelLinearAdapter]
 */
#include "cost/build.h"

bool mb_build_adapted(const struct mb_build *b, unsigned target)
{
	return b->d->frozen && b->c->run.lora_dim > 0 && (b->c->run.lora_targets & target) != 0;
}

/*
 * Bytes an element that a linear keeps of its input for its weight gradient. A frozen one needs none, but its adapter
 * reads the input in bf16. [transformer_engine/pytorch/module: the input is saved if weight.requires_grad]
 */
double mb_build_input_bytes(const struct mb_build *b, unsigned target)
{
	if (b->d->frozen)
		return mb_build_adapted(b, target) ? b->d->act_bytes : 0;
	return b->d->quantised ? b->d->saved_bytes : b->d->act_bytes;
}

void mb_build_adapter(struct mb_build *b, const char *name, unsigned target, struct mb_adapter a)
{
	const struct mb_dims *d = b->d;
	double r = b->c->run.lora_dim;
	bool gathered = a.column && d->sp && !b->c->run.sequence_parallel_input_regather;
	struct mb_op *op;

	if (!mb_build_adapted(b, target))
		return;
	op = mb_build_op(b, name, MB_CLASS_GEMM, a.replayed_by);
	op->trained = true;
	op->m = a.rows;
	op->n = r;
	op->k = a.in + a.out;
	op->format = MB_FMT_BF16;
	op->forward_flops = 2 * a.rows * r * (a.in + a.out);
	op->backward_flops = 2 * op->forward_flops;
	mb_build_traffic(op, 2 * 2 * a.rows * a.out, 2 * 2 * a.rows * a.out);
	mb_build_kernels(op, 6, 10);
	mb_build_keep(op, d->act_bytes * a.rows * (r + (gathered ? a.in : 0)), a.replayed_by | MB_FULL, 0);
	if (a.column && d->sp && !gathered)     /* one gathered buffer and half of another live in the backward, read off measured peaks */
		op->replay_transient_bytes = 1.5 * d->act_bytes * a.rows * a.in;
	mb_build_weight(op, r, a.in, 1, (struct mb_weight){ .expert = a.expert });
	mb_build_weight(op, a.out, r, 1, (struct mb_weight){ .expert = a.expert });
}
