/* WebP through libwebp: the picture is decoded as a whole for any crop, since pixels beside a
 * crop's edge would be others than in the whole.  Its alpha is left out, as PNG's is. */
#include "workloads/image/codec.h"

#include <errno.h>
#include <string.h>

static bool webp_sniff(const uint8_t *bytes, size_t size)
{
	return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

#if defined(MLBENCH_WITH_libwebp)

#include <webp/decode.h>

enum {
	RGB_BYTES = 3,
	INSIDE_BYTES = 6, /* a pixel of what libwebp keeps: ARGB, alpha and transforms */
	INSIDE_FIXED = 1 << 20,
	PIECE_BYTES = 1 << 16, /* of the file, between two looks at the stop flag */
};

static int webp_read_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	WebPBitstreamFeatures features;
	const VP8StatusCode status = WebPGetFeatures(bytes, size, &features);
	if (status == VP8_STATUS_NOT_ENOUGH_DATA)
		return error_set(err, -EAGAIN, "webp header is not complete");
	if (status != VP8_STATUS_OK)
		return error_set(err, -EINVAL, "webp: damaged header");
	if (features.has_animation)
		return error_set(err, -EINVAL, "webp: animations are not supported");
	info->width = (uint32_t)features.width;
	info->height = (uint32_t)features.height;
	return 0;
}

static uint64_t webp_scratch_bytes(const struct image_extent *extent)
{
	return extent->pixels * INSIDE_BYTES + INSIDE_FIXED;
}

static int webp_decode(const struct decode_task *task, struct error *err)
{
	const size_t stride = (size_t)task->info.width * RGB_BYTES;
	WebPIDecoder *const decoder =
		WebPINewRGB(MODE_RGB, task->pixels, stride * task->info.height, (int)stride);
	if (!decoder)
		return error_set(err, -ENOMEM, "out of memory for the webp decoder");
	VP8StatusCode status = VP8_STATUS_SUSPENDED;
	bool stopped = false;
	for (size_t given = 0; status == VP8_STATUS_SUSPENDED && given < task->size && !stopped;) {
		const size_t left = task->size - given;
		given += left < PIECE_BYTES ? left : PIECE_BYTES;
		status = WebPIUpdate(decoder, task->bytes, given);
		stopped = decoder_stops(task->options);
	}
	WebPIDelete(decoder);
	if (stopped)
		return error_set(err, -EINTR, "webp: stopped");
	if (status == VP8_STATUS_OUT_OF_MEMORY)
		return error_set(err, -ENOMEM, "out of memory for a webp picture");
	if (status != VP8_STATUS_OK)
		return error_set(err, -EINVAL, "webp: %s",
			status == VP8_STATUS_SUSPENDED ? "truncated" : "damaged data");
	return 0;
}

#endif

const struct codec_ops codec_webp = {
	.name = "webp",
	.summary = "libwebp: lossy and lossless, decodes the whole picture",
	.endings = {"webp"},
	.sniff = webp_sniff,
#if defined(MLBENCH_WITH_libwebp)
	.read_info = webp_read_info,
	.rows_kind = TIMELINE_WEBP,
	.pixel_bytes = RGB_BYTES,
	.decode = webp_decode,
	.scratch_bytes = webp_scratch_bytes,
#else
	.unavailable = "this program was built without libwebp",
#endif
};
