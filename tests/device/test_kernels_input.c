/* Batches into the first layer's rows: which element goes where, and bytes as the host's float path has them, to the bit
 * before they are rounded to the layer's type. */
#include "tests/device/kernel_fixture.h"

enum { LEVELS = 255 };

struct input_case {
	struct input_task task;
	struct device_buffer *batch;
	struct matrix out;
};

static int run_input(void *argument)
{
	const struct input_case *const c = argument;
	return kernel_input(NULL, &c->task);
}

/* As workloads/image/resample.c: constants rounded to float, a product and a sum, each rounded. */
static float normalised(uint8_t level, size_t channel)
{
	static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
	const volatile float product = (float)level * (float)(1 / (LEVELS * deviation[channel]));
	return product + (float)(-mean[channel] / deviation[channel]);
}

static double wanted_value(const struct input_case *c, size_t sample, size_t index)
{
	const struct input_task *const task = &c->task;
	const size_t at = sample * task->elements + index;
	if (!task->is_bytes)
		return get_element(ELEMENT_F32, c->batch->initial + at * sizeof(float));
	const size_t channel = task->channels_last ? index % 3 : index / (task->elements / 3);
	return (double)normalised(c->batch->initial[at], channel);
}

static void fill_batch(struct fixture *fixture, const struct input_case *c)
{
	const size_t count = (size_t)c->task.samples * c->task.elements;
	for (size_t i = 0; i < count; i++)
		if (c->task.is_bytes)
			c->batch->initial[i] = (uint8_t)rng_below(&fixture->rng, LEVELS + 1);
		else
			put_element(ELEMENT_F32, c->batch->initial + i * sizeof(float),
				uniform_in(fixture, 3));
}

static void check_input(const struct input_task *task)
{
	struct fixture fixture;
	fixture_begin(&fixture, 21);
	struct input_case c = {.task = *task};
	c.batch = add_buffer(&fixture,
		(size_t)task->samples * task->elements * (task->is_bytes ? 1 : sizeof(float)));
	/* A row of all, or rows and the zeros between them. */
	const uint32_t columns = task->columns > 0 ? task->columns : task->wanted;
	const uint32_t ld = task->ld > 0 ? task->ld : task->wanted;
	const uint32_t rows = task->samples * (task->wanted / columns);
	c.out = add_matrix(&fixture, task->type, &(struct matrix_shape){1, rows, ld, 0, 0, 0});
	fill_batch(&fixture, &c);
	c.task.batch = c.batch->device;
	c.task.out = c.out.rows.data;
	run_twice(&fixture, run_input, &c);
	for (size_t i = 0; i < matrix_count(&c.out); i++) {
		const size_t column = i % ld, element = i / ld * columns + column;
		const double value = column < columns
					     ? wanted_value(&c, element / task->wanted,
						       element % task->wanted % task->elements)
					     : 0;
		assert_true(result_element(&c.out, i) == rounded_to(task->type, value));
	}
	assert_unchanged(c.batch);
	fixture_end(&fixture);
}

/* Elements and wanted: the same, cut, repeated, repeated with a rest, and counts that no access divides. */
static void test_inputs(void **state)
{
	(void)state;
	static const uint32_t sizes[][2] = {{3, 3}, {48, 48}, {192, 100}, {192, 1000}, {75, 75},
		{75, 200}, {192, 193}, {3 * 57 * 57, 3 * 57 * 57}};
	for (size_t t = 0; t < TYPES; t++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
			for (int bytes = 0; bytes < 2; bytes++)
				for (int last = 0; last < 2; last++)
					check_input(&(struct input_task){.is_bytes = bytes,
						.channels_last = last,
						.samples = 3,
						.elements = sizes[s][0],
						.wanted = sizes[s][1],
						.type = kernel_types[t]});
}

/* Rows of 147 at multiples of 152, of a sample that is cut, repeated (with a rest), or less than an access; at odd distances;
 * and without gaps. */
static void test_rows_with_gaps(void **state)
{
	(void)state;
	static const struct {
		uint32_t elements, columns, rows, ld;
	} shapes[] = {{3 * 16 * 16, 147, 5, 152}, {3 * 16 * 16, 147, 12, 152}, {3, 5, 3, 8},
		{147, 147, 1, 152}, {96, 27, 4, 33}, {96, 32, 4, 32}};
	for (size_t t = 0; t < TYPES; t++)
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
			for (int bytes = 0; bytes < 2; bytes++)
				check_input(&(struct input_task){.is_bytes = bytes,
					.samples = 3,
					.elements = shapes[s].elements,
					.wanted = shapes[s].rows * shapes[s].columns,
					.columns = shapes[s].columns,
					.ld = shapes[s].ld,
					.type = kernel_types[t]});
}

static void test_empty_batches_are_refused(void **state)
{
	(void)state;
	float data[3] = {0};
	struct input_task task = {
		.batch = data, .out = data, .samples = 0, .elements = 3, .wanted = 3};
	assert_int_equal(kernel_input(NULL, &task), cudaErrorInvalidValue);
	task.samples = 1;
	task.elements = 0;
	assert_int_equal(kernel_input(NULL, &task), cudaErrorInvalidValue);
	task.elements = 3;
	task.columns = 2; /* no whole rows */
	task.ld = 8;
	assert_int_equal(kernel_input(NULL, &task), cudaErrorInvalidValue);
	task.columns = 3;
	task.ld = 2;
	assert_int_equal(kernel_input(NULL, &task), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inputs),
		cmocka_unit_test(test_rows_with_gaps),
		cmocka_unit_test(test_empty_batches_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
