/* The scaling of a sweep's decode stage: exact data give exact coefficients, and nothing is fitted where
 * the sweep varies what a sample costs. */
#include "harness/report/scaling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double LAMBDA = 500;
static const double SIGMA = 0.05;
static const double KAPPA = 0.002;

static double law(double n)
{
	return LAMBDA * n / (1 + SIGMA * (n - 1) + KAPPA * n * (n - 1));
}

struct case_sweep {
	struct record record;
	struct report report;
};

/* A sweep whose decode capacity follows the law. */
static void open_case(struct case_sweep *c, const char *const *axes)
{
	struct error err = {0};
	*c = (struct case_sweep){0};
	config_init(&c->record.config);
	for (size_t i = 0; axes[i]; i++)
		assert_int_equal(config_set(&c->record.config, axes[i], &err), 0);
	assert_int_equal(config_grid_open(&c->record.config, &c->record.grid, &err), 0);
	const size_t points = c->record.grid.points;
	c->report = (struct report){
		.record = &c->record, .points = calloc(points, sizeof *c->report.points)};
	assert_non_null(c->report.points);
	for (size_t i = 0; i < points; i++) {
		struct config config;
		struct point_summary *p = calloc(1, sizeof *p);
		assert_non_null(p);
		assert_int_equal(
			config_grid_point(&c->record.config, &c->record.grid, i, &config, &err), 0);
		p->stage_count = 1;
		(void)snprintf(p->stages[0].name, sizeof p->stages[0].name, "decode");
		p->stages[0].workers = (unsigned)config_integer(&config, KEY_DECODE_WORKERS);
		p->stages[0].capacity = law(p->stages[0].workers);
		c->report.points[i] = p;
		config_release(&config);
	}
}

static void close_case(struct case_sweep *c)
{
	for (size_t i = 0; i < c->record.grid.points; i++)
		free(c->report.points[i]);
	free(c->report.points);
	config_grid_close(&c->record.grid);
	config_release(&c->record.config);
}

static void exact_data_give_the_law(void **state)
{
	(void)state;
	static const char *const axes[] = {
		"sweep.decode.workers=1,2,4,8,16", "sweep.prefetch.depth=1,4", NULL};
	struct case_sweep c;
	struct scaling scaling;
	open_case(&c, axes);
	assert_true(scaling_of_report(&c.report, &scaling));
	assert_int_equal(scaling.points, 10);
	assert_int_equal(scaling.fewest, 1);
	assert_int_equal(scaling.most, 16);
	assert_true(fabs(scaling.fit.lambda - LAMBDA) < 1e-6 * LAMBDA);
	assert_true(fabs(scaling.fit.sigma - SIGMA) < 1e-6);
	assert_true(fabs(scaling.fit.kappa - KAPPA) < 1e-6);
	struct buffer text = {0};
	scaling_describe(&c.report, &text);
	assert_non_null(text.data);
	assert_non_null(strstr(text.data, "500 samples/s a worker"));
	assert_non_null(strstr(text.data, "sigma 0.050"));
	buffer_release(&text);
	json_t *json = scaling_to_json(&c.report);
	assert_true(json_is_object(json));
	assert_true(fabs(json_real_value(json_object_get(json, "kappa")) - KAPPA) < 1e-6);
	json_decref(json);
	close_case(&c);
}

static void nothing_is_fitted(const char *const *axes)
{
	struct case_sweep c;
	struct scaling scaling;
	struct buffer text = {0};
	open_case(&c, axes);
	assert_false(scaling_of_report(&c.report, &scaling));
	scaling_describe(&c.report, &text);
	assert_int_equal(text.size, 0);
	json_t *json = scaling_to_json(&c.report);
	assert_true(json_is_null(json));
	json_decref(json);
	close_case(&c);
}

static void too_few_or_unlike_points_are_left_alone(void **state)
{
	(void)state;
	static const char *const few[] = {"sweep.decode.workers=1,2,4", NULL};
	static const char *const unlike[] = {
		"sweep.decode.workers=1,2,4,8", "sweep.augment.size=64,224", NULL};
	nothing_is_fitted(few);
	nothing_is_fitted(unlike);
}

static void failed_points_do_not_count(void **state)
{
	(void)state;
	static const char *const axes[] = {"sweep.decode.workers=1,2,4,8", NULL};
	struct case_sweep c;
	struct scaling scaling;
	open_case(&c, axes);
	c.report.points[3]->status = POINT_FAILED;
	assert_false(scaling_of_report(&c.report, &scaling));
	close_case(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_data_give_the_law),
		cmocka_unit_test(too_few_or_unlike_points_are_left_alone),
		cmocka_unit_test(failed_points_do_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
