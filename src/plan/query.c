#include "plan/query.h"

#include <stdio.h>
#include <string.h>

static const char newest_megatron_stack[] = "mlm-dev-2026-08";

/* ---- which setting counts ---- */

static bool same_value(const struct mb_node *a, const struct mb_node *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == MB_NODE_SCALAR)
		return strcmp(a->text, b->text) == 0;
	for (a = a->child, b = b->child; a != NULL && b != NULL; a = a->next, b = b->next) {
		if (!same_value(a, b))
			return false;
	}
	return a == b;
}

/* Bridge states some keys in two groups of one file; that is fine as long as they agree. */
static void take_key(struct mb_reader *r, int index, enum mb_key_id id)
{
	struct mb_setting *s = &r->settings[index];
	const struct mb_setting *before = r->said[id] > 0 ? &r->settings[r->said[id] - 1] : NULL;

	if (before != NULL && s->source > 0 && before->source == s->source && before->flag == s->flag &&
	    !same_value(before->value, s->value)) {
		mb_report(r->diags, MB_ERROR, s->pos, mb_keys[id].name, "%s is given twice, first as '%.80s' in line %d",
		          mb_keys[id].name, before->name, before->pos.line);
		return;
	}
	r->said[id] = index + 1;
	s->key = (int)id + 1;
}

/* A flag that switches off is stored as its opposite, so that everything after this sees keys only. */
static const struct mb_node *negate(struct mb_reader *r, const struct mb_node *value)
{
	bool b;

	if (value->type != MB_NODE_SCALAR || !mb_node_bool(value, &b))
		return value;
	return mb_node_scalar(r->arena, value->pos, b ? "false" : "true");
}

static void take(struct mb_reader *r, int index)
{
	struct mb_setting *s = &r->settings[index];
	bool negated = false, flag;
	const struct mb_key *key;

	if (mb_query_rewrite(r, s))
		return;
	if (mb_query_special(r, s) || (r->megatron && mb_query_megatron_flag(r, s)))
		return;
	key = mb_key_find(s->name, &negated);
	if (key != NULL) {
		if (negated)
			s->value = negate(r, s->value);
		take_key(r, index, (enum mb_key_id)(key - mb_keys));
	} else if (!mb_query_ignored(s->name, &flag)) {
		mb_query_unknown(r, s);
	}
}

/* Files in their order, the command line over them. */
static void take_all(struct mb_reader *r)
{
	for (int i = 0; i < r->count; i++) {
		if (r->settings[i].source > 0)
			take(r, i);
	}
	for (int i = 0; i < r->count; i++) {
		if (r->settings[i].source == 0)
			take(r, i);
	}
}

/* A Megatron-LM command line gives the model by flags, without saying so. */
static void find_out_style(struct mb_reader *r)
{
	bool model = false, flags = false, boolean;

	for (int i = 0; i < r->count; i++) {
		const struct mb_setting *s = &r->settings[i];

		model = model || (s->group == NULL && strcmp(s->name, "model") == 0);
		flags = flags || (s->flag && strcmp(s->name, "hidden-size") == 0 && mb_query_is_megatron_flag(s->name, &boolean));
	}
	r->megatron = r->megatron || (flags && !model);
}

/* ---- what the settings name ---- */

static void keep_version(int *version, int said)
{
	if (said > 0)
		*version = said;
}

/* "mlm-dev-2026-05" of a row that was recorded on "2026-05-29" is that day's. */
static const char *dated_stack(struct mb_reader *r, const char *name)
{
	const struct mb_node *day = r->recorded != NULL ? r->recorded->value : NULL;
	size_t length = strlen(name);

	if (day == NULL || day->type != MB_NODE_SCALAR || strncmp(name, "mlm-", 4) != 0 || length < 12 || strlen(day->text) != 10)
		return name;
	if (strncmp(name + length - 7, day->text, 7) != 0)
		return name;
	return mb_arena_printf(r->arena, "%s%s", name, day->text + 7);
}

static void load_stack(struct mb_reader *r)
{
	struct mb_query *q = r->q;
	struct mb_stack versions = q->c.stack;          /* what the run said, if anything */
	const char *name = r->stack != NULL && r->stack->value->type == MB_NODE_SCALAR ? r->stack->value->text : NULL;
	struct mb_pos pos = r->stack != NULL ? r->stack->value->pos : (struct mb_pos){ NULL, 0, 0 };

	if (r->stack != NULL && name == NULL) {
		mb_report(r->diags, MB_ERROR, pos, "stack", "stack: expected a name such as nemo-26.08");
		return;
	}
	if (name == NULL)
		name = r->megatron ? newest_megatron_stack : mb_library_default_stack(r->library, r->arena);
	if (name == NULL) {
		mb_report(r->diags, MB_ERROR, pos, "stack", "no software stack is installed");
		return;
	}
	name = dated_stack(r, name);
	q->stack_text = name;
	q->stack_pos = pos;
	if (!mb_stack_load(name, pos, r->library, r->arena, &q->c.stack, r->diags))
		return;
	keep_version(&q->c.stack.torch, versions.torch);
	keep_version(&q->c.stack.transformer_engine, versions.transformer_engine);
	keep_version(&q->c.stack.megatron_core, versions.megatron_core);
	keep_version(&q->c.stack.megatron_bridge, versions.megatron_bridge);
}

static void missing(struct mb_reader *r, const char *key, const char *example)
{
	struct mb_diag *d = mb_report(r->diags, MB_ERROR, (struct mb_pos){ NULL, 0, 0 }, key, "%s is not given", key);

	snprintf(d->expected, sizeof d->expected, "%s", example);
}

static const char *as_said(const struct mb_setting *s)
{
	return s->value->type == MB_NODE_SCALAR ? s->value->text : "(inline)";
}

static void load_model(struct mb_reader *r)
{
	struct mb_query *q = r->q;

	if (r->megatron) {
		q->model_text = "(megatron_args)";
		mb_query_megatron_model(r);
	} else if (r->model == NULL) {
		missing(r, "model", "a name such as model=llama3-70b, or a path");
	} else {
		q->model_text = as_said(r->model);
		q->model_pos = r->model->pos;
		mb_model_load(r->model->value, r->library, r->arena, &q->c.model, r->diags);
	}
}

/* Applied, and kept in a list of its own for whoever writes the run down again. */
static void change_hardware(struct mb_reader *r, const struct mb_setting *s)
{
	struct mb_node *list = mb_arena_alloc(r->arena, sizeof *list), *copy = mb_arena_alloc(r->arena, sizeof *copy);

	mb_hardware_change(&r->q->c.hardware, s->name, s->value, r->diags);
	*copy = *s->value;
	copy->key = mb_node_scalar(r->arena, s->pos, s->name);
	copy->next = r->q->hardware_changes != NULL ? r->q->hardware_changes->child : NULL;
	*list = (struct mb_node){ .type = MB_NODE_MAP, .pos = s->pos, .child = copy };
	list->count = r->q->hardware_changes != NULL ? r->q->hardware_changes->count + 1 : 1;
	r->q->hardware_changes = list;
}

static bool changes_hardware(const struct mb_setting *s)
{
	return s->group != NULL && strcmp(s->group, "hardware") == 0;
}

/* Said again later, or on the command line: a factor is of the machine as named, not of what an earlier one made of it. */
static bool is_changed_again(const struct mb_reader *r, int at)
{
	const struct mb_setting *s = &r->settings[at];

	for (int i = 0; i < r->count; i++) {
		const struct mb_setting *other = &r->settings[i];
		bool over = (s->source == 0) == (other->source == 0) ? i > at : other->source == 0;

		if (over && changes_hardware(other) && strcmp(other->name, s->name) == 0)
			return true;
	}
	return false;
}

static void load_hardware(struct mb_reader *r)
{
	struct mb_query *q = r->q;

	if (r->hardware == NULL) {
		missing(r, "hardware", "a name such as hardware=dgx-h100, or a path");
		return;
	}
	q->hardware_text = as_said(r->hardware);
	q->hardware_pos = r->hardware->pos;
	q->hardware_node = r->hardware->value;
	if (!mb_hardware_load(r->hardware->value, r->library, r->arena, &q->c.hardware, r->diags))
		return;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < r->count; i++) {
			const struct mb_setting *s = &r->settings[i];

			if (changes_hardware(s) && (s->source == 0) == (pass == 1) && !is_changed_again(r, i))
				change_hardware(r, s);
		}
	}
}

static void read_key(struct mb_reader *r, int index)
{
	const struct mb_setting *s = &r->settings[index];

	if (s->key == 0 || r->said[s->key - 1] != index + 1)
		return;
	r->q->pos[s->key - 1] = s->pos;
	mb_query_values(r, (enum mb_key_id)(s->key - 1), s->value);
}

/* In the order of take_all, so that messages follow the input. */
static void read_keys(struct mb_reader *r)
{
	for (int i = 0; i < r->count; i++) {
		if (r->settings[i].source > 0)
			read_key(r, i);
	}
	for (int i = 0; i < r->count; i++) {
		if (r->settings[i].source == 0)
			read_key(r, i);
	}
	if (r->said[MB_K_gpus] == 0)
		missing(r, "gpus", "a number such as gpus=64");
	if (r->said[MB_K_seq] == 0)
		missing(r, "seq_length", "a number such as seq=4096");
	if (r->said[MB_K_gbs] == 0)
		missing(r, "global_batch_size", "a number such as gbs=256");
}

static bool finish(struct mb_reader *r, int errors_before)
{
	find_out_style(r);
	take_all(r);
	if (mb_query_megatron_refused(r))
		return false;
	load_stack(r);
	mb_query_defaults(r);
	read_keys(r);
	load_model(r);
	load_hardware(r);
	if (r->diags->errors > errors_before)
		return false;
	mb_query_derive(r);
	if (r->diags->errors > errors_before)
		return false;
	mb_case_compile(&r->q->c);
	return true;
}

static void begin(struct mb_reader *r, struct mb_query *q)
{
	memset(q, 0, sizeof *q);
	q->c.run.plan.layout = -1;
	q->c.run.cuda_device_max_connections = MB_AUTO;
	q->c.run.nvte_allow_nondeterministic_algo = MB_AUTO;
	q->c.run.nvte_fwd_layernorm_sm_margin = MB_AUTO;
	r->q = q;
}

/* The arguments as they can be pasted again, as far as they fit. */
static void keep_text(struct mb_query *q, int argc, char **argv)
{
	size_t n = 0;

	for (int i = 0; i < argc; i++) {
		bool bare = argv[i][0] != '\0' && strpbrk(argv[i], " []()|<>*?&;$`\"'\\#~!{}\n\t") == NULL;
		size_t length = strlen(argv[i]) + (bare ? 0 : 2);

		if (strchr(argv[i], '\'') != NULL || n + length + 2 > sizeof q->run_text)
			break;
		n += (size_t)snprintf(q->run_text + n, sizeof q->run_text - n, "%s%s%s%s", n > 0 ? " " : "", bare ? "" : "'",
		                      argv[i], bare ? "" : "'");
	}
}

bool mb_query_load(int argc, char **argv, bool single, struct mb_library *library, struct mb_arena *arena,
                   struct mb_query *ret, struct mb_diags *diags)
{
	struct mb_reader r = { .arena = arena, .library = library, .diags = diags, .single = single };
	int before = diags->errors;

	begin(&r, ret);
	keep_text(ret, argc, argv);
	mb_query_arguments(&r, argc, argv);
	return diags->errors == before && finish(&r, before);
}

bool mb_query_from_node(const struct mb_node *run, struct mb_library *library, struct mb_arena *arena, struct mb_query *ret,
                        struct mb_diags *diags)
{
	return mb_query_from_nodes(&run, 1, library, arena, ret, diags);
}

bool mb_query_from_nodes(const struct mb_node *const *runs, int count, struct mb_library *library, struct mb_arena *arena,
                         struct mb_query *ret, struct mb_diags *diags)
{
	struct mb_reader r = { .arena = arena, .library = library, .diags = diags };
	int before = diags->errors;

	begin(&r, ret);
	for (int i = 0; i < count; i++)
		mb_query_mapping(&r, runs[i]);
	return diags->errors == before && finish(&r, before);
}
