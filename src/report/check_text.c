#include <stdio.h>
#include <string.h>

#include "report/check.h"
#include "report/facet.h"
#include "report/number.h"
#include "report/violation.h"

int mb_check_minimum_gpus(const struct mb_plan *p)
{
	long long dense = (long long)p->tp * p->cp, expert = (long long)p->ep * p->etp;
	long long gpus = p->pp * (dense > expert ? dense : expert);

	return gpus > 1 << 30 ? 1 << 30 : (int)gpus;
}

/*
 * Ranks stand in Megatron's order tp-cp-ep-dp-pp (tp-cp-ep-pp-dp with use_tp_pp_dp_mapping): a group of `size` ranks
 * `stride` apart spans size * stride neighbours [Megatron-LM core/parallel_state.py, RankGenerator].
 */
void mb_check_groups(const struct mb_case *c, const struct mb_plan *p, struct mb_group ret[MB_GROUP_COUNT])
{
	long long gpus = c->run.gpus, stage = gpus / p->pp;
	long long dense = (long long)p->tp * p->cp, expert = (long long)p->ep * p->etp;
	bool pp_first = c->run.use_tp_pp_dp_mapping;
	long long dp_stride = pp_first ? p->pp : 1;
	const struct { const char *name; long long size, span; } groups[MB_GROUP_COUNT] = {
		{ "tp", p->tp, p->tp },
		{ "cp", p->cp, dense },
		{ "ep", p->ep, expert },
		{ "etp", p->etp, p->etp },
		{ "pp", p->pp, pp_first ? dense * p->pp : gpus },
		{ "dp", stage / dense, stage * dp_stride },
		{ "expert_dp", stage / expert, stage * dp_stride },
	};

	for (int i = 0; i < MB_GROUP_COUNT; i++) {
		bool aligned = groups[i].span <= c->domain && c->domain % groups[i].span == 0;

		ret[i] = (struct mb_group){ groups[i].name, (int)groups[i].size, groups[i].size > 1 && !aligned };
	}
}

static void layers_a_stage(const struct mb_check_report *x, struct mb_text *t)
{
	int pp = x->q->c.run.plan.pp;

	mb_text_add(t, "layers a stage      ");
	for (int stage = 0; stage < pp; stage++) {
		int layers = 0, mtp = 0;

		if (pp > 16 && stage == 6) {
			mb_text_add(t, ", ...");
			stage = pp - 1;
		}
		for (int chunk = stage; chunk < x->split->chunk_count; chunk += pp) {
			layers += x->split->chunks[chunk].layers;
			mtp += x->split->chunks[chunk].mtp;
		}
		mb_text_printf(t, "%s%d%s", stage ? ", " : "", layers, mtp ? " + MTP" : "");
	}
	mb_text_add(t, "\n");
}

static void list_groups(const struct mb_group *groups, bool crossing, struct mb_text *t)
{
	const char *comma = "";

	for (int i = 0; i < MB_GROUP_COUNT; i++) {
		if (groups[i].size < 2 || groups[i].crosses_domain != crossing)
			continue;
		mb_text_printf(t, "%s%s", comma,
		               strcmp(groups[i].name, "expert_dp") == 0 ? "expert dp" : groups[i].name);
		comma = ", ";
	}
	mb_text_add(t, comma[0] ? "\n" : "-\n");
}

static void legal(const struct mb_check_report *x, const struct mb_style *s, struct mb_text *t)
{
	const struct mb_run *run = &x->q->c.run;
	const struct mb_plan *p = &run->plan;
	struct mb_group groups[MB_GROUP_COUNT];

	mb_ink(t, s, MB_INK_GREEN, "Legal");
	if (x->violation_count) {
		mb_text_add(t, ", ");
		mb_violation_counts(t, x->violations, x->violation_count);
	}
	mb_text_printf(t, ". Needs at least %d GPUs = PP %d x max(TP %d x CP %d, EP %d x ETP %d).\n\n",
	               mb_check_minimum_gpus(p), p->pp, p->tp, p->cp, p->ep, p->etp);
	if (x->violation_count) {
		mb_violations_print(t, s, x->q, x->violations, x->violation_count);
		mb_text_add(t, "\n");
	}
	mb_check_groups(&x->q->c, p, groups);
	mb_text_printf(t, "data parallel       %d dense", groups[5].size);
	if (x->q->c.model.num_moe_experts)
		mb_text_printf(t, ", %d expert", groups[6].size);
	mb_text_printf(t, "\nmicro-batches       %d = gbs %d / (MBS %d x DP %d)\n",
	               run->global_batch_size / (p->micro_batch_size * groups[5].size), run->global_batch_size,
	               p->micro_batch_size, groups[5].size);
	if (x->split)
		layers_a_stage(x, t);
	mb_text_printf(t, "NVLink domains      %d GPUs used in each\n", x->q->c.domain);
	mb_text_add(t, "inside a domain     ");
	list_groups(groups, false, t);
	mb_text_add(t, "across domains      ");
	list_groups(groups, true, t);
}

static void illegal(const struct mb_check_report *x, const struct mb_style *s, struct mb_text *t)
{
	mb_ink(t, s, MB_INK_RED, "Illegal");
	mb_text_add(t, ": ");
	mb_violation_counts(t, x->violations, x->violation_count);
	mb_text_printf(t, ". It would stop at launch on all %s GPUs.\n\n", mb_number_count(x->q->c.run.gpus).s);
	mb_violations_print(t, s, x->q, x->violations, x->violation_count);
}

/* The layout, and whatever else an error points at that a search may choose: kept as given, it may leave nothing legal. */
static void opened_keys(const struct mb_check_report *x, struct mb_text *t)
{
	bool opened[MB_KEY_COUNT] = { [MB_K_tp] = true, [MB_K_pp] = true, [MB_K_vp] = true, [MB_K_ep] = true };

	mb_text_add(t, " tp=auto pp=auto vp=auto ep=auto");
	for (int i = 0; i < x->violation_count; i++) {
		const struct mb_violation *v = &x->violations[i];

		for (int k = 0; k < v->key_count && v->rule->severity == MB_RULE_ERROR; k++) {
			const struct mb_key *key = &mb_keys[v->keys[k]];

			if (key->open && !opened[v->keys[k]])
				mb_text_printf(t, " %s=auto", key->short_name ? key->short_name : key->name);
			opened[v->keys[k]] = true;
		}
	}
}

static void next_line(const struct mb_check_report *x, const struct mb_style *s, struct mb_text *t)
{
	mb_text_add(t, "\n");
	mb_ink(t, s, MB_INK_DIM, "next  ");
	if (x->legal) {
		mb_text_printf(t, "mbsim estimate %s\n", x->args);
	} else if (x->has_combined && x->combined.count) {
		mb_text_printf(t, "%s, legal:\n      mbsim check %s ",
		               x->combined.count > 1 ? "all fixes" : "with the fix", x->args);
		mb_fix_words(t, x->q, &x->combined);
		mb_text_add(t, "\n");
	} else {
		mb_text_printf(t, "mbsim search %s", x->args);
		opened_keys(x, t);
		mb_text_add(t, "\n");
	}
}

void mb_check_text(const struct mb_check_report *x, const struct mb_style *s, struct mb_text *ret)
{
	struct mb_text left = { 0 }, right = { 0 };

	mb_text_printf(&left, "%s: %s on %s x ", x->name, x->q->c.model.name, mb_number_count(x->q->c.run.gpus).s);
	mb_text_printf(&left, "%s, ", x->q->c.hardware.name);
	mb_layout_words(&left, &x->q->c.run.plan);
	mb_text_printf(&right, "stack %s", x->q->c.stack.name);
	mb_justify(ret, s, left.data, right.data);
	mb_text_free(&left);
	mb_text_free(&right);
	if (x->legal)
		legal(x, s, ret);
	else
		illegal(x, s, ret);
	if (!s->quiet)
		next_line(x, s, ret);
}
