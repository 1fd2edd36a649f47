/* Short lives, put together. */
#include "harness/analyze/job_programs.h"

#include "harness/analyze/job_cause.h"
#include "harness/analyze/job_tell.h"
#include "harness/analyze/job_verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS_LEAST = 5, PROGRAMS_LOOKS_LEAST = 20 };
static const double PROGRAM_LIFE_S = 1;     /* at most */
static const double PROGRAMS_OF_CPU = 0.5;  /* of the job's CPU time, at least */
static const double PROGRAMS_BUSY = 0.5;    /* of their looks */
static const double PROGRAMS_CORE = 0.7;    /* cores: they keep one busy */
static const double PROGRAMS_QUEUED = 0.25; /* of their time they wait for a core */

static double programs_grown(const struct job_process *process, enum job_count count)
{
	const double grown = job_grown(process->first, process->last, count);
	return isnan(grown) ? 0 : grown;
}

/* It has begun meanwhile, runs a program of its own, and lives for a moment. */
static bool programs_has(const struct job_record *record, const struct job_process *process)
{
	const double end_s = process->gone ? process->ended_s : record->watched_s;
	return process->begun_s > 0 && process->life && !record->lives[process->life - 1].forked &&
	       end_s - process->begun_s < PROGRAM_LIFE_S;
}

static int programs_by_value(const void *a, const void *b)
{
	const double one = *(const double *)a;
	const double other = *(const double *)b;
	return (one > other) - (one < other);
}

static double programs_median_life(const struct job_record *record, uint32_t *seen)
{
	double *lives = calloc(record->life_count + 1, sizeof *lives);
	size_t count = 0;
	for (size_t i = 0; lives && i < record->life_count; i++) {
		const struct job_lifespan *life = &record->lives[i];
		if (life->begun_s > 0 && !life->forked && !isnan(life->ended_s))
			lives[count++] = life->ended_s - life->begun_s;
	}
	if (lives)
		qsort(lives, count, sizeof *lives, programs_by_value);
	const double median = count ? lives[count / 2] : NAN;
	free(lives);
	*seen = (uint32_t)count;
	return median;
}

/* Who starts most of them: in a tree of shells the one whose children use most CPU time. */
static uint32_t programs_boss(const struct job_record *record)
{
	uint32_t boss = 0;
	double most = -1;
	for (uint32_t i = 0; i < record->process_count; i++) {
		const double cpu = programs_grown(&record->processes[i], JOB_CHILD_CPU_S);
		if (!record->processes[i].gone && record->processes[i].children > 0 && cpu > most) {
			most = cpu;
			boss = i;
		}
	}
	return boss;
}

static void programs_count(const struct job_process *process, uint32_t counts[], size_t *count,
	struct job_program of[JOB_PROCESSES_MAX])
{
	size_t k = 0;
	while (k < *count && strcmp(of[k].name, process->name) != 0)
		k++;
	if (k == *count) {
		of[k] = (struct job_program){.seen = 0};
		memcpy(of[k].name, process->name, sizeof of[k].name);
		counts[k] = 0;
		(*count)++;
	}
	of[k].seen += process->stands_for ? process->stands_for : 1;
	counts[k] += process->look_count;
}

/* The most first. */
static void programs_name(const struct job_record *record, struct job_programs *out)
{
	struct job_program *of = calloc(JOB_PROCESSES_MAX, sizeof *of);
	uint32_t counts[JOB_PROCESSES_MAX];
	size_t count = 0;
	for (size_t i = 0; of && i < record->process_count; i++)
		if (programs_has(record, &record->processes[i]))
			programs_count(&record->processes[i], counts, &count, of);
	while (count > 0 && out->count < JOB_PROGRAMS_MAX) {
		size_t most = 0;
		for (size_t k = 1; k < count; k++)
			if (counts[k] > counts[most])
				most = k;
		out->of[out->count] = of[most];
		out->of[out->count++].share = out->looks ? (double)counts[most] / out->looks : NAN;
		of[most] = of[--count];
		counts[most] = counts[count];
	}
	free(of);
}

static void programs_look(const struct job_record *record, struct job_programs *out)
{
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		const uint32_t *looks = process->looks;
		if (!programs_has(record, process))
			continue;
		out->looks += process->look_count;
		out->runs += looks[JOB_RUNS];
		out->reads += looks[JOB_WAITS_READ] + looks[JOB_WAITS_FAULT] +
			      looks[JOB_WAITS_HELD] + looks[JOB_WAITS_RING];
		out->writes += looks[JOB_WAITS_WRITE] + looks[JOB_WAITS_SYNC];
		out->waits += looks[JOB_WAITS_INPUT] + looks[JOB_WAITS_OUTPUT] +
			      looks[JOB_WAITS_NETWORK] + looks[JOB_WAITS_POLL] +
			      looks[JOB_WAITS_LOCK] + looks[JOB_WAITS_SEMAPHORE] +
			      looks[JOB_WAITS_CONDITION];
	}
	double *const shares[] = {&out->runs, &out->reads, &out->writes, &out->waits};
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
		*shares[i] = out->looks ? *shares[i] / out->looks : NAN;
}

/* One of these programs that was there before, or that lives for longer than most. */
static bool programs_names(const struct job_programs *programs, const struct job_process *boss,
	const struct job_process *process)
{
	for (size_t i = 0; i < programs->count && process->parent == boss->pid; i++)
		if (strcmp(programs->of[i].name, process->name) == 0)
			return true;
	return false;
}

void job_programs_find(const struct job_record *record, struct job_verdict *out)
{
	struct job_programs *programs = &out->programs;
	uint32_t seen;
	double own = 0;
	*programs = (struct job_programs){.seen = 0};
	const double life_s = programs_median_life(record, &seen);
	if (seen < PROGRAMS_LEAST || !(life_s < PROGRAM_LIFE_S) || !(record->watched_s > 0))
		return;
	const uint32_t boss = programs_boss(record);
	const struct job_process *starts = &record->processes[boss];
	for (size_t i = 0; i < record->process_count; i++)
		if (!programs_has(record, &record->processes[i]))
			own += programs_grown(&record->processes[i], JOB_CPU_S);
	const double theirs = programs_grown(starts, JOB_CHILD_CPU_S);
	if (theirs < PROGRAMS_OF_CPU * (own + theirs))
		return;
	programs->seen = seen;
	programs->boss = boss;
	programs->life_s = life_s;
	programs->cores = (theirs + programs_grown(starts, JOB_CPU_S)) / record->watched_s;
	/* The kernel adds what a child read to what the one that waits for it has read. */
	programs->read_bytes_per_s = programs_grown(starts, JOB_READ) / record->watched_s;
	programs_look(record, programs);
	programs_name(record, programs);
	for (uint32_t i = 0; i < record->process_count; i++)
		if (programs_has(record, &record->processes[i]) ||
			programs_names(programs, starts, &record->processes[i]))
			out->roles[i] = JOB_ROLE_HELPER;
	out->roles[boss] = JOB_ROLE_WHOLE;
}

/* Share of their time that they wait for a core, as far as it was seen of each. */
static double programs_queued(const struct job_record *record)
{
	double queued = 0;
	double seconds = 0;
	for (size_t i = 0; i < record->thread_count; i++) {
		const struct job_thread *thread = &record->threads[i];
		const double one = job_thread_queue_s(thread);
		if (!programs_has(record, &record->processes[thread->process]) || isnan(one))
			continue;
		queued += one;
		seconds += thread->last_s - thread->first_s;
	}
	return seconds > 0 ? queued / seconds : 0;
}

bool job_programs_conclude(const struct job_record *record, struct job_verdict *out)
{
	const struct job_programs *p = &out->programs;
	char names[160] = "";
	size_t used = 0;
	if (p->seen == 0 || p->looks < PROGRAMS_LOOKS_LEAST)
		return false;
	for (size_t i = 0; i < p->count && i < 3 && used < sizeof names; i++)
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%s %.0f %%",
			i ? ", " : "", p->of[i].name, 100 * p->of[i].share);
	const int pid = record->processes[p->boss].pid;
	if (p->reads > p->runs)
		job_conclude(out, "read", "latency or device", JOB_POSSIBLE,
			"Reading files seems to hold the job up: the programs that process %d starts (%s of their time) are in calls on files %.0f %% of it",
			pid, names, 100 * p->reads);
	else if (p->runs >= PROGRAMS_BUSY && programs_queued(record) >= PROGRAMS_QUEUED &&
		 strcmp(job_cores_cause(record, out), "cpu") != 0)
		job_conclude(out, "process", job_cores_cause(record, out), JOB_POSSIBLE,
			"The programs that process %d starts (%s of their time) seem to hold the job up, and too few cores are free for them: they use %.1f cores",
			pid, names, p->cores);
	else if (p->runs >= PROGRAMS_BUSY)
		job_conclude(out, "process", "cpu",
			p->cores >= PROGRAMS_CORE ? JOB_LIKELY : JOB_POSSIBLE,
			"The programs that process %d starts (%s of their time) seem to hold the job up by their CPU time: they run %.0f %% of their time, on %.1f cores",
			pid, names, 100 * p->runs, p->cores);
	else
		return false;
	job_say(&out->evidence,
		"programs: each lives for %.0f ms (median); process %d that starts them and they use %.2f cores",
		1000 * p->life_s, pid, p->cores);
	job_say(&out->next,
		"run several of them at a time (xargs -P, GNU parallel), or one program that handles many files: each start costs some ms as well");
	return true;
}
