/* mb_evaluate: the only function that knows the whole picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "cost/bounds.h"
#include "cost/collective.h"
#include "cost/finish.h"
#include "cost/kind.h"
#include "cost/memory.h"
#include "cost/roofline.h"
#include "cost/schedule.h"
#include "cost/split.h"

static const double PS = 1e12;

/* Durations of one rank's chunks for a micro-batch, beside their parts. */
struct rank_time {
	double chunk_s[MB_MAX_CHUNKS];  /* by virtual stage: forward and backward */
	double forward_frac[MB_MAX_CHUNKS];
	double terms[MB_TIME_COUNT];    /* of one micro-batch through all chunks */
	double total_s, device_s, host_s;       /* the last two before they meet */
};

struct mb_evaluation *mb_evaluation_new(void)
{
	struct mb_evaluation *e = mb_pages_new(sizeof *e);

	if (e)
		e->schedule = mb_schedule_new(MB_MAX_STAGES);
	if (e && !e->schedule) {
		mb_pages_free(e, sizeof *e);
		return NULL;
	}
	return e;
}

void mb_evaluation_free(struct mb_evaluation *e)
{
	if (!e)
		return;
	mb_schedule_free(e->schedule);
	mb_pages_free(e, sizeof *e);
}

/* A layout spells out its virtual stages; a plan that says another number (a rule) is sized as the layout has it. */
static struct mb_plan with_layout(const struct mb_case *c, const struct mb_plan *p)
{
	struct mb_plan q = *p;

	if (p->layout >= 0 && p->layout < c->layout_count && p->pp > 0 && c->layouts[p->layout].chunk_count % p->pp == 0)
		q.vp = c->layouts[p->layout].chunk_count / p->pp;
	return q;
}

bool mb_evaluable(const struct mb_case *c, const struct mb_plan *plan)
{
	const struct mb_plan q = with_layout(c, plan), *p = &q;
	int64_t model = (int64_t)p->tp * p->cp * p->pp, expert = (int64_t)p->etp * p->ep * p->pp;
	struct mb_pipeline order;
	struct mb_split split;
	struct mb_dims d;

	if (p->tp < 1 || p->cp < 1 || p->pp < 1 || p->vp < 1 || p->ep < 1 || p->etp < 1 || p->micro_batch_size < 1)
		return false;
	if (p->pp > MB_MAX_STAGES || (int64_t)p->pp * p->vp > MB_MAX_CHUNKS)
		return false;
	if (model > c->run.gpus || c->run.gpus % model || expert > c->run.gpus || c->run.gpus % expert)
		return false;
	if (c->run.global_batch_size % (p->micro_batch_size * (c->run.gpus / model)))
		return false;
	mb_dims_fill(c, p, &d);
	order = mb_memory_pipeline(c, p, &d);
	return mb_pipeline_ordered(&order) && mb_split_fill(c, p, &split);
}

/* Time of one transfer between neighbouring stages, which are a stage's ranks apart. */
static double hop_seconds(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, double *ret_bytes, bool *ret_remote)
{
	double bytes = d->local_tokens * c->model.hidden_size * (c->run.fp32_residual_connection ? 4 : d->act_bytes);
	bool remote = 2 * (c->run.gpus / p->pp) > c->domain;
	double rate = remote ? mb_network_rate(c) * c->params.scale_out_collective_frac : mb_domain_rate(c) * c->params.nvlink_collective_frac;

	*ret_bytes = bytes;
	*ret_remote = remote;
	return bytes / rate + c->params.pipeline_latency_s;
}

double mb_transfer_seconds(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, double *ret_hop_s)
{
	double bytes, hop_s;
	bool remote;

	*ret_hop_s = 0;
	if (p->pp == 1)
		return 0;
	hop_s = hop_seconds(c, p, d, &bytes, &remote);
	if (p->overlap_p2p_comm)
		*ret_hop_s = hop_s;
	return 2 * hop_s * (p->overlap_p2p_comm ? c->params.pp_exposed_frac : 1);
}

static void fill_kinds(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e)
{
	bool full = p->recompute == MB_RECOMPUTE_FULL;
	struct mb_treatment plain = { full ? 0 : e->dims.modules, p->fine_grained_activation_offloading ? p->offload_modules : 0, false };
	struct mb_treatment treated = { full ? MB_FULL : 0, 0, p->cpu_offloading && c->run.cpu_offloading_activations };

	for (int k = 0; k < MB_KIND_COUNT; k++) {
		bool here = false, special = false;

		e->kinds[k].present = e->treated[k].present = false;
		for (int j = 0; j < e->split.chunk_count; j++) {
			here |= e->split.kinds[j][k] > 0;
			special |= e->split.treated[j][k] > 0;
		}
		if (here)
			mb_kind_cost_fill(c, p, &e->dims, k, plain, &e->kinds[k]);
		if (special)
			mb_kind_cost_fill(c, p, &e->dims, k, treated, &e->treated[k]);
	}
}

static void add_layers(const struct mb_kind_cost *k, double layers, double terms[MB_TIME_COUNT], double *forward_s, double *host_s, double *sync_s)
{
	for (int i = 0; i < MB_TIME_COUNT; i++)
		terms[i] += layers * k->gpu_s[i];
	*forward_s += layers * k->forward_gpu_s;
	*host_s += layers * k->host_s;
	*sync_s += layers * k->sync_s;
}

/* A chunk's time: device and host meet once for the whole chunk, so that a stage is the sum of its chunks. */
static void chunk_time(const struct mb_case *c, struct mb_evaluation *e, int j, int v, struct rank_time *t)
{
	double terms[MB_TIME_COUNT] = { 0 }, forward_s = 0, host_s = 0, sync_s = 0, gpu_s = 0, met;

	for (int k = 0; k < MB_KIND_COUNT; k++) {
		int layers = e->split.kinds[j][k], treated = e->split.treated[j][k];

		if (layers > treated)
			add_layers(&e->kinds[k], layers - treated, terms, &forward_s, &host_s, &sync_s);
		if (treated)
			add_layers(&e->treated[k], treated, terms, &forward_s, &host_s, &sync_s);
	}
	for (int i = 0; i < MB_TIME_COUNT; i++)
		gpu_s += terms[i];
	met = mb_meet(&c->params, gpu_s, host_s, sync_s);
	terms[MB_TIME_host] += met - gpu_s;
	for (int i = 0; i < MB_TIME_COUNT; i++)
		t->terms[i] += terms[i];
	memcpy(e->chunk_terms[j], terms, sizeof terms);
	t->chunk_s[v] = met;
	t->device_s += gpu_s;
	t->host_s += host_s;
	t->forward_frac[v] = gpu_s > 0 ? forward_s / gpu_s : 0.5;
}

/* All chunks of a rank, with pipeline transfers and FSDP, which are spread over the chunks by their time. */
static void rank_time_fill(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e, int rank, double transfer_s,
                           const struct mb_rank_params *params, struct rank_time *t)
{
	double sum = 0, fsdp, pp = p->pp > 1 ? transfer_s : 0;

	memset(t->terms, 0, sizeof t->terms);
	t->device_s = t->host_s = 0;
	for (int v = 0; v < p->vp; v++) {
		chunk_time(c, e, v * p->pp + rank, v, t);
		sum += t->chunk_s[v];
	}
	fsdp = mb_fsdp_exposed(c, p, &e->dims, params, sum + pp);
	t->terms[MB_TIME_pp] += pp;
	t->terms[MB_TIME_fsdp] += fsdp;
	for (int v = 0; v < p->vp; v++) {
		double *terms = e->chunk_terms[v * p->pp + rank];

		terms[MB_TIME_pp] = pp / p->vp;
		terms[MB_TIME_fsdp] = fsdp * (sum > 0 ? t->chunk_s[v] / sum : 1.0 / p->vp);
		t->chunk_s[v] += terms[MB_TIME_pp] + terms[MB_TIME_fsdp];
	}
	t->total_s = sum + pp + fsdp;
}

static void finish_rank(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e, int rank,
                        const struct mb_rank_params *params, double micro_batch_s, struct mb_finish *f)
{
	struct mb_stage_time *s = &e->stage_time[rank];

	mb_finish_fill(c, p, &e->dims, params, micro_batch_s, f);
	s->dp_busy_s[0] = f->reduce_s;
	s->dp_busy_s[1] = f->gather_s;
	s->dp_s = f->reduce_exposed_s + f->gather_exposed_s;
	s->optimizer_s = f->optimizer_s;
	s->fixed_s = f->fixed_s;
	s->finish_s = s->dp_s + s->optimizer_s + s->fixed_s;
	s->busy_s = (double)e->dims.micro_batches * micro_batch_s;
}

static void run_schedule(const struct mb_plan *p, struct mb_evaluation *e)
{
	struct mb_pipeline pipeline = { p->pp, p->vp, e->dims.micro_batches, p->microbatch_group_size,
		p->overlap_moe_expert_parallel_comm, e->chunk_forward_ps, e->chunk_backward_ps, e->hop_ps };
	int64_t end_ps[MB_MAX_STAGES];

	if (!mb_schedule_run(e->schedule, &pipeline, end_ps, NULL))
		return;
	for (int r = 0; r < p->pp; r++)
		e->stage_time[r].end_s = (double)end_ps[r] / PS;
}

/* The step ends when the last stage has finished; its terms are told for the busiest stage, whose idle time is the bubble. */
static void pick_slowest(const struct mb_plan *p, struct mb_evaluation *e)
{
	double busiest = -1;

	e->step_s = 0;
	for (int r = 0; r < p->pp; r++) {
		const struct mb_stage_time *s = &e->stage_time[r];

		e->step_s = fmax(e->step_s, s->end_s + s->finish_s);
		if (s->busy_s + s->finish_s > busiest) {
			busiest = s->busy_s + s->finish_s;
			e->slowest_stage = r;
		}
	}
}

static void fill_traffic(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e, double hop_s, double transfer_s,
                         double hop_bytes, bool hop_remote, const struct mb_finish *f)
{
	int r = e->slowest_stage;
	double m = (double)e->dims.micro_batches, hops = p->pp > 1 ? 2 * m * p->vp : 0;
	struct mb_traffic_cost *t = e->traffic;

	memset(e->traffic, 0, sizeof e->traffic);
	for (int j = r; j < e->split.chunk_count; j += p->pp) {
		for (int k = 0; k < MB_KIND_COUNT; k++) {
			int layers = e->split.kinds[j][k], treated = e->split.treated[j][k];

			for (int i = 0; i < MB_TRAFFIC_COUNT && layers; i++) {
				const struct mb_traffic_cost *a = &e->kinds[k].traffic[i], *b = &e->treated[k].traffic[i];
				double plain = m * (layers - treated), special = m * treated;

				t[i].bytes += plain * a->bytes + (treated ? special * b->bytes : 0);
				t[i].remote_bytes += plain * a->remote_bytes + (treated ? special * b->remote_bytes : 0);
				t[i].seconds += plain * a->seconds + (treated ? special * b->seconds : 0);
				t[i].exposed_seconds += plain * a->exposed_seconds + (treated ? special * b->exposed_seconds : 0);
			}
		}
	}
	t[MB_TRAFFIC_PP] = (struct mb_traffic_cost){ hops * hop_bytes, hop_remote ? hops * hop_bytes : 0, hops * hop_s, hops > 0 ? m * transfer_s : 0 };
	t[MB_TRAFFIC_DP_REDUCE_SCATTER] = (struct mb_traffic_cost){ f->reduce_bytes, f->reduce_remote_bytes, f->reduce_s, f->reduce_exposed_s };
	t[MB_TRAFFIC_DP_ALL_GATHER] = (struct mb_traffic_cost){ f->gather_bytes, f->gather_remote_bytes, f->gather_s, f->gather_exposed_s };
	if (c->model.share_embeddings_and_output_weights && p->pp > 1 && !e->dims.frozen) {
		double bytes = (double)e->dims.padded_vocab / p->tp * c->model.hidden_size * mb_gradient_bytes(c, p);

		t[MB_TRAFFIC_EMBEDDING] = (struct mb_traffic_cost){ bytes, hop_remote ? bytes : 0, bytes / mb_network_rate(c), 0 };
	}
}

static void fill_recompute(const struct mb_plan *p, struct mb_evaluation *e)
{
	double m = (double)e->dims.micro_batches, flops = 0, seconds = 0, saved = 0, executed = 0;

	for (int j = e->slowest_stage; j < e->split.chunk_count; j += p->pp) {
		for (int k = 0; k < MB_KIND_COUNT; k++) {
			int layers = e->split.kinds[j][k], treated = e->split.treated[j][k];

			if (!layers)
				continue;
			executed += layers * (e->kinds[k].forward_flops + e->kinds[k].backward_flops);
			flops += (layers - treated) * e->kinds[k].replay_flops;
			seconds += (layers - treated) * e->kinds[k].replay_s;
			saved += (layers - treated) * (e->kinds[k].full_saved_bytes - e->kinds[k].saved_bytes - e->kinds[k].offloaded_bytes);
			if (treated && p->recompute == MB_RECOMPUTE_FULL) {
				flops += treated * e->treated[k].replay_flops;
				seconds += treated * e->treated[k].replay_s;
				saved += treated * (e->treated[k].full_saved_bytes - e->treated[k].input_bytes);
			}
		}
	}
	e->recompute_flops = m * flops;
	e->recompute_s = m * seconds;
	e->recompute_saved_bytes = saved;
	e->hardware_flops_per_step = m * (executed + flops);
}

static double mfu_peak(const struct mb_case *c)
{
	const struct mb_hardware *hw = &c->hardware;

	switch (c->run.precision) {
	case MB_FP8_CS:
	case MB_FP8_DS:
	case MB_FP8_SC:
	case MB_FP8_MX:
		return hw->mfu_fp8_flop_per_s > 0 ? hw->mfu_fp8_flop_per_s : hw->mfu_bf16_flop_per_s;
	case MB_NVFP4:
		return hw->mfu_fp4_flop_per_s > 0 ? hw->mfu_fp4_flop_per_s : hw->mfu_bf16_flop_per_s;
	default:
		return hw->mfu_bf16_flop_per_s;
	}
}

static void fill_throughput(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e)
{
	double tokens = (double)c->run.global_batch_size * c->run.seq_length, peak = mfu_peak(c);

	e->model_flops_per_token = mb_model_flops_per_token(c, p);
	e->tokens_per_s_per_gpu = tokens / e->step_s / c->run.gpus;
	e->model_flop_per_s_per_gpu = e->tokens_per_s_per_gpu * e->model_flops_per_token;
	e->mfu = peak > 0 ? e->model_flop_per_s_per_gpu / peak : 0;
	e->hfu = peak > 0 ? e->hardware_flops_per_step / e->step_s / peak : 0;
}

/*
 * Half of the band is the 80th percentile of errors whose group (model, GPU, precision) was left out of the fit, apart for
 * the runs where those scatter more: host time that fills most of the device's, and what few published runs decide.
 */
static void fill_band(const struct mb_case *c, const struct mb_plan *p, const struct rank_time *slowest, struct mb_evaluation *e)
{
	bool hybrid = c->model.family && c->model.family[0] == 'h';
	bool wide = slowest->host_s > 0.75 * slowest->device_s || (hybrid && p->tp > 1) || p->tp >= 8 || p->cp > 2
	            || (p->overlap_moe_expert_parallel_comm && !e->dims.full_graph);
	double half = wide ? c->params.band_wide_frac : c->params.band_frac;

	e->low_s = e->step_s * (1 - half);
	e->high_s = e->step_s * (1 + half);
}

static void fill_time(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e)
{
	double m = (double)e->dims.micro_batches, hop_bytes, slowest_terms[MB_TIME_COUNT], sum = 0;
	double hop_s, transfer_s;
	struct mb_finish finish, slowest = { 0 };
	struct mb_rank_params params;
	struct rank_time t;
	bool hop_remote;

	hop_s = hop_seconds(c, p, &e->dims, &hop_bytes, &hop_remote);
	transfer_s = 2 * hop_s * (p->overlap_p2p_comm ? c->params.pp_exposed_frac : 1);
	for (int r = 0; r < p->pp; r++) {
		mb_rank_params_fill(c, p, e, r, &params);
		rank_time_fill(c, p, e, r, transfer_s, &params, &t);
		for (int v = 0; v < p->vp; v++) {
			e->chunk_forward_ps[v * p->pp + r] = llrint(t.chunk_s[v] * t.forward_frac[v] * PS);
			e->chunk_backward_ps[v * p->pp + r] = llrint(t.chunk_s[v] * (1 - t.forward_frac[v]) * PS);
		}
		finish_rank(c, p, e, r, &params, t.total_s, &finish);
		e->stage_time[r].end_s = m * t.total_s;
	}
	e->hop_ps = p->pp > 1 && p->overlap_p2p_comm ? llrint(hop_s * PS) : 0;
	if (p->pp > 1)
		run_schedule(p, e);
	pick_slowest(p, e);
	mb_rank_params_fill(c, p, e, e->slowest_stage, &params);
	rank_time_fill(c, p, e, e->slowest_stage, transfer_s, &params, &t);
	mb_finish_fill(c, p, &e->dims, &params, t.total_s, &slowest);
	memcpy(slowest_terms, t.terms, sizeof slowest_terms);
	for (int i = 0; i < MB_TIME_COUNT; i++)
		e->time_terms[i] = m * slowest_terms[i];
	e->time_terms[MB_TIME_dp] = e->stage_time[e->slowest_stage].dp_s;
	e->time_terms[MB_TIME_optimizer] = e->stage_time[e->slowest_stage].optimizer_s;
	e->time_terms[MB_TIME_fixed] = e->stage_time[e->slowest_stage].fixed_s;
	for (int i = 0; i < MB_TIME_COUNT; i++)
		sum += e->time_terms[i];
	e->time_terms[MB_TIME_bubble] = p->pp > 1 ? fmax(e->step_s - sum, 0) : 0;
	e->bubble_frac = e->time_terms[MB_TIME_bubble] / e->step_s;
	fill_traffic(c, p, e, hop_s, transfer_s, hop_bytes, hop_remote, &slowest);
	fill_recompute(p, e);
	fill_throughput(c, p, e);
	fill_band(c, p, &t, e);
}

/* Allocated memory is known to about half a percent on validated kinds of runs, what lies outside PyTorch to about 1 GiB. */
static void fill_verdict(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e)
{
	double usable = (double)c->hardware.usable_bytes;

	e->peak_stage = 0;
	for (int r = 1; r < p->pp; r++)
		if (e->stage_memory[r].device_used_bytes > e->stage_memory[e->peak_stage].device_used_bytes)
			e->peak_stage = r;
	e->peak_bytes = e->stage_memory[e->peak_stage].peak_bytes;
	e->reserved_bytes = e->stage_memory[e->peak_stage].reserved_bytes;
	e->device_used_bytes = e->stage_memory[e->peak_stage].device_used_bytes;
	e->margin_bytes = usable - e->device_used_bytes;
	e->low_bytes = e->device_used_bytes - 0.005 * e->peak_bytes - 1073741824.0;
	e->high_bytes = e->device_used_bytes + 0.005 * e->peak_bytes + 1073741824.0;
	if (e->device_used_bytes <= 0.97 * usable)
		e->verdict = MB_FITS;
	else
		e->verdict = e->peak_bytes * 1.02 + (e->device_used_bytes - e->reserved_bytes) <= usable ? MB_AT_RISK : MB_OUT_OF_MEMORY;
}

static void fill_parameters(const struct mb_plan *p, struct mb_evaluation *e)
{
	e->params_per_gpu = 0;
	for (int r = 0; r < p->pp; r++) {
		int64_t n = e->stage_memory[r].dense_params + e->stage_memory[r].expert_params;

		if (n > e->params_per_gpu)
			e->params_per_gpu = n;
	}
}

enum mb_verdict mb_evaluate(const struct mb_case *c, const struct mb_plan *plan, struct mb_evaluation *ret)
{
	const struct mb_plan q = with_layout(c, plan), *p = &q;

	mb_dims_fill(c, p, &ret->dims);
	if (!mb_split_fill(c, p, &ret->split))
		return ret->verdict = MB_ILLEGAL;
	fill_kinds(c, p, ret);
	for (int r = 0; r < p->pp; r++)
		mb_stage_memory_fill(c, p, ret, r);
	fill_verdict(c, p, ret);
	fill_time(c, p, ret);
	fill_parameters(p, ret);
	return ret->verdict;
}
