#include "cli/command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/sweep_run.h"
#include "report/number.h"
#include "report/sweep_export.h"

const char mb_help_sweep[] =
	"usage: mbsim sweep SWEEP.yaml [--jobs N] [--store FILE] [--shard I/N] [--format csv|json|md]\n"
	"       mbsim sweep export STORE --format csv|json|md\n"
	"       mbsim sweep merge STORE SHARD...\n"
	"       mbsim sweep SWEEP.yaml --emit sbatch [--shard 1/N]\n"
	"\n"
	"  # every cell of a grid, into plan.db; run it again and only what is missing is worked out\n"
	"  mbsim sweep plan.yaml\n"
	"  # the same as rows: JSON is one line a cell\n"
	"  mbsim sweep export plan.db --format csv --output plan.csv\n"
	"  # on two machines, then together\n"
	"  mbsim sweep plan.yaml --shard 1/2 --store a.db\n"
	"  mbsim sweep plan.yaml --shard 2/2 --store b.db\n"
	"  mbsim sweep merge plan.db a.db b.db\n"
	"  # as an array of Slurm jobs\n"
	"  mbsim sweep plan.yaml --emit sbatch --shard 1/16 --output plan.sbatch\n"
	"\n"
	"  --jobs N      processes (one a processor)\n"
	"  --store FILE  where results go (the sweep's name with .db, in this folder)\n"
	"  --shard I/N   only part I of N\n"
	"  --format table|csv|json|md   --output FILE   --quiet   --threads N (of one search)\n"
	"\n"
	"What a sweep file says: docs/sweeps.md. Exit: 0 done, 1 a cell failed, 130 interrupted; the same command continues.\n";

static bool counts_line(struct mb_call *call, struct mb_store *store, const struct mb_sweep_counts *c, struct mb_text *t)
{
	int n[MB_ILLEGAL + 1];

	for (int v = MB_FITS; v <= MB_ILLEGAL; v++) {
		if (!mb_store_count(store, mb_verdict_names[v], &n[v], &call->diags))
			return false;
	}
	mb_text_printf(t, "%s cell%s: ", mb_number_count(c->cells).s, c->cells == 1 ? "" : "s");
	mb_text_printf(t, "%s from the store, %s new, %s failed; ", mb_number_count(c->stored).s, mb_number_count(c->fresh).s,
	               mb_number_count(c->failed).s);
	mb_text_printf(t, "%s fit, ", mb_number_count(n[MB_FITS]).s);
	if (n[MB_AT_RISK])
		mb_text_printf(t, "%s at risk, ", mb_number_count(n[MB_AT_RISK]).s);
	mb_text_printf(t, "%s do not, %s illegal.  %s\n", mb_number_count(n[MB_OUT_OF_MEMORY]).s, mb_number_count(n[MB_ILLEGAL]).s,
	               mb_number_duration(c->elapsed_s).s);
	return true;
}

static bool export_rows(struct mb_call *call, struct mb_store *store)
{
	struct mb_store_grid grid;
	struct mb_text text = { 0 };

	if (!mb_store_get_grid(store, &call->arena, &grid, &call->diags))
		return false;
	switch (call->options.format) {
	case MB_FORMAT_JSON:
		mb_sweep_jsonl(store, &grid, &text);
		break;
	case MB_FORMAT_CSV:
		mb_sweep_csv(store, &grid, &text);
		break;
	case MB_FORMAT_MD:
	case MB_FORMAT_TABLE:
		mb_sweep_markdown(store, &grid, &text);
		break;
	}
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	return true;
}

/* The summary is what a person reads: data when nothing else is asked for, a note beside rows. */
static bool tell(struct mb_call *call, struct mb_store *store, const char *path, const struct mb_sweep_counts *counts)
{
	bool rows = call->options.format != MB_FORMAT_TABLE, ok;
	struct mb_text text = { 0 };

	ok = counts_line(call, store, counts, &text) && (!rows || export_rows(call, store));
	if (ok && !call->options.quiet) {
		mb_text_add(&text, "next  mbsim report ");
		mb_shell_word(&text, path);
		mb_text_add(&text, " --output report.html\n");
	}
	if (ok && rows && !call->options.quiet)
		fputs(text.data, stderr);
	else if (ok && !rows)
		mb_output_text(&call->out, &text);
	mb_text_free(&text);
	return ok;
}

static const char *store_path(struct mb_call *call, const struct mb_sweep_plan *plan)
{
	const struct mb_options *o = &call->options;

	if (o->store)
		return o->store;
	if (o->shards)
		return mb_arena_printf(&call->arena, "%s.%d-of-%d.db", plan->name, o->shard, o->shards);
	return mb_arena_printf(&call->arena, "%s.db", plan->name);
}

enum { PARTS = 16 };

/* Every job writes its own file; the last line of the script says how they come together. */
static int emit(struct mb_call *call, const char *path, const struct mb_sweep_plan *plan)
{
	const struct mb_options *o = &call->options;
	int parts = o->shards ? o->shards : plan->sweep.cell_count < PARTS ? plan->sweep.cell_count : PARTS;
	struct mb_text t = { 0 }, name = { 0 }, file = { 0 };

	mb_shell_word(&name, plan->name);
	mb_shell_word(&file, path);
	mb_text_printf(&t, "#!/bin/sh\n#SBATCH --job-name=mbsim\n#SBATCH --array=1-%d\n#SBATCH --cpus-per-task=%d\n#SBATCH --time=1:00:00\n",
	               parts, o->jobs ? o->jobs : 4);
	mb_text_printf(&t, "# A job that was ended continues where it stopped when it is submitted again. When all are done:\n"
	               "#   mbsim sweep merge %s.db %s.*-of-%d.db\nset -eu\n", name.data, name.data, parts);
	mb_text_printf(&t, "exec mbsim sweep %s --shard \"$SLURM_ARRAY_TASK_ID/%d\" --store %s.\"$SLURM_ARRAY_TASK_ID\"-of-%d.db "
	               "--jobs \"$SLURM_CPUS_PER_TASK\" --quiet\n", file.data, parts, name.data, parts);
	mb_output_text(&call->out, &t);
	mb_text_free(&t);
	mb_text_free(&name);
	mb_text_free(&file);
	return MB_EXIT_DONE;
}

static int run_sweep(struct mb_call *call, const char *file)
{
	struct mb_sweep_plan plan;
	struct mb_sweep_counts counts;
	struct mb_store *store;
	const char *path;
	int status;

	if (!mb_library_open(&call->library, &call->diags) || !mb_sweep_prepare(call, file, &plan))
		return MB_EXIT_USAGE;
	if (call->options.emit)
		return emit(call, file, &plan);
	path = store_path(call, &plan);
	store = mb_store_open(path, MB_STORE_WRITE, &call->diags);
	if (!store)
		return MB_EXIT_USAGE;
	status = mb_sweep_work(call, &plan, store, &counts);
	if ((status == MB_EXIT_DONE || status == MB_EXIT_INTERNAL) && !tell(call, store, path, &counts))
		status = MB_EXIT_USAGE;
	mb_store_close(store);
	return status;
}

static int run_export(struct mb_call *call)
{
	struct mb_store *store;
	bool ok;

	if (call->options.argc != 2) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "export takes one store: mbsim sweep export plan.db --format csv");
		return MB_EXIT_USAGE;
	}
	store = mb_store_open(call->options.argv[1], MB_STORE_READ, &call->diags);
	ok = store && export_rows(call, store);
	mb_store_close(store);
	return ok ? MB_EXIT_DONE : MB_EXIT_USAGE;
}

static int run_merge(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	struct mb_sweep_counts counts = { 0 };
	struct mb_store_grid grid;
	struct mb_store *store;
	bool ok;

	if (o->argc < 3) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "merge takes a store and shards: mbsim sweep merge plan.db a.db b.db");
		return MB_EXIT_USAGE;
	}
	store = mb_store_open(o->argv[1], MB_STORE_WRITE, &call->diags);
	ok = store != NULL;
	for (int i = 2; ok && i < o->argc; i++)
		ok = strcmp(o->argv[i], o->argv[1]) == 0 || mb_store_merge(store, o->argv[i], &call->diags);
	ok = ok && mb_store_get_grid(store, &call->arena, &grid, &call->diags);
	for (int v = MB_FITS; ok && v <= MB_ILLEGAL; v++) {
		int n;

		ok = mb_store_count(store, mb_verdict_names[v], &n, &call->diags);
		counts.stored += ok ? n : 0;
	}
	counts.cells = ok ? grid.count : 0;
	ok = ok && tell(call, store, o->argv[1], &counts);
	mb_store_close(store);
	return ok ? MB_EXIT_DONE : MB_EXIT_USAGE;
}

int mb_cmd_sweep(struct mb_call *call)
{
	const struct mb_options *o = &call->options;

	/* A file that may not grow is an error like a full disk, and no reason to die. */
	signal(SIGXFSZ, SIG_IGN);
	if (o->argc == 0) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "no sweep given: a YAML file; see mbsim sweep --help");
		return MB_EXIT_USAGE;
	}
	if (strcmp(o->argv[0], "export") == 0)
		return run_export(call);
	if (strcmp(o->argv[0], "merge") == 0)
		return run_merge(call);
	if (o->argc > 1) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "one sweep at a time; changes go into the file");
		return MB_EXIT_USAGE;
	}
	return run_sweep(call, o->argv[0]);
}
