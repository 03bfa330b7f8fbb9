#include "desc/hardware.h"

#include <stdio.h>
#include <string.h>

#include "desc/bind.h"
#include "desc/library.h"
#include "desc/load.h"

static const struct mb_name architectures[] = {
	{ "ampere", MB_AMPERE }, { "hopper", MB_HOPPER }, { "blackwell", MB_BLACKWELL }, { "rubin", MB_RUBIN }, { NULL, 0 }
};

struct hardware_file {
	struct mb_hardware hw;
	const struct mb_node *efficiency, *price;
};

#define AT(member) offsetof(struct hardware_file, member)
#define QUANTITY(key, member, dimension, low, high, absent_value) \
	{ key, MB_FIELD_DOUBLE, AT(hw.member), low, high, absent_value, dimension, NULL }
#define BYTES(key, member, low, high, absent_value) \
	{ key, MB_FIELD_INT64, AT(hw.member), low, high, absent_value, MB_BYTES, NULL }
#define INT(key, member, low, high, absent_value) \
	{ key, MB_FIELD_INT, AT(hw.member), low, high, absent_value, MB_COUNT_UNIT, NULL }
#define BOOL(key, member) \
	{ key, MB_FIELD_BOOL, AT(hw.member), 0, 1, 0, MB_PURE, NULL }
#define NODE(key, member) \
	{ key, MB_FIELD_NODE, AT(member), 0, 0, 0, MB_PURE, NULL }
#define IGNORED(key) \
	{ key, MB_FIELD_IGNORED, 0, 0, 0, 0, MB_PURE, NULL }

static const struct mb_field fields[] = {
	{ "name", MB_FIELD_NAME, AT(hw.name), 1, 63, 0, MB_PURE, NULL },
	{ "gpu", MB_FIELD_NAME, AT(hw.gpu), 1, 63, MB_REQUIRED, MB_PURE, NULL },
	{ "description", MB_FIELD_TEXT, AT(hw.description), 0, 0, 0, MB_PURE, NULL },
	{ "source", MB_FIELD_TEXT, AT(hw.sources), 0, 0, 0, MB_PURE, NULL },
	{ "architecture", MB_FIELD_ENUM, AT(hw.architecture), 0, 0, MB_REQUIRED, MB_PURE, architectures },
	BOOL("ultra", ultra),
	BOOL("superchip", superchip),
	BOOL("announced", announced),
	INT("compute_capability", compute_capability, 70, 200, MB_REQUIRED),
	INT("sm_count", sm_count, 1, 1024, MB_REQUIRED),
	BYTES("hbm", hbm_bytes, 1e9, 1e13, MB_REQUIRED),
	BYTES("usable", usable_bytes, 1e9, 1e13, MB_REQUIRED),
	QUANTITY("hbm_bandwidth", hbm_bytes_per_s, MB_BYTES_PER_S, 1e11, 1e15, MB_REQUIRED),
	QUANTITY("l2", l2_bytes, MB_BYTES, 1e6, 1e10, MB_REQUIRED),
	QUANTITY("bf16", bf16_flop_per_s, MB_FLOP_PER_S, 1e12, 1e18, MB_REQUIRED),
	QUANTITY("fp8", fp8_flop_per_s, MB_FLOP_PER_S, 0, 1e18, 0),
	QUANTITY("fp4", fp4_flop_per_s, MB_FLOP_PER_S, 0, 1e18, 0),
	QUANTITY("mfu_bf16", mfu_bf16_flop_per_s, MB_FLOP_PER_S, 1e12, 1e18, 0),
	QUANTITY("mfu_fp8", mfu_fp8_flop_per_s, MB_FLOP_PER_S, 0, 1e18, 0),
	QUANTITY("mfu_fp4", mfu_fp4_flop_per_s, MB_FLOP_PER_S, 0, 1e18, 0),
	QUANTITY("tdp", tdp_w, MB_WATTS, 50, 10000, MB_REQUIRED),
	INT("gpus_per_node", gpus_per_node, 1, 1024, MB_REQUIRED),
	INT("nvlink_domain", nvlink_domain, 1, 65536, MB_REQUIRED),
	QUANTITY("nvlink", nvlink_bytes_per_s, MB_BYTES_PER_S, 0, 1e14, 0),
	QUANTITY("scale_out", nic_bytes_per_s, MB_BYTES_PER_S, 0, 1e14, 0),
	QUANTITY("host_link", host_bytes_per_s, MB_BYTES_PER_S, 1e8, 1e14, MB_REQUIRED),
	QUANTITY("oversubscription", oversubscription, MB_PURE, 1, 1000, 1),
	BOOL("nvls", nvls),
	QUANTITY("non_torch", non_torch_bytes, MB_BYTES, 0, 1e11, MB_REQUIRED),
	NODE("price", price),
	NODE("efficiency", efficiency),
	IGNORED("extends"),
	IGNORED("note"),
};

#undef AT
#undef QUANTITY
#undef BYTES
#undef INT
#undef BOOL
#undef NODE
#undef IGNORED

static bool read_price(const struct mb_node *node, struct mb_arena *arena, struct mb_hardware *hw, struct mb_diags *diags)
{
	const struct mb_node *source = mb_node_get(node, "source");

	hw->price_usd_per_gpu_h = 0;
	hw->price_source = NULL;
	if (mb_node_is_null(mb_bind_unwrap(node)))
		return true;
	if (source && source->type == MB_NODE_SCALAR)
		hw->price_source = mb_arena_strdup(arena, source->text);
	return mb_bind_quantity(mb_bind_unwrap(node), "price", MB_USD_PER_HOUR, 0, 10000, &hw->price_usd_per_gpu_h, diags);
}

/* One file of the chain over what its base said; the base itself must be complete. */
static bool apply(const struct mb_node *node, bool base, struct mb_arena *arena, struct mb_hardware *hw,
                  struct mb_diags *diags)
{
	const struct mb_binding binding = {
		.fields = fields, .count = sizeof fields / sizeof fields[0], .overlay = !base, .sourced = true
	};
	struct hardware_file f = { .hw = *hw };

	bool ok = mb_bind(&binding, node, arena, &f, diags);

	*hw = f.hw;
	if (f.price)
		ok &= read_price(f.price, arena, hw, diags);
	return ok;
}

static bool check(const struct mb_hardware *hw, struct mb_pos at, struct mb_diags *diags)
{
	if (hw->usable_bytes > hw->hbm_bytes + hw->hbm_bytes / 10)
		return mb_fail(diags, at, "usable is more than hbm");
	if (hw->nvlink_domain > 1 && hw->nvlink_bytes_per_s <= 0)
		return mb_fail(diags, at, "nvlink_domain is %d, but nvlink is not given", hw->nvlink_domain);
	if (hw->fp4_flop_per_s > 0 && hw->fp8_flop_per_s <= 0)
		return mb_fail(diags, at, "fp4 is given without fp8");
	return true;
}

static void fill_mfu(struct mb_hardware *hw)
{
	if (hw->mfu_bf16_flop_per_s <= 0)
		hw->mfu_bf16_flop_per_s = hw->bf16_flop_per_s;
	if (hw->mfu_fp8_flop_per_s <= 0)
		hw->mfu_fp8_flop_per_s = hw->fp8_flop_per_s;
	if (hw->mfu_fp4_flop_per_s <= 0)
		hw->mfu_fp4_flop_per_s = hw->fp4_flop_per_s;
}

/* An architecture is its rows; a misspelt key beside them must not go unnoticed. */
static const struct mb_node *architecture_rows(const struct mb_node *file, struct mb_diags *diags)
{
	const struct mb_node *rows = mb_node_get(file, "efficiency");

	for (const struct mb_node *v = file->child; v; v = v->next) {
		const char *key = file->type == MB_NODE_MAP ? v->key->text : "";

		if (v != rows && strcmp(key, "source") != 0 && strcmp(key, "note") != 0) {
			mb_fail(diags, v->pos, "unexpected '%.80s'; an architecture has source, note and efficiency", key);
			return NULL;
		}
	}
	if (!rows)
		mb_fail(diags, file->pos, "'efficiency' is missing");
	return rows;
}

/* The architecture's rows first, then those of each file, the most basic one first. */
static bool read_efficiency(const struct mb_node *const *chain, int count, const struct mb_library *library,
                            struct mb_arena *arena, struct mb_hardware *hw, struct mb_diags *diags)
{
	const char *name = mb_value_name(architectures, (int)hw->architecture);
	const struct mb_node *rows, *file = mb_load_shipped(library, "hardware/architectures", "architecture", name,
	                                                    chain[0]->pos, arena, diags);

	if (!file)
		return false;
	rows = architecture_rows(file, diags);
	if (!rows)
		return false;
	if (!mb_params_read(rows, true, arena, &hw->params, hw->provenance, diags))
		return false;
	for (int i = count - 1; i >= 0; i--) {
		rows = mb_node_get(chain[i], "efficiency");
		if (rows && !mb_node_is_null(rows) && !mb_params_read(rows, true, arena, &hw->params, hw->provenance, diags))
			return false;
	}
	return mb_params_complete(hw->provenance, true, file->pos, diags);
}

bool mb_hardware_read(const struct mb_node *node, struct mb_library *library, struct mb_arena *arena,
                      struct mb_hardware *ret, struct mb_diags *diags)
{
	const struct mb_node *chain[MB_EXTENDS_MAX];
	struct mb_hardware hw = { 0 };
	int count = mb_load_chain(library, "hardware", "hardware", node, chain, arena, diags);

	if (count == 0)
		return false;
	for (int i = count - 1; i >= 0; i--) {
		if (!apply(chain[i], i == count - 1, arena, &hw, diags))
			return false;
	}
	fill_mfu(&hw);
	if (!check(&hw, node->pos, diags) || !read_efficiency(chain, count, library, arena, &hw, diags))
		return false;
	*ret = hw;
	return true;
}
