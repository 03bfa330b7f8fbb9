/* Layers over stages: even, uneven and spelled out. */
#include "plan/rules_private.h"

const struct mb_layout *mb_plan_layout(const struct mb_case *c, const struct mb_plan *p)
{
	return p->layout >= 0 && p->layout < c->layout_count ? &c->layouts[p->layout] : NULL;
}

bool mb_uneven(const struct mb_plan *p)
{
	return p->first_stage_layers > 0 || p->last_stage_layers > 0;
}

int mb_split_units(const struct mb_case *c, const struct mb_plan *p)
{
	return c->model.num_layers + p->account_for_embedding + p->account_for_loss;
}

static int middle_stages(const struct mb_plan *p)
{
	return p->pp - (p->first_stage_layers > 0) - (p->last_stage_layers > 0);
}

static int middle_layers(const struct mb_case *c, const struct mb_plan *p)
{
	return c->model.num_layers - p->first_stage_layers - p->last_stage_layers;
}

/* Stages between those with their own count share the rest evenly, and each gets something. */
bool mb_middle_divides(const struct mb_case *c, const struct mb_plan *p)
{
	int stages = middle_stages(p), layers = middle_layers(c, p);

	if (mb_plan_layout(c, p) != NULL || !mb_uneven(p))
		return true;
	if (stages <= 0)
		return stages == 0 && layers == 0;
	return mb_divides(stages, layers);
}

bool mb_virtual_divides(const struct mb_case *c, const struct mb_plan *p)
{
	int stages = middle_stages(p);

	if (p->vp <= 1 || mb_plan_layout(c, p) != NULL)
		return true;
	if (!mb_uneven(p)) {
		int units = mb_split_units(c, p);

		return !mb_divides(p->pp, units) || mb_divides(p->vp, units / p->pp);
	}
	if (!mb_middle_divides(c, p))
		return true;
	if (p->first_stage_layers % p->vp != 0 || p->last_stage_layers % p->vp != 0)
		return false;
	return stages == 0 || mb_divides(p->vp, middle_layers(c, p) / stages);
}

int mb_layout_layers(const struct mb_layout *l)
{
	int layers = 0;

	for (int i = 0; i < l->chunk_count; i++)
		layers += l->chunks[i].layers;
	return layers;
}

int mb_layout_mtp(const struct mb_layout *l)
{
	int mtp = 0;

	for (int i = 0; i < l->chunk_count; i++)
		mtp += l->chunks[i].mtp;
	return mtp;
}

/* Prediction layers stay together, after every decoder layer, in the last virtual stage of a rank other than the first. */
static enum mb_layout_fault mtp_fault(const struct mb_layout *l, const struct mb_plan *p)
{
	int at = -1;

	for (int i = 0; i < l->chunk_count; i++) {
		if (at >= 0 && (l->chunks[i].layers > 0 || l->chunks[i].mtp > 0))
			return MB_LAYOUT_MTP_SPREAD;
		if (l->chunks[i].mtp > 0)
			at = i;
	}
	if (at < 0 || at == l->chunk_count - 1)
		return MB_LAYOUT_FITS;
	return at / p->pp == p->vp - 1 && at % p->pp != 0 ? MB_LAYOUT_FITS : MB_LAYOUT_MTP_PLACE;
}

/* [Megatron-LM megatron/core/transformer/pipeline_parallel_layer_layout.py] */
enum mb_layout_fault mb_layout_fault(const struct mb_case *c, const struct mb_plan *p)
{
	const struct mb_layout *l = mb_plan_layout(c, p);

	if (l == NULL)
		return MB_LAYOUT_FITS;
	if (p->pp <= 0 || l->chunk_count <= 0 || l->chunk_count != (int64_t)p->pp * p->vp)
		return MB_LAYOUT_STAGES;
	for (int i = 0; i < l->chunk_count; i++) {
		if (l->chunks[i].embedding != (i == 0) || l->chunks[i].loss != (i == l->chunk_count - 1))
			return MB_LAYOUT_ENDS;
	}
	if (mb_layout_layers(l) != c->model.num_layers)
		return MB_LAYOUT_LAYERS;
	if (mb_layout_mtp(l) != c->mtp_depth)
		return MB_LAYOUT_MTP;
	return mtp_fault(l, p);
}
