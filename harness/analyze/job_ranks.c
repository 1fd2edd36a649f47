/* Who the ranks are, and which one is the slowest. */
#include "harness/analyze/job_ranks.h"

#include "harness/analyze/job_tell.h"
#include "harness/analyze/job_verdict.h"
#include "harness/measure/job_descriptors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS_LOOKS_LEAST = 30 };
static const double RANKS_WAIT =
	0.25; /* of its time: a rank that is held up waits so long at least */
static const double RANKS_APART = 0.25;    /* between the slowest rank and each other one */
static const double RANKS_FAR_APART = 0.4; /* ... that leaves no doubt */
static const double RANKS_WORKS = 0.75;    /* of the time: loaders that hold their rank up */
static const double RANKS_IDLE = 0.5;      /* all ranks wait so long: for something between them */
static const double RANKS_CROWDED = 0.2;   /* run-queue wait: which one is slow may change */

/* --- who they are ------------------------------------------------------------------------------- */

/* Of several processes with one number, such as a shell and what it runs: the one that trains, else the busiest. */
static double ranks_claim(
	const struct job_record *record, const struct job_verdict *verdict, uint32_t index)
{
	const struct job_process *process = &record->processes[index];
	const double cpu = job_grown(process->first, process->last, JOB_CPU_S);
	const double role = verdict->roles[index] == JOB_ROLE_TRAINER ? 2
			    : verdict->roles[index] == JOB_ROLE_WHOLE ? 1
								      : 0;
	const double used = isnan(cpu) || cpu < 0 ? 0 : cpu;
	return role + used / (1 + used);
}

static bool ranks_may_be(
	const struct job_record *record, const struct job_verdict *verdict, uint32_t index)
{
	const struct job_process *process = &record->processes[index];
	return !process->gone && process->look_count >= RANKS_LOOKS_LEAST &&
	       verdict->roles[index] != JOB_ROLE_LOADER;
}

static void ranks_by_number(const struct job_record *record, struct job_verdict *out)
{
	struct job_ranks *ranks = &out->ranks;
	for (uint32_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		size_t k = 0;
		if (process->rank == 0 || !ranks_may_be(record, out, i))
			continue;
		while (k < ranks->count && ranks->of[k].number != process->rank - 1)
			k++;
		if (k == JOB_RANKS_MAX)
			continue;
		if (process->world > ranks->world)
			ranks->world = process->world;
		if (k < ranks->count && ranks_claim(record, out, ranks->of[k].process) >=
						ranks_claim(record, out, i))
			continue;
		ranks->of[k] = (struct job_rank){.process = i, .number = process->rank - 1};
		ranks->count += k == ranks->count;
	}
}

/* By a connection of which each has one end; forks have both ends of what their parent has to itself. */
static bool ranks_are_connected(const struct job_process *one, const struct job_process *other)
{
	for (size_t i = 0; i < one->pipe_count; i++) {
		const struct job_pipe *pipe = &one->pipes[i];
		if (pipe->network && pipe->peer && job_find_pipe(other, pipe->peer) &&
			!job_find_pipe(one, pipe->peer) && !job_find_pipe(other, pipe->number))
			return true;
	}
	return false;
}

static bool ranks_are_alike(const struct job_process *one, const struct job_process *other)
{
	return other->pid != one->pid && other->parent == one->parent &&
	       strcmp(other->name, one->name) == 0;
}

bool job_ranks_has(const struct job_record *record, uint32_t index)
{
	const struct job_process *one = &record->processes[index];
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *other = &record->processes[i];
		if (ranks_are_alike(one, other) &&
			((one->rank && other->rank && one->rank != other->rank) ||
				ranks_are_connected(one, other)))
			return true;
	}
	return false;
}

/* Those of one parent and name that have a connection to another one of them. */
static void ranks_by_connections(const struct job_record *record, struct job_verdict *out)
{
	struct job_ranks *ranks = &out->ranks;
	for (uint32_t i = 0; i < record->process_count && ranks->count < JOB_RANKS_MAX; i++) {
		const struct job_process *one = &record->processes[i];
		const struct job_process *first =
			ranks->count ? &record->processes[ranks->of[0].process] : one;
		if (!ranks_may_be(record, out, i) || one->parent != first->parent)
			continue;
		for (uint32_t k = 0; k < record->process_count; k++) {
			const struct job_process *other = &record->processes[k];
			if (!ranks_may_be(record, out, k) || !ranks_are_alike(one, other) ||
				!ranks_are_connected(one, other))
				continue;
			ranks->of[ranks->count++] = (struct job_rank){.process = i, .number = -1};
			break;
		}
	}
}

static double ranks_share_waiting(const struct job_process *process)
{
	return job_share(process, JOB_WAITS_INPUT) + job_share(process, JOB_WAITS_NETWORK) +
	       job_share(process, JOB_WAITS_POLL) + job_share(process, JOB_WAITS_LOCK) +
	       job_share(process, JOB_WAITS_SEMAPHORE) + job_share(process, JOB_WAITS_CONDITION);
}

static void ranks_measure(
	const struct job_record *record, const struct job_verdict *verdict, struct job_rank *rank)
{
	double looks = 0;
	double idle = 0;
	rank->waits = ranks_share_waiting(&record->processes[rank->process]);
	for (uint32_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		if (verdict->roles[i] != JOB_ROLE_LOADER || verdict->boss[i] != rank->process ||
			process->look_count == 0)
			continue;
		looks += process->look_count;
		idle += process->look_count *
			(ranks_share_waiting(process) + job_share(process, JOB_WAITS_OUTPUT));
	}
	rank->loading = looks > 0 ? 1 - idle / looks : NAN;
}

void job_ranks_find(const struct job_record *record, struct job_verdict *out)
{
	struct job_ranks *ranks = &out->ranks;
	*ranks = (struct job_ranks){.count = 0};
	ranks_by_number(record, out);
	if (ranks->count < 2) {
		*ranks = (struct job_ranks){.count = 0};
		ranks_by_connections(record, out);
	}
	if (ranks->count < 2)
		*ranks = (struct job_ranks){.count = 0};
	for (size_t i = 0; i < ranks->count; i++)
		ranks_measure(record, out, &ranks->of[i]);
}

/* --- the verdict -------------------------------------------------------------------------------- */

/* "process 12 (rank 1)" */
static const char *ranks_name(
	const struct job_record *record, const struct job_rank *rank, char out[64])
{
	const int pid = record->processes[rank->process].pid;
	if (rank->number < 0)
		(void)snprintf(out, 64, "process %d", pid);
	else
		(void)snprintf(out, 64, "process %d (rank %d)", pid, rank->number);
	return out;
}

static bool ranks_are_crowded(const struct job_record *record, const struct job_ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++) {
		const uint32_t process = ranks->of[i].process;
		const double seconds = job_process_seconds(&record->processes[process]);
		if (job_process_longest_queue_s(record, process) >= RANKS_CROWDED * seconds)
			return true;
	}
	return false;
}

/* The least share of waits, and that of the others which wait least. */
static const struct job_rank *ranks_that_waits_least(const struct job_ranks *ranks, double *next)
{
	const struct job_rank *least = &ranks->of[0];
	for (size_t i = 1; i < ranks->count; i++)
		if (ranks->of[i].waits < least->waits)
			least = &ranks->of[i];
	*next = INFINITY;
	for (size_t i = 0; i < ranks->count; i++)
		if (&ranks->of[i] != least)
			*next = fmin(*next, ranks->of[i].waits);
	return least;
}

/* Its loaders work nearly all the time, and no other's do; NULL: there is none. */
static const struct job_rank *ranks_that_loads(const struct job_ranks *ranks)
{
	const struct job_rank *most = NULL;
	for (size_t i = 0; i < ranks->count; i++)
		if (!isnan(ranks->of[i].loading) && (!most || ranks->of[i].loading > most->loading))
			most = &ranks->of[i];
	for (size_t i = 0; most && i < ranks->count; i++)
		if (&ranks->of[i] != most &&
			(isnan(ranks->of[i].loading) ||
				ranks->of[i].loading > most->loading - RANKS_APART))
			return NULL;
	return most && most->loading >= RANKS_WORKS ? most : NULL;
}

static void ranks_say_next(
	const struct job_record *record, const struct job_rank *slow, struct job_verdict *out)
{
	job_say(&out->next,
		"observe the slow rank alone ('mlbench observe %d'), and compare its data, its node and its cores with another one's",
		record->processes[slow->process].pid);
}

bool job_ranks_conclude(const struct job_record *record, struct job_verdict *out)
{
	const struct job_ranks *ranks = &out->ranks;
	char name[64];
	double next;
	if (ranks->count < 2)
		return false;
	const struct job_rank *least = ranks_that_waits_least(ranks, &next);
	const struct job_rank *loads = ranks_that_loads(ranks);
	const bool crowded = ranks_are_crowded(record, ranks);
	if (next >= RANKS_WAIT && next - least->waits >= RANKS_APART) {
		job_conclude(out, "sync", "imbalance",
			next - least->waits >= RANKS_FAR_APART && !crowded ? JOB_LIKELY
									   : JOB_POSSIBLE,
			"One rank seems to hold the others up: %s waits %.0f %% of the time, and %s %.0f %%",
			ranks_name(record, least, name), 100 * least->waits,
			ranks->count > 2 ? "each of the others at least" : "the other one",
			100 * next);
		ranks_say_next(record, least, out);
		return true;
	}
	if (loads && least->waits >= RANKS_WAIT) {
		job_conclude(out, "sync", "imbalance", crowded ? JOB_POSSIBLE : JOB_LIKELY,
			"One rank's loading seems to hold all ranks up: the loader workers of %s have work %.0f %% of the time, and those of the others less; all ranks wait",
			ranks_name(record, loads, name), 100 * loads->loading);
		ranks_say_next(record, loads, out);
		return true;
	}
	bool alone = true; /* none has loaders */
	for (size_t i = 0; i < ranks->count; i++)
		alone = alone && isnan(ranks->of[i].loading);
	if (alone && least->waits >= RANKS_IDLE) {
		job_conclude(out, "sync", "network", JOB_POSSIBLE,
			"The ranks seem to wait for what goes between them: each of the %zu waits at least %.0f %% of the time, and none of them holds the others up all the time",
			ranks->count, 100 * least->waits);
		job_say(&out->next,
			"measure the exchange alone (mlbench probe, nccl-tests), and look whether a rank is slow now and then");
		return true;
	}
	return false;
}

void job_ranks_tell(const struct job_record *record, struct job_verdict *out)
{
	const struct job_ranks *ranks = &out->ranks;
	char line[JOB_LINE_BYTES - 64] = "";
	char name[64];
	size_t used = 0;
	if (ranks->count < 2)
		return;
	for (size_t i = 0; i < ranks->count && used < sizeof line - 64; i++)
		used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.0f %%",
			i ? ", " : "", ranks_name(record, &ranks->of[i], name),
			100 * ranks->of[i].waits);
	job_say(&out->evidence, "%zu ranks; share of the time that each waits: %s%s", ranks->count,
		line, used >= sizeof line - 64 ? " ..." : "");
	if (ranks->world > (int32_t)ranks->count)
		job_say(&out->unknown,
			"the other %d of %d ranks: they run elsewhere, or are not below the process that is observed",
			ranks->world - (int32_t)ranks->count, ranks->world);
}
