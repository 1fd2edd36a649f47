/* Whether a report is reproduced: what is shown, refuted and left open, how often that errs, how
 * many repetitions would decide, and which differences of two environments could be the reason. */
#include "harness/analyze/reproduction.h"

#include "tests/unit/model_fixture.h"

/* tests/bench/bench_looks.c takes more of them. */
enum { SERIES = 100, CASE_SEED = 20261126 };

/* 600 samples/s (580 to 620), read for latency; the twin of it so, too. */
static struct reproduction as_reported(void)
{
	struct reproduction r = {.reported = {.rate = 600,
					 .interval = {580, 620},
					 .stage = "read",
					 .resource = "latency",
					 .confidence = 0.9},
		.tolerance = REPRODUCTION_TOLERANCE,
		.seen = {.stage = "read", .resource = "latency", .confidence = 0.9},
		.rates = {612, 609, 615, 611, 613, 610},
		.rate_count = 6,
		.variants = {{.stage = "read",
				     .ratios = {2.1, 2.2, 2.15, 2.1, 2.2, 2.1},
				     .count = 6},
			{.stage = "decode", .ratios = {1.0, 1.01, 1.0, 0.99, 1.0, 1.0}, .count = 6},
			{.stage = "step", .ratios = {1.01, 1.0, 1.0, 1.0, 1.0, 0.99}, .count = 6}},
		.variant_count = 3};
	return r;
}

static void judge(struct reproduction *r)
{
	reproduction_judge(r);
	reproduction_advise(r);
}

static void the_same_rate_for_the_same_reason_is_reproduced(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	judge(&r);
	assert_int_equal(r.outcome, REPRODUCTION_SHOWN);
	assert_int_equal(r.rate, RATE_WITHIN);
	assert_int_equal(r.cause, CAUSE_SAME);
	assert_false(r.by_diagnosis);
	assert_int_equal(r.most, 0);
	assert_true(r.twin.interval.low < 611 && r.twin.interval.high > 612);
	assert_int_equal(r.variants[0].relief, RELIEF_GAINS);
	assert_int_equal(r.variants[1].relief, RELIEF_NOTHING);
	assert_string_equal(r.why, "");
}

static void the_same_rate_for_another_reason_is_not(void **state)
{
	(void)state;
	/* Relieving the reported stage gains nothing. */
	struct reproduction r = as_reported();
	(void)snprintf(r.reported.stage, sizeof r.reported.stage, "decode");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OTHER_STAGE);
	assert_int_equal(r.rate, RATE_WITHIN);
	assert_int_equal(r.outcome, REPRODUCTION_REFUTED);
	assert_int_equal(r.most, 0);
	/* It gains, and another one gains more. */
	for (size_t i = 0; i < 6; i++)
		r.variants[1].ratios[i] = 1.3 + 0.01 * (double)i;
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OTHER_STAGE);
	/* As much as the other one: both bind. */
	memcpy(r.variants[1].ratios, r.variants[0].ratios, sizeof r.variants[1].ratios);
	(void)snprintf(r.seen.also, sizeof r.seen.also, "decode");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_SAME);
	/* The stage, for want of another resource. */
	r = as_reported();
	(void)snprintf(r.seen.resource, sizeof r.seen.resource, "bandwidth");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OTHER_RESOURCE);
	assert_int_equal(r.outcome, REPRODUCTION_REFUTED);
}

static void what_is_not_shown_is_open(void **state)
{
	(void)state;
	/* The diagnosis abstains: what the stage lacks is not known. */
	struct reproduction r = as_reported();
	r.seen = (struct reproduction_seen){.stage = "none", .resource = "unknown"};
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN);
	assert_int_equal(r.outcome, REPRODUCTION_OPEN);
	assert_non_null(strstr(r.why, "none/unknown"));
	/* A diagnosis and an experiment that contradict each other. */
	r.seen = (struct reproduction_seen){
		.stage = "decode", .resource = "cpu", .confidence = 0.95};
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN);
	/* One repetition. */
	r = as_reported();
	r.rate_count = 1;
	judge(&r);
	assert_int_equal(r.outcome, REPRODUCTION_OPEN);
	assert_int_equal(r.repeats_needed, 4);
	/* None. */
	r.rate_count = 0;
	judge(&r);
	assert_true(isnan(r.twin.value));
	assert_int_equal(r.outcome, REPRODUCTION_OPEN);
	/* A gain that may be anything. */
	r = as_reported();
	const double noisy[] = {0.8, 1.5, 1.0, 1.4, 0.9, 1.3};
	memcpy(r.variants[0].ratios, noisy, sizeof noisy);
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN);
	assert_true(r.repeats_needed > 6 || r.edge);
	/* A case without a throughput. */
	r = as_reported();
	r.reported.rate = NAN;
	judge(&r);
	assert_int_equal(r.rate, RATE_UNTOLD);
	assert_int_equal(r.outcome, REPRODUCTION_OPEN);
}

static void another_rate_is_not_reproduced(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	for (size_t i = 0; i < r.rate_count; i++)
		r.rates[i] = 905 + (double)i;
	judge(&r);
	assert_int_equal(r.rate, RATE_ABOVE);
	assert_int_equal(r.outcome, REPRODUCTION_REFUTED);
	for (size_t i = 0; i < r.rate_count; i++)
		r.rates[i] = 300 + (double)i;
	judge(&r);
	assert_int_equal(r.rate, RATE_BELOW);
	assert_int_equal(r.outcome, REPRODUCTION_REFUTED);
}

static void a_case_without_a_sure_cause_is_judged_by_its_rate(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	r.reported.confidence = 0.3;
	(void)snprintf(r.reported.stage, sizeof r.reported.stage, "step");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_UNTOLD);
	assert_int_equal(r.outcome, REPRODUCTION_SHOWN);
	r.reported.confidence = NAN; /* nobody says that it is unsure */
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OTHER_STAGE);
	(void)snprintf(r.reported.stage, sizeof r.reported.stage, "unknown");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_UNTOLD);
}

static void without_a_variant_the_diagnosis_decides(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	(void)snprintf(r.reported.stage, sizeof r.reported.stage, "prefetch");
	(void)snprintf(r.reported.resource, sizeof r.reported.resource, "depth");
	(void)snprintf(r.seen.stage, sizeof r.seen.stage, "prefetch");
	(void)snprintf(r.seen.resource, sizeof r.seen.resource, "depth");
	judge(&r);
	assert_true(r.by_diagnosis);
	assert_int_equal(r.cause, CAUSE_SAME);
	(void)snprintf(r.seen.stage, sizeof r.seen.stage, "read");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OTHER_STAGE);
	r.seen.confidence = 0.2;
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN);
}

static void a_full_store_is_one_whatever_fills_it(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	(void)snprintf(r.reported.resource, sizeof r.reported.resource, "full");
	(void)snprintf(r.seen.resource, sizeof r.seen.resource, "iops");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_SAME);
	(void)snprintf(r.reported.resource, sizeof r.reported.resource, "bandwidth");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OTHER_RESOURCE);
	(void)snprintf(r.reported.resource, sizeof r.reported.resource, "unknown");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_SAME);
}

/* An observation from outside does not tell a slow store from a full one. */
static void a_report_may_allow_several_resources(void **state)
{
	(void)state;
	static const char *const same[] = {"latency", "full", "iops", "network", "stalls"};
	static const char *const other[] = {"cpu", "cores", "depth", "shared"};
	struct reproduction r = as_reported();
	(void)snprintf(
		r.reported.resource, sizeof r.reported.resource, "latency or full or stalls");
	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
		(void)snprintf(r.seen.resource, sizeof r.seen.resource, "%s", same[i]);
		judge(&r);
		assert_int_equal(r.cause, CAUSE_SAME);
	}
	for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
		(void)snprintf(r.seen.resource, sizeof r.seen.resource, "%s", other[i]);
		judge(&r);
		assert_int_equal(r.cause, CAUSE_OTHER_RESOURCE);
		assert_int_equal(r.outcome, REPRODUCTION_REFUTED);
	}
	(void)snprintf(r.seen.resource, sizeof r.seen.resource, "unknown");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN);
}

/* Where two bind together, none gains when it is relieved alone: the diagnosis has to name one of them, and no other stage may
 * gain. */
static void a_report_may_allow_several_stages(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	r.reported.resource[0] = '\0';
	(void)snprintf(r.reported.stage, sizeof r.reported.stage, "read or step");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_SAME); /* one of them gains */
	assert_false(r.by_diagnosis);
	(void)snprintf(r.reported.stage, sizeof r.reported.stage, "decode or step");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OTHER_STAGE); /* reading gains, which is none of them */
	for (size_t i = 0; i < r.variants[0].count; i++)
		r.variants[0].ratios[i] = r.variants[1].ratios[i];
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN); /* the diagnosis says read */
	(void)snprintf(r.seen.stage, sizeof r.seen.stage, "step");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_SAME);
	assert_true(r.by_diagnosis);
	r.seen.confidence = REPRODUCTION_SURE / 2;
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN);
}

/* The costs of the replay say "cpu" whatever keeps the workers from it: that may confirm a report, and refutes none. */
static void a_replay_alone_refutes_no_resource(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	(void)snprintf(r.seen.resource, sizeof r.seen.resource, "cpu");
	r.seen.by_replay = true;
	(void)snprintf(r.reported.resource, sizeof r.reported.resource, "cores");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_OPEN);
	assert_int_equal(r.outcome, REPRODUCTION_OPEN);
	(void)snprintf(r.reported.resource, sizeof r.reported.resource, "cpu");
	judge(&r);
	assert_int_equal(r.cause, CAUSE_SAME);
}

/* --- errors ----------------------------------------------------------------------------------- */

/* What comes of repetitions of a twin whose truth is `truth`, looked at as the command does, the
 * last time after `most` of them. */
static enum reproduction_rate stopped_at(
	double truth, double deviation, size_t most, uint64_t stream)
{
	struct reproduction r = as_reported();
	struct rng rng;
	rng_init(&rng, CASE_SEED, stream);
	r.rate_count = 0;
	r.variant_count = 0;
	while (r.rate_count < most) {
		r.rates[r.rate_count++] = truth * exp(deviation * rng_normal(&rng));
		if (!reproduction_is_look(r.rate_count) && r.rate_count < most)
			continue;
		reproduction_judge(&r);
		if (r.rate != RATE_OPEN)
			break;
	}
	return r.rate;
}

static double share_of(double truth, double deviation, size_t most, enum reproduction_rate rate)
{
	size_t found = 0;
	for (uint64_t i = 0; i < SERIES; i++)
		found += stopped_at(truth, deviation, most, i) == rate;
	return (double)found / SERIES;
}

/* At the edges of the band, where it errs most. */
static void errors_are_as_rare_as_promised(void **state)
{
	(void)state;
	static const double deviations[] = {0.003, 0.02, 0.06};
	for (size_t i = 0; i < sizeof deviations / sizeof deviations[0]; i++) {
		const double low = share_of(580 * 0.9, deviations[i], 48, RATE_WITHIN);
		const double high = share_of(620 * 1.1, deviations[i], 30, RATE_WITHIN);
		const double below = share_of(580 * 0.9, deviations[i], 48, RATE_BELOW);
		print_message("spread %.1f %%: false 'within' at the edges %.2f %% and %.2f %%, "
			      "false 'below' %.2f %%\n",
			100 * deviations[i], 100 * low, 100 * high, 100 * below);
		assert_true(low <= 0.05);
		assert_true(high <= 0.05);
		assert_true(below <= 0.05);
	}
}

static void what_is_so_is_found(void **state)
{
	(void)state;
	const double same = share_of(600, 0.02, 14, RATE_WITHIN);
	const double other = share_of(900, 0.06, 14, RATE_ABOVE);
	print_message("found: the same rate %.1f %%, 1.5 times the rate %.1f %%\n", 100 * same,
		100 * other);
	assert_true(same >= 0.99);
	assert_true(other >= 0.99);
}

/* One of six stalled: it counts, is told, and the answer stays. */
static void a_stall_decides_nothing(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	r.rates[1] = 380;
	judge(&r);
	assert_int_equal(r.twin.count, 6);
	assert_int_equal(r.twin.stood_out, 1);
	assert_int_equal(r.rate, RATE_WITHIN);
	assert_int_equal(r.outcome, REPRODUCTION_SHOWN);
	/* Every second one is no exception. */
	r.rates[2] = r.rates[4] = 385;
	judge(&r);
	assert_int_equal(r.rate, RATE_OPEN);
	/* Without a stall nothing stands out, but seldom. */
	size_t stood_out = 0;
	for (uint64_t i = 0; i < SERIES; i++) {
		struct rng rng;
		rng_init(&rng, CASE_SEED + 2, i);
		r.rate_count = 4 + (size_t)(i % 10);
		for (size_t k = 0; k < r.rate_count; k++)
			r.rates[k] = 600 * exp(0.02 * rng_normal(&rng));
		judge(&r);
		stood_out += r.twin.stood_out > 0;
	}
	print_message(
		"something stands out by chance in %.1f %%\n", 100.0 * (double)stood_out / SERIES);
	assert_true(stood_out <= SERIES / 50);
}

/* Four times in five, with the number that was advised. */
static void the_advised_number_decides(void **state)
{
	(void)state;
	struct reproduction r = as_reported();
	const double few[] = {560, 630, 590, 655};
	memcpy(r.rates, few, sizeof few);
	r.rate_count = 4;
	r.variant_count = 0;
	r.reported.stage[0] = '\0';
	judge(&r);
	assert_int_equal(r.rate, RATE_OPEN);
	assert_true(r.repeats_needed > 4 && r.repeats_needed < REPRODUCTION_REPEATS_MAX);
	size_t decided = 0;
	for (uint64_t i = 0; i < SERIES; i++) {
		struct reproduction more = r;
		struct rng rng;
		rng_init(&rng, CASE_SEED + 1, i);
		for (more.rate_count = 0; more.rate_count < r.repeats_needed;)
			more.rates[more.rate_count++] =
				r.twin.value * exp(r.twin.deviation * rng_normal(&rng));
		reproduction_judge(&more);
		decided += more.rate == RATE_WITHIN;
	}
	print_message("%zu repetitions decide in %.1f %%\n", r.repeats_needed,
		100.0 * (double)decided / SERIES);
	assert_true((double)decided >= SERIES * 0.74);
	assert_true((double)decided <= SERIES * 0.95);
	/* At the edge of the band no number does. */
	const double edge[] = {681, 682.5, 681.5, 683};
	memcpy(r.rates, edge, sizeof edge);
	judge(&r);
	assert_int_equal(r.rate, RATE_OPEN);
	assert_int_equal(r.repeats_needed, 0);
	assert_true(r.edge);
}

static void looks_go_up_to_the_end(void **state)
{
	(void)state;
	size_t looks = 0;
	for (size_t n = reproduction_next_look(0); n < REPRODUCTION_REPEATS_MAX;
		n = reproduction_next_look(n)) {
		assert_true(reproduction_is_look(n));
		looks++;
	}
	assert_int_equal(looks, 6);
	assert_int_equal(
		reproduction_next_look(REPRODUCTION_REPEATS_MAX), REPRODUCTION_REPEATS_MAX);
}

/* --- what would have to differ ---------------------------------------------------------------- */

/* Decoding binds: 8 workers, 800 us a sample, cores enough: 10,000 samples/s. */
static const struct truth roomy = {
	.settings = {"decode.workers=8", "step.time=1ms", NULL},
	.read_cpu_us = 5,
	.read_latency_us = 200,
	.decode_us = 800,
	.decode_cv = 0.2,
	.step_ms = 1,
	.host_us = 20,
	.cores = 16,
	.samples = 4000,
};

static void costs_are_scaled_to_the_reported_rate(void **state)
{
	(void)state;
	struct truth_run *run = truth_make(&roomy);
	struct model model;
	struct error err;
	struct reproduction_need needs[COSTS];
	size_t count;
	bool decode = false;
	truth_open(&model, run);
	assert_int_equal(reproduction_needs(&model, 5000, needs, COSTS, &count, &err), 0);
	for (size_t i = 0; i < count; i++) {
		print_message(
			"%s/%s: %.2f times\n", needs[i].stage, needs[i].resource, needs[i].factor);
		assert_true(needs[i].factor > 1);
		if (strcmp(needs[i].stage, "decode") == 0 &&
			strcmp(needs[i].resource, "cpu") == 0) {
			assert_about(needs[i].factor, 2, 0.05);
			decode = true;
		}
	}
	assert_true(decode);
	/* Faster than the step lets it be: no single cost gives it. */
	assert_int_equal(reproduction_needs(&model, 40000, needs, COSTS, &count, &err), 0);
	for (size_t i = 0; i < count; i++)
		assert_true(isnan(needs[i].factor));
	model_close(&model);
	truth_free(run);
}

static const struct reproduction_difference *named(
	const struct reproduction_difference *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	fail_msg("no difference '%s'", name);
	return list; /* not reached */
}

static void differences_are_weighed_by_what_they_would_do(void **state)
{
	(void)state;
	struct truth_run *run = truth_make(&roomy);
	struct model model;
	struct error err;
	struct reproduction r = {
		.reported = {.rate = 5000, .interval = {NAN, NAN}}, .tolerance = 0.1};
	struct reproduction_difference list[] = {
		{.name = "kernel", .lever = LEVER_NONE, .value = NAN},
		{.name = "storage", .lever = LEVER_STAGE, .stage = "read", .value = NAN},
		{.name = "latency", .lever = LEVER_LATENCY, .value = 250e3},
		{.name = "quota", .lever = LEVER_QUOTA, .value = 6},
		{.name = "bandwidth", .lever = LEVER_BANDWIDTH, .value = 2e9},
		{.name = "cores", .lever = LEVER_CORES, .value = 4}};
	const size_t count = sizeof list / sizeof list[0];
	truth_open(&model, run);
	reproduction_judge(&r);
	assert_int_equal(reproduction_rank(list, count, &model, 100000, &r, &err), 0);
	for (size_t i = 0; i < count; i++)
		print_message("%s: %s, %.0f samples/s\n", list[i].name,
			reproduction_weight_name(list[i].weight), list[i].predicted);
	assert_string_equal(list[0].name, "cores");
	assert_int_equal(list[0].weight, WEIGHT_EXPLAINS);
	assert_string_equal(list[1].name, "quota");
	assert_int_equal(list[1].weight, WEIGHT_PART);
	assert_int_equal(named(list, count, "storage")->weight, WEIGHT_MAY);
	assert_int_equal(named(list, count, "kernel")->weight, WEIGHT_UNLIKELY);
	assert_int_equal(named(list, count, "latency")->weight, WEIGHT_UNLIKELY);
	assert_int_equal(named(list, count, "bandwidth")->weight, WEIGHT_UNLIKELY);
	/* 500 MB/s are 5,000 samples of 100,000 bytes. */
	list[0] = (struct reproduction_difference){
		.name = "bandwidth", .lever = LEVER_BANDWIDTH, .value = 500e6};
	assert_int_equal(reproduction_rank(list, 1, &model, 100000, &r, &err), 0);
	assert_int_equal(list[0].weight, WEIGHT_EXPLAINS);
	/* Nothing known of the twin. */
	assert_int_equal(reproduction_rank(list, 1, NULL, NAN, &r, &err), 0);
	assert_int_equal(list[0].weight, WEIGHT_MAY);
	model_close(&model);
	truth_free(run);
}

static void a_step_made_of_the_reported_rate_shows_nothing(void **state)
{
	(void)state;
	/* The case names no cause, and the twin's step limits it. */
	struct reproduction r = as_reported();
	r.step_is_of_rate = true;
	r.reported.stage[0] = r.reported.resource[0] = '\0';
	for (size_t i = 0; i < 6; i++) {
		r.variants[0].ratios[i] = r.variants[1].ratios[i];
		r.variants[2].ratios[i] = 5 + 0.01 * (double)i;
	}
	judge(&r);
	assert_int_equal(r.rate, RATE_WITHIN);
	assert_int_equal(r.outcome, REPRODUCTION_OPEN);
	assert_true(r.circular && reproduction_is_stuck(&r));
	assert_int_equal(r.repeats_needed, 0);
	assert_non_null(strstr(r.why, "step.time"));
	/* A step of which a source told the time. */
	r.step_is_of_rate = false;
	judge(&r);
	assert_int_equal(r.outcome, REPRODUCTION_SHOWN);
	/* Reading, as reported, is shown to limit the twin, and its step is not. */
	r = as_reported();
	r.step_is_of_rate = true;
	judge(&r);
	assert_int_equal(r.outcome, REPRODUCTION_SHOWN);
	/* Another rate is another rate. */
	r.reported.rate = 900;
	r.reported.interval = (struct interval){880, 920};
	judge(&r);
	assert_int_equal(r.outcome, REPRODUCTION_REFUTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_rate_for_the_same_reason_is_reproduced),
		cmocka_unit_test(the_same_rate_for_another_reason_is_not),
		cmocka_unit_test(what_is_not_shown_is_open),
		cmocka_unit_test(another_rate_is_not_reproduced),
		cmocka_unit_test(a_case_without_a_sure_cause_is_judged_by_its_rate),
		cmocka_unit_test(a_step_made_of_the_reported_rate_shows_nothing),
		cmocka_unit_test(without_a_variant_the_diagnosis_decides),
		cmocka_unit_test(a_full_store_is_one_whatever_fills_it),
		cmocka_unit_test(a_report_may_allow_several_stages),
		cmocka_unit_test(a_report_may_allow_several_resources),
		cmocka_unit_test(a_replay_alone_refutes_no_resource),
		cmocka_unit_test(errors_are_as_rare_as_promised),
		cmocka_unit_test(what_is_so_is_found),
		cmocka_unit_test(a_stall_decides_nothing),
		cmocka_unit_test(the_advised_number_decides),
		cmocka_unit_test(looks_go_up_to_the_end),
		cmocka_unit_test(costs_are_scaled_to_the_reported_rate),
		cmocka_unit_test(differences_are_weighed_by_what_they_would_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
