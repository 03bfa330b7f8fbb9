#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "report/list.h"

const char mb_help_list[] =
	"usage: mbsim list models|hardware|stacks|rules|keys [WORD...]\n"
	"\n"
	"  mbsim list models                    # what is shipped\n"
	"  mbsim list models moe                # only those in which the word occurs\n"
	"  mbsim list models qwen3-30b-a3b      # one in full\n"
	"  mbsim list rules EP6\n"
	"  mbsim list keys recompute_modules\n"
	"\n"
	"  --format table|json|csv|md   --output FILE\n";

static const char *find_kind(struct mb_call *call, const char *word)
{
	int count = 0;

	for (; mb_list_kinds[count]; count++) {
		if (strcmp(mb_list_kinds[count], word) == 0)
			return mb_list_kinds[count];
	}

	const char *near = mb_nearest(word, mb_list_kinds, (size_t)count);
	struct mb_pos at = { "argument 1", 0, 1 };
	struct mb_diag *d = mb_report(&call->diags, MB_ERROR, at, "", "nothing to list called '%.60s'", word);

	snprintf(d->expected, sizeof d->expected, "models, hardware, stacks, rules or keys");
	if (near)
		snprintf(d->nearest, sizeof d->nearest, "%s", near);
	return NULL;
}

static void print(struct mb_call *call, struct mb_list *list)
{
	struct mb_text text = { 0 };

	switch (call->options.format) {
	case MB_FORMAT_TABLE:
		mb_list_text(list, &call->style, &text);
		break;
	case MB_FORMAT_JSON:
		mb_list_json(list, &text);
		break;
	case MB_FORMAT_CSV:
		mb_list_csv(list, &text);
		break;
	case MB_FORMAT_MD:
		mb_list_markdown(list, &text);
		break;
	}
	mb_output_text(&call->out, &text);
	mb_text_free(&text);
}

int mb_cmd_list(struct mb_call *call)
{
	struct mb_list list = { .arena = &call->arena };
	struct mb_options *o = &call->options;

	if (o->argc == 0) {
		mb_fail(&call->diags, (struct mb_pos){ 0 },
		        "nothing named to list: models, hardware, stacks, rules or keys");
		return MB_EXIT_USAGE;
	}

	const char *kind = find_kind(call, o->argv[0]);

	if (!kind)
		return MB_EXIT_USAGE;

	bool ok = mb_list_fill(&list, kind, &call->library, &call->diags);

	mb_list_filter(&list, o->argv + 1, o->argc - 1);
	if (list.count == 0 && o->argc > 1) {
		mb_fail(&call->diags, (struct mb_pos){ 0 }, "no %s match; all: mbsim list %s", kind, kind);
		return MB_EXIT_USAGE;
	}
	print(call, &list);
	return ok ? MB_EXIT_DONE : MB_EXIT_USAGE;
}
