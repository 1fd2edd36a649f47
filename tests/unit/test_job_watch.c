/* A job watched from outside, on a fake /proc: what is counted, what is looked at, and what comes and goes meanwhile. */
#include "harness/measure/job_lives.h"
#include "harness/measure/job_watch.h"
#include "tests/unit/fake_root.h"

#include <errno.h>
#include <math.h>
#include <sys/syscall.h>

static void fake_stat(const char *folder, int id, const char *name, char state, int parent,
	unsigned ticks, unsigned start)
{
	char path[160];
	char text[512];
	(void)snprintf(path, sizeof path, "%s/stat", folder);
	(void)snprintf(text, sizeof text,
		"%d (%s) %c %d 1 1 0 -1 0 7 0 3 0 %u 0 0 0 20 0 1 0 %u 1000 50 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n",
		id, name, state, parent, ticks, start);
	fake_file(path, text);
}

/* A process with one thread. */
static void fake_process(
	int pid, const char *name, char state, int parent, unsigned ticks, unsigned start)
{
	char folder[64];
	char path[128];
	(void)snprintf(folder, sizeof folder, "/proc/%d", pid);
	fake_stat(folder, pid, name, state, parent, ticks, start);
	(void)snprintf(path, sizeof path, "%s/task/%d", folder, pid);
	fake_stat(path, pid, name, state, parent, ticks, start);
	(void)snprintf(path, sizeof path, "%s/task/%d/children", folder, pid);
	fake_file(path, "");
	(void)snprintf(path, sizeof path, "%s/io", folder);
	fake_file(path, "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n");
	(void)snprintf(path, sizeof path, "%s/fd/none", folder);
	fake_file(path, "");
}

static void fake_task(int pid, const char *name, const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, pid, name);
	fake_file(path, text);
}

static void fake_fd(int pid, int fd, const char *target, const char *info)
{
	char path[128];
	(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
	fake_link(path, target);
	(void)snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, fd);
	fake_file(path, info);
}

/* A trainer (100), two workers (101, 102), and a process of somebody else (200). */
static int job_up(void **state)
{
	(void)state;
	fake_root_make();
	fake_file("/proc/uptime", "50.00 1.0\n"); /* 5000 ticks of 100 a second */
	fake_process(100, "train (x) y", 'S', 1, 100, 1000);
	fake_process(101, "worker", 'S', 100, 10, 1100);
	fake_process(102, "worker", 'D', 100, 20, 1101);
	fake_process(200, "other", 'R', 1, 10, 900);
	fake_task(100, "children", "101 102 ");
	fake_file("/proc/100/mountinfo",
		"30 1 8:1 / / rw - ext4 /dev/a rw\n31 30 0:40 / /data rw - fuse.slow x rw\n");
	return 0;
}

static int job_down(void **state)
{
	(void)state;
	fake_root_remove();
	return 0;
}

static struct job_watch *open_job(int pid)
{
	struct job_watch *watch;
	struct error err;
	const struct job_watch_options options = {.root = fake_root, .pid = pid, .most_share = 1};
	assert_int_equal(job_watch_open(&watch, &options, &err), 0);
	return watch;
}

static bool has_process(const struct job_watch *watch, int pid)
{
	const struct job_record *record = job_watch_record(watch);
	for (size_t i = 0; i < record->process_count; i++)
		if (record->processes[i].pid == pid)
			return true;
	return false;
}

static const struct job_process *process_of(const struct job_watch *watch, int pid)
{
	const struct job_process *process = job_watch_record(watch)->processes;
	assert_true(has_process(watch, pid));
	while (process->pid != pid)
		process++;
	return process;
}

static void test_tree_and_counts(void **state)
{
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	(void)state;
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 0);
	assert_int_equal(record->process_count, 3);
	assert_int_equal(record->thread_count, 3);
	assert_false(has_process(watch, 200));
	assert_string_equal(process_of(watch, 100)->name, "train (x) y");
	fake_process(101, "worker", 'S', 100, 60, 1100);
	fake_file("/proc/101/io",
		"rchar: 5000\nwchar: 1\nsyscr: 9\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\n");
	fake_task(101, "schedstat", "700000000 300000000 5\n");
	job_watch_look(watch, JOB_COUNT, 10);
	const struct job_process *worker = process_of(watch, 101);
	assert_float_equal(job_grown(worker->first, worker->last, JOB_CPU_S), 0.5, 1e-9);
	assert_float_equal(job_grown(worker->first, worker->last, JOB_READ), 5000, 0);
	assert_float_equal(job_grown(worker->first, worker->last, JOB_DISK_READ), 4096, 0);
	assert_float_equal(job_process_seconds(worker), 10, 0);
	assert_int_equal(record->moment_count, 2);
	assert_float_equal(record->moments[1].cpu_s, 0.5, 1e-9);
	job_watch_close(watch);
}

/* The kernel counts a wait for a core when it ends: one that began before the watch is longer than the watch.  No thread waits for
 * more of its time than it was off its core, and no process for more than all of it. */
static void test_no_wait_beyond_the_time(void **state)
{
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	size_t worker = 0;
	(void)state;
	fake_task(101, "schedstat", "100000000 0 1\n");
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 0);
	fake_process(101, "worker", 'R', 100, 60, 1100);
	fake_task(101, "schedstat", "500000000 30000000000 5\n");
	job_watch_look(watch, JOB_COUNT, 10);
	while (record->processes[worker].pid != 101)
		worker++;
	const double waited = job_process_longest_queue_s(record, worker);
	assert_true(waited > 9 && waited <= 10 - 0.4);
	assert_float_equal(job_process_queue_s(record, worker), waited, 1e-9);
	job_watch_close(watch);
}

/* One that began after the watch has all its counts in it; of one that was there before only what it grew by counts. */
static void test_comes_and_goes(void **state)
{
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	(void)state;
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 0);
	fake_process(103, "late", 'R', 100, 40, 6000);
	fake_process(104, "reparented", 'R', 1, 40, 6000); /* listed, but no child any more */
	fake_task(100, "children", "101 102 103 104 ");
	fake_drop("/proc/102");
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 1);
	assert_int_equal(record->process_count, 4);
	assert_float_equal(
		job_grown(record->processes[3].first, record->processes[3].last, JOB_CPU_S), 0.4,
		1e-9);
	assert_true(process_of(watch, 102)->gone);
	assert_float_equal(
		process_of(watch, 102)->last[JOB_CPU_S], 0.2, 1e-9); /* what was last known */
	assert_true(isnan(record->ended_s));
	/* The number is used again: a new process, and not the old one's. */
	fake_process(102, "again", 'R', 100, 5, 7000);
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 2);
	assert_int_equal(record->process_count, 5);
	assert_string_equal(record->processes[4].name, "again");
	fake_drop("/proc/100");
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT | JOB_STATES | JOB_FILES, 3);
	assert_float_equal(record->ended_s, 3, 0);
	job_watch_close(watch);
}

static void set_call(int pid, long call, unsigned fd)
{
	char text[64];
	(void)snprintf(text, sizeof text, "%ld 0x%x 0x0 0x0 0x0 0x0 0x0 0x7ff 0x7ff\n", call, fd);
	fake_task(pid, "syscall", text);
}

static void test_states(void **state)
{
	struct job_watch *watch = open_job(100);
	(void)state;
	fake_fd(100, 5, "pipe:[77]", "flags:\t0100000\n");
	fake_fd(101, 6, "pipe:[77]", "flags:\t0100001\n");
	fake_fd(102, 7, "/data/a/b/x.jpg", "flags:\t0100000\nmnt_id:\t31\n");
	set_call(100, SYS_read, 5);
	set_call(101, SYS_write, 6);
	set_call(102, SYS_read, 7);
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT | JOB_STATES | JOB_FILES, 0);
	char condition[96];
	(void)snprintf(condition, sizeof condition, "%ld 0x7f0 0x89 0x0 0x0 0x0 0x0 0x7ff 0x7ff\n",
		(long)SYS_futex);
	fake_task(100, "syscall", condition);
	fake_process(101, "worker", 'R', 100, 60, 1100);
	fake_task(102, "syscall", "-1 0x7ff 0x7ff\n"); /* a page fault that waits */
	job_watch_look(watch, JOB_STATES, 1);
	const struct job_process *trainer = process_of(watch, 100);
	const struct job_process *worker = process_of(watch, 101);
	assert_int_equal(trainer->looks[JOB_WAITS_INPUT], 1);
	assert_int_equal(trainer->looks[JOB_WAITS_CONDITION], 1);
	assert_int_equal(worker->looks[JOB_WAITS_OUTPUT], 1);
	assert_int_equal(worker->looks[JOB_RUNS], 1);
	assert_int_equal(process_of(watch, 102)->looks[JOB_WAITS_READ], 1);
	assert_int_equal(process_of(watch, 102)->looks[JOB_WAITS_FAULT], 1);
	assert_int_equal(trainer->pipe_count, 1);
	assert_int_equal(trainer->pipes[0].number, 77);
	assert_true(trainer->pipes[0].reads && !trainer->pipes[0].writes);
	assert_true(worker->pipes[0].writes && !worker->pipes[0].reads);
	assert_int_equal(trainer->pipes[0].read_looks, 1);
	assert_int_equal(worker->pipes[0].write_looks, 1);
	job_watch_close(watch);
}

/* A thread that did not run between two counts waits where it waited, and is not asked; one that ran is, and so is a
 * trainer. */
static void test_dormant(void **state)
{
	struct job_watch *watch = open_job(100);
	const struct job_thread *thread = &job_watch_record(watch)->threads[1];
	(void)state;
	fake_task(101, "schedstat", "700 300 5\n");
	set_call(101, SYS_futex, 0);
	fake_task(100, "schedstat", "900 100 3\n");
	set_call(100, SYS_futex, 0);
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT | JOB_STATES, 0);
	fake_task(101, "schedstat", "700 300 5\n");
	set_call(101, SYS_ioctl, 0);
	fake_task(100, "schedstat", "900 100 3\n");
	set_call(100, SYS_ioctl, 0);
	job_watch_look(watch, JOB_COUNT | JOB_STATES, 1);
	assert_int_equal(thread->tid, 101);
	assert_int_equal(thread->looks[JOB_WAITS_SEMAPHORE], 2);
	assert_int_equal(process_of(watch, 100)->looks[JOB_WAITS_DEVICE], 1);
	assert_float_equal(thread->last_s, 1, 0);
	fake_task(101, "schedstat", "500000700 300 6\n");
	job_watch_look(watch, JOB_COUNT | JOB_STATES, 2);
	assert_int_equal(thread->looks[JOB_WAITS_DEVICE], 1);
	assert_int_equal(process_of(watch, 101)->looks[JOB_WAITS_SEMAPHORE], 2);
	job_watch_close(watch);
}

/* One call after the other, each with the arguments that tell it apart. */
static void test_kinds_of_waits(void **state)
{
	static const struct {
		long call;
		const char *arguments;
		enum job_act act;
	} calls[] = {
		{SYS_futex, "0x7000 0x80 0x2 0x0", JOB_WAITS_LOCK}, /* glibc's mutex */
		{SYS_futex, "0x7000 0x86 0x0 0x0", JOB_WAITS_LOCK}, /* one with an owner (PI) */
		{SYS_futex, "0x7000 0x189 0x0 0x0", JOB_WAITS_CONDITION}, /* sem_wait of threads */
		{SYS_futex, "0x7000 0x89 0x0 0x7fff", JOB_WAITS_CONDITION},
		{SYS_futex, "0x7000 0x109 0x0 0x0", JOB_WAITS_SEMAPHORE},   /* of processes */
		{SYS_futex, "0x7000 0x109 0x312 0x0", JOB_WAITS_CONDITION}, /* joins a thread */
		{SYS_semtimedop, "0x1 0x7ff 0x1 0x0", JOB_WAITS_SEMAPHORE},
		{SYS_flock, "0x7 0x2 0x0 0x0", JOB_WAITS_FILE_LOCK},
		{SYS_fcntl, "0x7 0x7 0x7ff 0x0", JOB_WAITS_FILE_LOCK},
		{SYS_fcntl, "0x7 0x3 0x0 0x0", JOB_WAITS_OTHER},
		{SYS_pread64, "0x7 0x7ff 0x10 0x0", JOB_WAITS_READ},
		{SYS_write, "0x7 0x7ff 0x10 0x0", JOB_WAITS_WRITE},
		{SYS_fsync, "0x7 0x0 0x0 0x0", JOB_WAITS_SYNC},
		{SYS_read, "0x8 0x7ff 0x10 0x0", JOB_WAITS_INPUT},
		{SYS_clock_nanosleep, "0x0 0x0 0x7ff 0x0", JOB_WAITS_TIME},
		{SYS_io_uring_enter, "0x9 0x0 0x1 0x1", JOB_WAITS_RING},
	};
	struct job_watch *watch = open_job(100);
	const struct job_thread *thread = job_watch_record(watch)->threads;
	(void)state;
	fake_file("/data/out.pt", "x");
	fake_fd(100, 7, "/data/out.pt", "flags:\t02\nmnt_id:\t31\n");
	fake_fd(100, 8, "socket:[55]", "flags:\t02\n");
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 0);
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		char text[160];
		const uint32_t before = thread->looks[calls[i].act];
		(void)snprintf(text, sizeof text, "%ld %s 0x0 0x0 0x7ff 0x7ff\n", calls[i].call,
			calls[i].arguments);
		fake_task(100, "syscall", text);
		job_watch_look(watch, JOB_STATES, (double)i);
		assert_int_equal(thread->looks[calls[i].act], before + 1);
	}
	assert_int_equal(thread->tid, 100);
	assert_int_equal(process_of(watch, 100)->timed_semaphores, 0);
	/* Held by the kernel, in a call that says nothing of files. */
	fake_process(100, "train (x) y", 'D', 1, 100, 1000);
	fake_task(100, "syscall", "11 0x0 0x0 0x0 0x0 0x0 0x0 0x7ff 0x7ff\n");
	job_watch_look(watch, JOB_STATES, 20);
	assert_int_equal(thread->looks[JOB_WAITS_HELD], 1);
	/* The call may not be seen: the kernel's function says what it waits for. */
	fake_drop("/proc/100/task/100/syscall");
	fake_file("/proc/100/task/100/syscall/x", "");
	fake_task(100, "wchan", "locks_lock_inode_wait");
	job_watch_look(watch, JOB_STATES, 21);
	fake_task(100, "wchan", "hrtimer_nanosleep");
	job_watch_look(watch, JOB_STATES, 22);
	assert_int_equal(thread->looks[JOB_WAITS_FILE_LOCK], 3);
	assert_int_equal(thread->looks[JOB_WAITS_TIME], 2);
	assert_true(process_of(watch, 100)->vague && !process_of(watch, 100)->unknown[0]);
	fake_task(100, "wchan", "0"); /* nor that */
	job_watch_look(watch, JOB_STATES, 23);
	assert_non_null(strstr(process_of(watch, 100)->unknown, "what its threads wait for"));
	job_watch_close(watch);
}

static void fake_thread(int pid, int tid, char what, const char *call)
{
	char path[128];
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
	fake_stat(path, tid, "pool", what, pid, 1, 1000);
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, tid);
	fake_file(path, call);
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
	fake_file(path, "");
}

/* Threads that take turns at one place, whose two words a condition uses in turn, and more places than there is room for. */
static void test_futexes(void **state)
{
	char call[96];
	(void)state;
	fake_process(100, "train (x) y", 'R', 1, 100, 1000);
	(void)snprintf(
		call, sizeof call, "%ld 0x7f00 0x89 0x0 0x7fff 0x0 0x0 0x7 0x7\n", (long)SYS_futex);
	fake_thread(100, 111, 'S', call);
	(void)snprintf(
		call, sizeof call, "%ld 0x7f04 0x89 0x0 0x7fff 0x0 0x0 0x7 0x7\n", (long)SYS_futex);
	fake_thread(100, 112, 'S', call);
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	const struct job_process *process = record->processes;
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT | JOB_STATES, 0);
	job_watch_look(watch, JOB_STATES, 1);
	assert_int_equal(process->futexes[0].address, 0x7f00);
	assert_int_equal(process->futexes[0].waits, 4);
	assert_int_equal(process->futexes[0].timed, 4);
	assert_int_equal(process->futexes[0].looks, 2);
	assert_int_equal(process->futexes[0].most, 2);
	assert_int_equal(process->futexes[0].ran, 2);
	assert_int_equal(process->runnable, 2);
	for (size_t i = 0; i < record->thread_count; i++)
		if (record->threads[i].tid > 110 && record->threads[i].tid < 120)
			assert_int_equal(record->threads[i].futex, 0x7f00);
	for (unsigned i = 0; i < 3 * JOB_FUTEXES_MAX; i++) {
		(void)snprintf(call, sizeof call, "%ld 0x%x 0x89 0x0 0x0 0x0 0x0 0x7 0x7\n",
			(long)SYS_futex, 0x9000 + 64 * i);
		fake_thread(100, 112, 'S', call);
		job_watch_look(watch, JOB_STATES, 2 + i);
	}
	assert_int_equal(process->futexes[0].address, 0x7f00);
	assert_int_equal(process->futexes[0].waits, 4 + 3 * JOB_FUTEXES_MAX);
	job_watch_close(watch);
}

/* Affinity, switches, and what came back though it had been in memory. */
static void test_surroundings(void **state)
{
	struct job_watch *watch;
	(void)state;
	fake_task(101, "status",
		"Name:\tworker\nCpus_allowed:\t00000001,00000005\nvoluntary_ctxt_switches:\t7\n"
		"nonvoluntary_ctxt_switches:\t3\n");
	fake_file("/proc/101/cgroup", "4:memory:/job/one\n0::/\n");
	fake_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000000\n");
	fake_file("/sys/fs/cgroup/memory/job/memory.stat",
		"workingset_refault_file 1\ntotal_workingset_refault_anon 5\ntotal_workingset_refault_file 10\n");
	watch = open_job(101);
	const struct job_record *record = job_watch_record(watch);
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 0);
	assert_float_equal(record->memory_limit, 1e6, 0);
	assert_float_equal(job_allowed_cpus(record->processes), 3, 0);
	assert_int_equal(record->processes[0].cpus[0], (UINT64_C(1) << 32) + 5);
	fake_process(101, "worker", 'R', 100, 60, 1100);
	fake_task(101, "status",
		"Cpus_allowed:\t2\nvoluntary_ctxt_switches:\t27\nnonvoluntary_ctxt_switches:\t4\n");
	fake_file("/sys/fs/cgroup/memory/job/memory.stat",
		"total_workingset_refault_anon 5\ntotal_workingset_refault_file 12\n");
	job_watch_look(
		watch, JOB_COUNT, 1); /* one of the looks between which the long text is not read */
	assert_true(record->refault_file > 2 * 4095 && record->refault_swap <= 0);
	for (int i = 0; i < 8; i++) {
		fake_process(101, "worker", 'R', 100, 61 + (unsigned)i, 1100);
		job_watch_look(watch, JOB_COUNT, 2 + i);
	}
	const struct job_thread *thread = record->threads;
	assert_float_equal(job_grown(thread->first, thread->last, JOB_YIELDED), 20, 0);
	assert_float_equal(job_grown(thread->first, thread->last, JOB_PREEMPTED), 1, 0);
	assert_int_equal(record->processes[0].cpus[0], 2);
	job_watch_close(watch);
}

/* Workers that come and go until the table is full: nothing that they used is lost, and who comes finds room. */
static void test_generations(void **state)
{
	enum { GENERATIONS = JOB_PROCESSES_MAX };
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	double cpu_s = 0;
	double seconds = 0;
	uint32_t workers = 0;
	(void)state;
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 0);
	for (int g = 0; g < GENERATIONS; g++) {
		char children[64];
		for (int i = 0; i < 2; i++) /* 10 s old, and with 0.4 s of CPU time */
			fake_process(1000 + 2 * g + i, "epoch", 'S', 100, 40,
				5000 + 2000U * (unsigned)g);
		(void)snprintf(
			children, sizeof children, "101 102 %d %d ", 1000 + 2 * g, 1001 + 2 * g);
		fake_task(100, "children", children);
		job_watch_look(watch, JOB_CENSUS | JOB_COUNT | JOB_STATES, 20.0 * g + 10);
		for (int i = 0; i < 2; i++) {
			char folder[32];
			(void)snprintf(folder, sizeof folder, "/proc/%d", 1000 + 2 * g + i);
			fake_drop(folder);
		}
		job_watch_look(watch, JOB_COUNT, 20.0 * g + 19);
	}
	assert_int_equal(record->process_count, JOB_PROCESSES_MAX);
	assert_int_equal(record->no_room, 0);
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		if (strcmp(process->name, "epoch") != 0)
			continue;
		assert_true(process->gone);
		workers += process->stands_for ? process->stands_for : 1;
		cpu_s += job_grown(process->first, process->last, JOB_CPU_S);
		seconds += job_process_seconds(process);
	}
	/* The first two began with the watch, and what they had used then is not the watch's. */
	assert_int_equal(workers, 2 * GENERATIONS);
	assert_float_equal(cpu_s, 0.4 * 2 * (GENERATIONS - 1), 1e-6);
	assert_float_equal(seconds, 10.0 * 2 * (GENERATIONS - 1), 1e-6);
	job_watch_close(watch);
}

/* Kinds, sizes, depths and file systems: no name. */
static void test_files(void **state)
{
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	(void)state;
	fake_file("/data/a/one.JPG", "1234567890");
	fake_file("/data/a/two.jpg", "12345678901234567890");
	fake_file("/data/secret.person", "123");
	fake_fd(101, 3, "/data/a/one.JPG", "flags:\t0100000\nmnt_id:\t31\n");
	fake_fd(101, 4, "/data/secret.person", "flags:\t0100001\nmnt_id:\t30\n");
	fake_fd(102, 3, "/data/a/two.jpg", "flags:\t0100000\nmnt_id:\t31\n");
	fake_fd(102, 4, "/dev/nvidia3", "flags:\t02\n");
	fake_fd(102, 5, "/dev/nvidiactl", "flags:\t02\n");
	fake_fd(102, 6, "/dev/shm/torch_1", "flags:\t02\n");
	job_watch_look(watch, JOB_CENSUS | JOB_FILES, 0);
	job_watch_look(watch, JOB_FILES, 1);
	assert_int_equal(record->group_count, 2);
	const struct job_group *pictures =
		record->groups[0].written ? &record->groups[1] : &record->groups[0];
	const struct job_group *other =
		record->groups[0].written ? &record->groups[0] : &record->groups[1];
	assert_string_equal(pictures->kind, "jpg");
	assert_string_equal(pictures->system, "fuse.slow");
	assert_int_equal(pictures->files, 2);
	assert_int_equal(pictures->looks, 4);
	assert_float_equal(pictures->bytes, 30, 0);
	assert_float_equal(pictures->least, 10, 0);
	assert_float_equal(pictures->most, 20, 0);
	assert_string_equal(other->kind, "other");
	assert_string_equal(other->system, "ext4");
	assert_int_equal(process_of(watch, 101)->file_looks, 2);
	assert_true(process_of(watch, 102)->device);
	assert_int_equal(process_of(watch, 102)->devices, 8);
	assert_true(process_of(watch, 102)->shared_memory);
	job_watch_close(watch);
}

static void test_refusals(void **state)
{
	struct job_watch *watch = NULL;
	struct error err;
	struct job_watch_options options = {.root = fake_root, .pid = 999, .most_share = 1};
	(void)state;
	assert_int_equal(job_watch_open(&watch, &options, &err), -ESRCH);
	assert_non_null(strstr(err.text, "there is no process 999"));
	fake_process(300, "done", 'Z', 1, 1, 1);
	options.pid = 300;
	assert_int_equal(job_watch_open(&watch, &options, &err), -ESRCH);
	assert_non_null(strstr(err.text, "zombie"));
	assert_null(watch);
	fake_drop(
		"/proc/100/io"); /* what may not be read has a reason; here another than permission */
	fake_file("/proc/100/io/x", "");
	watch = open_job(100);
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT, 0);
	assert_non_null(strstr(process_of(watch, 100)->unknown, "bytes and calls: "));
	assert_true(isnan(process_of(watch, 100)->last[JOB_READ]));
	assert_float_equal(process_of(watch, 100)->last[JOB_CPU_S], 1, 1e-9);
	job_watch_close(watch);
}

/* Torn and strange texts, more processes and pipes than there is room for. */
static void test_bounds(void **state)
{
	char children[4096] = "";
	size_t used = 0;
	(void)state;
	for (int pid = 1000; pid < 1000 + JOB_PROCESSES_MAX + 10; pid++) {
		fake_process(pid, "many", 'S', 100, 1, 2000);
		used += (size_t)snprintf(children + used, sizeof children - used, "%d ", pid);
	}
	fake_task(100, "children", children);
	for (int fd = 0; fd < JOB_PIPES_MAX + 5; fd++) {
		char link[32];
		(void)snprintf(link, sizeof link, "pipe:[%d]", fd);
		fake_fd(100, fd, link, "flags:\t0\n");
	}
	fake_file("/proc/1000/stat", "1000 (torn");
	fake_file("/proc/1001/stat", ") (");
	fake_file("/proc/1002/io", "\xff\xfe");
	fake_task(1003, "syscall", "zzz");
	fake_task(1003, "schedstat", "-");
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT | JOB_STATES | JOB_FILES, 0);
	assert_int_equal(record->process_count, JOB_PROCESSES_MAX);
	assert_false(has_process(watch, 1000));
	assert_false(has_process(watch, 1001));
	for (int i = 0; i < 12; i++) /* some more at each look */
		job_watch_look(watch, JOB_FILES, i);
	assert_int_equal(process_of(watch, 100)->pipe_count, JOB_PIPES_MAX);
	assert_true(record->no_room >= 5);
	job_watch_close(watch);
	watch = open_job(101);
	record = job_watch_record(watch);
	for (unsigned i = 0; i < 2 * JOB_SERIES_MAX + 7; i++)
		job_watch_look(watch, JOB_COUNT, i);
	assert_true(record->moment_count <= JOB_SERIES_MAX);
	assert_float_equal(
		record->moments[record->moment_count - 1].t_s, 2 * JOB_SERIES_MAX + 6, 0);
	for (size_t i = 1; i < record->moment_count; i++)
		assert_true(record->moments[i].t_s > record->moments[i - 1].t_s);
	job_watch_close(watch);
}

/* Between two censuses: a child that is new, what it does at once, and when it ends; its parent's track is its own. */
static void test_lives(void **state)
{
	struct job_watch *watch = open_job(100);
	const struct job_record *record = job_watch_record(watch);
	(void)state;
	job_watch_look(watch, JOB_CENSUS | JOB_COUNT | JOB_STATES, 0);
	assert_int_equal(record->life_count, 3);
	assert_float_equal(record->lives[0].begun_s, -40, 1e-9); /* of 50 s of uptime */
	fake_process(103, "short", 'R', 100, 3, 5010);
	fake_bytes("/proc/103/environ", "A=1\0RANK=1\0WORLD_SIZE=2\0", 24);
	fake_task(100, "children", "101 102 103 ");
	job_watch_look(watch, JOB_BIRTHS, 0.25);
	const struct job_process *brief = process_of(watch, 103);
	assert_int_equal(brief->look_count, 1);
	assert_int_equal(brief->looks[JOB_RUNS], 1);
	assert_int_equal(brief->rank, 2); /* 1 + its rank */
	assert_int_equal(brief->world, 2);
	assert_int_equal(process_of(watch, 101)->rank, 0);
	fake_drop("/proc/103");
	job_watch_look(watch, JOB_STATES, 0.35);
	assert_true(brief->gone);
	assert_int_equal(record->life_count, 4);
	assert_string_equal(record->lives[3].name, "short");
	assert_float_equal(record->lives[3].begun_s, 0.1, 1e-9);
	assert_float_equal(record->lives[3].ended_s, 0.35, 1e-9);
	assert_true(isnan(record->lives[0].ended_s));
	/* One of all others, one of the trainer; where the watch is long, their bins are wide. */
	assert_int_equal(record->track_count, 2);
	assert_int_equal(record->tracks[1].pid, 100);
	assert_int_equal(record->tracks[0].looks[2][JOB_RUNS], 1);
	job_watch_look(watch, JOB_STATES, 100);
	assert_true(record->bin_s * JOB_BINS_MAX > 100);
	assert_int_equal(record->tracks[0].looks[1][JOB_RUNS], 1);
	job_watch_close(watch);
}

static void test_rank_names(void **state)
{
	static const char several[] = "SLURM_PROCID=7\0SLURM_NTASKS=8\0OMPI_COMM_WORLD_RANK=3";
	static const char wrong[] = "RANK=x\0LOCAL_RANK=\0PMI_RANK=-1\0XRANK=4";
	int32_t world;
	(void)state;
	assert_int_equal(job_lives_rank(several, sizeof several, &world), 3);
	assert_int_equal(world, -1);
	/* Without the zero at its end the last one may be torn. */
	assert_int_equal(job_lives_rank(several, sizeof several - 1, &world), 7);
	assert_int_equal(world, 8);
	assert_int_equal(job_lives_rank(wrong, sizeof wrong, &world), -1);
	assert_int_equal(job_lives_rank("", 0, &world), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tree_and_counts, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_no_wait_beyond_the_time, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_comes_and_goes, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_states, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_dormant, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_kinds_of_waits, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_futexes, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_surroundings, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_generations, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_lives, job_up, job_down),
		cmocka_unit_test(test_rank_names),
		cmocka_unit_test_setup_teardown(test_files, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_refusals, job_up, job_down),
		cmocka_unit_test_setup_teardown(test_bounds, job_up, job_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
