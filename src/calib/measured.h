/*
 * Measured runs: what a file of measurements says, brought into one form. A row that cannot be expressed as a run stays
 * in the set, with the reason.
 */
#ifndef MBSIM_CALIB_MEASURED_H
#define MBSIM_CALIB_MEASURED_H

#include "base/arena.h"
#include "base/error.h"
#include "desc/node.h"

enum mb_measure { MB_M_STEP, MB_M_BETWEEN, MB_M_FIRST_PEAK, MB_M_PEAK, MB_M_COUNT };

struct mb_measure_row {
	const char *json, *kind, *label;        /* "peak_allocated_bytes", "memory", "peak" */
};

extern const struct mb_measure_row mb_measure_rows[MB_M_COUNT];

/* How a source counts the FLOPs behind the TFLOP/s it publishes. */
enum mb_flop_count {
	MB_FLOPS_BRIDGE,                /* Megatron Bridge's: causal attention counts half */
	MB_FLOPS_FULL_SCORES,           /* Megatron-LM until 2025, NeMo 2024: every attention score counts */
	MB_FLOPS_EXECUTED,              /* the papers of 2021: every score, and the forward that recompute repeats */
};

struct mb_measured {
	const char *id, *source, *family;
	const char *software;           /* release, in the source's words; NULL: not stated */
	const struct mb_node *varied;   /* what a variant of a study sets; NULL: none */
	const char *study;              /* rows of one study differ in what it varied; NULL: none */
	const struct mb_node *run;      /* NULL when skipped */
	const char *skip;               /* why this row says nothing about the model; NULL: it does */
	double value[MB_M_COUNT];       /* NAN: not measured */
	double flop_per_s;              /* of one GPU, in place of a step time; 0: none */
	enum mb_flop_count flops;
	bool configured;                /* the row gave a whole run: nothing was assumed */
	bool last_stage;                /* memory of the last pipeline stage, not of the fullest */
	struct mb_pos pos;
};

struct mb_measured_set {
	struct mb_arena *arena;
	struct mb_measured *rows;
	int count, room;
};

/* Appends the rows of a file: JSON lines of any form below, or CSV with a heading. False after an error. */
bool mb_measured_read(const char *path, struct mb_measured_set *set, struct mb_diags *diags);

/*
 * One row of JSON: {run, measured}, {megatron_args, measured}, a study {fixed, varied}, or a published result with its
 * configuration in columns of its own. At worst the row says why it is skipped.
 */
void mb_measured_row(const struct mb_node *row, struct mb_arena *arena, struct mb_measured *ret);

/* Heading and lines: columns are keys of a run, or id, source, step_s, peak_allocated_bytes and the like. */
bool mb_measured_csv(const char *text, const char *name, struct mb_measured_set *set, struct mb_diags *diags);

/* ---- for the forms ---- */

void mb_measured_published(const struct mb_node *row, struct mb_arena *arena, struct mb_measured *ret);
void mb_measured_study(const struct mb_node *row, struct mb_arena *arena, struct mb_measured *ret);

/* Reads `text`, "{key: value, ...}", as the run of the row. */
void mb_measured_run(struct mb_measured *row, struct mb_arena *arena, const char *text);

/* Adds a row to the set; its values are NAN. */
struct mb_measured *mb_measured_add(struct mb_measured_set *set);

/* The text or number of a field; NULL and false where it is absent or null. */
const char *mb_row_text(const struct mb_node *row, const char *key);
bool mb_row_number(const struct mb_node *row, const char *key, double *ret);

#endif
