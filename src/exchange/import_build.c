#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "exchange/import_private.h"

static void add_name(char *list, size_t size, int *count, const char *name)
{
	size_t used = strlen(list);

	if (strstr(list, name) != NULL)
		return;
	if (++*count <= 12 && used + strlen(name) + 8 < size)
		snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

static void unknown(struct mb_importer *m, const struct mb_said *s)
{
	if (m->unknown_count == 0)
		m->unknown_pos = s->pos;
	add_name(m->unknown, sizeof m->unknown, &m->unknown_count, mb_arena_printf(m->arena, "%s%.60s", s->flag ? "--" : "", s->name));
}

static void open_variable(struct mb_importer *m, const struct mb_said *s)
{
	if (m->open_count == 0)
		m->open_pos = s->pos;
	add_name(m->open, sizeof m->open, &m->open_count, s->unresolved);
}

/* ---- values ---- */

static const char *text_of(const struct mb_node *n)
{
	return n->type == MB_NODE_SCALAR ? n->text : "";
}

/* "torch.bfloat16" is known; "AttnBackend.auto" and "['p2p']" are how a log prints what flags call auto and p2p. */
static const struct mb_node *tidy(struct mb_importer *m, const struct mb_key *key, const struct mb_node *n)
{
	const char *s = text_of(n);
	bool truth;

	if ((key->type == MB_KEY_BOOL || key->type == MB_KEY_TRISTATE) && (strcmp(s, "True") == 0 || strcmp(s, "False") == 0) &&
	    mb_node_bool(n, &truth))
		return mb_node_scalar(m->arena, n->pos, truth ? "true" : "false");
	if (key->type == MB_KEY_ENUM && n->type == MB_NODE_LIST && n->count == 1)
		return n->child;
	if (key->type == MB_KEY_ENUM && strncmp(s, "['", 2) == 0)
		return mb_node_scalar(m->arena, n->pos, mb_arena_strndup(m->arena, s + 2, strcspn(s + 2, "'")));
	if (key->type == MB_KEY_ENUM && (strncmp(s, "AttnBackend.", 12) == 0 || strncmp(s, "<AttnBackend.", 13) == 0)) {
		s = strchr(s, '.') + 1;
		return mb_node_scalar(m->arena, n->pos, mb_arena_strndup(m->arena, s, strcspn(s, ":")));
	}
	return n;
}

static const struct mb_node *negated_value(struct mb_importer *m, const struct mb_node *n)
{
	struct mb_node bare = *n;
	bool b;

	bare.quoted = false;
	if (n->type != MB_NODE_SCALAR || !mb_node_bool(&bare, &b))
		return n;
	return mb_node_scalar(m->arena, n->pos, b ? "false" : "true");
}

/* "[127,0]", "(127,0)" and "127,0", as overrides and flags have it, in the two numbers of a model file. */
static const struct mb_node *window(struct mb_importer *m, const struct mb_node *n)
{
	const char *s = text_of(n);
	int part[2];

	if (sscanf(s + strspn(s, "[("), "%9d , %9d", &part[0], &part[1]) != 2)
		return n;
	struct mb_node *list = mb_map_new(m->arena, n->pos);
	struct mb_node *right = mb_arena_alloc(m->arena, sizeof *right), *left = mb_arena_alloc(m->arena, sizeof *left);

	*right = *mb_node_scalar(m->arena, n->pos, mb_arena_printf(m->arena, "%d", part[1]));
	*left = *mb_node_scalar(m->arena, n->pos, mb_arena_printf(m->arena, "%d", part[0]));
	left->next = right;
	list->type = MB_NODE_LIST;
	list->child = left;
	list->count = 2;
	return list;
}

static long long whole(struct mb_importer *m, const struct mb_said *s)
{
	struct mb_node bare = *s->value;
	long long n = 0;

	bare.quoted = false;
	if (s->unresolved == NULL && !mb_node_is_null(&bare) && (!mb_node_int(&bare, &n) || n < 1 || n > 1 << 30)) {
		mb_report(m->diags, MB_ERROR, s->value->pos, s->name, "%.80s: '%.60s' is not a whole number", s->name, text_of(s->value));
		return 0;
	}
	return n;
}

/* ---- names that are no keys of ours ---- */

/* NeMo 1 names activation, GLU and norm in one word each. */
static bool take_nemo1(struct mb_importer *m, const char *name, const struct mb_said *s)
{
	const char *value = text_of(s->value);
	struct mb_pos at = s->value->pos;

	if (strcmp(name, "model.activation") == 0) {
		bool gated = strstr(value, "glu") != NULL && strstr(value, "gelu") != value;

		mb_map_say(m->arena, m->model, "activation", at, strstr(value, "swiglu") != NULL ? "silu" : strstr(value, "squared") != NULL ?
		           "squared_relu" : strstr(value, "reglu") != NULL ? "relu" : "gelu");
		mb_map_say(m->arena, m->model, "gated_linear_unit", at, gated || strstr(value, "geglu") != NULL ? "true" : "false");
	} else if (strcmp(name, "model.normalization") == 0) {
		mb_map_say(m->arena, m->model, "normalization", at, strcasecmp(value, "rmsnorm") == 0 ? "RMSNorm" : "LayerNorm");
	} else if (strcmp(name, "precision") == 0) {
		mb_map_say(m->arena, m->run, "precision", at, strncmp(value, "bf16", 4) == 0 ? "bf16" : strncmp(value, "16", 2) == 0 ? "fp16" : "fp32");
	} else if (strcmp(name, "optimizer_name") == 0) {
		mb_map_say(m->arena, m->run, "use_distributed_optimizer", at, strstr(value, "distributed") != NULL ? "true" : "false");
	} else if (strcmp(name, "checkpoint_method") == 0 || strcmp(name, "checkpoint_layers") == 0) {
		const struct mb_node *granularity = mb_node_get(m->run, "recompute_granularity");

		/* With selective they stand in the file, and say nothing. */
		if (granularity != NULL && strcmp(text_of(granularity), "full") == 0 && !mb_node_is_null(s->value))
			mb_map_put(m->arena, m->run, name[11] == 'm' ? "recompute_method" : "recompute_num_layers", s->pos, s->value);
	} else {
		return false;
	}
	return true;
}

static void take_model_name(struct mb_importer *m, const struct mb_said *s)
{
	const char *value = text_of(s->value), *shipped;
	const char *dot = strrchr(value, '.');

	if (mb_node_is_null(s->value) || value[0] == '\0')
		return;
	m->model_pos = s->pos;
	if (s->ours && (strchr(value, '/') != NULL || (dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".json") == 0)))) {
		m->model_name = value;
		return;
	}
	shipped = mb_import_shipped(m, value);
	if (shipped != NULL)
		m->model_name = shipped;
	else if (m->dialect == MB_DIALECT_RUN || s->ours)
		m->model_name = value;
	else
		mb_report(m->diags, MB_WARNING, s->pos, "model", "%.80s: '%.80s' is no shipped model; say model=NAME or model=config.json", s->name, value);
}

static bool take_special(struct mb_importer *m, const char *name, const struct mb_said *s)
{
	if (strcmp(name, "nodes") == 0)
		m->nodes = whole(m, s);
	else if (strcmp(name, "gpus_per_node") == 0)
		m->gpus_per_node = whole(m, s);
	else if (strcmp(name, "prompt") == 0)
		m->prompt = whole(m, s);
	else if (strcmp(name, "response") == 0)
		m->response = whole(m, s);
	else if (strcmp(name, "world_size") == 0 && m->dump)
		mb_map_say(m->arena, m->run, "gpus", s->pos, text_of(s->value));
	else if (strcmp(name, "model") == 0)
		take_model_name(m, s);
	else if (strcmp(name, "task") == 0 && m->dialect == MB_DIALECT_SWIFT)
		mb_map_say(m->arena, m->run, "task", s->pos, strcmp(text_of(s->value), "lora") == 0 ? "lora" : "sft");
	else
		return m->dialect == MB_DIALECT_NEMO1 && take_nemo1(m, name, s);
	return true;
}

/* ---- keys ---- */

static bool group_is(const char *name, const char *group)
{
	size_t n = strlen(group);

	return strncmp(name, group, n) == 0 && name[n] == '.';
}

/* Groups of a Bridge configuration whose members may be keys. */
static bool key_group(const char *name)
{
	static const char *const groups[] = { "model", "train", "comm_overlap", "ddp", "optimizer", "mixed_precision", "dist", "dataset",
		"rng", "rerun_state_machine", "run" };

	if (strchr(name, '.') == NULL)
		return true;
	for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
		if (group_is(name, groups[i]) && strchr(name + strlen(groups[i]) + 1, '.') == NULL)
			return true;
	}
	return false;
}

static void take_key(struct mb_importer *m, const struct mb_key *key, bool negated, const char *name, const struct mb_said *s)
{
	const struct mb_node *value = negated ? negated_value(m, s->value) : tidy(m, key, s->value);
	bool required = key == &mb_keys[MB_K_seq] || key == &mb_keys[MB_K_gbs] || key == &mb_keys[MB_K_gpus];

	if (s->unresolved != NULL) {
		if (!required)
			open_variable(m, s);
		return;
	}
	mb_map_put(m->arena, m->run, key->name, s->pos, value);
	if (key == &mb_keys[MB_K_mtp] && group_is(name, "model") && !mb_node_is_null(value))
		mb_map_put(m->arena, m->model, key->name, s->pos, value);
}

static bool is_environment(const char *name)
{
	return isupper((unsigned char)name[0]) && strchr(name, '_') != NULL && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name);
}

static void take_plain(struct mb_importer *m, const char *name, const struct mb_said *s)
{
	const char *last = mb_import_last(name);
	bool negated = false, flag;
	const struct mb_key *key = key_group(name) ? mb_key_find(last, &negated) : NULL;
	enum mb_name_kind kind = mb_name_find(last, &flag);

	if (is_environment(last) && s->unresolved == NULL) {
		mb_map_put(m->arena, m->environment, last, s->pos, s->value);
	} else if (key != NULL) {
		take_key(m, key, negated, name, s);
	} else if (group_is(name, "peft")) {
		mb_map_put(m->arena, m->peft, name + 5, s->pos, s->value);
	} else if (group_is(name, "hardware")) {
		mb_map_put(m->arena, m->run, name, s->pos, s->value);
	} else if (kind == MB_NAME_SPECIAL && key_group(name)) {
		if (s->unresolved != NULL)
			open_variable(m, s);
		else
			mb_map_put(m->arena, m->run, last, s->pos, s->value);
	} else if (mb_model_key(last) && (group_is(name, "model") || strchr(name, '.') == NULL) && !s->flag) {
		if (s->unresolved != NULL)
			open_variable(m, s);
		else if (!mb_node_is_null(s->value))
			mb_map_put(m->arena, m->model, last, s->pos, strcmp(last, "window_size") == 0 ? window(m, s->value) : s->value);
	} else if (kind == MB_NAME_MODEL_FLAG && s->flag) {
		return;
	} else if (kind != MB_NAME_IGNORED && (key_group(name) || s->flag)) {
		unknown(m, s);
	}
}

/* ---- Megatron-LM's own arguments ---- */

/* A log prints defaults of parts that are not in use; those of other kinds of models would read as wishes. */
static bool idle_in_dump(const char *name, const char *value)
{
	static const char *const others[] = { "encoder_num_layers", "encoder_seq_length", "img_h", "img_w", "patch_dim", "num_channels",
		"vocab_extra_ids", "bert_binary_head", "bert_load", "disable_vision_class_token", "decoder_seq_length", "decoder_num_layers" };

	if (strcmp(value, "None") == 0 || strcmp(value, "[]") == 0 || strcmp(value, "") == 0)
		return true;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		if (strcmp(name, others[i]) == 0)
			return true;
	}
	return strncmp(name, "hybrid_", 7) == 0 && strcmp(value, "0.0") == 0;
}

static void take_argument(struct mb_importer *m, const struct mb_said *s)
{
	char flag_name[100];
	bool flag, negated;
	const char *value = text_of(s->value);
	enum mb_name_kind kind = mb_name_find(s->name, &flag);
	const struct mb_key *key = mb_key_find(s->name, &negated);
	struct mb_pos at = s->pos;

	at.column -= 2;                 /* the reader of runs steps over the dashes itself */
	if (m->dump && idle_in_dump(s->name, value))
		return;
	snprintf(flag_name, sizeof flag_name, "--%.90s", s->name);
	if (m->dump && strcmp(s->name, "add_bias_linear") == 0) {
		if (strcmp(value, "False") == 0)
			mb_map_say(m->arena, m->flags, "--disable-bias-linear", s->pos, "true");
		return;
	}
	for (char *c = flag_name; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
	if (kind == MB_NAME_UNKNOWN)
		unknown(m, s);
	else if (kind == MB_NAME_IGNORED)
		return;
	else if (s->unresolved != NULL)
		open_variable(m, s);
	else
		mb_map_put(m->arena, m->flags, flag_name, at, key != NULL ? tidy(m, key, s->value) :
		           strcmp(flag_name, "--window-size") == 0 ? window(m, s->value) : s->value);
}

/* ---- the whole ---- */

static void take(struct mb_importer *m, const struct mb_said *s)
{
	const char *name = s->name, *renamed;

	if (m->dialect == MB_DIALECT_VERL && !s->ours) {
		const char *inner = mb_import_verl_name(name);

		if (inner == NULL && mb_import_name(m, name) == NULL)
			return;
		name = inner != NULL ? inner : name;
		/* null leaves the value to verl, which sets it at run time. */
		if (mb_node_is_null(s->value))
			return;
	}
	if (m->dialect == MB_DIALECT_SWIFT && s->flag) {
		char *copy = mb_arena_strdup(m->arena, name);

		for (char *c = copy; *c != '\0'; c++)
			*c = *c == '-' ? '_' : *c;
		name = copy;
	}
	renamed = s->ours ? NULL : mb_import_name(m, name);
	if (renamed != NULL && renamed[0] == '\0')
		return;
	name = renamed != NULL ? renamed : name;
	if (take_special(m, name, s))
		return;
	if (m->dialect == MB_DIALECT_MEGATRON && s->flag)
		take_argument(m, s);
	else
		take_plain(m, name, s);
}

static bool says(const struct mb_importer *m, const char *name, bool prefix)
{
	for (int i = 0; i < m->count; i++) {
		const char *s = m->said[i].name;

		if (prefix ? strncmp(s, name, strlen(name)) == 0 : strcmp(s, name) == 0)
			return true;
	}
	return false;
}

static void find_dialect(struct mb_importer *m)
{
	bool sized = says(m, "hidden-size", false) || says(m, "hidden_size", false), model = false;

	for (int i = 0; i < m->count; i++)
		model = model || (m->said[i].ours && strcmp(m->said[i].name, "model") == 0);
	if (says(m, "actor_rollout_ref.", true))
		m->dialect = MB_DIALECT_VERL;
	else if (says(m, "model.encoder_seq_length", false) || says(m, "model.megatron_amp_O2", false))
		m->dialect = MB_DIALECT_NEMO1;
	else if (m->dump || (m->count > 0 && m->said[0].flag && sized && !model && m->dialect == MB_DIALECT_RUN))
		m->dialect = MB_DIALECT_MEGATRON;
	else if (m->dialect == MB_DIALECT_RUN && (says(m, "train_type", false) || says(m, "tuner_type", false)))
		m->dialect = MB_DIALECT_SWIFT;
}

static const char *format_name(const struct mb_importer *m)
{
	static const char *const names[] = { "Megatron Bridge configuration", "Megatron-LM arguments", "ms-swift arguments",
		"verl configuration", "NeMo 1 configuration" };

	return m->dump ? "log of Megatron-LM arguments" : names[m->dialect];
}

static void report_leftovers(struct mb_importer *m)
{
	if (m->open_count > 0) {
		struct mb_diag *d = mb_report(m->diags, MB_ERROR, m->open_pos, "", "the file does not say what %s %s", m->open,
		                              m->open_count > 1 ? "are" : "is");

		snprintf(d->expected, sizeof d->expected, "values behind the file, such as %.60s=1", strcspn(m->open, ",") < 60 ?
		         mb_arena_strndup(m->arena, m->open, strcspn(m->open, ",")) : "NAME");
	}
	if (m->unknown_count > 0)
		mb_report(m->diags, MB_WARNING, m->unknown_pos, "", "%d not understood and left out: %s%s", m->unknown_count, m->unknown,
		          m->unknown_count > 12 ? ", ..." : "");
	if (m->dialect == MB_DIALECT_VERL)
		mb_report(m->diags, MB_NOTE, (struct mb_pos){ .file = m->name }, "",
		          "only the update of the actor is read: rollout, reference and reward are not modelled");
}

/* verl and NeMo 1 say some sizes in parts. */
static void put_sums(struct mb_importer *m)
{
	struct mb_pos at = { .file = m->name };

	if (m->prompt > 0 && m->response > 0 && mb_node_get(m->run, "seq_length") == NULL)
		mb_map_say(m->arena, m->run, "seq_length", at, mb_arena_printf(m->arena, "%lld", m->prompt + m->response));
	if (m->gpus_per_node > 0 && m->nodes > 0 && mb_node_get(m->run, "gpus") == NULL)
		mb_map_say(m->arena, m->run, "gpus", at, mb_arena_printf(m->arena, "%lld", m->gpus_per_node * m->nodes));
	if (m->dialect == MB_DIALECT_SWIFT && mb_node_get(m->run, "precision") == NULL && mb_node_get(m->run, "bf16") == NULL)
		mb_map_say(m->arena, m->run, "precision", at, "bf16");
	if (m->dialect == MB_DIALECT_VERL && mb_node_get(m->run, "task") == NULL)
		mb_map_say(m->arena, m->run, "task", at, "sft");
	if (m->dialect == MB_DIALECT_NEMO1 && m->model->count > 0 && mb_node_get(m->model, "position_embedding_type") == NULL)
		mb_map_say(m->arena, m->model, "position_embedding_type", at, "rope");
}

void mb_import_build(struct mb_importer *m)
{
	find_dialect(m);
	m->format = format_name(m);
	if (m->dialect == MB_DIALECT_SWIFT)
		mb_map_say(m->arena, m->run, "stack", (struct mb_pos){ .file = m->name }, "mlm-dev-2026-08");
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < m->count; i++) {
			if (m->said[i].ours == (pass == 1))
				take(m, &m->said[i]);
		}
	}
	put_sums(m);
	report_leftovers(m);
}
