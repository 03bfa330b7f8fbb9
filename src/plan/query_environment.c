#include "plan/query.h"

#include <stdio.h>
#include <string.h>

/* Environment variables that change memory, time or legality; all others are accepted. And Bridge's peft group. */

/* CUDA_DEVICE_MAX_CONNECTIONS and the like: capitals with an underscore. No key is written so. */
bool mb_query_is_environment(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t n = strlen(name);

	return n > 2 && name[0] >= 'A' && name[0] <= 'Z' && strspn(name, allowed) == n && strchr(name, '_') != NULL;
}

static void take_int(struct mb_reader *r, const char *name, const struct mb_node *value, int *ret)
{
	struct mb_node plain = *value;
	long long i;

	plain.quoted = false;
	if (value->type != MB_NODE_SCALAR || !mb_node_int(&plain, &i) || i < 0 || i > 65536) {
		mb_report(r->diags, MB_ERROR, value->pos, name, "%s: '%.60s' is not a whole number of 0 to 65536", name,
		          value->type == MB_NODE_SCALAR ? value->text : "[...]");
		return;
	}
	*ret = (int)i;
}

static void take_variable(struct mb_reader *r, const char *name, const struct mb_node *value)
{
	struct mb_run *run = &r->q->c.run;
	const char *text = value->type == MB_NODE_SCALAR ? value->text : "";
	bool zero = strcmp(text, "0") == 0;

	if (mb_node_is_null(value))
		return;
	if (strcmp(name, "CUDA_DEVICE_MAX_CONNECTIONS") == 0)
		take_int(r, name, value, &run->cuda_device_max_connections);
	else if (strcmp(name, "NVTE_ALLOW_NONDETERMINISTIC_ALGO") == 0)
		take_int(r, name, value, &run->nvte_allow_nondeterministic_algo);
	else if (strcmp(name, "NVTE_FWD_LAYERNORM_SM_MARGIN") == 0)
		take_int(r, name, value, &run->nvte_fwd_layernorm_sm_margin);
	else if (strcmp(name, "PYTORCH_CUDA_ALLOC_CONF") == 0 || strcmp(name, "PYTORCH_ALLOC_CONF") == 0)
		run->expandable_segments = strstr(text, "expandable_segments:True") != NULL;
	else if (strcmp(name, "CUBLAS_WORKSPACE_CONFIG") == 0)
		run->cublas_workspace_4096_8 = strstr(text, ":4096:8") != NULL;
	else if (strcmp(name, "NCCL_NVLS_ENABLE") == 0)
		run->nccl_nvls_disabled = zero;
	else if (strcmp(name, "NCCL_ALGO") == 0)
		run->nccl_nvls_disabled = run->nccl_nvls_disabled || text[0] == '^' || strstr(text, "NVLS") == NULL;
	else if (strcmp(name, "NCCL_GRAPH_REGISTER") == 0)
		run->nccl_graph_register_0 = zero;
	else if (strcmp(name, "NVTE_FUSED_ATTN") == 0)
		r->no_fused_attention = zero;
	else if (strcmp(name, "NVTE_FLASH_ATTN") == 0)
		r->no_flash_attention = zero;
}

void mb_query_environment(struct mb_reader *r, const struct mb_setting *s)
{
	bool whole = mb_query_same_name(s->name, "environment");

	if (!whole)
		take_variable(r, s->name, s->value);
	else if (!mb_node_is_null(s->value))
		mb_report(r->diags, MB_ERROR, s->value->pos, s->name, "environment: expected a mapping of variables to values");
}

/* ---- peft ---- */

/* Adapters by the linear they stand beside; those of latent attention and Mamba count with their nearest kin. */
static const struct mb_name targets[] = {
	{ "linear_qkv", 1 << 0 }, { "linear_proj", 1 << 1 }, { "linear_fc1", 1 << 2 }, { "linear_fc2", 1 << 3 },
	{ "linear_q_proj", 1 << 0 }, { "linear_q_down_proj", 1 << 0 }, { "linear_q_up_proj", 1 << 0 },
	{ "linear_kv_down_proj", 1 << 0 }, { "linear_kv_up_proj", 1 << 0 }, { "in_proj", 1 << 0 }, { "out_proj", 1 << 1 },
	{ NULL, 0 }
};

static void take_target(struct mb_reader *r, const struct mb_node *n)
{
	int bit;

	if (n->type == MB_NODE_SCALAR && mb_name_value(targets, n->text, &bit)) {
		r->q->c.run.lora_targets |= (unsigned)bit;
		return;
	}
	struct mb_diag *d = mb_report(r->diags, MB_ERROR, n->pos, "target_modules", "target_modules: unknown module '%.60s'",
	                              n->type == MB_NODE_SCALAR ? n->text : "[...]");
	snprintf(d->expected, sizeof d->expected, "linear_qkv, linear_proj, linear_fc1, linear_fc2");
}

static void take_targets(struct mb_reader *r, const struct mb_node *n)
{
	r->q->c.run.lora_targets = 0;
	if (n->type == MB_NODE_SCALAR)
		n = mb_query_sum_text(r->arena, n->pos, n->text);
	if (n->type == MB_NODE_SCALAR)
		take_target(r, n);
	for (n = n->child; n != NULL; n = n->next)
		take_target(r, n);
}

/* A member of the group, or the whole of it as null or "lora". Everything but rank and targets is learning, not size. */
void mb_query_peft(struct mb_reader *r, const struct mb_setting *s)
{
	struct mb_run *run = &r->q->c.run;
	const char *text = s->value->type == MB_NODE_SCALAR ? s->value->text : "";

	if (mb_query_same_name(s->name, "peft")) {
		if (mb_node_is_null(s->value) || strcmp(text, "none") == 0)
			return;
		if (strcmp(text, "lora") != 0) {
			mb_report(r->diags, MB_ERROR, s->value->pos, "peft", "peft: '%.60s' is not modelled, expected lora or null", text);
			return;
		}
	} else if (mb_query_same_name(s->name, "dim")) {
		take_int(r, "dim", s->value, &run->lora_dim);
	} else if (mb_query_same_name(s->name, "target_modules")) {
		take_targets(r, s->value);
	}
	r->lora = true;
}
