/* What a real repetition shows of itself, read by another thread while it goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "harness/base/clock.h"
#include "pipelines/live_feed.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { SAMPLES = 90 };

/* Who reads ends the repetition once it has seen ENOUGH of it, however long that takes. */
enum { ENOUGH = 3 };

struct reading {
	const struct live_board *board;
	atomic_bool over, stop;
	unsigned pictures, measuring, with_threads, backwards, wild;
	struct live_view now, before;
};

static double seconds_since(const struct live_view *v, uint64_t now_ns)
{
	return (double)(now_ns - v->begun_ns) / (double)NS_PER_S;
}

/* A thread that has had no core yet has no clock. */
static bool all_started(const struct live_view *v, uint32_t stage)
{
	for (uint32_t i = 0; i < v->thread_count; i++)
		if (v->threads[i].stage == stage && v->threads[i].since_ns == 0)
			return false;
	return v->thread_count > 0;
}

static void check(struct reading *r)
{
	const struct live_view *v = &r->now;
	const struct live_view *b = &r->before;
	const uint64_t now_ns = clock_now_ns();
	if (v->updated_ns == b->updated_ns)
		return; /* the same picture once more */
	const bool follows = v->begun_ns == b->begun_ns;
	/* The states were looked at after the picture before, and before now.  One that only tells another phase has the
	 * states of the one before. */
	const bool looked = follows && v->elapsed_s > b->elapsed_s;
	const double most_s = seconds_since(v, now_ns);
	r->pictures++;
	r->measuring += v->phase == LIVE_MEASURING && v->samples > v->warm.samples;
	if (follows) {
		r->backwards += v->samples < b->samples || v->updated_ns < b->updated_ns;
		for (uint32_t i = 0; i < v->stage_count; i++)
			for (int k = 0; k < THREAD_STATES; k++)
				r->backwards += v->stages[i].seconds[k] < b->stages[i].seconds[k];
	}
	uint32_t known = 0;
	for (uint32_t i = 0; i < v->thread_count; i++) {
		const struct live_thread *t = &v->threads[i];
		known += t->tid > 0 && t->tid != getpid();
		r->wild += t->since_ns > now_ns || t->stage >= v->stage_count;
	}
	r->with_threads += v->thread_count > 0 && known == v->thread_count;
	for (uint32_t i = 0; i < v->queue_count; i++)
		r->wild += v->queues[i].depth > v->queues[i].capacity;
	for (uint32_t i = 0; i < v->stage_count && v->thread_count > 0; i++) {
		double sum = 0;
		for (int k = 0; k < THREAD_STATES; k++)
			sum += v->stages[i].seconds[k];
		sum /= v->stages[i].workers;
		const double least_s = looked && all_started(b, i) ? b->elapsed_s : 0;
		r->wild += sum < least_s - 1e-6 || sum > most_s + 1e-6;
		if (measuring())
			r->wild += fabs(sum - v->elapsed_s) > 0.05 + 0.05 * v->elapsed_s;
	}
	r->before = r->now;
	if (r->measuring >= ENOUGH && (!v->timed || r->with_threads >= ENOUGH))
		atomic_store(&r->stop, true);
}

static void *read_on(void *context)
{
	struct reading *r = context;
	while (!atomic_load(&r->over)) {
		if (!live_board_read(r->board, &r->now))
			check(r);
		(void)usleep(5000);
	}
	return NULL;
}

static struct live_feed *open_feed(void)
{
	struct live_feed *feed = calloc(1, sizeof *feed);
	assert_non_null(feed);
	feed->rest_at_begin_s = 10;
	feed->view.period_s = NAN;
	assert_int_equal(live_board_create(&feed->board, NULL), 0);
	live_feed_phase(feed, LIVE_SETTING_UP);
	return feed;
}

static void close_feed(struct live_feed *feed)
{
	live_board_close(feed->board);
	free(feed);
}

/* One repetition, read meanwhile. */
static struct reading *watch(struct pipeline_fixture *f, struct live_feed *feed)
{
	struct reading *r = calloc(1, sizeof *r);
	assert_non_null(r);
	r->board = feed->board;
	const struct pipeline_control control = {.live = feed, .stop = &r->stop};
	struct measurement m;
	struct error err = {""};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, read_on, r), 0);
	const int code = pipeline_run(&f->config, &f->dataset, &control, &m, &err);
	atomic_store(&r->over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(live_board_read(r->board, &r->now), 0);
	if (code)
		fail_msg("%s", err.text);
	assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
	measurement_release(&m);
	return r;
}

static void open_timed(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_DECODE_WORKERS, "2");
	fixture_set(f, KEY_MEASURE_WINDOW, "20ms");
	fixture_set(f, KEY_MEASURE_WARMUP, "200ms");
	fixture_set(f, KEY_MEASURE_DURATION, "1h");
}

static void test_repetitions(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_timed(&f);
	struct live_feed *feed = open_feed();
	for (int i = 0; i < 2; i++) {
		struct reading *r = watch(&f, feed);
		assert_true(r->pictures > ENOUGH);
		assert_int_equal(r->backwards, 0);
		assert_int_equal(r->wild, 0);
		assert_int_equal(r->now.phase, LIVE_BETWEEN);
		assert_true(isnan(r->now.period_s));
		assert_true(r->now.samples > 0 && r->now.batches > 0 && r->now.throughput > 0);
		assert_true(r->now.warm.t_ns >= r->now.warm_ns);
		assert_true(r->now.warm.samples < r->now.samples);
		assert_int_equal(r->now.batch_size, 8);
		/* Of the ten seconds, as long as they last. */
		assert_true(fabs(r->now.rest_s - fmax(10 - r->now.elapsed_s, 0)) < 1e-6);
		assert_true(r->now.rest_s < 10);
		free(r);
	}
	close_feed(feed);
	fixture_close(&f);
}

static void test_untimed(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_timed(&f);
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	struct live_feed *feed = open_feed();
	struct reading *r = watch(&f, feed);
	assert_int_equal(r->with_threads, 0);
	assert_false(r->now.timed);
	assert_true(r->now.samples > 0);
	assert_true(isnan(r->now.step_utilisation_window));
	free(r);
	close_feed(feed);
	fixture_close(&f);
}

static int set_up(void **state)
{
	(void)state;
	return setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repetitions),
		cmocka_unit_test(test_untimed),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
