/*
 * The cost of a plan. mb_evaluate is the only function that knows the whole picture; it allocates nothing, does no I/O,
 * and gives the same answer on any thread. Reports print the same struct: they never compute a second time.
 */
#ifndef MBSIM_COST_COST_H
#define MBSIM_COST_COST_H

#include "cost/op.h"

enum mb_memory_term {
#define MEMORY(id, ...) MB_MEM_##id,
#define TIME(...)
#include "cost/terms.def"
#undef MEMORY
#undef TIME
	MB_MEM_COUNT
};

enum mb_time_term {
#define MEMORY(...)
#define TIME(id, ...) MB_TIME_##id,
#include "cost/terms.def"
#undef MEMORY
#undef TIME
	MB_TIME_COUNT
};

struct mb_term_row {
	const char *json, *label;
	char letter;                    /* of memory terms: W G O A L X */
};

extern const struct mb_term_row mb_memory_terms[MB_MEM_COUNT], mb_time_terms[MB_TIME_COUNT];

/* When the peak of a stage occurs. */
enum mb_phase { MB_PHASE_FORWARD, MB_PHASE_LOSS, MB_PHASE_BACKWARD, MB_PHASE_REPLAY, MB_PHASE_OPTIMIZER, MB_PHASE_CAPTURE, MB_PHASE_COUNT };
extern const char *const mb_phase_names[MB_PHASE_COUNT];       /* "deepest forward", "head and loss", ... */

enum mb_verdict { MB_FITS, MB_AT_RISK, MB_OUT_OF_MEMORY, MB_ILLEGAL };
extern const char *const mb_verdict_names[];                    /* "fits", "at_risk", "out_of_memory", "illegal" */

/* Communication by name: CONTRACT.md section 3. Per GPU and step, busiest stage. */
enum mb_traffic { MB_TRAFFIC_TP, MB_TRAFFIC_CP, MB_TRAFFIC_EP_DISPATCH, MB_TRAFFIC_EP_COMBINE, MB_TRAFFIC_ETP, MB_TRAFFIC_PP,
	MB_TRAFFIC_DP_REDUCE_SCATTER, MB_TRAFFIC_DP_ALL_GATHER, MB_TRAFFIC_EMBEDDING, MB_TRAFFIC_COUNT };
extern const char *const mb_traffic_names[MB_TRAFFIC_COUNT];

struct mb_traffic_cost { double bytes, remote_bytes, seconds, exposed_seconds; };

/* One layer (or special block) of a kind, per micro-batch and GPU. */
struct mb_kind_cost {
	bool present;
	int op_count;
	double gpu_s[MB_TIME_COUNT];    /* device terms, forward + backward + replay, after coupling */
	double forward_gpu_s, backward_gpu_s;   /* the same, summed by direction */
	double host_s;                  /* host time, both directions */
	double sync_s;                  /* waits that add to both */
	struct mb_traffic_cost traffic[MB_TRAFFIC_COUNT];       /* tp, cp, ep, etp of this layer */
	double replay_s, replay_flops;  /* recompute */
	double module_replay_s[16], module_replay_flops[16], module_saved_bytes[16];    /* by bit of enum mb_module */
	double saved_bytes;             /* kept per micro-batch in flight */
	double full_saved_bytes;        /* kept if nothing were recomputed or offloaded */
	double offloaded_bytes;
	double rounding_bytes;          /* the allocator's addition to saved_bytes */
	double forward_transient_bytes, backward_transient_bytes, replay_transient_bytes;
	double input_bytes;             /* the layer's input, all that full recompute keeps */
	double captured_bytes;          /* saved by operations inside graphs */
	double qkv_bytes, score_bytes;  /* of core attention: q, k, v; softmax output where it is kept */
	double forward_flops, backward_flops;   /* executed, replay not included */
	int64_t dense_params, expert_params;    /* on this rank */
	int64_t dense_linear_params, expert_linear_params;      /* of them in fp8-capable linears */
	int64_t dense_trained_params, expert_trained_params;
	double tensors;                 /* parameter tensors */

	/* Only the first op_count of these are set. */
	struct mb_op ops[MB_MAX_OPS];
	double op_forward_s[MB_MAX_OPS], op_backward_s[MB_MAX_OPS];     /* device time of each op, replay in the backward */
	double op_saved_bytes[MB_MAX_OPS];
};

/* How layers are spread: chunk j = v * pp + r lives on rank r. */
struct mb_split {
	int chunk_count;                /* pp * vp */
	struct mb_chunk chunks[MB_MAX_CHUNKS];
	uint16_t kinds[MB_MAX_CHUNKS][MB_KIND_COUNT];   /* layers of each kind in a chunk */
	uint16_t treated[MB_MAX_CHUNKS][MB_KIND_COUNT]; /* of them fully recomputed or offloaded whole: mb_evaluation.treated */
};

struct mb_stage_memory {
	double between_bytes, first_step_peak_bytes, peak_bytes;
	double terms[MB_MEM_COUNT];     /* add up to peak_bytes */
	double between_terms[MB_MEM_COUNT];
	enum mb_phase phase;
	int64_t dense_params, expert_params;
	double in_flight_bytes;         /* saved activations at the deepest point */
	int in_flight_chunks, peak_micro_batch, peak_chunk;
	double host_bytes;              /* offloaded to the host */
	double reserved_bytes, device_used_bytes;
	double running_bytes;           /* while micro-batches run, without what they hold */
};

struct mb_stage_time {
	double busy_s;                  /* all micro-batches */
	double end_s;                   /* last backward */
	double finish_s;                /* data-parallel tail, optimizer, fixed */
	double dp_s, dp_busy_s[2], optimizer_s, fixed_s;        /* dp_busy_s: reduce-scatter, all-gather */
};

struct mb_evaluation {
	struct mb_dims dims;
	struct mb_split split;
	struct mb_kind_cost kinds[MB_KIND_COUNT];
	struct mb_kind_cost treated[MB_KIND_COUNT];     /* the same layers under full recompute or whole-layer offloading */
	enum mb_verdict verdict;

	/* Memory. */
	struct mb_stage_memory stage_memory[MB_MAX_STAGES];
	int peak_stage;                 /* largest device use */
	double peak_bytes, reserved_bytes, device_used_bytes, margin_bytes;
	double low_bytes, high_bytes;

	/* Time. */
	struct mb_stage_time stage_time[MB_MAX_STAGES];
	int slowest_stage;
	double step_s, low_s, high_s;
	double time_terms[MB_TIME_COUNT];       /* add up to step_s */
	struct mb_traffic_cost traffic[MB_TRAFFIC_COUNT];
	double bubble_frac;

	double model_flops_per_token;   /* forward and backward, Bridge's convention */
	double hardware_flops_per_step; /* executed by this job's busiest GPU, recompute included */
	double tokens_per_s_per_gpu, model_flop_per_s_per_gpu, mfu, hfu;
	double recompute_flops, recompute_s, recompute_saved_bytes;     /* per step, busiest stage */

	/* Parameters. */
	int64_t params_per_gpu;         /* largest stage */

	/*
	 * For timelines. Chunk j = v * pp + rank: the schedule's durations, their parts (both directions together), what a
	 * chunk keeps, and what its operations need beyond.
	 */
	int64_t chunk_forward_ps[MB_MAX_CHUNKS], chunk_backward_ps[MB_MAX_CHUNKS], hop_ps;
	double chunk_terms[MB_MAX_CHUNKS][MB_TIME_COUNT];
	double chunk_saved_bytes[MB_MAX_CHUNKS], chunk_forward_bytes[MB_MAX_CHUNKS], chunk_backward_bytes[MB_MAX_CHUNKS];

	/* Scratch of the schedule; sized for the largest pipeline. */
	struct mb_schedule *schedule;
};

/* Allocates an evaluation with room for any plan; NULL when memory is exhausted. Free with mb_evaluation_free. */
struct mb_evaluation *mb_evaluation_new(void);
void mb_evaluation_free(struct mb_evaluation *e);

/*
 * Evaluates a plan that satisfies the rules (mb_first_broken is NULL); an illegal plan whose sizes still make sense
 * (every group divides) is evaluated too, with verdict MB_ILLEGAL left to the caller.
 */
enum mb_verdict mb_evaluate(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *ret);

/* Whether sizes are consistent enough to evaluate at all: positive, dividing, layers assigned. */
bool mb_evaluable(const struct mb_case *c, const struct mb_plan *p);

/* Bridge's model FLOPs per token, forward and backward [Megatron Bridge training/utils/flop_utils.py]. */
double mb_model_flops_per_token(const struct mb_case *c, const struct mb_plan *p);

/* Whole-model parameter counts. */
void mb_count_parameters(const struct mb_case *c, int64_t *total_without_mtp, int64_t *mtp, int64_t *active);

#endif
