/*
 * Random runs over the shipped models, machines and stacks, seeded. Most of them are drawn so that sizes fit together,
 * with a few keys changed; one in four takes any value of many keys.
 */
#ifndef MBSIM_TESTS_RANDOM_RUNS_H
#define MBSIM_TESTS_RANDOM_RUNS_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "desc/node.h"
#include "fixture.h"

enum { RANDOM_MODELS = 160, RANDOM_MACHINES = 64, RANDOM_STACKS = 24 };

struct random_runs {
	uint64_t state;
	struct mb_arena arena, scratch;
	struct mb_model *models;
	struct mb_hardware *machines;
	struct mb_stack *stacks;
	int model_count, machine_count, stack_count;
};

static inline unsigned draw(struct random_runs *r, unsigned below)
{
	r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(r->state >> 33) % below;
}

static inline const struct mb_node *random_name(struct random_runs *r, const char *name)
{
	struct mb_diags diags = { 0 };
	const struct mb_node *node = mb_node_read_text(name, strlen(name), "name", &r->arena, &diags);

	cr_assert(node != NULL, "%s", name);
	return node;
}

static inline void random_open(struct random_runs *r, uint64_t seed)
{
	static const char *const months[] = { "mlm-dev-2025-10", "mlm-lts-2025-10", "mlm-dev-2026-01", "mlm-dev-2026-06-01",
		"mlm-dev-2026-08" };
	struct mb_pos nowhere = { NULL, 0, 0 };
	const char *const *names;
	struct mb_library library;
	struct mb_diags d = { 0 };

	memset(r, 0, sizeof *r);
	r->state = seed;
	cr_assert(mb_library_open(&library, &d), "%s", d.item[0].text);
	r->models = mb_arena_alloc(&r->arena, RANDOM_MODELS * sizeof *r->models);
	r->machines = mb_arena_alloc(&r->arena, RANDOM_MACHINES * sizeof *r->machines);
	r->stacks = mb_arena_alloc(&r->arena, RANDOM_STACKS * sizeof *r->stacks);
	r->model_count = mb_library_list(&library, "models", &r->arena, &names);
	cr_assert(r->model_count > 0 && r->model_count <= RANDOM_MODELS);
	for (int i = 0; i < r->model_count; i++)
		cr_assert(mb_model_load(random_name(r, names[i]), &library, &r->arena, &r->models[i], &d), "%s", d.item[0].text);
	r->machine_count = mb_library_list(&library, "hardware", &r->arena, &names);
	cr_assert(r->machine_count > 0 && r->machine_count <= RANDOM_MACHINES);
	for (int i = 0; i < r->machine_count; i++)
		cr_assert(mb_hardware_load(random_name(r, names[i]), &library, &r->arena, &r->machines[i], &d), "%s", d.item[0].text);
	for (size_t i = 0; i < sizeof months / sizeof months[0]; i++)
		cr_assert(mb_stack_load(months[i], nowhere, &library, &r->arena, &r->stacks[r->stack_count++], &d), "%s", d.item[0].text);
	int count = mb_library_list(&library, "configs/stacks", &r->arena, &names);
	for (int i = 0; i < count && r->stack_count < RANDOM_STACKS; i++) {
		if (strncmp(names[i], "nemo-", 5) == 0)
			cr_assert(mb_stack_load(names[i], nowhere, &library, &r->arena, &r->stacks[r->stack_count++], &d), "%s", d.item[0].text);
	}
}

static inline void random_close(struct random_runs *r)
{
	mb_arena_free(&r->scratch);
	mb_arena_free(&r->arena);
}

static inline int random_power(struct random_runs *r, int most)
{
	return 1 << draw(r, (unsigned)most + 1);
}

static inline int random_size(struct random_runs *r)
{
	static const int sizes[] = { 1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 12, 16, 20, 32, 64, 100, 512 };

	return sizes[draw(r, sizeof sizes / sizeof sizes[0])];
}

static inline union mb_value random_value(struct random_runs *r, const struct mb_key *key)
{
	static const double shares[] = { 0, 0.1, 0.25, 0.5, 1, 1, 1.25, 2 };
	union mb_value v = { .i = 0 };
	int names = 0;

	while (key->names != NULL && key->names[names].name != NULL)
		names++;
	switch (key->type) {
	case MB_KEY_BOOL:
	case MB_KEY_TRISTATE:
		v.i = draw(r, 2);
		break;
	case MB_KEY_ENUM:
		v.i = key->names[draw(r, (unsigned)names)].value;
		break;
	case MB_KEY_SET:
		for (unsigned i = draw(r, 4); i > 0; i--)
			v.i |= key->names[draw(r, (unsigned)names)].value;
		break;
	case MB_KEY_NUMBER:
		v.d = fmin(fmax(shares[draw(r, 8)], key->min), key->max);
		break;
	case MB_KEY_INT:
	case MB_KEY_SIZES:
	case MB_KEY_LAYOUT:
	case MB_KEY_MODEL:
		v.i = draw(r, 4) == 0 ? 0 : random_size(r);
		if (v.i < (long long)key->min)
			v.i = (long long)key->min;
		if (key->max > 0 && v.i > (long long)key->max)
			v.i = (long long)key->max;
		break;
	}
	return v;
}

/* Sizes that may be anything. */
static inline void random_wild(struct random_runs *r, struct mb_run *run)
{
	static const enum mb_key_id sizes[] = { MB_K_tp, MB_K_pp, MB_K_vp, MB_K_cp, MB_K_ep, MB_K_etp, MB_K_mbs, MB_K_first_layers,
		MB_K_last_layers, MB_K_vp_group };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		if (draw(r, 3) == 0)
			mb_key_put(run, &mb_keys[sizes[i]], random_value(r, &mb_keys[sizes[i]]));
	run->gpus = random_size(r) * random_size(r);
	run->global_batch_size = random_size(r) * random_size(r) * random_size(r);
	run->seq_length = draw(r, 2) ? 512 * random_size(r) : random_size(r);
	run->plan.sequence_parallel = draw(r, 2);
}

/* Sizes that mostly divide what they must. */
static inline void random_tame(struct random_runs *r, const struct mb_model *m, struct mb_run *run)
{
	struct mb_plan *p = &run->plan;
	int dense, expert, replicas;

	p->tp = random_power(r, 3);
	p->cp = draw(r, 3) ? 1 : random_power(r, 3);
	p->pp = draw(r, 2) ? 1 : random_power(r, 4);
	while (p->pp > 1 && m->num_layers % p->pp && draw(r, 8))
		p->pp--;
	if (m->num_moe_experts > 0) {
		p->ep = random_power(r, 6);
		p->etp = draw(r, 4) ? 1 : random_power(r, 2);
	}
	if (p->pp > 1 && draw(r, 2))
		for (p->vp = 1 + (int)draw(r, 8); p->vp > 1 && (m->num_layers / p->pp) % p->vp; p->vp--)
			continue;
	p->sequence_parallel = p->tp > 1 && draw(r, 8);
	p->micro_batch_size = random_power(r, 2);
	dense = p->tp * p->cp;
	expert = p->ep * p->etp;
	run->gpus = (dense > expert ? dense : expert) * p->pp * random_power(r, 4);
	replicas = run->gpus / (dense * p->pp) > 0 ? run->gpus / (dense * p->pp) : 1;
	run->global_batch_size = replicas * p->micro_batch_size * p->pp * (1 + (int)draw(r, 8));
	run->seq_length = 1024 << draw(r, 6);
	if (m->max_position_embeddings > 0 && run->seq_length > m->max_position_embeddings)
		run->seq_length = m->max_position_embeddings;
}

/* Layers dealt to stages at random, as a user would spell a layout; sometimes the counts are wrong. */
static inline void random_layout(struct random_runs *r, struct mb_query *q)
{
	struct mb_plan *p = &q->c.run.plan;
	int stages = p->pp * p->vp, left = q->c.model.num_layers + (draw(r, 8) == 0), stage = 0;
	char text[4096];
	size_t n = 0;

	if (stages < 2 || stages > 256 || left > 1024)
		return;
	n += (size_t)snprintf(text, sizeof text, "E");
	for (; stage < stages; stage++) {
		int layers = stage == stages - 1 ? left : (int)draw(r, (unsigned)(2 * left / (stages - stage)) + 1);

		left -= layers;
		if (layers > 0)
			n += (size_t)snprintf(text + n, sizeof text - n, "t*%d", layers);
		if (stage < stages - 1)
			n += (size_t)snprintf(text + n, sizeof text - n, "|");
	}
	for (int i = 0; i < q->c.mtp_depth; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "m");
	snprintf(text + n, sizeof text - n, "L");
	p->layout = fixture_layout(&q->c, &r->scratch, text);
}

/* What the loader derives from silence. */
static inline void random_derive(struct mb_query *q)
{
	struct mb_run *run = &q->c.run;
	bool bridge = !run->megatron_args;

	if (run->grad_reduce_in_fp32 == MB_AUTO)
		run->grad_reduce_in_fp32 = run->precision != MB_FP16;
	if (run->fp8_param_gather == MB_AUTO)
		run->fp8_param_gather = bridge && (run->precision == MB_FP8_CS || run->precision == MB_FP8_MX);
	if (run->reuse_grad_buf_for_mxfp8_param_ag == MB_AUTO)
		run->reuse_grad_buf_for_mxfp8_param_ag = bridge && run->precision == MB_FP8_MX && run->fp8_param_gather == 1 &&
		                                         !run->plan.use_megatron_fsdp;
	run->lora_dim = 32;
	run->lora_targets = 0xf;
}

/* Overwrites q; what it points at lives until the next call. */
static inline void random_run(struct random_runs *r, struct mb_query *q)
{
	bool wild = draw(r, 4) == 0;
	unsigned changes = wild ? 2 + draw(r, 40) : draw(r, 6);
	struct mb_run *run = &q->c.run;

	mb_arena_free(&r->scratch);
	memset(q, 0, sizeof *q);
	q->c.model = r->models[draw(r, (unsigned)r->model_count)];
	q->c.hardware = r->machines[draw(r, (unsigned)r->machine_count)];
	q->c.stack = r->stacks[draw(r, (unsigned)r->stack_count)];
	fixture_run(run, q->c.stack.framework == MB_MEGATRON_LM);
	run->plan.layout = -1;
	if (draw(r, 3) == 0)
		run->precision = (enum mb_precision)draw(r, 8);
	else if (run->megatron_args)
		run->precision = MB_BF16;
	if (wild)
		random_wild(r, run);
	else
		random_tame(r, &q->c.model, run);
	for (; changes > 0; changes--) {
		enum mb_key_id id = (enum mb_key_id)(MB_K_sp + (int)draw(r, MB_KEY_COUNT - MB_K_sp));

		if (id == MB_K_layout || (!wild && (id == MB_K_etp || id == MB_K_vp)))
			continue;
		mb_key_put(run, &mb_keys[id], random_value(r, &mb_keys[id]));
		fixture_said(q, id);
	}
	run->plan.overlap_p2p_comm |= run->plan.vp > 1 && draw(r, 8) != 0;
	random_derive(q);
	mb_case_compile(&q->c);
	if (draw(r, 10) == 0)
		random_layout(r, q);
}

/* A number from the environment: how many runs, which seed. */
static inline long random_setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text != NULL && text[0] != '\0' ? strtol(text, NULL, 10) : otherwise;
}

/* The run, short enough to be typed again. */
static inline const char *random_tell(const struct mb_query *q)
{
	static char text[4096];
	const struct mb_run *run = &q->c.run;
	const struct mb_plan *p = &run->plan;
	size_t n = (size_t)snprintf(text, sizeof text, "model=%s hardware=%s stack=%s gpus=%d gbs=%d seq=%d precision=%s tp=%d cp=%d"
	                            " pp=%d vp=%d ep=%d etp=%d mbs=%d sp=%d",
	                            q->c.model.name, q->c.hardware.name, q->c.stack.name, run->gpus, run->global_batch_size, run->seq_length,
	                            mb_precision_names[run->precision].name, p->tp, p->cp, p->pp, p->vp, p->ep, p->etp, p->micro_batch_size,
	                            p->sequence_parallel);

	for (int i = MB_K_sp; i < MB_KEY_COUNT && n < sizeof text; i++) {
		char value[256];

		if (!q->set[i])
			continue;
		mb_key_format(&q->c, run, &mb_keys[i], value, sizeof value);
		n += (size_t)snprintf(text + n, sizeof text - n, " %s=%s", mb_keys[i].name, value);
	}
	return text;
}

#endif
