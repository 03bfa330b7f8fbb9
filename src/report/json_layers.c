#include <stdio.h>

#include "report/facet.h"
#include "report/json.h"

struct place {
	int index, stage, chunk;
};

/* The module whose recompute runs this operation again; NULL when it is kept. */
static const char *recomputed_by(const struct mb_op *op, unsigned in_force)
{
	unsigned modules = op->replayed_by & in_force;

	if (modules & MB_FULL)
		return "full";
	for (unsigned bit = 1; bit < MB_FULL; bit <<= 1) {
		if (modules & bit)
			return mb_value_name(mb_module_names, (int)bit);
	}
	return NULL;
}

static void add_operations(cJSON *layer, const struct mb_kind_cost *k, unsigned modules)
{
	cJSON *list = mb_json_array(layer, "operations");

	for (int i = 0; i < k->op_count; i++) {
		cJSON *o = mb_json_object(list, NULL);

		mb_json_text(o, "name", k->ops[i].name);
		mb_json_bytes(o, "saved_bytes", k->op_saved_bytes[i]);
		mb_json_number(o, "forward_flops", k->ops[i].forward_flops);
		mb_json_number(o, "forward_s", k->op_forward_s[i]);
		mb_json_number(o, "backward_s", k->op_backward_s[i]);
		mb_json_text(o, "recomputed_by", recomputed_by(&k->ops[i], modules));
	}
}

static void add_layer(cJSON *list, const struct mb_query *q, const struct mb_evaluation *e, int kind,
                      const char *prefix, struct place at)
{
	const struct mb_kind_cost *k = &e->kinds[kind];
	cJSON *o = mb_json_object(list, NULL);
	char words[80], name[96];

	mb_kind_words(&q->c.model, kind, words, sizeof words);
	snprintf(name, sizeof name, "%s%s", prefix, words);
	if (at.index >= 0)
		mb_json_int(o, "index", at.index);
	else
		mb_json_null(o, "index");
	mb_json_text(o, "kind", name);
	mb_json_int(o, "stage", at.stage);
	mb_json_int(o, "chunk", at.chunk);
	mb_json_bytes(o, "saved_bytes", k->saved_bytes);
	mb_json_number(o, "recompute_flops", k->replay_flops);
	mb_json_bytes(o, "dispatch_bytes", k->traffic[MB_TRAFFIC_EP_DISPATCH].bytes);
	mb_json_bytes(o, "combine_bytes", k->traffic[MB_TRAFFIC_EP_COMBINE].bytes);
	mb_json_number(o, "forward_s", k->forward_gpu_s);
	mb_json_number(o, "backward_s", k->backward_gpu_s);
	add_operations(o, k, e->dims.modules);
}

/* A depth of multi-token prediction: its projection, then its layers; they are numbered behind the decoder's. */
static void add_mtp(cJSON *list, const struct mb_query *q, const struct mb_evaluation *e, int depths, int *done,
                    struct place at)
{
	const struct mb_model *m = &q->c.model;

	for (int i = 0; i < depths; i++) {
		at.index = m->num_layers + (*done)++;
		add_layer(list, q, e, MB_KIND_MTP, "", at);
		for (int j = 0; j < m->mtp_layer_count; j++)
			add_layer(list, q, e, m->mtp_layers[j], "mtp ", at);
	}
}

void mb_json_layers(cJSON *document, const struct mb_query *q, const struct mb_evaluation *e)
{
	cJSON *list = mb_json_array(document, "layers");
	int pp = e->dims.pp, mtp_done = 0;

	for (int i = 0; i < e->split.chunk_count; i++) {
		const struct mb_chunk *chunk = &e->split.chunks[i];
		struct place at = { -1, i % pp, i / pp };

		if (chunk->embedding)
			add_layer(list, q, e, MB_KIND_EMBEDDING, "", at);
		for (int j = 0; j < chunk->layers; j++) {
			at.index = chunk->first_layer + j;
			add_layer(list, q, e, q->c.model.layers[at.index], "", at);
		}
		add_mtp(list, q, e, chunk->mtp, &mtp_done, at);
		at.index = -1;
		if (chunk->loss)
			add_layer(list, q, e, MB_KIND_HEAD, "", at);
	}
}
