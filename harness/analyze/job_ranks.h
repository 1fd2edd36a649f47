/* Ranks of a job that is watched from outside: processes that train one model together and wait for each other.  They are known by
 * the numbers that their launcher gave them, else by TCP connections between processes of one parent.  A pure function of the
 * record and of its roles (job_verdict.h).
 *
 * In a job of ranks all but the slowest wait, and what limits that one limits all.  Ranks that spin while they wait look like
 * ranks that work: then nothing is said. */
#ifndef MLBENCH_ANALYZE_JOB_RANKS_H
#define MLBENCH_ANALYZE_JOB_RANKS_H

#include "harness/measure/job_watch.h"

struct job_verdict;

enum { JOB_RANKS_MAX = 64 };

struct job_rank {
	uint32_t process; /* index: the one that trains */
	int32_t number;   /* -1: not told */
	double waits;     /* share of its looks: for its loaders, or for other ranks */
	double loading;   /* share of the looks at its loaders: they have work; NAN: it has none */
};

struct job_ranks {
	size_t count;  /* 0: it is no job of ranks, as far as is known */
	int32_t world; /* by their environment, those on other nodes included; 0: not told */
	struct job_rank of[JOB_RANKS_MAX];
};

/* Whether a process, by its index, is one of several ranks of one parent.  Needs no roles. */
bool job_ranks_has(const struct job_record *record, uint32_t index);

/* Roles and bosses are known; fills in out->ranks. */
void job_ranks_find(const struct job_record *record, struct job_verdict *out);

/* Whether one rank holds the others up, or all wait for the network: then it is the verdict. */
bool job_ranks_conclude(const struct job_record *record, struct job_verdict *out);

/* What is to be told of them beside the verdict. */
void job_ranks_tell(const struct job_record *record, struct job_verdict *out);

#endif
