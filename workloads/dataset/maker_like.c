/* The recipe like: photographs of several kinds, whose formats, sizes and bytes are those of dataset.like.
 *
 * Kinds, sizes and bytes are not drawn at random, which a data set of a few thousand files would miss by per cents: the numbers of
 * the files go once around the kinds, each of which gets its share, and within a kind the quantiles of both distributions are
 * gone through evenly.  Each picture is drawn and encoded a few times, with the detail that its bytes ask for. */
#include "workloads/dataset/maker.h"

#include "harness/base/array.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
	LIKE_QUALITY = 90,  /* where it is not said */
	LIKE_PNG_LEVEL = 6, /* as everybody's encoders */
	LIKE_TRIES = 8,     /* of a detail; then the nearest is taken */
	LIKE_QUALITIES = 4, /* that are tried where no detail gives such bytes */
	LIKE_DETAIL_LESS = 32,
	LIKE_FRONT_LEAST = 160, /* bytes in front of any frame header */
	LIKE_SEGMENT_MAX = 65000,
	LIKE_SEGMENT_HEAD = 4,
};
static const double LIKE_CLOSE = 0.02;      /* of a file's bytes: errors of many files cancel out */
static const double LIKE_NS_PER_PIXEL = 15; /* all tries together, of a JPEG */
static const double LIKE_PROGRESSIVE_COST = 6;
static const double LIKE_GOLDEN = 0.6180339887498949;

/* ---- which file is what ----------------------------------------------------------------------- */

static uint64_t like_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* What a file is to be. */
struct like_wanted {
	const struct like_stratum *stratum;
	struct picture_size pixels;
	double bytes; /* of the picture, without what lies in front */
};

/* The place of a file in the order of the kinds. */
static uint64_t like_place(const struct recipe *recipe, uint64_t id)
{
	const uint64_t begin = rng_mix(recipe->seed, recipe->samples) % recipe->samples;
	return (id * recipe->like.stride + begin) % recipe->samples; /* both at most 1e9 */
}

static size_t like_kind(const struct recipe_like *like, uint64_t place)
{
	size_t kind = 0;
	while (kind + 1 < like->count && place >= like->first[kind + 1])
		kind++;
	return kind;
}

/* The normal quantile of 0 < p < 1, cut at LIKE_DEVIATIONS: Tukey's lambda, and two steps of Newton. */
static double like_normal_quantile(double p)
{
	double z = 4.91 * (pow(p, 0.14) - pow(1 - p, 0.14));
	for (int i = 0; i < 2; i++)
		z -= (erfc(-z / sqrt(2)) / 2 - p) * sqrt(2 * M_PI) * exp(z * z / 2);
	return fmin(fmax(z, -LIKE_DEVIATIONS), LIKE_DEVIATIONS);
}

/* Of file `rank` of a kind: deviations from the medians, as factors. */
struct like_drawn {
	double edge, busy;
};

static struct like_drawn like_draw(const struct recipe_like *like, size_t kind, uint64_t rank)
{
	const struct like_stratum *const s = &like->strata[kind];
	const double count = (double)(like->first[kind + 1] - like->first[kind]);
	const double even = ((double)rank + 0.5) / count;
	double whole;
	const double golden = modf(((double)rank + 0.5) * LIKE_GOLDEN, &whole);
	return (struct like_drawn){.edge = exp(s->edge_sigma * like_normal_quantile(golden)),
		.busy = exp(s->bytes_sigma * like_normal_quantile(even))};
}

/* The means that sizes and bytes are scaled by: of a few files their own, of many what they come to. */
static void like_take_means(struct recipe_like *like, size_t kind)
{
	enum { FEW = 2048 };
	const struct like_stratum *const s = &like->strata[kind];
	const uint64_t count = like->first[kind + 1] - like->first[kind];
	like->pixels[kind] = like_mean_exp(2 * s->edge_sigma);
	like->bytes[kind] = like->pixels[kind] * like_mean_exp(s->bytes_sigma);
	if (count == 0 || count > FEW)
		return;
	double pixels = 0, bytes = 0;
	for (uint64_t rank = 0; rank < count; rank++) {
		const struct like_drawn drawn = like_draw(like, kind, rank);
		pixels += drawn.edge * drawn.edge;
		bytes += drawn.edge * drawn.edge * drawn.busy;
	}
	like->pixels[kind] = pixels / (double)count;
	like->bytes[kind] = bytes / (double)count;
}

/* Each kind gets its share of the files, rounded so that all are dealt out. */
static void like_deal(struct recipe *recipe)
{
	struct recipe_like *const like = &recipe->like;
	double shares = 0;
	for (size_t i = 0; i < like->count; i++) {
		like->first[i] = (uint64_t)llround(shares * (double)recipe->samples);
		shares += like->strata[i].share;
	}
	like->first[like->count] = recipe->samples;
	/* Numbers that follow each other lie far apart in the order of the kinds. */
	like->stride = (uint64_t)(LIKE_GOLDEN * (double)recipe->samples) + 1;
	while (like_common_divisor(like->stride, recipe->samples) != 1)
		like->stride++;
	for (size_t i = 0; i < like->count; i++)
		like_take_means(like, i);
}

static int maker_like_check(struct recipe *recipe, struct error *err)
{
	const size_t key = 0;
	const char *const text = recipe->values[key].text;
	if (!text || !*text)
		return error_set(err, -EINVAL,
			"'dataset.like' is not set, and 'dataset.recipe' = like needs to know what the files are like (example: jpeg 500x375~0.15 420 q90 110KB~0.3 100%%)");
	const int code = like_parse(text, recipe->like.strata, &recipe->like.count, err);
	if (code)
		return error_prefix(err, code, "'dataset.like'");
	like_deal(recipe);
	return 0;
}

static uint32_t like_draw_edge(double edge)
{
	return edge < 1 ? 1 : (uint32_t)lround(fmin(edge, 65500));
}

/* What is put in front of a picture, beside what is there anyway. */
static size_t like_front(const struct like_stratum *stratum)
{
	return stratum->header > LIKE_FRONT_LEAST ? (size_t)stratum->header - LIKE_FRONT_LEAST : 0;
}

static struct like_wanted like_want(const struct recipe *recipe, uint64_t id)
{
	const struct recipe_like *const like = &recipe->like;
	const uint64_t place = like_place(recipe, id);
	const size_t kind = like_kind(like, place);
	const struct like_stratum *const s = &like->strata[kind];
	const struct like_drawn drawn = like_draw(like, kind, place - like->first[kind]);
	const double scale =
		drawn.edge * sqrt(like_mean_exp(2 * s->edge_sigma) / like->pixels[kind]);
	struct like_wanted wanted = {.stratum = s,
		.pixels = {.width = like_draw_edge(s->width * scale),
			.height = like_draw_edge(s->height * scale)}};
	while ((uint64_t)wanted.pixels.width * wanted.pixels.height > IMAGE_PIXELS_MAX) {
		wanted.pixels.width -= wanted.pixels.width / 16;
		wanted.pixels.height -= wanted.pixels.height / 16;
	}
	/* As many bytes as pixels, and by how much this picture is busier than others of its kind. */
	wanted.bytes = (s->bytes - (double)like_front(s)) * drawn.edge * drawn.edge * drawn.busy /
		       like->bytes[kind];
	return wanted;
}

static struct picture_size maker_like_size(const struct recipe *recipe, uint64_t id)
{
	return like_want(recipe, id).pixels;
}

static enum dataset_format like_encoded_format(const struct like_stratum *stratum)
{
	return (enum dataset_format)like_format(stratum);
}

static const char *maker_like_extension_of(const struct recipe *recipe, uint64_t id)
{
	const size_t kind = like_kind(&recipe->like, like_place(recipe, id));
	return encoder_of(like_encoded_format(&recipe->like.strata[kind]))->extension;
}

static const char *maker_like_extension(const struct recipe *recipe)
{
	return maker_like_extension_of(recipe, 0);
}

/* ---- how it is encoded ------------------------------------------------------------------------- */

/* What gen encodes in place of a layout: itself, or what costs about as much. */
static const struct {
	const char *layout;
	int value;
} like_jpeg_values[] = {{"", DATASET_SUBSAMPLING_420}, {"420", DATASET_SUBSAMPLING_420},
	{"422", DATASET_SUBSAMPLING_422}, {"440", DATASET_SUBSAMPLING_422},
	{"411", DATASET_SUBSAMPLING_420}, {"410", DATASET_SUBSAMPLING_420},
	{"gray", DATASET_SUBSAMPLING_GRAY}, {"444", DATASET_SUBSAMPLING_444},
	{"cmyk", DATASET_SUBSAMPLING_444}, {"other", DATASET_SUBSAMPLING_444}},
  like_png_values[] = {{"", DATASET_PNG_RGB}, {"rgb", DATASET_PNG_RGB}, {"rgba", DATASET_PNG_RGBA},
	  {"gray", DATASET_PNG_GRAY}, {"graya", DATASET_PNG_GRAY}, {"gray16", DATASET_PNG_GRAY16},
	  {"palette", DATASET_PNG_PALETTE}};

static struct encode_options like_options(const struct like_stratum *stratum)
{
	struct encode_options options = {.format = like_encoded_format(stratum),
		.quality = stratum->quality ? (int)stratum->quality : LIKE_QUALITY,
		.png_level = LIKE_PNG_LEVEL,
		.progressive = stratum->progressive};
	for (size_t i = 0; i < COUNT(like_jpeg_values); i++)
		if (strcmp(stratum->subsampling, like_jpeg_values[i].layout) == 0)
			options.subsampling = (enum dataset_subsampling)like_jpeg_values[i].value;
	for (size_t i = 0; i < COUNT(like_png_values); i++)
		if (strcmp(stratum->subsampling, like_png_values[i].layout) == 0)
			options.png_color = (enum dataset_png_color)like_png_values[i].value;
	return options;
}

/* ---- the detail that gives the bytes ----------------------------------------------------------- */

/* What a detail gave: logarithms of both, the detail's a little above it, so that 0 has one. */
struct like_point {
	double detail, bytes;
	bool known;
};

/* Bytes of a pixel by detail, of a typical picture of 500 x 375 at quality 90, measured once: the shape of the curve, of which
 * other sizes, formats and qualities have their own multiple. */
static const struct {
	double detail, bytes;
} like_curve[] = {{0, 0.0299}, {64, 0.0729}, {256, 0.1412}, {512, 0.195}, {1024, 0.25},
	{2048, 0.3267}, {4096, 0.4588}, {8192, 0.5965}, {16384, 0.7196},
	{PICTURE_DETAIL_MAX, 0.8628}};

static double like_log_detail(double detail)
{
	return log(detail + LIKE_DETAIL_LESS);
}

static double like_between(double x, double x0, double y0, double x1, double y1)
{
	return y0 + (x - x0) * (y1 - y0) / (x1 - x0);
}

/* The curve, in logarithms; back: the detail of bytes. */
static double like_follow(double x, bool back)
{
	size_t i = 1;
	for (; i + 1 < COUNT(like_curve); i++)
		if (x < (back ? log(like_curve[i].bytes) : like_log_detail(like_curve[i].detail)))
			break;
	const double d0 = like_log_detail(like_curve[i - 1].detail),
		     b0 = log(like_curve[i - 1].bytes);
	const double d1 = like_log_detail(like_curve[i].detail), b1 = log(like_curve[i].bytes);
	return back ? like_between(x, b0, d0, b1, d1) : like_between(x, d0, b0, d1, b1);
}

static uint32_t like_detail_of(double logarithm)
{
	const double detail = exp(logarithm) - LIKE_DETAIL_LESS;
	return detail < 0.5                  ? 0
	       : detail > PICTURE_DETAIL_MAX ? PICTURE_DETAIL_MAX
					     : (uint32_t)lround(detail);
}

/* Where to try next: between what was too little and too much, or as the curve goes on from the one that is known. */
static uint32_t like_next_detail(
	const struct like_point *low, const struct like_point *high, double target)
{
	enum { MARGIN = 16 };
	if (low->known && high->known) {
		const double width = high->detail - low->detail;
		const double meet = high->bytes > low->bytes
					    ? like_between(target, low->bytes, low->detail,
						      high->bytes, high->detail)
					    : low->detail;
		return like_detail_of(fmin(
			fmax(meet, low->detail + width / MARGIN), high->detail - width / MARGIN));
	}
	const struct like_point *const from = low->known ? low : high;
	return like_detail_of(
		like_follow(like_follow(from->detail, false) + target - from->bytes, true));
}

struct like_try {
	uint32_t detail;
	double miss; /* ln of the bytes over those wanted */
};

static int like_try_detail(struct maker *maker, const struct encode_options *options, uint64_t id,
	const struct like_wanted *wanted, uint32_t detail, struct like_try *out,
	const uint8_t **bytes, size_t *size, struct error *err)
{
	const int code = maker_draw(maker, options, id, wanted->pixels, detail, bytes, size, err);
	*out = (struct like_try){.detail = detail, .miss = log((double)*size / wanted->bytes)};
	return code;
}

/* The nearest of a few details; the picture of it is the encoder's.  What is left to miss is in *best. */
static int like_search(struct maker *maker, const struct encode_options *options, uint64_t id,
	const struct like_wanted *wanted, struct like_try *best, const uint8_t **bytes,
	size_t *size, struct error *err)
{
	struct like_point low = {0}, high = {0};
	struct like_try last = {0};
	uint32_t detail = PICTURE_DETAIL_NATURAL;
	*best = (struct like_try){.miss = HUGE_VAL};
	for (int i = 0; i < LIKE_TRIES && fabs(best->miss) > LIKE_CLOSE; i++) {
		const int code = like_try_detail(
			maker, options, id, wanted, detail, &last, bytes, size, err);
		if (code)
			return code;
		const struct like_point point = {.detail = like_log_detail(detail),
			.bytes = log((double)*size),
			.known = true};
		if (fabs(last.miss) < fabs(best->miss))
			*best = last;
		*(last.miss < 0 ? &low : &high) = point;
		const uint32_t next = like_next_detail(&low, &high, log(wanted->bytes));
		if (next == detail)
			break; /* an end of the scale, or between two neighbours */
		detail = next;
	}
	return best->detail == last.detail ? 0
					   : like_try_detail(maker, options, id, wanted,
						     best->detail, &last, bytes, size, err);
}

/* Where no detail gives the bytes, other qualities are tried: half of the way to the best or to the worst. */
static int like_encode(struct maker *maker, uint64_t id, const struct like_wanted *wanted,
	const uint8_t **bytes, size_t *size, struct error *err)
{
	struct encode_options options = like_options(wanted->stratum);
	struct like_try best;
	if (encoder_of(options.format)->is_uncompressed)
		return maker_draw(maker, &options, id, wanted->pixels, PICTURE_DETAIL_NATURAL,
			bytes, size, err);
	int code = like_search(maker, &options, id, wanted, &best, bytes, size, err);
	for (int i = 1; i < LIKE_QUALITIES && !code && fabs(best.miss) > 2 * LIKE_CLOSE; i++) {
		const int before = options.quality;
		options.quality = best.miss < 0 ? (before + 101) / 2 : (before + 1) / 2;
		if (options.quality == before)
			break;
		code = like_search(maker, &options, id, wanted, &best, bytes, size, err);
	}
	return code;
}

/* The picture into the maker's bytes, with segments of application data behind its first two. */
static int like_store(struct maker *maker, const uint8_t *bytes, size_t size, size_t front,
	struct rng *rng, struct error *err)
{
	enum { BEGIN = 2, APPLICATION = 0xe9 };
	const int code = maker_grow(maker, size + front, err);
	if (code)
		return code;
	uint8_t *at = maker->bytes;
	if (front > 0) {
		memcpy(at, bytes, BEGIN);
		at += BEGIN;
		bytes += BEGIN;
		size -= BEGIN;
	}
	while (front > LIKE_SEGMENT_HEAD) {
		const size_t part = front < LIKE_SEGMENT_MAX ? front : LIKE_SEGMENT_MAX;
		const size_t length = part - 2;
		const uint8_t head[LIKE_SEGMENT_HEAD] = {
			0xff, APPLICATION, (uint8_t)(length >> 8), (uint8_t)length};
		memcpy(at, head, sizeof head);
		for (size_t i = sizeof head; i < part; i++)
			at[i] = (uint8_t)rng_next(rng);
		at += part;
		front -= part;
	}
	memcpy(at, bytes, size);
	maker->size = (size_t)(at - maker->bytes) + size;
	return 0;
}

static int maker_like_make(
	struct maker *maker, const struct recipe *recipe, uint64_t id, struct error *err)
{
	const struct like_wanted wanted = like_want(recipe, id);
	const uint8_t *bytes;
	size_t size;
	struct rng rng;
	const int code = like_encode(maker, id, &wanted, &bytes, &size, err);
	rng_init(&rng, recipe->seed, id);
	return code ? code : like_store(maker, bytes, size, like_front(wanted.stratum), &rng, err);
}

/* ---- estimates --------------------------------------------------------------------------------- */

static double maker_like_mean(const struct recipe *recipe)
{
	double bytes = 0;
	for (size_t i = 0; i < recipe->like.count; i++)
		bytes += recipe->like.strata[i].share * recipe->like.strata[i].bytes;
	return bytes;
}

static double maker_like_mean_ns(const struct recipe *recipe)
{
	double ns = 0;
	for (size_t i = 0; i < recipe->like.count; i++) {
		const struct like_stratum *const s = &recipe->like.strata[i];
		const unsigned cost = encoder_of(like_encoded_format(s))->cost;
		ns += s->share * s->width * s->height * LIKE_NS_PER_PIXEL * (cost ? cost : 1) *
		      (s->progressive ? LIKE_PROGRESSIVE_COST : 1);
	}
	return ns;
}

const struct recipe_ops maker_like = {
	.version = PICTURE_VERSION,
	.keys = {KEY_DATASET_LIKE},
	.key_count = 1,
	.extension = maker_like_extension,
	.check = maker_like_check,
	.mean_bytes = maker_like_mean,
	.mean_ns = maker_like_mean_ns,
	.make = maker_like_make,
	.size = maker_like_size,
	.extension_of = maker_like_extension_of,
};
