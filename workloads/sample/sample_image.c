/* The kind image: a picture of any codec, cropped, resized, flipped and normalised
 * (workloads/image/transform.h), and the class of its file.  With augment.device = gpu workers only
 * decode the region that the crop needs, and the device makes the sample. */
#include "harness/base/hash.h"
#include "workloads/image/transform.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { IMAGE_CHANNELS = 3 };
_Static_assert(SAMPLE_ENDINGS_BYTES >= (int)IMAGE_ENDINGS_BYTES, "room for a list of endings");

static void sample_image_shape(const struct config *config, struct sample_shape *out)
{
	const uint32_t size = (uint32_t)config_integer(config, KEY_AUGMENT_SIZE);
	const bool planes = config_integer(config, KEY_AUGMENT_LAYOUT) == AUGMENT_LAYOUT_CHW;
	*out = (struct sample_shape){
		.type = (enum batch_type)config_integer(config, KEY_AUGMENT_TYPE),
		.dimensions = 3,
		.of = {planes ? IMAGE_CHANNELS : size, size, planes ? size : IMAGE_CHANNELS},
	};
}

static size_t sample_image_label_bytes(const struct config *config)
{
	(void)config;
	return sizeof(uint32_t);
}

static uint64_t sample_image_scratch(const struct config *config, const struct dataset *dataset)
{
	return transform_bytes(config, &dataset->extents);
}

static int sample_image_open(void **worker, const struct sample_options *options, struct error *err)
{
	struct transform *transform = NULL;
	const int code = transform_open(
		&transform, options->config, &options->dataset->extents, options->stop, err);
	*worker = transform;
	return code;
}

static void sample_image_close(void *worker)
{
	transform_close(worker);
}

static int sample_image_make(void *worker, const struct sample_task *task, struct error *err)
{
	sample_put_class(task);
	return transform_sample(worker, task->bytes, task->size, task->seed, task->out, NULL, err);
}

/* It keeps its class. */
static void sample_image_blank(const struct sample_task *task)
{
	sample_put_class(task);
	memset(task->out, 0, task->sizes->bytes);
}

static void sample_image_describe_largest(const struct dataset *dataset, char *out, size_t room)
{
	const struct sample *most = dataset->samples;
	for (size_t i = 1; i < dataset->count; i++) {
		const struct sample *const one = &dataset->samples[i];
		if ((uint64_t)one->width * one->height > (uint64_t)most->width * most->height)
			most = one;
	}
	(void)snprintf(
		out, room, "'%.100s', of %u x %u pixels", most->path, most->width, most->height);
}

/* ---- files -------------------------------------------------------------------------------- */

static bool sample_image_takes(const char *name)
{
	return image_format_of_name(name) != IMAGE_FORMAT_UNKNOWN;
}

static int sample_image_look(
	const void *head, size_t size, uint64_t file_bytes, struct sample *out, struct error *err)
{
	struct image_info info = {0};
	int code = image_read_info(head, size, &info, err);
	if (!code)
		code = image_check_bytes(&info, file_bytes, err);
	out->width = info.width;
	out->height = info.height;
	out->format = (uint8_t)info.format;
	return code;
}

static const struct sample_file_ops image_files = {
	.called = "pictures",
	.takes = sample_image_takes,
	.endings = image_list_endings,
	.look = sample_image_look,
};

/* ---- the device makes the sample --------------------------------------------------------- */

static uint64_t sample_image_raw_room(const struct config *config, const struct dataset *dataset)
{
	uint64_t most = 0;
	if (config_integer(config, KEY_AUGMENT_DEVICE) != AUGMENT_DEVICE_GPU)
		return 0;
	for (size_t i = 0; i < dataset->count; i++) {
		const uint64_t bytes = transform_picture_bytes(
			config, dataset->samples[i].width, dataset->samples[i].height);
		most = bytes > most ? bytes : most;
	}
	return most;
}

static size_t sample_picture_bytes(const struct batch_picture *picture)
{
	return (size_t)IMAGE_CHANNELS * picture->width * picture->height;
}

static int sample_image_prepare(void *worker, const struct sample_task *task, struct error *err)
{
	struct batch_picture *const picture = task->note;
	sample_put_class(task);
	const int code =
		transform_choose(worker, task->bytes, task->size, task->seed, picture, err);
	if (code)
		return code;
	const size_t bytes = sample_picture_bytes(picture);
	if (bytes > task->sizes->raw_bytes)
		return error_set(err, -EINVAL,
			"the picture is larger than any was when the data set was opened");
	picture->offset = sample_take_room(task, bytes);
	return transform_decode(worker, task->raw + picture->offset, err);
}

static void sample_picture_blank(const struct sample_task *task)
{
	sample_put_class(task);
	*(struct batch_picture *)task->note = (struct batch_picture){.bad = 1};
}

/* Of what was decoded, wherever it lies. */
static uint64_t sample_pictures_hash(const void *notes, const uint8_t *raw, uint32_t count)
{
	const struct batch_picture *const pictures = notes;
	uint64_t hash = count;
	for (uint32_t i = 0; i < count; i++) {
		struct batch_picture picture = pictures[i];
		const uint8_t *const pixels = raw + picture.offset;
		picture.offset = 0;
		hash = hash_bytes(&picture, sizeof picture, hash);
		if (!picture.bad)
			hash = hash_bytes(pixels, sample_picture_bytes(&picture), hash);
	}
	return hash;
}

static const struct sample_device_ops image_device = {
	.on = "augment.device = gpu",
	.off = "augment.device = cpu",
	.called = "a decoded picture",
	.note_bytes = sizeof(struct batch_picture),
	.room = sample_image_raw_room,
	.make = sample_image_prepare,
	.blank = sample_picture_blank,
	.hash = sample_pictures_hash,
};

static const enum key_id image_keys[] = {KEY_CODEC_PNG, KEY_CODEC_JPEG_SCALED, KEY_CODEC_CROP,
	KEY_AUGMENT_CROP, KEY_AUGMENT_SIZE, KEY_AUGMENT_SCALE_MIN, KEY_AUGMENT_SCALE_MAX,
	KEY_AUGMENT_RATIO_MIN, KEY_AUGMENT_RATIO_MAX, KEY_AUGMENT_FLIP, KEY_AUGMENT_ANTIALIAS,
	KEY_AUGMENT_TYPE, KEY_AUGMENT_LAYOUT, KEY_AUGMENT_DEVICE, KEY_DECODE_THREADS};

/* The device finishes samples of training alone. */
static int sample_image_settle(struct config *config, struct error *err)
{
	const bool random = config_integer(config, KEY_AUGMENT_CROP) == AUGMENT_CROP_RANDOM;
	int code = random ? config_set_key(config, KEY_AUGMENT_CROP, "center", err) : 0;
	if (!code)
		code = config_set_key(config, KEY_AUGMENT_FLIP, "0", err);
	return code ? code : config_set_key(config, KEY_AUGMENT_DEVICE, "cpu", err);
}

const struct sample_ops sample_image = {
	.name = "image",
	.summary =
		"one picture a file: decoded, cropped, resized, flipped and normalised; its class",
	.shape = sample_image_shape,
	.label_bytes = sample_image_label_bytes,
	.make = sample_image_make,
	.blank = sample_image_blank,
	.scratch_bytes = sample_image_scratch,
	.open = sample_image_open,
	.close = sample_image_close,
	.describe_largest = sample_image_describe_largest,
	.settle = sample_image_settle,
	.keys = image_keys,
	.key_count = sizeof image_keys / sizeof *image_keys,
	.size_key = "augment.size",
	.uses_codecs = true,
	.device = &image_device,
	.files = &image_files,
};
