/* Checkpoints: the protocol of writing one against a kernel that fails anywhere, and their stalls in a
 * run.  What a replay makes of them: test_replay_devices.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_device.h"
#include "tests/pipeline_fixture.h"

#include "pipelines/checkpoints.h"
#include "pipelines/pipeline.h"
#include "tests/measuring.h"
#include "workloads/checkpoint/checkpoint_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- a kernel that fails ------------------------------------------------------------------------- */

enum { EVENTS_MAX = 64, NO_WRITE = -1, FILES_MOST = 2 };
enum { BYTES = 3 * CHECKPOINT_CHUNK + 5 * CHECKPOINT_BLOCK };

static struct {
	int open_fails, sync_fails, folder_sync_fails,
		rename_fails;           /* errno values; 0: they work */
	int write_fails, failing_write; /* which one; NO_WRITE */
	bool short_writes, flips;
	uint64_t write_fails_from_step; /* 0: any */
	atomic_int writes;
	char events[EVENTS_MAX +
		    1]; /* o: opened for writing, s: fsync of the file, r: rename, f: fsync of the folder, u: unlink */
	size_t event_count;
	size_t files_most;
	uint64_t steps[EVENTS_MAX];    /* of the checkpoints that got their name */
	uint64_t launched[EVENTS_MAX]; /* by the fake device, then */
	size_t step_count;
	char folder[256];
} kernel;

static void kernel_note(char event)
{
	if (kernel.event_count < EVENTS_MAX)
		kernel.events[kernel.event_count++] = event;
}

static size_t count_files(const char *folder)
{
	size_t count = 0;
	DIR *const dir = opendir(folder);
	const struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	if (dir)
		(void)closedir(dir);
	return count;
}

static int failing_open(const char *path, int flags, mode_t mode)
{
	if (!(flags & O_CREAT))
		return checkpoint_kernel.open(path, flags, mode);
	if (kernel.open_fails)
		return -kernel.open_fails;
	kernel_note('o');
	return checkpoint_kernel.open(path, flags, mode);
}

static int failing_wrote(int result, uint64_t offset)
{
	(void)offset;
	const int number = atomic_fetch_add(&kernel.writes, 1);
	if (number == kernel.failing_write)
		return -kernel.write_fails;
	return kernel.short_writes && result > CHECKPOINT_BLOCK ? CHECKPOINT_BLOCK : result;
}

static int failing_sync(int fd)
{
	struct stat info;
	assert_int_equal(fstat(fd, &info), 0);
	const bool folder = S_ISDIR(info.st_mode);
	const size_t files = count_files(kernel.folder);
	kernel.files_most = files > kernel.files_most ? files : kernel.files_most;
	kernel_note(folder ? 'f' : 's');
	if (folder ? kernel.folder_sync_fails : kernel.sync_fails)
		return -(folder ? kernel.folder_sync_fails : kernel.sync_fails);
	const int code = checkpoint_kernel.sync(fd);
	if (!folder && kernel.flips) {
		char path[64];
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		const int again = open(path, O_RDWR | O_CLOEXEC);
		uint8_t byte;
		assert_int_equal(pread(again, &byte, 1, BYTES / 2), 1);
		byte ^= 1;
		assert_int_equal(pwrite(again, &byte, 1, BYTES / 2), 1);
		assert_int_equal(fsync(again), 0);
		assert_int_equal(close(again), 0);
	}
	return code;
}

static int failing_rename(const char *from, const char *to)
{
	uint64_t stamp[4];
	kernel_note('r');
	if (kernel.rename_fails)
		return -kernel.rename_fails;
	const int fd = open(from, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, stamp, sizeof stamp), sizeof stamp);
	(void)close(fd);
	if (kernel.step_count < EVENTS_MAX)
		kernel.launched[kernel.step_count] = fake_report.launches;
	if (kernel.step_count < EVENTS_MAX)
		kernel.steps[kernel.step_count++] = stamp[2];
	return checkpoint_kernel.rename(from, to);
}

static int failing_unlink(const char *path)
{
	kernel_note('u');
	return checkpoint_kernel.unlink(path);
}

static const struct checkpoint_calls failing_kernel = {
	failing_open, failing_wrote, failing_sync, failing_rename, failing_unlink};

static void kernel_works(const char *folder)
{
	memset(&kernel, 0, sizeof kernel);
	kernel.failing_write = NO_WRITE;
	(void)snprintf(kernel.folder, sizeof kernel.folder, "%s", folder);
}

/* --- one file ------------------------------------------------------------------------------------ */

struct place {
	char parent[64], folder[96], path[128];
};

static void place_open(struct place *p)
{
	(void)snprintf(p->parent, sizeof p->parent, "%s", "/var/tmp/mlbench-checkpoints-XXXXXX");
	assert_non_null(mkdtemp(p->parent));
	(void)snprintf(p->folder, sizeof p->folder, "%s/deep", p->parent);
	(void)snprintf(p->path, sizeof p->path, "%s/" CHECKPOINT_NAME, p->folder);
	kernel_works(p->folder);
}

static void place_close(const struct place *p)
{
	(void)unlink(p->path);
	(void)rmdir(p->folder);
	assert_int_equal(rmdir(p->parent), 0);
}

static struct checkpoint_file *file_open(const struct place *p, bool verify, bool staged)
{
	struct checkpoint_file *f;
	struct error err = {""};
	const struct checkpoint_options options = {.folder = p->folder,
		.bytes = BYTES,
		.seed = 7,
		.verify = verify,
		.staged = staged,
		.calls = &failing_kernel};
	if (checkpoint_file_open(&f, &options, &err))
		fail_msg("%s", err.text);
	kernel.event_count = 0; /* of the trial */
	memset(kernel.events, 0, sizeof kernel.events);
	atomic_store(&kernel.writes, 0);
	return f;
}

static int store(struct checkpoint_file *f, uint64_t step, struct error *err)
{
	struct checkpoint_times times;
	*err = (struct error){""};
	if (f->staging.data)
		checkpoint_stage(f, step);
	return checkpoint_store(f, step, NULL, &times, err);
}

static void stored(struct checkpoint_file *f, uint64_t step)
{
	struct error err;
	if (store(f, step, &err))
		fail_msg("%s", err.text);
}

/* What is there is the whole checkpoint of that step. */
static void holds(const struct checkpoint_file *f, const struct place *p, uint64_t step)
{
	uint8_t *const is = malloc(BYTES + 1);
	uint8_t *const should = malloc(BYTES);
	assert_non_null(is);
	assert_non_null(should);
	const int fd = open(p->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, is, BYTES + 1), BYTES);
	(void)close(fd);
	checkpoint_fill(f, step, 0, should, BYTES);
	assert_memory_equal(is, should, BYTES);
	free(is);
	free(should);
}

static void a_checkpoint_is_whole_and_takes_its_name_last(void **state)
{
	(void)state;
	for (int kind = 0; kind < 8; kind++) {
		struct place p;
		place_open(&p);
		struct checkpoint_file *f = file_open(&p, kind & 1, kind & 2);
		f->has_ring = f->has_ring && !(kind & 4); /* else by pwrite */
		stored(f, 10);
		assert_string_equal(kernel.events, "osrf");
		holds(f, &p, 10);
		stored(f, 20);
		assert_string_equal(kernel.events, "osrfosrf");
		holds(f, &p, 20);
		assert_int_equal(kernel.files_most, FILES_MOST);
		assert_true(atomic_load(&f->moved) == (kind & 1 ? 4 : 2) * (uint64_t)BYTES);
		checkpoint_file_close(f, false);
		assert_int_equal(access(p.folder, F_OK), -1);
		place_close(&p);
	}
}

static void contents_are_of_seed_and_step(void **state)
{
	(void)state;
	struct place p;
	place_open(&p);
	struct checkpoint_file *f = file_open(&p, false, false);
	uint8_t a[2 * CHECKPOINT_BLOCK];
	uint8_t b[CHECKPOINT_BLOCK];
	checkpoint_fill(f, 5, CHECKPOINT_CHUNK - CHECKPOINT_BLOCK, a, sizeof a);
	checkpoint_fill(f, 5, CHECKPOINT_CHUNK, b, sizeof b);
	assert_memory_equal(a + CHECKPOINT_BLOCK, b, sizeof b);
	checkpoint_fill(f, 6, CHECKPOINT_CHUNK, a, CHECKPOINT_BLOCK);
	assert_memory_not_equal(a, b, sizeof b);
	checkpoint_file_close(f, false);
	place_close(&p);
}

static void a_failure_leaves_the_one_before(void **state)
{
	(void)state;
	for (int what = 0; what < 5; what++) {
		struct place p;
		struct error err;
		place_open(&p);
		struct checkpoint_file *f = file_open(&p, what == 4, what == 3);
		stored(f, 1);
		atomic_store(&kernel.writes, 0);
		kernel.open_fails = what == 0 ? EACCES : 0;
		kernel.sync_fails = what == 1 ? EIO : 0;
		kernel.rename_fails = what == 2 ? EROFS : 0;
		kernel.write_fails = ENOSPC;
		kernel.failing_write = what == 3 ? 2 : NO_WRITE;
		kernel.flips = what == 4;
		static const int codes[] = {-EACCES, -EIO, -EROFS, -ENOSPC, -EBADMSG};
		static const char *const words[] = {"create the file", "fsync", "rename",
			"does not fit on the disk", "checksum"};
		assert_int_equal(store(f, 2, &err), codes[what]);
		if (!strstr(err.text, words[what]) || !strstr(err.text, p.folder))
			fail_msg("'%s' does not say '%s'", err.text, words[what]);
		holds(f, &p, 1);
		assert_int_equal(count_files(p.folder), 1);
		/* And it goes on from there. */
		kernel.open_fails = kernel.sync_fails = kernel.rename_fails = 0;
		kernel.failing_write = NO_WRITE;
		kernel.flips = false;
		stored(f, 3);
		holds(f, &p, 3);
		checkpoint_file_close(f, false);
		place_close(&p);
	}
}

/* Its name may not survive: that is said, and not that it is durable. */
static void a_folder_that_is_not_synced_is_told(void **state)
{
	(void)state;
	struct place p;
	struct error err;
	place_open(&p);
	struct checkpoint_file *f = file_open(&p, false, false);
	kernel.folder_sync_fails = EIO;
	assert_int_equal(store(f, 1, &err), -EIO);
	assert_non_null(strstr(err.text, "may not survive a crash"));
	assert_string_equal(kernel.events, "osrf");
	holds(f, &p, 1);
	checkpoint_file_close(f, false);
	assert_int_equal(access(p.folder, F_OK), -1);
	place_close(&p);
}

static void short_writes_are_completed(void **state)
{
	(void)state;
	struct place p;
	place_open(&p);
	struct checkpoint_file *f = file_open(&p, true, false);
	kernel.short_writes = true;
	stored(f, 4);
	assert_true(atomic_load(&kernel.writes) >= 4 * (BYTES / CHECKPOINT_CHUNK));
	holds(f, &p, 4);
	checkpoint_file_close(f, true);
	assert_int_equal(access(p.path, F_OK), 0); /* kept */
	f = file_open(&p, false, false);           /* and taken for one of ours */
	stored(f, 5);
	checkpoint_file_close(f, false);
	place_close(&p);
}

static void a_stop_throws_the_one_under_way_away(void **state)
{
	(void)state;
	struct place p;
	struct error err;
	struct checkpoint_times times;
	const atomic_bool stop = true;
	place_open(&p);
	struct checkpoint_file *f = file_open(&p, false, false);
	assert_int_equal(checkpoint_store(f, 1, &stop, &times, &err), -ECANCELED);
	assert_int_equal(count_files(p.folder), 0);
	checkpoint_file_close(f, false);
	place_close(&p);
}

static void opening_fails(const struct place *p, int code, const char *words)
{
	struct checkpoint_file *f;
	struct error err = {""};
	const struct checkpoint_options options = {
		.folder = p->folder, .bytes = BYTES, .calls = &failing_kernel};
	assert_int_equal(checkpoint_file_open(&f, &options, &err), code);
	assert_null(f);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

static void what_cannot_be_is_said_before(void **state)
{
	(void)state;
	struct place p;
	uint64_t room = 0;
	place_open(&p);
	assert_int_equal(checkpoint_look(p.folder, &room, NULL), 0);
	assert_true(room > 0);
	kernel.open_fails = EROFS;
	opening_fails(&p, -EROFS, "try a write");
	kernel_works(p.folder);
	struct checkpoint_file *f = file_open(&p, false, false);
	opening_fails(&p, -EBUSY, "another run");
	checkpoint_file_close(f, false);
	/* A file of somebody else's is not touched. */
	assert_int_equal(mkdir(p.folder, 0700), 0);
	const int fd = open(p.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "precious", 8), 8);
	(void)close(fd);
	opening_fails(&p, -EEXIST, "was not written by mlbench");
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(mkfifo(p.path, 0600), 0); /* and nobody is waited for */
	opening_fails(&p, -EEXIST, "was not written by mlbench");
	assert_int_equal(checkpoint_look(p.folder, &room, NULL), -EEXIST);
	assert_int_equal(access(p.path, F_OK), 0);
	place_close(&p);
}

/* --- in a run ------------------------------------------------------------------------------------ */

enum { RUN_SAMPLES = 96, RUN_STEPS = 36, RUN_EVERY = 3 };

static void run_open(struct pipeline_fixture *f, const struct place *p)
{
	fixture_open(f, RUN_SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10ms");
	fixture_set(f, KEY_STEP_BACKEND, "emulated");
	fixture_set(f, KEY_STEP_TIME, "200us");
	fixture_set(f, KEY_CHECKPOINT_EVERY, "3");
	fixture_set(f, KEY_CHECKPOINT_BYTES, "64k");
	fixture_set(f, KEY_CHECKPOINT_PATH, p->folder);
	checkpoints_replace_calls(&failing_kernel);
}

static void run_close(struct pipeline_fixture *f, const struct place *p)
{
	checkpoints_replace_calls(NULL);
	fixture_close(f);
	place_close(p);
}

static int run_once(const struct pipeline_fixture *f, struct measurement *m, struct error *err)
{
	const struct pipeline_limits limits = {
		.no_progress_ns = 20 * NS_PER_S, .join_ns = 20 * NS_PER_S};
	*err = (struct error){""};
	kernel.step_count = 0;
	return pipeline_run_limited(&f->config, &f->dataset, NULL, &limits, m, err);
}

/* Each is written, in the order of their steps: with one buffer, the next one waits for the writer. */
static void in_order(size_t least)
{
	assert_in_range(kernel.step_count, least, RUN_STEPS / RUN_EVERY);
	for (size_t i = 0; i < kernel.step_count; i++)
		assert_int_equal(kernel.steps[i], RUN_EVERY * (i + 1));
}

static const struct stage_measurement *run_stage(const struct measurement *m, enum stage_id id)
{
	const struct stage_measurement *const s = measurement_stage(m, id);
	assert_non_null(s);
	return s;
}

static void stalls_are_measured(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		const bool async = kind & 1;
		struct place p;
		struct pipeline_fixture f;
		struct measurement m;
		struct error err;
		place_open(&p);
		run_open(&f, &p);
		fixture_set(&f, KEY_CHECKPOINT_MODE, async ? "async" : "sync");
		fixture_set(&f, KEY_CHECKPOINT_VERIFY, "on");
		fixture_set(&f, KEY_STEP_DEVICES, kind & 2 ? "2" : "1");
		/* A round is two batches: of 36, 18 steps of each device. */
		const size_t checkpoints = (size_t)(RUN_STEPS / RUN_EVERY / (kind & 2 ? 2 : 1));
		if (run_once(&f, &m, &err))
			fail_msg("%s", err.text);
		/* The writer may be cut short by the end. */
		in_order(async ? checkpoints - 2 : checkpoints - 1);
		assert_int_equal(m.checkpoint_count, 1);
		const struct checkpoint_measurement *const c = &m.checkpoint[0];
		assert_int_equal(c->every, RUN_EVERY);
		assert_int_equal(c->async, async);
		assert_int_equal(c->bytes, 65536);
		assert_in_range(c->count, 1, checkpoints);
		assert_true(c->stall_seconds > 0 && c->stall_max_ns > 0);
		assert_true(c->write_seconds > 0 && c->verify_seconds > 0);
		assert_true(async == (c->copy_seconds > 0));
		const struct stage_measurement *const s = run_stage(&m, STAGE_CHECKPOINT);
		assert_true(s->seconds[THREAD_WORKING] > 0);
		assert_true(isnan(s->cpu_seconds) || async);
		assert_true(run_stage(&m, STAGE_STEP)->seconds[THREAD_BLOCKED] > 0);
		assert_measured(m.accounted > 0.9);
		measurement_release(&m);
		run_close(&f, &p);
	}
}

/* The repetition in flight is lost, in one line, and nothing stays. */
static void a_failed_write_ends_the_repetition(void **state)
{
	(void)state;
	for (int async = 0; async < 2; async++) {
		struct place p;
		struct pipeline_fixture f;
		struct measurement m;
		struct error err;
		place_open(&p);
		run_open(&f, &p);
		fixture_set(&f, KEY_CHECKPOINT_MODE, async ? "async" : "sync");
		kernel.write_fails = ENOSPC;
		kernel.failing_write = 3; /* the first is the trial's */
		assert_int_equal(run_once(&f, &m, &err), -ENOSPC);
		assert_non_null(strstr(err.text, "does not fit on the disk"));
		assert_int_equal(m.status, MEASUREMENT_FAILED);
		in_order(2);
		assert_int_equal(access(p.folder, F_OK), -1);
		measurement_release(&m);
		run_close(&f, &p);
	}
}

/* A device that works by itself is let finish what it has: the checkpoint is of the state after one step. */
static void a_device_is_drained(void **state)
{
	(void)state;
	for (int async = 0; async < 2; async++) {
		struct place p;
		struct pipeline_fixture f;
		struct measurement m;
		struct error err;
		place_open(&p);
		run_open(&f, &p);
		backend_replace_device(&fake_device_ops);
		fixture_set(&f, KEY_STEP_BACKEND, "cuda");
		fake_reset();
		fake_settings.ahead = 2;
		fixture_set(&f, KEY_STEP_AHEAD, "2");
		fixture_set(&f, KEY_CHECKPOINT_MODE, async ? "async" : "sync");
		if (run_once(&f, &m, &err))
			fail_msg("%s", err.text);
		in_order(async ? 10 : 11);
		assert_string_equal(fake_report.violation, "");
		for (size_t i = 0; i < kernel.step_count && !async; i++)
			assert_int_equal(kernel.launched[i], RUN_EVERY * (i + 1));
		assert_int_equal(m.epochs, 3);
		measurement_release(&m);
		backend_replace_device(NULL);
		run_close(&f, &p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checkpoint_is_whole_and_takes_its_name_last),
		cmocka_unit_test(contents_are_of_seed_and_step),
		cmocka_unit_test(a_failure_leaves_the_one_before),
		cmocka_unit_test(a_folder_that_is_not_synced_is_told),
		cmocka_unit_test(short_writes_are_completed),
		cmocka_unit_test(a_stop_throws_the_one_under_way_away),
		cmocka_unit_test(what_cannot_be_is_said_before),
		cmocka_unit_test(stalls_are_measured),
		cmocka_unit_test(a_failed_write_ends_the_repetition),
		cmocka_unit_test(a_device_is_drained),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
