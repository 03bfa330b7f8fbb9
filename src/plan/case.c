#include "plan/case.h"

#include <math.h>

/* Largest divisor of `gpus` up to `limit` that `unit` divides; 0 if there is none. */
static int largest_divisor(int gpus, int limit, int unit)
{
	for (int d = limit < gpus ? limit : gpus; d > 0; d--) {
		if (gpus % d == 0 && d % unit == 0)
			return d;
	}
	return 0;
}

/*
 * GPUs of one NVLink domain that this job fills. Schedulers give whole nodes, and every domain the same number, so
 * 256 GPUs take 64 of each 72: whole nodes first, any divisor where nodes do not fit.
 */
static int job_domain(const struct mb_hardware *hw, int gpus)
{
	int limit = hw->nvlink_domain > 0 ? hw->nvlink_domain : 1;
	int node = hw->gpus_per_node > 0 ? hw->gpus_per_node : 1;
	int domain = largest_divisor(gpus, limit, node < gpus ? node : gpus);

	return domain > 0 ? domain : largest_divisor(gpus, limit, 1);
}

void mb_case_derive(struct mb_case *c)
{
	c->power_factor = pow(c->hardware.tdp_w / c->params.reference_power_w, c->params.power_exponent);
}

void mb_case_compile(struct mb_case *c)
{
	for (int i = 0; i < MB_PARAM_COUNT; i++) {
		const struct mb_param_row *row = &mb_param_rows[i];
		const struct mb_params *from = row->hardware ? &c->hardware.params : &c->stack.params;

		*(double *)((char *)&c->params + row->offset) = *(const double *)((const char *)from + row->offset);
	}
	c->mtp_depth = c->run.mtp_num_layers != MB_AUTO ? c->run.mtp_num_layers : c->model.mtp_num_layers;
	c->domain = c->run.gpus > 0 ? job_domain(&c->hardware, c->run.gpus) : 1;
	c->nvlink_between = c->hardware.nvlink_bytes_per_s > 0;
	mb_case_derive(c);
}
