/* Roles and verdicts of records made by hand: what a job's processes do decides, and never their names. */
#include "harness/analyze/job_verdict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LOOKS = 100 };

static struct job_process processes[JOB_PROCESSES_MAX];
static struct job_thread threads[JOB_PROCESSES_MAX];
static struct job_moment moments[32];
static struct job_record record;
static struct job_verdict verdict;

static int empty_record(void **state)
{
	(void)state;
	memset(processes, 0, sizeof processes);
	memset(threads, 0, sizeof threads);
	record = (struct job_record){.pid = 10,
		.watched_s = 10,
		.ended_s = NAN,
		.states = LOOKS,
		.processes = processes,
		.threads = threads,
		.moments = moments,
		.node_cores = NAN,
		.node_busy_cores = NAN,
		.allowed_cpus = NAN,
		.quota_cores = INFINITY,
		.throttled = NAN,
		.refault_file = NAN,
		.refault_swap = NAN,
		.memory_limit = INFINITY};
	return 0;
}

/* Seconds of CPU time and run-queue wait in 10 s; one thread. */
static struct job_process *add(int pid, int parent, double cpu_s, double queue_s)
{
	struct job_process *process = &processes[record.process_count];
	struct job_thread *thread = &threads[record.thread_count++];
	*process = (struct job_process){.pid = pid,
		.parent = parent,
		.last_s = 10,
		.begun_s = -100,
		.look_count = LOOKS,
		.open_looks = 10};
	*thread = (struct job_thread){
		.tid = pid, .process = (uint32_t)record.process_count++, .last_s = 10};
	process->last[JOB_CPU_S] = thread->last[JOB_CPU_S] = cpu_s;
	thread->last[JOB_QUEUE_S] = queue_s;
	return process;
}

static void does(struct job_process *process, enum job_act act, uint32_t looks)
{
	process->looks[act] += looks;
	threads[process - processes].looks[act] += looks;
}

/* Ascending by number, each once. */
static void hold(struct job_process *process, const struct job_pipe *pipe)
{
	size_t at = process->pipe_count;
	while (at > 0 && process->pipes[at - 1].number >= pipe->number)
		at--;
	struct job_pipe *place = &process->pipes[at];
	if (at < process->pipe_count && place->number == pipe->number) {
		place->reads = place->reads || pipe->reads;
		place->writes = place->writes || pipe->writes;
		place->read_looks += pipe->read_looks;
		return;
	}
	memmove(place + 1, place, (process->pipe_count++ - at) * sizeof *place);
	*place = *pipe;
}

static void joined(
	struct job_process *reader, struct job_process *writer, uint64_t number, uint32_t waits)
{
	hold(reader, &(struct job_pipe){.number = number, .reads = true, .read_looks = waits});
	hold(writer, &(struct job_pipe){.number = number, .writes = true});
}

/* A launcher (9), a trainer (10) and two workers, with pipes both ways. */
static void loaders(
	uint32_t trainer_waits, enum job_act work, uint32_t works, uint32_t idle, double queue_s)
{
	struct job_process *launcher = add(9, 1, 0, 0);
	struct job_process *trainer = add(10, 9, 1, 0);
	does(launcher, JOB_WAITS_CHILD, LOOKS);
	joined(launcher, trainer, 900, 0); /* its output */
	does(trainer, JOB_WAITS_INPUT, trainer_waits);
	does(trainer, JOB_WAITS_TIME, LOOKS - trainer_waits);
	for (int i = 0; i < 2; i++) {
		struct job_process *worker =
			add(11 + i, 10, work == JOB_RUNS ? works / 10.0 : 0.1, queue_s);
		does(worker, work, works);
		does(worker, JOB_WAITS_POLL, idle);
		does(worker, work == JOB_RUNS ? JOB_WAITS_OTHER : JOB_RUNS, LOOKS - works - idle);
		joined(worker, &processes[1], 100 + (uint64_t)i, idle);
		joined(&processes[1], worker, 200 + (uint64_t)i, trainer_waits / 2);
		worker->last[JOB_READ] = 10e6;
	}
	job_verdict_find(&record, NULL, &verdict);
}

static void assert_verdict(const char *stage, const char *resource)
{
	assert_string_equal(verdict.stage, stage);
	assert_string_equal(verdict.resource, resource);
	/* The runbook has an entry of its own for it. */
	assert_true((job_entry_find(&verdict) == &job_entries[0]) ==
		    (strcmp(stage, "unknown") == 0 && !verdict.still));
	assert_true(verdict.words[0]);
}

static void test_roles(void **state)
{
	struct job_edge edges[8];
	(void)state;
	loaders(80, JOB_RUNS, 90, 5, 0);
	assert_int_equal(verdict.roles[0], JOB_ROLE_HELPER);
	assert_int_equal(verdict.roles[1], JOB_ROLE_TRAINER);
	assert_int_equal(verdict.roles[2], JOB_ROLE_LOADER);
	assert_int_equal(verdict.roles[3], JOB_ROLE_LOADER);
	assert_int_equal(verdict.boss[2], 1);
	assert_int_equal(job_edges(&record, edges, 8), 4);
	assert_int_equal(edges[0].from, 1); /* most first: the trainer waits for its loaders */
	assert_true(edges[0].share > edges[3].share);
	assert_int_equal(job_edges(&record, edges, 1), 1);
}

static void test_two_sides(void **state)
{
	(void)state;
	loaders(80, JOB_RUNS, 90, 5, 0.2);
	assert_verdict("loader", "cpu");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	(void)empty_record(state);
	loaders(80, JOB_RUNS, 60, 5, 4);
	assert_verdict("loader", "cores");
	(void)empty_record(state);
	loaders(80, JOB_WAITS_READ, 90, 5, 0);
	assert_verdict("read", "latency or device"); /* never one of them: one operating point */
	(void)empty_record(state);
	loaders(80, JOB_WAITS_LOCK, 90, 0, 0);
	assert_verdict("loader", "lock");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	/* The kind is named; a lock on a file is never CPU time. */
	(void)empty_record(state);
	loaders(80, JOB_WAITS_FILE_LOCK, 45, 0, 0);
	assert_verdict("loader", "lock");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	assert_non_null(strstr(verdict.words, "locks on files (flock, fcntl)"));
	(void)empty_record(state);
	loaders(80, JOB_WAITS_SEMAPHORE, 45, 0, 0);
	assert_non_null(strstr(verdict.words, "semaphores that processes share"));
	/* A semaphore may be that of a queue, where any of them waits for work: with a time-out where it polls.  A mutex is not. */
	(void)empty_record(state);
	loaders(80, JOB_WAITS_SEMAPHORE, 45, 10, 0);
	assert_verdict("loader", "lock");
	for (int i = 2; i < 4; i++)
		processes[i].timed_semaphores = 45;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("unknown", "unknown");
	(void)empty_record(state);
	loaders(80, JOB_WAITS_FILE_LOCK, 45, 10, 0);
	assert_verdict("loader", "lock");
	/* Some wait for the one that waits for the lock, since batches are delivered in order. */
	(void)empty_record(state);
	loaders(80, JOB_WAITS_FILE_LOCK, 25, 35, 0);
	assert_verdict("loader", "lock");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	/* Two take turns: one waits at any moment, and none more than half of its time. */
	(void)empty_record(state);
	loaders(80, JOB_WAITS_LOCK, 40, 0, 0);
	assert_verdict("loader", "lock");
	(void)empty_record(state);
	loaders(80, JOB_WAITS_LOCK, 20, 0, 0);
	assert_verdict("loader", "cpu");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	(void)empty_record(state);
	loaders(80, JOB_WAITS_LOCK, 25, 0, 0); /* so few looks do not exclude a lock */
	assert_verdict("loader", "cpu");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	assert_non_null(strstr(verdict.unknown.of[0], "whether a lock limits them"));
	(void)empty_record(state);
	loaders(2, JOB_RUNS, 10, 85, 0);
	assert_verdict("step", "unknown");
	(void)empty_record(state);
	loaders(80, JOB_WAITS_OTHER, 90, 5, 0); /* what they do is not seen, which is no CPU time */
	assert_verdict("unknown", "unknown");
	(void)empty_record(state);
	loaders(80, JOB_WAITS_NETWORK, 90, 5, 0);
	assert_verdict("read", "latency or device");
	(void)empty_record(state);
	loaders(5, JOB_RUNS, 90, 5, 0);
	assert_verdict("loader and step", "unknown");
	(void)empty_record(state);
	loaders(60, JOB_RUNS, 30, 60, 0); /* both wait */
	assert_verdict("unknown", "unknown");
	assert_int_equal(verdict.certainty, JOB_UNKNOWN);
}

/* One of two workers is at it all the time, and the other has nothing to do until it is done. */
static void test_one_worker_holds_up(void **state)
{
	for (int kept = 0; kept < 2; kept++) {
		(void)empty_record(state);
		struct job_process *trainer = add(10, 1, 1, 0);
		does(trainer, JOB_WAITS_INPUT, LOOKS * 4 / 5);
		for (int i = 0; i < 2; i++) {
			struct job_process *worker = add(11 + i, 10, i || kept ? 0.5 : 9, 0);
			does(worker, JOB_RUNS, i ? LOOKS / 20 : LOOKS * 9 / 10);
			does(worker, JOB_WAITS_POLL, i ? LOOKS * 19 / 20 : LOOKS / 10);
			joined(trainer, worker, 200 + (uint64_t)i, LOOKS / 2);
			joined(worker, trainer, 300 + (uint64_t)i, LOOKS / 2);
		}
		/* It works, or it waits for a core that somebody else has. */
		threads[1].last[JOB_QUEUE_S] = kept ? 8.5 : 0.1;
		job_verdict_find(&record, NULL, &verdict);
		assert_verdict("loader", kept ? "cores" : "imbalance");
	}
}

/* All of them wait for cores: neither is balanced against the other. */
static void test_no_cores(void **state)
{
	(void)state;
	loaders(5, JOB_RUNS, 60, 5, 4);
	threads[1].last[JOB_QUEUE_S] = 8; /* the trainer's */
	record.quota_cores = 0.1;
	record.throttled = 0.9;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader and step", "quota");
	assert_non_null(strstr(verdict.next.of[0], "raise the CPU quota"));
	record.throttled = 0;
	record.quota_cores = INFINITY;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader and step", "cores");
	assert_non_null(strstr(verdict.next.of[0], "look for a CPU quota"));
}

static bool others_are_told(void)
{
	for (size_t i = 0; i < verdict.unknown.count; i++)
		if (strstr(verdict.unknown.of[i], "other processes kept 1.0 of 2 cores busy"))
			return true;
	return false;
}

/* Who has the cores that are missing. */
static void test_kinds_of_cores(void **state)
{
	(void)state;
	loaders(80, JOB_RUNS, 60, 5, 4);
	/* 1 core, with the trainer's 0.1. */
	threads[2].last[JOB_CPU_S] = processes[2].last[JOB_CPU_S] = 3;
	threads[2].last[JOB_QUEUE_S] = 6;
	record.node_cores = record.allowed_cpus = 2;
	record.node_busy_cores = 2;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "external");
	assert_true(others_are_told());
	threads[2].last[JOB_QUEUE_S] = 2; /* for less time than it has a core */
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "cpu");
	assert_true(others_are_told());
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	threads[2].last[JOB_QUEUE_S] = 6;
	/* The same on all cores but for those of a mask. */
	record.node_cores = 8;
	for (size_t i = 0; i < record.process_count; i++)
		processes[i].cpus[0] = 1;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "affinity");
	for (size_t i = 0; i < record.process_count; i++)
		processes[i].cpus[0] = 0xff;
	/* Nobody but the job uses the cores, with two threads on each: its work is what takes them. */
	record.node_cores = 1.4;
	record.node_busy_cores = 1.1;
	processes[2].runnable = processes[3].runnable = LOOKS;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "cpu");
	processes[2].runnable = processes[3].runnable = 32 * LOOKS;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "threads");
	assert_false(others_are_told());
	assert_non_null(strstr(verdict.next.of[verdict.next.count - 1], "OMP_NUM_THREADS"));
	record.quota_cores = 1;
	record.throttled = 0.8;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "quota");
}

/* Reads that come back from the device though the files had been in memory, and pages that come back from swap. */
static void test_short_memory(void **state)
{
	(void)state;
	loaders(80, JOB_WAITS_READ, 90, 5, 0);
	for (int i = 2; i < 4; i++)
		processes[i].last[JOB_DISK_READ] = 10e6;
	record.refault_file = 2e6;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("read", "latency or device");
	record.refault_file = 15e6;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("read", "cache");
	(void)empty_record(state);
	loaders(80, JOB_WAITS_FAULT, 90, 5, 0); /* of a file that is mapped */
	assert_verdict("read", "latency or device");
	record.refault_swap = 1e9;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "memory");
}

/* On a node of too few cores, workers that have work all the time get hardly any CPU time, and read hardly a file. */
static void test_roles_without_cores(void **state)
{
	(void)state;
	struct job_process *trainer = add(10, 1, 0.1, 0);
	does(trainer, JOB_WAITS_INPUT, LOOKS);
	for (int i = 0; i < 2; i++) {
		struct job_process *worker = add(11 + i, 10, 0.1, 9.8);
		does(worker, JOB_RUNS, LOOKS);
		joined(trainer, worker, 200 + (uint64_t)i, LOOKS / 2);
		worker->last[JOB_WRITTEN] = 1000; /* one result */
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.roles[0], JOB_ROLE_TRAINER);
	assert_true(verdict.roles[1] == JOB_ROLE_LOADER && verdict.roles[2] == JOB_ROLE_LOADER);
	assert_verdict("loader", "cores");
}

/* Two jobs of one launcher: the mean of both is neither's. */
static void test_two_trainers(void **state)
{
	(void)state;
	loaders(95, JOB_RUNS, 90, 5, 0.2);
	struct job_process *other = add(20, 9, 1, 0);
	struct job_process *worker = add(21, 20, 0.1, 0);
	does(other, JOB_WAITS_TIME, LOOKS);
	does(worker, JOB_WAITS_POLL, LOOKS);
	joined(worker, other, 300, LOOKS);
	joined(other, worker, 400, 1);
	worker->last[JOB_READ] = 10e6;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("unknown", "unknown");
	assert_non_null(strstr(
		verdict.words, "process 10 waits for data 95 % of the time, and process 20 0 %"));
	assert_non_null(strstr(verdict.next.of[0], "10 and 20"));
	other->looks[JOB_WAITS_TIME] = 0; /* ranks of one job */
	does(other, JOB_WAITS_INPUT, LOOKS);
	job_verdict_find(&record, NULL, &verdict);
	assert_string_not_equal(verdict.stage, "unknown");
}

/* A job that begins while it is watched: what it reads and does until its loaders are there is no training. */
static void test_start(void **state)
{
	(void)state;
	loaders(80, JOB_RUNS, 90, 5, 0.2);
	record.groups[record.group_count++] =
		(struct job_group){.system = "ext4", .kind = "jpg", .files = 10, .bytes = 1e6};
	processes[1].file_looks = 1;
	processes[1].last[JOB_READ] = 500e6; /* libraries */
	processes[2].file_looks = processes[3].file_looks = 5;
	job_verdict_find(&record, NULL, &verdict);
	assert_float_equal(verdict.files_per_s, 20, 1e-6); /* of the two workers alone */
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	processes[2].first_s = processes[3].first_s = 7;
	job_verdict_find(&record, NULL, &verdict);
	assert_true(isnan(verdict.files_per_s) && strstr(verdict.files_why, "start"));
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	processes[2].gone = true; /* of an epoch before */
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.certainty, JOB_LIKELY);
}

/* A parent and two that read on their own, with a pipe or a socket that the fork inherited: nothing goes over it. */
static void readers_with(bool socket)
{
	struct job_process *parent = add(10, 1, 0, 0);
	does(parent, JOB_WAITS_TIME, LOOKS);
	for (int i = 0; i < 2; i++) {
		struct job_process *reader = add(11 + i, 10, 1, 0);
		does(reader, JOB_WAITS_READ, 90);
		joined(parent, reader, 5, 0);
		joined(reader, parent, 5, 0);
		reader->last[JOB_WRITTEN] = socket ? 1e6 : 0;
	}
	for (size_t i = 0; i < record.process_count; i++)
		for (size_t k = 0; k < processes[i].pipe_count; k++)
			processes[i].pipes[k].socket = socket;
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.roles[0], JOB_ROLE_HELPER);
	assert_int_equal(verdict.roles[1], JOB_ROLE_WHOLE);
	assert_int_equal(verdict.roles[2], JOB_ROLE_WHOLE);
	assert_verdict("read", "latency or device");
}

static void test_inherited(void **state)
{
	readers_with(true);
	(void)empty_record(state);
	readers_with(false);
}

/* A trainer that is on a core all the time may compute, or spin for its GPU. */
static void step_with_gpu(double busy, const char *resource)
{
	struct job_gpu gpu = {.device = {.busy_share = busy}};
	const struct job_places places = {.gpus = &gpu, .gpu_count = 1};
	(void)empty_record(NULL);
	loaders(0, JOB_RUNS, 10, 90, 0);
	processes[1].device = true;
	processes[1].last[JOB_CPU_S] = record.watched_s;
	processes[1].looks[JOB_WAITS_TIME] = threads[1].looks[JOB_WAITS_TIME] = 0;
	does(&processes[1], JOB_RUNS, LOOKS);
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("step", "cpu");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE); /* what it computes was not sampled */
	job_verdict_weigh_devices(&record, &places, &verdict);
	assert_verdict("step", resource);
}

static void test_devices(void **state)
{
	(void)state;
	step_with_gpu(0.97, "compute");
	step_with_gpu(0.78, "unknown");
	step_with_gpu(0.2, "cpu");
	step_with_gpu(NAN, "unknown");
}

static void test_few_looks(void **state)
{
	(void)state;
	record.states = 12;
	loaders(80, JOB_RUNS, 90, 5, 0);
	assert_verdict("unknown", "unknown");
	assert_non_null(strstr(verdict.words, "Too few looks"));
}

static struct job_thread *pool_thread(int tid, double cpu_s)
{
	struct job_thread *thread = &threads[record.thread_count++];
	*thread = (struct job_thread){.tid = tid, .last_s = 10};
	thread->last[JOB_CPU_S] = cpu_s;
	return thread;
}

static void test_one_process(void **state)
{
	(void)state;
	does(add(10, 1, 0.5, 0), JOB_WAITS_READ, 95);
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.roles[0], JOB_ROLE_WHOLE);
	assert_verdict("read", "latency or device");
	(void)empty_record(state);
	does(add(10, 1, 9.5, 0), JOB_RUNS, 95);
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("process", "cpu");
	/* So crowded a node that its thread hardly ever gets a core. */
	(void)empty_record(state);
	does(add(10, 1, 0.3, 9.5), JOB_RUNS, 95);
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("process", "cores");
	(void)empty_record(state);
	does(add(10, 1, 1, 0), JOB_WAITS_TIME, 90);
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("unknown", "unknown");
	/* A pool of threads of which the first one works all the time, and the others wait for it. */
	(void)empty_record(state);
	does(add(10, 1, 9.5, 0), JOB_RUNS, 100);
	for (int i = 0; i < 3; i++) {
		struct job_thread *thread = pool_thread(20 + i, 1);
		thread->looks[JOB_RUNS] = 10;
		thread->looks[JOB_WAITS_CONDITION] = 90;
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("step", "cpu");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	/* The first one waits for the others, which work; then for one of them. */
	threads[0].looks[JOB_RUNS] = 0;
	threads[0].looks[JOB_WAITS_CONDITION] = 100;
	for (int i = 1; i < 4; i++) {
		threads[i].looks[JOB_RUNS] = 90;
		threads[i].looks[JOB_WAITS_CONDITION] = 10;
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "cpu");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	for (int i = 2; i < 4; i++) {
		threads[i].looks[JOB_RUNS] = 10;
		threads[i].looks[JOB_WAITS_CONDITION] = 90;
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "cpu");
	assert_non_null(strstr(verdict.words, "One thread of the process"));
	/* They wait for a mutex. */
	for (int i = 1; i < 4; i++) {
		threads[i].looks[JOB_RUNS] = 34;
		threads[i].looks[JOB_WAITS_CONDITION] = 0;
		threads[i].looks[JOB_WAITS_LOCK] = 66;
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("loader", "lock");
}

/* Four threads of one interpreter, of which one runs at a time, and the first thread that waits for them. */
static void turns(uint32_t timed, double cores)
{
	(void)empty_record(NULL);
	struct job_process *process = add(10, 1, 0.1, 0);
	does(process, JOB_WAITS_CONDITION, LOOKS);
	for (int i = 0; i < 4; i++) {
		struct job_thread *thread = pool_thread(20 + i, 10 * cores / 4);
		thread->looks[JOB_RUNS] = 25;
		thread->looks[timed ? JOB_WAITS_TURN : JOB_WAITS_CONDITION] = 75;
		thread->futex = 0x7f00;
		thread->futex_votes = 75;
	}
	process->futexes[0] = (struct job_futex){.address = 0x7f00,
		.waits = 300,
		.timed = timed,
		.looks = LOOKS,
		.ran = LOOKS,
		.most = 3,
		.squares = 9 * LOOKS,
		.several = true};
	record.allowed_cpus = 8;
	job_verdict_find(&record, NULL, &verdict);
}

static void test_turns(void **state)
{
	(void)state;
	turns(300, 1);
	assert_verdict("loader", "gil");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	assert_non_null(strstr(verdict.words, "4 threads use 1.00 cores in sum, and 3.0 of them"));
	record.allowed_cpus = 1; /* one core gives no more without the lock */
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	turns(300, 0.3); /* they have not work enough */
	assert_string_not_equal(verdict.resource, "gil");
	/* Always all but one wait, without a time-out: a lock of its own.  Now more and now fewer: a queue. */
	turns(0, 1);
	assert_verdict("loader", "lock");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	processes[0].futexes[0].squares = 11 * LOOKS;
	job_verdict_find(&record, NULL, &verdict);
	assert_string_not_equal(verdict.resource, "lock");
}

/* A trainer that has the work while its loaders have none: by what its first thread does, and by its CPU time's classes. */
static uint64_t trainer_classes[JOB_PROCESSES_MAX][JOB_CLASSES];
static const struct job_profile trainer_profile = {.classes = trainer_classes, .samples = 1000};

static void trainer_does(enum job_act act, enum job_class class, const char *stage,
	const char *resource, enum job_certainty certainty)
{
	memset(trainer_classes, 0, sizeof trainer_classes);
	trainer_classes[1][class] = 900;
	trainer_classes[1][JOB_CLASS_LIBC] = 100;
	(void)empty_record(NULL);
	loaders(0, JOB_RUNS, 10, 90, 0);
	struct job_thread *first = &threads[1];
	processes[1].last[JOB_CPU_S] = first->last[JOB_CPU_S] = act == JOB_RUNS ? 9 : 1;
	memset(processes[1].looks, 0, sizeof processes[1].looks);
	memset(first->looks, 0, sizeof first->looks);
	does(&processes[1], act, LOOKS * 9 / 10);
	does(&processes[1], JOB_WAITS_TIME, LOOKS / 10);
	job_verdict_find(&record, &trainer_profile, &verdict);
	assert_verdict(stage, resource);
	assert_int_equal(verdict.certainty, certainty);
}

static void test_trainer(void **state)
{
	(void)state;
	trainer_does(JOB_RUNS, JOB_CLASS_PYTHON, "trainer", "cpu", JOB_LIKELY);
	trainer_does(JOB_RUNS, JOB_CLASS_DECODE, "trainer", "cpu", JOB_LIKELY);
	trainer_does(JOB_RUNS, JOB_CLASS_BLAS, "step", "cpu", JOB_LIKELY);
	trainer_does(JOB_RUNS, JOB_CLASS_SERIAL, "trainer", "hand-over", JOB_LIKELY);
	trainer_does(JOB_WAITS_SYNC, JOB_CLASS_PYTHON, "step", "write", JOB_LIKELY);
	trainer_does(JOB_WAITS_WRITE, JOB_CLASS_PYTHON, "step", "write", JOB_LIKELY);
	trainer_does(JOB_WAITS_TIME, JOB_CLASS_PYTHON, "step", "unknown", JOB_LIKELY);
	trainer_does(JOB_RUNS, JOB_CLASS_OTHER, "step", "cpu", JOB_POSSIBLE); /* whatever that is */
	/* What it writes goes to pipes and sockets, or to storage. */
	trainer_does(JOB_RUNS, JOB_CLASS_WRITE, "trainer", "hand-over", JOB_LIKELY);
	processes[1].first[JOB_WRITTEN] = processes[1].first[JOB_DISK_WRITTEN] = 0;
	processes[1].last[JOB_WRITTEN] = 5e9;
	processes[1].last[JOB_DISK_WRITTEN] = 4e9;
	job_verdict_find(&record, &trainer_profile, &verdict);
	assert_verdict("step", "write");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	/* The step's own pace takes most of the time, and what the trainer does between two steps enough. */
	trainer_does(JOB_RUNS, JOB_CLASS_PYTHON, "trainer", "cpu", JOB_LIKELY);
	processes[1].looks[JOB_RUNS] = threads[1].looks[JOB_RUNS] = LOOKS * 4 / 10;
	processes[1].looks[JOB_WAITS_TIME] = threads[1].looks[JOB_WAITS_TIME] = LOOKS * 6 / 10;
	job_verdict_find(&record, &trainer_profile, &verdict);
	assert_verdict("trainer", "cpu");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	processes[1].looks[JOB_RUNS] = threads[1].looks[JOB_RUNS] = LOOKS / 10;
	processes[1].looks[JOB_WAITS_TIME] = threads[1].looks[JOB_WAITS_TIME] = LOOKS * 9 / 10;
	job_verdict_find(&record, &trainer_profile, &verdict);
	assert_verdict("step", "unknown");
	/* With a GPU open a thread that waits for it may spin in any code. */
	trainer_does(JOB_RUNS, JOB_CLASS_PYTHON, "trainer", "cpu", JOB_LIKELY);
	processes[1].device = true;
	job_verdict_find(&record, &trainer_profile, &verdict);
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	/* Both wait: the workers for room in the pipe, the trainer for the rest of what it reads. */
	(void)empty_record(NULL);
	loaders(60, JOB_WAITS_OUTPUT, 70, 0, 0);
	assert_verdict("trainer", "hand-over");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
}

/* Workers whose CPU time goes into what they hand over. */
static void test_workers_hand_over(void **state)
{
	static uint64_t classes[JOB_PROCESSES_MAX][JOB_CLASSES];
	const struct job_profile profile = {.classes = classes, .samples = 1000};
	(void)state;
	classes[2][JOB_CLASS_SERIAL] = 300;
	classes[3][JOB_CLASS_COPY] = 300;
	classes[3][JOB_CLASS_PYTHON] = 400;
	loaders(80, JOB_RUNS, 90, 5, 0.2);
	job_verdict_find(&record, &profile, &verdict);
	assert_verdict("trainer", "hand-over");
	classes[3][JOB_CLASS_COPY] = 30;
	job_verdict_find(&record, &profile, &verdict);
	assert_verdict("loader", "cpu");
}

/* Loaders that sleep are not short of CPU time. */
static void test_sleeping(void **state)
{
	(void)state;
	loaders(80, JOB_WAITS_TIME, 90, 5, 0);
	assert_verdict("loader", "wait");
}

/* Workers that hang on socket pairs instead of pipes; a socket that all inherited joins nobody. */
static void test_sockets(void **state)
{
	struct job_edge edges[4];
	(void)state;
	struct job_process *trainer = add(10, 1, 1, 0);
	does(trainer, JOB_WAITS_INPUT, 80);
	for (int i = 0; i < 2; i++) {
		struct job_process *worker = add(20 + i, 10, 9, 0);
		const uint64_t near = 500 + 2 * (uint64_t)i;
		does(worker, JOB_RUNS, 95);
		worker->last[JOB_READ] = 10e6;
		worker->last[JOB_WRITTEN] = 1e6;
		hold(trainer, &(struct job_pipe){.number = near,
				      .peer = near + 1,
				      .socket = true,
				      .reads = true,
				      .writes = true,
				      .read_looks = 40});
		hold(worker, &(struct job_pipe){.number = near + 1,
				     .peer = near,
				     .socket = true,
				     .reads = true,
				     .writes = true});
		hold(worker, &(struct job_pipe){
				     .number = 7, .socket = true, .reads = true, .writes = true});
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.roles[0], JOB_ROLE_TRAINER);
	assert_int_equal(verdict.roles[1], JOB_ROLE_LOADER);
	assert_int_equal(verdict.roles[2], JOB_ROLE_LOADER);
	assert_int_equal(job_edges(&record, edges, 4), 2);
}

static void test_still(void **state)
{
	(void)state;
	does(add(10, 1, 0, 0), JOB_WAITS_LOCK, LOOKS);
	job_verdict_find(&record, NULL, &verdict);
	assert_true(verdict.still);
	assert_int_equal(verdict.certainty, JOB_UNKNOWN);
	record.ended_s = 5; /* what is over hangs no more */
	job_verdict_find(&record, NULL, &verdict);
	assert_false(verdict.still);
	record.ended_s = NAN;
	record.watched_s = 1; /* too short to say so */
	job_verdict_find(&record, NULL, &verdict);
	assert_false(verdict.still);
	/* It has work, and others have the cores. */
	record.watched_s = 10;
	threads[0].last[JOB_QUEUE_S] = 9;
	job_verdict_find(&record, NULL, &verdict);
	assert_false(verdict.still);
	threads[0].last[JOB_QUEUE_S] = 0;
	processes[0].looks[JOB_RUNS] = LOOKS;
	job_verdict_find(&record, NULL, &verdict);
	assert_false(verdict.still);
	processes[0].looks[JOB_RUNS] = 0;
	/* Its workers still ask their queues. */
	record.watched_s = 10;
	processes[0].last[JOB_CPU_S] = 5;
	processes[0].looks[JOB_WAITS_LOCK] = 0;
	processes[0].looks[JOB_STOPPED] = LOOKS;
	job_verdict_find(&record, NULL, &verdict);
	assert_true(verdict.still && strstr(verdict.words, "kill -CONT 10"));
}

static void test_estimates(void **state)
{
	struct job_process *process = add(10, 1, 5, 0);
	(void)state;
	process->file_looks = 5;
	process->last[JOB_READ] = 10e6;
	job_verdict_find(&record, NULL, &verdict);
	assert_true(isnan(verdict.files_per_s) && isnan(verdict.growth));
	assert_true(verdict.files_why[0]);
	record.groups[record.group_count++] = (struct job_group){
		.system = "ext4", .kind = "jpg", .files = 10, .bytes = 1e6, .least = 1, .most = 1};
	record.groups[record.group_count++] = (struct job_group){
		.system = "ext4", .kind = "jpg", .files = 10, .bytes = 1e9, .written = true};
	for (unsigned i = 0; i < 30; i++)
		moments[record.moment_count++] =
			(struct job_moment){.t_s = i, .resident = i < 10 ? 1e9 : 1000.0 * i};
	job_verdict_find(&record, NULL, &verdict);
	assert_float_equal(verdict.files_per_s, 10, 1e-6); /* 10 MB of 100 KB files in 10 s */
	assert_float_equal(verdict.growth, 1000, 1e-3);
}

/* Classes of the loaders' CPU time, the most first; of few samples nothing is said. */
static void test_cpu_classes(void **state)
{
	static uint64_t classes[JOB_PROCESSES_MAX][JOB_CLASSES];
	struct job_profile profile = {.classes = classes, .samples = 1000};
	(void)state;
	memset(classes, 0, sizeof classes);
	classes[2][JOB_CLASS_RESIZE] = 300;
	classes[3][JOB_CLASS_DECODE] = 100;
	classes[1][JOB_CLASS_BLAS] = 600; /* the trainer's */
	loaders(80, JOB_RUNS, 90, 5, 0.2);
	job_verdict_find(&record, &profile, &verdict);
	assert_verdict("loader", "cpu");
	bool told = false;
	for (size_t i = 0; i < verdict.evidence.count; i++)
		told = told ||
		       strstr(verdict.evidence.of[i],
			       "resize and transforms 75 %, image decoding 25 % (400 samples)");
	assert_true(told);
	assert_non_null(strstr(verdict.next.of[verdict.next.count - 1], "resize and transforms"));
	memset(classes, 0, sizeof classes);
	classes[2][JOB_CLASS_RESIZE] = 3;
	job_verdict_find(&record, &profile, &verdict);
	for (size_t i = 0; i < verdict.evidence.count; i++)
		assert_null(strstr(verdict.evidence.of[i], "samples)"));
}

static void test_hidden(void **state)
{
	struct job_process *process = add(10, 1, 5, 0);
	(void)state;
	(void)strcpy(process->unknown, "open files: Permission denied");
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("unknown", "unknown");
	assert_non_null(strstr(verdict.words, "Permission denied"));
	/* Calls alone are not seen: a lock is one condition among others, and no cause. */
	(void)empty_record(state);
	loaders(80, JOB_WAITS_CONDITION, 90, 0, 0);
	processes[2].vague = true;
	job_verdict_find(&record, NULL, &verdict);
	assert_verdict("unknown", "unknown");
	assert_non_null(strstr(verdict.unknown.of[0], "kernel.yama.ptrace_scope"));
}

/* Whatever is missing: no crash, no NAN in a sentence. */
static void test_nothing_known(void **state)
{
	struct job_process *process = add(10, 1, NAN, NAN);
	(void)state;
	for (int i = 0; i < JOB_COUNTS; i++)
		process->first[i] = process->last[i] = NAN;
	process->look_count = 0;
	(void)strcpy(process->unknown, "bytes and calls: Permission denied");
	record.quota_cores = 1.5;
	job_verdict_find(&record, NULL, &verdict);
	for (size_t i = 0; i < verdict.evidence.count; i++)
		assert_null(strstr(verdict.evidence.of[i], "nan"));
	assert_null(strstr(verdict.words, "nan"));
	assert_non_null(strstr(verdict.unknown.of[0], "Permission denied"));
	record.process_count = 0;
	job_verdict_find(&record, NULL, &verdict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_roles, empty_record),
		cmocka_unit_test_setup(test_two_sides, empty_record),
		cmocka_unit_test_setup(test_one_worker_holds_up, empty_record),
		cmocka_unit_test_setup(test_no_cores, empty_record),
		cmocka_unit_test_setup(test_kinds_of_cores, empty_record),
		cmocka_unit_test_setup(test_short_memory, empty_record),
		cmocka_unit_test_setup(test_turns, empty_record),
		cmocka_unit_test_setup(test_trainer, empty_record),
		cmocka_unit_test_setup(test_workers_hand_over, empty_record),
		cmocka_unit_test_setup(test_roles_without_cores, empty_record),
		cmocka_unit_test_setup(test_two_trainers, empty_record),
		cmocka_unit_test_setup(test_start, empty_record),
		cmocka_unit_test_setup(test_inherited, empty_record),
		cmocka_unit_test_setup(test_devices, empty_record),
		cmocka_unit_test_setup(test_few_looks, empty_record),
		cmocka_unit_test_setup(test_one_process, empty_record),
		cmocka_unit_test_setup(test_sleeping, empty_record),
		cmocka_unit_test_setup(test_sockets, empty_record),
		cmocka_unit_test_setup(test_still, empty_record),
		cmocka_unit_test_setup(test_estimates, empty_record),
		cmocka_unit_test_setup(test_cpu_classes, empty_record),
		cmocka_unit_test_setup(test_hidden, empty_record),
		cmocka_unit_test_setup(test_nothing_known, empty_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
