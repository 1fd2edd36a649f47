/* The costs that a replay is fed with, from measurements and the recorded items of one point. */
#ifndef MLBENCH_ANALYZE_MODEL_COSTS_H
#define MLBENCH_ANALYZE_MODEL_COSTS_H

#include "harness/analyze/replay.h"
#include "harness/analyze/storage_capacity.h"
#include "harness/record/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* Shares of a stage's working time that is not waiting for a lock; these two and the run queue's
 * share sum to 1. */
struct time_split {
	double cpu, sleep;
	bool known; /* false: no CPU accounting; cpu is 1 */
};
struct time_split time_split_of(const struct measurement *m, const struct stage_measurement *stage);

/* How many cores are busy while a thread of that stage is on one, itself included; 1 where the stage was not measured. */
double busy_beside(const struct measurement *m, enum stage_id stage, double cores);

/* Threads of other processes: the cores that they got, and how many they wanted if the scheduler
 * treats them as it treats ours.  It need not: those of another session or container share as a
 * group. */
struct outside {
	double got, wanted;
};
/* step_on_cores: what this process computes beside its stages' threads belongs to the step. */
/* CPU time of a sample that the costs have, ns. */
double model_sample_cpu(const struct replay_model *replay);

struct outside outside_threads(const struct measurement *m, double cores, bool step_on_cores);

/* A growing series of one cost; owned. */
struct cost_series {
	float *ns;
	size_t count;
};
/* Room for so many more, zeros; NULL without memory. */
float *series_extend(struct cost_series *series, size_t count);

/* Append the costs of one repetition.  slowed: how many times as long a core took because others
 * were busy (CPU costs are those of a core alone).  factor: of each worker or device.  0 or
 * -ENOMEM. */
int series_of_decode(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const float *factor, double slowed);
int series_of_upload(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const struct workload_facts *facts, double slowed);
/* late_ns: of a batch; it is in the step's device cost beyond the device's own time. */
int series_of_step(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const float *factor, const struct workload_facts *facts,
	double slowed, double *late_ns);
/* Once for all devices, which exchange at the same time. */
struct model_waits;
int series_of_sync(
	struct cost_series series[COSTS], const struct trace *trace, struct model_waits *waits);

/* Of checkpoints: storing one, and copying its state to a staging buffer. */
int series_of_checkpoint(struct cost_series series[COSTS], const struct measurement *m);
/* Of evaluations: waiting for their input, and the rest. */
int series_of_evaluation(struct cost_series series[COSTS], const struct measurement *m);

/* How many times what the others do a worker spends on an item, on a core or in waits of its own, over the repetitions: waiting
 * for a core or a lock makes nobody slow.  1: it is not the one that spends most; NAN: unknown. */
double worker_spends(
	const struct measurement *const *repeats, size_t count, const char *stage, unsigned worker);

/* Writes how many times as long each worker of a stage takes as an ordinary one, 1 where the
 * difference may be chance or it only waits longer (worker_spends).  False: all are alike.  factor: (workers). */
bool worker_factors(const struct measurement *const *repeats, const struct traces *const *traces,
	size_t count, const char *stage, unsigned workers, float *factor);

/* --- reads: latency and device time ----------------------------------------------------------- */

/* Splits a file's time from submission to completion into latency, which overlaps with that of
 * other files in flight, and the time of one serial device (a disk, a link), for which files
 * queue.
 *
 * The submissions of a trace are replayed by
 *     completion_i = max(submission_i + latency, free_i),
 *     free_i = max(submission_i, free_(i-1)) + service_i       (of the device)
 * so that the latency is that of a file which finds the device idle.  A range of latencies and of
 * services (as shares of the time between files) is tried; the pair that predicts the recorded
 * times best (mean absolute error) is taken.  A device needs evidence: it must predict clearly
 * better than latency alone, and be slower than the reader's own CPU time.  Files that a cache
 * answered bypass the device.
 *
 * A trace of one operating point tells the two apart only where the queue comes and goes.  Where
 * other points tell (storage_capacity.h), the pair is theirs, latency and 1 / capacity, and the
 * trace only says which files are cheaper than others. */

/* What is known besides the trace. */
struct read_facts {
	double cpu_ns;    /* that a reader's thread spends on a file */
	double within_ns; /* of that, in the file's own time: the rest comes when it is read */
	/* One file at a time and thread; false: up to the depth. */
	bool blocking;
	unsigned threads, depth;
	/* What several operating points tell, which goes before what one trace suggests; NULL:
	 * there is one. */
	const struct storage *storage;
};

struct read_split {
	double latency_ns; /* of a file that went through the device, mean */
	double device_ns;  /* means per file, those from the cache counted as 0 */
	/* Without a device: so much a file might be a device's and would not show. */
	double hidden_ns;
	double device_share; /* of the time that the device was busy */
	double hit_share;    /* of files that a cache answered, where these could be told apart */
	/* mean absolute prediction error, over the mean time: latency alone */
	double error_latency;
	double error_device; /* with the device */
	bool identified;     /* false: the trace fits either; taken as latency */
	/* Service is proportional to bytes; else the same for each file. */
	bool by_bytes;
};

/* Writes each item's latency_ns and device_ns, (count) each, without the CPU time.  items: by
 * number, those of several repetitions behind each other.  0 or -ENOMEM. */
int read_split(const struct trace_item *items, size_t count, const struct read_facts *facts,
	float *latency_ns, float *device_ns, struct read_split *out);

#endif
