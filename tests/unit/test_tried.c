/* What was measured stands above what is predicted: points of a sweep and trials as changes against a point, the last step in a
 * direction, what it does to recommendations and confidence, and what becomes of advice that was taken. */
#include "harness/analyze/verdict.h"
#include "harness/report/trials.h"
#include "tests/unit/diagnose_fixture.h"

#include <errno.h>
#include <unistd.h>

enum { THOROUGH = 16, TRIED_MOST = 8 };

static const struct made_plan decode_bound = {
	.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "step.time=4ms"},
	.ns = {[COST_READ_CPU] = 20 * 1e3,
		[COST_DECODE_CPU] = 4 * 1e6,
		[COST_STEP_DEVICE] = 4 * 1e6},
	.variation = 0.3,
	.cores = 8};

struct table {
	struct tried_point points[TRIED_MOST];
	struct tried tried;
};

static struct tried_point *add(struct table *table, double rate, double half)
{
	struct tried_point *p = &table->points[table->tried.count++];
	*p = (struct tried_point){.rate = rate, .half = half};
	table->tried.points = table->points;
	return p;
}

static void change(struct tried_point *p, enum key_id key, int64_t value)
{
	p->changes[p->change_count++] =
		(struct tried_change){.key = key, .value = {.integer = value}};
}

static void set(struct config *config, const char *setting)
{
	struct error err;
	assert_int_equal(config_set(config, setting, &err), 0);
}

static void diagnose(struct made_point *p, const struct tried *tried, struct diagnosis *d)
{
	struct error err;
	p->input.tried = tried;
	assert_int_equal(diagnose_point(&p->input, THOROUGH, d, &err), 0);
}

static bool says(const struct diagnosis *d, const char *text)
{
	for (size_t i = 0; i < d->verdict.evidence_count; i++)
		if (strstr(d->verdict.evidence[i], text))
			return true;
	return false;
}

static bool recommends(const struct diagnosis *d, const char *key)
{
	for (size_t i = 0; i < d->recommendation_count; i++)
		for (size_t k = 0; k < d->recommendations[i].setting_count; k++)
			if (strncmp(d->recommendations[i].settings[k], key, strlen(key)) == 0)
				return true;
	return false;
}

/* --- looking up ---------------------------------------------------------------------------------- */

/* The answer is a function of the set of points: the order in which they were measured is none of its business. */
static void the_last_step_is_found_in_any_order(void **state)
{
	static const struct {
		int64_t depth;
		double rate;
	} measured[] = {{4, 455}, {8, 449}, {16, 408}, {2, 300}};
	static const size_t orders[][4] = {
		{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}, {2, 1, 3, 0}};
	struct config base;
	struct config there;
	struct error err;
	(void)state;
	config_init(&base);
	set(&base, "read.depth=4");
	assert_int_equal(config_copy(&there, &base, &err), 0);
	for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
		struct table table = {0};
		for (size_t i = 0; i < 4; i++) {
			struct tried_point *p = add(&table, measured[orders[o][i]].rate, 0.01);
			if (measured[orders[o][i]].depth != 4)
				change(p, KEY_READ_DEPTH, measured[orders[o][i]].depth);
		}
		change(add(&table, 9999, 0.01), KEY_DECODE_WORKERS, 3); /* of another setting */
		struct tried_step step =
			tried_last_step(&table.tried, &base, &base, KEY_READ_DEPTH, true);
		assert_int_equal(step.answer, TRIED_NO_GAIN);
		assert_int_equal(step.from, 8);
		assert_int_equal(step.to, 16);
		assert_true(fabs(step.gain - (408.0 / 449 - 1)) < 1e-12);
		assert_true(step.gain_90.low < step.gain && step.gain < step.gain_90.high);
		step = tried_last_step(&table.tried, &base, &base, KEY_READ_DEPTH, false);
		assert_int_equal(step.from, 4);
		assert_int_equal(step.to, 2);
		assert_true(tried_at(&table.tried, &base, &base)->rate == 455);
		set(&there, "read.depth=8");
		assert_true(tried_at(&table.tried, &base, &there)->rate == 449);
		set(&there, "read.depth=32");
		assert_null(tried_at(&table.tried, &base, &there));
		/* From where another key is set, too, only what shares that counts. */
		set(&there, "decode.workers=3");
		step = tried_last_step(&table.tried, &base, &there, KEY_READ_DEPTH, true);
		assert_int_equal(step.answer, TRIED_NOTHING);
		set(&there, base.values[KEY_DECODE_WORKERS].integer == 1 ? "decode.workers=1"
									 : "decode.workers=2");
	}
	config_release(&there);
	config_release(&base);
}

static void a_gain_is_judged_beside_its_noise(void **state)
{
	static const struct {
		double rate, half;
		enum tried_answer answer;
	} cases[] = {{190, 0.01, TRIED_GAINS}, {190, 0.6, TRIED_UNSURE}, {106, 0.01, TRIED_UNSURE},
		{104, 0.001, TRIED_NO_GAIN}, {90, 0.3, TRIED_NO_GAIN}, {120, 0.01, TRIED_GAINS}};
	struct config base;
	(void)state;
	config_init(&base);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct table table = {0};
		(void)add(&table, 100, 0.02);
		change(add(&table, cases[i].rate, cases[i].half), KEY_PREFETCH_DEPTH, 64);
		const struct tried_step step =
			tried_last_step(&table.tried, &base, &base, KEY_PREFETCH_DEPTH, true);
		assert_int_equal(step.answer, cases[i].answer);
	}
	const struct tried_step none = tried_last_step(NULL, &base, &base, KEY_READ_DEPTH, true);
	assert_int_equal(none.answer, TRIED_NOTHING);
	config_release(&base);
}

/* --- recommendations ----------------------------------------------------------------------------- */

static void what_gained_nothing_is_not_recommended(void **state)
{
	struct made_point p;
	struct diagnosis d;
	struct table table = {0};
	(void)state;
	made_open(&p, &decode_bound);
	diagnose(&p, NULL, &d);
	assert_true(recommends(&d, "decode.workers="));
	const double confidence = d.verdict.confidence;
	(void)add(&table, p.summary.median, 0.01);
	change(add(&table, 1.01 * p.summary.median, 0.01), KEY_DECODE_WORKERS, 3);
	diagnose(&p, &table.tried, &d);
	assert_false(recommends(&d, "decode.workers="));
	assert_true(says(&d, "No gain was measured from decode.workers=2 to 3"));
	/* A loss is told as one. */
	change(add(&table, 0.52 * p.summary.median, 0.01), KEY_DECODE_WORKERS, 4);
	diagnose(&p, &table.tried, &d);
	assert_true(says(&d, "Raising decode.workers from 3 to 4 costs 49 %"));
	assert_false(says(&d, "No gain was measured"));
	table.tried.count = 2;
	diagnose(&p, &table.tried, &d);
	/* Nothing was predicted there: the verdict is as sure as before. */
	assert_true(d.verdict.confidence >= confidence - 1e-12);
	/* What was measured of another setting says nothing here. */
	table.tried.count = 1;
	struct tried_point *other = add(&table, 1.01 * p.summary.median, 0.01);
	change(other, KEY_DECODE_WORKERS, 3);
	change(other, KEY_BATCH_SIZE, 64);
	diagnose(&p, &table.tried, &d);
	assert_true(recommends(&d, "decode.workers="));
	made_close(&p);
}

static void a_doubtful_step_widens_the_interval(void **state)
{
	struct made_point p;
	struct diagnosis d;
	struct table table = {0};
	(void)state;
	made_open(&p, &decode_bound);
	(void)add(&table, p.summary.median, 0.2);
	change(add(&table, 1.3 * p.summary.median, 0.2), KEY_DECODE_WORKERS, 3);
	diagnose(&p, &table.tried, &d);
	assert_true(recommends(&d, "decode.workers="));
	const struct recommendation *r = &d.recommendations[0];
	assert_true(r->interval.low <= 1.02 * p.summary.median);
	assert_non_null(strstr(r->words, "no sure gain was measured from decode.workers=2 to 3"));
	made_close(&p);
}

static void what_was_measured_replaces_the_prediction(void **state)
{
	struct made_point p;
	struct diagnosis d;
	struct table table = {0};
	(void)state;
	made_open(&p, &decode_bound);
	(void)add(&table, p.summary.median, 0.01);
	change(add(&table, 2 * p.summary.median, 0.01), KEY_DECODE_WORKERS, 8);
	diagnose(&p, &table.tried, &d);
	assert_true(recommends(&d, "decode.workers=8"));
	assert_true(d.recommendations[0].measured == 2 * p.summary.median);
	assert_true(recommendation_rate(&d.recommendations[0]) == 2 * p.summary.median);
	assert_non_null(strstr(d.verdict.advice, "measured "));
	/* What could not be measured is none to recommend. */
	table.points[1].rate = NAN;
	diagnose(&p, &table.tried, &d);
	assert_false(recommends(&d, "decode.workers=8"));
	made_close(&p);
}

/* The value of a key in the longest chain; 0: it is not set there. */
static int64_t recommended(const struct diagnosis *d, const char *key)
{
	long long value = 0;
	for (size_t k = 0; d->recommendation_count > 0 && k < d->recommendations[0].setting_count;
		k++)
		if (strncmp(d->recommendations[0].settings[k], key, strlen(key)) == 0)
			value = strtoll(d->recommendations[0].settings[k] + strlen(key), NULL, 10);
	return value;
}

/* Depth and threads are one means where latency is the limit; and a link of the chain is held against what was measured of
 * where it begins. */
static void one_means_of_two_keys(void **state)
{
	static const struct made_plan plan = {
		.set = {"decode.workers=2", "batch.size=8", "prefetch.depth=4", "read.depth=1",
			"step.time=1ms"},
		.ns = {[COST_READ_CPU] = 10 * 1e3,
			[COST_READ_LATENCY] = 1.2 * 1e6,
			[COST_DECODE_WAIT] = 4 * 1e6,
			[COST_STEP_DEVICE] = 1e6},
		.variation = 0.1,
		.reads_twice = true,
		.cores = 4};
	struct made_point p;
	struct diagnosis d;
	struct table table = {0};
	(void)state;
	made_open(&p, &plan);
	diagnose(&p, NULL, &d);
	const int64_t workers = recommended(&d, "decode.workers=");
	assert_true(workers > 2 && recommended(&d, "read.depth=") > 1);
	for (int64_t w = workers; w > 2; w /= 2)
		for (int64_t threads = 1; threads <= 2; threads++) {
			struct tried_point *there = add(&table, 1.5 * p.summary.median, 0.01);
			change(there, KEY_DECODE_WORKERS, w);
			if (threads > 1)
				change(there, KEY_READ_THREADS, threads);
		}
	diagnose(&p, &table.tried, &d);
	assert_true(recommends(&d, "decode.workers="));
	assert_false(recommends(&d, "read."));
	made_close(&p);
}

static void a_failed_prediction_lowers_the_confidence(void **state)
{
	struct made_point p;
	struct diagnosis d;
	struct table table = {0};
	(void)state;
	made_open(&p, &decode_bound);
	diagnose(&p, NULL, &d);
	const double before = d.verdict.confidence;
	const double odds = before / (1 - before);
	(void)add(&table, p.summary.median, 0.01);
	struct tried_point *failed = add(&table, 1.01 * p.summary.median, 0.01);
	change(failed, KEY_DECODE_WORKERS, 8);
	failed->failed = true;
	diagnose(&p, &table.tried, &d);
	assert_true(fabs(d.verdict.confidence - odds / 4 / (1 + odds / 4)) < 1e-9);
	assert_true(says(&d, "1 of its predictions did not come true"));
	assert_true(fabs(confidence_failed(confidence_failed(0.8, 4), 4) - 0.2) < 1e-12);
	made_close(&p);
}

/* --- trials -------------------------------------------------------------------------------------- */

static struct trial judged(double before, double rate, double half, double low, double high)
{
	struct trial trial = {.set = "read.depth=32",
		.before = before,
		.before_half = half,
		.rate = rate,
		.half = half,
		.predicted = (low + high) / 2,
		.predicted_90 = {low, high}};
	trial_judge(&trial);
	return trial;
}

static void advice_is_undone_when_it_does_not_come_true(void **state)
{
	static const struct {
		double before, rate, half, low, high;
		enum experiment_outcome outcome;
		bool kept;
	} cases[] = {
		{317, 333, 0.02, 2900, 3400, EXPERIMENT_FAILED, false},
		{317, 1500, 0.02, 2900, 3400, EXPERIMENT_FAILED, true}, /* less, and real */
		{317, 250, 0.02, 2900, 3400, EXPERIMENT_FAILED, false},
		{317, 5000, 0.02, 2900, 3400, EXPERIMENT_FAILED, true}, /* wrong all the same */
		{317, 3100, 0.02, 2900, 3400, EXPERIMENT_CONFIRMED, true},
		{317, 2850, 0.05, 2900, 3400, EXPERIMENT_UNCLEAR, true},
		/* The interval allowed for it; the advice rested on its other end. */
		{317, 333, 0.02, 300, 3400, EXPERIMENT_FAILED, false},
		{317, 700, 0.2, 300, 3400, EXPERIMENT_UNCLEAR, true},
		{317, 900, 0.02, 300, 3400, EXPERIMENT_CONFIRMED, true},
		{317, NAN, NAN, 2900, 3400, EXPERIMENT_UNTRIED, false},
	};
	char words[TRIAL_WORDS_BYTES];
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct trial trial = judged(
			cases[i].before, cases[i].rate, cases[i].half, cases[i].low, cases[i].high);
		assert_int_equal(trial.outcome, cases[i].outcome);
		assert_int_equal(trial.kept, cases[i].kept);
		const bool told = strstr(trial_words(&trial, words), "did not come true");
		assert_int_equal(told, cases[i].outcome == EXPERIMENT_FAILED);
		assert_int_equal(strstr(words, "undone") != NULL, !cases[i].kept);
	}
	struct trial trial = judged(317, 333, 0.02, 2900, 3400);
	assert_non_null(strstr(
		trial_words(&trial, words), "predicted 3,150 (90 % CI 2,900-3,400), measured 333"));
	/* A disturbed node may halve a rate, and not take nine tenths of it. */
	trial.disturbed = true;
	trial_judge(&trial);
	assert_int_equal(trial.outcome, EXPERIMENT_FAILED);
	assert_false(trial.kept);
	trial.rate = 2000;
	trial_judge(&trial);
	assert_int_equal(trial.outcome, EXPERIMENT_UNCLEAR);
	assert_true(trial.kept);
	trial.disturbed = false;
	trial_judge(&trial);
	assert_int_equal(trial.outcome, EXPERIMENT_FAILED);
}

static void noise_comes_from_where_it_is_known(void **state)
{
	static const double alike[] = {100, 101, 99};
	static const double apart[] = {100, 150};
	(void)state;
	assert_true(trial_half(alike, 3, NAN) > 0.01 && trial_half(alike, 3, NAN) < 0.02);
	assert_true(trial_half(alike, 3, 0.1) == 0.1);
	assert_true(trial_half(apart, 2, 0.1) > 0.5);
	assert_true(trial_half(alike, 1, 0.03) == 0.03);
	assert_true(trial_half(alike, 1, NAN) >= 0.2);
	assert_true(tried_half(0.02, 10, 4) < tried_half(0.02, 10, 1));
}

static void trials_come_back(void **state)
{
	struct trials trials = {.count = 2};
	struct trials back;
	struct error err = {0};
	char folder[] = "/tmp/mlbench-trials-XXXXXX";
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(trials_load(folder, &back, &err), 0);
	trials.list[0] = judged(317, 333, 0.02, 2900, 3400);
	trials.list[1] = judged(317, NAN, NAN, 2900, 3400);
	trials.list[0].setting_count = 1;
	(void)snprintf(trials.list[0].settings[0], SETTING_BYTES, "read.depth=32");
	assert_int_equal(trials_save(folder, &trials, &err), 0);
	assert_int_equal(trials_load(folder, &back, &err), 1);
	assert_int_equal(back.count, 2);
	assert_string_equal(back.list[0].settings[0], "read.depth=32");
	assert_int_equal(back.list[0].outcome, EXPERIMENT_FAILED);
	assert_int_equal(back.list[1].outcome, EXPERIMENT_UNTRIED);
	json_t *json = trials_to_json(&trials);
	assert_int_equal(json_object_set_new(json, "schema", json_string("mlbench.trials/9")), 0);
	assert_int_equal(trials_from_json(&back, json, &err), -EINVAL);
	json_decref(json);
	char path[64];
	(void)snprintf(path, sizeof path, "%s/" TRIALS_FILE, folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs("{\"schema\"", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(trials_load(folder, &back, &err), -EINVAL);
	assert_non_null(strstr(err.text, TRIALS_FILE));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* --- points of a sweep --------------------------------------------------------------------------- */

enum { POINTS = 12 };

struct swept {
	struct record record;
	struct report report;
	struct point_summary points[POINTS], *pointers[POINTS];
	double repeats[POINTS][2];
};

/* decode.workers by read.depth: 100, 200, ... samples/s */
static void sweep(struct swept *swept)
{
	struct error err;
	memset(swept, 0, sizeof *swept);
	config_init(&swept->record.config);
	set(&swept->record.config, "sweep.decode.workers=1,2,4");
	set(&swept->record.config, "sweep.read.depth=1,2,4,8");
	assert_int_equal(config_grid_open(&swept->record.config, &swept->record.grid, &err), 0);
	assert_int_equal(swept->record.grid.points, POINTS);
	swept->report.record = &swept->record;
	swept->report.points = swept->pointers;
	for (size_t i = 0; i < POINTS; i++) {
		const double rate = 100.0 * (double)(i + 1);
		swept->repeats[i][0] = 0.99 * rate;
		swept->repeats[i][1] = 1.01 * rate;
		swept->points[i] = (struct point_summary){.id = (uint32_t)i,
			.median = rate,
			.repeats = swept->repeats[i],
			.repeat_count = 2};
		swept->pointers[i] = &swept->points[i];
	}
}

static void points_of_a_sweep_are_beside_each_other(void **state)
{
	struct swept swept;
	struct beside beside;
	struct config base = {0};
	struct config there = {0};
	struct error err;
	(void)state;
	sweep(&swept);
	swept.points[7].status = POINT_FAILED;
	swept.pointers[11] = NULL;
	for (size_t from = 0; from < POINTS; from++) {
		if (!swept.pointers[from])
			continue;
		assert_int_equal(beside_open(&beside, &swept.report, from, &err), 0);
		assert_int_equal(beside.tried.count, POINTS - 2);
		assert_int_equal(config_grid_point(&swept.record.config, &swept.record.grid, from,
					 &base, &err),
			0);
		for (size_t to = 0; to < POINTS; to++) {
			assert_int_equal(config_grid_point(&swept.record.config, &swept.record.grid,
						 to, &there, &err),
				0);
			const struct tried_point *p = tried_at(&beside.tried, &base, &there);
			if (to == 7 || to == 11)
				assert_null(p);
			else
				assert_true(p && p->rate == 100.0 * (double)(to + 1) &&
					    p->half > 0 && p->half < 0.03);
			config_release(&there);
		}
		const struct tried_step step =
			tried_last_step(&beside.tried, &base, &base, KEY_READ_DEPTH, true);
		assert_int_equal(step.answer, TRIED_GAINS);
		assert_int_equal(step.to, from < 4 ? 8 : 4);
		config_release(&base);
		beside_close(&beside);
	}
	config_grid_close(&swept.record.grid);
	config_release(&swept.record.config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_step_is_found_in_any_order),
		cmocka_unit_test(a_gain_is_judged_beside_its_noise),
		cmocka_unit_test(what_gained_nothing_is_not_recommended),
		cmocka_unit_test(a_doubtful_step_widens_the_interval),
		cmocka_unit_test(what_was_measured_replaces_the_prediction),
		cmocka_unit_test(one_means_of_two_keys),
		cmocka_unit_test(a_failed_prediction_lowers_the_confidence),
		cmocka_unit_test(advice_is_undone_when_it_does_not_come_true),
		cmocka_unit_test(noise_comes_from_where_it_is_known),
		cmocka_unit_test(trials_come_back),
		cmocka_unit_test(points_of_a_sweep_are_beside_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
