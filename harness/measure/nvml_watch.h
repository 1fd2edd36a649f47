/* What the sampling threads and the one that started them share.  Internal to measure. */
#ifndef MLBENCH_MEASURE_NVML_WATCH_H
#define MLBENCH_MEASURE_NVML_WATCH_H

#include "harness/measure/nvml_series.h"

#include <pthread.h>

enum nvml_pace { NVML_PACE_QUICK, NVML_PACE_SLOW, NVML_PACES };

/* One of the two threads: the quick one has NVML opened, the slow one waits for that. */
struct nvml_sampler {
	struct nvml_watch *watch;
	const struct nvml_group *group;
	uint64_t period_ns; /* grows where samples take much of it, or are thinned out */
	uint64_t cpu_ns;    /* what it has cost; under the lock */
	bool running;       /* under the lock */
	struct nvml_series series[DEVICES_MAX]; /* of each watched device; under the lock */
};

enum nvml_phase { NVML_PHASE_OPENING, NVML_PHASE_READY, NVML_PHASE_ABSENT };

struct nvml_watch {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Who still holds it: the starter and the threads; the last one frees it. */
	unsigned holders;
	enum nvml_phase phase;
	bool stopping;
	bool given_up;                  /* the starter waited no longer */
	char why[ERROR_TEXT_BYTES / 2]; /* ABSENT */
	char buses[DEVICES_MAX][32];
	size_t count;
	const struct nvml_library *library;
	struct nvml_handle *devices[DEVICES_MAX]; /* NULL: not found, codes says why */
	int codes[DEVICES_MAX];
	double clock_max[DEVICES_MAX]; /* MHz; NAN */
	struct nvml_sampler samplers[NVML_PACES];
	uint64_t started_ns, stopped_ns;
};

#endif
