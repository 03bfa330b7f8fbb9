/*
 * Options of one run side by side: which recompute, which overlap, which dispatcher, why out of memory. The run's layout
 * stays; each option is the run with a few keys changed.
 */
#ifndef MBSIM_ADVISE_ADVICE_H
#define MBSIM_ADVISE_ADVICE_H

#include "advise/oom_log.h"
#include "advise/trial.h"
#include "base/arena.h"

enum mb_topic { MB_TOPIC_RECOMPUTE, MB_TOPIC_OVERLAP, MB_TOPIC_DISPATCHER, MB_TOPIC_OOM, MB_TOPIC_COUNT };
extern const char *const mb_topic_names[MB_TOPIC_COUNT];        /* "recompute", "overlap", "dispatcher", "oom" */

/* What an option is, for the tables. */
enum mb_option_kind { MB_OPTION_NOW, MB_OPTION_NONE, MB_OPTION_SINGLE, MB_OPTION_SET, MB_OPTION_FULL, MB_OPTION_OFFLOAD, MB_OPTION_OTHER };

/* Expert exchange of an option, per GPU and step. */
struct mb_exchange {
	double inside_bytes, across_bytes;      /* inside and across NVLink domains, both ways */
	double busy_s, exposed_s, hidden_frac;
	double ranks, domains;                  /* distinct destinations of a token, expected */
	int sms;                                /* multiprocessors the exchange occupies; 0: unknown */
	double gain_low_frac, gain_high_frac;   /* of overlap against the same without it */
	double gain_frac;
};

enum { MB_MAX_NOTES = 4, MB_NOTE_TEXT = 200, MB_MAX_REASONS = 12, MB_MAX_OPTIONS = 512 };

struct mb_option {
	char name[96];
	enum mb_option_kind kind;
	struct mb_trial t;
	double saved_bytes;             /* activations no longer kept where the reference's peak is */
	double lowers_bytes;            /* of the binding peak, against the reference; negative: raises */
	double step_frac;               /* change of the step against the reference */
	double replayed_bytes[3];       /* sent again by recompute: tensor, context, expert; per GPU and step */
	struct mb_exchange x;
	bool learning, on_front, listed, tie;
	int rank;                       /* order of trial; 0: not to be tried */
	char notes[MB_MAX_NOTES][MB_NOTE_TEXT];
	int note_count;
};

struct mb_advice {
	enum mb_topic topic;
	const struct mb_query *q;
	struct mb_option *options;
	int count;
	int now, reference, recommended;        /* indices; -1: none */
	int shrink;                     /* recompute: narrowest that lowers the peak about as far as any selective one */
	double target_bytes;            /* recompute: peak to reach; 0: fit with margin */
	bool needed;                    /* the run does not fit or reach the target as it is */
	bool host_bound;
	char reasons[MB_MAX_REASONS][2 * MB_NOTE_TEXT];
	int reason_count;
	char met[2 * MB_NOTE_TEXT], forbids[2 * MB_NOTE_TEXT];          /* overlap: what holds already; what it excludes */
	struct mb_changes needs;        /* overlap: what has to be set for the recommended option */
	const struct mb_diagnosis *diagnosis;   /* oom */
};

/* Each fills `ret`; memory is the arena's. e: scratch. */
void mb_advise_recompute(const struct mb_query *q, double target_bytes, struct mb_evaluation *e, struct mb_arena *arena,
                         struct mb_advice *ret);
void mb_advise_overlap(const struct mb_query *q, struct mb_evaluation *e, struct mb_arena *arena, struct mb_advice *ret);
void mb_advise_dispatcher(const struct mb_query *q, struct mb_evaluation *e, struct mb_arena *arena, struct mb_advice *ret);
void mb_advise_oom(const struct mb_query *q, const struct mb_oom_log *log, struct mb_evaluation *e, struct mb_arena *arena,
                   struct mb_advice *ret);

/* ---- for the topics ---- */

void mb_advice_init(struct mb_advice *a, enum mb_topic topic, const struct mb_query *q, struct mb_arena *arena);
struct mb_option *mb_advice_add(struct mb_advice *a, enum mb_option_kind kind, const struct mb_trial *t, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void mb_option_note(struct mb_option *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mb_advice_reason(struct mb_advice *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Marks the options that no legal one beats in both step and peak. */
void mb_advice_front(struct mb_advice *a);

/* Says that the run would not start whatever is chosen. */
void mb_advice_tell_illegal(struct mb_advice *a, const struct mb_trial *t);

/* Whether a rule is broken that no choice of dispatcher, overlap, graphs, recompute or virtual stages can mend. */
bool mb_advice_hopeless(const struct mb_trial *t);

/* Whether an option may be recommended: it passes the rules and fits. */
bool mb_option_usable(const struct mb_option *o);

/* "moe_act,layernorm"; "none" for the empty set. */
void mb_module_words(unsigned modules, char *text, size_t size);

/* Host time that shows is this share of the step or more. */
bool mb_host_bound(const struct mb_trial *t);

/* "alltoall", "hybridep", ...: the dispatcher of a plan by its backend. */
const char *mb_dispatcher_word(const struct mb_plan *p);

/* Multiprocessors that dispatch and combine occupy; 0: not known. */
int mb_dispatcher_sms(const struct mb_case *c, const struct mb_plan *p);

void mb_exchange_fill(const struct mb_bench *b, const struct mb_trial *t, struct mb_exchange *ret);

#endif
