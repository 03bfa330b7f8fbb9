#include "cli/command.h"

#include "report/html_report.h"

const char mb_help_report[] =
	"usage: mbsim report STORE [--tokens N] [--goodput F] [--price USD] [--pue F] [--days N] --output FILE\n"
	"\n"
	"  # how many GPUs for how long, at what cost, and what would change that\n"
	"  mbsim sweep capacity.yaml\n"
	"  mbsim report capacity.db --tokens 2e12 --goodput 0.9 --output capacity.html\n"
	"  # the same as Markdown\n"
	"  mbsim report capacity.db --format md --output capacity.md\n"
	"\n"
	"  --tokens N     tokens to train on (the sweep file's, else 1e12)\n"
	"  --goodput F    share of the time that trains (0.9)\n"
	"  --price USD    of a GPU-hour (the hardware file's)\n"
	"  --pue F        power of the site over that of the machines (1.2)\n"
	"  --days N       a deadline: the cheapest cell that meets it; else the fastest within 5 % of the cheapest\n"
	"  --format md    Markdown instead of HTML   --output FILE\n"
	"\n"
	"One file that needs no network. Exit: 0 done, 3 nothing fits.\n";

static void write_report(struct mb_call *call, struct mb_store *store, const struct mb_capacity *c)
{
	struct mb_page page = { .arena = &call->arena };
	struct mb_report r = { .c = c, .page = &page };
	struct mb_text text = { 0 };

	if (c->chosen >= 0)
		r.constants = mb_store_text(store, mb_capacity_text(c->cells[c->chosen].document, "constants"), &call->arena);
	mb_report_fill(&r);
	if (call->options.format == MB_FORMAT_MD)
		mb_page_markdown(&page, &text);
	else
		mb_page_html(&page, &text);
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
	mb_page_free(&page);
}

int mb_cmd_report(struct mb_call *call)
{
	const struct mb_options *o = &call->options;
	const struct mb_capacity_options options = { o->tokens, o->goodput_frac, o->price_usd, o->pue, o->days };
	struct mb_capacity c;
	struct mb_store *store;
	bool ok;

	if (o->argc != 1) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "report takes one store, which mbsim sweep writes; see mbsim report --help");
		return MB_EXIT_USAGE;
	}
	if (o->format == MB_FORMAT_JSON || o->format == MB_FORMAT_CSV) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "report writes HTML or, with --format md, Markdown; rows: mbsim sweep export");
		return MB_EXIT_USAGE;
	}
	store = mb_store_open(o->argv[0], MB_STORE_READ, &call->diags);
	ok = store && mb_capacity_read(store, &options, &call->arena, &c, &call->diags);
	if (ok && c.done_count == 0)
		ok = mb_fail(&call->diags, (struct mb_pos){ 0 }, "no cell of this sweep is finished yet");
	if (ok)
		write_report(call, store, &c);
	mb_store_close(store);
	if (!ok)
		return MB_EXIT_USAGE;
	mb_capacity_free(&c);
	return c.chosen >= 0 ? MB_EXIT_DONE : MB_EXIT_NO_FIT;
}
