/* The verdict on simulated lines whose bottleneck is known: the stage must be right, and the confidence
 * honest. */
#include "harness/analyze/summary.h"

#include "harness/base/rng.h"
#include "tests/unit/line_simulator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 90125, REPEATS = 3, TRIALS = 60, SAMPLES_WANTED = 8000, BATCHES_MIN = 80 };

static const char *const line_stages[LINE_STAGES] = {"read", "decode", "step"};

/* A line whose stage `truth` has 1/ratio of the capacity of the next. */
static struct line random_line(struct rng *rng, double ratio, int *truth)
{
	struct line line = {0};
	line.readers = 1 + (unsigned)rng_below(rng, 8);
	line.decoders = 1 + (unsigned)rng_below(rng, 8);
	line.batch = 1U << rng_below(rng, 8);
	line.slots = 3 + (unsigned)rng_below(rng, 4);
	while ((line.slots - 2) * line.batch < 2 * line.decoders)
		line.batch *= 2;
	line.blobs = 2 * (line.readers + line.decoders) + (unsigned)rng_below(rng, 32);
	line.read_cv = 0.2 + 1.8 * rng_uniform(rng);
	line.decode_cv = 0.2 + 1.8 * rng_uniform(rng);
	line.step_cv = 0.5 * rng_uniform(rng);
	*truth = (int)rng_below(rng, LINE_STAGES);
	double capacity[LINE_STAGES];
	int next = (*truth + 1 + (int)rng_below(rng, 2)) % LINE_STAGES;
	for (int i = 0; i < LINE_STAGES; i++)
		capacity[i] = i == *truth
				      ? 1000
				      : 1000 * ratio * (i == next ? 1 : exp(rng_exponential(rng)));
	line.read_s = line.readers / capacity[0];
	line.decode_s = line.decoders / capacity[1];
	line.step_s = line.batch / capacity[2];
	line.batches = SAMPLES_WANTED / line.batch;
	line.batches = line.batches < BATCHES_MIN ? BATCHES_MIN : line.batches;
	line.seed = rng_next(rng);
	return line;
}

static struct point_facts facts_of(const struct line *line)
{
	return (struct point_facts){.cores = 16,
		.decode_workers = line->decoders,
		.read_threads = line->readers,
		.read_depth = 1,
		.step_threads = 0,
		.batch_size = line->batch,
		.prefetch_depth = line->slots - 2,
		.step_emulated = true,
		.seed = SEED};
}

static void judge_line(struct line line, struct point_summary *point)
{
	static struct measurement repeats[REPEATS];
	const struct measurement *pointers[REPEATS];
	const struct point_facts facts = facts_of(&line);
	struct error err;
	for (uint32_t r = 0; r < REPEATS; r++) {
		line.seed += r;
		line_measure(&line, &repeats[r]);
		repeats[r].repeat = r;
		pointers[r] = &repeats[r];
	}
	assert_int_equal(summary_of_point(pointers, REPEATS, &facts, point, &err), 0);
}

static double line_throughput(const struct line *line)
{
	static struct measurement m;
	line_measure(line, &m);
	return m.throughput;
}

struct score {
	int judged, right, in_set, depth, depth_true, abstained;
	int confident, confident_wrong;
	double confidence, hits; /* sums, for calibration */
};

/* The label of a stage holds when the line runs near that stage's capacity; else its queues bind.
 */
static void score_line(struct score *score, const struct line *line, int truth)
{
	static struct point_summary point;
	judge_line(*line, &point);
	const struct verdict *v = &point.verdict;
	const bool is_depth = strcmp(v->resource, "depth") == 0;
	bool right = strcmp(v->stage, line_stages[truth]) == 0;
	if (is_depth) {
		struct line deeper = *line;
		deeper.blobs *= 4;
		deeper.slots *= 4;
		deeper.batches += deeper.slots;
		right = line_throughput(&deeper) > 1.1 * point.median;
		score->depth++;
		score->depth_true += right;
	}
	score->judged++;
	score->right += right;
	score->in_set += right || strcmp(v->also, line_stages[truth]) == 0;
	score->abstained += strcmp(v->stage, "none") == 0;
	score->confident += v->confidence >= 0.9;
	score->confident_wrong += v->confidence >= 0.9 && !right;
	score->confidence += v->confidence;
	score->hits += right;
	point_summary_release(&point);
}

static struct score score_ratio(double ratio, uint64_t stream)
{
	struct rng rng;
	rng_init(&rng, SEED, stream);
	struct score score = {0};
	for (int t = 0; t < TRIALS; t++) {
		int truth;
		const struct line line = random_line(&rng, ratio, &truth);
		score_line(&score, &line, truth);
	}
	print_message(
		"seed %d, ratio %.2f: right %d of %d, in the set %d, depth %d (%d true), abstained %d, "
		"mean confidence %.2f, confident %d (%d wrong)\n",
		SEED, ratio, score.right, score.judged, score.in_set, score.depth, score.depth_true,
		score.abstained, score.confidence / score.judged, score.confident,
		score.confident_wrong);
	return score;
}

static void the_stage_is_right_from_a_ratio_of_one_and_a_half(void **state)
{
	(void)state;
	static const double ratios[] = {1.5, 1.75, 2, 3, 5};
	struct score total = {0};
	for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
		const struct score s = score_ratio(ratios[i], 100 + i);
		total.judged += s.judged;
		total.right += s.right;
		total.abstained += s.abstained;
		total.confident += s.confident;
		total.confident_wrong += s.confident_wrong;
		total.depth += s.depth;
		total.depth_true += s.depth_true;
	}
	assert_true(total.right >= 0.98 * total.judged);
	assert_true(total.confident_wrong <= 0.05 * total.confident);
	assert_true(total.confident >= 0.3 * total.judged);
	assert_int_equal(total.abstained, 0);
	assert_true(total.depth_true >= 0.95 * total.depth);
}

static void near_balance_the_set_holds_the_truth(void **state)
{
	(void)state;
	static const double ratios[] = {1, 1.02, 1.04, 1.1, 1.2};
	struct score total = {0};
	for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
		const struct score s = score_ratio(ratios[i], 200 + i);
		total.judged += s.judged;
		total.in_set += s.in_set;
		total.hits += s.hits;
		total.confidence += s.confidence;
		total.confident += s.confident;
		total.confident_wrong += s.confident_wrong;
	}
	assert_true(total.in_set >= 0.95 * total.judged);
	assert_true(total.confident_wrong <= 0.05 * total.confident);
	/* Stated confidence is no higher than the share that is right. */
	assert_true(total.confidence <= total.hits * 1.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_stage_is_right_from_a_ratio_of_one_and_a_half),
		cmocka_unit_test(near_balance_the_set_holds_the_truth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
