/* The parameters of params.def: values in a plain struct, provenance in an array beside it. */
#ifndef MBSIM_DESC_PARAMS_H
#define MBSIM_DESC_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/units.h"

enum mb_param_id {
#define PARAM(member, ...) MB_PARAM_##member,
#include "desc/params.def"
#undef PARAM
	MB_PARAM_COUNT
};

struct mb_params {
#define PARAM(member, ...) double member;
#include "desc/params.def"
#undef PARAM
};

enum mb_origin { MB_ORIGIN_NONE, MB_MEASURED, MB_FITTED, MB_ASSUMED };

/*
 * Where a value came from. sigma: one standard deviation of its logarithm; 0 when the source gives none. prior: of a
 * fitted value, what was expected before the runs that it was fitted to were seen; 0: not said.
 */
struct mb_provenance {
	enum mb_origin origin;
	double sigma;
	double prior, prior_sigma;
	const char *source;
	struct mb_pos pos;
};

struct mb_param_row {
	const char *name;
	size_t offset;                  /* of the double in struct mb_params */
	bool hardware;                  /* else: stack */
	enum mb_dimension dimension;
	double min, max;
	const char *doc;
};

extern const struct mb_param_row mb_param_rows[MB_PARAM_COUNT];

struct mb_node;

/* Rows NAME: {measured|fitted|assumed: VALUE, source: TEXT, sigma: S, prior: VALUE, prior_sigma: S} of one half; later calls override earlier ones. */
bool mb_params_read(const struct mb_node *map, bool hardware, struct mb_arena *arena, struct mb_params *params,
                    struct mb_provenance *provenance, struct mb_diags *diags);

/* Reports every parameter of that half that no file gave. */
bool mb_params_complete(const struct mb_provenance *provenance, bool hardware, struct mb_pos at, struct mb_diags *diags);

#endif
