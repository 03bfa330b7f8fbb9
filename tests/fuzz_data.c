/* What is read beside runs: sweep files, measured runs as JSON and as CSV, logs of PyTorch and of NCCL; the first byte chooses. */
#include "fuzz.h"

#include <string.h>

#include "advise/oom_log.h"
#include "calib/measured.h"
#include "calib/nccl_log.h"
#include "sweep/grid.h"

static bool read_sweep(const char *text, size_t size, struct mb_arena *arena, struct mb_diags *diags)
{
	const struct mb_node *root = mb_node_read_text(text, size, "fuzz", arena, diags);
	struct mb_sweep *sweep = mb_arena_alloc(arena, sizeof *sweep);

	return root != NULL && mb_sweep_from_node(root, "fuzz", arena, sweep, diags);
}

static bool read_row(const char *text, size_t size, struct mb_arena *arena, struct mb_diags *diags)
{
	const struct mb_node *root = mb_node_read_text(text, size, "fuzz", arena, diags);
	struct mb_measured_set set = { .arena = arena };

	if (root != NULL)
		mb_measured_row(root, arena, mb_measured_add(&set));
	return root != NULL;
}

static bool read_oom(const char *text, size_t size)
{
	struct mb_oom_log log;

	mb_oom_log_init(&log);
	mb_oom_log_read(text, size, &log);
	mb_oom_log_complete(&log);
	return true;
}

static const struct mb_hardware *machine(void)
{
	static struct mb_hardware hardware;
	static struct mb_arena arena;
	struct mb_diags diags = { 0 };

	if (!hardware.name[0] && !mb_hardware_load(mb_node_scalar(&arena, (struct mb_pos){ "fuzz", 0, 1 }, "dgx-h100"), fuzz_library(), &arena, &hardware, &diags))
		abort();
	return &hardware;
}

static bool read_nccl(const char *text, struct mb_diags *diags)
{
	struct mb_link_fit fit = { 0 };

	return !mb_nccl_recognise(text) || mb_nccl_fit(text, "fuzz", machine(), &fit, diags);
}

static bool read_any(int which, const char *text, size_t size, struct mb_arena *arena, struct mb_diags *diags)
{
	struct mb_measured_set set = { .arena = arena };

	if (which == 0)
		return read_sweep(text, size, arena, diags);
	if (which == 1)
		return read_row(text, size, arena, diags);
	if (which == 2)
		return memchr(text, '\0', size) != NULL || mb_measured_csv(text, "fuzz", &set, diags);
	if (which == 3)
		return read_oom(text, size);
	return read_nccl(text, diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mb_arena arena = { 0 };
	struct mb_diags diags = { 0 };

	if (size > 0 && !read_any(data[0] % 5, mb_arena_strndup(&arena, (const char *)data + 1, size - 1), size - 1, &arena, &diags) && diags.errors == 0)
		abort();
	mb_arena_free(&arena);
	return 0;
}
