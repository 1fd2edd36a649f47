/* Pictures and products that are the same everywhere. */
#include "harness/checks/fixed_work.h"

#include "harness/base/array.h"
#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "workloads/backend/openblas.h"
#include "workloads/dataset/probe_decode.h"
#include "workloads/image/picture.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* Part of the golden checksums: another seed gives other results. */
enum { FIXED_SEED = 20261126, FIXED_FORMATS = 3, FIXED_PICTURES = 4, FIXED_ALIGN = 64 };
#define FIXED_TEXT(macro) FIXED_TEXT_OF(macro)
#define FIXED_TEXT_OF(text) #text

static const char *const fixed_formats[FIXED_FORMATS] = {"jpeg", "png", "raw"};

/* Vectors exactly, their edges, a cache of level 2, more than that with a short and with a long sum. */
static const struct fixed_shape {
	bool is_double;
	uint32_t m, n, k;
} fixed_shapes[] = {
	{false, 64, 64, 64},
	{false, 131, 67, 259},
	{false, 384, 384, 384},
	{false, 1024, 256, 96},
	{false, 96, 128, 4096},
	{true, 64, 64, 64},
	{true, 131, 67, 259},
	{true, 320, 320, 320},
	{true, 96, 64, 2048},
};

/* One format of pictures. */
struct fixed_pictures {
	struct config config;
	struct probe_samples samples;
	struct sample_sizes sizes;
};

struct fixed_work {
	const atomic_bool *stop;
	struct fixed_item items[FIXED_ITEMS_MAX];
	size_t count;
	struct fixed_pictures pictures[FIXED_FORMATS];
	bool has_pictures;
	float *left, *right; /* operands of all products; of doubles: */
	double *left_double, *right_double;
	char path[FIXED_KINDS][FIXED_PATH_BYTES];
	size_t result_bytes; /* of the largest */
	size_t label_bytes;
};

int fixed_work_open(struct fixed_work **out, const atomic_bool *stop, struct error *err)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return error_set(err, -ENOMEM, "out of memory");
	(*out)->stop = stop;
	return 0;
}

void fixed_work_close(struct fixed_work *work)
{
	if (!work)
		return;
	for (size_t i = 0; work->has_pictures && i < FIXED_FORMATS; i++) {
		probe_samples_release(&work->pictures[i].samples);
		config_release(&work->pictures[i].config);
	}
	free(work->left);
	free(work->right);
	free(work->left_double);
	free(work->right_double);
	free(work);
}

size_t fixed_work_count(const struct fixed_work *work)
{
	return work->count;
}

const struct fixed_item *fixed_work_item(const struct fixed_work *work, size_t item)
{
	return &work->items[item];
}

const char *fixed_work_path(const struct fixed_work *work, enum fixed_kind kind)
{
	return work->path[kind];
}

static struct fixed_item *fixed_work_add(
	struct fixed_work *work, enum fixed_kind kind, size_t index, size_t bytes)
{
	struct fixed_item *const item = &work->items[work->count++];
	*item = (struct fixed_item){.kind = kind, .index = index, .bytes = bytes};
	work->result_bytes = bytes > work->result_bytes ? bytes : work->result_bytes;
	return item;
}

/* --- pictures --------------------------------------------------------------------------------- */

static int fixed_pictures_configure(struct config *config, const char *format, struct error *err)
{
	char count[UNITS_BYTES];
	char seed[UNITS_BYTES];
	config_init(config);
	(void)snprintf(count, sizeof count, "%d", FIXED_PICTURES);
	(void)snprintf(seed, sizeof seed, "%d", FIXED_SEED);
	int code = config_set_key(config, KEY_DATASET_RECIPE, "photo", err);
	if (!code)
		code = config_set_key(config, KEY_DATASET_FORMAT, format, err);
	if (!code)
		code = config_set_key(config, KEY_DATASET_SAMPLES, count, err);
	return code ? code : config_set_key(config, KEY_DATASET_SEED, seed, err);
}

static int fixed_pictures_make(
	struct fixed_work *work, struct fixed_pictures *pictures, size_t format, struct error *err)
{
	const struct probe_control control = {.stop = work->stop};
	int code = fixed_pictures_configure(&pictures->config, fixed_formats[format], err);
	if (!code)
		code = probe_samples_make(
			&pictures->config, FIXED_PICTURES, &control, &pictures->samples, err);
	if (code)
		return code;
	sample_sizes_of(&pictures->config, &pictures->samples.set, &pictures->sizes);
	pictures->sizes.raw_bytes = pictures->sizes.note_bytes = 0; /* cores finish them */
	if (pictures->sizes.label_bytes > work->label_bytes)
		work->label_bytes = pictures->sizes.label_bytes;
	for (size_t i = 0; i < pictures->samples.set.count; i++) {
		const struct sample *const sample = &pictures->samples.set.samples[i];
		struct fixed_item *const item = fixed_work_add(
			work, FIXED_PICTURE, format * FIXED_PICTURES + i, pictures->sizes.bytes);
		const struct sample_shape *const shape = &pictures->sizes.shape;
		item->element_bytes = batch_type_bytes(shape->type);
		item->columns = shape->of[shape->dimensions - 1];
		item->rows = pictures->sizes.values / item->columns;
		(void)snprintf(item->name, sizeof item->name, "%s picture %zu of %u x %u pixels",
			fixed_formats[format], i, sample->width, sample->height);
	}
	return 0;
}

int fixed_work_add_pictures(struct fixed_work *work, struct error *err)
{
	int code = 0;
	work->has_pictures = true;
	for (size_t i = 0; i < FIXED_FORMATS && !code; i++)
		code = fixed_pictures_make(work, &work->pictures[i], i, err);
	/* PNG loses nothing, and the program's own loops give the same pixels by any vectors (tests/unit/test_image_resample.c):
	 * what is left is the library that encodes and decodes JPEG. */
	(void)snprintf(work->path[FIXED_PICTURE], FIXED_PATH_BYTES,
		"libjpeg-turbo " FIXED_TEXT(LIBJPEG_TURBO_VERSION) ", pictures %d",
		PICTURE_VERSION);
	return code;
}

/* --- products --------------------------------------------------------------------------------- */

static size_t fixed_larger(size_t most, uint32_t rows, uint32_t columns)
{
	const size_t elements = (size_t)rows * columns;
	return elements > most ? elements : most;
}

/* Signs and magnitudes that real weights have; all bits of the fraction are used. */
static void fixed_fill(struct fixed_work *work, size_t left, size_t right)
{
	struct rng rng;
	rng_init(&rng, FIXED_SEED, 0);
	for (size_t i = 0; i < left; i++) {
		work->left_double[i] = 2 * rng_uniform(&rng) - 1;
		work->left[i] = (float)work->left_double[i];
	}
	for (size_t i = 0; i < right; i++) {
		work->right_double[i] = 2 * rng_uniform(&rng) - 1;
		work->right[i] = (float)work->right_double[i];
	}
}

static void *fixed_take(size_t bytes)
{
	return aligned_alloc(FIXED_ALIGN, (bytes / FIXED_ALIGN + 2) * FIXED_ALIGN);
}

static void fixed_products_list(struct fixed_work *work)
{
	for (size_t i = 0; i < COUNT(fixed_shapes); i++) {
		const struct fixed_shape *const shape = &fixed_shapes[i];
		const size_t element = shape->is_double ? sizeof(double) : sizeof(float);
		struct fixed_item *const item = fixed_work_add(
			work, FIXED_PRODUCT, i, (size_t)shape->m * shape->n * element);
		item->element_bytes = element;
		item->rows = shape->m;
		item->columns = shape->n;
		item->flops = 2.0 * shape->m * shape->n * shape->k;
		(void)snprintf(item->name, sizeof item->name, "%s of %u x %u x %u",
			shape->is_double ? "dgemm" : "sgemm", shape->m, shape->n, shape->k);
	}
}

int fixed_work_add_products(struct fixed_work *work, struct error *err)
{
	char why[ERROR_TEXT_BYTES];
	size_t left = 0;
	size_t right = 0;
	if (!blas_find(why, sizeof why))
		return error_set(err, -ENOTSUP, "%s", why);
	for (size_t i = 0; i < COUNT(fixed_shapes); i++) {
		left = fixed_larger(left, fixed_shapes[i].m, fixed_shapes[i].k);
		right = fixed_larger(right, fixed_shapes[i].k, fixed_shapes[i].n);
	}
	work->left = fixed_take(left * sizeof(float));
	work->right = fixed_take(right * sizeof(float));
	work->left_double = fixed_take(left * sizeof(double));
	work->right_double = fixed_take(right * sizeof(double));
	if (!work->left || !work->right || !work->left_double || !work->right_double)
		return error_set(err, -ENOMEM, "out of memory for operands of matrix products");
	fixed_fill(work, left, right);
	fixed_products_list(work);
	(void)snprintf(work->path[FIXED_PRODUCT], FIXED_PATH_BYTES, "%s, kernels for %s",
		blas->get_config(), blas->get_corename());
	return 0;
}

/* --- golden checksums ------------------------------------------------------------------------- */

static const struct fixed_golden {
	const char *path;
	uint64_t hashes[FIXED_ITEMS_MAX];
} fixed_golden[] = {
#define GOLDEN(path, ...) {path, {__VA_ARGS__}},
#include "harness/checks/golden.def"
#undef GOLDEN
};

uint64_t fixed_work_golden(const struct fixed_work *work, size_t item)
{
	const struct fixed_item *const of = &work->items[item];
	for (size_t i = 0; i < COUNT(fixed_golden); i++)
		if (strcmp(fixed_golden[i].path, work->path[of->kind]) == 0)
			return fixed_golden[i].hashes[of->index];
	return 0;
}

/* --- where results differ --------------------------------------------------------------------- */

static uint64_t fixed_element(const struct fixed_item *item, const void *result, size_t index)
{
	uint64_t bits = 0;
	memcpy(&bits, (const char *)result + index * item->element_bytes,
		item->element_bytes); /* little-endian */
	return bits;
}

const char *fixed_work_where(const struct fixed_item *item, const void *wrong, const void *right,
	char out[FIXED_WHERE_BYTES])
{
	const size_t all = item->bytes / item->element_bytes;
	const int digits = (int)(2 * item->element_bytes);
	char total[UNITS_BYTES];
	char differ[UNITS_BYTES];
	size_t count = 0;
	size_t first = all;
	for (size_t i = 0; i < all; i++)
		if (fixed_element(item, wrong, i) != fixed_element(item, right, i)) {
			first = first == all ? i : first;
			count++;
		}
	if (count == 0) {
		(void)snprintf(out, FIXED_WHERE_BYTES, "no value differs");
		return out;
	}
	const uint64_t found = fixed_element(item, wrong, first);
	const uint64_t expected = fixed_element(item, right, first);
	const uint64_t flipped = found ^ expected;
	char bits[48];
	if (__builtin_popcountll(flipped) == 1)
		(void)snprintf(bits, sizeof bits, "bit %d", __builtin_ctzll(flipped));
	else
		(void)snprintf(bits, sizeof bits, "%d bits", __builtin_popcountll(flipped));
	(void)snprintf(out, FIXED_WHERE_BYTES,
		"row %zu, column %zu is 0x%0*" PRIx64 " instead of 0x%0*" PRIx64
		" (%s); %s of %s values %s",
		first / item->columns, first % item->columns, digits, found, digits, expected, bits,
		units_format_count((double)count, differ), units_format_count((double)all, total),
		count == 1 ? "differs" : "differ");
	return out;
}

/* --- a thread that does it -------------------------------------------------------------------- */

struct fixed_hand {
	const struct fixed_work *work;
	struct sample_maker makers[FIXED_FORMATS];
	bool opened[FIXED_FORMATS];
	uint8_t *result, *labels;
};

static int fixed_hand_open_makers(struct fixed_hand *hand, struct error *err)
{
	int code = 0;
	for (size_t i = 0; hand->work->has_pictures && i < FIXED_FORMATS && !code; i++) {
		const struct fixed_pictures *const pictures = &hand->work->pictures[i];
		const struct sample_options options = {.config = &pictures->config,
			.dataset = &pictures->samples.set,
			.stop = hand->work->stop};
		code = sample_maker_open(&hand->makers[i], &options, &pictures->sizes, err);
		hand->opened[i] = !code;
	}
	return code;
}

int fixed_hand_open(struct fixed_hand **out, const struct fixed_work *work, struct error *err)
{
	struct fixed_hand *const hand = calloc(1, sizeof *hand);
	*out = hand;
	if (!hand)
		return error_set(err, -ENOMEM, "out of memory");
	hand->work = work;
	hand->result = fixed_take(work->result_bytes);
	hand->labels = fixed_take(work->label_bytes);
	int code = hand->result && hand->labels ? fixed_hand_open_makers(hand, err)
						: error_set(err, -ENOMEM, "out of memory");
	if (!code && work->left) /* the count is the calling thread's */
		code = blas_set_threads(1, err);
	if (code) {
		fixed_hand_close(hand);
		*out = NULL;
	}
	return code;
}

void fixed_hand_close(struct fixed_hand *hand)
{
	if (!hand)
		return;
	for (size_t i = 0; i < FIXED_FORMATS; i++)
		if (hand->opened[i])
			sample_maker_close(&hand->makers[i]);
	free(hand->result);
	free(hand->labels);
	free(hand);
}

static int fixed_hand_decode(struct fixed_hand *hand, size_t index, struct error *err)
{
	const size_t format = index / FIXED_PICTURES;
	const size_t picture = index % FIXED_PICTURES;
	const struct fixed_pictures *const pictures = &hand->work->pictures[format];
	const struct sample *const sample = &pictures->samples.set.samples[picture];
	const struct sample_task task = {.bytes = pictures->samples.bytes[picture],
		.size = sample->bytes,
		.seed = FIXED_SEED + picture,
		.sample = sample,
		.labels = hand->labels,
		.sizes = &pictures->sizes,
		.out = hand->result};
	return hand->makers[format].make(hand->makers[format].worker, &task, err);
}

static void fixed_hand_multiply(struct fixed_hand *hand, size_t index)
{
	const struct fixed_shape *const shape = &fixed_shapes[index];
	const struct fixed_work *const work = hand->work;
	const blasint m = (blasint)shape->m;
	const blasint n = (blasint)shape->n;
	const blasint k = (blasint)shape->k;
	if (shape->is_double)
		blas->dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1,
			work->left_double, k, work->right_double, n, 0,
			(double *)(void *)hand->result, n);
	else
		blas->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, work->left, k,
			work->right, n, 0, (float *)(void *)hand->result, n);
}

int fixed_hand_do(struct fixed_hand *hand, size_t item, void **result, struct error *err)
{
	const struct fixed_item *const of = &hand->work->items[item];
	*result = hand->result;
	/* What is not written must not look right. */
	memset(hand->result, 0xff, of->bytes);
	if (of->kind == FIXED_PICTURE)
		return fixed_hand_decode(hand, of->index, err);
	fixed_hand_multiply(hand, of->index);
	return 0;
}
