/* Drawing crops and flips. */
#include "workloads/image/augment.h"

#include "harness/base/rng.h"

#include <math.h>

enum {
	CROP_TRIES = 10,
	STREAM_AUGMENT = 0x696d67, /* apart from other uses of the sample's seed */
};

void augment_read_options(struct augment_options *options, const struct config *config)
{
	*options = (struct augment_options){
		.crop = (enum augment_crop)config_integer(config, KEY_AUGMENT_CROP),
		.size = (uint32_t)config_integer(config, KEY_AUGMENT_SIZE),
		.scale_min = config_real(config, KEY_AUGMENT_SCALE_MIN),
		.scale_max = config_real(config, KEY_AUGMENT_SCALE_MAX),
		.ratio_min = config_real(config, KEY_AUGMENT_RATIO_MIN),
		.ratio_max = config_real(config, KEY_AUGMENT_RATIO_MAX),
		.flip = config_real(config, KEY_AUGMENT_FLIP),
	};
}

static double uniform_between(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_uniform(rng);
}

static struct region centred(
	uint32_t width, uint32_t height, uint32_t crop_width, uint32_t crop_height)
{
	return (struct region){
		.x = (width - crop_width) / 2,
		.y = (height - crop_height) / 2,
		.width = crop_width,
		.height = crop_height,
	};
}

/* The nearest whole number of pixels, at least one and at most `most`. */
static uint32_t clamp_pixels(double value, uint32_t most)
{
	if (value < 1)
		return 1;
	return value > most ? most : (uint32_t)nearbyint(value);
}

static struct region fall_back(
	const struct augment_options *options, uint32_t width, uint32_t height)
{
	const double ratio = (double)width / height;
	if (ratio < options->ratio_min)
		return centred(
			width, height, width, clamp_pixels(width / options->ratio_min, height));
	if (ratio > options->ratio_max)
		return centred(
			width, height, clamp_pixels(height * options->ratio_max, width), height);
	return (struct region){.width = width, .height = height};
}

static struct region draw_crop(
	const struct augment_options *options, uint32_t width, uint32_t height, struct rng *rng)
{
	const double area = (double)width * height;
	const double log_min = log(options->ratio_min);
	const double log_max = log(options->ratio_max);
	for (int try = 0; try < CROP_TRIES; try++) {
		const double target =
			area * uniform_between(rng, options->scale_min, options->scale_max);
		const double ratio = exp(uniform_between(rng, log_min, log_max));
		const double crop_width = nearbyint(sqrt(target * ratio));
		const double crop_height = nearbyint(sqrt(target / ratio));
		if (crop_width < 1 || crop_width > width || crop_height < 1 || crop_height > height)
			continue;
		struct region crop = {
			.width = (uint32_t)crop_width, .height = (uint32_t)crop_height};
		crop.y = (uint32_t)rng_below(rng, (uint64_t)(height - crop.height) + 1);
		crop.x = (uint32_t)rng_below(rng, (uint64_t)(width - crop.width) + 1);
		return crop;
	}
	return fall_back(options, width, height);
}

void augment_choose(const struct augment_options *options, uint32_t width, uint32_t height,
	uint64_t seed, struct augment_choice *choice)
{
	struct rng rng;
	if (options->flip > 0 || options->crop == AUGMENT_CROP_RANDOM)
		rng_init(&rng, seed, STREAM_AUGMENT);
	const uint32_t edge = width < height ? width : height;
	switch (options->crop) {
	case AUGMENT_CROP_RANDOM:
		choice->crop = draw_crop(options, width, height, &rng);
		break;
	case AUGMENT_CROP_CENTER:
		choice->crop = centred(width, height, edge, edge);
		break;
	case AUGMENT_CROP_NONE:
		choice->crop = (struct region){.width = width, .height = height};
		break;
	}
	choice->flip = options->flip > 0 && rng_uniform(&rng) < options->flip;
}
