/* What two results differ in besides their figures: keys of the configuration and facts of the node, each with what it
 * means for a comparison.  Pure functions; the tables at the head of compare_facts.c are the policy. */
#ifndef MLBENCH_ANALYZE_COMPARE_FACTS_H
#define MLBENCH_ANALYZE_COMPARE_FACTS_H

#include "harness/analyze/compare_match.h"
#include "harness/base/error.h"
#include "harness/record/fact_list.h"

#include <stddef.h>

enum compare_weight {
	COMPARE_HARMLESS, /* says how a run is named and measured, or is another word for the same */
	COMPARE_MINOR,    /* a version, a mount option: may matter */
	COMPARE_SETTING,  /* a key that changes what runs: perhaps what is to be compared */
	COMPARE_STRONG,   /* another CPU, GPU, storage, a planted condition: probably the cause */
	COMPARE_REFUSED, /* the samples are not the same work: their rates mean nothing beside each other */
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

#endif
