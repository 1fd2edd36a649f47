/* Binary PPM: the pixels lie in the file as they are wanted, so a region is only an address. */
#include "workloads/image/decoder.h"

#include <errno.h>
#include <string.h>

enum { RGB_BYTES = 3 };

struct raw {
	const uint8_t *pixels, *end; /* of the file */
	struct image_info info;
	struct region region;
	uint32_t next_row;
	struct scratch last; /* the file's last rows, where there is no slack behind them */
};

static int raw_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct raw *const raw = state;
	return scratch_reserve(&raw->last, (size_t)options->extent.width * RGB_BYTES, err);
}

static void raw_close(void *state)
{
	struct raw *const raw = state;
	scratch_release(&raw->last);
}

static uint64_t raw_scratch_bytes(const struct image_extent *extent)
{
	return (uint64_t)extent->width * RGB_BYTES;
}

static int raw_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct raw *const raw = state;
	size_t pixels_at;
	const int result = image_read_raw_header(bytes, size, &raw->info, &pixels_at, err);
	if (result)
		return result == -EAGAIN ? -EINVAL : result;
	const uint64_t needed = (uint64_t)raw->info.width * raw->info.height * RGB_BYTES;
	if (size - pixels_at < needed)
		return error_set(err, -EINVAL, "ppm is truncated: %zu of %llu bytes of pixels",
			size - pixels_at, (unsigned long long)needed);
	raw->pixels = (const uint8_t *)bytes + pixels_at;
	raw->end = (const uint8_t *)bytes + size;
	*info = raw->info;
	return 0;
}

static int raw_select(void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	(void)shrink, (void)err;
	struct raw *const raw = state;
	raw->region = *region;
	raw->next_row = region->y;
	return 0;
}

/* Copies one row, so that there is slack behind it. */
static int copy_row(struct raw *raw, struct strip *strip, struct error *err)
{
	const size_t size = (size_t)strip->width * RGB_BYTES;
	const int result = scratch_reserve(&raw->last, size, err);
	if (result)
		return result;
	memcpy(raw->last.data, strip->pixels, size);
	strip->pixels = raw->last.data;
	return 0;
}

/* Bytes of the file behind what is wanted of row y. */
static size_t slack_behind(const struct raw *raw, uint32_t y)
{
	const size_t pixels = (size_t)y * raw->info.width + raw->region.x + raw->region.width;
	return (size_t)(raw->end - raw->pixels) - pixels * RGB_BYTES;
}

/* All rows in place, but those at the end of the file, which come singly. */
static int raw_next(void *state, struct strip *strip, struct error *err)
{
	struct raw *const raw = state;
	const uint32_t first = raw->next_row;
	const uint32_t end = raw->region.y + raw->region.height;
	if (first >= end)
		return 0;
	uint32_t last = end - 1;
	while (last > first && slack_behind(raw, last) < SCRATCH_SLACK_BYTES)
		last--;
	const size_t stride = (size_t)raw->info.width * RGB_BYTES;
	*strip = (struct strip){
		.pixels = raw->pixels + first * stride + (size_t)raw->region.x * RGB_BYTES,
		.stride = stride,
		.x = raw->region.x,
		.width = raw->region.width,
		.y = first,
		.rows = last + 1 - first,
		.pixel_bytes = RGB_BYTES,
	};
	raw->next_row = last + 1;
	if (slack_behind(raw, last) < SCRATCH_SLACK_BYTES) {
		const int result = copy_row(raw, strip, err);
		return result ? result : 1;
	}
	return 1;
}

const struct decoder_ops decoder_raw = {
	.name = "raw",
	.state_bytes = sizeof(struct raw),
	.rows_kind = TIMELINE_RAW_ROWS,
	.open = raw_open,
	.close = raw_close,
	.scratch_bytes = raw_scratch_bytes,
	.begin = raw_begin,
	.select = raw_select,
	.next = raw_next,
};
