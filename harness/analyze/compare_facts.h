/* Two results held beside each other: which of their points are the same, and what they differ in
 * besides their figures: keys of the configuration and facts of the node, each with what it means
 * for a comparison.  Pure functions; two tables in compare_facts.c are the policy. */
#ifndef MLBENCH_ANALYZE_COMPARE_FACTS_H
#define MLBENCH_ANALYZE_COMPARE_FACTS_H

#include "harness/analyze/point_model.h"
#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/record/fact_list.h"

#include <stdbool.h>
#include <stddef.h>

/* --- points ----------------------------------------------------------------------------------- */

/* Two points are the same where the values of every key that either side sweeps are, whatever the
 * order of axes and values. */
struct point_pair {
	size_t a, b; /* points of the grids */
};

struct point_match {
	bool swept
		[KEY_COUNT]; /* keys that points are matched by; none: two single runs are a pair */
	struct point_pair *pairs; /* in the order of a's points; owned */
	size_t pair_count;
	size_t *only_a, *only_b; /* points without a partner; owned */
	size_t only_a_count, only_b_count;
};

/* 0 or -ENOMEM. */
int point_match(const struct config *a, const struct config_grid *a_grid, const struct config *b,
	const struct config_grid *b_grid, struct point_match *match);
void point_match_release(struct point_match *match); /* safe on {0} */

/* The value of a key at a point of a grid. */
const struct config_value *point_value(
	const struct config *config, const struct config_grid *grid, size_t point, enum key_id key);

/* Whether two values of a key are the same. */
bool config_value_same(enum key_id key, const struct config_value *a, const struct config_value *b);

/* --- facts ------------------------------------------------------------------------------------ */

enum compare_weight {
	/* says how a run is named and measured, or is another word for the same */
	COMPARE_HARMLESS,
	COMPARE_MINOR,   /* a version, a mount option: may matter */
	COMPARE_SETTING, /* a key that changes what runs: perhaps what is to be compared */
	COMPARE_STRONG,  /* another CPU, GPU, storage, a planted condition: probably the cause */
	/* the samples are not the same work: their rates mean nothing beside each other */
	COMPARE_REFUSED,
};

enum { COMPARE_NAME_BYTES = 64 };

struct compare_fact {
	enum compare_weight weight;
	char name[COMPARE_NAME_BYTES]; /* "decode.workers", "cpu.model" */
	bool is_key;                   /* of the configuration */
	char *a, *b;                   /* as text; owned */
};

struct compare_facts {
	struct compare_fact *list; /* heaviest first; owned */
	size_t count, room;
	bool failed;
};

/* Keys that differ and are not matched by value at each point (swept). */
void compare_keys(struct compare_facts *facts, const struct config *a, const struct config *b,
	const bool swept[KEY_COUNT]);
void compare_environments(
	struct compare_facts *facts, const struct fact_list *a, const struct fact_list *b);
/* One more, found by the caller. */
void compare_fact_add(struct compare_facts *facts, enum compare_weight weight, const char *name,
	const char *a, const char *b);
void compare_facts_sort(struct compare_facts *facts);
void compare_facts_release(struct compare_facts *facts); /* safe on {0} */

size_t compare_facts_count(const struct compare_facts *facts, enum compare_weight weight);

const char *compare_weight_name(enum compare_weight weight); /* "strong" */

/* A value as text that may be long: fresh, NULL without memory. */
char *config_value_text(enum key_id key, const struct config_value *value);

/* --- where a difference comes from ------------------------------------------------------------ */

/* Where a difference of throughput comes from. The costs of one result are put into the replay of
 * the other, stage by stage; each stage gets the mean of what it changes over all orders in which
 * the stages could be exchanged (the Shapley value: L. Shapley, A value for n-person games, 1953).
 * The parts sum to the whole difference of the two replays, however the stages interact; what was
 * measured beyond that is unexplained. Without recorded service times the lowest of the stages'
 * capacities stands in for the replay. Pure functions. */

enum { EXPLAIN_PARTS_MAX = REPLAY_STAGES + 2 };

struct explain_part {
	char name[NAME_BYTES]; /* a stage, "threads and buffers", or "cores" */
	double effect;         /* on ln(throughput); the parts sum to `explained` */
};

struct explanation {
	bool replayed;            /* else by capacities */
	char why_not[NOTE_BYTES]; /* no replay, because ... */
	double measured;          /* ln(B / A) */
	double explained;         /* ln of the replays' (or least capacities') ratio */
	struct explain_part
		parts[EXPLAIN_PARTS_MAX]; /* largest effect first; those of none are left out */
	size_t part_count;
};

/* 0; -E2BIG, -ENOMEM, -EINVAL as replay_run. */
int explain_by_replay(const struct model *a, const struct model *b, double measured,
	struct explanation *out, struct error *err);

/* One capacity per stage, samples/s; NAN: it never showed, so it is no bottleneck. */
struct explain_capacity {
	char stage[NAME_BYTES];
	double a, b;
};
void explain_by_capacities(const struct explain_capacity *stages, size_t count, double measured,
	struct explanation *out);

#endif
