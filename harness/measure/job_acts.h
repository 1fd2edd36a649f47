/* What a thread waits for, by the call that /proc finds it in and its arguments.  Its memory is not read: of a lock there is the
 * address and what the thread expects there, which differs between a mutex, a semaphore and a condition. */
#ifndef MLBENCH_MEASURE_JOB_ACTS_H
#define MLBENCH_MEASURE_JOB_ACTS_H

#include "harness/measure/job_descriptors.h"
#include "harness/measure/job_watch.h"

/* text: of /proc/PID/task/TID/syscall.  held: it is in uninterruptible sleep (D). */
struct job_wait job_wait_of_call(struct job_descriptors *descriptors, struct job_process *process,
	const char *text, bool held);

/* Where its call may not be seen: by the kernel's function that it sleeps in (/proc/PID/task/TID/wchan). */
enum job_act job_act_of_function(const char *function, bool held);

#endif
