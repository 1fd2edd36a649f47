/* Stages replaced by ones that hand out ready-made outputs of the same size and take no time, together with
 * what is planted in them. */
#ifndef MLBENCH_COMMAND_SUBSTITUTE_H
#define MLBENCH_COMMAND_SUBSTITUTE_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/dataset/dataset.h"

/* Bytes from memory when the data set and the pools fit, else from a warm page cache; how says which. */
int substitute_read(
	struct config *config, const struct dataset *dataset, const char **how, struct error *err);
/* Nothing is decoded or augmented. */
int substitute_decode(struct config *config, struct error *err);
/* The step reads the batch where the workers wrote it. */
int substitute_upload(struct config *config, struct error *err);
/* The null step; the upload, if any, stays. */
int substitute_step(struct config *config, struct error *err);
/* The exchange of gradients between emulated devices. */
int substitute_sync(struct config *config, struct error *err);

#endif
