/* Perf maps: what counts as one, and what is made of its lines.  And a process with made code, as far as this kernel lets it be
 * sampled. */
#include "harness/measure/code_map.h"

#include "harness/measure/job_sampler.h"
#include "tests/unit/fake_root.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Process 7, which is 3 for itself. */
static void fake_process(const char *map)
{
	fake_file("/proc/7/status", "Name:\tpython\nNSpid:\t7\t3\n");
	if (map)
		fake_file("/proc/7/root/tmp/perf-3.map", map);
	else
		fake_file("/proc/7/root/tmp/other", "");
}

static int setup(void **state)
{
	(void)state;
	fake_root_make();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_root_remove();
	return 0;
}

static void append(const char *text)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/proc/7/root/tmp/perf-3.map", fake_root);
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	assert_int_equal(fputs(text, file) >= 0, 1);
	assert_int_equal(fclose(file), 0);
}

static void test_lines(void **state)
{
	struct code_map *map;
	struct error err;
	(void)state;
	fake_process("7f0010 10 py::collate:/home/someone/secret.py\n"
		     "7f0000 10 py::<lambda>:/x.py\n"
		     "7f0100 0x20 LazyCompile:~tick\n"
		     "half a line");
	assert_int_equal(code_map_open(&map, fake_root, 7, &err), 0);
	code_map_refresh(map);
	assert_int_equal(code_map_count(map), 3);
	assert_null(code_map_find(map, 0x7effff));
	assert_string_equal(code_map_find(map, 0x7f0000)->name, "<lambda>");
	assert_string_equal(code_map_find(map, 0x7f001f)->name, "collate");
	assert_true(code_map_find(map, 0x7f001f)->python);
	assert_null(code_map_find(map, 0x7f0020));
	assert_string_equal(code_map_find(map, 0x7f0100)->name, "LazyCompile:~tick");
	assert_false(code_map_find(map, 0x7f0100)->python);
	/* It grows; code is made anew at the same place. */
	append("\n7f0000 10 py::again:/x.py\n");
	code_map_refresh(map);
	assert_string_equal(code_map_find(map, 0x7f000f)->name, "again");
	code_map_close(map);
	code_map_close(NULL);
}

static void test_hostile_lines(void **state)
{
	static const char *const bad[] = {"", " ", "x", "10", "10 ", "10 10", "10 10 ", "10 0 name",
		"ffffffffffffffff 10 wraps", "zz 10 name", "10 zz name"};
	struct code_map *map;
	struct error err;
	(void)state;
	fake_process("");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		append(bad[i]);
		append("\n");
	}
	append("1000 10 py::\033[31mred\n2000 10 ");
	for (int i = 0; i < 5000; i++)
		append("long");
	append("\n3000 10 last\n");
	assert_int_equal(code_map_open(&map, fake_root, 7, &err), 0);
	code_map_refresh(map);
	assert_int_equal(code_map_count(map), 3);
	assert_string_equal(code_map_find(map, 0x1000)->name, "?[31mred");
	assert_int_equal(strlen(code_map_find(map, 0x2000)->name), CODE_MAP_NAME_BYTES - 1);
	assert_string_equal(code_map_find(map, 0x3000)->name, "last");
	code_map_close(map);
}

static void test_bounds(void **state)
{
	char path[256];
	struct code_map *map;
	struct error err;
	(void)state;
	fake_process("");
	(void)snprintf(path, sizeof path, "%s/proc/7/root/tmp/perf-3.map", fake_root);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (unsigned i = 0; i < CODE_MAP_ENTRIES_MAX + 1000; i++)
		(void)fprintf(file, "%x 10 f%u\n", 0x100000 + 16 * i, i);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(code_map_open(&map, fake_root, 7, &err), 0);
	for (int i = 0; i < 10; i++)
		code_map_refresh(map);
	assert_int_equal(code_map_count(map), CODE_MAP_ENTRIES_MAX);
	assert_string_equal(code_map_find(map, 0x100000 + 16 * 1000 + 8)->name, "f1000");
	code_map_close(map);
}

/* Links, folders and pipes are no maps, and no link leads out of the process's root. */
static void test_what_counts(void **state)
{
	char path[256];
	char target[256];
	struct code_map *map;
	struct error err;
	(void)state;
	fake_process(NULL);
	assert_int_equal(code_map_open(&map, fake_root, 7, &err), -ENOENT);
	assert_int_equal(code_map_open(&map, fake_root, 8, &err), -ENOENT);
	(void)snprintf(path, sizeof path, "%s/proc/7/root/tmp/perf-3.map", fake_root);
	(void)snprintf(target, sizeof target, "%s/outside", fake_root);
	fake_file("/outside", "10 10 outside\n");
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(code_map_open(&map, fake_root, 7, &err), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(code_map_open(&map, fake_root, 7, &err), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(code_map_open(&map, fake_root, 7, &err), -EPERM);
	if (getuid() == 0) { /* another user's */
		assert_int_equal(rmdir(path), 0);
		fake_file("/proc/7/root/tmp/perf-3.map", "10 10 theirs\n");
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(code_map_open(&map, fake_root, 7, &err), -EPERM);
	}
	/* /tmp of the process is a link that leads out: it is followed inside of its root, where there is nothing. */
	(void)snprintf(target, sizeof target, "%s/elsewhere", fake_root);
	fake_file("/elsewhere/perf-4.map", "10 10 outside\n");
	fake_file("/proc/9/status", "NSpid:\t9\t4\n");
	fake_file("/proc/9/root/x", "");
	(void)snprintf(path, sizeof path, "%s/proc/9/root/tmp", fake_root);
	assert_int_equal(symlink(target, path), 0);
	assert_int_not_equal(code_map_open(&map, fake_root, 9, &err), 0);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static volatile uint64_t spun;

static void __attribute__((noinline)) spin_some(void)
{
	for (int i = 0; i < 100000; i++)
		spun++;
}

/* A leaf may have no frame of its own: its caller has one. */
static void __attribute__((noinline)) spin(void)
{
	while (spun < UINT64_MAX)
		spin_some();
}

/* Made code that calls what computes, as the interpreter's does: push %rbp; mov %rsp,%rbp; call *%rdi. */
static int run_made_code(void)
{
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	char path[64];
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	memcpy(page, code, sizeof code);
	(void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
	(void)snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	FILE *file = fopen(path, "wx");
	if (!file)
		return 1;
	(void)fprintf(
		file, "%lx %zx py::spinning:/a.py\n", (unsigned long)(uintptr_t)page, sizeof code);
	(void)fclose(file);
	void (*enter)(void (*)(void));
	memcpy(&enter, &page, sizeof enter);
	enter(spin);
	return 0;
}

/* This program under the name of an interpreter. */
static pid_t begin_interpreter(void)
{
	char path[256];
	char *program;
	size_t size;
	struct error err;
	assert_int_equal(files_read("/proc/self/exe", 1 << 28, &program, &size, &err), 0);
	fake_bytes("/python3.99", program, size);
	free(program);
	(void)snprintf(path, sizeof path, "%s/python3.99", fake_root);
	assert_int_equal(chmod(path, 0700), 0);
	const pid_t child = fork();
	if (child == 0) {
		(void)execl(path, path, "--made", (char *)NULL);
		_exit(1);
	}
	return child;
}

static void test_sampled(void **state)
{
	char path[64];
	struct job_process process = {0};
	struct job_thread thread = {.last = {[JOB_CPU_S] = 1}}; /* it works */
	struct job_record record = {
		.processes = &process, .threads = &thread, .process_count = 1, .thread_count = 1};
	struct job_sampler *sampler;
	struct error err;
	(void)state;
	const pid_t child = begin_interpreter();
	assert_true(child > 0);
	(void)snprintf(path, sizeof path, "/tmp/perf-%d.map", child);
	for (int i = 0; i < 3000 && access(path, R_OK) != 0; i++)
		(void)usleep(10000);
	process.pid = thread.tid = child;
	assert_int_equal(job_sampler_open(&sampler, &err), 0);
	job_sampler_follow(sampler, &record);
	for (int i = 0; i < 20; i++) {
		(void)usleep(50000);
		job_sampler_follow(sampler, &record);
		job_sampler_drain(sampler);
	}
	const struct job_profile *profile = job_sampler_finish(sampler, &record);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)unlink(path);
	assert_int_equal(profile->mapped, 1);
	/* Else the kernel forbids it, or the node was full. */
	if (!profile->why[0] && profile->samples >= 10) {
		assert_true(profile->interpreted > profile->samples / 2);
		assert_true(profile->named > profile->interpreted / 2);
		assert_string_equal(profile->places[0].name, "Python spinning");
		assert_int_equal(profile->places[0].class, JOB_CLASS_PYTHON);
	}
	job_sampler_close(sampler);
}

#endif

int main(int argc, char **argv)
{
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (argc == 2 && strcmp(argv[1], "--made") == 0)
		return run_made_code();
#endif
	(void)argc;
	(void)argv;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_counts, setup, teardown),
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test_setup_teardown(test_sampled, setup, teardown),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
