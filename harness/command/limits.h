/* Each stage alone, the others replaced by null: its limit on this node.  The stages are runs of
 * the same pipeline with configurations derived from the sweep's. */
#ifndef MLBENCH_COMMAND_LIMITS_H
#define MLBENCH_COMMAND_LIMITS_H

#include "harness/analyze/summary.h"
#include "harness/config/config.h"
#include "workloads/dataset/dataset.h"

#include <stdbool.h>

/* Whether a limit is known well enough from the rates of blocks: pipeline_control.enough. */
bool limits_enough(const double *rates, size_t count);

/* Whether the stage takes any time in this pipeline, and whether it can do without it. */
bool limits_has_stage(const struct config *config, const char *stage);
bool substitute_is_possible(const struct config *config, const char *stage);

/* Replaces a stage by one that takes no time, together with what is planted in it.  Files come
 * from memory when the data set and the pools fit, else from a warm page cache; *how then says
 * which, and is left alone for other stages. */
int substitute_stage(struct config *config, const char *stage, const struct dataset *dataset,
	const char **how, struct error *err);

/* config_set_key of a number. */
int limits_set_number(struct config *config, enum key_id key, int64_t value, struct error *err);

/* The configuration of a point with one of its stages and nothing else that takes time; the caller releases out in any case. */
int limits_stage_alone(struct config *out, const struct config *config,
	const struct config_grid *grid, size_t point, const char *stage,
	const struct dataset *dataset, struct error *err);

struct limit_job {
	struct stage_limit limit; /* stage and how; capacity is to be measured */
	struct config config;
};

struct limit_list {
	struct limit_job *jobs; /* owned */
	size_t count;
};

/* How many there will be; 0 with measure.limits = off. */
size_t limits_count(const struct config *config);

/* At the settings of a point: the one that the verdict speaks of.  LIMITS_UNKNOWN: before anything was
 * measured, with the largest counts, for the bound of memory. */
#define LIMITS_UNKNOWN SIZE_MAX
int limits_open(struct limit_list *list, const struct config *config,
	const struct config_grid *grid, size_t point, const struct dataset *dataset,
	struct error *err);
void limits_close(struct limit_list *list); /* safe on {0} */

#endif
