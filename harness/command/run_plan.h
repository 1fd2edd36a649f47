/* What would run: configuration, grid, data set, memory, time, who computes the step.  Everything
 * that can be refused is refused here, before anything runs. */
#ifndef MLBENCH_COMMAND_RUN_PLAN_H
#define MLBENCH_COMMAND_RUN_PLAN_H

#include "harness/command/command.h"
#include "harness/config/config.h"
#include "harness/record/record.h"
#include "pipelines/pipeline.h"
#include "workloads/dataset/dataset.h"

#include <stdint.h>

enum { PLAN_WHY_BYTES = 320 };

/* Seconds of a plan that is measured as long as needed. */
#define PLAN_AT_MOST_S 20.0

/* What running a plan costs: seconds and bytes, added up point by point. */
struct plan_cost {
	/* Of one repetition of each point, from its warm-up to its end; 0 where it is a number of epochs. */
	double seconds_sum, seconds_most;
	size_t points;
	/* Points whose measure.duration has room for fewer than measure.min_batches of their emulated steps. */
	size_t short_points;
	struct {
		double duration_s, batch_s, batches_least;
		bool hopeless; /* too few even in the longest time that a repetition may take */
	} short_worst;

	/* Emptying or filling the page cache before a repetition of each point, added up; and the last data set that was
	 * tried, with its time. */
	double cache_seconds, visit_seconds;
	const struct dataset *visited;

	uint64_t resident_bytes; /* before anything runs */
	uint64_t results_bytes;  /* of all points, until the report is written */
	/* The largest pools of a stage alone; 0: none is run, or not known. */
	uint64_t limit_pool_bytes;
	uint64_t bound_bytes; /* on what is resident, whatever runs; 0: not known */
};

struct plan {
	/* Set before plan_open by what measures until its answer is clear: repetitions are then short, and as many as that
	 * takes, where measure.duration and measure.repeats are not set (and plan_open leaves it true). */
	bool as_needed;
	struct config config;
	struct config_grid grid;
	char name[RECORD_NAME_BYTES], hash[RECORD_HASH_BYTES];
	struct dataset dataset; /* of the first point, where storage forms are swept */
	struct dataset *forms;  /* (form_count) the other ones of such a sweep */
	size_t form_count;
	bool has_data;
	/* Of the data set, cut as the configuration without its sweep says (sample_cut_files). */
	uint64_t samples, sample_bytes;
	char data_why[PLAN_WHY_BYTES]; /* why there is none yet */

	size_t refused;       /* points that cannot run */
	struct error refusal; /* of the first of them */
	int refusal_code;
	size_t lacking;    /* points whose step this node cannot compute */
	struct error lack; /* of the first of them */

	struct pipeline_plan largest; /* of the point with the largest pools; zeroed without data */
	struct step_info step;
	char step_note[PLAN_WHY_BYTES]; /* why auto took no real device; "" if it did not have to */
	char engine[NAME_BYTES], engine_note[PLAN_WHY_BYTES];
	struct workload_facts facts; /* of the first point */

	unsigned cores; /* that the process may use */
	unsigned
		threads; /* that read, decode and step at once, at the point with the most; 0 without data */
	size_t limits; /* stages to be run alone after the sweep */
	struct plan_cost cost;
};

/* Says of a sweep whose sweep.mode is auto what it is, and sets the repetitions, their duration and their warm-up of a
 * sequential one as far as the user did not. */
int plan_settle_sweep(struct config *config, struct error *err);

/* The swept keys: "decode.workers, batch.size". */
void plan_swept(const struct config *config, struct buffer *out);

/* Reads the file, applies --set, and checks each point: -EINVAL and the like when anything is
 * wrong. path NULL: plan->config is set already. */
int plan_open(struct plan *plan, const struct invocation *invocation, const char *path,
	struct error *err);

/* Opens the data set, where plan->dataset is not one already, and plans every point on it.  The error of the first point when none can
 * run. make: generate what is missing, when the configuration allows that; else the plan goes
 * without. */
int plan_data(struct plan *plan, const struct invocation *invocation, bool make, struct error *err);
void plan_close(struct plan *plan); /* safe on {0} */

/* The data set of a point's configuration. */
const struct dataset *plan_dataset(const struct plan *plan, const struct config *config);

/* Seconds of one repetition, the mean of all points; 0 when it is a number of epochs. */
double plan_repetition_seconds(const struct plan *plan);
/* Of `repetitions` of them, the generation (when the data set is to be made) and the limits. */
double plan_seconds(const struct plan *plan, size_t repetitions);
/* A run that was planned.  limit: of a stage alone. */
void plan_cost_add_memory(struct plan_cost *cost, const struct pipeline_plan *planned, bool limit);

/* The plan in lines for people, without colour.  repetitions: to go; of a sequential sweep, at most. */
void plan_describe(const struct plan *plan, size_t repetitions, struct buffer *out);
json_t *plan_to_json(const struct plan *plan);

/* --- in which order repetitions run ----------------------------------------------------------- */

/* Block by block (repeat 0 of every point, then repeat 1, ...), each block in a random order of its
 * own, so that a drift of the node falls on all points alike. */
struct schedule_item {
	uint32_t point, repeat;
	uint64_t duration_ns; /* in place of measure.duration; 0: as it is set */
};

/* points x repeats items, a function of the seed; NULL without memory; free it. */
struct schedule_item *schedule_make(size_t points, size_t repeats, uint64_t seed);

#endif
