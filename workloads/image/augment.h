/* The random parameters of a sample: a function of its seed alone. */
#ifndef MLBENCH_WORKLOADS_IMAGE_AUGMENT_H
#define MLBENCH_WORKLOADS_IMAGE_AUGMENT_H

#include "harness/config/config.h"
#include "workloads/image/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct augment_options {
	enum augment_crop crop;
	uint32_t size;               /* edge of the output, pixels */
	double scale_min, scale_max; /* share of the picture's area */
	double ratio_min, ratio_max; /* width over height */
	double flip;                 /* probability */
};

struct augment_choice {
	struct region crop; /* never empty, inside the picture */
	bool flip;
};

void augment_read_options(struct augment_options *options, const struct config *config);

/* Random crops are drawn as torchvision's RandomResizedCrop.get_params draws them: ten tries of a
 * uniform area and a log-uniform ratio, then the largest centred crop of an allowed ratio. */
void augment_choose(const struct augment_options *options, uint32_t width, uint32_t height,
	uint64_t seed, struct augment_choice *choice);

#endif
