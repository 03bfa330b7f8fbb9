#include "base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct unit {
	enum mb_dimension dimension;
	const char *name;
	double factor;
} units[] = {
	{ MB_PURE,         "%",       0.01 },
	{ MB_BYTES,        "B",       1 },
	{ MB_BYTES,        "kB",      1e3 },
	{ MB_BYTES,        "MB",      1e6 },
	{ MB_BYTES,        "GB",      1e9 },
	{ MB_BYTES,        "TB",      1e12 },
	{ MB_BYTES,        "KiB",     1024.0 },
	{ MB_BYTES,        "MiB",     1048576.0 },
	{ MB_BYTES,        "GiB",     1073741824.0 },
	{ MB_BYTES,        "TiB",     1099511627776.0 },
	{ MB_BYTES_PER_S,  "B/s",     1 },
	{ MB_BYTES_PER_S,  "kB/s",    1e3 },
	{ MB_BYTES_PER_S,  "MB/s",    1e6 },
	{ MB_BYTES_PER_S,  "GB/s",    1e9 },
	{ MB_BYTES_PER_S,  "TB/s",    1e12 },
	{ MB_BYTES_PER_S,  "MiB/s",   1048576.0 },
	{ MB_BYTES_PER_S,  "GiB/s",   1073741824.0 },
	{ MB_BYTES_PER_S,  "TiB/s",   1099511627776.0 },
	{ MB_BYTES_PER_S,  "Mb/s",    1e6 / 8 },
	{ MB_BYTES_PER_S,  "Gb/s",    1e9 / 8 },
	{ MB_BYTES_PER_S,  "Tb/s",    1e12 / 8 },
	{ MB_FLOP_PER_S,   "GFLOP/s", 1e9 },
	{ MB_FLOP_PER_S,   "TFLOP/s", 1e12 },
	{ MB_FLOP_PER_S,   "PFLOP/s", 1e15 },
	{ MB_SECONDS,      "ns",      1e-9 },
	{ MB_SECONDS,      "us",      1e-6 },
	{ MB_SECONDS,      "ms",      1e-3 },
	{ MB_SECONDS,      "s",       1 },
	{ MB_WATTS,        "W",       1 },
	{ MB_WATTS,        "kW",      1e3 },
	{ MB_USD_PER_HOUR, "$/h",     1 },
};

static const struct {
	const char *hint, *kind;
} words[] = {
	[MB_PURE]         = { "a number", "a number without a unit" },
	[MB_BYTES]        = { "a size such as '80 GB' or '79.1 GiB'", "a size" },
	[MB_BYTES_PER_S]  = { "a rate such as '900 GB/s'", "a rate" },
	[MB_FLOP_PER_S]   = { "a compute rate such as '989 TFLOP/s'", "a compute rate" },
	[MB_SECONDS]      = { "a time such as '40 us'", "a time" },
	[MB_WATTS]        = { "a power such as '700 W'", "a power" },
	[MB_USD_PER_HOUR] = { "a price such as '$4.54/h'", "a price" },
	[MB_COUNT_UNIT]   = { "a whole number", "a number without a unit" },
};

enum { DIGITS_MAX = 64 };

bool mb_parse_number(const char *text, const char **end, double *ret)
{
	char digits[DIGITS_MAX + 1];
	const char *s = text;
	size_t n = 0, seen = 0;
	double value;

	if (*s == '-' || *s == '+')
		digits[n++] = *s++;
	for (bool point = false; n < DIGITS_MAX; s++) {
		if (isdigit((unsigned char)*s))
			digits[n++] = *s, seen++;
		else if (*s == '.' && !point)
			digits[n++] = *s, point = true;
		else if (*s != '_' || !seen || !isdigit((unsigned char)s[1]))
			break;
	}
	if (!seen)
		return false;
	if (*s == 'e' || *s == 'E') {
		const char *e = s + 1 + (s[1] == '+' || s[1] == '-');

		if (isdigit((unsigned char)*e)) {
			size_t length = (size_t)(e - s);

			while (isdigit((unsigned char)s[length]))
				length++;
			if (n + length > DIGITS_MAX)
				return false;
			memcpy(digits + n, s, length);
			n += length;
			s += length;
		}
	}
	digits[n] = '\0';
	value = strtod(digits, NULL);
	if (!isfinite(value) || isdigit((unsigned char)*s))
		return false;
	*end = s;
	*ret = value;
	return true;
}

static const struct unit *find_unit(const char *name)
{
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	}
	return NULL;
}

/* "$4.54/h" is the one unit that stands on both sides of its number. */
static bool parse_dollars(const char *text, double *ret)
{
	const char *end;
	double value;

	if (*text != '$' || !mb_parse_number(text + 1, &end, &value) || strcmp(end, "/h") != 0)
		return false;
	*ret = value;
	return true;
}

/* Number and unit of the whole text; *unit is NULL when there is none. */
static bool split(const char *text, double *value, const struct unit **unit)
{
	const char *end;

	*unit = find_unit("$/h");
	if (parse_dollars(text, value))
		return true;
	*unit = NULL;
	if (!mb_parse_number(text, &end, value))
		return false;
	while (*end == ' ')
		end++;
	if (*end == '\0')
		return true;
	*unit = find_unit(end);
	return *unit != NULL;
}

bool mb_parse_quantity(const char *text, enum mb_dimension dimension, double *ret)
{
	const struct unit *unit;
	double value;

	if (!split(text, &value, &unit))
		return false;
	if (!unit) {
		/* Only nothing is the same in every unit. */
		bool bare = dimension == MB_PURE || dimension == MB_COUNT_UNIT || fpclassify(value) == FP_ZERO;

		if (!bare || (dimension == MB_COUNT_UNIT && floor(value) < value))
			return false;
		*ret = value;
		return true;
	}
	if (unit->dimension != dimension)
		return false;
	*ret = value * unit->factor;
	return isfinite(*ret);
}

/* The largest decimal unit that leaves at least 1; binary units and bits are never chosen. */
void mb_format_quantity(char *text, size_t size, double value, enum mb_dimension dimension)
{
	const struct unit *best = NULL;

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		const struct unit *u = &units[i];
		bool decimal = !strchr(u->name, 'i') && !strchr(u->name, 'b') && u->name[0] != '%';

		if (u->dimension == dimension && decimal && (!best || value >= u->factor))
			best = u;
	}
	if (!best || fpclassify(value) == FP_ZERO)
		snprintf(text, size, "%.10g", value);
	else
		snprintf(text, size, "%.6g %s", value / best->factor, best->name);
}

const char *mb_unit_hint(enum mb_dimension dimension)
{
	return words[dimension].hint;
}

const char *mb_unit_kind(const char *text)
{
	const struct unit *unit;
	double value;

	if (!split(text, &value, &unit))
		return NULL;
	return words[unit ? unit->dimension : MB_PURE].kind;
}
