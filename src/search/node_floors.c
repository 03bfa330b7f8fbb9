/* Lower bounds of time and memory under sizes, whatever the split. */
#include "search/node.h"

#include <math.h>

#include "base/larger.h"

/* Sets of weights behind so many layers of a kind on a rank: MTP depths may share theirs, and the ends the vocabulary. */
static int weights_of(const struct mb_case *c, int kind, int layers, int mtp, bool both_ends)
{
	if (mtp > 1 && c->model.mtp_use_repeated_layer) {
		if (kind == MB_KIND_MTP)
			return 1;
		for (int j = 0; kind < MB_MAX_LAYER_KINDS && j < c->model.mtp_layer_count; j++)
			layers -= c->model.mtp_layers[j] == kind ? mtp - 1 : 0;
	}
	if (kind == MB_KIND_EMBEDDING && both_ends && c->model.share_embeddings_and_output_weights)
		return 0;
	return layers;
}

void mb_node_hold_floor(const struct mb_worker *w, const struct mb_holding *h, struct mb_hold *ret)
{
	bool both = h->kinds[MB_KIND_EMBEDDING] > 0 && h->kinds[MB_KIND_HEAD] > 0;
	int layers[MB_KIND_COUNT];

	for (int s = 0; s < w->cache.slots.count; s++)
		layers[s] = weights_of(&w->l->s->c, w->cache.slots.kind[s], h->kinds[w->cache.slots.kind[s]], h->kinds[MB_KIND_MTP], both);
	ret->least_running = ret->least_pass_s = ret->least_finish_s = INFINITY;
	for (uint32_t left = w->distinct; left; left &= left - 1) {
		int i = __builtin_ctz(left);
		double bytes = 0, fsdp_s = 0, finish_s = 0;

		for (int s = 0; s < w->cache.slots.count; s++) {
			bytes += layers[s] * w->slot_bytes[i][s];
			fsdp_s += layers[s] * w->slot_fsdp_s[i][s];
			finish_s += layers[s] * w->slot_finish_s[i][s];
		}
		ret->between[i] = ret->running[i] = bytes;
		ret->finish_s[i] = finish_s;
		ret->pass_s[i] = fsdp_s;
		ret->least_finish_s = finish_s < ret->least_finish_s ? finish_s : ret->least_finish_s;
		ret->least_running = bytes < ret->least_running ? bytes : ret->least_running;
		ret->least_pass_s = fsdp_s < ret->least_pass_s ? fsdp_s : ret->least_pass_s;
	}
	ret->least_between = ret->least_running;
}

/* All ranks together keep all layers' states, however they are split; only what is proportional to parameters counts. */
double mb_node_states_floor(struct mb_worker *w)
{
	const struct mb_case *c = &w->l->s->c;
	double best = INFINITY;

	for (uint32_t left = w->distinct; left; left &= left - 1) {
		int i = __builtin_ctz(left);
		double bytes = 0, fsdp_s = 0, finish_s = 0;

		for (int s = 0; s < w->cache.slots.count; s++) {
			int layers = weights_of(c, w->cache.slots.kind[s], (int)w->cache.layers[s], c->mtp_depth, w->p.pp == 1);

			bytes += layers * w->slot_bytes[i][s];
			fsdp_s += layers * w->slot_fsdp_s[i][s];
			finish_s += layers * w->slot_finish_s[i][s];
		}
		w->mean_bytes[i] = bytes / w->p.pp;
		w->mean_fsdp_s[i] = fsdp_s / w->p.pp;
		w->mean_finish_s[i] = finish_s / w->p.pp;
		best = mb_smaller(best, w->mean_bytes[i]);
	}
	return best;
}

double mb_node_micro_batches(const struct mb_worker *w, const struct mb_sizes *n)
{
	const struct mb_run *run = &w->l->s->c.run;

	return floor(run->global_batch_size / (n->mbs * (run->gpus / ((double)n->tp * n->cp * n->pp))));
}

/*
 * m micro-batches over p ranks: a rank works for m times its share, and without virtual stages waits for the shares of
 * the ranks before it. The longest is shortest where all are equal: shares that shrink by 1 - 1/m from rank to rank.
 */
double mb_node_passes(const struct mb_worker *w, const struct mb_sizes *n)
{
	double m = mb_node_micro_batches(w, n), left = 1;

	if (!n->flat)
		return m / n->pp;
	for (int r = 0; r < n->pp; r++)
		left *= 1 - 1 / m;
	return (1 - 1e-12) / (1 - left);
}

double mb_node_step_floor(const struct mb_worker *w, const struct mb_sizes *n, const double *layer_s)
{
	double sum = 0;

	for (int i = 0; i < w->cache.slots.count; i++)
		if (w->cache.layers[i] > 0)
			sum += w->cache.layers[i] * layer_s[i];
	return mb_node_passes(w, n) * sum;
}

double mb_node_flight_floor(const struct mb_worker *w, const double *kept, double layer_s)
{
	const struct mb_case *c = &w->l->s->c;
	double most = floor(w->limit_s / ((double)w->micro_batches * layer_s)), sum = 0, bytes[MB_KIND_COUNT];
	int count = 0, left[MB_KIND_COUNT], rank = w->p.pp, room = 0;
	int each = most < c->model.num_layers ? (int)most : c->model.num_layers;

	for (int i = 0; i < w->cache.slots.count; i++) {
		int kind = w->cache.slots.kind[i], n = kind < MB_MAX_LAYER_KINDS ? w->decoder_layers[i] : 0, at = count;

		if (n == 0)
			continue;
		for (; at > 0 && bytes[at - 1] < kept[i]; at--) {
			bytes[at] = bytes[at - 1];
			left[at] = left[at - 1];
		}
		bytes[at] = kept[i];
		left[at] = n;
		count++;
	}
	for (int i = 0; i < count;) {
		int take;

		if (room == 0) {
			if (--rank < 0)
				return INFINITY;        /* more layers than the ranks have time for */
			room = each;
		}
		take = room < left[i] ? room : left[i];
		if (take == 0)
			return INFINITY;
		sum += take * mb_smaller((double)w->micro_batches, w->p.pp - rank) * bytes[i];
		room -= take;
		left[i] -= take;
		i += left[i] == 0;
	}
	return sum / w->p.pp;
}

/*
 * Where layers without recompute do not fit, the share of what they keep that has to go costs time: about a third more
 * for layers recomputed whole.
 */
double mb_node_guess(const struct mb_worker *w, double step_s)
{
	double flight = 0, over;

	for (int i = 0; i < w->cache.slots.count; i++)
		flight += w->decoder_layers[i] * w->states->kinds[w->cache.slots.kind[i]].saved_bytes;
	flight *= mb_smaller((double)w->micro_batches, w->p.pp) / w->p.pp;
	over = w->states_bytes + flight - w->limit_bytes;
	return step_s * (over > 0 ? 1 + over / flight / 3 : 1);
}

/* Most that `room_s` can hold of what is worth `value` and takes layer_s each; parts count. */
static double most_worth(const struct mb_worker *w, const double *value, const double *layer_s, double room_s)
{
	bool taken[MB_KIND_COUNT] = { false };
	double sum = 0;

	for (;;) {
		int best = -1;
		double n;

		for (int i = 0; i < w->cache.slots.count; i++)
			if (w->decoder_layers[i] > 0 && !taken[i] && (best < 0 || value[i] * layer_s[best] > value[best] * layer_s[i]))
				best = i;
		if (best < 0 || (room_s <= 0 && layer_s[best] > 0))
			return sum;
		taken[best] = true;
		n = w->decoder_layers[best] * layer_s[best] <= room_s ? w->decoder_layers[best] : room_s / layer_s[best];
		sum += n * value[best];
		room_s -= n * layer_s[best];
	}
}

double mb_node_spared(const struct mb_worker *w, const struct mb_kind_row *plain, const struct mb_kind_row *full)
{
	double diff[MB_KIND_COUNT], more_s[MB_KIND_COUNT], room_s = w->p.pp * w->limit_s / (double)w->micro_batches;

	for (int i = 0; i < w->cache.slots.count; i++) {
		if (!(w->cache.layers[i] > 0))
			continue;
		room_s -= w->cache.layers[i] * plain[i].gpu_s;
		diff[i] = mb_larger(plain[i].saved_bytes - full[i].saved_bytes, 0);
		more_s[i] = mb_larger(full[i].gpu_s - plain[i].gpu_s, 0);
	}
	return mb_smaller((double)w->micro_batches, w->p.pp) * most_worth(w, diff, more_s, room_s);
}

/* Of layers that every chunk of the first rank has; nothing where backwards may start after the last forward. */
static double least_event(const struct mb_worker *w, const double *event)
{
	double least = INFINITY;

	if (w->splits->bare[w->p.pp] || w->micro_batches < 2 * w->p.pp)
		return 0;
	for (int i = 0; i < w->cache.slots.count; i++)
		if (w->decoder_layers[i] > 0)
			least = mb_smaller(least, event[i]);
	return least;
}

double mb_node_first_rank_floor(const struct mb_worker *w, const double *kept, const double *event, const double *layer_s, int optimizer)
{
	double in_flight = mb_smaller((double)w->micro_batches, w->p.pp), room_s = (w->p.pp - 1) * w->limit_s / (double)w->micro_batches;
	double value[MB_KIND_COUNT], each_s[MB_KIND_COUNT], sum = 0;

	for (int i = 0; i < w->cache.slots.count; i++) {
		each_s[i] = layer_s[i] + w->slot_finish_s[optimizer][i] / (double)w->micro_batches;
		value[i] = w->slot_bytes[optimizer][i] + in_flight * kept[i];
		sum += w->decoder_layers[i] > 0 ? w->decoder_layers[i] * value[i] : 0;
	}
	return sum - most_worth(w, value, each_s, room_s * (1 + 1e-9)) + least_event(w, event);
}
