/* Copies between types and strides, constants, the orders of heads, and the probe's kernels: nothing of it may change a
 * number more than its new type does. */
#include "tests/device/kernel_fixture.h"

/* --- copies ------------------------------------------------------------------------------------------ */

struct copy_case {
	struct matrix from, to;
};

static int run_copy(void *argument)
{
	const struct copy_case *const c = argument;
	return kernel_copy_rows(NULL, &c->from.rows, &c->to.rows);
}

static void check_copy(enum element from, enum element to, const struct matrix_shape *shape,
	const struct matrix_shape *to_shape)
{
	struct fixture fixture;
	fixture_begin(&fixture, 11);
	struct copy_case c;
	c.from = add_matrix(&fixture, from, shape);
	c.to = add_matrix(&fixture, to, to_shape);
	fill_random(&fixture, &c.from, 100);
	run_twice(&fixture, run_copy, &c);
	for (size_t i = 0; i < matrix_count(&c.from); i++)
		assert_true(
			result_element(&c.to, i) == rounded_to(to, initial_element(&c.from, i)));
	assert_gaps_untouched(&c.to);
	assert_unchanged(c.from.buffer);
	fixture_end(&fixture);
}

static void check_copies(enum element from, enum element to, const struct matrix_shape *shape)
{
	struct matrix_shape other = *shape;
	check_copy(from, to, shape, &other);
	other.ld_gap += 8;
	other.sample_gap += 8;
	check_copy(from, to, shape, &other);
	other.offset = 1;
	check_copy(from, to, shape, &other);
}

static void test_copies(void **state)
{
	(void)state;
	for (size_t to = 0; to < TYPES; to++)
		FOR_EACH_SHAPE(type, shape)
	check_copies(type, kernel_types[to], shape);
}

/* Samples and rows may be divided otherwise, as long as their product is the same. */
static void test_copy_to_other_samples(void **state)
{
	(void)state;
	const struct matrix_shape from = {4, 6, 24, 0, 40, 0}, to = {1, 24, 24, 8, 0, 0};
	check_copy(ELEMENT_F32, ELEMENT_BF16, &from, &to);
	check_copy(ELEMENT_F16, ELEMENT_F16, &to, &from);
}

/* Beyond the range, least numbers, infinities and NaN; ties go to even. */
static void test_special_numbers(void **state)
{
	(void)state;
	static const double numbers[] = {0.0, -0.0, 1.00390625, 1.01171875, 65520, 65519, 0x1p-24,
		0x1p-25, 0x1.8p-25, -0x1.8p-24, INFINITY, -INFINITY, 0x1.fffffep127, 0x1p-133,
		0x1p-134, 0x1.004p0};
	const struct matrix_shape shape = {1, 1, sizeof numbers / sizeof *numbers, 0, 0, 0};
	for (size_t to = 0; to < TYPES; to++) {
		struct fixture fixture;
		fixture_begin(&fixture, 12);
		struct copy_case c;
		c.from = add_matrix(&fixture, ELEMENT_F32, &shape);
		c.to = add_matrix(&fixture, kernel_types[to], &shape);
		for (size_t i = 0; i < shape.columns; i++)
			set_initial(&c.from, i, numbers[i]);
		run_twice(&fixture, run_copy, &c);
		for (size_t i = 0; i < shape.columns; i++) {
			const double wanted = rounded_to(kernel_types[to], numbers[i]);
			assert_true(result_element(&c.to, i) == wanted);
			assert_int_equal(!!signbit(result_element(&c.to, i)), !!signbit(wanted));
		}
		fixture_end(&fixture);
	}
}

/* --- constants ---------------------------------------------------------------------------------------- */

struct fill_case {
	struct matrix x;
	float value;
};

static int run_fill(void *argument)
{
	const struct fill_case *const c = argument;
	const size_t count = matrix_count(&c->x);
	return kernel_fill(NULL, c->x.rows.data, c->x.rows.type, count, c->value);
}

static const struct matrix_shape arrays[] = {{1, 1, 1, 0, 0, 0}, {1, 1, 7, 0, 0, 1},
	{1, 1, 8, 0, 0, 0}, {1, 1, 100003, 0, 0, 0}, {1, 1, 5000, 0, 0, 3}};

static void test_fill(void **state)
{
	(void)state;
	for (size_t t = 0; t < TYPES; t++)
		for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) {
			struct fixture fixture;
			fixture_begin(&fixture, 13);
			struct fill_case c = {.value = 0.3f};
			c.x = add_matrix(&fixture, kernel_types[t], &arrays[a]);
			run_twice(&fixture, run_fill, &c);
			for (size_t i = 0; i < matrix_count(&c.x); i++)
				assert_true(result_element(&c.x, i) ==
					    rounded_to(kernel_types[t], (double)0.3f));
			assert_gaps_untouched(&c.x);
			fixture_end(&fixture);
		}
}

/* --- heads ------------------------------------------------------------------------------------------------ */

struct heads_case {
	struct heads_task task;
	unsigned parts;
	struct matrix packed, apart;
};

static int run_split(void *argument)
{
	const struct heads_case *const c = argument;
	return kernel_split_heads(
		NULL, &c->task, c->packed.rows.data, c->apart.rows.data, c->parts);
}

static int run_join(void *argument)
{
	const struct heads_case *const c = argument;
	return kernel_join_heads(NULL, &c->task, c->apart.rows.data, c->packed.rows.data, c->parts);
}

/* The element of the parts that lies at a place of the packed rows. */
static size_t apart_number(const struct heads_case *c, size_t sample, size_t row, size_t column)
{
	const struct heads_task *const task = &c->task;
	const size_t inside = column % task->width, head = column / task->width % task->heads;
	const size_t part = column / task->width / task->heads;
	return (((part * task->samples + sample) * task->heads + head) * task->rows + row) *
		       task->width +
	       inside;
}

static void check_heads(enum element type, uint32_t samples, uint32_t rows, uint32_t heads,
	uint32_t width, unsigned parts, uint32_t gap, bool splits)
{
	struct fixture fixture;
	fixture_begin(&fixture, 15);
	struct heads_case c = {.parts = parts};
	c.packed = add_matrix(&fixture, type,
		&(struct matrix_shape){samples, rows, parts * heads * width, gap, 2 * gap, 0});
	c.apart = add_matrix(&fixture, type,
		&(struct matrix_shape){1, parts * samples * heads * rows, width, 0, 0, 0});
	c.task = (struct heads_task){
		samples, rows, heads, width, type, c.packed.rows.ld, c.packed.rows.sample_stride};
	fill_random(&fixture, splits ? &c.packed : &c.apart, 1);
	run_twice(&fixture, splits ? run_split : run_join, &c);
	for (size_t i = 0; i < matrix_count(&c.packed); i++) {
		const size_t row = i / c.packed.rows.columns, column = i % c.packed.rows.columns;
		const size_t there = apart_number(&c, row / rows, row % rows, column);
		assert_true(result_element(&c.packed, i) == result_element(&c.apart, there));
	}
	assert_gaps_untouched(&c.packed);
	assert_gaps_untouched(&c.apart);
	assert_unchanged(splits ? c.packed.buffer : c.apart.buffer);
	fixture_end(&fixture);
}

static void test_heads(void **state)
{
	(void)state;
	for (size_t t = 0; t < TYPES; t++)
		for (int splits = 0; splits < 2; splits++) {
			check_heads(kernel_types[t], 2, 5, 3, 16, 3, 0, splits);
			check_heads(kernel_types[t], 2, 5, 3, 16, 1, 8, splits);
			check_heads(kernel_types[t], 3, 4, 2, 5, 3, 3, splits);
			check_heads(kernel_types[t], 1, 1, 1, 1, 1, 0, splits);
			check_heads(kernel_types[t], 1, 197, 12, 64, 3, 0, splits);
		}
}

/* --- probe -------------------------------------------------------------------------------------------------- */

struct bytes_case {
	struct device_buffer *from, *to;
	size_t offset, bytes;
};

static int run_memory_copy(void *argument)
{
	const struct bytes_case *const c = argument;
	return kernel_memory_copy(NULL, c->from->device, c->to->device + c->offset, c->bytes);
}

static void test_memory_copy(void **state)
{
	(void)state;
	static const size_t sizes[] = {1, 15, 16, 17, 4096, 65536 + 5, 1 << 20};
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (size_t offset = 0; offset < 2; offset++) {
			struct fixture fixture;
			fixture_begin(&fixture, 16);
			struct bytes_case c = {.offset = offset, .bytes = sizes[s]};
			c.from = add_buffer(&fixture, sizes[s]);
			c.to = add_buffer(&fixture, sizes[s] + offset);
			for (size_t i = 0; i < sizes[s]; i++)
				c.from->initial[i] = (uint8_t)rng_below(&fixture.rng, 255);
			run_twice(&fixture, run_memory_copy, &c);
			assert_memory_equal(c.to->result + offset, c.from->initial, sizes[s]);
			assert_memory_equal(c.to->result, c.to->initial, offset);
			fixture_end(&fixture);
		}
}

static int run_nothing(void *argument)
{
	(void)argument;
	return kernel_nothing(NULL);
}

static void test_nothing(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_begin(&fixture, 17);
	struct device_buffer *const buffer = add_buffer(&fixture, 64);
	run_twice(&fixture, run_nothing, NULL);
	assert_unchanged(buffer);
	fixture_end(&fixture);
}

static void test_senseless_tasks_are_refused(void **state)
{
	(void)state;
	float data[4] = {0};
	const struct device_rows from = {data, ELEMENT_F32, 1, 1, 4, 4, 4};
	const struct device_rows to = {data, ELEMENT_F32, 1, 1, 3, 4, 4};
	assert_int_equal(kernel_copy_rows(NULL, &from, &to), cudaErrorInvalidValue);
	assert_int_equal(kernel_fill(NULL, data, ELEMENT_F32, 0, 1), cudaErrorInvalidValue);
	assert_int_equal(kernel_fill(NULL, data, ELEMENT_E5M2, 4, 1), cudaErrorInvalidValue);
	assert_int_equal(kernel_memory_copy(NULL, data, NULL, 4), cudaErrorInvalidValue);
	const struct heads_task task = {0, 1, 1, 4, ELEMENT_F32, 4, 4};
	assert_int_equal(kernel_split_heads(NULL, &task, data, data, 1), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_copy_to_other_samples),
		cmocka_unit_test(test_special_numbers),
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_memory_copy),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_senseless_tasks_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
