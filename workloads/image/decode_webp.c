/* WebP through libwebp: the picture is decoded as a whole, whatever the crop, since pixels beside a
 * crop's edge would be others than in the whole.  Its alpha is left out, as PNG's is. */
#include "workloads/image/optional.h"

#include <errno.h>

#if defined(MLBENCH_WITH_libwebp)

#include <webp/decode.h>

enum {
	RGB_BYTES = 3,
	INSIDE_BYTES = 6, /* a pixel of what libwebp keeps: ARGB, alpha and transforms */
	INSIDE_FIXED = 1 << 20,
	PIECE_BYTES = 1 << 16, /* of the file, between two looks at the stop flag */
};

struct webp {
	struct decoder_options options;
	const uint8_t *bytes; /* the file */
	size_t size;
	struct image_info info;
	bool is_done;
	struct scratch pixels;
};

const char *webp_unavailable(void)
{
	return NULL;
}

int webp_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	WebPBitstreamFeatures features;
	const VP8StatusCode status = WebPGetFeatures(bytes, size, &features);
	if (status == VP8_STATUS_NOT_ENOUGH_DATA)
		return error_set(err, -EAGAIN, "webp header is not complete");
	if (status != VP8_STATUS_OK)
		return error_set(err, -EINVAL, "webp with a damaged header");
	if (features.has_animation)
		return error_set(err, -EINVAL, "an animated webp");
	info->width = (uint32_t)features.width;
	info->height = (uint32_t)features.height;
	return 0;
}

static uint64_t webp_pixel_bytes(const struct image_extent *extent)
{
	return extent->pixels * RGB_BYTES;
}

static uint64_t webp_scratch_bytes(const struct image_extent *extent)
{
	return webp_pixel_bytes(extent) + extent->pixels * INSIDE_BYTES + INSIDE_FIXED;
}

static int webp_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct webp *const webp = state;
	webp->options = *options;
	return scratch_reserve(&webp->pixels, webp_pixel_bytes(&options->extent), err);
}

static void webp_close(void *state)
{
	struct webp *const webp = state;
	scratch_release(&webp->pixels);
}

static int webp_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct webp *const webp = state;
	*info = (struct image_info){.format = IMAGE_FORMAT_WEBP};
	int result = webp_read_info(bytes, size, info, err);
	if (!result)
		result = image_check_size(info->width, info->height, err);
	webp->bytes = bytes;
	webp->size = size;
	webp->info = *info;
	return result == -EAGAIN ? -EINVAL : result;
}

static int webp_select(void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	(void)region, (void)shrink;
	struct webp *const webp = state;
	webp->is_done = false;
	return scratch_reserve(
		&webp->pixels, (size_t)webp->info.width * webp->info.height * RGB_BYTES, err);
}

static int webp_decode(struct webp *webp, struct error *err)
{
	const size_t stride = (size_t)webp->info.width * RGB_BYTES;
	WebPIDecoder *const decoder =
		WebPINewRGB(MODE_RGB, webp->pixels.data, stride * webp->info.height, (int)stride);
	if (!decoder)
		return error_set(err, -ENOMEM, "no memory for the webp decoder");
	VP8StatusCode status = VP8_STATUS_SUSPENDED;
	bool stopped = false;
	for (size_t given = 0; status == VP8_STATUS_SUSPENDED && given < webp->size && !stopped;) {
		const size_t left = webp->size - given;
		given += left < PIECE_BYTES ? left : PIECE_BYTES;
		status = WebPIUpdate(decoder, webp->bytes, given);
		stopped = decoder_stops(&webp->options);
	}
	WebPIDelete(decoder);
	if (stopped)
		return error_set(err, -EINTR, "webp: stopped");
	if (status == VP8_STATUS_OUT_OF_MEMORY)
		return error_set(err, -ENOMEM, "no memory for a webp picture");
	if (status != VP8_STATUS_OK)
		return error_set(err, -EINVAL, "webp: %s",
			status == VP8_STATUS_SUSPENDED ? "the file is cut short" : "damaged data");
	return 0;
}

static int webp_next(void *state, struct strip *strip, struct error *err)
{
	struct webp *const webp = state;
	if (webp->is_done)
		return 0;
	webp->is_done = true;
	const int result = webp_decode(webp, err);
	*strip = (struct strip){
		.pixels = webp->pixels.data,
		.stride = (size_t)webp->info.width * RGB_BYTES,
		.width = webp->info.width,
		.rows = webp->info.height,
		.pixel_bytes = RGB_BYTES,
	};
	return result ? result : 1;
}

static const struct decoder_ops decoder_webp = {
	.name = "webp",
	.state_bytes = sizeof(struct webp),
	.rows_kind = TIMELINE_WEBP,
	.open = webp_open,
	.close = webp_close,
	.scratch_bytes = webp_scratch_bytes,
	.begin = webp_begin,
	.select = webp_select,
	.next = webp_next,
};

const struct decoder_ops *webp_decoder(void)
{
	return &decoder_webp;
}

#else

const char *webp_unavailable(void)
{
	return "this program was built without libwebp";
}

int webp_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	(void)bytes, (void)size, (void)info;
	return error_set(err, -EINVAL, "a webp picture, and %s", webp_unavailable());
}

const struct decoder_ops *webp_decoder(void)
{
	return NULL;
}

#endif
