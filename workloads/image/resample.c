/* Resizing: the weights, which are built for each sample and so without divisions per weight; the loops
 * in plain C, which the vector code must reproduce; and the row pipeline over both. */
#include "workloads/image/resample.h"

#include "harness/base/helpers.h"

#include <errno.h>
#include <math.h>
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

/* ---- weights ------------------------------------------------------------------------------ */

enum { TAPS_ALIGN_MOST = 4 };

/* Half the width of the filter_triangle, pixels. */
static double filter_support(const struct filter_axis *axis)
{
	const double scale = axis->length / axis->size;
	return axis->antialias && scale > 1 ? scale : 1;
}

/* The most pixel centres that an interval of 2 x support covers, and no more than exist. */
static uint32_t filter_count_taps(const struct filter_axis *axis)
{
	const double most = fmin(ceil(2 * filter_support(axis)), axis->limit);
	return ((uint32_t)most + axis->taps_align - 1) / axis->taps_align * axis->taps_align;
}

/* Upper estimate of the bytes of a filter from `length` to `size` pixels. */
static uint64_t filter_bytes(uint32_t length, uint32_t size)
{
	const struct filter_axis axis = {.length = length,
		.limit = length,
		.size = size,
		.taps_align = TAPS_ALIGN_MOST,
		.antialias = true};
	const uint64_t taps = filter_count_taps(&axis);
	return size * (taps * sizeof(int16_t) + sizeof(uint32_t));
}

static int filter_reserve(struct filter *filter, uint32_t size, uint32_t taps, struct error *err)
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
		return error_set(
			err, -ENOMEM, "out of memory for a resize filter of %u taps", taps);
	filter->size = size;
	filter->taps = taps;
	return 0;
}

/* Height of the filter_triangle over input pixel i; inverse is 1 / support. */
static double filter_triangle(uint32_t i, double centre, double inverse)
{
	const double height = 1 - fabs((i + 0.5 - centre) * inverse);
	return height > 0 ? height : 0;
}

/* Pixels that an output averages, and where their weights start among its taps. */
struct filter_window {
	uint32_t first, count;
	double centre;
};

static struct filter_window filter_find_window(
	const struct filter_axis *axis, uint32_t output, uint32_t taps)
{
	const double support = filter_support(axis);
	const double centre = axis->start + (output + 0.5) * (axis->length / axis->size);
	const double low = centre - support + 0.5;
	const double high = centre + support + 0.5;
	const uint32_t first = low > 0 ? (uint32_t)low : 0;
	const uint32_t end = high < axis->limit ? (uint32_t)high : axis->limit;
	const uint32_t count = end - first < taps ? end - first : taps;
	return (struct filter_window){.first = first, .count = count, .centre = centre};
}

/* Rounds the running sum instead of each weight, so that the weights sum to one exactly and a flat
 * area keeps its value. */
static void filter_set_weights(int16_t *weights, const struct filter_window *window, double inverse)
{
	double total = 0;
	for (uint32_t i = 0; i < window->count; i++)
		total += filter_triangle(window->first + i, window->centre, inverse);
	const double factor = FILTER_ONE / total;
	double sum = 0.5;
	int32_t before = 0;
	for (uint32_t i = 0; i < window->count; i++) {
		sum += filter_triangle(window->first + i, window->centre, inverse) * factor;
		const int32_t now = (int32_t)sum;
		weights[i] = (int16_t)(now - before);
		before = now;
	}
	int16_t *const last = &weights[window->count - 1];
	*last = (int16_t)(*last + FILTER_ONE - before);
}

/* The taps of an output are all inside the axis, if it has that many: at its end they begin with
 * zeros instead of passing it. */
static void filter_build_output(
	struct filter *filter, const struct filter_axis *axis, uint32_t output)
{
	const uint32_t taps = filter->taps;
	const uint32_t place = axis->is_reversed ? axis->size - 1 - output : output;
	const struct filter_window window = filter_find_window(axis, output, taps);
	const uint32_t last_first = axis->limit > taps ? axis->limit - taps : 0;
	const uint32_t first = window.first < last_first ? window.first : last_first;
	int16_t *const weights = filter->weights + (size_t)place * taps;
	memset(weights, 0, taps * sizeof *weights);
	filter_set_weights(weights + (window.first - first), &window, 1 / filter_support(axis));
	filter->first[place] = first;
}

static int filter_build(struct filter *filter, const struct filter_axis *axis, struct error *err)
{
	const int result = filter_reserve(filter, axis->size, filter_count_taps(axis), err);
	if (result)
		return result;
	for (uint32_t output = 0; output < axis->size; output++)
		filter_build_output(filter, axis, output);
	return 0;
}

/* Grows the arrays where they are too small: -ENOMEM. */
static void filter_release(struct filter *filter)
{
	free(filter->first);
	free(filter->weights);
	*filter = (struct filter){0};
}

/* ---- loops in plain C --------------------------------------------------------------------- */

static bool plain_is_supported(void)
{
	return true;
}

static uint8_t plain_round(int32_t sum)
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
			out[x * RGB_CHANNELS + (uint32_t)c] = plain_round(sums[c]);
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
		out[i] = plain_round(sum);
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

/* ---- the row pipeline --------------------------------------------------------------------- */

/* Of ImageNet, as every training recipe has them. */
static const double imagenet_mean[RGB_CHANNELS] = {0.485, 0.456, 0.406};
static const double imagenet_deviation[RGB_CHANNELS] = {0.229, 0.224, 0.225};

struct resampler {
	struct resample_options options;
	store_fn store;
	struct normalisation normalisation;
	struct filter across, down;
	struct scratch rows; /* region's rows, resized across: (height, stride) */
	struct scratch row;  /* one row, resized; of each thread: (threads, stride) */
	size_t stride;       /* of rows */
	struct resample_task task;
	bool streams;      /* the sample is written past the caches */
	bool is_identity;  /* the crop has the sample's size already */
	uint32_t rows_in;  /* of the region, so far */
	uint32_t rows_out; /* of the sample, so far */
};

static size_t resampler_row_bytes(uint32_t size)
{
	return (size_t)size * RGB_CHANNELS + KERNEL_SLACK_BYTES;
}

static unsigned resampler_threads(const struct resample_options *options)
{
	return options->threads > 0 ? options->threads : 1;
}

uint64_t resampler_bytes(uint32_t size, uint32_t max_width, uint32_t max_height, unsigned threads)
{
	return resampler_row_bytes(size) * ((uint64_t)max_height + 1 + threads) +
	       filter_bytes(max_width, size) + filter_bytes(max_height, size) +
	       sizeof(struct resampler);
}

static store_fn resampler_choose_store(const struct resample_options *options)
{
	const struct resample_kernels *const kernels = options->kernels;
	if (options->is_float)
		return options->is_planar ? kernels->store_float_chw : kernels->store_float_hwc;
	return options->is_planar ? kernels->store_byte_chw : kernels->store_byte_hwc;
}

/* (byte / 255 - mean) / deviation as one product and one sum. */
static void resampler_set_normalisation(struct normalisation *normalisation)
{
	for (int c = 0; c < RGB_CHANNELS; c++) {
		normalisation->scale[c] = (float)(1 / (BYTE_MAX * imagenet_deviation[c]));
		normalisation->bias[c] = (float)(-imagenet_mean[c] / imagenet_deviation[c]);
	}
}

static int resampler_reserve_rows(struct resampler *resampler, uint32_t height, struct error *err)
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
		return error_set(err, -ENOMEM, "out of memory for a resampler");
	resampler->options = *options;
	if (!options->kernels)
		resampler->options.kernels = resample_kernels_best();
	resampler->store = resampler_choose_store(&resampler->options);
	resampler->stride = resampler_row_bytes(options->size);
	resampler_set_normalisation(&resampler->normalisation);
	int result = resampler_reserve_rows(resampler, max_height, err);
	if (!result)
		result = scratch_reserve(
			&resampler->row, resampler->stride * resampler_threads(options), err);
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

/* ---- a sample begins -------------------------------------------------------------------------------- */

static bool resampler_is_identity(const struct resample_task *task, uint32_t size)
{
	const struct region *const region = &task->region;
	return region->width == size && region->height == size && task->width == size &&
	       task->height == size && task->x == region->x && task->y == region->y;
}

/* Large float samples whose rows are whole aligned vectors. */
static bool resampler_can_stream(const struct resample_options *options, const void *out)
{
	const size_t bytes = (size_t)options->size * options->size * RGB_CHANNELS * sizeof(float);
	return options->is_float && options->size % STREAM_PIXELS == 0 &&
	       bytes >= STREAM_BYTES_LEAST && (uintptr_t)out % STREAM_ALIGN_BYTES == 0;
}

static int resampler_build_filters(struct resampler *resampler, struct error *err)
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
	resampler->streams = resampler_can_stream(&resampler->options, task->out);
	resampler->is_identity = resampler_is_identity(task, resampler->options.size);
	if (resampler->is_identity)
		return 0;
	const int result = resampler_reserve_rows(resampler, task->region.height, err);
	return result ? result : resampler_build_filters(resampler, err);
}

/* ---- rows come --------------------------------------------------------------------------------- */

static void resampler_store_row(struct resampler *resampler, uint32_t y, const uint8_t *rgb)
{
	const struct sample_row row = {
		.rgb = rgb,
		.size = resampler->options.size,
		.y = y,
		.streams = resampler->streams,
		.sample = resampler->task.out,
	};
	resampler->store(&row, &resampler->normalisation);
}

/* The thread that wrote streamed rows makes them visible: of one that works alone, once for all of them. */
static void resampler_finish_part(const struct resampler *resampler)
{
	if (resampler->streams && resampler->options.helpers)
		resampler->options.kernels->finish();
}

/* A row as it is, but RGB and flipped where it must be. */
static void resampler_copy_row(
	const uint8_t *from, uint32_t pixel_bytes, bool flip, uint32_t size, uint8_t *to)
{
	for (uint32_t x = 0; x < size; x++) {
		const uint8_t *const pixel = from + (size_t)(flip ? size - 1 - x : x) * pixel_bytes;
		memcpy(to + (size_t)x * RGB_CHANNELS, pixel, RGB_CHANNELS);
	}
}

/* Rows that came, and what the thread `who` makes of some of them. */
struct pushed {
	struct resampler *resampler;
	struct pixel_rows rows;
	uint32_t rows_out; /* of the sample, before */
	uint8_t *across;   /* where they go, resized across */
};

static uint8_t *pushed_row(const struct pushed *pushed, unsigned who)
{
	return pushed->resampler->row.data + who * pushed->resampler->stride;
}

static void pushed_identity(void *context, unsigned who, uint32_t first, uint32_t end)
{
	const struct pushed *const pushed = context;
	struct resampler *const resampler = pushed->resampler;
	const struct pixel_rows *const rows = &pushed->rows;
	const bool is_plain = rows->pixel_bytes == RGB_CHANNELS && !resampler->task.flip;
	uint8_t *const row = pushed_row(pushed, who);
	for (uint32_t y = first; y < end; y++) {
		const uint8_t *const from = rows->data + y * rows->stride;
		if (!is_plain)
			resampler_copy_row(from, rows->pixel_bytes, resampler->task.flip,
				resampler->options.size, row);
		resampler_store_row(resampler, pushed->rows_out + y, is_plain ? from : row);
	}
	resampler_finish_part(resampler);
}

static void pushed_across(void *context, unsigned who, uint32_t first, uint32_t end)
{
	(void)who;
	const struct pushed *const pushed = context;
	const struct resampler *const resampler = pushed->resampler;
	struct pixel_rows rows = pushed->rows;
	rows.data += first * rows.stride;
	rows.rows = end - first;
	resampler->options.kernels->horizontal(&resampler->across, &rows,
		pushed->across + first * resampler->stride, resampler->stride);
}

static void pushed_down(void *context, unsigned who, uint32_t first, uint32_t end)
{
	const struct pushed *const pushed = context;
	struct resampler *const resampler = pushed->resampler;
	const struct filter *const down = &resampler->down;
	const size_t bytes = (size_t)resampler->options.size * RGB_CHANNELS;
	uint8_t *const row = pushed_row(pushed, who);
	for (uint32_t y = pushed->rows_out + first; y < pushed->rows_out + end; y++) {
		resampler->options.kernels->vertical(down->weights + (size_t)y * down->taps,
			down->taps, resampler->rows.data + down->first[y] * resampler->stride,
			resampler->stride, row, bytes);
		resampler_store_row(resampler, y, row);
	}
	resampler_finish_part(resampler);
}

/* Rows of the sample whose inputs are all there. */
static uint32_t resampler_count_ready(const struct resampler *resampler)
{
	const struct filter *const down = &resampler->down;
	const uint32_t height = resampler->task.region.height;
	uint32_t y = resampler->rows_out;
	for (; y < down->size; y++) {
		const uint32_t end = down->first[y] + down->taps;
		if ((end < height ? end : height) > resampler->rows_in)
			break;
	}
	return y - resampler->rows_out;
}

static void resampler_share(
	struct resampler *resampler, helpers_part *part, struct pushed *pushed, uint32_t rows)
{
	pushed->rows_out = resampler->rows_out;
	helpers_do(resampler->options.helpers, part, pushed, rows);
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
	struct pushed pushed = {.resampler = resampler,
		.rows = rows,
		.across = resampler->rows.data +
			  (resampler->rows_in - rows.rows) * resampler->stride};
	uint32_t made = rows.rows;
	if (resampler->is_identity) {
		resampler_share(resampler, pushed_identity, &pushed, made);
	} else {
		resampler_share(resampler, pushed_across, &pushed, made);
		made = resampler_count_ready(resampler);
		resampler_share(resampler, pushed_down, &pushed, made);
	}
	resampler->rows_out += made;
	if (resampler->streams && resampler_is_done(resampler))
		resampler->options.kernels->finish();
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
