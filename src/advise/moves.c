#include "advise/moves.h"

#include <stdio.h>
#include <string.h>

#include "plan/rules_private.h"

struct list {
	const struct mb_query *q;
	struct mb_move *moves;
	int count;
};

static struct mb_changes *add(struct list *l, enum mb_family family)
{
	static const struct mb_changes nothing = { 0 };
	struct mb_move *m = &l->moves[l->count < MB_MAX_MOVES ? l->count++ : MB_MAX_MOVES - 1];

	m->family = family;
	m->changes = nothing;
	return &m->changes;
}

static void set(struct list *l, struct mb_changes *c, enum mb_key_id key, long long value)
{
	mb_changes_set(c, l->q, key, value);
}

static void add_one(struct list *l, enum mb_family family, enum mb_key_id key, long long value)
{
	if (mb_key_get(&l->q->c.run, &mb_keys[key]).i != value)
		set(l, add(l, family), key, value);
}

/* ---- recompute ---- */

/* Modules that a layer of the model has. */
static unsigned present_modules(const struct mb_case *c)
{
	struct mb_plan p = c->run.plan;
	unsigned found = 0;

	p.recompute = MB_RECOMPUTE_SELECTIVE;
	for (const struct mb_name *m = mb_module_names; m->name; m++) {
		p.recompute_modules = (unsigned)m->value;
		if (!mb_modules_without_effect(c, &p))
			found |= (unsigned)m->value;
	}
	return found;
}

static void add_selective(struct list *l, unsigned modules)
{
	mb_changes_recompute(add(l, MB_FAMILY_RECOMPUTE), l->q, MB_RECOMPUTE_SELECTIVE, modules, MB_METHOD_NONE, 0);
}

static void add_full(struct list *l, enum mb_method method, int layers)
{
	mb_changes_recompute(add(l, MB_FAMILY_FULL_RECOMPUTE), l->q, MB_RECOMPUTE_FULL, 0, method, layers);
}

static void add_recompute(struct list *l)
{
	const struct mb_plan *p = &l->q->c.run.plan;
	unsigned present = present_modules(&l->q->c), inside = MB_MOE_ACT | MB_SHARED_EXPERTS;
	int chunk = l->q->c.model.num_layers / (p->pp * p->vp > 0 ? p->pp * p->vp : 1);

	if (mb_attention_is_fused(&l->q->c.run))
		present &= ~(unsigned)MB_CORE_ATTN;
	for (unsigned set_of = 1; set_of < MB_FULL && l->count < 72; set_of++) {
		bool small = !(set_of & (set_of - 1)) || __builtin_popcount(set_of) <= 3 || set_of == present;

		if (!(set_of & ~present) && small && !((set_of & MB_MOE) && (set_of & inside)))
			add_selective(l, set_of);
	}
	if (p->recompute != MB_RECOMPUTE_NONE)
		mb_changes_recompute(add(l, MB_FAMILY_RECOMPUTE), l->q, MB_RECOMPUTE_NONE, 0, MB_METHOD_NONE, 0);
	add_full(l, MB_METHOD_UNIFORM, 1);
	for (int n = 1; n < chunk && n <= 16; n *= 2)
		add_full(l, MB_METHOD_BLOCK, n);
}

/* ---- layout ---- */

static const int virtual_stages[] = { 1, 2, 3, 4, 5, 6, 8, 10, 12, 16 };

enum { VIRTUALS = sizeof virtual_stages / sizeof virtual_stages[0], PIPELINES = 6 };

static void pipelines(const struct mb_query *q, int ret[PIPELINES])
{
	int pp = q->c.run.plan.pp, all[PIPELINES] = { pp, pp * 2, pp * 4, pp * 8, pp / 2, pp / 4 };

	memcpy(ret, all, sizeof all);
}

static bool is_pipeline(const struct mb_query *q, int pp, int vp)
{
	return pp >= 1 && vp >= 1 && (pp > 1 || vp == 1) && pp <= q->c.run.gpus && pp * vp <= q->c.model.num_layers;
}

/* A layout for so many chunks that stands behind those the user gave; -1: none. */
static int layout_of(const struct mb_query *q, int chunks)
{
	for (int i = q->c.layout_count - 1; i >= 0; i--) {
		if (q->c.layouts[i].chunk_count == chunks)
			return i;
	}
	return -1;
}

/*
 * Even shares, "Et*5|(t*4|)*14t*2mL"; the last chunk gives up a layer for the loss and one for each MTP depth.
 */
static bool layout_text(const struct mb_query *q, int chunks, char *text, size_t size)
{
	int ends = 1 + q->c.mtp_depth, units = q->c.model.num_layers + ends, base = units / chunks, more = units % chunks;
	int last = base - ends;
	size_t n;

	if (last < 0 || chunks < 2 || base < 1)
		return false;
	n = (size_t)snprintf(text, size, "Et*%d|", base + (more > 0));
	if (more > 1)
		n += (size_t)snprintf(text + n, size - n, "(t*%d|)*%d", base + 1, more - 1);
	if (chunks - 1 - (more > 0 ? more : 1) > 0)
		n += (size_t)snprintf(text + n, size - n, "(t*%d|)*%d", base, chunks - 1 - (more > 0 ? more : 1));
	if (last > 0)
		n += (size_t)snprintf(text + n, size - n, "t*%d", last);
	for (int i = 0; i < q->c.mtp_depth && n + 3 < size; i++)
		text[n++] = 'm';
	snprintf(text + n, size - n, "L");
	return true;
}

void mb_add_layouts(struct mb_query *q, struct mb_arena *arena)
{
	int given = q->c.layout_count, pps[PIPELINES];
	struct mb_layout *all = mb_arena_alloc(arena, (size_t)(given + PIPELINES * VIRTUALS) * sizeof *all);
	struct mb_diags ignored = { 0 };

	if (given > 0)
		memcpy(all, q->c.layouts, (size_t)given * sizeof *all);
	q->c.layouts = all;
	pipelines(q, pps);
	for (int i = 0; i < PIPELINES; i++) {
		for (int v = 0; v < VIRTUALS; v++) {
			char text[160];
			int chunks = pps[i] * virtual_stages[v];

			if (!is_pipeline(q, pps[i], virtual_stages[v]) || q->c.model.num_layers % chunks == 0 || layout_of(q, chunks) >= given)
				continue;
			if (layout_text(q, chunks, text, sizeof text)
			    && mb_layout_parse(mb_arena_strdup(arena, text), (struct mb_pos){ 0 }, arena, &all[q->c.layout_count], &ignored))
				q->c.layout_count++;
		}
	}
}

/* Other stage counts leave no room for a split that was spelled out. */
static void set_split(struct list *l, struct mb_changes *c, int chunks)
{
	set(l, c, MB_K_layout, l->q->c.model.num_layers % chunks ? layout_of(l->q, chunks) : -1);
	set(l, c, MB_K_first_layers, 0);
	set(l, c, MB_K_last_layers, 0);
	set(l, c, MB_K_acc_embed, false);
	set(l, c, MB_K_acc_loss, false);
}

static void add_pipeline(struct list *l)
{
	const struct mb_plan *p = &l->q->c.run.plan;
	int pps[PIPELINES];

	pipelines(l->q, pps);
	for (int i = 0; i < PIPELINES; i++) {
		for (int v = 0; v < VIRTUALS; v++) {
			int vp = virtual_stages[v];
			struct mb_changes *c;

			if (!is_pipeline(l->q, pps[i], vp) || (l->q->c.model.num_layers % (pps[i] * vp) && layout_of(l->q, pps[i] * vp) < 0))
				continue;
			c = add(l, MB_FAMILY_PIPELINE);
			set(l, c, MB_K_pp, pps[i]);
			set(l, c, MB_K_vp, vp);
			if (pps[i] != p->pp || vp != p->vp || l->q->c.model.num_layers % (p->pp * p->vp))
				set_split(l, c, pps[i] * vp);
		}
	}
}

static void add_sizes(struct list *l, enum mb_family family, enum mb_key_id key)
{
	long long now = mb_key_get(&l->q->c.run, &mb_keys[key]).i;
	const long long values[] = { now * 2, now * 4, now * 8, now / 2, now / 4, now / 8 };

	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct mb_changes *c;

		if (values[i] < 1 || (double)values[i] > mb_keys[key].max)
			continue;
		c = add(l, family);
		set(l, c, key, values[i]);
		if (key == MB_K_tp && values[i] > 1)
			set(l, c, MB_K_sp, true);
	}
}

/* ---- the rest ---- */

static void add_offload(struct list *l)
{
	static const unsigned groups[] = {
		MB_OFF_CORE_ATTN, MB_OFF_CORE_ATTN | MB_OFF_ATTN_PROJ, MB_OFF_MOE_ACT, MB_OFF_EXPERT_FC1, MB_OFF_MOE_ACT | MB_OFF_EXPERT_FC1,
		MB_OFF_QKV_LINEAR | MB_OFF_CORE_ATTN | MB_OFF_ATTN_PROJ | MB_OFF_MOE_ACT | MB_OFF_EXPERT_FC1,
	};
	bool moe = mb_has_moe(&l->q->c.model);

	for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
		struct mb_changes *c;

		if (!moe && (groups[i] & (MB_OFF_MOE_ACT | MB_OFF_EXPERT_FC1)))
			continue;
		c = add(l, MB_FAMILY_OFFLOAD);
		set(l, c, MB_K_fine_offload, true);
		set(l, c, MB_K_offload_modules, groups[i]);
	}
	add_one(l, MB_FAMILY_OPTIMIZER_OFFLOAD, MB_K_opt_offload, true);
}

static void add_features(struct list *l)
{
	const struct mb_plan *p = &l->q->c.run.plan;
	struct mb_changes *c;

	if (!l->q->c.run.expandable_segments)
		add(l, MB_FAMILY_ALLOCATOR)->expandable = true;
	if (l->q->c.stack.framework == MB_BRIDGE && (!l->q->c.run.cross_entropy_loss_fusion || l->q->c.run.cross_entropy_fusion_impl != MB_CE_TE)) {
		c = add(l, MB_FAMILY_LOSS);
		set(l, c, MB_K_ce_fusion, true);
		set(l, c, MB_K_ce_impl, MB_CE_TE);
	}
	add_one(l, MB_FAMILY_SHARD, MB_K_dist_opt, true);
	if (p->cuda_graph_impl != MB_GRAPH_NONE) {
		c = add(l, MB_FAMILY_GRAPH);
		set(l, c, MB_K_graph_impl, MB_GRAPH_NONE);
		set(l, c, MB_K_graph_scope, 0);
	}
	if (p->cuda_graph_impl == MB_GRAPH_NONE) {
		c = add(l, MB_FAMILY_GRAPH);
		set(l, c, MB_K_graph_impl, MB_GRAPH_TE);
		set(l, c, MB_K_graph_scope, MB_SCOPE_ATTN | (mb_has_moe(&l->q->c.model) ? MB_SCOPE_MOE_ROUTER | MB_SCOPE_MOE_PREPROCESS : 0)
		    | (mb_has_dense(&l->q->c.model) ? MB_SCOPE_MLP : 0));
	}
	if (p->tp > 1)
		add_one(l, MB_FAMILY_TP_OVERLAP, MB_K_tp_overlap, true);
	if (mb_has_shared(&l->q->c.model) && p->ep > 1)
		add_one(l, MB_FAMILY_OVERLAP, MB_K_shared_overlap, true);
	if (mb_has_moe(&l->q->c.model) && p->ep > 1 && !p->overlap_moe_expert_parallel_comm) {
		c = add(l, MB_FAMILY_OVERLAP);
		set(l, c, MB_K_ep_overlap, true);
		set(l, c, MB_K_shared_overlap, false);
	}
	if (p->overlap_moe_expert_parallel_comm) {
		c = add(l, MB_FAMILY_OVERLAP);
		set(l, c, MB_K_ep_overlap, false);
		set(l, c, MB_K_delay_wgrad, false);
		set(l, c, MB_K_early_release, false);
	}
	if (mb_has_moe(&l->q->c.model) && p->ep > 1 && p->backend != MB_BACKEND_HYBRIDEP) {
		c = add(l, MB_FAMILY_DISPATCHER);
		set(l, c, MB_K_dispatcher, MB_DISPATCH_FLEX);
		set(l, c, MB_K_backend, MB_BACKEND_HYBRIDEP);
	}
	if (!p->use_megatron_fsdp) {
		c = add(l, MB_FAMILY_FSDP);
		set(l, c, MB_K_fsdp, true);
		set(l, c, MB_K_sharding, MB_SHARD_FULL);
	}
}

static void add_learning(struct list *l)
{
	const struct mb_run *r = &l->q->c.run;
	struct mb_changes *c;

	if (r->optimizer == MB_ADAM) {
		c = add(l, MB_FAMILY_DTYPES);
		set(l, c, MB_K_pao, true);
		set(l, c, MB_K_exp_avg, MB_DT_BF16);
		set(l, c, MB_K_exp_avg_sq, MB_DT_BF16);
		c = add(l, MB_FAMILY_DTYPES);
		set(l, c, MB_K_pao, true);
		set(l, c, MB_K_exp_avg, MB_DT_BF16);
		set(l, c, MB_K_exp_avg_sq, MB_DT_BF16);
		set(l, c, MB_K_main_grads, MB_DT_BF16);
		set(l, c, MB_K_grad_fp32, false);
	}
	if (l->q->c.mtp_depth > 0)
		add_one(l, MB_FAMILY_MTP, MB_K_mtp, 0);
}

int mb_moves(const struct mb_query *q, struct mb_move ret[MB_MAX_MOVES])
{
	struct list l = { q, ret, 0 };
	int kept = 0;

	add_features(&l);
	add_recompute(&l);
	add_offload(&l);
	add_sizes(&l, MB_FAMILY_MICRO_BATCH, MB_K_mbs);
	add_pipeline(&l);
	if (mb_has_moe(&q->c.model))
		add_sizes(&l, MB_FAMILY_EXPERT, MB_K_ep);
	add_sizes(&l, MB_FAMILY_TENSOR, MB_K_tp);
	add_sizes(&l, MB_FAMILY_CONTEXT, MB_K_cp);
	add_learning(&l);
	add_sizes(&l, MB_FAMILY_GPUS, MB_K_gpus);
	for (int i = 0; i < l.count; i++) {
		if (mb_changes_count(&ret[i].changes) > 0)
			ret[kept++] = ret[i];
	}
	return kept;
}
