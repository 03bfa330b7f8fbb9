/* Options of the commands. What is not an option is left for the run: files, key=value, --key value. */
#ifndef MBSIM_CLI_OPTION_H
#define MBSIM_CLI_OPTION_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/names.h"
#include "cli/require.h"
#include "exchange/export.h"
#include "search/search.h"

enum mb_output_format { MB_FORMAT_TABLE, MB_FORMAT_JSON, MB_FORMAT_CSV, MB_FORMAT_MD };

/* Commands that take an option, as bits. */
enum {
	MB_CMD_SEARCH = 1, MB_CMD_ESTIMATE = 2, MB_CMD_CHECK = 4, MB_CMD_LIST = 8, MB_CMD_EXPLAIN = 16,
	MB_CMD_ADVISE = 32, MB_CMD_TRACE = 256, MB_CMD_SWEEP = 512, MB_CMD_REPORT = 1024, MB_CMD_VALIDATE = 2048,
	MB_CMD_CALIBRATE = 4096, MB_CMD_IMPORT = 8192, MB_CMD_EXPORT = 16384, MB_CMD_ANY = 0xffff
};

extern const struct mb_name mb_objective_names[];

struct mb_options {
	enum mb_output_format format;
	const char *output, *batch;
	bool has_to;                    /* export */
	enum mb_export_format to;
	const char *by, *also_free;     /* validate, calibrate */
	double loosen;                  /* calibrate; 0: not given */
	bool from_priors;
	bool draw_routing;              /* estimate: --routing-skew was given */
	double routing_skew;
	int seed;                       /* 0: not given */
	bool quiet, help, version, flat, all_stages, assumptions;
	int threads, top, rank;         /* 0: not given */
	enum mb_objective objective;
	struct mb_requirement require[MB_MAX_REQUIREMENTS];
	int require_count;

	/* sweep and report */
	const char *store, *emit;
	int jobs, shard, shards;        /* shard 1 .. shards; 0: all */
	double tokens, goodput_frac, price_usd, pue, days;     /* 0: not given */

	/* advise; sizes in bytes, 0: not given */
	bool rank_given, emit_changes;
	double target_bytes, allocated_bytes, reserved_bytes, device_used_bytes, failed_bytes;
	int step;

	int argc;                       /* what is left */
	char **argv;
	int *number;                    /* of each, as the user counts: 1 is the first after the command */
};

/* Reads the words after the command. Errors stand at "argument N"; false when there is one. */
bool mb_options_read(int argc, char **argv, unsigned command, struct mb_arena *arena, struct mb_options *ret,
                     struct mb_diags *diags);

/* Turns places among what is left ("argument 2") into places among what was typed. */
void mb_options_renumber(const struct mb_options *o, struct mb_arena *arena, struct mb_pos *pos);

#endif
