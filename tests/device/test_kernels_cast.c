/* Quantising to fp8 against rounding in software: the bytes, the transposed bytes, the scale and the delayed magnitude. */
#include "tests/device/kernel_fixture.h"

struct cast_case {
	struct quantise_task task;
	struct matrix from;
	struct device_buffer *out, *transposed, *amax, *scale_inverse;
};

static int run_quantise(void *argument)
{
	const struct cast_case *const c = argument;
	return kernel_quantise(NULL, &c->task);
}

static float get_float(const uint8_t *from)
{
	float value;
	memcpy(&value, from, sizeof value);
	return value;
}

static void begin_cast(struct fixture *fixture, struct cast_case *c, enum element from,
	enum element to, const struct matrix_shape *shape, float amax, uint32_t out_offset)
{
	fixture_begin(fixture, 61);
	c->from = add_matrix(fixture, from, shape);
	fill_random(fixture, &c->from, 3);
	const size_t count = matrix_count(&c->from);
	c->out = add_buffer(fixture, count + out_offset);
	c->transposed = add_buffer(fixture, count + out_offset);
	c->amax = add_buffer(fixture, sizeof(float));
	c->scale_inverse = add_buffer(fixture, sizeof(float));
	memcpy(c->amax->initial, &amax, sizeof amax);
	c->task = (struct quantise_task){
		.from = c->from.rows,
		.type = to,
		.out = c->out->device + out_offset,
		.transposed = c->transposed->device + out_offset,
		.amax = (float *)c->amax->device,
		.scale_inverse = (float *)c->scale_inverse->device,
	};
	struct device_buffer *const scratch =
		add_buffer(fixture, kernel_quantise_scratch(&c->task) * sizeof(float));
	c->task.scratch = (float *)scratch->device;
}

/* Of the finite elements. */
static float own_amax(const struct cast_case *c)
{
	double most = 0;
	for (size_t i = 0; i < matrix_count(&c->from); i++)
		if (isfinite(initial_element(&c->from, i)))
			most = fmax(most, fabs(initial_element(&c->from, i)));
	return (float)most;
}

static float scale_for(const struct cast_case *c)
{
	const float before = get_float(c->amax->initial);
	const float amax = before > 0 ? before : own_amax(c);
	return (float)format_of(c->task.type).largest / fmaxf(amax, 1e-30f);
}

static double wanted_byte(const struct cast_case *c, size_t number, float scale)
{
	const float scaled = (float)initial_element(&c->from, number) * scale;
	const double largest = format_of(c->task.type).largest;
	const double rounded = rounded_to(c->task.type, (double)scaled);
	return isnan(rounded) ? NAN : fmax(-largest, fmin(largest, rounded));
}

static void check_byte(
	const struct cast_case *c, const struct device_buffer *buffer, size_t at, double wanted)
{
	const double got = get_element(c->task.type, buffer->result + at);
	if (!(got == wanted || (isnan(got) && isnan(wanted))))
		fail_msg("byte %zu is %g, not %g", at, got, wanted);
}

static void check_result(const struct cast_case *c, uint32_t out_offset)
{
	const size_t count = matrix_count(&c->from), columns = c->from.rows.columns;
	const size_t rows = count / columns;
	const float scale = scale_for(c);
	for (size_t i = 0; i < count; i++) {
		const double wanted = wanted_byte(c, i, scale);
		if (c->task.out)
			check_byte(c, c->out, out_offset + i, wanted);
		if (c->task.transposed)
			check_byte(c, c->transposed, out_offset + i % columns * rows + i / columns,
				wanted);
	}
	if (!c->task.out)
		assert_unchanged(c->out);
	if (!c->task.transposed)
		assert_unchanged(c->transposed);
	assert_true(get_float(c->amax->result) == own_amax(c));
	assert_true(get_float(c->scale_inverse->result) == 1 / scale);
	assert_unchanged(c->from.buffer);
}

/* Which outputs are wanted: bits. */
enum { PLAIN = 1, TRANSPOSED = 2 };

static void check_cast(enum element from, enum element to, const struct matrix_shape *shape,
	float amax, unsigned outputs, uint32_t out_offset)
{
	struct fixture fixture;
	struct cast_case c;
	begin_cast(&fixture, &c, from, to, shape, amax, out_offset);
	if (!(outputs & PLAIN))
		c.task.out = NULL;
	if (!(outputs & TRANSPOSED))
		c.task.transposed = NULL;
	run_twice(&fixture, run_quantise, &c);
	check_result(&c, out_offset);
	fixture_end(&fixture);
}

static const enum element targets[] = {ELEMENT_E4M3, ELEMENT_E5M2};

/* First step, delayed scale that fits, and one so small that most elements saturate. */
static void test_casts(void **state)
{
	(void)state;
	for (size_t to = 0; to < 2; to++)
		FOR_EACH_SHAPE(type, shape)
		{
			check_cast(type, targets[to], shape, 0, PLAIN | TRANSPOSED, 0);
			check_cast(type, targets[to], shape, 2.9f, PLAIN, 0);
			check_cast(type, targets[to], shape, 0.01f, TRANSPOSED, 1);
		}
}

/* Whole tiles, and sizes around theirs. */
static void test_tiles(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {16, 63, 64, 65, 128, 200};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
			const struct matrix_shape shape = {1, sizes[i], sizes[j], 0, 0, 0};
			check_cast(ELEMENT_BF16, ELEMENT_E4M3, &shape, 3, PLAIN | TRANSPOSED, 0);
			check_cast(ELEMENT_F32, ELEMENT_E5M2, &shape, 0, PLAIN | TRANSPOSED, 16);
		}
}

/* More tiles than blocks. */
static void test_many_tiles(void **state)
{
	(void)state;
	const struct matrix_shape shape = {1, 2100, 2112, 0, 0, 0};
	check_cast(ELEMENT_BF16, ELEMENT_E4M3, &shape, 0, PLAIN | TRANSPOSED, 0);
}

static void test_zeros(void **state)
{
	(void)state;
	struct fixture fixture;
	struct cast_case c;
	begin_cast(&fixture, &c, ELEMENT_F32, ELEMENT_E4M3,
		&(struct matrix_shape){1, 3, 20, 0, 0, 0}, 0, 0);
	for (size_t i = 0; i < matrix_count(&c.from); i++)
		set_initial(&c.from, i, 0);
	run_twice(&fixture, run_quantise, &c);
	check_result(&c, 0);
	assert_true(get_float(c.amax->result) == 0);
	assert_true(isfinite(get_float(c.scale_inverse->result)));
	fixture_end(&fixture);
}

/* Infinities saturate and do not take the scale with them; NaN stays. */
static void test_nonfinite(void **state)
{
	(void)state;
	for (size_t to = 0; to < 2; to++) {
		struct fixture fixture;
		struct cast_case c;
		begin_cast(&fixture, &c, ELEMENT_BF16, targets[to],
			&(struct matrix_shape){1, 3, 20, 0, 0, 0}, to ? 0 : 3.0f, 0);
		set_initial(&c.from, 5, INFINITY);
		set_initial(&c.from, 6, -INFINITY);
		set_initial(&c.from, 7, NAN);
		run_twice(&fixture, run_quantise, &c);
		check_result(&c, 0);
		assert_true(isnan(get_element(targets[to], c.out->result + 7)));
		assert_true(get_element(targets[to], c.out->result + 5) ==
			    format_of(targets[to]).largest);
		fixture_end(&fixture);
	}
}

/* Every number of the type is kept by a scale of 1, least ones and zeros of both signs too. */
static void test_all_numbers_of_the_type(void **state)
{
	(void)state;
	for (size_t to = 0; to < 2; to++) {
		struct fixture fixture;
		struct cast_case c;
		begin_cast(&fixture, &c, ELEMENT_F32, targets[to],
			&(struct matrix_shape){1, 1, 256, 0, 0, 0},
			(float)format_of(targets[to]).largest, 0);
		for (size_t i = 0; i < 256; i++) {
			const uint8_t bytes[4] = {(uint8_t)i}; /* room for any type */
			set_initial(&c.from, i, get_element(targets[to], bytes));
		}
		run_twice(&fixture, run_quantise, &c);
		for (size_t i = 0; i < 256; i++)
			if (isfinite(initial_element(&c.from, i)))
				assert_int_equal(c.out->result[i], i);
		fixture_end(&fixture);
	}
}

static void test_senseless_tasks_are_refused(void **state)
{
	(void)state;
	float data[4] = {0};
	struct quantise_task task = {.from = {data, ELEMENT_F32, 1, 1, 4, 4, 4},
		.type = ELEMENT_E4M3,
		.amax = data,
		.scale_inverse = data,
		.scratch = data};
	assert_int_equal(kernel_quantise(NULL, &task), cudaErrorInvalidValue); /* no output */
	task.out = data;
	task.type = ELEMENT_BF16;
	assert_int_equal(kernel_quantise(NULL, &task), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_casts),
		cmocka_unit_test(test_tiles),
		cmocka_unit_test(test_many_tiles),
		cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_nonfinite),
		cmocka_unit_test(test_all_numbers_of_the_type),
		cmocka_unit_test(test_senseless_tasks_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
