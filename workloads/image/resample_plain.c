/* The resize loops in plain C: what the vector code must reproduce, and what runs without it. */
#include "workloads/image/resample_kernels.h"

#include <string.h>

static bool plain_is_supported(void)
{
	return true;
}

static uint8_t round_sum(int32_t sum)
{
	return (uint8_t)((sum + FILTER_ONE / 2) >> FILTER_BITS); /* weights are not negative */
}

static void plain_horizontal_row(
	const struct filter *filter, const uint8_t *in, size_t pixel_bytes, uint8_t *out)
{
	for (uint32_t x = 0; x < filter->size; x++) {
		const int16_t *const weights = filter->weights + (size_t)x * filter->taps;
		const uint8_t *const pixels = in + filter->first[x] * pixel_bytes;
		int32_t sums[RGB_CHANNELS] = {0};
		for (uint32_t k = 0; k < filter->taps; k++)
			for (int c = 0; weights[k] && c < RGB_CHANNELS; c++)
				sums[c] += weights[k] * pixels[k * pixel_bytes + (size_t)c];
		for (int c = 0; c < RGB_CHANNELS; c++)
			out[x * RGB_CHANNELS + (uint32_t)c] = round_sum(sums[c]);
	}
}

static void plain_horizontal(
	const struct filter *filter, const struct pixel_rows *in, uint8_t *out, size_t out_stride)
{
	for (uint32_t y = 0; y < in->rows; y++)
		plain_horizontal_row(
			filter, in->data + y * in->stride, in->pixel_bytes, out + y * out_stride);
}

static void plain_vertical(const int16_t *weights, uint32_t taps, const uint8_t *rows,
	size_t stride, uint8_t *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		int32_t sum = 0;
		for (uint32_t k = 0; k < taps; k++)
			sum += weights[k] * rows[k * stride + i];
		out[i] = round_sum(sum);
	}
}

static void plain_float_chw(const struct sample_row *row, const struct normalisation *normalisation)
{
	for (uint32_t c = 0; c < RGB_CHANNELS; c++) {
		float *const out =
			(float *)row->sample + ((size_t)c * row->size + row->y) * row->size;
		for (uint32_t x = 0; x < row->size; x++)
			out[x] = (float)row->rgb[x * RGB_CHANNELS + c] * normalisation->scale[c] +
				 normalisation->bias[c];
	}
}

static void plain_float_hwc(const struct sample_row *row, const struct normalisation *normalisation)
{
	float *const out = (float *)row->sample + (size_t)row->y * row->size * RGB_CHANNELS;
	for (uint32_t x = 0; x < row->size; x++)
		for (uint32_t c = 0; c < RGB_CHANNELS; c++)
			out[x * RGB_CHANNELS + c] =
				(float)row->rgb[x * RGB_CHANNELS + c] * normalisation->scale[c] +
				normalisation->bias[c];
}

static void plain_byte_chw(const struct sample_row *row, const struct normalisation *normalisation)
{
	(void)normalisation;
	for (uint32_t c = 0; c < RGB_CHANNELS; c++) {
		uint8_t *const out =
			(uint8_t *)row->sample + ((size_t)c * row->size + row->y) * row->size;
		for (uint32_t x = 0; x < row->size; x++)
			out[x] = row->rgb[x * RGB_CHANNELS + c];
	}
}

static void plain_byte_hwc(const struct sample_row *row, const struct normalisation *normalisation)
{
	(void)normalisation;
	const size_t bytes = (size_t)row->size * RGB_CHANNELS;
	memcpy((uint8_t *)row->sample + row->y * bytes, row->rgb, bytes);
}

static void plain_finish(void)
{
}

const struct resample_kernels resample_plain = {
	.name = "plain",
	.is_supported = plain_is_supported,
	.horizontal = plain_horizontal,
	.vertical = plain_vertical,
	.store_float_chw = plain_float_chw,
	.store_float_hwc = plain_float_hwc,
	.store_byte_chw = plain_byte_chw,
	.store_byte_hwc = plain_byte_hwc,
	.finish = plain_finish,
};

const struct resample_kernels *const resample_kernels_all[] = {
	&resample_avx512,
	&resample_avx2,
	&resample_plain,
	NULL,
};

const struct resample_kernels *resample_kernels_best(void)
{
	for (size_t i = 0; resample_kernels_all[i]; i++)
		if (resample_kernels_all[i]->is_supported())
			return resample_kernels_all[i];
	return &resample_plain;
}
