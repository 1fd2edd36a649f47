/* Sums and counts over tensors, against sums in extended precision. */
#include "tests/device/kernel_fixture.h"

#include <float.h>

struct sums_case {
	struct matrix x;
	struct device_buffer *out, *partials, *skip;
};

struct sums {
	double sum, squares, magnitude;
	uint32_t nonfinite;
};

static float *partials_of(const struct sums_case *c)
{
	return (float *)c->partials->device;
}

static int run_activations(void *argument)
{
	const struct sums_case *const c = argument;
	return kernel_activation_statistics(
		NULL, &c->x.rows, (double *)c->out->device, partials_of(c));
}

static int run_gradients(void *argument)
{
	const struct sums_case *const c = argument;
	return kernel_gradient_statistics(NULL, c->x.rows.data, matrix_count(&c->x),
		(double *)c->out->device, partials_of(c));
}

static int run_find(void *argument)
{
	const struct sums_case *const c = argument;
	return kernel_find_nonfinite(NULL, c->x.rows.data, matrix_count(&c->x),
		(uint32_t *)c->skip->device, partials_of(c));
}

/* broken: one of so many elements is not finite; 0: none. */
static void begin_sums(struct fixture *fixture, struct sums_case *c, enum element type,
	const struct matrix_shape *shape, unsigned broken)
{
	static const double values[] = {INFINITY, -INFINITY, NAN};
	fixture_begin(fixture, 51);
	c->x = add_matrix(fixture, type, shape);
	c->out = add_buffer(fixture, 3 * sizeof(double));
	c->skip = add_buffer(fixture, sizeof(uint32_t));
	c->partials =
		add_buffer(fixture, kernel_reduce_partials(matrix_count(&c->x)) * sizeof(float));
	fill_random(fixture, &c->x, 10);
	for (size_t i = 0; broken && i < matrix_count(&c->x); i += broken)
		set_initial(&c->x, i, values[i % 3]);
}

static struct sums sum_of(const struct sums_case *c)
{
	long double sum = 0, squares = 0, magnitude = 0;
	struct sums sums = {0};
	for (size_t i = 0; i < matrix_count(&c->x); i++) {
		const double value = initial_element(&c->x, i);
		if (!isfinite(value)) {
			sums.nonfinite++;
			continue;
		}
		sum += (long double)value;
		squares += (long double)value * (long double)value;
		magnitude += (long double)fabs(value);
	}
	sums.sum = (double)sum;
	sums.squares = (double)squares;
	sums.magnitude = (double)magnitude;
	return sums;
}

static double out_at(const struct sums_case *c, size_t index)
{
	double value;
	memcpy(&value, c->out->result + index * sizeof value, sizeof value);
	return value;
}

/* In double, with no more roundings than elements. */
static double allowed(const struct sums_case *c, double magnitude)
{
	return (double)matrix_count(&c->x) * DBL_EPSILON * magnitude;
}

static void check_activations(enum element type, const struct matrix_shape *shape, unsigned broken)
{
	struct fixture fixture;
	struct sums_case c;
	begin_sums(&fixture, &c, type, shape, broken);
	run_twice(&fixture, run_activations, &c);
	const struct sums sums = sum_of(&c);
	assert_true(fabs(out_at(&c, 0) - sums.sum) <= allowed(&c, sums.magnitude));
	assert_true(fabs(out_at(&c, 1) - sums.squares) <= allowed(&c, sums.squares));
	assert_true(out_at(&c, 2) == sums.nonfinite);
	assert_unchanged(c.x.buffer);
	fixture_end(&fixture);
}

static void check_gradients(const struct matrix_shape *shape, unsigned broken)
{
	struct fixture fixture;
	struct sums_case c;
	begin_sums(&fixture, &c, ELEMENT_F32, shape, broken);
	const struct sums sums = sum_of(&c);
	run_twice(&fixture, run_gradients, &c);
	assert_true(fabs(out_at(&c, 0) - sums.squares) <= allowed(&c, sums.squares));
	assert_true(out_at(&c, 1) == sums.nonfinite);
	run_twice(&fixture, run_find, &c);
	uint32_t skip;
	memcpy(&skip, c.skip->result, sizeof skip);
	assert_int_equal(skip, sums.nonfinite);
	assert_unchanged(c.x.buffer);
	fixture_end(&fixture);
}

static void test_activations(void **state)
{
	(void)state;
	FOR_EACH_SHAPE(type, shape)
	{
		check_activations(type, shape, 0);
		check_activations(type, shape, 7);
		check_activations(type, shape, 1); /* nothing finite */
	}
}

/* The last ones are more than all blocks take in one round. */
static void test_gradients(void **state)
{
	(void)state;
	static const struct matrix_shape arrays[] = {{1, 1, 1, 0, 0, 0}, {1, 1, 1023, 0, 0, 0},
		{1, 1, 4096, 0, 0, 1}, {1, 1, 300001, 0, 0, 0}, {1, 1, 1 << 21, 0, 0, 0}};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		check_gradients(&arrays[i], 0);
		check_gradients(&arrays[i], 1000);
	}
}

/* Squares of the largest floats are beyond floats. */
static void test_squares_do_not_overflow(void **state)
{
	(void)state;
	struct fixture fixture;
	struct sums_case c;
	begin_sums(&fixture, &c, ELEMENT_F32, &(struct matrix_shape){1, 1, 2, 0, 0, 0}, 0);
	set_initial(&c.x, 0, (double)FLT_MAX);
	set_initial(&c.x, 1, -(double)FLT_MAX);
	run_twice(&fixture, run_gradients, &c);
	assert_true(out_at(&c, 0) == 2 * (double)FLT_MAX * (double)FLT_MAX);
	assert_true(out_at(&c, 1) == 0);
	fixture_end(&fixture);
}

static void test_nothing_to_sum_is_refused(void **state)
{
	(void)state;
	float data[4] = {0};
	double out[3];
	assert_int_equal(
		kernel_gradient_statistics(NULL, data, 0, out, data), cudaErrorInvalidValue);
	assert_int_equal(kernel_find_nonfinite(NULL, data, 4, NULL, data), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_activations),
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_squares_do_not_overflow),
		cmocka_unit_test(test_nothing_to_sum_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
