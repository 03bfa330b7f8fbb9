/* Legality of one run, with what its sizes mean. */
#ifndef MBSIM_REPORT_CHECK_H
#define MBSIM_REPORT_CHECK_H

#include "cost/cost.h"
#include "plan/rules.h"
#include "report/style.h"

struct mb_check_report {
	const struct mb_query *q;
	const struct mb_violation *violations;
	int violation_count;
	bool legal;
	bool has_combined;
	struct mb_fix combined;                 /* all fixes together, when that is legal */
	const struct mb_split *split;           /* how layers are spread; NULL when sizes do not divide */
	const char *name;                       /* of the run: its file, or "run" */
	const char *args;                       /* the run as typed */
};

void mb_check_text(const struct mb_check_report *x, const struct mb_style *s, struct mb_text *ret);
void mb_check_json(const struct mb_check_report *x, struct mb_text *ret);

/* One communication group: its ranks, and whether they stand in more than one NVLink domain. */
struct mb_group {
	const char *name;
	int size;
	bool crosses_domain;
};

enum { MB_GROUP_COUNT = 7 };

void mb_check_groups(const struct mb_case *c, const struct mb_plan *p, struct mb_group ret[MB_GROUP_COUNT]);

/* Fewest GPUs that hold one replica: PP x max(TP x CP, EP x ETP). */
int mb_check_minimum_gpus(const struct mb_plan *p);

#endif
