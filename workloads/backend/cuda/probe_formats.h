/* Element types as bits, on the host: random operands, and the value of an element that came back. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_PROBE_FORMATS_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_PROBE_FORMATS_H

#include "workloads/backend/cuda/kernels.h"

#include <stddef.h>
#include <stdint.h>

/* Fills (count) elements with random signs and fractions and magnitudes of 2^-4 to 1: bits that change as those of real data
 * do.  A function of the type and the count. */
void formats_fill(enum element type, void *elements, size_t count);

/* The value of one; NAN and infinities as they are. */
double formats_value(enum element type, const void *elements, size_t index);

#endif
