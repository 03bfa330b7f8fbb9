/* From what the user typed to what the reports need. */
#ifndef MBSIM_CLI_RUN_H
#define MBSIM_CLI_RUN_H

#include "cli/command.h"
#include "cost/cost.h"
#include "plan/rules.h"
#include "report/estimate.h"

/* A run with its verdict. */
struct mb_judged {
	struct mb_query query;
	struct mb_violation violations[MB_MAX_VIOLATIONS];
	struct mb_estimate estimate;
};

/* Reads the run of the command line; single: every key has one value. Reports and returns false. */
bool mb_run_load(struct mb_call *call, bool single, struct mb_query *ret);

/* Checks judged->query and evaluates it into `e` as far as that makes sense. */
void mb_run_judge(struct mb_judged *judged, struct mb_evaluation *e);

/* Exit status of a verdict. */
int mb_verdict_exit(enum mb_verdict verdict);

/* Searches with the options of the command line; a progress line on a terminal. */
bool mb_run_search(struct mb_call *call, const struct mb_query *q, int top, bool limits, struct mb_search_result *ret);

/* Whether the limits of --require decide what is best; otherwise the best plan is judged by them afterwards. */
bool mb_run_limits_steer(const struct mb_options *o);

/* Plans that a search looks for to list `top`, or to have plan `rank` of such a list. */
int mb_run_wanted(int top);
int mb_run_wanted_rank(int rank);

/* The run and what else decides the order of a search's plans, as a shell reads it. limits: those that steer too. */
const char *mb_run_search_args(struct mb_call *call, bool limits);

/* The run with the plan that --rank takes of its search. */
const char *mb_run_rank_args(struct mb_call *call);

/* Puts plan --rank of the search into the query, which then has one value for every key. Returns enum mb_exit. */
int mb_run_take_rank(struct mb_call *call, struct mb_query *q);

void mb_quantities_of_evaluation(const struct mb_evaluation *e, struct mb_quantities *ret);
void mb_quantities_of_ranked(const struct mb_ranked *p, struct mb_quantities *ret);

#endif
