/* Shared by the files that read a run; nobody else includes it. */
#ifndef MBSIM_PLAN_QUERY_H
#define MBSIM_PLAN_QUERY_H

#include "desc/node.h"
#include "plan/case.h"

/* One thing the user said: a key of a file, or an argument. */
struct mb_setting {
	const char *name;               /* without dashes in front and without Bridge's group */
	const char *group;              /* "model", "peft", "hardware", ...; NULL: none */
	struct mb_pos pos;
	const struct mb_node *value;    /* never NULL; a bare flag has the value true */
	int source;                     /* which file; 0: the command line */
	bool flag;                      /* written as a flag of Megatron-LM */
	int key;                        /* enum mb_key_id plus 1 once it is known to be a key */
};

/* Bridge and Megatron-LM say the number format in several settings. */
struct mb_precision_parts {
	bool bf16, fp16;
	const char *fp8, *fp8_recipe, *fp4;
};

struct mb_reader {
	struct mb_arena *arena;
	struct mb_library *library;
	struct mb_diags *diags;
	struct mb_query *q;
	bool single;                    /* alternatives and auto are errors */

	struct mb_setting *settings;
	int count, capacity;
	int sources;

	bool megatron;                  /* the model is given by Megatron-LM's flags */
	int said[MB_KEY_COUNT];         /* index into settings plus 1; 0: nobody said it */
	bool null[MB_KEY_COUNT];        /* its value is null, said or by default */
	const struct mb_setting *model, *hardware, *stack, *recorded;
	struct mb_precision_parts precision;
	bool no_fused_attention, no_flash_attention;    /* by Transformer Engine's variables */
	bool lora;                      /* a peft group was given */
	int cp_ring;                    /* the second of hierarchical_context_parallel_sizes */
	struct mb_megatron_flags *flags;
};

/* query_args.c */
void mb_query_arguments(struct mb_reader *r, int argc, char **argv);
const struct mb_node *mb_query_list_text(struct mb_arena *arena, struct mb_pos pos, const char *text, size_t length);
const struct mb_node *mb_query_sum_text(struct mb_arena *arena, struct mb_pos pos, const char *text);

/* query_file.c */
void mb_query_mapping(struct mb_reader *r, const struct mb_node *map);
void mb_query_add(struct mb_reader *r, struct mb_setting s);

/* query_value.c: reads a setting into q, alternatives included; a default into q->c.run. */
void mb_query_values(struct mb_reader *r, enum mb_key_id id, const struct mb_node *value);
bool mb_query_value(struct mb_reader *r, enum mb_key_id id, const struct mb_node *value, union mb_value *ret, bool *null);

/* query_unknown.c: reports a name that nothing knows, with the nearest that something does. */
void mb_query_unknown(struct mb_reader *r, const struct mb_setting *s);

/* query_special.c: settings that are no keys. False: not one of them. *flag: takes no value. */
bool mb_query_special(struct mb_reader *r, const struct mb_setting *s);
bool mb_query_is_special(const char *name, bool *flag);
bool mb_query_same_name(const char *said, const char *name);    /* '-' and '_' are the same */
bool mb_query_truth(struct mb_reader *r, const struct mb_setting *s);   /* reports what is neither true nor false */

/* Old switches become the key they stand for. True: the setting says nothing. */
bool mb_query_rewrite(struct mb_reader *r, struct mb_setting *s);

/* query_environment.c */
void mb_query_environment(struct mb_reader *r, const struct mb_setting *s);
bool mb_query_is_environment(const char *name);
void mb_query_peft(struct mb_reader *r, const struct mb_setting *s);

/* query_megatron.c: Megatron-LM's model flags. */
bool mb_query_megatron_flag(struct mb_reader *r, const struct mb_setting *s);
bool mb_query_is_megatron_flag(const char *name, bool *boolean);
bool mb_query_megatron_refused(const struct mb_reader *r);      /* it is of a kind that is not modelled */
void mb_query_megatron_model(struct mb_reader *r);
const char *mb_query_megatron_name(int index);          /* NULL past the last */

/* query_derive.c */
void mb_query_defaults(struct mb_reader *r);
void mb_query_derive(struct mb_reader *r);

/* query_ignored.c: names without effect. *flag: takes no value. */
bool mb_query_ignored(const char *name, bool *flag);
bool mb_query_ignored_group(const char *name);
const char *mb_query_ignored_name(int index);           /* NULL past the last */

#endif
