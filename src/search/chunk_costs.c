/* Time and memory of a split's pieces under one choice. */
#include "search/visit.h"

#include <math.h>
#include <stdint.h>

#include "base/larger.h"
#include "cost/memory.h"

/* At the loss the head's norm is not there (without_head in cost/memory.c): nothing is sure. */
static double event_of(const struct mb_piece *p, double event)
{
	return p->loss ? 0 : event;
}

static int first_of_kind(const struct mb_case *c, const struct mb_piece *p, int kind, int layers)
{
	int n = 0;

	for (int i = 0; i < layers && i < p->layers; i++)
		n += c->model.layers[p->first_layer + i] == kind;
	return n;
}

static int treated_layers(const struct mb_case *c, const struct mb_piece *p, int kind, const struct mb_treated *t)
{
	if (kind >= MB_MAX_LAYER_KINDS)
		return 0;
	return t->how == MB_TREAT_ALL ? p->kinds[kind] : first_of_kind(c, p, kind, t->layers);
}

static double treated_saved(const struct mb_treated *t, int slot, int layers)
{
	double group = t->how == MB_TREAT_ALL && t->layers > 1 ? t->layers : 1;

	return t->input_bytes ? t->input_bytes[slot] * ceil(layers / group) : t->rows[slot].saved_bytes * layers;
}

static void fill_piece(const struct mb_visit *v, int piece, const struct mb_kind_row *plain, const struct mb_treated *t,
                       struct mb_piece_cost *ret)
{
	const struct mb_case *c = &v->walk->s->c;
	const struct mb_slots *slots = &v->w->cache.slots;
	const struct mb_piece *p = &v->w->splits->pieces[piece];
	double gpu = 0, forward = 0, host = 0, sync = 0, saved = 0, event = 0;

	for (int k = 0; k < slots->count; k++) {        /* a row that nothing may have is infinite */
		int layers = p->kinds[slots->kind[k]], special = t && layers ? treated_layers(c, p, slots->kind[k], t) : 0;

		if (layers > special) {
			gpu += (layers - special) * plain[k].gpu_s;
			forward += (layers - special) * plain[k].forward_s;
			host += (layers - special) * plain[k].host_s;
			sync += (layers - special) * plain[k].sync_s;
			saved += (layers - special) * plain[k].saved_bytes;
			event = mb_larger(event, plain[k].event_bytes);
		}
		if (special) {
			gpu += special * t->rows[k].gpu_s;
			forward += special * t->rows[k].forward_s;
			host += special * t->rows[k].host_s;
			sync += special * t->rows[k].sync_s;
			saved += treated_saved(t, k, special);
			event = mb_larger(event, t->rows[k].event_bytes);
		}
	}
	ret->step_s = mb_meet(&c->params, gpu, host, sync);
	ret->forward_s = gpu > 0 ? ret->step_s * forward / gpu : 0;
	ret->saved_bytes = saved;
	ret->event_bytes = event_of(p, event);
}

/* From the pieces known, or worked out: many splits share them. */
static const struct mb_piece_cost *piece_cost(const struct mb_visit *v, uint64_t key, const struct mb_kind_row *plain, const struct mb_treated *t)
{
	const struct mb_kind_row *treated = t ? t->rows : NULL;
	uint64_t hash = key * 0x9e3779b97f4a7c15u + (((uintptr_t)plain >> 4) * 31 + ((uintptr_t)treated >> 4) * 8191) * 0x632be59bd9b4e019u;
	struct mb_piece_cost *known = &v->known[(hash >> 32) % MB_KNOWN_PIECES];

	if (known->key == key && known->plain == plain && known->treated == treated)
		return known;
	known->key = key;
	known->plain = plain;
	known->treated = treated;
	fill_piece(v, (int)(key >> 16 & UINT16_MAX), plain, t, known);
	return known;
}

void mb_visit_costs(const struct mb_visit *v, const struct mb_kind_row *plain, const struct mb_treated *t, struct mb_chunk_costs *ret)
{
	uint64_t key = (uint64_t)v->w->stamp << 32 | (t ? 2u * (uint16_t)t->layers + (t->how == MB_TREAT_ALL) : 0u);

	for (int i = 0; i < v->row->piece_count; i++) {
		const struct mb_piece_cost *known = piece_cost(v, key | (uint64_t)v->row->pieces[i] << 16, plain, t);

		ret->step_s[i] = known->step_s;
		ret->forward_s[i] = known->forward_s;
		ret->saved_bytes[i] = known->saved_bytes;
		ret->event_bytes[i] = known->event_bytes;
	}
}

/*
 * Lower bound of the step: a rank waits for the ranks before it, runs all its chunks, and the last gradient goes back.
 * optimizer -1: the least of all. Of ranks with the same chunks the last one waits longest on both sides. [the fast
 * bound of cost/schedule_bound.c, in seconds]
 */
double mb_visit_step(const struct mb_visit *v, const struct mb_chunk_costs *costs, double transfer_s, double hop_s, int optimizer)
{
	double m = (double)v->w->micro_batches, bound = 0, head = 0, tail = 0, back = 0;

	for (int i = 0; i < v->row->run_count; i++) {
		const struct mb_rank_run *run = &v->row->runs[i];
		double finish = optimizer < 0 ? v->hold[i]->least_finish_s : v->hold[i]->finish_s[optimizer];
		double forward = costs->forward_s[run->head];
		double work = transfer_s + (optimizer < 0 ? v->hold[i]->least_pass_s : v->hold[i]->pass_s[optimizer]);

		for (int k = 0; k < run->share_count; k++)
			work += run->shares[k].count * costs->step_s[run->shares[k].piece];
		tail = i == 0 ? finish : mb_larger(finish, hop_s + back + tail);
		back = costs->step_s[run->head] - forward;
		head += (run->ranks - 1) * (forward + hop_s);
		tail += (run->ranks - 1) * (hop_s + back);
		bound = mb_larger(bound, head + m * work + tail);
		head += forward + hop_s;
	}
	return bound;
}

double mb_visit_peak(const struct mb_visit *v, int optimizer)
{
	double peak = 0;

	for (int i = 0; i < v->tight_count; i++) {
		const struct mb_hold *h = v->hold[v->tight[i].run];
		double between = optimizer < 0 ? h->least_between : h->between[optimizer];
		double running = (optimizer < 0 ? h->least_running : h->running[optimizer]) + v->flight_bytes[i];

		peak = mb_larger(peak, mb_larger(between, running));
	}
	return peak;
}

/* ---- setting up ---- */

/* Until something is worth a closer look, only what is proportional to parameters counts. */
void mb_visit_floors(struct mb_visit *v)
{
	for (int i = 0; i < v->row->run_count; i++) {
		mb_node_hold_floor(v->w, &v->w->splits->holdings[v->row->holding[v->row->runs[i].first]], &v->floors[i]);
		v->hold[i] = &v->floors[i];
	}
}

void mb_visit_holds(struct mb_visit *v)
{
	for (int i = 0; i < v->row->run_count; i++)
		v->hold[i] = mb_node_hold(v->w, v->table, v->row, v->row->runs[i].first);
}

/* A rank with the chunks of the one before it has fewer in flight. */
void mb_visit_ranks(struct mb_visit *v)
{
	struct mb_loss_bytes loss = mb_loss_bytes_of(&v->walk->s->c, &v->w->d);
	int last = v->table->pp - 1, runs = v->row->run_count;

	v->tight_count = 0;
	for (int i = 0; i < runs; i++)
		v->tight[v->tight_count++] = (struct mb_tight){ (uint16_t)i, v->row->runs[i].first };
	if (v->row->runs[runs - 1].first != last)
		v->tight[v->tight_count++] = (struct mb_tight){ (uint16_t)(runs - 1), (uint16_t)last };
	v->loss_bytes = loss.forward;
	v->loss_both_bytes = mb_larger(loss.forward, loss.backward);
	for (int k = 0; k < MB_FLIGHT_KINDS; k++)
		v->flights[k].known = false;
}
