/* Shared by the files that import; nobody else includes it. */
#ifndef MBSIM_EXCHANGE_IMPORT_PRIVATE_H
#define MBSIM_EXCHANGE_IMPORT_PRIVATE_H

#include "exchange/import.h"
#include "exchange/map.h"
#include "exchange/shell.h"

/* Where names come from, which decides what they mean. */
enum mb_dialect { MB_DIALECT_RUN, MB_DIALECT_MEGATRON, MB_DIALECT_SWIFT, MB_DIALECT_VERL, MB_DIALECT_NEMO1 };

/* One thing the file says, dotted as Hydra has it. */
struct mb_said {
	const char *name;
	struct mb_pos pos;
	const struct mb_node *value;
	const char *unresolved;         /* a variable that the file does not tell */
	bool flag;                      /* written with dashes */
	bool ours;                      /* from a "# mbsim:" line or the command line */
};

struct mb_importer {
	struct mb_arena *arena;
	struct mb_library *library;
	struct mb_diags *diags;
	const char *name;               /* of the input, for messages */
	const char *const *settings;
	const char *format;
	enum mb_dialect dialect;
	bool dump;                      /* every argument with its value, defaults included */

	struct mb_said *said;
	int count, capacity;

	struct mb_node *run, *model, *flags, *environment, *peft;
	const char *model_name;         /* a shipped model, if the file names one */
	struct mb_pos model_pos;
	long long nodes, gpus_per_node, prompt, response;
	int interpolations;             /* so far; files with very many are refused their values */

	char unknown[512], open[256];   /* names, for one message */
	int unknown_count, open_count;
	struct mb_pos unknown_pos, open_pos;
};

void mb_import_say(struct mb_importer *m, struct mb_said s);

/* import_read.c, import_dump.c, import_mapping.c: what a file says. */
bool mb_import_script(struct mb_importer *m, const char *text, size_t length);
bool mb_import_dump(struct mb_importer *m, const char *text, size_t length);
void mb_import_node(struct mb_importer *m, const struct mb_node *root);
bool mb_import_is_dump(const char *text, size_t length);
void mb_import_settings(struct mb_importer *m);                 /* of the command line */

/* import_interpolate.c: "${.hidden_size}", "${multiply:4, ${a.b}}" and the like. NULL: not to be told. */
const char *mb_import_interpolate(struct mb_importer *m, const struct mb_node *root, const struct mb_node *parent, const char *text,
                                  int depth);

/* import_build.c: the run that they make. */
void mb_import_build(struct mb_importer *m);

/* import_names.c: what the dialect calls it; "" where it changes no size; NULL where nothing is known. */
const char *mb_import_name(const struct mb_importer *m, const char *name);
const char *mb_import_verl_name(const char *name);      /* behind the prefixes of Megatron's part; NULL: another part */

/* import_model.c */
const char *mb_import_shipped(struct mb_importer *m, const char *hf_id);       /* NULL: none of that name */

/* The last component of a dotted name. */
const char *mb_import_last(const char *name);

#endif
