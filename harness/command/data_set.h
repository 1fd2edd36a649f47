/* The data set of a configuration, with a progress line.  All return -EINTR when *stop became true. */
#ifndef MLBENCH_COMMAND_DATA_SET_H
#define MLBENCH_COMMAND_DATA_SET_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/dataset/dataset.h"

#include <stdatomic.h>
#include <stdbool.h>

/* make: generates what is missing, where the configuration allows it.  Tells which files are left out. */
int data_open(const struct config *config, struct dataset *dataset, const atomic_bool *stop,
	bool make, struct error *err);
int data_generate(const struct config *config, const atomic_bool *stop,
	struct dataset_generated *out, struct error *err);
int data_verify(const struct config *config, const atomic_bool *stop, struct dataset_verified *out,
	struct error *err);

#endif
