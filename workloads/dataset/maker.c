/* Rendering and encoding one picture, and the detail that gives files of the size that is asked
 * for. */
#include "workloads/dataset/maker.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "workloads/dataset/threads.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

int maker_open(struct maker *maker, const struct recipe *recipe, struct error *err)
{
	*maker = (struct maker){0};
	return recipe->ops ? 0 : encoder_open(&maker->encoder, &recipe->encode, err);
}

void maker_close(struct maker *maker)
{
	encoder_close(maker->encoder);
	free(maker->planes);
	free(maker->rgb);
	free(maker->bytes);
	*maker = (struct maker){0};
}

static int grow(uint8_t **memory, size_t *room, size_t wanted, struct error *err)
{
	if (wanted <= *room)
		return 0;
	free(*memory);
	*room = 0;
	*memory = malloc(wanted);
	if (!*memory)
		return error_set(err, -ENOMEM, "no memory for a sample of %zu bytes", wanted);
	*room = wanted;
	return 0;
}

int maker_grow(struct maker *maker, size_t room, struct error *err)
{
	return grow(&maker->bytes, &maker->bytes_room, room, err);
}

static int maker_make_other(struct maker *maker, const struct recipe *recipe, uint64_t id,
	const uint8_t **bytes, size_t *size, struct error *err)
{
	const uint64_t start = clock_thread_cpu_ns();
	const int code = recipe->ops->make(maker, recipe, id, err);
	maker->cpu_ns += clock_thread_cpu_ns() - start;
	*bytes = maker->bytes;
	*size = maker->size;
	return code;
}

/* Draws a picture and encodes it by the encoder that is open. */
static int maker_render(struct maker *maker, uint64_t id, struct picture_size pixels,
	uint32_t detail, const uint8_t **bytes, size_t *size, struct error *err)
{
	const bool direct = encoder_takes_planes(&maker->encoder->options);
	int code = grow(&maker->planes, &maker->planes_room, picture_planes_bytes(pixels), err);
	if (!code && !direct)
		code = grow(&maker->rgb, &maker->rgb_room, (size_t)pixels.width * pixels.height * 3,
			err);
	if (code)
		return code;
	const struct picture_planes planes = picture_planes_place(pixels, maker->planes);
	picture_render(maker->atlas, id, pixels, detail, &planes);
	if (!direct)
		picture_to_rgb(&planes, pixels, maker->rgb);
	const uint64_t encoding = clock_thread_cpu_ns();
	code = direct ? encoder_encode_planes(maker->encoder, &planes, pixels.width, pixels.height,
				bytes, size, err)
		      : encoder_encode(maker->encoder, maker->rgb, pixels.width, pixels.height,
				bytes, size, err);
	maker->encode_cpu_ns += clock_thread_cpu_ns() - encoding;
	return code;
}

int maker_draw(struct maker *maker, const struct encode_options *options, uint64_t id,
	struct picture_size pixels, uint32_t detail, const uint8_t **bytes, size_t *size,
	struct error *err)
{
	int code = 0;
	/* libjpeg keeps the tables that it made for a progressive picture, and would take them for others. */
	if (maker->encoder &&
		(maker->encoder->options.format != options->format ||
			maker->encoder->options.progressive != options->progressive)) {
		encoder_close(maker->encoder);
		maker->encoder = NULL;
	}
	if (!maker->encoder)
		code = encoder_open(&maker->encoder, options, err);
	if (code)
		return code;
	maker->encoder->options = *options;
	return maker_render(maker, id, pixels, detail, bytes, size, err);
}

int maker_make(struct maker *maker, const struct recipe *recipe, const struct picture_atlas *atlas,
	uint64_t id, uint32_t detail, const uint8_t **bytes, size_t *size, struct error *err)
{
	maker->atlas = atlas;
	if (recipe->ops)
		return maker_make_other(maker, recipe, id, bytes, size, err);
	const uint64_t start = clock_thread_cpu_ns();
	const int code = maker_render(maker, id, recipe_size(recipe, id), detail, bytes, size, err);
	maker->cpu_ns += clock_thread_cpu_ns() - start;
	return code;
}

/* ---- calibration --------------------------------------------------------------------------
 *
 * Finds the detail that gives the asked mean file size: roughly on a few pictures, then by a step
 * or two on as many as the scatter of sizes calls for.  The mean over all pictures is estimated as
 * (bytes per pixel of the subset) x (mean pixels of all), which takes the scatter of picture sizes
 * out. */

enum {
	COARSE_PICTURES = 24,
	FINE_STEPS = 4,
	REFERENCE_PIXELS = 500 * 375,
	BUDGET_PICTURES = 8192, /* of the reference size, for one fine estimate */
};

/* Standard error of the mean that the subset may leave open: a quarter of the 2 % that users are
 * promised. */
static const double STANDARD_ERROR = 0.005;

/* A last step that corrects less than this is trusted without another look: its slope is known. */
static const double TRUSTED_STEP = 0.02;

/* An uncompressed file's size follows from its pixels: dataset.bytes can only agree with it. */
static const double FIXED_TOLERANCE = 0.02;

/* What a detail gives. */
struct point {
	uint32_t detail;
	double mean;    /* bytes of a file, over all pictures */
	double scatter; /* of bytes per pixel: deviation over mean */
};

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
	const int code = maker_make(&calibration->makers[worker], calibration->recipe,
		calibration->atlas, index, measure->detail, &bytes, &size, err);
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

/* From the sizes of the first `count` pictures. */
static void evaluate(
	const struct recipe *recipe, const uint64_t *bytes, uint64_t count, struct point *point)
{
	double sum = 0, squares = 0;
	const double pixels = pixels_of(recipe, count);
	for (uint64_t id = 0; id < count; id++)
		sum += (double)bytes[id];
	for (uint64_t id = 0; id < count; id++) {
		const struct picture_size size = recipe_size(recipe, id);
		const double share =
			(double)bytes[id] / ((double)size.width * size.height) * pixels / sum;
		squares += (share - 1) * (share - 1);
	}
	point->scatter = sqrt(squares / (double)count);
	point->mean = sum / pixels * pixels_of(recipe, recipe->samples) / (double)recipe->samples;
}

/* The first `count` pictures stand for all: detail and background go round evenly with the id. */
static int estimate(const struct calibration *calibration, uint64_t count, uint32_t detail,
	struct point *point, struct error *err)
{
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
	point->detail = detail;
	if (!code)
		evaluate(calibration->recipe, measure.bytes, count, point);
	free(measure.bytes);
	return code;
}

static uint64_t coarse_count(const struct recipe *recipe)
{
	return recipe->samples < COARSE_PICTURES ? recipe->samples : COARSE_PICTURES;
}

/* Pictures for the standard error, out of a finite number, within the budget. */
static uint64_t fine_count(const struct recipe *recipe, double scatter)
{
	const unsigned cost = encoder_of(recipe->encode.format)->cost;
	const double relative = STANDARD_ERROR / (scatter + 1e-9);
	double count = 1.0 / (relative * relative + 1.0 / (double)recipe->samples);
	double most = BUDGET_PICTURES * (double)REFERENCE_PIXELS /
		      ((double)recipe->width * recipe->height);
	most /= cost ? cost : 1;
	count = fmin(count + 1, most);
	const uint64_t least = coarse_count(recipe);
	return count < (double)least             ? least
	       : count > (double)recipe->samples ? recipe->samples
						 : (uint64_t)count;
}

/* Says what sizes can be had. */
static int calibrate_refuse(const struct calibration *calibration, struct error *err)
{
	struct point least, most;
	char low[UNITS_BYTES], high[UNITS_BYTES], asked[UNITS_BYTES];
	const uint64_t count = coarse_count(calibration->recipe);
	int code = estimate(calibration, count, 0, &least, err);
	if (!code)
		code = estimate(calibration, count, PICTURE_DETAIL_MAX, &most, err);
	if (code)
		return code;
	return error_set(err, -EINVAL,
		"dataset.bytes = %s cannot be met: at this size, format and quality files have %s to %s",
		units_format_size((double)calibration->recipe->bytes, asked),
		units_format_size(least.mean, low), units_format_size(most.mean, high));
}

/* Doubles the detail from natural until the target lies between *low and *high. */
static int bracket(const struct calibration *calibration, struct point *low, struct point *high,
	struct error *err)
{
	const uint64_t count = coarse_count(calibration->recipe);
	const double target = (double)calibration->recipe->bytes;
	int code = estimate(calibration, count, PICTURE_DETAIL_NATURAL, high, err);
	if (!code)
		*low = *high;
	if (!code && high->mean >= target)
		return estimate(calibration, count, 0, low, err);
	while (!code && high->mean < target && high->detail < PICTURE_DETAIL_MAX) {
		*low = *high;
		code = estimate(calibration, count, high->detail * 2, high, err);
	}
	return code;
}

static uint32_t clamp_detail(double detail)
{
	return detail < 0                    ? 0
	       : detail > PICTURE_DETAIL_MAX ? PICTURE_DETAIL_MAX
					     : (uint32_t)(detail + 0.5);
}

static double slope_of(const struct point *a, const struct point *b)
{
	return log(b->mean / a->mean) / log((b->detail + 1.0) / (a->detail + 1.0));
}

/* Where the line through both points, in logarithms, meets the target; well inside the interval. */
static uint32_t between(const struct point *low, const struct point *high, double target)
{
	enum { MARGIN = 8 }; /* at least an eighth of the interval from either end */
	const uint32_t width = high->detail - low->detail, margin = width / MARGIN + 1;
	const double meet =
		(low->detail + 1.0) * exp(log(target / low->mean) / slope_of(low, high)) - 1.0;
	const uint32_t least = low->detail + margin, most = high->detail - margin;
	if (!(meet > least) || least >= most)
		return least < high->detail ? least : low->detail + width / 2;
	return meet < most ? (uint32_t)meet : most;
}

/* Narrows the interval on the coarse subset. */
static int narrow(const struct calibration *calibration, struct point *low, struct point *high,
	struct error *err)
{
	enum { CLOSE_ENOUGH = 5 }; /* high - low <= low / 5 */
	const uint64_t count = coarse_count(calibration->recipe);
	const double target = (double)calibration->recipe->bytes;
	int code = 0;
	while (!code && high->detail - low->detail > 1 + low->detail / CLOSE_ENOUGH) {
		struct point middle;
		code = estimate(calibration, count, between(low, high, target), &middle, err);
		if (!code)
			*(middle.mean < target ? low : high) = middle;
	}
	return code;
}

/* Steps in (ln detail, ln bytes) on the fine subset, starting with the coarse subset's slope. */
static int refine(const struct calibration *calibration, const struct point *low,
	const struct point *high, uint32_t *detail, double *expected, struct error *err)
{
	const double target = (double)calibration->recipe->bytes;
	uint64_t count = fine_count(calibration->recipe, high->scatter);
	double slope = slope_of(low, high);
	struct point now = *high;
	int code = 0;
	*detail = clamp_detail((low->detail + 1.0) * exp(log(target / low->mean) / slope) - 1.0);
	for (int step = 0; !code && step < FINE_STEPS; step++) {
		const struct point before = now;
		code = estimate(calibration, count, *detail, &now, err);
		if (code)
			break;
		if (step > 0 && now.detail != before.detail)
			slope = slope_of(&before, &now);
		/* The coarse subset may have shown less scatter than there is. */
		const uint64_t wanted = fine_count(calibration->recipe, now.scatter);
		const bool enough = wanted <= count + count / 4;
		count = wanted > count ? wanted : count;
		const double miss = log(target / now.mean);
		if (!(slope > 0.01))
			break; /* flat: no detail does better */
		*detail = clamp_detail((now.detail + 1.0) * exp(miss / slope) - 1.0);
		*expected = target;
		if (enough && (*detail == now.detail || fabs(miss) < TRUSTED_STEP))
			return 0;
	}
	*detail = now.detail;
	*expected = now.mean;
	return code;
}

static int expect_natural(const struct calibration *calibration, uint32_t *detail, double *expected,
	struct error *err)
{
	struct point natural = {0};
	*detail = PICTURE_DETAIL_NATURAL;
	const int code =
		estimate(calibration, coarse_count(calibration->recipe), *detail, &natural, err);
	*expected = natural.mean;
	return code;
}

int calibrate(const struct calibration *calibration, uint32_t *detail, double *expected,
	struct error *err)
{
	const struct recipe *recipe = calibration->recipe;
	const double target = (double)recipe->bytes;
	if (encoder_of(recipe->encode.format)->is_uncompressed || recipe->bytes == 0) {
		const int code = expect_natural(calibration, detail, expected, err);
		if (code || recipe->bytes == 0 || fabs(*expected / target - 1) <= FIXED_TOLERANCE)
			return code;
		return error_set(err, -EINVAL,
			"dataset.bytes = %.0f, but %s files of these pictures have %.0f bytes: set it to 0",
			target, image_format_name(encoder_format(recipe->encode.format)),
			*expected);
	}
	struct point low, high;
	int code = bracket(calibration, &low, &high, err);
	if (!code && (low.mean > target || high.mean < target))
		return calibrate_refuse(calibration, err);
	if (!code)
		code = narrow(calibration, &low, &high, err);
	return code ? code : refine(calibration, &low, &high, detail, expected, err);
}
