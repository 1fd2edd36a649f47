/* Charts of what was foretold, fitted and counted: predicted against measured, scaling, roofline. */
#include "charts_fixture.h"

#include "harness/analyze/point_model.h"

/* --- predicted and measured ------------------------------------------------------------------------------------ */

static void predictions_keep_their_kinds_apart(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct verification v = {.throughput = 600};
	struct diagnosis replayed = {.modelled = true, .replayed = 490};
	struct diagnosis untold = {.modelled = false, .replayed = 490};
	swept_verify(&v, 1.94, 1.95);
	swept_verify(&v, 1.0, 1.4);
	swept_verify(&v, NAN, 1.2);
	verification_weigh(&v);
	swept_open(&swept, swept_axes);
	swept.diagnoses[0] = &replayed;
	swept.diagnoses[1] = &untold;
	struct chart_input input = swept_input(&swept);
	input.verification = &v;
	build_chart(&chart_predicted, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), 2 + 1);
	const json_t *row = row_at(&chart, 0);
	assert_string_equal(text_in(row, "kind"), "experiment");
	assert_near(number_in(row, "predicted"), 1.94 * 600);
	assert_near(number_in(row, "predicted_high"), 1.94 * 1.03 * 600);
	assert_near(number_in(row, "measured"), v.experiments[0].measured * 600);
	assert_near(number_in(row, "measured_low"), v.experiments[0].measured_90.low * 600);
	assert_string_equal(text_in(row, "outcome"), "confirmed");
	assert_string_equal(text_in(row_at(&chart, 1), "outcome"), "failed");
	row = find_row(&chart, "kind", "model fit", NULL, 0);
	assert_non_null(row);
	assert_near(number_in(row, "predicted"), 490);
	assert_near(number_in(row, "measured"), 500);
	assert_near(number_in(row, "error"), 500.0 / 490 - 1);
	expect_text(&chart,
		"Of 2 experiments, predicted before they ran as ratios to their baseline, 1 is confirmed, 1 failed and 0 are unclear");
	expect_text(&chart, "The model is fitted to 1 point");
	chart_release(&chart);
	swept_close(&swept);
}

static void errors_of_nothing_stand_at_zero(void **state)
{
	(void)state;
	struct swept swept;
	struct diagnosis replayed = {.modelled = true, .replayed = 500 * (1 + 1e-7)};
	swept_open(&swept, swept_axes);
	swept.diagnoses[0] = &replayed;
	const struct chart_input input = swept_input(&swept);
	struct chart chart;
	build_chart(&chart_predicted, &input, &chart);
	assert_near(param_of(&chart, "error_most"), 0.01);
	chart_release(&chart);
	replayed.replayed = 500 * 1.02;
	build_chart(&chart_predicted, &input, &chart);
	assert_near(param_of(&chart, "error_most"), 1 - 1 / 1.02);
	chart_release(&chart);
	swept_close(&swept);
}

static void nothing_predicted_is_said(void **state)
{
	(void)state;
	struct swept swept;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	expect_why_not(&chart_predicted, &input, "Nothing was both predicted and measured");
	swept_close(&swept);
}

/* --- scaling -------------------------------------------------------------------------------------------------- */

static void the_fitted_curve_is_the_law(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	size_t i;
	const json_t *value;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_scaling, &input, &chart);
	const json_t *curve = dataset_of(&chart, "curve");
	assert_true(json_array_size(curve) > 10);
	json_array_foreach(curve, i, value)
	{
		assert_true(
			fabs(number_in(value, "value") / law(number_in(value, "x")) - 1) < 2e-4);
		assert_true(number_in(value, "low") <= number_in(value, "value") * 1.0001);
		assert_true(number_in(value, "high") >= number_in(value, "value") * 0.9999);
	}
	for (size_t k = 0; k < SWEPT_WORKERS; k++) {
		const double n = (double)(1 << k);
		const json_t *row = find_row(&chart, "line", "capacity of decode", "n", n);
		assert_non_null(row);
		assert_near(number_in(row, "value"), law(n));
		assert_true(fabs(number_in(row, "fit") / law(n) - 1) < 2e-4);
		row = find_row(
			&chart, "line", "throughput, other keys as at the best point", "n", n);
		assert_non_null(row);
		assert_near(number_in(row, "value"), fmin(law(n), 1500) * 1.01);
		assert_non_null(strstr(text_in(row, "settings"), "prefetch.depth=2"));
	}
	expect_text(&chart, "From 1 to 8 decode.workers");
	expect_text(&chart, "gives 500 samples/s for one, contention 0.050, coherency 0.0020");
	expect_text(&chart, "Measured: doubling from 4 gains less than 5 %");
	chart_release(&chart);
	swept_close(&swept);
}

static void few_numbers_are_not_fitted(void **state)
{
	(void)state;
	static const char *const axes[] = {"sweep.decode.workers=1,2,4", NULL};
	struct swept swept;
	struct chart chart;
	swept_open(&swept, axes);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_scaling, &input, &chart);
	assert_int_equal(json_array_size(dataset_of(&chart, "curve")), 0);
	expect_text(&chart, "No law is fitted");
	chart_release(&chart);
	swept.report.points[0]->status = POINT_FAILED;
	swept.report.points[1]->median = NAN;
	expect_why_not(&chart_scaling, &input, "Only one number of decode.workers");
	swept_close(&swept);
}

/* Of other workers, the law is the throughput's. */
static void reader_threads_scale_too(void **state)
{
	(void)state;
	static const char *const axes[] = {"sweep.read.threads=1,2,4,8", NULL};
	struct swept swept;
	struct chart chart;
	swept_open(&swept, axes);
	for (size_t i = 0; i < SWEPT_WORKERS; i++)
		swept.report.points[i]->median = law((double)(1 << i));
	swept.report.best = 3;
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_scaling, &input, &chart);
	const json_t *row =
		find_row(&chart, "line", "throughput, other keys as at the best point", "n", 4);
	assert_non_null(row);
	assert_true(fabs(number_in(row, "fit") / law(4) - 1) < 2e-4);
	expect_text(&chart, "fitted to the throughput");
	expect_text(&chart, "read.threads");
	chart_release(&chart);
	swept_close(&swept);
}

static void without_a_sweep_the_model_predicts(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct diagnosis diagnosis = {.modelled = true, .knee = {10, 1450, 1500}};
	swept_open(&swept, swept_nothing);
	const struct chart_input input = swept_input(&swept);
	expect_why_not(&chart_scaling, &input, "No number of workers was swept");
	swept.diagnoses[0] = &diagnosis;
	build_chart(&chart_scaling, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), 3);
	const json_t *row = find_row(&chart, "line", "throughput, predicted", "n", 20);
	assert_non_null(row);
	assert_near(number_in(row, "value"), 1500);
	expect_text(&chart, "Predicted from their service times: 10 would give 1,450 samples/s");
	chart_release(&chart);
	swept_close(&swept);
}

/* --- roofline --------------------------------------------------------------------------------------------------- */

/* 3 inputs, 4 hidden, attention with two heads of 5 tokens, and the step's time is 1 ms. */
static void small_model(struct swept *swept)
{
	struct step_info *step = &swept->record.step;
	swept_open(swept, swept_nothing);
	*step = (struct step_info){.backend = "openblas", .model = "toy", .product_count = 2};
	step->products[0] = (struct step_product){
		.name = "in", .m = 1, .n = 4, .k = 3, .count = 1, .weights = true, .first = true};
	step->products[1] = (struct step_product){
		.name = "scores", .m = 5, .n = 5, .k = 2, .count = 2, .weights = false};
	histogram_add(&swept->report.points[0]->stages[2].service, 1000000, 10);
}

/* With 64 samples: in is a product of 64 x 4 x 3, forward and for its weights; scores are 128 of 5 x 5 x 2, three times.
 *   FLOP   2 * 2*64*4*3 = 3072,  384 * 2*5*5*2 = 38400
 *   bytes  2 * 4*(64*3 + 3*4 + 64*4) = 3680,  384 * 4*(10 + 10 + 25) = 69120 */
static const double TOY_FLOP = 3072 + 38400, TOY_BYTES = 3680 + 69120;

static void compulsory_traffic_is_counted_by_hand(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	small_model(&swept);
	swept.record.has_ceilings = true;
	ceilings_init(&swept.record.ceilings);
	swept.record.ceilings.gemms[0] =
		(struct gemm_ceiling){.threads = 1, .flops = 1e9, .is_best = true};
	swept.record.ceilings.gemm_count = 1;
	swept.record.ceilings.memory_bytes_per_s_one = 1e8;
	swept.record.ceilings.memory_bytes_per_s_all = 9e8;
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_roofline, &input, &chart);
	const json_t *row = find_row(&chart, "what", "step", NULL, 0);
	assert_non_null(row);
	assert_near(number_in(row, "gflop"), TOY_FLOP / 1e9);
	assert_near(number_in(row, "bytes"), TOY_BYTES);
	assert_near(number_in(row, "intensity"), TOY_FLOP / TOY_BYTES);
	const double reached = TOY_FLOP / 1e-3 / 1e9;
	const double roof = 1e8 * TOY_FLOP / TOY_BYTES / 1e9; /* of the memory: 0.057 < 1 */
	assert_true(fabs(number_in(row, "gflops") / reached - 1) < 1.0 / 32);
	assert_near(number_in(row, "roof"), roof);
	assert_near(number_in(row, "share"), number_in(row, "gflops") / roof);
	row = find_row(&chart, "what", "scores", NULL, 0);
	assert_near(number_in(row, "bytes"), 69120);
	assert_near(number_in(row, "count"), 384);
	row = find_row(&chart, "what", "in", NULL, 0);
	assert_near(number_in(row, "bytes"), 3680);
	assert_near(number_in(row, "count"), 2);
	expect_text(&chart, "that its memory allows there");
	chart_release(&chart);
	swept_close(&swept);
}

static void a_device_has_its_published_peak(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	small_model(&swept);
	struct point_summary *p = swept.report.points[0];
	p->device_count = 1;
	device_measurement_init(&p->devices[0].all);
	(void)snprintf(p->devices[0].all.name, sizeof p->devices[0].all.name, "NVIDIA H200");
	(void)snprintf(p->devices[0].all.precision, NAME_BYTES, "bf16");
	p->devices[0].all.achieved_flops = 4e14;
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_roofline, &input, &chart);
	const json_t *row = find_row(&chart, "what", "step", NULL, 0);
	assert_near(number_in(row, "bytes"), TOY_BYTES / 2);
	assert_near(number_in(row, "gflops"), 4e5);
	assert_near(number_in(row, "roof"), 989500);
	expect_text(&chart, "NVIDIA H200 data sheet 2024");
	expect_text(&chart, "was not probed");
	chart_release(&chart);
	swept_close(&swept);
}

static void roofline_says_why_not(void **state)
{
	(void)state;
	static const char *const models[] = {"sweep.step.model=mlp,resnet50", NULL};
	struct swept swept;
	struct chart chart;
	small_model(&swept);
	struct chart_input input = swept_input(&swept);
	build_chart(&chart_roofline, &input, &chart);
	expect_text(&chart, "no roof is known");
	chart_release(&chart);
	swept.record.step.emulated = true;
	expect_why_not(&chart_roofline, &input, "emulated: its time is published, not computed");
	swept.record.step.emulated = false;
	swept.record.step.product_count = 0;
	expect_why_not(&chart_roofline, &input, "are unknown to this result");
	swept.report.points[0]->facts.step_null = true;
	expect_why_not(&chart_roofline, &input, "computes nothing");
	swept_close(&swept);
	swept_open(&swept, models);
	swept.record.step.emulated = false;
	swept.record.step.product_count = 1;
	input = swept_input(&swept);
	input.point = 1;
	expect_why_not(&chart_roofline, &input, "point 1 has another");
	swept_close(&swept);
}

/* --- the map and the ladder ---------------------------------------------------------------------------- */

/* The second depth is worth 1 %, less than counts: the best point is there, and is not worth its depth. */
static void a_point_is_marked_for_all_that_it_is(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_map, &input, &chart);
	static const char *const marks[SWEPT_POINTS] = {
		"frontier", "", "frontier", "", "knee, frontier", "best", "", ""};
	for (size_t i = 0; i < SWEPT_POINTS; i++)
		assert_string_equal(text_in(row_at(&chart, i), "mark"), marks[i]);
	chart_release(&chart);
	swept_close(&swept);
}

/* Beside a ring that is close the label gives way; one that is far off does not draw it along. */
static void labels_of_the_ladder_keep_clear_of_rings(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	const double capacity = swept.report.points[swept.report.best]->stages[1].capacity;
	struct stage_limit *limits = swept.record.limits;
	limits[0] = (struct stage_limit){.stage = "decode", .how = "alone: 4 workers, from memory"};
	limits[1] = (struct stage_limit){.stage = "read", .capacity = 40000, .how = "alone"};
	swept.record.limit_count = 2;
	for (int close = 0; close < 2; close++) {
		limits[0].capacity = capacity * (close ? 1.02 : 3);
		build_chart(&chart_ladder, &input, &chart);
		const json_t *row = NULL;
		for (size_t i = 0; !row && i < json_array_size(chart.table.rows); i++)
			if (strcmp(text_in(row_at(&chart, i), "name"), "decode") == 0)
				row = row_at(&chart, i);
		assert_non_null(row);
		assert_near(number_in(row, "label_x"), close ? limits[0].capacity : capacity);
		chart_release(&chart);
	}
	swept_close(&swept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_keep_their_kinds_apart),
		cmocka_unit_test(errors_of_nothing_stand_at_zero),
		cmocka_unit_test(nothing_predicted_is_said),
		cmocka_unit_test(the_fitted_curve_is_the_law),
		cmocka_unit_test(few_numbers_are_not_fitted),
		cmocka_unit_test(reader_threads_scale_too),
		cmocka_unit_test(without_a_sweep_the_model_predicts),
		cmocka_unit_test(compulsory_traffic_is_counted_by_hand),
		cmocka_unit_test(a_device_has_its_published_peak),
		cmocka_unit_test(roofline_says_why_not),
		cmocka_unit_test(a_point_is_marked_for_all_that_it_is),
		cmocka_unit_test(labels_of_the_ladder_keep_clear_of_rings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
