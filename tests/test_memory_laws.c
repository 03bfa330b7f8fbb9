/*
 * Laws of the memory model over 100,000 random legal runs each, fewer where sanitizers or a build without optimisation
 * make them slow. MBSIM_RANDOM_RUNS and MBSIM_RANDOM_SEED ask for more, or others:
 *
 *     MBSIM_RANDOM_RUNS=100000 build-sanitize/tests/test_memory_laws
 */
#include <criterion/criterion.h>

#include "plan/rules.h"
#include "random_runs.h"
#include "sound.h"

#ifdef __has_feature
#define CLANG_SANITIZES __has_feature(address_sanitizer)
#else
#define CLANG_SANITIZES 0
#endif
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !CLANG_SANITIZES
#define RUNS 100000
#else
#define RUNS 20000
#endif

static struct random_runs runs;
static struct mb_query q;
static struct mb_evaluation *e, *other;

static void begin(void)
{
	random_open(&runs, (uint64_t)random_setting("MBSIM_RANDOM_SEED", 20260802));
	e = mb_evaluation_new();
	other = mb_evaluation_new();
	cr_assert(e != NULL && other != NULL);
}

static void done(void)
{
	mb_evaluation_free(e);
	mb_evaluation_free(other);
	random_close(&runs);
}

TestSuite(memory_laws, .init = begin, .fini = done);

static void next_legal(void)
{
	do {
		random_run(&runs, &q);
	} while (mb_first_broken(&q.c, &q.c.run.plan, MB_ALL_KEYS) != NULL);
}

/* ---- every term is a size, and they add up to the peak ---- */

Test(memory_laws, terms_add_up_and_nothing_is_negative)
{
	long count = random_setting("MBSIM_RANDOM_RUNS", RUNS);

	for (long i = 0; i < count; i++) {
		const char *what;

		next_legal();
		cr_assert(mb_evaluate(&q.c, &q.c.run.plan, e) != MB_ILLEGAL, "%s", random_tell(&q));
		what = unsound(e, &q.c.run.plan);
		cr_expect(what == NULL, "%s: %s", what, random_tell(&q));
	}
}

/* ---- recompute ---- */

static const unsigned modules[] = { MB_CORE_ATTN, MB_MLA_UP_PROJ, MB_LAYERNORM_MODULE, MB_MOE_ACT, MB_MLP, MB_MOE, MB_SHARED_EXPERTS,
	MB_GDN_NORM_OUT };

/* A random set of modules, or full recompute in one of its ways. */
static void recompute_more(struct mb_plan *p)
{
	p->recompute = draw(&runs, 3) ? MB_RECOMPUTE_SELECTIVE : MB_RECOMPUTE_FULL;
	p->recompute_method = draw(&runs, 2) ? MB_METHOD_UNIFORM : MB_METHOD_BLOCK;
	p->recompute_num_layers = 1 + (int)draw(&runs, 4);
	if (p->recompute == MB_RECOMPUTE_FULL)
		return;
	for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
		if (draw(&runs, 3) == 0)
			p->recompute_modules |= modules[i];
}

/* Saved activations of every chunk, and with them what a stage holds in flight. */
Test(memory_laws, recompute_never_raises_saved_activations)
{
	long count = random_setting("MBSIM_RANDOM_RUNS", RUNS);

	for (long i = 0; i < count; i++) {
		struct mb_plan without, with;

		next_legal();
		without = q.c.run.plan;
		without.cpu_offloading = without.fine_grained_activation_offloading = false;
		with = without;
		recompute_more(&with);
		if (without.recompute == MB_RECOMPUTE_FULL || with.recompute == MB_RECOMPUTE_FULL) {    /* layers by layers, not modules */
			without.recompute = MB_RECOMPUTE_NONE;
			without.recompute_modules = 0;
		}
		mb_evaluate(&q.c, &without, e);
		mb_evaluate(&q.c, &with, other);
		for (int k = 0; k < MB_KIND_COUNT; k++)
			cr_expect(!e->kinds[k].present || other->kinds[k].saved_bytes <= e->kinds[k].saved_bytes, "kind %d: %s", k, random_tell(&q));
		for (int j = 0; j < e->split.chunk_count; j++) {
			double rounding = 0;

			for (int k = 0; k < MB_KIND_COUNT; k++)         /* which blocks the allocator reuses is another matter */
				rounding += e->split.kinds[j][k] * other->kinds[k].rounding_bytes;
			cr_expect(other->chunk_saved_bytes[j] <= e->chunk_saved_bytes[j] + rounding, "chunk %d keeps %.0f, %.0f before: %s", j,
			          other->chunk_saved_bytes[j], e->chunk_saved_bytes[j], random_tell(&q));
		}
	}
}

/* ---- model states ---- */

/* Parameters of the whole model as the ranks hold them: vocabulary padded, copies where a pipeline needs them. */
static double counted_parameters(void)
{
	const struct mb_model *m = &q.c.model;
	double vocabulary = (double)e->dims.padded_vocab * m->hidden_size, plain = (double)m->vocab_size * m->hidden_size;
	int pp = q.c.run.plan.pp, copies = m->share_embeddings_and_output_weights && pp == 1 ? 1 : 2;
	int64_t total, mtp, active;

	mb_count_parameters(&q.c, &total, &mtp, &active);
	for (int j = 0; j < e->split.chunk_count; j++)          /* an MTP block away from the embedding has its own */
		if (e->split.chunks[j].mtp > 0 && j % pp != 0)
			copies++;
	return (double)total + (double)mtp - plain * (m->share_embeddings_and_output_weights ? 1 : 2) + vocabulary * copies;
}

/* A state over all ranks, against what its bytes a parameter make. */
static void expect_sum(enum mb_memory_term term, double bytes)
{
	double sum = 0;

	for (int s = 0; s < q.c.run.plan.pp; s++)
		sum += (double)q.c.run.gpus / q.c.run.plan.pp * e->stage_memory[s].between_terms[term];
	cr_expect(fabs(sum / bytes - 1) < 1e-9, "%s: %.17g, not %.17g: %s", mb_memory_terms[term].json, sum, bytes, random_tell(&q));
}

/* Weights and gradients on every replica; master weights and moments once, or on every replica as well. */
static void expect_states(void)
{
	const struct mb_plan *p = &q.c.run.plan;
	double gradient = q.c.run.grad_reduce_in_fp32 && q.c.run.precision != MB_FP16 ? 4 : 2, held = 0, once = 0, owned;

	for (int s = 0; s < p->pp; s++) {
		const struct mb_stage_memory *m = &e->stage_memory[s];

		held += (double)q.c.run.gpus / p->pp * (double)(m->dense_params + m->expert_params);
		once += (double)m->dense_params * p->tp + (double)m->expert_params * p->ep * p->etp;
	}
	owned = p->use_distributed_optimizer ? once : held;
	expect_sum(MB_MEM_weights, 2 * held);
	expect_sum(MB_MEM_gradients, gradient * held);
	expect_sum(MB_MEM_master, 4 * owned);
	expect_sum(MB_MEM_moments, 8 * owned);
	if (p->tp == 1 && p->etp == 1)
		cr_expect(fabs(once - counted_parameters()) < 1, "%.17g parameters, counted %.17g: %s", once, counted_parameters(),
		          random_tell(&q));
}

/* bf16 weights, fp32 or bf16 gradients, adam with fp32 states; one optimizer instance, nothing on the host. */
Test(memory_laws, states_over_all_ranks_are_parameters_times_bytes)
{
	long count = random_setting("MBSIM_RANDOM_RUNS", RUNS);

	for (long i = 0; i < count; i++) {
		struct mb_run *run = &q.c.run;

		next_legal();
		run->optimizer = MB_ADAM;
		run->use_precision_aware_optimizer = run->plan.optimizer_cpu_offload = run->plan.use_megatron_fsdp = false;
		run->fp8_param_gather = 0;
		run->num_distributed_optimizer_instances = 1;
		if (run->task == MB_LORA)
			run->task = MB_SFT;
		if (run->precision == MB_FP32)
			run->precision = MB_BF16;
		mb_case_compile(&q.c);
		mb_evaluate(&q.c, &run->plan, e);
		expect_states();
	}
}

/* ---- the micro-batch ---- */

/* What stays between steps, and what a forward needs, where neither blocks nor gathered weights are part of it. */
static void expect_twice(const struct mb_plan *p)
{
	static const enum mb_memory_term scaling[] = { MB_MEM_stage_input, MB_MEM_dispatch };

	for (int s = 0; s < p->pp; s++)
		for (size_t i = 0; i < sizeof scaling / sizeof scaling[0]; i++) {
			double one = e->stage_memory[s].between_terms[scaling[i]], two = other->stage_memory[s].between_terms[scaling[i]];

			cr_expect(fabs(two - 2 * one) <= 1e-9 * two, "stage %d %s: %.0f, doubled %.0f: %s", s, mb_memory_terms[scaling[i]].json, one,
			          two, random_tell(&q));
		}
	for (int j = 0; j < e->split.chunk_count && !p->use_megatron_fsdp && e->stage_memory[j % p->pp].terms[MB_MEM_rounding] <= 0; j++)
		cr_expect(fabs(other->chunk_forward_bytes[j] - 2 * e->chunk_forward_bytes[j]) <= 1e-9 * other->chunk_forward_bytes[j] + 65536,
		          "chunk %d forward: %.0f, doubled %.0f: %s", j, e->chunk_forward_bytes[j], other->chunk_forward_bytes[j], random_tell(&q));
}

/*
 * Twice the samples, twice every saved tensor, up to the 512 bytes of a block. Not proportional, and left out: padding
 * of expert rows and capacities, which round up; the copy that FlashAttention makes from two samples on; sines and
 * cosines, which are of positions.
 */
Test(memory_laws, doubling_the_micro_batch_doubles_activations)
{
	long count = random_setting("MBSIM_RANDOM_RUNS", RUNS);

	for (long i = 0; i < count; i++) {
		struct mb_run *run = &q.c.run;
		struct mb_case twice;

		next_legal();
		run->moe_pad_expert_input_to_capacity = run->moe_use_grouped_tensor = run->use_transformer_engine_op_fuser = false;
		run->precision = run->precision == MB_FP32 ? MB_FP32 : MB_BF16;
		run->fp8_param_gather = 0;
		run->plan.micro_batch_size *= 2;
		run->global_batch_size *= 2;
		mb_case_compile(&q.c);
		twice = q.c;
		twice.run.plan.micro_batch_size *= 2;
		twice.run.global_batch_size *= 2;
		mb_evaluate(&q.c, &run->plan, e);
		mb_evaluate(&twice, &twice.run.plan, other);
		expect_twice(&run->plan);
		for (int k = 0; k < MB_KIND_COUNT; k++) {
			for (int o = 0; e->kinds[k].present && o < e->kinds[k].op_count; o++) {
				const struct mb_op *one = &e->kinds[k].ops[o], *two = &other->kinds[k].ops[o];

				for (int s = 0; s < one->saved_count && strcmp(one->name, "rotary") != 0; s++)
					cr_expect(fabs(two->saved[s].bytes - 2 * one->saved[s].bytes) <= 1024,
					          "kind %d %s %d: %.0f, doubled %.0f: %s", k, one->name, s, one->saved[s].bytes, two->saved[s].bytes, random_tell(&q));
				cr_expect(fabs(two->forward_transient_bytes - 2 * one->forward_transient_bytes) <= 1024, "%s: %s", one->name, random_tell(&q));
			}
		}
	}
}

/* ---- size ---- */

static void enlarge(struct mb_model *m)
{
	int factor = 1 << draw(&runs, 5);

	m->hidden_size *= factor;
	m->ffn_hidden_size *= factor;
	m->num_attention_heads *= factor;
	m->num_query_groups *= factor;
	m->moe_ffn_hidden_size *= factor;
	m->moe_shared_expert_intermediate_size *= factor;
	m->vocab_size *= 1 + (int)draw(&runs, 8);
	if (m->num_moe_experts > 0)
		m->num_moe_experts *= 1 << draw(&runs, 3);
}

/* Up to 10^13 parameters and a million GPUs. */
Test(memory_laws, nothing_overflows)
{
	long count = random_setting("MBSIM_RANDOM_RUNS", RUNS), drawn = 0;
	double largest = 0;

	for (long evaluated = 0; evaluated < count && drawn < 20 * count; drawn++) {
		int64_t total, mtp, active;
		const char *what;

		random_run(&runs, &q);
		enlarge(&q.c.model);
		q.c.run.gpus *= 1 << draw(&runs, 6);
		q.c.run.global_batch_size = q.c.run.global_batch_size < 1 << 24 ? q.c.run.global_batch_size * 64 : 1 << 30;
		mb_case_compile(&q.c);
		mb_count_parameters(&q.c, &total, &mtp, &active);
		if (total > INT64_C(10000000000000) || !mb_evaluable(&q.c, &q.c.run.plan) || mb_first_broken(&q.c, &q.c.run.plan, MB_ALL_KEYS))
			continue;
		cr_expect(total > 0 && mtp >= 0 && active > 0 && active <= total, "%s", random_tell(&q));
		mb_evaluate(&q.c, &q.c.run.plan, e);
		what = unsound(e, &q.c.run.plan);
		cr_expect(what == NULL, "%s: %s", what, random_tell(&q));
		largest = fmax(largest, (double)total);
		evaluated++;
	}
	cr_expect(largest > 5e12, "the largest model has %g parameters", largest);
	cr_expect(drawn < 20 * count, "fewer than %ld of %ld are legal", count, drawn);
}
