#include "cost/split.h"

#include <string.h>

/* Layers of each stage where the user fixed the ends: the middle shares the rest. */
static int stage_layers(const struct mb_case *c, const struct mb_plan *p, int rank)
{
	int first = p->first_stage_layers, last = p->last_stage_layers;
	int middle = p->pp - (first > 0) - (last > 0), rest = c->model.num_layers - first - last;

	if (rank == 0 && first > 0)
		return first;
	if (rank == p->pp - 1 && last > 0)
		return last;
	return middle > 0 ? rest / middle : 0;
}

/*
 * Even split of L layers, with embedding and loss counted as layers if asked. Layers that do not divide (a rule) go to
 * the first chunks so that an illegal plan can still be sized.
 */
static int even_layers(const struct mb_case *c, const struct mb_plan *p, int chunk)
{
	int chunks = p->pp * p->vp, total = c->model.num_layers + p->account_for_embedding + p->account_for_loss;
	int layers = total / chunks + (chunk < total % chunks);

	if (chunk == 0 && p->account_for_embedding)
		layers--;
	if (chunk == chunks - 1 && p->account_for_loss)
		layers--;
	return layers;
}

static bool assign_layers(const struct mb_case *c, const struct mb_plan *p, struct mb_split *s)
{
	bool ends = p->first_stage_layers > 0 || p->last_stage_layers > 0;
	int next = 0;

	for (int j = 0; j < s->chunk_count; j++) {
		int layers = ends ? stage_layers(c, p, j % p->pp) / p->vp : even_layers(c, p, j);

		if (layers < 0 || next + layers > c->model.num_layers)
			return false;
		s->chunks[j] = (struct mb_chunk){ (uint16_t)next, (uint16_t)layers, 0, j == 0, j == s->chunk_count - 1 };
		next += layers;
	}
	s->chunks[s->chunk_count - 1].mtp = (uint8_t)c->mtp_depth;
	return next == c->model.num_layers;
}

static bool take_layout(const struct mb_case *c, const struct mb_layout *layout, struct mb_split *s)
{
	int layers = 0;

	if (layout->chunk_count != s->chunk_count)
		return false;
	memcpy(s->chunks, layout->chunks, (size_t)layout->chunk_count * sizeof s->chunks[0]);
	for (int j = 0; j < s->chunk_count; j++) {
		s->chunks[j].first_layer = (uint16_t)layers;
		layers += s->chunks[j].layers;
		if (s->chunks[j].mtp > 0)       /* one m stands for all depths, which share a stage */
			s->chunks[j].mtp = (uint8_t)c->mtp_depth;
	}
	return layers == c->model.num_layers;
}

static void count_kinds(const struct mb_case *c, struct mb_split *s, int j)
{
	const struct mb_chunk *chunk = &s->chunks[j];

	memset(s->kinds[j], 0, sizeof s->kinds[j]);
	for (int i = 0; i < chunk->layers; i++)
		s->kinds[j][c->model.layers[chunk->first_layer + i]]++;
	for (int i = 0; i < c->model.mtp_layer_count; i++)
		s->kinds[j][c->model.mtp_layers[i]] = (uint16_t)(s->kinds[j][c->model.mtp_layers[i]] + chunk->mtp);
	s->kinds[j][MB_KIND_EMBEDDING] = chunk->embedding;
	s->kinds[j][MB_KIND_MTP] = chunk->mtp;
	s->kinds[j][MB_KIND_HEAD] = chunk->loss;
}

/* Layers under full recompute or whole-layer offloading: uniform takes all, block and offloading the first of each chunk. */
static void count_treated(const struct mb_case *c, const struct mb_plan *p, struct mb_split *s, int j)
{
	const struct mb_chunk *chunk = &s->chunks[j];
	int first = chunk->layers;

	memset(s->treated[j], 0, sizeof s->treated[j]);
	if (p->recompute == MB_RECOMPUTE_FULL && p->recompute_method != MB_METHOD_BLOCK) {
		memcpy(s->treated[j], s->kinds[j], sizeof s->treated[j]);
		s->treated[j][MB_KIND_EMBEDDING] = s->treated[j][MB_KIND_HEAD] = s->treated[j][MB_KIND_MTP] = 0;
		return;
	}
	if (p->recompute == MB_RECOMPUTE_FULL)
		first = p->recompute_num_layers;
	else if (p->cpu_offloading)
		first = p->cpu_offloading_num_layers - chunk->first_layer;
	else
		return;
	for (int i = 0; i < chunk->layers && i < first; i++)
		s->treated[j][c->model.layers[chunk->first_layer + i]]++;
}

bool mb_split_fill(const struct mb_case *c, const struct mb_plan *p, struct mb_split *ret)
{
	bool ok;

	ret->chunk_count = p->pp * p->vp;
	if (ret->chunk_count < 1 || ret->chunk_count > MB_MAX_CHUNKS)
		return false;
	if (p->layout >= 0 && p->layout < c->layout_count)
		ok = take_layout(c, &c->layouts[p->layout], ret);
	else
		ok = assign_layers(c, p, ret);
	if (!ok)
		return false;
	for (int j = 0; j < ret->chunk_count; j++) {
		count_kinds(c, ret, j);
		count_treated(c, p, ret, j);
	}
	return true;
}
