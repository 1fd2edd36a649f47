/* Forecasts by hand, and of a response surface with a stage that saturates. */
#include "harness/analyze/forecast.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 6, BATCHES = 5, DEPTHS = 2, POINTS = WORKERS * BATCHES * DEPTHS, DIMENSIONS = 3 };

struct world {
	double at[POINTS * DIMENSIONS];
	double truth[POINTS];
	double measured[POINTS];
	bool calibrated[POINTS];
	double claimed; /* of the predictor: half-width of its intervals, share */
	double bias;    /* in ln, of all that it predicts */
};

static const bool all_numbers[DIMENSIONS];

static struct forecast_space space_of(const struct world *world)
{
	return (struct forecast_space){.points = POINTS,
		.dimensions = DIMENSIONS,
		.at = world->at,
		.is_choice = all_numbers};
}

/* Workers scale until the step saturates; small batches and shallow queues lose a little. */
static double surface(double workers, double batch, double depth)
{
	const double decode = 300 * workers / (1 + 0.02 * (workers - 1));
	const double ideal = fmin(decode, 1800);
	return ideal * (1 - 0.1 / sqrt(batch)) * (1 - 0.02 / depth);
}

static void fill_world(struct world *world)
{
	*world = (struct world){.claimed = 0.02};
	for (size_t i = 0; i < POINTS; i++) {
		const double workers = exp2((double)(i / (BATCHES * DEPTHS)));
		const double batch = exp2(3 + (double)(i / DEPTHS % BATCHES));
		const double depth = exp2(2.0 * (double)(i % DEPTHS));
		world->at[i * DIMENSIONS] = log2(workers);
		world->at[i * DIMENSIONS + 1] = log2(batch);
		world->at[i * DIMENSIONS + 2] = log2(depth);
		world->truth[i] = surface(workers, batch, depth);
		world->measured[i] = NAN;
	}
}

/* Knows the surface, but for its bias. */
static int predict(
	void *context, size_t from, size_t to, struct forecast_guess *out, struct error *err)
{
	const struct world *world = context;
	(void)from;
	(void)err;
	out->throughput = world->truth[to] * exp(world->bias);
	out->interval.low = out->throughput * (1 - world->claimed);
	out->interval.high = out->throughput * (1 + world->claimed);
	return 0;
}

static struct forecast_input forecast_input_of(struct world *world)
{
	return (struct forecast_input){.space = space_of(world),
		.measured = world->measured,
		.calibrated = world->calibrated,
		.predict = predict,
		.context = world};
}

static int no_prediction(
	void *context, size_t from, size_t to, struct forecast_guess *out, struct error *err)
{
	(void)context;
	(void)from;
	(void)to;
	(void)out;
	return error_set(err, -ENODATA, "cannot tell: 3 samples, 6,400 needed");
}

/* Two calibrations, one octave and two away: weights 4/5 and 1/5, by hand. */
static int two_guesses(
	void *context, size_t from, size_t to, struct forecast_guess *out, struct error *err)
{
	(void)context;
	(void)to;
	(void)err;
	out->throughput = from == 0 ? 100 : 110;
	out->interval =
		(struct interval){out->throughput * exp(-0.02), out->throughput * exp(0.02)};
	return 0;
}

static void forecasts_by_hand(void **state)
{
	(void)state;
	const double at[] = {0, 3, 1};
	const double measured[] = {100, 110, NAN};
	const bool choice[] = {false};
	bool calibrated[] = {true, true, false};
	const struct forecast_input input = {
		.space = {.points = 3, .dimensions = 1, .at = at, .is_choice = choice},
		.measured = measured,
		.calibrated = calibrated,
		.predict = two_guesses};
	struct forecast forecast;
	forecast_point(&input, 1, 2, &forecast);
	const double gap = log(1.1);
	const double mean = log(100) + gap / 5;
	const double own = 0.02 / 1.6448536269514722;
	const double spread = 0.8 * gap / 5 * gap / 5 + 0.2 * gap * 4 / 5 * gap * 4 / 5;
	const double between = spread - 2 * 0.8 * 0.2 * own * own;
	const double half = 1.6448536269514722 * sqrt(own * own + between);
	assert_true(forecast.known);
	assert_int_equal(forecast.from_count, 2);
	assert_int_equal(forecast.from[0], 0);
	assert_true(fabs(forecast.throughput - exp(mean)) < 1e-9);
	assert_true(fabs(forecast.interval.low - exp(mean - half)) < 1e-9);
	assert_true(fabs(forecast.interval.high - exp(mean + half)) < 1e-9);
	assert_true(fabs(forecast.half_width - sinh(half)) < 1e-12);
	/* Each is predicted as what the other measured: off by 10 %, four times its claimed deviation. */
	struct forecast_errors errors;
	forecast_errors_find(&input, &errors);
	assert_int_equal(errors.count, 2);
	assert_true(fabs(errors.widening - sqrt((2 + 2 * gap / own * gap / own) / 4)) < 1e-9);
	assert_true(fabs(errors.worst - 0.1) < 1e-9);
}

static void no_calibration_says_why(void **state)
{
	(void)state;
	const double at[] = {0, 1};
	const double measured[] = {100, NAN};
	const bool choice[] = {false};
	bool calibrated[] = {true, false};
	struct forecast_input input = {
		.space = {.points = 2, .dimensions = 1, .at = at, .is_choice = choice},
		.measured = measured,
		.calibrated = calibrated,
		.predict = no_prediction};
	struct forecast_errors errors;
	struct forecast forecast;
	forecast_errors_find(&input, &errors);
	assert_int_equal(errors.count, 0);
	assert_true(errors.widening == 1);
	forecast_point(&input, errors.widening, 1, &forecast);
	assert_false(forecast.known);
	assert_true(isinf(forecast.half_width));
	assert_non_null(strstr(forecast.why, "6,400 needed"));
	calibrated[0] = false;
	forecast_point(&input, errors.widening, 1, &forecast);
	assert_non_null(strstr(forecast.why, "no measured point"));
}

static void choices_are_one_apart(void **state)
{
	(void)state;
	const double at[] = {0, 0, 0, 7, 3, 7};
	const bool choice[] = {false, true};
	const struct forecast_space space = {
		.points = 3, .dimensions = 2, .at = at, .is_choice = choice};
	assert_true(forecast_distance(&space, 0, 1) == 1);
	assert_true(forecast_distance(&space, 1, 2) == 3);
	assert_true(forecast_distance(&space, 0, 2) == sqrt(10));
}

/* A change is the difference between two replays: what the model misses of both is no loss, and one that misses the very
 * setting that it replays by half predicts nothing. */
static void a_change_is_between_replays(void **state)
{
	(void)state;
	struct world *world = malloc(sizeof *world);
	struct forecast forecast;
	struct forecast_errors errors;
	const size_t base = 0;
	const size_t deeper = 1; /* another prefetch depth: 1 % */
	const size_t workers = (size_t)BATCHES * DEPTHS;
	assert_non_null(world);
	fill_world(world);
	world->bias = log(0.8);
	world->measured[base] = world->truth[base];
	world->calibrated[base] = true;
	const struct forecast_input input = forecast_input_of(world);
	forecast_errors_find(&input, &errors);
	forecast_change(&input, errors.widening, base, deeper, &forecast);
	assert_true(forecast.known);
	assert_true(fabs(forecast.unchanged - 0.8 * world->measured[base]) < 1e-6);
	assert_true(fabs(forecast.throughput - world->truth[deeper]) < 1e-6);
	assert_true(forecast.interval.low < world->measured[base]);
	assert_true(forecast.interval.high > 1.2 * world->measured[base]);
	forecast_change(&input, errors.widening, base, workers, &forecast);
	assert_true(fabs(forecast.throughput - world->truth[workers]) < 1e-6);

	/* Of several calibrations that err differently, each is compared with itself. */
	for (size_t i = 2; i < 5; i++) {
		world->measured[i] = world->truth[i] * (i % 2 ? 0.3 : 3);
		world->calibrated[i] = true;
	}
	forecast_errors_find(&input, &errors);
	assert_true(errors.worst > 0.6);
	forecast_change(&input, errors.widening, base, deeper, &forecast);
	assert_true(forecast.known);
	assert_true(fabs(forecast.throughput - world->truth[deeper]) < 1e-6);
	assert_true(forecast.interval.low < world->measured[base] &&
		    forecast.interval.high > world->measured[base]);

	world->bias = log(0.29);
	forecast_change(&input, errors.widening, base, deeper, &forecast);
	assert_false(forecast.known);
	assert_non_null(strstr(forecast.why, "(-71 %)"));
	free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_is_between_replays),
		cmocka_unit_test(forecasts_by_hand),
		cmocka_unit_test(no_calibration_says_why),
		cmocka_unit_test(choices_are_one_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
