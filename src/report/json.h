/*
 * Writing JSON: bytes and counts as integers, other numbers as the shortest text that reads back to the same double,
 * never NaN or infinity (they become null).
 */
#ifndef MBSIM_REPORT_JSON_H
#define MBSIM_REPORT_JSON_H

#include <cjson/cJSON.h>

#include "base/text.h"
#include "cost/cost.h"
#include "plan/rules.h"

/* A new object with its "schema". */
cJSON *mb_json_document(const char *schema);
cJSON *mb_json_object(cJSON *parent, const char *key);          /* a child; key NULL: an element of an array */
cJSON *mb_json_array(cJSON *parent, const char *key);

void mb_json_int(cJSON *o, const char *key, long long value);
void mb_json_bytes(cJSON *o, const char *key, double bytes);    /* rounded to whole bytes */
void mb_json_number(cJSON *o, const char *key, double value);
void mb_json_text(cJSON *o, const char *key, const char *value);        /* NULL: null */
void mb_json_bool(cJSON *o, const char *key, bool value);
void mb_json_null(cJSON *o, const char *key);

/* Appends the document and a newline, then frees it. pretty: indented; else one line. */
void mb_json_write(cJSON *document, bool pretty, struct mb_text *ret);

/*
 * One key of a run with the type it has; the whole run, in a form that can be read back; a fix; violations.
 * open: keys that are still to be found (indexed by enum mb_key_id), written "auto"; NULL: none.
 */
void mb_json_key(cJSON *o, const struct mb_case *c, const struct mb_run *run, const struct mb_key *key);
void mb_json_run(cJSON *o, const char *name, const struct mb_query *q, const bool *open);
void mb_json_fix(cJSON *o, const char *name, const struct mb_query *q, const struct mb_fix *fix);
void mb_json_violations(cJSON *o, const struct mb_query *q, const struct mb_violation *v, int count);

/* "layers": every layer and special block in the order of the chunks, per micro-batch and GPU. */
void mb_json_layers(cJSON *document, const struct mb_query *q, const struct mb_evaluation *e);

/* The shortest decimal that reads back to `value`. */
void mb_shortest(double value, char *text, size_t size);

/* A field of CSV, quoted when it must be (RFC 4180). */
void mb_csv_field(struct mb_text *t, const char *text);

#endif
