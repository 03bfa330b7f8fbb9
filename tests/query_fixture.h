/* Reading runs in tests: from a text, or from the words of a command line. */
#ifndef MBSIM_TESTS_QUERY_FIXTURE_H
#define MBSIM_TESTS_QUERY_FIXTURE_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "desc/node.h"
#include "plan/case.h"

/* A model by mapping, so that these tests read no model file. */
#define MODEL "model: {name: tiny, num_layers: 32, hidden_size: 4096, num_attention_heads: 32, vocab_size: 32000, " \
	"position_embedding_type: rope}\n"
#define REST "hardware: dgx-h100\ngpus: 64\nseq_length: 4096\nglobal_batch_size: 256\n"
#define RUN MODEL REST

static struct mb_arena arena;
static struct mb_library library;
static struct mb_diags diags;
static struct mb_query *q;

static inline void begin(void)
{
	struct mb_diags d = { 0 };

	q = calloc(1, sizeof *q);
	cr_assert(q != NULL && mb_library_open(&library, &d), "no data: %s", d.item[0].text);
}

static inline void done(void)
{
	mb_arena_free(&arena);
	free(q);
}

static inline bool load_text(const char *text)
{
	memset(&diags, 0, sizeof diags);
	const struct mb_node *node = mb_node_read_text(text, strlen(text), "run.yaml", &arena, &diags);
	return node != NULL && mb_query_from_node(node, &library, &arena, q, &diags);
}

/* Words as the shell would pass them, separated by spaces. */
static inline bool load_words(const char *words, bool single)
{
	char *argv[64], *copy = mb_arena_strdup(&arena, words);
	int argc = 0;

	memset(&diags, 0, sizeof diags);
	for (char *word = strtok(copy, " "); word != NULL && argc < 64; word = strtok(NULL, " "))
		argv[argc++] = word;
	return mb_query_load(argc, argv, single, &library, &arena, q, &diags);
}

static inline void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static inline const char *value(enum mb_key_id key)
{
	static char text[256];

	mb_key_format(&q->c, &q->c.run, &mb_keys[key], text, sizeof text);
	return text;
}

#endif
