#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "desc/node.h"
#include "report/list.h"
#include "report/number.h"

void mb_list_models(struct mb_list *list, struct mb_library *library, struct mb_diags *diags)
{
	const char *const *names;
	int count = mb_library_list(library, "models", list->arena, &names);
	struct mb_case *c = mb_arena_alloc(list->arena, sizeof *c);

	for (int i = 0; i < count; i++) {
		const struct mb_node *node = mb_node_scalar(list->arena, (struct mb_pos){ 0 }, names[i]);
		int64_t total, mtp, active;
		char layers[32];

		memset(c, 0, sizeof *c);
		if (!mb_model_load(node, library, list->arena, &c->model, diags))
			continue;
		c->run.mtp_num_layers = MB_AUTO;
		c->mtp_depth = c->model.mtp_num_layers;
		mb_count_parameters(c, &total, &mtp, &active);
		snprintf(layers, sizeof layers, c->mtp_depth ? "%d+MTP" : "%d", c->model.num_layers);

		struct mb_list_item *item = mb_list_add(list);

		mb_list_word(list, item, "name", "NAME", names[i]);
		mb_list_number(list, item, "parameters", "params", "", MB_LIST_INT, (double)total,
		               mb_number_params((double)total).s);
		mb_list_number(list, item, "active", "active", "", MB_LIST_INT, (double)active,
		               mb_number_params((double)active).s);
		mb_list_number(list, item, "mtp", NULL, "", MB_LIST_INT, (double)mtp, mb_number_params((double)mtp).s);
		mb_list_number(list, item, "num_layers", "layers", "", MB_LIST_INT, c->model.num_layers, layers);
		mb_list_number(list, item, "hidden_size", "hidden", "", MB_LIST_INT, c->model.hidden_size, NULL);
		mb_list_number(list, item, "num_moe_experts", "experts", "", MB_LIST_INT, c->model.num_moe_experts,
		               c->model.num_moe_experts ? NULL : "-");
		mb_list_number(list, item, "moe_router_topk", NULL, "", MB_LIST_INT, c->model.moe_router_topk, NULL);
		mb_list_word(list, item, "kind", "kind", c->model.num_moe_experts ? "moe" : "dense");
		mb_list_word(list, item, "family", NULL, c->model.family);
		mb_list_word(list, item, "source", NULL, c->model.source);
	}
}

static void add_rate(struct mb_list *list, struct mb_list_item *item, const char *key, const char *head,
                     double flop_per_s)
{
	mb_list_number(list, item, key, head, "TFLOP/s", MB_LIST_NUMBER, flop_per_s,
	               flop_per_s > 0 ? mb_number_tflops(flop_per_s).s : "-");
}

void mb_list_hardware(struct mb_list *list, struct mb_library *library, struct mb_diags *diags)
{
	const char *const *names;
	int count = mb_library_list(library, "hardware", list->arena, &names);
	struct mb_hardware *hw = mb_arena_alloc(list->arena, sizeof *hw);

	for (int i = 0; i < count; i++) {
		const struct mb_node *node = mb_node_scalar(list->arena, (struct mb_pos){ 0 }, names[i]);

		memset(hw, 0, sizeof *hw);
		if (!mb_hardware_load(node, library, list->arena, hw, diags))
			continue;

		struct mb_list_item *item = mb_list_add(list);

		mb_list_word(list, item, "name", "NAME", names[i]);
		mb_list_word(list, item, "gpu", NULL, hw->gpu);
		mb_list_number(list, item, "nvlink_domain", "domain", "GPUs", MB_LIST_INT, hw->nvlink_domain, NULL);
		mb_list_number(list, item, "usable_bytes", "usable", "GiB", MB_LIST_INT, (double)hw->usable_bytes,
		               mb_number_gib((double)hw->usable_bytes).s);
		mb_list_number(list, item, "nvlink_bytes_per_s", "NVLink", "GB/s", MB_LIST_NUMBER,
		               hw->nvlink_bytes_per_s,
		               hw->nvlink_bytes_per_s > 0 ? mb_number_gb_per_s(hw->nvlink_bytes_per_s).s : "-");
		mb_list_number(list, item, "nic_bytes_per_s", "NIC", "GB/s", MB_LIST_NUMBER, hw->nic_bytes_per_s,
		               hw->nic_bytes_per_s > 0 ? mb_number_gb_per_s(hw->nic_bytes_per_s).s : "-");
		add_rate(list, item, "bf16_flop_per_s", "bf16", hw->bf16_flop_per_s);
		add_rate(list, item, "fp8_flop_per_s", "fp8", hw->fp8_flop_per_s);
		add_rate(list, item, "fp4_flop_per_s", "fp4", hw->fp4_flop_per_s);
		mb_list_number(list, item, "price_usd_per_gpu_h", "price", "$/h", MB_LIST_NUMBER,
		               hw->price_usd_per_gpu_h,
		               hw->price_usd_per_gpu_h > 0 ? mb_number_fixed(hw->price_usd_per_gpu_h, 2).s : "unknown");
		mb_list_word(list, item, "status", "status", hw->announced ? "announced" : "shipping");
		mb_list_word(list, item, "description", NULL, hw->description);
		mb_list_word(list, item, "sources", NULL, hw->sources);
		mb_list_word(list, item, "price_source", NULL, hw->price_source);
	}
}

static const char *month_text(struct mb_arena *arena, int month)
{
	return mb_arena_printf(arena, "%04d-%02d", month / 12, month % 12 + 1);
}

static const char *version_text(struct mb_arena *arena, int version)
{
	if (version == 0)
		return NULL;
	return mb_arena_printf(arena, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

void mb_list_stacks(struct mb_list *list, struct mb_library *library, struct mb_diags *diags)
{
	const char *const *names;
	int count = mb_library_list(library, "configs/stacks", list->arena, &names);
	const char *newest = mb_library_default_stack(library, list->arena);
	struct mb_stack *stack = mb_arena_alloc(list->arena, sizeof *stack);

	for (int i = 0; i < count; i++) {
		bool dated = strncmp(names[i], "mlm-", 4) != 0;
		const char *name = dated ? names[i] : mb_arena_printf(list->arena, "%s-2026-05", names[i]);

		memset(stack, 0, sizeof *stack);
		if (!mb_stack_load(name, (struct mb_pos){ 0 }, library, list->arena, stack, diags))
			continue;

		struct mb_list_item *item = mb_list_add(list);

		mb_list_word(list, item, "name", "NAME",
		             dated ? names[i] : mb_arena_printf(list->arena, "%s-YYYY-MM", names[i]));
		mb_list_word(list, item, "framework", "framework",
		             stack->framework == MB_BRIDGE ? "Megatron Bridge" : "Megatron-LM");
		mb_list_word(list, item, "month", "month", dated ? month_text(list->arena, stack->month) : "any");
		mb_list_word(list, item, "megatron_core", "Core", version_text(list->arena, stack->megatron_core));
		mb_list_word(list, item, "transformer_engine", "TE",
		             version_text(list->arena, stack->transformer_engine));
		mb_list_word(list, item, "torch", "torch", version_text(list->arena, stack->torch));
		mb_list_word(list, item, "default", "", newest && strcmp(newest, names[i]) == 0 ? "default" : "");
		mb_list_word(list, item, "source", NULL, stack->source);
	}
}
