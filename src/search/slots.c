/* Kinds of layers that a model has, and how many of each. */
#include "search/splits.h"

void mb_slots_fill(const struct mb_case *c, struct mb_slots *ret)
{
	ret->count = 0;
	for (int k = 0; k < c->model.kind_count; k++)
		ret->kind[ret->count++] = (uint8_t)k;
	ret->kind[ret->count++] = MB_KIND_EMBEDDING;
	if (c->mtp_depth > 0)
		ret->kind[ret->count++] = MB_KIND_MTP;
	ret->kind[ret->count++] = MB_KIND_HEAD;
}

int mb_layers_of_kind(const struct mb_case *c, int kind)
{
	int n = kind >= MB_MAX_LAYER_KINDS;

	if (kind == MB_KIND_MTP)
		return c->mtp_depth;
	for (int i = 0; kind < MB_MAX_LAYER_KINDS && i < c->model.num_layers; i++)
		n += c->model.layers[i] == kind;
	for (int i = 0; kind < MB_MAX_LAYER_KINDS && i < c->model.mtp_layer_count; i++)
		n += c->model.mtp_layers[i] == kind ? c->mtp_depth : 0;
	return n;
}
