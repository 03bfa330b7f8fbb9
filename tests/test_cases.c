/*
 * Configurations that people reported as failing, as run files in tests/cases/c with what was reported in their comments.
 * The first line says what must come out: "illegal RULE", "refused WORDS" (the file cannot be read as a run), "legal", or
 * a lesser complaint of a legal run, such as "warning RULE".
 */
#include <dirent.h>
#include <stdio.h>

#include "query_fixture.h"

#include "plan/rules.h"

TestSuite(cases, .init = begin, .fini = done);

static bool complains(const struct mb_violation *list, int count, const char *severity, const char *rule)
{
	for (int i = 0; i < count; i++)
		if (strcmp(list[i].rule->id, rule) == 0 && strcmp(mb_rule_severity_names[list[i].rule->severity], severity) == 0)
			return true;
	return false;
}

static int errors_of(const struct mb_violation *list, int count)
{
	int errors = 0;

	for (int i = 0; i < count; i++)
		errors += list[i].rule->severity == MB_RULE_ERROR;
	return errors;
}

static void expect_refused(bool accepted, const char *words, const char *name)
{
	bool said = false;

	for (int i = 0; i < diags.count; i++)
		said |= strstr(diags.item[i].text, words) != NULL;
	cr_expect(!accepted && said, "%s: refused by '%s', expected '%s'", name, accepted ? "nothing" : diags.item[0].text, words);
}

static void expect_verdict(const char *verdict, const char *rule, const char *name)
{
	static struct mb_violation list[MB_MAX_VIOLATIONS];
	int count = mb_check(q, &q->c.run.plan, list), errors = errors_of(list, count);
	const char *first = count > 0 ? list[0].rule->id : "nothing";

	if (strcmp(verdict, "illegal") == 0) {
		cr_expect(complains(list, count, "error", rule), "%s: %s is no error, %s is reported", name, rule, first);
		return;
	}
	cr_expect(errors == 0, "%s: illegal by %s", name, first);
	if (strcmp(verdict, "legal") != 0)
		cr_expect(complains(list, count, verdict, rule), "%s: no %s %s, %s is reported", name, verdict, rule, first);
}

static void check_case(const char *path, const char *name)
{
	char line[256] = "", verdict[16] = "", rest[128] = "", *argv[] = { mb_arena_strdup(&arena, path) };
	FILE *f = fopen(path, "r");
	bool accepted;

	cr_assert(f != NULL && fgets(line, sizeof line, f) != NULL, "%s", name);
	fclose(f);
	cr_assert(sscanf(line, "# expect: %15s %127[^\n]", verdict, rest) >= 1, "%s: first line", name);
	memset(&diags, 0, sizeof diags);
	memset(q, 0, sizeof *q);
	accepted = mb_query_load(1, argv, true, &library, &arena, q, &diags);
	if (strcmp(verdict, "refused") == 0) {
		expect_refused(accepted, rest, name);
		return;
	}
	cr_expect(accepted, "%s: %s", name, diags.item[0].text);
	if (accepted)
		expect_verdict(verdict, rest, name);
}

Test(cases, verdict_and_rule_as_reported)
{
	char folder[4200], path[4400];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(folder, sizeof folder, "%s/tests/cases/c", library.root);
	dir = opendir(folder);
	cr_assert(dir != NULL, "no %s", folder);
	while ((entry = readdir(dir)) != NULL) {
		size_t n = strlen(entry->d_name);

		if (n < 5 || strcmp(entry->d_name + n - 5, ".yaml") != 0)
			continue;
		snprintf(path, sizeof path, "%s/%.100s", folder, entry->d_name);
		check_case(path, entry->d_name);
		count++;
	}
	closedir(dir);
	cr_expect(count == 37, "%d files", count);
}
