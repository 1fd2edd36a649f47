/* The timeline of several ranks: one file, all on one clock. */
#include "harness/measure/timeline.h"

#include "harness/measure/state_clock.h"
#include "harness/report/operations.h"
#include "harness/report/timeline_index.h"
#include "harness/report/timeline_report.h"

#include "tests/timeline_line.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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
		cmocka_unit_test(ranks_are_on_one_clock),
		cmocka_unit_test(the_last_rank_of_a_round_is_marked),
		cmocka_unit_test(a_missing_rank_is_said),
		cmocka_unit_test(a_rank_that_fails_leaves_no_file),
		cmocka_unit_test(parts_of_other_steps_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
