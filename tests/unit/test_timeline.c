/* The recording of timelines: what is in the windows and nothing else, without a gap; what does not fit is cut off by
 * whole steps; threads record at once without disturbing one another. */
#include "harness/measure/timeline.h"

#include "harness/measure/state_clock.h"
#include "harness/report/timeline_index.h"

#include "tests/timeline_line.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t sum_of(
	const struct timeline_index *index, const struct timeline_log *log, enum timeline_kind kind)
{
	const struct timeline *t = index->timeline;
	const struct timeline_range *range = &index->logs[log->index];
	uint64_t sum = 0;
	for (uint32_t i = 0; i < range->count; i++) {
		const struct timeline_entry *e =
			timeline_index_entry(index, index->order[range->first + i]);
		for (size_t w = 0; w < t->window_count && e->kind == kind; w++) {
			const uint64_t from = e->begin_ns > t->windows[w].begin_ns
						      ? e->begin_ns
						      : t->windows[w].begin_ns;
			const uint64_t to =
				e->end_ns < t->windows[w].end_ns ? e->end_ns : t->windows[w].end_ns;
			sum += to > from ? to - from : 0;
		}
	}
	return sum;
}

/* Spans of the states, in the windows, are what the clocks counted, and all of the time. */
static void check_states(const struct timeline_index *index, const struct timeline_log *log)
{
	const struct timeline *t = index->timeline;
	uint64_t accounted[THREAD_STATES];
	uint64_t wall = 0;
	uint64_t total = 0;
	for (size_t w = 0; w < t->window_count; w++)
		wall += t->windows[w].end_ns - t->windows[w].begin_ns;
	timeline_index_account(index, log, accounted);
	for (int state = 0; state < THREAD_STATES; state++) {
		const enum timeline_kind kind = (enum timeline_kind)(TIMELINE_STATE + state);
		assert_int_equal(sum_of(index, log, kind), accounted[state]);
		total += accounted[state];
	}
	assert_int_equal(total, wall);
}

static void check_line(const struct line *line, struct timeline_index *index)
{
	assert_int_equal(timeline_index_open(index, line->timeline), 0);
	check_states(index, line->step);
	check_states(index, line->work);
}

static void a_window_holds_its_steps_and_no_others(void **state)
{
	(void)state;
	struct line line;
	struct timeline_index index;
	open_line(&line, (struct step_schedule){2, 1, 2, 3, 1}, 10000);
	for (int i = 0; i < 20; i++)
		run_step(&line, 4);
	timeline_finish(line.timeline, line.now_ns + 50);
	assert_int_equal(line.timeline->window_count, 1);
	const struct timeline_window *window = &line.timeline->windows[0];
	assert_int_equal(window->begin_ns, START_NS + 5 * STEP_NS);
	assert_int_equal(window->end_ns, START_NS + 8 * STEP_NS);
	assert_int_equal(window->first_step, 5);
	assert_int_equal(window->steps, 3);
	check_line(&line, &index);
	assert_int_equal(index.kinds[TIMELINE_DECODE].count, 3 * 4);
	assert_int_equal(index.kinds[TIMELINE_STEP].count, 3);
	assert_int_equal(sum_of(&index, line.step, TIMELINE_STATE + THREAD_STARVED), 3 * 300);
	assert_int_equal(sum_of(&index, line.work, TIMELINE_STATE + THREAD_BLOCKED), 3 * 300);
	uint32_t id;
	assert_true(timeline_index_find(&index, TIMELINE_COMPUTE, 6, &id));
	assert_false(timeline_index_find(&index, TIMELINE_COMPUTE, 8, &id));
	const struct timeline_range samples = timeline_index_batch(&index, 6);
	assert_int_equal(samples.count, 4);
	timeline_index_close(&index);
	close_line(&line);
}

/* States that last from one cycle into the next are in both; what lies between is in neither. */
static void cycles_are_windows_of_their_own(void **state)
{
	(void)state;
	struct line line;
	struct timeline_index index;
	open_line(&line, (struct step_schedule){0, 2, 1, 2, 0}, 10000);
	for (int i = 0; i < 3; i++)
		run_step(&line, 1);
	state_clock_enter(&line.work_clock, THREAD_BLOCKED, line.now_ns + 500);
	for (int i = 0; i < 9; i++) { /* the worker sleeps over two cycles */
		line.now_ns += STEP_NS;
		timeline_step(line.step, line.batch++, line.now_ns);
	}
	state_clock_enter(&line.work_clock, THREAD_WORKING, line.now_ns + 10);
	for (int i = 0; i < 5; i++)
		run_step(&line, 1);
	timeline_finish(line.timeline, line.now_ns);
	assert_int_equal(line.timeline->window_count, 3);
	check_line(&line, &index);
	assert_int_equal(line.timeline->windows[1].first_step, 8);
	assert_int_equal(line.timeline->dropped_steps, 0);
	timeline_index_close(&index);
	close_line(&line);
}

static void adjacent_cycles_are_one_window(void **state)
{
	(void)state;
	struct line line;
	struct timeline_index index;
	open_line(&line, (struct step_schedule){0, 0, 0, 2, 3}, 10000);
	for (int i = 0; i < 9; i++)
		run_step(&line, 2);
	timeline_finish(line.timeline, line.now_ns);
	assert_int_equal(line.timeline->window_count, 1);
	assert_int_equal(line.timeline->windows[0].begin_ns, START_NS);
	assert_int_equal(line.timeline->windows[0].steps, 6);
	check_line(&line, &index);
	timeline_index_close(&index);
	close_line(&line);
}

/* The end of the run cuts a window at its last whole step; one without any is none. */
static void an_unfinished_window_ends_with_its_last_step(void **state)
{
	(void)state;
	struct line line;
	struct timeline_index index;
	open_line(&line, (struct step_schedule){1, 0, 0, 10, 1}, 10000);
	for (int i = 0; i < 4; i++)
		run_step(&line, 2);
	timeline_finish(line.timeline, line.now_ns + 777);
	assert_int_equal(line.timeline->window_count, 1);
	assert_int_equal(line.timeline->windows[0].steps, 3);
	assert_int_equal(line.timeline->windows[0].end_ns, line.now_ns);
	check_line(&line, &index);
	timeline_index_close(&index);
	close_line(&line);
	open_line(&line, (struct step_schedule){5, 0, 0, 10, 1}, 10000);
	for (int i = 0; i < 5; i++)
		run_step(&line, 2);
	timeline_finish(line.timeline, line.now_ns + 1);
	assert_int_equal(line.timeline->window_count, 0);
	close_line(&line);
}

/* Whatever the room is, what is kept is whole, and what is not is counted. */
static void what_does_not_fit_is_cut_by_whole_steps(void **state)
{
	(void)state;
	enum { ACTIVE = 200, SPANS = 20 };
	uint64_t kept_before = 0;
	for (uint64_t room = 1; room < 6000; room += 499) {
		struct line line;
		struct timeline_index index;
		open_line(&line, (struct step_schedule){3, 0, 1, ACTIVE, 1}, room);
		for (int i = 0; i < 3 + 1 + ACTIVE + 20; i++)
			run_step(&line, SPANS);
		timeline_finish(line.timeline, line.now_ns);
		const struct timeline *t = line.timeline;
		const uint64_t kept = t->window_count > 0 ? t->windows[0].steps : 0;
		assert_int_equal(kept + t->dropped_steps, ACTIVE);
		assert_true(kept >= kept_before);
		assert_int_equal(atomic_load(&t->lost) > 0, kept < ACTIVE);
		if (kept < ACTIVE)
			assert_true(kept > 0); /* each thread has a chunk of its own */
		check_line(&line, &index);
		assert_int_equal(index.kinds[TIMELINE_STEP].count, kept);
		assert_true(index.kinds[TIMELINE_DECODE].count >= kept * SPANS);
		kept_before = kept;
		timeline_index_close(&index);
		close_line(&line);
	}
	assert_int_equal(kept_before, ACTIVE);
}

static void the_bound_holds_what_is_mapped(void **state)
{
	(void)state;
	struct timeline *t;
	const struct step_schedule schedule = {0, 0, 0, 1, 1};
	const uint64_t before = memory_mapped_bytes();
	assert_int_equal(timeline_open(&t, &schedule, UINT64_MAX, 40), 0);
	assert_true(memory_mapped_bytes() - before <= timeline_bytes(UINT64_MAX, 40) + 4096);
	assert_true(timeline_bytes(UINT64_MAX, 40) < 48 << 20);
	timeline_close(t);
	assert_int_equal(memory_mapped_bytes(), before);
}

/* --- threads ---------------------------------------------------------------------------------------------- */

/* Room that is mostly used up before the end. */
enum { WORKERS = 4, THREAD_STEPS = 200, THREAD_ENTRIES = 400000 };

struct worker {
	struct timeline *timeline;
	struct timeline_log *log;
	struct state_clock clock;
	atomic_bool *stop;
	pthread_t thread;
};

static void *work(void *context)
{
	struct worker *w = context;
	uint64_t number = 0;
	timeline_use(w->log);
	while (!atomic_load(w->stop)) {
		state_clock_enter(&w->clock, THREAD_WORKING, clock_now_ns());
		const uint64_t began_ns = timeline_mark();
		const uint64_t middle_ns = timeline_end(TIMELINE_HEADER, began_ns, 0);
		(void)timeline_end(TIMELINE_INFLATE, middle_ns, 0);
		(void)timeline_end(TIMELINE_DECODE, began_ns, number++);
		state_clock_enter(&w->clock, THREAD_BLOCKED, clock_now_ns());
	}
	timeline_use(NULL);
	return NULL;
}

static void threads_record_at_once(void **state)
{
	(void)state;
	struct worker *workers = aligned_alloc(COUNTER_ALIGN_BYTES, WORKERS * sizeof *workers);
	struct timeline *t;
	atomic_bool stop = false;
	const struct step_schedule schedule = {20, 5, 5, 20, 0};
	assert_non_null(workers);
	memset(workers, 0, WORKERS * sizeof *workers);
	assert_int_equal(timeline_open(&t, &schedule, THREAD_ENTRIES, WORKERS + 1), 0);
	struct timeline_log *leader = timeline_add_log(t, TIMELINE_THREAD, "step", 0);
	leader->leads = true;
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].timeline = t;
		workers[i].log = timeline_add_log(t, TIMELINE_THREAD, "decode", i);
		workers[i].log->clock = &workers[i].clock;
		workers[i].clock.timeline = workers[i].log;
		workers[i].stop = &stop;
	}
	const uint64_t start_ns = clock_now_ns();
	timeline_start(t, start_ns);
	for (unsigned i = 0; i < WORKERS; i++)
		state_clock_start(&workers[i].clock, THREAD_STARVED, start_ns);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (uint64_t step = 0; step < THREAD_STEPS; step++) {
		clock_sleep_until_ns(clock_now_ns() + 100000);
		timeline_step(leader, step, clock_now_ns());
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < WORKERS; i++)
		(void)pthread_join(workers[i].thread, NULL);
	timeline_finish(t, clock_now_ns());
	struct timeline_index index;
	assert_int_equal(timeline_index_open(&index, t), 0);
	assert_true(t->window_count > 0);
	for (unsigned i = 0; i < WORKERS; i++)
		check_states(&index, workers[i].log);
	timeline_index_close(&index);
	timeline_close(t);
	free(workers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_holds_its_steps_and_no_others),
		cmocka_unit_test(cycles_are_windows_of_their_own),
		cmocka_unit_test(adjacent_cycles_are_one_window),
		cmocka_unit_test(an_unfinished_window_ends_with_its_last_step),
		cmocka_unit_test(what_does_not_fit_is_cut_by_whole_steps),
		cmocka_unit_test(the_bound_holds_what_is_mapped),
		cmocka_unit_test(threads_record_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
