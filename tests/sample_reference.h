/* What a sample is, in the plainest terms: the definition that the fast code is tested against.
 * Double precision, no fixed point, no rounding in between. */
#ifndef MLBENCH_TESTS_SAMPLE_REFERENCE_H
#define MLBENCH_TESTS_SAMPLE_REFERENCE_H

#include "workloads/image/resample.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* A picture of width x height packed RGB. */
struct reference_picture {
	const uint8_t *rgb;
	uint32_t width, height;
};

struct reference_axis {
	double start, length; /* of the box, within the region */
	uint32_t limit;       /* pixels of the region */
	uint32_t size;
	bool antialias;
};

/* How much input pixel `i` counts for output `o`: a triangle around the output's centre. */
static inline double reference_weight(const struct reference_axis *axis, uint32_t o, uint32_t i)
{
	const double scale = axis->length / axis->size;
	const double support = axis->antialias && scale > 1 ? scale : 1;
	const double centre = axis->start + (o + 0.5) * scale;
	return fmax(0, 1 - fabs(i + 0.5 - centre) / support);
}

static inline double reference_total_weight(const struct reference_axis *axis, uint32_t o)
{
	double total = 0;
	for (uint32_t i = 0; i < axis->limit; i++)
		total += reference_weight(axis, o, i);
	return total;
}

static inline void reference_pixel(const struct reference_picture *picture,
	const struct region *region, const struct reference_axis *across,
	const struct reference_axis *down, uint32_t x, uint32_t y, double *out)
{
	double sums[RGB_CHANNELS] = {0};
	for (uint32_t j = 0; j < down->limit; j++) {
		const double row_weight = reference_weight(down, y, j);
		for (uint32_t i = 0; row_weight > 0 && i < across->limit; i++) {
			const double both = row_weight * reference_weight(across, x, i);
			const size_t at = (size_t)(region->y + j) * picture->width + region->x + i;
			for (size_t c = 0; c < RGB_CHANNELS; c++)
				sums[c] += both * picture->rgb[at * RGB_CHANNELS + c];
		}
	}
	const double total = reference_total_weight(across, x) * reference_total_weight(down, y);
	for (int c = 0; c < RGB_CHANNELS; c++)
		out[c] = sums[c] / total;
}

/* The task's box, resized to size x size by the triangle filter over the pixels of the task's
 * region and flipped: out is (size, size, 3) in levels of 0 to 255. task->out is not used. */
static inline void reference_resample(const struct reference_picture *picture,
	const struct resample_task *task, uint32_t size, bool antialias, double *out)
{
	const struct region *const region = &task->region;
	const struct reference_axis across = {
		task->x - region->x, task->width, region->width, size, antialias};
	const struct reference_axis down = {
		task->y - region->y, task->height, region->height, size, antialias};
	for (uint32_t y = 0; y < size; y++)
		for (uint32_t x = 0; x < size; x++) {
			const uint32_t place = task->flip ? size - 1 - x : x;
			reference_pixel(picture, region, &across, &down, x, y,
				out + ((size_t)y * size + place) * RGB_CHANNELS);
		}
}

/* (level / 255 - mean) / deviation of channel c, with the means and deviations of ImageNet. */
static inline double reference_normalise(double level, int c)
{
	static const double mean[RGB_CHANNELS] = {0.485, 0.456, 0.406};
	static const double deviation[RGB_CHANNELS] = {0.229, 0.224, 0.225};
	return (level / 255 - mean[c]) / deviation[c];
}

#endif
