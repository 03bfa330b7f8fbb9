#include "report/estimate.h"

#include <math.h>

#include "desc/params.h"
#include "report/number.h"
#include "report/table.h"

static const struct mb_provenance *origin_of(const struct mb_case *c, int id)
{
	return mb_param_rows[id].hardware ? &c->hardware.provenance[id] : &c->stack.provenance[id];
}

int mb_count_assumed(const struct mb_case *c)
{
	int count = 0;

	for (int id = 0; id < MB_PARAM_COUNT; id++)
		count += origin_of(c, id)->origin == MB_ASSUMED;
	return count;
}

static double value_of(const struct mb_case *c, int id)
{
	const char *base = (const char *)&c->params;

	return *(const double *)(const void *)(base + mb_param_rows[id].offset);
}

static const char *print_value(const struct mb_case *c, int id, struct mb_number *ret)
{
	double value = value_of(c, id);

	*ret = mb_param_rows[id].dimension == MB_SECONDS ? mb_number_duration(value) : mb_number_3(value);
	return ret->s;
}

void mb_estimate_assumptions(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret)
{
	static const char *const origins[] = {
		[MB_ORIGIN_NONE] = "default",
		[MB_MEASURED] = "measured",
		[MB_FITTED] = "fitted",
		[MB_ASSUMED] = "assumed",
	};
	const struct mb_case *c = &x->q->c;
	struct mb_arena arena = { 0 };
	struct mb_table table = { .arena = &arena };

	mb_table_column(&table, "constant", "", MB_LEFT, 0);
	mb_table_column(&table, "value", "", MB_RIGHT, 0);
	mb_table_column(&table, "from", "", MB_LEFT, 0);
	mb_table_column(&table, "source", "", MB_LEFT, 0);
	for (int id = 0; id < MB_PARAM_COUNT; id++) {
		const struct mb_provenance *from = origin_of(c, id);
		struct mb_number value;

		mb_table_row(&table, from->origin == MB_ASSUMED ? MB_INK_YELLOW : MB_INK_PLAIN);
		mb_table_cell(&table, mb_param_rows[id].name);
		mb_table_cell(&table, print_value(c, id, &value));
		mb_table_cell(&table, origins[from->origin]);
		mb_table_cell(&table, from->source ? from->source : "");
	}
	mb_ink_printf(ret, s, MB_INK_BOLD, "CONSTANTS of %s and %s", c->hardware.name, c->stack.name);
	mb_text_add(ret, "\n");
	table.columns[3].clip = s->colour;
	mb_table_print(&table, s, ret);
	mb_arena_free(&arena);
}
