/* The search against brute force on small random spaces: the same plans in the same order, and every point accounted for. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "fixture.h"
#include "search/walk.h"

enum { MAX_POINTS = 60000, TOP = 10 };

struct space {
	struct mb_query q;
	struct mb_arena arena;
	uint64_t seed;
};

static unsigned draw(struct space *s, unsigned below)
{
	s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->seed >> 33) % below;
}

static void set_params(struct mb_case *c)
{
	struct mb_params *h = &c->hardware.params, *s = &c->stack.params;

	h->gemm_bf16_frac = h->gemm_fp8_frac = h->gemm_mxfp8_frac = h->gemm_fp4_frac = 0.65;
	h->reference_power_w = 700;
	h->power_boost_frac = 0.25;
	h->gemm_k_half = 120;
	h->grouped_gemm_frac = 0.95;
	h->grouped_k_factor = 1.5;
	h->attention_frac = 0.5;
	h->attention_fp8_factor = 1.2;
	h->hbm_frac = 0.75;
	h->permute_frac = 0.7;
	h->cross_entropy_frac = 0.45;
	h->ssm_frac = 0.27;
	h->nvlink_collective_frac = h->nvlink_expert_frac = h->scale_out_collective_frac = h->scale_out_expert_frac = 0.75;
	h->expert_domain_latency_s = 40e-6;
	h->expert_scale_out_latency_s = 300e-6;
	h->collective_latency_s = 50e-6;
	h->context_latency_s = 10e-6;
	h->pipeline_latency_s = 40e-6;
	h->host_link_frac = 0.8;
	h->host_factor = 1;
	s->kernel_gap_s = 2e-6;
	s->graph_gap_factor = 0.5;
	s->host_op_s = 12e-6;
	s->host_graph_ops = 8;
	s->host_expert_kernel_s = 3e-6;
	s->host_dispatcher_s = 900e-6;
	s->host_dispatcher_graph_factor = 0.5;
	s->host_dispatcher_alltoall_factor = 1.5;
	s->routing_sync_s = 200e-6;
	s->routing_sync_graph_factor = 0.5;
	s->routing_sync_alltoall_factor = 1.5;
	s->host_overlap_factor = 1.69;
	s->host_overlap_flat_factor = 1.3;
	s->host_norm_power = 8;
	s->overlap_graph_frac = 0.9;
	s->overlap_eager_frac = 0.7;
	s->tp_overlap_exposed_frac = 0.3;
	s->tp_exposed_frac = 1;
	s->tp_hidden_frac = 0.2;
	s->tp_overlap_latency_factor = 0.5;
	s->cp_exposed_frac = 0.3;
	s->pp_exposed_frac = 0.2;
	s->dp_tail_frac = 0.1;
	s->dp_reduce_window_frac = 0.6;
	s->dp_gather_window_frac = 0.3;
	s->fsdp_exposed_frac = 0.2;
	s->main_grad_frac = 0.5;
	s->mla_rope_frac = 0.5;
	s->quantise_fp4_factor = s->expert_bias_factor = s->unfused_rope_factor = s->sink_attention_factor = 1;
	s->finetune_mean_tokens = 512;
	s->step_fixed_s = 0.05;
	s->step_tensor_s = 1e-5;
	s->band_frac = 0.1;
	s->band_wide_frac = 0.2;
}

/* Small models, so that the shape of the space and not its size is tested. */
static void small_model(struct mb_model *m, void (*model)(struct mb_model *), int layers)
{
	model(m);
	m->num_layers = layers;
	for (int i = 0; i < layers && m->family[0] != 'h' && m->kind_count == 2; i++)
		m->layers[i] = i >= 1;
}

static void alternatives(struct space *s, enum mb_key_id key, int count, const long long *values)
{
	union mb_value *v = mb_arena_alloc(&s->arena, (size_t)count * sizeof *v);

	for (int i = 0; i < count; i++)
		v[i].i = values[i];
	mb_key_put(&s->q.c.run, &mb_keys[key], v[0]);
	s->q.set[key] = count == 1;
	s->q.alternatives[key] = (struct mb_alternatives){ count > 1 ? count : 0, v };
}

/* The first of the values and a random subset of the others, in order. */
static void narrow(struct space *s, enum mb_key_id key, int count, const long long *values)
{
	long long chosen[16];
	int n = 0;

	for (int i = 0; i < count; i++)
		if (i == 0 || draw(s, 2))
			chosen[n++] = values[i];
	alternatives(s, key, n, chosen);
}
#define NARROW(key, ...) narrow(s, MB_K_##key, sizeof (long long[]){ __VA_ARGS__ } / sizeof(long long), (long long[]){ __VA_ARGS__ })

/* What shapes single layers, micro-batches and memory and is no axis: bounds must hold beside any of it. */
static void draw_model(struct space *s, bool moe)
{
	struct mb_model *m = &s->q.c.model;

	if (moe && draw(s, 4) == 0)
		m->moe_latent_size = m->hidden_size / 2;
	if (moe && draw(s, 4) == 0)
		m->add_bias_linear = m->moe_router_bias_linear = true;
	if (moe && draw(s, 3) == 0)
		m->moe_shared_expert_intermediate_size = 1024;
	if (draw(s, 4) == 0)
		m->share_embeddings_and_output_weights = true;
	if (m->mtp_layer_count > 0 && s->q.c.run.mtp_num_layers != 0 && draw(s, 2)) {
		s->q.c.run.mtp_num_layers = 2;
		m->mtp_use_repeated_layer = draw(s, 2);
	}
}

static void draw_experts(struct space *s)
{
	struct mb_run *r = &s->q.c.run;

	switch (draw(s, 4)) {
	case 0:
		r->moe_expert_capacity_factor = 1 + draw(s, 3) / 2.0;
		r->moe_pad_expert_input_to_capacity = draw(s, 2);
		break;
	case 1:
		r->moe_load_imbalance = 1 + draw(s, 4) / 2.0;
		break;
	case 2:
		r->use_transformer_engine_op_fuser = draw(s, 2);
		r->moe_router_padding_for_quantization = draw(s, 2);
		break;
	}
	r->moe_router_fusion = draw(s, 2);
	r->moe_permute_fusion = draw(s, 2);
}

static void draw_run(struct space *s, bool moe)
{
	static const enum mb_precision precisions[] = { MB_FP8_CS, MB_FP8_DS, MB_FP8_SC, MB_FP16 };
	struct mb_run *r = &s->q.c.run;

	if (moe)
		draw_experts(s);
	if (draw(s, 3) == 0)
		r->precision = precisions[draw(s, 4)];
	if (draw(s, 3) == 0) {
		r->task = draw(s, 2) ? MB_LORA : MB_SFT;
		r->lora_dim = 16;
		r->lora_targets = 1 + draw(s, 15);
		r->packed_sequence = draw(s, 2);
	}
	if (draw(s, 4) == 0)
		r->cuda_graph_warmup_steps = 0;
	if (draw(s, 3) == 0)
		r->plan.microbatch_group_size = 3 + (int)draw(s, 6);
	if (draw(s, 3) == 0)
		r->apply_rope_fusion = false;
	if (draw(s, 3) == 0)
		r->global_batch_size = 16 * (1 + (int)draw(s, 5));
	if (draw(s, 4) == 0)
		s->q.c.stack.params.host_op_s = 60e-6;
	if (draw(s, 4) == 0)
		s->q.c.stack.params.routing_sync_s = 3e-3;
}

/* A machine with no link between GPUs but the host's. */
static void draw_machine(struct space *s)
{
	struct mb_hardware *h = &s->q.c.hardware;

	switch (draw(s, 4)) {
	case 0:
		h->nvlink_domain = 1;
		h->nvlink_bytes_per_s = h->host_bytes_per_s;
		break;
	case 1:
		h->nvlink_domain = h->gpus_per_node = 4;
		h->nic_bytes_per_s = 12e9;
		break;
	}
}

static void make_space(struct space *s, uint64_t seed)
{
	static void (*const models[])(struct mb_model *) = { fixture_model_dense, fixture_model_moe, fixture_model_mla, fixture_model_hybrid };
	static const int layers[] = { 8, 12, 8, 52 };
	struct mb_case *c = &s->q.c;
	unsigned kind = (unsigned)(seed % 4);
	bool moe = kind > 0;

	memset(s, 0, sizeof *s);
	s->seed = seed * 2654435761u + 12345;
	fixture_case(c, models[kind], false);
	small_model(&c->model, models[kind], layers[kind]);
	if (kind == 2 && draw(s, 2))
		c->run.mtp_num_layers = 0;
	set_params(c);
	for (int i = 0; i < MB_KEY_COUNT; i++)
		s->q.set[i] = true;
	c->run.gpus = 16;
	c->run.global_batch_size = 64;
	c->hardware.usable_bytes = (int64_t)(4e9 * (2 + draw(s, 24)));
	NARROW(tp, 1, 2, 4);
	NARROW(pp, 1, 2, 4);
	NARROW(vp, 1, 2, 3);
	NARROW(mbs, 1, 2);
	s->q.set[MB_K_sp] = false;
	if (moe) {
		NARROW(ep, 1, 2, 4, 8);
		NARROW(ep_overlap, 0, 1);
	}
	switch (kind == 3 ? 3 : draw(s, 4)) {
	case 0:
		NARROW(first_layers, 0, 2, 3);
		break;
	case 1:
		NARROW(acc_loss, 0, 1);
		break;
	case 2:
		s->q.set[MB_K_first_layers] = s->q.set[MB_K_last_layers] = s->q.set[MB_K_acc_embed] = s->q.set[MB_K_acc_loss] = false;
		s->q.set[MB_K_layout] = draw(s, 2) > 0;
		break;
	}
	if (draw(s, 2)) {
		s->q.set[MB_K_recompute] = s->q.set[MB_K_method] = s->q.set[MB_K_recompute_layers] = s->q.set[MB_K_modules] = false;
	} else if (draw(s, 2)) {
		NARROW(recompute, 0, 2);
		NARROW(method, 0, 1, 2);
		NARROW(recompute_layers, 0, 1, 2);
	}
	if (draw(s, 2))
		s->q.set[MB_K_fine_offload] = s->q.set[MB_K_offload_modules] = s->q.set[MB_K_cpu_offloading] = s->q.set[MB_K_cpu_offloading_layers] = false;
	if (draw(s, 3) == 0)
		s->q.set[MB_K_graph_impl] = s->q.set[MB_K_graph_scope] = false;
	if (draw(s, 2))
		NARROW(grad_overlap, 0, 1);
	if (draw(s, 2))
		s->q.set[MB_K_opt_offload] = s->q.set[MB_K_opt_offload_fraction] = s->q.set[MB_K_fsdp] = s->q.set[MB_K_sharding] = false;
	if (moe && draw(s, 2))          /* buffers outside the allocator */
		s->q.set[MB_K_dispatcher] = s->q.set[MB_K_backend] = s->q.set[MB_K_shared_overlap] = false;
	if (draw(s, 3) == 0)            /* few micro-batches */
		c->run.global_batch_size = 16;
	if (s->q.set[MB_K_fine_offload] && draw(s, 3) == 0) {   /* as said, whether it helps or not */
		c->run.plan.fine_grained_activation_offloading = true;
		c->run.plan.offload_modules = kind > 0 ? MB_OFF_MOE_ACT : MB_OFF_CORE_ATTN;
	}
	if (draw(s, 2)) {
		draw_model(s, moe);
		draw_run(s, moe);
		draw_machine(s);
	}
	mb_case_compile(c);
}

/* ---- brute force: the candidates of every axis, one by one, by the definitions of search/space.h alone ---- */

struct brute {
	struct mb_walk *w;
	struct mb_evaluation *e;
	struct mb_best best;
	double considered, legal;
	struct mb_ranked *points;       /* that fit or are at risk, offloading too much included */
	int count, room;
};

static bool is_choice(const struct mb_space *s, enum mb_plan_key axis, int i, unsigned facts)
{
	const struct mb_choices *a = &s->axis[axis];

	if (mb_choice_is_candidate(&a->of[i], facts))
		return true;
	for (int j = 1; j < a->count; j++)
		if (mb_choice_is_candidate(&a->of[j], facts))
			return false;
	return i == 0;
}

static bool fits(struct brute *b, const struct mb_plan *p)
{
	return mb_first_broken(&b->w->s->c, p, MB_ALL_KEYS) == NULL && mb_evaluate(&b->w->s->c, p, b->e) == MB_FITS;
}

static bool moves_less(const struct mb_plan *a, const struct mb_plan *b)
{
	bool x = a->cpu_offloading || a->fine_grained_activation_offloading, y = b->cpu_offloading || b->fine_grained_activation_offloading;

	if (!x || !y)
		return !x && y;
	if (a->cpu_offloading != b->cpu_offloading)
		return false;
	if (a->cpu_offloading)
		return a->cpu_offloading_num_layers < b->cpu_offloading_num_layers;
	return a->offload_modules != b->offload_modules && (a->offload_modules & ~b->offload_modules) == 0;
}

static bool is_needless(struct brute *b, const struct mb_plan *p, unsigned facts)
{
	const struct mb_choices *a = &b->w->s->axis[MB_P_OFFLOAD];

	if (!p->cpu_offloading && !p->fine_grained_activation_offloading)
		return false;
	for (int i = 0; i < a->count; i++) {
		struct mb_plan less = *p;

		if (!moves_less(&a->of[i].plan, p) || !is_choice(b->w->s, MB_P_OFFLOAD, i, facts))
			continue;
		mb_axis_copy(MB_P_OFFLOAD, &a->of[i].plan, &less);
		if (fits(b, &less))
			return true;
	}
	return false;
}

static void try_point(struct brute *b, const struct mb_plan *p, unsigned facts)
{
	struct mb_ranked r = { .plan = *p, .gpus = b->w->s->c.run.gpus };

	b->considered++;
	if (mb_first_broken(&b->w->s->c, p, MB_ALL_KEYS))
		return;
	b->legal++;
	mb_evaluate(&b->w->s->c, p, b->e);
	r.verdict = b->e->verdict;
	r.step_s = b->e->step_s;
	r.peak_bytes = b->e->peak_bytes;
	r.device_used_bytes = b->e->device_used_bytes;
	r.margin_bytes = b->e->margin_bytes;
	if (r.verdict == MB_OUT_OF_MEMORY || r.margin_bytes < 0)
		return;
	if (b->count == b->room) {
		b->room = b->room ? 2 * b->room : 1024;
		b->points = realloc(b->points, (size_t)b->room * sizeof *b->points);
	}
	b->points[b->count++] = r;
	if (!is_needless(b, p, facts))
		mb_best_offer(&b->best, &r);
}

static void inner(struct brute *b, struct mb_plan p, int axis, unsigned facts)
{
	const struct mb_space *s = b->w->s;
	const struct mb_choices *a = &s->axis[axis];

	if (axis == MB_P_COUNT) {
		try_point(b, &p, facts);
		return;
	}
	if (axis == MB_P_OFFLOAD) {
		facts |= p.recompute == MB_RECOMPUTE_NONE ? MB_FACT_NO_RECOMPUTE : 0;
		facts |= p.recompute != MB_RECOMPUTE_FULL ? MB_FACT_NOT_FULL : 0;
	}
	for (int i = 0; i < a->count; i++) {
		if (!is_choice(s, (enum mb_plan_key)axis, i, facts))
			continue;
		if (a->of[i].growth != MB_GROWS_NOT && a->of[i].layers > mb_space_recompute_layers(s, p.pp, p.vp))
			continue;
		mb_axis_copy((enum mb_plan_key)axis, &a->of[i].plan, &p);
		inner(b, p, axis + 1, facts);
	}
}

static void outer(struct brute *b, struct mb_plan p, int level)
{
	static const enum mb_plan_key axes[] = { MB_P_TP, MB_P_CP, MB_P_PP, MB_P_EP, MB_P_ETP, MB_P_MBS, MB_P_VP };
	int *const at[] = { &p.tp, &p.cp, &p.pp, &p.ep, &p.etp, &p.micro_batch_size, &p.vp };
	int sizes[MB_MAX_SIZES], n;

	if (level == 7) {
		const struct mb_split_table *tables = NULL, *t = NULL;
		int count = mb_splits_tables(&b->w->splits, p.pp, &tables);

		for (int i = 0; i < count; i++)
			t = tables[i].vp == p.vp ? &tables[i] : t;
		for (int i = 0; t && i < t->count; i++) {
			mb_axis_copy(MB_P_SPLIT, &t->rows[i].plan, &p);
			p.overlap_p2p_comm = b->w->s->derive_p2p ? p.vp > 1 : p.overlap_p2p_comm;
			inner(b, p, MB_P_SP, mb_space_facts(b->w->s, &p));
		}
		return;
	}
	n = mb_space_sizes(b->w->s, axes[level], &p, sizes);
	for (int i = 0; i < n; i++) {
		*at[level] = sizes[i];
		outer(b, p, level + 1);
	}
}

static void compare(const char *what, uint64_t seed, const struct mb_best *found, const struct mb_best *expected)
{
	cr_expect(found->count == expected->count, "%s, seed %" PRIu64 ": %d plans, brute force %d", what, seed, found->count, expected->count);
	for (int i = 0; i < found->count && i < expected->count; i++)
		cr_expect(mb_plan_compare(&found->of[i].plan, &expected->of[i].plan) == 0 && !(found->of[i].step_s < expected->of[i].step_s)
		          && !(found->of[i].step_s > expected->of[i].step_s), "%s, seed %" PRIu64 ", rank %d: %.9g s (%.0f B), brute force %.9g s (%.0f B)", what,
		          seed, i + 1, found->of[i].step_s, found->of[i].peak_bytes, expected->of[i].step_s, expected->of[i].peak_bytes);
	cr_expect(found->has_fit == expected->has_fit, "%s, seed %" PRIu64 ": fit", what, seed);
}

static double accounted(const struct mb_tally *t)
{
	double sum = t->evaluated;

	for (int i = 0; i < MB_MAX_RULES; i++)
		sum += t->rules[i];
	for (int i = 0; i < MB_COUNTS; i++)
		sum += t->bounds[i];
	return sum;
}

/* The least peaks among plans not much slower than the fastest. */
static void check_memory(struct space *s, struct brute *b, uint64_t seed, const struct mb_search_options *options)
{
	struct mb_best found, expected;

	mb_best_init(&found, MB_AIM_PEAK, TOP, &s->arena);
	mb_best_init(&expected, MB_AIM_PEAK, TOP, &s->arena);
	if (b->best.has_fit)
		found.max_step_s = expected.max_step_s = b->best.fit.step_s * 1.05;
	cr_assert(mb_walk_run(b->w, &found, options));
	for (int i = 0; i < b->count; i++)
		mb_best_offer(&expected, &b->points[i]);
	compare("memory", seed, &found, &expected);
}

static bool is_near(const struct mb_search_result *r, const struct mb_plan *p)
{
	for (int i = 0; i < r->top_count; i++) {
		const struct mb_plan *o = &r->top[i].plan;

		if (o->tp == p->tp && o->cp == p->cp && o->pp == p->pp && o->vp == p->vp && o->ep == p->ep && o->etp == p->etp
		    && o->micro_batch_size == p->micro_batch_size && o->layout == p->layout && o->first_stage_layers == p->first_stage_layers
		    && o->last_stage_layers == p->last_stage_layers && o->account_for_embedding == p->account_for_embedding
		    && o->account_for_loss == p->account_for_loss)
			return true;
	}
	return false;
}

static bool is_same(double x, double y)
{
	return !(x < y || x > y);
}

/* By field: bytes between fields may hold anything. */
static bool is_same_row(const struct mb_ranked *x, const struct mb_ranked *y)
{
	return mb_plan_compare(&x->plan, &y->plan) == 0 && x->gpus == y->gpus && x->verdict == y->verdict && x->variants == y->variants
	       && x->tie == y->tie && is_same(x->step_s, y->step_s) && is_same(x->low_s, y->low_s) && is_same(x->high_s, y->high_s)
	       && is_same(x->mfu, y->mfu) && is_same(x->peak_bytes, y->peak_bytes) && is_same(x->device_used_bytes, y->device_used_bytes)
	       && is_same(x->margin_bytes, y->margin_bytes);
}

/* Of all plans near the listed ones; the limit of the search's front is a sum away from the one here. */
static void check_front(struct space *s, const struct brute *b, uint64_t seed, const struct mb_search_result *r)
{
	double fastest_s = b->best.has_fit ? b->best.fit.step_s : b->best.count > 0 ? b->best.of[0].step_s : 0, limit = fastest_s * 1.1;
	struct mb_best front;
	int count = 0;

	for (int i = 1; i < r->front_count; i++)
		cr_expect(r->front[i].step_s >= r->front[i - 1].step_s && r->front[i].peak_bytes < r->front[i - 1].peak_bytes, "seed %" PRIu64 ": front", seed);
	mb_best_init(&front, MB_AIM_FRONT, MB_MAX_FRONT, &s->arena);
	for (int i = 0; i < b->count; i++)
		if (b->points[i].step_s < limit * (1 - 1e-12) && is_near(r, &b->points[i].plan))
			mb_best_offer(&front, &b->points[i]);
	while (count < r->front_count && r->front[count].step_s < limit * (1 - 1e-12))
		count++;
	cr_expect(count == front.count, "seed %" PRIu64 ": a front of %d plans, brute force %d", seed, count, front.count);
	for (int i = 0; i < count && i < front.count; i++)
		cr_expect(mb_plan_compare(&r->front[i].plan, &front.of[i].plan) == 0 && is_same(r->front[i].step_s, front.of[i].step_s)
		          && is_same(r->front[i].peak_bytes, front.of[i].peak_bytes), "seed %" PRIu64 ": plan %d of the front", seed, i + 1);
}

static void check_whole(struct space *s, const struct brute *b, uint64_t seed)
{
	struct mb_search_options options = { .top = TOP, .threads = 1 };
	struct mb_search_result one, two;
	struct mb_diags diags = { 0 };

	cr_assert(mb_search(&s->q, &options, &s->arena, &one, &diags));
	options.threads = 2;
	cr_assert(mb_search(&s->q, &options, &s->arena, &two, &diags));
	cr_expect(one.top_count == two.top_count, "seed %" PRIu64 ": threads change the list", seed);
	for (int i = 0; i < one.top_count && i < two.top_count; i++)
		cr_expect(is_same_row(&one.top[i], &two.top[i]), "seed %" PRIu64 ": threads change rank %d", seed, i + 1);
	cr_expect((one.recommended >= 0) == b->best.has_fit, "seed %" PRIu64 ": recommended", seed);
	cr_expect(one.front_count == two.front_count, "seed %" PRIu64 ": threads change the front", seed);
	for (int i = 0; i < one.front_count && i < two.front_count; i++)
		cr_expect(is_same_row(&one.front[i], &two.front[i]), "seed %" PRIu64 ": threads change plan %d of the front", seed, i + 1);
	cr_expect(one.has_closest == (b->legal > 0 && b->count == 0), "seed %" PRIu64 ": closest", seed);
	check_front(s, b, seed, &one);
}

static void check_seed(uint64_t seed)
{
	struct mb_search_options options = { .top = TOP, .threads = 1 + (int)(seed % 2) };
	struct space *s = calloc(1, sizeof *s);
	struct mb_space *space = calloc(1, sizeof *space);
	struct mb_walk *w = calloc(1, sizeof *w);
	struct brute b = { .w = w, .e = mb_evaluation_new() };
	struct mb_best best;

	make_space(s, seed);
	mb_space_fill(&s->q, s->q.c.run.gpus, &s->arena, space);
	cr_assert(mb_walk_init(w, space, 1));
	mb_best_init(&best, MB_AIM_STEP, TOP, &s->arena);
	mb_best_init(&b.best, MB_AIM_STEP, TOP, &s->arena);
	if (w->rules.considered < MAX_POINTS) {
		cr_assert(mb_walk_run(w, &best, &options));
		outer(&b, s->q.c.run.plan, 0);
		cr_expect(!(fabs(b.considered - w->tally.considered) > 0), "seed %" PRIu64 ": %.0f points, brute force %.0f", seed,
		          w->tally.considered, b.considered);
		cr_expect(!(fabs(accounted(&w->tally) - w->tally.considered) > 0), "seed %" PRIu64 ": %.0f of %.0f accounted for", seed,
		          accounted(&w->tally), w->tally.considered);
		cr_expect(!(w->tally.unsound > 0), "seed %" PRIu64 ": %.0f plans below their bound", seed, w->tally.unsound);
		compare("step", seed, &best, &b.best);
		check_memory(s, &b, seed, &options);
		check_whole(s, &b, seed);
	}
	mb_walk_free(w);
	mb_evaluation_free(b.e);
	mb_arena_free(&s->arena);
	free(b.points);
	free(w);
	free(space);
	free(s);
}

Test(search, equals_brute_force, .timeout = 300)
{
	const char *from = getenv("MBSIM_TEST_SEED"), *count = getenv("MBSIM_TEST_COUNT");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1, n = count ? strtoull(count, NULL, 10) : 200;

	for (uint64_t seed = first; seed < first + n; seed++)
		check_seed(seed);
}

/* Bounds take it so: the wait for token counts is not shorter for what the backward recomputes beside the transfers. */
Test(search, recompute_is_never_faster)
{
	struct mb_case *c = calloc(1, sizeof *c);
	struct mb_evaluation *e = mb_evaluation_new();
	double plain_s;

	fixture_case(c, fixture_model_mla, false);
	small_model(&c->model, fixture_model_mla, 8);
	set_params(c);
	c->run.mtp_num_layers = 0;
	c->run.seq_length = 512;
	c->run.plan.overlap_moe_expert_parallel_comm = true;
	c->hardware.nvlink_bytes_per_s = 5e9;
	c->stack.params.host_op_s = 0;
	c->stack.params.host_dispatcher_s = 0.1;
	c->stack.params.routing_sync_s = 3e-3;
	mb_case_compile(c);
	mb_evaluate(c, &c->run.plan, e);
	plain_s = e->step_s;
	c->run.plan.recompute = MB_RECOMPUTE_SELECTIVE;
	c->run.plan.recompute_modules = MB_LAYERNORM_MODULE;
	mb_evaluate(c, &c->run.plan, e);
	cr_expect(plain_s > 0 && e->step_s >= plain_s, "%.9g s, without recompute %.9g s", e->step_s, plain_s);
	mb_evaluation_free(e);
	free(c);
}
