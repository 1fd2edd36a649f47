/* libFuzzer target for everything that reads a picture: headers, the decoders, crops and resizing.
 *
 * Each input goes through several configurations.  What must hold beside memory safety: a sample is
 * written or the picture is refused with a reason; decoding only the crop gives the sample of
 * decoding all, where both succeed; and the two PNG decoders agree.  An input that is a PNG is
 * taken a second time with its CRCs mended, so that damage gets past them.
 *
 *   make fuzzers && build/fuzz/fuzz_image -max_total_time=600 build/fuzz/corpus
 * tests/fuzz/corpus/image */
#include "harness/base/log.h"
#include "workloads/image/codec.h"
#include "workloads/image/transform.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

enum { KEYS_MAX = 8, SIZE = 24, PIXELS_MOST = 300 * 300 };

struct way {
	const char *keys[KEYS_MAX];
	struct transform *transform;
	uint8_t *sample;
	size_t bytes;
	int result;
	struct error err;
};

enum { FAST, FAST_WHOLE, LIBPNG, LIBPNG_WHOLE, SCALED, BYTES, WAYS };

static struct way ways[WAYS] = {
	[FAST] = {{"codec.png=fast"}},
	[FAST_WHOLE] = {{"codec.png=fast", "codec.crop=off"}},
	[LIBPNG] = {{"codec.png=libpng"}},
	[LIBPNG_WHOLE] = {{"codec.png=libpng", "codec.crop=off"}},
	[SCALED] = {{"codec.jpeg_scaled=on", "augment.crop=none"}},
	[BYTES] = {{"augment.type=uint8", "augment.layout=hwc", "augment.crop=center",
		"augment.antialias=off"}},
};

static void stop(const char *what, const struct way *a, const struct way *b)
{
	(void)fprintf(stderr, "%s: %s=%d '%s', %s=%d '%s'\n", what, a->keys[0], a->result,
		a->err.text, b->keys[0], b->result, b->err.text);
	abort();
}

static void open_way(struct way *way)
{
	struct config config;
	struct error err;
	config_init(&config);
	if (config_set(&config, "augment.size=24", &err))
		abort();
	for (size_t k = 0; k < KEYS_MAX && way->keys[k]; k++)
		if (config_set(&config, way->keys[k], &err))
			abort();
	way->bytes = transform_sample_bytes(&config);
	way->sample = malloc(way->bytes);
	if (!way->sample || transform_open(&way->transform, &config, NULL, NULL, &err))
		abort();
	config_release(&config);
}

static void run_way(struct way *way, const uint8_t *bytes, size_t size)
{
	way->err.text[0] = '\0';
	way->result =
		transform_sample(way->transform, bytes, size, size, way->sample, NULL, &way->err);
	if (way->result && !way->err.text[0])
		stop("no reason", way, way);
	if (way->result && way->sample[0])
		stop("not zeroed", way, way);
}

static void same_sample(const struct way *a, const struct way *b)
{
	if (!a->result && !b->result && memcmp(a->sample, b->sample, a->bytes) != 0)
		stop("samples differ", a, b);
}

/* is_mended: the CRCs say nothing any more, and of a damaged deflate stream one decoder may take
 * what the other refuses. */
static void run_all(const uint8_t *bytes, size_t size, bool is_mended)
{
	for (size_t w = 0; w < WAYS; w++)
		run_way(&ways[w], bytes, size);
	same_sample(&ways[FAST], &ways[FAST_WHOLE]);
	same_sample(&ways[LIBPNG], &ways[LIBPNG_WHOLE]);
	same_sample(&ways[FAST], &ways[LIBPNG]);
	same_sample(&ways[FAST_WHOLE], &ways[LIBPNG_WHOLE]);
	if (!is_mended && !ways[FAST_WHOLE].result != !ways[LIBPNG_WHOLE].result)
		stop("one refuses", &ways[FAST_WHOLE], &ways[LIBPNG_WHOLE]);
	if (ways[FAST_WHOLE].result && !ways[LIBPNG_WHOLE].result)
		stop("fast is stricter", &ways[FAST_WHOLE], &ways[LIBPNG_WHOLE]);
}

static void mend_crcs(uint8_t *bytes, size_t size)
{
	for (size_t at = 8; at <= size && size - at >= 12;) {
		const uint32_t length = bytes_be32(bytes + at);
		if (length > size - at - 12)
			return;
		const uint32_t crc = crc32_gzip_refl(0, bytes + at + 4, (uint64_t)length + 4);
		for (size_t i = 0; i < 4; i++)
			bytes[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
		at += (size_t)length + 12;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	log_set_level(LOG_LEVEL_QUIET);
	for (size_t w = 0; w < WAYS; w++)
		open_way(&ways[w]);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct image_info info;
	const int result = image_read_info(bytes, size, &info, NULL);
	/* large pictures take their time without telling anything new */
	if (result == 0 && (uint64_t)info.width * info.height > PIXELS_MOST)
		return 0;
	run_all(bytes, size, false);
	if (info.format == IMAGE_FORMAT_PNG) {
		uint8_t *const copy = malloc(size);
		if (!copy)
			return 0;
		memcpy(copy, bytes, size);
		mend_crcs(copy, size);
		run_all(copy, size, true);
		free(copy);
	}
	return 0;
}
