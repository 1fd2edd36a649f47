/* Softmax and cross-entropy against double, and against the host's own. */
#include "tests/device/kernel_fixture.h"
#include "workloads/backend/batch.h"
#include "workloads/backend/network.h"

struct loss_case {
	struct matrix logits;
	struct device_buffer *labels, *losses, *loss;
	float scale;
};

static int run_loss(void *argument)
{
	const struct loss_case *const c = argument;
	return kernel_softmax_cross_entropy(NULL, &c->logits.rows,
		(const uint32_t *)c->labels->device, c->scale, (float *)c->losses->device,
		(float *)c->loss->device);
}

static uint32_t label_of(const struct loss_case *c, size_t sample)
{
	uint32_t label;
	memcpy(&label, c->labels->initial + sample * sizeof label, sizeof label);
	return label % c->logits.rows.columns;
}

/* Labels beyond the number of classes are among them. */
static void begin_loss(struct fixture *fixture, struct loss_case *c, enum element type,
	const struct matrix_shape *shape, float scale)
{
	fixture_begin(fixture, 31);
	c->scale = scale;
	c->logits = add_matrix(fixture, type, shape);
	c->labels = add_buffer(fixture, shape->samples * sizeof(uint32_t));
	c->losses = add_buffer(fixture, (size_t)shape->samples * shape->rows * sizeof(float));
	c->loss = add_buffer(fixture, sizeof(float));
	for (size_t i = 0; i < shape->samples; i++) {
		const uint32_t label = (uint32_t)rng_below(&fixture->rng, 3ull * shape->columns);
		memcpy(c->labels->initial + i * sizeof label, &label, sizeof label);
	}
}

static double get_float(const struct device_buffer *buffer, size_t index)
{
	return get_element(ELEMENT_F32, buffer->result + index * sizeof(float));
}

/* An exponential's argument has a rounding of its own, relative to its size: the spread of the row; expf is given 2 units
 * (CUDA C++ programming guide, mathematical functions).  Sums: a thread's chain, 16 and 16 lanes, rescaling each. */
static double loss_operations(size_t columns, double spread)
{
	return (double)columns / 256 + 3 * (8 + 16 + 16) + 2 * spread + 16;
}

static double check_row(const struct loss_case *c, size_t row)
{
	const size_t columns = c->logits.rows.columns, first = row * columns;
	const size_t label = label_of(c, row / c->logits.rows.rows);
	double largest = -INFINITY, smallest = INFINITY, sum = 0;
	for (size_t j = 0; j < columns; j++) {
		largest = fmax(largest, initial_element(&c->logits, first + j));
		smallest = fmin(smallest, initial_element(&c->logits, first + j));
	}
	for (size_t j = 0; j < columns; j++)
		sum += exp(initial_element(&c->logits, first + j) - largest);
	const double operations = loss_operations(columns, fmin(largest - smallest, 100));
	for (size_t j = 0; j < columns; j++) {
		const double share = exp(initial_element(&c->logits, first + j) - largest) / sum;
		const double scale = (double)c->scale;
		/* Beside the softmax, the rounding of its difference to 1. */
		assert_close(c->logits.rows.type, result_element(&c->logits, first + j),
			scale * (share - (j == label)), scale * (share + (j == label)), operations);
	}
	const double score = largest - initial_element(&c->logits, first + label);
	const double wanted = log(sum) + score;
	assert_close(
		ELEMENT_F32, get_float(c->losses, row), wanted, 1 + score + log(sum), operations);
	return get_float(c->losses, row);
}

static void check_loss_rows(const struct loss_case *c)
{
	const size_t rows = (size_t)c->logits.rows.samples * c->logits.rows.rows;
	double sum = 0;
	for (size_t r = 0; r < rows; r++)
		sum += check_row(c, r);
	/* Summed in double: one rounding. */
	assert_close(ELEMENT_F32, get_float(c->loss, 0), sum / (double)rows, 0, 0);
	assert_gaps_untouched(&c->logits);
	assert_unchanged(c->labels);
}

static void check_loss(enum element type, const struct matrix_shape *shape, double amplitude)
{
	struct fixture fixture;
	struct loss_case c;
	begin_loss(&fixture, &c, type, shape, 1 / (float)(shape->samples * shape->rows));
	fill_random(&fixture, &c.logits, amplitude);
	run_twice(&fixture, run_loss, &c);
	check_loss_rows(&c);
	fixture_end(&fixture);
}

/* Amplitude 0: all logits equal.  Huge: all but the largest vanish, and nothing overflows. */
static void test_losses(void **state)
{
	(void)state;
	FOR_EACH_SHAPE(type, shape)
	{
		check_loss(type, shape, 4);
		check_loss(type, shape, 0);
		check_loss(type, shape, 30000);
	}
}

/* A vocabulary, and a loss scale that lifts gradients into the range of fp16. */
static void test_vocabulary(void **state)
{
	(void)state;
	struct fixture fixture;
	struct loss_case c;
	begin_loss(&fixture, &c, ELEMENT_F16, &(struct matrix_shape){1, 2, 50257, 7, 0, 0},
		65536.0f / 2);
	fill_random(&fixture, &c.logits, 3);
	run_twice(&fixture, run_loss, &c);
	check_loss_rows(&c);
	fixture_end(&fixture);
}

static void test_minus_infinity_counts_as_nothing(void **state)
{
	(void)state;
	struct fixture fixture;
	struct loss_case c;
	begin_loss(&fixture, &c, ELEMENT_F32, &(struct matrix_shape){1, 1, 700, 0, 0, 0}, 1);
	for (size_t i = 0; i < 700; i++)
		set_initial(&c.logits, i, i % 2 ? -INFINITY : 0);
	memset(c.labels->initial, 0, sizeof(uint32_t));
	run_twice(&fixture, run_loss, &c);
	assert_close(ELEMENT_F32, get_float(c.loss, 0), log(350), log(350), 4);
	for (size_t i = 1; i < 700; i++)
		assert_close(ELEMENT_F32, result_element(&c.logits, i), i % 2 ? 0 : 1.0 / 350,
			1.0 / 350, 16);
	fixture_end(&fixture);
}

/* A row that holds a NaN has no loss, and the others have theirs. */
static void test_nan_stays_in_its_row(void **state)
{
	(void)state;
	struct fixture fixture;
	struct loss_case c;
	begin_loss(&fixture, &c, ELEMENT_BF16, &(struct matrix_shape){1, 2, 1000, 0, 0, 0}, 1);
	fill_random(&fixture, &c.logits, 1);
	set_initial(&c.logits, 700, NAN);
	run_twice(&fixture, run_loss, &c);
	assert_true(isnan(get_float(c.losses, 0)));
	assert_true(isnan(get_float(c.loss, 0)));
	assert_true(isnan(result_element(&c.logits, 3)));
	(void)check_row(&c, 1);
	fixture_end(&fixture);
}

/* The host computes the same function: what differs is its exponential, good to 2e-7. */
static void test_agrees_with_the_host(void **state)
{
	(void)state;
	enum { SAMPLES = 6, ROWS = 2, CLASSES = 1000, COUNT = SAMPLES * ROWS * CLASSES };
	struct fixture fixture;
	struct loss_case c;
	begin_loss(&fixture, &c, ELEMENT_F32,
		&(struct matrix_shape){SAMPLES, ROWS, CLASSES, 0, 0, 0}, 0.5f);
	fill_random(&fixture, &c.logits, 5);
	run_twice(&fixture, run_loss, &c);
	static float host[COUNT];
	memcpy(host, c.logits.buffer->initial, sizeof host);
	uint32_t labels[SAMPLES];
	memcpy(labels, c.labels->initial, sizeof labels);
	const double sum =
		loss_softmax_cross_entropy(host, SAMPLES, ROWS, CLASSES, labels, 0.5f, 1);
	assert_true(fabs(sum / (SAMPLES * ROWS) - get_float(c.loss, 0)) < 1e-5);
	for (size_t i = 0; i < COUNT; i++)
		assert_true(fabs((double)host[i] - result_element(&c.logits, i)) < 1e-6);
	fixture_end(&fixture);
}

/* A sample without a label costs no loss and moves nothing; the others have theirs. */
static void test_no_label_has_no_loss(void **state)
{
	(void)state;
	struct fixture fixture;
	struct loss_case c;
	begin_loss(&fixture, &c, ELEMENT_F32, &(struct matrix_shape){2, 1, 1000, 0, 0, 0}, 1);
	fill_random(&fixture, &c.logits, 3);
	assert_true(CUDA_LABEL_MASKED == BATCH_LABEL_MASKED);
	memcpy(c.labels->initial, &BATCH_LABEL_MASKED, sizeof BATCH_LABEL_MASKED);
	run_twice(&fixture, run_loss, &c);
	for (size_t j = 0; j < 1000; j++)
		assert_true(result_element(&c.logits, j) == 0);
	assert_true(get_float(c.losses, 0) == 0);
	assert_close(ELEMENT_F32, get_float(c.loss, 0), check_row(&c, 1) / 2, 1, 4);
	fixture_end(&fixture);
}

static void test_no_rows_are_refused(void **state)
{
	(void)state;
	float data[4] = {0};
	uint32_t label = 0;
	const struct device_rows rows = {data, ELEMENT_F32, 1, 0, 4, 4, 4};
	assert_int_equal(kernel_softmax_cross_entropy(NULL, &rows, &label, 1, data, data),
		cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_vocabulary),
		cmocka_unit_test(test_minus_infinity_counts_as_nothing),
		cmocka_unit_test(test_nan_stays_in_its_row),
		cmocka_unit_test(test_agrees_with_the_host),
		cmocka_unit_test(test_no_label_has_no_loss),
		cmocka_unit_test(test_no_rows_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
