#include "report/check.h"
#include "report/json.h"

static void add_quotient(cJSON *o, const char *name, long long a, long long b)
{
	if (b > 0 && a % b == 0 && a >= b)
		mb_json_int(o, name, a / b);
	else
		mb_json_null(o, name);
}

void mb_check_json(const struct mb_check_report *x, struct mb_text *ret)
{
	const struct mb_run *run = &x->q->c.run;
	const struct mb_plan *p = &run->plan;
	long long dense = (long long)p->tp * p->cp * p->pp, expert = (long long)p->ep * p->etp * p->pp;
	struct mb_group groups[MB_GROUP_COUNT];
	cJSON *o = mb_json_document("mbsim.check/1");

	mb_json_run(o, "run", x->q, NULL);
	mb_json_text(o, "verdict", x->legal ? "legal" : "illegal");
	mb_json_violations(o, x->q, x->violations, x->violation_count);
	if (x->has_combined)
		mb_json_fix(o, "combined_fix", x->q, &x->combined);
	else
		mb_json_null(o, "combined_fix");
	mb_json_int(o, "minimum_gpus", mb_check_minimum_gpus(p));
	add_quotient(o, "data_parallel_size", run->gpus, dense);
	add_quotient(o, "expert_data_parallel_size", run->gpus, expert);
	if (run->gpus % dense == 0 && run->gpus >= dense)
		add_quotient(o, "micro_batches", run->global_batch_size, run->gpus / dense * p->micro_batch_size);
	else
		mb_json_null(o, "micro_batches");
	cJSON *list = mb_json_object(o, "groups");

	mb_check_groups(&x->q->c, p, groups);
	for (int i = 0; i < MB_GROUP_COUNT; i++) {
		cJSON *group = mb_json_object(list, groups[i].name);

		mb_json_int(group, "size", groups[i].size);
		mb_json_bool(group, "crosses_domain", groups[i].crosses_domain);
	}
	mb_json_write(o, true, ret);
}
