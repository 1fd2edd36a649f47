/* The steps of a calibration, shared by the files that make it; model.h is the way in. */
#ifndef MLBENCH_ANALYZE_MODEL_PARTS_H
#define MLBENCH_ANALYZE_MODEL_PARTS_H

#include "harness/analyze/model.h"

#include <stdbool.h>
#include <stddef.h>

void model_note(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum replay_stage model_cost_stage(enum replay_cost cost);

/* Has the replay know which devices are slow, if any; when device_factor or the number of devices changed. */
void model_use_devices(struct model *model);

/* --- model_split.c: a stage's working time ---------------------------------------------------------- */

/* Shares of the working time that is not waiting for a lock; they and the run queue's sum to 1. */
struct time_split {
	double cpu, sleep;
	bool known; /* false: no CPU accounting; cpu is 1 */
};
struct time_split time_split_of(const struct stage_measurement *stage);

/* A CPU quota stopped the threads, for the rest of a period at a time. */
bool quota_stops(const struct measurement *m);

/* How many cores are busy while a decode worker is on one, itself included. */
double busy_beside_decode(const struct measurement *m, double cores);
/* Threads of others: the cores that they got, and how many of them wanted one if the scheduler treats them
 * as it does ours.  It need not: those of another session or container share as a group. */
struct outside {
	double got, wanted;
};
/* step_on_cores: what this process computes beside its stages' threads belongs to the step. */
struct outside outside_threads(const struct measurement *m, double cores, bool step_on_cores);

/* --- model_series.c: costs from traces -------------------------------------------------------------- */

/* A growing series of one cost; owned. */
struct cost_series {
	float *ns;
	size_t count;
};
/* Of another configuration of the same workload. */
void model_shape(
	const struct model *model, const struct config *config, struct pipeline_shape *shape);

/* Of one repetition, behind what is there.  slowed: how many times as long a core took because others
 * were busy; CPU costs are those of a core alone.  factor: of each worker.  0 or -ENOMEM. */
int series_of_decode(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const float *factor, double slowed);
int series_of_upload(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const struct workload_facts *facts, double slowed);
/* late_ns: of a batch, that is in its device time beyond the device's.  factor: of each device. */
int series_of_step(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const float *factor, const struct workload_facts *facts,
	double slowed, double *late_ns);
/* Once for all devices, which exchange at the same time. */
int series_of_sync(struct cost_series series[COSTS], const struct trace *trace);
int series_append(struct cost_series *series, const float *ns, size_t count);

/* Writes how many times as long worker i of a stage takes as an ordinary one, 1 where that may be chance; false:
 * they are alike.  factor: (workers). */
bool worker_factors(const struct traces *const *traces, size_t count, const char *stage,
	unsigned workers, float *factor);

/* --- model_baseline.c: the replay as it stands ------------------------------------------------------ */

/* About so many samples through the step, after a warm-up. */
struct replay_options model_options(const struct model *model, size_t samples);
/* Draws blocks of the recorded items at random: another run of the same kind. */
struct replay_options model_resample(const struct model *model, size_t samples, uint64_t seed);
/* Fills measured and noise. */
int model_measured(struct model *model, const struct model_source *source, struct error *err);
/* Chooses outside so that the replay comes nearest to what was measured; fills calibrated, calibrated_busy,
 * unmodelled.  -ENODATA: too few samples for a prediction. */
int model_baseline(struct model *model, const struct outside *outside, struct error *err);
/* How much time a stage's threads were at work in a replay, 0..1. */
double replay_busy(const struct replay_result *result, enum replay_stage stage);
/* ns a batch that the step's thread is at work, of one device. */
double step_working_replayed(const struct model *model, const struct replay_result *result);

enum { MODEL_BLOCK = 64, MODEL_SAMPLES_LEAST = 2000, MODEL_SAMPLES_MOST = 12000 };

#endif
