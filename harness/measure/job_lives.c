/* Births, deaths, ranks and tracks. */
#include "harness/measure/job_lives.h"

#include "harness/base/array.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIVES_ENVIRONMENT_BYTES = 1 << 16 };
static const double LIVES_BIN_S = 0.1; /* at first */

/* --- ranks -------------------------------------------------------------------------------------- */

/* -1: it is not there, or no number. */
static int32_t lives_number(const char *environment, size_t size, const char *name)
{
	const size_t length = strlen(name);
	size_t at = 0;
	while (at < size) {
		const size_t left = size - at;
		const size_t used = strnlen(environment + at, left);
		if (used > length + 1 && used < left && environment[at + length] == '=' &&
			memcmp(environment + at, name, length) == 0) {
			char *end;
			const long number = strtol(environment + at + length + 1, &end, 10);
			return *end == '\0' && number >= 0 && number < INT_MAX ? (int32_t)number
									       : -1;
		}
		at += used + 1;
	}
	return -1;
}

int32_t job_lives_rank(const char *environment, size_t size, int32_t *world)
{
	/* What a launcher sets for each process comes before what a batch system sets for each task. */
	static const char *const names[][2] = {{"RANK", "WORLD_SIZE"},
		{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMIX_RANK", "PMIX_SIZE"},
		{"PMI_RANK", "PMI_SIZE"}, {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
		{"SLURM_PROCID", "SLURM_NTASKS"}, {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}};
	for (size_t i = 0; i < COUNT(names); i++) {
		const int32_t rank = lives_number(environment, size, names[i][0]);
		if (rank < 0)
			continue;
		*world = lives_number(environment, size, names[i][1]);
		return rank;
	}
	*world = -1;
	return -1;
}

/* A fork has its parent's environment. */
static void lives_find_rank(
	const struct job_record *record, struct job_process *process, bool forked)
{
	char text[LIVES_ENVIRONMENT_BYTES];
	size_t size = 0;
	int32_t world = -1;
	for (size_t i = 0; forked && i < record->process_count; i++)
		if (record->processes[i].pid == process->parent && !record->processes[i].gone) {
			process->rank = record->processes[i].rank;
			process->world = record->processes[i].world;
			return;
		}
	const int fd = openat(process->folder, "environ", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (size < sizeof text) {
		const ssize_t got = read(fd, text + size, sizeof text - size);
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	(void)close(fd);
	process->rank = job_lives_rank(text, size, &world) + 1;
	process->world = world < 0 ? 0 : world;
}

/* --- births and deaths -------------------------------------------------------------------------- */

static bool lives_is_fork(const struct job_record *record, const struct job_process *process)
{
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *above = &record->processes[i];
		if (above->pid == process->parent && !above->gone)
			return process->stack > 0 && process->stack <= above->stack &&
			       process->stack >= above->stack;
	}
	return false;
}

void job_lives_begin(struct job_record *record, struct job_process *process, double begun_s)
{
	const bool forked = lives_is_fork(record, process);
	lives_find_rank(record, process, forked);
	process->begun_s = begun_s;
	process->ended_s = NAN;
	if (record->life_count == JOB_LIVES_MAX) {
		record->no_room++;
		return;
	}
	struct job_lifespan *life = &record->lives[record->life_count++];
	*life = (struct job_lifespan){.pid = process->pid,
		.parent = process->parent,
		.begun_s = begun_s,
		.ended_s = NAN,
		.forked = forked};
	memcpy(life->name, process->name, sizeof life->name);
	process->life = (uint32_t)record->life_count;
}

void job_lives_end(struct job_record *record, struct job_process *process, double t_s)
{
	process->ended_s = t_s;
	if (!process->life)
		return;
	struct job_lifespan *life = &record->lives[process->life - 1];
	life->ended_s = t_s;
	memcpy(life->name, process->name, sizeof life->name); /* exec changes it */
}

/* --- what each did over time -------------------------------------------------------------------- */

/* Two bins become one. */
static void lives_widen(struct job_record *record)
{
	for (size_t i = 0; i < record->track_count; i++) {
		struct job_track *track = &record->tracks[i];
		for (size_t bin = 0; bin < JOB_BINS_MAX / 2; bin++)
			for (int act = 0; act < JOB_ACTS; act++) {
				const unsigned sum = (unsigned)track->looks[2 * bin][act] +
						     track->looks[2 * bin + 1][act];
				track->looks[bin][act] =
					(uint16_t)(sum < UINT16_MAX ? sum : UINT16_MAX);
			}
		memset(track->looks[JOB_BINS_MAX / 2], 0,
			(JOB_BINS_MAX / 2) * sizeof track->looks[0]);
	}
	record->bin_s *= 2;
}

/* The first is of all that have none of their own: those that never had children. */
static struct job_track *lives_track_of(struct job_record *record, uint32_t process)
{
	const struct job_process *one = &record->processes[process];
	for (size_t i = 1; i < record->track_count; i++)
		if (record->tracks[i].process == process && record->tracks[i].pid == one->pid)
			return &record->tracks[i];
	if (record->track_count == 0)
		record->track_count = 1;
	if ((process > 0 && one->children == 0) || record->track_count == JOB_TRACKS_MAX)
		return &record->tracks[0];
	struct job_track *track = &record->tracks[record->track_count++];
	*track = (struct job_track){.process = process, .pid = one->pid};
	return track;
}

void job_lives_look(struct job_record *record, uint32_t process, enum job_act act, double t_s)
{
	if (record->bin_s <= 0)
		record->bin_s = LIVES_BIN_S;
	while (t_s >= record->bin_s * JOB_BINS_MAX)
		lives_widen(record);
	uint16_t *count =
		&lives_track_of(record, process)->looks[(size_t)(t_s / record->bin_s)][act];
	*count = (uint16_t)(*count + (*count < UINT16_MAX));
}
