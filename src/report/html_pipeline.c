/* Section 6: the pipeline's warm-up and one steady period. */
#include "report/html_report.h"
#include "report/pipeline_window.h"

enum { MAX_ROWS = 64, MAX_BARS = 1600 };

static void add_operation(cJSON *list, int rank, const struct mb_window_op *op)
{
	const double values[] = { rank, op->start_ms, op->end_ms, (double)op->micro_batch, op->chunk };

	cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(values, 5));
}

static void add_row(struct mb_report *r, struct mb_block *b, int rank, const struct mb_window_rank *x)
{
	double first = x->count ? x->ops[0].start_ms : 0;

	mb_table_row(b->table, MB_INK_PLAIN);
	mb_report_cell(b->table, "%d", rank);
	mb_report_cell(b->table, "%lld", x->warmup);
	mb_report_cell(b->table, "%s", mb_number_3(first).s);
	mb_report_cell(b->table, "%s", x->count ? mb_number_3(x->ops[0].end_ms - first).s : "-");
	mb_report_cell(b->table, "%s", mb_number_percent(x->busy_frac).s);
	cJSON_AddItemToArray(cJSON_GetObjectItem(b->chart, "rows"), cJSON_CreateString(mb_arena_printf(r->page->arena, "stage %d", rank)));
}

static struct mb_block *begin_chart(struct mb_report *r, const struct mb_window *w)
{
	const struct mb_window_rank *last = &w->ranks[w->pp - 1];
	struct mb_block *b = mb_report_chart(r, "timeline", "timeline", mb_arena_printf(r->page->arena,
		"The last stage starts after %s ms; %lld micro-batches pass %d stages", mb_number_3(last->count ? last->ops[0].start_ms : w->end_ms).s,
		w->micro_batches, w->pp));

	cJSON_AddItemToObject(b->chart, "rows", cJSON_CreateArray());
	cJSON_AddStringToObject(b->chart, "x", "ms");
	cJSON_AddNumberToObject(b->chart, "rowHeight", 26);
	cJSON_AddNumberToObject(b->chart, "end", w->end_ms);
	mb_report_column(b->table, "stage", "", MB_RIGHT);
	mb_report_column(b->table, "warm-up forwards", "", MB_RIGHT);
	mb_report_column(b->table, "first start", "ms", MB_RIGHT);
	mb_report_column(b->table, "first forward", "ms", MB_RIGHT);
	mb_report_column(b->table, "busy in this window", "%", MB_RIGHT);
	return b;
}

void mb_report_pipeline(struct mb_report *r)
{
	struct mb_window w;
	struct mb_block *b;
	cJSON *forward, *backward;
	int bars = 0;

	mb_report_section(r, "pipeline", "Pipeline");
	if (!mb_window_fill(cJSON_GetObjectItem(mb_report_chosen(r)->document, "pipeline"), r->page->arena, &w)) {
		mb_page_add(r->page, MB_BLOCK_TEXT, "This schedule is too long to draw.");
		return;
	}
	if (w.pp == 1) {
		mb_page_add(r->page, MB_BLOCK_TEXT, "One stage: micro-batches run one after the other, without a pipeline.");
		return;
	}
	b = begin_chart(r, &w);
	forward = cJSON_AddArrayToObject(b->chart, "forward");
	backward = cJSON_AddArrayToObject(b->chart, "backward");
	for (int rank = 0; rank < w.pp && rank < MAX_ROWS; rank++) {
		const struct mb_window_rank *x = &w.ranks[rank];

		add_row(r, b, rank, x);
		for (int i = 0; i < x->count && bars < MAX_BARS; i++, bars++)
			add_operation(x->ops[i].backward ? backward : forward, rank, &x->ops[i]);
	}
	mb_page_add(r->page, MB_BLOCK_TEXT, "Warm-up and one period of the steady state; the whole step as a trace: `mbsim trace`, section 8.");
}
