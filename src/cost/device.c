/*
 * Device memory beyond the live blocks of PyTorch's allocator. Figures are planning values: no published run states
 * allocated, reserved and device use together. [docs/model.md section 4]
 */
#include "cost/memory.h"

#include <math.h>

static const double MIB = 1048576;

/* Blocks reserved and free again: 2 % with expandable segments, 6 % otherwise (344 measured ranks: 1.03 to 1.08). */
static double reserved_factor(const struct mb_case *c)
{
	return c->run.expandable_segments ? 1.02 : 1.06;
}

/*
 * NCCL: 9.2 MiB a channel and connection with default buffers, 16 channels, ring; twice that where trees connect too.
 * NVLS adds a buffer for each communicator inside a domain. [nccl src/init.cc, transport/p2p.cc, transport/nvls.cc]
 */
static double communicator_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d)
{
	int groups = (p->tp > 1) + (p->cp > 1) + (d->dense_shard > 1) + (p->pp > 1) + (p->ep > 1) + (d->expert_dp > 1 && p->ep > 1);
	bool nvls = c->hardware.nvls && !c->run.nccl_nvls_disabled && (p->tp > 1 || d->dense_shard > 1);

	return groups * 16 * 9.2 * MIB + (nvls ? 256 * MIB : 0);
}

/*
 * DeepEP's NVLink and RDMA buffers by its own size hints [deep_ep/buffers, csrc/legacy/config.hpp]: 20 SMs, 10 channels.
 */
static double deepep_bytes(double hidden, double ep)
{
	double channels = 10, ranks = fmin(ep, 8), nodes = fmax(ep / 8, 1), meta = 8 + 128 * 8 + 128 * 4 + 128 * 4;
	double receive = ep <= 8 ? 256 : ep <= 64 ? 288 : ep <= 96 ? 480 : ep <= 128 ? 560 : 720;
	double nvlink = channels * ranks * (receive * (2 * hidden + meta) + (2 * nodes + 3) * 4);
	double rdma = ep <= 8 ? 0 : 2 * channels * nodes * (128 * (2 * hidden + meta + 16) + 18 * 4);

	return nvlink + rdma + 32 * MIB;
}

/* HybridEP sizes for every token of the group reaching one rank [hybrid-ep csrc/hybrid_ep/buffer]. */
static double hybridep_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, double hidden)
{
	double ranks = fmin(fmax(floor(c->domain / (double)p->etp), 1), p->ep), domains = ceil(p->ep / ranks);
	double t = d->local_tokens, local = d->experts_local, rows = t * ranks * domains;
	double bytes = rows * (2 * hidden + 4 * local * ranks) + rows * (hidden / 128) * 4;

	if (domains > 1)
		bytes += t * (2 * hidden + 4 * local * ranks * domains + hidden / 32)
		         + t * (domains - 1) * (2 * hidden + 4 * local * ranks + hidden / 32)
		         + 2 * t * (domains - 1) * (2 * hidden + 4 * local * ranks);
	return bytes;
}

static double dispatcher_bytes(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d)
{
	double hidden = c->model.moe_latent_size > 0 ? c->model.moe_latent_size : c->model.hidden_size;

	if (c->model.num_moe_experts == 0 || p->dispatcher != MB_DISPATCH_FLEX || p->ep * p->etp < 2)
		return 0;
	return p->backend == MB_BACKEND_DEEPEP ? deepep_bytes(hidden, p->ep) : hybridep_bytes(c, p, d, hidden);
}

/* A full-iteration graph keeps the activations' pool beside what the optimizer allocates; nothing is shared. */
static double pool_bytes(const struct mb_plan *p, const struct mb_stage_memory *m)
{
	return p->cuda_graph_impl == MB_GRAPH_FULL ? m->between_terms[MB_MEM_gradient_copy] : 0;
}

void mb_device_memory_fill(const struct mb_case *c, const struct mb_plan *p, const struct mb_dims *d, struct mb_stage_memory *m)
{
	m->reserved_bytes = m->peak_bytes * reserved_factor(c) + pool_bytes(p, m);
	m->device_used_bytes = m->reserved_bytes + c->hardware.non_torch_bytes + communicator_bytes(c, p, d) + dispatcher_bytes(c, p, d);
}
