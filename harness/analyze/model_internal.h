/* What the files of the replay model share: costs from traces (model_costs.c), the replay as it
 * stands (point_model.c).  point_model.h is the way in. */
#ifndef MLBENCH_ANALYZE_MODEL_INTERNAL_H
#define MLBENCH_ANALYZE_MODEL_INTERNAL_H

#include "harness/analyze/point_model.h"

#include <stdbool.h>
#include <stddef.h>

enum { MODEL_BLOCK = 64 };

void model_note(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes the replay use the factors of slow devices, if any device is slow.  Call it after a change
 * of device_factor or of the number of devices. */
void model_use_devices(struct model *model);
/* The shape of another configuration of the same workload. */
void model_shape(
	const struct model *model, const struct config *config, struct pipeline_shape *shape);

/* --- point_model.c: the replay as it stands --------------------------------------------------- */

/* About `samples` samples through the step, after a warm-up. */
struct replay_options model_options(const struct model *model, size_t samples);
/* Draws blocks of the recorded items at random: another run of the same kind. */
struct replay_options model_resample(const struct model *model, size_t samples, uint64_t seed);
/* As many samples as a replay of full length has. */
size_t model_whole_length(const struct model *model);
/* How much of the time a stage's threads were at work in a replay, 0..1. */
double replay_busy(const struct replay_result *result, enum replay_stage stage);

/* --- model_costs.c: costs from measurements and traces ---------------------------------------- */

enum replay_stage model_cost_stage(enum replay_cost cost);
/* ns per item, scale included; 0 where the stage has none of this cost. */
double model_mean_cost(const struct replay_model *replay, enum replay_cost cost);

/* Shares of a stage's working time that is not waiting for a lock; these two and the run queue's
 * share sum to 1. */
struct time_split {
	double cpu, sleep;
	bool known; /* false: no CPU accounting; cpu is 1 */
};
struct time_split time_split_of(const struct stage_measurement *stage);

/* How many cores are busy while a decode worker is on one, itself included. */
double busy_beside_decode(const struct measurement *m, double cores);

/* Threads of other processes: the cores that they got, and how many they wanted if the scheduler
 * treats them as it treats ours.  It need not: those of another session or container share as a
 * group. */
struct outside {
	double got, wanted;
};
/* step_on_cores: what this process computes beside its stages' threads belongs to the step. */
struct outside outside_threads(const struct measurement *m, double cores, bool step_on_cores);

/* A growing series of one cost; owned. */
struct cost_series {
	float *ns;
	size_t count;
};
int series_append(struct cost_series *series, const float *ns, size_t count);

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
int series_of_sync(struct cost_series series[COSTS], const struct trace *trace);

/* Writes how many times as long each worker of a stage takes as an ordinary one, 1 where the
 * difference may be chance.  False: all are alike.  factor: (workers). */
bool worker_factors(const struct traces *const *traces, size_t count, const char *stage,
	unsigned workers, float *factor);

/* --- model_predict.c -------------------------------------------------------------------------- */

/* The costliest cost of the stage whose costs' elasticities sum highest. */
enum replay_cost model_limiting_cost(const struct elasticities *elasticities);

#endif
