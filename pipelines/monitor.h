/* What the control thread looks at, window by window: a snapshot of every cumulative count at each
 * edge of a window.  All rates and shares are differences of two edges, so the warm-up can be cut
 * at any edge after the run. */
#ifndef MLBENCH_PIPELINES_MONITOR_H
#define MLBENCH_PIPELINES_MONITOR_H

#include "harness/measure/data_store.h"
#include "harness/measure/proc_text.h"
#include "harness/measure/state_clock.h"
#include "harness/measure/thread_meter.h"
#include "harness/record/measurement.h"
#include "pipelines/devices.h"
#include "pipelines/exchange.h"
#include "workloads/source/source.h"

/* A stage of a repetition as the instrument sees it, whatever its threads do; a stage that the run
 * does not have has no workers. */
struct stage {
	const char *name;
	unsigned workers;
	bool per_batch;
	/* (workers); owned by who opened it; NULL with the profiler off */
	struct thread_meter *meters;
};

enum queue_id { QUEUE_SAMPLES, QUEUE_BATCHES, QUEUE_UPLOADED, QUEUE_IDS };

/* Everything that is known at one moment, cumulative since the start. */
struct edge {
	uint64_t t_ns; /* since the start */
	uint64_t samples, batches;
	struct source_counts read;
	struct thread_times stages[STAGE_IDS]; /* summed over the stage's threads */
	bool accounted[STAGE_IDS];             /* the kernel told CPU times */
	struct queue_integrals queues[QUEUE_IDS];
	uint32_t queue_depth[QUEUE_IDS];
	uint32_t being_read; /* files with the readers */
	struct upload_totals uploads[DEVICES_MAX];
	struct round_sums rounds[DEVICES_MAX];
	struct process_usage usage;
	struct cpu_quota_use quotas[CPU_QUOTAS_MAX];
	struct data_store_use store;
};

struct monitor {
	const struct stage *stages; /* (STAGE_IDS) */
	struct exchange *exchange;
	const struct devices *devices;
	struct rounds *rounds;
	const struct source *source;
	bool timed;
	uint64_t start_ns, window_ns;
	struct cpu_quotas quotas; /* as they were when it was opened; those that were set later */
	struct data_store store;
	struct edge *edges; /* (EDGES_MAX); owned */
	size_t count;
	struct nvml_watch *nvml; /* of the devices that compute (nvml.h); NULL: none is watched */
};

enum { EDGES_MAX = WINDOWS_MAX + 1 };

/* data: where the samples lie.  The rest is filled by the caller; 0 or -ENOMEM. */
int monitor_open(struct monitor *monitor, const char *data);
void monitor_close(struct monitor *monitor); /* safe on {0} */

/* The window that keeps a repetition of planned_ns within the edges there are. */
uint64_t monitor_window(uint64_t window_ns, uint64_t planned_ns);

/* Takes an edge now.  When all are used, every second is dropped and the window doubles. */
void monitor_sample(struct monitor *monitor);
/* What it would be now, kept by nobody.  After the first one. */
void monitor_peek(const struct monitor *monitor, struct edge *edge);

/* Begins to watch, on threads of its own, the real devices, whose backends are open by now and
 * have said what they compute on.  Where measure.device or measure.profiler is off, or it cannot,
 * a note says so. */
void monitor_watch_devices(
	struct monitor *monitor, const struct config *config, struct measurement *m);
/* Within a second, whatever the driver does. */
void monitor_stop_watching(struct monitor *monitor);
/* The first device at a moment; unknown where none is watched. */
void monitor_device_window(const struct monitor *monitor, uint64_t t_ns, struct window *window);

/* The time of the next edge. */
uint64_t monitor_next_ns(const struct monitor *monitor);

/* What every thread does now: "read 1 working, decode 2 starved, ..." */
void monitor_describe(const struct monitor *monitor, char *out, size_t room);

#endif
