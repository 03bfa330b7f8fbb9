/*
 * The peak of a stage is the largest of a few events: the deepest forward, head and loss, a backward, a replay, the
 * optimizer step. Each is base + activations in flight + what the event itself needs. [docs/model.md section 3]
 */
#include "cost/memory.h"

#include <math.h>
#include <string.h>

#include "cost/build.h"

struct chunk_bytes {
	double saved, forward, backward, replay, loss_forward, loss_backward;
	double pooled;                  /* of what is saved, in a graph's pool in every step */
	double experts;                 /* of the forward, what a MoE layer's experts need */
	double reloaded;                /* offloaded tensors that are back ahead of their backward */
};

struct mb_pipeline mb_memory_pipeline(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d)
{
	(void)c;
	return (struct mb_pipeline){ .pp = p->pp, .vp = p->vp, .micro_batches = d->micro_batches,
		.group = p->microbatch_group_size, .ep_overlap = p->overlap_moe_expert_parallel_comm };
}

/*
 * Multiples of tokens x vocabulary / TP. Fused natively, fp32 logits and their exponentials exist at once; Transformer
 * Engine up to 2.17 writes the gradient over the logits, later into fp32. [fusions/fused_cross_entropy.py,
 * tensor_parallel/cross_entropy.py, transformer_engine triton/cross_entropy.py]
 */
struct mb_loss_bytes mb_loss_bytes_of(const struct mb_case *c, const struct mb_dims *d)
{
	const struct mb_run *r = &c->run;
	double logits = d->tokens * d->padded_vocab / d->tp, h = c->model.hidden_size, head, depth = c->mtp_depth;
	bool te = r->cross_entropy_loss_fusion && r->cross_entropy_fusion_impl == MB_CE_TE;
	struct mb_loss_bytes b = { 6 * logits, 4 * logits, 6 * logits };

	if (r->precision == MB_FP32 || r->fp32_compute)
		b = (struct mb_loss_bytes){ 4 * logits, 4 * logits, 4 * logits };
	else if (te && c->stack.transformer_engine < MB_VERSION(2, 18, 0))
		b = (struct mb_loss_bytes){ 2 * logits, 2 * logits, 2 * logits };
	else if (r->cross_entropy_loss_fusion && !te)
		b.forward = 10 * logits;
	head = b.saved + 2 * d->tokens * h + (d->sp ? 2 * d->local_tokens * h : 0);
	b.backward = fmax(b.backward, head) + depth * b.saved;
	b.forward += depth * b.saved;
	if (depth > 0 && !mb_stack_since(&c->stack, 2026, 2, 15))      /* the MTP head's logits lived through the main head */
		b.forward += 2 * logits;
	return b;
}

/*
 * Working set of a MoE layer's forward: permuted rows, the all-to-all's output, the second product's output and its
 * unsorted copy are held by Python frames until the layer returns, with two hidden states. Flex dispatchers hold two of
 * the four, and three hidden states in the test of a single layer.
 */
static double moe_forward_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d)
{
	double width = c->model.moe_latent_size > 0 ? c->model.moe_latent_size : c->model.hidden_size;
	double rows = 2 * d->rows * width, x = 2 * d->local_tokens * c->model.hidden_size;

	switch (p->dispatcher) {
	case MB_DISPATCH_FLEX:
		return 2 * rows + 3 * x;
	case MB_DISPATCH_ALLGATHER:
		return 2 * 2 * d->tokens * d->ep * c->model.hidden_size / (d->sp ? d->tp : 1) + rows;
	case MB_DISPATCH_ALLTOALL:
		break;
	}
	return (d->experts_local > 1 ? 4 : 3) * rows + 2 * x;
}

static void kind_events(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int kind,
                        const struct mb_kind_cost *k, struct chunk_bytes *ret)
{
	const struct mb_layer_kind *layer = kind < MB_MAX_LAYER_KINDS ? &c->model.kinds[kind] : NULL;
	double forward = k->forward_transient_bytes, backward = k->backward_transient_bytes;

	if (layer && layer->ffn == MB_FFN_MOE) {
		ret->experts = fmax(ret->experts, moe_forward_bytes(c, p, d));
		forward = fmax(forward, ret->experts);
		if (p->overlap_moe_expert_parallel_comm)
			backward = fmax(backward, 2 * 2 * d->rows * c->model.hidden_size);
	}
	if (layer && layer->ffn == MB_FFN_DENSE)        /* gradient of the first product's output, and of the layer's input */
		backward = fmax(backward, d->act_bytes * (d->tokens * mb_build_gate(&c->model) * c->model.ffn_hidden_size / d->tp
		                                          + d->local_tokens * c->model.hidden_size));
	ret->forward = fmax(ret->forward, forward);
	ret->backward = fmax(ret->backward, backward);
}

/* What treated layers keep: full recompute one input for each group of layers, offloading what it leaves. */
static double treated_bytes(const struct mb_plan *p, const struct mb_kind_cost *k, int layers)
{
	double group = p->recompute_method == MB_METHOD_UNIFORM && p->recompute_num_layers > 1 ? p->recompute_num_layers : 1;

	if (p->recompute == MB_RECOMPUTE_FULL)
		return k->input_bytes * ceil(layers / group);
	return k->saved_bytes * layers;
}

/* A replayed group holds all its layers' activations until their backward. */
static double replay_bytes(const struct mb_plan *p, const struct mb_kind_cost *k, const struct mb_kind_cost *treated, int layers)
{
	double group = p->recompute_method == MB_METHOD_UNIFORM && p->recompute_num_layers > 1 ? p->recompute_num_layers : 1;

	if (p->recompute == MB_RECOMPUTE_FULL)
		return treated->full_saved_bytes * fmin(group, layers);
	if (p->cpu_offloading)
		return 2 * treated->full_saved_bytes;   /* one layer in use, one on its way */
	return k->replay_transient_bytes;
}

/*
 * Offloading: the layer whose backward comes next is back on the device, what two operations saved twice over (softmax
 * output of unfused attention) is back twice; meanwhile a forward runs with its attention tensors not yet gone.
 * [pipeline_parallel/fine_grained_activation_offload.py]
 */
static void offload_events(const struct mb_kind_cost *k, struct chunk_bytes *ret, double *ret_running)
{
	if (k->offloaded_bytes <= 0)
		return;
	ret->reloaded = fmax(ret->reloaded, k->offloaded_bytes + k->score_bytes);
	*ret_running = fmax(*ret_running, k->score_bytes + k->forward_transient_bytes + 2 * k->qkv_bytes + 2 * k->input_bytes);
}

/* While layers run, the final norm has not run yet or is done with. MTP layers run behind it. */
static void without_head(const struct mb_case *c, const struct mb_kind_cost *head, struct chunk_bytes *ret)
{
	double norm = head->saved_bytes + head->rounding_bytes;

	if (c->mtp_depth > 0)
		return;
	ret->forward = fmax(ret->forward - norm, 0);
	ret->backward = fmax(ret->backward - norm, 0);
	ret->replay = fmax(ret->replay - norm, 0);
}

static void chunk_events(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int j, struct chunk_bytes *ret)
{
	const struct mb_split *s = &e->split;
	double running = 0;

	*ret = (struct chunk_bytes){ 0 };
	for (int k = 0; k < MB_KIND_COUNT; k++) {
		int layers = s->kinds[j][k], treated = s->treated[j][k];

		if (!layers)
			continue;
		ret->saved += (layers - treated) * (e->kinds[k].saved_bytes + e->kinds[k].rounding_bytes);
		if (treated)
			ret->saved += treated_bytes(p, &e->treated[k], treated);
		if (p->cuda_graph_impl == MB_GRAPH_TE && c->run.cuda_graph_warmup_steps == 0)
			ret->pooled += layers * e->kinds[k].captured_bytes;
		kind_events(c, p, &e->dims, k, &e->kinds[k], ret);
		if (treated || e->kinds[k].replay_transient_bytes > 0)
			ret->replay = fmax(ret->replay, replay_bytes(p, &e->kinds[k], &e->treated[k], treated));
		offload_events(&e->kinds[k], ret, &running);
	}
	if (ret->reloaded > 0) {
		bool pair = p->overlap_moe_expert_parallel_comm;

		ret->forward = ret->reloaded + (pair ? running + ret->experts : fmax(running, ret->forward));
		ret->backward = pair ? 0 : ret->backward + ret->reloaded;
	}
	if (s->chunks[j].loss) {
		struct mb_loss_bytes loss = mb_loss_bytes_of(c, &e->dims);

		without_head(c, &e->kinds[MB_KIND_HEAD], ret);
		ret->loss_forward = loss.forward;
		ret->loss_backward = loss.backward;
	}
	if (s->chunks[j].embedding && !e->dims.frozen)  /* dense gradient of the table, when the chunk's own activations are gone */
		ret->backward = fmax(ret->backward, 2 * (double)e->dims.padded_vocab / e->dims.tp * c->model.hidden_size - ret->saved);
}

/*
 * What a chunk's forward and backward need beyond what is kept. Under EP overlap both run at once, but a forward reaches
 * its loss when the backward beside it has left its own behind: the larger of a pair of layers and one loss.
 */
static void event_extras(const struct mb_plan *p, const struct mb_dims *d, const struct chunk_bytes *b, double *ret_forward, double *ret_backward)
{
	double backward = fmax(b->backward, b->replay);

	if (p->overlap_moe_expert_parallel_comm && d->micro_batches > 1) {
		*ret_forward = b->forward;
		*ret_backward = fmax(backward, fmax(b->loss_forward, b->loss_backward) - b->forward);
		return;
	}
	*ret_forward = fmax(b->forward, b->loss_forward);
	*ret_backward = fmax(backward, b->loss_backward);
}

/* FSDP gathers units ahead of use and holds gradients until they are reduced [megatron_fsdp.py, suggested sizes]. */
static double fsdp_gathered(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, const struct mb_rank_params *r,
                            bool backward)
{
	double layers = fmax(c->model.num_layers / (double)p->pp, 1), whole = r->dense + r->expert - r->unit_free, unit = whole / layers;
	double queue = c->run.suggested_communication_unit_size > 0 ? c->run.suggested_communication_unit_size : fmax(1e9, 2 * unit);
	double bytes = 0;

	if (!p->use_megatron_fsdp || p->sharding < MB_SHARD_OPTIM_GRADS)
		return 0;
	if (p->sharding == MB_SHARD_FULL)
		bytes += e->dims.act_bytes * (c->run.fsdp_double_buffer ? 2 * unit : fmin(whole, unit + queue / 2));
	if (backward)
		bytes += mb_gradient_bytes(c, p) * (c->run.fsdp_double_buffer ? 2 * unit : fmin(whole, unit + queue));
	return bytes;
}

/*
 * Tensors between stages that variables of the schedule still hold. 1F1B, from its second steady iteration on: the
 * gradients that the backward before received and sent; and until the forward returns, the stage input of that backward,
 * which the graph of its output keeps alive. Interleaved: stage input and gradient, and one receive buffer more without
 * the flush of the warm-up. [pipeline_parallel/schedules.py]
 */
static void held_between_passes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, int rank,
                                double *ret_forward, double *ret_backward)
{
	bool first = rank == 0, last = rank == p->pp - 1;
	double x = 2 * d->local_tokens * c->model.hidden_size;

	*ret_forward = *ret_backward = 0;
	if (p->pp == 1 || d->micro_batches < 2)
		return;
	if (p->vp > 1) {
		*ret_forward = *ret_backward = (last && !c->run.overlap_p2p_comm_warmup_flush ? 3 : 2) * x;
	} else if (d->micro_batches > p->pp - rank) {
		*ret_forward = ((first ? 0 : 2) + (last ? 0 : 1)) * x;
		*ret_backward = first ? 0 : x;
	}
}

/* Terms while micro-batches run, whatever the pass: no gradient copy, and no stage input but those in transfer. */
static void running_terms(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, const struct mb_rank_params *r,
                          const double between[MB_MEM_COUNT], double stage_input, double ret[MB_MEM_COUNT])
{
	const struct mb_dims *d = &e->dims;
	double x = 2 * d->local_tokens * c->model.hidden_size;

	memcpy(ret, between, MB_MEM_COUNT * sizeof ret[0]);
	ret[MB_MEM_gradient_copy] = 0;
	ret[MB_MEM_stage_input] = stage_input;
	if (p->overlap_moe_expert_parallel_comm && !p->fine_grained_activation_offloading)
		ret[MB_MEM_dispatch] -= r->moe_layers * 2 * x;
	if (between[MB_MEM_batch] <= 0)
		ret[MB_MEM_batch] = mb_batch_bytes(c, p, d);
	if (c->run.defer_embedding_wgrad_compute && r->has_loss) {
		double waiting = d->micro_batches;

		if (c->run.wgrad_deferral_limit > 0)
			waiting = fmin(waiting, c->run.wgrad_deferral_limit);
		ret[MB_MEM_loss] = waiting * (2 * d->tokens * d->padded_vocab / d->tp + 2 * d->tokens * c->model.hidden_size + x);
	}
}

static double sum_terms(const double terms[MB_MEM_COUNT])
{
	double sum = 0;

	for (int i = 0; i < MB_MEM_COUNT; i++)
		sum += terms[i];
	return sum;
}

/* `held`: stage inputs and gradients that only a forward finds. */
static void explain_event(const struct chunk_bytes *chunks, const struct mb_live_event *event, double held, struct mb_stage_memory *m)
{
	const struct chunk_bytes *own = &chunks[event->chunk];
	double input = event->backward ? 0 : held, extra = event->bytes - event->saved_bytes - input;
	double loss = event->beside >= 0 ? fmax(own->loss_forward, own->loss_backward) : event->backward ? own->loss_backward : own->loss_forward;
	bool is_loss = loss > 0 && loss >= extra - 1;

	m->terms[MB_MEM_activations] += event->saved_bytes;
	m->terms[MB_MEM_stage_input] += input;
	loss = is_loss ? fmin(loss, extra) : 0; /* a backward that counts on a forward beside it may run alone */
	m->terms[MB_MEM_loss] += loss;
	m->terms[MB_MEM_transient] += extra - loss;
	m->in_flight_bytes = event->saved_bytes;
	m->in_flight_chunks = (int)event->in_flight;
	m->peak_chunk = event->chunk;
	m->peak_micro_batch = (int)event->micro_batch;
	if (is_loss)
		m->phase = MB_PHASE_LOSS;
	else if (!event->backward)
		m->phase = MB_PHASE_FORWARD;
	else
		m->phase = own->replay > own->backward ? MB_PHASE_REPLAY : MB_PHASE_BACKWARD;
}

static double host_activations(const struct mb_plan *p, const struct mb_evaluation *e, int rank, int64_t in_flight)
{
	double bytes = 0;

	for (int j = rank; j < e->split.chunk_count; j += p->pp)
		for (int k = 0; k < MB_KIND_COUNT; k++)
			bytes += (e->split.kinds[j][k] - e->split.treated[j][k]) * e->kinds[k].offloaded_bytes
			         + e->split.treated[j][k] * e->treated[k].offloaded_bytes;
	return bytes * (double)in_flight / p->vp;
}

/*
 * The larger of a step and the capture of its modules. Eager warm-up steps run without the static buffers; with none of
 * them, what is captured never counts again.
 */
static double with_capture(const struct mb_case *c, const struct mb_plan *p, const struct mb_evaluation *e, int rank, double running,
                           struct mb_stage_memory *m)
{
	double terms[MB_MEM_COUNT], capture = mb_capture_terms(c, p, e, rank, m->between_terms, terms);

	if (c->run.cuda_graph_warmup_steps > 0) {
		running -= m->between_terms[MB_MEM_graph];
		m->terms[MB_MEM_graph] = 0;
		m->first_step_peak_bytes -= m->between_terms[MB_MEM_graph];
	} else {
		m->first_step_peak_bytes = fmax(m->first_step_peak_bytes, capture);
	}
	if (running >= capture)
		return running;
	memcpy(m->terms, terms, sizeof terms);
	m->phase = MB_PHASE_CAPTURE;
	return capture;
}

void mb_stage_memory_fill(const struct mb_case *c, const struct mb_plan *p, struct mb_evaluation *e, int rank)
{
	struct mb_stage_memory *m = &e->stage_memory[rank];
	struct chunk_bytes chunks[MB_MAX_CHUNKS];
	double saved[MB_MAX_CHUNKS], forward[MB_MAX_CHUNKS], backward[MB_MAX_CHUNKS];
	struct mb_pipeline order = mb_memory_pipeline(c, p, &e->dims);
	struct mb_rank_params params;
	struct mb_live_event event;
	double running, held_forward, held_backward;

	memset(m, 0, sizeof *m);
	mb_rank_params_fill(c, p, e, rank, &params);
	m->dense_params = (int64_t)params.dense;
	m->expert_params = (int64_t)params.expert;
	mb_states_fill(c, p, e, rank, &params, m->between_terms, &m->host_bytes);
	m->between_terms[MB_MEM_graph] = mb_graph_static_bytes(c, p, e, rank);
	m->between_bytes = sum_terms(m->between_terms);
	held_between_passes(c, p, &e->dims, rank, &held_forward, &held_backward);
	for (int v = 0; v < p->vp; v++) {
		chunk_events(c, p, e, v * p->pp + rank, &chunks[v]);
		saved[v] = chunks[v].saved - chunks[v].pooled;
		/* Not at the loss: units are released there, and no gradient waits yet. */
		chunks[v].forward += fsdp_gathered(c, p, e, &params, false);
		chunks[v].backward += fsdp_gathered(c, p, e, &params, true);
		chunks[v].replay += chunks[v].replay > 0 ? fsdp_gathered(c, p, e, &params, true) : 0;
		event_extras(p, &e->dims, &chunks[v], &forward[v], &backward[v]);
		forward[v] += held_forward - held_backward;
		e->chunk_saved_bytes[v * p->pp + rank] = saved[v];
		e->chunk_forward_bytes[v * p->pp + rank] = forward[v];
		e->chunk_backward_bytes[v * p->pp + rank] = backward[v];
	}
	mb_live_peak(&order, rank, saved, forward, backward, &event);
	running_terms(c, p, e, &params, m->between_terms, held_backward, m->terms);
	m->running_bytes = sum_terms(m->terms);
	running = m->running_bytes + event.bytes;
	m->first_step_peak_bytes = fmax(running - m->terms[MB_MEM_moments] - chunks[event.chunk].reloaded
	                                - (e->dims.micro_batches == 1 ? mb_torch_workspace(c, params.has_loss) : 0), m->between_bytes);
	explain_event(chunks, &event, held_forward - held_backward, m);
	if (p->cuda_graph_impl == MB_GRAPH_TE)
		running = with_capture(c, p, e, rank, running, m);
	m->peak_bytes = running;
	m->host_bytes += host_activations(p, e, rank, event.in_flight);
	if (m->between_bytes >= running) {      /* the optimizer step, with the gradient copy it makes */
		memcpy(m->terms, m->between_terms, sizeof m->terms);
		m->peak_bytes = m->between_bytes;
		m->phase = MB_PHASE_OPTIMIZER;
	}
	m->peak_bytes = sum_terms(m->terms);
	mb_device_memory_fill(c, p, &e->dims, m);
}
