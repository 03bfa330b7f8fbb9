#include "cost/roofline.h"

#include <math.h>
#include <stdint.h>

#include "base/larger.h"

/*
 * Output tiles of the libraries' kernels and how well each keeps the tensor cores fed, best first; 256 x 256 takes two
 * SMs on Blackwell. elements: of a tile, over its efficiency.
 */
struct tile {
	double inverse_m, inverse_n, inverse_sms, elements, efficiency;
};

#define TILE(m, n, sms, efficiency) { 1.0 / (m), 1.0 / (n), 1.0 / (sms), (m) * (double)(n) / (efficiency), efficiency }

static const struct tile hopper_tiles[] = {
	TILE(128, 256, 1, 1.0), TILE(256, 128, 1, 1.0), TILE(128, 128, 1, 0.92), TILE(64, 256, 1, 0.88), TILE(128, 64, 1, 0.75), { 0, 0, 0, 0, 0 }
};
static const struct tile blackwell_tiles[] = {
	TILE(256, 256, 2, 1.0), TILE(128, 256, 1, 0.96), TILE(128, 128, 1, 0.90), TILE(128, 64, 1, 0.75), { 0, 0, 0, 0, 0 }
};

/* ceil() of what is positive and fits 62 bits, without a call. */
static double whole(double x)
{
	double below = (double)(int64_t)x;

	return below < x ? below + 1 : below;
}

double mb_wave_efficiency(const struct mb_hardware *hw, double m, double n, double groups)
{
	const struct tile *tile = hw->architecture >= MB_BLACKWELL ? blackwell_tiles : hopper_tiles;
	double all = groups * m * n, least = INFINITY;

	for (; tile->efficiency > 0 && all < least * tile->efficiency; tile++) {        /* the last ones cannot be better */
		double slots = (double)(int64_t)(hw->sm_count * tile->inverse_sms);
		double filled = groups * whole(m * tile->inverse_m) * whole(n * tile->inverse_n) / slots;
		double waves = whole(filled);
		/* Persistent kernels blur the last wave; it costs at least half of one. */
		double spent = waves <= 1 ? 1 : filled > waves - 0.5 ? filled : waves - 0.5;
		double elements = spent * slots * tile->elements;

		least = elements < least ? elements : least;
	}
	return all / least;
}

double mb_format_peak(const struct mb_hardware *hw, enum mb_format format)
{
	switch (format) {
	case MB_FMT_FP32:
		return hw->bf16_flop_per_s / 2;         /* TF32 */
	case MB_FMT_FP8:
	case MB_FMT_MXFP8:
		return hw->fp8_flop_per_s > 0 ? hw->fp8_flop_per_s : hw->bf16_flop_per_s;
	case MB_FMT_FP4:
		return hw->fp4_flop_per_s > 0 ? hw->fp4_flop_per_s : mb_format_peak(hw, MB_FMT_FP8);
	case MB_FMT_BF16:
		break;
	}
	return hw->bf16_flop_per_s;
}

static double ceiling(const struct mb_params *k, enum mb_format format)
{
	switch (format) {
	case MB_FMT_FP8:
		return k->gemm_fp8_frac;
	case MB_FMT_MXFP8:
		return k->gemm_mxfp8_frac;
	case MB_FMT_FP4:
		return k->gemm_fp4_frac;
	case MB_FMT_BF16:
	case MB_FMT_FP32:
		break;
	}
	return k->gemm_bf16_frac;
}

double mb_stream_rate(const struct mb_case *c)
{
	return c->hardware.hbm_bytes_per_s * c->params.hbm_frac;
}

double mb_product_rate(const struct mb_case *c, enum mb_format format, bool grouped)
{
	return mb_format_peak(&c->hardware, format) * ceiling(&c->params, format) * c->power_factor * (grouped ? c->params.grouped_gemm_frac : 1);
}

/*
 * t = 2 m n k / (peak a (tdp/reference)^x wave k/(k + k_half)), not below the traffic of its operands. k_half grows with
 * the rate of the format: the same time to fill a pipeline is worth more products.
 */
double mb_gemm_seconds(const struct mb_case *c, double m, double n, double k, double groups, enum mb_format format, bool grouped)
{
	static const double width[] = { [MB_FMT_FP32] = 4, [MB_FMT_BF16] = 2, [MB_FMT_FP8] = 1, [MB_FMT_MXFP8] = 1, [MB_FMT_FP4] = 0.5 };
	const struct mb_params *p = &c->params;
	double half = p->gemm_k_half * 2 / mb_smaller(width[format], 2) * (grouped ? p->grouped_k_factor : 1);
	double rate = mb_product_rate(c, format, grouped) * mb_wave_efficiency(&c->hardware, m, n, groups) * k / (k + half);
	double bytes = (width[format] * (m * k + k * n) + 2 * m * n) * groups;

	if (m <= 0 || n <= 0 || k <= 0)
		return 0;
	return mb_larger(2 * m * n * k * groups / rate, bytes / mb_stream_rate(c));
}
