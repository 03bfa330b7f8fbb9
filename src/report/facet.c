#include "report/facet.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "cost/op.h"
#include "report/number.h"

/* "moe_act,layernorm" */
static void add_set(struct mb_text *t, const struct mb_name *names, unsigned bits)
{
	const char *comma = "";

	for (unsigned bit = 1; bit != 0 && bit <= bits; bit <<= 1) {
		const char *name = bits & bit ? mb_value_name(names, (int)bit) : NULL;

		if (!name)
			continue;
		mb_text_printf(t, "%s%s", comma, name);
		comma = ",";
	}
}

static void recompute(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->recompute == MB_RECOMPUTE_FULL) {
		mb_text_printf(t, "full, %s %d", mb_value_name(mb_method_names, (int)p->recompute_method),
		               p->recompute_num_layers);
	} else if (p->recompute == MB_RECOMPUTE_SELECTIVE && p->recompute_modules) {
		add_set(t, mb_module_names, p->recompute_modules);
	} else {
		mb_text_add(t, "none");
	}
}

static void dispatch(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	if (c->model.num_moe_experts == 0)
		return;
	if (p->dispatcher == MB_DISPATCH_FLEX && p->backend != MB_BACKEND_NONE)
		mb_text_add(t, mb_value_name(mb_backend_names, (int)p->backend));
	else
		mb_text_add(t, mb_value_name(mb_dispatcher_names, (int)p->dispatcher));
	if (p->overlap_moe_expert_parallel_comm)
		mb_text_add(t, " +overlap");
	if (p->delay_wgrad_compute)
		mb_text_add(t, " +delay");
	if (p->moe_shared_expert_overlap)
		mb_text_add(t, " +shared");
}

static void expert_tp(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	if (c->model.num_moe_experts)
		mb_text_printf(t, "%d", p->etp);
}

static void sequence(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->tp > 1)
		mb_text_add(t, p->sequence_parallel ? "on" : "off");
}

static void cp_comm(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->cp == 1)
		return;
	mb_text_add(t, mb_value_name(mb_cp_comm_names, (int)p->cp_comm_type));
	if (p->cp_comm_type == MB_CP_A2A_P2P)
		mb_text_printf(t, " %d", p->cp_a2a_size);
}

static void split(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	if (p->pp == 1)
		return;
	if (p->layout >= 0 && p->layout < c->layout_count) {
		mb_text_add(t, c->layouts[p->layout].text);
		return;
	}
	if (p->first_stage_layers)
		mb_text_printf(t, "first %d ", p->first_stage_layers);
	if (p->last_stage_layers)
		mb_text_printf(t, "last %d ", p->last_stage_layers);
	if (p->account_for_embedding)
		mb_text_add(t, "+embedding ");
	if (p->account_for_loss)
		mb_text_add(t, "+loss ");
	if (t->length == 0)
		mb_text_add(t, "even ");
	t->data[--t->length] = '\0';
}

static void tp_overlap(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->tp > 1)
		mb_text_add(t, p->tp_comm_overlap ? "on" : "off");
}

static void graphs(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->cuda_graph_impl == MB_GRAPH_NONE) {
		mb_text_add(t, "none");
	} else if (p->cuda_graph_impl == MB_GRAPH_FULL || (p->cuda_graph_scope & MB_SCOPE_FULL_ITERATION)) {
		mb_text_add(t, "full iteration");
	} else {
		mb_text_printf(t, "%s ", mb_value_name(mb_graph_names, (int)p->cuda_graph_impl));
		add_set(t, mb_scope_names, p->cuda_graph_scope);
	}
}

static void offload(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->cpu_offloading)
		mb_text_printf(t, "%d layers", p->cpu_offloading_num_layers);
	else if (p->fine_grained_activation_offloading)
		add_set(t, mb_offload_names, p->offload_modules);
	else
		mb_text_add(t, "none");
}

static void optimizer(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->use_megatron_fsdp)
		mb_text_printf(t, "FSDP %s", mb_value_name(mb_sharding_names, (int)p->sharding));
	else
		mb_text_add(t, p->use_distributed_optimizer ? "sharded" : "replicated");
	if (p->optimizer_cpu_offload)
		mb_text_printf(t, ", %s %% on host", mb_number_percent(p->optimizer_offload_fraction).s);
}

static void dp_overlap(const struct mb_case *c, const struct mb_plan *p, struct mb_text *t)
{
	(void)c;
	if (p->overlap_grad_reduce)
		mb_text_add(t, p->overlap_param_gather ? "grad,param" : "grad");
	else
		mb_text_add(t, p->overlap_param_gather ? "param" : "none");
}

const struct mb_facet mb_facets[MB_FACET_COUNT] = {
	{ "recompute", "recompute",
	  { MB_K_recompute, MB_K_method, MB_K_recompute_layers, MB_K_modules, -1 }, recompute },
	{ "dispatch, overlap", "dispatcher",
	  { MB_K_dispatcher, MB_K_backend, MB_K_ep_overlap, MB_K_delay_wgrad, MB_K_shared_overlap, -1 }, dispatch },
	{ "ETP", "ETP", { MB_K_etp, -1 }, expert_tp },
	{ "SP", "SP", { MB_K_sp, -1 }, sequence },
	{ "CP type", "CP", { MB_K_cp_comm_type, MB_K_cp_sizes, -1 }, cp_comm },
	{ "split", "split",
	  { MB_K_first_layers, MB_K_last_layers, MB_K_acc_embed, MB_K_acc_loss, MB_K_layout, -1 }, split },
	{ "TP overlap", "TP overlap", { MB_K_tp_overlap, -1 }, tp_overlap },
	{ "graphs", "graphs", { MB_K_graph_impl, MB_K_graph_scope, -1 }, graphs },
	{ "offload", "offload",
	  { MB_K_cpu_offloading, MB_K_cpu_offloading_layers, MB_K_fine_offload, MB_K_offload_modules, -1 }, offload },
	{ "optimizer", "optimizer",
	  { MB_K_opt_offload, MB_K_opt_offload_fraction, MB_K_dist_opt, MB_K_fsdp, MB_K_sharding, -1 }, optimizer },
	{ "DP overlap", "DP overlap", { MB_K_grad_overlap, MB_K_param_overlap, -1 }, dp_overlap },
};

void mb_headline(struct mb_text *t, const struct mb_query *q)
{
	const struct mb_run *run = &q->c.run;

	mb_text_printf(t, "%s on ", q->c.model.name);
	if (q->gpu_choices[0] && q->gpu_choices[1]) {
		for (int i = 0; i < 64 && q->gpu_choices[i]; i++)
			mb_text_printf(t, "%s%d", i ? "," : "", q->gpu_choices[i]);
	} else {
		mb_text_printf(t, "%d", run->gpus);
	}
	mb_text_printf(t, " x %s, %s, seq %d, gbs %d", q->c.hardware.name,
	               mb_value_name(mb_precision_names, (int)run->precision), run->seq_length, run->global_batch_size);
}

void mb_layout_words(struct mb_text *t, const struct mb_plan *p)
{
	const struct { const char *name; int size; } sizes[] = {
		{ "TP", p->tp }, { "PP", p->pp }, { "CP", p->cp }, { "VP", p->vp }, { "EP", p->ep }, { "ETP", p->etp },
	};

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		if (sizes[i].size > 1 && !(i == 5 && p->ep == 1))
			mb_text_printf(t, "%s %d ", sizes[i].name, sizes[i].size);
	}
	mb_text_printf(t, "MBS %d", p->micro_batch_size);
}

void mb_kind_words(const struct mb_model *m, int kind, char *text, size_t size)
{
	static const char *const mixers[] = {
		[MB_MIXER_NONE] = "",       [MB_MIXER_ATTENTION] = "attention", [MB_MIXER_MLA] = "mla",
		[MB_MIXER_MAMBA] = "mamba", [MB_MIXER_GDN] = "gated_delta_net",
	};
	static const char *const ffns[] = { [MB_FFN_NONE] = "", [MB_FFN_DENSE] = "mlp", [MB_FFN_MOE] = "moe" };

	if (kind == MB_KIND_EMBEDDING || kind == MB_KIND_MTP || kind == MB_KIND_HEAD) {
		snprintf(text, size, "%s",
		         kind == MB_KIND_EMBEDDING ? "embedding"
		         : kind == MB_KIND_MTP     ? "mtp"
		                                   : "head_and_loss");
		return;
	}

	const struct mb_layer_kind *k = &m->kinds[kind];

	snprintf(text, size, "%s%s%s%s%s", k->windowed ? "windowed " : "", k->no_rope ? "no-rope " : "",
	         mixers[k->mixer], k->mixer && k->ffn ? "+" : "", ffns[k->ffn]);
}
