/* A node on which some differences between two configurations cost something and most do not: what delta debugging is judged
 * by.  Its repetitions have the noise of real ones: normal, with stalls, drawn from real repetitions, or on a drift. */
#ifndef MLBENCH_TESTS_VIRTUAL_NODE_H
#define MLBENCH_TESTS_VIRTUAL_NODE_H

#include "harness/analyze/delta_debug.h"
#include "harness/base/rng.h"
#include "tests/unit/real_repetitions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum virtual_plant {
	PLANT_SINGLE,
	PLANT_BOTH,   /* two that cost only together */
	PLANT_SUM,    /* two that cost a part each */
	PLANT_MASKED, /* two of which the larger one hides the other */
	PLANT_KINDS
};
enum virtual_noise { VIRTUAL_NORMAL, VIRTUAL_STALLS, VIRTUAL_REAL, VIRTUAL_DRIFT, VIRTUAL_NOISES };

enum { VIRTUAL_PAIRS_MOST = 60, VIRTUAL_TESTS_MOST = 512 };

struct virtual_test {
	struct delta_set mix, reference;
	double values[VIRTUAL_PAIRS_MOST];
	size_t count;
};

struct virtual_node {
	enum virtual_plant plant;
	enum virtual_noise noise;
	double cv, loss;           /* of all; ln */
	size_t count, culprits[2]; /* the second one of a pair */
	size_t tied[2];   /* a mixture with one of them and not the other cannot run; equal: none */
	size_t speed_up;  /* makes everything faster by 5 %; count: none */
	size_t runs_most; /* after which the time is over; 0: never */

	struct rng rng;
	double drift;
	size_t runs;
	struct paired_noise learnt;
	struct virtual_test *tests; /* (test_count); owned */
	size_t test_count;
};

static inline double virtual_level(const struct virtual_node *node, const struct delta_set *set)
{
	const double a = delta_has(set, node->culprits[0]);
	const double b = delta_has(set, node->culprits[1]);
	const double faster =
		node->speed_up < node->count && delta_has(set, node->speed_up) ? 0.05 : 0;
	switch (node->plant) {
	case PLANT_BOTH:
		return faster - node->loss * a * b;
	case PLANT_SUM:
		return faster - node->loss * (0.6 * a + 0.4 * b);
	case PLANT_MASKED:
		return faster - node->loss * fmax(a, 0.7 * b);
	case PLANT_SINGLE:
	default:
		return faster - node->loss * a;
	}
}

static inline double virtual_run(struct virtual_node *node, const struct delta_set *set)
{
	double e = node->cv * rng_normal(&node->rng);
	if (node->noise == VIRTUAL_STALLS && rng_uniform(&node->rng) < 0.05)
		e -= 0.4 * rng_uniform(&node->rng);
	if (node->noise == VIRTUAL_REAL) {
		const double *repeats = real_repetitions[rng_below(&node->rng, REAL_RUNS)][0][0];
		e = log(repeats[rng_below(&node->rng, REAL_REPEATS)] / 430);
	}
	if (node->noise == VIRTUAL_DRIFT)
		node->drift = 0.995 * node->drift + 0.01 * rng_normal(&node->rng);
	node->runs++;
	return virtual_level(node, set) + e + node->drift;
}

static inline bool virtual_runs(const struct virtual_node *node, const struct delta_set *set)
{
	return node->tied[0] == node->tied[1] ||
	       delta_has(set, node->tied[0]) == delta_has(set, node->tied[1]);
}

static inline struct virtual_test *virtual_test_of(
	struct virtual_node *node, const struct delta_question *question)
{
	for (size_t i = 0; i < node->test_count; i++)
		if (delta_equal(&node->tests[i].mix, &question->mix) &&
			delta_equal(&node->tests[i].reference, &question->reference))
			return &node->tests[i];
	if (!node->tests)
		node->tests = calloc(VIRTUAL_TESTS_MOST, sizeof *node->tests);
	if (!node->tests || node->test_count == VIRTUAL_TESTS_MOST)
		abort();
	struct virtual_test *test = &node->tests[node->test_count++];
	test->mix = question->mix;
	test->reference = question->reference;
	return test;
}

/* A delta_ask. */
static inline enum delta_answer virtual_ask(void *context, struct delta_question *question)
{
	struct virtual_node *node = context;
	if (!virtual_runs(node, &question->mix) || !virtual_runs(node, &question->reference))
		return DELTA_INVALID;
	struct virtual_test *test = virtual_test_of(node, question);
	const struct paired_beliefs beliefs = {&node->learnt, question->hint};
	for (;;) {
		question->estimate =
			paired_estimate_of(test->values, test->count, &beliefs, question->rate);
		if (delta_is_answered(question, &question->estimate) ||
			test->count == VIRTUAL_PAIRS_MOST)
			break;
		if (node->runs_most > 0 && node->runs + 2 > node->runs_most)
			return DELTA_OVER;
		const bool first = rng_below(&node->rng, 2) == 0;
		const double one = virtual_run(node, first ? &question->mix : &question->reference);
		const double other =
			virtual_run(node, first ? &question->reference : &question->mix);
		test->values[test->count++] = first ? one - other : other - one;
	}
	paired_noise_learn(&node->learnt, test->values, test->count, question->hint);
	return delta_answer_of(question, &question->estimate);
}

static inline void virtual_open(struct virtual_node *node, size_t count, enum virtual_plant plant,
	enum virtual_noise noise, uint64_t seed)
{
	*node = (struct virtual_node){
		.plant = plant, .noise = noise, .count = count, .speed_up = count};
	rng_init(&node->rng, seed, (uint64_t)plant * VIRTUAL_NOISES + (uint64_t)noise);
	node->cv = 0.01 + 0.04 * rng_uniform(&node->rng);
	/* Each part of it is at least twice the margin of 3 %. */
	node->loss = (plant == PLANT_SUM ? 0.16 : 0.1) + 0.35 * rng_uniform(&node->rng);
	node->culprits[0] = rng_below(&node->rng, count);
	do
		node->culprits[1] = rng_below(&node->rng, count);
	while (node->culprits[1] == node->culprits[0]);
}

static inline void virtual_close(struct virtual_node *node)
{
	free(node->tests);
	node->tests = NULL;
}

struct virtual_score {
	bool found; /* each culprit is blamed */
	size_t blamed_falsely;
};

static inline struct virtual_score virtual_score_of(
	const struct virtual_node *node, const struct delta_result *result)
{
	struct virtual_score score = {0};
	struct delta_set blamed = {{0}};
	for (size_t i = 0; i < result->cause_count; i++)
		if (result->causes[i].confirmed && !result->causes[i].ambiguous)
			blamed = delta_union(&blamed, &result->causes[i].items);
	score.found = delta_has(&blamed, node->culprits[0]) &&
		      (node->plant == PLANT_SINGLE || delta_has(&blamed, node->culprits[1]));
	for (size_t i = 0; i < node->count; i++)
		score.blamed_falsely += delta_has(&blamed, i) && i != node->culprits[0] &&
					(node->plant == PLANT_SINGLE || i != node->culprits[1]);
	return score;
}

#endif
