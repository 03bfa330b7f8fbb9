#include "calib/measured.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "desc/node_source.h"

const struct mb_measure_row mb_measure_rows[MB_M_COUNT] = {
	[MB_M_STEP]       = { "step_s", "time", "step" },
	[MB_M_BETWEEN]    = { "between_steps_bytes", "memory", "between" },
	[MB_M_FIRST_PEAK] = { "first_step_peak_bytes", "memory", "first" },
	[MB_M_PEAK]       = { "peak_allocated_bytes", "memory", "peak" },
};

const char *mb_row_text(const struct mb_node *row, const char *key)
{
	const struct mb_node *n = mb_node_get(row, key);

	return n && n->type == MB_NODE_SCALAR && !mb_node_is_null(n) ? n->text : NULL;
}

bool mb_row_number(const struct mb_node *row, const char *key, double *ret)
{
	const struct mb_node *n = mb_node_get(row, key);

	return n && n->type == MB_NODE_SCALAR && !mb_node_is_null(n) && mb_node_double(n, ret);
}

struct mb_measured *mb_measured_add(struct mb_measured_set *set)
{
	if (set->count == set->room) {
		int room = set->room ? 2 * set->room : 256;
		struct mb_measured *rows = mb_arena_alloc(set->arena, (size_t)room * sizeof *rows);

		if (set->count)
			memcpy(rows, set->rows, (size_t)set->count * sizeof *rows);
		set->rows = rows;
		set->room = room;
	}
	struct mb_measured *row = &set->rows[set->count++];

	*row = (struct mb_measured){ .id = "", .source = "", .family = "" };
	for (int i = 0; i < MB_M_COUNT; i++)
		row->value[i] = NAN;
	return row;
}

void mb_measured_run(struct mb_measured *row, struct mb_arena *arena, const char *text)
{
	struct mb_diags diags = { 0 };

	row->run = mb_node_read_text(text, strlen(text), row->id, arena, &diags);
	if (!row->run)
		row->skip = "its configuration cannot be read";
}

static void take_measured(const struct mb_node *measured, struct mb_measured *ret)
{
	const char *rank = mb_row_text(measured, "rank");

	for (int i = 0; i < MB_M_COUNT; i++) {
		double value;

		if (mb_row_number(measured, mb_measure_rows[i].json, &value) && value > 0)
			ret->value[i] = value;
	}
	ret->last_stage = rank && strncmp(rank, "last", 4) == 0;
}

/*
 * Goldens of Megatron-LM's functional tests. Their step times are of models too small to say anything about kernels, so
 * only memory is taken. Two groups are not what they claim to be: hybrid A100 files are byte-identical to H100 files or
 * to another test, and one long-term-support test of expert models does not fit its own configuration.
 */
static void take_functional_test(const struct mb_node *row, struct mb_measured *ret)
{
	const char *test = mb_row_text(row, "test"), *hardware = mb_row_text(row, "hardware"), *stack = mb_row_text(row, "stack");
	const struct mb_node *flags = mb_node_get(row, "megatron_args");

	ret->source = "Megatron-LM functional tests";
	ret->value[MB_M_STEP] = NAN;
	if (mb_node_get(flags, "--perform-rl-step"))
		ret->skip = "reinforcement learning is not modelled";
	else if (strcmp(ret->family, "hybrid") == 0 && hardware && strstr(hardware, "a100"))
		ret->skip = "suspect record: the same bytes as on another machine";
	else if (test && strstr(test, "multi_dist_optimizer_instances") && stack && strncmp(stack, "mlm-lts", 7) == 0 &&
	         mb_node_get(flags, "--num-experts"))
		ret->skip = "suspect record: it does not fit its own configuration";
}

void mb_measured_row(const struct mb_node *row, struct mb_arena *arena, struct mb_measured *ret)
{
	const struct mb_node *measured = mb_node_get(row, "measured");
	const char *text;

	ret->pos = row->pos;
	if ((text = mb_row_text(row, "id")))
		ret->id = text;
	if ((text = mb_row_text(row, "source")))
		ret->source = text;
	if ((text = mb_row_text(row, "family")))
		ret->family = text;
	if (row->type != MB_NODE_MAP) {
		ret->skip = "not a row of measurements";
	} else if (measured) {
		ret->run = row;
		ret->configured = true;
		take_measured(measured, ret);
		if (mb_node_get(row, "megatron_args"))
			take_functional_test(row, ret);
	} else if (mb_node_get(row, "fixed") || mb_node_get(row, "varied")) {
		mb_measured_study(row, arena, ret);
	} else if (mb_node_get(row, "kind")) {
		mb_measured_published(row, arena, ret);
	} else {
		ret->skip = "not a row of measurements: it has no 'measured'";
	}
}

/* The first word of a file decides: a brace opens JSON, anything else is a heading of CSV. */
static bool is_json(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '{';
}

static bool read_lines(char *text, const char *path, struct mb_measured_set *set, struct mb_diags *diags)
{
	int number = 0;

	for (char *line = text, *end; *line; line = end) {
		char *newline = strchr(line, '\n');
		size_t length = newline ? (size_t)(newline - line) : strlen(line);

		end = newline ? newline + 1 : line + length;
		number++;
		if (strspn(line, " \t\r") >= length)
			continue;

		struct mb_diags own = { 0 };
		const struct mb_node *row = mb_node_read_text(line, length, path, set->arena, &own);
		struct mb_pos at = { path, number, own.count ? own.item[0].pos.column : 1 };

		if (!row)
			return mb_fail(diags, at, "%s", own.item[0].text);
		struct mb_measured *m = mb_measured_add(set);

		mb_measured_row(row, set->arena, m);
		m->pos.line += number - 1;
	}
	return true;
}

bool mb_measured_read(const char *path, struct mb_measured_set *set, struct mb_diags *diags)
{
	size_t length;
	int before = set->count;
	char *text = mb_source_read(path, set->arena, &length, diags);

	if (!text || !mb_source_check(text, length, (struct mb_pos){ .file = path }, diags))
		return false;
	if (!(is_json(text) ? read_lines(text, path, set, diags) : mb_measured_csv(text, path, set, diags)))
		return false;
	return set->count > before || mb_fail(diags, (struct mb_pos){ .file = path }, "holds no measured runs");
}
