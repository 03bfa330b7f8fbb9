#include "exchange/export.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "exchange/export_private.h"
#include "exchange/import.h"
#include "exchange/yaml.h"

bool mb_export_format_find(const char *name, enum mb_export_format *ret)
{
	static const struct mb_name names[] = {
		{ "bridge", MB_EXPORT_BRIDGE }, { "megatron", MB_EXPORT_MEGATRON }, { "yaml", MB_EXPORT_YAML }, { "sbatch", MB_EXPORT_SBATCH },
		{ NULL, 0 }
	};
	int value;

	if (!mb_name_value(names, name, &value))
		return false;
	*ret = (enum mb_export_format)value;
	return true;
}

/* ---- whether two runs are the same ---- */

static bool same_key(const struct mb_query *a, const struct mb_query *b, int id)
{
	char x[4096], y[4096];

	if (id == MB_K_mtp)
		return a->c.mtp_depth == b->c.mtp_depth;
	mb_key_format(&a->c, &a->c.run, &mb_keys[id], x, sizeof x);
	mb_key_format(&b->c, &b->c.run, &mb_keys[id], y, sizeof y);
	return strcmp(x, y) == 0;
}

static bool same_environment(const struct mb_run *a, const struct mb_run *b)
{
	return a->cuda_device_max_connections == b->cuda_device_max_connections &&
	       a->nvte_allow_nondeterministic_algo == b->nvte_allow_nondeterministic_algo &&
	       a->nvte_fwd_layernorm_sm_margin == b->nvte_fwd_layernorm_sm_margin && a->expandable_segments == b->expandable_segments &&
	       a->cublas_workspace_4096_8 == b->cublas_workspace_4096_8 && a->nccl_nvls_disabled == b->nccl_nvls_disabled &&
	       a->nccl_graph_register_0 == b->nccl_graph_register_0;
}

/* Names and sources may differ; MTP depth is compared with the run. */
static bool same_model(struct mb_arena *arena, const struct mb_model *a, const struct mb_model *b)
{
	const struct mb_node *x = mb_export_model(arena, a)->child, *y;
	const struct mb_node *other = mb_export_model(arena, b);
	bool hybrid = a->family != NULL && strcmp(a->family, "hybrid") == 0;
	int count = 0;

	for (; x != NULL; x = x->next) {
		if (strcmp(x->key->text, "name") == 0 || strcmp(x->key->text, "mtp_num_layers") == 0)
			continue;
		if (!hybrid || strcmp(x->key->text, "hybrid_layer_pattern") != 0) {
			y = mb_node_get(other, x->key->text);
			if (y == NULL || strcmp(x->text, y->text) != 0)
				return false;
		}
		count++;
	}
	for (y = other->child; y != NULL; y = y->next)
		count -= strcmp(y->key->text, "name") != 0 && strcmp(y->key->text, "mtp_num_layers") != 0;
	return count == 0 && a->num_layers == b->num_layers;
}

static bool same_hardware(const struct mb_hardware *a, const struct mb_hardware *b)
{
	const double pairs[][2] = {
		{ (double)a->hbm_bytes, (double)b->hbm_bytes }, { (double)a->usable_bytes, (double)b->usable_bytes },
		{ a->hbm_bytes_per_s, b->hbm_bytes_per_s }, { a->bf16_flop_per_s, b->bf16_flop_per_s },
		{ a->fp8_flop_per_s, b->fp8_flop_per_s }, { a->fp4_flop_per_s, b->fp4_flop_per_s },
		{ a->nvlink_bytes_per_s, b->nvlink_bytes_per_s }, { a->nic_bytes_per_s, b->nic_bytes_per_s },
		{ a->host_bytes_per_s, b->host_bytes_per_s }, { a->oversubscription, b->oversubscription },
		{ a->price_usd_per_gpu_h, b->price_usd_per_gpu_h }, { a->tdp_w, b->tdp_w }, { a->nvlink_domain, b->nvlink_domain },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		if (pairs[i][0] < pairs[i][1] || pairs[i][0] > pairs[i][1])
			return false;
	}
	return true;
}

bool mb_export_same(const struct mb_query *a, const struct mb_query *b, const char **difference)
{
	struct mb_arena arena = { 0 };
	const struct mb_stack *s = &a->c.stack, *t = &b->c.stack;
	const struct mb_run *r = &a->c.run, *o = &b->c.run;
	const char *found = NULL;

	for (int id = 0; id < MB_KEY_COUNT && found == NULL; id++) {
		if (!same_key(a, b, id))
			found = mb_keys[id].name;
	}
	if (found == NULL && !same_environment(r, o))
		found = "environment";
	if (found == NULL && (r->rerun_mode_validate != o->rerun_mode_validate || (r->task == MB_LORA &&
	    (r->lora_dim != o->lora_dim || r->lora_targets != o->lora_targets))))
		found = "peft";
	if (found == NULL && (strcmp(s->name, t->name) != 0 || s->month != t->month || s->torch != t->torch ||
	    s->transformer_engine != t->transformer_engine || s->megatron_core != t->megatron_core || s->megatron_bridge != t->megatron_bridge))
		found = "stack";
	if (found == NULL && !same_hardware(&a->c.hardware, &b->c.hardware))
		found = "hardware";
	if (found == NULL && !same_model(&arena, &a->c.model, &b->c.model))
		found = "model";
	mb_arena_free(&arena);
	*difference = found;
	return found == NULL;
}

/* ---- what to write ---- */

static bool shipped(const struct mb_library *library, const char *kind, const char *name, struct mb_arena *arena)
{
	const char *const *names;
	int count = mb_library_list(library, kind, arena, &names);

	for (int i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

static const struct mb_node *environment(struct mb_arena *arena, const struct mb_run *run)
{
	const struct { const char *name; int value; } numbers[] = {
		{ "CUDA_DEVICE_MAX_CONNECTIONS", run->cuda_device_max_connections },
		{ "NVTE_ALLOW_NONDETERMINISTIC_ALGO", run->nvte_allow_nondeterministic_algo },
		{ "NVTE_FWD_LAYERNORM_SM_MARGIN", run->nvte_fwd_layernorm_sm_margin },
		{ "NCCL_NVLS_ENABLE", run->nccl_nvls_disabled ? 0 : MB_AUTO },
		{ "NCCL_GRAPH_REGISTER", run->nccl_graph_register_0 ? 0 : MB_AUTO },
	};
	struct mb_node *map = mb_map_new(arena, (struct mb_pos){ 0 });

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		if (numbers[i].value != MB_AUTO)
			mb_map_say(arena, map, numbers[i].name, (struct mb_pos){ 0 }, mb_arena_printf(arena, "%d", numbers[i].value));
	}
	if (run->expandable_segments)
		mb_map_say(arena, map, "PYTORCH_CUDA_ALLOC_CONF", (struct mb_pos){ 0 }, "expandable_segments:True");
	if (run->cublas_workspace_4096_8)
		mb_map_say(arena, map, "CUBLAS_WORKSPACE_CONFIG", (struct mb_pos){ 0 }, ":4096:8");
	return map;
}

/*
 * Sizes always; of the rest what is not the default of the framework that will read it. Defaults that follow from other
 * keys are found by reading back what was written.
 */
static void choose_keys(struct mb_exporter *x)
{
	static const int always[] = { MB_K_seq, MB_K_gbs, MB_K_mbs, MB_K_tp, MB_K_pp, MB_K_cp, MB_K_ep, MB_K_precision };
	bool run_of_megatron = x->q->c.run.megatron_args;
	char text[4096];

	for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
		x->keys[always[i]] = true;
	if (x->q->c.run.task != MB_PRETRAIN)
		x->keys[MB_K_task] = true;
	if (x->format == MB_EXPORT_YAML || x->flags == run_of_megatron)
		return;
	for (int id = 0; id < MB_KEY_COUNT; id++) {
		const char *otherwise = x->flags ? mb_keys[id].megatron_default : mb_keys[id].bridge_default;

		mb_key_format(&x->q->c, &x->q->c.run, &mb_keys[id], text, sizeof text);
		if (otherwise[0] != '\0' && strcmp(text, otherwise) != 0 && strcmp(text, "[]") != 0 && strcmp(text, "null") != 0 &&
		    !(id == MB_K_vp && x->q->c.run.plan.vp == 1))
			x->keys[id] = true;
	}
}

void mb_export_own(struct mb_exporter *x, struct mb_text *out)
{
	mb_text_add(out, "# mbsim:");
	for (const struct mb_node *n = x->own->child; n != NULL; n = n->next) {
		mb_text_add(out, " ");
		mb_exchange_shell_word(mb_arena_printf(x->arena, "%s=%s", n->key->text, n->text), out);
	}
	mb_text_add(out, "\n");
}

static void title(struct mb_exporter *x, const char *what, struct mb_text *out)
{
	mb_text_printf(out, "# %s on %d x %s: %s\n", x->q->c.model.name, x->q->c.run.gpus, x->q->c.hardware.name, what);
}

static void write_all(struct mb_exporter *x, struct mb_text *out)
{
	out->length = x->lines.length = 0;
	if (out->data != NULL)
		out->data[0] = '\0';
	x->own = mb_map_new(x->arena, (struct mb_pos){ 0 });
	if (x->format == MB_EXPORT_YAML) {
		title(x, "a run of mbsim", out);
		mb_export_yaml(x, out);
		return;
	}
	mb_export_lines(x);
	if (x->format == MB_EXPORT_SBATCH) {
		mb_export_batch(x, out);
		return;
	}
	title(x, x->flags ? "flags of Megatron-LM's pretrain_gpt.py" : "overrides of Megatron Bridge", out);
	for (const struct mb_node *n = x->environment->child; n != NULL; n = n->next)
		mb_map_say(x->arena, x->own, n->key->text, (struct mb_pos){ 0 }, n->text);
	mb_export_own(x, out);
	mb_text_addn(out, x->lines.data, x->lines.length);
}

/* Keys whose default follows from others: said only when all others have been. */
static bool derived(int id)
{
	static const int keys[] = { MB_K_etp, MB_K_p2p_overlap, MB_K_grad_fp32, MB_K_fp8_gather, MB_K_reuse_grad_buf, MB_K_mtp, MB_K_modules,
		MB_K_attn_backend, MB_K_graph_scope };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (keys[i] == id)
			return true;
	}
	return false;
}

/* Adds what the text does not say yet. False: nothing was missing, or nothing more can be said. */
static bool complete(struct mb_exporter *x, const struct mb_text *text)
{
	static const char *const names[] = { "bridge.txt", "megatron.txt", "run.yaml", "run.sbatch" };
	const char *machine[] = { "hardware=dgx-h100", NULL };
	struct mb_import *read = mb_arena_alloc(x->arena, sizeof *read);
	struct mb_diags *diags = mb_arena_alloc(x->arena, sizeof *diags);
	bool more = false;

	if (!mb_import_text(text->data, text->length, names[x->format], x->hardware == NULL && x->format != MB_EXPORT_YAML ? machine : NULL,
	                    x->library, x->arena, read, diags) || read->query == NULL) {
		mb_report(x->diags, MB_WARNING, (struct mb_pos){ 0 }, "", "not readable again: %s", diags->item[0].text);
		return false;
	}
	for (int pass = 0; pass < 2 && !more; pass++) {
		for (int id = 0; id < MB_KEY_COUNT; id++) {
			if (x->keys[id] || derived(id) != (pass == 1) || same_key(x->q, read->query, id))
				continue;
			x->keys[id] = true;
			more = true;
		}
	}
	return more;
}

static void note_machine(struct mb_exporter *x)
{
	if (x->hardware == NULL && x->format != MB_EXPORT_YAML)
		mb_report(x->diags, MB_WARNING, (struct mb_pos){ 0 }, "hardware", "the machine has no shipped name and is left out; import with "
		          "hardware=PATH");
}

bool mb_export(const struct mb_query *q, enum mb_export_format format, struct mb_library *library, struct mb_arena *arena,
               struct mb_text *out, struct mb_diags *diags)
{
	struct mb_exporter x = { .q = q, .format = format, .library = library, .arena = arena, .diags = diags };
	bool megatron = q->c.run.megatron_args || q->c.stack.framework == MB_MEGATRON_LM;

	if (q->gpu_choices[0] != 0 && q->gpu_choices[1] != 0)
		return mb_fail(diags, q->pos[MB_K_gpus], "gpus has several values, expected one");
	x.flags = format == MB_EXPORT_MEGATRON || (format == MB_EXPORT_SBATCH && megatron);
	x.whole = mb_export_model(arena, &q->c.model);
	if (!shipped(library, "models", q->model_text, arena))
		x.model = x.whole;
	if (q->hardware_text != NULL && shipped(library, "hardware", q->hardware_text, arena))
		x.hardware = q->hardware_text;
	x.environment = environment(arena, &q->c.run);
	choose_keys(&x);
	struct mb_diags *quiet = mb_arena_alloc(arena, sizeof *quiet);

	/* Each round can only add keys; defaults that follow from defaults are few deep. */
	x.diags = quiet;
	for (int round = 0; round < 8; round++) {
		memset(quiet, 0, sizeof *quiet);
		write_all(&x, out);
		if (!complete(&x, out))
			break;
	}
	for (int i = 0; i < quiet->count; i++)
		*mb_report(diags, quiet->item[i].severity, quiet->item[i].pos, "", "%s", "") = quiet->item[i];
	note_machine(&x);
	mb_text_free(&x.lines);
	return true;
}
