/* The loops for AVX2 that other sets of kernels share; resample_kernels.h says what they do. */
#ifndef MLBENCH_WORKLOADS_IMAGE_RESAMPLE_AVX2_H
#define MLBENCH_WORKLOADS_IMAGE_RESAMPLE_AVX2_H

#include "workloads/image/resample_kernels.h"

void resample_avx2_horizontal(
	const struct filter *filter, const struct pixel_rows *in, uint8_t *out, size_t out_stride);
void resample_avx2_float_chw(
	const struct sample_row *row, const struct normalisation *normalisation);
void resample_avx2_float_hwc(
	const struct sample_row *row, const struct normalisation *normalisation);
void resample_avx2_byte_chw(
	const struct sample_row *row, const struct normalisation *normalisation);
void resample_avx2_byte_hwc(
	const struct sample_row *row, const struct normalisation *normalisation);
void resample_avx2_finish(void);

#endif
