/* TIFF through libtiff: the first picture of a file, decoded as a whole to RGBA, whatever its layout
 * and compression; the alpha has been multiplied in by then, and is left out. */
#include "workloads/image/optional.h"

#include <errno.h>

#if defined(MLBENCH_WITH_libtiff_4)

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

enum {
	RGBA_BYTES = 4,
	INSIDE_BYTES = 8, /* a pixel of what libtiff keeps: a strip may be the whole picture */
	INSIDE_FIXED = 1 << 20,
	MEMORY_MAX = 512 * 1024 * 1024,
	REASON_BYTES = 1024, /* what TIFFRGBAImageOK wants */
	HEADER_BYTES = 8,
	ENTRY_BYTES = 12,
	VERSION = 42,
	TYPE_SHORT = 3,
};

struct tiff {
	struct decoder_options options;
	TIFF *libtiff; /* open from begin to the end of the picture */
	const uint8_t *bytes;
	size_t size, at; /* of the file */
	struct image_info info;
	char reason[REASON_BYTES]; /* libtiff's, the first */
	bool is_done;
	struct scratch pixels;
};

const char *tiff_unavailable(void)
{
	return NULL;
}

/* ---- header, without libtiff: a scan has no more than the beginning of a file ------------------ */

/* A number of 2 or 4 bytes in the file's own order. */
static uint32_t read_number(const uint8_t *at, size_t bytes, bool is_little)
{
	uint32_t value = 0;
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | at[is_little ? bytes - 1 - i : i];
	return value;
}

int tiff_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	const uint8_t *const file = bytes;
	const bool is_little = size > 0 && file[0] == 'I';
	if (size < HEADER_BYTES)
		return error_set(err, -EAGAIN, "tiff header is not complete");
	if (read_number(file + 2, 2, is_little) != VERSION)
		return error_set(err, -EINVAL, "a BigTIFF, or none");
	const size_t at = read_number(file + 4, 4, is_little);
	if (at + 2 > size)
		return error_set(err, -EAGAIN, "tiff directory is not complete");
	const size_t entries = read_number(file + at, 2, is_little);
	if (at + 2 + entries * ENTRY_BYTES > size)
		return error_set(err, -EAGAIN, "tiff directory is not complete");
	for (size_t i = 0; i < entries; i++) {
		const uint8_t *const entry = file + at + 2 + i * ENTRY_BYTES;
		const uint32_t tag = read_number(entry, 2, is_little);
		const bool is_short = read_number(entry + 2, 2, is_little) == TYPE_SHORT;
		const uint32_t value = read_number(entry + 8, is_short ? 2 : 4, is_little);
		if (tag == TIFFTAG_IMAGEWIDTH)
			info->width = value;
		if (tag == TIFFTAG_IMAGELENGTH)
			info->height = value;
	}
	return 0;
}

/* ---- the file in memory, as libtiff wants it ----------------------------------------------------- */

static tmsize_t tiff_read(thandle_t handle, void *out, tmsize_t wanted)
{
	struct tiff *const tiff = handle;
	const size_t left = tiff->size > tiff->at ? tiff->size - tiff->at : 0;
	const size_t n = (size_t)wanted < left ? (size_t)wanted : left;
	memcpy(out, tiff->bytes + (n > 0 ? tiff->at : 0), n);
	tiff->at += n;
	return (tmsize_t)n;
}

static tmsize_t tiff_write(thandle_t handle, void *in, tmsize_t wanted)
{
	(void)handle, (void)in, (void)wanted;
	return -1;
}

static toff_t tiff_seek(thandle_t handle, toff_t offset, int whence)
{
	struct tiff *const tiff = handle;
	const toff_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? tiff->at : tiff->size;
	tiff->at = from + offset;
	return tiff->at;
}

static int tiff_shut(thandle_t handle)
{
	(void)handle;
	return 0;
}

static toff_t tiff_length(thandle_t handle)
{
	const struct tiff *const tiff = handle;
	return tiff->size;
}

__attribute__((format(printf, 4, 0))) static int tiff_fail(
	TIFF *libtiff, void *context, const char *module, const char *format, va_list args)
{
	(void)libtiff, (void)module;
	struct tiff *const tiff = context;
	if (!tiff->reason[0])
		(void)vsnprintf(tiff->reason, sizeof tiff->reason, format, args);
	return 1;
}

__attribute__((format(printf, 4, 0))) static int tiff_ignore(
	TIFF *libtiff, void *context, const char *module, const char *format, va_list args)
{
	(void)libtiff, (void)context, (void)module, (void)format, (void)args;
	return 1;
}

static void tiff_drop(struct tiff *tiff)
{
	if (tiff->libtiff)
		TIFFClose(tiff->libtiff);
	tiff->libtiff = NULL;
}

static int tiff_refuse(struct tiff *tiff, struct error *err)
{
	tiff_drop(tiff);
	return error_set(err, -EINVAL, "tiff: %s", tiff->reason[0] ? tiff->reason : "damaged");
}

/* ---- decoder ---------------------------------------------------------------------------------------- */

static uint64_t tiff_scratch_bytes(const struct image_extent *extent)
{
	return extent->pixels * (RGBA_BYTES + INSIDE_BYTES) + INSIDE_FIXED;
}

static int tiff_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct tiff *const tiff = state;
	tiff->options = *options;
	return scratch_reserve(&tiff->pixels, options->extent.pixels * RGBA_BYTES, err);
}

static void tiff_close(void *state)
{
	struct tiff *const tiff = state;
	tiff_drop(tiff);
	scratch_release(&tiff->pixels);
}

static int tiff_open_file(struct tiff *tiff, struct error *err)
{
	TIFFOpenOptions *const options = TIFFOpenOptionsAlloc();
	if (!options)
		return error_set(err, -ENOMEM, "no memory for libtiff");
	TIFFOpenOptionsSetMaxSingleMemAlloc(options, MEMORY_MAX);
	TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_fail, tiff);
	TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_ignore, tiff);
	tiff->libtiff = TIFFClientOpenExt("picture", "rm", tiff, tiff_read, tiff_write, tiff_seek,
		tiff_shut, tiff_length, NULL, NULL, options);
	TIFFOpenOptionsFree(options);
	return tiff->libtiff ? 0 : tiff_refuse(tiff, err);
}

static int tiff_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct tiff *const tiff = state;
	tiff_drop(tiff);
	tiff->bytes = bytes;
	tiff->size = size;
	tiff->at = 0;
	tiff->reason[0] = '\0';
	*info = (struct image_info){.format = IMAGE_FORMAT_TIFF};
	int result = tiff_open_file(tiff, err);
	if (result)
		return result;
	if (!TIFFGetField(tiff->libtiff, TIFFTAG_IMAGEWIDTH, &info->width) ||
		!TIFFGetField(tiff->libtiff, TIFFTAG_IMAGELENGTH, &info->height) ||
		!TIFFRGBAImageOK(tiff->libtiff, tiff->reason))
		return tiff_refuse(tiff, err);
	tiff->info = *info;
	result = image_check_size(info->width, info->height, err);
	if (result)
		tiff_drop(tiff);
	return result;
}

static int tiff_select(void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	(void)region, (void)shrink;
	struct tiff *const tiff = state;
	tiff->is_done = false;
	return scratch_reserve(
		&tiff->pixels, (size_t)tiff->info.width * tiff->info.height * RGBA_BYTES, err);
}

static int tiff_next(void *state, struct strip *strip, struct error *err)
{
	struct tiff *const tiff = state;
	if (tiff->is_done)
		return 0;
	tiff->is_done = true;
	if (decoder_stops(&tiff->options))
		return error_set(err, -EINTR, "tiff: stopped");
	if (!TIFFReadRGBAImageOriented(tiff->libtiff, tiff->info.width, tiff->info.height,
		    (uint32_t *)(void *)tiff->pixels.data, ORIENTATION_TOPLEFT, 1) ||
		tiff->reason[0])
		return tiff_refuse(tiff, err);
	tiff_drop(tiff);
	*strip = (struct strip){
		.pixels = tiff->pixels.data,
		.stride = (size_t)tiff->info.width * RGBA_BYTES,
		.width = tiff->info.width,
		.rows = tiff->info.height,
		.pixel_bytes = RGBA_BYTES,
	};
	return 1;
}

static const struct decoder_ops decoder_tiff = {
	.name = "tiff",
	.state_bytes = sizeof(struct tiff),
	.rows_kind = TIMELINE_TIFF,
	.open = tiff_open,
	.close = tiff_close,
	.scratch_bytes = tiff_scratch_bytes,
	.begin = tiff_begin,
	.select = tiff_select,
	.next = tiff_next,
};

const struct decoder_ops *tiff_decoder(void)
{
	return &decoder_tiff;
}

#else

const char *tiff_unavailable(void)
{
	return "this program was built without libtiff (4.5 or later)";
}

int tiff_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	(void)bytes, (void)size, (void)info;
	return error_set(err, -EINVAL, "a tiff picture, and %s", tiff_unavailable());
}

const struct decoder_ops *tiff_decoder(void)
{
	return NULL;
}

#endif
