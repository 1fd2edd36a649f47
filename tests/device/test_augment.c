/* Augmentation on the device against the host's path, to the bit: its weights are the same doubles, rounded after each
 * operation, its sums the same integers, and its normalisation the same product and sum.  So no tolerance is needed
 * against the resampler; against the plain definition in double, without rounding in between, it is what rounding to bytes
 * twice and to weights of 14 bits can make: 0.5 each, and 4 weights or more off by a unit. */
#include "tests/device/kernel_fixture.h"
#include "tests/sample_reference.h"
#include "workloads/backend/batch.h"
#include "workloads/image/transform.h"

#include <stdio.h>

enum { PICTURES_MAX = 16, SLACK = SCRATCH_SLACK_BYTES };

struct augment_case {
	struct augment_task task;
	struct batch_picture pictures[PICTURES_MAX];
	struct device_buffer *bytes, *table, *out;
};

static int run_augment(void *argument)
{
	const struct augment_case *const c = argument;
	return kernel_augment(NULL, &c->task);
}

static size_t sample_bytes(const struct augment_task *task)
{
	return (size_t)task->size * task->size * RGB_CHANNELS *
	       (task->is_float ? sizeof(float) : 1);
}

/* Pixels of smooth colours with noise on them: resizing has something to average and to clip. */
static uint8_t pixel_value(struct rng *rng, uint32_t x, uint32_t y, uint32_t c)
{
	const uint32_t noise = (uint32_t)rng_below(rng, 64);
	const uint32_t level = (x * (c + 1) + y * 2) % 256 + noise;
	return (uint8_t)(level > 255 ? 255 : level);
}

static size_t picture_bytes(const struct batch_picture *picture)
{
	return (size_t)picture->width * picture->height * RGB_CHANNELS;
}

/* Pictures lie one after the other, with odd gaps; bad ones have no bytes. */
static void begin_augment(struct fixture *fixture, struct augment_case *c,
	const struct batch_picture *pictures, uint32_t count)
{
	fixture_begin(fixture, 71);
	size_t bytes = 1;
	for (uint32_t i = 0; i < count; i++) {
		c->pictures[i] = pictures[i];
		c->pictures[i].offset = bytes;
		bytes += pictures[i].bad ? 0 : picture_bytes(&pictures[i]) + 5;
	}
	c->bytes = add_buffer(fixture, bytes + SLACK);
	for (uint32_t i = 0; i < count; i++)
		for (size_t at = 0; !pictures[i].bad && at < picture_bytes(&pictures[i]); at++)
			c->bytes->initial[c->pictures[i].offset + at] = pixel_value(&fixture->rng,
				(uint32_t)(at / RGB_CHANNELS % pictures[i].width),
				(uint32_t)(at / RGB_CHANNELS / pictures[i].width),
				(uint32_t)(at % RGB_CHANNELS));
	c->table = add_buffer(fixture, count * sizeof *c->pictures);
	memcpy(c->table->initial, c->pictures, count * sizeof *c->pictures);
	c->task.count = count;
	c->task.bytes = c->bytes->device;
	c->task.pictures = (const struct batch_picture *)c->table->device;
	c->out = add_buffer(fixture, count * sample_bytes(&c->task));
	c->task.out = c->out->device;
}

/* --- what the host makes of it ---------------------------------------------------------------------------- */

/* The region is the pixels that the box touches. */
static struct resample_task host_task(const struct batch_picture *picture, void *out)
{
	struct resample_task task = {.x = (double)picture->x,
		.y = (double)picture->y,
		.width = (double)picture->box_width,
		.height = (double)picture->box_height,
		.flip = picture->flip != 0,
		.out = out};
	task.region.x = (uint32_t)floor(task.x);
	task.region.y = (uint32_t)floor(task.y);
	task.region.width = (uint32_t)ceil(task.x + task.width) - task.region.x;
	task.region.height = (uint32_t)ceil(task.y + task.height) - task.region.y;
	return task;
}

static void resample_on_host(
	const struct augment_case *c, const struct batch_picture *picture, void *out)
{
	struct error err;
	struct resampler *resampler;
	const struct resample_options options = {.size = c->task.size,
		.antialias = c->task.antialias,
		.is_float = c->task.is_float,
		.is_planar = !c->task.channels_last};
	const struct resample_task task = host_task(picture, out);
	const struct strip strip = {.pixels = c->bytes->initial + picture->offset,
		.stride = (size_t)picture->width * RGB_CHANNELS,
		.width = picture->width,
		.rows = picture->height,
		.pixel_bytes = RGB_CHANNELS};
	assert_int_equal(
		resampler_open(&resampler, &options, picture->width, picture->height, &err), 0);
	assert_int_equal(resampler_begin(resampler, &task, &err), 0);
	resampler_push(resampler, &strip);
	assert_true(resampler_is_done(resampler));
	resampler_close(resampler);
}

/* Level of a byte sample, as the reference orders them: (size, size, 3). */
static uint8_t level_at(
	const struct augment_task *task, const uint8_t *sample, size_t place, size_t channel)
{
	if (task->channels_last)
		return sample[place * RGB_CHANNELS + channel];
	return sample[channel * task->size * task->size + place];
}

static size_t widest(const struct batch_picture *picture, uint32_t size)
{
	const double most = fmax((double)picture->box_width, (double)picture->box_height) / size;
	return (size_t)ceil(2 * fmax(most, 1)) + 1;
}

static void compare_with_definition(
	const struct augment_case *c, const struct batch_picture *picture, const uint8_t *sample)
{
	const size_t places = (size_t)c->task.size * c->task.size;
	double *const wanted = malloc(places * RGB_CHANNELS * sizeof *wanted);
	assert_non_null(wanted);
	const struct reference_picture whole = {
		c->bytes->initial + picture->offset, picture->width, picture->height};
	const struct resample_task task = host_task(picture, NULL);
	reference_resample(&whole, &task, c->task.size, c->task.antialias, wanted);
	/* Each weight is off by a unit of 2^-14 at most, of levels up to 255, across and down. */
	const double allowed = 1 + 2 * 255.0 / FILTER_ONE * (double)widest(picture, c->task.size);
	for (size_t i = 0; i < places * RGB_CHANNELS; i++) {
		const uint8_t level =
			level_at(&c->task, sample, i / RGB_CHANNELS, i % RGB_CHANNELS);
		assert_true(fabs(level - wanted[i]) <= allowed);
	}
	free(wanted);
}

static void check_sample(const struct augment_case *c, uint32_t index)
{
	const struct batch_picture *const picture = &c->pictures[index];
	const size_t bytes = sample_bytes(&c->task);
	const uint8_t *const got = c->out->result + index * bytes;
	uint8_t *const wanted = aligned_alloc(64, (bytes + 63) / 64 * 64);
	assert_non_null(wanted);
	memset(wanted, 0, bytes);
	if (!picture->bad)
		resample_on_host(c, picture, wanted);
	assert_memory_equal(got, wanted, bytes);
	if (!picture->bad && !c->task.is_float)
		compare_with_definition(c, picture, got);
	free(wanted);
}

static void check_batch(
	const struct augment_task *options, const struct batch_picture *pictures, uint32_t count)
{
	struct fixture fixture;
	struct augment_case c = {.task = *options};
	begin_augment(&fixture, &c, pictures, count);
	run_twice(&fixture, run_augment, &c);
	for (uint32_t i = 0; i < count; i++)
		check_sample(&c, i);
	assert_unchanged(c.bytes);
	assert_unchanged(c.table);
	fixture_end(&fixture);
}

/* --- tests ----------------------------------------------------------------------------------------------- */

/* Sizes around those of tiles; shrinking, by more than a chunk holds too, and enlarging; a single pixel; boxes with
 * fractions and at the borders; flips; a bad picture among them. */
static const struct batch_picture mixed[] = {
	{.width = 60, .height = 45, .box_width = 60, .box_height = 45},
	{.width = 60, .height = 45, .x = 3, .y = 7, .box_width = 40, .box_height = 30, .flip = 1},
	{.width = 123,
		.height = 77,
		.x = 3.5f,
		.y = 7.25f,
		.box_width = 100.125f,
		.box_height = 60.5f},
	{.bad = 1},
	{.width = 123,
		.height = 77,
		.x = 100.75f,
		.y = 70.5f,
		.box_width = 22.25f,
		.box_height = 6.5f,
		.flip = 1},
	{.width = 1, .height = 1, .box_width = 1, .box_height = 1},
	{.width = 5, .height = 300, .box_width = 5, .box_height = 300, .flip = 1},
	{.width = 300, .height = 5, .x = 1, .y = 1, .box_width = 0.5f, .box_height = 0.125f},
	{.width = 400, .height = 620, .x = 10, .y = 20, .box_width = 380, .box_height = 590},
	{.width = 33, .height = 33, .x = 0.5f, .y = 0.5f, .box_width = 32, .box_height = 32},
};

enum { MIXED = sizeof mixed / sizeof *mixed };

static void test_mixed_pictures(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {1, 17, 32, 33, 48};
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (unsigned flags = 0; flags < 8; flags++)
			check_batch(&(struct augment_task){.size = sizes[s],
					    .antialias = flags & 1,
					    .is_float = flags & 2,
					    .channels_last = flags & 4},
				mixed, MIXED);
}

/* The usual size, whose float samples the host writes past its caches. */
static void test_usual_size(void **state)
{
	(void)state;
	const struct batch_picture pictures[] = {
		{.width = 500,
			.height = 375,
			.x = 31,
			.y = 17,
			.box_width = 400,
			.box_height = 310,
			.flip = 1},
		{.width = 224, .height = 224, .box_width = 224, .box_height = 224},
		{.width = 224, .height = 224, .box_width = 224, .box_height = 224, .flip = 1},
	};
	for (unsigned flags = 0; flags < 4; flags++)
		check_batch(&(struct augment_task){.size = 224,
				    .antialias = true,
				    .is_float = flags & 1,
				    .channels_last = flags & 2},
			pictures, 3);
}

/* Random boxes, a thirty-second of a pixel fine: where pixel centres meet the triangle's ends. */
static void test_random_boxes(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 72, 0);
	for (int round = 0; round < 12; round++) {
		struct batch_picture pictures[PICTURES_MAX];
		for (int i = 0; i < PICTURES_MAX; i++) {
			struct batch_picture *const p = &pictures[i];
			*p = (struct batch_picture){.flip = (uint32_t)rng_below(&rng, 2)};
			p->width = 1 + (uint32_t)rng_below(&rng, 150);
			p->height = 1 + (uint32_t)rng_below(&rng, 150);
			p->x = (float)rng_below(&rng, p->width * 32ull) / 32;
			p->y = (float)rng_below(&rng, p->height * 32ull) / 32;
			const float right = (float)p->width - p->x, below = (float)p->height - p->y;
			p->box_width = (float)(1 + rng_below(&rng, (uint64_t)(right * 32))) / 32;
			p->box_height = (float)(1 + rng_below(&rng, (uint64_t)(below * 32))) / 32;
		}
		check_batch(&(struct augment_task){.size = 20 + (uint32_t)round * 3,
				    .antialias = round % 2 == 0,
				    .is_float = round % 3 == 0},
			pictures, PICTURES_MAX);
	}
}

/* From a file with a configuration, as a worker does it, and from its pixels, as a device does. */
static void check_against_transform(uint64_t seed)
{
	enum { WIDTH = 211, HEIGHT = 160 };
	struct fixture fixture;
	struct error err;
	struct config config;
	struct transform *transform;
	struct augment_options options;
	struct augment_choice choice;
	config_init(&config);
	assert_int_equal(config_set(&config, "augment.size=64", &err), 0);
	augment_read_options(&options, &config);
	augment_choose(&options, WIDTH, HEIGHT, seed, &choice);
	const struct batch_picture picture = {.width = WIDTH,
		.height = HEIGHT,
		.x = (float)choice.crop.x,
		.y = (float)choice.crop.y,
		.box_width = (float)choice.crop.width,
		.box_height = (float)choice.crop.height,
		.flip = choice.flip};
	struct augment_case c = {
		.task = {.size = 64,
			.antialias = config_on(&config, KEY_AUGMENT_ANTIALIAS),
			.is_float =
				config_integer(&config, KEY_AUGMENT_TYPE) == AUGMENT_TYPE_FLOAT32,
			.channels_last =
				config_integer(&config, KEY_AUGMENT_LAYOUT) == AUGMENT_LAYOUT_HWC}};
	begin_augment(&fixture, &c, &picture, 1);
	run_twice(&fixture, run_augment, &c);

	static uint8_t file[64 + WIDTH * HEIGHT * RGB_CHANNELS];
	const int header = snprintf((char *)file, 64, "P6 %d %d 255\n", WIDTH, HEIGHT);
	memcpy(file + header, c.bytes->initial + c.pictures[0].offset, picture_bytes(&picture));
	void *const sample = aligned_alloc(64, transform_sample_bytes(&config));
	assert_non_null(sample);
	assert_int_equal(transform_open(&transform, &config, NULL, NULL, &err), 0);
	assert_int_equal(transform_sample(transform, file, (size_t)header + picture_bytes(&picture),
				 seed, sample, NULL, &err),
		0);
	assert_memory_equal(c.out->result, sample, transform_sample_bytes(&config));
	transform_close(transform);
	config_release(&config);
	free(sample);
	fixture_end(&fixture);
}

static void test_agrees_with_a_worker(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		check_against_transform(seed);
}

/* A box that is not inside its picture is not followed out of it: zeros. */
static void test_impossible_boxes_give_zeros(void **state)
{
	(void)state;
	const struct batch_picture boxes[] = {
		{.width = 10, .height = 10, .box_width = 0, .box_height = 5},
		{.width = 10, .height = 10, .x = NAN, .box_width = 5, .box_height = 5},
		{.width = 10, .height = 10, .x = 10, .box_width = 1, .box_height = 5},
		{.width = 10, .height = 10, .y = -1, .box_width = 5, .box_height = 5},
		{.width = 10, .height = 10, .box_width = INFINITY, .box_height = 5},
		{.width = 10, .height = 10, .y = 5, .box_width = 5, .box_height = 5.5f},
	};
	enum { BOXES = sizeof boxes / sizeof *boxes };
	struct fixture fixture;
	struct augment_case c = {.task = {.size = 40, .antialias = true, .is_float = true}};
	begin_augment(&fixture, &c, boxes, BOXES);
	run_twice(&fixture, run_augment, &c);
	for (size_t i = 0; i < BOXES * sample_bytes(&c.task); i++)
		assert_int_equal(c.out->result[i], 0);
	fixture_end(&fixture);
}

static void test_empty_batches_are_refused(void **state)
{
	(void)state;
	float data[3] = {0};
	const struct batch_picture picture = {.bad = 1};
	struct augment_task task = {
		.bytes = (const uint8_t *)data, .pictures = &picture, .size = 1, .out = data};
	assert_int_equal(kernel_augment(NULL, &task), cudaErrorInvalidValue);
	task.count = 1;
	task.size = 0;
	assert_int_equal(kernel_augment(NULL, &task), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed_pictures),
		cmocka_unit_test(test_usual_size),
		cmocka_unit_test(test_random_boxes),
		cmocka_unit_test(test_agrees_with_a_worker),
		cmocka_unit_test(test_impossible_boxes_give_zeros),
		cmocka_unit_test(test_empty_batches_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
