#include "cost/cost.h"

const struct mb_term_row mb_memory_terms[MB_MEM_COUNT] = {
#define MEMORY(id, json_name, letter_, label_) [MB_MEM_##id] = { json_name, label_, letter_ },
#define TIME(...)
#include "cost/terms.def"
#undef MEMORY
#undef TIME
};

const struct mb_term_row mb_time_terms[MB_TIME_COUNT] = {
#define MEMORY(...)
#define TIME(id, json_name, label_) [MB_TIME_##id] = { json_name, label_, 0 },
#include "cost/terms.def"
#undef MEMORY
#undef TIME
};

const char *const mb_phase_names[MB_PHASE_COUNT] = {
	[MB_PHASE_FORWARD] = "deepest forward", [MB_PHASE_LOSS] = "head and loss", [MB_PHASE_BACKWARD] = "backward",
	[MB_PHASE_REPLAY] = "replay", [MB_PHASE_OPTIMIZER] = "optimizer step", [MB_PHASE_CAPTURE] = "graph capture",
};

const char *const mb_verdict_names[] = {
	[MB_FITS] = "fits", [MB_AT_RISK] = "at_risk", [MB_OUT_OF_MEMORY] = "out_of_memory", [MB_ILLEGAL] = "illegal",
};

const char *const mb_traffic_names[MB_TRAFFIC_COUNT] = {
	[MB_TRAFFIC_TP] = "tp", [MB_TRAFFIC_CP] = "cp", [MB_TRAFFIC_EP_DISPATCH] = "ep_dispatch", [MB_TRAFFIC_EP_COMBINE] = "ep_combine",
	[MB_TRAFFIC_ETP] = "etp", [MB_TRAFFIC_PP] = "pp", [MB_TRAFFIC_DP_REDUCE_SCATTER] = "dp_reduce_scatter",
	[MB_TRAFFIC_DP_ALL_GATHER] = "dp_all_gather", [MB_TRAFFIC_EMBEDDING] = "embedding",
};
