#include "report/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/facet.h"
#include "report/json.h"

enum track { OPERATIONS, COMPUTE, HOST, TP, CP, EP, PP, FSDP, OFFLOAD, DP, WAITING, TRACKS };

static const char *const track_names[TRACKS] = {
	"operations", "compute", "host", "tp communication", "cp communication", "ep communication", "pp communication",
	"fsdp communication", "offload", "dp communication", "waiting",
};

static const enum track track_of[MB_TIME_COUNT] = {
	[MB_TIME_gemm] = COMPUTE, [MB_TIME_expert_gemm] = COMPUTE, [MB_TIME_attention] = COMPUTE, [MB_TIME_ssm] = COMPUTE,
	[MB_TIME_elementwise] = COMPUTE, [MB_TIME_quantise] = COMPUTE, [MB_TIME_gaps] = COMPUTE, [MB_TIME_tp] = TP, [MB_TIME_cp] = CP,
	[MB_TIME_ep] = EP, [MB_TIME_host] = HOST, [MB_TIME_offload] = OFFLOAD, [MB_TIME_pp] = PP, [MB_TIME_fsdp] = FSDP,
	[MB_TIME_bubble] = WAITING, [MB_TIME_dp] = DP, [MB_TIME_optimizer] = COMPUTE, [MB_TIME_fixed] = HOST,
};

/* Microseconds, exact: times are whole picoseconds. */
static void add_us(struct mb_text *t, const char *key, int64_t ps)
{
	mb_text_printf(t, ",\"%s\":%" PRId64 ".%06d", key, ps / 1000000, (int)(ps % 1000000));
}

static void begin_span(struct mb_text *t, int rank, enum track track, int64_t start_ps, int64_t length_ps)
{
	mb_text_printf(t, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d", rank, (int)track);
	add_us(t, "ts", start_ps);
	add_us(t, "dur", length_ps);
}

static void add_term(struct mb_text *t, int rank, int term, int64_t start_ps, int64_t length_ps, const struct mb_schedule_op *op)
{
	if (length_ps <= 0)
		return;
	begin_span(t, rank, track_of[term], start_ps, length_ps);
	mb_text_printf(t, ",\"name\":\"%s\",\"cat\":\"%s\"", mb_time_terms[term].label, mb_time_terms[term].json);
	if (op)
		mb_text_printf(t, ",\"args\":{\"micro_batch\":%" PRId64 ",\"chunk\":%d}", op->micro_batch, op->chunk);
	mb_text_add(t, "}");
}

static void add_wait(struct mb_text *t, int rank, const char *name, int64_t start_ps, int64_t end_ps)
{
	if (end_ps <= start_ps)
		return;
	begin_span(t, rank, WAITING, start_ps, end_ps - start_ps);
	mb_text_printf(t, ",\"name\":\"%s\",\"cat\":\"bubble\"}", name);
}

static void add_operation(struct mb_text *t, const struct mb_timeline *line, const struct mb_schedule_op *op)
{
	int64_t parts[MB_TIME_COUNT], at = op->start_ps;

	begin_span(t, op->rank, OPERATIONS, op->start_ps, op->end_ps - op->start_ps);
	mb_text_printf(t, ",\"name\":\"%s micro-batch %" PRId64, op->backward ? "backward" : "forward", op->micro_batch);
	if (line->pipeline.vp > 1)
		mb_text_printf(t, " chunk %d", op->chunk);
	mb_text_printf(t, "\",\"cat\":\"operation\",\"args\":{\"micro_batch\":%" PRId64 ",\"chunk\":%d,\"direction\":\"%s\"}}",
	               op->micro_batch, op->chunk, op->backward ? "backward" : "forward");
	mb_timeline_parts(line, op, parts);
	for (int i = 0; i < MB_TIME_COUNT; i++) {
		add_term(t, op->rank, i, at, parts[i], op);
		at += parts[i];
	}
}

static void add_memory(struct mb_text *t, int rank, int64_t ps, double bytes)
{
	mb_text_printf(t, ",\n{\"ph\":\"C\",\"pid\":%d", rank);
	add_us(t, "ts", ps);
	mb_text_printf(t, ",\"name\":\"allocated memory\",\"args\":{\"bytes\":%.0f}}", round(bytes));
}

static void add_name(struct mb_text *t, int pid, int tid, const char *kind, const char *name)
{
	mb_text_printf(t, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}}", pid, tid, kind, name);
}

static void add_order(struct mb_text *t, int pid, int tid, const char *kind, int order)
{
	mb_text_printf(t, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"sort_index\":%d}}", pid, tid, kind, order);
}

static void add_names(struct mb_text *t, int rank)
{
	char name[64];

	snprintf(name, sizeof name, "pipeline rank %d", rank);
	add_name(t, rank, 0, "process_name", name);
	add_order(t, rank, 0, "process_sort_index", rank);
	for (int i = 0; i < TRACKS; i++) {
		add_name(t, rank, i, "thread_name", track_names[i]);
		add_order(t, rank, i, "thread_sort_index", i);
	}
}

void mb_trace_begin(const struct mb_timeline *t, const struct mb_query *q, struct mb_text *ret)
{
	struct mb_text title = { 0 }, layout = { 0 };
	cJSON *other = cJSON_CreateObject();

	mb_headline(&title, q);
	mb_layout_words(&layout, &q->c.run.plan);
	mb_json_text(other, "schema", "mbsim.trace/1");
	mb_json_text(other, "run", title.data);
	mb_json_text(other, "layout", layout.data);
	mb_json_text(other, "stack", q->c.stack.name);
	mb_json_number(other, "step_s", t->e->step_s);
	mb_json_int(other, "slowest_rank", t->e->slowest_stage);
	mb_text_add(ret, "{\"displayTimeUnit\":\"ms\",\"otherData\":");

	char *text = cJSON_PrintUnformatted(other);

	mb_text_add(ret, text ? text : "{}");
	mb_text_add(ret, ",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"trace_config\",\"args\":{}}");
	cJSON_free(text);
	cJSON_Delete(other);
	mb_text_free(&title);
	mb_text_free(&layout);
}

/* What follows the last operation, up to the end of the step that the slowest rank sets. */
static void add_finish(const struct mb_timeline *line, int rank, int64_t step_ps, struct mb_text *ret)
{
	static const int terms[3] = { MB_TIME_dp, MB_TIME_optimizer, MB_TIME_fixed };
	const struct mb_stage_memory *m = &line->e->stage_memory[rank];
	int64_t start = line->end_ps[rank], at = start;

	for (int i = 0; i < 3; i++)
		at += line->finish_ps[rank][i];
	begin_span(ret, rank, OPERATIONS, start, at - start);
	mb_text_add(ret, ",\"name\":\"optimizer step\",\"cat\":\"operation\"}");
	add_memory(ret, rank, start, m->between_bytes);
	at = start;
	for (int i = 0; i < 3; i++) {
		add_term(ret, rank, terms[i], at, line->finish_ps[rank][i], NULL);
		at += line->finish_ps[rank][i];
	}
	add_wait(ret, rank, "waiting for the slowest rank", at, step_ps);
	add_memory(ret, rank, step_ps, m->between_bytes);
}

void mb_trace_rank(const struct mb_timeline *t, int rank, struct mb_text *ret)
{
	int64_t finish[MB_MAX_STAGES], at = 0, step_ps;
	int32_t counts[MB_MAX_CHUNKS] = { 0 };

	for (int r = 0; r < t->pipeline.pp; r++)
		finish[r] = t->finish_ps[r][0] + t->finish_ps[r][1] + t->finish_ps[r][2];
	step_ps = mb_schedule_step(&t->pipeline, t->end_ps, finish);
	add_names(ret, rank);
	for (int64_t i = 0; i < t->per_rank; i++) {
		const struct mb_schedule_op *op = &t->ops[rank * t->per_rank + i];
		struct mb_timeline_memory m = mb_timeline_memory(t, rank, i, counts);

		add_wait(ret, rank, op->backward ? "waiting for a gradient" : "waiting for activations", at, op->start_ps);
		add_operation(ret, t, op);
		add_memory(ret, rank, op->start_ps, m.during);
		add_memory(ret, rank, op->end_ps, m.after);
		at = op->end_ps;
	}
	add_finish(t, rank, step_ps, ret);
}

void mb_trace_end(struct mb_text *ret)
{
	mb_text_add(ret, "\n]}\n");
}
