/* Walking and checking the chunks of a PNG file. */
#include "workloads/image/png_chunks.h"

#include "workloads/image/bytes.h"
#include "workloads/image/codec.h"

#include <errno.h>
#include <string.h>

#include <isa-l/crc.h>

enum {
	SIGNATURE_BYTES = 8,
	CHUNK_OVERHEAD_BYTES = 12, /* length, type, CRC */
	CHUNK_DATA_AT = 8,
	IHDR_BYTES = 13,
	PALETTE_ENTRY_BYTES = 3,
	PALETTE_ENTRIES_MAX = 256,
};

struct chunk {
	const uint8_t *type; /* 4 letters */
	const uint8_t *data;
	uint32_t size;
};

static bool chunk_is(const struct chunk *chunk, const char *type)
{
	return memcmp(chunk->type, type, 4) == 0;
}

static bool chunk_is_critical(const struct chunk *chunk)
{
	return (chunk->type[0] & 0x20) == 0;
}

static bool type_is_valid(const uint8_t *type)
{
	for (int i = 0; i < 4; i++) {
		const uint8_t lower = type[i] | 0x20;
		if (lower < 'a' || lower > 'z')
			return false;
	}
	return true;
}

/* The chunk at *at, which moves behind it. */
static int next_chunk(
	const uint8_t *bytes, size_t size, size_t *at, struct chunk *chunk, struct error *err)
{
	if (size - *at < CHUNK_OVERHEAD_BYTES)
		return error_set(err, -EINVAL, "png is truncated");
	chunk->size = bytes_be32(bytes + *at);
	chunk->type = bytes + *at + 4;
	chunk->data = bytes + *at + CHUNK_DATA_AT;
	if (chunk->size > size - *at - CHUNK_OVERHEAD_BYTES)
		return error_set(err, -EINVAL, "png is truncated");
	if (!type_is_valid(chunk->type))
		return error_set(err, -EINVAL, "png chunk at offset %zu has no valid type", *at);
	const uint32_t crc = crc32_gzip_refl(0, chunk->type, (uint64_t)chunk->size + 4);
	if (crc != bytes_be32(chunk->data + chunk->size))
		return error_set(err, -EINVAL, "png chunk at offset %zu has a wrong crc", *at);
	*at += (size_t)chunk->size + CHUNK_OVERHEAD_BYTES;
	return 0;
}

static bool depth_is_allowed(uint8_t color_type, uint8_t depth)
{
	switch (color_type) {
	case PNG_KIND_GRAY:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
	case PNG_KIND_INDEXED:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8;
	case PNG_KIND_RGB:
	case PNG_KIND_GRAY_ALPHA:
	case PNG_KIND_RGBA:
		return depth == 8 || depth == 16;
	default:
		return false;
	}
}

static int read_header(struct png_chunks *chunks, const struct chunk *chunk, struct error *err)
{
	if (!chunk_is(chunk, "IHDR") || chunk->size != IHDR_BYTES)
		return error_set(err, -EINVAL, "png without an IHDR chunk in front");
	chunks->width = bytes_be32(chunk->data);
	chunks->height = bytes_be32(chunk->data + 4);
	chunks->bit_depth = chunk->data[8];
	chunks->color_type = chunk->data[9];
	chunks->interlace = chunk->data[12];
	if (!depth_is_allowed(chunks->color_type, chunks->bit_depth))
		return error_set(err, -EINVAL, "png of colour type %u with %u bits",
			chunks->color_type, chunks->bit_depth);
	if (chunk->data[10] != 0 || chunk->data[11] != 0 || chunks->interlace > 1)
		return error_set(err, -EINVAL, "png of unknown compression, filter or interlace");
	return image_check_size(chunks->width, chunks->height, err);
}

static int read_palette(struct png_chunks *chunks, const struct chunk *chunk, struct error *err)
{
	const uint32_t entries = chunk->size / PALETTE_ENTRY_BYTES;
	if (chunks->palette || chunks->idat_at)
		return error_set(err, -EINVAL, "png with a palette out of place");
	if (entries == 0 || entries > PALETTE_ENTRIES_MAX || chunk->size % PALETTE_ENTRY_BYTES)
		return error_set(err, -EINVAL, "png palette of %u bytes", chunk->size);
	if (chunks->color_type == PNG_KIND_GRAY || chunks->color_type == PNG_KIND_GRAY_ALPHA)
		return error_set(err, -EINVAL, "grey png with a palette");
	if (chunks->color_type == PNG_KIND_INDEXED && entries > 1U << chunks->bit_depth)
		return error_set(err, -EINVAL, "png palette of %u colours for %u bits", entries,
			chunks->bit_depth);
	chunks->palette = chunk->data;
	chunks->palette_entries = entries;
	return 0;
}

/* is_next: the chunk before this one was an IDAT too. */
static int read_data(
	struct png_chunks *chunks, const struct chunk *chunk, bool is_next, struct error *err)
{
	if (chunks->color_type == PNG_KIND_INDEXED && !chunks->palette)
		return error_set(err, -EINVAL, "png without its palette");
	if (chunks->idat_at && !is_next)
		return error_set(err, -EINVAL, "png with data in two places");
	if (!chunks->idat_at)
		chunks->idat_at = (size_t)(chunk->data - chunks->bytes) - CHUNK_DATA_AT;
	chunks->idat_bytes += chunk->size;
	return 0;
}

static int read_chunk(
	struct png_chunks *chunks, const struct chunk *chunk, bool follows_data, struct error *err)
{
	if (chunk_is(chunk, "IDAT"))
		return read_data(chunks, chunk, follows_data, err);
	if (chunk_is(chunk, "PLTE"))
		return read_palette(chunks, chunk, err);
	if (chunk_is_critical(chunk))
		return error_set(err, -EINVAL, "png with an unknown or repeated critical chunk");
	return 0;
}

/* A small file that claims a large picture is refused before anything is allocated for it. */
static int check_room(const struct png_chunks *chunks, struct error *err)
{
	const uint64_t pixel_bytes = (uint64_t)png_chunks_row_bytes(chunks) * chunks->height;
	if (pixel_bytes / INFLATE_RATIO_MAX > chunks->idat_bytes)
		return error_set(err, -EINVAL, "png: %zu bytes of data cannot hold %u x %u pixels",
			chunks->idat_bytes, chunks->width, chunks->height);
	if (chunks->idat_bytes > UINT32_MAX)
		return error_set(err, -EINVAL, "png of more than 4 GiB");
	return 0;
}

int png_chunks_read(struct png_chunks *chunks, const void *bytes, size_t size, struct error *err)
{
	*chunks = (struct png_chunks){.bytes = bytes};
	size_t at = SIGNATURE_BYTES;
	struct chunk chunk = {0};
	if (size < SIGNATURE_BYTES)
		return error_set(err, -EINVAL, "png is truncated");
	int result = next_chunk(bytes, size, &at, &chunk, err);
	if (!result)
		result = read_header(chunks, &chunk, err);
	bool follows_data = false;
	while (!result) {
		result = next_chunk(bytes, size, &at, &chunk, err);
		if (result || chunk_is(&chunk, "IEND"))
			break;
		result = read_chunk(chunks, &chunk, follows_data, err);
		follows_data = chunk_is(&chunk, "IDAT");
	}
	if (!result && !chunks->idat_at)
		return error_set(err, -EINVAL, "png without data");
	return result ? result : check_room(chunks, err);
}

uint32_t png_chunks_channels(const struct png_chunks *chunks)
{
	switch (chunks->color_type) {
	case PNG_KIND_RGB:
		return 3;
	case PNG_KIND_GRAY_ALPHA:
		return 2;
	case PNG_KIND_RGBA:
		return 4;
	default:
		return 1;
	}
}

size_t png_chunks_row_bytes(const struct png_chunks *chunks)
{
	const uint64_t bits =
		(uint64_t)chunks->width * png_chunks_channels(chunks) * chunks->bit_depth;
	return (bits + 7) / 8;
}

void png_chunks_join(const struct png_chunks *chunks, uint8_t *out)
{
	const uint8_t *chunk = chunks->bytes + chunks->idat_at;
	for (size_t done = 0; done < chunks->idat_bytes;) {
		const uint32_t size = bytes_be32(chunk);
		memcpy(out + done, chunk + CHUNK_DATA_AT, size);
		done += size;
		chunk += (size_t)size + CHUNK_OVERHEAD_BYTES;
	}
}
