/*
 * A case: model, machine, stack and the fixed part of a run, compiled and never changed while plans are evaluated.
 * A query: what the user asked, with the keys that are open or narrowed to alternatives, and where each was said.
 */
#ifndef MBSIM_PLAN_CASE_H
#define MBSIM_PLAN_CASE_H

#include "desc/hardware.h"
#include "desc/library.h"
#include "desc/model.h"
#include "desc/node.h"
#include "desc/stack.h"
#include "plan/run.h"

enum { MB_MAX_STAGES = 512, MB_MAX_CHUNKS = 2048 };     /* pipeline ranks; pp * vp */

/* One chunk (virtual stage): consecutive decoder layers and the special blocks at the ends. */
struct mb_chunk {
	uint16_t first_layer, layers;   /* decoder layers [first_layer, first_layer + layers) */
	uint8_t mtp;                    /* MTP depths that run here */
	bool embedding, loss;
};

/* A parsed pipeline_model_parallel_layout. Chunk j lives on pipeline rank j % pp. */
struct mb_layout {
	const char *text;               /* as the user wrote it */
	int chunk_count;
	struct mb_chunk *chunks;
};

enum { MB_MAX_LAYOUTS = 4096 };

struct mb_case {
	struct mb_model model;
	struct mb_hardware hardware;
	struct mb_stack stack;
	struct mb_params params;        /* hardware's and stack's together */
	struct mb_run run;              /* run.plan holds the values of keys that are not open */
	struct mb_layout *layouts;
	int layout_count;

	int mtp_depth;                  /* what the run decides, else the model */
	int domain;                     /* GPUs of an NVLink domain that this job can use */
	bool nvlink_between;            /* NVLink (else PCIe) inside the domain */
	double power_factor;            /* rate of products at this board power over that at the reference */
};

/* Fills params and what follows once model, hardware, stack and run are in place. */
void mb_case_compile(struct mb_case *c);

/* Again what follows from params alone, after one of them was changed. */
void mb_case_derive(struct mb_case *c);

/*
 * Parses "Et*3|(tt|)*10mL" for `model`. Reports what is malformed; whether the counts fit model and plan is a rule (P8).
 * Also accepts the list form of Bridge through mb_node by the loader, which joins it to this text.
 */
bool mb_layout_parse(const char *text, struct mb_pos at, struct mb_arena *arena, struct mb_layout *ret, struct mb_diags *diags);

/* Value of a key outside struct mb_run's types: what a value list holds. */
union mb_value {
	long long i;                    /* BOOL, TRISTATE, INT, ENUM, SET, LAYOUT (index), SIZES (a2a size) */
	double d;                       /* NUMBER */
};

struct mb_alternatives {
	int count;
	const union mb_value *values;
};

struct mb_query {
	struct mb_case c;
	const char *model_text, *hardware_text, *stack_text;    /* as said: name or path, for commands we print */
	bool set[MB_KEY_COUNT];                                 /* the user gave one value */
	bool open[MB_KEY_COUNT];                                /* the user wrote auto */
	struct mb_alternatives alternatives[MB_KEY_COUNT];      /* count > 0: one of these */
	struct mb_pos pos[MB_KEY_COUNT];                        /* where each key was said; line 0 and file NULL: nowhere */
	struct mb_pos model_pos, hardware_pos, stack_pos;
	int gpu_choices[64];                                    /* gpus given as a set; 0 terminated */
	char run_text[256];                                     /* the RUN arguments as typed, for "next" lines */
	const struct mb_node *hardware_node;                    /* as said: name, path or mapping; NULL: not said */
	const struct mb_node *hardware_changes;                 /* mapping of what was changed in place, last first; NULL: nothing */
};

/*
 * Reads RUN files and key=value / --key value arguments, later ones over earlier ones, files before arguments.
 * `argv` holds no options of the command itself. Fills everything: defaults of the framework, derived values
 * (expert_tensor_parallel_size, sequence_parallel with TP 1, overlap_p2p_comm), case compiled.
 * single: alternatives and auto are errors (estimate and friends).
 */
bool mb_query_load(int argc, char **argv, bool single, struct mb_library *library, struct mb_arena *arena,
                   struct mb_query *ret, struct mb_diags *diags);

/* The same from one mapping (batch lines, tests); `base` may be NULL. */
bool mb_query_from_node(const struct mb_node *run, struct mb_library *library, struct mb_arena *arena, struct mb_query *ret,
                        struct mb_diags *diags);

/* Several mappings, later ones over earlier ones. */
bool mb_query_from_nodes(const struct mb_node *const *runs, int count, struct mb_library *library, struct mb_arena *arena,
                         struct mb_query *ret, struct mb_diags *diags);

/* What a name that a run may hold stands for. */
enum mb_name_kind { MB_NAME_UNKNOWN, MB_NAME_KEY, MB_NAME_SPECIAL, MB_NAME_MODEL_FLAG, MB_NAME_IGNORED };

/* *flag: on a command line it takes no value, or true and false only. Dashes in front are allowed. */
enum mb_name_kind mb_name_find(const char *name, bool *flag);

/* Key by name, short name, dotted Bridge name or dashed flag; NULL if unknown. *negated: a --no-... flag. */
const struct mb_key *mb_key_find(const char *name, bool *negated);

/* Reads and writes one key of a run as text in YAML's form ("[moe_act, layernorm]", "null", "true"). */
void mb_key_format(const struct mb_case *c, const struct mb_run *run, const struct mb_key *key, char *text, size_t size);
union mb_value mb_key_get(const struct mb_run *run, const struct mb_key *key);
void mb_key_put(struct mb_run *run, const struct mb_key *key, union mb_value value);

#endif
