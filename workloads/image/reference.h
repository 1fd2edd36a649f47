/* What a sample is, in the plainest terms: the definition that the fast code is tested against.
 * Double precision, no fixed point, no rounding in between. */
#ifndef MLBENCH_WORKLOADS_IMAGE_REFERENCE_H
#define MLBENCH_WORKLOADS_IMAGE_REFERENCE_H

#include "workloads/image/resample.h"

#include <stdbool.h>
#include <stdint.h>

/* A picture of width x height packed RGB. */
struct reference_picture {
	const uint8_t *rgb;
	uint32_t width, height;
};

/* The task's box, resized to size x size by the triangle filter over the pixels of the task's
 * region and flipped: out is (size, size, 3) in levels of 0 to 255. task->out is not used. */
void reference_resample(const struct reference_picture *picture, const struct resample_task *task,
	uint32_t size, bool antialias, double *out);

/* (level / 255 - mean) / deviation of channel c, with the means and deviations of ImageNet. */
double reference_normalise(double level, int c);

#endif
