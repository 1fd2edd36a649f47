/* The row pipeline of resizing. */
#include "workloads/image/resample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HORIZONTAL_TAPS_ALIGN = 4,
	VERTICAL_TAPS_ALIGN = 2,
	BYTE_MAX = 255,
	/* A batch of such samples outgrows the caches before anyone reads it. */
	STREAM_BYTES_LEAST = 256 * 1024,
	STREAM_ALIGN_BYTES = 32,
	STREAM_PIXELS = 8,
};

/* Of ImageNet, as every training recipe has them. */
static const double mean[RGB_CHANNELS] = {0.485, 0.456, 0.406};
static const double deviation[RGB_CHANNELS] = {0.229, 0.224, 0.225};

struct resampler {
	struct resample_options options;
	store_fn store;
	struct normalisation normalisation;
	struct filter across, down;
	struct scratch rows; /* region's rows, resized across: (height, stride) */
	struct scratch row;  /* one row, resized */
	size_t stride;       /* of rows */
	struct resample_task task;
	bool streams;      /* the sample is written past the caches */
	bool is_identity;  /* the crop has the sample's size already */
	uint32_t rows_in;  /* of the region, so far */
	uint32_t rows_out; /* of the sample, so far */
};

static size_t row_stride(uint32_t size)
{
	return (size_t)size * RGB_CHANNELS + KERNEL_SLACK_BYTES;
}

uint64_t resampler_bytes(uint32_t size, uint32_t max_width, uint32_t max_height)
{
	return row_stride(size) * ((uint64_t)max_height + 2) + filter_bytes(max_width, size) +
	       filter_bytes(max_height, size) + sizeof(struct resampler);
}

static store_fn choose_store(const struct resample_options *options)
{
	const struct resample_kernels *const kernels = options->kernels;
	if (options->is_float)
		return options->is_planar ? kernels->store_float_chw : kernels->store_float_hwc;
	return options->is_planar ? kernels->store_byte_chw : kernels->store_byte_hwc;
}

/* (byte / 255 - mean) / deviation as one product and one sum. */
static void set_normalisation(struct normalisation *normalisation)
{
	for (int c = 0; c < RGB_CHANNELS; c++) {
		normalisation->scale[c] = (float)(1 / (BYTE_MAX * deviation[c]));
		normalisation->bias[c] = (float)(-mean[c] / deviation[c]);
	}
}

static int reserve_rows(struct resampler *resampler, uint32_t height, struct error *err)
{
	/* One row more: an odd number of taps is rounded up with a weight of zero. */
	return scratch_reserve(&resampler->rows, resampler->stride * ((size_t)height + 1), err);
}

int resampler_open(struct resampler **out, const struct resample_options *options,
	uint32_t max_width, uint32_t max_height, struct error *err)
{
	(void)max_width;
	struct resampler *const resampler = calloc(1, sizeof *resampler);
	*out = resampler;
	if (!resampler)
		return error_set(err, -ENOMEM, "no memory for a resampler");
	resampler->options = *options;
	if (!options->kernels)
		resampler->options.kernels = resample_kernels_best();
	resampler->store = choose_store(&resampler->options);
	resampler->stride = row_stride(options->size);
	set_normalisation(&resampler->normalisation);
	int result = reserve_rows(resampler, max_height, err);
	if (!result)
		result = scratch_reserve(&resampler->row, resampler->stride, err);
	if (result) {
		resampler_close(resampler);
		*out = NULL;
	}
	return result;
}

void resampler_close(struct resampler *resampler)
{
	if (!resampler)
		return;
	filter_release(&resampler->across);
	filter_release(&resampler->down);
	scratch_release(&resampler->rows);
	scratch_release(&resampler->row);
	free(resampler);
}

/* ---- begin -------------------------------------------------------------------------------- */

static bool task_is_identity(const struct resample_task *task, uint32_t size)
{
	const struct region *const region = &task->region;
	return region->width == size && region->height == size && task->width == size &&
	       task->height == size && task->x == region->x && task->y == region->y;
}

/* Large float samples whose rows are whole aligned vectors. */
static bool can_stream(const struct resample_options *options, const void *out)
{
	const size_t bytes = (size_t)options->size * options->size * RGB_CHANNELS * sizeof(float);
	return options->is_float && options->size % STREAM_PIXELS == 0 &&
	       bytes >= STREAM_BYTES_LEAST && (uintptr_t)out % STREAM_ALIGN_BYTES == 0;
}

static int build_filters(struct resampler *resampler, struct error *err)
{
	const struct resample_task *const task = &resampler->task;
	const struct filter_axis across = {
		.start = task->x - task->region.x,
		.length = task->width,
		.limit = task->region.width,
		.size = resampler->options.size,
		.taps_align = HORIZONTAL_TAPS_ALIGN,
		.antialias = resampler->options.antialias,
		.is_reversed = task->flip,
	};
	const struct filter_axis down = {
		.start = task->y - task->region.y,
		.length = task->height,
		.limit = task->region.height,
		.size = resampler->options.size,
		.taps_align = VERTICAL_TAPS_ALIGN,
		.antialias = resampler->options.antialias,
	};
	const int result = filter_build(&resampler->across, &across, err);
	return result ? result : filter_build(&resampler->down, &down, err);
}

int resampler_begin(
	struct resampler *resampler, const struct resample_task *task, struct error *err)
{
	resampler->task = *task;
	resampler->rows_in = 0;
	resampler->rows_out = 0;
	resampler->streams = can_stream(&resampler->options, task->out);
	resampler->is_identity = task_is_identity(task, resampler->options.size);
	if (resampler->is_identity)
		return 0;
	const int result = reserve_rows(resampler, task->region.height, err);
	return result ? result : build_filters(resampler, err);
}

/* ---- rows --------------------------------------------------------------------------------- */

static void store_row(struct resampler *resampler, const uint8_t *rgb)
{
	const struct sample_row row = {
		.rgb = rgb,
		.size = resampler->options.size,
		.y = resampler->rows_out,
		.streams = resampler->streams,
		.sample = resampler->task.out,
	};
	resampler->store(&row, &resampler->normalisation);
	resampler->rows_out++;
	if (resampler->streams && resampler_is_done(resampler))
		resampler->options.kernels->finish();
}

/* A row as it is, but RGB and flipped where it must be. */
static void copy_row(
	const uint8_t *from, uint32_t pixel_bytes, bool flip, uint32_t size, uint8_t *to)
{
	for (uint32_t x = 0; x < size; x++) {
		const uint8_t *const pixel = from + (size_t)(flip ? size - 1 - x : x) * pixel_bytes;
		memcpy(to + (size_t)x * RGB_CHANNELS, pixel, RGB_CHANNELS);
	}
}

static void push_identity(struct resampler *resampler, const struct pixel_rows *rows)
{
	const bool is_plain = rows->pixel_bytes == RGB_CHANNELS && !resampler->task.flip;
	for (uint32_t y = 0; y < rows->rows; y++) {
		const uint8_t *const from = rows->data + y * rows->stride;
		if (!is_plain)
			copy_row(from, rows->pixel_bytes, resampler->task.flip,
				resampler->options.size, resampler->row.data);
		store_row(resampler, is_plain ? from : resampler->row.data);
	}
}

/* Writes the sample's rows whose inputs are all there. */
static void drain_rows(struct resampler *resampler)
{
	const struct filter *const down = &resampler->down;
	const uint32_t height = resampler->task.region.height;
	const size_t bytes = (size_t)resampler->options.size * RGB_CHANNELS;
	while (resampler->rows_out < down->size) {
		const uint32_t first = down->first[resampler->rows_out];
		const uint32_t end = first + down->taps < height ? first + down->taps : height;
		if (end > resampler->rows_in)
			return;
		resampler->options.kernels->vertical(
			down->weights + (size_t)resampler->rows_out * down->taps, down->taps,
			resampler->rows.data + first * resampler->stride, resampler->stride,
			resampler->row.data, bytes);
		store_row(resampler, resampler->row.data);
	}
}

void resampler_push(struct resampler *resampler, const struct strip *strip)
{
	const struct region *const region = &resampler->task.region;
	const uint32_t expected = region->y + resampler->rows_in;
	const uint32_t skip = expected > strip->y ? expected - strip->y : 0;
	if (skip >= strip->rows || resampler_is_done(resampler))
		return;
	const uint32_t left = region->height - resampler->rows_in;
	const struct pixel_rows rows = {
		.data = strip->pixels + skip * strip->stride +
			(size_t)(region->x - strip->x) * strip->pixel_bytes,
		.stride = strip->stride,
		.rows = strip->rows - skip < left ? strip->rows - skip : left,
		.pixel_bytes = strip->pixel_bytes,
	};
	resampler->rows_in += rows.rows;
	if (resampler->is_identity) {
		push_identity(resampler, &rows);
		return;
	}
	uint8_t *const to =
		resampler->rows.data + (resampler->rows_in - rows.rows) * resampler->stride;
	resampler->options.kernels->horizontal(&resampler->across, &rows, to, resampler->stride);
	drain_rows(resampler);
}

void resampler_abandon(struct resampler *resampler)
{
	if (resampler->streams)
		resampler->options.kernels->finish();
}

bool resampler_is_done(const struct resampler *resampler)
{
	return resampler->rows_out == resampler->options.size;
}
