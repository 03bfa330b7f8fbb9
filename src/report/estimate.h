/* One run on paper: memory, time and communication, term by term. Everything printed stands in struct mb_evaluation. */
#ifndef MBSIM_REPORT_ESTIMATE_H
#define MBSIM_REPORT_ESTIMATE_H

#include "cost/cost.h"
#include "plan/rules.h"
#include "report/style.h"

/* The peak under uneven routing, by quantile of the busiest expert-parallel rank. */
struct mb_routing_peaks {
	bool drawn;                     /* asked for, and there are experts */
	double skew, p50_imbalance, p99_imbalance, p50_bytes, p99_bytes;
	int seed;
};

struct mb_estimate {
	const struct mb_query *q;
	const struct mb_evaluation *e;          /* NULL: the sizes of the run make no sense, nothing can be said */
	const struct mb_violation *violations;
	int violation_count;
	enum mb_verdict verdict;                /* MB_ILLEGAL when an error rule is broken */
	const char *args;                       /* the run as typed, for "next" lines */
	bool all_stages, assumptions;
	struct mb_routing_peaks routing;
};

/* MB_ILLEGAL if any violation is an error, else the evaluation's own verdict. */
enum mb_verdict mb_estimate_verdict(const struct mb_evaluation *e, const struct mb_violation *v, int count);

void mb_estimate_text(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret);
void mb_estimate_json(const struct mb_estimate *x, bool pretty, struct mb_text *ret);
void mb_estimate_csv(const struct mb_estimate *x, struct mb_text *ret); /* section,stage,name,value in SI units */
void mb_estimate_markdown(const struct mb_estimate *x, struct mb_arena *arena, struct mb_text *ret);

/* Parts of the text report, one file each. */
void mb_estimate_memory(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret);
void mb_estimate_time(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret);
void mb_estimate_assumptions(const struct mb_estimate *x, const struct mb_style *s, struct mb_text *ret);
int mb_count_assumed(const struct mb_case *c);

/* Phase, stage and arithmetic of the peak, then what lowers it and what does not. */
void mb_binding_words(const struct mb_evaluation *e, struct mb_text *ret);

#endif
