/* Classes of code, and the sampling of another process as far as this kernel allows it. */
#include "harness/measure/job_sampler.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_classes(void **state)
{
	static const struct {
		const char *file, *function;
		bool kernel;
		enum job_class class;
	} cases[] = {
		{"/usr/lib/libjpeg.so.62.3.0", "", false, JOB_CLASS_DECODE},
		{"/a/pillow.libs/libjpeg-0a1b.so.62", "jpeg_fill_bit_buffer", false,
			JOB_CLASS_DECODE},
		{"/a/_imaging.cpython-311-x86_64-linux-gnu.so", "ImagingResampleHorizontal_8bpc",
			false, JOB_CLASS_RESIZE},
		{"/a/_imaging.cpython-311-x86_64-linux-gnu.so", "ImagingJpegDecode", false,
			JOB_CLASS_DECODE},
		{"/usr/bin/python3.11", "", false, JOB_CLASS_PYTHON},
		{"/opt/lib/libpython3.12.so.1.0", "x", false, JOB_CLASS_PYTHON},
		{"/usr/lib/libc.so.6", "memmove", false, JOB_CLASS_COPY},
		{"/usr/lib/libc.so.6", "memmove", true, JOB_CLASS_COPY}, /* a page fault of it */
		{"/usr/lib/libc.so.6", "__libc_malloc", false, JOB_CLASS_LIBC},
		{"/usr/lib/libc.so.6", "__read", true, JOB_CLASS_READ},
		{"/usr/lib/libc.so.6", "openat64", true, JOB_CLASS_READ},
		{"/usr/lib/libc.so.6", "readable", true, JOB_CLASS_KERNEL},
		{"/usr/lib/libc.so.6", "write", true, JOB_CLASS_WRITE},
		{"/usr/lib/libc.so.6", "pwrite64", true, JOB_CLASS_WRITE},
		{"/usr/lib/libc.so.6", "__libc_fsync", true, JOB_CLASS_WRITE},
		{"/usr/lib/libc.so.6", "pthread_cond_wait", true, JOB_CLASS_QUEUE},
		{"/usr/lib/libc.so.6", "__poll", true, JOB_CLASS_QUEUE},
		{"/usr/lib/libc.so.6", "munmap", true, JOB_CLASS_KERNEL},
		{"/usr/lib/libc.so.6", "", true, JOB_CLASS_KERNEL},
		{"/a/libopenblas.so.0", "sgemm_kernel", false, JOB_CLASS_BLAS},
		{"/a/libtorch_cpu.so", "x", false, JOB_CLASS_TENSOR},
		{"/a/_pickle.cpython-312.so", "", false, JOB_CLASS_SERIAL},
		{"/home/someone/train", "main", false, JOB_CLASS_OTHER},
		{"", "", true, JOB_CLASS_KERNEL},
		{"", "", false, JOB_CLASS_OTHER},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(job_class_of(cases[i].file, cases[i].function, cases[i].kernel),
			cases[i].class);
	for (int i = 0; i < JOB_CLASSES; i++) {
		assert_true(job_class_name((enum job_class)i)[0]);
		assert_true(job_class_words((enum job_class)i)[0]);
	}
}

/* A child that copies memory for ever. */
static pid_t copying_child(void)
{
	const pid_t child = fork();
	if (child == 0) {
		enum { SIZE = 1 << 20 };
		char *from = malloc(SIZE);
		char *to = malloc(SIZE);
		if (!from || !to)
			_exit(1);
		memset(from, 1, SIZE);
		void *(*volatile copy)(void *, const void *, size_t) = memmove;
		for (;;)
			(void)copy(to, from, SIZE);
	}
	return child;
}

static void test_another_process(void **state)
{
	struct job_process process = {0};
	struct job_thread thread = {0};
	struct job_record record = {
		.processes = &process, .threads = &thread, .process_count = 1, .thread_count = 1};
	struct job_sampler *sampler;
	struct error err;
	(void)state;
	const pid_t child = copying_child();
	assert_true(child > 0);
	process.pid = thread.tid = child;
	assert_int_equal(job_sampler_open(&sampler, &err), 0);
	job_sampler_follow(sampler, &record);
	job_sampler_follow(sampler, &record); /* it follows each thread once */
	for (int i = 0; i < 20; i++) {
		(void)usleep(50000);
		job_sampler_drain(sampler);
	}
	const struct job_profile *profile = job_sampler_finish(sampler, &record);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	uint64_t sum = 0;
	for (int i = 0; i < JOB_CLASSES; i++)
		sum += profile->classes[0][i];
	assert_int_equal(sum, profile->samples);
#if !defined(__SANITIZE_ADDRESS__) && \
	!defined(__SANITIZE_THREAD__) /* which have copies of their own */
	/* Else the kernel forbids it, or the node was full. */
	if (!profile->why[0] && profile->samples >= 10)
		assert_true(profile->classes[0][JOB_CLASS_COPY] > sum / 2);
#endif
	job_sampler_close(sampler);
}

/* A child that was forked and ended is named by the code of its parent, which is this program. */
static void test_ended_child(void **state)
{
	struct job_process processes[2] = {{.pid = getpid()}, {.parent = getpid()}};
	struct job_thread thread = {.process = 1};
	struct job_record record = {
		.processes = processes, .threads = &thread, .process_count = 2, .thread_count = 1};
	struct job_sampler *sampler;
	struct error err;
	(void)state;
	const pid_t child = copying_child();
	assert_true(child > 0);
	processes[1].pid = thread.tid = child;
	assert_int_equal(job_sampler_open(&sampler, &err), 0);
	job_sampler_follow(sampler, &record);
	for (int i = 0; i < 20; i++) {
		(void)usleep(50000);
		job_sampler_drain(sampler);
	}
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	processes[1].gone = thread.gone = true;
	const struct job_profile *profile = job_sampler_finish(sampler, &record);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (!profile->why[0] && profile->samples >= 10)
		assert_true(profile->classes[1][JOB_CLASS_COPY] > profile->samples / 2);
#endif
	job_sampler_close(sampler);
}

/* One that ended, and one that there never was: no samples, no failure. */
static void test_gone(void **state)
{
	struct job_process process = {.pid = 999999999, .gone = true};
	struct job_thread thread = {.tid = 999999999};
	struct job_record record = {
		.processes = &process, .threads = &thread, .process_count = 1, .thread_count = 1};
	struct job_sampler *sampler;
	struct error err;
	(void)state;
	assert_int_equal(job_sampler_open(&sampler, &err), 0);
	job_sampler_follow(sampler, &record);
	assert_int_equal(job_sampler_finish(sampler, &record)->samples, 0);
	job_sampler_close(sampler);
	job_sampler_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_another_process),
		cmocka_unit_test(test_ended_child),
		cmocka_unit_test(test_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
