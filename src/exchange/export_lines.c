#include <stdio.h>
#include <string.h>

#include "exchange/export_private.h"
#include "exchange/yaml.h"

static bool changes_learning(int key)
{
	static const int learnt[] = { MB_K_precision, MB_K_optimizer, MB_K_pao, MB_K_main_params, MB_K_main_grads, MB_K_exp_avg,
		MB_K_exp_avg_sq, MB_K_grad_fp32, MB_K_fp8_gather, MB_K_fp8_dpa, MB_K_fp8_head, MB_K_bf16_ends, MB_K_bf16_start, MB_K_bf16_end,
		MB_K_fp8_act_store, MB_K_fp32_residual, MB_K_hidden_dropout, MB_K_attention_dropout, MB_K_capacity, MB_K_pad_capacity,
		MB_K_rank_capacity, MB_K_force_balance, MB_K_router_dtype, MB_K_mtp, MB_K_per_token, MB_K_softmax_fp32, MB_K_fsdp_params,
		MB_K_fsdp_grads, MB_K_task, MB_K_packed };

	for (size_t i = 0; i < sizeof learnt / sizeof learnt[0]; i++) {
		if (learnt[i] == key)
			return true;
	}
	return false;
}

/* A key that changes what is learnt, not only how fast, with a value that is not the default of the run's framework. */
static bool learnt_key(struct mb_exporter *x, int id)
{
	const struct mb_run *run = &x->q->c.run;
	const char *otherwise = run->megatron_args ? mb_keys[id].megatron_default : mb_keys[id].bridge_default;
	char text[256];

	if (!changes_learning(id) || strcmp(otherwise, "null") == 0)
		return false;
	mb_key_format(&x->q->c, run, &mb_keys[id], text, sizeof text);
	return strcmp(text, otherwise) != 0;
}

void mb_export_line(struct mb_exporter *x, const char *word, const char *value, bool learnt)
{
	if (x->flags) {
		mb_text_add(&x->lines, word);
		if (value != NULL) {
			mb_text_add(&x->lines, " ");
			if (value[0] == '\1')
				mb_text_add(&x->lines, value + 1);      /* several words */
			else
				mb_exchange_shell_word(value, &x->lines);
		}
	} else {
		mb_exchange_shell_word(mb_arena_printf(x->arena, "%s=%s", word, value != NULL ? value : ""), &x->lines);
	}
	mb_text_add(&x->lines, learnt ? "   # changes what is learnt\n" : "\n");
}

static void header(struct mb_exporter *x, const char *name, const char *value)
{
	mb_map_say(x->arena, x->own, name, (struct mb_pos){ 0 }, value);
}

/* ---- Bridge's names ---- */

/* Where a key is not in the group `model`. [Megatron Bridge: training/config.py, comm_overlap.py, mixed_precision.py] */
static const struct { int key; const char *group, *second; } grouped[] = {
	{ MB_K_seq, "model", "dataset" }, { MB_K_gbs, "train", NULL }, { MB_K_mbs, "train", NULL },
	{ MB_K_check_nan, "rerun_state_machine", NULL },
	{ MB_K_tp_overlap, "comm_overlap", NULL }, { MB_K_p2p_overlap, "comm_overlap", NULL }, { MB_K_batch_p2p, "comm_overlap", NULL },
	{ MB_K_tp_overlap_cfg, "comm_overlap", NULL }, { MB_K_ep_overlap, "comm_overlap", NULL }, { MB_K_delay_wgrad, "comm_overlap", NULL },
	{ MB_K_grad_overlap, "comm_overlap", NULL }, { MB_K_param_overlap, "comm_overlap", NULL }, { MB_K_bucket, "comm_overlap", NULL },
	{ MB_K_defer_wgrad, "comm_overlap", NULL }, { MB_K_wgrad_limit, "comm_overlap", NULL },
	{ MB_K_dist_opt, "ddp", "optimizer" }, { MB_K_dist_opt_instances, "ddp", NULL }, { MB_K_average, "ddp", NULL },
	{ MB_K_fsdp, "ddp", "dist" }, { MB_K_sharding, "ddp", NULL }, { MB_K_fsdp_params, "ddp", NULL }, { MB_K_fsdp_grads, "ddp", NULL },
	{ MB_K_fsdp_buffers, "ddp", NULL }, { MB_K_fsdp_unit, "ddp", NULL }, { MB_K_outer_sharding, "ddp", NULL },
	{ MB_K_optimizer, "optimizer", NULL }, { MB_K_pao, "optimizer", NULL }, { MB_K_main_params, "optimizer", NULL },
	{ MB_K_main_grads, "optimizer", NULL }, { MB_K_exp_avg, "optimizer", NULL }, { MB_K_exp_avg_sq, "optimizer", NULL },
	{ MB_K_opt_offload, "optimizer", NULL }, { MB_K_opt_offload_fraction, "optimizer", NULL },
	{ MB_K_grad_fp32, "mixed_precision", NULL }, { MB_K_fp8_gather, "mixed_precision", NULL },
	{ MB_K_reuse_grad_buf, "mixed_precision", NULL }, { MB_K_fp8_dpa, "mixed_precision", NULL },
	{ MB_K_bf16_ends, "mixed_precision", NULL }, { MB_K_bf16_start, "mixed_precision", NULL }, { MB_K_bf16_end, "mixed_precision", NULL },
	{ MB_K_te_rng, "model", NULL }, { MB_K_tp_pp_dp, "dist", NULL },
};

static const char *recipe(enum mb_precision precision)
{
	static const char *const names[] = {
		[MB_BF16] = "bf16_mixed", [MB_FP16] = "fp16_mixed", [MB_FP8_CS] = "bf16_with_fp8_current_scaling_mixed",
		[MB_FP8_DS] = "bf16_with_fp8_delayed_scaling_mixed", [MB_FP8_SC] = "bf16_with_fp8_subchannel_scaling_mixed",
		[MB_FP8_MX] = "bf16_with_mxfp8_mixed", [MB_NVFP4] = "bf16_with_nvfp4_mixed", [MB_FP32] = NULL,
	};

	return names[precision];
}

static const char *compact(struct mb_exporter *x, const char *text)
{
	char *copy = mb_arena_strdup(x->arena, text), *to = copy;

	for (const char *s = copy; *s != '\0'; s++) {
		if (*s != ' ')
			*to++ = *s;
	}
	*to = '\0';
	return copy;
}

static void override_key(struct mb_exporter *x, int id, const char *text)
{
	const struct mb_key *key = &mb_keys[id];
	const char *group = "model", *second = NULL;
	const char *value = key->type == MB_KEY_SET || key->type == MB_KEY_SIZES ? compact(x, text) : text;

	if (id == MB_K_precision) {
		mb_export_line(x, "mixed_precision", recipe(x->q->c.run.precision), learnt_key(x, id));
		return;
	}
	for (size_t i = 0; i < sizeof grouped / sizeof grouped[0]; i++) {
		if (grouped[i].key == id) {
			group = grouped[i].group;
			second = grouped[i].second;
		}
	}
	mb_export_line(x, mb_arena_printf(x->arena, "%s.%s", group, key->name), value, learnt_key(x, id));
	if (second != NULL)
		mb_export_line(x, mb_arena_printf(x->arena, "%s.%s", second, key->name), value, learnt_key(x, id));
}

/* ---- Megatron-LM's flags ---- */

static void precision_flags(struct mb_exporter *x)
{
	static const char *const recipes[] = { [MB_FP8_CS] = "tensorwise", [MB_FP8_DS] = "delayed", [MB_FP8_SC] = "blockwise",
		[MB_FP8_MX] = "mxfp8", [MB_NVFP4] = NULL };
	enum mb_precision p = x->q->c.run.precision;
	bool learnt = learnt_key(x, MB_K_precision);

	mb_export_line(x, p == MB_FP16 ? "--fp16" : "--bf16", NULL, learnt);
	if (p == MB_NVFP4) {
		mb_export_line(x, "--fp4-format", "e2m1", learnt);
		mb_export_line(x, "--fp4-recipe", "nvfp4", learnt);
	} else if (p >= MB_FP8_CS && p <= MB_FP8_MX) {
		mb_export_line(x, "--fp8-format", p == MB_FP8_SC || p == MB_FP8_MX ? "e4m3" : "hybrid", learnt);
		mb_export_line(x, "--fp8-recipe", recipes[p], learnt);
	}
}

/* "[a, b]" as the words that argparse takes. */
static const char *list_words(struct mb_exporter *x, const char *text)
{
	char *copy = mb_arena_printf(x->arena, "\1%s", text), *to = copy + 1;

	for (const char *s = copy + 1; *s != '\0'; s++) {
		if (*s == ',')
			*to++ = ' ';
		else if (strchr("[] ", *s) == NULL)
			*to++ = *s;
	}
	*to = '\0';
	return copy[1] != '\0' ? copy : "none";
}

static void flag_key(struct mb_exporter *x, int id, const char *text)
{
	const struct mb_key *key = &mb_keys[id];
	const char *name = key->flag != NULL ? key->flag : key->name;
	bool truth = key->type == MB_KEY_BOOL || key->type == MB_KEY_TRISTATE, learnt = learnt_key(x, id);
	char *flag;

	if (id == MB_K_precision) {
		precision_flags(x);
		return;
	}
	if (id == MB_K_act_fusion && x->q->c.model.gated_linear_unit && x->q->c.model.activation == MB_ACT_SILU)
		name = "bias-swiglu-fusion";
	if (id == MB_K_grad_fp32 && strcmp(text, "false") == 0) {
		mb_export_line(x, "--grad-reduce-in-bf16", NULL, learnt);
		return;
	}
	flag = mb_arena_printf(x->arena, "--%s%s", truth && strcmp(text, "false") == 0 ? "no-" : "", name);
	for (char *c = flag; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
	mb_export_line(x, flag, truth ? NULL : key->type == MB_KEY_SET || key->type == MB_KEY_SIZES ? list_words(x, text) : text, learnt);
}

/* ---- what only we understand ---- */

static void version(struct mb_exporter *x, const char *name, int ours, int stacks)
{
	if (ours != stacks && ours > 0)
		header(x, name, mb_arena_printf(x->arena, "%d.%d.%d", ours / 10000, ours / 100 % 100, ours % 100));
}

static void headers(struct mb_exporter *x)
{
	const struct mb_query *q = x->q;
	struct mb_stack *plain = mb_arena_alloc(x->arena, sizeof *plain);
	struct mb_diags ignored = { 0 };

	if (x->model == NULL)
		header(x, "model", q->model_text);
	if (x->hardware != NULL)
		header(x, "hardware", x->hardware);
	header(x, "gpus", mb_arena_printf(x->arena, "%d", q->c.run.gpus));
	header(x, "stack", q->stack_text);
	for (const struct mb_node *n = q->hardware_changes != NULL ? q->hardware_changes->child : NULL; n != NULL; n = n->next)
		header(x, mb_arena_printf(x->arena, "hardware.%s", n->key->text), n->type == MB_NODE_SCALAR ? n->text : "");
	if (q->c.run.task == MB_LORA) {
		header(x, "peft.dim", mb_arena_printf(x->arena, "%d", q->c.run.lora_dim));
		header(x, "peft.target_modules", mb_arena_printf(x->arena, "[%s%s%s%s]", q->c.run.lora_targets & 1 ? "linear_qkv," : "",
		       q->c.run.lora_targets & 2 ? "linear_proj," : "", q->c.run.lora_targets & 4 ? "linear_fc1," : "",
		       q->c.run.lora_targets & 8 ? "linear_fc2" : ""));
	}
	if (q->c.run.rerun_mode_validate)
		header(x, "rerun_mode", "validate_results");
	if (!mb_stack_load(q->stack_text, (struct mb_pos){ 0 }, x->library, x->arena, plain, &ignored))
		return;
	version(x, "torch", q->c.stack.torch, plain->torch);
	version(x, "transformer_engine", q->c.stack.transformer_engine, plain->transformer_engine);
	version(x, "megatron_core", q->c.stack.megatron_core, plain->megatron_core);
	version(x, "megatron_bridge", q->c.stack.megatron_bridge, plain->megatron_bridge);
}

static bool ours_alone(struct mb_exporter *x, int id)
{
	const char *flag = mb_keys[id].flag;

	if (id == MB_K_precision)
		return x->q->c.run.precision == MB_FP32;
	return flag != NULL && flag[0] == '\0';
}

void mb_export_lines(struct mb_exporter *x)
{
	struct mb_text cannot = { 0 };
	char text[4096];

	headers(x);
	if (x->flags)
		mb_export_model_flags(x, &cannot);
	else
		mb_export_model_overrides(x);
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (!x->keys[id] || id == MB_K_gpus)
			continue;
		mb_key_format(&x->q->c, &x->q->c.run, &mb_keys[id], text, sizeof text);
		if (id == MB_K_vp && strcmp(text, "1") == 0)
			snprintf(text, sizeof text, "null");
		/* Flags have no word for null: what is not said is null, unless the default is another. */
		if (ours_alone(x, id) || (x->flags && strcmp(text, "null") == 0))
			header(x, mb_keys[id].name, compact(x, text));
		else if (x->flags)
			flag_key(x, id, text);
		else
			override_key(x, id, text);
	}
	if (cannot.length > 0 && x->model != NULL)
		mb_report(x->diags, MB_WARNING, (struct mb_pos){ 0 }, "", "Megatron-LM has no flags for this of the model:%s", cannot.data);
	mb_text_free(&cannot);
}

/* ---- a run file ---- */

static void yaml_value(struct mb_exporter *x, struct mb_node *map, int id)
{
	char text[4096];
	struct mb_pos at = { 0 };
	const char *name = mb_keys[id].name;

	mb_key_format(&x->q->c, &x->q->c.run, &mb_keys[id], text, sizeof text);
	if (id == MB_K_vp && strcmp(text, "1") == 0)
		snprintf(text, sizeof text, "null");
	if (text[0] != '[') {
		mb_map_say(x->arena, map, name, at, text);
		return;
	}
	struct mb_node *list = mb_map_new(x->arena, at);
	const struct mb_node **link = &list->child;

	list->type = MB_NODE_LIST;
	for (const char *s = text + 1; *s != '\0' && *s != ']'; s += strspn(s, ", ")) {
		size_t n = strcspn(s, ",]");
		struct mb_node *item = mb_arena_alloc(x->arena, sizeof *item);

		*item = *mb_node_scalar(x->arena, at, mb_arena_strndup(x->arena, s, n));
		*link = item;
		link = &item->next;
		list->count++;
		s += n;
	}
	mb_map_put(x->arena, map, name, at, list);
}

void mb_export_yaml(struct mb_exporter *x, struct mb_text *out)
{
	struct mb_node *map = mb_map_new(x->arena, (struct mb_pos){ 0 });
	struct mb_pos at = { 0 };

	if (x->model != NULL)
		mb_map_put(x->arena, map, "model", at, x->model);
	headers(x);
	mb_map_merge(x->arena, map, x->own);
	if (x->hardware == NULL && x->q->hardware_node != NULL)
		mb_map_put(x->arena, map, "hardware", at, x->q->hardware_node);
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		if (x->keys[id] && id != MB_K_gpus)
			yaml_value(x, map, id);
	}
	if (x->environment->count > 0)
		mb_map_put(x->arena, map, "environment", at, x->environment);
	mb_yaml_members(map, 0, out);
}
