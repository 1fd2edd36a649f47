/* Several updates against double, and against workloads/backend/network.c. */
#include "tests/device/kernel_fixture.h"
#include "workloads/backend/network.h"

enum { STEPS = 5, BEFORE = 3 /* adam's updates before the first one here */ };

#define RATE 0.01f
#define FACTOR 0.25f /* of gradients: 1 / loss scale, say */

struct update_case {
	struct optimizer_task task;
	bool is_adam;
	struct matrix weights, gradients, first, second, computed;
	struct device_buffer *step, *skip;
};

static int run_updates(void *argument)
{
	const struct update_case *const c = argument;
	int result = 0;
	for (unsigned i = 0; i < STEPS && result == 0; i++)
		result = c->is_adam ? kernel_adam(NULL, &c->task) : kernel_sgd(NULL, &c->task);
	return result;
}

static void put_count(struct device_buffer *buffer, uint32_t value)
{
	memcpy(buffer->initial, &value, sizeof value);
}

static uint32_t get_count(const struct device_buffer *buffer)
{
	uint32_t value;
	memcpy(&value, buffer->result, sizeof value);
	return value;
}

/* copy: the type of the copy for products, or NULL: none. */
static void begin_updates(struct fixture *fixture, struct update_case *c, uint32_t count,
	uint32_t offset, const enum element *copy)
{
	const struct matrix_shape shape = {1, 1, count, 0, 0, offset};
	fixture_begin(fixture, 41);
	c->weights = add_matrix(fixture, ELEMENT_F32, &shape);
	c->gradients = add_matrix(fixture, ELEMENT_F32, &shape);
	c->first = add_matrix(fixture, ELEMENT_F32, &shape);
	c->second = add_matrix(fixture, ELEMENT_F32, &shape);
	c->computed = add_matrix(fixture, copy ? *copy : ELEMENT_F32, &shape);
	c->step = add_buffer(fixture, sizeof(uint32_t));
	c->skip = add_buffer(fixture, sizeof(uint32_t));
	fill_random(fixture, &c->weights, 1);
	fill_random(fixture, &c->gradients, 4);
	fill_random(fixture, &c->first, 0.5);
	for (size_t i = 0; i < count; i++)
		set_initial(&c->second, i, rng_uniform(&fixture->rng));
	put_count(c->step, BEFORE);
	put_count(c->skip, 0);
	c->task = (struct optimizer_task){
		.weights = c->weights.rows.data,
		.gradients = c->gradients.rows.data,
		.velocity = c->is_adam ? NULL : c->first.rows.data,
		.first = c->is_adam ? c->first.rows.data : NULL,
		.second = c->is_adam ? c->second.rows.data : NULL,
		.computed = copy ? c->computed.rows.data : NULL,
		.type = copy ? *copy : ELEMENT_E4M3, /* unused: any */
		.count = count,
		.learning_rate = RATE,
		.gradient_factor = FACTOR,
		.step = (uint32_t *)c->step->device,
		.skip = (const uint32_t *)c->skip->device,
	};
}

/* The same in double.  Betas are the rule's floats, and so are their complements. */
struct reference {
	double weight, first, second, largest_update;
};

static void step_reference(
	const struct update_case *c, struct reference *r, double gradient, unsigned done)
{
	const double before = r->weight;
	const double beta1 = (double)0.9f, beta2 = (double)0.999f, rate = (double)RATE;
	if (!c->is_adam) {
		r->first = beta1 * r->first + gradient;
		r->weight -= rate * r->first;
	} else {
		r->first = beta1 * r->first + (double)(1 - 0.9f) * gradient;
		r->second = beta2 * r->second + (double)(1 - 0.999f) * gradient * gradient;
		const double first = r->first / (1 - pow(beta1, done + 1));
		const double second = r->second / (1 - pow(beta2, done + 1));
		r->weight -= rate * first / (sqrt(second) + (double)1e-8f);
	}
	r->largest_update = fmax(r->largest_update, fabs(r->weight - before));
}

static struct reference make_reference(const struct update_case *c, size_t i)
{
	struct reference r = {initial_element(&c->weights, i), initial_element(&c->first, i),
		initial_element(&c->second, i), 0};
	for (unsigned step = 0; step < STEPS; step++)
		step_reference(
			c, &r, initial_element(&c->gradients, i) * (double)FACTOR, BEFORE + step);
	return r;
}

/* A step rounds the weight once, and its update ten times or so, of which the moments' errors carry over; the moments,
 * which may cancel, are at most 20. */
static void check_element(const struct update_case *c, size_t i)
{
	const struct reference r = make_reference(c, i);
	const double unit = unit_roundoff(ELEMENT_F32);
	const double allowed =
		STEPS * unit * (1.5 + 16 * r.largest_update) + 40 * STEPS * unit * (double)RATE;
	assert_true(fabs(result_element(&c->weights, i) - r.weight) <= allowed);
	assert_true(fabs(result_element(&c->first, i) - r.first) <= 20 * STEPS * unit);
	if (c->is_adam)
		assert_true(fabs(result_element(&c->second, i) - r.second) <= 4 * STEPS * unit);
	if (c->task.computed)
		assert_true(result_element(&c->computed, i) ==
			    rounded_to(c->task.type, result_element(&c->weights, i)));
}

static void check_updates(bool is_adam, uint32_t count, uint32_t offset, const enum element *copy)
{
	struct fixture fixture;
	struct update_case c = {.is_adam = is_adam};
	begin_updates(&fixture, &c, count, offset, copy);
	run_twice(&fixture, run_updates, &c);
	for (size_t i = 0; i < count; i++)
		check_element(&c, i);
	assert_unchanged(c.gradients.buffer);
	assert_unchanged(c.skip);
	assert_int_equal(get_count(c.step), is_adam ? BEFORE + STEPS : BEFORE);
	if (!is_adam)
		assert_unchanged(c.second.buffer);
	if (!copy)
		assert_unchanged(c.computed.buffer);
	assert_gaps_untouched(&c.weights);
	assert_gaps_untouched(&c.computed);
	fixture_end(&fixture);
}

static void test_updates(void **state)
{
	(void)state;
	static const uint32_t counts[] = {1, 3, 5, 1024, 4099};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		for (int adam = 0; adam < 2; adam++) {
			check_updates(adam, counts[i], 0, NULL);
			check_updates(adam, counts[i], 1, &kernel_types[i % TYPES]);
			for (size_t t = 0; t < TYPES; t++)
				check_updates(adam, counts[i], 0, &kernel_types[t]);
		}
}

/* Weights as workloads/backend/network.c leaves them. */
static void compare_with_host(bool is_adam)
{
	enum { COUNT = 1000 };
	struct fixture fixture;
	struct update_case c = {.is_adam = is_adam};
	begin_updates(&fixture, &c, COUNT, 0, NULL);
	run_twice(&fixture, run_updates, &c);
	static float weights[COUNT], gradients[COUNT], first[COUNT], second[COUNT];
	memcpy(weights, c.weights.buffer->initial, sizeof weights);
	memcpy(first, c.first.buffer->initial, sizeof first);
	memcpy(second, c.second.buffer->initial, sizeof second);
	if (!is_adam)
		memcpy(gradients, first, sizeof gradients); /* the velocity */
	struct optimizer host = {.rule = is_adam ? STEP_OPTIMIZER_ADAM : STEP_OPTIMIZER_SGD,
		.learning_rate = RATE,
		.threads = 1,
		.steps = BEFORE};
	for (unsigned step = 0; step < STEPS; step++) {
		for (size_t i = 0; i < COUNT; i++)
			gradients[i] = optimizer_carry(&host) * gradients[i] +
				       (float)initial_element(&c.gradients, i) * FACTOR;
		optimizer_begin(&host);
		optimizer_update(
			&host, &(struct parameters){weights, gradients, first, second, COUNT});
	}
	for (size_t i = 0; i < COUNT; i++)
		assert_true(fabs((double)weights[i] - result_element(&c.weights, i)) < 1e-6);
	fixture_end(&fixture);
}

static void test_agrees_with_the_host(void **state)
{
	(void)state;
	compare_with_host(false);
	compare_with_host(true);
}

/* The corrections that the device computes are those of the host, from the first step to where they are 1: with a moment
 * of 1 and nothing else, the update is their ratio. */
static void check_corrections(uint32_t done)
{
	struct fixture fixture;
	struct update_case c = {.is_adam = true};
	begin_updates(&fixture, &c, 1, 0, NULL);
	put_count(c.step, done);
	set_initial(&c.weights, 0, 0);
	set_initial(&c.gradients, 0, 0);
	set_initial(&c.first, 0, 1);
	set_initial(&c.second, 0, 1);
	run_once(&fixture, run_updates, &c);
	for (size_t i = 0; i < fixture.count; i++)
		fetch(&fixture.buffers[i], fixture.buffers[i].result);
	struct reference r = {0, 1, 1, 0};
	for (unsigned step = 0; step < STEPS; step++)
		step_reference(&c, &r, 0, done + step);
	assert_true(fabs(result_element(&c.weights, 0) - r.weight) < 2e-6 * fabs(r.weight));
	fixture_end(&fixture);
}

static void test_corrections(void **state)
{
	(void)state;
	static const uint32_t steps[] = {0, 1, 2, 10, 100, 1000, 10000, 1000000};
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		check_corrections(steps[i]);
}

static void check_skip(bool is_adam)
{
	struct fixture fixture;
	struct update_case c = {.is_adam = is_adam};
	begin_updates(&fixture, &c, 1000, 0, &kernel_types[1]);
	put_count(c.skip, 7);
	run_twice(&fixture, run_updates, &c);
	for (size_t i = 0; i < fixture.count; i++)
		assert_unchanged(&fixture.buffers[i]);
	fixture_end(&fixture);
}

static void test_skipped_updates_change_nothing(void **state)
{
	(void)state;
	check_skip(false);
	check_skip(true);
}

static void test_empty_updates_are_refused(void **state)
{
	(void)state;
	float data[4] = {0};
	struct optimizer_task task = {.weights = data, .gradients = data, .velocity = data};
	assert_int_equal(kernel_sgd(NULL, &task), cudaErrorInvalidValue);
	task.count = 4;
	assert_int_equal(kernel_adam(NULL, &task), cudaErrorInvalidValue); /* no moments */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_updates),
		cmocka_unit_test(test_agrees_with_the_host),
		cmocka_unit_test(test_corrections),
		cmocka_unit_test(test_skipped_updates_change_nothing),
		cmocka_unit_test(test_empty_updates_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
