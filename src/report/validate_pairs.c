/* Pairs of runs: layouts of one workload, and variants of a study. */
#include <math.h>

#include "report/json.h"
#include "report/number.h"
#include "report/validate_pairs.h"

static void add_json(cJSON *document, const char *name, const struct mb_pair *pairs, int count)
{
	cJSON *list = mb_json_array(document, name);

	for (int i = 0; i < count; i++) {
		const struct mb_pair *p = &pairs[i];
		cJSON *pair = mb_json_object(list, NULL);

		mb_json_text(pair, "first", p->first->trial->row->id);
		mb_json_text(pair, "second", p->second->trial->row->id);
		mb_json_number(pair, "measured", p->measured);
		mb_json_number(pair, "predicted", p->predicted);
		mb_json_bool(pair, "right", p->right);
	}
}

void mb_pairs_json(const struct mb_accuracy *a, cJSON *document)
{
	add_json(document, "layout_pairs", a->pairs, a->pair_count);
	add_json(document, "study_pairs", a->studies, a->study_count);
}

static int percent(int part, int of)
{
	return (int)lrint(100.0 * part / of);
}

void mb_pairs_text(const struct mb_accuracy *a, struct mb_text *ret)
{
	if (a->pair_count) {
		mb_text_printf(ret, "order  %d of %d pairs of layouts, more than 5 %% apart, are in the right order (%d %%)\n", a->pairs_right,
		               a->pair_count, percent(a->pairs_right, a->pair_count));
	}
	if (a->study_count) {
		mb_text_printf(ret, "studies  %d of %d pairs of variants go the right way, %d are within 10 %%\n", a->studies_right, a->study_count,
		               a->studies_close);
	}
}

static void add_row(const struct mb_pair *p, const char *verdict, struct mb_text *ret)
{
	mb_text_printf(ret, "| %s | %s | %.3f | %.3f | %+.1f | %s |\n", p->first->trial->row->id, p->second->trial->row->id, p->measured,
	               p->predicted, 100 * (p->predicted / p->measured - 1), verdict);
}

static void add_head(struct mb_text *ret)
{
	mb_text_add(ret, "| run | against | measured | predicted | error in % | |\n| --- | --- | ---: | ---: | ---: | --- |\n");
}

void mb_pairs_markdown(const struct mb_accuracy *a, struct mb_text *ret)
{
	if (a->pair_count) {
		mb_text_printf(ret, "\n%d of %d pairs of layouts in the right order, %d %%%s\n", a->pairs_right, a->pair_count,
		               percent(a->pairs_right, a->pair_count), a->pairs_right < a->pair_count ? "; in the wrong order:\n" : ".");
		if (a->pairs_right < a->pair_count)
			add_head(ret);
		for (int i = 0; i < a->pair_count; i++) {
			if (!a->pairs[i].right)
				add_row(&a->pairs[i], "wrong", ret);
		}
	}
	if (!a->study_count)
		return;
	mb_text_printf(ret, "\n%d of %d pairs of variants go the right way, %d are within 10 %%.\n\n", a->studies_right, a->study_count,
	               a->studies_close);
	add_head(ret);
	for (int i = 0; i < a->study_count; i++)
		add_row(&a->studies[i], a->studies[i].right ? "right" : "wrong", ret);
}
