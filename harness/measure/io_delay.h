/* Time that a thread was blocked for block I/O, by the kernel's delay accounting (/proc/PID/task/TID/stat,
 * field 42, in clock ticks), which is off by default since Linux 5.14.
 *
 * A trap: since Linux 6.6 a thread that waits at an io_uring with requests pending counts as blocked for
 * I/O, whatever the requests are and whoever they wait for.  Of a reader on io_uring this is no evidence
 * of a slow disk; of threads that call the kernel for their own pages or files it is. */
#ifndef MLBENCH_MEASURE_IO_DELAY_H
#define MLBENCH_MEASURE_IO_DELAY_H

#include <stdbool.h>
#include <stdint.h>

/* NULL when this node accounts for it, else why not: a static string. */
const char *io_delay_unavailable(void);

/* Of the calling thread: a file for io_delay_read, or -1. */
int io_delay_open(void);
/* Any thread; up to now, in ns.  False when the thread has ended. */
bool io_delay_read(int file, uint64_t *ns);

/* The field of such a line, in ticks; false when it has none. */
bool io_delay_parse(const char *line, uint64_t *ticks);

#endif
