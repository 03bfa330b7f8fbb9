#include "sweep/condition.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

enum { MAX_DEPTH = 64, MAX_WORD = 256 };

struct value {
	bool numeric;
	double number;
	char text[MAX_WORD];
};

struct parser {
	const char *text, *at;
	struct mb_pos pos;
	struct mb_diags *diags;
	mb_condition_lookup lookup;
	void *context;
	int depth;
	bool failed;
};

static bool fail(struct parser *p, const char *what)
{
	struct mb_pos pos = p->pos;

	if (p->failed)
		return false;
	p->failed = true;
	pos.column += (int)(p->at - p->text);

	struct mb_diag *d = mb_report(p->diags, MB_ERROR, pos, "where", "where: %s", what);

	snprintf(d->expected, sizeof d->expected, "a condition such as 'gpus >= 64 and gbs %% gpus == 0'");
	return false;
}

static void skip_space(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '/' || c == '-';
}

static bool take_word(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	skip_space(p);
	if (strncmp(p->at, word, n) != 0 || is_word(p->at[n]))
		return false;
	p->at += n;
	return true;
}

static bool take(struct parser *p, const char *sign)
{
	skip_space(p);
	if (strncmp(p->at, sign, strlen(sign)) != 0)
		return false;
	p->at += strlen(sign);
	return true;
}

static bool parse_or(struct parser *p, struct value *ret);

static bool parse_quoted(struct parser *p, struct value *ret)
{
	char quote = *p->at++;
	size_t n = strcspn(p->at, quote == '"' ? "\"" : "'");

	if (p->at[n] == '\0')
		return fail(p, "a quote is never closed");
	snprintf(ret->text, sizeof ret->text, "%.*s", (int)(n < MAX_WORD ? n : MAX_WORD - 1), p->at);
	ret->numeric = false;
	p->at += n + 1;
	return true;
}

/* A slash inside a name is only taken when no space stands before it: paths are names, "gbs / gpus" is a division. */
static bool parse_name(struct parser *p, struct value *ret)
{
	struct mb_operand operand;
	size_t n = 0;

	while (is_word(p->at[n]))
		n++;
	if (n == 0)
		return fail(p, *p->at ? "a name or a number is missing here" : "the condition ends too early");
	if (n >= MAX_WORD)
		return fail(p, "this name is too long");
	snprintf(ret->text, sizeof ret->text, "%.*s", (int)n, p->at);
	ret->numeric = false;
	if (p->lookup(p->context, ret->text, &operand)) {
		ret->numeric = operand.numeric;
		ret->number = operand.number;
		snprintf(ret->text, sizeof ret->text, "%s", operand.text);
	}
	p->at += n;
	return true;
}

static bool parse_atom(struct parser *p, struct value *ret)
{
	const char *end;
	bool ok;

	skip_space(p);
	if (p->depth >= MAX_DEPTH)
		return fail(p, "too many parentheses");
	if (take(p, "(")) {
		p->depth++;
		ok = parse_or(p, ret) && (take(p, ")") || fail(p, "')' is missing"));
		p->depth--;
		return ok;
	}
	if (*p->at == '"' || *p->at == '\'')
		return parse_quoted(p, ret);
	if (mb_parse_number(p->at, &end, &ret->number) && !is_word(*end)) {
		snprintf(ret->text, sizeof ret->text, "%.*s", (int)(end - p->at < MAX_WORD ? end - p->at : MAX_WORD - 1), p->at);
		ret->numeric = true;
		p->at = end;
		return true;
	}
	return parse_name(p, ret);
}

static bool numbers(struct parser *p, const struct value *a, const struct value *b)
{
	char what[2 * MAX_WORD + 64];

	if (a->numeric && b->numeric)
		return true;
	snprintf(what, sizeof what, "'%.80s' is not a number", a->numeric ? b->text : a->text);
	return fail(p, what);
}

static void set_number(struct value *v, double number)
{
	v->numeric = true;
	v->number = number;
	snprintf(v->text, sizeof v->text, "%.17g", number);
}

static bool parse_product(struct parser *p, struct value *ret)
{
	static const char *const signs[] = { "*", "/", "%" };
	struct value right;

	if (!parse_atom(p, ret))
		return false;
	for (;;) {
		int i = 0;

		while (i < 3 && !take(p, signs[i]))
			i++;
		if (i == 3)
			return true;
		if (!parse_atom(p, &right) || !numbers(p, ret, &right))
			return false;
		if (i > 0 && fabs(right.number) <= 0)
			return fail(p, "division by zero");
		set_number(ret, i == 0 ? ret->number * right.number : i == 1 ? ret->number / right.number : fmod(ret->number, right.number));
	}
}

static bool parse_sum(struct parser *p, struct value *ret)
{
	struct value right;

	if (!parse_product(p, ret))
		return false;
	for (;;) {
		bool plus = take(p, "+"), minus = !plus && take(p, "-");

		if (!plus && !minus)
			return true;
		if (!parse_product(p, &right) || !numbers(p, ret, &right))
			return false;
		set_number(ret, plus ? ret->number + right.number : ret->number - right.number);
	}
}

enum comparison { EQUAL, UNEQUAL, AT_MOST, AT_LEAST, BELOW, ABOVE, COMPARISONS };

static bool compare(const struct value *a, const struct value *b, int how, bool *ret)
{
	bool numeric = a->numeric && b->numeric;
	int order = numeric ? (a->number > b->number) - (a->number < b->number) : strcmp(a->text, b->text);

	switch (how) {
	case EQUAL: *ret = order == 0; return true;
	case UNEQUAL: *ret = order != 0; return true;
	case AT_MOST: *ret = order <= 0; return numeric;
	case AT_LEAST: *ret = order >= 0; return numeric;
	case BELOW: *ret = order < 0; return numeric;
	default: *ret = order > 0; return numeric;
	}
}

static bool parse_comparison(struct parser *p, struct value *ret)
{
	static const char *const signs[COMPARISONS] = { "==", "!=", "<=", ">=", "<", ">" };
	struct value right;
	int how = 0;
	bool holds;

	if (!parse_sum(p, ret))
		return false;
	while (how < COMPARISONS && !take(p, signs[how]))
		how++;
	if (how == COMPARISONS)
		return take(p, "=") ? fail(p, "'=' sets a key, '==' compares") : true;
	if (!parse_sum(p, &right))
		return false;
	if (!compare(ret, &right, how, &holds))
		return numbers(p, ret, &right);
	set_number(ret, holds);
	return true;
}

/* "true", "false" and numbers; anything else is neither. */
static bool truth(struct parser *p, const struct value *v, bool *ret)
{
	char what[MAX_WORD + 64];

	*ret = v->numeric ? fabs(v->number) > 0 : strcmp(v->text, "true") == 0;
	if (v->numeric || *ret || strcmp(v->text, "false") == 0)
		return true;
	snprintf(what, sizeof what, "'%.80s' is neither true nor false", v->text);
	return fail(p, what);
}

static bool parse_not(struct parser *p, struct value *ret)
{
	bool holds, negated = false;

	while (take_word(p, "not"))
		negated = !negated;
	if (!parse_comparison(p, ret))
		return false;
	if (!negated)
		return true;
	if (!truth(p, ret, &holds))
		return false;
	set_number(ret, !holds);
	return true;
}

static bool parse_chain(struct parser *p, const char *word, bool (*part)(struct parser *, struct value *), struct value *ret)
{
	bool all = strcmp(word, "and") == 0, left, right;
	struct value other;

	if (!part(p, ret))
		return false;
	while (take_word(p, word)) {
		if (!truth(p, ret, &left) || !part(p, &other) || !truth(p, &other, &right))
			return false;
		set_number(ret, all ? left && right : left || right);
	}
	return true;
}

static bool parse_and(struct parser *p, struct value *ret)
{
	return parse_chain(p, "and", parse_not, ret);
}

static bool parse_or(struct parser *p, struct value *ret)
{
	return parse_chain(p, "or", parse_and, ret);
}

bool mb_condition_holds(const char *text, struct mb_pos at, mb_condition_lookup lookup, void *context, bool *ret,
                        struct mb_diags *diags)
{
	struct parser p = { .text = text, .at = text, .pos = at, .diags = diags, .lookup = lookup, .context = context };
	struct value v;

	if (!parse_or(&p, &v))
		return false;
	skip_space(&p);
	if (*p.at)
		return fail(&p, "the condition should end here");
	return truth(&p, &v, ret);
}
