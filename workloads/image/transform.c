/* A decode worker's whole work on one sample. */
#include "workloads/image/transform.h"

#include "harness/base/clock.h"
#include "harness/measure/timeline.h"
#include "workloads/image/augment.h"
#include "workloads/image/codec.h"
#include "workloads/image/resample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

uint64_t transform_bytes(const struct config *config, const struct image_extents *extents)
{
	if (config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL)
		return sizeof(struct transform);
	const struct image_extent all = image_extents_all(extents);
	uint64_t bytes = sizeof(struct transform) +
			 resampler_bytes((uint32_t)config_integer(config, KEY_AUGMENT_SIZE),
				 all.width, all.height);
	for (int format = 0; format < IMAGE_FORMATS; format++) {
		const struct codec_ops *const codec =
			codec_choose((enum image_format)format, config);
		if (codec && extents->of[format].pixels > 0)
			bytes += decoder_bytes(codec, &extents->of[format]);
	}
	return bytes;
}

/* ---- life --------------------------------------------------------------------------------- */

static int open_decoder(struct transform *transform, enum image_format format,
	const struct image_extent *extent, struct error *err)
{
	const struct decoder_options options = {.extent = *extent, .stop = transform->stop};
	return decoder_open(&transform->decoders[format], transform->codecs[format], &options, err);
}

/* Those of the formats that the data set has. */
static int open_decoders(
	struct transform *transform, const struct image_extents *extents, struct error *err)
{
	int result = 0;
	for (int format = 0; format < IMAGE_FORMATS && !result; format++)
		if (transform->codecs[format] && extents->of[format].pixels > 0)
			result = open_decoder(
				transform, (enum image_format)format, &extents->of[format], err);
	return result;
}

static int open_parts(struct transform *transform, const struct config *config,
	const struct image_extents *extents, struct error *err)
{
	const struct image_extent all = image_extents_all(extents);
	const bool decoded_only = transform->is_decoded_only;
	const struct resample_options resample = {
		.size = transform->augment.size,
		.antialias = config_on(config, KEY_AUGMENT_ANTIALIAS),
		.is_float = is_float(config) && !decoded_only,
		.is_planar = config_integer(config, KEY_AUGMENT_LAYOUT) == AUGMENT_LAYOUT_CHW &&
			     !decoded_only,
	};
	transform->resize_kind = resample.is_float ? TIMELINE_RESIZE_NORMALISE : TIMELINE_RESIZE;
	for (int format = 0; format < IMAGE_FORMATS; format++)
		transform->codecs[format] = codec_choose((enum image_format)format, config);
	const int result = open_decoders(transform, extents, err);
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
	const int result = transform->is_null
				   ? 0
				   : open_parts(transform, config, extents ? extents : &none, err);
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
	free(transform);
}

/* ---- a sample ----------------------------------------------------------------------------- */

static uint32_t divide_up(uint32_t value, uint32_t by)
{
	return (value + by - 1) / by;
}

/* The most by which decoding may shrink the picture and still leave the crop as large as the
 * sample. */
static uint32_t choose_shrink(
	const struct transform *transform, const struct codec_ops *codec, const struct region *crop)
{
	uint32_t shrink = transform->shrinks && codec->shrinks ? SHRINK_MOST : 1;
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

static int select_region(
	const struct transform *transform, const struct chosen *chosen, struct error *err)
{
	const struct region whole = {
		.width = divide_up(chosen->info.width, chosen->shrink),
		.height = divide_up(chosen->info.height, chosen->shrink),
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

static void add_turn(struct turns *turns, uint64_t *sum_ns)
{
	if (!turns->timed)
		return;
	const uint64_t now_ns = clock_now_ns();
	*sum_ns += now_ns - turns->at_ns;
	turns->at_ns = now_ns;
}

/* In a timeline: one after the other where there was one turn, else what they add up to. */
static void show_turns(
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
static int run_strips(struct transform *transform, const struct chosen *chosen, uint64_t *resize_ns,
	struct error *err)
{
	struct strip strip;
	const bool shown = timeline_is_on();
	struct turns turns = {.timed = resize_ns || shown};
	turns.began_ns = turns.timed ? clock_now_ns() : 0;
	turns.at_ns = turns.began_ns;
	int more;
	while ((more = decoder_next(chosen->decoder, &strip, err)) > 0) {
		add_turn(&turns, &turns.rows_ns);
		resampler_push(transform->resampler, &strip);
		add_turn(&turns, &turns.resize_ns);
		turns.count++;
	}
	if (turns.count > 1)
		add_turn(&turns, &turns.rows_ns);
	if (shown)
		show_turns(transform->resize_kind, chosen->codec, &turns);
	if (resize_ns)
		*resize_ns = turns.resize_ns;
	if (!more && !resampler_is_done(transform->resampler))
		return error_set(
			err, -EINVAL, "the %s decoder gave too few rows", chosen->codec->name);
	return more;
}

/* Reads the picture's header, and says what of it becomes the sample. */
static int choose(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	struct chosen *chosen, struct error *err)
{
	const enum image_format format = image_sniff(bytes, size);
	const struct codec_ops *const codec = transform->codecs[format];
	struct image_info unused;
	if (!codec) /* which says why */
		return image_read_info(bytes, size, &unused, err) ? -EINVAL : -ENOTSUP;
	const struct image_extent unknown = {0};
	int result = 0;
	if (!transform->decoders[format])
		result = open_decoder(transform, format, &unknown, err);
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
	chosen->shrink = choose_shrink(transform, codec, &choice.crop);
	chosen->task.flip = choice.flip;
	set_task(&chosen->task, &choice.crop, chosen->shrink);
	return 0;
}

static int resample(struct transform *transform, struct chosen *chosen, void *out,
	uint64_t *resize_ns, struct error *err)
{
	chosen->task.out = out;
	int result = resampler_begin(transform->resampler, &chosen->task, err);
	if (!result)
		result = select_region(transform, chosen, err);
	return result ? result : run_strips(transform, chosen, resize_ns, err);
}

static int decode_sample(struct transform *transform, const void *bytes, size_t size, uint64_t seed,
	void *out, uint64_t *resize_ns, struct error *err)
{
	struct chosen chosen;
	const int result = choose(transform, bytes, size, seed, &chosen, err);
	return result ? result : resample(transform, &chosen, out, resize_ns, err);
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

/* ---- a picture for a device that makes the sample ------------------------------------------- */

static size_t picture_room(uint32_t size)
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
	const size_t most = whole < picture_room(size) ? whole : picture_room(size);
	return most > sample ? most : sample;
}

/* A sample that is there already: the box is all of it. */
static struct batch_picture finished_picture(uint32_t size)
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
	*out = finished_picture(transform->augment.size);
	*chosen = (struct chosen){0};
	if (transform->is_null)
		return 0;
	const int result = choose(transform, bytes, size, seed, chosen, err);
	if (result)
		return result;
	const struct resample_task *const task = &chosen->task;
	const struct region *const region = &task->region;
	chosen->resized = (size_t)region->width * region->height * CHANNELS >
			  picture_room(transform->augment.size);
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

/* A row of RGB and a byte to ignore, as RGB. */
static void pack_row(uint8_t *to, const uint8_t *from, size_t width)
{
	for (size_t i = 0; i + 1 < width; i++)
		memcpy(to + CHANNELS * i, from + 4 * i, 4); /* the next one covers the fourth */
	memcpy(to + CHANNELS * (width - 1), from + 4 * (width - 1), CHANNELS);
}

/* The part of a strip that is in the region. */
static void copy_strip(const struct strip *strip, const struct region *region, uint8_t *pixels)
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
			pack_row(to, from, region->width);
	}
}

static int decode_region(const struct transform *transform, const struct chosen *chosen,
	void *pixels, struct error *err)
{
	const struct region *const region = &chosen->task.region;
	uint64_t rows = 0;
	struct strip strip;
	int more = select_region(transform, chosen, err);
	if (more)
		return more;
	struct turns turns = {.timed = timeline_is_on()};
	turns.began_ns = turns.timed ? clock_now_ns() : 0;
	turns.at_ns = turns.began_ns;
	while ((more = decoder_next(chosen->decoder, &strip, err)) > 0) {
		add_turn(&turns, &turns.rows_ns);
		copy_strip(&strip, region, pixels);
		add_turn(&turns, &turns.resize_ns);
		turns.count++;
		rows = (uint64_t)strip.y + strip.rows;
	}
	if (turns.timed)
		show_turns(TIMELINE_COPY_REGION, chosen->codec, &turns);
	if (!more && rows < (uint64_t)region->y + region->height)
		return error_set(
			err, -EINVAL, "the %s decoder gave too few rows", chosen->codec->name);
	return more;
}

int transform_decode(struct transform *transform, void *pixels, struct error *err)
{
	struct chosen *const chosen = &transform->chosen;
	if (!chosen->decoder)
		return 0;
	if (!chosen->resized)
		return decode_region(transform, chosen, pixels, err);
	const int result = resample(transform, chosen, pixels, NULL, err);
	if (result)
		resampler_abandon(transform->resampler);
	return result;
}
