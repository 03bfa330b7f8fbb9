#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "exchange/import_private.h"

void mb_import_say(struct mb_importer *m, struct mb_said s)
{
	if (m->count == m->capacity) {
		int more = m->capacity > 0 ? 2 * m->capacity : 128;
		struct mb_said *grown = mb_arena_alloc(m->arena, (size_t)more * sizeof *grown);

		if (m->count > 0)
			memcpy(grown, m->said, (size_t)m->count * sizeof *grown);
		m->said = grown;
		m->capacity = more;
	}
	m->said[m->count++] = s;
}

const char *mb_import_last(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL ? dot + 1 : name;
}

/* ---- words of a command ---- */

/* "a.b=c", "+a.b=c"; a plain name=value only where nothing else could be meant, or where the name is a key. */
static const char *assignment(const char *word, bool plain)
{
	const char *equals = strchr(word, '=');
	char name[80];
	bool flag;

	if (equals == NULL || equals == word || word[0] == '-')
		return NULL;
	for (const char *s = word; s < equals; s++) {
		if (!isalnum((unsigned char)*s) && strchr("_.+~@", *s) == NULL)
			return NULL;
	}
	if (plain || memchr(word, '.', (size_t)(equals - word)) != NULL || memchr(word, '+', (size_t)(equals - word)) != NULL)
		return equals;
	snprintf(name, sizeof name, "%.*s", equals - word < 64 ? (int)(equals - word) : 64, word);
	return mb_name_find(name, &flag) == MB_NAME_KEY ? equals : NULL;
}

static void say_assignment(struct mb_importer *m, const struct mb_word *w, const char *equals, bool ours)
{
	const char *name = w->text + strspn(w->text, "+~");
	struct mb_said s = { .pos = w->pos, .unresolved = w->unresolved, .ours = ours };
	struct mb_pos at = w->pos;

	s.name = mb_arena_strndup(m->arena, name, (size_t)(equals - name));
	at.column += (int)(equals - w->text) + 1;
	s.value = mb_node_scalar(m->arena, at, equals + 1);
	mb_import_say(m, s);
}

static bool is_flag(const char *word)
{
	return word[0] == '-' && word[1] == '-' && word[2] != '\0';
}

/* How many words from `w` on are the value of a flag: argparse takes all up to the next one. */
static int value_words(struct mb_importer *m, const char *name, const struct mb_word *w, int left)
{
	bool flag;
	int n = 0;

	mb_name_find(name, &flag);
	if (flag && left > 0 && strcasecmp(w->text, "true") != 0 && strcasecmp(w->text, "false") != 0 && w->unresolved == NULL)
		return 0;
	while (n < left && !is_flag(w[n].text) && (n == 0 || !w[n - 1].ends) && assignment(w[n].text, false) == NULL && w[n].text[0] != '\0')
		n++;
	(void)m;
	return n;
}

static const struct mb_node *value_of(struct mb_importer *m, const struct mb_word *w, int n, struct mb_said *s)
{
	struct mb_node *list = mb_arena_alloc(m->arena, sizeof *list);
	const struct mb_node **link = &list->child;

	for (int i = 0; i < n; i++)
		s->unresolved = s->unresolved != NULL ? s->unresolved : w[i].unresolved;
	if (n == 0)
		return mb_node_scalar(m->arena, s->pos, "true");
	if (n == 1)
		return mb_node_scalar(m->arena, w->pos, w->text);
	*list = (struct mb_node){ .type = MB_NODE_LIST, .pos = w->pos, .count = n };
	for (int i = 0; i < n; i++) {
		struct mb_node *item = mb_arena_alloc(m->arena, sizeof *item);

		*item = *mb_node_scalar(m->arena, w[i].pos, w[i].text);
		*link = item;
		link = &item->next;
	}
	return list;
}

/* Returns how many words it took. */
static int say_flag(struct mb_importer *m, const struct mb_word *w, int left)
{
	const char *name = w->text + 2, *equals = strchr(name, '=');
	struct mb_said s = { .pos = w->pos, .unresolved = NULL, .flag = true };
	int n = 0;

	s.pos.column += 2;
	if (equals != NULL) {
		struct mb_pos at = s.pos;

		s.unresolved = w->unresolved;
		s.name = mb_arena_strndup(m->arena, name, (size_t)(equals - name));
		at.column += (int)(equals - name) + 1;
		s.value = mb_node_scalar(m->arena, at, equals + 1);
	} else {
		s.name = name;
		if (!w->ends)
			n = value_words(m, name, w + 1, left - 1);
		s.value = value_of(m, w + 1, n, &s);
	}
	mb_import_say(m, s);
	return 1 + n;
}

/* torchrun and srun in front of the program say how many GPUs there are. */
static int launcher(struct mb_importer *m, const struct mb_word *w, int left)
{
	static const struct { const char *name; int which; } rows[] = {
		{ "--nproc_per_node", 0 }, { "--nproc-per-node", 0 }, { "--ntasks-per-node", 0 }, { "--gpus-per-node", 0 },
		{ "--nnodes", 1 }, { "--nodes", 1 }, { "-N", 1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t length = strlen(rows[i].name);
		const char *value = strncmp(w->text, rows[i].name, length) != 0 ? NULL : w->text[length] == '=' ? w->text + length + 1 :
			w->text[length] == '\0' && left > 1 ? w[1].text : NULL;
		long long n = 0;

		if (value == NULL || sscanf(value, "%6lld", &n) != 1 || n < 1)
			continue;
		*(rows[i].which == 0 ? &m->gpus_per_node : &m->nodes) = n;
		return 1 + (w->text[length] == '\0');
	}
	return 1;
}

static bool is_program(const struct mb_word *w)
{
	size_t n = strlen(w->text);

	return n > 3 && strcmp(w->text + n - 3, ".py") == 0;
}

/* Where the options of the program start: behind the script, or behind -m MODULE; 0 when the command starts none. */
static int program_at(const struct mb_word *w, int count)
{
	for (int i = 0; i < count; i++) {
		if (is_program(&w[i]))
			return i + 1;
		if (strcmp(w[i].text, "-m") == 0 && i + 2 < count && strncmp(w[i + 1].text, "torch.", 6) != 0)
			return i + 2;
	}
	return count > 1 && strcmp(w[0].text, "megatron") == 0 ? 2 : 0;
}

static void say_words(struct mb_importer *m, const struct mb_word *w, int count, bool plain)
{
	for (int i = 0; i < count;) {
		const char *equals = assignment(w[i].text, plain);

		if (is_flag(w[i].text)) {
			i += say_flag(m, &w[i], count - i);
		} else {
			if (equals != NULL)
				say_assignment(m, &w[i], equals, false);
			i++;
		}
	}
}

/* ---- scripts ---- */

/* Commands that start a program, and lines of nothing but flags, as a script without its backslashes has. */
static bool say_commands(struct mb_importer *m, const struct mb_shell *s, bool started_only)
{
	bool any = false, started = false;

	for (int i = 0, n; i < s->word_count; i += n) {
		int at;

		for (n = 1; !s->words[i + n - 1].ends && i + n < s->word_count; n++)
			;
		at = program_at(&s->words[i], n);
		bool loose = is_flag(s->words[i].text) || assignment(s->words[i].text, false) != NULL;
		if (at > 0 && strcmp(s->words[i].text, "megatron") == 0)
			m->dialect = MB_DIALECT_SWIFT;
		for (int k = 0; k < at; )
			k += launcher(m, &s->words[i + k], at - k);
		started = started || at > 0;
		if (started_only && at == 0 && !(started && loose))
			continue;
		int before = m->count;
		say_words(m, &s->words[i + at], n - at, false);
		any = any || m->count > before;
	}
	return any;
}

/* Without a command that uses them, the arrays and texts of flags themselves. */
static void say_variables(struct mb_importer *m, const struct mb_shell *s)
{
	for (int i = 0; i < s->variable_count; i++) {
		const struct mb_variable *v = &s->variables[i];
		struct mb_shell inner;

		if (v->used && !v->array)
			continue;
		if (v->array || v->count == 0) {
			say_words(m, v->words, v->count, false);
			continue;
		}
		if (strstr(v->words[0].text, "--") != NULL &&
		    mb_shell_read(v->words[0].text, strlen(v->words[0].text), m->name, NULL, m->arena, &inner, m->diags))
			say_words(m, inner.words, inner.word_count, false);
	}
}

/* A list of overrides may hold plain key=value lines, which a shell takes for variables. */
static void say_plain(struct mb_importer *m, const struct mb_shell *s)
{
	for (int i = 0; i < s->variable_count; i++) {
		const struct mb_variable *v = &s->variables[i];
		bool flag;

		if (v->used || v->array || v->count != 1 || v->exported || isupper((unsigned char)v->name[0]) || v->words[0].pos.line == 0)
			continue;
		if (mb_name_find(v->name, &flag) != MB_NAME_UNKNOWN || mb_model_key(v->name))
			mb_import_say(m, (struct mb_said){ .name = v->name, .pos = v->words[0].pos, .unresolved = v->words[0].unresolved,
				.value = mb_node_scalar(m->arena, v->words[0].pos, v->words[0].text) });
	}
}

static bool matters(const char *name)
{
	static const char *const prefixes[] = { "CUDA_", "NCCL_", "NVTE_", "TORCH_", "PYTORCH_", "CUBLAS_", "NVLINK_", "NUM_OF_", "USE_MNNVL" };

	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

static long long number_of(const struct mb_shell *s, const char *const *names)
{
	for (; *names != NULL; names++) {
		const struct mb_variable *v = mb_shell_variable(s, *names);
		long long n;

		if (v != NULL && v->count == 1 && v->words[0].unresolved == NULL && sscanf(v->words[0].text, "%6lld", &n) == 1 && n > 0)
			return n;
	}
	return 0;
}

static void say_machine(struct mb_importer *m, const struct mb_shell *s)
{
	static const char *const nodes[] = { "NNODES", "NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "N_NODES", NULL };
	static const char *const per_node[] = { "GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS_PER_NODE", "N_GPUS_PER_NODE", NULL };

	for (int i = 0; i < s->slurm_count; ) {
		const char *gres = strstr(s->slurm[i].text, "gpu:");

		/* "gpu:8" and "gpu:h100:8" */
		if (strncmp(s->slurm[i].text, "--gres", 6) == 0 && gres != NULL)
			sscanf(strrchr(gres, ':') + 1, "%6lld", &m->gpus_per_node);
		i += launcher(m, &s->slurm[i], s->slurm_count - i);
	}
	if (m->nodes == 0)
		m->nodes = number_of(s, nodes);
	if (m->gpus_per_node == 0)
		m->gpus_per_node = number_of(s, per_node);
	for (int i = 0; i < s->variable_count; i++) {
		const struct mb_variable *v = &s->variables[i];

		if (v->exported && !v->added && v->count == 1 && matters(v->name) && v->words[0].unresolved == NULL && m->environment->count < 64)
			mb_map_say(m->arena, m->environment, v->name, v->words[0].pos, v->words[0].text);
	}
}

bool mb_import_script(struct mb_importer *m, const char *text, size_t length)
{
	struct mb_shell s;

	if (!mb_shell_read(text, length, m->name, m->settings, m->arena, &s, m->diags))
		return false;
	if (!say_commands(m, &s, true) && !say_commands(m, &s, false))
		say_variables(m, &s);
	bool flags = false;
	for (int i = 0; i < m->count; i++)
		flags = flags || m->said[i].flag;
	if (!flags)
		say_plain(m, &s);
	for (int i = 0; i < s.note_count; i++) {
		const char *equals = assignment(s.notes[i].text, true);

		if (equals != NULL)
			say_assignment(m, &s.notes[i], equals, true);
	}
	say_machine(m, &s);
	if (s.condition.line > 0)
		mb_report(m->diags, MB_WARNING, s.condition, "", "conditions and loops are not worked out: every line is read once, the last "
		          "word on a flag counts");
	if (m->count == 0)
		return mb_fail(m->diags, (struct mb_pos){ .file = m->name }, "no flags and no overrides found");
	return true;
}

void mb_import_settings(struct mb_importer *m)
{
	for (int i = 0; m->settings != NULL && m->settings[i] != NULL; i++) {
		struct mb_word w = { .text = m->settings[i], .pos = { mb_arena_printf(m->arena, "argument %d", i + 2), 0, 1 } };
		const char *equals;

		while (*w.text == '-')
			w.text++;
		equals = assignment(w.text, true);
		if (equals != NULL && islower((unsigned char)w.text[0]))
			say_assignment(m, &w, equals, true);
	}
}
