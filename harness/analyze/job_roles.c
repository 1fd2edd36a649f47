/* Roles, and who waits for whom. */
#include "harness/analyze/job_roles.h"

#include "harness/measure/job_descriptors.h"

#include <math.h>
#include <string.h>

static const double ACTIVE_CPU = 0.05;    /* cores: a process that works */
static const double ACTIVE_BYTES = 16384; /* a second, read by one that works */
static const double MESSAGE_BYTES = 32;   /* a second, written by one that hands anything over */
static const double READY = 0.5;          /* of a process's looks: it has work */

const char *job_role_name(enum job_role role)
{
	static const char *const names[JOB_ROLES] = {
		[JOB_ROLE_HELPER] = "helper",
		[JOB_ROLE_TRAINER] = "trainer",
		[JOB_ROLE_LOADER] = "loader",
		[JOB_ROLE_WHOLE] = "whole",
	};
	return names[role];
}

double job_cpu(const struct job_process *process)
{
	const double seconds = job_process_seconds(process);
	return seconds > 0 ? job_grown(process->first, process->last, JOB_CPU_S) / seconds : NAN;
}

bool job_reads_files(const struct job_process *process)
{
	return process->file_looks > 0 || process->looks[JOB_WAITS_READ] > 0 ||
	       process->looks[JOB_WAITS_RING] > 0;
}

/* Whether something that `one` writes to `pipe` arrives at `other`.  The two ends of a socket have numbers of their own: one
 * number in two processes is a socket that was inherited, and joins nobody.  A TCP connection joins ranks, not loaders. */
static bool job_pipe_joins(const struct job_pipe *one, const struct job_pipe *other)
{
	return one->socket
		       ? other->socket && !one->network && one->peer && one->peer == other->number
		       : !other->socket && one->number == other->number && one->writes &&
				 other->reads;
}

/* NULL: the other has no end of it. */
static const struct job_pipe *job_other_end(
	const struct job_pipe *pipe, const struct job_process *other)
{
	return job_find_pipe(other, pipe->socket ? pipe->peer : pipe->number);
}

/* Pipes and sockets of which each has an end. */
static unsigned job_pipes_between(const struct job_process *one, const struct job_process *other)
{
	unsigned count = 0;
	for (size_t i = 0; i < one->pipe_count; i++) {
		const struct job_pipe *pipe = &one->pipes[i];
		const struct job_pipe *end = job_other_end(pipe, other);
		count += end && (job_pipe_joins(pipe, end) || job_pipe_joins(end, pipe));
	}
	return count;
}

static uint32_t job_parent_of(const struct job_record *record, uint32_t index)
{
	const int32_t pid = record->processes[index].parent;
	for (uint32_t i = 0; i < record->process_count; i++)
		if (record->processes[i].pid == pid && i != index)
			return i;
	return index;
}

/* The process above it that shares most pipes with it; itself: none does.  A fork server between them shares few. */
static uint32_t job_boss_of(const struct job_record *record, uint32_t index)
{
	uint32_t boss = index;
	unsigned most = 0;
	uint32_t at = index;
	for (size_t step = 0; step < record->process_count; step++) {
		const uint32_t above = job_parent_of(record, at);
		if (above == at)
			break;
		const unsigned pipes =
			job_pipes_between(&record->processes[index], &record->processes[above]);
		if (pipes > most) {
			most = pipes;
			boss = above;
		}
		at = above;
	}
	return boss;
}

/* Whether anything goes over the pipes that both hold: what a fork inherits is held by both, too.  A result is written, if
 * only where in shared memory it lies. */
static bool job_hands_over(const struct job_process *process, const struct job_process *boss)
{
	bool seen = false;
	for (size_t i = 0; i < process->pipe_count; i++)
		seen = seen || process->pipes[i].read_looks || process->pipes[i].write_looks;
	for (size_t i = 0; i < boss->pipe_count; i++)
		seen = seen || boss->pipes[i].read_looks;
	return seen || job_grown(process->first, process->last, JOB_WRITTEN) >=
			       MESSAGE_BYTES * job_process_seconds(process);
}

/* Those that began as it did, itself among them. */
static double job_count_alike(const struct job_record *record, const struct job_process *process)
{
	static const double MOST = 64;
	double count = 0;
	for (size_t i = 0; i < record->process_count; i++)
		count += record->processes[i].parent == process->parent &&
			 strcmp(record->processes[i].name, process->name) == 0;
	return fmin(count, MOST);
}

/* One of those that end and begin anew; programs that others run for a moment live for less. */
static bool job_is_made_anew(const struct job_record *record, const struct job_process *process)
{
	static const double LIVED_S = 0.5;
	unsigned ended = 0;
	if (!process->life || process->begun_s <= 0)
		return false;
	const struct job_lifespan *own = &record->lives[process->life - 1];
	for (size_t i = 0; i < record->life_count && ended < 2; i++) {
		const struct job_lifespan *life = &record->lives[i];
		ended += life->parent == own->parent && life->forked == own->forked &&
			 life->ended_s - life->begun_s >= LIVED_S &&
			 strcmp(life->name, own->name) == 0;
	}
	return ended >= 2;
}

/* It reads data or computes for one above it, which hands it work or takes its results.  One that has a GPU of its own is a
 * rank that a launcher began, and so are those that are ranks to each other. */
static bool job_is_loader(const struct job_record *record, uint32_t index, uint32_t boss)
{
	const struct job_process *process = &record->processes[index];
	if (boss == index || !job_hands_over(process, &record->processes[boss]) ||
		(process->device && !record->processes[boss].device) ||
		job_ranks_has(record, index))
		return false;
	const double read = job_grown(process->first, process->last, JOB_READ);
	const double alike = job_count_alike(record, process); /* many share the work */
	/* Where cores are few, one that has work all the time uses hardly any. */
	return job_reads_files(process) || job_share(process, JOB_RUNS) >= READY ||
	       job_is_made_anew(record, process) || job_cpu(process) > ACTIVE_CPU / alike ||
	       read >= ACTIVE_BYTES / alike * job_process_seconds(process);
}

/* Whether both run their parent's program, or both one of their own; those of which it is not known are alike. */
static bool job_begun_alike(const struct job_record *record, const struct job_process *one,
	const struct job_process *other)
{
	return !one->life || !other->life ||
	       record->lives[one->life - 1].forked == record->lives[other->life - 1].forked;
}

/* One that ended before its pipes were seen, or before it did much, is what those are that began as it did. */
static void job_adopt_ended(const struct job_record *record, struct job_verdict *out)
{
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *ended = &record->processes[i];
		if (!ended->gone || out->roles[i] == JOB_ROLE_LOADER ||
			(ended->pipe_count > 0 && !ended->life))
			continue;
		for (size_t k = 0; k < record->process_count; k++)
			if (out->roles[k] == JOB_ROLE_LOADER && out->boss[k] != i &&
				record->processes[k].parent == ended->parent &&
				strcmp(record->processes[k].name, ended->name) == 0 &&
				job_begun_alike(record, ended, &record->processes[k])) {
				out->roles[i] = JOB_ROLE_LOADER;
				out->boss[i] = out->boss[k];
				break;
			}
	}
}

void job_find_roles(const struct job_record *record, struct job_verdict *out)
{
	const uint32_t count = (uint32_t)record->process_count;
	bool has_loaders = false;
	bool is_boss[JOB_PROCESSES_MAX] = {false};
	for (uint32_t i = 0; i < count; i++) {
		out->boss[i] = job_boss_of(record, i);
		if (job_is_loader(record, i, out->boss[i])) {
			out->roles[i] = JOB_ROLE_LOADER;
			is_boss[out->boss[i]] = true;
		}
	}
	job_adopt_ended(record, out);
	/* One that loaders work for is a trainer, also where a launcher above it holds pipes of it. */
	for (uint32_t i = 0; i < count; i++)
		if (is_boss[i])
			out->roles[i] = JOB_ROLE_HELPER;
	for (uint32_t i = 0; i < count; i++)
		if (out->roles[i] == JOB_ROLE_LOADER) {
			out->roles[out->boss[i]] = JOB_ROLE_TRAINER;
			has_loaders = true;
		}
	if (has_loaders)
		return;
	uint32_t busiest = 0;
	double most = -1;
	for (uint32_t i = 0; i < count; i++) {
		const double cpu = job_cpu(&record->processes[i]);
		if (job_reads_files(&record->processes[i]) || cpu > ACTIVE_CPU ||
			record->processes[i].device || job_ranks_has(record, i))
			out->roles[i] = JOB_ROLE_WHOLE;
		if (cpu > most) {
			most = cpu;
			busiest = i;
		}
	}
	out->roles[busiest] = JOB_ROLE_WHOLE;
}

/* --- who waits for whom ------------------------------------------------------------------------- */

/* Of those that hold the end that writes: those above or below come first, since others may have inherited it. */
static bool job_writes_for(
	const struct job_record *record, uint32_t from, uint32_t to, const struct job_pipe *pipe)
{
	const struct job_pipe *end = job_other_end(pipe, &record->processes[to]);
	return end && job_pipe_joins(end, pipe) &&
	       (job_parent_of(record, from) == to || job_parent_of(record, to) == from);
}

static size_t job_add_edge(
	struct job_edge *out, size_t count, size_t room, const struct job_edge *edge)
{
	size_t at = count;
	while (at > 0 && out[at - 1].share < edge->share)
		at--;
	if (at == room)
		return count;
	const size_t kept = count < room ? count : room - 1;
	memmove(&out[at + 1], &out[at], (kept - at) * sizeof *out);
	out[at] = *edge;
	return kept + 1;
}

size_t job_edges(const struct job_record *record, struct job_edge *out, size_t room)
{
	size_t count = 0;
	for (uint32_t from = 0; from < record->process_count; from++) {
		const struct job_process *process = &record->processes[from];
		for (uint32_t to = 0; to < record->process_count; to++) {
			struct job_edge edge = {.from = from, .to = to};
			for (size_t i = 0; from != to && i < process->pipe_count; i++)
				if (process->pipes[i].read_looks &&
					job_writes_for(record, from, to, &process->pipes[i]))
					edge.share += (double)process->pipes[i].read_looks /
						      fmax(process->look_count, 1);
			if (edge.share > 0)
				count = job_add_edge(out, count, room, &edge);
		}
	}
	return count;
}
