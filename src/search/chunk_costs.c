/* Time and memory of a split's chunks under one choice. */
#include "search/visit.h"

#include <math.h>

#include "cost/memory.h"

static int first_of_kind(const struct mb_case *c, const struct mb_piece *p, int kind, int layers)
{
	int n = 0;

	for (int i = 0; i < layers && i < p->layers; i++)
		n += c->model.layers[p->first_layer + i] == kind;
	return n;
}

static int treated_layers(const struct mb_case *c, const struct mb_piece *p, int kind, const struct mb_treated *t)
{
	if (t->how == MB_TREAT_NONE || kind >= MB_MAX_LAYER_KINDS)
		return 0;
	return t->how == MB_TREAT_ALL ? p->kinds[kind] : first_of_kind(c, p, kind, t->layers);
}

static double treated_saved(const struct mb_treated *t, int slot, int layers)
{
	double group = t->how == MB_TREAT_ALL && t->layers > 1 ? t->layers : 1;

	return t->input_bytes ? t->input_bytes[slot] * ceil(layers / group) : t->rows[slot].saved_bytes * layers;
}

void mb_visit_costs(struct mb_visit *v, const struct mb_kind_row *plain, const struct mb_treated *t, struct mb_chunk_costs *ret)
{
	const struct mb_case *c = &v->walk->s->c;
	const struct mb_slots *slots = &v->w->cache.slots;

	for (int i = 0; i < v->piece_count; i++) {
		const struct mb_piece *p = &v->w->splits->pieces[v->pieces[i]];
		double gpu = 0, forward = 0, host = 0, sync = 0, saved = 0;

		for (int k = 0; k < slots->count; k++) {
			int layers = p->kinds[slots->kind[k]], special = layers ? treated_layers(c, p, slots->kind[k], t) : 0;

			if (layers > special) {
				gpu += (layers - special) * plain[k].gpu_s;
				forward += (layers - special) * plain[k].forward_s;
				host += (layers - special) * plain[k].host_s;
				sync += (layers - special) * plain[k].sync_s;
				saved += (layers - special) * plain[k].saved_bytes;
			}
			if (special) {
				gpu += special * t->rows[k].gpu_s;
				forward += special * t->rows[k].forward_s;
				host += special * t->rows[k].host_s;
				sync += special * t->rows[k].sync_s;
				saved += treated_saved(t, k, special);
			}
		}
		ret->step_s[i] = mb_meet(&c->params, gpu, host, sync);
		ret->forward_s[i] = gpu > 0 ? ret->step_s[i] * forward / gpu : 0;
		ret->saved_bytes[i] = saved;
	}
}

/*
 * Lower bound of the step: a rank waits for the ranks before it, runs all its chunks, and the last gradient goes back.
 * optimizer -1: the least of all. [the fast bound of cost/schedule_bound.c, in seconds]
 */
double mb_visit_step(const struct mb_visit *v, const struct mb_chunk_costs *costs, double transfer_s, double hop_s, int optimizer)
{
	int pp = v->table->pp;
	double m = (double)v->w->micro_batches, bound = 0, head = 0, tail = 0, back = 0, work = 0;

	for (int r = 0; r < pp; r++) {
		double finish = optimizer < 0 ? v->hold[r]->least_finish_s : v->hold[r]->finish_s[optimizer], after = hop_s + back + tail, end;

		if (!v->repeats[r]) {
			work = transfer_s;
			for (int j = r; j < v->chunks; j += pp)
				work += costs->step_s[v->at[j]];
		}
		tail = r == 0 || finish > after ? finish : after;
		end = head + m * work + tail;
		bound = end > bound ? end : bound;
		head += costs->forward_s[v->at[r]] + hop_s;
		back = costs->step_s[v->at[r]] - costs->forward_s[v->at[r]];
	}
	return bound;
}

static double set_bytes(const struct mb_visit *v, const struct mb_chunk_costs *costs, const int32_t *set, int rank)
{
	double sum = 0;

	for (int j = 0; j < v->table->vp; j++)
		sum += set[j] * costs->saved_bytes[v->at[j * v->table->pp + rank]];
	return sum;
}

/*
 * Under EP overlap a forward and a backward run together and hold the larger of their chunks only, and the loss waits
 * for the backward.
 */
static double in_flight_overlapped(const struct mb_visit *v, const struct mb_chunk_costs *costs, const struct mb_live *live, int rank)
{
	const int32_t *set = live->sets + (size_t)rank * (MB_LIVE_SETS + 1) * (size_t)v->table->vp;
	double most = set_bytes(v, costs, live->warm + (size_t)(rank * v->table->vp), rank), one = 0;

	for (int j = 0; j < v->table->vp; j++)
		one = fmax(one, costs->saved_bytes[v->at[j * v->table->pp + rank]]);
	for (int i = 0; i < live->set_count[rank]; i++, set += v->table->vp)
		most = fmax(most, set_bytes(v, costs, set, rank) - one);
	return most;
}

/* Most saved bytes in flight on a rank, and what the loss needs beside them. */
static double in_flight(const struct mb_visit *v, const struct mb_chunk_costs *costs, const struct mb_live *live, int rank)
{
	int pp = v->table->pp, vp = v->table->vp;
	const int32_t *set = live->sets + (size_t)rank * (MB_LIVE_SETS + 1) * (size_t)vp;
	double most = 0;

	if (live == &v->least_live && live->overlap)    /* either way */
		return set_bytes(v, costs, live->warm + (size_t)(rank * vp), rank);
	if (live->overlap)
		return in_flight_overlapped(v, costs, live, rank);
	for (int i = 0; i < live->set_count[rank]; i++, set += vp) {
		double sum = set_bytes(v, costs, set, rank);

		most = most > sum ? most : sum;
	}
	if (rank == pp - 1) {           /* the first forward of the last chunk follows a group of each chunk before it */
		double group = fmin(fmax(v->w->p.microbatch_group_size, pp), (double)v->w->micro_batches), sum = v->loss_bytes;

		for (int j = 0; j < vp; j++)
			sum += (j < vp - 1 ? group : 1) * costs->saved_bytes[v->at[j * pp + rank]];
		most = fmax(most, sum);
	}
	return most;
}

/* Where graphs are captured without an eager step before, the step itself may be smaller than its bound. */
void mb_visit_flight(struct mb_visit *v, const struct mb_chunk_costs *costs, const struct mb_live *live)
{
	bool captured_first = v->walk->s->c.run.cuda_graph_warmup_steps == 0;

	for (int i = 0; i < v->tight_count; i++)
		v->flight_bytes[i] = captured_first ? -INFINITY : in_flight(v, costs, live, v->tight[i]);
}

/* After fill_flight. */
double mb_visit_peak(const struct mb_visit *v, int optimizer)
{
	double peak = 0;

	for (int i = 0; i < v->tight_count; i++) {
		const struct mb_hold *h = v->hold[v->tight[i]];
		double between = optimizer < 0 ? h->least_between : h->between[optimizer];
		double running = (optimizer < 0 ? h->least_running : h->running[optimizer]) + v->flight_bytes[i];

		between = between > running ? between : running;
		peak = peak > between ? peak : between;
	}
	return peak;
}

/* ---- setting up ---- */

static bool same_chunks(const struct mb_visit *v, int a, int b)
{
	for (int j = 0; j < v->table->vp; j++)
		if (v->at[j * v->table->pp + a] != v->at[j * v->table->pp + b])
			return false;
	return true;
}

void mb_visit_pieces(struct mb_visit *v)
{
	v->chunks = v->table->pp * v->table->vp;
	v->piece_count = 0;
	for (int j = 0; j < v->chunks; j++) {
		int i = 0;

		while (i < v->piece_count && v->pieces[i] != v->row->piece[j])
			i++;
		if (i == v->piece_count)
			v->pieces[v->piece_count++] = v->row->piece[j];
		v->at[j] = (uint16_t)i;
	}
	for (int r = 0; r < v->table->pp; r++)
		v->repeats[r] = r > 0 && same_chunks(v, r, r - 1);
}

/* Until something is worth a closer look, only what is proportional to parameters counts. */
void mb_visit_floors(struct mb_visit *v)
{
	for (int r = 0; r < v->table->pp; r++) {
		if (r > 0 && v->row->holding[r] == v->row->holding[r - 1]) {
			v->hold[r] = v->hold[r - 1];
			continue;
		}
		mb_node_hold_floor(v->w, &v->w->splits->holdings[v->row->holding[r]], &v->floors[r]);
		v->hold[r] = &v->floors[r];
	}
}

void mb_visit_holds(struct mb_visit *v)
{
	for (int r = 0; r < v->table->pp; r++)
		v->hold[r] = mb_node_hold(v->w, v->table, v->row, r);
}

/* A rank with the chunks of the one before it has fewer in flight. */
void mb_visit_ranks(struct mb_visit *v)
{
	v->tight_count = 0;
	for (int r = 0; r < v->table->pp; r++) {
		if (r == v->table->pp - 1 || !v->repeats[r])
			v->tight[v->tight_count++] = (uint16_t)r;
	}
	v->loss_bytes = mb_loss_bytes_of(&v->walk->s->c, &v->w->d).forward;
}
