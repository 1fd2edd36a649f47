/* What a job that is watched from outside shares with others meanwhile: its mounts of network file systems, by the kernel's
 * counts (mountstats.h), and the GPUs that it has open, by NVML (nvml.h).  Both are counted for everybody who uses them.
 * Names of servers and folders are not kept. */
#ifndef MLBENCH_MEASURE_JOB_PLACES_H
#define MLBENCH_MEASURE_JOB_PLACES_H

#include "harness/measure/job_watch.h"
#include "harness/record/measurement.h"

enum { JOB_MOUNTS_MAX = 8, JOB_BUSY_MAX = 512 };

struct job_mount {
	char system[JOB_NAME_BYTES]; /* "nfs4" */
	struct network_measurement network;
};

/* A GPU's busy share over time, as NVML has it: some kernel was resident. */
struct job_gpu {
	struct device_measurement device;
	double t_s[JOB_BUSY_MAX], busy[JOB_BUSY_MAX]; /* (count) */
	size_t count;
};

struct job_places {
	struct job_mount mounts[JOB_MOUNTS_MAX];
	size_t mount_count;
	size_t more_mounts;   /* that found no room */
	struct job_gpu *gpus; /* (gpu_count); owned */
	size_t gpu_count;
	char gpu_why[STORE_WHY_BYTES]; /* what NVML does not tell of them, and why; "" */
};

struct job_places_watch;

/* From now on.  root: in front of /proc; devices: bits of /dev/nvidiaN that the job has open.  -ENOMEM; what is missing
 * otherwise has a reason in the end. */
int job_places_begin(struct job_places_watch **out, const char *root, int32_t pid, uint64_t devices,
	struct error *err);
/* Until now; out belongs to the watch. */
const struct job_places *job_places_end(struct job_places_watch *watch);
void job_places_close(struct job_places_watch *watch); /* NULL is fine */

#endif
