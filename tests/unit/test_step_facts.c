/* What is saved of a step's model says how many FLOPs it trains with: the same as the model's own count. */
#include "harness/command/step_facts.h"

#include "workloads/model/emulated_steps.h"
#include "workloads/model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void use(struct config *config, const char *assignment)
{
	struct error err = {0};
	assert_int_equal(config_set(config, assignment, &err), 0);
}

/* Of one sample: forward and twice backward, but for the gradient of the data. */
static double training_flops(const struct step_info *step)
{
	double flops = 0;
	for (size_t i = 0; i < step->product_count; i++) {
		const struct step_product *product = &step->products[i];
		const double one = 2.0 * product->m * product->n * product->k;
		flops += one * (3.0 * product->count - (product->first ? 1 : 0));
	}
	return flops;
}

static void products_have_the_models_flops(void **state)
{
	(void)state;
	for (const struct model *const *model = model_list; *model; model++) {
		struct config config;
		struct step_info step = {0};
		char assignment[128];
		const struct model_shape shape = {3 * 40 * 40, 17, 0};
		config_init(&config);
		(void)snprintf(assignment, sizeof assignment, "step.model=%s", (*model)->name);
		use(&config, assignment);
		use(&config, "augment.size=40");
		step_facts_products(&config, shape.class_count, &step);
		assert_true(step.product_count > 0 && step.product_count < STEP_PRODUCTS_MAX);
		const double expected = model_training_flops_at(*model, shape);
		assert_true(fabs(training_flops(&step) / expected - 1) < 1e-12);
		for (size_t i = 0; i < step.product_count; i++)
			assert_true(step.products[i].n > 0 && step.products[i].k > 0);
		config_release(&config);
	}
}

/* Bytes of a sample are no elements of it. */
static void samples_of_bytes_have_as_many_elements(void **state)
{
	(void)state;
	struct config config;
	struct step_info floats = {0};
	struct step_info bytes = {0};
	config_init(&config);
	use(&config, "step.model=mlp");
	use(&config, "augment.size=40");
	step_facts_products(&config, 10, &floats);
	use(&config, "augment.type=uint8");
	step_facts_products(&config, 10, &bytes);
	assert_int_equal(floats.products[0].k, 3 * 40 * 40);
	assert_int_equal(bytes.products[0].k, 3 * 40 * 40);
	config_release(&config);
}

static void a_null_step_and_an_unknown_model_have_none(void **state)
{
	(void)state;
	struct config config;
	struct step_info step = {0};
	config_init(&config);
	use(&config, "step.backend=null");
	step_facts_products(&config, 10, &step);
	assert_int_equal(step.product_count, 0);
	use(&config, "step.backend=emulated");
	use(&config, "step.model=unet3d");
	step_facts_products(&config, 10, &step);
	assert_int_equal(step.product_count, 0);
	config_release(&config);
}

/* A record's emulated step is predicted as such on a node that would take another backend. */
static void a_recorded_step_is_not_this_nodes(void **state)
{
	(void)state;
	struct config config;
	config_init(&config);
	use(&config, "step.backend=emulated");
	use(&config, "step.device=h100");
	use(&config, "step.model=resnet50");
	const double here = step_facts_time(&config, 64);
	assert_true(here > 0);
	use(&config, "step.backend=null");
	assert_true(isnan(step_facts_time(&config, 64)));
	assert_true(fabs(emulated_step_ns(&config, 64) - here) < 1e-6 * here);
	use(&config, "step.precision=bf16"); /* of a real device only */
	assert_true(fabs(emulated_step_ns(&config, 64) - here) < 1e-6 * here);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_have_the_models_flops),
		cmocka_unit_test(samples_of_bytes_have_as_many_elements),
		cmocka_unit_test(a_null_step_and_an_unknown_model_have_none),
		cmocka_unit_test(a_recorded_step_is_not_this_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
