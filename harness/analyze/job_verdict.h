/* What a job that was watched from outside (harness/measure/job_watch.h) consists of and what seems to limit it: a pure
 * function of the record.
 *
 * Roles come from what processes do, never from their names: who holds two ends of one pipe, who has data files open,
 * who uses CPU time, who waits.  The verdict compares two sides: does the trainer wait while its loaders work, or the other
 * way around?  Only where both sides agree does it name a stage.  It is one operating point, seen from outside: it says
 * "likely" at most, and of reads never whether the store is slow or full, which look the same here (DESIGN: a closed loop
 * needs two points).  What cannot be known is listed with every verdict. */
#ifndef MLBENCH_ANALYZE_JOB_VERDICT_H
#define MLBENCH_ANALYZE_JOB_VERDICT_H

#include "harness/analyze/job_life.h"
#include "harness/analyze/job_programs.h"
#include "harness/analyze/job_ranks.h"
#include "harness/analyze/limit_kinds.h"
#include "harness/measure/job_places.h"
#include "harness/measure/job_sampler.h"
#include "harness/measure/job_watch.h"

#include <stddef.h>

enum job_role {
	JOB_ROLE_HELPER,  /* neither of the others: launchers, trackers, what is idle */
	JOB_ROLE_TRAINER, /* takes batches from loaders */
	JOB_ROLE_LOADER,  /* works for a trainer above it */
	JOB_ROLE_WHOLE,   /* loads and trains by itself */
	JOB_ROLES
};
const char *job_role_name(enum job_role role); /* "trainer" */

/* Means of several processes or threads of one kind, as shares of their time. */
struct job_side {
	size_t count; /* processes, or threads */
	uint32_t looks;
	double cpu, system, queue; /* of the kernel's counts; cores of one, NAN: not known */
	double acts[JOB_ACTS];     /* of looks */
	/* Sums of these: on a core or waiting for one; reads files, io_uring and pages included; writes files; waits for work
	 * (input, poll, network); for room to write; at locks and conditions; sleeps by its own choice. */
	double runs, file, write, idle, output, lock, time;
	double busiest,
		least_busy; /* runs + file, of the processes, without what they waited for a core */
	double kept;        /* the most of its time that one of them waited for a core */
};

enum job_certainty { JOB_UNKNOWN, JOB_POSSIBLE, JOB_LIKELY };
const char *job_certainty_name(enum job_certainty certainty);

enum { JOB_LINES_MAX = 16, JOB_LINE_BYTES = 360, JOB_WORD_BYTES = 32 };

struct job_lines {
	char of[JOB_LINES_MAX][JOB_LINE_BYTES];
	size_t count;
};

struct job_verdict {
	enum job_role roles[JOB_PROCESSES_MAX];
	uint32_t boss[JOB_PROCESSES_MAX]; /* of a loader: index of its trainer */
	struct job_side trainer, loader;  /* count 0: there is none */
	/* Threads: the first ones of trainers, or of processes that do it all; the others of the latter that work. */
	struct job_side head, pool;
	bool still; /* nothing of it ran and nothing was read, or its head is stopped by a signal */
	double loaders_began_s; /* of the watch, where its start was watched; else 0 */
	/* A row of job_entries: "loader", "trainer", "step", "read", "loader and step", ...; "unknown" */
	char stage[JOB_WORD_BYTES];
	char resource[JOB_WORD_BYTES]; /* "cpu", "gil", "quota", "latency or device", "lock", ... */
	enum job_certainty certainty;
	char words[JOB_LINE_BYTES];               /* the verdict as a sentence */
	struct job_lines evidence, unknown, next; /* next: what would tell more */
	/* Files a second, if each is read whole and once; NAN: no estimate, and the reason is in files_why. */
	double files_per_s;
	/* Between these: a file that is open for longer is seen more often.  low: all are open for as long; high: as long as
	 * they are large, which makes their harmonic mean that of the files that are read. */
	double files_low, files_high;
	char files_why[JOB_LINE_BYTES];
	double growth; /* of memory, bytes/s over the last two thirds; NAN: not known */
	struct job_life life;
	struct job_ranks ranks;
	struct job_programs programs;
};

/* The runbook's entry. */
const struct job_entry *job_entry_find(const struct job_verdict *verdict); /* never NULL */

/* profile: of its CPU time; NULL: it was not sampled. */
void job_verdict_find(const struct job_record *record, const struct job_profile *profile,
	struct job_verdict *out);

/* Of a verdict that the step limits the job: its GPUs say whether that is their work.  CPU time does not: a thread that waits
 * for its GPU spins. */
void job_verdict_weigh_devices(
	const struct job_record *record, const struct job_places *places, struct job_verdict *out);

/* A process that another waits for at a pipe; the share of its looks. */
struct job_edge {
	uint32_t from, to; /* indices of processes */
	double share;
};
/* Who waits for whom, most first; how many of at most `room`. */
size_t job_edges(const struct job_record *record, struct job_edge *out, size_t room);

#endif
