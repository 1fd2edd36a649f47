/* TIFF through libtiff: the first picture of a file, decoded as a whole to RGBA from any layout
 * and compression; the alpha has been multiplied in by then, and is left out. */
#include "workloads/image/codec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool tiff_sniff(const uint8_t *bytes, size_t size)
{
	return size >= 4 && (memcmp(bytes, "II*", 4) == 0 || memcmp(bytes, "MM\0*", 4) == 0);
}

#if defined(MLBENCH_WITH_libtiff_4)

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

/* ---- header, without libtiff: a scan has no more than the beginning of a file ------------------ */

/* Numbers in the file's own order. */
static uint16_t tiff_number16(const uint8_t *at, bool is_little)
{
	return is_little ? bytes_le16(at) : bytes_be16(at);
}

static uint32_t tiff_number32(const uint8_t *at, bool is_little)
{
	return is_little ? bytes_le32(at) : bytes_be32(at);
}

static int tiff_read_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	const bool is_little = size > 0 && bytes[0] == 'I';
	if (size < HEADER_BYTES)
		return error_set(err, -EAGAIN, "tiff header is not complete");
	if (tiff_number16(bytes + 2, is_little) != VERSION)
		return error_set(err, -EINVAL, "not a TIFF, or a BigTIFF, which is not supported");
	const size_t at = tiff_number32(bytes + 4, is_little);
	if (at + 2 > size)
		return error_set(err, -EAGAIN, "tiff directory is not complete");
	const size_t entries = tiff_number16(bytes + at, is_little);
	if (at + 2 + entries * ENTRY_BYTES > size)
		return error_set(err, -EAGAIN, "tiff directory is not complete");
	for (size_t i = 0; i < entries; i++) {
		const uint8_t *const entry = bytes + at + 2 + i * ENTRY_BYTES;
		const uint32_t tag = tiff_number16(entry, is_little);
		const bool is_short = tiff_number16(entry + 2, is_little) == TYPE_SHORT;
		const uint32_t value = is_short ? tiff_number16(entry + 8, is_little)
						: tiff_number32(entry + 8, is_little);
		if (tag == TIFFTAG_IMAGEWIDTH)
			info->width = value;
		if (tag == TIFFTAG_IMAGELENGTH)
			info->height = value;
	}
	return 0;
}

/* ---- the file in memory, as libtiff wants it ----------------------------------------------------- */

struct tiff {
	TIFF *libtiff;
	const uint8_t *bytes;
	size_t size, at;
	char reason[REASON_BYTES]; /* libtiff's, the first */
};

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

/* ---- decoding --------------------------------------------------------------------------------------- */

static uint64_t tiff_scratch_bytes(const struct image_extent *extent)
{
	return extent->pixels * INSIDE_BYTES + INSIDE_FIXED;
}

static int tiff_open(struct tiff *tiff, struct error *err)
{
	TIFFOpenOptions *const options = TIFFOpenOptionsAlloc();
	if (!options)
		return error_set(err, -ENOMEM, "out of memory for libtiff");
	TIFFOpenOptionsSetMaxSingleMemAlloc(options, MEMORY_MAX);
	TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_fail, tiff);
	TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_ignore, tiff);
	tiff->libtiff = TIFFClientOpenExt("picture", "rm", tiff, tiff_read, tiff_write, tiff_seek,
		tiff_shut, tiff_length, NULL, NULL, options);
	TIFFOpenOptionsFree(options);
	return 0;
}

/* libtiff sees the picture that the header promised, and decodes it without a complaint. */
static bool tiff_decode_into(struct tiff *tiff, const struct decode_task *task)
{
	uint32_t width = 0, height = 0;
	if (!TIFFGetField(tiff->libtiff, TIFFTAG_IMAGEWIDTH, &width) ||
		!TIFFGetField(tiff->libtiff, TIFFTAG_IMAGELENGTH, &height) ||
		width != task->info.width || height != task->info.height ||
		!TIFFRGBAImageOK(tiff->libtiff, tiff->reason))
		return false;
	return TIFFReadRGBAImageOriented(tiff->libtiff, width, height,
		       (uint32_t *)(void *)task->pixels, ORIENTATION_TOPLEFT, 1) &&
	       !tiff->reason[0];
}

static int tiff_decode(const struct decode_task *task, struct error *err)
{
	struct tiff tiff = {.bytes = task->bytes, .size = task->size};
	const int result = tiff_open(&tiff, err);
	if (result)
		return result;
	const bool decoded = tiff.libtiff && tiff_decode_into(&tiff, task);
	if (tiff.libtiff)
		TIFFClose(tiff.libtiff);
	return decoded ? 0
		       : error_set(err, -EINVAL, "tiff: %s",
				 tiff.reason[0] ? tiff.reason : "damaged");
}

#endif

const struct codec_ops codec_tiff = {
	.name = "tiff",
	.summary = "libtiff: the first picture of a file, decodes all of it",
	.endings = {"tif", "tiff"},
	.sniff = tiff_sniff,
#if defined(MLBENCH_WITH_libtiff_4)
	.read_info = tiff_read_info,
	.rows_kind = TIMELINE_TIFF,
	.pixel_bytes = RGBA_BYTES,
	.decode = tiff_decode,
	.scratch_bytes = tiff_scratch_bytes,
#else
	.unavailable = "this program was built without libtiff (4.5 or later)",
#endif
};
