/* A command of the user's that this process starts as a shell does: in a process group of its own, which gets the terminal, its
 * streams and limits as they were given to this process.  Signals that this process gets are the command's; when the command
 * is stopped (Ctrl-Z), so is this process, and both go on together. */
#ifndef MLBENCH_COMMAND_STARTED_JOB_H
#define MLBENCH_COMMAND_STARTED_JOB_H

#include "harness/base/error.h"

#include <stdint.h>

/* Once a process.  -EINVAL: it cannot be started; err says why. */
int started_job_begin(char *const *command, int32_t *pid, struct error *err);

/* Waits until it has ended; its exit status as a shell has it: 128 and the signal that ended it.  Once. */
int started_job_wait(void);

#endif
