/* The recording of timelines: what is in the windows and nothing else, without a gap; what does not fit is cut off by
 * whole steps; threads record at once without disturbing one another.  The file of several ranks: all on one clock. */
#include "harness/measure/timeline.h"

#include "harness/measure/state_clock.h"
#include "harness/report/operations.h"
#include "harness/report/timeline_index.h"
#include "harness/report/timeline_report.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEP_NS = 1000, START_NS = 1000000 };

/* A step thread and a worker, whose times are made up. */
struct line {
	struct timeline *timeline;
	struct timeline_log *step, *work;
	struct state_clock step_clock, work_clock;
	uint64_t now_ns, batch;
};

static void open_line_at(
	struct line *line, struct step_schedule schedule, uint64_t entries, uint64_t start_ns)
{
	memset(line, 0, sizeof *line);
	assert_int_equal(timeline_open(&line->timeline, &schedule, entries, 2), 0);
	line->step = timeline_add_log(line->timeline, TIMELINE_THREAD, "step", 0);
	line->work = timeline_add_log(line->timeline, TIMELINE_THREAD, "decode", 0);
	assert_non_null(line->work);
	assert_null(timeline_add_log(line->timeline, TIMELINE_THREAD, "decode", 1));
	line->step->leads = true;
	line->step->clock = &line->step_clock;
	line->work->clock = &line->work_clock;
	line->step_clock.timeline = line->step;
	line->work_clock.timeline = line->work;
	line->now_ns = start_ns;
	timeline_start(line->timeline, start_ns);
	state_clock_start(&line->step_clock, THREAD_STARVED, start_ns);
	state_clock_start(&line->work_clock, THREAD_STARVED, start_ns);
}

static void open_line(struct line *line, struct step_schedule schedule, uint64_t entries)
{
	open_line_at(line, schedule, entries, START_NS);
}

/* 300 ns of waiting, 700 of work on either thread; the worker lags 100 behind and has `spans` samples. */
static void run_step(struct line *line, unsigned spans)
{
	const uint64_t at = line->now_ns;
	state_clock_enter(&line->work_clock, THREAD_BLOCKED, at + 100);
	state_clock_enter(&line->step_clock, THREAD_WORKING, at + 300);
	state_clock_enter(&line->work_clock, THREAD_WORKING, at + 400);
	timeline_use(line->work);
	for (unsigned i = 0; i < spans && timeline_is_on(); i++)
		timeline_span(TIMELINE_DECODE, at + 400 + i, at + 401 + i, line->batch * spans + i,
			(uint32_t)line->batch);
	timeline_use(line->step);
	timeline_span(
		TIMELINE_COMPUTE, timeline_is_on() ? at + 300 : 0, at + STEP_NS, line->batch, 1);
	timeline_use(NULL);
	line->now_ns += STEP_NS;
	timeline_step(line->step, line->batch++, line->now_ns);
	state_clock_enter(&line->step_clock, THREAD_STARVED, line->now_ns);
}

static void close_line(struct line *line)
{
	timeline_close(line->timeline);
}

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

/* --- several ranks ---------------------------------------------------------------------------------------- */

/* Ranks that do the same at the same time, by clocks that are apart; the leader's is the first. */
enum { RANKS = 4, MISSING = 2, ORIGIN_NS = START_NS - 5000, RANK_STEPS = 8 };
static const int64_t clock_ahead_ns[RANKS] = {0, 100000LL * 1000000000, 77, -900000};

struct ranks_fixture {
	struct line lines[RANKS];
	struct timeline_rank places[RANKS];
	struct measurement m;
	struct record record;
	size_t longest; /* piece of text */
	unsigned asked; /* for events */
	int fails;      /* the rank that cannot write its events; 0: none */
	char folder[32];
};

static struct timeline_story story_of(struct ranks_fixture *f, unsigned rank)
{
	return (struct timeline_story){.timeline = f->lines[rank].timeline,
		.m = &f->m,
		.name = "n",
		.config_hash = "h",
		.schedule = "",
		.rank = &f->places[rank]};
}

struct passed_on {
	struct ranks_fixture *f;
	timeline_sink *sink;
	void *to;
};

static bool pass_on(void *context, const char *text, size_t size)
{
	const struct passed_on *on = context;
	assert_int_equal(text[0], ',');
	if (size > on->f->longest)
		on->f->longest = size;
	return on->sink(on->to, text, size);
}

static int write_events(
	void *context, unsigned rank, timeline_sink *sink, void *to, struct error *err)
{
	struct ranks_fixture *f = context;
	const struct timeline_story story = story_of(f, rank);
	struct passed_on on = {f, sink, to};
	f->asked++;
	if ((int)rank == f->fails)
		return error_set(err, -EIO, "rank %u: gone", rank);
	return timeline_write_part(&story, pass_on, &on);
}

static void open_ranks(struct ranks_fixture *f)
{
	memset(f, 0, sizeof *f);
	(void)snprintf(f->folder, sizeof f->folder, "/tmp/mlbench-ranks-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	config_init(&f->record.config);
	f->record.folder = f->folder;
	for (unsigned rank = 0; rank < RANKS; rank++) {
		struct line *line = &f->lines[rank];
		open_line_at(line, (struct step_schedule){2, 0, 0, 3, 1}, 10000,
			(uint64_t)(START_NS + clock_ahead_ns[rank]));
		f->places[rank] = (struct timeline_rank){.rank = rank,
			.host = "node",
			.offset_ns = -clock_ahead_ns[rank],
			.error_ns = rank,
			.origin_ns = ORIGIN_NS};
		for (int i = 0; i < RANK_STEPS; i++) {
			run_step(line, 2);
			if (i % RANKS == (int)rank)
				timeline_put(line->step, &(const struct timeline_entry){
								 .begin_ns = line->now_ns - 300,
								 .end_ns = line->now_ns - 100,
								 .number = (uint64_t)i,
								 .kind = TIMELINE_LAST_RANK});
		}
		timeline_finish(line->timeline, line->now_ns);
	}
}

static int save_ranks(struct ranks_fixture *f, bool one_is_missing, struct error *err)
{
	struct timeline_others others = {.leader = f->places[0],
		.parts = json_array(),
		.events = write_events,
		.context = f};
	for (unsigned rank = 1; rank < RANKS; rank++) {
		const struct timeline_story story = story_of(f, rank);
		assert_int_equal(json_array_append_new(others.parts,
					 one_is_missing && rank == MISSING
						 ? timeline_no_part(&f->places[rank], "why")
						 : timeline_part(&story)),
			0);
	}
	const int code =
		record_save_timeline(&f->record, f->lines[0].timeline, &f->m, &others, err);
	json_decref(others.parts);
	return code;
}

static void close_ranks(struct ranks_fixture *f)
{
	char path[64];
	(void)snprintf(path, sizeof path, "%s/trace.json", f->folder);
	(void)unlink(path);
	assert_int_equal(rmdir(f->folder), 0); /* nothing is left beside it */
	for (unsigned rank = 0; rank < RANKS; rank++)
		close_line(&f->lines[rank]);
	config_release(&f->record.config);
}

static json_t *load_trace(const struct ranks_fixture *f)
{
	char path[64];
	json_error_t wrong;
	(void)snprintf(path, sizeof path, "%s/trace.json", f->folder);
	json_t *document = json_load_file(path, 0, &wrong);
	if (!document)
		fail_msg("%s, line %d", wrong.text, wrong.line);
	return document;
}

static int64_t number_in(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	assert_true(json_is_number(value));
	return (int64_t)(json_number_value(value) * 1000 + 0.5);
}

/* The nth event of a process that is no name, as text without its process; NULL: there are not so many. */
static char *event_of(const json_t *events, int64_t pid, size_t nth)
{
	size_t i;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		const char *phase = json_string_value(json_object_get(event, "ph"));
		if (json_integer_value(json_object_get(event, "pid")) != pid || *phase == 'M' ||
			*phase == 'i' || nth-- > 0)
			continue;
		json_t *copy = json_copy(event);
		(void)json_object_del(copy, "pid");
		if (json_object_get(copy, "id")) {
			const json_int_t id = json_integer_value(json_object_get(copy, "id"));
			assert_int_equal(id >> 40, (pid - 1) / 2);
			(void)json_object_set_new(copy, "id", json_integer(id & 0xffffffffff));
		}
		char *text = json_dumps(copy, 0);
		json_decref(copy);
		return text;
	}
	return NULL;
}

/* What was done at the same time is at the same time, whatever the clocks say; but for its process, a rank's part is the
 * leader's to the digit. */
static void ranks_are_on_one_clock(void **state)
{
	(void)state;
	struct ranks_fixture f;
	struct error err = {""};
	open_ranks(&f);
	if (save_ranks(&f, false, &err))
		fail_msg("%s", err.text);
	json_t *document = load_trace(&f);
	const json_t *other = json_object_get(document, "otherData");
	const json_t *events = json_object_get(document, "traceEvents");
	const json_t *ranks = json_object_get(other, "ranks");
	assert_int_equal(json_array_size(ranks), RANKS);
	for (unsigned rank = 0; rank < RANKS; rank++) {
		const json_t *part = json_array_get(ranks, rank);
		const json_t *window = json_array_get(json_object_get(part, "windows"), 0);
		assert_int_equal(json_integer_value(json_object_get(part, "clock_offset_ns")),
			-clock_ahead_ns[rank]);
		assert_int_equal(json_integer_value(json_object_get(part, "clock_error_ns")), rank);
		assert_int_equal(number_in(part, "began_us"), START_NS - ORIGIN_NS);
		assert_int_equal(number_in(window, "begin_us"), START_NS - ORIGIN_NS + 2 * STEP_NS);
		assert_int_equal(json_array_size(json_object_get(part, "threads")), 2);
		size_t count = 0;
		for (;; count++) {
			char *own = event_of(events, 1, count);
			char *theirs = event_of(events, 1 + 2 * (int64_t)rank, count);
			assert_int_equal(own == NULL, theirs == NULL);
			if (!own)
				break;
			assert_string_equal(own, theirs);
			free(own);
			free(theirs);
		}
		assert_true(count > 20);
	}
	assert_true(f.longest < 512); /* an event: nobody keeps a rank's part */
	json_decref(document);
	close_ranks(&f);
}

/* Once in each round, in the process of that rank, with how long all others waited. */
static void the_last_rank_of_a_round_is_marked(void **state)
{
	(void)state;
	struct ranks_fixture f;
	struct error err = {""};
	open_ranks(&f);
	assert_int_equal(save_ranks(&f, false, &err), 0);
	json_t *document = load_trace(&f);
	size_t i;
	json_t *event;
	int64_t round = 2;
	bool seen[RANK_STEPS] = {false};
	json_array_foreach(json_object_get(document, "traceEvents"), i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "ph")), "i") != 0)
			continue;
		const json_t *args = json_object_get(event, "args");
		round = json_integer_value(json_object_get(args, "round"));
		assert_true(round >= 2 && round < 5 && !seen[round]);
		seen[round] = true;
		assert_int_equal(
			json_integer_value(json_object_get(event, "pid")), 1 + 2 * (round % RANKS));
		assert_int_equal(
			number_in(event, "ts"), START_NS - ORIGIN_NS + (round + 1) * STEP_NS - 100);
		assert_int_equal(number_in(args, "others_waited_us"), 200);
	}
	assert_true(seen[2] && seen[3] && seen[4]);
	json_decref(document);
	close_ranks(&f);
}

/* A rank without a part is asked for nothing, and said; the threads of all others count in the table of operations. */
static void a_missing_rank_is_said(void **state)
{
	(void)state;
	struct ranks_fixture f;
	struct error err = {""};
	struct operations operations;
	char path[64];
	open_ranks(&f);
	assert_int_equal(save_ranks(&f, true, &err), 0);
	assert_int_equal(f.asked, RANKS - 2);
	json_t *document = load_trace(&f);
	const json_t *part = json_array_get(
		json_object_get(json_object_get(document, "otherData"), "ranks"), MISSING);
	assert_string_equal(json_string_value(json_object_get(part, "missing")), "why");
	assert_int_equal(json_integer_value(json_object_get(part, "rank")), MISSING);
	json_decref(document);
	(void)snprintf(path, sizeof path, "%s/trace.json", f.folder);
	if (operations_read(&operations, path, NULL, &err))
		fail_msg("%s", err.text);
	assert_int_equal((int64_t)operations.thread_ns, (RANKS - 1) * 2 * 3 * STEP_NS);
	assert_non_null(strstr(operations.title, "6 threads of 3 ranks"));
	operations_release(&operations);
	close_ranks(&f);
}

/* Nothing is left of a file that a rank failed in, and the reason is that rank's. */
static void a_rank_that_fails_leaves_no_file(void **state)
{
	(void)state;
	struct ranks_fixture f;
	struct error err = {""};
	open_ranks(&f);
	f.fails = 2;
	assert_int_equal(save_ranks(&f, false, &err), -EIO);
	assert_non_null(strstr(err.text, "trace.json': rank 2: gone"));
	assert_int_equal(f.asked, 2);
	close_ranks(&f);
}

/* What another rank recorded is compared by steps; one may end a step earlier than the leader. */
static void parts_of_other_steps_are_told(void **state)
{
	(void)state;
	static const struct {
		int steps, active;
		bool told;
	} cases[] = {{8, 6, false}, {7, 6, false}, {6, 6, true}, {8, 5, true}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ranks_fixture f = {
			.places = {{.host = "node"}, {.rank = 1, .host = "node"}}};
		struct buffer difference = {0};
		open_line(&f.lines[0], (struct step_schedule){2, 0, 0, 6, 1}, 10000);
		open_line(&f.lines[1],
			(struct step_schedule){2, 0, 0, (uint64_t)cases[i].active, 1}, 10000);
		for (int step = 0; step < 8; step++)
			run_step(&f.lines[0], 1);
		for (int step = 0; step < cases[i].steps; step++)
			run_step(&f.lines[1], 1);
		for (int rank = 0; rank < 2; rank++)
			timeline_finish(f.lines[rank].timeline, f.lines[rank].now_ns);
		const struct timeline_story story = story_of(&f, 1);
		json_t *part = timeline_part(&story);
		timeline_compare_part(f.lines[0].timeline, part, &difference);
		assert_int_equal(difference.size > 0, cases[i].told);
		json_decref(part);
		buffer_release(&difference);
		close_line(&f.lines[0]);
		close_line(&f.lines[1]);
	}
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
		cmocka_unit_test(ranks_are_on_one_clock),
		cmocka_unit_test(the_last_rank_of_a_round_is_marked),
		cmocka_unit_test(a_missing_rank_is_said),
		cmocka_unit_test(a_rank_that_fails_leaves_no_file),
		cmocka_unit_test(parts_of_other_steps_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
