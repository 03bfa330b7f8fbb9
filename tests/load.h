/* Loading shipped data in tests: a query from inline YAML, and its evaluation. */
#ifndef MBSIM_TESTS_LOAD_H
#define MBSIM_TESTS_LOAD_H

#include <criterion/criterion.h>
#include <string.h>

#include "cost/cost.h"
#include "desc/node.h"

/* Fails the test with the first diagnostic when the run is not accepted. */
static inline void load_query(const char *yaml, struct mb_arena *arena, struct mb_query *ret)
{
	struct mb_diags diags = { 0 };
	struct mb_library library;
	const struct mb_node *node;

	cr_assert(mb_library_open(&library, &diags), "%s", diags.item[0].text);
	node = mb_node_read_text(yaml, strlen(yaml), "inline", arena, &diags);
	cr_assert(node, "%s", diags.item[0].text);
	memset(ret, 0, sizeof *ret);
	cr_assert(mb_query_from_node(node, &library, arena, ret, &diags), "%s:%d: %s", diags.item[0].pos.file,
	          diags.item[0].pos.line, diags.item[0].text);
}

static inline void load_evaluate(const struct mb_query *q, struct mb_evaluation *e)
{
	cr_assert(mb_evaluable(&q->c, &q->c.run.plan));
	cr_assert_neq(mb_evaluate(&q->c, &q->c.run.plan, e), MB_ILLEGAL);
}

#endif
