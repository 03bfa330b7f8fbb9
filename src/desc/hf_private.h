/* Shared by the files that read a config.json; nobody else includes it. */
#ifndef MBSIM_DESC_HF_PRIVATE_H
#define MBSIM_DESC_HF_PRIVATE_H

#include "desc/node.h"

enum mb_hf_trait {
	MB_HF_MLA = 1 << 0,             /* multi-latent attention; head_dim means nothing */
	MB_HF_EXPERT_FFN = 1 << 1,      /* intermediate_size is the size of an expert */
	MB_HF_SHARED_COUNT = 1 << 2,    /* shared experts: a count, each as large as an expert */
	MB_HF_SHARED_ONE = 1 << 3,      /* one shared expert as large as an expert, whatever the file counts */
	MB_HF_NO_MTP = 1 << 4,          /* the file may name MTP depths, Bridge never builds them */
	MB_HF_WINDOW = 1 << 5,          /* sliding_window is honoured */
	MB_HF_SPARSE_STEP = 1 << 6,     /* decoder_sparse_step and mlp_only_layers */
	MB_HF_LINEAR = 1 << 7,          /* gated delta net on all but every n-th layer */
	MB_HF_LEARNED = 1 << 8,         /* learned positions: their number matters */
	MB_HF_TEXT_TIES = 1 << 9,       /* of a composite, text_config says whether embeddings are tied */
};

struct mb_hf_family {
	const char *type;               /* model_type */
	const char *forced;             /* "key=value ..." of the model, whatever the file says */
	const char *defaults;           /* "key=value ..." of the file: what transformers' class says for absent keys */
	unsigned traits;
};

struct mb_hf {
	const struct mb_node *top;      /* the file */
	const struct mb_node *text;     /* the language model: the file, or a member of it */
	const struct mb_hf_family *family;
	struct mb_arena *arena;
	struct mb_diags *diags;
	struct mb_node *out;
	const struct mb_node **tail;
	int layers;
	char taken[256];                /* class defaults that stand in for sizes */
};

/* hf_families.c */
const struct mb_hf_family *mb_hf_family_find(const char *type);
const char *mb_hf_family_type(int index);                       /* NULL past the last */
const char *mb_hf_family_refused(const char *type);             /* why a known type cannot be read; NULL */
bool mb_hf_row(const char **rows, char *key, size_t key_size, char *value, size_t value_size);    /* next "key=value" */

/*
 * hf_value.c: value of the first of "a|b.c|d" that the file has. NULL: null, or absent without a class default. Numbers and truths
 * in quotes lose them.
 */
const struct mb_node *mb_hf_get(struct mb_hf *h, const char *keys);
const struct mb_node *mb_hf_unquoted(struct mb_hf *h, const struct mb_node *n);
bool mb_hf_int(struct mb_hf *h, const char *keys, long long *ret);      /* also a list of equal numbers; reports others */
void mb_hf_put(struct mb_hf *h, const char *key, const struct mb_node *value);        /* unless the key is there */
void mb_hf_say(struct mb_hf *h, const char *key, struct mb_pos at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* hf_layers.c: which layers are experts, windows, linear attention or without rotary embedding. */
void mb_hf_layers(struct mb_hf *h);

/* hf_keys.c: reports what the file has beyond that. */
void mb_hf_leftovers(struct mb_hf *h);

#endif
