/* What the processes and threads of a watched job do on average, by their part in it. */
#ifndef MLBENCH_ANALYZE_JOB_SIDES_H
#define MLBENCH_ANALYZE_JOB_SIDES_H

#include "harness/analyze/job_verdict.h"

enum { JOB_LOOKS_LEAST = 30 }; /* looks are samples: below so many nothing is said */

/* Fills in the sides of the verdict; roles are known. */
void job_find_sides(const struct job_record *record, struct job_verdict *out);

#define JOB_OTHERS 0.2 /* of the node's cores, kept busy by others: they matter */

/* Cores that the job used on average, programs that lived for a moment among them. */
double job_cores_used(const struct job_record *record, const struct job_verdict *verdict);

/* Shares of a role's CPU time by class; how many samples they are of, 0: it was not sampled. */
uint64_t job_class_shares(const struct job_record *record, const struct job_profile *profile,
	const struct job_verdict *verdict, enum job_role role, double shares[JOB_CLASSES]);

#endif
