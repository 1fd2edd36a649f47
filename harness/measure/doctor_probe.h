/* Probes of the running kernel for the doctor: each tries the thing itself, harmlessly. */
#ifndef MLBENCH_MEASURE_DOCTOR_PROBE_H
#define MLBENCH_MEASURE_DOCTOR_PROBE_H

#include <stdbool.h>

/* Each returns 0, or the negative errno with which the kernel refused. */
int probe_io_uring(void);
int probe_cachestat(void);
int probe_mincore(void);
int probe_huge_page(void);
int probe_perf_software(void); /* task clock of this thread */
int probe_perf_hardware(void); /* its cycles */
int probe_direct_io(
	const char *folder); /* an unnamed temporary file there; -EROFS and the like too */

/* Cores busy and share stolen on the whole node over `ms`; false when /proc/stat does not say. */
bool probe_load(unsigned ms, double *cores_busy, double *steal_share);

#endif
