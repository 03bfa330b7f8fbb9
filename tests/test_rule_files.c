/* Runs that people get wrong, as files: the first line says which rule must come first and which key it points at. */
#include <dirent.h>
#include <stdio.h>

#include "query_fixture.h"

#include "plan/rules.h"

static const char *line_of(const char *path, int line)
{
	static char text[256];
	FILE *f = fopen(path, "r");

	text[0] = '\0';
	for (int i = 0; f != NULL && i < line && fgets(text, sizeof text, f) != NULL; i++)
		text[strcspn(text, "\n")] = '\0';
	if (f != NULL)
		fclose(f);
	return text;
}

static void check_file(const char *path, const char *name)
{
	static struct mb_violation list[MB_MAX_VIOLATIONS];
	char rule[16], key[64], argument[4400], *argv[] = { argument };
	struct mb_fix fix;

	snprintf(argument, sizeof argument, "%s", path);
	memset(&diags, 0, sizeof diags);
	cr_assert(sscanf(line_of(path, 1), "# %15s %63s", rule, key) == 2, "%s: first line", name);
	cr_assert(mb_query_load(1, argv, true, &library, &arena, q, &diags), "%s: %s", name, diags.item[0].text);
	cr_assert(mb_check(q, &q->c.run.plan, list) > 0, "%s: nothing found", name);
	cr_expect_str_eq(list[0].rule->id, rule, "%s: %s comes first", name, list[0].rule->id);
	cr_expect_str_eq(mb_keys[list[0].keys[0]].name, key, "%s: points at %s", name, mb_keys[list[0].keys[0]].name);
	cr_expect(strncmp(line_of(path, list[0].pos.line), key, strlen(key)) == 0, "%s:%d is not where %s stands", name, list[0].pos.line, key);
	cr_expect(mb_combined_fix(q, &q->c.run.plan, &fix, MB_MAX_FIX_KEYS), "%s: no fix", name);
	cr_expect(fix.count > 0, "%s: nothing to change", name);
}

Test(rule_files, first_violation_and_place)
{
	char folder[4200], path[4400];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	begin();
	snprintf(folder, sizeof folder, "%s/tests/rules", library.root);
	dir = opendir(folder);
	cr_assert(dir != NULL, "no %s", folder);
	while ((entry = readdir(dir)) != NULL) {
		size_t n = strlen(entry->d_name);

		if (n < 5 || strcmp(entry->d_name + n - 5, ".yaml") != 0)
			continue;
		snprintf(path, sizeof path, "%s/%.100s", folder, entry->d_name);
		check_file(path, entry->d_name);
		count++;
	}
	closedir(dir);
	cr_expect(count >= 15, "%d files", count);
	done();
}
