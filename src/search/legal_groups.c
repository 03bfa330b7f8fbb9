/* The inner axes of a tensor- and context-parallel group. */
#include "search/legal.h"

/* TP overlap without sequence parallelism is switched off by Bridge: another spelling of none. */
static bool group_candidate(const struct mb_legality *l, const struct mb_group *g, const struct mb_plan *p, unsigned facts)
{
	const struct mb_choices *sp = &l->s->axis[MB_P_SP], *cp = &l->s->axis[MB_P_CP_COMM], *tpo = &l->s->axis[MB_P_TP_OVERLAP];

	if (!mb_choices_has(sp, g->sp, facts) || !mb_choices_has(cp, g->cp_comm, facts) || !mb_choices_has(tpo, g->tp_overlap, facts))
		return false;
	if (cp->count > 1 && !mb_choice_divides(l->s, &cp->of[g->cp_comm], p->cp))
		return false;
	return tpo->count == 1 || !tpo->of[g->tp_overlap].plan.tp_comm_overlap || sp->of[g->sp].plan.sequence_parallel;
}

/* First rule that the group breaks; -1: none. */
static int group_broken(const struct mb_legality *l, const struct mb_group *g, struct mb_plan p)
{
	const struct { enum mb_plan_key axis; int choice; } set[] = { { MB_P_SP, g->sp }, { MB_P_CP_COMM, g->cp_comm }, { MB_P_TP_OVERLAP, g->tp_overlap } };

	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
		int rule;

		mb_axis_copy(set[i].axis, &l->s->axis[set[i].axis].of[set[i].choice].plan, &p);
		rule = mb_legality_broken(l, &p, set[i].axis);
		if (rule >= 0)
			return rule;
	}
	return -1;
}

static struct mb_groups *new_groups(struct mb_legality *l, const struct mb_plan *p)
{
	int sps = l->s->axis[MB_P_SP].count, cps = l->s->axis[MB_P_CP_COMM].count, tpos = l->s->axis[MB_P_TP_OVERLAP].count;
	unsigned facts = mb_space_facts(l->s, p);
	struct mb_groups *g = mb_arena_alloc(l->s->arena, sizeof *g);

	*g = (struct mb_groups){ .tp = p->tp, .cp = p->cp };
	g->of = mb_arena_alloc(l->s->arena, (size_t)(sps * cps * tpos) * sizeof *g->of);
	for (int i = 0; i < sps * cps * tpos; i++) {
		struct mb_group one = { (uint8_t)(i / tpos / cps), (uint8_t)(i / tpos % cps), (uint8_t)(i % tpos) };
		int rule;

		if (!group_candidate(l, &one, p, facts))
			continue;
		g->candidates++;
		rule = group_broken(l, &one, *p);
		if (rule >= 0)
			g->broken[rule]++;
		else
			g->of[g->count++] = one;
	}
	return g;
}

static const struct mb_groups *find_groups(const struct mb_legality *l, const struct mb_plan *p, int count)
{
	for (int i = 0; i < count; i++)
		if (l->groups[i]->tp == p->tp && l->groups[i]->cp == p->cp)
			return l->groups[i];
	return NULL;
}

const struct mb_groups *mb_legality_groups(struct mb_legality *l, const struct mb_plan *p)
{
	const struct mb_groups *known = find_groups(l, p, __atomic_load_n(&l->group_count, __ATOMIC_ACQUIRE));

	if (known)
		return known;
	mb_lock_take(l->lock);
	known = find_groups(l, p, l->group_count);
	if (!known) {
		known = l->groups[l->group_count] = new_groups(l, p);
		__atomic_store_n(&l->group_count, l->group_count + 1, __ATOMIC_RELEASE);
	}
	mb_lock_leave(l->lock);
	return known;
}
