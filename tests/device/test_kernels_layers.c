/* Bias, ReLU, column sums, means of rows and norms, against double. */
#include "tests/device/kernel_fixture.h"

/* --- bias and ReLU --------------------------------------------------------------------------------- */

struct bias_case {
	struct matrix y;
	struct device_buffer *bias;
	size_t bias_offset; /* bytes: biases follow weights, wherever those end */
	bool relu;
};

static int run_bias(void *argument)
{
	const struct bias_case *const c = argument;
	return kernel_bias_relu(
		NULL, &c->y.rows, (const float *)(c->bias->device + c->bias_offset), c->relu);
}

static float bias_at(const struct bias_case *c, size_t column)
{
	float value;
	memcpy(&value, c->bias->initial + c->bias_offset + column * sizeof value, sizeof value);
	return value;
}

static void check_bias(
	enum element type, const struct matrix_shape *shape, bool relu, size_t bias_offset)
{
	struct fixture fixture;
	fixture_begin(&fixture, 1);
	struct bias_case c = {.relu = relu, .bias_offset = bias_offset};
	c.y = add_matrix(&fixture, type, shape);
	fill_random(&fixture, &c.y, 2);
	c.bias = add_buffer(&fixture, bias_offset + shape->columns * sizeof(float));
	for (size_t j = 0; j < shape->columns; j++) {
		const float value = (float)uniform_in(&fixture, 1);
		memcpy(c.bias->initial + bias_offset + j * sizeof value, &value, sizeof value);
	}
	run_twice(&fixture, run_bias, &c);
	for (size_t i = 0; i < matrix_count(&c.y); i++) {
		const double sum =
			initial_element(&c.y, i) + (double)bias_at(&c, i % shape->columns);
		assert_close(type, result_element(&c.y, i), relu ? fmax(sum, 0) : sum, 3, 1);
	}
	assert_gaps_untouched(&c.y);
	assert_unchanged(c.bias);
	fixture_end(&fixture);
}

static void test_bias_and_relu(void **state)
{
	(void)state;
	FOR_EACH_SHAPE(type, shape)
	{
		check_bias(type, shape, true, 0);
		check_bias(type, shape, false, sizeof(float));
	}
}

/* A NaN is not hidden by ReLU, and what is below zero becomes zero. */
static void test_relu_keeps_nan(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_begin(&fixture, 1);
	struct bias_case c = {.relu = true};
	c.y = add_matrix(&fixture, ELEMENT_BF16, &(struct matrix_shape){1, 1, 4, 0, 0, 0});
	const double values[] = {NAN, -INFINITY, INFINITY, -1};
	for (size_t i = 0; i < 4; i++)
		set_initial(&c.y, i, values[i]);
	c.bias = add_buffer(&fixture, 4 * sizeof(float));
	memset(c.bias->initial, 0, 4 * sizeof(float));
	run_twice(&fixture, run_bias, &c);
	assert_true(isnan(result_element(&c.y, 0)));
	assert_true(result_element(&c.y, 1) == 0);
	assert_true(isinf(result_element(&c.y, 2)));
	assert_true(result_element(&c.y, 3) == 0);
	fixture_end(&fixture);
}

struct pair_case {
	struct matrix x, gradient;
};

static int run_relu_backward(void *argument)
{
	const struct pair_case *const c = argument;
	return kernel_relu_backward(NULL, &c->x.rows, &c->gradient.rows);
}

/* The two matrices of different strides: the gaps of the one are not those of the other. */
static struct pair_case add_pair(struct fixture *fixture, enum element type,
	const struct matrix_shape *shape, uint32_t more_gap)
{
	struct matrix_shape other = *shape;
	other.ld_gap += more_gap;
	struct pair_case c;
	c.x = add_matrix(fixture, type, shape);
	c.gradient = add_matrix(fixture, type, &other);
	fill_random(fixture, &c.x, 1);
	fill_random(fixture, &c.gradient, 1);
	return c;
}

static void check_relu_backward(
	enum element type, const struct matrix_shape *shape, uint32_t more_gap)
{
	struct fixture fixture;
	fixture_begin(&fixture, 2);
	struct pair_case c = add_pair(&fixture, type, shape, more_gap);
	set_initial(&c.x, 0, 0); /* the border: no gradient */
	run_twice(&fixture, run_relu_backward, &c);
	for (size_t i = 0; i < matrix_count(&c.x); i++) {
		const double kept =
			initial_element(&c.x, i) > 0 ? initial_element(&c.gradient, i) : 0;
		assert_true(result_element(&c.gradient, i) == kept);
	}
	assert_gaps_untouched(&c.gradient);
	assert_unchanged(c.x.buffer);
	fixture_end(&fixture);
}

static void test_relu_backward(void **state)
{
	(void)state;
	FOR_EACH_SHAPE(type, shape)
	{
		check_relu_backward(type, shape, 0);
		check_relu_backward(type, shape, 8);
	}
}

/* --- column sums ------------------------------------------------------------------------------------------ */

struct sums_case {
	struct matrix gradient;
	float carry;
	struct device_buffer *out, *scratch;
};

static int run_bias_backward(void *argument)
{
	const struct sums_case *const c = argument;
	return kernel_bias_backward(NULL, &c->gradient.rows, c->carry, (float *)c->out->device,
		(float *)c->scratch->device);
}

static double get_float(const uint8_t *from, size_t index)
{
	return get_element(ELEMENT_F32, from + index * sizeof(float));
}

static void check_column(const struct sums_case *c, size_t column)
{
	const size_t columns = c->gradient.rows.columns;
	const size_t rows = matrix_count(&c->gradient) / columns;
	const double before =
		c->carry != 0 ? (double)c->carry * get_float(c->out->initial, column) : 0;
	double sum = before, magnitude = fabs(before);
	for (size_t r = 0; r < rows; r++) {
		sum += initial_element(&c->gradient, r * columns + column);
		magnitude += fabs(initial_element(&c->gradient, r * columns + column));
	}
	/* Every partial sum is at most the magnitude, and there are as many as terms. */
	assert_close(
		ELEMENT_F32, get_float(c->out->result, column), sum, magnitude, (double)rows + 1);
}

static void check_sums(enum element type, const struct matrix_shape *shape, float carry)
{
	struct fixture fixture;
	fixture_begin(&fixture, 3);
	struct sums_case c = {.carry = carry};
	c.gradient = add_matrix(&fixture, type, shape);
	fill_random(&fixture, &c.gradient, 1);
	c.out = add_buffer(&fixture, shape->columns * sizeof(float));
	c.scratch = add_buffer(&fixture, kernel_bias_scratch(&c.gradient.rows) * sizeof(float));
	for (size_t j = 0; carry != 0 && j < shape->columns; j++)
		put_element(
			ELEMENT_F32, c.out->initial + j * sizeof(float), uniform_in(&fixture, 1));
	run_twice(&fixture, run_bias_backward, &c);
	for (size_t j = 0; j < shape->columns; j++)
		check_column(&c, j);
	assert_unchanged(c.gradient.buffer);
	fixture_end(&fixture);
}

/* With carry 0 the sums are found poisoned, and must not be read. */
static void test_bias_backward(void **state)
{
	(void)state;
	FOR_EACH_SHAPE(type, shape)
	{
		check_sums(type, shape, 0);
		check_sums(type, shape, 0.9f);
	}
}

/* --- means of rows ------------------------------------------------------------------------------------------ */

struct mean_case {
	struct matrix x;
	struct matrix averaged; /* a row for each sample */
};

static int run_average(void *argument)
{
	const struct mean_case *const c = argument;
	return kernel_average_rows(NULL, &c->x.rows, c->averaged.rows.data);
}

static int run_spread(void *argument)
{
	const struct mean_case *const c = argument;
	return kernel_spread_rows(NULL, c->averaged.rows.data, &c->x.rows);
}

static struct mean_case add_mean(
	struct fixture *fixture, enum element type, const struct matrix_shape *shape)
{
	const struct matrix_shape flat = {1, shape->samples, shape->columns, 0, 0, 0};
	struct mean_case c;
	c.x = add_matrix(fixture, type, shape);
	c.averaged = add_matrix(fixture, type, &flat);
	return c;
}

static void check_average(enum element type, const struct matrix_shape *shape)
{
	struct fixture fixture;
	fixture_begin(&fixture, 4);
	struct mean_case c = add_mean(&fixture, type, shape);
	fill_random(&fixture, &c.x, 1);
	run_twice(&fixture, run_average, &c);
	const size_t columns = shape->columns;
	for (size_t i = 0; i < matrix_count(&c.averaged); i++) {
		double sum = 0;
		for (size_t r = 0; r < shape->rows; r++)
			sum += initial_element(
				&c.x, (i / columns * shape->rows + r) * columns + i % columns);
		/* Sums of magnitude `rows` at most, and the share as a float and a product. */
		assert_close(type, result_element(&c.averaged, i), sum / shape->rows, 1,
			shape->rows + 2.0);
	}
	assert_unchanged(c.x.buffer);
	fixture_end(&fixture);
}

static void check_spread(enum element type, const struct matrix_shape *shape)
{
	struct fixture fixture;
	fixture_begin(&fixture, 5);
	struct mean_case c = add_mean(&fixture, type, shape);
	fill_random(&fixture, &c.averaged, 1);
	run_twice(&fixture, run_spread, &c);
	const size_t columns = shape->columns;
	for (size_t i = 0; i < matrix_count(&c.x); i++) {
		const size_t sample = i / columns / shape->rows;
		const double mean = initial_element(&c.averaged, sample * columns + i % columns);
		assert_close(type, result_element(&c.x, i), mean / shape->rows,
			fabs(mean) / shape->rows, 2);
	}
	assert_gaps_untouched(&c.x);
	assert_unchanged(c.averaged.buffer);
	fixture_end(&fixture);
}

static void test_means(void **state)
{
	(void)state;
	FOR_EACH_SHAPE(type, shape)
	{
		check_average(type, shape);
		check_spread(type, shape);
	}
}

/* --- norms ---------------------------------------------------------------------------------------------------- */

struct norm_case {
	struct pair_case pair;
	struct device_buffer *scales;
};

static int run_norm_forward(void *argument)
{
	const struct norm_case *const c = argument;
	return kernel_norm_forward(NULL, &c->pair.x.rows, (float *)c->scales->device);
}

static int run_norm_backward(void *argument)
{
	const struct norm_case *const c = argument;
	return kernel_norm_backward(
		NULL, &c->pair.x.rows, &c->pair.gradient.rows, (const float *)c->scales->device);
}

static struct norm_case add_norm(struct fixture *fixture, enum element type,
	const struct matrix_shape *shape, uint32_t more_gap)
{
	struct norm_case c;
	c.pair = add_pair(fixture, type, shape, more_gap);
	c.scales = add_buffer(fixture, (size_t)shape->samples * shape->rows * sizeof(float));
	return c;
}

/* Roundings in the longest chain of a row's sum: a block of 128 threads, 16 lanes, and what is done with the sum. */
static double norm_operations(size_t columns)
{
	return (double)columns / 128 + 8 + 16 + 16 + 6;
}

/* Errors of a sum of squares are relative to itself: all terms are positive. */
static void check_norm_forward(enum element type, const struct matrix_shape *shape, bool zero_row)
{
	struct fixture fixture;
	fixture_begin(&fixture, 6);
	struct norm_case c = add_norm(&fixture, type, shape, 0);
	const struct matrix *const x = &c.pair.x;
	const size_t columns = shape->columns, rows = matrix_count(x) / columns;
	for (size_t j = 0; zero_row && j < columns; j++)
		set_initial(&c.pair.x, j, 0);
	run_twice(&fixture, run_norm_forward, &c);
	for (size_t r = 0; r < rows; r++) {
		double squares = 0;
		for (size_t j = 0; j < columns; j++)
			squares += pow(initial_element(x, r * columns + j), 2);
		const double scale = 1 / sqrt(squares / (double)columns + 1e-6);
		const double operations = norm_operations(columns);
		assert_close(ELEMENT_F32, get_float(c.scales->result, r), scale, scale, operations);
		for (size_t j = 0; j < columns; j++) {
			const double wanted = scale * initial_element(x, r * columns + j);
			assert_close(type, result_element(x, r * columns + j), wanted, fabs(wanted),
				operations);
		}
	}
	assert_gaps_untouched(x);
	fixture_end(&fixture);
}

static void check_backward_row(const struct norm_case *c, size_t r)
{
	const struct matrix *const x = &c->pair.x, *const gradient = &c->pair.gradient;
	const size_t columns = x->rows.columns;
	const double scale = get_float(c->scales->initial, r);
	double sum = 0, magnitude = 0;
	for (size_t i = r * columns; i < (r + 1) * columns; i++) {
		const double product = initial_element(x, i) * initial_element(gradient, i);
		sum += product;
		magnitude += fabs(product);
	}
	for (size_t i = r * columns; i < (r + 1) * columns; i++) {
		const double before = initial_element(gradient, i), value = initial_element(x, i);
		const double wanted = scale * (before - value * (sum / (double)columns));
		/* The error of the mean is that of a sum of `columns` terms, over their number. */
		const double most =
			scale * (fabs(before) + fabs(value) * magnitude / (double)columns);
		assert_close(x->rows.type, result_element(gradient, i), wanted, most,
			norm_operations(columns));
	}
}

static void check_norm_backward(
	enum element type, const struct matrix_shape *shape, uint32_t more_gap)
{
	struct fixture fixture;
	fixture_begin(&fixture, 7);
	struct norm_case c = add_norm(&fixture, type, shape, more_gap);
	const size_t rows = (size_t)shape->samples * shape->rows;
	for (size_t r = 0; r < rows; r++)
		put_element(ELEMENT_F32, c.scales->initial + r * sizeof(float),
			1 + rng_uniform(&fixture.rng));
	run_twice(&fixture, run_norm_backward, &c);
	for (size_t r = 0; r < rows; r++)
		check_backward_row(&c, r);
	assert_gaps_untouched(&c.pair.gradient);
	assert_unchanged(c.pair.x.buffer);
	assert_unchanged(c.scales);
	fixture_end(&fixture);
}

static void test_norms(void **state)
{
	(void)state;
	FOR_EACH_SHAPE(type, shape)
	{
		check_norm_forward(type, shape, false);
		check_norm_forward(type, shape, true); /* epsilon alone keeps it finite */
		check_norm_backward(type, shape, 0);
		check_norm_backward(type, shape, 8);
	}
}

/* --- what is refused ------------------------------------------------------------------------------------------- */

static void test_senseless_shapes_are_refused(void **state)
{
	(void)state;
	float data[4] = {0};
	struct device_rows rows = {data, ELEMENT_F32, 0, 1, 4, 4, 4};
	assert_int_equal(kernel_bias_relu(NULL, &rows, data, false), cudaErrorInvalidValue);
	assert_int_equal(kernel_norm_forward(NULL, &rows, data), cudaErrorInvalidValue);
	assert_int_equal(kernel_bias_backward(NULL, &rows, 0, data, data), cudaErrorInvalidValue);
	assert_int_equal(kernel_average_rows(NULL, &rows, data), cudaErrorInvalidValue);
	rows = (struct device_rows){data, ELEMENT_E4M3, 1, 1, 4, 4, 4};
	assert_int_equal(kernel_bias_relu(NULL, &rows, data, false), cudaErrorInvalidValue);
	rows = (struct device_rows){data, ELEMENT_F32, 1, 2, 4, 3, 8}; /* rows overlap */
	assert_int_equal(kernel_relu_backward(NULL, &rows, &rows), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bias_and_relu),
		cmocka_unit_test(test_relu_keeps_nan),
		cmocka_unit_test(test_relu_backward),
		cmocka_unit_test(test_bias_backward),
		cmocka_unit_test(test_means),
		cmocka_unit_test(test_norms),
		cmocka_unit_test(test_senseless_shapes_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
