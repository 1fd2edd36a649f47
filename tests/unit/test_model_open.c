/* Calibration: costs, cores and noise of runs whose truth is known come back from their records. */
#include "tests/unit/model_fixture.h"

#include "harness/analyze/model_costs.h"

#include <errno.h>

static const struct truth plain = {
	.settings = {"decode.workers=2", NULL},
	.read_cpu_us = 15,
	.read_latency_us = 100,
	.decode_us = 800,
	.decode_cv = 0.3,
	.step_ms = 4,
	.host_us = 50,
	.cores = 4,
	.samples = 1500,
	.repeats = 3,
	.noise = 0.01,
};

static bool noted(const struct model *model, const char *part)
{
	for (size_t i = 0; i < model->note_count; i++)
		if (strstr(model->notes[i], part))
			return true;
	return false;
}

static void costs_come_back(void **state)
{
	(void)state;
	struct truth_run *run = truth_make(&plain);
	struct model model;
	truth_open(&model, run);
	assert_about(truth_mean(&model, COST_READ_CPU), 15, 0.01);
	assert_about(truth_mean(&model, COST_READ_LATENCY), 100, 0.01);
	assert_about(truth_mean(&model, COST_DECODE_CPU), 800, 0.03);
	assert_about(truth_mean(&model, COST_STEP_DEVICE), 4000, 0.001);
	assert_about(truth_mean(&model, COST_STEP_HOST), 50, 0.001);
	assert_int_equal(model.replay.series[COST_DECODE_WAIT].count, 0);
	assert_int_equal(model.replay.series[COST_DECODE_LOCK].count, 0);
	assert_int_equal(model.recorded, 4500);
	assert_about(model.measured, run->throughput, 0.02);
	assert_true(model.noise > 0.003 && model.noise < 0.03);
	assert_true(fabs(model.unmodelled) < 0.02);
	assert_about(model.samples_per_batch, 16, 0);
	assert_null(model.replay.worker_factor);
	model_close(&model);
	model_close(&model);
	truth_free(run);
}

static void waits_and_locks_are_told_from_cpu(void **state)
{
	(void)state;
	struct truth t = plain;
	t.decode_us = 200;
	t.decode_wait_us = 600;
	t.decode_lock_us = 100;
	struct truth_run *run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	const double lock = truth_mean(&model, COST_DECODE_LOCK);
	const double asleep = lock * model.replay.lock_off_cores;
	/* The lock is held as long as it was; whether asleep or not, is known of the stage alone. */
	assert_about(lock, 100, 0.02);
	assert_about(truth_mean(&model, COST_DECODE_CPU) + lock - asleep, 300, 0.05);
	assert_about(truth_mean(&model, COST_DECODE_WAIT) + asleep, 600, 0.05);
	model_close(&model);
	truth_free(run);
}

static void lock_alone_is_cpu_under_the_lock(void **state)
{
	(void)state;
	struct truth t = plain;
	t.decode_lock_us = 300;
	struct truth_run *run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	assert_about(truth_mean(&model, COST_DECODE_LOCK), 300, 0.02);
	assert_about(truth_mean(&model, COST_DECODE_CPU), 800, 0.03);
	assert_true(fabs(model.unmodelled) < 0.04);
	model_close(&model);
	truth_free(run);
}

static void split_under(double throttled, double working, double cpu, double queued,
	double sleep_expected, double cpu_expected)
{
	static struct measurement m;
	m.quota_cores = 0.5;
	m.throttled_share = throttled;
	struct stage_measurement stage = {.workers = 1, .lock_wait_seconds = NAN};
	stage.seconds[THREAD_WORKING] = working;
	stage.cpu_seconds = cpu;
	stage.run_queue_seconds = queued;
	const struct time_split split = time_split_of(&m, &stage);
	assert_true(split.known);
	assert_true(fabs(split.cpu - cpu_expected) < 0.01);
	assert_true(fabs(split.sleep - sleep_expected) < 0.02);
}

static void split_of(
	double working, double cpu, double queued, double sleep_expected, double cpu_expected)
{
	split_under(0, working, cpu, queued, sleep_expected, cpu_expected);
}

static void run_queue_is_left_out_of_what_computes(void **state)
{
	(void)state;
	split_of(10, 10, 0, 0, 1);  /* computes */
	split_of(10, 5, 5, 0, 0.5); /* computes, and queues half its time */
	split_of(10, 5, 8, 0, 0.5); /* some of the queueing was on the way out of other states */
	split_of(10, 0.1, 0.2, 0.99, 0.01);       /* sleeps: queueing is waking up */
	split_of(10, 5, 0, 0.5, 0.5);             /* half and half */
	split_of(10, 12, 0, 0, 1);                /* accounting beyond the state */
	split_of(10, 2.4, 7.4, 0.076, 0.24);      /* a little sleep, and waking up from it */
	split_under(1, 10, 2.4, 7.4, 0.02, 0.24); /* a quota stopped it, which is no waking up */
	split_under(1, 10, 1.2, 3.8, 0.5, 0.12);  /* and it sleeps as well */
	static const struct measurement m;
	struct stage_measurement unknown = {.cpu_seconds = NAN};
	unknown.seconds[THREAD_WORKING] = 5;
	const struct time_split split = time_split_of(&m, &unknown);
	assert_true(!split.known && split.cpu == 1 && split.sleep == 0);
}

static void without_accounting_all_is_cpu(void **state)
{
	(void)state;
	struct truth t = plain;
	t.no_schedstat = true;
	struct truth_run *run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	assert_about(truth_mean(&model, COST_DECODE_CPU), 800, 0.03);
	assert_true(noted(&model, "no CPU accounting"));
	model_close(&model);
	truth_free(run);
}

static void a_slow_worker_is_found(void **state)
{
	(void)state;
	struct truth t = plain;
	t.settings[0] = "decode.workers=4";
	t.slow_worker = 5;
	struct truth_run *run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	assert_non_null(model.replay.worker_factor);
	assert_about((double)model.worker_factor[0], 5, 0.1);
	for (unsigned w = 1; w < 4; w++)
		assert_true(model.worker_factor[w] == 1);
	assert_about(truth_mean(&model, COST_DECODE_CPU), 800, 0.06);
	assert_true(noted(&model, "worker 0"));
	/* The replay of the truth lets the quick ones do more. */
	assert_true(fabs(model.unmodelled) < 0.06);
	model_close(&model);
	truth_free(run);
}

static void contention_is_taken_out_of_the_costs(void **state)
{
	(void)state;
	struct truth t = plain;
	t.settings[0] = "decode.workers=4";
	t.step_ms = 1;
	t.contention = 0.1;
	t.cores = 8;
	struct truth_run *run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	assert_about(truth_mean(&model, COST_DECODE_CPU), 800, 0.05);
	assert_about(model.replay.contention, 0.1, 0.001);
	assert_true(model.contention_doubt == 0);
	model_close(&model);
	/* From a probe: all of 8 cores give 0.588 of 8 times one. */
	const struct ceilings ceilings = {.cores = 8, .cpu_scaling = 1 / 1.7};
	run->source.contention = NAN;
	run->source.ceilings = &ceilings;
	truth_open(&model, run);
	assert_about(model.replay.contention, 0.1, 0.01);
	assert_about(model.contention_doubt, 0.6 * log(1.1), 0.01);
	model_close(&model);
	run->source.ceilings = NULL;
	truth_open(&model, run);
	assert_true(model.contention_doubt > 0);
	assert_true(model.replay.contention == 0 && noted(&model, "unknown"));
	model_close(&model);
	truth_free(run);
}

/* A thread is not slowed down by itself: alone at work, the uploader takes as long in the replay, whatever cores do to each other. */
static void no_stage_contends_with_itself(void **state)
{
	(void)state;
	struct truth t = plain;
	t.settings[1] = "upload.mode=copy";
	t.read_cpu_us = 1;
	t.decode_us = 2;
	t.upload_us = 8000;
	t.step_ms = 2;
	t.contention = 1;
	t.cores = 2;
	struct truth_run *run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	assert_about(truth_mean(&model, COST_UPLOAD), 8000, 0.03);
	assert_true(fabs(model.unmodelled) < 0.05);
	model_close(&model);
	truth_free(run);
}

static void what_is_not_recorded_is_unmodelled(void **state)
{
	(void)state;
	struct truth t = plain;
	t.unmodelled = 0.2;
	struct truth_run *run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	assert_true(fabs(model.unmodelled - 0.2) < 0.03);
	model_close(&model);
	truth_free(run);
}

static void refused(const struct truth_run *run, const char *part)
{
	struct model model;
	struct error err = {""};
	assert_int_equal(model_open(&model, &run->source, &err), -ENODATA);
	if (!strstr(err.text, part))
		fail_msg("'%s' lacks '%s'", err.text, part);
}

static void too_little_is_refused(void **state)
{
	(void)state;
	struct truth t = plain;
	t.samples = 40;
	t.repeats = 1;
	struct truth_run *run = truth_make(&t);
	refused(run, "40 samples recorded, 64 needed");
	truth_free(run);
	/* Wild service times need more. */
	t.samples = 312;
	t.decode_cv = 20;
	run = truth_make(&t);
	refused(run, "312 samples recorded");
	truth_free(run);
	t.samples = 100;
	t.decode_cv = 0.2;
	run = truth_make(&t);
	struct model model;
	truth_open(&model, run);
	assert_true(noted(&model, "one repetition"));
	model_close(&model);
	run->traces[0].stages[1].count = 0;
	refused(run, "no service times");
	run->traces_list[0] = NULL;
	refused(run, "no service times");
	run->source.count = 0;
	refused(run, "no service times");
	truth_free(run);
}

static void contention_is_fitted(void **state)
{
	(void)state;
	const double busy[] = {1, 2, 4, 8};
	double cpu[] = {100, 105, 115, 135};
	assert_about(model_fit_contention(busy, cpu, 4), 0.05, 1e-9);
	assert_true(isnan(model_fit_contention(busy, cpu, 1)));
	const double alike[] = {1.9, 2, 2.1};
	assert_true(isnan(model_fit_contention(alike, cpu, 3)));
	const double falling[] = {100, 99, 98, 97};
	assert_true(model_fit_contention(busy, falling, 4) == 0);
	struct truth t = plain;
	t.settings[0] = "decode.workers=4";
	t.cores = 4;
	struct truth_run *run = truth_make(&t);
	double at;
	double ns;
	assert_true(model_contention_point(run->repeat_list[0], 4, &at, &ns));
	assert_about(ns, 800e3, 0.03);
	assert_true(at > 1 && at <= 4);
	run->measurements[0].stages[1].cpu_seconds = NAN;
	assert_false(model_contention_point(run->repeat_list[0], 4, &at, &ns));
	truth_free(run);
}

static void copies_are_whole(void **state)
{
	(void)state;
	struct truth t = plain;
	t.slow_worker = 3;
	struct truth_run *run = truth_make(&t);
	struct model model;
	struct model copy;
	struct error err;
	truth_open(&model, run);
	assert_int_equal(model_copy(&copy, &model, &err), 0);
	const double before = truth_mean(&model, COST_DECODE_CPU);
	model_close(&model);
	assert_about(truth_mean(&copy, COST_DECODE_CPU), before, 0);
	assert_about((double)copy.replay.worker_factor[0], 3, 0.1);
	struct prediction prediction;
	assert_int_equal(model_predict(&copy, 0, &prediction, &err), 0);
	assert_true(prediction.throughput > 0);
	model_close(&copy);
	truth_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_come_back),
		cmocka_unit_test(waits_and_locks_are_told_from_cpu),
		cmocka_unit_test(lock_alone_is_cpu_under_the_lock),
		cmocka_unit_test(run_queue_is_left_out_of_what_computes),
		cmocka_unit_test(without_accounting_all_is_cpu),
		cmocka_unit_test(a_slow_worker_is_found),
		cmocka_unit_test(contention_is_taken_out_of_the_costs),
		cmocka_unit_test(no_stage_contends_with_itself),
		cmocka_unit_test(what_is_not_recorded_is_unmodelled),
		cmocka_unit_test(too_little_is_refused),
		cmocka_unit_test(contention_is_fitted),
		cmocka_unit_test(copies_are_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
