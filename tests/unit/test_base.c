/* The base: random numbers, files, buffers and errors. */
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PERMUTATION = 1000, DRAWS = 60000, BUCKETS = 6, READ_LIMIT = 1 << 20 };

static void permutation_holds_each_once(void **state)
{
	(void)state;
	for (uint32_t count = 0; count <= PERMUTATION; count = count * 3 + 1) {
		uint32_t order[PERMUTATION];
		unsigned char seen[PERMUTATION] = {0};
		struct rng rng;
		rng_init(&rng, 7, count);
		rng_permutation(&rng, order, count);
		for (uint32_t i = 0; i < count; i++) {
			assert_true(order[i] < count);
			assert_int_equal(seen[order[i]]++, 0);
		}
	}
}

/* Each of the six orders of three comes up in a sixth of the draws. */
static void permutations_are_equally_likely(void **state)
{
	(void)state;
	unsigned seen[BUCKETS] = {0};
	struct rng rng;
	rng_init(&rng, 3, 0);
	for (int i = 0; i < DRAWS; i++) {
		uint32_t order[3];
		rng_permutation(&rng, order, 3);
		seen[order[0] * 2 + (order[1] > order[2])]++;
	}
	for (int i = 0; i < BUCKETS; i++)
		assert_in_range(seen[i], DRAWS / BUCKETS * 95 / 100, DRAWS / BUCKETS * 105 / 100);
}

static void same_seed_same_numbers(void **state)
{
	(void)state;
	struct rng a;
	struct rng b;
	rng_init(&a, 1, 2);
	rng_init(&b, 1, 2);
	for (int i = 0; i < 100; i++)
		assert_true(rng_next(&a) == rng_next(&b));
	rng_init(&b, 1, 3);
	int equal = 0;
	for (int i = 0; i < 100; i++)
		equal += rng_next(&a) == rng_next(&b);
	assert_int_equal(equal, 0);
	assert_true(rng_mix(1, 2) == rng_mix(1, 2));
	assert_true(rng_mix(1, 2) != rng_mix(2, 1));
}

static void below_is_even(void **state)
{
	(void)state;
	unsigned seen[BUCKETS] = {0};
	struct rng rng;
	rng_init(&rng, 11, 0);
	for (int i = 0; i < DRAWS; i++) {
		const uint64_t x = rng_below(&rng, BUCKETS);
		assert_true(x < BUCKETS);
		seen[x]++;
	}
	for (int i = 0; i < BUCKETS; i++)
		assert_in_range(seen[i], DRAWS / BUCKETS * 95 / 100, DRAWS / BUCKETS * 105 / 100);
	/* A bound just above half of 2^64, where taking the rest would favour the lower half. */
	const uint64_t bound = (1ULL << 63) + (1ULL << 62);
	unsigned low = 0;
	for (int i = 0; i < DRAWS; i++)
		low += rng_below(&rng, bound) < bound / 2;
	assert_in_range(low, DRAWS * 48 / 100, DRAWS * 52 / 100);
	assert_true(rng_below(&rng, 1) == 0);
}

static void distributions_have_their_moments(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 5, 0);
	double normal = 0;
	double square = 0;
	double exponential = 0;
	double uniform = 0;
	for (int i = 0; i < DRAWS; i++) {
		const double x = rng_normal(&rng);
		const double u = rng_uniform(&rng);
		assert_true(u >= 0 && u < 1);
		normal += x / DRAWS;
		square += x * x / DRAWS;
		uniform += u / DRAWS;
		exponential += rng_exponential(&rng) / DRAWS;
	}
	/* Five standard errors of each. */
	assert_true(fabs(normal) < 0.021);
	assert_true(fabs(square - 1) < 0.03);
	assert_true(fabs(uniform - 0.5) < 0.006);
	assert_true(fabs(exponential - 1) < 0.021);
}

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof folder, "/tmp/mlbench-test-base-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return files_remove_tree(folder, NULL);
}

static void assert_content(const char *path, const char *text)
{
	char *data;
	size_t size;
	assert_int_equal(files_read(path, READ_LIMIT, &data, &size, NULL), 0);
	assert_string_equal(data, text);
	assert_int_equal(size, strlen(text));
	free(data);
}

static void atomic_write_leaves_only_the_file(void **state)
{
	(void)state;
	char *below = files_join(folder, "atomic");
	assert_int_equal(files_make_folder(below, NULL), 0);
	char *path = files_join(below, "a.txt");
	assert_int_equal(files_write_atomic(path, "one", 3, NULL), 0);
	assert_int_equal(files_write_atomic(path, "second", 6, NULL), 0);
	assert_content(path, "second");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(below), 0); /* nothing else was left in it */
	struct error err = {0};
	assert_int_equal(files_write_atomic(path, "x", 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	free(path);
	free(below);
}

/* A failed write leaves neither the temporary file nor a changed target. */
static void failed_atomic_write_changes_nothing(void **state)
{
	(void)state;
	char *below = files_join(folder, "taken");
	char *inside = files_join(below, "inside");
	assert_int_equal(files_make_folder(inside, NULL), 0);
	assert_int_not_equal(files_write_atomic(below, "x", 1, NULL), 0);
	assert_int_equal(access(inside, F_OK), 0);
	char temporary[128];
	(void)snprintf(temporary, sizeof temporary, "%s.tmp-%d", below, (int)getpid());
	assert_int_not_equal(access(temporary, F_OK), 0);
	free(inside);
	free(below);
}

static void append_adds_to_the_end(void **state)
{
	(void)state;
	char *path = files_join(folder, "log.jsonl");
	assert_int_equal(files_append(path, "a\n", 2, NULL), 0);
	assert_int_equal(files_append(path, "b\n", 2, NULL), 0);
	assert_content(path, "a\nb\n");
	free(path);
}

static void read_keeps_to_its_limit(void **state)
{
	(void)state;
	char *path = files_join(folder, "large");
	char *data;
	size_t size;
	struct error err = {0};
	const size_t length = 200000; /* several steps of the reader */
	char *text = malloc(length + 1);
	assert_non_null(text);
	memset(text, 'x', length);
	text[length] = '\0';
	assert_int_equal(files_write_atomic(path, text, length, NULL), 0);
	assert_content(path, text);
	assert_int_equal(files_read(path, length - 1, &data, &size, &err), -EOVERFLOW);
	assert_non_null(strstr(err.text, "larger than 199999 bytes"));
	assert_int_equal(files_read(folder, length, &data, &size, &err), -EISDIR);
	assert_int_equal(files_read("/nonexistent/a", length, &data, &size, &err), -ENOENT);
	free(text);
	free(path);
}

/* Whoever may write to the folder could plant a link in the place of a temporary file, whose name can be guessed. */
static void temporary_files_follow_no_link(void **state)
{
	(void)state;
	char *path = files_join(folder, "planted");
	char *victim = files_join(folder, "victim");
	char beside[FILES_PATH_BYTES];
	(void)snprintf(beside, sizeof beside, "%s" FILES_BESIDE "%d", path, (int)getpid());
	assert_int_equal(files_append(victim, "precious", 8, NULL), 0);
	assert_int_equal(symlink(victim, beside), 0);
	assert_int_equal(files_write_atomic(path, "new", 3, NULL), 0);
	assert_content(path, "new");
	assert_content(victim, "precious");
	/* What a kill left under that name is another's, too. */
	assert_int_equal(unlink(beside), 0);
	assert_int_equal(files_append(beside, "half", 4, NULL), 0);
	assert_int_equal(files_write_atomic(path, "newer", 5, NULL), 0);
	assert_content(path, "newer");
	assert_content(beside, "half");
	free(victim);
	free(path);
}

static void put_file(const char *where, const char *name)
{
	char *path = files_join(where, name);
	assert_int_equal(files_append(path, "x", 1, NULL), 0);
	free(path);
}

static void what_a_kill_left_is_removed(void **state)
{
	(void)state;
	static const char *const kept[] = {"a.tmp", "a.tmp-", "a.tmp-x", "a.tmp-1", "a.tmp-1-3",
		"a.tmp-999999999x", "a.tmp-999999999-", "tmp-999999999"};
	static const char *const left[] = {
		"a.tmp-999999999", "a.tmp-999999999-12", "b.tmp-1.tmp-999999999"};
	char *tree = files_join(folder, "left");
	struct stat st;
	assert_int_equal(files_make_folder(tree, NULL), 0);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		put_file(tree, kept[i]);
	for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
		put_file(tree, left[i]);
	files_remove_left(tree);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		char *path = files_join(tree, kept[i]);
		assert_int_equal(stat(path, &st), 0);
		free(path);
	}
	for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
		char *path = files_join(tree, left[i]);
		assert_int_equal(stat(path, &st), -1);
		free(path);
	}
	free(tree);
}

static void *write_to_pipe(void *context)
{
	const int fd = open(context, O_WRONLY | O_CLOEXEC); /* waits for the reader */
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "one ", 4), 4);
	assert_int_equal(
		usleep(50000), 0); /* the reader finds nothing, but somebody who may write */
	assert_int_equal(write(fd, "two", 3), 3);
	assert_int_equal(close(fd), 0);
	return NULL;
}

static void pipes_are_read_and_never_waited_for_in_vain(void **state)
{
	(void)state;
	char *path = files_join(folder, "pipe");
	char *data;
	size_t size;
	struct error err = {0};
	pthread_t writer;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(files_read(path, 100, &data, &size, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is a pipe that nobody writes to"));
	assert_int_equal(pthread_create(&writer, NULL, write_to_pipe, path), 0);
	assert_int_equal(files_read(path, 100, &data, &size, &err), 0);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_string_equal(data, "one two");
	free(data);
	free(path);
}

static void dates_of_any_number(void **state)
{
	(void)state;
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {{0, "1970-01-01T00:00:00Z"}, {1763674205.9, "2025-11-20T21:30:05Z"},
		{253402300799, "9999-12-31T23:59:59Z"}, {253402300800, "unknown"},
		{1e308, "unknown"}, {-1, "unknown"}, {(double)NAN, "unknown"},
		{(double)INFINITY, "unknown"}, {-(double)INFINITY, "unknown"}};
	char out[CLOCK_UTC_BYTES];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		clock_format_utc(cases[i].seconds, out);
		assert_string_equal(out, cases[i].text);
	}
	clock_format_utc_compact(1763674205.9, out);
	assert_string_equal(out, "20251120T213005Z");
	clock_format_utc_compact(1e308, out);
	assert_string_equal(out, "unknown");
}

static void tree_goes_and_its_link_targets_stay(void **state)
{
	(void)state;
	char *tree = files_join(folder, "tree");
	char *deep = files_join(tree, "a/b/c");
	char *kept = files_join(folder, "kept");
	char *link = files_join(tree, "link");
	char *inside = files_join(kept, "file");
	assert_int_equal(files_make_folder(deep, NULL), 0);
	assert_int_equal(files_make_folder(deep, NULL), 0);
	assert_int_equal(files_make_folder(kept, NULL), 0);
	assert_int_equal(files_append(inside, "x", 1, NULL), 0);
	assert_int_equal(symlink(kept, link), 0);
	assert_int_equal(files_remove_tree(tree, NULL), 0);
	assert_int_not_equal(access(tree, F_OK), 0);
	assert_content(inside, "x");
	assert_int_equal(files_remove_tree(tree, NULL), 0);
	struct error err = {0};
	assert_int_equal(files_make_folder(inside, &err), -ENOTDIR);
	free(inside);
	free(link);
	free(kept);
	free(deep);
	free(tree);
}

/* Processes that want the same name at the same time get one each. */
static void new_folders_are_nobody_elses(void **state)
{
	(void)state;
	enum { PROCESSES = 8, EACH = 16 };
	char *parent = files_join(folder, "new");
	char *path;
	for (int p = 0; p < PROCESSES; p++) {
		const pid_t child = fork();
		assert_true(child >= 0);
		for (int i = 0; i < EACH && child == 0; i++) {
			if (files_make_new_folder(parent, "name", &path, NULL) != 0)
				_exit(1);
			char *mine = files_join(path, "mine");
			const int file = open(mine, O_CREAT | O_EXCL | O_WRONLY, 0600);
			if (file < 0)
				_exit(2);
			(void)close(file);
			free(mine);
			free(path);
		}
		if (child == 0)
			_exit(0);
	}
	for (int p = 0; p < PROCESSES; p++) {
		int status = -1;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(files_make_new_folder(parent, "name", &path, NULL), 0);
	assert_string_equal(strrchr(path, '/'), "/name-128");
	free(path);
	struct error err = {0};
	char *file = files_join(parent, "name/mine");
	assert_int_equal(files_make_new_folder(file, "name", &path, &err), -ENOTDIR);
	assert_null(path);
	assert_int_equal(files_remove_tree(parent, NULL), 0);
	free(file);
	free(parent);
}

static void small_files(void **state)
{
	(void)state;
	char *path = files_join(folder, "number");
	char line[8];
	uint64_t value = 0;
	assert_int_equal(files_append(path, "4096 kB\nsecond\n", 15, NULL), 0);
	assert_int_equal(files_first_line(path, line, sizeof line), 0);
	assert_string_equal(line, "4096 kB");
	assert_int_equal(files_number(path, &value), 0);
	assert_int_equal(value, 4096);
	assert_int_equal(files_first_line("/nonexistent", line, sizeof line), -ENOENT);
	assert_string_equal(line, "");
	assert_int_equal(files_number("/proc/self/comm", &value), -EINVAL);
	free(path);
}

static void join_puts_one_slash(void **state)
{
	(void)state;
	static const char *const cases[][3] = {
		{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *path = files_join(cases[i][0], cases[i][1]);
		assert_string_equal(path, cases[i][2]);
		free(path);
	}
}

static void sentences_begin_with_a_capital_and_keys_do_not(void **state)
{
	(void)state;
	static const char *const words[][2] = {{"read more", "Read more"},
		{"decode.workers=2 keeps 96 %", "decode.workers=2 keeps 96 %"},
		{"store is full. x", "Store is full. x"}, {"", NULL}};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		struct buffer buffer = {0};
		buffer_sentence(&buffer, words[i][0]);
		if (words[i][1])
			assert_string_equal(buffer.data, words[i][1]);
		else
			assert_int_equal(buffer.size, 0);
		buffer_release(&buffer);
	}
}

static void buffer_grows(void **state)
{
	(void)state;
	struct buffer buffer = {0};
	buffer_text(&buffer, "");
	assert_string_equal(buffer.data, "");
	for (int i = 0; i < 1000; i++)
		buffer_format(&buffer, "%d,", i);
	buffer_repeat(&buffer, "ab", 3);
	buffer_repeat(&buffer, "ab", 0);
	assert_false(buffer.failed);
	assert_int_equal(buffer.size, 10 * 2 + 90 * 3 + 900 * 4 + 6);
	assert_int_equal(strlen(buffer.data), buffer.size);
	assert_string_equal(buffer.data + buffer.size - 10, "999,ababab");
	buffer_release(&buffer);
	assert_null(buffer.data);
	buffer_release(&buffer);
}

static void failed_buffer_stays_failed(void **state)
{
	(void)state;
	struct buffer buffer = {.failed = true};
	buffer_text(&buffer, "lost");
	buffer_format(&buffer, "%d", 1);
	assert_true(buffer.failed);
	assert_null(buffer.data);
	buffer_release(&buffer);
	assert_false(buffer.failed);
}

static void errors(void **state)
{
	(void)state;
	struct error err;
	assert_int_equal(error_set(&err, -EINVAL, "bad '%s'", "x"), -EINVAL);
	assert_string_equal(err.text, "bad 'x'");
	assert_int_equal(error_prefix(&err, -EINVAL, "%s:%d", "a.ini", 3), -EINVAL);
	assert_string_equal(err.text, "a.ini:3: bad 'x'");
	assert_int_equal(error_set_errno(&err, ENOENT, "cannot open '%s'", "y"), -ENOENT);
	assert_string_equal(err.text, "cannot open 'y': No such file or directory");
	struct rlimit files;
	char limit[64];
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	(void)snprintf(
		limit, sizeof limit, "(the limit is %ju: ulimit -n)", (uintmax_t)files.rlim_cur);
	assert_int_equal(error_set_errno(&err, EMFILE, "cannot open '%s'", "y"), -EMFILE);
	assert_non_null(strstr(err.text, limit));
	assert_int_equal(error_set(NULL, -EIO, "nobody reads this"), -EIO);
	assert_int_equal(error_prefix(NULL, -EIO, "nor this"), -EIO);
	char text[ERROR_TEXT_BYTES * 2];
	memset(text, 'z', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(error_set(&err, -EIO, "%s", text), -EIO);
	assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
	assert_int_equal(error_prefix(&err, -EIO, "%s", text), -EIO);
	assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permutation_holds_each_once),
		cmocka_unit_test(permutations_are_equally_likely),
		cmocka_unit_test(same_seed_same_numbers),
		cmocka_unit_test(below_is_even),
		cmocka_unit_test(distributions_have_their_moments),
		cmocka_unit_test(atomic_write_leaves_only_the_file),
		cmocka_unit_test(failed_atomic_write_changes_nothing),
		cmocka_unit_test(append_adds_to_the_end),
		cmocka_unit_test(read_keeps_to_its_limit),
		cmocka_unit_test(temporary_files_follow_no_link),
		cmocka_unit_test(what_a_kill_left_is_removed),
		cmocka_unit_test(pipes_are_read_and_never_waited_for_in_vain),
		cmocka_unit_test(dates_of_any_number),
		cmocka_unit_test(tree_goes_and_its_link_targets_stay),
		cmocka_unit_test(new_folders_are_nobody_elses),
		cmocka_unit_test(small_files),
		cmocka_unit_test(join_puts_one_slash),
		cmocka_unit_test(buffer_grows),
		cmocka_unit_test(sentences_begin_with_a_capital_and_keys_do_not),
		cmocka_unit_test(failed_buffer_stays_failed),
		cmocka_unit_test(errors),
	};
	return cmocka_run_group_tests_name("base", tests, make_folder, remove_folder);
}
