/* The life of a job that is watched from outside: its workers come and go, its trainers pause, its memory grows.  A pure function
 * of the record and of the roles that its processes have (job_verdict.h).
 *
 * Workers that are made anew each epoch are generations: all of one have ended when the next begins.  What a start costs is
 * how long the trainer goes on waiting after it, beyond the time in which each worker prepares a batch. */
#ifndef MLBENCH_ANALYZE_JOB_LIFE_H
#define MLBENCH_ANALYZE_JOB_LIFE_H

#include "harness/measure/job_watch.h"

struct job_verdict;

/* Something that a trainer does again and again: it stays in one kind of act for a while. */
enum job_phase {
	JOB_PHASE_STARVED, /* waits for its loaders, or for other ranks */
	JOB_PHASE_RUNS,
	JOB_PHASE_READS,  /* of files */
	JOB_PHASE_WRITES, /* and waits until they are written */
	JOB_PHASE_OTHER,  /* sleeps, waits for a device or a child, or is stopped */
	JOB_PHASES
};

struct job_pause {
	uint32_t count; /* 0: none */
	double seconds,
		period_s; /* medians: how long, from one begin to the next; NAN: fewer than 2 */
	double share;     /* of the watch */
	bool irregular;   /* at no steady pace */
};

struct job_life {
	/* Loader workers, of all trainers. */
	double workers;        /* at a time, while there are any */
	double lived_s;        /* in the watch, of all together */
	uint32_t begun, ended; /* meanwhile */
	uint32_t generations;  /* that began meanwhile, after others */
	double period_s;       /* from one generation to the next; NAN: fewer than 2 */
	double start_s; /* of a generation: how long its trainer waits for it; NAN: none began */
	double start_share; /* of the watch */
	double worker_age_s; /* when the watch ends: those that live, where their trainer is older by far; NAN */
	double starved; /* share of the trainers' looks; NAN: there are no tracks */
	struct job_pause
		pauses[JOB_PHASES]; /* of the first trainer, or of the job's first process */
	/* Memory: the process that grows most, index, by bytes/s; -1: none does.  limit_s: until what is left is used up; INFINITY:
	 * it is not. */
	int growing;
	double growing_per_s, limit_s;
};

/* Roles and bosses are known; fills in out->life. */
void job_life_find(const struct job_record *record, struct job_verdict *out);

/* Whether starts of workers cost most: then it is the verdict. */
bool job_life_conclude(const struct job_record *record, struct job_verdict *out);

/* Names pauses of the trainer where nothing else was found; a verdict that there is stays. */
void job_life_resolve(struct job_verdict *out);

/* What is to be told of it beside the verdict. */
void job_life_tell(const struct job_record *record, struct job_verdict *out);

/* How long the watch has to be, s, before what was seen of the job can stand for the rest of it: two periods of what repeats.
 * INFINITY: it cannot, as far as is seen. */
double job_life_enough_s(const struct job_record *record, const struct job_verdict *verdict);

#endif
