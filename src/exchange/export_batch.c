#include <stdio.h>
#include <string.h>

#include "exchange/export_private.h"
#include "exchange/yaml.h"

/*
 * A batch script for Slurm around overrides or flags. Paths are left to variables: nothing of this machine is in it.
 */

static void add_int(struct mb_exporter *x, struct mb_node *map, const char *name, int value)
{
	if (mb_node_get(x->environment, name) == NULL)
		mb_map_say(x->arena, map, name, (struct mb_pos){ 0 }, mb_arena_printf(x->arena, "%d", value));
}

/*
 * What the plan needs and the run does not set. [Megatron Bridge scripts/performance: one connection for TP and CP up to
 * Hopper, so that kernels start in order; 32 where two streams must run side by side, 8 for alltoall]
 */
static const struct mb_node *needed(struct mb_exporter *x)
{
	const struct mb_case *c = &x->q->c;
	const struct mb_plan *p = &c->run.plan;
	struct mb_node *map = mb_map_new(x->arena, (struct mb_pos){ 0 });
	bool flex = p->dispatcher == MB_DISPATCH_FLEX, blackwell = c->hardware.architecture >= MB_BLACKWELL;

	if (p->overlap_moe_expert_parallel_comm && !flex)
		add_int(x, map, "CUDA_DEVICE_MAX_CONNECTIONS", 8);
	else if (blackwell || (p->overlap_moe_expert_parallel_comm && flex))
		add_int(x, map, "CUDA_DEVICE_MAX_CONNECTIONS", 32);
	else if (p->tp > 1 || p->cp > 1)
		add_int(x, map, "CUDA_DEVICE_MAX_CONNECTIONS", 1);
	if (p->tp_comm_overlap || p->overlap_moe_expert_parallel_comm) {
		add_int(x, map, "NVTE_FWD_LAYERNORM_SM_MARGIN", 16);
		add_int(x, map, "NVTE_BWD_LAYERNORM_SM_MARGIN", 16);
	}
	if (flex && p->backend == MB_BACKEND_HYBRIDEP && p->ep > 1) {
		int domain = c->domain > 0 ? c->domain : 1;

		add_int(x, map, "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN", p->ep < domain ? p->ep : domain);
		add_int(x, map, "NVLINK_DOMAIN_SIZE", c->hardware.nvlink_domain);
		add_int(x, map, "USE_MNNVL", c->hardware.nvlink_domain > c->hardware.gpus_per_node);
	}
	if (p->cuda_graph_impl != MB_GRAPH_NONE)
		add_int(x, map, "NCCL_GRAPH_REGISTER", 0);
	if (p->pp >= 8)
		add_int(x, map, "NCCL_P2P_NET_CHUNKSIZE", 2097152);
	return map;
}

static void exports(const struct mb_node *map, struct mb_text *out)
{
	for (const struct mb_node *n = map->child; n != NULL; n = n->next) {
		mb_text_printf(out, "export %s=", n->key->text);
		mb_exchange_shell_word(n->text, out);
		mb_text_add(out, "\n");
	}
}

void mb_export_batch(struct mb_exporter *x, struct mb_text *out)
{
	const struct mb_case *c = &x->q->c;
	int per_node = c->hardware.gpus_per_node > 0 && c->run.gpus % c->hardware.gpus_per_node == 0 ? c->hardware.gpus_per_node :
		c->run.gpus < 8 ? c->run.gpus : 1;
	const struct mb_node *added = needed(x);

	mb_text_printf(out, "#!/bin/bash\n#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n#SBATCH --gpus-per-node=%d\n",
	               c->run.gpus / per_node, per_node, per_node);
	mb_export_own(x, out);
	mb_text_add(out, "\n");
	exports(x->environment, out);
	if (added->count > 0) {
		mb_text_add(out, "# mbsim: added\n");
		exports(added, out);
		mb_text_add(out, "# mbsim: end\n");
	}
	mb_text_add(out, "\nARGS=(\n");
	for (const char *s = x->lines.data; s != NULL && *s != '\0'; s += strcspn(s, "\n") + 1)
		mb_text_printf(out, "\t%.*s\n", (int)strcspn(s, "\n"), s);
	mb_text_add(out, ")\n\n");
	if (x->flags)
		mb_text_add(out, "srun python \"${MEGATRON_LM:?set it to your copy of Megatron-LM}\"/pretrain_gpt.py \"${ARGS[@]}\" \"$@\"\n");
	else
		mb_text_add(out, "srun python \"${RECIPE:?set it to your script of Megatron Bridge without .py}\".py \"${ARGS[@]}\" \"$@\"\n");
}
