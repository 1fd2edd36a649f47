/* INI files: what is understood, and the message for each mistake. */
#include "harness/base/files.h"
#include "harness/config/config.h"
#include "harness/config/tables.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct config config;
static struct error err;
static char folder[64];

static int open_config(void **state)
{
	(void)state;
	config_init(&config);
	err.text[0] = '\0';
	return 0;
}

static int close_config(void **state)
{
	(void)state;
	config_release(&config);
	return 0;
}

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof folder, "/tmp/mlbench-test-config-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return files_remove_tree(folder, NULL);
}

static void read_right(const char *text)
{
	if (config_read_text(&config, "a.ini", text, strlen(text), &err))
		fail_msg("refused: %s", err.text);
}

static void read_wrong(const char *text, const char *message)
{
	close_config(NULL);
	open_config(NULL);
	assert_int_equal(config_read_text(&config, "a.ini", text, strlen(text), &err), -EINVAL);
	assert_string_equal(err.text, message);
}

static void understands_a_file(void **state)
{
	(void)state;
	read_right("\xef\xbb\xbf; a lesson\n"
		   "# another\n"
		   "\n"
		   "  [read] ; where from\r\n"
		   "engine=pread\r\n"
		   "   depth = 16   # in flight\n"
		   "\tcache\t=\tcold ; evict\n"
		   "[dataset]\n"
		   "path = data/a;b#c  d\n"
		   "samples = 1.5k\n"
		   "[sweep]\n"
		   "decode.workers = 1-4*2\n"
		   "exclude = decode.workers=1 ; decode.workers=2 # both\n"
		   "[decode]\n"
		   "queue = 8");
	assert_int_equal(config_integer(&config, KEY_READ_ENGINE), READ_ENGINE_PREAD);
	assert_int_equal(config_integer(&config, KEY_READ_DEPTH), 16);
	assert_int_equal(config_integer(&config, KEY_READ_CACHE), READ_CACHE_COLD);
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "data/a;b#c  d");
	assert_int_equal(config_integer(&config, KEY_DATASET_SAMPLES), 1500);
	assert_int_equal(config_integer(&config, KEY_DECODE_QUEUE), 8);
	assert_int_equal(config.axis_count, 1);
	assert_int_equal(config.axes[0].count, 3);
	assert_string_equal(
		config_text(&config, KEY_SWEEP_EXCLUDE), "decode.workers=1; decode.workers=2");
	assert_null(config.path);
}

static void escapes(void **state)
{
	(void)state;
	read_right("[dataset]\npath = $#1 $; costs 5$$ # comment\n");
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "#1 ; costs 5$");
}

static void empty_files(void **state)
{
	(void)state;
	read_right("");
	read_right("\n\n");
	read_right("# only a comment");
	read_right("[read]\n[sweep]\n");
	assert_int_equal(config.axis_count, 0);
}

static void repeated_sections_and_excludes_add(void **state)
{
	(void)state;
	read_right("[read]\ndepth = 4\n[decode]\nworkers = 2\n[read]\nengine = pread\n"
		   "[sweep]\nexclude = read.depth=1\nexclude = read.depth=2\n");
	assert_int_equal(config_integer(&config, KEY_READ_DEPTH), 4);
	assert_int_equal(config_integer(&config, KEY_READ_ENGINE), READ_ENGINE_PREAD);
	assert_string_equal(config_text(&config, KEY_SWEEP_EXCLUDE), "read.depth=1; read.depth=2");
}

static void mistakes_in_lines(void **state)
{
	(void)state;
	read_wrong("[read]\ndepth 4\n", "a.ini:2: expected 'key = value', not 'depth 4'");
	read_wrong("[read]\n= 4\n", "a.ini:2: there is no key in front of '='");
	read_wrong("[read]\ndepth: 4\n", "a.ini:2: expected 'key = value', not 'depth: 4'");
	read_wrong("[read]\ndepth: a=4\n",
		"a.ini:2: expected 'key = value' with '=', not ':' ('depth: a')");
	read_wrong("[read\ndepth = 4\n", "a.ini:1: expected '[section]', not '[read'");
	read_wrong("[read] depth = 4\n", "a.ini:1: expected '[section]', not '[read] depth = 4'");
	read_wrong("[]\n", "a.ini:1: expected '[section]', not '[]'");
	read_wrong("[[read]]\n", "a.ini:1: expected '[section]', not '[[read]]'");
	read_wrong("[read]\ndepth = 4\x01\n", "a.ini:2: control character (1) in column 10");
	read_wrong("[read]\nengine = pread\n  io_uring\n",
		"a.ini:3: expected 'key = value', not 'io_uring'");
	assert_int_equal(config_read_text(&config, "a.ini", "[read]\n\0", 8, &err), -EINVAL);
	assert_string_equal(err.text, "a.ini:2: control character (0) in column 1");
}

static void mistakes_in_names(void **state)
{
	(void)state;
	read_wrong("\n[decode]\n\nworker = 2\n",
		"a.ini:4: unknown key 'decode.worker'; did you mean 'decode.workers'?");
	read_wrong("[batch]\nworkers = 2\n",
		"a.ini:2: unknown key 'batch.workers'; did you mean 'decode.workers'?");
	read_wrong("[decode]\ndecode.workers = 2\n",
		"a.ini:2: unknown key 'decode.decode.workers'; did you mean 'decode.workers'?");
	read_wrong("[decoder]\nworkers = 2\n",
		"a.ini:1: unknown section 'decoder'; did you mean 'decode'?");
	read_wrong(
		"[completely]\n", "a.ini:1: unknown section 'completely'; see `mlbench help keys`");
	read_wrong("[sweep]\nworkers = 2\n",
		"a.ini:2: unknown key 'workers'; did you mean 'decode.workers'?");
	read_wrong("[sweep]\ndecode.worker = 2\n",
		"a.ini:2: unknown key 'decode.worker'; did you mean 'decode.workers'?");
	read_wrong("[sweep]\nexclud = decode.workers=2\n",
		"a.ini:2: unknown key 'exclud'; did you mean 'sweep.exclude'?");
	read_wrong("workers = 2\n",
		"a.ini:1: 'workers' stands outside any section; put it under a line '[section]'");
	read_wrong("decode.workers = 2\n",
		"a.ini:1: 'decode.workers' stands outside any section; write 'workers = ...' under [decode]");
}

static void mistakes_in_values(void **state)
{
	(void)state;
	read_wrong("[read]\n\nengine = iouring\n",
		"a.ini:3: 'read.engine' cannot be 'iouring'; it is one of: auto, memory, pread, io_uring, nfs, mmap (did you mean 'io_uring'?)");
	read_wrong("[batch]\nsize = 0\n", "a.ini:2: 'batch.size' = 0 is below its minimum 1");
	read_wrong("[dataset]\nbytes = 64q\n",
		"a.ini:2: 'dataset.bytes' = '64q' is not a size (example: 64KiB)");
	read_wrong("[batch]\nsize = 1,2\n",
		"a.ini:2: 'batch.size' takes one value here; put a list in [sweep]: 'batch.size = ...'");
	read_wrong("[sweep]\nmeasure.repeats = 1,2\n",
		"a.ini:2: 'measure.repeats' cannot be swept; set one value under [measure]");
	read_wrong("[sweep]\nbatch.size = # nothing\n",
		"a.ini:2: 'batch.size' has no values to sweep; give a list, as 1,2,4");
	read_wrong("[sweep]\nbatch.size = 64-8+8\n",
		"a.ini:2: 'batch.size': the range '64-8+8' runs downwards; write the smaller end first");
	read_wrong("[batch]\nsize = 8\n\nsize = 8\n",
		"a.ini:4: 'batch.size' is set already on line 2");
	read_wrong("[sweep]\nbatch.size = 8\nbatch.size = 8\n",
		"a.ini:3: 'sweep.batch.size' is set already on line 2");
	read_wrong("[sweep]\nzip = decode.workers, read.deep\n",
		"a.ini:2: 'sweep.zip': unknown key 'read.deep'; did you mean 'read.depth'?");
	read_wrong("[sweep]\nexclude = batch.size=1\nexclude = batch.sice=1\n",
		"a.ini:3: 'sweep.exclude': unknown key 'batch.sice'; did you mean 'batch.size'?");
	read_wrong("[sweep]\nexclude = batch.size=0\n",
		"a.ini:2: 'sweep.exclude': 'batch.size' = 0 is below its minimum 1");
	read_wrong("include = b.ini\n", "a.ini:1: 'include' works only in files");
}

static void variables(void **state)
{
	(void)state;
	(void)setenv("MLBENCH_TEST_A", "one", 1);
	(void)setenv("MLBENCH_TEST_EMPTY", "", 1);
	(void)setenv("MLBENCH_TEST_LIST", "1,2", 1);
	(void)unsetenv("MLBENCH_TEST_NONE");
	read_right(
		"[dataset]\npath = /${MLBENCH_TEST_A}/${MLBENCH_TEST_NONE:-two}/"
		"${MLBENCH_TEST_NONE:-${MLBENCH_TEST_A}}${MLBENCH_TEST_EMPTY}/${MLBENCH_TEST_EMPTY:-x}\n"
		"[sweep]\ndecode.workers = ${MLBENCH_TEST_LIST},${MLBENCH_TEST_NONE:-8-16*2}\n");
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "/one/two/one/x");
	assert_int_equal(config.axes[0].count, 4);
	read_wrong("[dataset]\npath = data/${MLBENCH_TEST_NONE}/x\n",
		"a.ini:2: variable 'MLBENCH_TEST_NONE' is not defined; set it, or write '${MLBENCH_TEST_NONE:-default}'");
	read_wrong("[dataset]\npath = $HOME\n",
		"a.ini:2: stray '$'; write '${NAME}' for a variable and '$$' for a dollar");
	read_wrong("[dataset]\npath = a$\n",
		"a.ini:2: stray '$'; write '${NAME}' for a variable and '$$' for a dollar");
	read_wrong("[dataset]\npath = ${HOME\n", "a.ini:2: '${' without '}'");
	read_wrong("[dataset]\npath = ${}\n",
		"a.ini:2: bad variable '${}'; write '${NAME}' or '${NAME:-default}'");
	read_wrong("[dataset]\npath = ${1A}\n",
		"a.ini:2: bad variable '${1A}'; write '${NAME}' or '${NAME:-default}'");
	read_wrong("[dataset]\npath = ${A+b}\n",
		"a.ini:2: bad variable '${A+b}'; write '${NAME}' or '${NAME:-default}'");
	read_wrong(
		"[dataset]\npath = ${X1:-${X2:-${X3:-${X4:-${X5:-${X6:-${X7:-${X8:-${X9:-x}}}}}}}}}\n",
		"a.ini:2: variables nested more than 8 deep");
	read_wrong("[read]\ndepth = ${MLBENCH_TEST_EMPTY}\n",
		"a.ini:2: 'read.depth' has no value (example: 8)");
}

/* Longer than inih's lines: nothing is cut, with or without places to break at. */
static void long_lines(void **state)
{
	(void)state;
	enum { LENGTH = 4000 };
	char path[LENGTH + 1];
	char text[3 * LENGTH];
	for (size_t i = 0; i < LENGTH; i++)
		path[i] = i < LENGTH / 2 ? "abcdefgh;k l#n "[i % 14] : "1 "[i % 2];
	path[LENGTH] = '\0';
	for (size_t length = 150; length <= LENGTH; length += length < 420 ? 1 : 97) {
		(void)snprintf(text, sizeof text,
			"[dataset]\npath = %.*sz # comment\n[read]\ndepth = 3\n", (int)length,
			path);
		close_config(NULL);
		open_config(NULL);
		read_right(text);
		const char *got = config_text(&config, KEY_DATASET_PATH);
		assert_int_equal(strlen(got), length + 1);
		assert_memory_equal(got, path, length);
		assert_int_equal(config_integer(&config, KEY_READ_DEPTH), 3);
	}
}

static void too_long_lines(void **state)
{
	(void)state;
	enum { LENGTH = (1 << 20) + 1 };
	char *text = malloc(LENGTH + 32);
	assert_non_null(text);
	const size_t start = (size_t)sprintf(text, "[dataset]\npath = a");
	memset(text + start, 'b', LENGTH);
	assert_int_equal(config_read_text(&config, "a.ini", text, LENGTH + start, &err), -EINVAL);
	assert_string_equal(err.text, "a.ini:2: line is longer than 1048576 bytes");
	assert_int_equal(config_read_text(&config, "a.ini", text, start + 5000, &err), -EINVAL);
	assert_string_equal(err.text, "a.ini:2: 'dataset.path' is longer than 4096 bytes");
	memset(text + start, ' ', 300);
	text[start + 300] = 'c';
	assert_int_equal(config_read_text(&config, "a.ini", text, start + 301, &err), -EINVAL);
	assert_string_equal(err.text, "a.ini:2: 'dataset.path' holds more than 64 blanks in a row");
	memset(text + start, '#', 300);
	assert_int_equal(config_read_text(&config, "a.ini", text, start + 301, &err), -EINVAL);
	assert_string_equal(err.text, "a.ini:2: line is too long");
	memset(text + start, ' ', 300);
	text[start + 65] = 'c';
	assert_int_equal(config_read_text(&config, "a.ini", text, start + 66, &err), -EINVAL);
	assert_string_equal(err.text, "a.ini:2: 'dataset.path' holds more than 64 blanks in a row");
	free(text);
}

static void write_file(const char *name, const char *text)
{
	char *path = files_join(folder, name);
	char *slash = strrchr(path, '/');
	*slash = '\0';
	assert_int_equal(files_make_folder(path, NULL), 0);
	*slash = '/';
	assert_int_equal(files_write_atomic(path, text, strlen(text), NULL), 0);
	free(path);
}

static int read_named(const char *name)
{
	char *path = files_join(folder, name);
	const int code = config_read_file(&config, path, &err);
	free(path);
	return code;
}

/* The message without the folder's name. */
static void assert_message(const char *expected)
{
	char shown[ERROR_TEXT_BYTES] = "";
	const size_t length = strlen(folder) + 1;
	const char *at = err.text;
	for (const char *hit; (hit = strstr(at, folder)); at = hit + length)
		(void)snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%.*s",
			(int)(hit - at), at);
	(void)snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s", at);
	assert_string_equal(shown, expected);
}

static void includes(void **state)
{
	(void)state;
	write_file("base/all.ini",
		"include = read.ini\n[decode]\nworkers = 3\n[sweep]\nbatch.size = 1,2\n"
		"read.depth = 1,2\nzip = batch.size, read.depth\n");
	write_file("base/read.ini", "[read]\nengine = pread\ndepth = 9\n");
	write_file("top.ini", "[read]\ninclude = base/all.ini # relative to this file\ndepth = 5\n"
			      "[batch]\nsize = 8\n");
	assert_int_equal(read_named("top.ini"), 0);
	assert_int_equal(config_integer(&config, KEY_READ_ENGINE), READ_ENGINE_PREAD);
	assert_int_equal(config_integer(&config, KEY_READ_DEPTH), 5);
	assert_int_equal(config_integer(&config, KEY_DECODE_WORKERS), 3);
	assert_int_equal(config_integer(&config, KEY_BATCH_SIZE), 8);
	assert_int_equal(config.axis_count, 0); /* both were pinned by the including file */
	assert_string_equal(config_text(&config, KEY_SWEEP_ZIP), "");
	assert_non_null(strstr(config.path, "/top.ini"));
}

static void value_and_axis_in_one_file(void **state)
{
	(void)state;
	read_right(
		"[decode]\nworkers = 4\n[sweep]\ndecode.workers = 1,2\nread.depth = 1,2\n[read]\ndepth = 4\n");
	assert_int_equal(config.axis_count, 2);
	assert_int_equal(config_integer(&config, KEY_DECODE_WORKERS), 4);
	assert_int_equal(config_integer(&config, KEY_READ_DEPTH), 4);
}

static void bad_includes(void **state)
{
	(void)state;
	write_file("a.ini", "[read]\ndepth = 4\ninclude = sub/b.ini\n");
	write_file("sub/b.ini", "\ninclude = ../c.ini\n");
	write_file("c.ini", "\n\ninclude = a.ini\n");
	assert_int_equal(read_named("a.ini"), -EINVAL);
	assert_message(
		"sub/../c.ini:3: files include each other: a.ini -> sub/b.ini -> sub/../c.ini -> sub/../a.ini");
	write_file("self.ini", "include = ./self.ini\n");
	assert_int_equal(read_named("self.ini"), -EINVAL);
	assert_message("self.ini:1: files include each other: self.ini -> ./self.ini");
	write_file("c.ini", "[read]\n\ndepth = 4\n");
	assert_int_equal(read_named("a.ini"), -EINVAL);
	assert_message(
		"sub/../c.ini:3: 'read.depth' is set already in the including file, a.ini:2; move its include line above that");
	write_file("d.ini", "\ninclude = nowhere.ini\n");
	assert_int_equal(read_named("d.ini"), -EINVAL);
	assert_message("d.ini:2: cannot open 'nowhere.ini': No such file or directory");
	write_file("d.ini", "include =\n");
	assert_int_equal(read_named("d.ini"), -EINVAL);
	assert_message("d.ini:1: 'include' names no file");
	write_file("d.ini", "include = sub\n");
	assert_int_equal(read_named("d.ini"), -EINVAL);
	assert_message("d.ini:1: cannot read 'sub': Is a directory");
	write_file("d.ini", "include = e.ini\n");
	write_file("e.ini", "[read]\nengine = pread\n[raed]\n");
	assert_int_equal(read_named("d.ini"), -EINVAL);
	assert_message("e.ini:3: unknown section 'raed'; did you mean 'read'?");
}

static void bounded_includes(void **state)
{
	(void)state;
	char name[32];
	char text[64];
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof name, "deep%d.ini", i);
		(void)snprintf(text, sizeof text, "include = deep%d.ini\n", i + 1);
		write_file(name, text);
	}
	assert_int_equal(read_named("deep0.ini"), -EINVAL);
	assert_message("deep15.ini:1: includes are nested more than 16 deep");
	for (int i = 0; i < 8; i++) {
		(void)snprintf(name, sizeof name, "wide%d.ini", i);
		(void)snprintf(text, sizeof text, "include = wide%d.ini\ninclude = wide%d.ini\n",
			i + 1, i + 1);
		write_file(name, i < 7 ? text : "[read]\ndepth = 2\n");
	}
	assert_int_equal(read_named("wide0.ini"), -EINVAL);
	assert_non_null(strstr(err.text, "more than 64 files are included"));
}

static void unreadable_files(void **state)
{
	(void)state;
	assert_int_equal(read_named("missing.ini"), -ENOENT);
	assert_message("cannot open 'missing.ini': No such file or directory");
	assert_int_equal(config_read_file(&config, folder, &err), -EISDIR);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_config, close_config)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(understands_a_file),
		CASE(escapes),
		CASE(empty_files),
		CASE(repeated_sections_and_excludes_add),
		CASE(mistakes_in_lines),
		CASE(mistakes_in_names),
		CASE(mistakes_in_values),
		CASE(variables),
		CASE(long_lines),
		CASE(too_long_lines),
		CASE(includes),
		CASE(value_and_axis_in_one_file),
		CASE(bad_includes),
		CASE(bounded_includes),
		CASE(unreadable_files),
	};
	return cmocka_run_group_tests_name("config_reader", tests, make_folder, remove_folder);
}
