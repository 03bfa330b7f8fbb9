#include "plan/routing.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 400 };

static int moe_layers(const struct mb_model *m)
{
	int n = 0;

	for (int i = 0; i < m->num_layers; i++)
		n += m->kinds[m->layers[i]].ffn == MB_FFN_MOE;
	return n > 0 ? n : 1;
}

/*
 * One layer: popularities are log-normal, choices multinomial in them. Top-k without replacement caps an expert's share
 * at one choice a token; what is above goes to the others in proportion.
 */
static double busiest(const struct mb_model *m, int ranks, double choices, double skew, gsl_rng *rng, double *share, unsigned *load)
{
	size_t experts = (size_t)m->num_moe_experts, local = experts / (size_t)ranks;
	double sum = 0, most = 0, cap = 1.0 / m->moe_router_topk;

	for (size_t i = 0; i < experts; i++)
		sum += share[i] = exp(gsl_ran_gaussian_ziggurat(rng, skew));
	for (size_t i = 0; i < experts; i++)
		share[i] = fmin(share[i] / sum, cap);
	gsl_ran_multinomial(rng, experts, (unsigned)choices, share, load);
	for (size_t r = 0; r < (size_t)ranks; r++) {
		double rank = 0;

		for (size_t i = 0; i < local; i++)
			rank += load[r * local + i];
		most = fmax(most, rank);
	}
	return most * ranks / choices;
}

bool mb_routing_draw(const struct mb_model *m, int expert_ranks, double tokens, double skew, uint64_t seed, struct mb_routing *ret)
{
	double choices = fmin(floor(tokens * m->moe_router_topk), 4e9), worst[SAMPLES], *share;
	unsigned *load;
	gsl_rng *rng;

	if (m->num_moe_experts <= 0 || expert_ranks < 1 || m->num_moe_experts % expert_ranks || choices < 1)
		return false;
	share = calloc((size_t)m->num_moe_experts, sizeof *share);
	load = calloc((size_t)m->num_moe_experts, sizeof *load);
	rng = gsl_rng_alloc(gsl_rng_mt19937);
	if (share && load && rng) {
		gsl_rng_set(rng, (unsigned long)seed);
		for (int i = 0; i < SAMPLES; i++) {
			worst[i] = 1;
			for (int layer = 0; layer < moe_layers(m) && expert_ranks > 1; layer++)
				worst[i] = fmax(worst[i], busiest(m, expert_ranks, choices, skew, rng, share, load));
		}
		gsl_sort(worst, 1, SAMPLES);
		*ret = (struct mb_routing){ gsl_stats_quantile_from_sorted_data(worst, 1, SAMPLES, 0.5),
			gsl_stats_quantile_from_sorted_data(worst, 1, SAMPLES, 0.99), gsl_stats_mean(worst, 1, SAMPLES), SAMPLES };
	}
	gsl_rng_free(rng);
	free(share);
	free(load);
	return share && load && rng;
}
