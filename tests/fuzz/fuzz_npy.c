/* libFuzzer target: any .npy or .npz is refused with a reason, or a box of it is made, twice the
 * same.  The bytes are taken as a file, and once more as what is packed in an honest zip, so that
 * what is behind its directory is reached. */
#include "workloads/sample/npy.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { VALUES = 2 * 2 * 3 * 4, ZIP_HEADER = 31, ZIP_BEHIND = 47 + 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct volumes {
	struct config config;
	struct sample_sizes sizes;
	struct sample_maker maker;
	struct dataset dataset;
};

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_npy: %s\n", what);
	abort();
}

static void volumes_open(struct volumes *volumes, const char *channels)
{
	struct error err = {""};
	config_init(&volumes->config);
	require(config_set(&volumes->config, "sample.kind=volume", &err) == 0, err.text);
	require(config_set(&volumes->config, "volume.crop=2x3x4", &err) == 0, err.text);
	require(config_set(&volumes->config, channels, &err) == 0, err.text);
	sample_sizes_of(&volumes->config, NULL, &volumes->sizes);
	const struct sample_options options = {
		.config = &volumes->config, .dataset = &volumes->dataset};
	require(sample_maker_open(&volumes->maker, &options, &volumes->sizes, &err) == 0, err.text);
}

static int volumes_make(
	struct volumes *volumes, const uint8_t *bytes, size_t size, float *out, struct error *err)
{
	static const struct sample sample;
	uint32_t label;
	const struct sample_task task = {.bytes = bytes,
		.size = size,
		.seed = size,
		.sample = &sample,
		.labels = (uint8_t *)&label,
		.sizes = &volumes->sizes,
		.out = (uint8_t *)out};
	err->text[0] = '\0';
	return volumes->maker.make(volumes->maker.worker, &task, err);
}

static void volumes_try(struct volumes *volumes, const uint8_t *bytes, size_t size)
{
	float first[VALUES] = {0};
	float second[VALUES] = {0};
	struct error err;
	struct error again;
	/* Of its own size exactly: a read behind it is seen. */
	uint8_t *const own = malloc(size ? size : 1);
	require(own != NULL, "out of memory");
	memcpy(own, bytes, size);
	const int code = volumes_make(volumes, own, size, first, &err);
	require(code == 0 || (code == -EINVAL && err.text[0]), "refused without a reason");
	require(volumes_make(volumes, own, size, second, &again) == code, "not the same twice");
	require(code || memcmp(first, second, sizeof first) == 0, "another sample");
	free(own);
}

static uint8_t *put(uint8_t *at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

/* Method, checksum, sizes and names, as header (30 bytes) and directory (46) have them from byte 4 or 6. */
static uint8_t *put_file(
	uint8_t *at, uint64_t method, uint64_t crc, uint64_t stored, uint64_t bytes)
{
	at = put(put(put(at, 20, 2), 0, 2), method, 2);
	at = put(put(put(put(at, 0, 4), crc, 4), stored, 4), bytes, 4);
	return put(put(at, 5, 2), 0, 2);
}

/* CRC-32 of the first `most` bytes that the stream inflates to, as zlib has it. */
static uint32_t crc_inflated(const uint8_t *bytes, size_t size, uint64_t most)
{
	z_stream stream = {.next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (uInt)size};
	uint8_t out[4096];
	uLong crc = 0;
	int status = Z_OK;
	require(inflateInit2(&stream, -15) == Z_OK, "out of memory");
	while (status == Z_OK && most > 0) {
		stream.next_out = out;
		stream.avail_out = (uInt)(most < sizeof out ? most : sizeof out);
		status = inflate(&stream, Z_NO_FLUSH);
		const size_t got = (size_t)(stream.next_out - out);
		crc = crc32(crc, out, (uInt)got);
		most -= got;
	}
	(void)inflateEnd(&stream);
	return (uint32_t)crc;
}

/* The bytes as what is deflated, of a claim that they begin with. */
static void try_packed(struct volumes *volumes, const uint8_t *data, size_t size)
{
	if (size < 4)
		return;
	uint8_t *const zip = malloc(ZIP_HEADER + 5 + size + ZIP_BEHIND + 5);
	require(zip != NULL, "out of memory");
	const uint64_t claim = data[0] | (uint64_t)data[1] << 8 | (uint64_t)data[2] << 16;
	const uint32_t crc = crc_inflated(data + 3, size - 3, claim);
	uint8_t *at = put_file(put(zip, 0x04034b50, 4), 8, crc, size - 3, claim);
	memcpy(at, "a.npy", 5);
	memcpy(at + 5, data + 3, size - 3);
	at += 5 + size - 3;
	const uint64_t directory = (uint64_t)(at - zip);
	at = put_file(put(put(at, 0x02014b50, 4), 20, 2), 8, crc, size - 3, claim);
	at = put(put(at, 0, 6), 0, 8);
	memcpy(at, "a.npy", 5);
	at += 5;
	const uint64_t length = (uint64_t)(at - zip) - directory;
	at = put(put(put(put(at, 0x06054b50, 4), 0, 4), 1, 2), 1, 2);
	at = put(put(put(at, length, 4), directory, 4), 0, 2);
	volumes_try(volumes, zip, (size_t)(at - zip));
	free(zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct volumes one;
	static struct volumes two;
	if (!one.maker.make) {
		volumes_open(&one, "volume.channels=1");
		volumes_open(&two, "volume.channels=2");
	}
	volumes_try(&one, data, size);
	volumes_try(&two, data, size);
	try_packed(&one, data, size);
	return 0;
}
