/* The recipe tokens: flat files of token ids.  Documents have log-normal lengths, and tokens.end_of_document
 * behind each; the rank of a token in them follows Zipf's law, as that of a word in a text does, so that
 * a few ids are frequent and most are rare.  Id and rank are the same, but for the end of a document. */
#include "harness/base/rng.h"
#include "workloads/dataset/maker.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
	ZIPF_STEPS = 4096, /* of the inverse distribution, with straight lines between */
	ZIPF_STEP_BITS = 12,
	ZIPF_PART_BITS = 20,
};
static const double TOKENS_FILE_BYTES_MAX = 4e9; /* what may be in a maker's memory */

static size_t maker_tokens_id_bytes(const struct recipe *recipe)
{
	return recipe_integer(recipe, KEY_TOKENS_TYPE) == TOKENS_TYPE_UINT16 ? 2 : 4;
}

static double maker_tokens_mean(const struct recipe *recipe)
{
	return (double)recipe_integer(recipe, KEY_DATASET_FILE_TOKENS) *
	       (double)maker_tokens_id_bytes(recipe);
}

/* Measured once, writing included. */
static double maker_tokens_mean_ns(const struct recipe *recipe)
{
	return 4.0 * (double)recipe_integer(recipe, KEY_DATASET_FILE_TOKENS);
}

static int maker_tokens_check(struct recipe *recipe, struct error *err)
{
	if (maker_tokens_mean(recipe) <= TOKENS_FILE_BYTES_MAX)
		return 0;
	return error_set(err, -EINVAL,
		"'dataset.file_tokens' = %" PRId64
		" makes files of more than 4 GB: generate more files of fewer tokens (dataset.samples)",
		recipe_integer(recipe, KEY_DATASET_FILE_TOKENS));
}

static const char *maker_tokens_extension(const struct recipe *recipe)
{
	(void)recipe;
	return "bin";
}

/* Of a rank r = 1, 2, … the density is about 1 / r: its logarithm is uniform. */
static void zipf_fill(double vocabulary, float out[ZIPF_STEPS + 1])
{
	for (size_t i = 0; i <= ZIPF_STEPS; i++)
		out[i] = (float)exp(log(vocabulary) * (double)i / ZIPF_STEPS);
}

static uint32_t zipf_rank(const float steps[ZIPF_STEPS + 1], uint32_t random, uint32_t vocabulary)
{
	const float *const step = steps + (random >> ZIPF_PART_BITS);
	const float part =
		(float)(random & ((1U << ZIPF_PART_BITS) - 1)) / (float)(1U << ZIPF_PART_BITS);
	const uint32_t rank = (uint32_t)(step[0] + (step[1] - step[0]) * part) - 1;
	return rank < vocabulary ? rank : vocabulary - 1;
}
_Static_assert(ZIPF_STEPS == 1 << ZIPF_STEP_BITS, "a step for each value of the upper bits");
_Static_assert(ZIPF_STEP_BITS + ZIPF_PART_BITS == 32, "of a number of 32 bits");

static void maker_tokens_put(uint8_t *bytes, size_t id_bytes, uint64_t at, uint32_t id)
{
	const uint16_t narrow = htole16((uint16_t)id);
	const uint32_t wide = htole32(id);
	memcpy(bytes + at * id_bytes, id_bytes == 2 ? (const void *)&narrow : &wide, id_bytes);
}

static uint64_t maker_tokens_document(const struct recipe *recipe, struct rng *rng)
{
	const double median = (double)recipe_integer(recipe, KEY_DATASET_DOCUMENT_TOKENS);
	const double sigma = recipe_real(recipe, KEY_DATASET_SIZE_SIGMA);
	const double tokens = round(median * exp(sigma * rng_normal(rng)));
	return tokens >= 1 ? (uint64_t)fmin(tokens, 1e12) : 1;
}

static int maker_tokens_make(
	struct maker *maker, const struct recipe *recipe, uint64_t id, struct error *err)
{
	const uint64_t tokens = (uint64_t)recipe_integer(recipe, KEY_DATASET_FILE_TOKENS);
	const uint32_t vocabulary = (uint32_t)recipe_integer(recipe, KEY_TOKENS_VOCABULARY);
	const uint32_t end = (uint32_t)recipe_integer(recipe, KEY_TOKENS_END_OF_DOCUMENT);
	const size_t id_bytes = maker_tokens_id_bytes(recipe);
	float steps[ZIPF_STEPS + 1];
	struct rng rng;
	const int code = maker_grow(maker, tokens * id_bytes, err);
	if (code)
		return code;
	zipf_fill(vocabulary, steps);
	rng_init(&rng, recipe->seed, id);
	uint64_t left = maker_tokens_document(recipe, &rng);
	uint64_t random = 0;
	for (uint64_t at = 0; at < tokens; at++, left--) {
		if (left == 0) {
			maker_tokens_put(maker->bytes, id_bytes, at, end);
			left = maker_tokens_document(recipe, &rng) + 1;
			continue;
		}
		random = at % 2 == 0 ? rng_next(&rng) : random >> 32;
		const uint32_t rank = zipf_rank(steps, (uint32_t)random, vocabulary - 1);
		maker_tokens_put(maker->bytes, id_bytes, at, rank < end ? rank : rank + 1);
	}
	maker->size = tokens * id_bytes;
	return 0;
}

const struct recipe_ops maker_tokens = {
	.version = 1,
	.keys = {KEY_DATASET_FILE_TOKENS, KEY_DATASET_DOCUMENT_TOKENS, KEY_DATASET_SIZE_SIGMA,
		KEY_TOKENS_TYPE, KEY_TOKENS_VOCABULARY, KEY_TOKENS_END_OF_DOCUMENT},
	.key_count = 6,
	.extension = maker_tokens_extension,
	.check = maker_tokens_check,
	.mean_bytes = maker_tokens_mean,
	.mean_ns = maker_tokens_mean_ns,
	.make = maker_tokens_make,
};
