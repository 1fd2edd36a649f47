/* Finds the detail that gives the asked mean file size: bisection on a few pictures, then a few secant
 * steps on many.  The mean over all pictures is estimated as (bytes per pixel of the subset) x (mean
 * pixels of all), which takes the scatter of picture sizes out. */
#include "workloads/dataset/maker.h"
#include "workloads/dataset/team.h"

#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	COARSE_PICTURES = 48,
	FINE_PICTURES = 512,
	FINE_STEPS = 5,
	REFERENCE_PIXELS = 500 * 375,
};

/* Of the final estimate on the subset; what the subset leaves open comes on top. */
static const double FINE_TOLERANCE = 0.002;

/* A raw file's size follows from its pixels: dataset.bytes can only agree with it. */
static const double RAW_TOLERANCE = 0.02;

struct measure {
	const struct calibration *calibration;
	uint32_t detail;
	uint64_t *bytes; /* per picture of the subset */
};

static int measure_one(void *context, unsigned worker, uint64_t index, struct error *err)
{
	const struct measure *measure = context;
	const struct calibration *calibration = measure->calibration;
	const uint8_t *bytes;
	size_t size = 0;
	const int code = maker_make(&calibration->makers[worker], calibration->recipe, calibration->atlas,
		index, measure->detail, &bytes, &size, err);
	measure->bytes[index] = size;
	return code;
}

static double pixels_of(const struct recipe *recipe, uint64_t count)
{
	double pixels = 0;
	for (uint64_t id = 0; id < count; id++) {
		const struct picture_size size = recipe_size(recipe, id);
		pixels += (double)size.width * size.height;
	}
	return pixels;
}

/* The first `count` pictures stand for all: detail and background go round evenly with the id. */
static int estimate(const struct calibration *calibration, uint64_t count, uint32_t detail,
	double *mean, struct error *err)
{
	const struct recipe *recipe = calibration->recipe;
	struct measure measure = {.calibration = calibration, .detail = detail};
	measure.bytes = calloc(count, sizeof(*measure.bytes));
	if (!measure.bytes)
		return error_set(err, -ENOMEM, "no memory to calibrate");
	const struct team_job job = {
		.count = count,
		.item = measure_one,
		.context = &measure,
		.stop = calibration->stop,
		.threads = calibration->threads,
	};
	const int code = team_run(&job, err);
	double bytes = 0;
	for (uint64_t i = 0; i < count; i++)
		bytes += (double)measure.bytes[i];
	free(measure.bytes);
	if (!code)
		*mean = bytes / pixels_of(recipe, count) * pixels_of(recipe, recipe->samples) /
			(double)recipe->samples;
	return code;
}

/* A subset that costs about as much whatever the pictures' size and format. */
static uint64_t subset(const struct recipe *recipe, uint64_t pictures)
{
	enum { PNG_COST = 4 }; /* a PNG takes that many times longer, and varies less */
	const double pixels = (double)recipe->width * recipe->height;
	if (pixels > REFERENCE_PIXELS)
		pictures = (uint64_t)((double)pictures * REFERENCE_PIXELS / pixels);
	if (recipe->encode.format == DATASET_FORMAT_PNG)
		pictures /= PNG_COST;
	if (pictures < COARSE_PICTURES / 4)
		pictures = COARSE_PICTURES / 4;
	return pictures < recipe->samples ? pictures : recipe->samples;
}

/* One picture's mean for each end of the range, for the message. */
static int refuse(const struct calibration *calibration, struct error *err)
{
	double least, most;
	char low[UNITS_BYTES], high[UNITS_BYTES], asked[UNITS_BYTES];
	const uint64_t count = subset(calibration->recipe, COARSE_PICTURES);
	int code = estimate(calibration, count, 0, &least, err);
	if (!code)
		code = estimate(calibration, count, PICTURE_DETAIL_MAX, &most, err);
	if (code)
		return code;
	return error_set(err, -EINVAL,
		"dataset.bytes = %s cannot be met: at this size, format and quality files have %s to %s",
		units_format_size((double)calibration->recipe->bytes, asked),
		units_format_size(least, low), units_format_size(most, high));
}

/* Bisection on the coarse subset. *low ends just below the target, *high at or above it. */
static int bisect(const struct calibration *calibration, uint32_t *low, uint32_t *high, struct error *err)
{
	enum { CLOSE_ENOUGH = 32 }; /* of the interval: high - low < low / 32 */
	const double target = (double)calibration->recipe->bytes;
	const uint64_t count = subset(calibration->recipe, COARSE_PICTURES);
	*low = 0;
	*high = PICTURE_DETAIL_NATURAL;
	for (;;) {
		double mean;
		const int code = estimate(calibration, count, *high, &mean, err);
		if (code)
			return code;
		if (mean >= target)
			break;
		*low = *high;
		if (*high >= PICTURE_DETAIL_MAX)
			return 0;
		*high *= 2;
	}
	while (*high - *low > 1 + *low / CLOSE_ENOUGH) {
		const uint32_t middle = *low + (*high - *low) / 2;
		double mean;
		const int code = estimate(calibration, count, middle, &mean, err);
		if (code)
			return code;
		*(mean < target ? low : high) = middle;
	}
	return 0;
}

static uint32_t clamp_detail(double detail)
{
	return detail < 0 ? 0 : detail > PICTURE_DETAIL_MAX ? PICTURE_DETAIL_MAX : (uint32_t)(detail + 0.5);
}

/* Secant steps in (ln detail, ln bytes) on the fine subset, from two starting points. */
static int refine(const struct calibration *calibration, uint32_t from, uint32_t to, uint32_t *detail,
	double *expected, struct error *err)
{
	const double target = (double)calibration->recipe->bytes;
	const uint64_t count = subset(calibration->recipe, FINE_PICTURES);
	double before, now;
	if (from == to)
		from -= from > 0;
	int code = estimate(calibration, count, from, &before, err);
	if (!code)
		code = estimate(calibration, count, to, &now, err);
	for (int step = 0; !code && step < FINE_STEPS && fabs(now / target - 1) > FINE_TOLERANCE; step++) {
		const double slope = log(now / before) / log((to + 1.0) / (from + 1.0));
		if (!(slope > 0.01))
			break; /* flat: no detail does better */
		const double next = (to + 1.0) * exp(log(target / now) / slope) - 1.0;
		const uint32_t there = clamp_detail(fmin(fmax(next, to / 2.0), to * 2.0 + 2.0));
		if (there == to)
			break;
		from = to;
		before = now;
		to = there;
		code = estimate(calibration, count, to, &now, err);
	}
	*detail = to;
	*expected = now;
	return code;
}

static int expect_natural(
	const struct calibration *calibration, uint32_t *detail, double *expected, struct error *err)
{
	*detail = PICTURE_DETAIL_NATURAL;
	return estimate(
		calibration, subset(calibration->recipe, COARSE_PICTURES), *detail, expected, err);
}

int calibrate(const struct calibration *calibration, uint32_t *detail, double *expected, struct error *err)
{
	/* More than the fine subset can leave open: then the target is out of reach. */
	static const double out_of_reach = 0.05;
	const struct recipe *recipe = calibration->recipe;
	const double target = (double)recipe->bytes;
	if (recipe->encode.format == DATASET_FORMAT_RAW || recipe->bytes == 0) {
		const int code = expect_natural(calibration, detail, expected, err);
		if (code || recipe->bytes == 0 || fabs(*expected / target - 1) <= RAW_TOLERANCE)
			return code;
		return error_set(err, -EINVAL,
			"dataset.bytes = %.0f, but raw files of these pictures have %.0f bytes: set it to 0",
			target, *expected);
	}
	uint32_t low, high;
	int code = bisect(calibration, &low, &high, err);
	if (!code)
		code = refine(calibration, low, high, detail, expected, err);
	if (!code && fabs(*expected / target - 1) > out_of_reach)
		return refuse(calibration, err);
	return code;
}
