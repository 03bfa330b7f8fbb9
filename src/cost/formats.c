#include "cost/formats.h"

/*
 * Sources: kernels, Transformer Engine 2.9 to 2.17 pytorch/module and csrc (per-tensor current scaling launches amax,
 * scale and cast-transpose for each operand and, for experts, for each expert; block formats add scale swizzles);
 * bytes moved per element, the reads and writes of those kernels; saved bytes, the column-wise copy that stays for the
 * weight gradient with its scales; weight bytes, row- and column-wise copies (per-tensor formats need a transpose before
 * Blackwell, whose tensor cores take either layout); row multiples, megatron/core/transformer/moe/moe_utils.py.
 */
static const struct mb_format_row rows[] = {
	/*                          format        fwd bwd expert quant  saved            weight          gather gather-dy rows */
	[MB_BF16]   = { MB_FMT_BF16,  1, 2,  8,  { 0, 0 }, 2,               { 2, 2 },               1.0,  1.0, 1 },
	[MB_FP16]   = { MB_FMT_BF16,  1, 2,  8,  { 0, 0 }, 2,               { 2, 2 },               1.0,  1.0, 1 },
	[MB_FP8_CS] = { MB_FMT_FP8,   5, 6, 22,  { 6.0, 5.0 }, 1,               { 2, 1 },               0.5,  0.5, 16 },
	[MB_FP8_DS] = { MB_FMT_FP8,   2, 4, 14,  { 4.0, 4.0 }, 1,               { 2, 1 },               0.5,  0.5, 16 },
	[MB_FP8_SC] = { MB_FMT_MXFP8, 2, 4, 22,  { 4.5, 4.5 }, 1 + 4.0 / 128,   { 2, 2 },               0.5,  0.5, 16 },
	[MB_FP8_MX] = { MB_FMT_MXFP8, 4, 7, 24,  { 4.1, 4.1 }, 1 + 1.0 / 32,    { 2.0625, 2.0625 },     0.5,  1.0, 32 },
	[MB_NVFP4]  = { MB_FMT_FP4,   5, 9, 26,  { 5.5, 5.5 }, 0.5 + 1.0 / 16,  { 1.125, 1.125 },       0.28, 0.5, 32 },
	[MB_FP32]   = { MB_FMT_FP32,  1, 2,  8,  { 0, 0 }, 4,               { 4, 4 },               2.0,  2.0, 1 },
};

const struct mb_format_row *mb_format_of(enum mb_precision precision)
{
	return &rows[precision];
}
