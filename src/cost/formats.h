/* What a number format costs in kernels and bytes. Counts read in Transformer Engine's source, not fitted. */
#ifndef MBSIM_COST_FORMATS_H
#define MBSIM_COST_FORMATS_H

#include "cost/op.h"

struct mb_format_row {
	enum mb_format format;
	double forward_kernels, backward_kernels;       /* of one linear: products, quantisation, amax, scale swizzles */
	double expert_kernels;          /* of one local expert's two linears, forward and backward */
	double quantise_bytes[2];       /* moved per element quantised, both copies: before Blackwell, Blackwell */
	double saved_bytes;             /* of one element of a saved quantised input */
	double weight_bytes[2];         /* of one quantised weight with all its copies: before Blackwell, Blackwell */
	double gather_frac;             /* all-gather of a quantised input relative to bf16 */
	double gather_gradient_frac;    /* gather of the output gradient in row-parallel layers, relative to bf16 */
	int row_multiple;               /* rows of an expert are padded to this */
};

const struct mb_format_row *mb_format_of(enum mb_precision precision);

#endif
