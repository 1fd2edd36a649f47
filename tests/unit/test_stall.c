/* What a run that stands still waits for, from made-up pictures and looks; and looks at this very process. */
#include "harness/base/clock.h"
#include "harness/live/stall.h"
#include "harness/live/status.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 4 };

static struct live_view *view;
static struct thread_look looks[THREADS];
static struct process_look process;
static const struct thread_look *still;
static const uint64_t now_ns = 1000 * NS_PER_S;

/* A reader, two decode workers, a step: all in these states since so long, nothing done since 12 s. */
static void make(const enum thread_state states[THREADS], const double since_s[THREADS])
{
	static const char *const names[] = {"read", "decode", "step"};
	static const uint32_t workers[] = {1, 2, 1};
	static const uint8_t stage_of[THREADS] = {0, 1, 1, 2};
	*view = (struct live_view){.phase = LIVE_MEASURING,
		.timed = true,
		.period_s = 0.2,
		.updated_ns = now_ns - NS_PER_S / 10,
		.begun_ns = now_ns - 60 * NS_PER_S,
		.moved_ns = now_ns - 12 * NS_PER_S,
		.elapsed_s = 60,
		.batches = 600,
		.files_in_flight = 8,
		.stage_count = 3,
		.thread_count = THREADS};
	process = (struct process_look){.there = true, .state = 'S', .threads = 6};
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(view->stages[i].name, NAME_BYTES, "%s", names[i]);
		view->stages[i].workers = workers[i];
	}
	for (uint8_t i = 0; i < THREADS; i++) {
		view->threads[i] = (struct live_thread){.tid = 101 + i,
			.stage = stage_of[i],
			.state = (uint8_t)states[i],
			.since_ns = now_ns - (uint64_t)(since_s[i] * 1e9),
			.moved_ns = now_ns - (uint64_t)(12e9) - i};
		looks[i] = (struct thread_look){.tid = 101 + i, .state = 'S'};
		(void)snprintf(looks[i].call, LOOK_NAME_BYTES, "futex");
	}
}

static struct stall found(void)
{
	struct stall out;
	const struct stall_input input = {.view = view,
		.process = &process,
		.threads = looks,
		.thread_count = THREADS,
		.still = still,
		.now_ns = now_ns};
	stall_find(&input, &out);
	return out;
}

static void expect_words(const struct stall *stall, const char *words)
{
	if (!strstr(stall->words, words))
		fail_msg("'%s' does not say '%s'", stall->words, words);
}

static void test_reader_hangs(void **state)
{
	(void)state;
	make((enum thread_state[]){THREAD_WORKING, THREAD_STARVED, THREAD_STARVED, THREAD_STARVED},
		(double[]){30, 12, 11.5, 11});
	looks[0].state = 'D';
	(void)snprintf(looks[0].call, LOOK_NAME_BYTES, "pread64");
	(void)snprintf(looks[0].place, LOOK_NAME_BYTES, "nfs_wait_bit_killable");
	(void)snprintf(looks[0].file, LOOK_FILE_BYTES, "/mnt/a.jpg");
	const struct stall stall = found();
	assert_int_equal(stall.kind, STALL_WAITING);
	assert_int_equal(stall.chain_count, 3);
	assert_string_equal(stall.chain[0], "step starved 11.0 s");
	assert_string_equal(stall.chain[1], "decode starved 11.5 s");
	assert_non_null(strstr(stall.chain[2], "read: 8 files in flight"));
	assert_non_null(strstr(stall.chain[2], "thread 101"));
	expect_words(&stall, "no progress for 12.0 s");
	expect_words(&stall, "(D) in pread64 of '/mnt/a.jpg', at nfs_wait_bit_killable");
}

static void test_worker_hangs(void **state)
{
	(void)state;
	make((enum thread_state[]){THREAD_BLOCKED, THREAD_STARVED, THREAD_WORKING, THREAD_STARVED},
		(double[]){12, 12, 12, 12});
	const struct stall stall = found();
	assert_int_equal(stall.chain_count, 2);
	assert_non_null(strstr(stall.chain[1], "decode: 1 of 2 threads working"));
	assert_non_null(strstr(stall.chain[1], "thread 103"));
}

static void test_step_hangs(void **state)
{
	(void)state;
	make((enum thread_state[]){THREAD_BLOCKED, THREAD_BLOCKED, THREAD_BLOCKED, THREAD_WORKING},
		(double[]){12, 12, 12, 12});
	looks[3].state = 'R';
	looks[3].call[0] = '\0';
	const struct stall stall = found();
	assert_int_equal(stall.chain_count, 1);
	assert_non_null(strstr(stall.chain[0], "step: 1 of 1 thread working"));
	assert_non_null(strstr(stall.chain[0], ": running"));
}

static void test_lost_wakeup(void **state)
{
	(void)state;
	make((enum thread_state[]){THREAD_STARVED, THREAD_BLOCKED, THREAD_BLOCKED, THREAD_STARVED},
		(double[]){12, 12, 12, 12});
	struct stall stall = found();
	expect_words(&stall, "step starved 12.0 s <- decode blocked 12.0 s <- ");
	expect_words(&stall, "a bug in mlbench");
	make((enum thread_state[]){THREAD_STARVED, THREAD_STARVED, THREAD_STARVED, THREAD_STARVED},
		(double[]){12, 12, 12, 12});
	stall = found();
	expect_words(&stall, "read starved 12.0 s <- no file is requested");
}

static void test_moves(void **state)
{
	(void)state;
	make((enum thread_state[]){THREAD_WORKING, THREAD_STARVED, THREAD_STARVED, THREAD_STARVED},
		(double[]){30, 12, 12, 12});
	view->moved_ns = now_ns - NS_PER_S;
	assert_int_equal(found().kind, STALL_NONE);
	/* A step that usually takes long is no hang. */
	view->moved_ns = now_ns - 12 * NS_PER_S;
	view->batches = 10;
	assert_int_equal(found().kind, STALL_NONE);
}

static void test_control_thread(void **state)
{
	(void)state;
	make((enum thread_state[]){THREAD_WORKING, THREAD_WORKING, THREAD_WORKING, THREAD_WORKING},
		(double[]){1, 1, 1, 1});
	view->updated_ns = now_ns - 9 * NS_PER_S;
	const struct stall stall = found();
	assert_int_equal(stall.kind, STALL_SILENT);
	expect_words(&stall, "control thread does not run: the last update is 9.00 s old");
	/* Where no pictures are due, an old one is nothing. */
	view->period_s = NAN;
	view->phase = LIVE_SETTING_UP;
	assert_int_equal(found().kind, STALL_IDLE);
}

/* Between pictures: whatever the phase, if nothing runs for long, with the thread that waits. */
static void test_between_pictures(void **state)
{
	(void)state;
	static const enum live_phase phases[] = {
		LIVE_SETTING_UP, LIVE_DRAINING, LIVE_BETWEEN, LIVE_REPORTING};
	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
		struct thread_look waits = {.tid = 77,
			.state = 'D',
			.name = "mlbench",
			.call = "fsync",
			.file = "/results/points.jsonl"};
		make((enum thread_state[]){THREAD_WORKING, THREAD_WORKING, THREAD_WORKING,
			     THREAD_WORKING},
			(double[]){1, 1, 1, 1});
		view->period_s = NAN;
		view->phase = phases[i];
		view->phase_ns = now_ns - 12 * NS_PER_S;
		assert_true(stall_wants_still(view, now_ns));
		assert_int_equal(found().kind, STALL_IDLE); /* something runs */
		still = &waits;
		struct stall stall = found();
		assert_int_equal(stall.kind, STALL_WAITING);
		assert_true(stall_is_stuck(&stall));
		expect_words(&stall, live_phase_name(phases[i]));
		expect_words(&stall, "for 12.0 s, and no thread of it runs: mlbench thread 77: ");
		expect_words(&stall, "fsync of '/results/points.jsonl'");
		waits.tid = view->threads[1].tid = 42; /* one of a stage */
		stall = found();
		expect_words(&stall, view->stages[view->threads[1].stage].name);
		view->phase_ns = now_ns - 2 * NS_PER_S; /* not for long */
		assert_false(stall_wants_still(view, now_ns));
		assert_int_equal(found().kind, STALL_IDLE);
		still = NULL;
	}
}

static void test_process(void **state)
{
	(void)state;
	static const struct {
		char state;
		enum stall_kind kind;
		const char *words;
	} cases[] = {
		{'T', STALL_STOPPED, "kill -CONT"},
		{'t', STALL_STOPPED, "debugger"},
		{'Z', STALL_ENDED, "parent"},
		{'X', STALL_ENDED, "ended"},
	};
	make((enum thread_state[]){THREAD_WORKING, THREAD_STARVED, THREAD_STARVED, THREAD_STARVED},
		(double[]){30, 12, 12, 12});
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		process.state = cases[i].state;
		const struct stall stall = found();
		assert_int_equal(stall.kind, cases[i].kind);
		expect_words(&stall, cases[i].words);
	}
	process.there = false;
	assert_int_equal(found().kind, STALL_ENDED);
}

static void test_half_known(void **state)
{
	(void)state;
	make((enum thread_state[]){THREAD_WORKING, THREAD_STARVED, THREAD_STARVED, THREAD_STARVED},
		(double[]){30, 12, 12, 12});
	view->timed = false;
	view->thread_count = 0;
	struct stall stall = found();
	assert_int_equal(stall.kind, STALL_WAITING);
	expect_words(&stall, "measure.profiler is off");
	const struct stall_input torn = {.process = &process, .now_ns = now_ns};
	stall_find(&torn, &stall);
	assert_int_equal(stall.kind, STALL_TORN);
}

/* --- the kernel's word --------------------------------------------------------------------------- */

struct sleeper {
	char path[64];
	atomic_int tid;
};

static void *read_a_pipe(void *context)
{
	struct sleeper *s = context;
	char byte;
	const int fd = open(s->path, O_RDWR);
	atomic_store(&s->tid, (int)gettid());
	const ssize_t n = read(fd, &byte, 1);
	(void)close(fd);
	return (void *)(intptr_t)n;
}

static void test_looks(void **state)
{
	(void)state;
	struct sleeper sleeper = {.path = "/tmp/test_stall.XXXXXX"};
	pthread_t thread;
	struct thread_look look = {0};
	char words[LOOK_WORDS_BYTES];
	const int temporary = mkstemp(sleeper.path);
	assert_true(temporary >= 0);
	assert_int_equal(close(temporary), 0);
	assert_int_equal(unlink(sleeper.path), 0);
	assert_int_equal(mkfifo(sleeper.path, 0600), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_a_pipe, &sleeper), 0);
	/* Asleep; and in which call, where the kernel tells. */
	for (int i = 0; i < 6000 &&
			(look.state != 'S' || (strcmp(look.call, "read") != 0 && !look.unknown[0]));
		i++) {
		(void)usleep(10000);
		if (atomic_load(&sleeper.tid) > 0)
			look_at_thread(getpid(), atomic_load(&sleeper.tid), &look);
	}
	assert_int_equal(look.state, 'S');
	(void)look_words(&look, words);
	if (look.call[0]) {
		assert_string_equal(look.file, sleeper.path);
		assert_non_null(strstr(words, "sleeping in read of '/tmp/test_stall."));
	} else {
		assert_non_null(strstr(words, "sleeping"));
	}
	int32_t tids[64];
	assert_true(look_list_threads(getpid(), tids, 64) >= 2);
	assert_int_equal(tids[0], getpid());
	const int fd = open(sleeper.path, O_WRONLY);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(sleeper.path), 0);
	/* One that has gone. */
	look_at_thread(getpid(), INT32_MAX, &look);
	assert_int_equal(look.state, 0);
	assert_string_equal(look_words(&look, words), "gone");
}

static void test_zombie(void **state)
{
	(void)state;
	struct process_look look = {0};
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	for (int i = 0; i < 6000 && look.state != 'Z'; i++) {
		(void)usleep(10000);
		look_at_process(child, &look);
	}
	assert_int_equal(look.state, 'Z');
	assert_int_equal(waitpid(child, NULL, 0), child);
	look_at_process(child, &look);
	assert_false(look.there);
}

/* Names with control characters and quotes end up as text that no terminal obeys, and as valid JSON. */
static void test_hostile_names(void **state)
{
	(void)state;
	struct status *s = calloc(1, sizeof *s);
	const struct style style = {.width = 100, .utf8 = true};
	struct buffer text = {0};
	make((enum thread_state[]){THREAD_WORKING, THREAD_STARVED, THREAD_STARVED, THREAD_STARVED},
		(double[]){30, 12, 12, 12});
	static const char wild[] = "a\033[2J\007\"</b>\\\xff\xc2\x9b\nx";
	(void)snprintf(view->name, sizeof view->name, "%s", wild);
	(void)snprintf(view->label, sizeof view->label, "%s", wild);
	(void)snprintf(view->folder, sizeof view->folder, "%s", wild);
	(void)snprintf(looks[0].file, sizeof looks[0].file, "%s", wild);
	view->total = 2;
	s->pid = 7;
	s->seen = s->whole = s->by_stage = true;
	s->view = *view;
	s->now_ns = now_ns;
	s->thread_count = THREADS;
	memcpy(s->threads, looks, sizeof looks);
	s->stall = found();
	status_text(s, &style, &text);
	assert_false(text.failed);
	status_list_text(s, 1, &style, &text);
	for (size_t i = 0; i < text.size; i++)
		if (((unsigned char)text.data[i] < ' ' && text.data[i] != '\n') ||
			(unsigned char)text.data[i] == 0x7f)
			fail_msg("a control character at %zu of: %s", i, text.data);
	assert_null(strstr(text.data, "\xc2\x9b"));
	assert_null(strstr(text.data, "\xff"));
	json_t *document = status_json(s, 1);
	char *written = json_dumps(document, 0);
	assert_non_null(written);
	json_t *again = json_loads(written, 0, NULL);
	assert_non_null(again);
	json_decref(again);
	json_decref(document);
	free(written);
	buffer_release(&text);
	free(s);
}

static int set_up(void **state)
{
	(void)state;
	view = calloc(1, sizeof *view);
	return view ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(view);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader_hangs),
		cmocka_unit_test(test_worker_hangs),
		cmocka_unit_test(test_step_hangs),
		cmocka_unit_test(test_lost_wakeup),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_control_thread),
		cmocka_unit_test(test_between_pictures),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_half_known),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_hostile_names),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
