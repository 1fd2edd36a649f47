/* The pipeline's structure as a configuration gives it: how many threads, buffers and places there are.
 * The one home of these formulas: the pipeline is built by them, and the replay that predicts it uses
 * the same, so a changed key means the same to both.  Pure functions. */
#ifndef MLBENCH_CONFIG_SHAPE_H
#define MLBENCH_CONFIG_SHAPE_H

#include "harness/base/workload_facts.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stdint.h>

/* What the configuration alone does not say. */
struct shape_facts {
	uint64_t samples; /* of the data set */
	struct workload_facts workload;
};

struct pipeline_shape {
	unsigned reader_threads;
	unsigned read_depth; /* files in flight per reader thread */
	uint32_t blobs;      /* files in flight or waiting for a decoder, over all readers */
	unsigned decode_workers;
	uint32_t batch_size; /* samples a step, at most the data set */
	uint32_t prefetch_depth;
	uint32_t slots; /* batches being filled, waiting, and in the steps */
	uint32_t
		staging_slots; /* of each device: uploaded batches, the step's own included; 0: no upload stage */
	unsigned devices; /* step threads, and upload threads where there is that stage */
	bool in_order;
	unsigned step_threads; /* cores that the step keeps busy while it computes; 0: none */
};

/* Whether batches go through an upload stage: upload.mode = copy, or auto with a device that has memory. */
bool shape_uploads(const struct config *config, const struct workload_facts *facts);

void pipeline_shape_of(
	const struct config *config, const struct shape_facts *facts, struct pipeline_shape *shape);

#endif
