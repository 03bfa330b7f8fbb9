#include "cli/option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "plan/case.h"

struct reader {
	struct mb_options *o;
	struct mb_diags *diags;
	struct mb_pos at;
};

typedef bool (*option_set)(struct reader *r, const char *value);

static struct mb_diag *report(struct reader *r, const char *option, const char *value, const char *expected)
{
	struct mb_diag *d = mb_report(r->diags, MB_ERROR, r->at, "", "--%s: '%.100s' is not valid", option, value);

	snprintf(d->expected, sizeof d->expected, "%s", expected);
	return d;
}

static bool fail(struct reader *r, const char *option, const char *value, const char *expected)
{
	report(r, option, value, expected);
	return false;
}

/* expected: all there are, as "a, b or c". */
static bool fail_choice(struct reader *r, const char *option, const char *value, const char *expected)
{
	char words[MB_DIAG_TEXT], *rest = words;
	const char *names[8], *nearest;
	struct mb_diag *d = report(r, option, value, expected);
	size_t count = 0;

	snprintf(words, sizeof words, "%s", expected);
	for (char *word; count < 8 && (word = strtok_r(rest, ", ", &rest)) != NULL; )
		if (strcmp(word, "or") != 0)
			names[count++] = word;
	nearest = mb_nearest(value, names, count);
	if (nearest)
		snprintf(d->nearest, sizeof d->nearest, "%s", nearest);
	return false;
}

static bool read_count(struct reader *r, const char *option, const char *value, int max, int *ret)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (end == value || *end != '\0' || n < 1 || n > max) {
		char expected[64];

		snprintf(expected, sizeof expected, "a whole number from 1 to %d", max);
		return fail(r, option, value, expected);
	}
	*ret = (int)n;
	return true;
}

static bool set_format(struct reader *r, const char *value)
{
	static const struct mb_name names[] = {
		{ "table", MB_FORMAT_TABLE },
		{ "json", MB_FORMAT_JSON },
		{ "csv", MB_FORMAT_CSV },
		{ "md", MB_FORMAT_MD },
		{ NULL, 0 },
	};
	int format;

	if (!mb_name_value(names, value, &format))
		return fail_choice(r, "format", value, "table, json, csv or md");
	r->o->format = (enum mb_output_format)format;
	return true;
}

const struct mb_name mb_objective_names[] = {
	{ "step", MB_OBJECTIVE_STEP }, { "memory", MB_OBJECTIVE_MEMORY }, { "cost", MB_OBJECTIVE_COST },
	{ "gpus", MB_OBJECTIVE_GPUS }, { NULL, 0 },
};

static bool set_objective(struct reader *r, const char *value)
{
	int objective;

	if (!mb_name_value(mb_objective_names, value, &objective))
		return fail_choice(r, "objective", value, "step, memory, cost or gpus");
	r->o->objective = (enum mb_objective)objective;
	return true;
}

static bool set_output(struct reader *r, const char *value)
{
	r->o->output = value;
	return value[0] != '\0' || fail(r, "output", value, "a file name");
}

static bool set_to(struct reader *r, const char *value)
{
	r->o->has_to = mb_export_format_find(value, &r->o->to);
	return r->o->has_to || fail_choice(r, "to", value, "bridge, megatron, yaml or sbatch");
}

static bool set_batch(struct reader *r, const char *value)
{
	r->o->batch = value;
	return value[0] != '\0' || fail(r, "batch", value, "a file with one run a line");
}

static bool set_threads(struct reader *r, const char *value)
{
	return read_count(r, "threads", value, 1024, &r->o->threads);
}

static bool set_top(struct reader *r, const char *value)
{
	return read_count(r, "top", value, MB_MAX_TOP, &r->o->top);
}

static bool set_rank(struct reader *r, const char *value)
{
	return read_count(r, "rank", value, MB_MAX_TOP, &r->o->rank);
}

static bool set_jobs(struct reader *r, const char *value)
{
	return read_count(r, "jobs", value, 1024, &r->o->jobs);
}

static bool set_store(struct reader *r, const char *value)
{
	r->o->store = value;
	return value[0] != '\0' || fail(r, "store", value, "a file name");
}

static bool set_shard(struct reader *r, const char *value)
{
	char rest;

	if (sscanf(value, "%d/%d%c", &r->o->shard, &r->o->shards, &rest) == 2 && r->o->shard >= 1 && r->o->shard <= r->o->shards
	    && r->o->shards <= 100000)
		return true;
	return fail(r, "shard", value, "part and parts, such as 2/8");
}

static bool set_emit(struct reader *r, const char *value)
{
	r->o->emit = value;
	return strcmp(value, "sbatch") == 0 || fail(r, "emit", value, "sbatch");
}

static bool read_amount(struct reader *r, const char *option, const char *value, enum mb_dimension dimension, double min, double max,
                        const char *expected, double *ret)
{
	double amount;
	char *end;

	if (!mb_parse_quantity(value, dimension, &amount)) {
		amount = strtod(value, &end);
		if (end == value || *end != '\0')
			return fail(r, option, value, expected);
	}
	if (!(amount >= min && amount <= max))
		return fail(r, option, value, expected);
	*ret = amount;
	return true;
}

static bool set_tokens(struct reader *r, const char *value)
{
	return read_amount(r, "tokens", value, MB_PURE, 1, 1e18, "tokens to train on, such as 2e12", &r->o->tokens);
}

static bool set_goodput(struct reader *r, const char *value)
{
	return read_amount(r, "goodput", value, MB_PURE, 0.01, 1, "the fraction of time that trains, such as 0.9", &r->o->goodput_frac);
}

static bool set_price(struct reader *r, const char *value)
{
	return read_amount(r, "price", value, MB_USD_PER_HOUR, 1e-6, 1e6, "dollars per GPU-hour, such as 2.95", &r->o->price_usd);
}

static bool set_pue(struct reader *r, const char *value)
{
	return read_amount(r, "pue", value, MB_PURE, 1, 5, "power of the site over power of the machines, such as 1.2", &r->o->pue);
}

static bool set_by(struct reader *r, const char *value)
{
	static const char *const names[] = { "model", "family", "gpu", "hardware", "precision", "stack", "source", "group" };

	r->o->by = strcmp(value, "hardware") == 0 ? "gpu" : value;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(names[i], value) == 0)
			return true;
	}
	return fail_choice(r, "by", value, "model, family, gpu, precision, stack or source");
}

static bool set_free(struct reader *r, const char *value)
{
	r->o->also_free = value;
	return value[0] != '\0' || fail(r, "free", value, "names of parameters, separated by commas");
}

static bool set_loosen(struct reader *r, const char *value)
{
	char *end;

	r->o->loosen = strtod(value, &end);
	if (end == value || *end != '\0' || !(r->o->loosen >= 0.01 && r->o->loosen <= 1000))
		return fail(r, "loosen", value, "a factor from 0.01 to 1000");
	return true;
}

static bool set_from_priors(struct reader *r, const char *value)
{
	(void)value;
	r->o->from_priors = true;
	return true;
}

static bool set_routing_skew(struct reader *r, const char *value)
{
	char *end;

	r->o->draw_routing = true;
	r->o->routing_skew = strtod(value, &end);
	if (end == value || *end != '\0' || !(r->o->routing_skew >= 0 && r->o->routing_skew <= 3))
		return fail(r, "routing-skew", value, "a spread from 0 (chance alone) to 3, such as 0.5");
	return true;
}

static bool set_seed(struct reader *r, const char *value)
{
	return read_count(r, "seed", value, 2147483647, &r->o->seed);
}

static bool set_days(struct reader *r, const char *value)
{
	return read_amount(r, "days", value, MB_PURE, 0.01, 1e5, "days until it must be done, such as 30", &r->o->days);
}

/* A bare number is GiB, as PyTorch prints it. */
static bool read_size(struct reader *r, const char *option, const char *value, double *ret)
{
	double amount;
	char *end;

	if (!mb_parse_quantity(value, MB_BYTES, &amount)) {
		amount = strtod(value, &end) * 1073741824.0;
		if (end == value || *end != '\0')
			return fail(r, option, value, "a size such as '54.8 GiB'");
	}
	if (!(amount > 0 && amount < 1e15))
		return fail(r, option, value, "a size such as '54.8 GiB'");
	*ret = amount;
	return true;
}

#define SIZE(option, member)                                                                                           \
	static bool set_##member(struct reader *r, const char *value)                                                  \
	{                                                                                                              \
		return read_size(r, option, value, &r->o->member);                                                     \
	}
SIZE("target", target_bytes)
SIZE("allocated", allocated_bytes)
SIZE("reserved", reserved_bytes)
SIZE("device-used", device_used_bytes)
SIZE("failed-alloc", failed_bytes)
#undef SIZE

static bool set_step(struct reader *r, const char *value)
{
	return read_count(r, "step", value, 1000000000, &r->o->step);
}

/* Of a process, which counts from 0, or of a plan. */
static bool set_any_rank(struct reader *r, const char *value)
{
	r->o->rank_given = true;
	return strcmp(value, "0") == 0 || read_count(r, "rank", value, 1000000, &r->o->rank);
}

static bool set_require(struct reader *r, const char *value)
{
	if (r->o->require_count == MB_MAX_REQUIREMENTS)
		return mb_fail(r->diags, r->at, "--require is given more than %d times", MB_MAX_REQUIREMENTS);
	return mb_requirement_read(value, r->at, &r->o->require[r->o->require_count++], r->diags);
}

#define FLAG(member)                                                                                                   \
	static bool set_##member(struct reader *r, const char *value)                                                  \
	{                                                                                                              \
		(void)value;                                                                                           \
		return r->o->member = true;                                                                            \
	}
FLAG(quiet)
FLAG(help)
FLAG(version)
FLAG(flat)
FLAG(all_stages)
FLAG(assumptions)
FLAG(emit_changes)
#undef FLAG

static const struct {
	const char *name;
	bool takes_value;
	unsigned commands;
	option_set set;
} options[] = {
	{ "format",      true,  MB_CMD_ANY,                      set_format },
	{ "output",      true,  MB_CMD_ANY,                      set_output },
	{ "quiet",       false, MB_CMD_ANY,                      set_quiet },
	{ "help",        false, MB_CMD_ANY,                      set_help },
	{ "version",     false, MB_CMD_ANY,                      set_version },
	{ "threads",     true,  MB_CMD_ANY,                      set_threads },
	{ "top",         true,  MB_CMD_SEARCH | MB_CMD_VALIDATE, set_top },
	{ "objective",   true,  MB_CMD_SEARCH | MB_CMD_ESTIMATE | MB_CMD_TRACE | MB_CMD_EXPORT | MB_CMD_EXPLAIN | MB_CMD_ADVISE, set_objective },
	{ "flat",        false, MB_CMD_SEARCH,                   set_flat },
	{ "require",     true,  MB_CMD_SEARCH | MB_CMD_ESTIMATE, set_require },
	{ "rank",        true,  MB_CMD_ESTIMATE | MB_CMD_TRACE | MB_CMD_EXPORT,  set_rank },
	{ "by",          true,  MB_CMD_VALIDATE | MB_CMD_CALIBRATE, set_by },
	{ "free",        true,  MB_CMD_CALIBRATE,                set_free },
	{ "loosen",      true,  MB_CMD_CALIBRATE,                set_loosen },
	{ "from-priors", false, MB_CMD_CALIBRATE,                set_from_priors },
	{ "to",          true,  MB_CMD_EXPORT,                   set_to },
	{ "batch",       true,  MB_CMD_ESTIMATE,                 set_batch },
	{ "all-stages",  false, MB_CMD_ESTIMATE,                 set_all_stages },
	{ "routing-skew", true, MB_CMD_ESTIMATE,                 set_routing_skew },
	{ "seed",        true,  MB_CMD_ESTIMATE,                 set_seed },
	{ "assumptions", false, MB_CMD_ESTIMATE,                 set_assumptions },
	{ "jobs",        true,  MB_CMD_SWEEP,                    set_jobs },
	{ "store",       true,  MB_CMD_SWEEP,                    set_store },
	{ "shard",       true,  MB_CMD_SWEEP,                    set_shard },
	{ "emit",        true,  MB_CMD_SWEEP,                    set_emit },
	{ "tokens",      true,  MB_CMD_REPORT,                   set_tokens },
	{ "goodput",     true,  MB_CMD_REPORT,                   set_goodput },
	{ "price",       true,  MB_CMD_REPORT,                   set_price },
	{ "pue",         true,  MB_CMD_REPORT,                   set_pue },
	{ "days",        true,  MB_CMD_REPORT,                   set_days },
	{ "rank",        true,  MB_CMD_EXPLAIN,                  set_rank },
	{ "rank",        true,  MB_CMD_ADVISE,                   set_any_rank },
	{ "emit",        false, MB_CMD_ADVISE,                   set_emit_changes },
	{ "target",      true,  MB_CMD_ADVISE,                   set_target_bytes },
	{ "allocated",   true,  MB_CMD_ADVISE,                   set_allocated_bytes },
	{ "reserved",    true,  MB_CMD_ADVISE,                   set_reserved_bytes },
	{ "device-used", true,  MB_CMD_ADVISE,                   set_device_used_bytes },
	{ "failed-alloc", true, MB_CMD_ADVISE,                   set_failed_bytes },
	{ "step",        true,  MB_CMD_ADVISE,                   set_step },
};

enum { OPTIONS = sizeof options / sizeof options[0] };

/* By name; where two commands have an option of one name, this command's. */
static int find(const char *word, unsigned command, const char **value)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : strlen(word);
	int found = -1;

	for (int i = 0; i < OPTIONS; i++) {
		if (strlen(options[i].name) != length || strncmp(options[i].name, word, length) != 0)
			continue;
		if (found < 0 || (options[i].commands & command))
			found = i;
	}
	if (found >= 0)
		*value = equals ? equals + 1 : NULL;
	return found;
}

/* Reads the option at argv[i]; returns how many words it took. */
static int read_option(struct reader *r, int id, const char *value, char **argv, int i, int argc, unsigned command)
{
	int taken = 1;

	if (!(options[id].commands & command)) {
		mb_report(r->diags, MB_ERROR, r->at, "", "this command has no option --%s", options[id].name);
		return taken + (options[id].takes_value && !value && i + 1 < argc);
	}
	if (options[id].takes_value && !value) {
		if (i + 1 == argc) {
			mb_report(r->diags, MB_ERROR, r->at, "", "--%s needs a value", options[id].name);
			return taken;
		}
		value = argv[i + 1];
		taken++;
	} else if (!options[id].takes_value && value) {
		mb_report(r->diags, MB_ERROR, r->at, "", "--%s takes no value", options[id].name);
		return taken;
	}
	options[id].set(r, value);
	return taken;
}

/* A word that starts like an option, is no key of a run, and is close to an option's name: a typing error. */
static const char *misspelt(const char *word)
{
	const char *names[OPTIONS];
	char name[64];
	bool negated;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	for (int i = 0; i < OPTIONS; i++)
		names[i] = options[i].name;
	return mb_key_find(name, &negated) ? NULL : mb_nearest(name, names, OPTIONS);
}

bool mb_options_read(int argc, char **argv, unsigned command, struct mb_arena *arena, struct mb_options *ret,
                     struct mb_diags *diags)
{
	struct reader r = { ret, diags, { 0 } };
	int before = diags->errors;

	ret->argv = mb_arena_alloc(arena, (size_t)(argc + 1) * sizeof *ret->argv);
	ret->number = mb_arena_alloc(arena, (size_t)(argc + 1) * sizeof *ret->number);
	for (int i = 0; i < argc;) {
		const char *value = NULL;
		bool dashed = strncmp(argv[i], "--", 2) == 0;
		int id = dashed ? find(argv[i] + 2, command, &value) : strcmp(argv[i], "-h") == 0 ? find("help", command, &value) : -1;

		r.at = (struct mb_pos){ mb_arena_printf(arena, "argument %d", i + 1), 0, 1 };
		if (id >= 0) {
			i += read_option(&r, id, value, argv, i, argc, command);
			continue;
		}
		const char *near = dashed ? misspelt(argv[i] + 2) : NULL;

		if (near) {
			struct mb_diag *d = mb_report(diags, MB_ERROR, r.at, "", "unknown option '%.60s'", argv[i]);

			snprintf(d->nearest, sizeof d->nearest, "--%s", near);
		}
		ret->number[ret->argc] = i + 1;
		ret->argv[ret->argc++] = argv[i++];
	}
	if (diags->errors == before)
		return true;
	ret->argc = 0;          /* the places of what is wrong are as typed already, see mb_options_renumber */
	return false;
}

void mb_options_renumber(const struct mb_options *o, struct mb_arena *arena, struct mb_pos *pos)
{
	int n;

	if (pos->file && pos->line == 0 && sscanf(pos->file, "argument %d", &n) == 1 && n >= 1 && n <= o->argc)
		pos->file = mb_arena_printf(arena, "argument %d", o->number[n - 1]);
}
