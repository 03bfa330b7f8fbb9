#include "plan/case.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

/*
 * The layout language of Megatron Core: E embedding, t decoder layer, m multi-token prediction, L loss, '|' between
 * stages, X*n and (...)*n repeat. Commas and spaces mean nothing.
 * [Megatron-LM megatron/core/transformer/pipeline_parallel_layer_layout.py]
 */
enum { MAX_DEPTH = 8, MAX_STEPS = 16384 };

struct scanner {
	const char *text, *at;
	struct mb_pos pos;
	struct mb_diags *diags;
	struct mb_chunk *chunks;
	int count;                      /* chunks begun */
	int layers;                     /* decoder layers so far */
	int steps;                      /* work done: nested repeats of nothing must end too */
	char last;                      /* symbol before this one in the stage; '|' at its start */
};

static bool fail(struct scanner *s, const char *where, const char *what)
{
	struct mb_pos pos = s->pos;

	pos.column += (int)(where - s->text);
	mb_report(s->diags, MB_ERROR, pos, "pipeline_model_parallel_layout", "pipeline_model_parallel_layout: %s", what);
	return false;
}

/* The order inside a stage is part of the language, since a chunk only counts. */
static bool add_symbol(struct scanner *s, const char *where)
{
	static const char order[] = "|EtmL";
	struct mb_chunk *chunk = &s->chunks[s->count - 1];
	const char *now = strchr(order, *where);
	const char *before = strchr(order, s->last);

	if (now < before)
		return fail(s, where, "a stage is written in the order E, t, m, L");
	if ((*where == 'E' && chunk->embedding) || (*where == 'L' && chunk->loss))
		return fail(s, where, *where == 'E' ? "two embeddings in one stage" : "two losses in one stage");
	s->last = *where;
	chunk->embedding |= *where == 'E';
	chunk->loss |= *where == 'L';
	if (*where == 't') {
		if (s->layers >= MB_MAX_LAYERS)
			return fail(s, where, "more than 512 decoder layers");
		chunk->layers++;
		s->layers++;
	}
	if (*where == 'm' && ++chunk->mtp > MB_MAX_MTP_LAYERS)
		return fail(s, where, "more than 16 multi-token prediction layers");
	return true;
}

static bool begin_stage(struct scanner *s, const char *where)
{
	if (s->count >= MB_MAX_CHUNKS)
		return fail(s, where, "more than 2048 stages");
	s->chunks[s->count] = (struct mb_chunk){ .first_layer = (uint16_t)s->layers };
	s->count++;
	s->last = '|';
	return true;
}

/* The number after '*'; 1 without one, -1 after an error. */
static int repeat(struct scanner *s)
{
	const char *star = s->at;
	long n = 0;

	if (*s->at != '*')
		return 1;
	for (s->at++; isdigit((unsigned char)*s->at); s->at++)
		n = n < INT_MAX / 20 ? 10 * n + (*s->at - '0') : INT_MAX / 2;
	if (s->at == star + 1 || n < 1) {
		fail(s, star, "'*' needs a count of at least 1, as in t*4");
		return -1;
	}
	return (int)n;
}

static bool sequence(struct scanner *s, int depth);

static const char *matching(const char *open)
{
	int depth = 0;

	for (const char *p = open; *p != '\0'; p++) {
		depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
		if (depth == 0)
			return p;
	}
	return NULL;
}

static bool group(struct scanner *s, int depth)
{
	const char *open = s->at;
	const char *close = matching(open);
	struct scanner counter = *s;

	if (close == NULL)
		return fail(s, open, "'(' is never closed");
	if (depth >= MAX_DEPTH)
		return fail(s, open, "groups are nested too deeply");
	counter.at = close + 1;
	int times = repeat(&counter);
	for (int i = 0; i < times; i++) {
		s->at = open + 1;
		if (!sequence(s, depth + 1))
			return false;
	}
	s->at = counter.at;
	return times > 0;
}

static bool symbol(struct scanner *s)
{
	const char *where = s->at++;

	if (*where != '|' && (*where == '\0' || strchr("EtmL", *where) == NULL))
		return fail(s, where, "expected E, t, m, L, '|', or a group in parentheses");
	int times = repeat(s);
	for (int i = 0; i < times; i++) {
		if (!(*where == '|' ? begin_stage(s, where) : add_symbol(s, where)))
			return false;
	}
	return times > 0;
}

/* Up to the end of the text or the ')' of the group, which is left to the caller. */
static bool sequence(struct scanner *s, int depth)
{
	while (*s->at != '\0') {
		if (++s->steps > MAX_STEPS)
			return fail(s, s->at, "the layout is too long");
		if (*s->at == ')')
			return depth > 0 || fail(s, s->at, "')' without '('");
		if (*s->at == ',' || *s->at == ' ' || *s->at == '\\') {
			s->at++;
		} else if (*s->at == '(') {
			if (!group(s, depth))
				return false;
		} else if (!symbol(s)) {
			return false;
		}
	}
	return true;
}

bool mb_layout_parse(const char *text, struct mb_pos at, struct mb_arena *arena, struct mb_layout *ret,
                     struct mb_diags *diags)
{
	struct scanner s = { .text = text, .at = text, .pos = at, .diags = diags };

	if (text[0] == '\0')
		return fail(&s, text, "the layout is empty");
	if (strlen(text) > MAX_STEPS)
		return fail(&s, text, "the layout is too long");
	s.chunks = mb_arena_alloc(arena, MB_MAX_CHUNKS * sizeof s.chunks[0]);
	begin_stage(&s, text);
	if (!sequence(&s, 0))
		return false;
	*ret = (struct mb_layout){ mb_arena_strdup(arena, text), s.count, s.chunks };
	return true;
}
