#include "report/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Puts a comma between each three digits of the whole part of a plain decimal. */
static struct mb_number with_commas(const char *plain)
{
	struct mb_number n = { "" };
	size_t sign = plain[0] == '-', whole = strspn(plain + sign, "0123456789");
	size_t out = 0;

	for (size_t i = 0; plain[i] && out + 2 < sizeof n.s; i++) {
		size_t left = sign + whole - i;

		if (i > sign && i < sign + whole && left % 3 == 0)
			n.s[out++] = ',';
		n.s[out++] = plain[i];
	}
	n.s[out] = '\0';
	return n;
}

static struct mb_number words(const char *text)
{
	struct mb_number n = { "" };

	snprintf(n.s, sizeof n.s, "%s", text);
	return n;
}

struct mb_number mb_number_fixed(double value, int decimals)
{
	char plain[40];

	if (!isfinite(value))
		return words("unknown");
	if (fabs(value) > 1e18) {
		snprintf(plain, sizeof plain, "%.3g", value);
		return words(plain);
	}
	snprintf(plain, sizeof plain, "%.*f", decimals, value);
	if (plain[0] == '-' && plain[strspn(plain, "-0.")] == '\0')
		return with_commas(plain + 1);
	return with_commas(plain);
}

struct mb_number mb_number_count(double value)
{
	return mb_number_fixed(value, 0);
}

struct mb_number mb_number_3(double value)
{
	if (value == 0 || !isfinite(value))
		return mb_number_fixed(value, 0);

	/* Round first: 9.996 has its first digit one place further left once printed. */
	char rounded[32];
	double kept;

	snprintf(rounded, sizeof rounded, "%.2e", value);
	sscanf(rounded, "%lf", &kept);

	int exponent = (int)floor(log10(fabs(kept)) + 1e-9);
	int decimals = 2 - exponent;

	return mb_number_fixed(value, decimals < 0 ? 0 : decimals > 9 ? 9 : decimals);
}

/* Seconds, milliseconds or microseconds, by what is printed with three digits. */
static double unit_of(double seconds, const char **name)
{
	if (!(seconds > 0) || seconds >= 0.9995) {
		*name = "s";
		return 1;
	}
	*name = seconds >= 0.9995e-3 ? "ms" : "us";
	return seconds >= 0.9995e-3 ? 1e-3 : 1e-6;
}

struct mb_number mb_number_duration_like(double seconds, double like)
{
	const char *name;

	return mb_number_3(seconds / unit_of(like, &name));
}

struct mb_number mb_number_duration(double seconds)
{
	struct mb_number n = { "" };
	const char *name;

	if (!isfinite(seconds))
		return words("unknown");
	unit_of(seconds, &name);
	snprintf(n.s, sizeof n.s, "%.32s %s", mb_number_duration_like(seconds, seconds).s, name);
	return n;
}

struct mb_number mb_number_gib(double bytes)
{
	double gib = bytes / MB_GIB;

	if (bytes == 0)
		return words("0");
	if (gib > 0 && gib < 0.05)
		return words("<0.1");
	return mb_number_fixed(gib, 1);
}

struct mb_number mb_number_gb(double bytes)
{
	double gb = bytes / 1e9;

	if (bytes == 0)
		return words("0");
	if (gb > 0 && gb < 0.05)
		return words("<0.1");
	return mb_number_fixed(gb, gb < 9.95 ? 1 : 0);
}

struct mb_number mb_number_percent(double fraction)
{
	double percent = fraction * 100;

	if (fraction == 0)
		return words("0");
	if (percent > 0 && percent < 0.05)
		return words("<0.1");
	return mb_number_fixed(percent, fabs(percent) < 9.95 ? 1 : 0);
}

struct mb_number mb_number_mfu(double fraction)
{
	return mb_number_fixed(fraction * 100, 1);
}

struct mb_number mb_number_gb_per_s(double bytes_per_s)
{
	double gb = bytes_per_s / 1e9;

	return mb_number_fixed(gb, fabs(gb - round(gb)) < 0.05 ? 0 : 1);
}

struct mb_number mb_number_tflops(double flop_per_s)
{
	return mb_number_fixed(flop_per_s / 1e12, 0);
}

struct mb_number mb_number_params(double count)
{
	struct mb_number n = { "" };

	if (count >= 1e9)
		snprintf(n.s, sizeof n.s, "%.32s B", mb_number_fixed(count / 1e9, 1).s);
	else
		snprintf(n.s, sizeof n.s, "%.32s M", mb_number_fixed(count / 1e6, 1).s);
	return n;
}

void mb_round_parts(const double *parts, int count, double total, double scale, long long *ret)
{
	double remainder[MB_MAX_PARTS];
	long long missing = isfinite(total) ? llround(total * scale) : 0;

	if (count > MB_MAX_PARTS)
		count = MB_MAX_PARTS;
	for (int i = 0; i < count; i++) {
		double exact = isfinite(parts[i]) ? parts[i] * scale : 0;

		ret[i] = (long long)floor(exact);
		remainder[i] = exact - floor(exact);
		missing -= ret[i];
	}
	/* Each step gives one unit to the largest remainder, or takes one back from the smallest; absent parts stay 0. */
	for (int turn = 0; missing != 0 && turn < count; turn++) {
		int best = -1;

		for (int i = 0; i < count; i++) {
			if (parts[i] == 0 || remainder[i] < 0)
				continue;
			if (best < 0 || (missing > 0 ? remainder[i] > remainder[best] : remainder[i] < remainder[best]))
				best = i;
		}
		if (best < 0)
			return;
		ret[best] += missing > 0 ? 1 : -1;
		missing -= missing > 0 ? 1 : -1;
		remainder[best] = -1;
	}
}
