/* What limits a watched job, from what its sides do: first who waits for whom, then what the other side spends its time on. */
#ifndef MLBENCH_ANALYZE_JOB_CAUSE_H
#define MLBENCH_ANALYZE_JOB_CAUSE_H

#include "harness/analyze/job_verdict.h"

/* Roles and sides are known; names stage, resource and certainty, and says why. */
void job_find_cause(const struct job_record *record, const struct job_profile *profile,
	struct job_verdict *out);

/* Why those that wait for a core get none: "quota", "affinity", "external", "threads"; "cpu": the job itself uses up the cores
 * with no more threads than it has work for; "cores": not known. */
const char *job_cores_cause(const struct job_record *record, const struct job_verdict *verdict);

#endif
