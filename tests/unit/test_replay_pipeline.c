/* The replay against the real pipeline: times are recorded from runs whose stages mostly wait, and replayed.  Throughput within 5 % and the decoders' and the step's
 * states within 8 points, in the best of a few tries, where that is measured; anywhere, a replay accounts for all of each thread's time (tests/bench/bench_replay_fidelity.c has the figures
 * of a quiet machine: a tenth of that). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"
#include "tests/replay_pipeline.h"

enum { TRIES = 5, SAMPLES = 200, SETTINGS = 8 };
static const double THROUGHPUT_TOLERANCE = 0.05, STATE_TOLERANCE = 0.08;

struct setting {
	enum key_id key;
	const char *value;
};

static double state_apart(
	const struct measurement *m, const char *name, const double share[THREAD_STATES])
{
	const double *seconds = replayed_stage(m, name)->seconds;
	const double total = seconds[0] + seconds[1] + seconds[2];
	double worst = 0;
	for (int k = 0; k < THREAD_STATES; k++)
		worst = fmax(worst, fabs(seconds[k] / total - share[k]));
	return worst;
}

static bool agrees(struct pipeline_fixture *f, const struct replayed_facts *facts)
{
	struct measurement m;
	const struct replay_result r = replayed_run(f, facts, &m);
	const double apart = r.throughput / m.throughput - 1;
	const double decode = state_apart(&m, "decode", r.share[REPLAY_DECODE]);
	const double step = state_apart(&m, "step", r.share[REPLAY_STEP]);
	assert_true(r.throughput > 0);
	for (int stage = REPLAY_DECODE; stage <= REPLAY_STEP; stage += REPLAY_STEP - REPLAY_DECODE)
		assert_true(
			fabs(r.share[stage][0] + r.share[stage][1] + r.share[stage][2] - 1) < 1e-6);
	const bool ok = fabs(apart) < THROUGHPUT_TOLERANCE && decode < STATE_TOLERANCE &&
			step < STATE_TOLERANCE;
	if (!ok)
		print_message("measured %.0f, replayed %+.1f %%, states %.3f and %.3f apart\n",
			m.throughput, 100 * apart, decode, step);
	measurement_release(&m);
	return ok;
}

static void check(const struct setting *settings, const struct replayed_facts *facts)
{
	struct pipeline_fixture f;
	fixture_open(&f, SAMPLES, 16, 16, 1);
	replayed_configure(&f, "700ms");
	fixture_set(&f, KEY_AUGMENT_SIZE, "16");
	fixture_set(&f, KEY_DECODE_WORKERS, "4");
	for (int i = 0; i < SETTINGS && settings[i].value; i++)
		fixture_set(&f, settings[i].key, settings[i].value);
	int tries = 0;
	while (!agrees(&f, facts) && measuring() && tries < TRIES)
		tries++;
	fixture_close(&f);
	assert_measured(tries < TRIES);
}

static void decoders_and_step(void **state)
{
	(void)state;
	const struct setting settings[SETTINGS] = {{KEY_INJECT_DECODE_WAIT, "4ms"},
		{KEY_STEP_TIME, "8ms"}, {KEY_STEP_JITTER, "0.5"}, {KEY_PREFETCH_DEPTH, "1"}};
	check(settings, &(struct replayed_facts){0});
}

static void reads_in_flight(void **state)
{
	(void)state;
	const struct setting settings[SETTINGS] = {{KEY_INJECT_DECODE_WAIT, "4ms"},
		{KEY_STEP_TIME, "4ms"}, {KEY_INJECT_READ_LATENCY, "8ms"}, {KEY_READ_DEPTH, "3"},
		{KEY_READ_THREADS, "2"}};
	check(settings, &(struct replayed_facts){0});
}

static void one_slow_worker(void **state)
{
	(void)state;
	const struct setting settings[SETTINGS] = {{KEY_INJECT_DECODE_WAIT, "3ms"},
		{KEY_STEP_TIME, "1ms"}, {KEY_BATCH_SIZE, "2"}, {KEY_PREFETCH_DEPTH, "1"},
		{KEY_INJECT_SLOW_WORKER, "6"}, {KEY_BATCH_ORDER, "as-completed"}};
	check(settings, &(struct replayed_facts){.slow_workers = true});
}

static void rare_slow_items_in_order(void **state)
{
	(void)state;
	const struct setting settings[SETTINGS] = {{KEY_INJECT_DECODE_WAIT, "1500us"},
		{KEY_STEP_TIME, "2ms"}, {KEY_BATCH_SIZE, "4"}, {KEY_PREFETCH_DEPTH, "1"},
		{KEY_INJECT_SLOW_SHARE, "5%"}, {KEY_INJECT_SLOW_FACTOR, "12"}};
	check(settings, &(struct replayed_facts){0});
}

static void workers_that_read(void **state)
{
	(void)state;
	const struct setting settings[SETTINGS] = {{KEY_INJECT_DECODE_WAIT, "2ms"},
		{KEY_STEP_TIME, "4ms"}, {KEY_INJECT_READ_LATENCY, "4ms"},
		{KEY_READ_BY, "workers"}};
	check(settings, &(struct replayed_facts){0});
}

static void whole_batches_of_uneven_workers(void **state)
{
	(void)state;
	const struct setting settings[SETTINGS] = {{KEY_INJECT_DECODE_WAIT, "2ms"},
		{KEY_STEP_TIME, "4ms"}, {KEY_INJECT_READ_LATENCY, "2ms"},
		{KEY_READ_BY, "workers"}, {KEY_DECODE_SHARE, "batches"},
		{KEY_INJECT_SLOW_WORKER, "3"}};
	check(settings, &(struct replayed_facts){.slow_workers = true});
}

static void turns_with_the_step(void **state)
{
	(void)state;
	const struct setting settings[SETTINGS] = {{KEY_INJECT_DECODE_WAIT, "2ms"},
		{KEY_STEP_TIME, "4ms"}, {KEY_INJECT_READ_LATENCY, "4ms"}, {KEY_READ_DEPTH, "4"},
		{KEY_PREFETCH_DEPTH, "0"}};
	check(settings, &(struct replayed_facts){0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_that_read),
		cmocka_unit_test(whole_batches_of_uneven_workers),
		cmocka_unit_test(turns_with_the_step),
		cmocka_unit_test(decoders_and_step),
		cmocka_unit_test(reads_in_flight),
		cmocka_unit_test(one_slow_worker),
		cmocka_unit_test(rare_slow_items_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
