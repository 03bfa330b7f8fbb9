/* What a rank keeps between steps. Private to src/cost. */
#ifndef MBSIM_COST_STATES_H
#define MBSIM_COST_STATES_H

#include "cost/cost.h"

/* Parameters of a pipeline rank, by how they are stored and sharded. */
struct mb_rank_params {
	double dense, expert;           /* all */
	double dense_linear, expert_linear;
	double dense_trained, expert_trained;
	double tensors;
	double unit_free;               /* embedding, output layer, final norm: outside FSDP units */
	int moe_layers;
	bool has_embedding, has_loss;
};

void mb_rank_params_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         struct mb_rank_params *ret);

/* Bytes around the tensors of states: the allocator's rounding, that of gradient copies, dummy weight gradients. */
struct mb_state_waste { double rounding, copy_rounding, dummy; };

/* Of the optimizer's choice it knows the kind, sharded or not, and no offloading to the host. */
void mb_state_waste_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         const struct mb_rank_params *params, struct mb_state_waste *ret);

/* Terms of memory between two steps, and the host's share of offloaded states. */
void mb_states_fill_with(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                         const struct mb_rank_params *params, const struct mb_state_waste *waste, double terms[MB_MEM_COUNT],
                         double *ret_host_bytes);
void mb_states_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                    const struct mb_rank_params *params, double terms[MB_MEM_COUNT], double *ret_host_bytes);

/* Master weights and moments of a rank under Muon, in muon.c. */
void mb_muon_terms(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank,
                   const struct mb_rank_params *r, double *ret_master, double *ret_moments);

double mb_gradient_bytes(const struct mb_case *c, const struct mb_plan *p);    /* of one main gradient */
bool mb_fp8_params(const struct mb_case *c);            /* weights are stored quantised */
double mb_batch_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d);      /* of a micro-batch */

/*
 * A fused weight gradient returns a dummy of its shape; one buffer for each distinct shape stays on the rank. `scope`:
 * only of operations that these graphs capture; 0 for all.
 */
double mb_dummy_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank, unsigned scope);

/* Of libraries, and the shared buffer of tensor parallelism, on a rank with such layers and ends. */
double mb_workspace_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, const struct mb_rank_params *r);
double mb_torch_workspace(const struct mb_case *c, bool has_loss);      /* of one thread, on a stage */

#endif
