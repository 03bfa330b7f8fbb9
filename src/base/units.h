/* The only table of units. Text such as "3.35 TB/s" or "79.1 GiB" <-> SI double. GB and GiB are never confused. */
#ifndef MBSIM_BASE_UNITS_H
#define MBSIM_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>

enum mb_dimension {
	MB_PURE,                /* a number; also accepts "%" */
	MB_BYTES,               /* B kB MB GB TB KiB MiB GiB TiB */
	MB_BYTES_PER_S,         /* B/s ... TB/s, and bit rates: Mb/s Gb/s Tb/s (divided by 8) */
	MB_FLOP_PER_S,          /* GFLOP/s TFLOP/s PFLOP/s */
	MB_SECONDS,             /* ns us ms s */
	MB_WATTS,               /* W kW */
	MB_USD_PER_HOUR,        /* "$4.54/h" or "4.54 $/h" */
	MB_COUNT_UNIT,          /* whole number without a unit */
};

/* Parses the whole text. On failure *ret is untouched; mb_unit_hint says what the dimension expects ("a rate such as '900 GB/s'"). */
bool mb_parse_quantity(const char *text, enum mb_dimension dimension, double *ret);
const char *mb_unit_hint(enum mb_dimension dimension);

/* What a well-formed text measures ("900 GiB" is a size), for messages; NULL if it is not a quantity at all. */
const char *mb_unit_kind(const char *text);

/* Shortest text for a limit: 1e11 bytes per second is "100 GB/s". */
void mb_format_quantity(char *text, size_t size, double value, enum mb_dimension dimension);

/* Longest decimal number at the start of text, "1e9", "4_096" and ".5" included; never hexadecimal, nan or infinite. */
bool mb_parse_number(const char *text, const char **end, double *ret);

#endif
