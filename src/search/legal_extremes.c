/* Features among which those that take the least time are. */
#include "search/legal.h"

static bool same_time(const struct mb_legality *l, const struct mb_feature *a, const struct mb_feature *b)
{
	return l->timed_dispatcher[a->dispatcher] == l->timed_dispatcher[b->dispatcher] && a->overlap == b->overlap && a->shared == b->shared && a->graph == b->graph;
}

/* Delayed weight gradients cost what the overlap without them costs. */
static bool is_twin(const struct mb_legality *l, const struct mb_feature *f)
{
	const struct mb_choice *of = l->s->axis[MB_P_EP_OVERLAP].of;

	return f->overlap > 1 && of[f->overlap].plan.delay_wgrad_compute && of[1].plan.overlap_moe_expert_parallel_comm;
}

static struct mb_feature *new_extremes(struct mb_legality *l, const struct mb_legal_class *const c[2], int *ret_count)
{
	struct mb_feature *of = mb_arena_alloc(l->s->arena, (size_t)(c[0]->count + c[1]->count + 1) * sizeof *of);
	int n = 0;

	for (int i = 0; i < c[0]->count + c[1]->count; i++) {
		const struct mb_legal *y = i < c[0]->count ? &c[0]->of[i] : &c[1]->of[i - c[0]->count];
		bool known = !y->extreme || is_twin(l, &y->f);

		for (int j = 0; j < n && !known; j++)
			known = same_time(l, &of[j], &y->f);
		if (!known)
			of[n++] = y->f;
	}
	*ret_count = n;
	return of;
}

const struct mb_feature *mb_legality_extremes(struct mb_legality *l, const struct mb_plan *p, int *ret_count)
{
	unsigned facts = mb_space_facts(l->s, p) & ~(unsigned)MB_FACT_VP;
	const struct mb_legal_class *c[2];
	struct mb_plan one = *p;
	struct mb_feature *of = __atomic_load_n(&l->extremes[facts], __ATOMIC_ACQUIRE);

	if (!of) {
		one.vp = 1;
		c[0] = mb_legality_class(l, &one);
		one.vp = p->pp > 1 ? 2 : 1;
		c[1] = mb_legality_class(l, &one);
		mb_lock_take(l->lock);
		of = l->extremes[facts];
		if (!of) {
			of = new_extremes(l, c, &l->extreme_count[facts]);
			__atomic_store_n(&l->extremes[facts], of, __ATOMIC_RELEASE);
		}
		mb_lock_leave(l->lock);
	}
	*ret_count = l->extreme_count[facts];
	return of;
}
