/* Every broken rule of one run, told in its own values, with the change that mends it. */
#include <stdio.h>
#include <string.h>

#include "plan/rules_private.h"

/* The keys to blame that the user gave; the first of all when only defaults are to blame. True if there are any given. */
static bool blame(const struct mb_query *q, const char *about, struct mb_violation *v)
{
	enum mb_key_id keys[8];
	int count = mb_rule_keys(about, keys, 8);

	for (int i = 0; i < count && v->key_count < 4; i++) {
		if (q->set[keys[i]])
			v->keys[v->key_count++] = keys[i];
	}
	if (v->key_count > 0) {
		v->pos = q->pos[v->keys[0]];
		return true;
	}
	if (count > 0)
		v->keys[v->key_count++] = keys[0];
	return false;
}

/* A rule without words of its own: what it says, and the values that break it. */
static void tell_plainly(const struct mb_query *q, const struct mb_plan *p, struct mb_violation *v)
{
	size_t size = sizeof v->message;
	struct mb_run run = q->c.run;
	size_t n = (size_t)snprintf(v->message, size, "%s", v->rule->says);

	run.plan = *p;
	for (int i = 0; i < v->key_count && i < 3 && n < size; i++) {
		char value[64];

		mb_key_format(&q->c, &run, &mb_keys[v->keys[i]], value, sizeof value);
		n += (size_t)snprintf(v->message + n, size - n, "%s%s: %s", i == 0 ? " (" : ", ", mb_keys[v->keys[i]].name, value);
	}
	if (v->key_count > 0 && n < size)
		snprintf(v->message + n, size - n, ")");
}

/* False for a lesser complaint about defaults alone: nobody asked for those. */
static bool fill(const struct mb_query *q, const struct mb_plan *p, const struct mb_rule *rule, struct mb_violation *v)
{
	const struct mb_telling *telling = mb_rule_telling(rule, &q->c, p);
	bool given;

	*v = (struct mb_violation){ .rule = rule };
	given = blame(q, telling != NULL ? telling->about : rule->keys, v);
	if (!given && rule->severity != MB_RULE_ERROR)
		return false;
	if (telling != NULL)
		mb_rule_render(&q->c, p, telling->text, v->message, sizeof v->message);
	else
		tell_plainly(q, p, v);
	mb_find_fix(q, p, rule, &v->fix, &v->alternative);
	return true;
}

int mb_check(const struct mb_query *q, const struct mb_plan *p, struct mb_violation ret[MB_MAX_VIOLATIONS])
{
	struct mb_broken broken;
	int count = 0;

	mb_find_broken(&q->c, p, &broken);
	for (int severity = MB_RULE_ERROR; severity <= MB_RULE_POINTLESS; severity++) {
		for (int i = 0; i < mb_rule_count && count < MB_MAX_VIOLATIONS; i++) {
			if (mb_rules[i].severity == (enum mb_rule_severity)severity && mb_is_broken(&broken, i))
				count += fill(q, p, &mb_rules[i], &ret[count]);
		}
	}
	return count;
}

/* Takes over a fix; false when there is no room for all its keys. */
static bool merge(struct mb_fix *all, const struct mb_fix *fix, int max_keys)
{
	struct mb_fix merged = *all;

	for (int i = 0; i < fix->count; i++) {
		int at = 0;

		while (at < merged.count && merged.key[at] != fix->key[i])
			at++;
		if (at == max_keys)
			return false;
		merged.key[at] = fix->key[i];
		merged.value[at] = fix->value[i];
		if (at == merged.count)
			merged.count++;
	}
	*all = merged;
	return true;
}

/* The next violation that has a fix not tried yet, errors first. */
static const struct mb_violation *next_to_mend(const struct mb_violation *list, int count, const bool *done)
{
	for (int i = 0; i < count; i++) {
		bool error = list[i].rule->severity == MB_RULE_ERROR;
		bool setting = list[i].rule->severity == MB_RULE_CHANGED || list[i].rule->severity == MB_RULE_IGNORED;

		if (list[i].fix.count > 0 && !done[list[i].rule - mb_rules] && (error || setting))
			return &list[i];
	}
	return NULL;
}

bool mb_combined_fix(const struct mb_query *q, const struct mb_plan *p, struct mb_fix *ret, int max_keys)
{
	struct mb_query after = *q;
	struct mb_violation list[MB_MAX_VIOLATIONS];
	bool done[MB_RULE_COUNT] = { false };

	*ret = (struct mb_fix){ 0 };
	if (max_keys > MB_MAX_FIX_KEYS)
		max_keys = MB_MAX_FIX_KEYS;
	after.c.run.plan = *p;
	for (;;) {
		int count = mb_check(&after, &after.c.run.plan, list);
		const struct mb_violation *v = next_to_mend(list, count, done);

		if (v == NULL)
			break;
		done[v->rule - mb_rules] = true;
		if (!merge(ret, &v->fix, max_keys))
			continue;
		for (int i = 0; i < v->fix.count; i++)
			mb_apply_change(&after.c, q, v->fix.key[i], v->fix.value[i]);
	}
	return mb_first_broken(&after.c, &after.c.run.plan, MB_ALL_KEYS) == NULL;
}
