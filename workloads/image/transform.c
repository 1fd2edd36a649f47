/* A decode worker's whole work on one sample. */
#include "workloads/image/transform.h"

#include "harness/base/clock.h"
#include "harness/base/helpers.h"
#include "harness/base/rng.h"
#include "harness/measure/timeline.h"
#include "workloads/image/codec.h"
#include "workloads/image/resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- drawing crops and flips --------------------------------------------------------------- */

enum {
	CROP_TRIES = 10,
	STREAM_AUGMENT = 0x696d67, /* apart from other uses of the sample's seed */
};

void augment_read_options(struct augment_options *options, const struct config *config)
{
	*options = (struct augment_options){
		.crop = (enum augment_crop)config_integer(config, KEY_AUGMENT_CROP),
		.size = (uint32_t)config_integer(config, KEY_AUGMENT_SIZE),
		.scale_min = config_real(config, KEY_AUGMENT_SCALE_MIN),
		.scale_max = config_real(config, KEY_AUGMENT_SCALE_MAX),
		.ratio_min = config_real(config, KEY_AUGMENT_RATIO_MIN),
		.ratio_max = config_real(config, KEY_AUGMENT_RATIO_MAX),
		.flip = config_real(config, KEY_AUGMENT_FLIP),
	};
}

static double augment_uniform(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_uniform(rng);
}

static struct region augment_centred(
	uint32_t width, uint32_t height, uint32_t crop_width, uint32_t crop_height)
{
	return (struct region){
		.x = (width - crop_width) / 2,
		.y = (height - crop_height) / 2,
		.width = crop_width,
		.height = crop_height,
	};
}

/* The nearest whole number of pixels, at least one and at most `most`. */
static uint32_t augment_clamp(double value, uint32_t most)
{
	if (value < 1)
		return 1;
	return value > most ? most : (uint32_t)nearbyint(value);
}

static struct region augment_fall_back(
	const struct augment_options *options, uint32_t width, uint32_t height)
{
	const double ratio = (double)width / height;
	if (ratio < options->ratio_min)
		return augment_centred(
			width, height, width, augment_clamp(width / options->ratio_min, height));
	if (ratio > options->ratio_max)
		return augment_centred(
			width, height, augment_clamp(height * options->ratio_max, width), height);
	return (struct region){.width = width, .height = height};
}

static struct region augment_draw_crop(
	const struct augment_options *options, uint32_t width, uint32_t height, struct rng *rng)
{
	const double area = (double)width * height;
	const double log_min = log(options->ratio_min);
	const double log_max = log(options->ratio_max);
	for (int try = 0; try < CROP_TRIES; try++) {
		const double target =
			area * augment_uniform(rng, options->scale_min, options->scale_max);
		const double ratio = exp(augment_uniform(rng, log_min, log_max));
		const double crop_width = nearbyint(sqrt(target * ratio));
		const double crop_height = nearbyint(sqrt(target / ratio));
		if (crop_width < 1 || crop_width > width || crop_height < 1 || crop_height > height)
			continue;
		struct region crop = {
			.width = (uint32_t)crop_width, .height = (uint32_t)crop_height};
		crop.y = (uint32_t)rng_below(rng, (uint64_t)(height - crop.height) + 1);
		crop.x = (uint32_t)rng_below(rng, (uint64_t)(width - crop.width) + 1);
		return crop;
	}
	return augment_fall_back(options, width, height);
}

void augment_choose(const struct augment_options *options, uint32_t width, uint32_t height,
	uint64_t seed, struct augment_choice *choice)
{
	struct rng rng;
	if (options->flip > 0 || options->crop == AUGMENT_CROP_RANDOM)
		rng_init(&rng, seed, STREAM_AUGMENT);
	const uint32_t edge = width < height ? width : height;
	switch (options->crop) {
	case AUGMENT_CROP_RANDOM:
		choice->crop = augment_draw_crop(options, width, height, &rng);
		break;
	case AUGMENT_CROP_CENTER:
		choice->crop = augment_centred(width, height, edge, edge);
		break;
	case AUGMENT_CROP_NONE:
		choice->crop = (struct region){.width = width, .height = height};
		break;
	}
	choice->flip = options->flip > 0 && rng_uniform(&rng) < options->flip;
}

/* ---- a worker ----------------------------------------------------------------------------- */

enum {
	SHRINK_MOST = 8,
	CHANNELS = 3,
	PICTURE_SAMPLES =
		16, /* a region of more bytes than so many samples is resized by the worker */
};

/* A picture on its way through a decoder. */
struct chosen {
	struct decoder *decoder;       /* NULL: codec.name = null */
	const struct codec_ops *codec; /* its own */
	struct image_info info;
	uint32_t shrink;
	struct resample_task task;
	bool resized; /* by the worker, though samples are the device's */
};

struct transform {
	struct augment_options augment;
	bool is_null, decodes_crop, shrinks;
	bool is_decoded_only;           /* augment.device = gpu */
	enum timeline_kind resize_kind; /* as a timeline has it */
	size_t sample_bytes;
	struct chosen chosen; /* between transform_choose and transform_decode */
	const struct codec_ops *codecs[IMAGE_FORMATS]; /* NULL: not decoded here */
	struct decoder *decoders[IMAGE_FORMATS]; /* NULL: no picture of that format came yet */
	const atomic_bool *stop;
	struct resampler *resampler;
	struct helpers *
		helpers; /* decode.threads > 1: share the rows of a picture that is decoded whole; else NULL */
	struct scratch pixels; /* which is here then */
};

static unsigned transform_threads(const struct config *config)
{
	return (unsigned)config_integer(config, KEY_DECODE_THREADS);
}

static bool transform_is_float(const struct config *config)
{
	return config_integer(config, KEY_AUGMENT_TYPE) == AUGMENT_TYPE_FLOAT32;
}

size_t transform_sample_bytes(const struct config *config)
{
	const size_t size = (size_t)config_integer(config, KEY_AUGMENT_SIZE);
	return size * size * CHANNELS * (transform_is_float(config) ? sizeof(float) : 1);
}

uint64_t transform_bytes(const struct config *config, const struct image_extents *extents)
{
	if (config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL)
		return sizeof(struct transform);
	const struct image_extent all = image_extents_all(extents);
	const unsigned threads = transform_threads(config);
	uint64_t bytes = sizeof(struct transform) +
			 resampler_bytes((uint32_t)config_integer(config, KEY_AUGMENT_SIZE),
				 all.width, all.height, threads);
	if (threads > 1)
		bytes += all.pixels * CHANNELS;
	for (int format = 0; format < IMAGE_FORMATS; format++) {
		const struct codec_ops *const codec =
			codec_choose((enum image_format)format, config);
		if (codec && extents->of[format].pixels > 0)
			bytes += decoder_bytes(codec, &extents->of[format]);
	}
	return bytes;
}

/* ---- life --------------------------------------------------------------------------------- */

static int transform_open_decoder(struct transform *transform, enum image_format format,
	const struct image_extent *extent, struct error *err)
{
	const struct decoder_options options = {.extent = *extent, .stop = transform->stop};
	return decoder_open(&transform->decoders[format], transform->codecs[format], &options, err);
}

/* Those of the formats that the data set has. */
static int transform_open_decoders(
	struct transform *transform, const struct image_extents *extents, struct error *err)
{
	int result = 0;
	for (int format = 0; format < IMAGE_FORMATS && !result; format++)
		if (transform->codecs[format] && extents->of[format].pixels > 0)
			result = transform_open_decoder(
				transform, (enum image_format)format, &extents->of[format], err);
	return result;
}

static int transform_open_parts(struct transform *transform, const struct config *config,
	const struct image_extents *extents, struct error *err)
{
	const struct image_extent all = image_extents_all(extents);
	const bool decoded_only = transform->is_decoded_only;
	struct resample_options resample = {
		.size = transform->augment.size,
		.antialias = config_on(config, KEY_AUGMENT_ANTIALIAS),
		.is_float = transform_is_float(config) && !decoded_only,
		.is_planar = config_integer(config, KEY_AUGMENT_LAYOUT) == AUGMENT_LAYOUT_CHW &&
			     !decoded_only,
	};
	if (transform_threads(config) > 1) {
		resample.threads = transform_threads(config);
		int code = helpers_open(&transform->helpers, resample.threads, err);
		if (!code)
			code = scratch_reserve(&transform->pixels, all.pixels * CHANNELS, err);
		if (code)
			return code;
		resample.helpers = transform->helpers;
	}
	transform->resize_kind = resample.is_float ? TIMELINE_RESIZE_NORMALISE : TIMELINE_RESIZE;
	for (int format = 0; format < IMAGE_FORMATS; format++)
		transform->codecs[format] = codec_choose((enum image_format)format, config);
	const int result = transform_open_decoders(transform, extents, err);
	if (result)
		return result;
	return resampler_open(&transform->resampler, &resample, all.width, all.height, err);
}

int transform_open(struct transform **out, const struct config *config,
	const struct image_extents *extents, const atomic_bool *stop, struct error *err)
{
	const struct image_extents none = {0};
	struct transform *const transform = calloc(1, sizeof *transform);
	*out = NULL;
	if (!transform)
		return error_set(err, -ENOMEM, "no memory for a transform");
	augment_read_options(&transform->augment, config);
	transform->stop = stop;
	transform->is_null = config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL;
	transform->decodes_crop = config_on(config, KEY_CODEC_CROP);
	transform->shrinks = config_on(config, KEY_CODEC_JPEG_SCALED);
	transform->is_decoded_only =
		config_integer(config, KEY_AUGMENT_DEVICE) == AUGMENT_DEVICE_GPU;
	transform->sample_bytes = transform_sample_bytes(config);
	const int result = transform->is_null ? 0
					      : transform_open_parts(transform, config,
							extents ? extents : &none, err);
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
	for (int format = 0; format < IMAGE_FORMATS; format++)
		decoder_close(transform->decoders[format]);
	resampler_close(transform->resampler);
	helpers_close(transform->helpers);
	scratch_release(&transform->pixels);
	free(transform);
}

/* ---- a sample ----------------------------------------------------------------------------- */

static uint32_t transform_divide_up(uint32_t value, uint32_t by)
{
	return (value + by - 1) / by;
}

/* The most by which decoding may shrink the picture and still leave the crop as large as the
 * sample. */
static uint32_t transform_choose_shrink(
	const struct transform *transform, const struct codec_ops *codec, const struct region *crop)
{
	uint32_t shrink = transform->shrinks && codec->shrinks ? SHRINK_MOST : 1;
	const uint64_t size = transform->augment.size;
	while (shrink > 1 && (crop->width < shrink * size || crop->height < shrink * size))
		shrink /= 2;
	return shrink;
}

/* What of the shrunk picture is needed, and the box in it. */
static void transform_set_task(
	struct resample_task *task, const struct region *crop, uint32_t shrink)
{
	const uint32_t end_x = transform_divide_up(crop->x + crop->width, shrink);
	const uint32_t end_y = transform_divide_up(crop->y + crop->height, shrink);
	task->region = (struct region){.x = crop->x / shrink, .y = crop->y / shrink};
	task->region.width = end_x - task->region.x;
	task->region.height = end_y - task->region.y;
	task->x = (double)crop->x / shrink;
	task->y = (double)crop->y / shrink;
	task->width = (double)crop->width / shrink;
	task->height = (double)crop->height / shrink;
}

static int transform_select(
	const struct transform *transform, const struct chosen *chosen, struct error *err)
{
	const struct region whole = {
		.width = transform_divide_up(chosen->info.width, chosen->shrink),
		.height = transform_divide_up(chosen->info.height, chosen->shrink),
	};
	const uint64_t shown_ns = timeline_mark();
	const int result = decoder_select(chosen->decoder,
		transform->decodes_crop ? &chosen->task.region : &whole, chosen->shrink, err);
	(void)timeline_end(TIMELINE_START, shown_ns, 0);
	return result;
}

/* Decoding and resizing, which take turns; what of them is timed. */
struct turns {
	bool timed;
	uint64_t began_ns, at_ns; /* at: the last look at the clock */
	uint64_t rows_ns, resize_ns;
	uint32_t count;
};

static void turns_add(struct turns *turns, uint64_t *sum_ns)
{
	if (!turns->timed)
		return;
	const uint64_t now_ns = clock_now_ns();
	*sum_ns += now_ns - turns->at_ns;
	turns->at_ns = now_ns;
}

/* In a timeline: one after the other where there was one turn, else what they add up to. */
static void turns_show(
	enum timeline_kind second, const struct codec_ops *codec, const struct turns *turns)
{
	const uint32_t pieces = turns->count > 1 ? turns->count : 0;
	const uint64_t middle_ns = turns->began_ns + turns->rows_ns;
	if (!codec->shows_parts)
		timeline_pieces(codec->rows_kind ? codec->rows_kind : TIMELINE_PIXELS,
			turns->began_ns, middle_ns, pieces);
	timeline_pieces(second, middle_ns, middle_ns + turns->resize_ns, pieces);
}

/* Alternates decoding and resizing; *resize_ns receives the time of the latter when not NULL. */
static int transform_run_strips(struct transform *transform, const struct chosen *chosen,
	uint64_t *resize_ns, struct error *err)
{
	struct strip strip;
	const bool shown = timeline_is_on();
	struct turns turns = {.timed = resize_ns || shown};
	turns.began_ns = turns.timed ? clock_now_ns() : 0;
	turns.at_ns = turns.began_ns;
	int more;
	while ((more = decoder_next(chosen->decoder, &strip, err)) > 0) {
		turns_add(&turns, &turns.rows_ns);
		resampler_push(transform->resampler, &strip);
		turns_add(&turns, &turns.resize_ns);
		turns.count++;
	}
	if (turns.count > 1)
		turns_add(&turns, &turns.rows_ns);
	if (shown)
		turns_show(transform->resize_kind, chosen->codec, &turns);
	if (resize_ns)
		*resize_ns = turns.resize_ns;
	if (!more && !resampler_is_done(transform->resampler))
		return error_set(
			err, -EINVAL, "the %s decoder gave too few rows", chosen->codec->name);
	return more;
}

/* Reads the picture's header, and says what of it becomes the sample. */
static int transform_begin(struct transform *transform, const void *bytes, size_t size,
	uint64_t seed, struct chosen *chosen, struct error *err)
{
	const enum image_format format = image_sniff(bytes, size);
	const struct codec_ops *const codec = transform->codecs[format];
	struct image_info unused;
	if (!codec) /* which says why */
		return image_read_info(bytes, size, &unused, err) ? -EINVAL : -ENOTSUP;
	const struct image_extent unknown = {0};
	int result = 0;
	if (!transform->decoders[format])
		result = transform_open_decoder(transform, format, &unknown, err);
	if (result)
		return result;
	*chosen = (struct chosen){.decoder = transform->decoders[format], .codec = codec};
	const uint64_t shown_ns = timeline_mark();
	result = decoder_begin(chosen->decoder, bytes, size, &chosen->info, err);
	(void)timeline_end(TIMELINE_HEADER, shown_ns, 0);
	if (result)
		return result;
	struct augment_choice choice;
	augment_choose(&transform->augment, chosen->info.width, chosen->info.height, seed, &choice);
	chosen->shrink = transform_choose_shrink(transform, codec, &choice.crop);
	chosen->task.flip = choice.flip;
	transform_set_task(&chosen->task, &choice.crop, chosen->shrink);
	return 0;
}

/* A row of RGB and a byte to ignore, as RGB. */
static void strip_pack_row(uint8_t *to, const uint8_t *from, size_t width)
{
	for (size_t i = 0; i + 1 < width; i++)
		memcpy(to + CHANNELS * i, from + 4 * i, 4); /* the next one covers the fourth */
	memcpy(to + CHANNELS * (width - 1), from + 4 * (width - 1), CHANNELS);
}

/* The part of a strip that is in the region. */
static void strip_copy(const struct strip *strip, const struct region *region, uint8_t *pixels)
{
	const size_t row_bytes = (size_t)region->width * CHANNELS;
	for (uint32_t i = 0; i < strip->rows; i++) {
		const uint32_t y = strip->y + i;
		if (y < region->y || y - region->y >= region->height)
			continue;
		const uint8_t *const from = strip->pixels + i * strip->stride +
					    (size_t)(region->x - strip->x) * strip->pixel_bytes;
		uint8_t *const to = pixels + (y - region->y) * row_bytes;
		if (strip->pixel_bytes == CHANNELS)
			memcpy(to, from, row_bytes);
		else
			strip_pack_row(to, from, region->width);
	}
}

static int transform_decode_region(const struct transform *transform, const struct chosen *chosen,
	void *pixels, struct error *err)
{
	const struct region *const region = &chosen->task.region;
	uint64_t rows = 0;
	struct strip strip;
	int more = transform_select(transform, chosen, err);
	if (more)
		return more;
	struct turns turns = {.timed = timeline_is_on()};
	turns.began_ns = turns.timed ? clock_now_ns() : 0;
	turns.at_ns = turns.began_ns;
	while ((more = decoder_next(chosen->decoder, &strip, err)) > 0) {
		turns_add(&turns, &turns.rows_ns);
		strip_copy(&strip, region, pixels);
		turns_add(&turns, &turns.resize_ns);
		turns.count++;
		rows = (uint64_t)strip.y + strip.rows;
	}
	if (turns.timed)
		turns_show(TIMELINE_COPY_REGION, chosen->codec, &turns);
	if (!more && rows < (uint64_t)region->y + region->height)
		return error_set(
			err, -EINVAL, "the %s decoder gave too few rows", chosen->codec->name);
	return more;
}

/* The whole region first, whose rows the helpers then share. */
static int transform_run_shared(struct transform *transform, const struct chosen *chosen,
	uint64_t *resize_ns, struct error *err)
{
	const struct region *const region = &chosen->task.region;
	const size_t row_bytes = (size_t)region->width * CHANNELS;
	int result = scratch_reserve(&transform->pixels, row_bytes * region->height, err);
	if (!result)
		result = transform_decode_region(transform, chosen, transform->pixels.data, err);
	if (result)
		return result;
	const struct strip strip = {.pixels = transform->pixels.data,
		.stride = row_bytes,
		.x = region->x,
		.width = region->width,
		.y = region->y,
		.rows = region->height,
		.pixel_bytes = CHANNELS};
	const uint64_t shown_ns = timeline_mark();
	const uint64_t began_ns = resize_ns ? clock_now_ns() : 0;
	resampler_push(transform->resampler, &strip);
	(void)timeline_end(transform->resize_kind, shown_ns, 0);
	if (resize_ns)
		*resize_ns = clock_now_ns() - began_ns;
	return 0;
}

static int transform_resample(struct transform *transform, struct chosen *chosen, void *out,
	uint64_t *resize_ns, struct error *err)
{
	chosen->task.out = out;
	int result = resampler_begin(transform->resampler, &chosen->task, err);
	if (!result && transform->helpers)
		return transform_run_shared(transform, chosen, resize_ns, err);
	if (!result)
		result = transform_select(transform, chosen, err);
	return result ? result : transform_run_strips(transform, chosen, resize_ns, err);
}

static int transform_decode_sample(struct transform *transform, const void *bytes, size_t size,
	uint64_t seed, void *out, uint64_t *resize_ns, struct error *err)
{
	struct chosen chosen;
	const int result = transform_begin(transform, bytes, size, seed, &chosen, err);
	return result ? result : transform_resample(transform, &chosen, out, resize_ns, err);
}

int transform_sample(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	void *out, uint64_t *decoded_ns, struct error *err)
{
	uint64_t resize_ns = 0;
	int result = 0;
	if (!transform->is_null)
		result = transform_decode_sample(
			transform, bytes, size, seed, out, decoded_ns ? &resize_ns : NULL, err);
	if (decoded_ns)
		*decoded_ns = clock_now_ns() - resize_ns;
	if (result) {
		resampler_abandon(transform->resampler);
		memset(out, 0, transform->sample_bytes);
	}
	return result;
}

/* ---- a picture for a device that makes the sample ------------------------------------------- */

static size_t transform_picture_room(uint32_t size)
{
	return (size_t)PICTURE_SAMPLES * size * size * CHANNELS;
}

size_t transform_picture_bytes(const struct config *config, uint32_t width, uint32_t height)
{
	const uint32_t size = (uint32_t)config_integer(config, KEY_AUGMENT_SIZE);
	const size_t sample = (size_t)size * size * CHANNELS;
	if (config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL)
		return sample;
	const size_t whole = (size_t)width * height * CHANNELS;
	const size_t most =
		whole < transform_picture_room(size) ? whole : transform_picture_room(size);
	return most > sample ? most : sample;
}

/* A sample that is there already: the box is all of it. */
static struct batch_picture transform_finished(uint32_t size)
{
	return (struct batch_picture){
		.width = size,
		.height = size,
		.box_width = (float)size,
		.box_height = (float)size,
	};
}

int transform_choose(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	struct batch_picture *out, struct error *err)
{
	struct chosen *const chosen = &transform->chosen;
	*out = transform_finished(transform->augment.size);
	*chosen = (struct chosen){0};
	if (transform->is_null)
		return 0;
	const int result = transform_begin(transform, bytes, size, seed, chosen, err);
	if (result)
		return result;
	const struct resample_task *const task = &chosen->task;
	const struct region *const region = &task->region;
	chosen->resized = (size_t)region->width * region->height * CHANNELS >
			  transform_picture_room(transform->augment.size);
	if (chosen->resized)
		return 0;
	*out = (struct batch_picture){
		.width = region->width,
		.height = region->height,
		.x = (float)(task->x - region->x),
		.y = (float)(task->y - region->y),
		.box_width = (float)task->width,
		.box_height = (float)task->height,
		.flip = task->flip,
	};
	return 0;
}

int transform_decode(struct transform *transform, void *pixels, struct error *err)
{
	struct chosen *const chosen = &transform->chosen;
	if (!chosen->decoder)
		return 0;
	if (!chosen->resized)
		return transform_decode_region(transform, chosen, pixels, err);
	const int result = transform_resample(transform, chosen, pixels, NULL, err);
	if (result)
		resampler_abandon(transform->resampler);
	return result;
}
