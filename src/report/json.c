#include "report/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void attach(cJSON *parent, const char *key, cJSON *child)
{
	if (!parent)
		return;
	if (key)
		cJSON_AddItemToObject(parent, key, child);
	else
		cJSON_AddItemToArray(parent, child);
}

cJSON *mb_json_document(const char *schema)
{
	cJSON *o = cJSON_CreateObject();

	mb_json_text(o, "schema", schema);
	return o;
}

cJSON *mb_json_object(cJSON *parent, const char *key)
{
	cJSON *o = cJSON_CreateObject();

	attach(parent, key, o);
	return o;
}

cJSON *mb_json_array(cJSON *parent, const char *key)
{
	cJSON *a = cJSON_CreateArray();

	attach(parent, key, a);
	return a;
}

void mb_shortest(double value, char *text, size_t size)
{
	if (value == 0)
		value = 0;      /* no negative zero */
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, size, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	/* Whole numbers below 2^53 read better without an exponent. */
	if (strchr(text, 'e') && fabs(value) < 9007199254740992.0 && value == floor(value))
		snprintf(text, size, "%.0f", value);
}

/* cJSON prints doubles with 15 or 17 digits and large integers with an exponent: numbers are written by us instead. */
void mb_json_int(cJSON *o, const char *key, long long value)
{
	char text[32];

	snprintf(text, sizeof text, "%lld", value);
	attach(o, key, cJSON_CreateRaw(text));
}

void mb_json_bytes(cJSON *o, const char *key, double bytes)
{
	if (isfinite(bytes) && fabs(bytes) < 9e18)
		mb_json_int(o, key, llround(bytes));
	else
		mb_json_null(o, key);
}

void mb_json_number(cJSON *o, const char *key, double value)
{
	char text[40];

	if (!isfinite(value)) {
		mb_json_null(o, key);
		return;
	}
	mb_shortest(value, text, sizeof text);
	attach(o, key, cJSON_CreateRaw(text));
}

void mb_json_text(cJSON *o, const char *key, const char *value)
{
	attach(o, key, value ? cJSON_CreateString(value) : cJSON_CreateNull());
}

void mb_json_bool(cJSON *o, const char *key, bool value)
{
	attach(o, key, cJSON_CreateBool(value));
}

void mb_json_null(cJSON *o, const char *key)
{
	attach(o, key, cJSON_CreateNull());
}

void mb_json_write(cJSON *document, bool pretty, struct mb_text *ret)
{
	char *text = pretty ? cJSON_Print(document) : cJSON_PrintUnformatted(document);

	if (text) {
		mb_text_add(ret, text);
		mb_text_add(ret, "\n");
		cJSON_free(text);
	}
	cJSON_Delete(document);
}

void mb_csv_field(struct mb_text *t, const char *text)
{
	bool quote = false;

	for (const char *c = text; *c; c++)
		quote = quote || *c == ',' || *c == '"' || *c == '\n';
	mb_text_add(t, quote ? "\"" : "");
	for (const char *c = text; *c; c++)
		mb_text_addn(t, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
	mb_text_add(t, quote ? "\"" : "");
}
