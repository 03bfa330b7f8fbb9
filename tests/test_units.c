#include <criterion/criterion.h>
#include <math.h>

#include "base/units.h"

static void expect_rel(double got, double want, const char *words)
{
	cr_expect(fabs(got - want) <= 1e-12 * fabs(want), "%s: %.18g, expected %.18g", words, got, want);
}

static const struct { const char *text; enum mb_dimension dimension; double si; } good[] = {
	{ "80 GB",        MB_BYTES,        80e9 },
	{ "80GB",         MB_BYTES,        80e9 },
	{ "79.1 GiB",     MB_BYTES,        79.1 * 1073741824 },
	{ "50 MiB",       MB_BYTES,        52428800 },
	{ "1_024 B",      MB_BYTES,        1024 },
	{ "3.35 TB/s",    MB_BYTES_PER_S,  3.35e12 },
	{ "400 Gb/s",     MB_BYTES_PER_S,  50e9 },
	{ "400 GB/s",     MB_BYTES_PER_S,  400e9 },
	{ "989 TFLOP/s",  MB_FLOP_PER_S,   989e12 },
	{ "2.5 PFLOP/s",  MB_FLOP_PER_S,   2.5e15 },
	{ "40 us",        MB_SECONDS,      40e-6 },
	{ "549.2 ns",     MB_SECONDS,      549.2e-9 },
	{ "0",            MB_SECONDS,      0 },
	{ "700 W",        MB_WATTS,        700 },
	{ "1.2 kW",       MB_WATTS,        1200 },
	{ "$4.54/h",      MB_USD_PER_HOUR, 4.54 },
	{ "4.54 $/h",     MB_USD_PER_HOUR, 4.54 },
	{ "62 %",         MB_PURE,         0.62 },
	{ "1e-3",         MB_PURE,         1e-3 },
	{ ".5",           MB_PURE,         0.5 },
	{ "-2",           MB_PURE,         -2 },
	{ "72",           MB_COUNT_UNIT,   72 },
};

Test(units, quantities_become_si)
{
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		double value = -1;

		cr_expect(mb_parse_quantity(good[i].text, good[i].dimension, &value), "%s is refused", good[i].text);
		expect_rel(value, good[i].si, good[i].text);
	}
}

static const struct { const char *text; enum mb_dimension dimension; } bad[] = {
	{ "80",           MB_BYTES },           /* no unit */
	{ "80 gb",        MB_BYTES },           /* bits or bytes */
	{ "80 Gb",        MB_BYTES },
	{ "80 GB/s",      MB_BYTES },
	{ "900 GiB",      MB_BYTES_PER_S },
	{ "0x10",         MB_PURE },
	{ "nan",          MB_PURE },
	{ "inf",          MB_PURE },
	{ "1e999",        MB_PURE },
	{ "",             MB_PURE },
	{ " 1",           MB_PURE },
	{ "1 ",           MB_BYTES },
	{ "1.2.3",        MB_PURE },
	{ "1e",           MB_PURE },
	{ "GB",           MB_BYTES },
	{ "72.5",         MB_COUNT_UNIT },
	{ "$4.54",        MB_USD_PER_HOUR },
	{ "4k",           MB_PURE },
};

Test(units, anything_else_is_refused_and_leaves_the_result_alone)
{
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		double value = 7;

		cr_expect(!mb_parse_quantity(bad[i].text, bad[i].dimension, &value), "'%s' is accepted as %g", bad[i].text, value);
		cr_expect(value > 6.9 && value < 7.1, "'%s' changed the result", bad[i].text);
	}
}

Test(units, long_numbers_do_not_overflow_their_buffer)
{
	char text[4096];
	double value;

	memset(text, '1', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	cr_expect(!mb_parse_quantity(text, MB_PURE, &value));
	memset(text, '0', sizeof text - 1);
	cr_expect(!mb_parse_quantity(text, MB_PURE, &value));
}

Test(units, kinds_tell_what_a_text_measures)
{
	cr_expect_str_eq(mb_unit_kind("900 GiB"), "a size");
	cr_expect_str_eq(mb_unit_kind("900 GB/s"), "a rate");
	cr_expect_str_eq(mb_unit_kind("$2/h"), "a price");
	cr_expect_str_eq(mb_unit_kind("900"), "a number without a unit");
	cr_expect_null(mb_unit_kind("fast"));
	cr_expect_null(mb_unit_kind("900 furlongs"));
}
