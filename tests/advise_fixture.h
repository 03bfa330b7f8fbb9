/* Taking advice in tests as a user would: the printed overrides, read again on top of the run. */
#ifndef MBSIM_TESTS_ADVISE_FIXTURE_H
#define MBSIM_TESTS_ADVISE_FIXTURE_H

#include "advise/trial.h"
#include "load.h"
#include "plan/rules.h"
#include "report/changes.h"

/* "key=value" lines as YAML. */
static inline void changes_yaml(const struct mb_query *q, const struct mb_changes *c, struct mb_text *ret)
{
	struct mb_text lines = { 0 };

	mb_text_add(&lines, "");
	mb_changes_lines(&lines, q, c);
	for (char *line = strtok(lines.data, "\n"); line; line = strtok(NULL, "\n")) {
		char *equals = strchr(line, '=');

		*equals = '\0';
		mb_text_printf(ret, strchr(equals + 1, '|') ? "%s: '%s'\n" : "%s: %s\n", line, equals + 1);
	}
	mb_text_free(&lines);
}

/* The run with changes, read from text; false with diagnostics when it is not accepted. */
static inline bool reload(const char *run, const struct mb_query *q, const struct mb_changes *c, struct mb_arena *arena, struct mb_query *ret,
                          struct mb_diags *diags)
{
	const struct mb_node *nodes[2];
	struct mb_library library;
	struct mb_text text = { 0 };
	bool ok;

	memset(ret, 0, sizeof *ret);
	mb_text_add(&text, "");
	changes_yaml(q, c, &text);
	ok = mb_library_open(&library, diags);
	nodes[0] = mb_node_read_text(run, strlen(run), "run", arena, diags);
	nodes[1] = text.length ? mb_node_read_text(text.data, text.length, "changes", arena, diags) : NULL;
	ok = ok && nodes[0] && (nodes[1] || !text.length) && mb_query_from_nodes(nodes, nodes[1] ? 2 : 1, &library, arena, ret, diags);
	mb_text_free(&text);
	return ok;
}

/* Id of the first error that `check` finds; NULL: legal. */
static inline const char *first_error(const struct mb_query *q)
{
	static struct mb_violation list[MB_MAX_VIOLATIONS];

	if (mb_check(q, &q->c.run.plan, list) == 0 || list[0].rule->severity != MB_RULE_ERROR)
		return NULL;
	return list[0].rule->id;
}

#endif
