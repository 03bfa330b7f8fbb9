/* Under one node: splits by their bounds, then groups and features, recompute, offloading and the optimizer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/memory.h"
#include "search/walk.h"

/* A split of the node's layers, waiting for its turn. */
struct waiting {
	double step_s;
	const struct mb_split_table *table;
	int row;
};

/* Chunks of one choice: time and bytes of each different one. */
struct chunk_costs {
	double step_s[MB_MAX_CHUNKS], forward_s[MB_MAX_CHUNKS], saved_bytes[MB_MAX_CHUNKS];
};

enum treatment { TREAT_NONE, TREAT_ALL, TREAT_FIRST };

/* What a recompute or offloading choice does to some layers of a chunk. */
struct treated {
	enum treatment how;
	int layers;                     /* of the first ones, or of a group */
	const struct mb_kind_row *rows;
	const double *input_bytes;      /* full recompute keeps only these; NULL: the rows' saved bytes */
};

struct visit {
	struct mb_walk *walk;
	struct mb_worker *w;
	const struct mb_split_table *table;
	const struct mb_split_row *row;
	const struct mb_legal_class *class;
	int chunks, piece_count, layers;
	uint16_t pieces[MB_MAX_CHUNKS], at[MB_MAX_CHUNKS];      /* different ones, and which each chunk is */
	const struct mb_hold *hold[MB_MAX_STAGES];
	struct mb_hold *floors;         /* [stages] */
	int tight_count;
	uint16_t tight[MB_MAX_STAGES];  /* ranks that no earlier one exceeds in memory */
	double loss_bytes, flight_bytes[MB_MAX_STAGES]; /* flight: by tight rank, of the costs looked at */
	bool closely;                   /* ranks' states are known in full */
	uint8_t *alive, *alive_offloaded;               /* by recompute choice, anywhere under the node: enum mb_bound */
	uint8_t *worth, *worth_offloaded;               /* under the split */
	const struct mb_live *live[2];                  /* without and with EP overlap */
	struct mb_live least_live;      /* no feature keeps less in flight */
	uint64_t (*may_fit)[MB_OFF_WORDS];              /* by recompute choice: offloading choices that memory leaves */
	struct chunk_costs costs;
};

/* ---- a choice's chunks ---- */

static int first_of_kind(const struct mb_case *c, const struct mb_piece *p, int kind, int layers)
{
	int n = 0;

	for (int i = 0; i < layers && i < p->layers; i++)
		n += c->model.layers[p->first_layer + i] == kind;
	return n;
}

static int treated_layers(const struct mb_case *c, const struct mb_piece *p, int kind, const struct treated *t)
{
	if (t->how == TREAT_NONE || kind >= MB_MAX_LAYER_KINDS)
		return 0;
	return t->how == TREAT_ALL ? p->kinds[kind] : first_of_kind(c, p, kind, t->layers);
}

static double treated_saved(const struct treated *t, int slot, int layers)
{
	double group = t->how == TREAT_ALL && t->layers > 1 ? t->layers : 1;

	return t->input_bytes ? t->input_bytes[slot] * ceil(layers / group) : t->rows[slot].saved_bytes * layers;
}

static void fill_costs(struct visit *v, const struct mb_kind_row *plain, const struct treated *t, struct chunk_costs *ret)
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
static double step_bound(const struct visit *v, const struct chunk_costs *costs, double transfer_s, double hop_s, int optimizer)
{
	int pp = v->table->pp;
	double m = (double)v->w->micro_batches, bound = 0, head = 0, tail = 0, back = 0;

	for (int r = 0; r < pp; r++) {
		double work = transfer_s, finish = optimizer < 0 ? v->hold[r]->least_finish_s : v->hold[r]->finish_s[optimizer];

		for (int j = r; j < v->chunks; j += pp)
			work += costs->step_s[v->at[j]];
		tail = r == 0 ? finish : fmax(finish, hop_s + back + tail);
		bound = fmax(bound, head + m * work + tail);
		head += costs->forward_s[v->at[r]] + hop_s;
		back = costs->step_s[v->at[r]] - costs->forward_s[v->at[r]];
	}
	return bound;
}

/*
 * Most saved bytes in flight on a rank, and what the loss needs beside them; under EP overlap the loss waits for the
 * backward, when less may be in flight.
 */
static double in_flight(const struct visit *v, const struct chunk_costs *costs, const struct mb_live *live, int rank)
{
	int pp = v->table->pp, vp = v->table->vp, count = live->set_count[rank];
	const int32_t *set = live->sets + (size_t)rank * (MB_LIVE_SETS + 1) * (size_t)vp;
	double most = 0;

	for (int i = 0; i < count; i++, set += vp) {
		double sum = 0;

		for (int j = 0; j < vp; j++)
			sum += set[j] * costs->saved_bytes[v->at[j * pp + rank]];
		most = most > sum ? most : sum;
	}
	if (rank == pp - 1 && !live->overlap) {         /* the first forward of the last chunk follows a group of each chunk before it */
		double group = fmin(fmax(v->w->p.microbatch_group_size, pp), (double)v->w->micro_batches), sum = v->loss_bytes;

		for (int j = 0; j < vp; j++)
			sum += (j < vp - 1 ? group : 1) * costs->saved_bytes[v->at[j * pp + rank]];
		most = fmax(most, sum);
	}
	return most;
}

/* Where graphs are captured without an eager step before, the step itself may be smaller than its bound. */
static void fill_flight(struct visit *v, const struct chunk_costs *costs, const struct mb_live *live)
{
	bool captured_first = v->walk->s->c.run.cuda_graph_warmup_steps == 0;

	for (int i = 0; i < v->tight_count; i++)
		v->flight_bytes[i] = captured_first ? -INFINITY : in_flight(v, costs, live, v->tight[i]);
}

/* After fill_flight. */
static double peak_bound(const struct visit *v, int optimizer)
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

static void fill_pieces(struct visit *v)
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
}

static bool same_chunks(const struct visit *v, int a, int b)
{
	for (int j = 0; j < v->table->vp; j++)
		if (v->at[j * v->table->pp + a] != v->at[j * v->table->pp + b])
			return false;
	return true;
}

/* Until something is worth a closer look, only what is proportional to parameters counts. */
static void fill_floors(struct visit *v)
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

static void fill_holds(struct visit *v)
{
	for (int r = 0; r < v->table->pp; r++)
		v->hold[r] = mb_node_hold(v->w, v->table, v->row, r);
}

/* A rank with the chunks of the one before it has fewer in flight. */
static void fill_ranks(struct visit *v)
{
	v->tight_count = 0;
	for (int r = 0; r < v->table->pp; r++) {
		if (r == 0 || r == v->table->pp - 1 || !same_chunks(v, r, r - 1))
			v->tight[v->tight_count++] = (uint16_t)r;
	}
	v->loss_bytes = mb_loss_bytes_of(&v->walk->s->c, &v->w->d).forward;
}

static const struct mb_plan *recompute_plan(const struct visit *v, int choice)
{
	return &v->walk->s->axis[MB_P_RECOMPUTE].of[choice].plan;
}

/* ---- counting ---- */

static void count(struct visit *v, enum mb_bound why, double points)
{
	v->walk->tally.bounds[why == MB_BY_TIME ? MB_COUNT_TIME : MB_COUNT_MEMORY] += points;
}

static double growing_points(const struct visit *v, const double points[MB_GROWTHS])
{
	double sum = 0;

	for (int g = 0; g < MB_GROWTHS; g++)
		if (points[g] > 0)
			sum += points[g] * mb_legality_choices(&v->walk->legality, g, v->layers);
	return sum;
}

/* ---- one point ---- */

static void rank_plan(const struct mb_walk *w, const struct mb_evaluation *e, const struct mb_plan *p, struct mb_ranked *ret)
{
	*ret = (struct mb_ranked){ .plan = *p, .gpus = w->s->c.run.gpus, .verdict = e->verdict, .step_s = e->step_s, .low_s = e->low_s,
		.high_s = e->high_s, .tokens_per_s_per_gpu = e->tokens_per_s_per_gpu,
		.model_flop_per_s_per_gpu = e->model_flop_per_s_per_gpu, .mfu = e->mfu, .peak_bytes = e->peak_bytes,
		.device_used_bytes = e->device_used_bytes, .margin_bytes = e->margin_bytes };
}

/* Evaluates a complete plan; a rule that the tables did not foresee still excludes it. */
static enum mb_verdict evaluate(struct visit *v, const struct mb_plan *p)
{
	const struct mb_rule *rule = mb_first_broken(&v->walk->s->c, p, MB_ALL_KEYS);
	struct mb_ranked r;

	if (rule) {
		v->walk->tally.rules[rule - mb_rules]++;
		return MB_ILLEGAL;
	}
	mb_evaluate(&v->walk->s->c, p, v->w->e);
	v->walk->tally.evaluated++;
	rank_plan(v->walk, v->w->e, p, &r);
	mb_best_offer(v->walk->best, &r);
	return r.verdict;
}

enum { MAX_FITTING = 64 };

/* A group, features and a recompute choice under the split. */
struct choice {
	const struct mb_legal *legal;
	int group, rep, recompute;
	double transfer_s, hop_s, limit;
	const struct mb_live *live;
	/* By optimizer: offloading choices that fit, and those known to fit or not. */
	uint8_t fit_count[MB_MAX_OPTIMIZERS];
	uint16_t fit[MB_MAX_OPTIMIZERS][MAX_FITTING];
	uint64_t known[MB_MAX_OPTIMIZERS][MB_OFF_WORDS];
};

static const struct mb_plan *offload_plan(const struct visit *v, int offload)
{
	return &v->walk->s->axis[MB_P_OFFLOAD].of[offload].plan;
}

static bool offloads(const struct mb_plan *p)
{
	return p->cpu_offloading || p->fine_grained_activation_offloading;
}

/* Whether a moves less than b: nothing, a proper subset of its modules, or fewer layers. */
static bool moves_less(const struct mb_plan *a, const struct mb_plan *b)
{
	if (!offloads(a) || !offloads(b))
		return !offloads(a) && offloads(b);
	if (a->cpu_offloading || b->cpu_offloading)
		return a->cpu_offloading && b->cpu_offloading && a->cpu_offloading_num_layers < b->cpu_offloading_num_layers;
	return a->offload_modules != b->offload_modules && (a->offload_modules & ~b->offload_modules) == 0;
}

/* The complete plan. */
static void assemble(const struct visit *v, const struct choice *c, int offload, int optimizer, struct mb_plan *ret)
{
	const struct mb_space *s = v->walk->s;

	*ret = v->w->p;
	ret->vp = v->table->vp;
	if (s->derive_p2p)
		ret->overlap_p2p_comm = ret->vp > 1;
	mb_axis_copy(MB_P_SPLIT, &v->row->plan, ret);
	mb_set_group(s, &v->w->rows->groups->of[c->group], ret);
	mb_set_feature(s, &c->legal->f, ret);
	mb_axis_copy(MB_P_RECOMPUTE, recompute_plan(v, c->recompute), ret);
	mb_axis_copy(MB_P_OFFLOAD, offload_plan(v, offload), ret);
	mb_axis_copy(MB_P_OPTIMIZER, &s->axis[MB_P_OPTIMIZER].of[optimizer].plan, ret);
}

static void note_verdict(const struct visit *v, struct choice *c, int offload, int o, enum mb_verdict verdict, double peak)
{
	if (v->walk->best->aim != MB_AIM_STEP)
		c->known[o][offload / 64] |= UINT64_C(1) << (offload % 64);
	if (verdict == MB_FITS && peak <= v->walk->best->max_peak_bytes && c->fit_count[o] < MAX_FITTING)
		c->fit[o][c->fit_count[o]++] = (uint16_t)offload;
}

/* Without a pass over all sets, those that were not looked at for their peak may still fit. */
static void learn_smaller(struct visit *v, struct choice *c, int offload, int o, const struct mb_plan *p)
{
	const uint64_t *legal = c->legal->offload[v->walk->legality.rep_off[c->rep]];

	for (int i = 0; i < offload; i++) {
		struct mb_plan smaller = *p;

		if (!(legal[i / 64] >> (i % 64) & 1) || (c->known[o][i / 64] >> (i % 64) & 1) || !moves_less(offload_plan(v, i), offload_plan(v, offload)))
			continue;
		mb_axis_copy(MB_P_OFFLOAD, offload_plan(v, i), &smaller);
		mb_evaluate(&v->walk->s->c, &smaller, v->w->e);
		note_verdict(v, c, i, o, v->w->e->verdict, v->w->e->peak_bytes);
	}
}

/* Offloading is a candidate only where moving less does not fit. */
static bool is_needless(const struct visit *v, const struct choice *c, int offload, int o)
{
	for (int i = 0; i < c->fit_count[o]; i++)
		if (moves_less(offload_plan(v, c->fit[o][i]), offload_plan(v, offload)))
			return true;
	return false;
}

/* The plan evaluated last must not be below its bounds. */
static void audit(struct visit *v, double step_s, double peak)
{
	const struct mb_evaluation *e = v->w->e;

	if (e->verdict != MB_ILLEGAL && (step_s * (1 - 1e-9) - 1e-7 > e->step_s || peak * (1 - 1e-9) > e->peak_bytes))
		v->walk->tally.unsound++;
}

/* Bounds that hold for every optimizer choice. */
static bool all_excluded(struct visit *v, struct choice *c, const struct chunk_costs *costs, int offload)
{
	const struct mb_best *best = v->walk->best;
	double peak = peak_bound(v, -1), step_s = step_bound(v, costs, c->transfer_s, c->hop_s, -1);
	enum mb_bound bound = best->aim != MB_AIM_CLOSEST && peak * (1 - 1e-9) > c->limit ? MB_BY_MEMORY : mb_best_bound(best, step_s, peak);

	if (bound == MB_WORTH)
		return false;
	for (int o = 0; o < MB_MAX_OPTIMIZERS; o++) {
		if (!(c->legal->optimizer >> o & 1))
			continue;
		if (offloads(offload_plan(v, offload)) && is_needless(v, c, offload, o))
			v->walk->tally.bounds[MB_COUNT_NEEDLESS]++;
		else
			count(v, bound, 1);
	}
	v->walk->tally.costed++;
	return true;
}

/* Every optimizer choice beside chunks of known cost. */
static void try_optimizers(struct visit *v, struct choice *c, const struct chunk_costs *costs, int offload)
{
	const struct mb_best *best = v->walk->best;
	bool selective = offloads(offload_plan(v, offload));

	fill_flight(v, costs, c->live);
	if (all_excluded(v, c, costs, offload))
		return;
	for (int o = 0; o < MB_MAX_OPTIMIZERS; o++) {
		enum mb_verdict verdict;
		enum mb_bound bound;
		struct mb_plan p;
		double peak;

		if (!(c->legal->optimizer >> o & 1) || (v->walk->dive && v->w->alike[o] != o))
			continue;
		if (selective && is_needless(v, c, offload, o)) {
			v->walk->tally.bounds[MB_COUNT_NEEDLESS]++;
			continue;
		}
		v->walk->tally.costed++;
		peak = peak_bound(v, o);
		bound = best->aim != MB_AIM_CLOSEST && peak * (1 - 1e-9) > c->limit ? MB_BY_MEMORY : mb_best_bound(best, 0, peak);
		if (bound == MB_WORTH)
			bound = mb_best_bound(best, step_bound(v, costs, c->transfer_s, c->hop_s, o), peak);
		if (bound != MB_WORTH) {
			count(v, bound, 1);
			continue;
		}
		assemble(v, c, offload, o, &p);
		if (selective && best->aim != MB_AIM_STEP) {
			learn_smaller(v, c, offload, o, &p);
			if (is_needless(v, c, offload, o)) {
				v->walk->tally.bounds[MB_COUNT_NEEDLESS]++;
				continue;
			}
		}
		verdict = evaluate(v, &p);
		note_verdict(v, c, offload, o, verdict, v->w->e->peak_bytes);
		audit(v, step_bound(v, costs, c->transfer_s, c->hop_s, o), peak);
	}
}

/* One offloading choice that moves something. */
static void try_offload(struct visit *v, struct choice *c, const struct mb_kind_row *plain, int offload)
{
	const struct mb_plan *o = offload_plan(v, offload);
	unsigned modules = recompute_plan(v, c->recompute)->recompute_modules;
	struct mb_kind_row rows[MB_KIND_COUNT];
	struct treated t = { TREAT_NONE, 0, NULL, NULL };

	if (o->cpu_offloading) {
		mb_rows_offloaded(&v->w->cache, v->w->rows, c->group, c->legal->f, 0, 0, true, rows);
		t = (struct treated){ TREAT_FIRST, o->cpu_offloading_num_layers, rows, NULL };
		fill_costs(v, plain, &t, &v->costs);
	} else {
		mb_rows_offloaded(&v->w->cache, v->w->rows, c->group, c->legal->f, modules, o->offload_modules, false, rows);
		fill_costs(v, rows, &t, &v->costs);
	}
	try_optimizers(v, c, &v->costs, offload);
}

static bool all_needless(const struct visit *v, const struct choice *c, int offload)
{
	for (int o = 0; o < MB_MAX_OPTIMIZERS; o++)
		if ((c->legal->optimizer >> o & 1) && !is_needless(v, c, offload, o))
			return false;
	return true;
}

/* All offloading choices of one recompute choice that treats no whole layers. */
static void try_selective(struct visit *v, struct choice *c, int choice)
{
	const struct mb_kind_row *plain = mb_rows_plain(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep);
	const struct mb_choices *a = &v->walk->s->axis[MB_P_OFFLOAD];
	const uint64_t *legal = c->legal->offload[v->walk->legality.rep_off[c->rep]];
	int optimizers = __builtin_popcount(c->legal->optimizer), first = 0;
	struct treated none = { TREAT_NONE, 0, NULL, NULL };
	enum mb_bound bound;

	fill_costs(v, plain, &none, &v->costs);
	bound = mb_best_bound(v->walk->best, step_bound(v, &v->costs, c->transfer_s, c->hop_s, -1), 0);
	if (bound != MB_WORTH) {
		count(v, bound, (double)c->legal->offload_count[v->walk->legality.rep_off[c->rep]] * optimizers);
		return;
	}
	if (legal[0] & 1 && !offloads(&a->of[0].plan)) {
		if (v->worth[choice] == MB_WORTH)
			try_optimizers(v, c, &v->costs, 0);
		else
			count(v, v->worth[choice], optimizers);
		first = 1;
	}
	for (int word = 0; word * 64 < a->count; word++) {
		uint64_t all = legal[word] & (word == 0 ? ~(uint64_t)first : ~UINT64_C(0));
		uint64_t left = v->worth_offloaded[choice] == MB_WORTH ? all & v->may_fit[choice][word] : 0;
		enum mb_bound why = v->worth_offloaded[choice] == MB_WORTH ? MB_BY_MEMORY : v->worth_offloaded[choice];

		if (all != left)
			count(v, why, (double)__builtin_popcountll(all & ~left) * optimizers);
		for (; left; left &= left - 1) {
			int i = word * 64 + __builtin_ctzll(left);

			if (all_needless(v, c, i))
				v->walk->tally.bounds[MB_COUNT_NEEDLESS] += optimizers;
			else
				try_offload(v, c, plain, i);
		}
	}
}

/* Full recompute of groups of n layers, or of the first n. */
static void try_full(struct visit *v, struct choice *c)
{
	const struct mb_plan *p = recompute_plan(v, c->recompute);
	const struct mb_slots *slots = &v->w->cache.slots;
	const struct mb_kind_row *plain = mb_rows_plain(&v->w->cache, v->w->rows, c->group, c->legal->f, c->rep);
	const uint64_t *legal = c->legal->offload[v->walk->legality.rep_off[c->rep]];
	bool uniform = p->recompute_method != MB_METHOD_BLOCK;
	double input[MB_KIND_COUNT];
	struct treated t = { uniform ? TREAT_ALL : TREAT_FIRST, p->recompute_num_layers, NULL, input };

	t.rows = mb_rows_full(&v->w->cache, v->w->rows, c->group, c->legal->f);
	for (int k = 0; k < slots->count; k++)
		input[k] = mb_rows_input_bytes(&v->w->cache, v->w->rows, c->group, c->legal->f, k);
	fill_costs(v, plain, &t, &v->costs);
	for (int i = 0; i < v->walk->s->axis[MB_P_OFFLOAD].count; i++)
		if (legal[i / 64] >> (i % 64) & 1)
			try_optimizers(v, c, &v->costs, i);
}

static bool is_tried(const struct visit *v, int choice)
{
	const struct mb_choice *r = &v->walk->s->axis[MB_P_RECOMPUTE].of[choice];

	return r->growth == MB_GROWS_NOT || r->layers <= v->layers;
}

static void try_recompute(struct visit *v, struct choice *c, int choice)
{
	const struct mb_legality *l = &v->walk->legality;
	const struct mb_plan *p = recompute_plan(v, choice);

	c->recompute = choice;
	c->rep = l->rep_of[choice];
	if (v->worth[choice] != MB_WORTH && v->worth_offloaded[choice] != MB_WORTH) {
		count(v, v->worth[choice], (double)c->legal->offload_count[l->rep_off[c->rep]] * __builtin_popcount(c->legal->optimizer));
		return;
	}
	memset(c->fit_count, 0, sizeof c->fit_count);
	if (v->walk->best->aim != MB_AIM_STEP)
		memset(c->known, 0, sizeof c->known);
	if (p->recompute == MB_RECOMPUTE_FULL)
		try_full(v, c);
	else
		try_selective(v, c, choice);
}

/* ---- bounds of recompute choices under any group and features ---- */

/* Costs with least rows: chunks of the choice; bare: with everything offloaded that can be. */
static void fill_least(struct visit *v, int choice, bool bare)
{
	const struct mb_plan *p = recompute_plan(v, choice);
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, v->walk->legality.rep_of[choice]);
	bool full = p->recompute == MB_RECOMPUTE_FULL, uniform = full && p->recompute_method != MB_METHOD_BLOCK;
	struct treated t = { full ? uniform ? TREAT_ALL : TREAT_FIRST : TREAT_NONE, p->recompute_num_layers, NULL, NULL };
	struct mb_kind_row rows[MB_KIND_COUNT];
	double input[MB_KIND_COUNT];

	for (int i = 0; i < v->w->cache.slots.count; i++) {
		rows[i] = least[i];
		if (bare)
			rows[i].saved_bytes = least[i].offloaded_bytes;
		if (full) {
			t.rows = mb_rows_least_full(&v->w->cache, v->w->rows);
			input[i] = t.rows[i].saved_bytes;
			t.input_bytes = input;
		}
	}
	fill_costs(v, rows, &t, &v->costs);
}

/* Least step when what is too much on a rank is moved to the host. */
static double moving_bound(const struct visit *v, double step_s, const struct mb_live *live, int optimizer)
{
	double m = (double)v->w->micro_batches;

	for (int i = 0; i < v->tight_count; i++) {
		double excess = v->hold[v->tight[i]]->running[optimizer] + v->flight_bytes[i] - v->w->limit_bytes;
		double times = fmin(m, live->most[v->tight[i]] + 1);    /* one more under EP overlap */

		step_s = fmax(step_s, m * excess / times * mb_node_copy_s(v->w));
	}
	return step_s;
}

static enum mb_bound judge(struct visit *v, double step_s, double peak, double limit)
{
	if (v->walk->best->aim != MB_AIM_CLOSEST && peak * (1 - 1e-9) > limit)
		return MB_BY_MEMORY;
	return mb_best_bound(v->walk->best, step_s, peak);
}

/* Time and memory together: an optimizer choice must satisfy both. After fill_flight. */
static enum mb_bound judge_jointly(struct visit *v, const struct mb_live *live, bool moving)
{
	enum mb_bound bound = MB_BY_MEMORY;

	for (uint32_t left = v->closely ? v->w->optimizers : v->w->distinct; left; left &= left - 1) {
		int o = __builtin_ctz(left);
		double step_s = step_bound(v, &v->costs, 0, 0, o), peak = peak_bound(v, o);

		if (moving) {
			step_s = moving_bound(v, step_s, live, o);
			peak = 0;
		}
		bound = judge(v, step_s, peak, v->w->limit_bytes);
		if (bound == MB_WORTH)
			return bound;
	}
	return bound;
}

/* Whole layers may be offloaded: a rank may keep nothing. */
static bool may_keep_nothing(const struct visit *v, int choice)
{
	const struct mb_choices *a = &v->walk->s->axis[MB_P_OFFLOAD];

	return v->table->pp == 1 && recompute_plan(v, choice)->recompute == MB_RECOMPUTE_NONE && a->of[a->count - 1].plan.cpu_offloading;
}

/* Which offloading choices leave little enough and copy fast enough, whatever the group and features. */
static bool judge_offloading(struct visit *v, int choice, const struct mb_live *live)
{
	bool any = false;
	const struct mb_slots *slots = &v->w->cache.slots;
	int rep = v->walk->legality.rep_of[choice];
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, rep);
	const struct mb_moved *moved = mb_rows_least_moved(&v->w->cache, v->w->rows, rep);
	double copy_s = mb_node_copy_s(v->w);

	for (int i = 0; i < v->walk->s->axis[MB_P_OFFLOAD].count; i++, moved += slots->count) {
		for (int j = 0; j < v->piece_count; j++) {
			const struct mb_piece *p = &v->w->splits->pieces[v->pieces[j]];
			double saved = 0, step_s = 0;

			for (int k = 0; k < slots->count; k++) {
				double busy_s = moved[k].moved * copy_s, layers = p->kinds[slots->kind[k]];

				saved += layers * moved[k].kept;
				step_s += layers * (busy_s > least[k].gpu_s ? busy_s : least[k].gpu_s);
			}
			v->costs.saved_bytes[j] = saved;
			v->costs.step_s[j] = step_s;
		}
		fill_flight(v, &v->costs, live);
		if (judge_jointly(v, live, false) == MB_WORTH) {
			v->may_fit[choice][i / 64] |= UINT64_C(1) << (i % 64);
			any |= offloads(&v->walk->s->axis[MB_P_OFFLOAD].of[i].plan);
		}
	}
	return any;
}

/* Rows of a recompute choice that no plan of the node goes below; saved: what a layer keeps at least. */
static void least_rows(struct visit *v, int choice, struct mb_kind_row *ret)
{
	const struct mb_plan *p = recompute_plan(v, choice);
	const struct mb_kind_row *least = mb_rows_least(&v->w->cache, v->w->rows, v->walk->legality.rep_of[choice]), *full = NULL;
	bool uniform = p->recompute_method != MB_METHOD_BLOCK;

	if (p->recompute == MB_RECOMPUTE_FULL)
		full = mb_rows_least_full(&v->w->cache, v->w->rows);
	for (int i = 0; i < v->w->cache.slots.count; i++) {
		ret[i] = least[i];
		if (!full || v->w->cache.slots.kind[i] >= MB_MAX_LAYER_KINDS)
			continue;
		if (uniform)
			ret[i] = full[i];
		ret[i].saved_bytes = uniform ? full[i].saved_bytes / p->recompute_num_layers : fmin(least[i].saved_bytes, full[i].saved_bytes);
	}
}

/* A recompute choice against time and memory of the node as a whole. */
static void judge_under_node(struct visit *v, const struct mb_sizes *n, int choice)
{
	const struct mb_slots *slots = &v->w->cache.slots;
	struct mb_kind_row rows[MB_KIND_COUNT];
	double layer_s[MB_KIND_COUNT], kept[MB_KIND_COUNT], shortest = INFINITY, step_s, flight;
	const struct mb_best *best = v->walk->best;
	bool offloading = v->walk->s->axis[MB_P_OFFLOAD].count > 1 && recompute_plan(v, choice)->recompute != MB_RECOMPUTE_FULL
	                  && !v->walk->dive;

	least_rows(v, choice, rows);
	for (int i = 0; i < slots->count; i++) {
		layer_s[i] = rows[i].gpu_s;
		kept[i] = rows[i].saved_bytes;
		if (slots->kind[i] < MB_MAX_LAYER_KINDS)
			shortest = fmin(shortest, rows[i].gpu_s);
	}
	step_s = mb_node_step_floor(v->w, n, layer_s);
	v->alive[choice] = v->alive_offloaded[choice] = (uint8_t)mb_best_bound(best, step_s, 0);
	if (v->alive[choice] != MB_WORTH)
		return;
	flight = mb_node_flight_floor(v->w, kept, shortest);
	v->alive[choice] = v->alive_offloaded[choice] = MB_BY_MEMORY;
	for (uint32_t left = v->w->distinct; left && v->alive[choice] != MB_WORTH; left &= left - 1) {
		int o = __builtin_ctz(left);
		double bytes = v->w->mean_bytes[o] + flight, fsdp_s = (double)v->w->micro_batches * v->w->mean_fsdp_s[o], excess;

		v->alive[choice] = (uint8_t)judge(v, step_s + fsdp_s, bytes, v->w->limit_bytes);
		if (v->alive[choice] == MB_WORTH)
			v->alive_offloaded[choice] = MB_WORTH;
		if (v->alive_offloaded[choice] == MB_WORTH || !offloading || isinf(bytes))
			continue;
		/* What does not fit is moved: as many bytes over the host link as are too many, over the micro-batches in flight. */
		excess = fmax(bytes - v->w->limit_bytes, 0)
		         / fmin((double)v->w->micro_batches, n->pp + 1 + fmax(n->pp, v->w->p.microbatch_group_size));
		v->alive_offloaded[choice] = (uint8_t)judge(v, fmax(step_s + fsdp_s, (double)v->w->micro_batches * excess * mb_node_copy_s(v->w)),
		                                            v->w->mean_bytes[o], v->w->limit_bytes);
	}
}

static bool judge_node(struct visit *v, const struct mb_sizes *n)
{
	const struct mb_choices *a = &v->walk->s->axis[MB_P_RECOMPUTE];
	int most = mb_space_recompute_layers(v->walk->s, n->pp, 1);
	bool any = false;

	for (int i = 0; i < a->count; i++) {
		v->alive[i] = v->alive_offloaded[i] = MB_BY_TIME;
		if (a->of[i].growth != MB_GROWS_NOT && a->of[i].layers > most)
			continue;
		judge_under_node(v, n, i);
		any |= v->alive[i] == MB_WORTH || v->alive_offloaded[i] == MB_WORTH;
	}
	return any;
}

static void judge_choice(struct visit *v, int i, const struct mb_live *live)
{
	bool offloading = v->walk->s->axis[MB_P_OFFLOAD].count > 1 && recompute_plan(v, i)->recompute != MB_RECOMPUTE_FULL && !v->walk->dive;

	if (!v->closely) {
		v->worth[i] = v->alive[i];
		v->worth_offloaded[i] = v->alive_offloaded[i];
	}
	if (v->worth[i] != MB_WORTH && v->worth_offloaded[i] != MB_WORTH)
		return;
	fill_least(v, i, false);
	v->worth[i] = v->worth_offloaded[i] = (uint8_t)mb_best_bound(v->walk->best, step_bound(v, &v->costs, 0, 0, -1), 0);
	if (v->worth[i] != MB_WORTH)
		return;
	fill_flight(v, &v->costs, live);
	v->worth[i] = v->worth_offloaded[i] = (uint8_t)judge_jointly(v, live, false);
	memset(v->may_fit[i], v->worth[i] == MB_WORTH && !v->walk->dive ? 0xff : 0, sizeof v->may_fit[i]);
	if (v->worth[i] == MB_WORTH || !offloading || v->alive_offloaded[i] != MB_WORTH)
		return;
	v->worth_offloaded[i] = (uint8_t)judge_jointly(v, live, true);
	if (v->worth_offloaded[i] != MB_WORTH)
		return;
	fill_least(v, i, true);
	for (int k = 0; k < v->piece_count && may_keep_nothing(v, i); k++)
		v->costs.saved_bytes[k] = 0;
	fill_flight(v, &v->costs, live);
	v->worth_offloaded[i] = (uint8_t)judge_jointly(v, live, false);
	if (v->closely && v->worth_offloaded[i] == MB_WORTH && !judge_offloading(v, i, live))
		v->worth_offloaded[i] = MB_BY_MEMORY;
}

static bool judge_choices(struct visit *v)
{
	const struct mb_live *live = &v->least_live;
	bool any = false;

	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++) {
		if (!is_tried(v, i))
			continue;
		judge_choice(v, i, live);
		any |= v->worth[i] == MB_WORTH || v->worth_offloaded[i] == MB_WORTH;
	}
	return any;
}

static bool overlaps_experts(const struct visit *v, const struct mb_feature *f)
{
	return v->walk->s->axis[MB_P_EP_OVERLAP].of[f->overlap].plan.overlap_moe_expert_parallel_comm;
}

static void try_features(struct visit *v, const struct mb_legal *y, struct choice *c)
{
	const struct mb_legality *l = &v->walk->legality;
	const struct mb_kind_row *plain;
	struct treated none = { TREAT_NONE, 0, NULL, NULL };
	enum mb_bound bound = MB_WORTH;

	c->legal = y;
	c->limit = mb_node_peak_limit(v->w, y->f.dispatcher);
	c->live = v->live[overlaps_experts(v, &y->f)];
	if (recompute_plan(v, l->rep[0])->recompute == MB_RECOMPUTE_NONE) {     /* whatever is recomputed takes longer */
		plain = mb_rows_plain(&v->w->cache, v->w->rows, c->group, y->f, 0);
		fill_costs(v, plain, &none, &v->costs);
		bound = mb_best_bound(v->walk->best, step_bound(v, &v->costs, c->transfer_s, c->hop_s, -1), 0);
	}
	if (bound != MB_WORTH) {
		count(v, bound, growing_points(v, y->points));
		return;
	}
	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++)
		if (is_tried(v, i) && (y->recompute[l->rep_of[i] / 64] >> (l->rep_of[i] % 64) & 1))
			try_recompute(v, c, i);
}

/* Transfers know sequence parallelism and whether they are overlapped, no features. */
static void start_group(const struct visit *v, int group, struct choice *c)
{
	const struct mb_space *s = v->walk->s;
	struct mb_plan p = v->w->p;
	struct mb_dims d;

	p.vp = v->table->vp;
	if (s->derive_p2p)
		p.overlap_p2p_comm = p.vp > 1;
	mb_set_group(s, &v->w->rows->groups->of[group], &p);
	mb_dims_fill(&s->c, &p, &d);
	c->group = group;
	c->transfer_s = mb_transfer_seconds(&s->c, &p, &d, &c->hop_s);
}

static void visit_split(struct visit *v)
{
	const struct mb_groups *groups = v->w->rows->groups;

	fill_pieces(v);
	fill_ranks(v);
	fill_floors(v);
	v->live[1] = mb_live_of(v->w, v->table, true);
	v->live[0] = mb_live_of(v->w, v->table, false);
	v->least_live = *v->live[0];
	for (int i = 0; i < v->class->count; i++)
		v->least_live.overlap |= overlaps_experts(v, &v->class->of[i].f);
	v->closely = false;
	if (judge_choices(v)) {
		fill_holds(v);
		v->closely = true;
	}
	if (!v->closely || !judge_choices(v)) {
		count(v, v->worth[0], mb_class_points(&v->walk->legality, v->class, groups, v->layers));
		return;
	}
	for (int g = 0; g < groups->count; g++) {
		struct choice c;

		start_group(v, g, &c);
		for (int i = 0; i < v->class->count; i++)
			try_features(v, &v->class->of[i], &c);
	}
}

/* ---- a node ---- */

static int by_bound(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->step_s < y->step_s || x->step_s > y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->row - y->row;
}

static void visit_waiting(struct visit *v, const struct waiting *waiting, int n)
{
	for (int i = 0; i < n; i++) {
		struct mb_plan p = v->w->p;
		enum mb_bound bound = mb_best_bound(v->walk->best, waiting[i].step_s, 0);

		v->table = waiting[i].table;
		v->row = &v->table->rows[waiting[i].row];
		v->layers = mb_space_recompute_layers(v->walk->s, v->table->pp, v->table->vp);
		p.vp = v->table->vp;
		v->class = mb_legality_class(&v->walk->legality, &p);
		if (bound != MB_WORTH)
			count(v, bound, mb_class_points(&v->walk->legality, v->class, v->w->rows->groups, v->layers));
		else
			visit_split(v);
	}
}

/* Device time of a layer that no choice worth a look under the node goes below. */
static void fill_least_alive(struct visit *v, struct mb_kind_row *ret)
{
	const struct mb_slots *slots = &v->w->cache.slots;

	for (int k = 0; k < slots->count; k++)
		ret[k] = (struct mb_kind_row){ .gpu_s = INFINITY, .forward_s = INFINITY };
	for (int i = 0; i < v->walk->s->axis[MB_P_RECOMPUTE].count; i++) {
		struct mb_kind_row rows[MB_KIND_COUNT];

		if (v->alive[i] != MB_WORTH && v->alive_offloaded[i] != MB_WORTH)
			continue;
		least_rows(v, i, rows);
		for (int k = 0; k < slots->count; k++) {
			ret[k].gpu_s = fmin(ret[k].gpu_s, rows[k].gpu_s);
			ret[k].forward_s = fmin(ret[k].forward_s, rows[k].forward_s);
		}
	}
}

static struct visit *new_visit(struct mb_walk *w, struct mb_worker *k)
{
	struct visit *v = mb_arena_alloc(&k->rows->arena, sizeof *v);
	size_t choices = (size_t)w->s->axis[MB_P_RECOMPUTE].count;

	v->walk = w;
	v->w = k;
	v->floors = mb_arena_alloc(&k->rows->arena, (size_t)k->p.pp * sizeof *v->floors);
	v->alive = mb_arena_alloc(&k->rows->arena, 4 * choices);
	v->alive_offloaded = v->alive + choices;
	v->worth = v->alive + 2 * choices;
	v->worth_offloaded = v->alive + 3 * choices;
	v->may_fit = mb_arena_alloc(&k->rows->arena, choices * sizeof *v->may_fit);
	return v;
}

/* Splits under the node with the bounds of their steps. */
static struct waiting *collect(struct visit *v, int *ret_count)
{
	static const struct mb_hold nothing = { .least_finish_s = 0 };
	struct mb_walk *w = v->walk;
	int vps[MB_MAX_SIZES], vp_count = mb_space_sizes(w->s, MB_P_VP, &v->w->p, vps), room = 0;
	struct treated none = { TREAT_NONE, 0, NULL, NULL };
	struct mb_kind_row least[MB_KIND_COUNT];
	struct waiting *waiting;

	*ret_count = 0;
	fill_least_alive(v, least);
	for (int r = 0; r < v->w->p.pp; r++)
		v->hold[r] = &nothing;
	for (int i = 0; i < vp_count; i++) {
		const struct mb_split_table *t = mb_splits_of(&w->splits, v->w->p.pp, vps[i]);

		room += t ? t->count : 0;
	}
	waiting = malloc((size_t)(room + 1) * sizeof *waiting);
	for (int i = 0; i < vp_count && waiting; i++) {
		const struct mb_split_table *t = mb_splits_of(&w->splits, v->w->p.pp, vps[i]);
		struct mb_plan p = v->w->p;

		p.vp = vps[i];
		if (w->s->derive_p2p)
			p.overlap_p2p_comm = p.vp > 1;
		if (!t || !t->legal || mb_legality_broken(&w->legality, &p, MB_P_VP) >= 0)
			continue;
		for (int row = 0; row < t->count && (row < 2 || !w->dive); row++) {
			v->table = t;
			v->row = &t->rows[row];
			fill_pieces(v);
			fill_costs(v, least, &none, &v->costs);
			waiting[(*ret_count)++] = (struct waiting){ step_bound(v, &v->costs, 0, 0, -1), t, row };
		}
	}
	if (waiting)
		qsort(waiting, (size_t)*ret_count, sizeof *waiting, by_bound);
	return waiting;
}

bool mb_visit_node(struct mb_walk *w, struct mb_worker *k, const struct mb_sizes *n)
{
	struct visit *v = new_visit(w, k);
	struct waiting *waiting;
	int count_waiting;

	if (!judge_node(v, n))
		return false;
	waiting = collect(v, &count_waiting);
	visit_waiting(v, waiting, count_waiting);
	free(waiting);
	return true;
}
