#include "calib/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"

/* ---- what a source means by TFLOP/s ---- */

/*
 * Scores above the diagonal, which Bridge's count leaves out: 4 s d for the two products of a head's forward, half of
 * it above the diagonal, three times that for a step.
 */
static double upper_scores(const struct mb_case *c)
{
	const struct mb_model *m = &c->model;
	double layers = 0;

	for (int i = 0; i < m->num_layers; i++) {
		enum mb_mixer mixer = m->kinds[m->layers[i]].mixer;

		layers += mixer == MB_MIXER_ATTENTION || mixer == MB_MIXER_MLA;
	}
	double width = m->multi_latent_attention ? (m->qk_head_dim + m->qk_pos_emb_head_dim + m->v_head_dim) / 2.0 : m->kv_channels;

	return 6.0 * c->run.seq_length * m->num_attention_heads * width * layers;
}

/*
 * FLOPs of a token as the source counts them. The papers of 2021 count a fourth forward for full recompute, of all but
 * the output layer:  F = 96 B s l h^2 (1 + s/(6h) + V/(16 l h))   [Narayanan et al. 2021, arXiv:2104.04473, equation 3]
 */
static double counted_flops(const struct mb_case *c, enum mb_flop_count flops, double bridge)
{
	double full = bridge + upper_scores(c);
	double logits = 6.0 * c->model.hidden_size * c->model.vocab_size;

	switch (flops) {
	case MB_FLOPS_BRIDGE:
		return bridge;
	case MB_FLOPS_FULL_SCORES:
		return full;
	case MB_FLOPS_EXECUTED:
		return (full - logits) * 4 / 3 + logits;
	}
	return bridge;
}

/* ---- rows to trials ---- */

const char *mb_trial_gap(const struct mb_trial *t)
{
	const struct mb_run *run = &t->q->c.run;

	if (!run->megatron_args)
		return NULL;
	if (run->rerun_mode_validate)
		return "a step that is run twice is not modelled";
	if (run->cross_entropy_loss_fusion && t->q->c.stack.month <= MB_MONTH_2025_10 && t->q->c.hardware.compute_capability == 80)
		return "buffers cloned while compiling the fused loss are not modelled";
	return NULL;
}

static void skip(struct mb_trials *ret, const struct mb_measured *row, const char *why)
{
	struct mb_measured *s = &ret->skipped[ret->skipped_count++];

	*s = *row;
	s->skip = why;
}

static void find_time(struct mb_trial *t, const struct mb_evaluation *e)
{
	const struct mb_run *run = &t->q->c.run;
	double tokens = (double)run->global_batch_size * run->seq_length / run->gpus, measured = t->row->value[MB_M_STEP];

	t->model_flops = e->model_flops_per_token;
	if (measured > 0)
		t->measured_s = measured;
	else if (t->row->flop_per_s > 0)
		t->measured_s = counted_flops(&t->q->c, t->row->flops, t->model_flops) * tokens / t->row->flop_per_s;
	if (t->measured_s > 0)
		t->tokens_per_s = tokens / t->measured_s;
}

/* The first error; its place is a line of the row's own text, and not the file's. */
static const char *first_error(const struct mb_diags *diags, struct mb_arena *arena)
{
	for (int i = 0; i < diags->count; i++) {
		const struct mb_diag *d = &diags->item[i];

		if (d->severity == MB_ERROR)
			return d->nearest[0] ? mb_arena_printf(arena, "%s, did you mean '%s'?", d->text, d->nearest) : mb_arena_strdup(arena, d->text);
	}
	return "its configuration cannot be read";
}

static const char *load(const struct mb_measured *row, struct mb_library *library, struct mb_arena *arena,
                        struct mb_evaluation *e, struct mb_trial *t)
{
	struct mb_diags diags = { 0 };
	const char *gap;

	*t = (struct mb_trial){ .row = row, .q = mb_arena_alloc(arena, sizeof *t->q) };
	if (!mb_query_from_node(row->run, library, arena, t->q, &diags))
		return first_error(&diags, arena);
	if ((gap = mb_trial_gap(t)))
		return gap;
	if (!mb_evaluable(&t->q->c, &t->q->c.run.plan))
		return "its sizes do not fit together";
	mb_evaluate(&t->q->c, &t->q->c.run.plan, e);
	if (!isfinite(e->step_s) || e->step_s <= 0)
		return "it has no finite step time";
	find_time(t, e);
	return NULL;
}

void mb_trials_fill(const struct mb_measured_set *set, struct mb_library *library, struct mb_evaluation *e, struct mb_trials *ret)
{
	size_t room = (size_t)set->count + 1;

	*ret = (struct mb_trials){ .trials = mb_arena_alloc(set->arena, room * sizeof *ret->trials),
		.skipped = mb_arena_alloc(set->arena, room * sizeof *ret->skipped) };
	for (int i = 0; i < set->count; i++) {
		const struct mb_measured *row = &set->rows[i];
		const char *why = row->skip ? row->skip : load(row, library, set->arena, e, &ret->trials[ret->count]);

		if (why)
			skip(ret, row, why);
		else
			ret->count++;
	}
}

/* ---- a trial ---- */

double mb_trial_predicted(const struct mb_trial *t, const struct mb_evaluation *e, enum mb_measure measure)
{
	int stage = t->row->last_stage ? t->q->c.run.plan.pp - 1 : e->peak_stage;
	const struct mb_stage_memory *memory = &e->stage_memory[stage];

	switch (measure) {
	case MB_M_STEP:
		return e->step_s;
	case MB_M_BETWEEN:
		return memory->between_bytes;
	case MB_M_FIRST_PEAK:
		return memory->first_step_peak_bytes;
	case MB_M_PEAK:
		return t->row->last_stage ? memory->peak_bytes : e->peak_bytes;
	case MB_M_COUNT:
		break;
	}
	return NAN;
}

const char *mb_trial_family(const struct mb_trial *t)
{
	const struct mb_model *m = &t->q->c.model;
	bool hybrid = false;

	if (t->row->family[0])
		return t->row->family;
	for (int i = 0; i < m->kind_count; i++)
		hybrid = hybrid || m->kinds[i].mixer == MB_MIXER_MAMBA || m->kinds[i].mixer == MB_MIXER_GDN;
	return hybrid ? "hybrid" : m->num_moe_experts > 0 ? "moe" : "dense";
}

const char *mb_trial_precision(const struct mb_trial *t)
{
	const char *name = mb_value_name(mb_precision_names, (int)t->q->c.run.precision);

	return name ? name : "";
}

double mb_trial_peak(const struct mb_trial *t)
{
	const struct mb_hardware *hw = &t->q->c.hardware;

	switch (t->q->c.run.precision) {
	case MB_NVFP4:
		return hw->mfu_fp4_flop_per_s;
	case MB_FP8_CS:
	case MB_FP8_DS:
	case MB_FP8_SC:
	case MB_FP8_MX:
		return hw->mfu_fp8_flop_per_s;
	case MB_BF16:
	case MB_FP16:
	case MB_FP32:
		break;
	}
	return hw->mfu_bf16_flop_per_s;
}
