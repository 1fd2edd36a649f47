/* Which part of a watched job each process is, by what it does: who holds two ends of one pipe, reads files, uses CPU time. */
#ifndef MLBENCH_ANALYZE_JOB_ROLES_H
#define MLBENCH_ANALYZE_JOB_ROLES_H

#include "harness/analyze/job_verdict.h"

/* Fills in the roles, and of each process its boss. */
void job_find_roles(const struct job_record *record, struct job_verdict *out);

double job_cpu(const struct job_process *process); /* cores; NAN: not known */
bool job_reads_files(const struct job_process *process);

#endif
