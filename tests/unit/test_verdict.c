/* The verdict on hand-made measurements and on simulated lines whose bottleneck is known: the stage
 * must be right, the confidence honest, and contradictory measurements refused. */
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

static const char *const stage_names[LINE_STAGES] = {"read", "decode", "step"};

/* --- simulated lines ------------------------------------------------------------------------- */

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
	bool right = strcmp(v->stage, stage_names[truth]) == 0;
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
	score->in_set += right || strcmp(v->also, stage_names[truth]) == 0;
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

/* --- hand-made points ------------------------------------------------------------------------ */

struct shares {
	double busy, starved, blocked;
};

/* A 10 s repetition of a node with 2 decode workers and an emulated step. */
static void hand_made(
	struct measurement *m, struct shares read, struct shares decode, struct shares step)
{
	const struct shares shares[LINE_STAGES] = {read, decode, step};
	static const unsigned workers[LINE_STAGES] = {1, 2, 1};
	*m = (struct measurement){.status = MEASUREMENT_OK,
		.accounted = 0.998,
		.measured_seconds = 10,
		.samples = 11900,
		.batches = 186,
		.throughput = 1190,
		.bytes_read_per_s = 1190 * 1e5,
		.page_cache_share = 0,
		.stage_count = LINE_STAGES};
	for (size_t i = 0; i < LINE_STAGES; i++) {
		struct stage_measurement *stage = &m->stages[i];
		const double total = 10 * workers[i];
		(void)snprintf(stage->name, sizeof stage->name, "%s", stage_names[i]);
		stage->workers = workers[i];
		stage->per_batch = stage->device = i == 2;
		stage->items = i == 2 ? 186 : 11900;
		stage->seconds[THREAD_WORKING] = shares[i].busy * total;
		stage->seconds[THREAD_STARVED] = shares[i].starved * total;
		stage->seconds[THREAD_BLOCKED] = shares[i].blocked * total;
		stage->cpu_seconds = stage->seconds[THREAD_WORKING] * (i == 1 ? 0.98 : 0.05);
		stage->run_queue_seconds = stage->seconds[THREAD_WORKING] * 0.01;
		stage->capacity = 1190 / shares[i].busy;
		const double ns = stage->seconds[THREAD_WORKING] / (double)stage->items * 1e9;
		histogram_add(&stage->service, (uint64_t)ns, (uint32_t)stage->items);
	}
}

static struct point_facts hand_facts(void)
{
	return (struct point_facts){.cores = 2,
		.decode_workers = 2,
		.read_threads = 1,
		.read_depth = 16,
		.step_threads = 0,
		.batch_size = 64,
		.prefetch_depth = 2,
		.step_emulated = true};
}

static void decode_bound(struct measurement *m)
{
	hand_made(m, (struct shares){0.29, 0, 0.71}, (struct shares){0.987, 0.01, 0.003},
		(struct shares){0.66, 0.34, 0});
}

static struct verdict judge(const struct measurement *m, const struct point_facts *facts)
{
	static struct point_summary point;
	const struct measurement *repeats[] = {m, m, m};
	struct error err;
	assert_int_equal(summary_of_point(repeats, 3, facts, &point, &err), 0);
	const struct verdict v = point.verdict;
	point_summary_release(&point);
	return v;
}

static void expect(const struct verdict *v, const char *stage, const char *resource)
{
	if (strcmp(v->stage, stage) != 0 || strcmp(v->resource, resource) != 0)
		fail_msg("got %s/%s (%s), expected %s/%s", v->stage, v->resource, v->evidence[0],
			stage, resource);
	assert_true(v->confidence > 0 && v->confidence < 1);
	assert_true(v->evidence_count >= 1);
}

static bool says(const struct verdict *v, const char *text)
{
	for (size_t i = 0; i < v->evidence_count; i++)
		if (strstr(v->evidence[i], text))
			return true;
	return strstr(v->advice, text) != NULL;
}

static void decode_on_the_cpu(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.evidence[0],
		"decode works 98.7 % of its 2 threads' time; read is blocked 71.0 %, "
		"step waits 34.0 %");
	assert_true(v.confidence >= 0.8);
	assert_true(says(&v, "all 2 cores are in use by 2 decode workers: "));
	facts.step_threads = 1;
	v = judge(&m, &facts);
	assert_true(says(&v, "all 2 cores are in use by 2 decode workers and 1 step thread: "));
	facts.step_threads = 0;
	assert_true(says(&v, "99 % of the least capacity, decode's"));
	facts.cores = 8;
	v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
	assert_true(says(&v, "decode.workers = 4: decode could feed up to ~2,4"));
	assert_true(says(&v, "step then limits"));
}

static void too_few_cores(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.stages[1].cpu_seconds = 0.55 * m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].run_queue_seconds = 0.43 * m.stages[1].seconds[THREAD_WORKING];
	struct point_facts facts = hand_facts();
	facts.decode_workers = 4;
	m.cores_busy_outside = 0.05;
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	m.cores_busy_outside = 0.97;
	v = judge(&m, &facts);
	expect(&v, "decode", "external");
	assert_true(says(&v, "1.0 of 2 cores busy"));
	m.throttled_share = 0.4;
	v = judge(&m, &facts);
	expect(&v, "decode", "cores");
	assert_true(says(&v, "quota"));
}

static void a_lock(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.stages[1].cpu_seconds = 0.6 * m.stages[1].seconds[THREAD_WORKING];
	const struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "lock");
	assert_true(says(&v, "sleeps 39 %"));
	/* Some waiting for cores beside it does not hide it. */
	m.stages[1].cpu_seconds = 0.3 * m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].run_queue_seconds = 0.2 * m.stages[1].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "decode", "lock");
}

static void no_schedstat_is_no_guess(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.stages[1].cpu_seconds = m.stages[1].run_queue_seconds = NAN;
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "unknown");
	assert_true(v.confidence <= 0.5);
	assert_true(says(&v, "schedstat"));
}

/* 14 ms a file at 1190 files/s: 16.7 in flight of the 16 that may be. */
static void set_read_latency(struct measurement *m, double seconds)
{
	memset(&m->stages[0].service, 0, sizeof m->stages[0].service);
	histogram_add(&m->stages[0].service, (uint64_t)(seconds * 1e9), 11900);
}

static void read_bound(struct measurement *m)
{
	hand_made(m, (struct shares){0.99, 0, 0.01}, (struct shares){0.4, 0.6, 0},
		(struct shares){0.5, 0.5, 0});
	set_read_latency(m, 0.0134);
}

static void reads_are_told_apart_only_with_a_ceiling(void **state)
{
	(void)state;
	static struct measurement m;
	read_bound(&m);
	struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "read", "storage");
	assert_true(says(&v, "15.9 of 16 files"));
	facts.read_depth = 64; /* in vain, as with pread */
	set_read_latency(&m, 0.00084);
	v = judge(&m, &facts);
	expect(&v, "read", "storage");
	assert_true(says(&v, "each of 1 reader threads has one file in flight"));
	facts.read_depth = 16;
	set_read_latency(&m, 0.0134);
	v = judge(&m, &facts);
	assert_true(says(&v, "read.depth = 32"));
	facts.storage_bytes_per_s = 1190 * 1e5 / 0.95;
	v = judge(&m, &facts);
	expect(&v, "read", "device");
	facts.storage_bytes_per_s = 1190 * 1e5 / 0.3;
	v = judge(&m, &facts);
	expect(&v, "read", "latency");
	facts.reads_memory = true;
	m.stages[0].cpu_seconds = 0.97 * m.stages[0].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "read", "cpu");
}

static void a_busy_step_is_no_fault(void **state)
{
	(void)state;
	static struct measurement m;
	hand_made(&m, (struct shares){0.2, 0, 0.8}, (struct shares){0.5, 0.01, 0.49},
		(struct shares){0.995, 0.005, 0});
	struct point_facts facts = hand_facts();
	struct verdict v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_true(v.confidence >= 0.9);
	assert_true(says(&v, "emulated device"));
	assert_true(says(&v, "at its full rate"));
	facts.step_emulated = false;
	m.stages[2].device = false;
	m.stages[2].cpu_seconds = 0.97 * m.stages[2].seconds[THREAD_WORKING];
	v = judge(&m, &facts);
	expect(&v, "step", "compute");
	assert_false(says(&v, "emulated"));
}

static void two_that_bind(void **state)
{
	(void)state;
	static struct measurement m;
	hand_made(&m, (struct shares){0.2, 0, 0.8}, (struct shares){0.97, 0.005, 0.025},
		(struct shares){0.955, 0.045, 0});
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(&m, &facts);
	expect(&v, "decode", "cpu");
	assert_string_equal(v.also, "step");
	assert_true(says(&v, "step is within 1.5 % of decode: both bind"));
	assert_true(v.confidence < 0.6);
}

static void nobody_busy_is_the_queue(void **state)
{
	(void)state;
	static struct measurement m;
	hand_made(&m, (struct shares){0.3, 0, 0.7}, (struct shares){0.62, 0.02, 0.36},
		(struct shares){0.6, 0.4, 0});
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(&m, &facts);
	expect(&v, "prefetch", "depth");
	assert_string_equal(v.also, "decode");
	assert_true(v.confidence <= 0.5);
	assert_true(says(&v, "prefetch.depth = 4"));
}

static void refuse(struct measurement *m, const char *why)
{
	const struct point_facts facts = hand_facts();
	const struct verdict v = judge(m, &facts);
	expect(&v, "none", "unknown");
	assert_true(v.confidence <= 0.2);
	if (!says(&v, why))
		fail_msg("'%s' does not say '%s'", v.evidence[0], why);
	assert_string_equal(v.advice, "");
}

static void contradictions_are_refused(void **state)
{
	(void)state;
	static struct measurement m;
	decode_bound(&m);
	m.accounted = 0.95;
	refuse(&m, "95.0 %");
	decode_bound(&m);
	m.accounted = NAN;
	refuse(&m, "not known");
	decode_bound(&m);
	m.status = MEASUREMENT_UNSTEADY;
	refuse(&m, "the throughput was not steady");
	measurement_note(&m, "unsteady: it drifts");
	refuse(&m, "unsteady: it drifts");
	decode_bound(&m);
	m.status = MEASUREMENT_FAILED;
	refuse(&m, "no good repetition");
	decode_bound(&m);
	m.stage_count = 0;
	refuse(&m, "profiler");
	decode_bound(&m);
	m.stages[0].items = 13000;
	refuse(&m, "flow is not conserved");
	decode_bound(&m);
	set_read_latency(&m, 0.020);
	refuse(&m, "Little's law fails at read");
	decode_bound(&m);
	memset(&m.stages[1].service, 0, sizeof m.stages[1].service);
	histogram_add(&m.stages[1].service, 2500000, 11900);
	refuse(&m, "Little's law fails at decode");
}

/* Nothing a file may hold makes it crash or say nothing. */
static void garbage_is_survived(void **state)
{
	(void)state;
	static struct measurement m;
	struct rng rng;
	rng_init(&rng, SEED, 3);
	static const double odd[] = {0, -1, 1e300, 1e-300, NAN, INFINITY, 0.5, 1};
	for (int i = 0; i < 2000; i++) {
		decode_bound(&m);
		m.stage_count = rng_below(&rng, LINE_STAGES + 1);
		for (size_t s = 0; s < LINE_STAGES; s++) {
			m.stages[s].seconds[rng_below(&rng, THREAD_STATES)] =
				odd[rng_below(&rng, 8)];
			m.stages[s].capacity = odd[rng_below(&rng, 8)];
			m.stages[s].cpu_seconds = odd[rng_below(&rng, 8)];
		}
		m.accounted = odd[rng_below(&rng, 8)];
		const struct point_facts facts = {.cores = (unsigned)rng_below(&rng, 2)};
		const struct verdict v = judge(&m, &facts);
		assert_true(v.stage[0] && v.resource[0] && v.evidence_count > 0);
		assert_true(v.confidence >= 0 && v.confidence <= 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_stage_is_right_from_a_ratio_of_one_and_a_half),
		cmocka_unit_test(near_balance_the_set_holds_the_truth),
		cmocka_unit_test(decode_on_the_cpu),
		cmocka_unit_test(too_few_cores),
		cmocka_unit_test(a_lock),
		cmocka_unit_test(no_schedstat_is_no_guess),
		cmocka_unit_test(reads_are_told_apart_only_with_a_ceiling),
		cmocka_unit_test(a_busy_step_is_no_fault),
		cmocka_unit_test(two_that_bind),
		cmocka_unit_test(nobody_busy_is_the_queue),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(garbage_is_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
