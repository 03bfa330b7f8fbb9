/* Settings that belong together, in few words: the columns of a list of plans, and the words of a headline. */
#ifndef MBSIM_REPORT_FACET_H
#define MBSIM_REPORT_FACET_H

#include "plan/case.h"
#include "report/style.h"

enum { MB_FACET_KEYS = 6, MB_FACET_COUNT = 11 };

struct mb_facet {
	const char *head, *label;       /* of the column; in a sentence */
	int keys[MB_FACET_KEYS];        /* enum mb_key_id; ends with -1 */
	/* Words for a plan; "" when the setting does not apply. */
	void (*words)(const struct mb_case *c, const struct mb_plan *p, struct mb_text *ret);
};

extern const struct mb_facet mb_facets[MB_FACET_COUNT];

/* "llama3-70b on 64 x dgx-h100, fp8_cs, seq 8192, gbs 256"; several GPU counts as in the query. */
void mb_headline(struct mb_text *t, const struct mb_query *q);

/* "TP 4 PP 8 VP 5 MBS 1": sizes other than 1, the micro-batch always. */
void mb_layout_words(struct mb_text *t, const struct mb_plan *p);

/* "attention + moe", "mla + dense, windowed": what a layer of a kind is made of. */
void mb_kind_words(const struct mb_model *m, int kind, char *text, size_t size);

#endif
