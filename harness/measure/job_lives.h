/* The lives of a watched job's processes (job_watch.h): when each began and ended, which ranks its launcher made them, and what
 * the trainers did over time.
 *
 * What is found goes into the record.  One thread: that of the watch. */
#ifndef MLBENCH_MEASURE_JOB_LIVES_H
#define MLBENCH_MEASURE_JOB_LIVES_H

#include "harness/measure/job_watch.h"

/* A process was found; begun_s: of the watch, negative: before it.  Its folder is open. */
void job_lives_begin(struct job_record *record, struct job_process *process, double begun_s);

/* It has ended, as of the watch's second t_s. */
void job_lives_end(struct job_record *record, struct job_process *process, double t_s);

/* A look found it in this act.  process: an index. */
void job_lives_look(struct job_record *record, uint32_t process, enum job_act act, double t_s);

/* The first number in the environment of a process (as in /proc/PID/environ, `size` bytes) under one of the names that
 * launchers use for ranks, and their count where there is one; -1: none. */
int32_t job_lives_rank(const char *environment, size_t size, int32_t *world);

#endif
