#include <string.h>

#include "exchange/import_private.h"

/* `to` of NULL: changes no size. Values that mean something else than their key's are turned by `turn`. */
static const struct rename {
	enum mb_dialect dialect;
	const char *from, *to;
} renames[] = {
	{ MB_DIALECT_SWIFT, "max_length", "seq_length" },
	{ MB_DIALECT_SWIFT, "load", "model" },
	{ MB_DIALECT_SWIFT, "mcore_model", "model" },
	{ MB_DIALECT_SWIFT, "model_id_or_path", "model" },
	{ MB_DIALECT_SWIFT, "train_type", "task" },
	{ MB_DIALECT_SWIFT, "tuner_type", "task" },
	{ MB_DIALECT_SWIFT, "lora_rank", "peft.dim" },
	{ MB_DIALECT_SWIFT, "packing", "packed_sequence" },
	{ MB_DIALECT_SWIFT, "padding_free", NULL },
	{ MB_DIALECT_SWIFT, "merge_lora", NULL },
	{ MB_DIALECT_SWIFT, "lora_alpha", NULL },
	{ MB_DIALECT_SWIFT, "ignore_args_error", NULL },
	{ MB_DIALECT_SWIFT, "dataset", NULL },
	{ MB_DIALECT_SWIFT, "cached_dataset", NULL },
	{ MB_DIALECT_SWIFT, "max_epochs", NULL },
	{ MB_DIALECT_SWIFT, "num_train_epochs", NULL },
	{ MB_DIALECT_SWIFT, "dataset_num_proc", NULL },
	{ MB_DIALECT_SWIFT, "split_dataset_ratio", NULL },
	{ MB_DIALECT_SWIFT, "load_safetensors", NULL },
	{ MB_DIALECT_SWIFT, "save_safetensors", NULL },
	{ MB_DIALECT_VERL, "actor_rollout_ref.model.path", "model" },
	{ MB_DIALECT_VERL, "actor_rollout_ref.actor.ppo_mini_batch_size", "global_batch_size" },
	{ MB_DIALECT_VERL, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "micro_batch_size" },
	{ MB_DIALECT_VERL, "trainer.nnodes", "nodes" },
	{ MB_DIALECT_VERL, "trainer.n_gpus_per_node", "gpus_per_node" },
	{ MB_DIALECT_VERL, "data.max_prompt_length", "prompt" },
	{ MB_DIALECT_VERL, "data.max_response_length", "response" },
	{ MB_DIALECT_VERL, "param_offload", NULL },
	{ MB_DIALECT_VERL, "grad_offload", NULL },
	{ MB_DIALECT_VERL, "optimizer_offload", NULL },
	{ MB_DIALECT_NEMO1, "trainer.num_nodes", "nodes" },
	{ MB_DIALECT_NEMO1, "trainer.devices", "gpus_per_node" },
	{ MB_DIALECT_NEMO1, "trainer.precision", "precision" },
	{ MB_DIALECT_NEMO1, "model.encoder_seq_length", "seq_length" },
	{ MB_DIALECT_NEMO1, "model.activations_checkpoint_granularity", "recompute_granularity" },
	{ MB_DIALECT_NEMO1, "model.activations_checkpoint_method", "checkpoint_method" },
	{ MB_DIALECT_NEMO1, "model.activations_checkpoint_num_layers", "checkpoint_layers" },
	{ MB_DIALECT_NEMO1, "model.megatron_amp_O2", NULL },
	{ MB_DIALECT_NEMO1, "model.optim.name", "optimizer_name" },
	{ MB_DIALECT_NEMO1, "model.bias", "model.add_bias_linear" },
};

const char *mb_import_name(const struct mb_importer *m, const char *name)
{
	for (size_t i = 0; i < sizeof renames / sizeof renames[0]; i++) {
		if (renames[i].dialect == m->dialect && strcmp(name, renames[i].from) == 0)
			return renames[i].to != NULL ? renames[i].to : "";
	}
	return NULL;
}

const char *mb_import_verl_name(const char *name)
{
	static const char *const prefixes[] = { "actor_rollout_ref.actor.megatron.override_transformer_config.",
		"actor_rollout_ref.actor.megatron." };

	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], n) == 0 && strchr(name + n, '.') == NULL)
			return name + n;
	}
	return NULL;
}
