/* What the jobs in C share, as common.py for those in Python: options, the end on SIGTERM, the log of the batches. */
#ifndef MLBENCH_JOBS_BANK_COMMON_H
#define MLBENCH_JOBS_BANK_COMMON_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct job {
	const char *data;
	FILE *log; /* NULL: of no interest */
	double begun, seconds;
	long steps;
};

static volatile sig_atomic_t job_ended;

static void job_on_signal(int number)
{
	(void)number;
	job_ended = 1;
}

static inline double job_now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The word after an option, or what holds without it. */
static inline const char *job_option(int count, char **words, const char *name, const char *otherwise)
{
	for (int i = 1; i + 1 < count; i++)
		if (!strcmp(words[i], name))
			return words[i + 1];
	return otherwise;
}

/* Opens the log where `logs`: of several ranks only one. */
static inline struct job job_begin(int count, char **words, int logs)
{
	struct job job = {.data = job_option(count, words, "--data", "."), .begun = job_now(CLOCK_MONOTONIC)};
	job.seconds = atof(job_option(count, words, "--seconds", "0"));
	signal(SIGTERM, job_on_signal);
	if (logs)
		job.log = fopen(job_option(count, words, "--log", "/dev/null"), "w");
	if (job.log)
		fprintf(job.log, "step,wall_time,samples,data_time_ms\n");
	return job;
}

static inline int job_runs(const struct job *job)
{
	return !job_ended && (job->seconds <= 0 || job_now(CLOCK_MONOTONIC) - job->begun < job->seconds);
}

static inline void job_batch(struct job *job, int samples, double waited_s)
{
	job->steps++;
	if (!job->log)
		return;
	fprintf(job->log, "%ld,%.6f,%d,%.3f\n", job->steps, job_now(CLOCK_REALTIME), samples, 1e3 * waited_s);
	fflush(job->log);
	printf("batch %d\n", samples);
	fflush(stdout);
}

#endif
