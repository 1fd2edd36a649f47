/* The data set of a configuration, generated on the way when it may be, with a progress line. */
#ifndef MLBENCH_COMMAND_DATA_H
#define MLBENCH_COMMAND_DATA_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/dataset/dataset.h"

#include <stdatomic.h>

/* make: generate it when it is missing, it has a recipe and dataset.generate is auto.  Errors as
 * dataset_open; -EINTR when stopped. */
int data_open(const struct config *config, struct dataset *dataset, const atomic_bool *stop,
	bool make, struct error *err);

int data_generate(const struct config *config, const atomic_bool *stop,
	struct dataset_generated *out, struct error *err);

int data_verify(const struct config *config, const atomic_bool *stop, struct dataset_verified *out,
	struct error *err);

#endif
