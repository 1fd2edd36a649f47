/* What the processes of a watched job (job_watch.h) have open: pipes and sockets, which join them; data files, of which kind, size
 * and file system they are; devices; shared memory.  From the links in /proc/PID/fd: no file is opened, no name is kept, and no
 * server is asked.
 *
 * What is found goes into the record, which the caller keeps until the end.  One thread: that of the watch. */
#ifndef MLBENCH_MEASURE_JOB_DESCRIPTORS_H
#define MLBENCH_MEASURE_JOB_DESCRIPTORS_H

#include "harness/measure/job_watch.h"

struct job_descriptors;

/* root: in front of /proc; "" but in tests.  NULL: out of memory. */
struct job_descriptors *job_descriptors_open(struct job_record *record, const char *root);
void job_descriptors_close(struct job_descriptors *all); /* NULL is fine */

/* The file systems as this process sees them (its /proc folder), which stand for all. */
void job_descriptors_read_mounts(struct job_descriptors *all, int folder);

/* What a thread of the process waits for that is found in a call on this descriptor: a file, or input or output. */
enum job_act job_descriptors_call(
	struct job_descriptors *all, struct job_process *process, unsigned long fd, bool write);

/* Looks at what it has open.  0 or -errno. */
int job_descriptors_look(struct job_descriptors *all, struct job_process *process);

/* Joins both ends of sockets, which have two numbers, unlike those of a pipe. */
void job_descriptors_find_peers(struct job_descriptors *all);

/* NULL: it holds no such pipe. */
const struct job_pipe *job_find_pipe(const struct job_process *process, uint64_t number);

#endif
