/* Levels of ImageNet pictures as a network takes them, to the bit as workloads/image/resample.c computes them.  C++, for
 * .cu files. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_NORMALISE_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_NORMALISE_H

#include "workloads/backend/cuda/elements.h"

enum { CHANNELS = 3 };

/* (level / 255 - mean) / deviation as one product and one sum, each rounded. */
CUDA_FUNCTION float normalised(uint8_t level, unsigned channel)
{
	const float scale = channel == 0   ? (float)(1 / (255 * 0.229))
			    : channel == 1 ? (float)(1 / (255 * 0.224))
					   : (float)(1 / (255 * 0.225));
	const float bias = channel == 0   ? (float)(-0.485 / 0.229)
			   : channel == 1 ? (float)(-0.456 / 0.224)
					  : (float)(-0.406 / 0.225);
	return rounded_sum(rounded_product((float)level, scale), bias);
}

#endif
