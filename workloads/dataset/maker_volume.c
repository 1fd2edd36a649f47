/* The recipe volume: 3-D arrays of float32 (depth, height, width), an ellipsoid of tissue in air with
 * noise as a scanner has it, in .npy or .npz (workloads/sample/npy.h). */
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "workloads/dataset/maker.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
	VOLUME_NPY_HEADER = 128, /* as NumPy pads it */
	VOLUME_ZIP_OTHER = 512,  /* headers and directory of a zip with one file, less */
	VOLUME_DEFLATE_LEVEL = 1,
	VOLUME_EDGES = 3,
	VOLUME_DEVIATIONS = 3, /* of an edge, at most, so that the largest file is known */
};
static const enum key_id maker_volume_keys[VOLUME_EDGES] = {
	KEY_DATASET_DEPTH, KEY_DATASET_HEIGHT, KEY_DATASET_WIDTH};
static const double VOLUME_FILE_MAX = 4e9;    /* bytes: what a read buffer may have */
static const char VOLUME_NAME[] = "data.npy"; /* in the zip */

/* An edge `away` from its median, in ln(edge). */
static double maker_volume_edge(double median, double away)
{
	return fmax(1, round(median * exp(away)));
}

/* depth, height, width of file `id`; an edge is at least 1. */
static void maker_volume_edges(
	const struct recipe *recipe, uint64_t id, uint64_t out[VOLUME_EDGES], struct rng *rng)
{
	const double sigma = recipe_real(recipe, KEY_DATASET_SIZE_SIGMA);
	rng_init(rng, recipe->seed, id);
	for (size_t i = 0; i < VOLUME_EDGES; i++) {
		const double median = (double)recipe_integer(recipe, maker_volume_keys[i]);
		const double z = fmax(-VOLUME_DEVIATIONS, fmin(VOLUME_DEVIATIONS, rng_normal(rng)));
		out[i] = (uint64_t)maker_volume_edge(median, sigma * z);
	}
}

static double maker_volume_median_bytes(const struct recipe *recipe)
{
	return (double)sizeof(float) * (double)recipe_integer(recipe, KEY_DATASET_DEPTH) *
	       (double)recipe_integer(recipe, KEY_DATASET_HEIGHT) *
	       (double)recipe_integer(recipe, KEY_DATASET_WIDTH);
}

static bool maker_volume_deflates(const struct recipe *recipe)
{
	return recipe_integer(recipe, KEY_DATASET_VOLUME_FORMAT) ==
	       DATASET_VOLUME_FORMAT_NPZ_DEFLATED;
}

/* The mean of a log-normal edge is its median times exp(sigma^2 / 2). */
static double maker_volume_mean_plain(const struct recipe *recipe)
{
	const double sigma = recipe_real(recipe, KEY_DATASET_SIZE_SIGMA);
	return VOLUME_NPY_HEADER +
	       maker_volume_median_bytes(recipe) * exp(VOLUME_EDGES * sigma * sigma / 2);
}

/* Measured once: 24 volumes of 8 MB became 0.46 of their size. */
static double maker_volume_mean(const struct recipe *recipe)
{
	static const double deflated = 0.46;
	return maker_volume_mean_plain(recipe) * (maker_volume_deflates(recipe) ? deflated : 1);
}

/* Likewise, writing included: 3.3 and 23 ns of a core's time for a byte. */
static double maker_volume_mean_ns(const struct recipe *recipe)
{
	return maker_volume_mean_plain(recipe) * (maker_volume_deflates(recipe) ? 23 : 3.3);
}

static int maker_volume_check(struct recipe *recipe, struct error *err)
{
	const double sigma = recipe_real(recipe, KEY_DATASET_SIZE_SIGMA);
	double most = sizeof(float);
	for (size_t i = 0; i < VOLUME_EDGES; i++)
		most *= maker_volume_edge((double)recipe_integer(recipe, maker_volume_keys[i]),
			sigma * VOLUME_DEVIATIONS);
	if (most <= VOLUME_FILE_MAX)
		return 0;
	return error_set(err, -EINVAL,
		"'dataset.depth' x 'dataset.height' x 'dataset.width' gives volumes of up to %s GB, with 'dataset.size_sigma' = %g; 4 GB are the limit",
		UNITS_PLAIN(most / 1e9, 3), sigma);
}

static const char *maker_volume_extension(const struct recipe *recipe)
{
	return recipe_integer(recipe, KEY_DATASET_VOLUME_FORMAT) == DATASET_VOLUME_FORMAT_NPY
		       ? "npy"
		       : "npz";
}

static void maker_volume_fill(float *out, const uint64_t edges[VOLUME_EDGES], struct rng *rng)
{
	const double middle[VOLUME_EDGES] = {(double)edges[0] * (0.4 + 0.2 * rng_uniform(rng)),
		(double)edges[1] * (0.4 + 0.2 * rng_uniform(rng)),
		(double)edges[2] * (0.4 + 0.2 * rng_uniform(rng))};
	for (uint64_t z = 0; z < edges[0]; z++)
		for (uint64_t y = 0; y < edges[1]; y++, out += edges[2]) {
			const double dz = ((double)z - middle[0]) / (0.45 * (double)edges[0]);
			const double dy = ((double)y - middle[1]) / (0.45 * (double)edges[1]);
			const float rest = (float)(1 - dz * dz - dy * dy);
			const float scale = (float)(1 / (0.45 * (double)edges[2]));
			uint64_t noise = 0;
			for (uint64_t x = 0; x < edges[2]; x++) {
				const float dx = ((float)x - (float)middle[2]) * scale;
				noise = x % 8 == 0 ? rng_next(rng) : noise >> 8;
				out[x] = (dx * dx < rest ? 0.25f : -1.0f) +
					 (float)(int8_t)noise * 0x1p-11f;
			}
		}
}

/* An .npy file of it at `to`; its size. */
static size_t maker_volume_npy(uint8_t *to, const uint64_t edges[VOLUME_EDGES], struct rng *rng)
{
	enum { DICTIONARY_AT = 10 };
	char text[VOLUME_NPY_HEADER];
	const int used = snprintf(text, sizeof text,
		"{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRIu64 ", %" PRIu64
		", %" PRIu64 "), }",
		edges[0], edges[1], edges[2]);
	memset(to, ' ', VOLUME_NPY_HEADER);
	memcpy(to, "\x93NUMPY\x01\x00", 8);
	to[8] = VOLUME_NPY_HEADER - DICTIONARY_AT;
	to[9] = 0;
	memcpy(to + DICTIONARY_AT, text, (size_t)used);
	to[VOLUME_NPY_HEADER - 1] = '\n';
	maker_volume_fill((float *)(void *)(to + VOLUME_NPY_HEADER), edges, rng);
	return VOLUME_NPY_HEADER + edges[0] * edges[1] * edges[2] * sizeof(float);
}

/* ---- the zip around it ---------------------------------------------------------------------- */

static uint8_t *zip_put(uint8_t *at, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

struct zip_file {
	uint32_t method, crc, stored, bytes;
};

/* What header and directory have in common. */
static uint8_t *zip_put_file(uint8_t *at, const struct zip_file *file)
{
	static const uint32_t day = 0x0021; /* 1980-01-01 */
	at = zip_put(at, 2, 20);            /* version needed: 2.0 */
	at = zip_put(at, 2, 0);
	at = zip_put(at, 2, file->method);
	at = zip_put(at, 4, day << 16);
	at = zip_put(at, 4, file->crc);
	at = zip_put(at, 4, file->stored);
	at = zip_put(at, 4, file->bytes);
	at = zip_put(at, 2, sizeof VOLUME_NAME - 1);
	return zip_put(at, 2, 0);
}

static uint8_t *zip_put_name(uint8_t *at)
{
	memcpy(at, VOLUME_NAME, sizeof VOLUME_NAME - 1);
	return at + sizeof VOLUME_NAME - 1;
}

static size_t zip_header(uint8_t *at, const struct zip_file *file)
{
	uint8_t *const begin = at;
	at = zip_put(at, 4, 0x04034b50);
	return (size_t)(zip_put_name(zip_put_file(at, file)) - begin);
}

static size_t zip_directory(uint8_t *at, const struct zip_file *file, size_t offset)
{
	uint8_t *const begin = at;
	at = zip_put(at, 4, 0x02014b50);
	at = zip_put(at, 2, 20);
	at = zip_put_file(at, file);
	at = zip_put(at, 2 + 2 + 2, 0); /* comment, disk, attributes */
	at = zip_put(at, 4 + 4, 0);     /* more of them, and its place */
	at = zip_put_name(at);
	const size_t size = (size_t)(at - begin);
	at = zip_put(at, 4, 0x06054b50);
	at = zip_put(at, 4, 0);
	at = zip_put(at, 2, 1);
	at = zip_put(at, 2, 1);
	at = zip_put(at, 4, size);
	at = zip_put(at, 4, offset);
	return (size_t)(zip_put(at, 2, 0) - begin);
}

static int zip_deflate(uint8_t *to, size_t room, const uint8_t *from, size_t size, size_t *out)
{
	z_stream stream = {0};
	if (deflateInit2(&stream, VOLUME_DEFLATE_LEVEL, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	stream.next_in = (uint8_t *)(uintptr_t)from;
	stream.avail_in = (uInt)size;
	stream.next_out = to;
	stream.avail_out = (uInt)room;
	const int status = deflate(&stream, Z_FINISH);
	*out = room - stream.avail_out;
	(void)deflateEnd(&stream);
	return status == Z_STREAM_END ? 0 : -EOVERFLOW;
}

static int maker_volume_make(
	struct maker *maker, const struct recipe *recipe, uint64_t id, struct error *err)
{
	const int64_t format = recipe_integer(recipe, KEY_DATASET_VOLUME_FORMAT);
	const bool deflated = maker_volume_deflates(recipe);
	uint64_t edges[VOLUME_EDGES];
	struct rng rng;
	maker_volume_edges(recipe, id, edges, &rng);
	const size_t size = VOLUME_NPY_HEADER + edges[0] * edges[1] * edges[2] * sizeof(float);
	const size_t packed = deflated ? compressBound(size) : 0;
	/* The array lies behind where it is packed to, on a boundary of floats. */
	const size_t at = (packed + VOLUME_ZIP_OTHER) / 64 * 64;
	int code = maker_grow(maker, at + size + VOLUME_ZIP_OTHER, err);
	if (code)
		return code;
	uint8_t *const array = maker->bytes + at;
	(void)maker_volume_npy(array, edges, &rng);
	if (format == DATASET_VOLUME_FORMAT_NPY) {
		memmove(maker->bytes, array, size);
		maker->size = size;
		return 0;
	}
	const uint64_t packing = clock_thread_cpu_ns();
	struct zip_file file = {.method = deflated ? 8 : 0,
		.crc = (uint32_t)crc32_z(0, array, size),
		.stored = (uint32_t)size,
		.bytes = (uint32_t)size};
	const size_t header = zip_header(maker->bytes, &file);
	size_t stored = size;
	if (deflated)
		code = zip_deflate(maker->bytes + header, at - header, array, size, &stored);
	else
		memmove(maker->bytes + header, array, size);
	if (code)
		return error_set_errno(err, -code, "cannot pack a volume");
	file.stored = (uint32_t)stored;
	(void)zip_header(maker->bytes, &file);
	maker->size = header + stored;
	maker->size += zip_directory(maker->bytes + maker->size, &file, maker->size);
	maker->encode_cpu_ns += clock_thread_cpu_ns() - packing;
	return 0;
}

const struct recipe_ops maker_volume = {
	.version = 1,
	.keys = {KEY_DATASET_DEPTH, KEY_DATASET_HEIGHT, KEY_DATASET_WIDTH, KEY_DATASET_SIZE_SIGMA,
		KEY_DATASET_VOLUME_FORMAT},
	.key_count = 5,
	.extension = maker_volume_extension,
	.check = maker_volume_check,
	.mean_bytes = maker_volume_mean,
	.mean_ns = maker_volume_mean_ns,
	.make = maker_volume_make,
};
