/* The picture of a run: whole pictures only, whoever writes and reads at once; a writer that died in the middle; what lies
 * in the folder and is not ours. */
#include "tests/measuring.h"

#include "harness/base/clock.h"
#include "harness/measure/live.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
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

static char base[PATH_MAX], folder[PATH_MAX + 32];
static struct live_view *view, *seen;

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(base, sizeof base, "/tmp/test_live.XXXXXX");
	if (!mkdtemp(base) || setenv("XDG_RUNTIME_DIR", base, 1))
		return -1;
	/* As its user and its namespace are called. */
	struct live_board *board;
	if (live_board_create(&board, NULL))
		return -1;
	live_board_close(board);
	glob_t found;
	(void)snprintf(folder, sizeof folder, "%s/mlbench-%u*", base, (unsigned)geteuid());
	if (glob(folder, 0, NULL, &found) || found.gl_pathc != 1)
		return -1;
	(void)snprintf(folder, sizeof folder, "%s", found.gl_pathv[0]);
	globfree(&found);
	view = calloc(1, sizeof *view);
	seen = calloc(1, sizeof *seen);
	return view && seen ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	char command[PATH_MAX + 16];
	free(view);
	free(seen);
	(void)snprintf(command, sizeof command, "rm -rf '%s'", base);
	return system(command);
}

static void path_of(int32_t pid, char *out, size_t room)
{
	(void)snprintf(out, room, "%s/%d.live", folder, pid);
}

/* Others may be running meanwhile. */
static bool is_listed(int32_t pid)
{
	int32_t pids[256];
	const size_t count = live_board_list(pids, 256);
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static void test_round(void **state)
{
	(void)state;
	struct live_board *own;
	struct live_board *other;
	struct error err = {0};
	char path[PATH_MAX + 64];
	struct stat st;
	assert_int_equal(live_board_create(&own, &err), 0);
	assert_null(live_board_hidden(own));
	path_of(getpid(), path, sizeof path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(live_board_attach(&other, getpid(), &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(live_board_read(other, seen), -EAGAIN);
	view->pid = getpid();
	view->samples = 42;
	view->threads[LIVE_THREADS_MAX - 1].items = 77;
	(void)snprintf(view->label, sizeof view->label, "decode.workers=2");
	live_board_publish(own, view);
	assert_int_equal(live_board_read(other, seen), 0);
	assert_memory_equal(view, seen, sizeof *view);
	assert_true(is_listed(getpid()));
	live_board_close(own);
	assert_int_equal(stat(path, &st), -1);
	assert_false(is_listed(getpid()));
	/* What is attached stays readable. */
	assert_int_equal(live_board_read(other, seen), 0);
	live_board_close(other);
	live_board_close(NULL);
}

/* --- writer and readers at once ----------------------------------------------------------------- */

enum { READERS = 3, PICTURES = 3000 };

struct hall {
	struct live_board *board;
	atomic_bool over;
	atomic_uint seen, torn;
};

/* Every picture is filled with one number. */
static void *read_on(void *context)
{
	struct hall *hall = context;
	struct live_view *mine = calloc(1, sizeof *mine);
	while (mine && !atomic_load(&hall->over)) {
		if (live_board_read(hall->board, mine))
			continue;
		bool whole = mine->batches == mine->samples && mine->epochs == mine->samples;
		for (size_t i = 0; i < LIVE_THREADS_MAX; i++)
			whole = whole && mine->threads[i].items == mine->samples;
		atomic_fetch_add(whole ? &hall->seen : &hall->torn, 1);
	}
	free(mine);
	return NULL;
}

static void test_at_once(void **state)
{
	(void)state;
	struct hall hall = {0};
	pthread_t readers[READERS];
	assert_int_equal(live_board_create(&hall.board, NULL), 0);
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_on, &hall), 0);
	for (uint64_t n = 1; n <= PICTURES || atomic_load(&hall.seen) < PICTURES / 100; n++) {
		view->samples = view->batches = view->epochs = n;
		for (size_t i = 0; i < LIVE_THREADS_MAX; i++)
			view->threads[i].items = n;
		live_board_publish(hall.board, view);
		if (n > PICTURES)
			(void)usleep(100);
	}
	atomic_store(&hall.over, true);
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(readers[i], NULL), 0);
	assert_int_equal(atomic_load(&hall.torn), 0);
	assert_true(atomic_load(&hall.seen) > 0);
	live_board_close(hall.board);
}

/* --- a writer that died, and other files --------------------------------------------------------- */

enum { SEQUENCE_AT = 64 }; /* in the file */

static void patch(const char *path, off_t at, const void *bytes, size_t size)
{
	const int fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, at), size);
	assert_int_equal(close(fd), 0);
}

static void test_torn(void **state)
{
	(void)state;
	struct live_board *own;
	char path[PATH_MAX + 64];
	const unsigned odd = 7;
	assert_int_equal(live_board_create(&own, NULL), 0);
	live_board_publish(own, view);
	path_of(getpid(), path, sizeof path);
	patch(path, SEQUENCE_AT, &odd, sizeof odd);
	const uint64_t begun_ns = clock_now_ns();
	assert_int_equal(live_board_read(own, seen), -ETIMEDOUT);
	assert_measured(clock_now_ns() - begun_ns < 5 * NS_PER_S);
	live_board_close(own);
}

static void test_other_version(void **state)
{
	(void)state;
	struct live_board *own;
	struct live_board *other;
	struct error err;
	char path[PATH_MAX + 64];
	const uint32_t version = LIVE_VERSION + 1;
	assert_int_equal(live_board_create(&own, NULL), 0);
	path_of(getpid(), path, sizeof path);
	patch(path, 8, &version, sizeof version);
	assert_int_equal(live_board_attach(&other, getpid(), &err), -EPROTO);
	assert_non_null(strstr(err.text, MLBENCH_VERSION));
	/* Of another size, too: named by its head. */
	assert_int_equal(truncate(path, 200), 0);
	assert_int_equal(live_board_attach(&other, getpid(), &err), -EPROTO);
	assert_non_null(strstr(err.text, "another version"));
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(live_board_attach(&other, getpid(), &err), -EPROTO);
	live_board_close(own);
}

/* Cut short under a reader, as by whoever cleans up: an error, and no signal. */
static void test_cut_short(void **state)
{
	(void)state;
	struct live_board *own;
	struct live_board *other;
	struct error err;
	char path[PATH_MAX + 64];
	assert_int_equal(live_board_create(&own, NULL), 0);
	live_board_publish(own, view);
	path_of(getpid(), path, sizeof path);
	assert_int_equal(live_board_attach(&other, getpid(), &err), 0);
	assert_int_equal(live_board_read(other, seen), 0);
	assert_int_equal(truncate(path, SEQUENCE_AT + 64), 0);
	assert_int_equal(live_board_read(other, seen), -EPROTO);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(live_board_read(other, seen), -EPROTO);
	live_board_close(other);
	live_board_close(own);
}

static void test_nobody(void **state)
{
	(void)state;
	struct live_board *other;
	struct error err;
	assert_int_equal(live_board_attach(&other, 0, &err), -ESRCH);
	assert_int_equal(live_board_attach(&other, INT32_MAX, &err), -ESRCH);
	assert_int_equal(live_board_attach(&other, getppid(), &err), -ESRCH);
	assert_non_null(strstr(err.text, "shows no picture"));
}

/* The number of a process that has ended. */
static int32_t dead_pid(void)
{
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return child;
}

static void make_empty(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void test_stale(void **state)
{
	(void)state;
	struct live_board *own;
	char dead[PATH_MAX + 64];
	char strange[PATH_MAX + 64];
	struct stat st;
	const int32_t gone = dead_pid();
	assert_int_equal(live_board_create(&own, NULL), 0);
	live_board_close(own); /* the folder is there */
	path_of(gone, dead, sizeof dead);
	(void)snprintf(strange, sizeof strange, "%s/notes.live", folder);
	make_empty(dead);
	make_empty(strange);
	assert_false(is_listed(gone));
	assert_int_equal(live_board_create(&own, NULL), 0);
	assert_int_equal(stat(dead, &st), -1);
	assert_int_equal(stat(strange, &st), 0);
	live_board_close(own);
}

/* Of runs that start together, none takes the picture of another, not yet whole, for a stale one. */
static void test_begun_together(void **state)
{
	(void)state;
	enum { RUNS = 3, ROUNDS = 2000 };
	pid_t runs[RUNS];
	for (int run = 0; run < RUNS; run++) {
		runs[run] = fork();
		assert_true(runs[run] >= 0);
		for (int round = 0; runs[run] == 0 && round < ROUNDS; round++) {
			struct live_board *own;
			char path[PATH_MAX + 64];
			struct stat st;
			path_of(getpid(), path, sizeof path);
			if (live_board_create(&own, NULL) || stat(path, &st))
				_exit(1);
			live_board_close(own);
		}
		if (runs[run] == 0)
			_exit(0);
	}
	for (int run = 0; run < RUNS; run++) {
		int status;
		assert_int_equal(waitpid(runs[run], &status, 0), runs[run]);
		assert_int_equal(status, 0);
	}
}

/* A picture of an earlier process of the same number. */
static void test_reused_number(void **state)
{
	(void)state;
	struct live_board *own;
	struct live_board *other;
	struct error err;
	char path[PATH_MAX + 64];
	const uint64_t start = 1;
	assert_int_equal(live_board_create(&own, NULL), 0);
	live_board_publish(own, view);
	path_of(getpid(), path, sizeof path);
	patch(path, 16, &start, sizeof start);
	assert_int_equal(live_board_attach(&other, getpid(), &err), -ESRCH);
	assert_non_null(strstr(err.text, "earlier"));
	assert_false(is_listed(getpid()));
	live_board_close(own);
}

/* Counts and texts of a file that somebody wrote over. */
static void test_wild_picture(void **state)
{
	(void)state;
	struct live_board *own;
	char path[PATH_MAX + 64];
	assert_int_equal(live_board_create(&own, NULL), 0);
	memset(view, 0x41, sizeof *view);
	view->timed = view->limit = view->step_emulated = view->reads_memory = view->any_order = 1;
	live_board_publish(own, view);
	path_of(getpid(), path, sizeof path);
	assert_int_equal(live_board_read(own, seen), 0);
	assert_true(seen->stage_count <= STAGES_MAX && seen->queue_count <= QUEUES_MAX);
	assert_true(seen->thread_count <= LIVE_THREADS_MAX);
	assert_true(seen->result_count <= LIVE_RESULTS_MAX);
	assert_true(seen->threads[3].stage < STAGES_MAX && seen->threads[3].state < THREAD_STATES);
	assert_int_equal(strlen(seen->name), LIVE_LABEL_BYTES - 1);
	assert_int_equal(strlen(seen->folder), LIVE_PATH_BYTES - 1);
	assert_string_equal(live_phase_name(seen->phase), "unknown");
	live_board_close(own);
}

/* --- folders ------------------------------------------------------------------------------------ */

/* In a process of its own, so that only this base can be used. */
static void expect_elsewhere(void)
{
	struct live_board *own;
	char path[PATH_MAX + 64];
	struct stat st;
	assert_int_equal(live_board_create(&own, NULL), 0);
	live_board_publish(own, view);
	assert_int_equal(live_board_read(own, seen), 0);
	path_of(getpid(), path, sizeof path);
	assert_int_equal(lstat(path, &st), -1);
	live_board_close(own);
}

static void test_hostile_folder(void **state)
{
	(void)state;
	char elsewhere[PATH_MAX + 64];
	/* Open to others. */
	(void)mkdir(folder, 0755);
	assert_int_equal(chmod(folder, 0755), 0);
	expect_elsewhere();
	assert_int_equal(chmod(folder, 0700), 0);
	/* A link to a folder that would do. */
	char command[3 * PATH_MAX];
	(void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
	(void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", base);
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	assert_int_equal(symlink(elsewhere, folder), 0);
	expect_elsewhere();
	assert_int_equal(unlink(folder), 0);
	/* A file. */
	make_empty(folder);
	expect_elsewhere();
	assert_int_equal(unlink(folder), 0);
	/* Another user's, where that can be arranged. */
	if (geteuid() == 0) {
		assert_int_equal(mkdir(folder, 0700), 0);
		assert_int_equal(chown(folder, 12345, 12345), 0);
		expect_elsewhere();
		assert_int_equal(rmdir(folder), 0);
	}
}

/* A link where the picture is to be: it goes, and what it points to stays as it is. */
static void test_hostile_file(void **state)
{
	(void)state;
	struct live_board *own;
	char path[PATH_MAX + 64];
	char victim[PATH_MAX + 64];
	struct stat st;
	assert_int_equal(live_board_create(&own, NULL), 0);
	live_board_close(own);
	(void)snprintf(victim, sizeof victim, "%s/victim", base);
	make_empty(victim);
	path_of(getpid(), path, sizeof path);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(live_board_create(&own, NULL), 0);
	live_board_publish(own, view);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	live_board_close(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_begun_together),
		cmocka_unit_test(test_reused_number),
		cmocka_unit_test(test_wild_picture),
		cmocka_unit_test(test_hostile_folder),
		cmocka_unit_test(test_hostile_file),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
