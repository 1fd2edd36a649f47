/* The words of a verdict on a watched job: its sentence, and its lists of evidence, of what is unknown and of what to do next. */
#ifndef MLBENCH_ANALYZE_JOB_TELL_H
#define MLBENCH_ANALYZE_JOB_TELL_H

#include "harness/analyze/job_verdict.h"

/* A line more, if there is room; the verdict, in place of one before it. */
void job_say(struct job_lines *lines, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void job_conclude(struct job_verdict *out, const char *stage, const char *resource,
	enum job_certainty certainty, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

void job_tell_side(struct job_lines *lines, const char *who, const struct job_side *side);
/* What those that load, or a process that does it all, spend their CPU time on, the most first. */
void job_tell_classes(const struct job_record *record, const struct job_profile *profile,
	struct job_verdict *out);
/* Cores, quota and memory of the node. */
void job_tell_cores(const struct job_record *record, struct job_verdict *out);
void job_tell_start(const struct job_record *record, struct job_verdict *out);
void job_tell_unknown(const struct job_record *record, struct job_verdict *out);

#endif
