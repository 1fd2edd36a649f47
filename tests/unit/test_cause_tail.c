/* A few files, or samples, that take many times as long as the others, planted in points made by the
 * replay: the verdict, which of them it names, and what it predicts without them, which a point without
 * the plant tells. And what is no tail: uneven times, and slow files that nobody waits for. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/verdict.h"
#include "tests/unit/diagnose_fixture.h"

enum { THOROUGH = 16 };

static void diagnose(struct made_point *p, struct diagnosis *d)
{
	struct error err;
	assert_int_equal(diagnose_point(&p->input, THOROUGH, d, &err), 0);
	assert_non_null(limit_kind_find(d->verdict.stage, d->verdict.resource));
}

static void expect_pair(const struct diagnosis *d, const char *stage, const char *resource)
{
	if (strcmp(d->verdict.stage, stage) != 0 || strcmp(d->verdict.resource, resource) != 0)
		fail_msg("got %s/%s (%s), expected %s/%s", d->verdict.stage, d->verdict.resource,
			d->verdict.evidence_count > 1 ? d->verdict.evidence[1] : "", stage,
			resource);
}

/* The line that has the text; NULL: there is none. */
static const char *line_with(const struct diagnosis *d, const char *text)
{
	for (size_t i = 0; i < d->verdict.evidence_count; i++)
		if (strstr(d->verdict.evidence[i], text))
			return d->verdict.evidence[i];
	return NULL;
}

/* 4 ms a file, and 2.5 % of them 400 ms. */
static struct made_plan tail_of_reads(const char *depth, enum made_slow slow)
{
	return (struct made_plan){.set = {"decode.workers=2", "batch.size=16", "prefetch.depth=4",
					  "step.time=1ms", depth},
		.ns = {[COST_READ_CPU] = 20 * 1e3,
			[COST_READ_LATENCY] = 4 * 1e6,
			[COST_DECODE_CPU] = 0.1 * 1e6,
			[COST_STEP_DEVICE] = 1e6},
		.variation = 0.1,
		.read_slow_share = 0.025,
		.read_slow_factor = 100,
		.slow = slow,
		.cores = 4};
}

static double rate_of(const struct made_plan *plan)
{
	struct made_point p;
	made_open(&p, plan);
	const double rate = p.summary.median;
	made_close(&p);
	return rate;
}

static double predicted_gain(const char *line)
{
	const char *at = line ? strstr(line, "the job is ") : NULL;
	return at ? strtod(at + strlen("the job is "), NULL) : (double)NAN;
}

/* Delivery in order stalls on its head, and any depth: it is the tail, and what removing it gives is
 * what the point without it has. */
static void a_tail_is_named(void **state)
{
	(void)state;
	static const char *const depths[] = {"read.depth=1", "read.depth=4", "read.depth=16"};
	for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
		const struct made_plan plan = tail_of_reads(depths[i], MADE_SLOW_SAME);
		struct made_plan removed = plan;
		struct made_point p;
		struct diagnosis d;
		removed.read_slow_share = 0;
		made_open(&p, &plan);
		diagnose(&p, &d);
		expect_pair(&d, "read", "tail");
		assert_true(d.verdict.confidence >= 0.8);
		const double gain = predicted_gain(line_with(&d, "without them"));
		const double truth = rate_of(&removed) / p.summary.median;
		print_message("%s: predicted %.1f, %.2f without\n", depths[i], gain, truth);
		assert_true(fabs(log(gain / truth)) < 0.15);
		assert_non_null(line_with(&d, "are the same each time"));
		assert_null(line_with(&d, "lie in"));
		made_close(&p);
	}
}

/* The first second: too few samples for a prediction, and enough for one replay against another of the same ones. */
static void few_files_tell_a_tail(void **state)
{
	(void)state;
	enum { FILES = 250 };
	const struct made_plan plan = tail_of_reads("read.depth=4", MADE_SLOW_SAME);
	struct made_plan removed = plan;
	struct made_point p;
	struct diagnosis d;
	removed.read_slow_share = 0;
	made_open(&p, &plan);
	const double truth = rate_of(&removed) / p.summary.median;
	for (size_t r = 0; r < MADE_REPEATS; r++)
		for (size_t s = 0; s < p.traces[r].stage_count; s++)
			if (p.traces[r].stages[s].count > FILES)
				p.traces[r].stages[s].count = FILES;
	diagnose(&p, &d);
	expect_pair(&d, "read", "tail");
	print_message("%s: %.2f\n", d.why_not, d.verdict.confidence);
	assert_non_null(strstr(d.why_not, " needed"));
	assert_true(d.verdict.confidence >= 0.8);
	const double gain = predicted_gain(line_with(&d, "without them"));
	print_message("predicted %.1f, %.2f without\n", gain, truth);
	assert_true(fabs(log(gain / truth)) < 0.4);
	made_close(&p);
}

static void which_files_are_slow(void **state)
{
	(void)state;
	struct made_point p;
	struct diagnosis d;
	const struct made_plan any = tail_of_reads("read.depth=4", MADE_SLOW_ANY);
	made_open(&p, &any);
	diagnose(&p, &d);
	expect_pair(&d, "read", "tail");
	assert_non_null(line_with(&d, "are others each time"));
	assert_null(line_with(&d, "lie in"));
	made_close(&p);
	const struct made_plan folder = tail_of_reads("read.depth=4", MADE_SLOW_FOLDER);
	made_open(&p, &folder);
	diagnose(&p, &d);
	expect_pair(&d, "read", "tail");
	assert_non_null(line_with(&d, "100 % of the slow files lie in folder_03, which has 2."));
	made_close(&p);
}

/* Four in flight, all of which wait for 400 ms and come in at once, now and then; or each by itself. */
static void files_that_wait_together_are_a_stall(void **state)
{
	(void)state;
	enum { DEPTH = 4, EVERY = 160 };
	struct made_plan plan = tail_of_reads("read.depth=4", MADE_SLOW_ANY);
	plan.read_slow_share = 0;
	for (int together = 0; together < 2; together++) {
		struct made_point p;
		struct diagnosis d;
		made_open(&p, &plan);
		for (size_t r = 0; r < MADE_REPEATS; r++)
			for (size_t i = 0; i + EVERY <= MADE_ITEMS; i += EVERY)
				for (size_t k = 0; k < DEPTH; k++) {
					const size_t at = i + (together ? k : k * EVERY / DEPTH);
					struct trace_item *const item =
						&p.traces[r].stages[0].items[at];
					item->service_ns = 400e6F;
					if (together)
						item->end_s = p.traces[r].stages[0].items[i].end_s;
				}
		diagnose(&p, &d);
		assert_string_equal(d.verdict.stage, "read");
		if ((strcmp(d.verdict.resource, "tail") == 0) == (together != 0))
			fail_msg(
				"%s: read/%s", together ? "together" : "apart", d.verdict.resource);
		made_close(&p);
	}
}

static void uneven_times_are_no_tail(void **state)
{
	(void)state;
	struct made_plan plan = tail_of_reads("read.depth=4", MADE_SLOW_ANY);
	plan.read_slow_share = 0;
	for (double variation = 0.1; variation < 1.5; variation += 0.4) {
		struct made_point p;
		struct diagnosis d;
		plan.variation = variation;
		made_open(&p, &plan);
		diagnose(&p, &d);
		assert_string_equal(d.verdict.stage, "read");
		assert_string_not_equal(d.verdict.resource, "tail");
		made_close(&p);
	}
}

/* The same tail in front of a step that takes longer than all reads: nobody waits for it. */
static void slow_files_that_nobody_waits_for(void **state)
{
	(void)state;
	struct made_plan plan = tail_of_reads("read.depth=64", MADE_SLOW_SAME);
	struct made_point p;
	struct diagnosis d;
	plan.read_slow_factor = 20;
	plan.set[2] = "prefetch.depth=16";
	plan.set[3] = "step.time=60ms";
	plan.set[5] = "batch.order=as-completed";
	plan.ns[COST_STEP_DEVICE] = 60 * 1e6;
	made_open(&p, &plan);
	diagnose(&p, &d);
	expect_pair(&d, "step", "compute");
	made_close(&p);
}

/* A few huge pictures: decoding is CPU-bound, and the evidence names them. */
static void huge_samples_are_named(void **state)
{
	(void)state;
	struct made_plan plan = {
		.set = {"decode.workers=2", "batch.size=16", "prefetch.depth=8", "step.time=1ms"},
		.ns = {[COST_READ_CPU] = 20 * 1e3,
			[COST_DECODE_CPU] = 1e6,
			[COST_STEP_DEVICE] = 1e6},
		.variation = 0.1,
		.slow_share = 0.02,
		.slow_factor = 100,
		.slow = MADE_SLOW_SAME,
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	made_open(&p, &plan);
	diagnose(&p, &d);
	assert_true(
		strcmp(d.verdict.stage, "decode") == 0 || strcmp(d.verdict.stage, "prefetch") == 0);
	const char *line = line_with(&d, "of the samples take");
	assert_non_null(line);
	plan.slow_share = 0;
	const double truth = rate_of(&plan) / p.summary.median;
	print_message("predicted %.1f, %.2f without\n", predicted_gain(line), truth);
	assert_true(fabs(log(predicted_gain(line) / truth)) < 0.15);
	assert_non_null(line_with(&d, "slow samples are the same each time"));
	made_close(&p);
}

/* Where opening is most of a file's time, the evidence says so. */
static void slow_opens_are_told(void **state)
{
	(void)state;
	static const double shares[] = {0.2, 0.8};
	struct made_plan plan = tail_of_reads("read.depth=4", MADE_SLOW_ANY);
	plan.read_slow_share = 0;
	for (size_t s = 0; s < 2; s++) {
		struct made_point p;
		struct diagnosis d;
		made_open(&p, &plan);
		for (size_t r = 0; r < MADE_REPEATS; r++)
			for (size_t i = 0; i < MADE_ITEMS; i++) {
				struct trace_item *item = &p.traces[r].stages[0].items[i];
				item->open_ns = i % 16 ? NAN : (float)shares[s] * item->service_ns;
			}
		diagnose(&p, &d);
		const char *line = line_with(&d, "Opening a file takes");
		assert_true(
			shares[s] > 0.5 ? line && strstr(line, ", 80 % (medians of 375)") : !line);
		made_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_is_named),
		cmocka_unit_test(few_files_tell_a_tail),
		cmocka_unit_test(which_files_are_slow),
		cmocka_unit_test(files_that_wait_together_are_a_stall),
		cmocka_unit_test(uneven_times_are_no_tail),
		cmocka_unit_test(slow_files_that_nobody_waits_for),
		cmocka_unit_test(huge_samples_are_named),
		cmocka_unit_test(slow_opens_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
