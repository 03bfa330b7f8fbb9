/* A machine: accelerators in NVLink domains on a scale-out network. SI units, per GPU and direction. */
#ifndef MBSIM_DESC_HARDWARE_H
#define MBSIM_DESC_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "desc/params.h"

enum mb_arch { MB_AMPERE, MB_HOPPER, MB_BLACKWELL, MB_RUBIN };

struct mb_hardware {
	char name[64];
	char gpu[64];
	const char *description;
	enum mb_arch architecture;
	bool ultra;                     /* Blackwell Ultra: B300, GB300 */
	bool superchip;                 /* Grace host: GB200, GB300, GH200 */
	bool announced;                 /* not yet shipped: figures from the vendor's announcement */
	int sm_count;
	int compute_capability;         /* 80, 90, 100, 103 */

	int64_t hbm_bytes;              /* as sold */
	int64_t usable_bytes;           /* what PyTorch reports as total capacity */
	double hbm_bytes_per_s;
	double l2_bytes;
	double bf16_flop_per_s, fp8_flop_per_s, fp4_flop_per_s;        /* dense; 0: the format is not supported */
	double mfu_bf16_flop_per_s, mfu_fp8_flop_per_s, mfu_fp4_flop_per_s;    /* the peaks MFU is quoted against */
	double tdp_w;

	int gpus_per_node, nvlink_domain;
	double nvlink_bytes_per_s;      /* 0: no NVLink, then PCIe carries traffic inside the node */
	double nic_bytes_per_s;         /* scale-out network, per GPU; 0: a single machine */
	double host_bytes_per_s;        /* PCIe or C2C, one direction */
	double oversubscription;        /* of the scale-out fabric: 1 = non-blocking */
	bool nvls;
	double price_usd_per_gpu_h;     /* 0: unknown */
	double non_torch_bytes;         /* CUDA context and modules outside PyTorch */

	struct mb_params params;                                /* the hardware half */
	struct mb_provenance provenance[MB_PARAM_COUNT];
	const char *sources;            /* one line for reports */
	const char *price_source;
};

struct mb_node;
struct mb_library;

/* `node`: the mapping of hardware/NAME.yaml. Its architecture file is read through `library`. */
bool mb_hardware_read(const struct mb_node *node, struct mb_library *library, struct mb_arena *arena,
                      struct mb_hardware *ret, struct mb_diags *diags);

/*
 * In-place changes for what-if questions: "hbm" 1.5x or "288 GB", "scale_out" 2x, "nvlink_domain" 36, "nvlink" 2x,
 * "oversubscription" 2, "price" "$2/h", "hbm_bandwidth", "bf16", "fp8", "fp4".
 */
bool mb_hardware_change(struct mb_hardware *hw, const char *name, const struct mb_node *value, struct mb_diags *diags);

#endif
