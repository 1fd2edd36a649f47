/* Lives, pauses and ranks of records made by hand. */
#include "harness/analyze/job_verdict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LOOKS = 200, BIN_LOOKS = 5 };
static const double BIN_S = 0.1;

static struct job_process processes[JOB_PROCESSES_MAX];
static struct job_thread threads[JOB_PROCESSES_MAX];
static struct job_moment moments[32];
static struct job_lifespan lives[JOB_LIVES_MAX];
static struct job_track tracks[JOB_TRACKS_MAX];
static struct job_record record;
static struct job_verdict verdict;

static int empty_record(void **state)
{
	(void)state;
	memset(processes, 0, sizeof processes);
	memset(threads, 0, sizeof threads);
	memset(tracks, 0, sizeof tracks);
	memset(lives, 0, sizeof lives);
	record = (struct job_record){.pid = 10,
		.watched_s = 20,
		.ended_s = NAN,
		.states = LOOKS,
		.processes = processes,
		.threads = threads,
		.moments = moments,
		.lives = lives,
		.tracks = tracks,
		.track_count = 1,
		.bin_s = BIN_S,
		.node_cores = NAN,
		.node_busy_cores = NAN,
		.allowed_cpus = NAN,
		.quota_cores = INFINITY,
		.throttled = NAN,
		.memory_left = NAN};
	return 0;
}

static struct job_process *add(int pid, int parent, double begun_s, double ended_s)
{
	struct job_process *process = &processes[record.process_count];
	struct job_lifespan *life = &lives[record.life_count++];
	*life = (struct job_lifespan){.pid = pid,
		.parent = parent,
		.name = "python3",
		.begun_s = begun_s,
		.ended_s = ended_s};
	*process = (struct job_process){.pid = pid,
		.parent = parent,
		.name = "python3",
		.first_s = fmax(begun_s, 0),
		.last_s = isnan(ended_s) ? record.watched_s : ended_s,
		.begun_s = begun_s,
		.ended_s = ended_s,
		.gone = !isnan(ended_s),
		.look_count = LOOKS,
		.open_looks = 10,
		.life = (uint32_t)record.life_count};
	struct job_thread *thread = &threads[record.thread_count++];
	*thread = (struct job_thread){.tid = pid,
		.process = (uint32_t)record.process_count++,
		.first_s = process->first_s,
		.last_s = process->last_s};
	return process;
}

static void joined(struct job_process *reader, struct job_process *writer, uint64_t number)
{
	reader->pipes[reader->pipe_count++] =
		(struct job_pipe){.number = number, .reads = true, .read_looks = LOOKS / 4};
	writer->pipes[writer->pipe_count++] = (struct job_pipe){.number = number, .writes = true};
}

static struct job_track *track_of(const struct job_process *process)
{
	struct job_track *track = &tracks[record.track_count++];
	*track =
		(struct job_track){.process = (uint32_t)(process - processes), .pid = process->pid};
	return track;
}

/* From one second to another in this act. */
static void does(struct job_track *track, double from_s, double to_s, enum job_act act)
{
	const int end = (int)lround(to_s / BIN_S);
	for (int bin = (int)lround(from_s / BIN_S); bin < end; bin++) {
		memset(track->looks[bin], 0, sizeof track->looks[bin]);
		track->looks[bin][act] = BIN_LOOKS;
	}
}

/* A worker that computes and hands over what it has. */
static void add_worker(struct job_process *trainer, double begun_s, double ended_s)
{
	struct job_process *worker =
		add(100 + (int)record.process_count, trainer->pid, begun_s, ended_s);
	const double lived = worker->last_s - worker->first_s;
	worker->looks[JOB_RUNS] = LOOKS;
	worker->last[JOB_CPU_S] = lived;
	worker->last[JOB_WRITTEN] = 1e6;
	worker->last[JOB_READ] = 1e6 * lived;
	worker->file_looks = 5;
	joined(trainer, worker, 1000 + record.process_count);
}

/* Two workers an epoch of 5 s, for which the trainer waits `start_s`; else it sleeps its steps. */
static struct job_process *epochs(double start_s)
{
	struct job_process *trainer = add(10, 1, -100, NAN);
	struct job_track *track = track_of(trainer);
	trainer->looks[JOB_WAITS_INPUT] = LOOKS / 2;
	trainer->looks[JOB_WAITS_TIME] = LOOKS / 2;
	does(track, 0, record.watched_s, JOB_WAITS_TIME);
	for (int epoch = 0; epoch < 5; epoch++) {
		const double begin = 5.0 * epoch - 2;
		if (begin > record.watched_s)
			break;
		for (int i = 0; i < 2; i++)
			add_worker(trainer, begin + i * 0.05,
				begin + 5 > record.watched_s ? (double)NAN : begin + 4.95);
		if (begin > 0)
			does(track, begin + BIN_S, begin + BIN_S + start_s, JOB_WAITS_POLL);
	}
	return trainer;
}

static void test_restarts(void **state)
{
	(void)state;
	(void)epochs(1.5);
	record.groups[record.group_count++] =
		(struct job_group){.system = "ext4", .kind = "jpg", .files = 10, .bytes = 1e6};
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.life.generations, 4);
	assert_float_equal(verdict.life.period_s, 5, 0.2);
	assert_float_equal(verdict.life.start_s, 1.5, 0.15);
	assert_float_equal(verdict.life.start_share, 0.3, 0.04);
	assert_float_equal(round(verdict.life.workers), 2, 0);
	assert_int_equal(verdict.life.begun, 8);
	assert_int_equal(verdict.life.ended, 8);
	assert_string_equal(verdict.stage, "loader");
	assert_string_equal(verdict.resource, "restarts");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	assert_non_null(strstr(verdict.words, "every 5.0 s"));
	assert_string_equal(job_entry_find(&verdict)->entry_resource, "restarts");
	/* 2 workers that read 1 MB/s each, and files of 100 kB. */
	assert_float_equal(verdict.files_per_s, 20, 0.5);
	assert_float_equal(job_life_enough_s(&record, &verdict), 11, 0.3);
	record.track_count = 1; /* what the trainer did is not known */
	job_verdict_find(&record, NULL, &verdict);
	assert_true(isnan(verdict.life.start_s));
	assert_string_not_equal(verdict.resource, "restarts");
}

/* What was not seen of the reads of those that ended is as much as they read before. */
static void test_rate_of_those_that_ended(void **state)
{
	(void)state;
	(void)epochs(1.5);
	record.groups[record.group_count++] =
		(struct job_group){.system = "ext4", .kind = "jpg", .files = 10, .bytes = 1e6};
	for (size_t i = 1; i < record.process_count; i++)
		if (processes[i].gone) {
			processes[i].last_s -= 1;
			processes[i].last[JOB_READ] -= 1e6;
		}
	job_verdict_find(&record, NULL, &verdict);
	assert_float_equal(verdict.files_per_s, 20, 0.5);
}

/* Short epochs, and a trainer that is so seldom found at work that a bin has one such look or none. */
static void test_short_epochs(void **state)
{
	(void)state;
	struct job_process *trainer = add(10, 1, -100, NAN);
	struct job_track *track = track_of(trainer);
	trainer->looks[JOB_WAITS_INPUT] = LOOKS * 9 / 10;
	trainer->looks[JOB_WAITS_TIME] = LOOKS / 10;
	does(track, 0, record.watched_s, JOB_WAITS_INPUT);
	for (int epoch = 0; epoch < 20; epoch++) {
		const double begin = epoch - 0.2;
		for (int i = 0; i < 2; i++)
			add_worker(trainer, begin + i * 0.02,
				epoch == 19 ? (double)NAN : begin + 0.98);
		/* 0.6 s of start; of the rest it works in two bins of three. */
		for (int bin = 0; bin < 4; bin++)
			if (bin % 3 < 2)
				does(track, begin + 0.7 + bin * BIN_S, begin + 0.8 + bin * BIN_S,
					JOB_WAITS_TIME);
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.life.generations, 19);
	assert_float_equal(verdict.life.start_s, 0.5, 0.15);
	assert_string_equal(verdict.resource, "restarts");
	assert_float_equal(round(verdict.life.workers), 2, 0);
}

/* Starts that cost nothing beyond what the trainer waits for at other times. */
static void test_cheap_restarts(void **state)
{
	(void)state;
	(void)epochs(0.2);
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.life.generations, 4);
	assert_true(verdict.life.start_share < 0.06);
	assert_string_not_equal(verdict.resource, "restarts");
	(void)empty_record(state);
	struct job_process *trainer = epochs(1);
	trainer->looks[JOB_WAITS_INPUT] = LOOKS * 9 / 10;
	trainer->looks[JOB_WAITS_TIME] = LOOKS / 10;
	for (double s = 0; s < record.watched_s; s += 1.25) /* it waits so long for each batch */
		does(&tracks[1], s + 0.1, fmin(s + 1.25, record.watched_s), JOB_WAITS_POLL);
	job_verdict_find(&record, NULL, &verdict);
	assert_true(verdict.life.start_share < 0.05);
	assert_string_equal(verdict.stage, "loader");
	assert_string_equal(verdict.resource, "cpu");
}

/* Workers that are there all the time are no generations; one that a trainer had long before is no news. */
static void test_steady(void **state)
{
	(void)state;
	struct job_process *trainer = add(10, 1, -100, NAN);
	does(track_of(trainer), 0, 20, JOB_WAITS_POLL);
	trainer->looks[JOB_WAITS_POLL] = LOOKS;
	add_worker(trainer, -99, NAN);
	add_worker(trainer, -98.9, NAN);
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.life.generations, 0);
	assert_true(isnan(verdict.life.period_s) && isnan(verdict.life.worker_age_s));
	assert_float_equal(verdict.life.workers, 2, 1e-9);
	assert_float_equal(verdict.life.starved, 1, 1e-9);
	assert_float_equal(job_life_enough_s(&record, &verdict), 0, 0);
	lives[1].begun_s = lives[2].begun_s = -5;
	job_verdict_find(&record, NULL, &verdict);
	assert_float_equal(verdict.life.worker_age_s, 25, 1e-9);
	/* Many of one name share a table's place in the end: their lives stay. */
	lives[1].ended_s = 3;
	lives[record.life_count++] = (struct job_lifespan){
		.pid = 900, .parent = 10, .name = "python3", .begun_s = 3.5, .ended_s = NAN};
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.life.begun, 1);
	assert_int_equal(verdict.life.generations, 0); /* the other one lives on */
	/* Another child of the trainer that has that name, and that was watched: it loads nothing. */
	add(901, 10, -50, NAN)->looks[JOB_WAITS_OTHER] = LOOKS;
	job_verdict_find(&record, NULL, &verdict);
	assert_true(verdict.life.workers < 2.1);
}

/* A step that writes a checkpoint every 4 s, and what is no pause. */
static void test_pauses(void **state)
{
	(void)state;
	struct job_process *trainer = add(10, 1, -100, NAN);
	struct job_track *track = track_of(trainer);
	trainer->looks[JOB_RUNS] = LOOKS;
	add_worker(trainer, -99, NAN);
	does(track, 0, 20, JOB_RUNS);
	for (double s = 1; s < 20; s += 4)
		does(track, s, s + 0.8, JOB_WAITS_WRITE);
	job_verdict_find(&record, NULL, &verdict);
	const struct job_pause *files = &verdict.life.pauses[JOB_PHASE_WRITES];
	assert_int_equal(files->count, 5);
	assert_float_equal(files->period_s, 4, 0.11);
	assert_float_equal(files->seconds, 0.8, 0.11);
	assert_false(files->irregular);
	assert_int_equal(verdict.life.pauses[JOB_PHASE_RUNS].count, 0); /* 80 % of the time */
	assert_float_equal(job_life_enough_s(&record, &verdict), 8.8, 0.3);
	does(track, 8, 11, JOB_RUNS);
	job_verdict_find(&record, NULL, &verdict);
	assert_true(files->irregular);
	/* One long pause may come again: what was seen does not stand for the rest. */
	does(track, 0, 20, JOB_RUNS);
	does(track, 8, 11, JOB_WAITS_WRITE);
	job_verdict_find(&record, NULL, &verdict);
	assert_true(isinf(job_life_enough_s(&record, &verdict)));
}

/* Every 4 s the trainer computes for 1.6 s, and its loaders have nothing to do meanwhile: the start of an epoch, an evaluation. */
static void test_pauses_are_the_verdict(void **state)
{
	(void)state;
	struct job_process *trainer = add(10, 1, -100, NAN);
	struct job_track *track = track_of(trainer);
	add_worker(trainer, -99, NAN);
	processes[1].looks[JOB_RUNS] = LOOKS * 4 / 10;
	processes[1].looks[JOB_WAITS_INPUT] = LOOKS * 6 / 10;
	does(track, 0, 20, JOB_WAITS_INPUT);
	for (double s = 0; s < 20; s += 0.2)
		does(track, s, s + 0.1, JOB_WAITS_TIME);
	for (double s = 1; s < 20; s += 4)
		does(track, s, s + 1.6, JOB_RUNS);
	trainer->looks[JOB_RUNS] = LOOKS * 4 / 10;
	trainer->looks[JOB_WAITS_INPUT] = LOOKS * 3 / 10;
	trainer->looks[JOB_WAITS_TIME] = LOOKS * 3 / 10;
	trainer->last[JOB_CPU_S] = 8;
	job_verdict_find(&record, NULL, &verdict);
	assert_float_equal(verdict.life.pauses[JOB_PHASE_RUNS].share, 0.4, 0.03);
	assert_string_equal(verdict.stage, "trainer");
	assert_string_equal(verdict.resource, "cpu");
	verdict.certainty = JOB_UNKNOWN; /* as where loaders wait, too */
	job_life_resolve(&verdict);
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	assert_non_null(strstr(verdict.words, "for 1.6 s at a time, about every 4.0 s"));
	verdict.certainty = JOB_UNKNOWN;
	verdict.life.pauses[JOB_PHASE_RUNS].share = 0.1;
	job_life_resolve(&verdict);
	assert_int_equal(verdict.certainty, JOB_UNKNOWN);
}

static void test_growth(void **state)
{
	(void)state;
	struct job_process *trainer = add(10, 1, -100, NAN);
	trainer->looks[JOB_RUNS] = LOOKS;
	add_worker(trainer, -99, NAN);
	trainer->last[JOB_RESIDENT] = 400e6;
	for (int i = 0; i <= 20; i++)
		moments[record.moment_count++] =
			(struct job_moment){.t_s = i, .resident = 1e9 + i * 20e6};
	record.memory_left = 12e9;
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.life.growing, 0);
	assert_float_equal(verdict.life.growing_per_s, 20e6, 1);
	assert_float_equal(verdict.life.limit_s, 600, 1);
	bool said = false;
	for (size_t i = 0; i < verdict.next.count; i++)
		said = said || strstr(verdict.next.of[i], "used up in 10 min");
	assert_true(said);
	said = false;
	for (size_t i = 0; i < verdict.evidence.count; i++)
		said = said || strstr(verdict.evidence.of[i], "process 10 (trainer) grows most");
	assert_true(said);
	/* Workers that come and go with what they have: it does not grow. */
	trainer->last[JOB_RESIDENT] = 0;
	add_worker(trainer, 1, 15);
	job_verdict_find(&record, NULL, &verdict);
	assert_float_equal(verdict.growth, 0, 1e-9);
}

/* Two processes of one launcher that hold an end each of a connection, and what each was found in. */
static void ranks(uint32_t first_waits, uint32_t second_waits)
{
	(void)add(10, 1, -100, NAN);
	for (int i = 0; i < 2; i++) {
		struct job_process *rank = add(11 + i, 10, -90, NAN);
		const uint32_t waits = i ? second_waits : first_waits;
		rank->looks[JOB_WAITS_CONDITION] = waits;
		rank->looks[JOB_RUNS] = LOOKS - waits;
		rank->last[JOB_CPU_S] = 20.0 * (LOOKS - waits) / LOOKS;
		rank->last[JOB_WRITTEN] = 1e6;
		rank->pipes[rank->pipe_count++] =
			(struct job_pipe){.number = 500, .socket = true, .peer = 501 + (uint64_t)i};
		rank->pipes[rank->pipe_count++] = (struct job_pipe){.number = 600 + (uint64_t)i,
			.peer = 601 - (uint64_t)i,
			.socket = true,
			.network = true};
		joined(&processes[0], rank, 700 + (uint64_t)i); /* its launcher reads its output */
	}
}

static void test_ranks(void **state)
{
	(void)state;
	ranks(LOOKS * 8 / 10, LOOKS / 20);
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.ranks.count, 2);
	assert_int_equal(verdict.roles[1], JOB_ROLE_WHOLE);
	assert_string_equal(verdict.stage, "sync");
	assert_string_equal(verdict.resource, "imbalance");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	assert_non_null(
		strstr(verdict.words, "process 12 waits 5 % of the time, and the other one 80 %"));
	assert_string_equal(job_entry_find(&verdict)->entry_stage, "sync");
	/* Their launcher gave them numbers, and there are more elsewhere. */
	for (int i = 0; i < 2; i++) {
		processes[1 + i].pipes[1].peer = 0;
		processes[1 + i].rank = 3 + i;
		processes[1 + i].world = 4;
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.ranks.count, 2);
	assert_int_equal(verdict.ranks.world, 4);
	assert_non_null(strstr(verdict.words, "process 12 (rank 3)"));
	/* Where cores are short, it may be another one the next time. */
	threads[2].last[JOB_QUEUE_S] = 10;
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
	/* Neither number nor connection: two jobs of one launcher. */
	processes[1].rank = processes[2].rank = 0;
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.ranks.count, 0);
	assert_string_not_equal(verdict.stage, "sync");
}

static void test_ranks_alike(void **state)
{
	(void)state;
	ranks(LOOKS / 20, LOOKS / 20);
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.ranks.count, 2);
	assert_string_not_equal(verdict.stage, "sync"); /* both work all the time */
	(void)empty_record(state);
	ranks(LOOKS * 8 / 10, LOOKS * 7 / 10);
	job_verdict_find(&record, NULL, &verdict);
	assert_string_equal(verdict.stage, "sync");
	assert_string_equal(verdict.resource, "network");
	assert_int_equal(verdict.certainty, JOB_POSSIBLE);
}

/* All ranks wait, since one of them has slow loaders. */
static void test_rank_that_loads(void **state)
{
	(void)state;
	ranks(LOOKS * 8 / 10, LOOKS * 8 / 10);
	for (int i = 0; i < 2; i++) {
		add_worker(&processes[1 + i], -80, NAN);
		struct job_process *worker = &processes[record.process_count - 1];
		worker->looks[JOB_RUNS] = i ? LOOKS : LOOKS / 5;
		worker->looks[JOB_WAITS_POLL] = LOOKS - worker->looks[JOB_RUNS];
		/* A fork has all that its parent had open. */
		worker->pipes[worker->pipe_count++] = processes[1 + i].pipes[1];
	}
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.roles[1], JOB_ROLE_TRAINER);
	assert_int_equal(verdict.roles[3], JOB_ROLE_LOADER);
	assert_int_equal(verdict.ranks.count, 2);
	assert_string_equal(verdict.stage, "sync");
	assert_string_equal(verdict.resource, "imbalance");
	assert_non_null(strstr(verdict.words, "loader workers of process 12"));
}

/* A shell (10) that runs a decoder for each file and asks for the time now and then: none of them lives for long. */
static void shell_loop(enum job_act act)
{
	struct job_process *shell = add(10, 1, -100, NAN);
	shell->looks[JOB_WAITS_CHILD] = LOOKS;
	shell->children = 60;
	shell->last[JOB_CHILD_CPU_S] = 18;
	shell->last[JOB_CPU_S] = 0.4;
	shell->last[JOB_READ] = 40e6; /* of its children, too */
	for (int i = 0; i < 30; i++) {
		struct job_process *program = add(100 + i, 10, 0.5 * i + 1, 0.5 * i + 1.1);
		(void)snprintf(program->name, sizeof program->name, "%s", i % 3 ? "djpeg" : "date");
		program->look_count = i % 3 ? 4 : 1;
		program->looks[i % 3 ? act : JOB_RUNS] = program->look_count;
		program->last[JOB_WRITTEN] = 1e6;
		joined(shell, program, 500 + (uint64_t)i); /* what the shell takes of its output */
	}
	/* One that was there before. */
	struct job_process *before = add(200, 10, -0.1, 0.1);
	(void)snprintf(before->name, sizeof before->name, "djpeg");
	before->looks[JOB_RUNS] = LOOKS;
	before->last[JOB_CPU_S] = 0.1;
	job_verdict_find(&record, NULL, &verdict);
}

static void test_programs(void **state)
{
	(void)state;
	shell_loop(JOB_RUNS);
	assert_int_equal(verdict.programs.seen, 30);
	assert_int_equal(verdict.programs.boss, 0);
	assert_int_equal(verdict.roles[0], JOB_ROLE_WHOLE);
	assert_int_equal(verdict.roles[3], JOB_ROLE_HELPER);
	assert_int_equal(verdict.roles[31], JOB_ROLE_HELPER);
	assert_float_equal(verdict.programs.cores, 0.92, 1e-6);
	assert_float_equal(verdict.programs.read_bytes_per_s, 2e6, 1);
	assert_string_equal(verdict.programs.of[0].name, "djpeg");
	assert_int_equal(verdict.programs.of[0].seen, 20);
	assert_float_equal(verdict.programs.of[0].share, 80 / 90.0F, 1e-6);
	assert_string_equal(verdict.stage, "process");
	assert_string_equal(verdict.resource, "cpu");
	assert_int_equal(verdict.certainty, JOB_LIKELY);
	assert_non_null(strstr(verdict.words, "process 10 starts (djpeg 89 %, date 11 %"));
	(void)empty_record(state);
	shell_loop(JOB_WAITS_READ);
	assert_string_equal(verdict.stage, "read");
}

/* Workers of an epoch each are none, however many there are. */
static void test_no_programs(void **state)
{
	(void)state;
	(void)epochs(1.5);
	processes[0].last[JOB_CHILD_CPU_S] = 100;
	job_verdict_find(&record, NULL, &verdict);
	assert_int_equal(verdict.programs.seen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_restarts, empty_record),
		cmocka_unit_test_setup(test_rate_of_those_that_ended, empty_record),
		cmocka_unit_test_setup(test_cheap_restarts, empty_record),
		cmocka_unit_test_setup(test_short_epochs, empty_record),
		cmocka_unit_test_setup(test_steady, empty_record),
		cmocka_unit_test_setup(test_pauses, empty_record),
		cmocka_unit_test_setup(test_pauses_are_the_verdict, empty_record),
		cmocka_unit_test_setup(test_growth, empty_record),
		cmocka_unit_test_setup(test_programs, empty_record),
		cmocka_unit_test_setup(test_no_programs, empty_record),
		cmocka_unit_test_setup(test_ranks, empty_record),
		cmocka_unit_test_setup(test_ranks_alike, empty_record),
		cmocka_unit_test_setup(test_rank_that_loads, empty_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
