/*
 * Rules and cost model agree: a legal run has a complete answer, and what cannot be sized is illegal. The suite tries
 * some ten thousand runs; MBSIM_RANDOM_RUNS and MBSIM_RANDOM_SEED ask for more, or others.
 */
#include <criterion/criterion.h>

#include "plan/rules_private.h"
#include "random_runs.h"
#include "sound.h"

/* "No single key mends this" must be true of the keys that the rule names. */
static void expect_no_fix(const struct mb_query *q, const struct mb_rule *rule)
{
	static struct mb_change list[MB_MAX_VALUES];
	static struct mb_query other;
	enum mb_key_id keys[16];
	struct mb_broken before, after;
	int count = mb_rule_keys(rule->keys, keys, 16);

	mb_find_broken(&q->c, &q->c.run.plan, &before);
	for (int k = 0; k < count; k++) {
		int values = mb_change_values(&q->c.run, keys[k], 0, list);

		for (int i = 0; i < values; i++) {
			bool worse = false;

			other = *q;
			mb_apply_change(&other.c, q, list[i].key, list[i].value);
			mb_find_broken(&other.c, &other.c.run.plan, &after);
			for (int j = 0; j < mb_rule_count; j++)
				worse |= mb_rules[j].severity == MB_RULE_ERROR && mb_is_broken(&after, j) && !mb_is_broken(&before, j);
			cr_expect(worse || !rule->holds(&other.c, &other.c.run.plan), "%s has no fix, but %s mends it: %s", rule->id,
			          mb_keys[keys[k]].name, random_tell(q));
		}
	}
}

static void expect_fix(const struct mb_query *q, const struct mb_violation *v)
{
	static struct mb_query other;
	struct mb_broken before, after;

	if (v->fix.count == 0) {
		if (v->rule->severity == MB_RULE_ERROR)
			expect_no_fix(q, v->rule);
		return;
	}
	other = *q;
	for (int i = 0; i < v->fix.count; i++)
		mb_apply_change(&other.c, q, v->fix.key[i], v->fix.value[i]);
	mb_find_broken(&q->c, &q->c.run.plan, &before);
	mb_find_broken(&other.c, &other.c.run.plan, &after);
	cr_expect(v->rule->holds(&other.c, &other.c.run.plan), "the fix of %s does not mend it: %s", v->rule->id, random_tell(q));
	for (int i = 0; i < mb_rule_count; i++)
		cr_expect(mb_rules[i].severity != MB_RULE_ERROR || !mb_is_broken(&after, i) || mb_is_broken(&before, i),
		          "the fix of %s breaks %s: %s", v->rule->id, mb_rules[i].id, random_tell(q));
}

static int errors_of(const struct mb_query *q, bool fixes)
{
	static struct mb_violation list[MB_MAX_VIOLATIONS];
	int count = mb_check(q, &q->c.run.plan, list), errors = 0;

	for (int i = 0; i < count; i++) {
		errors += list[i].rule->severity == MB_RULE_ERROR;
		cr_expect(list[i].message[0] != '\0', "%s says nothing: %s", list[i].rule->id, random_tell(q));
		if (fixes)
			expect_fix(q, &list[i]);
	}
	return errors;
}

Test(agree, check_and_estimate_on_random_runs)
{
	long runs = random_setting("MBSIM_RANDOM_RUNS", 12000), legal = 0, evaluated = 0, every = random_setting("MBSIM_FIX_EVERY", 8);
	struct mb_evaluation *e = mb_evaluation_new();
	static struct random_runs r;
	static struct mb_query q;

	random_open(&r, (uint64_t)random_setting("MBSIM_RANDOM_SEED", 20260801));
	cr_assert(e != NULL);
	for (long i = 0; i < runs; i++) {
		const struct mb_plan *p = &q.c.run.plan;
		const struct mb_rule *first;
		bool evaluable;

		random_run(&r, &q);
		first = mb_first_broken(&q.c, p, MB_ALL_KEYS);
		evaluable = mb_evaluable(&q.c, p);
		legal += first == NULL;
		evaluated += evaluable;
		cr_expect(first != NULL || evaluable, "legal, but cannot be sized: %s", random_tell(&q));
		if (first == NULL || i % every == 0)
			cr_expect((errors_of(&q, i % every == 0) > 0) == (first != NULL), "check disagrees: %s", random_tell(&q));
		if (!evaluable)
			continue;
		cr_expect(mb_evaluate(&q.c, p, e) != MB_ILLEGAL, "%s, can be sized, but has no answer: %s", first ? first->id : "legal",
		          random_tell(&q));
		if (e->verdict != MB_ILLEGAL) {
			const char *what = unsound(e, p);

			cr_expect(what == NULL, "%s: %s (%s)", what, random_tell(&q), first ? first->id : "legal");
		}
	}
	cr_log_info("%ld runs, %ld legal, %ld evaluated", runs, legal, evaluated);
	cr_expect(legal * 5 > runs, "only %ld of %ld legal", legal, runs);
	cr_expect(legal * 10 < runs * 9, "%ld of %ld legal, too few rules are broken", legal, runs);
	mb_evaluation_free(e);
	random_close(&r);
}
