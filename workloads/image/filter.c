/* Building resize filters: done for each sample, so without divisions per weight. */
#include "workloads/image/filter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAPS_ALIGN_MOST = 4 };

/* Half the width of the triangle, pixels. */
static double axis_support(const struct filter_axis *axis)
{
	const double scale = axis->length / axis->size;
	return axis->antialias && scale > 1 ? scale : 1;
}

/* An interval of 2 x support covers at most so many pixel centres, and no more than there are. */
static uint32_t count_taps(const struct filter_axis *axis)
{
	const double most = fmin(ceil(2 * axis_support(axis)), axis->limit);
	return ((uint32_t)most + axis->taps_align - 1) / axis->taps_align * axis->taps_align;
}

uint64_t filter_bytes(uint32_t length, uint32_t size)
{
	const struct filter_axis axis = {.length = length,
		.limit = length,
		.size = size,
		.taps_align = TAPS_ALIGN_MOST,
		.antialias = true};
	const uint64_t taps = count_taps(&axis);
	return size * (taps * sizeof(int16_t) + sizeof(uint32_t));
}

static int reserve(struct filter *filter, uint32_t size, uint32_t taps, struct error *err)
{
	if (size > filter->size_room) {
		free(filter->first);
		filter->first = malloc(size * sizeof *filter->first);
		filter->size_room = filter->first ? size : 0;
	}
	const size_t room = (size_t)size * taps;
	if (room > filter->weights_room) {
		free(filter->weights);
		filter->weights = malloc(room * sizeof *filter->weights);
		filter->weights_room = filter->weights ? room : 0;
	}
	if (!filter->first || !filter->weights)
		return error_set(err, -ENOMEM, "no memory for a resize filter of %u taps", taps);
	filter->size = size;
	filter->taps = taps;
	return 0;
}

/* Height of the triangle over input pixel i; inverse is 1 / support. */
static double triangle(uint32_t i, double centre, double inverse)
{
	const double height = 1 - fabs((i + 0.5 - centre) * inverse);
	return height > 0 ? height : 0;
}

/* Pixels that an output averages, and where their weights start among its taps. */
struct window {
	uint32_t first, count;
	double centre;
};

static struct window find_window(const struct filter_axis *axis, uint32_t output, uint32_t taps)
{
	const double support = axis_support(axis);
	const double centre = axis->start + (output + 0.5) * (axis->length / axis->size);
	const double low = centre - support + 0.5;
	const double high = centre + support + 0.5;
	const uint32_t first = low > 0 ? (uint32_t)low : 0;
	const uint32_t end = high < axis->limit ? (uint32_t)high : axis->limit;
	const uint32_t count = end - first < taps ? end - first : taps;
	return (struct window){.first = first, .count = count, .centre = centre};
}

/* Rounds the running sum instead of each weight, so that the weights sum to one exactly and a flat
 * area keeps its value. */
static void set_weights(int16_t *weights, const struct window *window, double inverse)
{
	double total = 0;
	for (uint32_t i = 0; i < window->count; i++)
		total += triangle(window->first + i, window->centre, inverse);
	const double factor = FILTER_ONE / total;
	double sum = 0.5;
	int32_t before = 0;
	for (uint32_t i = 0; i < window->count; i++) {
		sum += triangle(window->first + i, window->centre, inverse) * factor;
		const int32_t now = (int32_t)sum;
		weights[i] = (int16_t)(now - before);
		before = now;
	}
	int16_t *const last = &weights[window->count - 1];
	*last = (int16_t)(*last + FILTER_ONE - before);
}

/* The taps of an output are all inside the axis, where it has so many: at its end they begin with
 * zeros instead of passing it. */
static void build_output(struct filter *filter, const struct filter_axis *axis, uint32_t output)
{
	const uint32_t taps = filter->taps;
	const uint32_t place = axis->is_reversed ? axis->size - 1 - output : output;
	const struct window window = find_window(axis, output, taps);
	const uint32_t last_first = axis->limit > taps ? axis->limit - taps : 0;
	const uint32_t first = window.first < last_first ? window.first : last_first;
	int16_t *const weights = filter->weights + (size_t)place * taps;
	memset(weights, 0, taps * sizeof *weights);
	set_weights(weights + (window.first - first), &window, 1 / axis_support(axis));
	filter->first[place] = first;
}

int filter_build(struct filter *filter, const struct filter_axis *axis, struct error *err)
{
	const int result = reserve(filter, axis->size, count_taps(axis), err);
	if (result)
		return result;
	for (uint32_t output = 0; output < axis->size; output++)
		build_output(filter, axis, output);
	return 0;
}

void filter_release(struct filter *filter)
{
	free(filter->first);
	free(filter->weights);
	*filter = (struct filter){0};
}
