/* Probes with small sizes and short times: what they fill in, how they stop, and that nothing of them
 * stays in the folder. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/command/probe_node.h"
#include "harness/measure/node_probes.h"
#include "harness/measure/probe_memory.h"
#include "tests/measuring.h"
#include "tests/unit/child.h"
#include "tests/unit/source_fixture.h"
#include "workloads/backend/probe_compute.h"
#include "workloads/dataset/probe_decode.h"
#include "workloads/source/probe_read.h"
#include "workloads/source/residency.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 5, MIB = 1 << 20, STOP_MS = 100, SOON_MS = 1000, CREW = 37 };

static char root[] = "/var/tmp/mlbench-probe-XXXXXX";
static struct ceilings sheet;

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return files_remove_tree(root, NULL);
}

static int fresh(void **state)
{
	(void)state;
	ceilings_init(&sheet);
	return 0;
}

static const struct probe_control brief = {.rounds = ROUNDS, .slot_ns = 4 * NS_PER_MS};

static size_t entries_in(const char *folder)
{
	size_t count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 2;
}

static void assert_range(double median, const struct ceiling_range *range, unsigned rounds)
{
	/* On a busy machine some may end without a slot, and count for nothing. */
	assert_true(range->repeats <= rounds);
	assert_measured(range->repeats + (rounds > 1) >= rounds);
	if (range->repeats == 0)
		return;
	assert_true(isfinite(median) && median > 0);
	assert_true(range->low <= median && median <= range->high);
}

static bool says(char (*lines)[NOTE_BYTES], size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(lines[i], text))
			return true;
	return false;
}

/* Sets a flag after STOP_MS. */
struct stopper {
	pthread_t thread;
	atomic_bool stop;
	uint64_t stopped_ns;
};

static void *stop_soon(void *argument)
{
	struct stopper *stopper = argument;
	clock_sleep_until_ns(clock_now_ns() + STOP_MS * NS_PER_MS);
	stopper->stopped_ns = clock_now_ns();
	atomic_store(&stopper->stop, true);
	return NULL;
}

static void stopper_begin(struct stopper *stopper)
{
	atomic_store(&stopper->stop, false);
	assert_int_equal(pthread_create(&stopper->thread, NULL, stop_soon, stopper), 0);
}

static void stopper_end(struct stopper *stopper)
{
	const uint64_t now = clock_now_ns();
	assert_int_equal(pthread_join(stopper->thread, NULL), 0);
	assert_measured(now < stopper->stopped_ns + SOON_MS * NS_PER_MS);
}

/* --- shared parts ---------------------------------------------------------------------------- */

static void medians(void **state)
{
	(void)state;
	struct probe_values values = {0};
	struct ceiling_range range;
	assert_true(isnan(probe_median(&values, &range)));
	assert_true(isnan(range.low) && range.repeats == 0);
	probe_add(&values, NAN);
	assert_int_equal(values.count, 0);
	probe_add(&values, 9);
	probe_add(&values, 1);
	assert_true(probe_median(&values, NULL) == 5);
	probe_add(&values, 4);
	assert_true(probe_median(&values, &range) == 4);
	assert_true(range.low == 1 && range.high == 9 && range.repeats == 3);
	for (int i = 0; i < 2 * PROBE_ROUNDS_MAX; i++)
		probe_add(&values, 2);
	assert_int_equal(values.count, PROBE_ROUNDS_MAX);
	assert_true(values.at[0] == 9); /* the order of rounds stays */
}

static void bounds_of_time(void **state)
{
	(void)state;
	atomic_bool stop = false;
	struct probe_control control = {.stop = &stop, .rounds = 1, .slot_ns = 1000};
	assert_false(probe_time_over(&control));
	assert_true(probe_slot_end(&control, 5000) == 6000);
	control.deadline_ns = 5500;
	assert_true(probe_slot_end(&control, 5000) == 5500);
	assert_true(probe_time_over(&control)); /* long past */
	assert_false(probe_stopped(&control));
	control.deadline_ns = 0;
	atomic_store(&stop, true);
	assert_true(probe_stopped(&control) && probe_time_over(&control));
}

struct count {
	atomic_uint calls[CREW];
};

static void count_me(void *context, unsigned index)
{
	struct count *count = context;
	atomic_fetch_add(&count->calls[index], 1);
}

static void crews(void **state)
{
	(void)state;
	struct count count = {0};
	struct error err;
	assert_int_equal(probe_crew(CREW, true, count_me, &count, &err), 0);
	assert_int_equal(probe_crew(CREW, false, count_me, &count, &err), 0);
	for (int i = 0; i < CREW; i++)
		assert_int_equal(atomic_load(&count.calls[i]), 2);
	assert_true(probe_cores() >= 1);
}

struct places {
	int core[CREW];
};

static void tell_core(void *context, unsigned index)
{
	((struct places *)context)->core[index] = sched_getcpu();
}

static void crews_on_cores(void **state)
{
	(void)state;
	unsigned *cores;
	struct places places;
	struct error err;
	const unsigned count = probe_core_list(&cores);
	assert_int_equal(count, probe_cores());
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(probe_crew_on(&cores[i], 1, tell_core, &places, &err), 0);
		assert_int_equal(places.core[0], (int)cores[i]);
		assert_true(i == 0 || cores[i] > cores[i - 1]);
	}
	const unsigned nowhere[] = {cores[0], 9999};
	places.core[0] = -1;
	assert_int_equal(probe_crew_on(nowhere, 2, tell_core, &places, &err), -EPERM);
	assert_non_null(strstr(err.text, "core 9999"));
	assert_int_equal(places.core[0], -1); /* none works */
	free(cores);
}

/* --- timing and memory ------------------------------------------------------------------------ */

static void timing(void **state)
{
	(void)state;
	struct error err = {0};
	const struct probe_control control = {.rounds = ROUNDS, .slot_ns = 10 * NS_PER_MS};
	assert_int_equal(probe_timing(&control, &sheet, &err), 0);
	assert_range(sheet.clock_read_ns, &sheet.clock_range, ROUNDS);
	assert_range(sheet.cpu_clock_read_ns, &sheet.cpu_clock_range, ROUNDS);
	assert_range(sheet.oversleep_ns, &sheet.oversleep_range, ROUNDS);
	assert_true(sheet.oversleep_p99_ns >= sheet.oversleep_range.low);
	if (!isnan(sheet.lock_handoff_ns))
		assert_range(sheet.lock_handoff_ns, &sheet.lock_range, sheet.lock_range.repeats);
	else
		assert_true(says(sheet.missing, sheet.missing_count, "lock hand-off"));
	assert_measured(sheet.clock_read_ns < 1e5 && sheet.cpu_clock_read_ns > 1);
}

static void memory(void **state)
{
	(void)state;
	struct error err = {0};
	assert_int_equal(probe_memory(&brief, 3 * MIB, &sheet, &err), 0);
	assert_range(sheet.memory_bytes_per_s_one, &sheet.memory_range_one, ROUNDS);
	assert_range(sheet.memory_bytes_per_s_all, &sheet.memory_range_all, ROUNDS);
	assert_range(sheet.copy_bytes_per_s, &sheet.copy_range, ROUNDS);
	assert_true(sheet.memory_array_bytes >= 3 * MIB);
	assert_true(sheet.memory_bytes_per_s_one < 1e13); /* no machine has it */
}

static void assert_rate(int code, double rate, const struct error *err)
{
	if (code)
		fail_msg("%s", err->text);
	assert_true(rate > 0 && rate < 1e13);
}

/* Each node and way by itself, on nodes that hwloc is told of. */
static bool streams_of_two_nodes(const void *context, char *report, size_t room)
{
	(void)context;
	(void)setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
	struct error err = {0};
	struct probe_streams *streams;
	double rate;
	if (probe_cores() < 2)
		return true;
	int code = probe_streams_open(&streams, MIB, &brief, &err);
	bool right = !code && probe_streams_nodes(streams) == 2;
	for (size_t from = 0; right && from < 2; from++)
		for (size_t to = 0; right && to < 2; to++) {
			right = probe_streams_node(streams, from)->core_count >= 1 &&
				probe_stream_nodes(streams, from, to, &rate, &err) == 0 && rate > 0;
		}
	(void)snprintf(report, room, "%d %.400s", code, err.text);
	if (!code)
		probe_streams_close(streams);
	return right;
}

static void streams_by_place(void **state)
{
	(void)state;
	struct error err = {0};
	struct probe_streams *streams;
	unsigned *cores;
	double rate;
	char report[CHILD_REPORT_BYTES];
	assert_int_equal(probe_streams_open(&streams, 2 * MIB, &brief, &err), 0);
	const unsigned count = probe_core_list(&cores);
	for (unsigned i = 0; i < 3 * count; i++) {
		const int code = probe_stream_core(
			streams, cores[i % count], i % 2 ? PROBE_COPY : PROBE_TRIAD, &rate, &err);
		assert_rate(code, rate, &err);
	}
	const int code = probe_stream_all(streams, &rate, &err);
	assert_rate(code, rate, &err);
	probe_streams_close(streams);
	free(cores);
	if (!child_run(streams_of_two_nodes, NULL, report, sizeof report))
		fail_msg("%s", report);
}

static void memory_stops(void **state)
{
	(void)state;
	struct error err = {0};
	struct stopper stopper;
	const struct probe_control control = {
		.stop = &stopper.stop, .rounds = PROBE_ROUNDS_MAX, .slot_ns = NS_PER_S};
	stopper_begin(&stopper);
	assert_int_equal(probe_memory(&control, 8 * MIB, &sheet, &err), -EINTR);
	stopper_end(&stopper);
	assert_true(isnan(sheet.memory_bytes_per_s_one)); /* a cut slot is no measurement */
}

/* --- reads ------------------------------------------------------------------------------------ */

static struct probe_read_plan small_plan(void)
{
	return (struct probe_read_plan){
		.folder = root,
		.cold_bytes = 16 * MIB,
		.warm_bytes = 8 * MIB,
		.write_ns = 20 * NS_PER_S,
		.depths = {1, 4, 64},
		.depth_count = 3,
		.sizes = {4096, 16384},
		.size_count = 2,
		.seed = 3,
	};
}

static void check_reads(const struct probe_read_plan *plan)
{
	size_t states = 3;
	states -= says(sheet.missing, sheet.missing_count, "cold direct");
	states -= says(sheet.missing, sheet.missing_count, "cold buffered");
	assert_true(states >= 1); /* warm there always is */
	const size_t all = states * plan->size_count * plan->depth_count;
	assert_true(sheet.read_count <= all);
	assert_measured(sheet.read_count == all);
	assert_true(sheet.scratch_bytes == 16 * MIB);
	for (size_t i = 0; i < sheet.read_count; i++) {
		const struct read_ceiling *read = &sheet.reads[i];
		assert_range(read->bytes_per_s, &read->range, ROUNDS);
		assert_true(fabs(read->bytes_per_s - read->requests_per_s * read->request_bytes) <
			    1e-6 * read->bytes_per_s);
		assert_true(read->latency_ns > 0);
		assert_true(read->cold || !read->direct);
	}
	assert_int_equal(entries_in(root), 0);
}

static void reads_into_small_pages(void **state)
{
	(void)state;
	struct error err = {0};
	struct probe_read_plan plan = small_plan();
	plan.small_pages = true;
	assert_int_equal(probe_read(&plan, &brief, &sheet, &err), 0);
	assert_string_equal(sheet.read_pages, "4 KiB pages");
}

static void first_reads_of_a_data_set(void **state)
{
	(void)state;
	enum { FILES = 40, EACH = 100000 };
	size_t sizes[FILES];
	for (size_t i = 0; i < FILES; i++)
		sizes[i] = EACH;
	struct fixture fixture;
	fixture_open(&fixture, sizes, FILES);
	struct error err = {0};
	struct residency after;
	const bool evictable = residency_evict(&fixture.dataset, &after, &err) == 0;
	const struct probe_control control = {.rounds = 1, .slot_ns = 100 * NS_PER_S};
	const int code = probe_first_reads(&fixture.dataset, 1 << 30, &control, &sheet, &err);
	/* Too few bytes for a rate. */
	struct ceilings few;
	ceilings_init(&few);
	fixture.dataset.count = 3;
	const int none = probe_first_reads(&fixture.dataset, 1 << 30, &control, &few, &err);
	fixture.dataset.count = FILES;
	fixture_close(&fixture);
	if (!evictable)
		skip();
	assert_int_equal(code, 0);
	assert_true(sheet.first_read_bytes == (double)FILES * EACH);
	assert_true(sheet.first_read_bytes_per_s > 0 && sheet.reread_bytes_per_s > 0);
	assert_int_equal(none, -ENODATA);
	assert_true(isnan(few.first_read_bytes_per_s));
}

static void reads_by_a_ring(void **state)
{
	(void)state;
	struct error err = {0};
	const struct probe_read_plan plan = small_plan();
	assert_int_equal(probe_read(&plan, &brief, &sheet, &err), 0);
	check_reads(&plan);
	if (strcmp(sheet.engine, "io_uring") != 0)
		assert_true(says(sheet.notes, sheet.note_count, "io_uring: "));
}

static void reads_by_threads(void **state)
{
	(void)state;
	struct error err = {0};
	struct probe_read_plan plan = small_plan();
	plan.without_uring = true;
	assert_int_equal(probe_read(&plan, &brief, &sheet, &err), 0);
	check_reads(&plan);
	assert_string_equal(sheet.engine, "pread");
	assert_true(says(sheet.notes, sheet.note_count, "threads that call pread"));
}

/* Every block is read once before any is read again, and a slot that must not wrap ends there. */
static void offsets(void **state)
{
	(void)state;
	const uint32_t order[] = {2, 0, 1};
	struct read_slot slot = {.request_bytes = 100, .order = order, .order_count = 3, .next = 1};
	uint32_t taken = 0;
	uint64_t offset;
	uint64_t seen = 0;
	while (read_slot_next(&slot, &taken, &offset))
		seen = seen * 1000 + offset;
	assert_true(seen == 100200); /* 0, 100, 200 */
	assert_int_equal(slot.next, 1);
	slot.wraps = true;
	for (int i = 0; i < 10; i++)
		assert_true(read_slot_next(&slot, &taken, &offset));
}

static void rates(void **state)
{
	(void)state;
	struct read_tally tally = {.begin_ns = 1000, .first_ns = 1100, .last_ns = 2100};
	assert_true(isnan(read_tally_rate(&tally)));
	tally.first_count = 7;
	assert_true(isnan(read_tally_rate(&tally)));
	tally.count = 10;
	assert_true(read_tally_rate(&tally) == 1e7); /* 10 in 1 us */
	/* Kept from looking for nearly all of the slot: not 10 in 1 ns. */
	tally.first_ns = 2099;
	assert_true(fabs(read_tally_rate(&tally) - 17 / 1.1e-6) < 1);
	/* All at once */
	tally.first_ns = tally.last_ns;
	tally.count = 0;
	assert_true(fabs(read_tally_rate(&tally) - 7 / 1.1e-6) < 1);
}

static void reads_stop(void **state)
{
	(void)state;
	struct error err = {0};
	struct stopper stopper;
	struct probe_read_plan plan = small_plan();
	const struct probe_control control = {
		.stop = &stopper.stop, .rounds = PROBE_ROUNDS_MAX, .slot_ns = 20 * NS_PER_S};
	for (int i = 0; i < 2; i++) {
		plan.without_uring = i == 1;
		stopper_begin(&stopper);
		assert_int_equal(probe_read(&plan, &control, &sheet, &err), -EINTR);
		stopper_end(&stopper);
		assert_int_equal(entries_in(root), 0);
	}
	/* while it is still being written */
	plan.cold_bytes = 1ULL << 40;
	stopper_begin(&stopper);
	assert_int_equal(probe_read(&plan, &control, &sheet, &err), -EINTR);
	stopper_end(&stopper);
	assert_int_equal(entries_in(root), 0);
	assert_int_equal(sheet.read_count, 0);
}

/* What was measured before the stop is kept. */
static void a_stop_keeps_what_there_is(void **state)
{
	(void)state;
	struct error err = {0};
	struct stopper stopper;
	const struct probe_read_plan plan = small_plan();
	const struct probe_control control = {
		.stop = &stopper.stop, .rounds = PROBE_ROUNDS_MAX, .slot_ns = 2 * NS_PER_MS};
	stopper_begin(&stopper);
	const int code = probe_read(&plan, &control, &sheet, &err);
	stopper_end(&stopper);
	assert_true(code == -EINTR || code == 0); /* 0: it was faster */
	for (size_t i = 0; i < sheet.read_count; i++)
		assert_range(sheet.reads[i].bytes_per_s, &sheet.reads[i].range,
			sheet.reads[i].range.repeats);
}

static void reads_end_in_time(void **state)
{
	(void)state;
	struct error err = {0};
	const struct probe_read_plan plan = small_plan();
	struct probe_control control = brief;
	control.slot_ns = 200 * NS_PER_MS;
	control.deadline_ns = clock_now_ns() + NS_PER_S;
	assert_int_equal(probe_read(&plan, &control, &sheet, &err), 0);
	assert_measured(clock_now_ns() < control.deadline_ns + 2 * NS_PER_S);
	assert_measured(says(sheet.missing, sheet.missing_count, "out of time"));
}

static void no_place_for_the_file(void **state)
{
	(void)state;
	struct error err = {0};
	struct probe_read_plan plan = small_plan();
	plan.folder = "/nowhere/at/all";
	assert_int_equal(probe_read(&plan, &brief, &sheet, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	plan.folder = "/proc";
	assert_true(probe_read(&plan, &brief, &sheet, &err) < 0);
	assert_non_null(strstr(err.text, "/proc"));
	assert_int_equal(sheet.read_count, 0);
}

static bool unwritable(const void *context, char *report, size_t room)
{
	struct probe_read_plan plan = small_plan();
	struct error err = {0};
	plan.folder = context;
	if (!child_become_nobody())
		return false;
	const int code = probe_read(&plan, &brief, &sheet, &err);
	(void)snprintf(report, room, "%.400s", err.text);
	return code == -EACCES;
}

static void a_folder_that_may_not_be_written(void **state)
{
	(void)state;
	char report[CHILD_REPORT_BYTES];
	char *closed = files_join(root, "closed");
	assert_int_equal(mkdir(closed, 0555), 0);
	if (!child_run(unwritable, closed, report, sizeof report))
		fail_msg("%s", report);
	assert_non_null(strstr(report, "Permission denied"));
	assert_int_equal(rmdir(closed), 0);
	free(closed);
}

/* A file may be no larger than half of what is needed: refused beforehand, as the write would end the
 * process. */
static bool limited(const void *context, char *report, size_t room)
{
	const struct rlimit limit = {512 * 1024, 512 * 1024};
	const struct probe_read_plan plan = small_plan();
	struct error err = {0};
	(void)context;
	const bool set = setrlimit(RLIMIT_FSIZE, &limit) == 0;
	const int code = probe_read(&plan, &brief, &sheet, &err);
	(void)snprintf(report, room, "%d %.400s", code, err.text);
	return set && code == -ENOSPC;
}

static void no_room_for_the_file(void **state)
{
	(void)state;
	char report[CHILD_REPORT_BYTES];
	if (!child_run(limited, NULL, report, sizeof report))
		fail_msg("%s", report);
	assert_non_null(strstr(report, "512 KiB"));
	assert_int_equal(entries_in(root), 0);
}

/* Slot by slot: cold ones alone, and writes. */
static void reads_by_slot(void **state)
{
	(void)state;
	struct probe_read_plan plan = small_plan();
	struct probe_reads *reads;
	struct error err = {0};
	double rate;
	double latency;
	plan.warm_bytes = 0;
	assert_int_equal(probe_reads_open(&reads, &plan, &brief, &sheet, &err), 0);
	int code = probe_reads_slot(reads, PROBE_COLD, 1, 4, &rate, &latency, &err);
	assert_true(code == 0 || code == -EBUSY); /* some file systems are a cache */
	assert_int_equal(probe_reads_write(reads, 4 * MIB, &rate, &err), 0);
	assert_true(rate > 0);
	code = probe_reads_slot(reads, PROBE_COLD, 0, 64, &rate, &latency, &err);
	assert_true(code == 0 || code == -EBUSY);
	probe_reads_close(reads);
	assert_int_equal(entries_in(root), 0);
	assert_int_equal(probe_read(&plan, &brief, &sheet, &err), 0);
	for (size_t i = 0; i < sheet.read_count; i++)
		assert_true(sheet.reads[i].cold);
}

static bool without_ring(const void *context, char *report, size_t room)
{
	const struct probe_read_plan plan = small_plan();
	struct error err = {0};
	(void)context;
	const bool forbidden = child_forbid(SYS_io_uring_setup, EPERM);
	const int code = probe_read(&plan, &brief, &sheet, &err);
	(void)snprintf(report, room, "%d %.200s; %.200s", code, err.text, sheet.notes[0]);
	return forbidden && code == 0 && strcmp(sheet.engine, "pread") == 0 && sheet.read_count > 0;
}

static void io_uring_is_forbidden(void **state)
{
	(void)state;
	char report[CHILD_REPORT_BYTES];
	if (!child_run(without_ring, NULL, report, sizeof report))
		fail_msg("%s", report);
	assert_non_null(strstr(report, "forbids it"));
}

/* Whether a process holds two files open that have no name, the same one twice counting once. */
static bool holds_two_nameless(pid_t pid)
{
	char fds[64];
	ino_t first = 0;
	bool two = false;
	(void)snprintf(fds, sizeof fds, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(fds);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) != 0 || !S_ISREG(st.st_mode) ||
			st.st_nlink > 0)
			continue;
		two = two || (first && st.st_ino != first);
		first = st.st_ino;
	}
	(void)closedir(dir);
	return two;
}

/* Killed once both of its files are there, it leaves nothing. */
static void a_kill_leaves_nothing(void **state)
{
	(void)state;
	(void)fflush(NULL);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct probe_read_plan plan = small_plan();
		const struct probe_control control = {.rounds = 1, .slot_ns = 60 * NS_PER_S};
		_exit(probe_read(&plan, &control, &sheet, NULL) ? 1 : 0);
	}
	const uint64_t end_ns = clock_now_ns() + 60 * NS_PER_S;
	while (!holds_two_nameless(child) && clock_now_ns() < end_ns)
		clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
	assert_int_equal(kill(child, SIGKILL), 0);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(entries_in(root), 0);
}

/* --- decode and products ---------------------------------------------------------------------- */

static void raw_config(struct config *config)
{
	struct error err;
	static const char *const keys[] = {"dataset.format=raw", "dataset.width=32",
		"dataset.height=24", "dataset.size_sigma=0", "augment.size=16", "batch.size=8",
		"step.model=mlp"};
	config_init(config);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		assert_int_equal(config_set(config, keys[i], &err), 0);
}

/* Painting pictures takes ThreadSanitizer ten seconds each time. */
static void threads_are_no_part_of_this(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}

static void decode(void **state)
{
	(void)state;
	struct config config;
	struct probe_samples samples;
	struct error err = {0};
	raw_config(&config);
	assert_int_equal(probe_samples_make(&config, 3, &brief, &samples, &err), 0);
	assert_int_equal(samples.set.count, 3);
	assert_int_equal(image_extents_all(&samples.set.extents).width, 32);
	assert_int_equal(probe_decode(&config, &samples, 3, &brief, &sheet, &err), 0);
	assert_int_equal(sheet.decode_count, 3); /* 1, 2, 3 cores */
	assert_int_equal(sheet.decode[1].cores, 2);
	assert_int_equal(sheet.decode[2].cores, 3);
	for (size_t i = 0; i < sheet.decode_count; i++)
		assert_range(sheet.decode[i].samples_per_s, &sheet.decode[i].range, ROUNDS);
	assert_true(isfinite(sheet.cpu_scaling) && sheet.cpu_scaling > 0);
	assert_non_null(strstr(sheet.decode_what, "32 x 24"));
	/* one that cannot be decoded is an error with its reason */
	samples.set.samples[1].bytes /= 2;
	assert_int_equal(probe_decode(&config, &samples, 1, &brief, &sheet, &err), -EINVAL);
	assert_true(err.text[0] != '\0');
	probe_samples_release(&samples);
	config_release(&config);
}

static void products(void **state)
{
	(void)state;
	struct error err = {0};
	const struct probe_gemm_plan plan = {.edges = {16, 48},
		.edge_count = 2,
		.all_threads = 2,
		.model = model_find("mlp"),
		.shape = {768, 10, 0},
		.batch = 8,
		.threads = 1,
		.shapes_most = 3,
		.call_flops_most = 1e6};
	assert_non_null(plan.model);
	assert_int_equal(probe_gemm(&plan, &brief, &sheet, &err), 0);
	assert_true(sheet.gemm_count >= 4);
	assert_true(sheet.gemms[0].is_best && sheet.gemms[1].is_best && !sheet.gemms[2].is_best);
	assert_int_equal(sheet.gemms[0].threads, 1);
	assert_int_equal(sheet.gemms[1].threads, 2);
	assert_string_equal(sheet.model, "mlp");
	double share = 0;
	for (size_t i = 0; i < sheet.gemm_count; i++) {
		const struct gemm_ceiling *gemm = &sheet.gemms[i];
		assert_range(gemm->flops, &gemm->range, ROUNDS);
		const double best = ceilings_best_flops(&sheet, gemm->threads);
		assert_true(fabs(gemm->efficiency - gemm->flops / best) < 1e-9);
		share += gemm->is_best ? 0 : gemm->share;
		/* a call is cut to so many operations, a row at least */
		const double flops = 2.0 * (double)gemm->m * (double)gemm->n * (double)gemm->k;
		assert_true(gemm->m == 1 || flops <= 1e6);
	}
	assert_true(share > 0.5 && share <= 1 + 1e-9);
	assert_true(says(sheet.notes, sheet.note_count, "cut to fewer rows"));
}

/* --- the whole -------------------------------------------------------------------------------- */

static struct probe_bounds tiny(void)
{
	const struct probe_share share = {2 * NS_PER_MS, 20 * NS_PER_S};
	return (struct probe_bounds){.rounds = ROUNDS,
		.timing = share,
		.memory = share,
		.decode = share,
		.gemm = share,
		.reads = share,
		.scan_ns = NS_PER_S,
		.cold_bytes = 32 * MIB,
		.warm_bytes = 16 * MIB,
		.write_ns = 20 * NS_PER_S,
		.depths = {1, 8},
		.depth_count = 2,
		.array_bytes = MIB,
		.samples = 4,
		.generated = 2,
		.edges = {32},
		.edge_count = 1,
		.shapes = 2,
		.call_flops = 1e6};
}

static void a_whole_node(void **state)
{
	(void)state;
	struct config config;
	struct error err = {0};
	const struct probe_bounds bounds = tiny();
	struct probe_target target = {.config = &config, .folder = root};
	raw_config(&config);
	assert_int_equal(node_identify(root, &target.node, &err), 0);
	assert_int_equal(probe_look(&target, &bounds, NULL, &err), 0);
	assert_false(target.has_data);
	assert_int_equal(probe_node(&target, &bounds, NULL, &sheet), 0);
	assert_true(sheet.read_count > 0 && sheet.gemm_count > 0 && sheet.decode_count > 0);
	assert_true(sheet.memory_bytes_per_s_all > 0 && sheet.clock_read_ns > 0);
	assert_true(isnan(sheet.file_bytes));
	assert_true(sheet.seconds > 0 && !sheet.interrupted);
	assert_true(says(sheet.notes, sheet.note_count, "generated samples"));
	char key[CEILINGS_NODE_BYTES];
	node_key(&target.node, key);
	assert_string_equal(sheet.node, key);
	assert_int_equal(entries_in(root), 0);
	config_release(&config);
}

static void one_part_fails_and_the_rest_is_there(void **state)
{
	(void)state;
	threads_are_no_part_of_this();
	struct config config;
	struct error err = {0};
	const struct probe_bounds bounds = tiny();
	struct probe_target target = {.config = &config, .folder = "/proc"};
	raw_config(&config);
	assert_int_equal(config_set(&config, "step.model=custom", &err), 0);
	assert_int_equal(node_identify("/proc", &target.node, &err), 0);
	assert_int_equal(probe_node(&target, &bounds, NULL, &sheet), 0);
	assert_int_equal(sheet.read_count, 0);
	assert_true(says(sheet.missing, sheet.missing_count,
		"storage: cannot create a scratch file in '/proc'"));
	assert_true(says(sheet.missing, sheet.missing_count, "gemm: the shapes of model 'custom'"));
	assert_true(sheet.gemm_count > 0 && sheet.decode_count > 0);
	config_release(&config);
}

static void the_whole_stops(void **state)
{
	(void)state;
	struct config config;
	struct error err = {0};
	struct stopper stopper;
	struct probe_bounds bounds = tiny();
	struct probe_target target = {.config = &config, .folder = root};
	bounds.memory.slot_ns = NS_PER_S;
	bounds.timing.slot_ns = NS_PER_S;
	raw_config(&config);
	assert_int_equal(node_identify(root, &target.node, &err), 0);
	stopper_begin(&stopper);
	assert_int_equal(probe_node(&target, &bounds, &stopper.stop, &sheet), -EINTR);
	stopper_end(&stopper);
	assert_true(sheet.interrupted);
	assert_true(says(sheet.missing, sheet.missing_count, "interrupted"));
	assert_int_equal(entries_in(root), 0);
	config_release(&config);
}

static void a_missing_data_set(void **state)
{
	(void)state;
	struct config config;
	struct error err = {0};
	const struct probe_bounds bounds = tiny();
	struct probe_target target = {.config = &config, .folder = root};
	raw_config(&config);
	assert_int_equal(config_set_key(&config, KEY_DATASET_PATH, "/nowhere/data", &err), 0);
	assert_int_equal(probe_look(&target, &bounds, NULL, &err), -ENOENT);
	/* one that can be generated is no mistake */
	assert_int_equal(config_set(&config, "dataset.recipe=photo", &err), 0);
	assert_int_equal(config_set(&config, "dataset.samples=5", &err), 0);
	assert_int_equal(probe_look(&target, &bounds, NULL, &err), 0);
	assert_false(target.has_data);
	assert_true(target.data_why[0] != '\0');
	config_release(&config);
}

static void a_data_set_of_the_users(void **state)
{
	(void)state;
	threads_are_no_part_of_this();
	struct config config;
	struct probe_samples samples = {0};
	struct error err = {0};
	const struct probe_bounds bounds = tiny();
	char *data = files_join(root, "data");
	struct probe_target target = {.config = &config, .folder = root};
	raw_config(&config);
	assert_int_equal(config_set_key(&config, KEY_DATASET_PATH, data, &err), 0);
	assert_int_equal(config_set(&config, "dataset.recipe=photo", &err), 0);
	assert_int_equal(config_set(&config, "dataset.samples=7", &err), 0);
	struct dataset_generated made;
	assert_int_equal(dataset_generate(&config, NULL, &made, &err), 0);
	assert_int_equal(probe_look(&target, &bounds, NULL, &err), 0);
	assert_true(target.has_data);
	assert_true(probe_file_bytes(&target) == 4096); /* 2.3 KiB, in whole blocks */
	assert_int_equal(
		probe_samples_load(&config, &target.dataset, 4, &brief, &samples, &err), 0);
	assert_int_equal(samples.set.count, 4);
	assert_non_null(strstr(samples.what, "samples of "));
	probe_samples_release(&samples);
	probe_forget(&target);
	assert_int_equal(files_remove_tree(data, &err), 0);
	free(data);
	config_release(&config);
}

#define TEST(function) cmocka_unit_test_setup(function, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(medians),
		TEST(bounds_of_time),
		TEST(crews),
		TEST(crews_on_cores),
		TEST(timing),
		TEST(memory),
		TEST(memory_stops),
		TEST(streams_by_place),
		TEST(reads_by_a_ring),
		TEST(reads_into_small_pages),
		TEST(first_reads_of_a_data_set),
		TEST(reads_by_threads),
		TEST(offsets),
		TEST(rates),
		TEST(reads_stop),
		TEST(a_stop_keeps_what_there_is),
		TEST(reads_end_in_time),
		TEST(no_place_for_the_file),
		TEST(a_folder_that_may_not_be_written),
		TEST(no_room_for_the_file),
		TEST(io_uring_is_forbidden),
		TEST(reads_by_slot),
		TEST(a_kill_leaves_nothing),
		TEST(decode),
		TEST(products),
		TEST(a_whole_node),
		TEST(one_part_fails_and_the_rest_is_there),
		TEST(the_whole_stops),
		TEST(a_missing_data_set),
		TEST(a_data_set_of_the_users),
	};
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
