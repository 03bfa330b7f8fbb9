#include "calib/nccl_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_fit.h>

enum { MAX_POINTS = 256 };

struct points {
	double bus_bytes[MAX_POINTS], time_s[MAX_POINTS];
	int count;
};

bool mb_nccl_recognise(const char *text)
{
	return (strncmp(text, "# nThread", 9) == 0 || strstr(text, "\n# nThread")) && strstr(text, "busbw");
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

/*
 * "#  Rank  0 Group  0 Pid  1 on  node1 device  0 [...]": ranks, and hosts by name; ranks of a host stand together.
 */
static void read_ranks(const char *text, struct mb_link_fit *ret)
{
	char last[128] = "", host[128];
	int rank;

	for (const char *line = text; *line; line = next_line(line)) {
		const char *on = strstr(line, " on ");

		if (sscanf(line, "# Rank %d", &rank) != 1 || !on || on > next_line(line) || sscanf(on, " on %127s", host) != 1)
			continue;
		ret->ranks++;
		ret->hosts += strcmp(host, last) != 0;
		memcpy(last, host, sizeof last);
	}
}

/*
 * "size count type redop root time algbw busbw #wrong ...", times in us, bandwidths in GB/s. Size over time is algbw, so
 * what crosses the bus is size times busbw over algbw, whatever the operation [NVIDIA/nccl-tests doc/PERFORMANCE.md].
 */
static void read_points(const char *text, struct points *ret)
{
	/* The heading says which of the two columns before the time there are. */
	int words = (strstr(text, " redop ") != NULL) + (strstr(text, " root ") != NULL);

	for (const char *line = text; *line && ret->count < MAX_POINTS; line = next_line(line)) {
		double size, time_us, algbw, busbw;
		int taken = 0;

		if (sscanf(line, " %lf %*d %*s %n", &size, &taken) != 1 || taken == 0 || size <= 0)
			continue;
		const char *rest = line + taken;

		for (int word = 0; word < words; word++) {
			rest += strspn(rest, " ");
			rest += strcspn(rest, " \n");
		}
		if (sscanf(rest, " %lf %lf %lf", &time_us, &algbw, &busbw) != 3 || time_us <= 0 || algbw <= 0 || busbw <= 0)
			continue;
		ret->bus_bytes[ret->count] = size * busbw / algbw;
		ret->time_s[ret->count++] = time_us / 1e6;
	}
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

bool mb_nccl_fit(const char *text, const char *name, const struct mb_hardware *hw, struct mb_link_fit *ret, struct mb_diags *diags)
{
	struct points p = { .count = 0 };
	struct mb_pos at = { .file = name };
	double weight[MAX_POINTS], error[MAX_POINTS], intercept, slope, c00, c01, c11, chi;

	*ret = (struct mb_link_fit){ .file = name };
	read_ranks(text, ret);
	read_points(text, &p);
	if (p.count < 4)
		return mb_fail(diags, at, "%d sizes are too few: run nccl-tests with -b 1M -e 8G -f 2", p.count);
	for (int i = 0; i < p.count; i++)
		weight[i] = 1 / (p.time_s[i] * p.time_s[i]);
	gsl_fit_wlinear(p.bus_bytes, 1, weight, 1, p.time_s, 1, (size_t)p.count, &intercept, &slope, &c00, &c01, &c11, &chi);
	if (!(slope > 0))
		return mb_fail(diags, at, "times do not grow with the size");
	for (int i = 0; i < p.count; i++)
		error[i] = fabs((intercept + slope * p.bus_bytes[i]) / p.time_s[i] - 1);
	qsort(error, (size_t)p.count, sizeof *error, by_number);
	ret->points = p.count;
	ret->across = ret->ranks > hw->nvlink_domain || (hw->nvlink_domain <= hw->gpus_per_node && ret->hosts > 1);
	ret->bytes_per_s = 1 / slope;
	ret->latency_s = fmax(intercept, 0);
	ret->error_frac = error[p.count / 2];

	/* Rings of a whole node leave it through the NICs of all its ranks. */
	double nics = ret->hosts > 0 ? fmax((double)ret->ranks / ret->hosts, 1) : hw->gpus_per_node;
	double peak = ret->across ? hw->nic_bytes_per_s / hw->oversubscription * nics
	                          : hw->nvlink_bytes_per_s > 0 ? hw->nvlink_bytes_per_s : hw->host_bytes_per_s;

	if (!(peak > 0))
		return mb_fail(diags, at, "%s has no such link", hw->name);
	ret->frac = ret->bytes_per_s / peak;
	return true;
}
