/*
 * One run for each layer kind and runtime feature, tests/features/NAME.yaml, with its sizes worked out by hand beside it in
 * NAME.want: lines "QUANTITY = ARITHMETIC" ("~=": up to the 512-byte blocks of a few tensors), where "let NAME = ARITHMETIC"
 * names a size. The functions below say what a quantity is; layers are counted from 0, or named embedding, mtp, head;
 * stages are pipeline ranks.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>

#include "expect.h"
#include "query_fixture.h"

#include "cost/cost.h"
#include "plan/rules.h"

TestSuite(features, .init = begin, .fini = done);

static struct mb_evaluation *e;
static const char *file;        /* that is read, and its line */
static int line_number;

/* ---- arithmetic ---- */

static struct { char name[16]; double value; } names[64];
static int name_count;

struct text {
	const char *at;
};

static double sum(struct text *t);

static void skip_space(struct text *t)
{
	while (*t->at == ' ' || *t->at == '\t')
		t->at++;
}

static double named(struct text *t)
{
	char name[16] = "";
	size_t n = 0;

	while (isalnum((unsigned char)*t->at) || *t->at == '_') {
		if (n < sizeof name - 1)
			name[n++] = *t->at;
		t->at++;
	}
	for (int i = 0; i < name_count; i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].value;
	cr_assert_fail("%s:%d: no size '%s'", file, line_number, name);
	return 0;
}

static double factor(struct text *t)
{
	double value;
	char *end;

	skip_space(t);
	if (*t->at == '(') {
		t->at++;
		value = sum(t);
		skip_space(t);
		cr_assert(*t->at == ')', "%s:%d: ) is missing", file, line_number);
		t->at++;
	} else if (isalpha((unsigned char)*t->at)) {
		value = named(t);
	} else {
		value = strtod(t->at, &end);
		cr_assert(end != t->at, "%s:%d: no number at '%s'", file, line_number, t->at);
		t->at = end;
	}
	skip_space(t);
	return value;
}

static double product(struct text *t)
{
	double value = factor(t);

	while (*t->at == '*' || *t->at == '/') {
		char sign = *t->at++;
		double next = factor(t);

		value = sign == '*' ? value * next : value / next;
	}
	return value;
}

static double sum(struct text *t)
{
	double value = product(t);

	while (*t->at == '+' || *t->at == '-') {
		char sign = *t->at++;
		double next = product(t);

		value = sign == '+' ? value + next : value - next;
	}
	return value;
}

/* ---- quantities ---- */

static int kind_of(const char *layer)
{
	if (strcmp(layer, "embedding") == 0)
		return MB_KIND_EMBEDDING;
	if (strcmp(layer, "mtp") == 0)
		return MB_KIND_MTP;
	if (strcmp(layer, "head") == 0)
		return MB_KIND_HEAD;
	return q->c.model.layers[atoi(layer)];
}

static int op_of(const struct mb_kind_cost *k, const char *name)
{
	for (int i = 0; i < k->op_count; i++)
		if (strcmp(k->ops[i].name, name) == 0)
			return i;
	cr_assert_fail("%s:%d: no operation '%s'", file, line_number, name);
	return 0;
}

/* Of one operation of a layer, per micro-batch and GPU. */
static double of_operation(const char *what, const char *layer, const char *name)
{
	const struct mb_kind_cost *k = &e->kinds[kind_of(layer)];
	int i = op_of(k, name);

	if (strcmp(what, "saved") == 0)                 /* bytes kept for the backward */
		return k->op_saved_bytes[i];
	if (strcmp(what, "forward") == 0)               /* FLOPs */
		return k->ops[i].forward_flops;
	if (strcmp(what, "backward") == 0)
		return k->ops[i].backward_flops;
	if (strcmp(what, "sent") == 0)                  /* bytes to other GPUs in the forward, self excluded */
		return k->ops[i].send.forward_bytes;
	if (strcmp(what, "returned") == 0)              /* and in the backward */
		return k->ops[i].send.backward_bytes;
	cr_assert_fail("%s:%d: no quantity '%s'", file, line_number, what);
	return 0;
}

static double of_layer(const char *what, const char *layer)
{
	const struct mb_kind_cost *k = &e->kinds[kind_of(layer)], *treated = &e->treated[kind_of(layer)];

	if (strcmp(what, "saved") == 0)
		return k->saved_bytes;
	if (strcmp(what, "kept") == 0)                  /* under full recompute: the layer's input */
		return treated->input_bytes;
	if (strcmp(what, "offloaded") == 0)             /* bytes that go to the host */
		return k->offloaded_bytes;
	if (strcmp(what, "dense") == 0)                 /* parameters on the rank */
		return (double)k->dense_params;
	if (strcmp(what, "experts") == 0)
		return (double)k->expert_params;
	if (strcmp(what, "trained") == 0)
		return (double)(k->dense_trained_params + k->expert_trained_params);
	if (strcmp(what, "replay") == 0)                /* FLOPs that recompute repeats */
		return treated->present ? treated->replay_flops : k->replay_flops;
	if (strcmp(what, "transient") == 0)             /* working set of the forward */
		return k->forward_transient_bytes;
	cr_assert_fail("%s:%d: no quantity '%s'", file, line_number, what);
	return 0;
}

static double of_stage(const char *what, int stage)
{
	const struct mb_stage_memory *m = &e->stage_memory[stage];
	double layers = 0;

	for (int j = stage; j < e->split.chunk_count; j += q->c.run.plan.pp)
		layers += e->split.chunks[j].layers;
	if (strcmp(what, "layers") == 0)
		return layers;
	if (strcmp(what, "parameters") == 0)
		return (double)(m->dense_params + m->expert_params);
	if (strcmp(what, "in_flight") == 0)             /* chunks whose activations the peak holds */
		return m->in_flight_chunks;
	if (strcmp(what, "host") == 0)                  /* bytes in host memory */
		return m->host_bytes;
	if (strcmp(what, "chunk") == 0)                 /* bytes that a chunk keeps, of a micro-batch */
		return e->chunk_saved_bytes[stage];
	cr_assert_fail("%s:%d: no quantity '%s'", file, line_number, what);
	return 0;
}

static double of_term(const char *what, int stage, const char *name)
{
	for (int i = 0; i < MB_MEM_COUNT; i++)
		if (strcmp(mb_memory_terms[i].json, name) == 0)
			return what[0] == 'b' ? e->stage_memory[stage].between_terms[i] : e->stage_memory[stage].terms[i];
	cr_assert_fail("%s:%d: no term '%s'", file, line_number, name);
	return 0;
}

static double of_run(const char *what, const char *name)
{
	int64_t total, mtp, active;

	mb_count_parameters(&q->c, &total, &mtp, &active);
	if (strcmp(what, "total") == 0)                 /* parameters of the model */
		return (double)total;
	if (strcmp(what, "mtp") == 0)
		return (double)mtp;
	if (strcmp(what, "active") == 0)
		return (double)active;
	if (strcmp(what, "model_flops") == 0)           /* per token */
		return e->model_flops_per_token;
	for (int i = 0; strcmp(what, "traffic") == 0 && i < MB_TRAFFIC_COUNT; i++)      /* bytes a GPU sends in a step */
		if (strcmp(mb_traffic_names[i], name) == 0)
			return e->traffic[i].bytes;
	cr_assert_fail("%s:%d: no quantity '%s %s'", file, line_number, what, name);
	return 0;
}

static double quantity(char words[3][32], int count)
{
	static const char *const stage_words[] = { "layers", "parameters", "in_flight", "host", "chunk" };

	if (strcmp(words[0], "between") == 0 || strcmp(words[0], "peak") == 0)          /* a term of a stage */
		return of_term(words[0], atoi(words[1]), words[2]);
	if (count == 3)
		return of_operation(words[0], words[1], words[2]);
	for (size_t i = 0; count == 2 && i < sizeof stage_words / sizeof stage_words[0]; i++)
		if (strcmp(words[0], stage_words[i]) == 0)
			return of_stage(words[0], atoi(words[1]));
	if (count == 2 && strcmp(words[0], "traffic") != 0)
		return of_layer(words[0], words[1]);
	return of_run(words[0], words[1]);
}

/* ---- files ---- */

static void check_line(char *line)
{
	char *equals = strchr(line, '='), words[3][32] = { "", "", "" };
	bool blocks = equals != NULL && equals > line && equals[-1] == '~', good;
	struct text text;
	double want, got;
	int count;

	line[strcspn(line, "#\n")] = '\0';
	if (line[strspn(line, " \t")] == '\0')
		return;
	cr_assert(equals != NULL && equals[0] == '=', "%s:%d: no '='", file, line_number);
	equals[blocks ? -1 : 0] = '\0';
	text.at = equals + 1;
	want = sum(&text);
	cr_assert(*text.at == '\0', "%s:%d: '%s' is left over", file, line_number, text.at);
	count = sscanf(line, "%31s %31s %31s", words[0], words[1], words[2]);
	if (strcmp(words[0], "let") == 0) {
		cr_assert(count == 2 && name_count < 64 && strlen(words[1]) < sizeof names[0].name, "%s:%d", file, line_number);
		strcpy(names[name_count].name, words[1]);
		names[name_count++].value = want;
		return;
	}
	got = quantity(words, count);
	if (blocks)
		good = fabs(got - want) < 2048;
	else
		good = want > 0 ? fabs(got / want - 1) < 1e-9 : fabs(got) < 0.5;
	cr_expect(good, "%s:%d: %s %s %s is %.10g, by hand %.10g", file, line_number, words[0], words[1], words[2], got, want);
}

static int check_wants(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];
	int wants = 0;

	cr_assert(f != NULL, "%s is not there", path);
	name_count = 0;
	for (line_number = 1; fgets(line, sizeof line, f) != NULL; line_number++) {
		wants += line[0] != '#' && strchr(line, '=') != NULL && strncmp(line, "let ", 4) != 0;
		check_line(line);
	}
	fclose(f);
	return wants;
}

static void check_feature(const char *folder, const char *name)
{
	char path[4500], want[4500], *argv[] = { path };
	const struct mb_rule *rule;

	file = name;
	line_number = 0;
	snprintf(path, sizeof path, "%s/%.100s.yaml", folder, name);
	snprintf(want, sizeof want, "%s/%.100s.want", folder, name);
	memset(&diags, 0, sizeof diags);
	memset(q, 0, sizeof *q);
	cr_assert(mb_query_load(1, argv, true, &library, &arena, q, &diags), "%s: %s", name, diags.item[0].text);
	rule = mb_first_broken(&q->c, &q->c.run.plan, MB_ALL_KEYS);
	cr_expect(rule == NULL, "%s is illegal by %s", name, rule ? rule->id : "");
	cr_assert(mb_evaluable(&q->c, &q->c.run.plan) && mb_evaluate(&q->c, &q->c.run.plan, e) != MB_ILLEGAL, "%s", name);
	cr_expect(check_wants(want) > 0, "%s says nothing", name);
}

Test(features, sizes_worked_out_by_hand)
{
	char folder[4200], name[128];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	e = mb_evaluation_new();
	cr_assert(e != NULL);
	snprintf(folder, sizeof folder, "%s/tests/features", library.root);
	dir = opendir(folder);
	cr_assert(dir != NULL, "no %s", folder);
	while ((entry = readdir(dir)) != NULL) {
		size_t n = strlen(entry->d_name);

		if (n < 5 || n >= sizeof name || strcmp(entry->d_name + n - 5, ".yaml") != 0)
			continue;
		memcpy(name, entry->d_name, n - 5);
		name[n - 5] = '\0';
		check_feature(folder, name);
		count++;
	}
	closedir(dir);
	cr_expect(count >= 70, "%d features", count);
	mb_evaluation_free(e);
}
