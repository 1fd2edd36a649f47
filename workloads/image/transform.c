/* A decode worker's whole work on one sample. */
#include "workloads/image/transform.h"

#include "harness/base/clock.h"
#include "workloads/image/augment.h"
#include "workloads/image/decoder.h"
#include "workloads/image/resample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FORMATS = IMAGE_FORMAT_RAW + 1,
	SHRINK_MOST = 8,
	CHANNELS = 3,
};

struct transform {
	struct augment_options augment;
	bool is_null, decodes_crop, shrinks;
	size_t sample_bytes;
	const struct decoder_ops *decoders[FORMATS]; /* by format; NULL for an unknown one */
	void *states[FORMATS];
	struct resampler *resampler;
};

static bool is_float(const struct config *config)
{
	return config_integer(config, KEY_AUGMENT_TYPE) == AUGMENT_TYPE_FLOAT32;
}

size_t transform_sample_bytes(const struct config *config)
{
	const size_t size = (size_t)config_integer(config, KEY_AUGMENT_SIZE);
	return size * size * CHANNELS * (is_float(config) ? sizeof(float) : 1);
}

static void choose_decoders(
	const struct config *config, const struct decoder_ops *decoders[FORMATS])
{
	const bool is_fast = config_integer(config, KEY_CODEC_PNG) == CODEC_PNG_FAST;
	decoders[IMAGE_FORMAT_UNKNOWN] = NULL;
	decoders[IMAGE_FORMAT_JPEG] = &decoder_jpeg;
	decoders[IMAGE_FORMAT_PNG] = is_fast ? &decoder_png_fast : &decoder_png_libpng;
	decoders[IMAGE_FORMAT_RAW] = &decoder_raw;
}

uint64_t transform_bytes(const struct config *config, uint32_t max_width, uint32_t max_height)
{
	if (config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL)
		return sizeof(struct transform);
	const struct decoder_ops *decoders[FORMATS];
	choose_decoders(config, decoders);
	uint64_t bytes = sizeof(struct transform) +
			 resampler_bytes((uint32_t)config_integer(config, KEY_AUGMENT_SIZE),
				 max_width, max_height);
	for (int format = 0; format < FORMATS; format++)
		if (decoders[format])
			bytes += decoders[format]->state_bytes +
				 decoders[format]->scratch_bytes(max_width, max_height);
	return bytes;
}

/* ---- life --------------------------------------------------------------------------------- */

static int open_decoders(
	struct transform *transform, uint32_t max_width, uint32_t max_height, struct error *err)
{
	int result = 0;
	for (int format = 0; format < FORMATS && !result; format++) {
		const struct decoder_ops *const decoder = transform->decoders[format];
		if (!decoder)
			continue;
		transform->states[format] = calloc(1, decoder->state_bytes);
		if (!transform->states[format])
			return error_set(
				err, -ENOMEM, "no memory for the %s decoder", decoder->name);
		result = decoder->open(transform->states[format], max_width, max_height, err);
	}
	return result;
}

static int open_parts(struct transform *transform, const struct config *config, uint32_t max_width,
	uint32_t max_height, struct error *err)
{
	const struct resample_options resample = {
		.size = transform->augment.size,
		.antialias = config_on(config, KEY_AUGMENT_ANTIALIAS),
		.is_float = is_float(config),
		.is_planar = config_integer(config, KEY_AUGMENT_LAYOUT) == AUGMENT_LAYOUT_CHW,
	};
	choose_decoders(config, transform->decoders);
	const int result = open_decoders(transform, max_width, max_height, err);
	if (result)
		return result;
	return resampler_open(&transform->resampler, &resample, max_width, max_height, err);
}

int transform_open(struct transform **out, const struct config *config, uint32_t max_width,
	uint32_t max_height, struct error *err)
{
	struct transform *const transform = calloc(1, sizeof *transform);
	*out = NULL;
	if (!transform)
		return error_set(err, -ENOMEM, "no memory for a transform");
	augment_read_options(&transform->augment, config);
	transform->is_null = config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL;
	transform->decodes_crop = config_on(config, KEY_CODEC_CROP);
	transform->shrinks = config_on(config, KEY_CODEC_JPEG_SCALED);
	transform->sample_bytes = transform_sample_bytes(config);
	const int result =
		transform->is_null ? 0 : open_parts(transform, config, max_width, max_height, err);
	if (result) {
		transform_close(transform);
		return result;
	}
	*out = transform;
	return 0;
}

void transform_close(struct transform *transform)
{
	if (!transform)
		return;
	for (int format = 0; format < FORMATS; format++) {
		const struct decoder_ops *const decoder = transform->decoders[format];
		if (decoder && transform->states[format])
			decoder->close(transform->states[format]);
		free(transform->states[format]);
	}
	resampler_close(transform->resampler);
	free(transform);
}

/* ---- a sample ----------------------------------------------------------------------------- */

static uint32_t divide_up(uint32_t value, uint32_t by)
{
	return (value + by - 1) / by;
}

/* The most by which decoding may shrink the picture and still leave the crop as large as the
 * sample. */
static uint32_t choose_shrink(const struct transform *transform, const struct decoder_ops *decoder,
	const struct region *crop)
{
	uint32_t shrink = transform->shrinks && decoder->shrinks ? SHRINK_MOST : 1;
	const uint64_t size = transform->augment.size;
	while (shrink > 1 && (crop->width < shrink * size || crop->height < shrink * size))
		shrink /= 2;
	return shrink;
}

/* What of the shrunk picture is needed, and the box in it. */
static void set_task(struct resample_task *task, const struct region *crop, uint32_t shrink)
{
	const uint32_t end_x = divide_up(crop->x + crop->width, shrink);
	const uint32_t end_y = divide_up(crop->y + crop->height, shrink);
	task->region = (struct region){.x = crop->x / shrink, .y = crop->y / shrink};
	task->region.width = end_x - task->region.x;
	task->region.height = end_y - task->region.y;
	task->x = (double)crop->x / shrink;
	task->y = (double)crop->y / shrink;
	task->width = (double)crop->width / shrink;
	task->height = (double)crop->height / shrink;
}

static int select_region(const struct transform *transform, const struct decoder_ops *decoder,
	void *state, const struct image_info *info, uint32_t shrink,
	const struct resample_task *task, struct error *err)
{
	const struct region whole = {
		.width = divide_up(info->width, shrink),
		.height = divide_up(info->height, shrink),
	};
	return decoder->select(
		state, transform->decodes_crop ? &task->region : &whole, shrink, err);
}

/* Alternates decoding and resizing; *resize_ns receives the time of the latter when not NULL. */
static int run_strips(struct transform *transform, const struct decoder_ops *decoder, void *state,
	uint64_t *resize_ns, struct error *err)
{
	struct strip strip;
	int more;
	while ((more = decoder->next(state, &strip, err)) > 0) {
		const uint64_t start = resize_ns ? clock_now_ns() : 0;
		resampler_push(transform->resampler, &strip);
		if (resize_ns)
			*resize_ns += clock_now_ns() - start;
	}
	if (!more && !resampler_is_done(transform->resampler))
		return error_set(err, -EINVAL, "the %s decoder gave too few rows", decoder->name);
	return more;
}

static int decode_sample(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	void *out, uint64_t *resize_ns, struct error *err)
{
	const enum image_format format = image_sniff(bytes, size);
	const struct decoder_ops *const decoder = transform->decoders[format];
	void *const state = transform->states[format];
	struct image_info info;
	if (!decoder)
		return error_set(
			err, -EINVAL, size ? "not a jpeg, png or ppm (P6) file" : "empty file");
	int result = decoder->begin(state, bytes, size, &info, err);
	if (result)
		return result;
	struct augment_choice choice;
	augment_choose(&transform->augment, info.width, info.height, seed, &choice);
	const uint32_t shrink = choose_shrink(transform, decoder, &choice.crop);
	struct resample_task task = {.flip = choice.flip, .out = out};
	set_task(&task, &choice.crop, shrink);
	result = resampler_begin(transform->resampler, &task, err);
	if (!result)
		result = select_region(transform, decoder, state, &info, shrink, &task, err);
	return result ? result : run_strips(transform, decoder, state, resize_ns, err);
}

int transform_sample(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	void *out, uint64_t *decoded_ns, struct error *err)
{
	uint64_t resize_ns = 0;
	int result = 0;
	if (!transform->is_null)
		result = decode_sample(
			transform, bytes, size, seed, out, decoded_ns ? &resize_ns : NULL, err);
	if (decoded_ns)
		*decoded_ns = clock_now_ns() - resize_ns;
	if (result) {
		resampler_abandon(transform->resampler);
		memset(out, 0, transform->sample_bytes);
	}
	return result;
}
