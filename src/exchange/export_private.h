/* Shared by the files that export; nobody else includes it. */
#ifndef MBSIM_EXCHANGE_EXPORT_PRIVATE_H
#define MBSIM_EXCHANGE_EXPORT_PRIVATE_H

#include "exchange/export.h"
#include "exchange/map.h"

struct mb_exporter {
	const struct mb_query *q;
	enum mb_export_format format;
	struct mb_library *library;
	struct mb_arena *arena;
	struct mb_diags *diags;
	bool flags;                     /* in Megatron-LM's flags, else in Bridge's overrides */
	bool keys[MB_KEY_COUNT];        /* to be written */
	const struct mb_node *model;    /* its mapping, when no shipped name says it; else NULL */
	const struct mb_node *whole;    /* its mapping in any case */
	const char *hardware;           /* a shipped name, or NULL */
	const struct mb_node *environment;
	struct mb_node *own;            /* settings that only we understand */
	struct mb_text lines;           /* the others, one a line */
};

/* export_model.c */
const struct mb_node *mb_export_model(struct mb_arena *arena, const struct mb_model *m);
void mb_export_model_flags(struct mb_exporter *x, struct mb_text *cannot);
void mb_export_model_overrides(struct mb_exporter *x);

/* export_lines.c */
void mb_export_line(struct mb_exporter *x, const char *word, const char *value, bool learnt);  /* value may be NULL */
void mb_export_lines(struct mb_exporter *x);
void mb_export_yaml(struct mb_exporter *x, struct mb_text *out);

void mb_export_own(struct mb_exporter *x, struct mb_text *out);         /* the comment line that holds them */

/* export_batch.c: variables that the plan needs and the run does not say, and the script around the lines. */
void mb_export_batch(struct mb_exporter *x, struct mb_text *out);

#endif
