/* Resizing: every set of kernels against the plain definition, and against each other to the bit.
 */
#include "tests/sample_reference.h"
#include "tests/unit/image_fixture.h"
#include "workloads/image/resample.h"

#include <math.h>

/* Two roundings of half a level, and weights of 14 bits. */
#define LEVELS_TOLERANCE 1.1

enum { PIXELS_MAX = 120 };

struct example {
	uint32_t width, height, pixel_bytes;
	uint8_t *pixels; /* (height, width, pixel_bytes), and slack */
	uint8_t *rgb;    /* the same, packed */
	struct resample_task task;
	struct resample_options options;
};

static void draw_box(struct rng *rng, struct example *example)
{
	struct resample_task *const task = &example->task;
	task->region = fixture_region(rng, example->width, example->height);
	task->x = task->region.x;
	task->y = task->region.y;
	task->width = task->region.width;
	task->height = task->region.height;
	if (rng_below(rng, 3) == 0) { /* as after decoding at a half */
		task->x += 0.5;
		task->width = fmax(0.5, task->width - 0.5);
		task->height = fmax(0.5, task->height - 0.5);
	}
	task->flip = rng_below(rng, 2);
}

static void draw_example(struct rng *rng, struct example *example)
{
	*example = (struct example){
		.width = 1 + (uint32_t)rng_below(rng, PIXELS_MAX),
		.height = 1 + (uint32_t)rng_below(rng, PIXELS_MAX),
		.pixel_bytes = 3 + (uint32_t)rng_below(rng, 2),
		.options = {.size = (1 + (uint32_t)rng_below(rng, 30)) *
				    (rng_below(rng, 2) ? 4 : 1),
			.antialias = rng_below(rng, 4) > 0,
			.is_float = rng_below(rng, 2),
			.is_planar = rng_below(rng, 2)},
	};
	const size_t count = (size_t)example->width * example->height;
	uint8_t *const pixels =
		fixture_pixels(rng, example->width, example->height, example->pixel_bytes);
	example->pixels = calloc(count * example->pixel_bytes + SCRATCH_SLACK_BYTES, 1);
	memcpy(example->pixels, pixels, count * example->pixel_bytes);
	free(pixels);
	example->rgb = malloc(count * RGB_CHANNELS);
	for (size_t i = 0; i < count; i++)
		memcpy(example->rgb + i * RGB_CHANNELS, example->pixels + i * example->pixel_bytes,
			RGB_CHANNELS);
	draw_box(rng, example);
}

static void release_example(struct example *example)
{
	free(example->pixels);
	free(example->rgb);
}

static size_t sample_bytes(const struct example *example)
{
	const size_t size = example->options.size;
	return size * size * RGB_CHANNELS * (example->options.is_float ? sizeof(float) : 1);
}

/* In strips of a random number of rows, as decoders give them. */
static void *resample(
	const struct example *example, const struct resample_kernels *kernels, struct rng *rng)
{
	struct error err;
	struct resampler *resampler;
	struct resample_options options = example->options;
	struct resample_task task = example->task;
	options.kernels = kernels;
	task.out = aligned_alloc(64, (sample_bytes(example) + 63) / 64 * 64);
	assert_non_null(task.out);
	assert_int_equal(resampler_open(&resampler, &options, 1, 1, &err), 0);
	assert_int_equal(resampler_begin(resampler, &task, &err), 0);
	const size_t stride = (size_t)example->width * example->pixel_bytes;
	for (uint32_t y = 0; y < example->height;) {
		const uint32_t rows = 1 + (uint32_t)rng_below(rng, example->height - y);
		const struct strip strip = {.pixels = example->pixels + y * stride,
			.stride = stride,
			.width = example->width,
			.y = y,
			.rows = rows,
			.pixel_bytes = example->pixel_bytes};
		resampler_push(resampler, &strip);
		y += rows;
	}
	assert_true(resampler_is_done(resampler));
	resampler_close(resampler);
	return task.out;
}

static double value_at(
	const struct example *example, const void *sample, size_t y, size_t x, size_t c)
{
	const size_t size = example->options.size;
	const size_t at = example->options.is_planar ? (c * size + y) * size + x
						     : (y * size + x) * RGB_CHANNELS + c;
	if (example->options.is_float)
		return ((const float *)sample)[at];
	return ((const uint8_t *)sample)[at];
}

static void compare_with_reference(const struct example *example, const void *sample)
{
	const uint32_t size = example->options.size;
	double *const levels = malloc((size_t)size * size * RGB_CHANNELS * sizeof *levels);
	const struct reference_picture picture = {example->rgb, example->width, example->height};
	reference_resample(&picture, &example->task, size, example->options.antialias, levels);
	for (size_t y = 0; y < size; y++)
		for (size_t x = 0; x < size; x++)
			for (size_t c = 0; c < RGB_CHANNELS; c++) {
				const double level = levels[(y * size + x) * RGB_CHANNELS + c];
				const double got = value_at(example, sample, y, x, c);
				const double unit = reference_normalise(1, (int)c) -
						    reference_normalise(0, (int)c);
				const double off =
					example->options.is_float
						? (got - reference_normalise(level, (int)c)) / unit
						: got - level;
				if (fabs(off) > LEVELS_TOLERANCE)
					fail_msg("%zu,%zu channel %zu: off by %.2f levels", x, y, c,
						off);
			}
	free(levels);
}

static void kernels_agree(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 0);
	for (int i = 0; i < 300; i++) {
		struct example example;
		draw_example(&rng, &example);
		void *const plain = resample(&example, &resample_plain, &rng);
		compare_with_reference(&example, plain);
		for (size_t k = 0; resample_kernels_all[k]; k++) {
			if (!resample_kernels_all[k]->is_supported())
				continue;
			void *const sample = resample(&example, resample_kernels_all[k], &rng);
			if (memcmp(sample, plain, sample_bytes(&example)) != 0)
				fail_msg("example %d: %s differs from plain", i,
					resample_kernels_all[k]->name);
			free(sample);
		}
		free(plain);
		release_example(&example);
	}
}

/* A flat picture stays as it is, whatever the scale: the weights sum to one exactly. */
static void flat_stays_flat(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 1, 0);
	for (int i = 0; i < 60; i++) {
		struct example example;
		draw_example(&rng, &example);
		example.options.is_float = false;
		const uint8_t level = (uint8_t)(i % 2 ? 255 : i);
		memset(example.pixels, level,
			(size_t)example.width * example.height * example.pixel_bytes);
		uint8_t *const sample = resample(&example, NULL, &rng);
		for (size_t at = 0; at < sample_bytes(&example); at++)
			assert_int_equal(sample[at], level);
		free(sample);
		release_example(&example);
	}
}

/* A crop of the sample's size is copied, not resized. */
static void same_size_is_a_copy(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 2, 0);
	for (int i = 0; i < 40; i++) {
		struct example example;
		draw_example(&rng, &example);
		const uint32_t edge =
			example.width < example.height ? example.width : example.height;
		struct resample_task *const task = &example.task;
		task->region = (struct region){.x = example.width - edge,
			.y = example.height - edge,
			.width = edge,
			.height = edge};
		task->x = task->region.x;
		task->y = task->region.y;
		task->width = task->height = edge;
		example.options.size = edge;
		example.options.is_float = false;
		void *const sample = resample(&example, NULL, &rng);
		for (size_t y = 0; y < edge; y++)
			for (size_t x = 0; x < edge; x++)
				for (size_t c = 0; c < RGB_CHANNELS; c++) {
					const size_t from_x = task->flip ? edge - 1 - x : x;
					const size_t at = (task->region.y + y) * example.width +
							  task->region.x + from_x;
					assert_int_equal((int)value_at(&example, sample, y, x, c),
						example.rgb[at * RGB_CHANNELS + c]);
				}
		free(sample);
		release_example(&example);
	}
}

/* Hundreds of taps: a wide picture to a few pixels. */
static void wide_shrinks(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 3, 0);
	for (uint32_t size = 1; size < 6; size++) {
		struct example example;
		draw_example(&rng, &example);
		release_example(&example);
		example.width = 3001;
		example.height = 7;
		example.pixel_bytes = 3;
		example.pixels = calloc((size_t)3001 * 7 * 3 + SCRATCH_SLACK_BYTES, 1);
		example.rgb = malloc((size_t)3001 * 7 * 3);
		for (size_t i = 0; i < (size_t)3001 * 7 * 3; i++)
			example.rgb[i] = example.pixels[i] = (uint8_t)(i / 97);
		example.task.region = (struct region){.width = 3001, .height = 7};
		example.task.x = example.task.y = 0;
		example.task.width = 3001;
		example.task.height = 7;
		example.options.size = size;
		void *const plain = resample(&example, &resample_plain, &rng);
		void *const best = resample(&example, NULL, &rng);
		compare_with_reference(&example, plain);
		assert_memory_equal(plain, best, sample_bytes(&example));
		free(plain);
		free(best);
		release_example(&example);
	}
}

/* Large samples are written past the caches where they are aligned: the same values. */
static void large_samples_agree(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 4, 0);
	for (uint32_t i = 0; i < 12; i++) {
		struct example example;
		draw_example(&rng, &example);
		example.options.size = 160 + 8 * (i % 3) + i / 6;
		example.options.is_float = true;
		void *const plain = resample(&example, &resample_plain, &rng);
		void *const best = resample(&example, NULL, &rng);
		assert_memory_equal(plain, best, sample_bytes(&example));
		free(plain);
		free(best);
		release_example(&example);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_agree),
		cmocka_unit_test(flat_stays_flat),
		cmocka_unit_test(same_size_is_a_copy),
		cmocka_unit_test(wide_shrinks),
		cmocka_unit_test(large_samples_agree),
	};
	return cmocka_run_group_tests_name("image_resample", tests, NULL, NULL);
}
