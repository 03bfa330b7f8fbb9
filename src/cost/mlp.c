/* Dense feed-forward layers. */
#include "cost/build.h"

/* Mid-layer traffic: the activation reads its inputs and writes one, backward reads and writes the gradients too. */
static struct mb_op *activation(struct mb_build *b, const char *name, double elements, unsigned replayed_by)
{
	double g = mb_build_gate(&b->c->model);
	struct mb_op *op = mb_build_op(b, name, MB_CLASS_ELEMENTWISE, replayed_by);

	mb_build_traffic(op, (g + 1) * 2 * elements, (2 * g + 1) * 2 * elements);
	mb_build_kernels(op, 1, 2);
	return op;
}

static double host_mlp(const struct mb_build *b)
{
	return 22 + (b->d->quantised ? 6 : 0) + (b->d->tp > 1 ? 8 : 0);
}

void mb_build_mlp(struct mb_build *b)
{
	const struct mb_model *m = &b->c->model;
	const struct mb_run *r = &b->c->run;
	const struct mb_dims *d = b->d;
	double g = mb_build_gate(m), h = m->hidden_size, f = (double)m->ffn_hidden_size / d->tp;
	unsigned norm_module = r->transformer_impl == MB_IMPL_LOCAL ? MB_LAYERNORM_MODULE : 0;
	unsigned gone = MB_MLP | MB_FULL;
	struct mb_op *op;

	op = mb_build_norm(b, "pre_mlp_norm", MB_MLP | norm_module, mb_build_input_bytes(b, MB_TARGET_FC1) * d->local_tokens * h, gone | norm_module, MB_OFF_MLP_NORM);
	mb_build_host(b, op, host_mlp(b), 12, MB_SCOPE_MLP);
	op = mb_build_linear(b, (struct mb_linear){ "linear_fc1", d->tokens, g * f, h, MB_MLP, MB_COLUMN, h, false });
	mb_build_keep(op, (r->activation_func_fp8_input_store ? 1 : d->act_bytes) * d->tokens * g * f, gone, 0);
	if (m->add_bias_linear)
		mb_build_weight(op, g * f, 1, 1, (struct mb_weight){ 0 });
	mb_build_adapter(b, "lora_fc1", MB_TARGET_FC1, (struct mb_adapter){ d->tokens, g * f, h, true, false, MB_MLP });
	op = activation(b, "activation", d->tokens * f, MB_MLP);
	if (m->gated_linear_unit && !r->bias_activation_fusion)
		mb_build_keep(op, d->act_bytes * d->tokens * f, gone, 0);
	op = mb_build_linear(b, (struct mb_linear){ "linear_fc2", d->tokens, h, f, MB_MLP, MB_ROW, h, false });
	mb_build_keep(op, mb_build_input_bytes(b, MB_TARGET_FC2) * d->tokens * f, gone, 0);
	if (m->add_bias_linear)
		mb_build_weight(op, h, 1, 1, (struct mb_weight){ 0 });
	mb_build_adapter(b, "lora_fc2", MB_TARGET_FC2, (struct mb_adapter){ d->tokens, h, f, false, false, MB_MLP });
	mb_build_residual(b, "mlp_residual");
}
