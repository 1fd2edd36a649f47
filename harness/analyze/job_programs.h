/* Programs that a job starts for a moment each, as a shell loop does that runs a decoder for every file: what they do together, and
 * by which names, since each of them is there for too short a time to be told of alone.  A pure function of the record; their CPU
 * time is what the kernel counts for the process that waits for them.
 *
 * Looks find those more often that live for longer, so that shares of looks are shares of time. */
#ifndef MLBENCH_ANALYZE_JOB_PROGRAMS_H
#define MLBENCH_ANALYZE_JOB_PROGRAMS_H

#include "harness/measure/job_watch.h"

struct job_verdict;

enum { JOB_PROGRAMS_MAX = 6 };

struct job_program {
	char name[JOB_NAME_BYTES];
	uint32_t seen; /* processes that were found, of more that came and went between looks */
	double share;  /* of all looks at such programs */
};

struct job_programs {
	uint32_t seen; /* 0: the job does not consist of such programs */
	uint32_t boss; /* index: who starts most of them */
	double life_s; /* median */
	double cores;  /* used by them all and by who starts them */
	double read_bytes_per_s;
	uint32_t looks;
	double runs, reads, writes, waits; /* of the looks; waits: for pipes, sockets and locks */
	struct job_program of[JOB_PROGRAMS_MAX]; /* the most first */
	size_t count;
};

/* Where roles are known: fills in out->programs, and makes its boss the one that does it all. */
void job_programs_find(const struct job_record *record, struct job_verdict *out);

/* Whether the job consists of them: then what they do is the verdict. */
bool job_programs_conclude(const struct job_record *record, struct job_verdict *out);

#endif
